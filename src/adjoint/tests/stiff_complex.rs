//! Gradients of stiff solves beside complex steps of an independent Rosenbrock step ([`complex`](super::complex)).
//!
//! Ranges: Robertson's problem with steps of 1e-3 to 1e3; drawn systems of 1 to 4 components of which the fastest decays at
//! a rate in `2..1e4`, with and without t in the field; M the identity, regular and singular, each dense or diagonal; both
//! directions of time; 1 to 6 uneven steps; Rodas5P and Rosenbrock23. The gradient is with respect to all coefficients of the
//! field, y0, t0 and t1.

use super::complex::{System, solve};
use crate::ode::tests::complex::{Complex, STEP};
use crate::ode::tests::draw::{Draw, num_cases};
use crate::ode::{Mass, Method, Ode, StepTo};
use crate::tensor::{Tensor, grad};

/// Rates k1 = 0.04, k2 = 3e7, k3 = 1e4.
struct Robertson([Complex; 3]);

impl System for Robertson {
    fn mass(&self) -> Vec<f64> {
        vec![1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    }
    fn rate(&self, _t: Complex, y: &[Complex]) -> Vec<Complex> {
        let [slow, fast, back] = [self.0[0] * y[0], self.0[1] * y[1] * y[1], self.0[2] * y[1] * y[2]];
        vec![back - slow, slow - fast - back, fast]
    }
    fn jacobian(&self, _t: Complex, y: &[Complex]) -> Vec<Complex> {
        let ([k1, k2, k3], zero) = (self.0, Complex::from(0.0));
        let (fast, by_b, by_c) = (k2 * y[1] * 2.0, k3 * y[2], k3 * y[1]);
        vec![zero - k1, by_b, by_c, k1, zero - fast - by_b, zero - by_c, zero, fast, zero]
    }
    fn by_time(&self, _t: Complex, _y: &[Complex]) -> Vec<Complex> {
        vec![Complex::from(0.0); 3]
    }
}

fn robertson(k: &Tensor, y: &Tensor) -> Tensor {
    let [a, b, c] = [0, 1, 2].map(|i: usize| y.index(i));
    let [slow, fast, back] = [k.index(0) * &a, k.index(1) * &b * &b, k.index(2) * &b * &c];
    Tensor::stack(&[&(&back - &slow), &(slow - &fast - back), &fast])
}

/// The largest difference of two gradients relative to their largest entry, at least `least`, of the derivatives by the
/// logarithms of `at` where `at` is not 0.
fn off(got: &[f64], want: &[f64], (at, least): (&[f64], f64)) -> f64 {
    let scaled = |g: &[f64]| -> Vec<f64> {
        g.iter().zip(at).map(|(g, x)| if *x == 0.0 { *g } else { g * x }).collect()
    };
    let (got, want) = (scaled(got), scaled(want));
    let size = want.iter().fold(least, |size, x| size.max(x.abs()));
    got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / size
}

#[test]
fn derivatives_of_robertsons_problem_by_its_rates_are_those_of_complex_steps() {
    let (k, y0) = ([0.04, 3e7, 1e4], [1.0, 0.0, 0.0]);
    for method in [Method::Rodas5P, Method::Rosenbrock23] {
        let ts: Vec<f64> =
            [0.0].into_iter().chain((-6..=6).map(|i| 10.0_f64.powf(0.5 * f64::from(i)))).collect();
        let times: Vec<Complex> = ts.iter().map(|&t| t.into()).collect();
        for i in 0..3 {
            let last = |k: &Tensor| {
                let ode = Ode::new(|_t, y: &Tensor| robertson(k, y)).method(method);
                let ode = ode.controller(StepTo { ts: ts.clone() });
                ode.solve(0.0, ts[ts.len() - 1], Tensor::from(y0)).unwrap().y1.index(i)
            };
            let got = grad(last, &Tensor::from(k)).to_vec();
            let by = |j: usize| {
                let mut rates = k.map(Complex::from);
                rates[j] = Complex::variable(k[j]);
                solve(&Robertson(rates), method.tableau(), &times, &y0.map(Complex::from))[i].im / STEP
            };
            let want = [0, 1, 2].map(by);
            let error = off(&got, &want, (&k, 0.0));
            assert!(error < 1e-12, "{method}, y[{i}]: {error:e}, {got:?} for {want:?}");
        }
    }
}

/// `M y' = A f(t, y)` with `f_i = sum_j L_ij y_j + sum_jk Q_ijk y_j y_k + g_i sin(w t) y_i + c_i`.
struct Drawn {
    n: usize,
    w: f64,
    /// A, and M.
    mix: Vec<f64>,
    mass: Vec<f64>,
    /// L, Q, g and c, one after the other.
    p: Vec<Complex>,
}

impl Drawn {
    /// The places of L, Q, g, c and the end in p.
    fn places(n: usize) -> [usize; 5] {
        [0, n * n, n * n + n * n * n, n * n + n * n * n + n, n * n + n * n * n + 2 * n]
    }

