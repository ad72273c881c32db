//! The drawn problems, and their functions in complex numbers.

use crate::ode::tests::complex::Complex as C;
use crate::ode::tests::draw::Draw;
use crate::ode::*;
use crate::vector_field;
use std::array::from_fn;

vector_field! {
    /// The parameters a, b, c, d, zero (whose value is 0), lag, gain. The field jumps at the time `jump`, later by
    /// the lag if `moves` is 1. The alarms go off at the time `at`, later by the lag.
    pub(super) struct Mixed<R> { pub(super) p: [R; 7], pub(super) at: f64, pub(super) jump: f64, pub(super) moves: f64, pub(super) sign: f64 }
    fn eval(&self, t, y: &[R; 3]) -> [R; 3] {
        let [a, b, c, d, _, lag, gain] = self.p;
        let force = (t - (self.jump + self.moves * lag)).select_positive(gain, 0.0);
        [
            y[1] + 0.1 * a * (1.3 * t).cos(),
            -b * y[0] - 0.3 * self.sign * y[1] + c * t.sin() + force,
            0.3 * y[0] * y[0] - 0.5 * self.sign * d * y[2] + 0.2 * a * y[1],
        ]
    }
    fn height(&self, _t, y: &[R; 3]) -> R { y[0] - 0.2 * self.p[0] }
    fn speed(&self, t, y: &[R; 3]) -> R { y[1] + 0.1 * self.p[6] * t.sin() + 0.05 * self.p[1] }
    fn clock(&self, t, _y: &[R; 3]) -> R { (2.0 * t).sin() - 0.3 * self.p[2] }
    fn alarm(&self, t, y: &[R; 3]) -> R { t - (self.at + self.p[5]) + self.p[4] * y[0] }
    fn second_alarm(&self, t, y: &[R; 3]) -> R {
        (t - (self.at + self.p[5])) * (1.0 + y[0] * y[0]) - self.p[4] * y[1]
    }
    fn kick(&self, _t, y: &[R; 3]) -> [R; 3] { [y[0], -0.9 * y[1] + 0.1 * self.p[2], y[2]] }
    fn shove(&self, t, y: &[R; 3]) -> [R; 3] { [y[0] + 0.1 * self.p[0], y[1] * y[0], y[2] + 0.1 * t] }
    fn push(&self, t, y: &[R; 3], amount) -> [R; 3] {
        [y[0], y[1] + amount * self.p[1], y[2] + 0.1 * amount * t]
    }
    fn late(&self, t) -> R { t + self.p[5] }
    fn later(&self, t) -> R { t + self.p[5] * (1.0 + self.p[4]) }
    pub(super) fn observed(&self, t, y: &[R; 3]) -> R { y[0] * self.p[0] + t * y[2] }
}

/// The same functions in complex numbers. `at` is the time without its imaginary part, on its side of a jump.
impl Mixed<C> {
    pub fn rate(&self, (t, at): (C, f64), y: &[C; 3]) -> [C; 3] {
        let [a, b, c, d, _, lag, gain] = self.p;
        let force = if at - (self.jump + self.moves * lag.re) > 0.0 { gain } else { C::from(0.0) };
        [
            y[1] + a * (t * 1.3).cos() * 0.1,
            c * t.sin() + force - b * y[0] - y[1] * (0.3 * self.sign),
            y[0] * y[0] * 0.3 - d * y[2] * (0.5 * self.sign) + a * y[1] * 0.2,
        ]
    }
    pub fn when(&self, which: usize, t: C, y: &[C; 3]) -> C {
        let past = t - (self.p[5] + C::from(self.at));
        match which {
            0 => y[0] - self.p[0] * 0.2,
            1 => y[1] + self.p[6] * t.sin() * 0.1 + self.p[1] * 0.05,
            2 => (t * 2.0).sin() - self.p[2] * 0.3,
            3 => past + self.p[4] * y[0],
            _ => past * (C::from(1.0) + y[0] * y[0]) - self.p[4] * y[1],
        }
    }
    pub fn then(&self, which: usize, t: C, y: &[C; 3], x: f64) -> [C; 3] {
        match which {
            0 => *y,
            1 => [y[0], self.p[2] * 0.1 - y[1] * 0.9, y[2]],
            2 => [y[0] + self.p[0] * 0.1, y[1] * y[0], y[2] + t * 0.1],
            _ => [y[0], y[1] + self.p[1] * x, y[2] + t * (0.1 * x)],
        }
    }
    pub fn time(&self, which: usize, t: f64) -> C {
        match which {
            0 => C::from(t),
            1 => self.p[5] + C::from(t),
            _ => self.p[5] * (C::from(1.0) + self.p[4]) + C::from(t),
        }
    }
}

