//! Reversible solves whose two states separate, and backward passes that do not recover y0.

use crate::adjoint::Adjoint;
use crate::error::Error;
use crate::ode::{ConstantStepSize, Ode, Outcome, SolveError};
use crate::tensor::{Tensor, debug_nans, value_and_grad};

const TOL: f64 = 1e-7;

/// Solves y' = -k y, y(0) = 1 to t = 5: the outcome, and the error of y(5) in tolerances.
fn damped(k: f64, adjoint: Adjoint) -> (Outcome, f64) {
    let ode = Ode::new(move |_t, y: &Tensor| y * -k).rtol(TOL).atol(TOL).adjoint(adjoint);
    let end = ode.allow_incomplete().solve(0.0, 5.0, Tensor::from(1.0)).unwrap();
    (end.outcome(), (end.y1.item() - (-5.0 * k).exp()).abs() / TOL)
}

#[test]
fn a_damped_solve_meets_the_tolerance_or_ends_with_a_reason() {
    for (k, coupling) in [(0.1, 0.99), (1.0, 0.99), (3.0, 0.99), (10.0, 0.99), (3.0, 0.5), (10.0, 0.5)] {
        let (outcome, off) = damped(k, Adjoint::Reversible { coupling });
        if outcome.reached_t1() {
            assert!(off < 20.0 && k < 10.0, "k {k}, coupling {coupling}: off by {off} tolerances");
            continue;
        }
        assert!(k > 0.5, "k {k}: {outcome}");
        let Outcome::ReversibleUnstable { t, difference, step } = outcome else { panic!("{outcome}") };
        assert!(0.1 < t && t < 5.0 && step > 2 && difference > 10.0 * TOL && difference < 1e-3, "{outcome}");
        let said = outcome.to_string();
        for word in [
            "differ by",
            "at t=",
            "damped",
            "lower the coupling",
            "tighten the tolerances",
            "Adjoint::Direct",
        ] {
            assert!(said.contains(word), "{said}");
        }
    }
    assert!(!damped(3.0, Adjoint::reversible()).0.reached_t1());
    assert!(damped(0.1, Adjoint::reversible()).1 < 2.0);
    assert!(damped(10.0, Adjoint::Direct).1 < 1.0);
}

/// |y(4)|^2 for y' = tanh(W y) - k y from t = 0, and its gradient with respect to W.
fn network(w: &Tensor, k: f64, adjoint: Adjoint) -> crate::Result<(Tensor, Tensor)> {
    let y0 = Tensor::from([1.0, -0.5, 0.3]);
    value_and_grad(
        |w: &Tensor| {
            let ode =
                Ode::new(|_t, y: &Tensor| w.matmul(y).tanh() - y * k).rtol(TOL).atol(TOL).adjoint(adjoint);
            crate::Result::Ok(ode.solve(0.0, 4.0, &y0)?.y1.square().sum())
        },
        w,
    )
}

#[test]
fn a_damped_network_has_the_gradients_of_stored_states_or_an_error() {
    let w = Tensor::from([[0.8, -1.1, 0.4], [1.3, 0.2, -0.7], [-0.5, 0.9, 1.4]]);
    let mut completed = vec![];
    for k in [0.2, 1.0, 4.0, 10.0] {
        let want = network(&w, k, Adjoint::Direct).unwrap().1.to_vec();
        match network(&w, k, Adjoint::reversible()) {
            Ok((_, gradients)) => {
                let off = gradients.to_vec().iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(off < 100.0 * TOL, "k {k}: {off:e}");
                completed.push(k);
            }
            Err(Error::Solve(SolveError::Incomplete {
                outcome: Outcome::ReversibleUnstable { .. }, ..
            })) => {}
            Err(e) => panic!("{e}"),
        }
    }
    assert!(completed.contains(&0.2) && !completed.contains(&10.0), "{completed:?}");
}

#[test]
fn constant_steps_end_where_the_states_differ_by_a_tenth_of_the_solution() {
    let solve = |k: f64, dt0: f64| {
        let ode = Ode::new(move |_t, y: &Tensor| y * -k)
            .controller(ConstantStepSize { dt0 })
            .adjoint(Adjoint::reversible())
            .allow_incomplete();
        ode.solve(0.0, 5.0, Tensor::from(1.0)).unwrap()
    };
    assert!(matches!(solve(10.0, 0.05).outcome(), Outcome::ReversibleUnstable { .. }));
    assert!(solve(1.0, 0.05).outcome().reached_t1());
    // A solution that starts at 0 and crosses 0 again.
    let ode = Ode::new(|t: Tensor, y: &Tensor| t.cos() + y * 0.0).controller(ConstantStepSize { dt0: 0.1 });
    let end = ode.adjoint(Adjoint::reversible()).solve(0.0, 10.0, Tensor::from(0.0)).unwrap();
    assert!(end.outcome().reached_t1() && (end.y1.item() - 10f64.sin()).abs() < 1e-6, "{}", end.outcome());
}

#[test]
fn a_backward_pass_that_does_not_find_the_start_gives_nan() {
    // The solution tends to 1. With steps this short, the two states stay close. The solve damps errors by e^-40,
    // so the backward pass amplifies rounding errors by e^40.
    let gradients = |k: f64, adjoint: Adjoint| {
        let y0 = Tensor::from([0.3, 0.2]);
        let end = move |k: &Tensor| {
            let field = |_t: Tensor, y: &Tensor| -(k * ((y - 1.0) + (y - 1.0).powi(3) * 0.1));
            let ode = Ode::new(field).controller(ConstantStepSize { dt0: 0.01 });
            ode.adjoint(adjoint).solve(0.0, 4.0, &y0).unwrap().y1.sum()
        };
        (value_and_grad(&end, &Tensor::from(k)).1.item(), debug_nans(&end, &Tensor::from(k)).unwrap())
    };
    let (gradient, found) = gradients(10.0, Adjoint::Reversible { coupling: 0.9 });
    assert!(gradient.is_nan(), "{gradient}");
    assert!(found.is_some());
    let (kept, none) = gradients(0.1, Adjoint::Direct);
    let gradient = gradients(0.1, Adjoint::Reversible { coupling: 0.9999 }).0;
    assert!((gradient - kept).abs() < 1e-9 && none.is_none(), "{gradient} {kept}");
}
