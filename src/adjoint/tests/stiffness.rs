//! Every driver on tensors detects stiffness at the same time, no earlier than plain states do, which also make trials
//! of a stiff method. Detection changes no solve.

use super::*;
use crate::adjoint::Batching;
use crate::graph::{Func, Op, Solve, Type};
use crate::ode::{Event, Warning};
use crate::tensor::{Tree, trace, vmap, vmap_in_lockstep};
use crate::transform::optimize;

const RATE: f64 = 2000.0;

/// Relaxes to cos t at a rate.
fn rate(k: &Tensor, t: &Tensor, y: &Tensor) -> Tensor {
    -((y - t.cos()) * k)
}

/// When a solve of plain states over `[0, 10]` with the tolerances of tensors detects stiffness.
fn on_plain(k: f64, method: Method) -> Option<f64> {
    let ode = Ode::new(move |t: f64, y: &f64| -((y - t.cos()) * k)).method(method);
    let warnings = ode.solve(0.0, 10.0, 0.0).unwrap().warnings;
    (!warnings.is_empty()).then(|| first(&warnings))
}

fn time(warning: &Warning) -> f64 {
    let Warning::Stiff { t } = warning else { panic!("{warning}") };
    *t
}

fn first(warnings: &[Warning]) -> f64 {
    time(&warnings[0])
}

/// When an eager solve of the same problem detects stiffness.
fn on_tensors(k: f64, method: Method) -> Option<f64> {
    eager(k, method, Adjoint::default()).first().copied()
}

/// When stiffness was detected.
fn times(solution: &TensorSolution<Tensor>) -> Vec<f64> {
    solution.warnings().iter().map(time).collect()
}

/// Whether stiffness was detected once, at `t` up to rounding.
fn is_at(detected: &[f64], t: f64) -> bool {
    detected.len() == 1 && relative(detected[0], t) < 1e-6
}

/// When stiffness is detected in an eager solve with y0 = 0 and the rate k.
fn eager(k: f64, method: Method, adjoint: Adjoint) -> Vec<f64> {
    let ode = Ode::new(|t: Tensor, y: &Tensor| rate(&Tensor::from(k), &t, y)).method(method).adjoint(adjoint);
    times(&ode.solve(0.0, 10.0, Tensor::from(0.0)).unwrap())
}

#[test]
fn an_eager_solve_detects_it_after_plain_states_do() {
    for method in [Method::Tsit5, Method::Dopri5, Method::Vern7, Method::Vern9] {
        let (plain, detected) = (on_plain(RATE, method).unwrap(), on_tensors(RATE, method).unwrap());
        assert!(plain < 1.000_001 * detected && detected < 2.0, "{method}: {plain} {detected}");
        assert_eq!((on_plain(1.0, method), on_tensors(1.0, method)), (None, None), "{method}");
    }
    // No two stages at c = 1, or no step size control.
    assert!(eager(RATE, Method::Bosh3, Adjoint::default()).is_empty());
    let fixed = Ode::new(|t: Tensor, y: &Tensor| rate(&Tensor::from(RATE), &t, y));
    let fixed =
        fixed.controller(ConstantStepSize { dt0: 0.0016 }).solve(0.0, 3.0, Tensor::from(0.0)).unwrap();
    assert!(times(&fixed).is_empty() && fixed.stats.num_accepted.item() > 1000.0);
}

#[test]
fn a_long_mild_solve_is_not_suspected() {
    let ode = Ode::new(|_t, y: &Tensor| Tensor::stack(&[&y.index(1), &-y.index(0)])).rtol(1e-8).atol(1e-8);
    let mild = ode.solve(0.0, 300.0, f64s(&[1.0, 0.0])).unwrap();
    assert!(
        times(&mild).is_empty() && mild.stats.num_accepted.item() > 1000.0,
        "{}",
        mild.stats.num_accepted
    );
}

#[test]
fn every_adjoint_whose_steps_are_the_methods_notices_it() {
    let expected = on_tensors(RATE, Method::Tsit5).unwrap();
    for adjoint in
        [Adjoint::Direct, Adjoint::recursive_checkpoint(3), Adjoint::ForwardMode, Adjoint::backsolve()]
    {
        assert!(is_at(&eager(RATE, Method::Tsit5, adjoint), expected), "{adjoint:?}");
    }
    // The reversible map is unstable at shorter steps than the method, and the solve ends early.
    let ode = Ode::new(|t: Tensor, y: &Tensor| rate(&Tensor::from(RATE), &t, y));
    let ode = ode.adjoint(Adjoint::reversible()).allow_incomplete();
    let ended = ode.solve(0.0, 10.0, Tensor::from(0.0)).unwrap();
    assert!(
        matches!(ended.outcome(), Outcome::ReversibleUnstable { step, .. } if step < 250),
        "{}",
        ended.outcome()
    );
    assert!(times(&ended).is_empty());
}

