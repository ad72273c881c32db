//! Step sizes: the PID formula against an independent implementation, constant steps, times, counters,
//! directions.

use crate::ode::{
    ConfigError, ConstantStepSize, Controller, Method, Ode, Outcome, PidController, SolveError, StepTo,
};
use crate::simd::{Level, is_fused};
use std::cell::Cell;

fn pulse(t: f64, y: &[f64; 2]) -> [f64; 2] {
    [t.cos() * y[1], (-100.0 * (t - 5.0).powi(2)).exp() - 0.1 * y[1]]
}

/// A plain adaptive loop written from the formulas, for comparison. Returns the step times, the number of
/// attempted steps and y1.
fn reference(
    method: Method,
    pid: &PidController,
    tol: (f64, f64),
    t1: f64,
    y0: [f64; 2],
) -> (Vec<f64>, u64, [f64; 2]) {
    let tableau = method.tableau();
    let (p, i, d) = (pid.pcoeff, pid.icoeff, pid.dcoeff);
    let k = f64::from(tableau.error_order);
    let (mut t, mut y, mut dt, mut steps) = (0.0, y0, pid.dt0.unwrap(), 0);
    let (mut ts, mut previous) = (vec![0.0], [1.0_f64, 1.0]);
    while t < t1 {
        let t_next = if t + dt > t1 - 100.0 * f64::EPSILON * t1 { t1 } else { t + dt };
        let h = t_next - t;
        let mut stages: Vec<[f64; 2]> = vec![];
        for s in 0..tableau.num_stages() {
            let row: &[f64] = tableau.row(s);
            let part = |j: usize| row.iter().zip(&stages).map(|(a, k)| a * k[j]).sum::<f64>();
            stages.push(pulse(t + tableau.c[s] * h, &[y[0] + h * part(0), y[1] + h * part(1)]));
        }
        let sum = |w: &[f64], j: usize| h * w.iter().zip(&stages).map(|(w, k)| w * k[j]).sum::<f64>();
        let y_next = [y[0] + sum(tableau.b, 0), y[1] + sum(tableau.b, 1)];
        let scaled =
            |j: usize| sum(tableau.b_err.unwrap(), j) / (tol.1 + tol.0 * y[j].abs().max(y_next[j].abs()));
        let error = (f64::midpoint(scaled(0).powi(2), scaled(1).powi(2))).sqrt();
        let log = (p + i + d) * -error.ln() + (p + 2.0 * d) * previous[0].ln() + d * -previous[1].ln();
        let factor = pid.safety * (log / k).exp();
        steps += 1;
        if error < 1.0 {
            previous = [if error == 0.0 { 1.0 } else { error }, previous[0]];
            (t, y) = (t_next, y_next);
            ts.push(t);
            dt = h * factor.clamp(1.0, pid.factor_max);
        } else {
            dt = h * factor.clamp(pid.factor_min, pid.safety);
        }
    }
    (ts, steps, y)
}

#[test]
fn pid_steps_follow_the_formula() {
    for method in [Method::Tsit5, Method::Dopri5] {
        for (pcoeff, icoeff, dcoeff) in [(0.0, 1.0, 0.0), (0.4, 0.3, 0.0), (0.2, 0.3, 0.05), (0.0, 0.7, 0.1)]
        {
            let pid = PidController { pcoeff, icoeff, dcoeff, dt0: Some(0.01), ..PidController::default() };
            let (ts, steps, y1) = reference(method, &pid, (1e-6, 1e-8), 10.0, [1.0, 0.5]);
            let ode = Ode::new(pulse).method(method).rtol(1e-6).atol(1e-8).controller(pid.clone());
            // An error estimate is a difference of large terms, so rounding changes its sixth digit and the
            // step sizes.
            let fused = ode.solve(0.0, 10.0, [1.0, 0.5]).unwrap();
            assert_eq!(fused.stats.num_steps, steps, "{pid:?}");
            let solution = ode.level(Level::Portable).solve(0.0, 10.0, [1.0, 0.5]).unwrap();
            assert_eq!(solution.stats.num_steps, steps, "{pid:?}");
            assert_eq!(solution.step_times.len(), ts.len());
            assert!(solution.stats.num_rejected > 3, "the pulse must cost rejections");
            // On aarch64, the portable level has fused multiply-add.
            if is_fused(Level::Portable) {
                continue;
            }
            for (ours, theirs) in solution.step_times.iter().zip(&ts) {
                assert!((ours - theirs).abs() < 1e-6, "{ours} {theirs}");
            }
            assert!((solution.y1[0] - y1[0]).abs() + (solution.y1[1] - y1[1]).abs() < 1e-9);
        }
    }
}

