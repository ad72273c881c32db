//! Non-finite values are traced to the operation that caused them: in a loss, in a step, in a derivative.

use crate::adjoint::{Adjoint, Batching, Checkpoints};
use crate::array::DType;
use crate::ode::{ConstantStepSize, Event, Method, Ode};
use crate::tensor::{DiffPass, NanReport, Scan, Tensor, custom_derivatives, debug_nans, map_rows};

fn f64s(x: &[f64]) -> Tensor {
    Tensor::from(x)
}

fn found(f: impl FnOnce(&Tensor) -> Tensor, at: &Tensor) -> NanReport {
    debug_nans(f, at).unwrap().expect("a non-finite value")
}

#[test]
fn the_derivative_of_sqrt_at_0_is_found_in_the_backward_pass() {
    let at = f64s(&[4.0, 0.0, 1.0]);
    let it = found(|x: &Tensor| x.sqrt().sum(), &at);
    assert_eq!((it.pass, it.index.clone(), it.step), (DiffPass::Backward, vec![1], None), "{it}");
    assert_eq!(
        (it.result.number, it.reaches.as_str()),
        (Some(f64::INFINITY), "the gradient with respect to the argument")
    );
    let it = found(|x: &Tensor| (x - 2.0).sqrt().sum(), &at);
    assert_eq!((it.op.as_str(), it.pass, it.index.clone()), ("sqrt", DiffPass::Forward, vec![1]), "{it}");
    assert_eq!((it.operands[0].number, it.reaches.as_str()), (Some(-2.0), "the loss"));
}

#[test]
fn the_side_of_a_select_that_is_not_taken_is_found_by_the_gradient_it_spoils() {
    let safe = |x: &Tensor| x.gt(0.0).select(&x.sqrt(), &Tensor::zeros([])).sum();
    let it = found(safe, &f64s(&[4.0, -1.0]));
    assert_eq!((it.op.as_str(), it.pass, it.index.clone()), ("sqrt", DiffPass::Forward, vec![1]), "{it}");
    assert_eq!(it.reaches, "the gradient with respect to the argument");
    assert!(it.to_string().contains("clamp the argument before the operation"), "{it}");
}

#[test]
fn a_step_whose_jacobian_is_infinite_is_named_with_its_time() {
    // y = 1 - t is 0 at the step time t = 1, where the derivative of sqrt is not finite.
    let field = |_t: Tensor, y: &Tensor| y.abs().sqrt() * 0.0 - 1.0;
    for adjoint in [Adjoint::Direct, Adjoint::recursive_checkpoint(2)] {
        let end = |y0: &Tensor| {
            let ode = Ode::new(field)
                .method(Method::Euler)
                .controller(ConstantStepSize { dt0: 0.25 })
                .adjoint(adjoint);
            ode.solve(0.0, 2.0, y0).unwrap().y1.sum()
        };
        let it = found(end, &Tensor::from(1.0));
        let (step, t) = it.step.unwrap();
        assert_eq!(it.pass, DiffPass::Backward, "{it}");
        assert_eq!((step, t), (4, 1.0), "{it}");
        assert!(it.to_string().contains("step 4 of a solve, which starts at t=1"), "{it}");
    }
}

#[test]
fn a_trip_of_a_loop_is_named_by_its_number() {
    let rows = f64s(&[1.0, 4.0, 9.0, 0.0, 1.0]);
    for checkpoints in [1, 2, 5] {
        let sum = |c: &Tensor, x: &Tensor| (c + x.sqrt(), c.cos());
        let of = Scan::new(sum).checkpoints(Checkpoints::Count(checkpoints));
        let it = found(|x: &Tensor| of.call(&Tensor::from(0.0), x).0, &rows);
        assert_eq!((it.pass, it.step), (DiffPass::Backward, Some((3, 3.0))), "{it}");
        assert!(it.to_string().contains(" or in trip 3 of a loop,"), "{it}");
        let it = found(|x: &Tensor| of.call(&Tensor::from(0.0), &(x - 1.0)).1.sum(), &rows);
        assert_eq!((it.op.as_str(), it.pass, it.step), ("sqrt", DiffPass::Forward, Some((3, 3.0))), "{it}");
    }
}

#[test]
fn zero_times_infinity_in_a_rule_is_found() {
    let rule = custom_derivatives(|x: &Tensor| x.square()).vjp(|x, _y, g| g * x * (1.0 / (x - x)));
    let it = found(|x: &Tensor| rule.call(x).sum(), &f64s(&[3.0]));
    assert_eq!((it.pass, it.result.number), (DiffPass::Backward, Some(f64::INFINITY)), "{it}");
    let it = found(|x: &Tensor| (x * 1e200).square().square().sum(), &f64s(&[1e10]));
    assert_eq!(
        (it.pass, it.reaches.as_str(), it.op.as_str()),
        (DiffPass::Forward, "the loss", "mul"),
        "{it}"
    );
}

#[test]
fn an_argument_that_is_not_finite_is_named() {
    let both = (f64s(&[1.0, 2.0]), f64s(&[f64::NAN]));
    let loss = |x: &(Tensor, Tensor)| x.0.sum() * x.1.sum();
    let it = debug_nans(loss, &both).unwrap().unwrap();
    assert_eq!((it.leaf.as_deref(), it.op.as_str()), (Some("1"), "argument"));
    assert!(it.to_string().contains("1 is NaN at [0]"), "{it}");
}

