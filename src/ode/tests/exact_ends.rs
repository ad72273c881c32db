//! Steps from t0 that end exactly at a stop or at t1 are not followed by a step of length 0.

use super::draw::{Draw, num_cases};
use crate::ode::{Method, Ode};

/// First steps of 2^-12 to 2^3, from t0 = 0, 1 or -2, in both directions, to t1 or to a stop; all methods.
#[test]
fn a_first_step_that_ends_exactly_at_a_stop_is_one_step() {
    let (mut draw, mut seen) = (Draw(21), [[0; 2]; 2]);
    for case in 0..num_cases(400) {
        let method = draw.one(&Method::ALL);
        let (t0, dt0) = (draw.one(&[0.0, 1.0, -2.0]), 2.0_f64.powi(draw.below(16) as i32 - 12));
        let dt = if draw.coin() { dt0 } else { -dt0 };
        let has_stop = draw.coin();
        seen[usize::from(t0 == 0.0)][usize::from(has_stop)] += 1;
        // So slow that no adaptive method shortens a step.
        let rate = 1e-3_f64.min(1e-9 / dt0);
        let ode = Ode::new(move |_t: f64, y: &f64| -rate * y).method(method).dt0(dt0);
        let ode = if method.tableau().b_err.is_some() { ode.dt_max(dt0) } else { ode };
        let (t1, ode) = if has_stop { (t0 + 2.0 * dt, ode.tstops(&[t0 + dt])) } else { (t0 + dt, ode) };
        let solution = ode.solve(t0, t1, 1.0).unwrap_or_else(|e| panic!("case {case}, {method}: {e}"));
        let steps = 1 + u64::from(has_stop);
        assert_eq!(solution.stats.num_steps, steps, "case {case}, {method}: {dt} from {t0} to {t1}");
    }
    assert!(seen.iter().flatten().all(|&n| n > 40), "{seen:?}");
}
