//! Derivatives of solves with events, doses and moved times against closed forms, and what has no derivative.
//!
//! Ranges: bounces of a ball with restitution 0.3 to 0.9 up to the end by accumulation; boluses and infusions with
//! lags, in both directions of time; 10 directions in two passes.

use super::draw::{Draw, num_cases};
use crate::ode::*;
use crate::vector_field;

vector_field! {
    struct Ball<R> { restitution: R, gravity: R }
    fn eval(&self, _t, y: &[R; 2]) -> [R; 2] { [y[1], -self.gravity] }
    fn height(&self, _t, y: &[R; 2]) -> R { y[0] }
    fn bounce(&self, _t, y: &[R; 2]) -> [R; 2] { [y[0], -self.restitution * y[1]] }
}

fn is_near(got: f64, want: f64, tolerance: f64) -> bool {
    (got - want).abs() <= tolerance * (1.0 + want.abs())
}

#[test]
fn the_nth_bounce_of_a_ball_up_to_the_end_by_accumulation() {
    let mut draw = Draw(47);
    for _ in 0..num_cases(20) {
        let (r, g, h) = (draw.uniform(0.3, 0.9), draw.uniform(1.0, 20.0), draw.uniform(0.1, 5.0));
        let ball = Ode::from_generic(Ball { restitution: r, gravity: g }).rtol(1e-10).allow_incomplete();
        let ball = ball.on_field_event(Event::falling(), Ball::height, Ball::bounce);
        let s = ball.forward_sensitivity().solve(0.0, 1e3, [h, 0.0]).unwrap();
        assert!(matches!(s.outcome, Outcome::Zeno { .. }) && s.events.len() > 8, "{s}");
        let first = (2.0 * h / g).sqrt();
        let (mut sum, mut slope) = (0.0, 0.0);
        for (n, event) in s.events.iter().enumerate() {
            let n = n as i32;
            if n > 0 {
                (sum, slope) = (sum + 2.0 * r.powi(n), slope + 2.0 * f64::from(n) * r.powi(n - 1));
            }
            let t = first * (1.0 + sum);
            // The error of the time is rounding divided by the speed, which is about r^n of the first.
            let tolerance = 1e-11 / r.powi(n);
            let speed = -g * first * r.powi(n);
            let dt = [event.dt_dp.restitution, event.dt_dp.gravity, event.dt_dy0[0]];
            let want = [first * slope, -0.5 * t / g, 0.5 * t / h];
            assert!(is_near(event.t, t, tolerance) && is_near(event.y[1], speed, tolerance), "{n} {event:?}");
            for (got, want) in dt.into_iter().zip(want) {
                assert!(is_near(got, want, tolerance), "bounce {n}, r {r}: {dt:?} for {want:?}");
            }
            let by_r = f64::from(n) * speed / r;
            assert!(is_near(event.dy_dp.restitution[1], by_r, tolerance), "bounce {n}: {event:?} for {by_r}");
            assert!(event.dy_dp.restitution[0].abs() < tolerance, "the height at a bounce is 0");
        }
    }
}

vector_field! {
    /// One compartment with a bolus and an infusion, whose rate is the second component.
    struct Tank<R> { rate: R, lag: R, length: R, unread: R }
    fn eval(&self, _t, y: &[R; 2]) -> [R; 2] { [y[1] - self.rate * y[0], y[1] * 0.0] }
    fn dose(&self, _t, y: &[R; 2], amount) -> [R; 2] { [y[0] + amount, y[1]] }
    fn switch(&self, _t, y: &[R; 2], to) -> [R; 2] { [y[0], y[1] * 0.0 + to] }
    fn late(&self, t) -> R { t + self.lag }
    fn stop(&self, t) -> R { t + self.lag + self.length }
}