#[test]
fn a_tile_is_named_by_its_first_row() {
    let rows = |w: &Tensor| {
        let x = f64s(&[1.0, 2.0, 3.0, -4.0, 5.0, 6.0]).reshape([6, 1]);
        let (_, sums) = map_rows(&[x], 2, |x| (vec![], vec![(x[0].ln() * w).sum()]));
        sums[0].clone()
    };
    let it = found(rows, &Tensor::from(1.0));
    assert_eq!((it.op.as_str(), it.row, it.index.clone()), ("ln", Some(2), vec![1, 0]), "{it}");
    assert_eq!(it.operands[0].number, Some(-4.0));
}

#[test]
fn rejected_steps_and_clean_programs_are_no_findings() {
    // The first step is far too long. It overflows and is rejected, so it must not be reported.
    let stiff = |k: &Tensor| {
        let ode = Ode::new(|_t, y: &Tensor| -(k * y * y * y)).dt0(1e3);
        ode.solve(0.0, 1e4, Tensor::full(DType::F64, [2], 1e3)).unwrap().y1.sum()
    };
    assert_eq!(debug_nans(stiff, &Tensor::from(1.0)).unwrap(), None);
    let at = f64s(&[0.3, -0.7]);
    assert_eq!(debug_nans(|x: &Tensor| x.sin().square().sum(), &at).unwrap(), None);
}

/// y' = p y + sqrt(1/2 - t) 0, which is NaN after t = 1/2.
fn ends_early(p: &Tensor, batching: Batching, adjoint: Adjoint) -> Tensor {
    let field = |t: Tensor, y: &Tensor| p * y + (0.5 - t).sqrt() * 0.0;
    let ode = Ode::new(field).batching(batching).adjoint(adjoint);
    ode.solve(0.0, 1.0, Tensor::from([[1.0], [2.0]])).unwrap().y1.sum()
}

#[test]
fn a_solve_that_ends_early_names_the_operation_of_its_field_and_the_time() {
    let p = Tensor::from(-0.3);
    let adjoints = [Adjoint::default(), Adjoint::Direct, Adjoint::backsolve(), Adjoint::reversible()];
    for (adjoint, batching) in
        adjoints.into_iter().flat_map(|a| [(a, Batching::Joint), (a, Batching::Groups(1))])
    {
        let it = found(|p: &Tensor| ends_early(p, batching, adjoint), &p);
        assert_eq!((it.op.as_str(), it.pass), ("sqrt", DiffPass::Forward), "{adjoint:?} {it}");
        assert_eq!(it.reaches, "the last step of a solve");
        assert!(it.operands[0].number.unwrap() < 0.0 && it.result.number.unwrap().is_nan(), "{it}");
        let (step, t) = it.step.unwrap();
        assert!(step > 0 && (t - 0.5).abs() < 1e-6, "{it}");
        assert_eq!(it.row, (batching == Batching::Groups(1)).then_some(0), "{it}");
    }
    let lockstep = found(|p: &Tensor| ends_early(p, Batching::PerRow, Adjoint::default()), &p);
    assert_eq!((lockstep.op.as_str(), lockstep.row), ("solve", Some(0)), "{lockstep}");
    assert!((lockstep.step.unwrap().1 - 0.5).abs() < 1e-6, "{lockstep}");
}

#[test]
fn constant_steps_events_and_the_start_of_a_solve_are_named_too() {
    let p = Tensor::from(1.0);
    let constant = |p: &Tensor| {
        let field = |t: Tensor, y: &Tensor| p * y + (0.5 - t).ln();
        Ode::new(field)
            .controller(ConstantStepSize { dt0: 0.125 })
            .solve(0.0, 1.0, Tensor::from(1.0))
            .unwrap()
            .y1
    };
    let it = found(constant, &p);
    assert_eq!((it.op.as_str(), it.step), ("ln", Some((3, 0.375))), "{it}");
    let bounce = |p: &Tensor| {
        let field = |t: Tensor, y: &Tensor| p * y + (0.9 - t).ln() * 0.0;
        let ode = Ode::new(field).on_event(Event::rising(), |_t, y| y - 1.5, |_t, y| *y = &*y * 0.5);
        ode.solve(0.0, 1.0, Tensor::from(1.0)).unwrap().y1
    };
    let it = found(bounce, &p);
    assert!(it.op == "ln" && (it.step.unwrap().1 - 0.9).abs() < 1e-6, "{it}");
    let start = |p: &Tensor| {
        let field = |_t: Tensor, y: &Tensor| (y - p).sqrt();
        Ode::new(field).solve(0.0, 1.0, Tensor::from(0.0)).unwrap().y1
    };
    let it = found(start, &p);
    assert_eq!((it.op.as_str(), it.operands[0].number), ("sqrt", Some(-1.0)), "{it}");
    // A solve that ends for another reason is not reported.
    let steps = |p: &Tensor| {
        let ode = Ode::new(|_t, y: &Tensor| -(p * y)).max_steps(2);
        ode.solve(0.0, 9.0, Tensor::from(1.0)).unwrap().y1
    };
    assert_eq!(debug_nans(steps, &p).unwrap(), None);
}
