//! Stiff problems: flowline, diffsol, russell_ode and SciPy in one run.
//!
//! Prints Markdown tables, or with `--json` one measurement per line. Each solver gets the same tolerances per
//! component, the analytic Jacobian (flowline: its own, by dual numbers), and its own initial step size and
//! controller.

#[path = "../curves.rs"]
mod curves;
mod diffsol;
mod flowline;
#[path = "../measure.rs"]
mod measure;
#[path = "../options.rs"]
mod options;
#[path = "../../../../common/stiff.rs"]
mod problems;
#[path = "../record.rs"]
#[allow(dead_code, reason = "prints Markdown instead of its tables")]
mod record;
mod russell;
mod scipy;
mod tables;

use measure::{Rules, time};
use options::Options;
use problems::ring_modulator::RingModulator;
use problems::{Hires, Orego, Pollu, Problem, Rober1e11, Rober40, VanDerPol};
use record::Record;
use scipy::Scipy;

/// Limit of steps and of rejected steps, which no solve here reaches.
pub const MAX_STEPS: usize = 10_000_000;

/// The right-hand side on slices.
#[inline(always)]
pub fn eval<P: Problem<N>, const N: usize>(t: f64, y: &[f64], dy: &mut [f64]) {
    let (y, dy) = (array(y), dy.as_mut_array().expect("the problem has N unknowns"));
    flowline::eval(&P::FIELD, t, y, dy);
}

/// A slice of N numbers as an array.
#[inline(always)]
pub fn array<const N: usize>(y: &[f64]) -> &[f64; N] {
    y.as_array().expect("the problem has N unknowns")
}

struct Session {
    options: Options,
    scipy: Option<Scipy>,
    records: Vec<Record>,
}

impl Session {
    fn problem<P: Problem<N>, const N: usize>(&mut self) {
        if !self.options.wants_problem(P::NAME) {
            return;
        }
        flowline::check_jacobian::<P, N>();
        let first = self.records.len();
        for exponent in (3..=9).step_by(if self.options.quick { 2 } else { 1 }) {
            let rtol = 10f64.powi(-exponent);
            let mut runs = flowline::runs::<P, N>(rtol);
            runs.extend(diffsol::runs::<P, N>(rtol));
            runs.extend(russell::runs::<P, N>(rtol));
            runs.extend(self.scipy.iter().flat_map(|scipy| scipy.runs::<P, N>(rtol)));
            let rules = Rules { error: &P::error, slow_rounds: 3 };
            for timed in time(self.options.wanted(runs), &rules) {
                let flags = self.options.flags.clone();
                let record = Record { timed, problem: P::NAME, flags, ensemble: None };
                if self.options.json {
                    println!("{}", record.json());
                }
                self.records.push(record);
            }
        }
        if !self.options.json {
            println!("{}", tables::of_problem::<P, N>(&self.records[first..]));
        }
    }
}

fn main() -> Result<(), String> {
    let options = Options::parse(std::env::args().skip(1))?;
    let scipy = Scipy::start().inspect_err(|why| eprintln!("SciPy is left out: {why}")).ok();
    let mut session = Session { options, scipy, records: Vec::new() };
    session.problem::<Rober40, 3>();
    session.problem::<Rober1e11, 3>();
    session.problem::<Hires, 8>();
    session.problem::<Orego, 3>();
    session.problem::<VanDerPol, 2>();
    session.problem::<RingModulator, 15>();
    session.problem::<Pollu, 20>();
    if !session.options.json {
        println!("{}", tables::at_equal_error(&session.records));
    }
    Ok(())
}