#[test]
fn the_factor_is_clipped_and_a_nan_shrinks() {
    let pid = PidController { pcoeff: 0.1, icoeff: 0.4, dcoeff: 0.1, ..PidController::default() };
    let factor = |r: f64| pid.factor(5, &r, &1.0, &1.0);
    assert_eq!([factor(0.0), factor(1e-300), factor(0.999_999)], [10.0, 10.0, 1.0]);
    assert_eq!([factor(1.0), factor(1e300), factor(1.5)], [0.9, 0.2, 0.9 * (1.0_f64 / 1.5).powf(0.6 / 5.0)]);
    assert_eq!([factor(f64::NAN), factor(f64::INFINITY)], [0.2, 0.2]);
    let history = |r: f64| PidController::pi(0.4, 0.3).history(&r);
    assert_eq!([history(0.0), history(0.25), history(1e-320)], [1.0, 4.0, 1.0]);
    let flat = PidController { pcoeff: 0.0, icoeff: 0.0, dcoeff: 0.0, ..PidController::default() };
    assert_eq!(flat.factor(5, &f64::INFINITY, &1.0, &1.0), 0.2);
}

#[test]
fn counters_count_every_call() {
    let calls = Cell::new(0);
    for method in Method::EXPLICIT {
        calls.set(0);
        let ode = Ode::new(|t, y: &[f64; 2]| {
            calls.set(calls.get() + 1);
            pulse(t, y)
        })
        .method(method);
        let ode = if method.tableau().b_err.is_some() { ode } else { ode.dt0(0.01) };
        let stats = ode.solve(0.0, 10.0, [1.0, 0.5]).unwrap().stats;
        assert_eq!(stats.num_fn_evals, calls.get(), "{method}");
        assert_eq!(stats.num_steps, stats.num_accepted + stats.num_rejected);
        let s = method.tableau().num_stages() as u64;
        let expected = match method {
            _ if method.tableau().b_err.is_none() => s * stats.num_steps,
            // f(t0, y0), Hairer's trial step, and all stages but the first of each attempt
            _ if method.tableau().is_fsal() => 2 + (s - 1) * stats.num_steps,
            // in addition, each accepted step but the last evaluates the next step's first stage
            _ => 2 + (s - 1) * stats.num_steps + stats.num_accepted - 1,
        };
        assert_eq!(stats.num_fn_evals, expected);
    }
}

/// A vector field that panics outside [t0, t1].
fn within(t0: f64, t1: f64) -> impl Fn(f64, &f64) -> f64 {
    move |t, y| {
        assert!(t0.min(t1) <= t && t <= t0.max(t1), "evaluated at {t}, outside [{t0}, {t1}]");
        -y + t.sin()
    }
}

#[test]
fn nothing_is_evaluated_outside_the_interval() {
    let spans: [(f64, f64); 7] =
        [(0.0, 1.0), (1.0, 0.0), (-0.7, 0.3), (0.3, -0.7), (1e6, 1e6 + 1.0), (0.0, 1e-9), (-1.0, 0.0)];
    for (t0, t1) in spans {
        for method in Method::EXPLICIT {
            for dt0 in [0.1, 0.3, 1.0 / 3.0, 0.07, 1e3].map(|part: f64| part * (t1 - t0).abs()) {
                let ode = Ode::new(within(t0, t1)).method(method).controller(ConstantStepSize { dt0 });
                assert_eq!(ode.solve(t0, t1, 1.0).unwrap().outcome, Outcome::Completed);
            }
        }
        let solution = Ode::new(within(t0, t1)).solve(t0, t1, 1.0).unwrap();
        assert_eq!((solution.outcome, solution.t1), (Outcome::Completed, t1));
    }
}

#[test]
fn constant_steps_sit_at_multiples_and_a_sliver_is_merged() {
    let ts = |dt0: f64, t0: f64, t1: f64| {
        Ode::new(|_t, y: &f64| -y).method(Method::Rk4).dt0(dt0).solve(t0, t1, 1.0).unwrap().step_times
    };
    assert_eq!(ts(0.4, 0.0, 1.0), [0.0, 0.4, 0.8, 1.0]);
    let tenths = ts(0.1, 0.0, 1.0);
    assert_eq!((tenths.len(), tenths[3], tenths[10]), (11, 3.0 * 0.1, 1.0));
    assert_eq!(ts(0.1, 0.0, 0.3).len(), 4); // 3 * 0.1 passes 0.3 by an ulp
    let ulp = f64::EPSILON;
    for (ulps, steps) in [(1.0, 10), (50.0, 10), (99.0, 10), (-50.0, 10), (1000.0, 11)] {
        assert_eq!(ts(0.1, 0.0, 1.0 + ulps * ulp).len() - 1, steps, "{ulps} ulp beyond ten steps");
    }
    assert_eq!(ts(0.1, -0.7, 0.0).len(), 8); // -0.7 + 7 * 0.1 misses 0 by an ulp of 0.7
}