    fn mixed(&self, f: &[Complex], columns: usize) -> Vec<Complex> {
        let n = self.n;
        let at = |i: usize, c: usize| {
            (0..n).fold(Complex::from(0.0), |sum, l| sum + f[l * columns + c] * self.mix[i * n + l])
        };
        (0..n * columns).map(|k| at(k / columns, k % columns)).collect()
    }

    /// f, before A.
    fn plain(&self, t: Complex, y: &[Complex]) -> Vec<Complex> {
        let (n, [_, quadratic, driven, constant, _]) = (self.n, Self::places(self.n));
        let row = |i: usize| {
            let mut f = self.p[constant + i] + self.p[driven + i] * (t * self.w).sin() * y[i];
            for j in 0..n {
                f = f + self.p[i * n + j] * y[j];
                for k in 0..n {
                    f = f + self.p[quadratic + (i * n + j) * n + k] * y[j] * y[k];
                }
            }
            f
        };
        (0..n).map(row).collect()
    }
}

impl System for Drawn {
    fn mass(&self) -> Vec<f64> {
        self.mass.clone()
    }
    fn rate(&self, t: Complex, y: &[Complex]) -> Vec<Complex> {
        self.mixed(&self.plain(t, y), 1)
    }
    fn jacobian(&self, t: Complex, y: &[Complex]) -> Vec<Complex> {
        let (n, [_, quadratic, driven, ..]) = (self.n, Self::places(self.n));
        let entry = |i: usize, j: usize| {
            let mut sum = self.p[i * n + j];
            if i == j {
                sum = sum + self.p[driven + i] * (t * self.w).sin();
            }
            let of = |j: usize, k: usize| self.p[quadratic + (i * n + j) * n + k];
            (0..n).fold(sum, |sum, k| sum + (of(j, k) + of(k, j)) * y[k])
        };
        self.mixed(&(0..n * n).map(|k| entry(k / n, k % n)).collect::<Vec<_>>(), n)
    }
    fn by_time(&self, t: Complex, y: &[Complex]) -> Vec<Complex> {
        let [_, _, driven, ..] = Self::places(self.n);
        let f_t = (0..self.n).map(|i| self.p[driven + i] * (t * self.w).cos() * self.w * y[i]);
        self.mixed(&f_t.collect::<Vec<_>>(), 1)
    }
}

fn rate_of(of: &Drawn, p: &Tensor, t: &Tensor, y: &Tensor) -> Tensor {
    let (n, [_, quadratic, driven, constant, end]) = (of.n, Drawn::places(of.n));
    let linear = p.slice(0, 0..quadratic).reshape([n, n]).matmul(y);
    let pairs = y.expand_dims(1).matmul(&y.expand_dims(0)).reshape([n * n]);
    let products = p.slice(0, quadratic..driven).reshape([n, n * n]).matmul(&pairs);
    let force = p.slice(0, driven..constant) * (t * of.w).sin() * y;
    let f = linear + products + force + p.slice(0, constant..end);
    Tensor::from(&of.mix[..]).reshape([n, n]).matmul(&f)
}

/// A drawn system, its steps and its start.
struct Case {
    system: Drawn,
    is_singular: bool,
    method: Method,
    ts: Vec<f64>,
    y0: Vec<f64>,
}

impl Case {
    fn draw(draw: &mut Draw) -> Case {
        let n = 1 + draw.below(4);
        let sign = if draw.coin() { 1.0 } else { -1.0 };
        let [.., constant, end] = Drawn::places(n);
        let y0: Vec<f64> = (0..n).map(|_| draw.uniform(-1.0, 1.0)).collect();
        let t0 = draw.uniform(-1.0, 1.0);
        let w = if draw.coin() { draw.uniform(0.5, 3.0) } else { 0.0 };
        // The diagonal of df/dy stays away from 0, so an algebraic equation determines its component well.
        let mut p: Vec<f64> = (0..end).map(|_| 0.1 * draw.uniform(-1.0, 1.0)).collect();
        for i in 0..n {
            p[i * n + i] = -sign * draw.decade(0.3, if i == 0 { 4.0 } else { 1.0 });
        }
        let is_singular = n > 1 && draw.coin();
        let is_dense = draw.coin();
        let mix: Vec<f64> = (0..n * n)
            .map(|k| {
                let of_diagonal = if k % (n + 1) == 0 { 1.0 } else { 0.0 };
                if is_dense { of_diagonal + draw.uniform(-0.2, 0.2) } else { of_diagonal }
            })
            .collect();
        // M = A D, and the last entry of the diagonal matrix D is 0 if M is singular.
        let sizes: Vec<f64> = (0..n).map(|_| draw.uniform(0.5, 2.0)).collect();
        let size = |j: usize| if is_singular && j == n - 1 { 0.0 } else { sizes[j] };
        let mass = (0..n * n).map(|k| mix[k] * size(k % n)).collect();
        let mut system = Drawn { n, w, mix, mass, p: p.iter().map(|&p| p.into()).collect() };
        if is_singular {
            // y0 satisfies the algebraic equation.
            let start: Vec<Complex> = y0.iter().map(|&y| y.into()).collect();
            let residual = system.plain(t0.into(), &start)[n - 1].re;
            let last = constant + n - 1;
            system.p[last] = system.p[last] - residual.into();
        }
        let mut ts = vec![t0];
        for _ in 0..=draw.below(6) {
            ts.push(ts[ts.len() - 1] + sign * draw.decade(-2.0, -0.5));
        }
        Case { system, is_singular, method: draw.one(&[Method::Rodas5P, Method::Rosenbrock23]), ts, y0 }
    }

