//! Derivatives of stiff solves against central differences of solves with rtol 1e-12.
//!
//! Ranges: a drawn problem with three components and one fast rate in `20..200`, by Rodas5P, Rosenbrock23, Rkc2 and
//! AutoTsit5Rodas5P (and forward and backward without the fast rate), with up to 2 doses at fixed times and 2 at
//! moved times, an event with or without a reset, a terminal event, saved times; ROBER as an ODE and as a DAE with
//! a dose, a moved dose and an event that resets the state.

use super::draw::{Draw, num_cases};
use crate::ode::*;
use crate::vector_field;

vector_field! {
    struct Fast<R> { rate: R, force: R, lag: R, level: R, sign: f64 }
    fn eval(&self, t, y: &[R; 3]) -> [R; 3] {
        [
            y[1] - 0.2 * self.sign * y[0],
            -2.0 * y[0] + self.force * t.sin() + 0.1 * y[2] * y[0],
            -self.sign * self.rate * (y[2] - (y[0] * 0.5).cos() - self.force * t),
        ]
    }
    fn height(&self, t, y: &[R; 3]) -> R { y[0] - self.level + 0.05 * t }
    fn kick(&self, _t, y: &[R; 3]) -> [R; 3] { [y[0], -0.8 * y[1] + self.force, y[2] + 0.1] }
    fn push(&self, t, y: &[R; 3], x) -> [R; 3] { [y[0], y[1] + x * self.level, y[2] + x * t] }
    fn late(&self, t) -> R { t + self.lag }
    fn stress(&self, _t, y: &[R; 3]) -> R { y[0] * y[2] + self.force }
}

/// The values that are compared.
fn values(s: &Solution<[f64; 3]>) -> Vec<f64> {
    let events = s.events.iter().flat_map(|e| [&[e.t], &e.y[..]].concat());
    events.chain(s.ys.iter().flatten().copied()).chain(s.y1).chain([s.t1]).collect()
}

/// The largest difference of derivatives from central differences `at(x + h) - at(x - h)`, relative to the size of
/// all of them, with the best of several h. `None` if events come or go.
fn off(at: impl Fn(f64) -> Solution<[f64; 3]>, x: f64, got: &[f64]) -> Option<f64> {
    let mut best = vec![f64::INFINITY; got.len()];
    let mut size = 1.0_f64;
    for h in [1e-3, 2e-4] {
        let h = h * x.abs().max(0.1);
        let (up, down) = (values(&at(x + h)), values(&at(x - h)));
        let (far_up, far_down) = (values(&at(x + 2.0 * h)), values(&at(x - 2.0 * h)));
        if [&up, &down, &far_up, &far_down].iter().any(|values| values.len() != got.len()) {
            return None;
        }
        for (i, best) in best.iter_mut().enumerate() {
            let near = (up[i] - down[i]) / (2.0 * h);
            let far = (far_up[i] - far_down[i]) / (4.0 * h);
            let slope = near + (near - far) / 3.0;
            size = size.max(slope.abs());
            *best = best.min((got[i] - slope).abs());
        }
    }
    Some(best.into_iter().fold(0.0, f64::max) / size)
}

struct Case {
    field: Fast,
    method: Method,
    span: (f64, f64),
    y0: [f64; 3],
    event: Option<(bool, bool)>,
    doses: [Vec<(f64, f64)>; 2],
    saved: Vec<f64>,
}

impl Case {
    fn draw(draw: &mut Draw) -> Case {
        let method = draw.one(&[
            Method::Rodas5P,
            Method::AutoTsit5Rodas5P,
            Method::Rodas5P,
            Method::AutoTsit5Rodas5P,
            Method::Rosenbrock23,
            Method::Rkc2,
        ]);
        let sign = if draw.below(3) == 0 { -1.0 } else { 1.0 };
        let t1 =
            sign * if method.tableau().order > 2 { draw.uniform(1.0, 3.0) } else { draw.uniform(0.3, 0.6) };
        let inside = |draw: &mut Draw| draw.uniform(0.05, 0.95) * t1;
        let field = Fast {
            rate: if draw.below(3) == 0 { 1.0 } else { draw.uniform(20.0, 200.0) },
            force: draw.uniform(-1.0, 1.0),
            lag: draw.uniform(0.01, 0.04) * t1,
            level: draw.uniform(-0.5, 0.5),
            sign,
        };
        let event = if draw.below(4) > 0 { Some((draw.coin(), draw.below(4) == 0)) } else { None };
        let mut list = |at_t0: bool| {
            let mut all: Vec<_> =
                (0..draw.below(3)).map(|_| (inside(draw), draw.uniform(-1.0, 1.0))).collect();
            if at_t0 && draw.below(3) == 0 {
                all.push((0.0, 0.5));
            }
            all
        };
        let doses = [list(true), list(true)];
        let mut saved: Vec<f64> = (0..2).map(|_| inside(draw)).collect();
        saved.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let y0 = std::array::from_fn(|_| draw.uniform(-1.0, 1.0));
        Case { field, method, span: (0.0, t1), y0, event, doses, saved }
    }

