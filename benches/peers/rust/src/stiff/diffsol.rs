//! diffsol: its implicit methods, on dense matrices of nalgebra and of faer. The problem is built outside the timing.
//!
//! The crate computes the Jacobian from products with unit vectors, which is its documented interface.

use crate::measure::{End, Run};
use crate::problems::Problem;
use crate::{MAX_STEPS, array, eval};
use diffsol::{
    FaerLU, FaerMat, NalgebraLU, NalgebraMat, OdeBuilder, OdeEquations, OdeSolverMethod, OdeSolverStopReason,
    Op, Vector,
};

macro_rules! run {
    ($P:ty, $rtol:expr, $name:literal, $method:ident, $matrix:ident, $lu:ident) => {{
        let mut problem = OdeBuilder::<$matrix<f64>>::new()
            .rtol($rtol)
            .atol(<$P>::atol($rtol))
            .rhs_implicit(
                |y, _p, t, dy| eval::<$P, N>(t, y, dy),
                |y, _p, t, v, jv| {
                    jv.fill(0.0);
                    <$P>::jacobian(t, array(y), |i, j, entry| jv[i] += entry * v[j]);
                },
            )
            .init(|_p, _t, y| y.copy_from_slice(&<$P>::Y0), N)
            .build()
            .expect("the problem is valid");
        // The default of 50 ends solves of the Oregonator and of Van der Pol's oscillator.
        problem.ode_options.max_nonlinear_solver_failures = MAX_STEPS;
        problem.ode_options.max_number_timesteps = MAX_STEPS;
        Run::new("diffsol", $name, $rtol, move || {
            let before = problem.eqn.rhs().statistics().number_of_calls;
            let mut solver = problem.$method::<$lu<f64>>().map_err(|e| e.to_string())?;
            solver.set_stop_time(<$P>::T1).map_err(|e| e.to_string())?;
            while !matches!(solver.step().map_err(|e| e.to_string())?, OdeSolverStopReason::TstopReached) {}
            let steps = solver.get_statistics();
            Ok(End {
                y: solver.state().y.clone_as_vec(),
                num_steps: (steps.number_of_steps
                    + steps.number_of_error_test_failures
                    + steps.number_of_nonlinear_solver_fails) as u64,
                num_field_evals: (problem.eqn.rhs().statistics().number_of_calls - before) as u64,
                num_factorizations: steps.number_of_linear_solver_setups as u64,
            })
        })
    }};
}

pub fn runs<P: Problem<N>, const N: usize>(rtol: f64) -> Vec<Run<'static>> {
    vec![
        run!(P, rtol, "bdf", bdf, NalgebraMat, NalgebraLU),
        run!(P, rtol, "tr-bdf2", tr_bdf2, NalgebraMat, NalgebraLU),
        run!(P, rtol, "esdirk34", esdirk34, NalgebraMat, NalgebraLU),
        run!(P, rtol, "bdf-faer", bdf, FaerMat, FaerLU),
        run!(P, rtol, "esdirk34-faer", esdirk34, FaerMat, FaerLU),
    ]
}