const WHEN: [NumberFn<Mixed, 3>; 5] =
    [Mixed::height, Mixed::speed, Mixed::clock, Mixed::alarm, Mixed::second_alarm];
const METHODS: [Method; 6] =
    [Method::Tsit5, Method::Dopri5, Method::Vern7, Method::Bosh3, Method::Dop853, Method::Rk4];

/// A list of times: the function that moves them, and whether they are doses or discontinuities.
pub(super) struct List {
    pub entries: Vec<(f64, f64)>,
    pub moved_by: usize,
    pub doses: bool,
}

/// A problem, and how to make its `Ode`.
pub(super) struct Case {
    pub field: Mixed,
    pub method: Method,
    rtol: f64,
    pub span: (f64, f64),
    pub y0: [f64; 3],
    /// The function and the reset of each event; reset 0 is none.
    pub events: Vec<(Event, usize, usize)>,
    lists: Vec<List>,
    stops: Vec<f64>,
    jumps: Vec<f64>,
    pub saved: Vec<f64>,
    /// Saves every n-th step; 0 for none.
    pub every: usize,
}

impl Case {
    pub fn draw(draw: &mut Draw) -> Case {
        let sign = if draw.below(3) == 0 { -1.0 } else { 1.0 };
        let t0 = draw.uniform(-1.0, 1.0);
        let t1 = t0 + sign * draw.uniform(0.5, 3.0);
        let lag = if draw.below(4) == 0 { 0.0 } else { draw.uniform(-0.3, 0.3) };
        let inside =
            |draw: &mut Draw| if draw.below(8) == 0 { t0 } else { draw.uniform(t0.min(t1), t0.max(t1)) };
        let (at, jump) = (inside(draw), inside(draw));
        let moves = if draw.coin() { 1.0 } else { 0.0 };
        let mut p: [f64; 7] = from_fn(|_| draw.uniform(-1.0, 1.0));
        (p[1], p[4], p[5]) = (draw.uniform(1.0, 9.0), 0.0, lag);
        let field = Mixed { p, at, jump, moves, sign };
        let is_jump_listed = draw.coin();
        let mut lists = vec![];
        for moved_by in [0, 1, 2, 0] {
            // Times at which other things happen: those of the alarms, of the jump, and of other doses.
            let mut times: Vec<f64> = (0..draw.below(3)).map(|_| inside(draw)).collect();
            if draw.below(3) == 0 {
                times.push(if moved_by == 0 { at + lag } else { at });
            }
            if draw.below(4) == 0 && is_jump_listed {
                times.push(if moved_by == 0 { jump + moves * lag } else { jump });
            }
            if draw.below(5) == 0 {
                times.push(t0);
            }
            let entries = times.into_iter().map(|t| (t, draw.uniform(-1.0, 1.0))).collect();
            lists.push(List { entries, moved_by, doses: true });
        }
        let mut jumps = vec![];
        if moves > 0.0 {
            lists.insert(draw.below(5), List { entries: vec![(jump, 0.0)], moved_by: 1, doses: false });
        } else if is_jump_listed {
            jumps.push(jump);
        }
        let events = (0..draw.below(6)).map(|_| {
            let event = draw.one(&[Event::crossing(), Event::rising(), Event::falling(), Event::crossing()]);
            let event = if draw.below(6) == 0 { event.terminal_after(1 + draw.below(3)) } else { event };
            (event, draw.one(&[0, 1, 2, 3, 3, 4, 4]), draw.below(3))
        });
        let events = events.collect();
        let stops = if draw.coin() { vec![at + lag] } else { vec![] };
        let (method, rtol) = (draw.one(&METHODS), draw.decade(-9.0, -3.0));
        let y0 = from_fn(|_| draw.uniform(-1.0, 1.0));
        let (saved, every) = (vec![], draw.below(4));
        let mut case =
            Case { field, method, rtol, span: (t0, t1), y0, events, lists, stops, jumps, saved, every };
        if !is_jump_listed && moves == 0.0 {
            // Nothing ends a step at the jump.
            case.field.p[6] = 0.0;
        }
        case.save_beside(draw);
        case
    }