#[test]
fn a_lagged_bolus_and_an_infusion_that_is_switched_twice() {
    let mut draw = Draw(53);
    for _ in 0..num_cases(40) {
        let sign = if draw.coin() { 1.0 } else { -1.0 };
        let [k, lag, length] =
            [sign * draw.uniform(0.2, 2.0), sign * draw.uniform(0.0, 0.5), sign * draw.uniform(0.1, 1.0)];
        let (amount, speed) = (draw.uniform(1.0, 5.0), draw.uniform(-3.0, 3.0));
        let tank = Ode::from_generic(Tank { rate: k, lag, length, unread: 7.0 }).rtol(1e-11).atol(1e-12);
        let tank = tank
            .on_field_times(Times::at(&[(sign * 0.3, amount)]).moved_to(Tank::late), Tank::dose)
            .on_field_times(Times::at(&[(sign * 0.5, speed)]).moved_to(Tank::late), Tank::switch)
            .on_field_times(Times::at(&[(sign * 0.5, 0.0)]).moved_to(Tank::stop), Tank::switch);
        let t1 = sign * 3.0;
        let s = tank.forward_sensitivity().solve(0.0, t1, [0.0; 2]).unwrap();
        let left = |from: f64| (-k * (t1 - from - lag)).exp();
        let [bolus, on, off] = [left(sign * 0.3), left(sign * 0.5), left(sign * 0.5 + length)];
        let y1 = amount * bolus + speed / k * (off - on);
        let past = |from: f64| t1 - from - lag;
        let by_rate = -amount * past(sign * 0.3) * bolus
            - speed / (k * k) * (off - on)
            - speed / k * (past(sign * 0.5 + length) * off - past(sign * 0.5) * on);
        let want = [y1, by_rate, k * y1, speed * off, 0.0];
        let by = &s.dy1_dp;
        let got = [s.y1[0], by.rate[0], by.lag[0], by.length[0], by.unread[0]];
        for (got, want) in got.iter().zip(want) {
            assert!(is_near(*got, want, 1e-8), "{got} for {want}");
        }
        assert_eq!((by.unread, s.dt1_dp.lag), ([0.0; 2], 0.0));
    }
}

vector_field! {
    struct Line<R> { speed: R, level: R, other: R }
    fn eval(&self, _t, y: &[R; 1]) -> [R; 1] { [self.speed + 0.0 * y[0]] }
    fn touch(&self, t, _y: &[R; 1]) -> R { (t - self.level).powi(3) }
    fn pass(&self, t, _y: &[R; 1]) -> R { t - self.level }
    fn flip(&self, _t, y: &[R; 1]) -> [R; 1] { [y[0] + self.other] }
    fn high(&self, _t, y: &[R; 1]) -> R { y[0] - 3.5 }
}

#[test]
fn a_grazing_event_has_no_derivative_and_leaves_the_values() {
    let line = || Ode::from_generic(Line { speed: 1.0, level: 1.0, other: 2.0 }).tstops(&[1.0]);
    let solves = [
        (line().field_event(Event::rising(), Line::touch), false),
        (line().on_field_event(Event::rising(), Line::touch, Line::flip), true),
        (line().field_event(Event::rising().terminal(), Line::touch), true),
    ];
    for (ode, is_lost) in solves {
        let plain = ode.clone().save_at(SaveAt::steps()).solve(0.0, 2.0, [0.0]).unwrap();
        let s = ode.save_at(SaveAt::steps()).forward_sensitivity().solve(0.0, 2.0, [0.0]).unwrap();
        assert_eq!((s.t1, s.y1, &s.ys), (plain.t1, plain.y1, &plain.ys));
        assert_eq!(s.events[0].t, 1.0);
        assert!(s.events[0].dt_dp.speed.is_nan() && s.events[0].dy_dp.level[0].is_nan());
        assert!(matches!(s.warnings[..], [Warning::Grazing { index: 0, t: 1.0 }]), "{:?}", s.warnings);
        assert_eq!(s.dy1_dp.speed[0].is_nan(), is_lost, "{s:?}");
    }
    // Beside another event that resets the state, one without a reset has no effect on what follows.
    let both = line().field_event(Event::rising(), Line::touch).on_field_event(
        Event::rising(),
        Line::pass,
        Line::flip,
    );
    let s = both.forward_sensitivity().solve(0.0, 2.0, [0.0]).unwrap();
    assert!(s.events[0].dt_dp.level.is_nan() && s.warnings.len() == 1);
    assert_eq!(s.events[1].dt_dp.level, 1.0);
    assert!(is_near(s.dy1_dp.speed[0], 2.0, 1e-12) && is_near(s.dy1_dp.other[0], 1.0, 1e-12), "{s:?}");
    // The warning names the event that grazes, and not a later one whose derivatives are NaN because of it.
    let after = line().on_field_event(Event::rising(), Line::touch, Line::flip);
    let after = after.field_event(Event::rising(), Line::high);
    let s = after.forward_sensitivity().solve(0.0, 2.0, [0.0]).unwrap();
    assert!(s.events.len() == 2 && s.events[1].dt_dp.other.is_nan(), "{s:?}");
    assert!(matches!(s.warnings[..], [Warning::Grazing { index: 0, t: 1.0 }]), "{:?}", s.warnings);
}