#[test]
fn backward_is_the_mirror_of_forward() {
    let forward = Ode::new(pulse).rtol(1e-8).atol(1e-10).solve(0.0, 10.0, [1.0, 0.5]).unwrap();
    let mirror = Ode::new(|t: f64, y: &[f64; 2]| pulse(-t, y).map(|x| -x)).rtol(1e-8).atol(1e-10);
    let backward = mirror.solve(0.0, -10.0, [1.0, 0.5]).unwrap();
    assert_eq!((forward.y1, forward.stats), (backward.y1, backward.stats));
    assert!(forward.step_times.iter().zip(&backward.step_times).all(|(a, b)| *a == -b));
    let back = Ode::new(pulse).rtol(1e-10).atol(1e-12).solve(10.0, 0.0, forward.y1).unwrap();
    assert!((back.y1[0] - 1.0).abs() + (back.y1[1] - 0.5).abs() < 1e-5, "{:?}", back.y1);
}

#[test]
fn dt0_is_a_magnitude_or_has_the_sign_of_the_interval() {
    let solve = |dt0: f64, t1: f64| Ode::new(|_t, y: &f64| -y).dt0(dt0).solve(0.0, t1, 1.0);
    assert_eq!(solve(0.1, -1.0).unwrap().y1, solve(-0.1, -1.0).unwrap().y1);
    assert!((solve(0.1, -1.0).unwrap().step_times[1] + 0.1).abs() < 1e-15);
    for dt0 in [-0.1, 0.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(solve(dt0, 1.0), Err(SolveError::Config(ConfigError::FirstStep { .. }))), "{dt0}");
    }
    let message = |span| ConfigError::FirstStep { dt0: -0.1, span }.to_string();
    assert!(message(2.0).ends_with("needs t1 < t0 (t1 - t0 = 2e0)"), "{}", message(2.0));
    assert!(message(f64::NAN).ends_with("needs t1 < t0"), "{}", message(f64::NAN));
}

#[test]
fn an_empty_interval_returns_y0_without_a_call() {
    let controllers: [Controller; 3] = [
        PidController::default().into(),
        ConstantStepSize { dt0: 0.1 }.into(),
        StepTo { ts: vec![2.0] }.into(),
    ];
    for controller in controllers {
        let ode = Ode::new(|_t, _y: &f64| -> f64 { panic!("called") }).controller(controller);
        let solution = ode.solve(2.0, 2.0, 7.0).unwrap();
        assert_eq!(
            (solution.y1, solution.step_times, solution.outcome),
            (7.0, vec![2.0], Outcome::Completed)
        );
        assert_eq!((solution.stats.num_steps, solution.stats.num_fn_evals), (0, 0));
    }
}

#[test]
fn step_to_takes_the_given_times_and_repeats_an_adaptive_solve() {
    for (t0, t1) in [(0.0, 10.0), (10.0, 0.0)] {
        let adaptive = Ode::new(pulse).solve(t0, t1, [1.0, 0.5]).unwrap();
        let listed = Ode::new(pulse).controller(StepTo { ts: adaptive.step_times.clone() });
        let listed = listed.solve(t0, t1, [1.0, 0.5]).unwrap();
        assert_eq!((&listed.step_times, listed.y1), (&adaptive.step_times, adaptive.y1));
        assert_eq!(listed.stats.num_fn_evals, 6 * adaptive.stats.num_accepted);
    }
}

#[test]
fn max_steps_stops_where_it_is() {
    let ode = Ode::new(pulse).max_steps(7);
    let solution = ode.solve(0.0, 10.0, [1.0, 0.5]).unwrap_err().into_partial().unwrap();
    assert_eq!(solution.outcome, Outcome::MaxSteps { t: solution.t1, step: 7 });
    assert!(solution.t1 > 0.0 && solution.t1 < 10.0 && Some(&solution.t1) == solution.step_times.last());
    let enough = Ode::new(pulse).method(Method::Rk4).dt0(1.0).max_steps(10);
    assert_eq!(enough.solve(0.0, 10.0, [1.0, 0.5]).unwrap().outcome, Outcome::Completed);
    let none = Ode::new(pulse).max_steps(0).solve(0.0, 10.0, [1.0, 0.5]).unwrap_err();
    assert_eq!(none.to_string(), "max_steps=0: must be at least 1");
}

#[test]
fn single_precision_does_not_stall_in_time() {
    let ode = Ode::new(|_t, y: &[f32; 1]| [-y[0]]).dt0(1e-3).method(Method::Rk4);
    let solution = ode.solve(1e6, 1e6 + 1.0, [1.0]).unwrap();
    assert_eq!((solution.stats.num_steps, solution.outcome), (1000, Outcome::Completed));
    assert!((solution.y1[0] - (-1.0_f32).exp()).abs() < 1e-5);
    let adaptive = Ode::new(|_t, y: &[f32; 1]| [-1000.0 * y[0]]).solve(1e6, 1e6 + 0.01, [1.0]).unwrap();
    assert_eq!(adaptive.outcome, Outcome::Completed);
    assert!((adaptive.y1[0] - (-10.0_f32).exp()).abs() < 1e-5);
}