    /// Saves times at events, at steps and beside them.
    fn save_beside(&mut self, draw: &mut Draw) {
        let (t0, t1) = self.span;
        let plain = self.ode().solve(t0, t1, self.y0).unwrap();
        let happened = plain.events.iter().map(|event| event.t).chain(plain.step_times.iter().copied());
        let all: Vec<f64> = happened.flat_map(|t| [t, t.next_up(), t.next_down()]).collect();
        self.saved = all.into_iter().filter(|_| draw.below(3) == 0).collect();
        self.saved.extend((0..draw.below(4)).map(|_| draw.uniform(t0.min(t1), t0.max(t1))));
        self.saved.retain(|t| t0.min(t1) <= *t && *t <= t0.max(t1));
        self.saved.sort_by(f64::total_cmp);
        self.saved.dedup();
        if t1 < t0 {
            self.saved.reverse();
        }
    }

    pub fn ode(&self) -> Ode<'static, [f64; 3], Mixed> {
        let mut ode = Ode::from_generic(self.field.clone()).method(self.method);
        ode = match self.method {
            Method::Rk4 => ode.dt0(0.05),
            _ => ode.rtol(self.rtol).atol(self.rtol),
        };
        for &(event, when, then) in &self.events {
            ode = match then {
                0 => ode.field_event(event, WHEN[when]),
                1 => ode.on_field_event(event, WHEN[when], Mixed::kick),
                _ => ode.on_field_event(event, WHEN[when], Mixed::shove),
            };
        }
        for List { entries, moved_by, doses } in &self.lists {
            let times = Times::at(entries);
            let times = match moved_by {
                0 => times,
                1 => times.moved_to(Mixed::late),
                _ => times.moved_to(Mixed::later),
            };
            ode = if *doses {
                ode.on_field_times(times, Mixed::push)
            } else {
                ode.field_discontinuities(times)
            };
        }
        let steps = if self.every > 0 { SaveAt::every_nth_step(self.every) } else { SaveAt::t1() };
        ode.tstops(&self.stops)
            .discontinuities(&self.jumps)
            .save_at(steps.and_ts(&self.saved))
            .allow_incomplete()
    }

    /// The planned times in the order of the solve: time, number, moved by, whether it is a dose.
    pub fn planned(&self) -> Vec<(f64, List)> {
        let ((t0, t1), lag) = (self.span, self.field.p[5]);
        let sign = (t1 - t0).signum();
        let mut all = vec![];
        for doses in [false, true] {
            for list in self.lists.iter().filter(|list| list.doses == doses) {
                for &(given, x) in &list.entries {
                    let t = if list.moved_by == 0 { given } else { given + lag };
                    let one = List { entries: vec![(given, x)], moved_by: list.moved_by, doses };
                    all.push((t, one));
                }
            }
        }
        all.retain(|(t, _)| t * sign >= t0 * sign && t * sign < t1 * sign);
        all.sort_by(|(a, _), (b, _)| (a * sign).total_cmp(&(b * sign)));
        all
    }

    /// The times beside which the field is evaluated.
    pub fn beside(&self, t: f64, after: bool) -> f64 {
        let lag = self.field.p[5];
        let moved = self.lists.iter().filter(|list| !list.doses).flat_map(|list| &list.entries);
        let is_jump = moved.map(|(t, _)| t + lag).chain(self.jumps.iter().copied()).any(|jump| jump == t);
        match (is_jump, after == (self.span.1 >= self.span.0)) {
            (false, _) => t,
            (true, true) => t.next_up(),
            (true, false) => t.next_down(),
        }
    }
}
