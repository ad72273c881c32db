//! Stiff solves on tensors that end early: on known values the outcome is that of plain states, and inside a program
//! `debug_nans` finds the operation.
//!
//! Ranges: 1 to 4 components, of which one row is a root of a component that is 0, or one component makes the matrix of a
//! step singular; Rodas5P and Rosenbrock23; both directions of time; rows alone, in lockstep and in groups.

use crate::adjoint::Batching;
use crate::array::DType;
use crate::ode::tests::draw::{Draw, num_cases};
use crate::ode::{ConstantStepSize, Mass, Method, MethodKind, Ode, Outcome, SolveError};
use crate::tensor::{Tensor, debug_nans, grad, jit};

const STIFF: [Method; 2] = [Method::Rodas5P, Method::Rosenbrock23];

/// Entry i of a vector, as a row of zeros and one 1.
fn unit(n: usize, i: usize) -> Vec<f64> {
    (0..n).map(|j| if j == i { 1.0 } else { 0.0 }).collect()
}

#[test]
fn a_jacobian_that_is_not_finite_is_named_as_on_plain_states() {
    let (mut draw, mut seen) = (Draw(421), [0; 4]);
    for case in 0..num_cases(8) {
        let (n, method) = (1 + draw.below(4), draw.one(&STIFF));
        let (row, column, t1) = (draw.below(n), draw.below(n), if draw.coin() { 1.0 } else { -1.0 });
        let mut y0: Vec<f64> = (0..n).map(|_| draw.uniform(0.5, 2.0)).collect();
        y0[column] = 0.0;
        // f_row = sqrt(y_column) + 1, and f_i = -y_i in the other rows.
        let plain = Ode::new(move |_t, y: &Vec<f64>| {
            let mut f: Vec<f64> = y.iter().map(|y| -y).collect();
            f[row] = y[column].sqrt() + 1.0;
            f
        });
        let plain = plain.method(method).jacobian(move |_t, y, j| {
            (0..n).filter(|i| *i != row).for_each(|i| j[(i, i)] = -1.0);
            j[(row, column)] = 0.5 / y[column].sqrt();
        });
        let want = plain.allow_incomplete().solve(0.0, t1, y0.clone()).unwrap().outcome;
        let at = Tensor::from(&unit(n, row)[..]);
        let field = |_t: Tensor, y: &Tensor| &at * (y.index(column).sqrt() + 1.0) - (1.0 - &at) * y;
        let y0 = Tensor::from(&y0[..]);
        let ode = Ode::new(field).method(method);
        let got = ode.clone().allow_incomplete().solve(0.0, t1, &y0).unwrap().outcome();
        assert_eq!(got, want, "case {case}");
        assert_eq!(got, Outcome::NonFiniteJacobian { t: 0.0, row, column, y: 0.0 });
        let Err(SolveError::Incomplete { outcome, partial, .. }) = ode.solve(0.0, t1, &y0) else {
            panic!("case {case} must end early")
        };
        assert_eq!((outcome, partial.outcome()), (want, want));
        let found = [t1 < 0.0, method == Method::Rosenbrock23, row != column, n == 1];
        seen.iter_mut().zip(found).for_each(|(seen, found)| *seen += usize::from(found));
    }
    assert!(seen.iter().all(|&n| n > 0), "{seen:?}");
}

#[test]
fn a_singular_matrix_of_a_step_is_named_as_on_plain_states() {
    let mut draw = Draw(422);
    for case in 0..num_cases(6) {
        let (n, method) = (1 + draw.below(4), STIFF[case % 2]);
        let (component, h) = (draw.below(n), if draw.coin() { 0.125 } else { -0.125 });
        let MethodKind::Rosenbrock(numbers) = &method.tableau().kind else { unreachable!() };
        // 1 / gamma - h J is 0 for this component.
        let rate = 1.0 / numbers.gamma / h;
        let rates: Vec<f64> =
            unit(n, component).iter().map(|&is| if is == 1.0 { rate } else { -1.0 / h.abs() }).collect();
        let (of_f, of_j) = (rates.clone(), rates.clone());
        let plain = Ode::new(move |_t, y: &Vec<f64>| {
            y.iter().zip(&of_f).map(|(y, rate)| y * rate).collect::<Vec<_>>()
        });
        let plain = plain.method(method).jacobian(move |_t, _y, j| (0..n).for_each(|i| j[(i, i)] = of_j[i]));
        let plain = plain.time_derivative(|_t, _y, _f_t| ()).allow_incomplete();
        let constant = || ConstantStepSize { dt0: h.abs() };
        let want = plain.controller(constant()).solve(0.0, 4.0 * h, vec![1.0; n]).unwrap().outcome;
        assert_eq!(want, Outcome::SingularMatrix { t: 0.0, component, step: 1 }, "case {case}");
        let rates = Tensor::from(&rates[..]);
        let ode = || Ode::new(|_t, y: &Tensor| &rates * y).method(method).allow_incomplete();
        let y0 = Tensor::full(DType::F64, [n], 1.0);
        assert_eq!(
            ode().controller(constant()).solve(0.0, 4.0 * h, &y0).unwrap().outcome(),
            want,
            "case {case}"
        );
        // A shorter step is regular.
        let adaptive = ode().dt0(h.abs()).solve(0.0, h, &y0).unwrap();
        assert_eq!(adaptive.outcome(), Outcome::Completed);
        assert!(adaptive.stats.num_rejected.item() > 0.0);
    }
}

