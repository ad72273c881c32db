//! russell_ode: its Dormand-Prince methods, on its own vectors on the heap.

use super::MAX_STEPS;
use crate::measure::{End, Run};
use crate::problems::Problem;
use russell_lab::Vector;
use russell_ode::prelude::*;

pub fn heap<P: Problem>(tol: f64) -> Vec<Run<'static>> {
    let run = |method: Method, name: &str| {
        Run::new("russell_ode", name, tol, move || {
            let y0 = P::y0();
            let system = System::new(y0.len(), |dy: &mut Vector, _t, y: &Vector, _args: &mut NoArgs| {
                P::f(y.as_data(), dy.as_mut_data());
                Ok(())
            });
            let mut params = Params::new(method);
            params.set_tolerances(tol, tol, None)?;
            params.step.n_step_max = MAX_STEPS as usize;
            let mut solver = OdeSolver::new(params, system)?;
            let (mut y, mut no_args) = (Vector::from(&y0), 0);
            solver.solve(&mut y, 0.0, P::T1, None, &mut no_args, None)?;
            let stats = solver.stats();
            let (num_steps, num_field_evals) = (stats.n_steps as u64, stats.n_function as u64);
            Ok(End { y: y.as_data().to_vec(), num_steps, num_field_evals, ..End::default() })
        })
    };
    vec![run(Method::DoPri5, "dopri5"), run(Method::DoPri8, "dop853")]
}
