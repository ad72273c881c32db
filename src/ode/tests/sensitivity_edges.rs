//! Derivatives that do not exist: they are NaN in their directions, with a warning, and all others are right.
//!
//! Ranges: up to 4 events at drawn times, each a crossing, a graze (its function is a cube), or one whose derivative
//! by a parameter overflows, each with or without a reset; algebraic equations that no state satisfies, with a jump
//! of 0.01 to 100 tolerances at the start; doses whose time moves from t0 on, with a mass matrix.

use super::draw::{Draw, num_cases};
use crate::ode::*;
use crate::vector_field;

vector_field! {
    /// The value rises at a constant speed; `steep` is 0. An event grazes if its entry of `cubed` is 1; the derivative
    /// of its time by `steep` overflows if its entry of `huge` is not 0.
    struct Rise<R> { speed: R, factor: R, level: [R; 4], steep: R, cubed: [f64; 4], huge: [f64; 4] }
    fn eval(&self, _t, y: &[R; 1]) -> [R; 1] { [self.speed + 0.0 * y[0]] }
    fn first(&self, t, _y: &[R; 1]) -> R {
        let past = t - self.level[0];
        self.cubed[0] * past.powi(3) + (1.0 - self.cubed[0]) * past - self.huge[0] * (self.huge[0] * self.steep)
    }
    fn second(&self, t, _y: &[R; 1]) -> R {
        let past = t - self.level[1];
        self.cubed[1] * past.powi(3) + (1.0 - self.cubed[1]) * past - self.huge[1] * (self.huge[1] * self.steep)
    }
    fn third(&self, t, _y: &[R; 1]) -> R {
        let past = t - self.level[2];
        self.cubed[2] * past.powi(3) + (1.0 - self.cubed[2]) * past - self.huge[2] * (self.huge[2] * self.steep)
    }
    fn fourth(&self, t, _y: &[R; 1]) -> R {
        let past = t - self.level[3];
        self.cubed[3] * past.powi(3) + (1.0 - self.cubed[3]) * past - self.huge[3] * (self.huge[3] * self.steep)
    }
    fn grow(&self, _t, y: &[R; 1]) -> [R; 1] { [y[0] * self.factor] }
}

const GRAZES: usize = 1;
const OVERFLOWS: usize = 2;

/// The final value for these parameters: speed, factor, and the times of the events.
fn risen(p: [f64; 6], resets: &[bool], t1: f64) -> f64 {
    let (mut t, mut y) = (0.0, 0.5);
    for (level, resets) in p[2..].iter().zip(resets) {
        y += p[0] * (level - t);
        y *= if *resets { p[1] } else { 1.0 };
        t = *level;
    }
    y + p[0] * (t1 - t)
}

#[test]
fn events_without_a_derivative_are_named_and_lose_only_their_directions() {
    let (mut draw, mut seen) = (Draw(401), [0; 8]);
    for case in 0..num_cases(300) {
        let count = 1 + draw.below(4);
        let mut level: Vec<f64> = (0..count).map(|_| draw.uniform(0.05, 1.9)).collect();
        level.sort_by(f64::total_cmp);
        level.resize(4, 5.0);
        let level: [f64; 4] = level.try_into().unwrap();
        let kind: [usize; 4] = std::array::from_fn(|_| draw.below(3));
        let cubed = kind.map(|kind| if kind == GRAZES { 1.0 } else { 0.0 });
        let huge = kind.map(|kind| if kind == OVERFLOWS { 1e200 } else { 0.0 });
        let resets: [bool; 4] = std::array::from_fn(|_| draw.coin());
        let [speed, factor] = [draw.uniform(0.5, 2.0), draw.uniform(0.3, 1.5)];
        let field = Rise { speed, factor, level, steep: 0.0, cubed, huge };
        let mut ode = Ode::from_generic(field).tstops(&level[..count]).rtol(1e-8).atol(1e-10);
        for (i, when) in [Rise::first, Rise::second, Rise::third, Rise::fourth].into_iter().enumerate() {
            ode = match resets[i] {
                true => ode.on_field_event(Event::rising(), when, Rise::grow),
                false => ode.field_event(Event::rising(), when),
            };
        }
        let plain = ode.clone().solve(0.0, 2.0, [0.5]).unwrap();
        let s = ode.forward_sensitivity().solve(0.0, 2.0, [0.5]).unwrap();
        assert_eq!((s.y1, s.t1, s.events.len()), (plain.y1, plain.t1, count), "case {case}");
        // Once a reset acts at a time without a derivative, all of its directions are lost.
        let (mut is_lost, mut is_steep_lost, mut warned) = (false, false, vec![]);
        for (i, event) in s.events.iter().enumerate() {
            assert_eq!(event.index, i, "case {case}");
            let [grazes, overflows] = [kind[i] == GRAZES, kind[i] == OVERFLOWS];
            if grazes || (overflows && !is_lost && !is_steep_lost) {
                warned.push(i);
            }
            let own = event.dt_dp.level[i];
            if !is_lost {
                assert_eq!(own.is_nan(), grazes, "case {case}: {own}");
                assert!(grazes || (own - 1.0).abs() < 1e-12, "case {case}: {own}");
            }
            if !is_lost && !is_steep_lost {
                assert_eq!(event.dt_dp.steep.is_nan(), grazes || overflows, "case {case}");
            }
            is_lost |= resets[i] && grazes;
            is_steep_lost |= resets[i] && overflows;
        }
        let named = s.warnings.iter().map(|warning| match warning {
            Warning::Grazing { index, t } if *t == s.events[*index].t => *index,
            other => panic!("case {case}: {other}"),
        });
        assert_eq!(named.collect::<Vec<_>>(), warned, "case {case}");
        assert_eq!(s.dy1_dp.steep[0].is_nan(), is_lost || is_steep_lost, "case {case}");
        let by = &s.dy1_dp;
        let got = [by.speed, by.factor, by.level[0], by.level[1], by.level[2], by.level[3]].map(|by| by[0]);
        let p = [speed, factor, level[0], level[1], level[2], level[3]];
        for (i, got) in got.iter().enumerate().take(2 + count) {
            let at = |h: f64| {
                let mut p = p;
                p[i] += h;
                risen(p, &resets[..count], 2.0)
            };
            let want = (at(1e-6) - at(-1e-6)) / 2e-6;
            assert_eq!(got.is_nan(), is_lost, "case {case}, parameter {i}: {got}");
            assert!(is_lost || (got - want).abs() < 1e-7, "case {case}, parameter {i}: {got} for {want}");
        }
        let found =
            [is_lost, is_steep_lost, warned.is_empty(), warned.len() > 1, !warned.is_empty() && !is_lost];
        seen.iter_mut().zip(found).for_each(|(seen, found)| *seen += usize::from(found));
        seen[5 + kind[0]] += 1;
    }
    assert!(seen.iter().all(|&n| n > 5), "{seen:?}");
}

