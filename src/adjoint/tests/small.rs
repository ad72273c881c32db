//! Loops small enough for Miri, which is a thousand times slower: a search, its replay with checkpoints, rows
//! in lockstep.

use crate::adjoint::{Adjoint, Batching};
use crate::ode::{Method, Ode};
use crate::tensor::{Tensor, jit, value_and_grad};

fn decay(p: &Tensor, y: &Tensor) -> Tensor {
    -(p * y)
}

/// y1 and dy1/dp of n steps of Euler over one unit of time, for y0 = 1: `(1 - p h)^n` and `-(1 - p h)^(n - 1)`.
#[test]
fn a_few_steps_and_their_gradient() {
    let n = 3;
    for adjoint in [Adjoint::Direct, Adjoint::recursive_checkpoint(1), Adjoint::recursive_checkpoint(2)] {
        let loss = |p: &Tensor| {
            let ode = Ode::new(|_t, y: &Tensor| decay(p, y)).method(Method::Euler).dt0(1.0 / f64::from(n));
            ode.adjoint(adjoint).solve(0.0, 1.0, Tensor::from([1.0, 2.0])).unwrap().y1.sum()
        };
        let (value, gradient) = jit(|p: Tensor| value_and_grad(loss, &p)).call(Tensor::from(0.5)).unwrap();
        let left = 1.0 - 0.5 / f64::from(n);
        assert!((value.item() - 3.0 * left.powi(n)).abs() < 1e-14, "{adjoint:?}");
        assert!((gradient.item() + 3.0 * left.powi(n - 1)).abs() < 1e-14, "{adjoint:?}");
    }
}

#[test]
fn two_rows_with_separate_steps() {
    let rates = Tensor::from([[1.0], [8.0]]);
    let y0 = Tensor::concat(&[&Tensor::from([[1.0], [1.0]]), &rates], 1);
    let field = |_t: Tensor, y: &Tensor| {
        let (x, rate) = (y.column(0).expand_dims(1), y.column(1).expand_dims(1));
        Tensor::concat(&[&-(&rate * &x), &(rate * 0.0)], 1)
    };
    let ode = Ode::new(field).method(Method::Bosh3).rtol(0.1).atol(0.1).batching(Batching::PerRow);
    let solution = ode.solve(0.0, 1.0, y0).unwrap();
    let steps = solution.stats.num_accepted.to_vec();
    assert!(steps[0] < steps[1], "{steps:?}");
    for (x, rate) in solution.y1.column(0).to_vec().into_iter().zip([1.0_f64, 8.0]) {
        assert!((x - (-rate).exp()).abs() < 0.1, "{x}");
    }
}
