//! russell_ode: Radau5 on its own vectors on the heap and its sparse solver. The system is built outside the timing.
//!
//! The crate takes one absolute tolerance for all components, so it solves for `y / scale`: its tolerances on these are those of the
//! other solvers on y. Its threads for linear systems are switched off: they take longer than systems of this size.

use crate::measure::{End, Run};
use crate::problems::Problem;
use crate::{MAX_STEPS, array, eval};
use russell_lab::Vector;
use russell_ode::prelude::*;
use russell_sparse::{CooMatrix, Sym};

/// y from `y / scale`.
#[inline(always)]
fn unscaled<P: Problem<N>, const N: usize>(scaled: &[f64]) -> [f64; N] {
    let scaled = array::<N>(scaled);
    std::array::from_fn(|i| scaled[i] * P::SCALE[i])
}

fn system<P: Problem<N>, const N: usize>() -> System<'static, NoArgs> {
    let rate = |rate: &mut Vector, t, scaled: &Vector, _args: &mut NoArgs| {
        let rate = rate.as_mut_data();
        eval::<P, N>(t, &unscaled::<P, N>(scaled.as_data()), rate);
        rate.iter_mut().zip(P::SCALE).for_each(|(rate, scale)| *rate *= 1.0 / scale);
        Ok(())
    };
    let jacobian = |jacobian: &mut CooMatrix, alpha, t, scaled: &Vector, _args: &mut NoArgs| {
        jacobian.reset();
        let mut result = Ok(());
        P::jacobian(t, &unscaled::<P, N>(scaled.as_data()), |i, j, entry| {
            let put = jacobian.put(i, j, alpha * entry * (P::SCALE[j] / P::SCALE[i]));
            result = result.and(put);
        });
        result
    };
    let mut num_entries = 0;
    P::jacobian(0.0, &P::Y0, |_, _, _| num_entries += 1);
    let mut system = System::new(N, rate);
    system.set_jacobian(Some(num_entries), Sym::No, jacobian).expect("no mass matrix is set");
    system
}

pub fn runs<P: Problem<N>, const N: usize>(rtol: f64) -> Vec<Run<'static>> {
    let system = system::<P, N>();
    vec![Run::new("russell_ode", "radau5", rtol, move || {
        let mut params = Params::new(Method::Radau5);
        params.set_tolerances(rtol, rtol, None)?;
        params.step.n_step_max = MAX_STEPS;
        params.radau5.concurrent = false;
        let mut solver = OdeSolver::new(params, system.clone())?;
        let scaled: [f64; N] = std::array::from_fn(|i| P::Y0[i] / P::SCALE[i]);
        let (mut scaled, mut no_args) = (Vector::from(&scaled), 0);
        solver.solve(&mut scaled, 0.0, P::T1, None, &mut no_args, None)?;
        let stats = solver.stats();
        Ok(End {
            y: unscaled::<P, N>(scaled.as_data()).to_vec(),
            num_steps: stats.n_steps as u64,
            num_field_evals: stats.n_function as u64,
            num_factorizations: stats.n_factor as u64,
        })
    })]
}
