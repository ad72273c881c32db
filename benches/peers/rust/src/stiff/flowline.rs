//! flowline: its Rosenbrock methods on arrays, called as a user would.

use super::MAX_STEPS;
use crate::measure::{End, Run};
use crate::problems::Problem;
use flowline::ode::{Method, Ode, VectorField};

/// The right-hand side that all crates share.
#[inline(always)]
pub fn eval<const N: usize>(field: &impl VectorField<[f64; N]>, t: f64, y: &[f64; N], dy: &mut [f64; N]) {
    field.eval(&t, y, dy).expect("the field has no errors");
}

/// Compares the Jacobian that the others get with flowline's own.
///
/// # Panics
/// Where they differ by more than rounding.
pub fn check_jacobian<P: Problem<N>, const N: usize>() {
    let y: [f64; N] = std::array::from_fn(|i| P::Y0[i] + (i + 1) as f64 * 0.01);
    let t = 0.3 * P::T1;
    let (mut given, mut own) = ([[0.0; N]; N], [[0.0; N]; N]);
    P::jacobian(t, &y, |i, j, entry| given[i][j] += entry);
    let colors: [usize; N] = std::array::from_fn(|j| j);
    let field = P::FIELD;
    let itself = field.linearize().expect("a `vector_field!` differentiates itself");
    itself.columns(&t, &y, &colors, N, &mut |j, column: &[f64; N]| {
        if j < N {
            (0..N).for_each(|i| own[i][j] = column[i]);
        }
    });
    for (i, j) in (0..N).flat_map(|i| (0..N).map(move |j| (i, j))) {
        let (given, own): (f64, f64) = (given[i][j], own[i][j]);
        assert!(
            (given - own).abs() <= 1e-12 * own.abs(),
            "{}: df[{i}]/dy[{j}] is {own}, not {given}",
            P::NAME
        );
    }
}

pub fn runs<P: Problem<N>, const N: usize>(rtol: f64) -> Vec<Run<'static>> {
    let run = |method: Method| {
        let ode = Ode::from_generic(P::FIELD)
            .method(method)
            .rtol(rtol)
            .atol(P::atol(rtol))
            .max_steps(MAX_STEPS as u64);
        Run::new("flowline", method.to_string().to_lowercase(), rtol, move || {
            let solution = ode.solve(0.0, P::T1, P::Y0).map_err(|e| e.to_string())?;
            let stats = solution.stats;
            Ok(End {
                y: solution.y1.to_vec(),
                num_steps: stats.num_steps,
                num_field_evals: stats.num_fn_evals,
                num_factorizations: stats.num_factorizations,
            })
        })
    };
    vec![run(Method::Rodas5P), run(Method::Rosenbrock23)]
}
