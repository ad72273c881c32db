//! Gradients through stiff solves on tensors: reverse mode by `Rodas5P`, beside the compiled forward solve of the same
//! program and beside the solve of a plain state.
//!
//! `cargo bench --bench stiff_gradients --features autodiff -- [--precision] [PROBLEM]` prints a row for each problem whose
//! name contains the word, with `--precision` one for each of seven tolerances. `--exact` prints the gradients at rtol
//! 1e-11 as JSON, for `benches/peers/py/stiff_gradients.py`, which measures diffrax. `--first` prints the time from the
//! start of `main` to the first gradient of the process, of the first problem whose name contains the word. `--fast-rate`
//! prints the errors of the gradient of a fast rate ([`fast_rate`]).
//!
//! The loss is the sum of squares of y1; its gradient is with respect to all parameters and y0. Times are medians of 15
//! samples. The errors of p dL/dp and of dL/dy0 are the largest differences from a solve at rtol 1e-11, relative to the
//! largest of these numbers. The first call traces, compiles and runs; another gradient has run before in the process.

#[path = "stiff_gradients/fast_rate.rs"]
mod fast_rate;

use flowline::adjoint::TensorSolution;
use flowline::nn::prelude::*;
use flowline::ode::Method;
use flowline::tensor::extra::num_elements;
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

const HIRES: [f64; 12] = [1.71, 0.43, 8.32, 0.0007, 8.75, 10.03, 0.035, 1.12, 1.745, 280.0, 0.69, 1.81];

vector_field! {
    struct Hires<R> { k: [R; 12] }
    fn eval(&self, _t, y: &[R; 8]) -> [R; 8] {
        let k = &self.k;
        let fast = k[9] * y[5] * y[7];
        [
            k[1] * y[1] - k[0] * y[0] + k[2] * y[2] + k[3],
            k[0] * y[0] - k[4] * y[1],
            k[1] * y[3] + k[6] * y[4] - k[5] * y[2],
            k[2] * y[1] + k[0] * y[2] - k[7] * y[3],
            k[1] * (y[5] + y[6]) - k[8] * y[4],
            k[10] * (y[3] + y[6]) + k[0] * y[4] - k[1] * y[5] - fast,
            fast - k[11] * y[6],
            k[11] * y[6] - fast,
        ]
    }
}

/// A problem from t = 0: its vector field of the parameters and y, its parameters, and y0.
struct Problem {
    name: &'static str,
    field: fn(&Tensor, &Tensor) -> Tensor,
    p: Tensor,
    y0: Tensor,
    t1: f64,
    rtol: f64,
    atol: f64,
    /// The time of a plain solve at a tolerance in seconds.
    plain: fn(&Problem, f64, f64) -> f64,
}

fn rober(p: &Tensor, y: &Tensor) -> Tensor {
    let [a, b, c] = [0, 1, 2].map(|i: usize| y.index(i));
    let [slow, fast, back] = [p.index(0) * &a, p.index(1) * &b * &b, p.index(2) * &b * &c];
    Tensor::stack(&[&(&back - &slow), &(slow - &fast - back), &fast])
}

fn hires(p: &Tensor, y: &Tensor) -> Tensor {
    let (k, y) = (|i: usize| p.index(i), |i: usize| y.index(i));
    let fast = k(9) * y(5) * y(7);
    let rates = [
        k(1) * y(1) - k(0) * y(0) + k(2) * y(2) + k(3),
        k(0) * y(0) - k(4) * y(1),
        k(1) * y(3) + k(6) * y(4) - k(5) * y(2),
        k(2) * y(1) + k(0) * y(2) - k(7) * y(3),
        k(1) * (y(5) + y(6)) - k(8) * y(4),
        k(10) * (y(3) + y(6)) + k(0) * y(4) - k(1) * y(5) - &fast,
        &fast - k(11) * y(6),
        k(11) * y(6) - &fast,
    ];
    Tensor::stack(&rates.iter().collect::<Vec<_>>())
}

