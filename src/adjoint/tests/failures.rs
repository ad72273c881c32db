//! The contract for failures: every driver returns the same error for a solve that ends early, with its partial
//! solution.

use super::steps::close;
use crate::adjoint;
use crate::ode::{
    Event, GenericField, Ode, Outcome, SaveAt, Sensitivity, Solution, SolveError, ensemble, odeint,
};
use crate::tensor::{Tensor, jit, value_and_grad, vmap};
use crate::vector_field;
use std::ops::ControlFlow;

vector_field! {
    struct Decay<R> { rate: R }
    fn eval(&self, _t, y: &[R; 1]) -> [R; 1] {
        [-self.rate * y[0]]
    }
}

vector_field! {
    /// NaN after t = 1/2: the square root of a negative number.
    struct Walled<R> { rate: R }
    fn eval(&self, t, y: &[R; 1]) -> [R; 1] {
        [-self.rate * y[0] + (0.5 - t).sqrt() * 0.0]
    }
}

/// How a solve ended: the outcome, t, y, steps attempted, and how many of the times 1/4 and 1 were saved.
#[derive(Debug)]
struct End {
    outcome: Outcome,
    t: f64,
    y: f64,
    num_steps: u64,
    num_saved: usize,
}

fn of_solution<Y>(s: &Solution<Y>, y: impl Fn(&Y) -> f64) -> End {
    let num_saved = s.ts.iter().filter(|t| **t == 0.25 || **t == 1.0).count();
    End { outcome: s.outcome, t: s.t1, y: y(&s.y1), num_steps: s.stats.num_steps, num_saved }
}

fn of_sensitivity<G: GenericField<1>>(s: &Sensitivity<G, 1>) -> End {
    End { outcome: s.outcome, t: s.t1, y: s.y1[0], num_steps: s.stats.num_steps, num_saved: 1 }
}

fn of_tensors(s: &adjoint::TensorSolution<Tensor>) -> End {
    let num_saved = s.ys.to_vec().iter().filter(|y| !y.is_nan()).count();
    let (t, y, num_steps) = (s.t1.item(), s.y1.item(), s.stats.num_steps.item() as u64);
    End { outcome: s.outcome(), t, y, num_steps, num_saved }
}

/// Asserts that the outcomes are of the same kind and that their times and states agree to 1e-7.
#[track_caller]
fn same(a: &End, b: &End) {
    let numbers = |outcome: &Outcome| match *outcome {
        Outcome::MaxSteps { t, step } => (0, t, step),
        Outcome::NonFinite { t, step, component: Some(0), .. } => (1, t, step),
        _ => panic!("{outcome}"),
    };
    let ((kind, t, step), (other, t_other, step_other)) = (numbers(&a.outcome), numbers(&b.outcome));
    assert_eq!((kind, step, a.num_saved), (other, a.num_steps, b.num_saved));
    // How often a step is shortened before t = 1/2 depends on rounding.
    assert_eq!(step_other, if kind == 0 { step } else { b.num_steps });
    close(&[t, a.t, a.y], &[t_other, b.t, b.y], 1e-7);
    close(&[a.t], &[t], 1e-15);
}

#[track_caller]
fn incomplete<S>(result: Result<S, SolveError<S>>, row: Option<usize>) -> (Outcome, S) {
    match result {
        Err(SolveError::Incomplete { outcome, row: of, partial, .. }) if of == row => (outcome, *partial),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the solve must end with an error"),
    }
}

