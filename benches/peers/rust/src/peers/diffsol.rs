//! diffsol: its explicit method, on nalgebra vectors on the heap. The problem is built outside the timing.

use super::MAX_STEPS;
use crate::measure::{End, Run};
use crate::problems::Problem;
use diffsol::{
    NalgebraMat, OdeBuilder, OdeEquations, OdeSolverMethod, OdeSolverStopReason, Op, VectorCommon,
};

pub fn heap<P: Problem>(tol: f64) -> Vec<Run<'static>> {
    let mut problem = OdeBuilder::<NalgebraMat<f64>>::new()
        .rtol(tol)
        .atol([tol])
        .rhs(|y, _p, _t, dy| P::f(y, dy))
        .init(|_p, _t, y| y.copy_from_slice(&P::y0()), P::y0().len())
        .build()
        .expect("the problem is valid");
    problem.ode_options.max_number_timesteps = MAX_STEPS as usize;
    let solve = move || {
        let before = problem.eqn.rhs().statistics().number_of_calls;
        let mut solver = problem.tsit45().map_err(|e| e.to_string())?;
        solver.set_stop_time(P::T1).map_err(|e| e.to_string())?;
        while !matches!(solver.step().map_err(|e| e.to_string())?, OdeSolverStopReason::TstopReached) {}
        let steps = solver.get_statistics();
        Ok(End {
            y: solver.state().y.inner().as_slice().to_vec(),
            num_steps: (steps.number_of_steps + steps.number_of_error_test_failures) as u64,
            num_field_evals: (problem.eqn.rhs().statistics().number_of_calls - before) as u64,
            ..End::default()
        })
    };
    vec![Run::new("diffsol", "tsit45", tol, solve)]
}
