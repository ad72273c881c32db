//! `AutoTsit5Rodas5P` costs little more than the better one of its two methods, and explicit methods warn where Rodas5P
//! is much cheaper and not where it is dearer. Cost is the number of evaluations of the vector field, those for
//! Jacobians by differences included.
//!
//! `FLOWLINE_CASES=n` draws n cases; `cargo bench --bench stiff -- switching` measures times. We excluded one kind: weakly damped oscillations that start
//! far above the tolerance, in an interval long enough to damp them. Tsit5 keeps them alive and is not left.

use super::draw::{Draw, num_cases};
use super::switching_cases::{Case, Field, KINDS, Kind, case};
use crate::ode::{Method, Ode, Solution};

impl Case {
    fn solve(&self, method: Method) -> Solution<Vec<f64>> {
        let ode = Ode::in_place(|t, y: &[f64], dy: &mut [f64]| (self.field)(t, y, dy));
        let ode = ode.method(method).rtol(self.tol).atol(self.atol * self.tol).max_steps(10_000_000);
        ode.solve(0.0, self.t1, self.y0.clone()).unwrap()
    }
}

/// The evaluations that a solve may take until its first test: 25 steps of Tsit5.
const FIRST: f64 = 150.0;

/// What the cases of [`KINDS`] showed.
#[derive(Default)]
struct Tally {
    /// Cases that cost more than 1.5 times the better method, and the largest ratio.
    above: usize,
    worst: f64,
    /// Cases in which Rodas5P takes a tenth of the cost, and those without a warning.
    stiff: usize,
    silent: usize,
    /// Cases in which Tsit5 is cheaper, and those with a warning.
    mild: usize,
    wrong: usize,
}

impl Tally {
    /// Solves a case by all three methods; returns a line about it if it is noted.
    fn add(&mut self, case: &Case) -> Option<String> {
        let all = [Method::Tsit5, Method::Rodas5P, Method::AutoTsit5Rodas5P].map(|method| case.solve(method));
        let [explicit, rodas5p, auto] = all.each_ref().map(|solution| solution.stats.num_fn_evals as f64);
        let (ratio, part) = (auto / (explicit.min(rodas5p) + FIRST), rodas5p / explicit);
        let warns = !all[0].warnings.is_empty();
        // A shorter solve ends soon after its first test, which is at step 250.
        let (is_stiff, is_mild) = (part < 0.1 && explicit > 6.0 * 300.0, part > 1.0);
        self.above += usize::from(ratio > 1.5);
        self.worst = self.worst.max(ratio);
        self.stiff += usize::from(is_stiff);
        self.mild += usize::from(is_mild);
        self.silent += usize::from(is_stiff && !warns);
        self.wrong += usize::from(is_mild && warns);
        let note = [
            (ratio > 1.5, " dear"),
            (is_stiff && !warns, " without a warning"),
            (is_mild && warns, " with a wrong warning"),
        ];
        let note: String = note.into_iter().filter(|(is, _)| *is).map(|(_, note)| note).collect();
        let Case { kind, name, t1, tol, .. } = case;
        let line = format!(
            "{kind:?} {name} to {t1:.1} at {tol:.0e}: Tsit5 {explicit}, Rodas5P {rodas5p}, auto {auto}, {ratio:.2};{note}"
        );
        (!note.is_empty()).then_some(line)
    }
}

#[test]
fn switching_costs_little_more_than_the_better_method() {
    let (mut draw, mut tally, mut noted) = (Draw(1), Tally::default(), Vec::new());
    let (mut tols, mut starts, mut undamped) = ((1.0_f64, 0.0_f64), [0, 0], 0);
    let n = num_cases(203);
    for i in 0..n {
        let case = case(KINDS[i % KINDS.len()], &mut draw);
        tols = (tols.0.min(case.tol), tols.1.max(case.tol));
        starts[usize::from(case.y0[0] == 0.0)] += 1;
        undamped += usize::from(case.kind == Kind::OnSlow && case.name.starts_with("-0.0e0"));
        noted.extend(tally.add(&case));
    }
    let Tally { above, worst, stiff, silent, mild, wrong } = tally;
    assert!(
        tols.0 < 1e-9 && tols.1 > 5e-4 && starts.iter().all(|&n| n > 20) && undamped > 2,
        "{tols:?} {starts:?}"
    );
    assert!(stiff > 50 && mild > 50, "{stiff} {mild}");
    assert!(above * 20 <= n && worst < 4.0, "{above} of {n} above 1.5, worst {worst}: {noted:#?}");
    assert!(
        silent == 0 && wrong == 0,
        "{silent} of {stiff} stiff cases are silent, {wrong} of {mild} warn: {noted:#?}"
    );
}

/// Eigenvalues -1 +- w i, from the slow solution to t = 10.
fn weakly_damped(w: f64, tol: f64) -> Case {
    let field = move |t: f64, y: &[f64], dy: &mut [f64]| {
        let (p, q) = (y[0] - t.sin(), y[1] - t.cos());
        (dy[0], dy[1]) = (-p + q * w + t.cos(), -w * p - q - t.sin());
    };
    let name = format!("-1 +- {w} i");
    Case { kind: Kind::OnSlow, name, field: Box::new(field), y0: vec![0.0, 1.0], t1: 10.0, tol, atol: 1.0 }
}

#[test]
fn weak_damping_is_noticed_before_errors_grow() {
    for (w, tol) in [(1e3, 1e-3), (1e4, 1e-3), (1e4, 1e-4), (1e4, 1e-6)] {
        let case = weakly_damped(w, tol);
        let auto = case.solve(Method::AutoTsit5Rodas5P);
        let off = (auto.y1[0] - 10.0_f64.sin()).hypot(auto.y1[1] - 10.0_f64.cos());
        assert!(auto.stats.num_steps < 100 && off < 10.0 * tol, "{w} {tol}: {} off {off:e}", auto.stats);
        assert!(!case.solve(Method::Tsit5).warnings.is_empty(), "{w} {tol}");
    }
}

#[test]
fn strong_damping_is_noticed_at_tight_tolerances() {
    for (rate, tol) in [(1e2, 1e-6), (1e2, 1e-8), (1e2, 1e-10), (1e3, 1e-7), (1e3, 1e-8), (1e3, 1e-10)] {
        let field = move |t: f64, y: &[f64], dy: &mut [f64]| dy[0] = -rate * (y[0] - t.sin()) + t.cos();
        let (field, name): (Field, _) = (Box::new(field), format!("-{rate}"));
        let case = Case { kind: Kind::Real, name, field, y0: vec![0.0], t1: 10.0, tol, atol: 1.0 };
        let [auto, rodas5p] = [Method::AutoTsit5Rodas5P, Method::Rodas5P].map(|m| case.solve(m).stats);
        assert!(auto.num_steps < rodas5p.num_steps + 40, "{rate} {tol}: {auto} {rodas5p}");
    }
}