/// How the solve of y' = -2 y ends in each driver, if it ends early: at the step limit, or if `walled` because the
/// field is NaN after t = 1/2.
fn ends(walled: bool) -> Vec<End> {
    let most = if walled { 100_000 } else { 3 };
    let wall = move |t: f64| if walled && t > 0.5 { f64::NAN } else { 0.0 };
    let save_at = || SaveAt::ts(&[0.25, 1.0]);
    let plain = Ode::new(|t, y: &[f64; 1]| [wall(t) - 2.0 * y[0]]).max_steps(most);
    let heap = Ode::new(|t, y: &Vec<f64>| vec![wall(t) - 2.0 * y[0]]).max_steps(most);
    let traced = Ode::new(move |t: Tensor, y: &Tensor| {
        let nan = if walled { f64::NAN } else { 0.0 };
        y * -2.0 + t.gt(0.5).select(&Tensor::from(nan), &Tensor::from(0.0))
    });
    let traced = traced.max_steps(most);

    let mut all = Vec::new();
    let (outcome, s) = incomplete(plain.clone().save_at(save_at()).solve(0.0, 1.0, [1.0]), None);
    assert_eq!(outcome, s.outcome);
    all.push(of_solution(&s, |y| y[0]));
    let (_, s) = incomplete(heap.clone().save_at(save_at()).solve(0.0, 1.0, vec![1.0]), None);
    all.push(of_solution(&s, |y| y[0]));
    let y0 = Tensor::from([1.0]);
    let (outcome, s) = incomplete(traced.clone().save_at(save_at()).solve(0.0, 1.0, y0), None);
    assert_eq!(outcome, s.outcome());
    all.push(of_tensors(&s));

    let mut steps = plain.stepper(0.0, 1.0, [1.0]).unwrap();
    let error = loop {
        match steps.step() {
            Ok(step) => assert!(step.is_some(), "the solve must end with an error"),
            Err(error) => break error,
        }
    };
    let (outcome, ()) = incomplete(Err(error), None);
    assert!(steps.step().is_err());
    let (t, y, num_steps) = (steps.t(), steps.y()[0], steps.stats().num_steps);
    all.push(End { outcome, t, y, num_steps, num_saved: 1 });

    all.push(if walled {
        let ode = Ode::from_generic(Walled { rate: 2.0 }).forward_sensitivity();
        of_sensitivity(&incomplete(ode.solve(0.0, 1.0, [1.0]), None).1)
    } else {
        let ode = Ode::from_generic(Decay { rate: 2.0 }).max_steps(most).forward_sensitivity();
        of_sensitivity(&incomplete(ode.solve(0.0, 1.0, [1.0]), None).1)
    });
    let of_ensemble = |s: crate::ode::EnsembleSolution<[f64; 1]>| {
        let (Outcome::MaxSteps { t, .. } | Outcome::NonFinite { t, .. }) = s.outcomes[1] else {
            panic!("{s}")
        };
        End { outcome: s.outcomes[1], t, y: s.y1[1][0], num_steps: s.stats[1].num_steps, num_saved: 1 }
    };
    let rates = [0.0, 2.0];
    all.push(of_ensemble(match walled {
        false => {
            let ode = ensemble(&rates, |&rate| (Decay { rate }, [1.0])).max_steps(most);
            incomplete(ode.solve(0.0, 1.0), Some(0)).1
        }
        true => incomplete(ensemble(&rates, |&rate| (Walled { rate }, [1.0])).solve(0.0, 1.0), Some(0)).1,
    }));
    all
}

#[test]
fn too_few_steps_and_nan_are_one_error_with_the_partial_solution() {
    for walled in [false, true] {
        let ends = ends(walled);
        let t = if walled { 0.5 } else { 1.0 };
        assert!(ends[0].t > 0.01 && ends[0].t <= t && (ends[0].y - (-2.0 * ends[0].t).exp()).abs() < 1e-5);
        for end in &ends[1..] {
            let saved = if end.num_saved == 1 { ends[0].num_saved } else { end.num_saved };
            same(&ends[0], &End { num_saved: saved, ..*end });
        }
    }
    let blow_up = odeint(|_t, y: &f64| y * y, 1.0, &[0.0, 0.5, 2.0]);
    let Err(SolveError::Incomplete { partial, .. }) = blow_up else {
        panic!("the solve must end with an error")
    };
    assert_eq!(partial.ts, [0.0, 0.5]);
}

/// The parts of the error of a field that failed.
#[track_caller]
fn failed<S>(error: SolveError<S>) -> (f64, u64, String, S) {
    match error {
        SolveError::Field { t, step, source, partial } => (t, step, source.to_string(), *partial),
        error => panic!("{error}"),
    }
}

#[test]
fn a_field_that_fails_is_one_error_with_the_solution_up_to_the_last_good_step() {
    let table = |t: f64| if t > 0.5 { Err("the table ends") } else { Ok(()) };
    let plain =
        Ode::new(|t, y: &[f64; 1]| table(t).map(|()| [-2.0 * y[0]])).dt0(0.125).save_at([0.0625, 1.0]);
    let (t, step, why, s) = failed(plain.solve(0.0, 1.0, [1.0]).unwrap_err());
    assert!(t > 0.5 && step >= 1 && why == "the table ends");
    assert_eq!((s.outcome, s.ts.as_slice()), (Outcome::Failed { t: s.t1, step }, &[0.0625][..]));
    assert!(s.t1 > 0.1 && s.t1 <= 0.5 && s.step_times.last() == Some(&s.t1));
    assert!((s.y1[0] - (-2.0 * s.t1).exp()).abs() < 1e-4 && s.stats.num_accepted > 0);

    let heap = Ode::new(|t, y: &Vec<f64>| table(t).map(|()| vec![-2.0 * y[0]])).dt0(0.125);
    let (t_heap, step_heap, _, h) = failed(heap.solve(0.0, 1.0, vec![1.0]).unwrap_err());
    assert_eq!(
        (t_heap, step_heap, h.t1, h.y1[0], h.stats.num_steps),
        (t, step, s.t1, s.y1[0], s.stats.num_steps)
    );

    let by_hand = Ode::new(|t, y: &[f64; 1]| table(t).map(|()| [-2.0 * y[0]])).dt0(0.125);
    let mut steps = by_hand.stepper(0.0, 1.0, [1.0]).unwrap();
    let error = loop {
        match steps.step() {
            Ok(step) => assert!(step.is_some(), "the field must fail"),
            Err(error) => break error,
        }
    };
    let (t_steps, step_steps, _, ()) = failed(error);
    assert_eq!((t_steps, step_steps, steps.t(), *steps.y()), (t, step, s.t1, s.y1));

    let start = Ode::new(|_t, _y: &[f64; 1]| Err::<[f64; 1], _>("no table"));
    let (t, step, _, s) = failed(start.solve(0.25, 1.0, [3.0]).unwrap_err());
    assert_eq!((t, step, s.t1, s.y1, s.ts.len()), (0.25, 0, 0.25, [3.0], 0));
    // A field of tensors is recorded before anything runs.
    let traced = Ode::new(|_t: Tensor, _y: &Tensor| Err::<Tensor, _>("no table"));
    let (t, step, why, s) = failed(traced.solve(0.25, 1.0, Tensor::from([3.0])).unwrap_err());
    assert_eq!(
        (t, step, why.as_str(), s.t1.item(), s.y1.to_vec(), s.ts.size()),
        (0.25, 0, "no table", 0.25, vec![3.0], 0)
    );
    assert_eq!(s.outcome(), Outcome::Failed { t: 0.25, step: 0 });
}