vector_field! {
    /// The residual of the second equation jumps by `2 gap` where it would be 0, so no state satisfies it.
    struct Gap<R> { rate: R, gap: f64 }
    fn eval(&self, _t, y: &[R; 2]) -> [R; 2] {
        let residual = y[1] - y[0];
        [-self.rate * y[1], residual + residual.select_positive(self.gap, -self.gap)]
    }
}

#[test]
fn a_start_that_satisfies_no_equation_has_no_derivatives() {
    let (mut draw, mut seen) = (Draw(402), [0; 2]);
    for case in 0..num_cases(100) {
        let tolerance = draw.decade(-8.0, -4.0);
        let gap = tolerance * draw.decade(-2.0, 2.0);
        let ode = Ode::from_generic(Gap { rate: draw.uniform(0.5, 2.0), gap }).method(Method::Rodas5P);
        let ode = ode.rtol(0.0).atol(tolerance).mass_matrix(Mass::diagonal([1.0, 0.0])).max_steps(200);
        let y = draw.uniform(0.5, 2.0);
        let y0 = [y, y + gap * draw.uniform(-1.0, 1.0)];
        let plain = match ode.clone().solve(0.0, 0.5, y0) {
            Ok(solution) => solution,
            Err(SolveError::Config(_)) => {
                ode.forward_sensitivity().solve(0.0, 0.5, y0).unwrap_err();
                seen[0] += 1;
                continue;
            }
            Err(error) => error.into_partial().unwrap(),
        };
        let s = match ode.forward_sensitivity().solve(0.0, 0.5, y0) {
            Ok(s) => s,
            Err(error) => error.into_partial().unwrap(),
        };
        assert_eq!((s.t1, s.y1, s.stats), (plain.t1, plain.y1, plain.stats), "case {case}");
        if !s.step_times.is_empty() && s.t1 > 0.0 {
            assert!(s.dy1_dp.rate.iter().all(|by| by.is_nan()), "case {case}: {s:?}");
            seen[1] += 1;
        }
    }
    assert!(seen.iter().all(|&n| n > 5), "{seen:?}");
}

vector_field! {
    struct Dosed<R> { rate: R, lag: R }
    fn eval(&self, _t, y: &[R; 2]) -> [R; 2] { [-self.rate * y[0], y[1] - 2.0 * y[0]] }
    fn late(&self, t) -> R { t + self.lag }
    fn dose(&self, _t, y: &[R; 2], x) -> [R; 2] { [y[0] + x, y[1]] }
}

#[test]
fn a_dose_that_moves_from_t0_on_has_no_derivative_with_a_mass_matrix() {
    let (mut draw, mut num_backward) = (Draw(403), 0);
    for case in 0..num_cases(50) {
        let (rate, lag, x) = (draw.uniform(0.5, 2.0), draw.uniform(0.0, 0.5), draw.uniform(0.2, 1.0));
        let sign = if draw.coin() { 1.0 } else { -1.0 };
        num_backward += usize::from(sign < 0.0);
        let ode = || {
            Ode::from_generic(Dosed { rate, lag })
                .method(Method::Rodas5P)
                .rtol(1e-9)
                .atol(1e-11)
                .on_field_times(Times::at(&[(0.0, x)]).moved_to(Dosed::late), Dosed::dose)
        };
        let t1 = lag + sign;
        let y1 = (1.0 + x) * (-rate * sign).exp();
        for is_dae in [false, true] {
            let ode = if is_dae { ode().mass_matrix(Mass::diagonal([1.0, 0.0])) } else { ode() };
            let s = ode.forward_sensitivity().solve(lag, t1, [1.0, 2.0]).unwrap();
            let name = format!("case {case}, is_dae={is_dae}");
            assert!((s.y1[0] - y1).abs() < 1e-7, "{name}: {s:?}");
            assert!((s.dy1_dp.rate[0] + sign * y1).abs() < 1e-6, "{name}: {s:?}");
            // Without a mass matrix the state before t0 is known, so the dose moves both ways.
            let by_lag = s.dy1_dp.lag[0];
            let want = x * rate * (-rate * sign).exp();
            assert!(if is_dae { by_lag.is_nan() } else { (by_lag - want).abs() < 1e-6 }, "{name}: {by_lag}");
        }
    }
    assert!(num_backward > 5);
}