#[test]
fn a_terminal_event_beside_another_event_ends_at_its_own_time() {
    // Both events occur at t = 1. The first moves with `level`, the second with `end`.
    let line = || Ode::from_generic(Both { speed: 3.0, level: 1.0, end: 1.0 }).rtol(1e-9);
    let first =
        line().field_event(Event::rising().terminal(), Both::pass).field_event(Event::rising(), Both::clock);
    let last =
        line().field_event(Event::rising(), Both::clock).field_event(Event::rising().terminal(), Both::pass);
    for ode in [first, last] {
        let s = ode.tstops(&[1.0]).forward_sensitivity().solve(0.0, 2.0, [0.0]).unwrap();
        assert_eq!((s.t1, s.events.len(), s.dt1_dp.end), (1.0, 2, 0.0));
        assert!(is_near(s.dt1_dp.level, 1.0, 1e-12) && is_near(s.dy1_dp.level[0], 3.0, 1e-12), "{s:?}");
    }
    // A planned time at which the solve has ended does not move its end.
    let ode = line().field_event(Event::rising().terminal(), Both::pass);
    let ode = ode.field_discontinuities(Times::at(&[0.0]).moved_to(Both::late));
    let s = ode.forward_sensitivity().solve(0.0, 2.0, [0.0]).unwrap();
    assert!(s.t1 == 1.0 && is_near(s.dt1_dp.level, 1.0, 1e-12) && s.dt1_dp.end.abs() < 1e-12, "{s:?}");
}

#[test]
fn an_event_without_a_reset_changes_no_other_derivative() {
    // The observer occurs at the time of the event that acts, and moves much faster.
    let ode = || Ode::from_generic(Many { p: [1.0, 0.4, 2.0, 0.1, 0.5, 0.3, 0.2, 0.7] }).rtol(1e-3);
    let acting = |ode: Ode<'static, [f64; 2], Many>| {
        ode.on_field_event(Event::rising(), Many::clock, Many::kick).tstops(&[0.2]).save_at(SaveAt::steps())
    };
    let alone = acting(ode()).forward_sensitivity().solve(0.0, 2.0, [1.0, 0.0]).unwrap();
    for ode in [
        acting(ode().field_event(Event::rising(), Many::odd)),
        acting(ode()).field_event(Event::rising(), Many::odd),
    ] {
        let s = ode.forward_sensitivity().solve(0.0, 2.0, [1.0, 0.0]).unwrap();
        assert_eq!((s.events.len(), s.events[0].t, s.events[1].t), (2, 0.2, 0.2));
        let steepest = s.events.iter().map(|e| e.dt_dp.p[0].abs()).fold(0.0, f64::max);
        assert!(steepest > 1e3, "{s:?}");
        assert_eq!(
            (s.dy1_dp, s.dys_dp, s.dys_dy0),
            (alone.dy1_dp.clone(), alone.dys_dp.clone(), alone.dys_dy0.clone())
        );
    }
}

vector_field! {
    struct Both<R> { speed: R, level: R, end: R }
    fn eval(&self, _t, y: &[R; 1]) -> [R; 1] { [self.speed + 0.0 * y[0]] }
    fn pass(&self, t, _y: &[R; 1]) -> R { (t - self.level) * self.speed }
    fn clock(&self, t, _y: &[R; 1]) -> R { t - self.end }
    fn late(&self, t) -> R { t + self.end }
}

vector_field! {
    struct Many<R> { p: [R; 8] }
    fn eval(&self, t, y: &[R; 2]) -> [R; 2] {
        let [a, b, c, d, ..] = self.p;
        [a * y[1] + b * t.sin(), -c * y[0] - d * y[1]]
    }
    fn height(&self, _t, y: &[R; 2]) -> R { y[0] - 0.1 * self.p[4] }
    fn kick(&self, _t, y: &[R; 2]) -> [R; 2] { [y[0] + 0.1 * self.p[5], -0.9 * y[1]] }
    fn clock(&self, t, _y: &[R; 2]) -> R { t - self.p[6] }
    fn odd(&self, t, _y: &[R; 2]) -> R { 1e-4 * (t - self.p[6]) + self.p[0] - 1.0 }
    fn late(&self, t) -> R { t + self.p[6] }
    fn push(&self, _t, y: &[R; 2], x) -> [R; 2] { [y[0], y[1] + x * self.p[7]] }
}

