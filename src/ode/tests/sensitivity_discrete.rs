//! Derivatives of stiff solves on given step times, against central differences of the same discrete solve.
//!
//! The steps are long, so the error of a step is large and any other rule than that of the discrete solve is seen.
//! Where a dose or a jump of the field moves with a parameter, the step time there moves, too.
//!
//! Ranges: Rodas5P, Rosenbrock23, Rkc2, AutoTsit5Rodas5P and Vern7 on 5 to 15 steps of length 0.05 to 0.4, in both
//! directions of time; without a mass matrix, with a regular one, and with one algebraic equation; up to 2 doses at
//! fixed and at moved times, a jump at a moved time, an event with or without a reset or that ends the solve; saved
//! times inside steps.

use super::draw::{Draw, num_cases};
use crate::ode::*;
use crate::vector_field;

vector_field! {
    /// The field jumps by `gain` at the time `jump`, later by the lag. The initial state holds for the algebraic
    /// equation.
    struct Long<R> { rate: R, force: R, lag: R, begin: [R; 2], gain: R, jump: f64, sign: f64 }
    fn eval(&self, t, y: &[R; 3]) -> [R; 3] {
        let force = (t - (self.jump + self.lag)).select_positive(self.gain, 0.0);
        [
            y[1] - 0.2 * self.sign * y[0] * y[2],
            -2.0 * y[0] + (3.0 * t).sin() * self.force + force,
            -self.sign * self.rate * (y[2] - (0.5 * y[0]).cos() - self.force * t * t - force),
        ]
    }
    fn start(&self, t, _y: &[R; 3]) -> [R; 3] {
        let force = (t - (self.jump + self.lag)).select_positive(self.gain, 0.0);
        [self.begin[0], self.begin[1], (0.5 * self.begin[0]).cos() + self.force * t * t + force]
    }
    fn height(&self, t, y: &[R; 3]) -> R { y[0] - 0.3 * self.force + 0.05 * t }
    fn kick(&self, _t, y: &[R; 3]) -> [R; 3] { [y[0], -0.8 * y[1] + self.force, y[2] + 0.1] }
    fn push(&self, t, y: &[R; 3], x) -> [R; 3] { [y[0] + 0.2 * x, y[1] + x * self.force, y[2] + x * t] }
    fn late(&self, t) -> R { t + self.lag }
}

const METHODS: [Method; 5] =
    [Method::Rodas5P, Method::Rosenbrock23, Method::Rkc2, Method::AutoTsit5Rodas5P, Method::Vern7];

/// A problem on step times. The times of `moved`, before the lag, and of the field's jump are among them.
struct Case {
    method: Method,
    p: [f64; 6],
    jump: f64,
    grid: Vec<f64>,
    fixed: Vec<(f64, f64)>,
    moved: Vec<(f64, f64)>,
    /// 0: none, 1: without a reset, 2: with a reset, 3: with a reset, and the second ends the solve.
    event: usize,
    /// 0: none, 1: regular, 2: singular.
    mass: usize,
    saved: Vec<f64>,
}

impl Case {
    fn draw(draw: &mut Draw) -> Case {
        let method = draw.one(&METHODS);
        let sign = if draw.below(3) == 0 { -1.0 } else { 1.0 };
        let mut grid = vec![0.0];
        for _ in 0..5 + draw.below(11) {
            grid.push(grid[grid.len() - 1] + sign * draw.uniform(0.05, 0.4));
        }
        let t1 = grid[grid.len() - 1];
        let lag = draw.uniform(-0.02, 0.02);
        let pick = |draw: &mut Draw| grid[1 + draw.below(grid.len() - 2)];
        let list = |draw: &mut Draw| -> Vec<(f64, f64)> {
            (0..draw.below(3)).map(|_| (pick(draw), draw.uniform(-1.0, 1.0))).collect()
        };
        let (fixed, mut moved) = (list(draw), list(draw));
        let jump = draw.one(&grid[1..grid.len() - 1]);
        moved.retain(|(t, _)| fixed.iter().all(|(other, _)| other != t));
        let fixed: Vec<_> = fixed.into_iter().filter(|(t, _)| *t != jump).collect();
        let fast = if matches!(method, Method::Vern7 | Method::AutoTsit5Rodas5P) { 8.0 } else { 60.0 };
        let rate = if draw.below(3) == 0 { 1.0 } else { draw.uniform(5.0, fast) };
        let p = [rate, draw.uniform(0.2, 1.0), lag, draw.uniform(-1.0, 1.0), draw.uniform(-1.0, 1.0), 0.4];
        let mass = if matches!(method, Method::Rodas5P | Method::Rosenbrock23) { draw.below(3) } else { 0 };
        let mut saved: Vec<f64> = (0..3).map(|_| draw.uniform(0.0, 1.0) * t1).collect();
        // A value beside a dose or a jump has no central difference.
        saved.retain(|t| grid.iter().all(|at| (t - at).abs() > 1e-3 && (t - at - lag).abs() > 1e-3));
        saved.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let event = draw.below(4);
        Case { method, p, jump, grid, fixed, moved, event, mass, saved }
    }