/// The Brusselator on a line of N points, `[2, N]`, between fixed ends; A, B and the diffusion are the parameters.
fn brusselator(p: &Tensor, y: &Tensor) -> Tensor {
    let n = y.shape()[1];
    let [a, b, diffusion] = [0, 1, 2].map(|i: usize| p.index(i));
    let (u, v) = (y.slice(0, 0..1), y.slice(0, 1..2));
    let between = |x: &Tensor, end: &Tensor| {
        let end = end.reshape([1, 1]);
        let all = Tensor::concat(&[&end, x, &end], 1);
        (all.slice(1, 0..n) + all.slice(1, 2..n + 2) - x * 2.0) * &diffusion * ((n + 1) as f64).powi(2)
    };
    let react = u.square() * &v;
    let du = &a + &react - &u * (&b + 1.0) + between(&u, &a);
    let dv = &u * &b - react + between(&v, &(&b / &a));
    Tensor::concat(&[&du, &dv], 0)
}

fn plain_brusselator(n: usize) -> impl Fn(f64, &[f64], &mut [f64]) {
    let scale = ((n + 1) as f64).powi(2) * 0.02;
    move |_t, y, dy| {
        let (u, v) = y.split_at(n);
        for i in 0..n {
            let lap = |x: &[f64], end: f64| {
                let left = if i > 0 { x[i - 1] } else { end };
                scale * (left - 2.0 * x[i] + x.get(i + 1).copied().unwrap_or(end))
            };
            let react = u[i] * u[i] * v[i];
            dy[i] = 1.0 + react - 4.0 * u[i] + lap(u, 1.0);
            dy[n + i] = 3.0 * u[i] - react + lap(v, 3.0);
        }
    }
}

fn line(n: usize) -> Tensor {
    let x = |i: usize| (i + 1) as f64 / (n + 1) as f64;
    let u = (0..n).map(|i| 1.0 + (std::f64::consts::TAU * x(i)).sin());
    Tensor::from_vec([2, n], u.chain(std::iter::repeat_n(3.0, n)).collect::<Vec<f64>>())
}

/// The Brusselator on a torus of 8 x 8 points, `[2, 8, 8]`, with A, B and two diffusions at each point, `[4, 8, 8]`.
fn torus(p: &Tensor, y: &Tensor) -> Tensor {
    let [a, b, du, dv] = [0, 1, 2, 3].map(|i: usize| p.index(i));
    let (u, v) = (y.index(0), y.index(1));
    let turn = |x: &Tensor, axis: usize, from: usize| {
        Tensor::concat(&[&x.slice(axis, from..8), &x.slice(axis, 0..from)], axis)
    };
    let spread = |x: &Tensor| turn(x, 0, 1) + turn(x, 0, 7) + turn(x, 1, 1) + turn(x, 1, 7) - x * 4.0;
    let react = u.square() * &v;
    let first = &a + &react - &u * (&b + 1.0) + &du * spread(&u);
    Tensor::stack(&[&first, &(&u * &b - react + &dv * spread(&v))])
}

/// A network of n neurons that decay at rates from 1 to 1e4: y' = -d y + W tanh(V y), with the parameters V and W.
fn network(p: &Tensor, y: &Tensor) -> Tensor {
    let n = y.size();
    let decay = (Tensor::iota(DType::F64, [n], 0) * (1e4_f64.ln() / (n - 1) as f64)).exp();
    let [v, w] = [0, 1].map(|i: usize| p.index(i));
    w.matmul(&v.matmul(y).tanh()) - decay * y
}

