//! SciPy: Radau, BDF and LSODA of `solve_ivp` in a Python process that solves on request.
//!
//! A request goes through two pipes, which takes some 20 microseconds of the milliseconds of a solve.

use crate::measure::{End, Run};
use crate::problems::Problem;
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

/// The Python process; it ends when its input does.
#[derive(Clone)]
pub struct Scipy(Rc<RefCell<Pipes>>);

struct Pipes {
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    process: Child,
}

impl Drop for Pipes {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.process.wait();
    }
}

impl Scipy {
    /// Starts the process; installs SciPy first if it is missing.
    pub fn start() -> Result<Self, String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("");
        let python = Command::new("python3")
            .arg(folder.join("run"))
            .args(["--environment", "requirements-stiff.txt"])
            .stderr(Stdio::inherit())
            .output()
            .map_err(|e| format!("python3 does not start: {e}"))?;
        if !python.status.success() {
            return Err(format!("peers/run ended with {}", python.status));
        }
        let mut process = Command::new(String::from_utf8_lossy(&python.stdout).trim())
            .arg(folder.join("py/stiff.py"))
            .env("OPENBLAS_NUM_THREADS", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("its Python does not start: {e}"))?;
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("the output is piped"));
        let scipy = Scipy(Rc::new(RefCell::new(Pipes { input, output, process })));
        scipy.solve("vdpol", "LSODA", 1e-3)?;
        Ok(scipy)
    }

    fn solve(&self, problem: &str, method: &str, rtol: f64) -> Result<End, String> {
        let Pipes { input, output, .. } = &mut *self.0.borrow_mut();
        let input = input.as_mut().expect("the process runs");
        writeln!(input, "{problem} {method} {rtol:e}").map_err(|e| format!("stiff.py has ended: {e}"))?;
        let mut line = String::new();
        output.read_line(&mut line).map_err(|e| e.to_string())?;
        let numbers: Result<Vec<f64>, _> = line.split_whitespace().map(str::parse).collect();
        match numbers.as_deref() {
            Ok([steps, evals, factorizations, y @ ..]) => Ok(End {
                y: y.to_vec(),
                num_steps: *steps as u64,
                num_field_evals: *evals as u64,
                num_factorizations: *factorizations as u64,
            }),
            _ => Err(line),
        }
    }

    pub fn runs<P: Problem<N>, const N: usize>(&self, rtol: f64) -> Vec<Run<'static>> {
        let run = |method: &'static str| {
            let scipy = self.clone();
            Run::new("scipy", method.to_lowercase(), rtol, move || scipy.solve(P::NAME, method, rtol))
        };
        ["Radau", "BDF", "LSODA"].map(run).into()
    }
}
