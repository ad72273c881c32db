//! W2: ten thousand Lorenz trajectories, rho from 0 to 28, over one unit of time at rtol = atol = 1e-6, each with its own steps;
//! only end states. The value is the mean of x. `inlined`: a loop compiled for the field and Method::Tsit5.

use crate::measure::{Measured, Options, Result, time};
use flowline::ode::{EnsembleSolution, ensemble, inline};
use flowline::prelude::*;

pub const VARIANTS: &[&str] = if cfg!(feature = "ensemble-f32") {
    &["f64", "f32", "f64 inlined", "f32 inlined"]
} else {
    &["f64", "f64 inlined"]
};

const TRAJECTORIES: usize = 10_000;
const TOL: f64 = 1e-6;

vector_field! {
    /// Lorenz 1963 with sigma = 10 and beta = 8/3.
    struct Lorenz<R> { rho: R }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        [10.0 * (y[1] - y[0]), y[0] * (self.rho - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]]
    }
}

pub fn measure(variant: &str, options: &Options) -> Result<Measured> {
    let rhos: Vec<f64> = (0..TRAJECTORIES).map(|i| 28.0 * i as f64 / (TRAJECTORIES - 1) as f64).collect();
    let sweep = ensemble(&rhos, |&rho| (Lorenz { rho }, [1.0; 3])).rtol(TOL).atol(TOL);
    match variant {
        "f64" => timed(options, || Ok(mean_x(sweep.solve(0.0, 1.0)?))),
        "f64 inlined" => {
            let sweep = sweep.inlined(inline::Tsit5);
            timed(options, || Ok(mean_x(sweep.solve(0.0, 1.0)?)))
        }
        #[cfg(feature = "ensemble-f32")]
        "f32" => {
            let sweep = sweep.single_precision();
            timed(options, || Ok(mean_x(sweep.solve(0.0, 1.0)?)))
        }
        #[cfg(feature = "ensemble-f32")]
        "f32 inlined" => {
            let sweep = sweep.single_precision().inlined(inline::Tsit5);
            timed(options, || Ok(mean_x(sweep.solve(0.0, 1.0)?)))
        }
        _ => Err(format!("no variant {variant:?}; ensembles in f32 need `--features ensemble-f32`").into()),
    }
}

fn mean_x<T: Into<f64> + Copy>(sweep: EnsembleSolution<[T; 3]>) -> f64 {
    sweep.y1.iter().map(|y| y[0].into()).sum::<f64>() / TRAJECTORIES as f64
}

fn timed(options: &Options, solve: impl Fn() -> Result<f64>) -> Result<Measured> {
    let mut mean = 0.0;
    let times = time(options, || {
        mean = solve()?;
        Ok(())
    })?;
    Ok(Measured::new(times, [mean]))
}
