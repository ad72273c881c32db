//! Events are found at their times, and their actions run.

use crate::ode::*;
use std::ops::ControlFlow;

fn oscillator(_t: f64, y: &[f64; 2]) -> [f64; 2] {
    [y[1], -y[0]]
}

#[test]
fn a_root_is_found_to_the_solves_accuracy_in_either_direction() {
    for (t0, t1) in [(0.0, 20.0), (20.0, 0.0)] {
        let ode = Ode::new(oscillator).rtol(1e-11).atol(1e-12).method(Method::Dopri5);
        let ode = ode.event(Event::crossing(), |_t, y| y[0]).event(Event::rising(), |_t, y| y[0]);
        let y0 = [f64::cos(t0), -f64::sin(t0)];
        let solution = ode.solve(t0, t1, y0).unwrap();
        let crossings: Vec<f64> = solution.events.iter().filter(|e| e.index == 0).map(|e| e.t).collect();
        let mut roots: Vec<f64> = (0..6).map(|i| std::f64::consts::PI * (f64::from(i) + 0.5)).collect();
        if t1 < t0 {
            roots.reverse();
        }
        assert_eq!(crossings.len(), 6);
        assert!(crossings.iter().zip(&roots).all(|(t, root)| (t - root).abs() < 1e-5), "{crossings:?}");
        assert_eq!(solution.events.iter().filter(|e| e.index == 1).count(), 3);
        assert!(solution.events.iter().all(|e| e.y[0].abs() < 1e-10), "{:?}", solution.events);
    }
}

#[test]
fn an_event_right_after_the_start_is_found() {
    // y = cos t falls below 0.9999999 at t = 4.47e-4, within the first step.
    let ode = Ode::new(oscillator).rtol(1e-9).atol(1e-9);
    let ode = ode.event(Event::falling().terminal(), |_t, y| y[0] - 0.999_999_9);
    let solution = ode.solve(0.0, 1.0, [1.0, 0.0]).unwrap();
    let root = f64::acos(0.999_999_9);
    assert!(matches!(solution.outcome, Outcome::Event { index: 0, .. }), "{solution}");
    assert!((solution.t1 / root - 1.0).abs() < 1e-6, "{} against {root}", solution.t1);
}

#[test]
fn a_root_at_the_very_end_of_a_step_is_found_once() {
    // Steps of 0.25 end exactly on the root at 1. The solution is linear, so every number is exact.
    let ode = Ode::new(|_t, _y: &f64| 1.0).method(Method::Euler).dt0(0.25);
    let solution = ode.event(Event::rising(), |_t, y| *y).solve(0.0, 2.0, -1.0).unwrap();
    assert_eq!(solution.events.len(), 1);
    assert_eq!((solution.events[0].t, solution.events[0].y), (1.0, 0.0));
}

#[test]
fn the_earliest_of_several_stops_the_solve_and_saves_nothing_beyond() {
    let ode = Ode::new(|_t, _y: &f64| 1.0).save_at(SaveAt::ts(&[0.5, 1.0, 1.5]).and_t1());
    let ode = ode
        .event(Event::rising().terminal(), |_t, y| y - 1.25)
        .event(Event::rising().terminal(), |_t, y| y - 0.75);
    let solution = ode.solve(0.0, 2.0, 0.0).unwrap();
    let Outcome::Event { index, t } = solution.outcome else { panic!("{solution}") };
    assert_eq!((index, t), (1, solution.t1));
    assert!((t - 0.75).abs() < 1e-14);
    assert_eq!((solution.ts[0], solution.ts[1], solution.ts.len()), (0.5, t, 2));
    assert!(solution.outcome.is_success());
}

#[test]
fn a_ball_bounces_as_the_closed_form_says() {
    let (gravity, restitution) = (9.81, 0.9);
    let ode = Ode::new(|_t, y: &[f64; 2]| [y[1], -gravity]).rtol(1e-9).atol(1e-9);
    let ball = ode
        .on_event(Event::falling(), |_t, y| y[0], |_t, y| y[1] *= -restitution)
        .save_at(SaveAt::ts(&[3.0]).and_dense())
        .solve(0.0, 12.0, [10.0, 0.0])
        .unwrap();
    let fall = f64::sqrt(2.0 * 10.0 / gravity);
    let mut expected = fall;
    let mut flight = 2.0 * fall;
    for occurrence in &ball.events {
        assert!((occurrence.t - expected).abs() < 1e-8, "{} against {expected}", occurrence.t);
        flight *= restitution;
        expected += flight;
    }
    assert!(ball.events.len() >= 5, "{} bounces", ball.events.len());
    assert!(expected > 12.0 && ball.outcome.reached_t1());
    // Dense output stays above the floor up to 1e-9, and saved values equal it.
    let dense = ball.dense().unwrap();
    assert!((0..=1000).all(|i| dense.eval(0.012 * f64::from(i)).unwrap()[0] > -1e-9));
    assert_eq!(dense.eval(3.0).unwrap(), ball.ys[0]);
}

#[test]
fn the_first_stage_behind_a_changed_state_is_computed_anew() {
    // y is reset to 10 at t = 1, so the exact solution after that is 10 e^(t - 1). A k1 from before the reset
    // would be too small.
    for method in Method::EXPLICIT.into_iter().filter(|m| m.tableau().order >= 4) {
        let ode = Ode::new(|_t, y: &f64| *y).method(method);
        let ode = if method.tableau().b_err.is_some() { ode.rtol(1e-8).atol(1e-8) } else { ode.dt0(1e-3) };
        let ode = ode.on_event(Event::rising(), |t, _y| t - 1.0, |_t, y| *y = 10.0);
        let solution = ode.solve(0.0, 2.0, 1.0).unwrap();
        assert_eq!(solution.events.len(), 1);
        assert!((solution.y1 / 10.0 - std::f64::consts::E).abs() < 1e-6, "{method}: {}", solution.y1);
    }
}

#[test]
fn a_condition_that_becomes_true_is_an_event() {
    let ode = Ode::new(|_t, _y: &f64| 1.0).event(Event::rising().terminal(), |t, _y| t > 0.3);
    let solution = ode.solve(0.0, 1.0, 0.0).unwrap();
    assert!(solution.t1 > 0.3 && solution.t1 < 0.3 + 1e-14, "{}", solution.t1);
}

#[test]
fn two_roots_in_one_step_are_seen_between_its_samples() {
    // One step of a linear solution spans both roots of (y - 0.4)(y - 0.8).
    let ode = || Ode::new(|_t, _y: &f64| 1.0).method(Method::Rk4).dt0(1.0);
    let gauge = |_t: f64, y: &f64| (y - 0.4) * (y - 0.8);
    assert_eq!(ode().event(Event::crossing(), gauge).solve(0.0, 1.0, 0.0).unwrap().events.len(), 2);
    let blind = ode().event(Event::crossing().interp_points(1), gauge).solve(0.0, 1.0, 0.0).unwrap();
    assert_eq!(blind.events.len(), 0);
}

#[test]
fn a_callback_ends_the_solve_and_keeps_what_was_computed() {
    let ode = Ode::new(oscillator).save_at(SaveAt::steps());
    let ode = ode.on_step(|t, _y| if t > 1.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) });
    let solution = ode.solve(0.0, 10.0, [1.0, 0.0]).unwrap();
    assert_eq!(solution.outcome, Outcome::StoppedByOnStep { t: solution.t1 });
    assert!(solution.t1 > 1.0 && solution.t1 < 4.0 && solution.ts.last() == Some(&solution.t1));
}
