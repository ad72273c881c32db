//! `ButcherTableau`: the coefficients of a method and of its dense output.
//!
//! Data only: FSAL and the presence of an error estimate are derived from the numbers, not flags set by hand,
//! so that a tableau cannot contradict itself. A tableau borrows its numbers: the numbers in `tableaux/` are
//! constants, and those of a [`Tableau`](super::Tableau) belong to the user. It is `Copy` and small, so that a
//! loop compiled for one method has constant coefficients. Tests check every order condition.

/// The highest degree of dense output.
pub const DEGREE_MAX: usize = 16;

/// A one-step method of s stages. For an explicit Runge-Kutta method: `k_i = f(t + c_i h, y + h sum_j a_ij k_j)`,
/// `y1 = y + h sum_i b_i k_i`, error estimate `h sum_i b_err_i k_i`.
///
/// # References
/// Hairer, Norsett, Wanner (1993), Solving Ordinary Differential Equations I, section II.1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ButcherTableau<'a> {
    /// The name, as accepted by the option `--solver` of the command line.
    pub name: &'a str,
    /// The rows of the lower triangle in sequence, with i weights for each stage i >= 1 (counted from 0); see
    /// [`row`](Self::row).
    pub a: &'a [f64],
    /// The s weights of the solution.
    pub b: &'a [f64],
    /// `b - b_embedded`, one number per stage; `None` if the method has no error estimate.
    pub b_err: Option<&'a [f64]>,
    /// A second estimate, of lower order: with e and e_low the two scaled errors, the error of a step is `e^2 /
    /// sqrt(e^2 + 0.01 e_low^2)`, which is O(h^`error_order`).
    pub b_err_low: Option<&'a [f64]>,
    /// The times of the stages, relative to the step.
    pub c: &'a [f64],
    /// Order of the solution.
    pub order: u32,
    /// k, the power of h in the error estimate: one more than the lower of the orders of the two solutions,
    /// or the power of the combined estimate if there is `b_err_low`. The controller uses 1/k as its
    /// exponent. Unused without `b_err`.
    pub error_order: u32,
    /// How the stages are computed.
    pub kind: Kind<'a>,
    /// The method's own interpolant; `None` for the cubic Hermite interpolant.
    pub dense: Option<DenseTableau<'a>>,
}

/// The coefficients of an interpolant: `y(t + theta h) = y + h sum_i w_i(theta) k_i`, over the method's stages
/// and extra ones.
///
/// The polynomials w_i are stored by their coefficients in theta, theta (1 - theta), theta^2 (1 - theta),
/// theta^2 (1 - theta)^2, ...: the nested form of Hairer's codes. It gives w_i(1) = b_i exactly, and its terms
/// stay small where powers of theta cancel: for Vern9 the sum of their magnitudes is 13 instead of 33,000,
/// which means a rounding error of 3e-15 instead of 7e-12.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DenseTableau<'a> {
    /// The rows of the extra stages, numbered after the method's own: s + i weights for extra stage i.
    pub extra_a: &'a [f64],
    /// The times of the extra stages, relative to the step.
    pub extra_c: &'a [f64],
    /// `degree` coefficients per stage, extra stages included.
    pub weights: &'a [f64],
    /// The degree of the polynomials, at most [`DEGREE_MAX`].
    pub degree: usize,
    /// The order q: inside a step the error is O(h^(q+1)).
    pub order: u32,
}

/// How the stages of a method are computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind<'a> {
    /// One after the other, from the table's own numbers.
    Explicit,
    /// Each by solving a linear system.
    Rosenbrock(Rosenbrock<'a>),
    /// By a recursion with as many stages as stability requires. The table describes only the few stages that
    /// are stored after the recursion.
    Chebyshev,
}

/// The coefficients of a Rosenbrock method in addition to its table, in the transformed form, scaled by the
/// step size: `(M / gamma - h J) k_i = f(t + c_i h, y + h sum_j a_ij k_j) + h d_i f_t + M sum_j C_ij k_j`.
///
/// # References
/// Hairer, Wanner (1996), Solving Ordinary Differential Equations II, section IV.7, eq. (7.25).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rosenbrock<'a> {
    /// The diagonal entry of the method's triangle.
    pub gamma: f64,
    /// Weights of the vector field's time derivative.
    pub d: &'a [f64],
    /// The rows of C, i weights of each stage i >= 1 (counted from 0).
    pub coupling: &'a [f64],
}

impl<'a> Rosenbrock<'a> {
    /// The i weights `C_i0, C_i1, ...` of stage i.
    pub const fn row(&self, i: usize) -> &'a [f64] {
        row(self.coupling, 0, i)
    }
}

impl<'a> ButcherTableau<'a> {
    /// Whether the method is an explicit Runge-Kutta method.
    #[inline(always)]
    pub const fn is_explicit(&self) -> bool {
        matches!(self.kind, Kind::Explicit)
    }

    /// s, the number of stages.
    #[inline(always)]
    pub const fn num_stages(&self) -> usize {
        self.b.len()
    }

    /// The i weights `a_i0, a_i1, ...` of stage i.
    #[inline(always)]
    pub const fn row(&self, i: usize) -> &'a [f64] {
        row(self.a, 0, i)
    }

    /// Whether the method is FSAL (first same as last): the last stage is f(t + h, y1), the next step's first.
    pub const fn is_fsal(&self) -> bool {
        let s = self.b.len();
        if matches!(self.kind, Kind::Rosenbrock(_)) {
            return false;
        }
        if s < 2 || self.b[s - 1] != 0.0 || self.c[s - 1] != 1.0 || self.c[0] != 0.0 {
            return false;
        }
        let last = self.row(s - 1);
        let mut i = 0;
        while i < s - 1 {
            if last[i] != self.b[i] {
                return false;
            }
            i += 1;
        }
        true
    }
}

/// Row i of a triangle whose first row has `first` numbers and whose rows grow by one.
#[inline(always)]
pub(super) const fn row(triangle: &[f64], first: usize, i: usize) -> &[f64] {
    let start = i * first + i * i.saturating_sub(1) / 2;
    triangle.split_at(start).1.split_at(first + i).0
}

/// Coefficients (as in [`DenseTableau::weights`]) of the interpolant through y and y1 with the derivatives
/// k_0 and k_`f1` at the ends; `beyond` holds the fourth and further coefficients, stage by stage. The result
/// has N coefficients. `b` has at most one entry per stage; missing entries count as 0.
pub(super) const fn through_both_ends<const N: usize>(b: &[f64], f1: usize, beyond: &[f64]) -> [f64; N] {
    let mut weights = [0.0; N];
    let stages = (N - beyond.len()) / 3;
    let (degree, further) = (N / stages, beyond.len() / stages);
    let mut i = 0;
    while i < stages {
        let b_i = if i < b.len() { b[i] } else { 0.0 };
        let cubic = hermite(b_i, i == 0, i == f1);
        let mut j = 0;
        while j < degree {
            weights[i * degree + j] = if j < 3 { cubic[j] } else { beyond[i * further + j - 3] };
            j += 1;
        }
        i += 1;
    }
    weights
}

/// The three coefficients of a stage in the cubic Hermite interpolant
/// `y + theta (d + (1 - theta) (h f0 - d + theta (2 d - h f0 - h f1)))`, `d = y1 - y`.
pub(super) const fn hermite(b: f64, is_f0: bool, is_f1: bool) -> [f64; 3] {
    let f0 = if is_f0 { 1.0 } else { 0.0 };
    let f1 = if is_f1 { 1.0 } else { 0.0 };
    [b, f0 - b, 2.0 * b - f0 - f1]
}