/// Four rows: the state of each, and the rate at which it relaxes to cos t.
fn rows() -> Tensor {
    Tensor::from([[0.0, 1.0], [0.0, RATE], [0.0, 3.0], [0.0, 2.0 * RATE]])
}

fn by_rows(batching: Batching, y0: &Tensor) -> TensorSolution<Tensor> {
    let field = |t: Tensor, y: &Tensor| {
        let gradient = rate(&y.slice(1, 1..2), &t, &y.slice(1, 0..1));
        Tensor::concat(&[&gradient, &(y.slice(1, 1..2) * 0.0)], 1)
    };
    Ode::new(field).batching(batching).solve(0.0, 10.0, y0).unwrap()
}

#[test]
fn it_is_detected_per_group_of_rows() {
    let alone = |i: usize| by_rows(Batching::Joint, &rows().slice(0, i..i + 1)).stiff_from.to_vec()[0];
    let alone = [0, 1, 2, 3].map(alone);
    assert_eq!(alone.map(f64::is_nan), [true, false, true, false]);
    for batching in [Batching::PerRow, Batching::Groups(1)] {
        let solution = by_rows(batching, &rows());
        let each = solution.stiff_from.to_vec();
        let same =
            each.iter().zip(alone).all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan());
        assert!(same && each.len() == 4, "{batching:?}: {each:?} {alone:?}");
        assert_eq!(times(&solution), [alone[1], alone[3]], "{batching:?}");
    }
    let pairs = by_rows(Batching::Groups(2), &rows().take(&Tensor::from([0, 2, 1])));
    let each = pairs.stiff_from.to_vec();
    assert!(each.len() == 2 && each[0].is_nan() && each[1] < 2.0, "{each:?}");
}

#[test]
fn mapped_solves_notice_it_each_alone() {
    let rates = f64s(&[1.0, RATE]);
    let solve = |k: &Tensor| {
        let ode = Ode::new(|t: Tensor, y: &Tensor| rate(k, &t, y));
        Ok(ode.solve(0.0, 10.0, Tensor::from(0.0))?.stiff_from)
    };
    let expected = on_tensors(RATE, Method::Tsit5).unwrap();
    for each in [vmap(solve, &rates), vmap_in_lockstep(solve, &rates)] {
        let each = each.unwrap().to_vec();
        assert!(each[0].is_nan() && is_at(&each[1..], expected), "{each:?}");
    }
}

#[test]
fn it_is_detected_through_events() {
    let ode = || Ode::new(|t: Tensor, y: &Tensor| rate(&Tensor::from(RATE), &t, y));
    // An event that ends a solve does not change the steps before it.
    let ends = ode().event(Event::rising().terminal(), |t: Tensor, _: &Tensor| t - 9.0);
    let ends = ends.solve(0.0, 10.0, Tensor::from(0.0)).unwrap();
    let expected = on_tensors(RATE, Method::Tsit5).unwrap();
    assert!(is_at(&times(&ends), expected), "{:?} {expected}", ends.warnings());
    // Events occur about every ten steps, also between suspicious checks.
    let there = Ode::new(|t: f64, y: &f64| -((y - t.cos()) * RATE));
    let there =
        there.event(Event::crossing(), |t: f64, _: &f64| (t * 200.0).sin()).solve(0.0, 3.0, 0.0).unwrap();
    let many = ode().event(Event::crossing(), |t: Tensor, _: &Tensor| (t * 200.0).sin()).max_events(400);
    let many = many.solve(0.0, 3.0, Tensor::from(0.0)).unwrap();
    assert!(many.events().unwrap().num_events.item() > 100.0);
    let (plain, detected) = (first(&there.warnings), times(&many));
    assert!(detected.len() == 1 && plain <= detected[0] && detected[0] < 2.0, "{detected:?} {plain}");
}

/// The output of a program besides y1 and the gradient.
#[derive(Clone, Copy, PartialEq)]
enum Returned {
    Nothing,
    TensorSolution,
}

