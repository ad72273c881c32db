//! Simultaneous events: all of them occur, once each, and at the right time, even if t1 is far away.

use crate::ode::*;

const GRAVITY: f64 = 9.81;

/// A ball that bounces at y = `floor` and retains the fraction `restitution` of its speed.
fn ball(restitution: f64, floor: f64) -> Ode<'static, [f64; 2], impl VectorField<[f64; 2]>> {
    Ode::new(|_t, y: &[f64; 2]| [y[1], -GRAVITY]).max_steps(10_000_000).on_event(
        Event::falling(),
        move |_t, y| y[0] - floor,
        move |_t, y| y[1] *= -restitution,
    )
}

/// The time of a fall from 1 m.
fn fall() -> f64 {
    (2.0 / GRAVITY).sqrt()
}

#[test]
fn an_elastic_ball_bounces_at_the_same_times_however_far_t1_lies() {
    for t1 in [1e3, 1e6, 1e9, f64::INFINITY] {
        let ode = ball(1.0, 0.0).event(Event::falling().terminal_after(1000), |_t, y| y[0]);
        let solution = ode.solve(0.0, t1, [1.0, 0.0]).unwrap();
        assert_eq!((which(&solution.outcome), solution.events.len()), (Some(1), 2000), "t1={t1}: {solution}");
        for (n, event) in solution.events.iter().enumerate() {
            let expected = fall() * (2.0 * (n / 2) as f64 + 1.0);
            assert!(
                (event.t / expected - 1.0).abs() < 1e-9,
                "t1={t1}, bounce {n}: {} is not {expected}",
                event.t
            );
            let energy = 0.5 * event.y[1] * event.y[1] + GRAVITY * event.y[0];
            assert!(
                (energy / GRAVITY - 1.0).abs() < 1e-6,
                "t1={t1}, bounce {n}: height {}",
                energy / GRAVITY
            );
        }
    }
}

#[test]
fn a_hundred_thousand_bounces_are_not_an_accumulation() {
    let solution = ball(1.0, 0.0).solve(0.0, 2e5 * fall(), [1.0, 0.0]).unwrap();
    assert_eq!((solution.outcome, solution.events.len()), (Outcome::Completed, 100_000));
}

#[test]
fn bounces_that_accumulate_end_the_solve_where_they_do() {
    for restitution in [0.1, 0.5, 0.9] {
        // At a height of 1000 m the last bounces are smaller than an ulp of the state.
        for (floor, close) in [(0.0, 1e-8), (-3.0, 1e-6), (1000.0, 1e-5)] {
            let ode = ball(restitution, floor).allow_incomplete();
            let solution = ode.solve(0.0, 100.0, [1.0 + floor, 0.0]).unwrap();
            let end = fall() * (1.0 + 2.0 * restitution / (1.0 - restitution));
            let Outcome::Zeno { index: 0, t } = solution.outcome else {
                panic!("{restitution}, {floor}: {solution}")
            };
            assert!((t - end).abs() < close && solution.t1 == t, "{restitution}, {floor}: {t} is not {end}");
            assert!((solution.y1[0] - floor).abs() < 1e-9, "{:?}", solution.y1);
        }
    }
    // A chirp: the intervals between events become shorter, but the events do not accumulate.
    let chirp = Ode::new(|t: f64, _y: &f64| 2.0 * t * (t * t).cos()).on_event(
        Event::crossing().interp_points(16),
        |t, _y| (t * t).sin(),
        |_t, y| *y += 0.0,
    );
    let solution = chirp.solve(0.5, 30.0, 0.0).unwrap();
    assert_eq!(solution.outcome, Outcome::Completed, "{solution}");
    assert_eq!(solution.events.len(), (900.0 / std::f64::consts::PI) as usize);
}