#[test]
fn several_passes_equal_the_directions_one_by_one() {
    let ode = Ode::from_generic(Many { p: [1.0, 0.4, 2.0, 0.1, 0.5, 0.3, 0.2, 0.7] }).rtol(1e-7);
    let ode = ode.on_field_event(Event::falling(), Many::height, Many::kick);
    let ode = ode.on_field_times(Times::at(&[(0.5, 1.0), (1.5, -1.0)]).moved_to(Many::late), Many::push);
    let ode = ode.save_at(SaveAt::steps().and_ts(&[0.5, 0.7, 2.1]));
    let all = ode.clone().forward_sensitivity().observe([Many::height]).solve(0.0, 4.0, [1.0, 0.0]).unwrap();
    assert!(all.num_passes == 2 && all.events.len() > 1, "{all}");
    for i in 0..8 {
        let only = Many { p: std::array::from_fn(|j| j == i) };
        let s = ode.clone().forward_sensitivity().observe([Many::height]).with_respect_to(only);
        let s = s.solve(0.0, 4.0, [1.0, 0.0]).unwrap();
        assert_eq!((s.num_passes, s.sensitivity_matrix().1), (1, [s.ts.len(), 1, 1]));
        assert_eq!((s.dy1_dp.p[i], s.dt1_dp.p[i]), (all.dy1_dp.p[i], all.dt1_dp.p[i]), "parameter {i}");
        for k in 0..s.ts.len() {
            assert_eq!(
                (s.dys_dp[k].p[i], s.dobserved_dp[k].p[i]),
                (all.dys_dp[k].p[i], all.dobserved_dp[k].p[i])
            );
            assert_eq!(all.sensitivity_matrix().0[k * 10 + i], s.sensitivity_matrix().0[k]);
        }
        for (a, b) in s.events.iter().zip(&all.events) {
            assert_eq!((a.dt_dp.p[i], a.dy_dp.p[i]), (b.dt_dp.p[i], b.dy_dp.p[i]));
        }
        assert!(s.dy1_dp.p[(i + 1) % 8][0].is_nan() && s.dy1_dy0[0][0].is_nan());
    }
    let none = ode
        .forward_sensitivity()
        .with_respect_to(Many { p: [false; 8] })
        .solve(0.0, 4.0, [1.0, 0.0])
        .unwrap();
    assert_eq!((none.num_passes, none.y1), (0, all.y1));
}

#[test]
fn resets_that_fail_leave_the_derivatives_before_them() {
    // Of two doses at one time, the second fails.
    let tank = Ode::from_generic(Tank { rate: 1.0, lag: 0.0, length: 0.1, unread: 0.0 }).rtol(1e-10);
    let tank = tank.on_field_times(&[(0.25, 1.0), (0.5, 1.0), (0.5, f64::NAN), (0.75, 1.0)], Tank::dose);
    let error = tank.clone().forward_sensitivity().solve(0.0, 1.0, [1.0, 0.0]).unwrap_err();
    assert!(matches!(error, SolveError::AtTime { t: 0.5, .. }), "{error}");
    let s = error.into_partial().unwrap();
    let y1 = (-0.5_f64).exp() + (-0.25_f64).exp();
    let by_rate = -0.5 * (-0.5_f64).exp() - 0.25 * (-0.25_f64).exp();
    assert!(is_near(s.y1[0], y1, 1e-8) && is_near(s.dy1_dp.rate[0], by_rate, 1e-8), "{s:?}");
    let at_t0 = tank.on_field_times(&[(0.0, 1.0), (0.0, f64::NAN)], Tank::dose);
    let error = at_t0.forward_sensitivity().solve(0.0, 1.0, [1.0, 0.0]).unwrap_err();
    let s = error.into_partial().unwrap();
    assert_eq!((s.t1, s.y1, s.dy1_dy0), (0.0, [1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]));
}