    fn ode(&self, p: [f64; 6]) -> Ode<'static, [f64; 3], Long> {
        let sign = if self.grid[1] < 0.0 { -1.0 } else { 1.0 };
        let [rate, force, lag, first, second, gain] = p;
        let field = Long { rate, force, lag, begin: [first, second], gain, jump: self.jump, sign };
        let moves = |t: &f64| *t == self.jump || self.moved.iter().any(|(moved, _)| moved == t);
        let ts = self.grid.iter().map(|t| if moves(t) { t + lag } else { *t }).collect();
        let mut ode = Ode::from_generic(field).method(self.method).controller(StepTo { ts });
        ode = match self.event {
            0 => ode,
            1 => ode.field_event(Event::crossing(), Long::height),
            2 => ode.on_field_event(Event::crossing(), Long::height, Long::kick),
            _ => ode.on_field_event(Event::crossing().terminal_after(2), Long::height, Long::kick),
        };
        ode = match self.mass {
            0 => ode,
            1 => ode.mass_matrix(Mass::dense([[2.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.1, 0.0, 1.5]])),
            _ => ode.mass_matrix(Mass::diagonal([1.0, 1.0, 0.0])),
        };
        if self.method == Method::Rkc2 {
            ode = ode.spectral_radius(move |_t, _y| 80.0);
        }
        let ode = ode.on_field_times(&self.fixed, Long::push);
        let ode = ode.on_field_times(Times::at(&self.moved).moved_to(Long::late), Long::push);
        ode.field_discontinuities(Times::at(&[self.jump]).moved_to(Long::late)).save_at(&self.saved)
    }

    /// The values that are compared.
    fn values(&self, p: [f64; 6]) -> Vec<f64> {
        let ode = self.ode(p);
        let y0 = Long::start.eval(&ode.field, 0.0, &[0.0; 3], 0.0);
        let s = ode.solve(0.0, self.grid[self.grid.len() - 1], y0).unwrap();
        let events = s.events.iter().flat_map(|e| [&[e.t], &e.y[..]].concat());
        events.chain(s.ys.iter().flatten().copied()).chain(s.y1).chain([s.t1]).collect()
    }
}

fn number(of: &Long<f64>, direction: usize) -> f64 {
    [of.rate, of.force, of.lag, of.begin[0], of.begin[1], of.gain][direction]
}

fn state(of: &Long<[f64; 3]>, direction: usize) -> [f64; 3] {
    [of.rate, of.force, of.lag, of.begin[0], of.begin[1], of.gain][direction]
}

/// The largest difference of the derivatives from central differences, relative to the largest derivative. `None`
/// if events come or go.
fn off(case: &Case, s: &Sensitivity<Long, 3>, direction: usize) -> Option<f64> {
    let mut got = vec![];
    for event in &s.events {
        got.push(number(&event.dt_dp, direction));
        got.extend(state(&event.dy_dp, direction));
    }
    s.dys_dp.iter().for_each(|by| got.extend(state(by, direction)));
    got.extend(state(&s.dy1_dp, direction));
    got.push(number(&s.dt1_dp, direction));
    let mut best = vec![f64::INFINITY; got.len()];
    let mut size = 1.0_f64;
    for h in [1e-3, 2e-4, 4e-5, 8e-6] {
        let h = h * case.p[direction].abs().max(0.1);
        let at = |factor: f64| {
            let mut p = case.p;
            p[direction] += factor * h;
            case.values(p)
        };
        let [a, b, c, d] = [at(-2.0), at(-1.0), at(1.0), at(2.0)];
        if [&a, &b, &c, &d].iter().any(|values| values.len() != got.len()) {
            return None;
        }
        for (i, best) in best.iter_mut().enumerate() {
            let slope = (a[i] - 8.0 * b[i] + 8.0 * c[i] - d[i]) / (12.0 * h);
            size = size.max(slope.abs());
            *best = best.min((got[i] - slope).abs());
        }
    }
    let largest = best.iter().fold(0.0_f64, |max, off| if off.is_nan() { f64::NAN } else { max.max(*off) });
    Some(largest / size)
}

#[test]
fn long_steps_have_the_derivatives_of_the_discrete_solve() {
    let mut draw = Draw(61);
    let (mut seen, mut worst, mut failures) = ([0; 12], [0.0_f64; 5], vec![]);
    for number in 0..num_cases(120) {
        let case = Case::draw(&mut draw);
        let t1 = case.grid[case.grid.len() - 1];
        let s = case.ode(case.p).forward_sensitivity().solve(0.0, t1, Long::start);
        let s = s.unwrap_or_else(|error| panic!("case {number}: {error}"));
        let method = METHODS.iter().position(|method| *method == case.method).unwrap();
        for direction in [2, draw.below(6)] {
            match off(&case, &s, direction) {
                None => seen[11] += 1,
                Some(off) if off < 1e-8 => worst[method] = worst[method].max(off),
                Some(off) => failures.push((number, case.method, case.mass, direction, off)),
            }
        }
        seen[method] += 1;
        let found = [
            t1 < 0.0,
            case.mass == 1,
            case.mass == 2,
            !case.moved.is_empty(),
            !s.events.is_empty() && case.event > 1,
            matches!(s.outcome, Outcome::Event { .. }),
        ];
        seen[5..].iter_mut().zip(found).for_each(|(seen, found)| *seen += usize::from(found));
    }
    assert!(failures.is_empty(), "{failures:?}");
    assert!(seen[..11].iter().all(|&n| n > 2), "{seen:?}");
}