#[test]
fn the_advice_for_accumulating_events_works() {
    let last = Event::falling().terminal_after(12);
    let ode = Ode::new(|_t, y: &[f64; 2]| [y[1], -GRAVITY]);
    let solution =
        ode.on_event(last, |_t, y| y[0], |_t, y| y[1] *= -0.5).solve(0.0, 20.0, [1.0, 0.0]).unwrap();
    assert_eq!((which(&solution.outcome), solution.events.len()), (Some(0), 12));
    // y[2] is 1 at rest.
    let ode = Ode::new(|_t, y: &[f64; 3]| [y[1] * (1.0 - y[2]), -GRAVITY * (1.0 - y[2]), 0.0]);
    let ode = ode.on_event(
        Event::falling(),
        |_t, y| y[0],
        |_t, y| {
            y[1] *= -0.5;
            if y[1].abs() < 0.01 {
                (y[1], y[2]) = (0.0, 1.0);
            }
        },
    );
    let solution = ode.solve(0.0, 20.0, [1.0, 0.0, 0.0]).unwrap();
    assert_eq!((solution.outcome, solution.events.len()), (Outcome::Completed, 9), "{solution}");
    assert!(solution.y1[0].abs() < 1e-12, "{:?}", solution.y1);
}

#[test]
fn a_second_event_on_the_function_of_a_bounce_sees_no_change_by_the_reset() {
    for method in [Method::Tsit5, Method::Vern9, Method::Dop853, Method::Rodas5P, Method::Rk4] {
        for (gravity, speed) in [(9.81, 0.0), (3.7, -1.1), (1.62, 0.3), (24.8, -2.0)] {
            let ode = Ode::new(move |_t, y: &[f64; 2]| [y[1], -gravity]).method(method);
            let ode = if matches!(method, Method::Rk4) { ode.dt0(0.05) } else { ode };
            let ode = ode.on_event(Event::falling(), |_t, y| y[0], |_t, y| y[1] = -y[1]);
            let ode = ode.on_event(Event::rising(), |_t, y| y[0], |_t, y| y[1] = -y[1]);
            let solution = ode.event(Event::rising(), |_t, y| y[0]).solve(0.0, 20.0, [1.0, speed]).unwrap();
            assert!(solution.events.len() > 3, "{solution}");
            assert!(
                solution.events.iter().all(|event| event.index == 0),
                "{method:?}: {:?}",
                solution.events
            );
        }
    }
}

#[test]
fn an_event_before_its_function_becomes_nan_ends_a_constant_step() {
    for method in [Method::Rk4, Method::Euler, Method::Ssprk3, Method::Tsit5] {
        // y = 1 - t; the function is NaN beyond t = 1, within the step to 1.2.
        let ode = Ode::new(|_t, _y: &f64| -1.0).method(method).controller(ConstantStepSize { dt0: 0.3 });
        let ode = ode.event(Event::falling().terminal(), |_t, y| y.sqrt() - 0.1);
        let solution = ode.solve(0.0, 2.0, 1.0).unwrap();
        assert!((solution.t1 - 0.99).abs() < 1e-12, "{method:?}: {solution}");
    }
}

/// Calls `run` with the sign of time, 1 and -1; `run` reverses t1 and the speeds with it.
fn in_both_directions(run: impl Fn(f64)) {
    run(1.0);
    run(-1.0);
}

#[test]
fn two_equal_balls_and_a_ball_in_a_corner_are_reflected_together() {
    in_both_directions(|sign| {
        let balls = Ode::new(|_t, y: &[f64; 4]| [y[2], y[3], -GRAVITY, -GRAVITY])
            .on_event(Event::falling(), |_t, y| y[0], |_t, y| y[2] *= -1.0)
            .on_event(Event::falling(), |_t, y| y[1], |_t, y| y[3] *= -1.0);
        let solution = balls.solve(0.0, 3.0 * sign, [10.0, 10.0, 0.0, 0.0]).unwrap();
        assert_eq!((solution.y1[0], solution.y1[2]), (solution.y1[1], solution.y1[3]));
        let bounce = (20.0 / GRAVITY).sqrt();
        let since = 3.0 - bounce;
        let height = GRAVITY * bounce * since - 0.5 * GRAVITY * since * since;
        assert!((solution.y1[0] - height).abs() < 1e-9, "{:?}", solution.y1);
        let corner = Ode::new(|_t, y: &[f64; 4]| [y[2], y[3], 0.0, 0.0])
            .on_event(Event::falling(), |_t, y| y[0], |_t, y| y[2] = -y[2])
            .on_event(Event::falling(), |_t, y| y[1], |_t, y| y[3] = -y[3]);
        let solution = corner.solve(0.0, 3.0 * sign, [1.0, 1.0, -sign, -sign]).unwrap();
        assert_eq!(solution.events.len(), 2);
        assert!(
            solution.y1.iter().zip([2.0, 2.0, sign, sign]).all(|(y, e)| (y - e).abs() < 1e-12),
            "{:?}",
            solution.y1
        );
    });
}

