//! The covariance of fitted parameters.

mod factors;
#[cfg(test)]
mod tests;

use crate::array::DType;
use crate::error::{Error, Result};
use crate::nn::is_fixed;
use crate::tensor::{Output, Tensor, Tree, jacobian};
use factors::Factors;

/// How far the parameters of a fit are determined; see [`covariance`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Covariance<M> {
    /// The covariance s^2 (J^T J)^-1: f64, `[n, n]`, in products of the units of the parameters.
    pub matrix: Tensor,
    /// The names of its rows: the path of the leaf in the tree of parameters, and the index in the leaf. The leaf of a
    /// single tensor is `p`.
    pub names: Vec<String>,
    /// The variance s^2 of the residuals, in the square of their unit.
    pub variance: f64,
    /// The residual degrees of freedom m - n: residuals minus parameters.
    pub degrees_of_freedom: usize,
    /// (J^T J)^-1, row-major.
    inverse: Vec<f64>,
    at: M,
}

/// The covariance of parameters that minimize a sum of squared residuals, to first order:
///
/// ```text
/// C = s^2 (J^T J)^-1,   J[i, j] = d r_i / d p_j,   s^2 = sum_i r_i^2 / (m - n)
/// ```
///
/// `residuals` returns model minus data, m numbers in any shape; `at` holds the n fitted parameters, a tensor or a tree.
/// Leaves that optimizers do not change are constants, not parameters. J is the exact derivative, also through a solve.
///
/// C is the covariance of the estimates if the residuals at the true parameters are independent with mean 0 and a common
/// variance, and the model is nearly linear within the standard errors. Divide residuals of different variances by their
/// standard deviations. At parameters that do not minimize the sum, C has no meaning.
///
/// # Shapes and units
/// `C[j, k]` has the unit of `p_j` times that of `p_k`. s^2 has the squared unit of the residuals; known variances
/// replace it by [`Covariance::with_variance`].
///
/// # Errors
/// Errors of `residuals`; [`Error::NonFinite`]; [`Error::TooFewResiduals`] unless m > n; [`Error::Undetermined`] if J has a
/// rank below n, which names a combination of parameters that no residual depends on.
///
/// # Panics
/// If the residuals are not a tensor of floats.
///
/// # Numerics
/// Computed in f64 from the singular values of J, with columns scaled to length 1. J^T J is not formed. J has a rank below
/// n if a singular value is at most `100 sqrt(m) eps` times the largest, with eps of f32 if an argument or a residual is f32.
///
/// # References
/// Bates and Watts (1988), Nonlinear Regression Analysis and Its Applications, section 2.3.
///
/// # Examples
/// A line through four points:
/// ```
/// use flowline::nn::prelude::*;
/// let (x, y) = (Tensor::from([0.0, 1.0, 2.0, 3.0]), Tensor::from([1.0, 3.0, 4.0, 6.0]));
/// let found = Tensor::from([1.1, 1.6]); // intercept and slope, by least squares
/// let covariance = covariance(|p: &Tensor| p.index(0) + p.index(1) * &x - &y, &found)?;
/// // s^2 = 0.2 / 2; the variance of the slope is s^2 / sum (x - mean)^2 = 0.1 / 5
/// let errors = covariance.standard_errors().to_vec();
/// assert!((covariance.variance - 0.1).abs() < 1e-12 && (errors[1] - 0.02_f64.sqrt()).abs() < 1e-12);
/// # Ok::<(), flowline::Error>(())
/// ```
#[track_caller]
#[doc(alias = "curve_fit")]
pub fn covariance<M: Tree, R: Output<Tree = Tensor>>(
    residuals: impl Fn(&M) -> R,
    at: &M,
) -> Result<Covariance<M>> {
    let (parameters, names) = parameters(at);
    let found = residuals(at).into_result()?;
    let r = found.to_vec();
    let (m, n) = (r.len(), names.len());
    finite("residuals", &found)?;
    if m <= n {
        return Err(Error::TooFewResiduals { residuals: m, parameters: n });
    }
    let slopes = match n {
        0 => Tensor::zeros([m, 0]),
        _ => jacobian(|p: &Tensor| residuals(&with_parameters(at, p)).into_result(), &parameters)?,
    };
    let slopes = slopes.reshape([m, n]);
    finite("jacobian", &slopes)?;
    let is_f32 = |(path, x): &(String, Tensor)| is_parameter(path, x) && x.dtype() == DType::F32;
    let is_single = found.dtype() == DType::F32 || at.named_leaves().iter().any(is_f32);
    let eps = if is_single { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let factors = Factors::of(&slopes.to_vec(), m, n);
    let rank = factors.rank(100.0 * (m as f64).sqrt() * eps);
    if rank < n {
        let combination = combination(&names, &factors.undetermined());
        return Err(Error::Undetermined { rank, parameters: n, combination });
    }
    let degrees_of_freedom = m - n;
    let variance = r.iter().map(|r| r * r).sum::<f64>() / degrees_of_freedom as f64;
    let unscaled = Covariance {
        matrix: Tensor::zeros([n, n]),
        names,
        variance,
        degrees_of_freedom,
        inverse: factors.inverse(),
        at: at.clone(),
    };
    Ok(unscaled.with_variance(variance))
}

impl<M: Tree> Covariance<M> {
    /// The same with a known variance of the residuals in place of s^2: 1 if each residual is divided by its known
    /// standard deviation.
    pub fn with_variance(mut self, variance: f64) -> Self {
        let n = self.names.len();
        self.variance = variance;
        self.matrix = Tensor::from_vec([n, n], self.inverse.iter().map(|x| variance * x).collect());
        self
    }

    /// The standard error of each parameter, the square root of its variance `C[j, j]`: a tree like the parameters, 0 in
    /// leaves that are not parameters.
    pub fn standard_errors(&self) -> M {
        let (n, matrix) = (self.names.len(), self.matrix.to_vec());
        let mut errors = (0..n).map(|j| matrix[j * n + j].sqrt());
        let of = |(path, x): (String, Tensor)| match is_parameter(&path, &x) {
            true => {
                let own: Vec<f64> = errors.by_ref().take(x.size()).collect();
                Tensor::from_vec(x.shape().clone(), own).cast(x.dtype())
            }
            false => Tensor::full(x.dtype(), x.shape().clone(), 0.0),
        };
        self.at.with_leaves(self.at.named_leaves().into_iter().map(of).collect::<Vec<_>>())
    }

    /// The correlations `C[j, k] / sqrt(C[j, j] C[k, k])`: f64, `[n, n]`. They do not depend on the variance of the
    /// residuals.
    pub fn correlation(&self) -> Tensor {
        let n = self.names.len();
        let at = |j: usize, k: usize| self.inverse[j * n + k];
        let of = |i: usize| match (i / n, i % n) {
            (j, k) if j == k => 1.0,
            (j, k) => at(j, k) / (at(j, j).sqrt() * at(k, k).sqrt()),
        };
        Tensor::from_vec([n, n], (0..n * n).map(of).collect())
    }
}

fn is_parameter(path: &str, x: &Tensor) -> bool {
    x.dtype().is_float() && !is_fixed(path)
}

/// The parameters in a row, in f32 if all are f32, and their names.
fn parameters<M: Tree>(at: &M) -> (Tensor, Vec<String>) {
    let leaves: Vec<_> = at.named_leaves().into_iter().filter(|(path, x)| is_parameter(path, x)).collect();
    let is_single = leaves.iter().all(|(_, x)| x.dtype() == DType::F32);
    let dtype = if is_single { DType::F32 } else { DType::F64 };
    let names = leaves.iter().flat_map(|(path, x)| names(path, x)).collect();
    let rows: Vec<Tensor> = leaves.iter().map(|(_, x)| x.reshape([x.size()]).cast(dtype)).collect();
    match rows[..] {
        [] => (Tensor::zeros([0]), names),
        _ => (Tensor::concat(&rows, 0), names),
    }
}

/// The names of the numbers of a leaf: `rate`, `p[0]`, `net.weight[1,2]`.
fn names(path: &str, x: &Tensor) -> Vec<String> {
    let path = if path.is_empty() { "p" } else { path };
    let name = |mut i: usize| {
        let mut index: Vec<String> = Vec::new();
        for axis in x.shape().iter().rev() {
            index.insert(0, (i % axis).to_string());
            i /= axis;
        }
        match index.is_empty() {
            true => path.to_owned(),
            false => format!("{path}[{}]", index.join(",")),
        }
    };
    (0..x.size()).map(name).collect()
}

/// The tree with the parameters of the row `p`.
fn with_parameters<M: Tree>(at: &M, p: &Tensor) -> M {
    let mut from = 0;
    let of = |(path, x): (String, Tensor)| {
        if !is_parameter(&path, &x) {
            return x;
        }
        from += x.size();
        p.slice(0, from - x.size()..from).reshape(x.shape().clone()).cast(x.dtype())
    };
    at.with_leaves(at.named_leaves().into_iter().map(of).collect::<Vec<_>>())
}

/// A change of the parameters as text: `p[0] changes by 1 and p[1] by -2`.
fn combination(names: &[String], change: &[f64]) -> String {
    let parts: Vec<String> = names
        .iter()
        .zip(change)
        .filter(|(_, change)| **change != 0.0)
        .enumerate()
        .map(|(i, (name, change))| {
            let verb = if i == 0 { " changes" } else { "" };
            format!("{name}{verb} by {}", rounded(*change))
        })
        .collect();
    match parts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => parts.concat(),
    }
}

/// A number in at most three digits.
fn rounded(x: f64) -> String {
    let x: f64 = format!("{x:.2e}").parse().expect("invariant: a number");
    if (1e-3..1e4).contains(&x.abs()) { x.to_string() } else { format!("{x:e}") }
}

fn finite(leaf: &str, x: &Tensor) -> Result<()> {
    let values = x.to_vec();
    let Some(at) = values.iter().position(|x| !x.is_finite()) else { return Ok(()) };
    Err(Error::NonFinite { leaf: leaf.to_owned(), index: x.shape().unravel(at), value: values[at] })
}