    /// p, y0, and the first and the last time.
    fn variables(&self) -> Vec<f64> {
        let p = self.system.p.iter().map(|p| p.re);
        p.chain(self.y0.iter().copied()).chain([self.ts[0], self.ts[self.ts.len() - 1]]).collect()
    }

    /// The largest rate of decay.
    fn fastest(&self) -> f64 {
        let n = self.system.n;
        (0..n).map(|i| self.system.p[i * n + i].re.abs()).fold(0.0, f64::max)
    }

    fn weights(&self) -> Vec<f64> {
        (0..self.system.n).map(|i| (1.0 + i as f64).cos()).collect()
    }

    fn by_complex_step(&self, variable: usize) -> f64 {
        let numbers = self.variables();
        let (num, n) = (self.system.p.len(), self.system.n);
        let at = |i: usize| if i == variable { Complex::variable(numbers[i]) } else { numbers[i].into() };
        let system = Drawn {
            p: (0..num).map(at).collect(),
            mix: self.system.mix.clone(),
            mass: self.system.mass.clone(),
            ..self.system
        };
        let mut ts: Vec<Complex> = self.ts.iter().map(|&t| t.into()).collect();
        let last = ts.len() - 1;
        (ts[0], ts[last]) = (at(num + n), at(num + n + 1));
        let y0: Vec<Complex> = (num..num + n).map(at).collect();
        let y1 = solve(&system, self.method.tableau(), &ts, &y0);
        y1.iter().zip(self.weights()).map(|(y, w)| y.im / STEP * w).sum()
    }

    fn by_reverse_mode(&self) -> Vec<f64> {
        let n = self.system.n;
        let p: Vec<f64> = self.system.p.iter().map(|p| p.re).collect();
        let at = (Tensor::from(&p[..]), Tensor::from(&self.y0[..]));
        let ends = (Tensor::from(self.ts[0]), Tensor::from(self.ts[self.ts.len() - 1]));
        let loss = |x: &((Tensor, Tensor), (Tensor, Tensor))| {
            let ((p, y0), (t0, t1)) = x;
            let ode = Ode::new(|t: Tensor, y: &Tensor| rate_of(&self.system, p, &t, y)).method(self.method);
            let ode = ode.controller(StepTo { ts: self.ts.clone() });
            let mass: Vec<Vec<f64>> = self.system.mass.chunks(n).map(<[f64]>::to_vec).collect();
            let y1 = ode.mass_matrix(Mass::dense(mass)).solve(t0, t1, y0).unwrap().y1;
            (y1 * Tensor::from(&self.weights()[..])).sum()
        };
        let ((p, y0), (t0, t1)) = grad(loss, &(at, ends));
        [p.to_vec(), y0.to_vec(), t0.to_vec(), t1.to_vec()].concat()
    }
}

#[test]
fn gradients_of_drawn_systems_are_those_of_complex_steps() {
    let (mut draw, mut seen) = (Draw(401), [0; 6]);
    for case in 0..num_cases(12) {
        let c = Case::draw(&mut draw);
        let got = c.by_reverse_mode();
        let want: Vec<f64> = (0..got.len()).map(|i| c.by_complex_step(i)).collect();
        let (num, at) = (got.len() - 2, c.variables());
        // Components of size 1 may have decayed, but their rounding errors have not.
        let error = off(&got[..num], &want[..num], (&at[..num], 1e-2));
        assert!(error < 1e-12, "case {case}, {}: {error:e}, {got:?} for {want:?}", c.method);
        // A derivative by t0 or t1 is a sum of terms as large as the fastest rate, and they cancel.
        let rounding = 256.0 * f64::EPSILON * c.fastest();
        for (got, want) in got[num..].iter().zip(&want[num..]) {
            assert!((got - want).abs() < 1e-12 + rounding, "case {case}, {}: {got} for {want}", c.method);
        }
        let found = [
            c.is_singular,
            c.system.w == 0.0,
            c.ts[1] < c.ts[0],
            c.method == Method::Rosenbrock23,
            c.system.n == 1,
            c.system.n == 4,
        ];
        seen.iter_mut().zip(found).for_each(|(seen, found)| *seen += usize::from(found));
    }
    assert!(seen.iter().all(|&n| n > 0), "{seen:?}");
}
