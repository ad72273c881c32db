//! W2: ten thousand Lorenz trajectories, rho from 0 to 28, over one unit of time at rtol = atol = 1e-6, each by steps
//! of its own; end states alone. The value is the mean of x.

use crate::measure::{Measured, Options, Result, time};
use flowline::prelude::*;

pub const VARIANTS: &[&str] = &["f64", "f32"];

const TRAJECTORIES: usize = 10_000;
const TOL: f64 = 1e-6;

field! {
    /// Lorenz 1963 with sigma = 10 and beta = 8/3.
    struct Lorenz<R> { rho: R }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        [10.0 * (y[1] - y[0]), y[0] * (self.rho - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]]
    }
}

pub fn measure(variant: &str, options: &Options) -> Result<Measured> {
    let rhos: Vec<f64> = (0..TRAJECTORIES).map(|i| 28.0 * i as f64 / (TRAJECTORIES - 1) as f64).collect();
    let sweep = Ode::ensemble(&rhos, |&rho| (Lorenz { rho }, [1.0; 3])).rtol(TOL).atol(TOL);
    if variant == "f32" {
        let sweep = sweep.single_precision();
        return timed(options, || {
            let end = sweep.solve(0.0, 1.0)?.into_result()?.y1;
            Ok(end.iter().map(|y| f64::from(y[0])).sum())
        });
    }
    timed(options, || Ok(sweep.solve(0.0, 1.0)?.into_result()?.y1.iter().map(|y| y[0]).sum()))
}

fn timed(options: &Options, solve: impl Fn() -> Result<f64>) -> Result<Measured> {
    let mut sum = 0.0;
    let times = time(options, || {
        sum = solve()?;
        Ok(())
    })?;
    Ok(Measured::new(times, [sum / TRAJECTORIES as f64]))
}
