//! Forward sensitivities beside the plain solve: time and error.
//!
//! `cargo bench --bench sensitivities` prints two tables. The first is Robertson's problem to t = 40 by `Rodas5P`
//! with the derivatives with respect to its three rates, or also to y0. The second is a drug that is absorbed after a lag:
//! three components, four parameters, one dose, sixteen observations, by `Tsit5`. Times are medians of 41 samples of
//! 50 solves. Errors are the largest of all components, relative to the largest number of the component; the
//! reference is the same program at rtol 1e-13.

use flowline::ode::{Method, Ode, Sensitivity, Times};
use flowline::vector_field;
use std::hint::black_box;
use std::time::Instant;

vector_field! {
    struct Rober<R> { k: [R; 3] }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        let (a, b, c) = (self.k[0] * y[0], self.k[1] * y[1] * y[1], self.k[2] * y[1] * y[2]);
        [c - a, a - b - c, b]
    }
}

vector_field! {
    struct Absorbed<R> { absorption: R, clearance: R, volume: R, lag: R }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        let out = self.clearance / self.volume * y[1];
        [-self.absorption * y[0], self.absorption * y[0] - out, out]
    }
    fn concentration(&self, _t, y: &[R; 3]) -> R { y[1] / self.volume }
    fn dose(&self, _t, y: &[R; 3], amount) -> [R; 3] { [y[0] + amount, y[1], y[2]] }
    fn late(&self, t) -> R { t + self.lag }
}

/// The median time of a solve in microseconds.
fn median<T>(mut solve: impl FnMut() -> T) -> f64 {
    let mut sample = || {
        let start = Instant::now();
        (0..50).for_each(|_| drop(black_box(solve())));
        start.elapsed().as_secs_f64() / 50.0 * 1e6
    };
    let mut samples: Vec<f64> = (0..41).map(|_| sample()).collect();
    samples.sort_by(f64::total_cmp);
    samples[20]
}

/// The largest error relative to the largest number of a component.
fn error<const N: usize>(found: &[[f64; N]], exact: &[[f64; N]]) -> f64 {
    let mut worst = 0.0_f64;
    for i in 0..N {
        let most = exact.iter().fold(0.0_f64, |most, y| most.max(y[i].abs()));
        let each = found.iter().zip(exact).map(|(a, b)| (a[i] - b[i]).abs() / most);
        worst = each.fold(worst, f64::max);
    }
    worst
}

type Solve<G> = Ode<'static, [f64; 3], G>;

fn rober() {
    println!("Robertson, t = 40, Rodas5P: derivatives with respect to three rates\n");
    println!(
        "| rtol | steps | solve, us | 3 rates, us | ratio | 3 rates and y0, us | error of y | of dy/dk |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let (span, y0) = ((0.0, 40.0), [1.0, 0.0, 0.0]);
    let field = Rober { k: [0.04, 3e7, 1e4] };
    let at = |rtol: f64| -> Solve<Rober> {
        Ode::from_generic(field.clone()).method(Method::Rodas5P).rtol(rtol).atol(rtol * 1e-6)
    };
    let rates = || Rober { k: [true; 3] };
    let run = |rtol: f64| {
        at(rtol).forward_sensitivity().with_respect_to(rates()).solve(span.0, span.1, y0).unwrap()
    };
    let exact = run(1e-13);
    for rtol in [1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9] {
        let (ode, s): (_, Sensitivity<Rober, 3>) = (at(rtol), run(rtol));
        let plain = median(|| ode.solve(span.0, span.1, y0).unwrap());
        let some = ode.clone().forward_sensitivity().with_respect_to(rates());
        let some = median(|| some.solve(span.0, span.1, y0).unwrap());
        let all = ode.forward_sensitivity();
        let all = median(|| all.solve(span.0, span.1, y0).unwrap());
        let of_y = error(&[s.y1], &[exact.y1]);
        let of_k = (0..3).map(|j| error(&[s.dy1_dp.k[j]], &[exact.dy1_dp.k[j]])).fold(0.0, f64::max);
        let (steps, ratio) = (s.stats.num_accepted, some / plain);
        println!(
            "| {rtol:.0e} | {steps} | {plain:.1} | {some:.1} | {ratio:.2} | {all:.1} | {of_y:.1e} | {of_k:.1e} |"
        );
    }
}

fn absorbed() {
    println!(
        "\nA dose of 100 after a lag, 16 observations, Tsit5: derivatives with respect to four parameters\n"
    );
    println!(
        "| rtol | steps | solve, us | sensitivities, us | ratio | error of the concentrations | of their derivatives |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let field = Absorbed { absorption: 1.0, clearance: 5.0, volume: 30.0, lag: 0.2 };
    let ts: Vec<f64> = (1..=16).map(|i| 1.5 * f64::from(i)).collect();
    let at = |rtol: f64| -> Solve<Absorbed> {
        let dose = Times::at(&[(0.0, 100.0)]).moved_to(Absorbed::late);
        Ode::from_generic(field.clone())
            .rtol(rtol)
            .atol(1e-2 * rtol)
            .save_at(&ts)
            .on_field_times(dose, Absorbed::dose)
    };
    let all = || Absorbed { absorption: true, clearance: true, volume: true, lag: true };
    let fit = |ode: Solve<Absorbed>| {
        ode.forward_sensitivity().observe([Absorbed::concentration]).with_respect_to(all())
    };
    let run = |rtol: f64| fit(at(rtol)).solve(0.0, 24.0, [0.0; 3]).unwrap();
    let numbers = |s: &Sensitivity<Absorbed, 3>| {
        let by: Vec<[f64; 4]> =
            s.sensitivity_matrix().0.chunks(4).map(|row| row.try_into().unwrap()).collect();
        (s.observed.iter().map(|c| [*c]).collect::<Vec<_>>(), by)
    };
    let exact = numbers(&run(1e-13));
    for rtol in [1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8] {
        let (ode, s) = (at(rtol), run(rtol));
        let plain = median(|| ode.solve(0.0, 24.0, [0.0; 3]).unwrap());
        let of_all = fit(ode);
        let of_all = median(|| of_all.solve(0.0, 24.0, [0.0; 3]).unwrap());
        let found = numbers(&s);
        let (of_c, of_p) = (error(&found.0, &exact.0), error(&found.1, &exact.1));
        let (steps, ratio) = (s.stats.num_accepted, of_all / plain);
        println!(
            "| {rtol:.0e} | {steps} | {plain:.1} | {of_all:.1} | {ratio:.2} | {of_c:.1e} | {of_p:.1e} |"
        );
    }
}

fn main() {
    // `cargo test` compiles benches, and runs them with this argument.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    rober();
    absorbed();
}