#[test]
fn three_walls_hit_at_once_by_different_speeds_turn_three_components_once() {
    in_both_directions(|sign| {
        let ode = Ode::new(|_t, y: &[f64; 6]| [y[3], y[4], y[5], 0.0, 0.0, 0.0]);
        let ode = (0..3).fold(ode, |ode, i| {
            ode.on_event(Event::falling(), move |_t, y| y[i], move |_t, y| y[3 + i] = -y[3 + i])
        });
        let y0 = [0.3, 0.7, 1.1, -0.3 * sign, -0.7 * sign, -1.1 * sign];
        let solution = ode.solve(0.0, 1.5 * sign, y0).unwrap();
        assert_eq!(solution.events.len(), 3, "{:?}", solution.events);
        for i in 0..3 {
            assert!((solution.y1[i] - 0.5 * y0[i]).abs() < 1e-12, "{:?}", solution.y1);
        }
    });
}

#[test]
fn events_on_one_root_all_happen_in_whatever_order_they_are_declared() {
    in_both_directions(|sign| {
        // Event 0 only records, event 1 reverses the speed, event 2 counts in y[2]. All orders are tested.
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut ode = Ode::new(|_t, y: &[f64; 3]| [y[1], 0.0, 0.0]);
            for kind in order {
                let root = |_t: f64, y: &[f64; 3]| y[0];
                ode = match kind {
                    0 => ode.event(Event::crossing(), root),
                    1 => ode.on_event(Event::falling(), root, |_t, y| y[1] = -y[1]),
                    _ => ode.on_event(Event::falling(), root, |_t, y| y[2] += 1.0),
                };
            }
            let solution = ode.solve(0.0, 3.0 * sign, [1.0, -sign, 0.0]).unwrap();
            let found: Vec<usize> = solution.events.iter().map(|event| event.index).collect();
            assert_eq!(found, [0, 1, 2], "{order:?}");
            assert_eq!(solution.y1[2], 1.0);
            assert!((solution.y1[0] - 2.0).abs() < 1e-12, "{order:?}: {:?}", solution.y1);
        }
    });
}

#[test]
fn a_ball_in_a_box_keeps_its_energy_over_ten_thousand_reflections() {
    in_both_directions(|sign| {
        let ode = Ode::new(|_t, y: &[f64; 6]| [y[3], y[4], y[5], 0.0, 0.0, 0.0]).max_steps(1_000_000);
        let ode = (0..3).fold(ode, |ode, i| {
            let turn = move |_t: f64, y: &mut [f64; 6]| y[3 + i] = -y[3 + i];
            ode.on_event(Event::falling(), move |_t, y| y[i], turn).on_event(
                Event::rising(),
                move |_t, y| y[i] - 1.0,
                turn,
            )
        });
        let speed = [1.0, 0.7, 0.9];
        let y0 = [0.5, 0.35, 0.45, speed[0], speed[1], speed[2]];
        // At t = 10 k - 0.5, for each integer k, the ball reaches three walls at once.
        let t1 = 3846.3;
        let solution = ode.solve(0.0, t1 * sign, y0).unwrap();
        let mut expected = 0.0;
        for i in 0..3 {
            let reach = y0[i] + sign * speed[i] * t1 * sign * sign;
            let way = if sign > 0.0 { reach } else { 1.0 - (y0[i] - speed[i] * t1) };
            expected += way.floor();
            let folded = way.rem_euclid(2.0);
            let place = if folded > 1.0 { 2.0 - folded } else { folded };
            let place = if sign > 0.0 { place } else { 1.0 - place };
            assert!((solution.y1[i] - place).abs() < 1e-8, "{i}: {} is not {place}", solution.y1[i]);
            assert_eq!(solution.y1[3 + i].abs(), speed[i]);
        }
        assert_eq!(solution.events.len() as f64, expected);
        assert!(solution.events.len() >= 9_990);
    });
}

