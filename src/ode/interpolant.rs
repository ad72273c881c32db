//! `Interpolant`: a step's dense output as weights of its stages, `y(t + theta h) = y + h sum_i w_i(theta)
//! k_i`.
//!
//! It is built from a tableau once per method of a solve, so evaluation does not allocate. It holds
//! weights only; the code that sums the stages knows whether they are plain Rust numbers, lanes or tensors.

use super::ButcherTableau;
use super::tableau::{DEGREE_MAX, hermite, row};

/// The weights of a method's dense output.
///
/// A method without an interpolant uses the cubic Hermite interpolant, through y and y1 with the derivatives
/// f(t, y) and f(t + h, y1). These are stage 0 and, for a FSAL method, the last stage; otherwise f(t + h, y1)
/// is an extra stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Interpolant {
    order: u32,
    num_method_stages: usize,
    extra_c: Vec<f64>,
    extra_a: Vec<f64>,
    f1: Option<usize>,
    degree: usize,
    /// `degree` coefficients per stage, one for each of the [`terms`].
    weights: Vec<f64>,
}

impl Interpolant {
    /// The dense output of a method.
    pub fn of(tableau: &ButcherTableau) -> Interpolant {
        let s = tableau.num_stages();
        let Some(dense) = tableau.dense else { return Interpolant::hermite(tableau) };
        let evaluated = dense.extra_c.first() == Some(&1.0) && dense.extra_a[..s] == *tableau.b;
        let f1 = if tableau.is_fsal() { Some(s - 1) } else { evaluated.then_some(s) };
        Interpolant {
            order: dense.order,
            num_method_stages: s,
            extra_c: dense.extra_c.to_vec(),
            extra_a: dense.extra_a.to_vec(),
            f1,
            degree: dense.degree,
            weights: dense.weights.to_vec(),
        }
    }

    fn hermite(tableau: &ButcherTableau) -> Interpolant {
        let s = tableau.num_stages();
        let f1 = if tableau.is_fsal() { s - 1 } else { s };
        let b = tableau.b.iter().copied().chain((f1 == s).then_some(0.0));
        Interpolant {
            order: tableau.order.min(3),
            num_method_stages: s,
            extra_c: if f1 == s { vec![1.0] } else { Vec::new() },
            extra_a: if f1 == s { tableau.b.to_vec() } else { Vec::new() },
            f1: Some(f1),
            degree: 3,
            weights: b.enumerate().flat_map(|(i, b)| hermite(b, i == 0, i == f1)).collect(),
        }
    }

    /// The order q: inside a step the error is O(h^(q+1)), the error of y1 included.
    pub fn order(&self) -> u32 {
        self.order
    }

    /// The number of stages in the sum: the method's stages and the [`extra`](Self::extra) stages.
    pub fn num_stages(&self) -> usize {
        self.num_method_stages + self.extra_c.len()
    }

    /// The stages to evaluate after an accepted step, in order: `k = f(t + c h, y + h sum_j a_j k_j)`, as (c,
    /// a). Each row has one entry per stage before it.
    pub fn extra(&self) -> impl Iterator<Item = (f64, &[f64])> {
        let s = self.num_method_stages;
        self.extra_c.iter().enumerate().map(move |(i, &c)| (c, row(&self.extra_a, s, i)))
    }

    /// The stage that is f(t + h, y1), if any: the last stage of a FSAL method, else the first extra stage. A
    /// caller that has the next step's first stage need not evaluate it.
    pub fn f1(&self) -> Option<usize> {
        self.f1
    }

    /// Whether the first extra stage is f(t + h, y1).
    pub fn starts_with_f1(&self) -> bool {
        self.f1 == Some(self.num_method_stages)
    }

    /// The coefficients of stage i's weight in theta, theta (1 - theta), theta^2 (1 - theta), ...
    pub fn coefficients(&self, i: usize) -> &[f64] {
        &self.weights[i * self.degree..][..self.degree]
    }