    fn ode(&self, field: Fast, method: Method, rtol: f64) -> Ode<'static, [f64; 3], Fast> {
        let mut ode = Ode::from_generic(field).method(method).rtol(rtol).atol(rtol).max_steps(1_000_000);
        if let Some((resets, ends)) = self.event {
            let event = if ends { Event::crossing().terminal_after(2) } else { Event::crossing() };
            ode = match resets {
                true => ode.on_field_event(event, Fast::height, Fast::kick),
                false => ode.field_event(event, Fast::height),
            };
        }
        let [fixed, moved] = &self.doses;
        let ode = ode.on_field_times(fixed, Fast::push);
        ode.on_field_times(Times::at(moved).moved_to(Fast::late), Fast::push).save_at(&self.saved)
    }

    /// The solution by central differences' method with another parameter or y0.
    fn near(&self, direction: usize, x: f64) -> Solution<[f64; 3]> {
        let (mut field, mut y0) = (self.field.clone(), self.y0);
        match direction {
            0 => field.rate = x,
            1 => field.force = x,
            2 => field.lag = x,
            3 => field.level = x,
            _ => y0[direction - 4] = x,
        }
        let (t0, t1) = self.span;
        self.ode(field, Method::Rodas5P, 1e-12).solve(t0, t1, y0).unwrap()
    }
}

/// The derivatives of [`values`].
fn derivatives(s: &Sensitivity<Fast, 3>, direction: usize) -> Vec<f64> {
    let state = |by_p: &Fast<[f64; 3]>, by_y0: &[[f64; 3]; 3]| match direction {
        0 => by_p.rate,
        1 => by_p.force,
        2 => by_p.lag,
        3 => by_p.level,
        _ => by_y0.map(|row| row[direction - 4]),
    };
    let number = |by_p: &Fast<f64>, by_y0: &[f64; 3]| match direction {
        0 => by_p.rate,
        1 => by_p.force,
        2 => by_p.lag,
        3 => by_p.level,
        _ => by_y0[direction - 4],
    };
    let mut all = vec![];
    for event in &s.events {
        all.push(number(&event.dt_dp, &event.dt_dy0));
        all.extend(state(&event.dy_dp, &event.dy_dy0));
    }
    for (by_p, by_y0) in s.dys_dp.iter().zip(&s.dys_dy0) {
        all.extend(state(by_p, by_y0));
    }
    all.extend(state(&s.dy1_dp, &s.dy1_dy0));
    all.push(number(&s.dt1_dp, &s.dt1_dy0));
    all
}

#[test]
fn drawn_stiff_solves_have_the_derivatives_of_central_differences() {
    let mut draw = Draw(59);
    let (mut seen, mut worst, mut failures) = ([0; 9], [0.0_f64; 2], vec![]);
    for number in 0..num_cases(10) {
        let case = Case::draw(&mut draw);
        let is_low = case.method.tableau().order <= 2;
        // The error of S itself by a method of order 2 is that of its tolerance.
        let (rtol, allowed) = if is_low { (1e-10, 1e-4) } else { (1e-11, 1e-6) };
        let ode = case.ode(case.field.clone(), case.method, rtol);
        let (t0, t1) = case.span;
        let s = ode.forward_sensitivity().observe([Fast::stress]).solve(t0, t1, case.y0).unwrap();
        let Fast { rate, force, lag, level, .. } = case.field;
        let x = [rate, force, lag, level, case.y0[0], case.y0[1], case.y0[2]];
        for direction in [draw.below(7), 2 + draw.below(2)] {
            let got = derivatives(&s, direction);
            match off(|x| case.near(direction, x), x[direction], &got) {
                None => seen[8] += 1,
                Some(off) => {
                    worst[usize::from(is_low)] = worst[usize::from(is_low)].max(off);
                    if off.is_nan() || off >= allowed {
                        failures.push((number, case.method, direction, off));
                    }
                }
            }
        }
        let found = [
            is_low,
            case.method == Method::AutoTsit5Rodas5P,
            case.method == Method::Rodas5P,
            t1 < 0.0,
            case.field.rate > 10.0,
            !s.events.is_empty(),
            case.event.is_some_and(|event| event.0) && !s.events.is_empty(),
            !case.doses[1].is_empty(),
        ];
        seen.iter_mut().zip(found).for_each(|(seen, found)| *seen += usize::from(found));
    }
    assert!(failures.is_empty(), "{failures:?}");
    assert!(seen[..8].iter().all(|&n| n > 0), "{seen:?}");
}