#[test]
fn a_fall_ends_where_it_does_however_far_t1_lies() {
    for t1 in [1e3, 1e6, 1e9, 1e12, 1e14, 1e15, 1e18, 1e100, f64::INFINITY] {
        let ode =
            Ode::new(|_t, y: &[f64; 2]| [y[1], -GRAVITY]).event(Event::falling().terminal(), |_t, y| y[0]);
        let solution = ode.solve(0.0, t1, [44.145, 0.0]).unwrap();
        assert!((solution.t1 - 3.0).abs() < 1e-12, "t1={t1}: {}", solution.t1);
        let oscillator = Ode::new(|_t, y: &[f64; 2]| [y[1], -y[0]]).rtol(1e-6);
        let oscillator = oscillator.event(Event::falling().terminal(), |_t, y| y[0]);
        let solution = oscillator.solve(0.0, t1, [1.0, 0.0]).unwrap();
        assert!((solution.t1 - std::f64::consts::FRAC_PI_2).abs() < 2e-6, "t1={t1}: {}", solution.t1);
    }
    let endless = Ode::new(|_t, y: &f64| -y).solve(0.0, f64::INFINITY, 1.0).unwrap_err().to_string();
    assert!(endless.contains("t1=inf") && endless.contains("on_step"), "{endless}");
}

#[test]
fn solves_on_a_unix_clock_reach_their_end_with_and_without_stops() {
    let controllers: [Controller; 3] = [
        PidController::default().into(),
        PidController::pi(0.4, 0.3).into(),
        HairerController::default().into(),
    ];
    for i in 0..1000 {
        let w = 1e3 + 10.0 * f64::from(i);
        let (t0, t1) = (1.7e9, 1.7e9 + 0.0501);
        let ode = Ode::new(move |_t, y: &[f64; 2]| [w * y[1], -w * y[0]]);
        let ode = ode.controller(controllers[i as usize % 3].clone());
        let ode = if i % 2 == 0 { ode } else { ode.tstops(&[t0 + 0.01, t0 + 0.0101, t0 + 0.03]) };
        let solution = ode.solve(t0, t1, [1.0, 0.0]).unwrap();
        assert_eq!(solution.outcome, Outcome::Completed, "w={w}: {solution}");
        let phase = w * (t1 - t0);
        let error = (solution.y1[0] - phase.cos()).hypot(solution.y1[1] + phase.sin());
        assert!(error < 100.0 * 1e-6 * (1.0 + phase / 10.0), "w={w}: {error}");
    }
}

#[test]
fn a_step_is_not_retried_at_the_length_at_which_it_was_rejected() {
    // DETEST F2: the vector field is discontinuous at each integer t, including t1.
    for tol in [1e-12, 1e-13] {
        let field = |t: f64, y: &f64| 55.0 - if t.floor() % 2.0 == 0.0 { 2.0 } else { 0.5 } * y;
        let solution = Ode::new(field).rtol(tol).atol(tol).solve(0.0, 20.0, 110.0).unwrap();
        assert_eq!(solution.outcome, Outcome::Completed, "{solution}");
    }
}

#[test]
fn a_discontinuity_at_an_end_is_evaluated_from_inside() {
    for method in Method::EXPLICIT {
        let order = f64::from(method.tableau().order);
        let errors = |span: (f64, f64), inside: fn(f64) -> bool| {
            [10.0, 20.0].map(|n| {
                let field = move |t: f64, _y: &f64| if inside(t) { (3.0 * t).cos() } else { 100.0 };
                let ode = Ode::new(field)
                    .method(method)
                    .controller(ConstantStepSize { dt0: 1.0 / n })
                    .discontinuities(&[0.0, 1.0]);
                let y = ode.solve(span.0, span.1, 0.0).unwrap().y1;
                (y - ((3.0 * span.1).sin() - (3.0 * span.0).sin()) / 3.0).abs()
            })
        };
        for span in [(0.0, 1.0), (1.0, 0.0)] {
            for inside in [(|t| t < 1.0) as fn(f64) -> bool, |t| t > 0.0, |t| 0.0 < t && t < 1.0] {
                let [coarse, fine] = errors(span, inside);
                let slope = (coarse / fine).log2();
                assert!(fine < 1e-13 || slope > order - 0.4, "{method} over {span:?}: {coarse:e}, {fine:e}");
            }
        }
    }
}