    /// The number of coefficients per stage.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Writes w_i(theta): `y(t + theta h) = y + h sum_i w_i k_i`. At theta = 1 they are b; for the methods in
    /// `tableaux/`, to the last bit.
    ///
    /// # Panics
    /// If `out` is shorter than [`num_stages`](Self::num_stages); entries beyond that are unchanged.
    #[inline]
    pub fn weights(&self, theta: f64, out: &mut [f64]) {
        self.sum(&terms(theta, self.degree).0, out);
    }

    /// Writes the derivatives of the weights: `y'(t + theta h) = sum_i out_i k_i`.
    ///
    /// # Panics
    /// If `out` is shorter than [`num_stages`](Self::num_stages).
    #[inline]
    pub fn derivative_weights(&self, theta: f64, out: &mut [f64]) {
        self.sum(&terms(theta, self.degree).1, out);
    }

    /// Writes the sums of the sizes of the terms whose sums are the weights.
    pub(super) fn weight_sizes(&self, theta: f64, out: &mut [f64]) {
        let (terms, _) = terms(theta, self.degree);
        for (out, coefficients) in out.iter_mut().zip(self.weights.chunks_exact(self.degree)) {
            *out = 0.0;
            for (c, term) in coefficients.iter().zip(&terms) {
                *out += (c * term).abs();
            }
        }
    }

    #[inline]
    fn sum(&self, terms: &[f64; DEGREE_MAX], out: &mut [f64]) {
        let out = &mut out[..self.num_stages()];
        // A loop over a known number of terms is unrolled: evaluations take a third less time.
        match self.degree {
            3 => sums::<3>(&self.weights, terms, out),
            4 => sums::<4>(&self.weights, terms, out),
            7 => sums::<7>(&self.weights, terms, out),
            degree => {
                for (out, coefficients) in out.iter_mut().zip(self.weights.chunks_exact(degree)) {
                    *out = coefficients.iter().zip(terms).map(|(c, term)| c * term).sum();
                }
            }
        }
    }
}

/// The sum of each `DEGREE` coefficients times the terms.
#[inline]
fn sums<const DEGREE: usize>(weights: &[f64], terms: &[f64; DEGREE_MAX], out: &mut [f64]) {
    for (out, coefficients) in out.iter_mut().zip(weights.as_chunks::<DEGREE>().0) {
        // The sum of an iterator starts at -0, too.
        *out = std::iter::zip(coefficients, terms).fold(-0.0, |sum, (c, term)| sum + c * term);
    }
}

/// theta, theta (1 - theta), theta^2 (1 - theta), ... and their derivatives.
#[inline]
fn terms(theta: f64, degree: usize) -> ([f64; DEGREE_MAX], [f64; DEGREE_MAX]) {
    let (mut terms, mut derivatives) = ([0.0; DEGREE_MAX], [0.0; DEGREE_MAX]);
    let (mut term, mut derivative) = (1.0, 0.0);
    for j in 0..degree {
        let (factor, sign) = if j % 2 == 0 { (theta, 1.0) } else { (1.0 - theta, -1.0) };
        derivative = derivative * factor + term * sign;
        term *= factor;
        (terms[j], derivatives[j]) = (term, derivative);
    }
    (terms, derivatives)
}

/// Converts `sum_j powers_j theta^(j+1)` to coefficients of the [`terms`].
///
/// The common factor theta is taken out first. Then `q(theta) = q(1) + (1 - theta) r(theta)` and
/// `q(theta) = q(0) + theta r(theta)` are applied alternately.
pub(super) fn from_powers(powers: &[f64]) -> Vec<f64> {
    let mut rest: Vec<f64> = powers.to_vec();
    let mut coefficients = Vec::with_capacity(rest.len());
    for j in 0..powers.len() {
        let at = if j % 2 == 0 { 1.0 } else { 0.0 };
        // q(x) = q(at) + (x - at) r(x), by Horner's scheme.
        let mut value = 0.0;
        let mut quotient = vec![0.0; rest.len() - 1];
        for i in (0..rest.len()).rev() {
            value = value * at + rest[i];
            if i > 0 {
                quotient[i - 1] = value;
            }
        }
        coefficients.push(value);
        // The next factor is theta or 1 - theta.
        let sign = if j % 2 == 0 { -1.0 } else { 1.0 };
        rest = quotient.into_iter().map(|x| sign * x).collect();
    }
    coefficients
}