/// y1 of a solve over `[0, 2]`, its gradient with respect to the rate, and the leaves that `returned` selects.
fn gradient(how: How, returned: Returned, k: &Tensor) -> (Tensor, Tensor, Vec<Tensor>) {
    let loss = |k: &Tensor| {
        let ode = Ode::new(|t: Tensor, y: &Tensor| rate(k, &t, y)).method(how.method).adjoint(how.adjoint);
        let ode = if how.goes_on {
            let ode = ode.event(Event::crossing(), |t: Tensor, _: &Tensor| (t * 20.0).sin()).max_events(20);
            ode.solve(0.0, 2.0, Tensor::from(0.0))
        } else {
            ode.batching(how.batching).solve(0.0, 2.0, Tensor::zeros([1]).cast(DType::F64))
        };
        let solution = ode.unwrap();
        let returned = if returned == Returned::TensorSolution { solution.leaves() } else { vec![] };
        (solution.y1.sum(), returned)
    };
    let ((y1, returned), gradient) = value_and_grad(loss, k);
    (y1, gradient, returned)
}

/// How a solve is run.
#[derive(Clone, Copy, Debug)]
struct How {
    method: Method,
    adjoint: Adjoint,
    batching: Batching,
    goes_on: bool,
}

fn every_way(method: Method) -> Vec<How> {
    let how = |adjoint, batching, goes_on| How { method, adjoint, batching, goes_on };
    let joint = [Adjoint::Direct, Adjoint::default(), Adjoint::recursive_checkpoint(5), Adjoint::backsolve()];
    let mut all: Vec<How> = joint.map(|adjoint| how(adjoint, Batching::Joint, false)).to_vec();
    all.push(how(Adjoint::default(), Batching::PerRow, false));
    all.push(how(Adjoint::default(), Batching::Groups(1), false));
    all.push(how(Adjoint::default(), Batching::Joint, true));
    all
}

#[test]
fn reading_the_warning_changes_neither_solve_nor_gradient() {
    let bits = |x: &Tensor| x.to_vec()[0].to_bits();
    let mut all = every_way(Method::Tsit5);
    all.push(How { adjoint: Adjoint::reversible(), ..all[0] });
    for how in all {
        // The backward passes of `Backsolve` and `Reversible` cannot recover a solution with such strong damping.
        let is_mild = matches!(how.adjoint, Adjoint::Backsolve { .. } | Adjoint::Reversible { .. });
        let k = if is_mild { 1.0 } else { RATE };
        let of = |returned: Returned| jit(move |k: Tensor| gradient(how, returned, &k)).call(k).unwrap();
        let (unread, returned) = (of(Returned::Nothing), of(Returned::TensorSolution));
        assert_eq!([&unread.0, &unread.1].map(bits), [&returned.0, &returned.1].map(bits), "{how:?}");
        assert!(unread.1.item().is_finite() && unread.1.item() != 0.0, "{how:?}");
        let Some(expected) = on_tensors(k, Method::Tsit5) else { continue };
        assert!(returned.2.iter().any(|x| x.size() == 1 && is_at(&x.to_vec(), expected)), "{how:?}");
    }
}

/// Collects `(num_carry, num_ext)` of each search of a function, nested ones included, and whether there is a `cond`.
fn searches(f: &Func, found: &mut Vec<(usize, usize)>, has_choice: &mut bool) {
    for node in f.nodes() {
        if let Op::Solve(s) = &node.op {
            let Solve { num_carry, num_ext, .. } = **s;
            found.push((num_carry, num_ext));
        }
        *has_choice |= matches!(node.op, Op::Cond(_));
        node.op.bodies().iter().for_each(|(_, body)| searches(body, found, has_choice));
    }
}

#[test]
fn a_program_that_does_not_read_the_warning_carries_nothing_for_it() {
    let program = |how: How, returned: Returned| {
        let traced = trace(&[Type::scalar(DType::F64)], &mut |x| {
            let (y1, gradient, returned) = gradient(how, returned, &x[0]);
            [vec![y1, gradient], returned].concat()
        });
        let (mut found, mut has_choice) = (vec![], false);
        searches(&optimize(&traced.func), &mut found, &mut has_choice);
        (found, has_choice)
    };
    // A method that cannot detect stiffness.
    let blind = every_way(Method::Bosh3);
    for (how, blind) in every_way(Method::Tsit5).into_iter().zip(blind) {
        let (unread, returned) = (program(how, Returned::Nothing), program(how, Returned::TensorSolution));
        assert_eq!(unread.0, program(blind, Returned::Nothing).0, "{how:?}");
        assert!(
            !unread.0.is_empty() && returned.0 != program(blind, Returned::TensorSolution).0,
            "{how:?}: {returned:?}"
        );
        let own = program(blind, Returned::Nothing).1;
        let in_lockstep = how.batching == Batching::PerRow;
        assert_eq!((unread.1, returned.1), (own, own || !in_lockstep), "{how:?}");
    }
}