vector_field! {
    /// Robertson's problem. As a DAE the last equation is the sum of all components, which `total` gives.
    struct Robertson<R> { k: [R; 3], lag: R, amount: R, total: R, is_dae: bool }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        let [slow, back, fast] = [self.k[0] * y[0], self.k[1] * y[1] * y[2], self.k[2] * y[1] * y[1]];
        let last = if self.is_dae { y[0] + y[1] + y[2] - self.total } else { fast };
        [back - slow, slow - back - fast, last]
    }
    fn start(&self, _t, _y: &[R; 3]) -> [R; 3] { [self.total - 0.1, 0.0 * self.total, 0.1 + 0.0 * self.total] }
    fn low(&self, _t, y: &[R; 3]) -> R { y[0] - 0.89 * self.total }
    fn refill(&self, _t, y: &[R; 3]) -> [R; 3] { [y[0] + 0.05 * self.total, y[1], y[2]] }
    fn dose(&self, _t, y: &[R; 3], x) -> [R; 3] { [y[0] + self.amount * x, y[1], y[2]] }
    fn late(&self, t) -> R { t + self.lag }
}

fn robertson(p: [f64; 6], is_dae: bool, method: Method) -> Ode<'static, [f64; 3], Robertson> {
    let field = Robertson { k: [p[0], p[1], p[2]], lag: p[3], amount: p[4], total: p[5], is_dae };
    let ode = Ode::from_generic(field).method(method).rtol(1e-11).atol(1e-15);
    let ode = ode.on_field_event(Event::falling(), Robertson::low, Robertson::refill);
    let ode = ode.on_field_times(&[(0.0, 0.5), (2.0, 1.0)], Robertson::dose);
    let ode =
        ode.on_field_times(Times::at(&[(3.0, -1.0), (4.0, 1.0)]).moved_to(Robertson::late), Robertson::dose);
    let ode = ode.save_at([1.0, 2.0, 3.0, 3.7]);
    if is_dae { ode.mass_matrix(Mass::diagonal([1.0, 1.0, 0.0])) } else { ode }
}

#[test]
fn robertson_with_doses_and_resets_as_an_ode_and_as_a_dae() {
    let p = [0.04, 1e4, 3e7, 0.3, 0.02, 1.0];
    for (is_dae, method) in
        [(false, Method::Rodas5P), (true, Method::Rodas5P), (false, Method::AutoTsit5Rodas5P)]
    {
        let s = robertson(p, is_dae, method).forward_sensitivity().solve(0.0, 5.0, Robertson::start).unwrap();
        assert!(!s.events.is_empty(), "{s}");
        for direction in 0..6 {
            let number =
                |of: &Robertson<f64>| [of.k[0], of.k[1], of.k[2], of.lag, of.amount, of.total][direction];
            let state = |of: &Robertson<[f64; 3]>| {
                [of.k[0], of.k[1], of.k[2], of.lag, of.amount, of.total][direction]
            };
            let mut got = vec![];
            for event in &s.events {
                got.push(number(&event.dt_dp));
                got.extend(state(&event.dy_dp));
            }
            s.dys_dp.iter().for_each(|by| got.extend(state(by)));
            got.extend(state(&s.dy1_dp));
            got.push(number(&s.dt1_dp));
            // Relative derivatives, because the parameters differ by nine orders of magnitude.
            let got: Vec<f64> = got.iter().map(|got| got * p[direction]).collect();
            let at = |x: f64| {
                let mut p = p;
                p[direction] *= x;
                let ode = robertson(p, is_dae, Method::Rodas5P);
                let y0 = [p[5] - 0.1, 0.0, 0.1];
                ode.solve(0.0, 5.0, y0).unwrap()
            };
            let off = off(at, 1.0, &got).expect("no event comes or goes");
            assert!(off < 1e-6, "{is_dae} {method}, direction {direction}: {off:e}");
        }
    }
}