#[test]
fn adaptive_steps_start_and_end_beside_a_discontinuity_at_an_end() {
    let field = |t: f64, y: &f64| if 0.0 < t && t < 1.0 { (3.0 * t).cos() - y } else { f64::NAN };
    let smooth = |t: f64, y: &f64| (3.0 * t).cos() - y;
    for (t0, t1) in [(0.0, 1.0), (1.0, 0.0)] {
        for method in Method::EXPLICIT.into_iter().filter(|m| m.tableau().b_err.is_some()) {
            let solution =
                Ode::new(field).method(method).discontinuities(&[0.0, 1.0]).solve(t0, t1, 0.3).unwrap();
            let plain = Ode::new(smooth).method(method).solve(t0, t1, 0.3).unwrap();
            assert!((solution.y1 - plain.y1).abs() < 1e-12, "{method} from {t0}: {solution}");
            assert_eq!(solution.stats.num_steps, plain.stats.num_steps, "{method} from {t0}");
        }
    }
}

#[test]
fn an_event_that_is_nan_shortens_the_step() {
    let ode = Ode::new(|_t, _y: &f64| -1.0).event(Event::falling().terminal(), |_t, y| y.sqrt() - 0.1);
    let solution = ode.solve(0.0, 5.0, 1.0).unwrap();
    assert!((solution.t1 - 0.99).abs() < 1e-12, "{solution}");
    // If shorter steps do not help, the solve ends, and the values saved so far are returned.
    let ode =
        Ode::new(|_t, _y: &f64| -1.0).event(Event::rising(), |t, _y| if t > 0.5 { f64::NAN } else { -1.0 });
    let failed = ode.save_at(SaveAt::ts(&[0.1, 0.4, 2.0])).solve(0.0, 5.0, 1.0).unwrap_err();
    let solution = failed.into_partial().unwrap();
    let Outcome::NonFiniteEvent { index: 0, t, .. } = solution.outcome else { panic!("{solution}") };
    assert!(t <= 0.5 && t > 0.49 && solution.ts == [0.1, 0.4], "{solution}: {:?}", solution.ts);
    assert!(solution.to_string().starts_with("event 0 is NaN from t=0.4"), "{solution}");
    let ode = Ode::new(|_t, y: &f64| -y).event(Event::rising(), |_t, y| -y.sqrt());
    let outcome = ode.allow_incomplete().solve(0.0, 1.0, -1.0).unwrap().outcome;
    assert_eq!(outcome.to_string(), "event 0 is NaN at the start, t=0");
}

#[test]
fn a_recoverable_error_shortens_the_step_and_another_ends_the_solve() {
    for method in [Method::Tsit5, Method::Vern7, Method::Dop853, Method::Bosh3] {
        let field = |recovers: bool| {
            move |_t: f64, y: &f64| match (*y >= 0.0, recovers) {
                (true, _) => Ok(-1000.0 * y),
                (false, true) => Err(Box::new(Recoverable("below".into())) as FieldError),
                (false, false) => Err("below".into()),
            }
        };
        let solution = Ode::new(field(true)).method(method).dt0(0.1).solve(0.0, 1.0, 1.0).unwrap();
        assert!(solution.outcome.reached_t1() && solution.y1.abs() < 1e-6, "{method}: {solution}");
        assert!(solution.stats.num_rejected > 0);
        let error = Ode::new(field(false)).method(method).dt0(0.1).solve(0.0, 1.0, 1.0).unwrap_err();
        assert!(error.to_string().contains("below"), "{error}");
    }
    // A table that ends at y = 0.9, and an event before that.
    let table =
        |_t: f64, y: &f64| if *y < 0.9 { Ok(1.0) } else { Err(Recoverable("no table beyond 0.9".into())) };
    let solution =
        Ode::new(table).event(Event::rising().terminal(), |_t, y| y - 0.85).solve(0.0, 5.0, 0.0).unwrap();
    assert!((solution.t1 - 0.85).abs() < 1e-12);
    let error = Ode::new(table).solve(0.0, 5.0, 0.0).unwrap_err().to_string();
    assert!(error.contains("no table beyond 0.9"), "{error}");
}

#[test]
fn an_action_that_changes_the_length_of_the_state_is_an_error_that_names_the_event() {
    for grows in [true, false] {
        let ode = Ode::new(|_t, y: &Vec<f64>| y.clone()).event(Event::rising(), |t, _y| t - 0.2).on_event(
            Event::rising(),
            |t, _y| t - 0.5,
            move |_t, y: &mut Vec<f64>| if grows { y.push(1.0) } else { y.truncate(1) },
        );
        let error = ode.solve(0.0, 1.0, vec![1.0, 2.0]).unwrap_err().to_string();
        assert!(
            error.contains("the state reset of event 1 at t=0.5") && error.contains("from size 2 to"),
            "{error}"
        );
    }
}

