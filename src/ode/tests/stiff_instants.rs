//! Instants within a few ulp of each other, with stiff methods: resets, stops and ends.

use super::draw::{Draw, num_cases};
use crate::ode::*;

const METHODS: [Method; 4] = [Method::Rodas5P, Method::Rosenbrock23, Method::Rkc2, Method::AutoTsit5Rodas5P];

/// The default of each method, then others.
fn controllers() -> [Option<Controller>; 5] {
    [
        None,
        Some(PidController::default().into()),
        Some(PidController::pi(0.4, 0.3).into()),
        Some(PidController::h211b(4.0).into()),
        Some(HairerController::dopri5().into()),
    ]
}

fn with<'f, Y: PlainState, F>(
    ode: Ode<'f, Y, F>,
    method: Method,
    controller: Option<&Controller>,
) -> Ode<'f, Y, F> {
    let ode = ode.method(method);
    match controller {
        Some(controller) => ode.controller(controller.clone()),
        None => ode,
    }
}

#[test]
fn balls_in_boxes_are_reflected_by_all_walls_that_they_hit() {
    let (mut draw, mut seen) = (Draw(5), [0; 4]);
    for case in 0..num_cases(240) {
        let method = METHODS[case % 4];
        let controller = controllers()[(case / 4) % 5].clone();
        // One to three directions between walls at 0 and 1. In each direction the ball starts at a distance from
        // the wall that it reaches at the same time, up to an offset of a few ulp or more.
        let dims = 1 + draw.below(3);
        let offset = [0.0, 1e-16, 1e-15, 1e-14, 1e-12, 1e-9][draw.below(6)];
        let sign = if draw.coin() { 1.0 } else { -1.0 };
        let time = draw.uniform(0.1, 0.9);
        let mut y0 = [0.5, 0.5, 0.5, 0.0, 0.0, 0.0];
        for i in 0..dims {
            let speed = draw.uniform(0.2, 1.0);
            y0[i] = speed * time * (1.0 + offset * i as f64);
            y0[3 + i] = -speed * sign;
        }
        let mut ode = Ode::new(|_t, y: &[f64; 6]| [y[3], y[4], y[5], 0.0, 0.0, 0.0]);
        for i in 0..3 {
            ode = ode
                .on_event(Event::falling(), move |_t, y| y[i], move |_t, y| y[3 + i] = -y[3 + i])
                .on_event(Event::rising(), move |_t, y| y[i] - 1.0, move |_t, y| y[3 + i] = -y[3 + i]);
        }
        let t1 = 3.0;
        let context = format!("case {case}: {method}, {controller:?}, {y0:?}");
        let solution = with(ode, method, controller.as_ref()).solve(0.0, t1 * sign, y0);
        let solution = solution.unwrap_or_else(|error| panic!("{error}: {context}"));
        for i in 0..dims {
            // The path unfolds to a straight line, of which every second unit is mirrored.
            let path = (y0[i] - y0[3 + i].abs() * t1).rem_euclid(2.0);
            let expected = if path > 1.0 { 2.0 - path } else { path };
            assert!(
                (solution.y1[i] - expected).abs() < 1e-7,
                "{} is not {expected}: {context}",
                solution.y1[i]
            );
        }
        for (count, is_so) in seen.iter_mut().zip([dims == 3, offset == 1e-15, sign < 0.0, offset == 0.0]) {
            *count += usize::from(is_so);
        }
    }
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
}

#[test]
fn resets_and_stops_within_a_few_ulp_are_all_passed() {
    for method in METHODS {
        for controller in &controllers() {
            for (ulps, is_stop) in (0..=8).flat_map(|n| [(n, false), (n, true)]) {
                let second = 1.0 + f64::from(ulps) * f64::EPSILON;
                let ode = Ode::new(|_t, y: &[f64; 1]| [-y[0]]).rtol(1e-8);
                let ode = ode.on_event(Event::rising(), move |t, _y| t - second, |_t, y| y[0] += 1.0);
                let ode = if is_stop {
                    ode.tstops(&[1.0])
                } else {
                    ode.on_event(Event::rising(), |t, _y| t - 1.0, |_t, y| y[0] += 1.0)
                };
                let context = format!("{method}, {controller:?}, {ulps} ulp, stop: {is_stop}");
                let solution = with(ode, method, controller.as_ref()).solve(0.0, 3.0, [1.0]);
                let y1 = solution.unwrap_or_else(|error| panic!("{error}: {context}")).y1[0];
                let added = if is_stop { 1.0 } else { 2.0 };
                let exact = (-3.0_f64).exp() + added * (-2.0_f64).exp();
                assert!((y1 / exact - 1.0).abs() < 1e-4, "{y1} is not {exact}: {context}");
            }
        }
    }
}

#[test]
fn steps_of_one_ulp_are_finite() {
    for method in METHODS {
        for t in [1.0, 1e-290, 1.7e9, -3.0] {
            let next = f64::next_up(t);
            let ode = || Ode::new(|t: f64, y: &[f64; 2]| [-y[0] + t.cos(), y[0] - 1e3 * y[1]]).method(method);
            let solution =
                ode().solve(t, next, [1.0, 0.5]).unwrap_or_else(|error| panic!("{error}: {method}"));
            assert!((solution.y1[0] - 1.0).abs() < 1e-6, "{method}, t={t}: {:?}", solution.y1);
            ode().solve(next, t, [1.0, 0.5]).unwrap_or_else(|error| panic!("{error}: {method}"));
        }
        let ode = || Ode::new(|t: f64, y: &[f64; 1]| [-y[0] + t.cos()]).method(method).rtol(1e-6);
        let stops = [1.0, f64::next_up(1.0), 1.0 + 2.0 * f64::EPSILON];
        let plain = ode().solve(0.0, 2.0, [1.0]).unwrap().y1[0];
        for ode in [ode().tstops(&stops), ode().discontinuities(&stops[..2])] {
            let y1 = ode.solve(0.0, 2.0, [1.0]).unwrap_or_else(|error| panic!("{error}: {method}")).y1[0];
            assert!((y1 - plain).abs() < 1e-4, "{method}: {y1} is not {plain}");
        }
    }
}
