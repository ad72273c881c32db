//! ode_solvers: Dopri5 and Dop853 with the step size rules of the Fortran codes, on nalgebra vectors.
//!
//! `OutputType::Sparse` keeps the accepted steps. Its dense output is not used: version 0.6.2 returns a wrong end value if the
//! spacing is wider than a step.

use super::{MAX_STEPS, System};
use crate::measure::{End, Run};
use crate::problems::Problem;
use nalgebra::{DVector, SVector};
use ode_solvers::dop_shared::{OutputType, Stats};
use ode_solvers::{Dop853, Dopri5};

impl<P: Problem, const N: usize> ode_solvers::System<f64, SVector<f64, N>> for System<P> {
    fn system(&self, _t: f64, y: &SVector<f64, N>, dy: &mut SVector<f64, N>) {
        P::f(y.as_slice(), dy.as_mut_slice());
    }
}
impl<P: Problem> ode_solvers::System<f64, DVector<f64>> for System<P> {
    fn system(&self, _t: f64, y: &DVector<f64>, dy: &mut DVector<f64>) {
        P::f(y.as_slice(), dy.as_mut_slice());
    }
}

fn end(y: &[f64], stats: &Stats) -> End {
    let num_steps = u64::from(stats.accepted_steps) + u64::from(stats.rejected_steps);
    End { y: y.to_vec(), num_steps, num_field_evals: stats.num_eval.into(), ..End::default() }
}

/// The two solvers of the crate with the parameters that `new` sets, except output and step limit.
macro_rules! with_defaults {
    (Dopri5, $($common:expr),*; $span:expr) => {
        Dopri5::from_param($($common),*, 0.9, 0.04, 0.2, 10.0, $span, 0.0, MAX_STEPS, u32::MAX, OutputType::Sparse)
    };
    (Dop853, $($common:expr),*; $span:expr) => {
        Dop853::from_param($($common),*, 0.9, 0.0, 0.333, 6.0, $span, 0.0, MAX_STEPS, u32::MAX, OutputType::Sparse)
    };
}
pub(crate) use with_defaults;

macro_rules! run {
    ($solver:ident, $name:literal, $P:ty, $tol:expr, $y0:expr) => {{
        let (t1, tol, y0) = (<$P>::T1, $tol, $y0);
        Run::new("ode_solvers", $name, tol, move || {
            let mut solver =
                with_defaults!($solver, System::<$P>::NEW, 0.0, t1, t1, y0.clone(), tol, tol; t1);
            let stats = solver.integrate().map_err(|e| format!("{e:?}"))?;
            let y = solver.y_out().last().ok_or("no output")?;
            Ok(end(y.as_slice(), &stats))
        })
    }};
}

/// On vectors of a fixed size.
pub fn fixed<P: Problem, const N: usize>(tol: f64) -> Vec<Run<'static>> {
    let y0 = SVector::<f64, N>::from_vec(P::y0());
    vec![run!(Dopri5, "dopri5", P, tol, y0), run!(Dop853, "dop853", P, tol, y0)]
}

/// On vectors on the heap.
pub fn heap<P: Problem>(tol: f64) -> Vec<Run<'static>> {
    let y0 = || DVector::from_vec(P::y0());
    vec![run!(Dopri5, "dopri5", P, tol, y0()), run!(Dop853, "dop853", P, tol, y0())]
}