vector_field! {
    struct Pair<R> { first: R, second: R, rate: R }
    fn eval(&self, _t, y: &[R; 2]) -> [R; 2] { [-self.rate * y[0], y[1] - 2.0 * y[0]] }
    fn by_first(&self, t) -> R { t + self.first }
    fn by_second(&self, t) -> R { t + self.second }
    fn dose(&self, _t, y: &[R; 2], x) -> [R; 2] { [y[0] + x, y[1]] }
}

#[test]
fn two_times_that_part_are_unknown_with_a_mass_matrix_only_in_their_directions() {
    let ode =
        Ode::from_generic(Pair { first: 0.25, second: 0.25, rate: 1.0 }).method(Method::Rodas5P).rtol(1e-9);
    let ode = ode.mass_matrix(Mass::diagonal([1.0, 0.0]));
    let ode = ode.on_field_times(Times::at(&[(0.25, 1.0)]).moved_to(Pair::by_first), Pair::dose);
    let s = ode.clone().forward_sensitivity().solve(0.0, 1.0, [1.0, 2.0]).unwrap();
    let after = (-0.5_f64).exp();
    let close = |got: [f64; 2], want: f64| (got[0] - want).abs() < 1e-7 && (got[1] - 2.0 * want).abs() < 1e-7;
    assert!(close(s.y1, (-1.0_f64).exp() + after) && close(s.dy1_dp.first, after), "{s:?}");
    assert!(close(s.dy1_dp.rate, -(-1.0_f64).exp() - 0.5 * after), "{s:?}");
    let ode = ode.on_field_times(Times::at(&[(0.25, 1.0)]).moved_to(Pair::by_second), Pair::dose);
    let s = ode.forward_sensitivity().solve(0.0, 1.0, [1.0, 2.0]).unwrap();
    assert!(s.dy1_dp.first[0].is_nan() && s.dy1_dp.second[0].is_nan());
    assert!(close(s.dy1_dp.rate, -(-1.0_f64).exp() - after), "{s:?}");
}

vector_field! {
    /// The algebraic variable jumps by `gain` at the time `lag`.
    struct Jump<R> { lag: R, gain: R }
    fn eval(&self, t, y: &[R; 2]) -> [R; 2] {
        [-y[1], y[1] - y[0] - (t - self.lag).select_positive(self.gain, 0.0)]
    }
    fn late(&self, t) -> R { t + self.lag }
}

#[test]
fn an_algebraic_variable_jumps_at_a_moved_time() {
    for (method, allowed) in [(Method::Rodas5P, 1e-7), (Method::Rosenbrock23, 1e-4)] {
        let ode = Ode::from_generic(Jump { lag: 0.4, gain: 0.7 }).method(method).rtol(1e-9).atol(1e-9);
        let ode = ode.mass_matrix(Mass::diagonal([1.0, 0.0])).save_at([0.2, 0.4, 0.9]);
        let ode = ode.field_discontinuities(Times::at(&[0.0]).moved_to(Jump::late));
        let s = ode.forward_sensitivity().solve(0.0, 1.0, [1.0, 1.0]).unwrap();
        // y0' = -y0 - gain after the lag
        let left = (0.4_f64 - 1.0).exp();
        let y1 = (-1.0_f64).exp() - 0.7 * (1.0 - left);
        let want = [[y1, y1 + 0.7], [0.7 * left, 0.7 * left], [left - 1.0, left]];
        for (got, want) in [s.y1, s.dy1_dp.lag, s.dy1_dp.gain].iter().zip(want) {
            let off = [got[0] - want[0], got[1] - want[1]].map(f64::abs);
            assert!(off[0] < allowed && off[1] < allowed, "{method}: {got:?} for {want:?}");
        }
        assert!(
            s.dys_dp[1].lag.iter().all(|by| by.abs() < allowed),
            "the value at the jump is before it: {s:?}"
        );
    }
}