/// The median time of a call in seconds, from 15 samples of at least 20 ms.
fn median<T>(mut call: impl FnMut() -> T) -> f64 {
    let once = Instant::now();
    drop(black_box(call()));
    let calls = (0.02 / once.elapsed().as_secs_f64().max(1e-7)).ceil().clamp(1.0, 1e5) as u32;
    let mut sample = || {
        let start = Instant::now();
        (0..calls).for_each(|_| drop(black_box(call())));
        start.elapsed().as_secs_f64() / f64::from(calls)
    };
    let mut samples: Vec<f64> = (0..15).map(|_| sample()).collect();
    samples.sort_by(f64::total_cmp);
    samples[7]
}

type Point = (Tensor, Tensor);

impl Problem {
    fn solve(&self, at: &Point, rtol: f64, atol: f64) -> flowline::Result<TensorSolution<Tensor>> {
        let (field, p) = (self.field, at.0.clone());
        let ode = Ode::new(move |_t, y: &Tensor| field(&p, y)).method(Method::Rodas5P).rtol(rtol).atol(atol);
        Ok(ode.solve(0.0, self.t1, &at.1)?)
    }

    /// The compiled gradient of the loss.
    fn gradient(&'static self, rtol: f64, atol: f64) -> impl Fn() -> Point {
        let program = jit(move |p: Tensor, y0: Tensor| {
            let loss = |at: &Point| Ok(self.solve(at, rtol, atol)?.y1.square().sum());
            grad(loss, &(p, y0))
        });
        move || program.call(&self.p, &self.y0).unwrap()
    }

    /// The gradient at rtol 1e-11.
    fn exact(&'static self) -> Point {
        self.gradient(1e-11, 1e-11 * self.atol / self.rtol)()
    }

    /// Prints the row of a tolerance.
    fn run(&'static self, rtol: f64, exact: &Point) {
        let atol = self.atol / self.rtol * rtol;
        let first = Instant::now();
        let gradient = self.gradient(rtol, atol);
        let found = gradient();
        let first = first.elapsed().as_secs_f64();
        let forward = jit(move |p: Tensor, y0: Tensor| {
            let solution = self.solve(&(p, y0), rtol, atol)?;
            Ok((solution.y1, solution.stats.num_accepted))
        });
        let forward = || forward.call(&self.p, &self.y0).unwrap();
        let steps = forward().1.item();
        let solve = median(forward);
        let both = median(&gradient);
        let plain = (self.plain)(self, rtol, atol);
        let off = |a: &Tensor, b: &Tensor| (a - b).abs().max().item() / b.abs().max().item();
        let by_p = off(&(&found.0 * &self.p), &(&exact.0 * &self.p));
        let by_y0 = off(&found.1, &exact.1);
        println!(
            "| {} | {rtol:.0e} | {} | {steps} | {:.1} | {:.1} | {:.1} | {:.2} | {:.1} | {by_p:.1e} | {by_y0:.1e} | {:.0} |",
            self.name,
            num_elements(&(self.p.clone(), self.y0.clone())),
            1e6 * plain,
            1e6 * solve,
            1e6 * both,
            both / solve,
            both / plain,
            1e3 * first
        );
    }
}

/// The problem of [`network`], without a plain solve.
fn neurons(name: &'static str, n: usize) -> Problem {
    let at = |i| Tensor::iota(DType::F64, [2, n, n], i);
    Problem {
        name,
        field: network,
        p: (at(0) * 1.3 + at(1) * 0.7 + at(2) * 2.1 + at(1) * at(2)).sin() * (2.0 / (n as f64).sqrt()),
        y0: Tensor::full(DType::F64, [n], 1.0),
        t1: 2.0,
        rtol: 1e-6,
        atol: 1e-8,
        plain: |_, _, _| f64::NAN,
    }
}

