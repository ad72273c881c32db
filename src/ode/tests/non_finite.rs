//! Numbers that become NaN or infinite: such steps are rejected. If rejections do not help, the solve ends
//! with an error, never with `Completed`.

use crate::ode::{ConstantStepSize, Event, Method, Ode, Outcome, SolveError, StepTo};
use std::cell::Cell;

#[test]
fn trial_steps_into_a_nan_are_rejected() {
    let nans = Cell::new(0);
    let ode = Ode::new(|_t, y: &f64| {
        let rate = -20.0 * (y - 0.5).sqrt() * (y - 0.5);
        nans.set(nans.get() + u64::from(rate.is_nan()));
        rate
    })
    .rtol(1e-3)
    .atol(1e-6)
    .dt0(0.01);
    let solution = ode.solve(0.0, 1.5, 1.5).unwrap();
    assert_eq!(solution.outcome, Outcome::Completed);
    assert!(nans.get() > 0, "no trial step reached y < 0.5, where the field is NaN");
    assert!((solution.y1 - 0.50390625).abs() < 1e-3 * 0.504, "{}", solution.y1);
}

#[test]
fn one_nan_at_call_n_costs_a_rejection_and_no_accuracy() {
    for n in 3..40 {
        let calls = Cell::new(0);
        let ode = Ode::new(|_t, y: &[f64; 2]| {
            calls.set(calls.get() + 1);
            if calls.get() == n { [y[1], f64::NAN] } else { [y[1], -y[0]] }
        });
        let solution = ode.solve(0.0, 2.0, [1.0, 0.0]).unwrap();
        assert_eq!(solution.outcome, Outcome::Completed, "call {n}");
        assert!(solution.stats.num_rejected >= 1);
        assert!((solution.y1[0] - 2.0_f64.cos()).abs() < 1e-5, "call {n}: {:?}", solution.y1);
    }
}

#[test]
fn a_nan_in_hairers_trial_leaves_a_usable_first_step() {
    let calls = Cell::new(0);
    let ode = Ode::new(|_t, y: &f64| {
        calls.set(calls.get() + 1);
        if calls.get() == 2 { f64::NAN } else { -y }
    });
    let solution = ode.solve(0.0, 1.0, 1.0).unwrap();
    assert!((solution.y1 - (-1.0_f64).exp()).abs() < 1e-6, "{solution}");
}

#[test]
fn a_field_that_stays_nan_ends_with_its_time_and_component() {
    for (t0, t1, wall) in [(0.0, 1.0, 0.5), (1.0, 0.0, 0.5)] {
        let ode = Ode::new(|t: f64, y: &[f64; 3]| {
            let beyond = (t - wall) * (t1 - t0) > 0.0;
            [-y[0], if beyond { f64::INFINITY } else { -y[1] }, y[0]]
        });
        let error = ode.solve(t0, t1, [1.0, 2.0, 0.0]).unwrap_err();
        let SolveError::Incomplete { outcome, partial: solution, .. } = error else { panic!("{error}") };
        assert_eq!(outcome, solution.outcome);
        let Outcome::NonFinite { t, dt, step, component } = solution.outcome else { panic!("{solution}") };
        assert!((t - wall).abs() < 1e-6 && (t - wall) * (t1 - t0) <= 0.0, "{t}");
        assert!(dt.abs() < 1e-6 && dt * (t1 - t0) > 0.0);
        assert_eq!((component, step), (Some(1), solution.stats.num_steps));
        assert_eq!(solution.t1, t);
        let exact = (-(t - t0).abs() * (t1 - t0).signum()).exp();
        assert!((solution.y1[0] - exact).abs() < 1e-6, "y1 is not the last finite state");
    }
}

#[test]
fn twenty_consecutive_rejections_are_the_limit() {
    // If t is large, 0.2^n falls below 16 ulp of t before the 20th rejection. The outcome is the same.
    let ode = Ode::new(|t: f64, y: &f64| if t > 1e9 { f64::NAN } else { -y }).dt0(1.0);
    let solution = ode.allow_incomplete().solve(1e9, 2e9, 1.0).unwrap();
    assert!(matches!(solution.outcome, Outcome::NonFinite { step: 1..20, t: 1e9, component: Some(0), .. }));
    let ode = Ode::new(|t: f64, y: &f64| if t > 0.0 { f64::NAN } else { -y }).dt0(1.0);
    let solution = ode.allow_incomplete().solve(0.0, 1.0, 1.0).unwrap();
    assert!(matches!(solution.outcome, Outcome::NonFinite { step: 20, t: 0.0, .. }));
}

