//! A Rosenbrock step on complex numbers that shares no code with the library except for the coefficients.

use crate::ode::tests::complex::Complex;
use crate::ode::{ButcherTableau, MethodKind};

/// A system `M y' = f(t, y)` over complex numbers, by formulas of its own.
pub(super) trait System {
    /// M, row by row.
    fn mass(&self) -> Vec<f64>;
    fn rate(&self, t: Complex, y: &[Complex]) -> Vec<Complex>;
    /// df/dy, row by row.
    fn jacobian(&self, t: Complex, y: &[Complex]) -> Vec<Complex>;
    /// df/dt.
    fn by_time(&self, t: Complex, y: &[Complex]) -> Vec<Complex>;
}

/// The state after Rosenbrock steps from each of the times to the next one.
pub(super) fn solve(
    system: &dyn System,
    method: &ButcherTableau<'_>,
    ts: &[Complex],
    y0: &[Complex],
) -> Vec<Complex> {
    let steps = ts.windows(2);
    steps.fold(y0.to_vec(), |y, ends| step(system, method, (ends[0], ends[1] - ends[0]), &y))
}

/// One step: `(M / gamma - h J) k_i = f(t + c_i h, y + h sum_j a_ij k_j) + h d_i f_t + M sum_j C_ij k_j`,
/// `y1 = y + h sum_i b_i k_i`.
fn step(
    system: &dyn System,
    method: &ButcherTableau<'_>,
    (t, h): (Complex, Complex),
    y: &[Complex],
) -> Vec<Complex> {
    let MethodKind::Rosenbrock(numbers) = &method.kind else {
        panic!("{} is no Rosenbrock method", method.name)
    };
    let (n, mass, j, f_t) = (y.len(), system.mass(), system.jacobian(t, y), system.by_time(t, y));
    let w: Vec<Complex> =
        mass.iter().zip(&j).map(|(&m, &j)| Complex::from(m / numbers.gamma) - h * j).collect();
    let mut k: Vec<Vec<Complex>> = vec![];
    let sum = |of: &[f64], k: &[Vec<Complex>]| -> Vec<Complex> {
        let at = |m: usize| of.iter().zip(k).fold(Complex::from(0.0), |sum, (&a, k)| sum + k[m] * a);
        (0..n).map(at).collect()
    };
    for i in 0..method.num_stages() {
        let argument: Vec<Complex> = y.iter().zip(sum(method.row(i), &k)).map(|(&y, k)| y + h * k).collect();
        let coupled = sum(numbers.row(i), &k);
        let rate = system.rate(t + h * method.c[i], &argument);
        let right = (0..n).map(|m| {
            let moved = (0..n).fold(Complex::from(0.0), |sum, l| sum + coupled[l] * mass[m * n + l]);
            rate[m] + h * f_t[m] * numbers.d[i] + moved
        });
        let right = right.collect();
        k.push(solved(w.clone(), right));
    }
    y.iter().zip(sum(method.b, &k)).map(|(&y, k)| y + h * k).collect()
}

/// The solution of a linear system, by elimination with partial pivoting.
fn solved(mut a: Vec<Complex>, mut b: Vec<Complex>) -> Vec<Complex> {
    let n = b.len();
    for k in 0..n {
        let size = |i: &usize| a[i * n + k].re.abs();
        let pivot = (k..n).max_by(|i, j| size(i).total_cmp(&size(j))).expect("a row");
        (0..n).for_each(|j| a.swap(k * n + j, pivot * n + j));
        b.swap(k, pivot);
        for i in k + 1..n {
            let part = a[i * n + k] / a[k * n + k];
            for j in k..n {
                a[i * n + j] = a[i * n + j] - part * a[k * n + j];
            }
            b[i] = b[i] - part * b[k];
        }
    }
    for k in (0..n).rev() {
        let known = (k + 1..n).fold(b[k], |rest, j| rest - a[k * n + j] * b[j]);
        b[k] = known / a[k * n + k];
    }
    b
}