fn problems() -> Vec<Problem> {
    let line = |name, n, plain| Problem {
        name,
        field: brusselator,
        p: Tensor::from([1.0, 3.0, 0.02]),
        y0: line(n),
        t1: 10.0,
        rtol: 1e-6,
        atol: 1e-6,
        plain,
    };
    fn on_line(of: &Problem, rtol: f64, atol: f64) -> f64 {
        let n = of.y0.shape()[1];
        let ode = Ode::in_place(plain_brusselator(n)).method(Method::Rodas5P).rtol(rtol).atol(atol);
        median(|| ode.solve(0.0, of.t1, of.y0.to_vec()).unwrap())
    }
    let kinetics =
        |name, field, p, y0, t1, atol, plain| Problem { name, field, p, y0, t1, rtol: 1e-6, atol, plain };
    vec![
        kinetics(
            "rober",
            rober,
            Tensor::from([0.04, 3e7, 1e4]),
            Tensor::from([1.0, 0.0, 0.0]),
            40.0,
            1e-12,
            |of, rtol, atol| {
                let ode = Ode::from_generic(Rober { k: [0.04, 3e7, 1e4] }).method(Method::Rodas5P);
                let ode = ode.rtol(rtol).atol(atol);
                median(|| ode.solve(0.0, of.t1, [1.0, 0.0, 0.0]).unwrap())
            },
        ),
        kinetics(
            "hires",
            hires,
            Tensor::from(HIRES),
            Tensor::from([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057]),
            321.8122,
            1e-8,
            |of, rtol, atol| {
                let ode = Ode::from_generic(Hires { k: HIRES }).method(Method::Rodas5P).rtol(rtol).atol(atol);
                median(|| ode.solve(0.0, of.t1, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057]).unwrap())
            },
        ),
        neurons("network-32", 32),
        neurons("network-64", 64),
        line("brusselator-10", 5, on_line),
        line("brusselator-50", 25, on_line),
        Problem {
            name: "torus-128",
            field: torus,
            p: Tensor::concat(
                &[
                    &Tensor::full(DType::F64, [1, 8, 8], 1.0),
                    &Tensor::full(DType::F64, [1, 8, 8], 3.4),
                    &Tensor::full(DType::F64, [2, 8, 8], 1.28),
                ],
                0,
            ),
            y0: (Tensor::iota(DType::F64, [2, 8, 8], 1) * 0.7 + Tensor::iota(DType::F64, [2, 8, 8], 2)).sin()
                * 0.3
                + 1.0,
            t1: 2.0,
            rtol: 1e-4,
            atol: 1e-6,
            plain: |_, _, _| f64::NAN,
        },
    ]
}

fn main() {
    let start = Instant::now();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if has("--fast-rate") {
        return fast_rate::run();
    }
    let wanted = args.iter().find(|word| !word.starts_with("--")).cloned().unwrap_or_default();
    let problems = problems().into_iter().filter(|problem| problem.name.contains(&wanted));
    let problems: Vec<&'static Problem> = problems.map(|problem| &*Box::leak(Box::new(problem))).collect();
    if has("--exact") {
        let row = |of: &&'static Problem| {
            let (by_p, by_y0) = of.exact();
            format!("\"{}\": [{:?}, {:?}]", of.name, by_p.to_vec(), by_y0.to_vec())
        };
        return println!("{{{}}}", problems.iter().map(row).collect::<Vec<_>>().join(",\n"));
    }
    if has("--first") {
        let of = problems.first().expect("a problem of this name");
        black_box(of.gradient(of.rtol, of.atol)());
        return println!("{}: {:.1} ms to the first gradient", of.name, 1e3 * start.elapsed().as_secs_f64());
    }
    println!("Rodas5P: gradients of the sum of squares of y1 with respect to the parameters and y0\n");
    println!(
        "| problem | rtol | variables | steps | plain, us | solve, us | gradient, us | gradient / solve | gradient / plain | error of p dL/dp | of dL/dy0 | first call, ms |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for problem in problems {
        let exact = problem.exact();
        let all: Vec<f64> = (3..=9).map(|e| 10.0_f64.powi(-e)).collect();
        let rtols = if has("--precision") { all } else { vec![problem.rtol] };
        rtols.into_iter().for_each(|rtol| problem.run(rtol, &exact));
    }
}