#[test]
fn the_row_that_an_error_names_is_diagnosed() {
    let y0 = Tensor::from([[1.0, 1.0], [2.0, 1.0], [0.0, 1.0], [0.0, 2.0]]);
    let field = |_t: Tensor, y: &Tensor| {
        let (a, b) = (y.slice(1, 0..1), y.slice(1, 1..2));
        Tensor::concat(&[&(&a * 0.0 - b), &(a.sqrt() + 1.0)], 1)
    };
    for (batching, row, place) in [
        (Batching::PerRow, Some(2), (1, 0)),
        (Batching::Groups(1), Some(2), (1, 0)),
        (Batching::Groups(2), Some(2), (1, 0)),
        (Batching::Groups(3), Some(0), (5, 4)),
        (Batching::Joint, None, (5, 4)),
    ] {
        let ode = Ode::new(field).method(Method::Rodas5P).batching(batching).dt0(0.01);
        let Err(SolveError::Incomplete { outcome, row: of, partial, .. }) = ode.solve(0.0, 0.1, &y0) else {
            panic!("{batching:?} must end early")
        };
        let (row_of_j, column) = place;
        assert_eq!(
            outcome,
            Outcome::NonFiniteJacobian { t: 0.0, row: row_of_j, column, y: 0.0 },
            "{batching:?}"
        );
        assert_eq!((of, partial.outcome()), (row, outcome), "{batching:?}");
        let others = partial.outcomes();
        assert!(others.iter().filter(|other| **other == outcome).count() == 1, "{others:?}");
    }
}

#[test]
fn states_in_single_precision_after_a_discontinuity_are_diagnosed() {
    // The root vanishes before t = 1/2, and y0 is 0 there and later.
    let field = |t: Tensor, y: &Tensor| {
        let root = t.gt(0.5).select(&y.index(0).sqrt().cast(DType::F64), &Tensor::from(0.0));
        Tensor::stack(&[&(y.index(0) * 0.0).cast(DType::F64), &root]).cast(DType::F32)
    };
    let ode = Ode::new(field).method(Method::Rodas5P).discontinuities(&[0.5]).allow_incomplete();
    let y0 = Tensor::from([0.0, 1.0]).cast(DType::F32);
    let outcome = ode.solve(0.0, 1.0, y0).unwrap().outcome();
    assert_eq!(outcome, Outcome::NonFiniteJacobian { t: 0.5, row: 1, column: 0, y: 0.0 });
}

#[test]
fn inside_a_program_the_step_is_reported_and_the_operation_is_found() {
    let last = |y0: &Tensor| {
        let field = |_t: Tensor, y: &Tensor| Tensor::stack(&[&(y.index(1) * 0.0 + 1.0), &y.index(0).sqrt()]);
        Ok(Ode::new(field).method(Method::Rodas5P).solve(0.0, 1.0, y0)?.y1.sum())
    };
    let y0 = Tensor::from([0.0, 1.0]);
    for text in [
        jit(move |y: Tensor| last(&y)).call(y0.clone()).unwrap_err().to_string(),
        grad(last, &y0).unwrap_err().to_string(),
    ] {
        assert!(text.contains("non-finite numbers in component"), "{text}");
    }
    let report = debug_nans(last, &y0).unwrap().expect("a report");
    assert_eq!(
        (report.reaches.as_str(), report.op.as_str()),
        ("the last step of a solve", "div"),
        "{report}"
    );
    assert_eq!(report.step, Some((0, 0.0)), "{report}");
}

#[test]
fn a_step_size_that_is_too_small_and_wrong_starts_are_the_errors_of_plain_states() {
    let exploding = Ode::new(|_t, y: &Tensor| y.square()).method(Method::Rodas5P).dt_min(1e-6);
    let plain = Ode::new(|_t, y: &f64| y * y).method(Method::Rodas5P).dt_min(1e-6);
    let text = exploding.solve(0.0, 2.0, Tensor::from(1.0)).unwrap_err().to_string();
    assert!(text.contains("fell below dt_min=1e-6 at t=0.99"), "{text}");
    let want = plain.solve(0.0, 2.0, 1.0).unwrap_err().to_string();
    assert!(want.contains("fell below dt_min=1e-6 at t=0.99"), "{want}");

    // 0 = y1 - y0 holds at the start in the first case; in the second, y1 is not determined.
    let start = |field: fn(&Tensor) -> Tensor, y0: [f64; 2]| {
        let ode = Ode::new(move |_t, y: &Tensor| field(y)).method(Method::Rodas5P);
        let ode = ode.mass_matrix(Mass::diagonal([1.0, 0.0]));
        ode.solve(0.0, 1.0, Tensor::from(y0)).map(|_| ()).unwrap_err().to_string()
    };
    let text = start(|y| Tensor::stack(&[&-y.index(0), &(y.index(1) - y.index(0))]), [1.0, 2.0]);
    assert!(text.contains("y0 violates algebraic equation 1 at t0=0"), "{text}");
    let text = start(|y| Tensor::stack(&[&-y.index(1), &(y.index(0) - 1.0)]), [1.0, 2.0]);
    assert!(text.contains("the algebraic equations do not determine y[1] at t0=0"), "{text}");
}
