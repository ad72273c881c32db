//! differential-equations: its Dormand-Prince methods, and one of Verner's methods per order, on arrays.
//!
//! Version 0.7 has no Tsit5. Of each of Verner's pairs, the one with the smaller interpolant is used, because every step evaluates
//! its extra stages.

use super::{MAX_STEPS, System};
use crate::measure::{End, Run};
use crate::problems::Problem;
use differential_equations::ode::ODE;
use differential_equations::prelude::*;

impl<P: Problem, const N: usize> ODE<f64, [f64; N]> for System<P> {
    fn diff(&self, _t: f64, y: &[f64; N], dy: &mut [f64; N]) {
        P::f(y, dy);
    }
}

/// On arrays, large ones too.
pub fn arrays<P: Problem, const N: usize>(tol: f64) -> Vec<Run<'static>> {
    let y0: [f64; N] = P::y0().try_into().expect("the problem has N unknowns");
    macro_rules! run {
        ($method:ident) => {
            Run::new("differential-equations", stringify!($method), tol, move || {
                let method = ExplicitRungeKutta::$method().rtol(tol).atol(tol).max_steps(MAX_STEPS as usize);
                let solution = IVP::ode(&System::<P>::NEW, 0.0, P::T1, y0).method(method).solve();
                let solution = solution.map_err(|e| format!("{e:?}"))?;
                let y = solution.y.last().ok_or("no output")?.to_vec();
                let (num_steps, num_field_evals) = (solution.steps.total(), solution.evals.function);
                Ok(End {
                    y,
                    num_steps: num_steps as u64,
                    num_field_evals: num_field_evals as u64,
                    ..End::default()
                })
            })
        };
    }
    vec![run!(dopri5), run!(dop853), run!(rkv655e), run!(rkv766e), run!(rkv877e), run!(rkv988e)]
}