#[test]
fn an_event_and_a_callback_end_a_solve_without_an_error() {
    let ode = Ode::new(|_t, y: &[f64; 1]| [-y[0]]);
    let half = |_t: f64, y: &[f64; 1]| y[0] - 0.5;
    let halved = ode.clone().event(Event::falling().terminal(), half);
    assert!(matches!(halved.solve(0.0, 5.0, [1.0]).unwrap().outcome, Outcome::Event { .. }));
    let broken = ode.on_step(|_t, _y| ControlFlow::Break(()));
    assert!(matches!(broken.solve(0.0, 5.0, [1.0]).unwrap().outcome, Outcome::StoppedByOnStep { .. }));
    let traced = Ode::new(|_t, y: &Tensor| -y).event(Event::falling().terminal(), |_t, y| y - 0.5);
    assert!(matches!(traced.solve(0.0, 5.0, Tensor::from(1.0)).unwrap().outcome(), Outcome::Event { .. }));
}

#[test]
fn a_question_mark_drops_the_partial_solution() {
    let ode = || Ode::new(|_t, y: &f64| -y).max_steps(2);
    let by_crate = || -> crate::Result<f64> { Ok(ode().solve(0.0, 9.0, 1.0)?.y1) };
    let boxed =
        || -> Result<f64, Box<dyn std::error::Error + Send + Sync>> { Ok(ode().solve(0.0, 9.0, 1.0)?.y1) };
    let said = ode().solve(0.0, 9.0, 1.0).unwrap_err().to_string();
    assert!(
        said.starts_with("the solve ended early with rtol=1e-6, atol=1e-9: max_steps=2 reached"),
        "{said}"
    );
    assert_eq!(by_crate().unwrap_err().to_string(), said);
    assert_eq!(boxed().unwrap_err().to_string(), said);
}

#[test]
fn traced_solves_fail_with_the_call_unless_an_early_end_is_allowed() {
    let ode = |allowed: bool| {
        let ode = Ode::new(|_t, y: &Tensor| -y).max_steps(2);
        if allowed { ode.allow_incomplete() } else { ode }
    };
    let end = |allowed: bool, y: &Tensor| -> crate::Result<Tensor> {
        Ok(ode(allowed).solve(0.0, 9.0, y)?.y1.sum())
    };
    let y0 = Tensor::from([1.0, 2.0]);
    let early = |result: crate::Result<Tensor>| match result {
        Err(crate::Error::Solve(SolveError::Incomplete {
            outcome: Outcome::MaxSteps { step: 2, .. },
            ..
        })) => true,
        Err(error) => panic!("{error}"),
        Ok(_) => false,
    };
    for allowed in [false, true] {
        assert_eq!(early(jit(move |y: Tensor| end(allowed, &y)).call(y0.clone())), !allowed);
        assert_eq!(
            early(value_and_grad(|y: &Tensor| end(allowed, y), &y0).map(|(value, _)| value)),
            !allowed
        );
        assert_eq!(vmap(|y: &Tensor| end(allowed, y), &y0).is_err(), !allowed);
        let solved = ode(allowed).solve(0.0, 9.0, &y0);
        assert_eq!(solved.is_err(), !allowed);
        let partial = solved.unwrap_or_else(|error| error.into_partial().unwrap());
        assert!(matches!(partial.outcome(), Outcome::MaxSteps { step: 2, .. }));
    }
}
