//! Recomputed steps of the gradient of one solve:
//! `cargo bench --bench checkpoints -- [--steps N] [--checkpoints C] [--unknown | --forecast M] [--json]`.
//!
//! Compiles one solve of N (100) constant steps of Midpoint on four unknowns, and its gradient with at most C
//! (10) stored states. `--unknown` hides the number of steps from the checkpoint placement, `--forecast M`
//! passes the number M instead of N. The vector field counts its calls: two per step forward, two per
//! recomputed step, and two per step backward, because the cotangent of a step needs its stages.

use flowline::__internal::backend::checkpoint::cost::fewest_extra;
use flowline::adjoint::ExpectedSteps;
use flowline::nn::prelude::*;
use flowline::ode::ConstantStepSize;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

struct Options {
    steps: u32,
    checkpoints: usize,
    forecast: ExpectedSteps,
    json: bool,
}

fn main() -> ExitCode {
    match options(std::env::args().skip(1)).and_then(|options| run(&options).map_err(|e| e.to_string())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn options(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { steps: 100, checkpoints: 10, forecast: ExpectedSteps::Auto, json: false };
    while let Some(arg) = args.next() {
        let mut number = || {
            let value = args.next().and_then(|value| value.parse::<u32>().ok()).filter(|n| *n > 0);
            value.ok_or_else(|| format!("{arg} needs a number above 0"))
        };
        match arg.as_str() {
            "--steps" => options.steps = number()?,
            "--checkpoints" => options.checkpoints = number()? as usize,
            "--forecast" => options.forecast = number()?.into(),
            "--unknown" => options.forecast = ExpectedSteps::Unknown,
            "--json" => options.json = true,
            "--bench" => {}
            other => {
                return Err(format!(
                    "unknown option {other}; options are [--steps N] [--checkpoints C] [--unknown | --forecast M] [--json]"
                ));
            }
        }
    }
    Ok(options)
}

fn run(options: &Options) -> flowline::Result<()> {
    let Options { steps, checkpoints, ref forecast, json } = *options;
    let calls = Arc::new(AtomicU64::new(0));
    let counter = calls.clone();
    let weights = Key::new(0).normal([4, 4]).cast(flowline::tensor::DType::F64);
    let gradient = jit(|y0: Tensor| {
        let end = |y0: &Tensor| {
            let field = Ode::new(|_t, y: &Tensor| {
                let counter = counter.clone();
                let y = y.debug_callback(move |_| _ = counter.fetch_add(1, Ordering::Relaxed));
                y.matmul(&weights).tanh()
            });
            let dt0 = 1.0 / f64::from(steps);
            let field = field
                .method(Method::Midpoint)
                .controller(ConstantStepSize { dt0 })
                .max_steps(u64::from(steps) + 1);
            let field =
                field.adjoint(Adjoint::recursive_checkpoint(checkpoints)).expected_steps(forecast.clone());
            Ok(field.solve(0.0, 1.0, y0)?.y1.square().sum())
        };
        Ok(value_and_grad(end, &y0)?.1)
    });
    gradient.call(Tensor::from([[0.3, -0.2, 0.7, 0.1]]))?;
    let report = gradient.last_run();
    let (counted, optimum) = (calls.load(Ordering::Relaxed), fewest_extra(steps as usize, checkpoints));
    let (recomputed, kept) = (report.recomputed, report.states_kept_max);
    if json {
        println!(
            "{{\"steps\":{},\"checkpoints\":{checkpoints},\"recomputed\":{recomputed},\"optimum\":{optimum},\
             \"states_kept_max\":{kept},\"field_evals_counted\":{counted}}}",
            report.accepted
        );
    } else {
        println!(
            "{} steps, {checkpoints} checkpoints: {recomputed} steps recomputed (optimum {optimum}), at most {kept} \
             states kept, {counted} evaluations of the field",
            report.accepted
        );
    }
    Ok(())
}