#[test]
fn a_field_not_finite_at_the_start_ends_at_once() {
    let ode = Ode::new(|_t, y: &[f64; 2]| [y[0], f64::NAN]).allow_incomplete();
    let solution = ode.solve(3.0, 4.0, [1.0, 2.0]).unwrap();
    assert_eq!(solution.outcome, Outcome::NonFinite { t: 3.0, dt: 0.0, step: 0, component: Some(1) });
    assert_eq!((solution.y1, solution.step_times), ([1.0, 2.0], vec![3.0]));
    for method in Method::EXPLICIT {
        let ode = Ode::new(|_t, y: &[f64; 2]| [y[0], 1.0 / 0.0 * y[1]]).method(method);
        let solution = ode
            .allow_incomplete()
            .controller(ConstantStepSize { dt0: 0.5 })
            .solve(3.0, 4.0, [1.0, 2.0])
            .unwrap();
        let expected = Outcome::NonFinite { t: 3.0, dt: 0.5, step: 1, component: Some(1) };
        assert_eq!((solution.outcome, solution.y1), (expected, [1.0, 2.0]), "{method}");
    }
}

#[test]
fn without_an_error_estimate_the_first_bad_component_ends_it() {
    let field = |t: f64, y: &Vec<f64>| vec![1.0, if t > 0.5 { f64::NAN } else { 1.0 }, -y[2]];
    let ode = || Ode::new(field).allow_incomplete();
    let solution = ode().method(Method::Euler).dt0(0.25).solve(0.0, 2.0, vec![0.0; 3]).unwrap();
    assert_eq!(solution.outcome, Outcome::NonFinite { t: 0.75, dt: 0.25, step: 4, component: Some(1) });
    assert_eq!((solution.y1[0], solution.stats.num_rejected), (0.75, 1));
    let listed = ode().controller(StepTo { ts: vec![0.0, 0.5, 2.0] }).solve(0.0, 2.0, vec![0.0; 3]);
    assert!(matches!(
        listed.unwrap().outcome,
        Outcome::NonFinite { t: 0.5, step: 2, component: Some(1), .. }
    ));
}

#[test]
fn a_blow_up_ends_with_a_small_step_and_never_completes() {
    let solution = Ode::new(|_t, y: &f64| y * y).allow_incomplete().solve(0.0, 2.0, 1.0).unwrap();
    let t = match solution.outcome {
        Outcome::StepSizeTooSmall { t, dt, .. } => {
            assert!(dt > 0.0 && dt < 16.0 * f64::EPSILON * 2.0);
            t
        }
        Outcome::NonFinite { t, .. } => t,
        other => panic!("{other}"),
    };
    assert!((t - 1.0).abs() < 1e-4, "{t}");
    let step_up = Ode::new(|t: f64, _y: &f64| if t < 0.3 { 0.0 } else { 1e30 }).solve(0.0, 1.0, 0.0);
    let outcome = step_up.unwrap_err().into_partial().unwrap().outcome;
    assert!(matches!(outcome, Outcome::StepSizeTooSmall { .. }), "{outcome}");
}

#[test]
fn a_step_too_small_to_move_t_ends_the_solve_at_the_start() {
    let solution = Ode::new(|_t, y: &f64| -y).dt0(1e-20).allow_incomplete().solve(1.0, 2.0, 1.0).unwrap();
    assert_eq!(solution.outcome, Outcome::StepSizeTooSmall { t: 1.0, dt: 1e-20, dt_min: 0.0, step: 0 });
    let ulp = Ode::new(|_t, y: &f64| -y).solve(1.0, 1.0 + f64::EPSILON, 1.0).unwrap();
    assert_eq!((ulp.outcome, ulp.stats.num_accepted), (Outcome::Completed, 1));
    let late = Ode::new(|_t, y: &f64| -1e-3 * y).solve(1e12, 1e12 + 1.0, 1e-12).unwrap();
    assert_eq!(late.outcome, Outcome::Completed, "{late}");
}

#[test]
fn an_overflow_is_not_accepted() {
    let ode = Ode::new(|_t, _y: &[f32; 1]| [f32::MAX]).rtol(1e-3).atol(1e-3);
    let solution = ode.solve(0.0, 10.0, [0.0]).unwrap_err().into_partial().unwrap();
    assert!(!solution.outcome.reached_t1() && solution.y1[0].is_finite(), "{solution}");
}

/// The step with the NaN is repeated with shorter ones, and each repetition finds the earlier events again.
#[test]
fn an_event_before_a_nan_is_recorded_once() {
    let ode = Ode::new(|_t, _y: &f64| 1.0).dt0(1.0).allow_incomplete();
    let ode = ode.event(Event::crossing().terminal_after(2), |_t, y| y - 0.5);
    let ode = ode.event(Event::crossing(), |_t, y| (0.9 - y).sqrt() + 1.0);
    let solution = ode.solve(0.0, 2.0, 0.0).unwrap();
    assert!(matches!(solution.outcome, Outcome::NonFiniteEvent { .. }), "{solution}");
    let times: Vec<f64> = solution.events.iter().map(|event| event.t).collect();
    assert!(times.len() == 1 && (times[0] - 0.5).abs() < 1e-12, "{times:?}");
}