#[test]
fn a_component_that_is_zero_has_no_error_without_an_absolute_tolerance() {
    let orbit = |_t: f64, y: &[f64; 6]| {
        let r3 = (y[0] * y[0] + y[1] * y[1] + y[2] * y[2]).powf(1.5);
        [y[3], y[4], y[5], -y[0] / r3, -y[1] / r3, -y[2] / r3]
    };
    let ode = Ode::new(orbit).rtol(1e-9).atol(0.0);
    let solution = ode.solve(0.0, 2.0 * std::f64::consts::PI, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]).unwrap();
    assert!((solution.y1[0] - 1.0).abs() < 1e-7 && solution.y1[2] == 0.0, "{solution}");
}

#[test]
fn the_nth_occurrence_ends_the_solve_even_if_a_step_has_several() {
    let field = |_t: f64, _y: &f64| 1.0;
    for n in 1..=5 {
        let ode = Ode::new(field).method(Method::Rk4).dt0(10.0);
        let event = Event::rising().terminal_after(n).interp_points(40);
        let solution =
            ode.event(event, |_t, y| (2.0 * std::f64::consts::PI * y).sin()).solve(0.0, 10.0, -0.25).unwrap();
        assert_eq!(solution.events.len(), n);
        assert!((solution.t1 - (n as f64 - 0.75)).abs() < 1e-12, "{n}: {solution}");
    }
}

#[test]
fn of_two_terminal_events_the_first_ends_the_solve() {
    // y = t. The sine rises through 0 at 0.25, 1.25, ...; the other event occurs once, at 2.5.
    let whole = |n| Event::rising().terminal_after(n).interp_points(40);
    let run = |n: usize, swapped: bool| {
        let sine = |_t: f64, y: &f64| (2.0 * std::f64::consts::PI * (y - 0.25)).sin();
        let level = |_t: f64, y: &f64| y - 2.5;
        let ode = Ode::new(|_t: f64, _y: &f64| 1.0).method(Method::Rk4).dt0(10.0);
        let solution = if swapped {
            ode.event(Event::rising().terminal(), level).event(whole(n), sine).solve(0.0, 10.0, 0.0).unwrap()
        } else {
            ode.event(whole(n), sine).event(Event::rising().terminal(), level).solve(0.0, 10.0, 0.0).unwrap()
        };
        (which(&solution.outcome).unwrap() ^ usize::from(swapped), solution.t1, solution.events.len())
    };
    for swapped in [false, true] {
        let (by, t, events) = run(2, swapped);
        assert!(by == 0 && (t - 1.25).abs() < 1e-12 && events == 2, "{by} at {t} of {events}");
        let (by, t, events) = run(4, swapped);
        assert!(by == 1 && (t - 2.5).abs() < 1e-12 && events == 4, "{by} at {t} of {events}");
    }
}

#[test]
fn an_event_in_the_last_ulp_before_t1_and_at_t1_is_found() {
    for t1 in [1.0_f64, 3.0, 1e9 + 0.1] {
        for root in [t1.next_down(), t1] {
            let ode = Ode::new(|_t, _y: &f64| 1.0).dt0(t1 / 7.0).method(Method::Rk4);
            let solution = ode.event(Event::rising(), |t, _y| t - root).solve(0.0, t1, 0.0).unwrap();
            assert_eq!((solution.outcome, solution.events.len()), (Outcome::Completed, 1), "{root}");
            assert!((solution.events[0].t - root).abs() <= t1 - t1.next_down(), "{root}: {solution}");
        }
    }
}

#[test]
fn max_events_limits_the_recorded_events() {
    let ode = ball(1.0, 0.0).max_events(3).allow_incomplete();
    let solution = ode.solve(0.0, 100.0, [1.0, 0.0]).unwrap();
    assert!(matches!(solution.outcome, Outcome::MaxEvents { max_events: 3, .. }), "{solution}");
    assert_eq!(solution.events.len(), 3);
    assert!((solution.t1 / fall() - 7.0).abs() < 1e-9);
}

/// The index of the event that ended a solve, if one did.
fn which(outcome: &Outcome) -> Option<usize> {
    match outcome {
        Outcome::Event { index, .. } => Some(*index),
        _ => None,
    }
}
