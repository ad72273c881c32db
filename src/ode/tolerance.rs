//! `Tolerance`: error tolerances, one value for all components or one per component.
//!
//! There are two forms. Users and solutions have one [`Tol`] for rtol and one for atol. [`Tolerance`] borrows
//! both during a solve, is `Copy`, and is read component by component. It does not depend on the state:
//! components are numbered in the state's own order, part by part.

use super::ConfigError;

/// A scalar for all components, or one value per component.
#[derive(Clone, Debug, PartialEq)]
pub enum Tol {
    /// One value for all components.
    All(f64),
    /// One value per component, or per part if there are as many values as parts.
    Each(Vec<f64>),
}

impl From<f64> for Tol {
    fn from(x: f64) -> Self {
        Tol::All(x)
    }
}
impl<const N: usize> From<[f64; N]> for Tol {
    fn from(xs: [f64; N]) -> Self {
        Tol::Each(xs.to_vec())
    }
}
impl From<Vec<f64>> for Tol {
    fn from(xs: Vec<f64>) -> Self {
        Tol::Each(xs)
    }
}
impl From<&[f64]> for Tol {
    fn from(xs: &[f64]) -> Self {
        Tol::Each(xs.to_vec())
    }
}

impl std::fmt::LowerExp for Tol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Tol::All(x) => write!(f, "{x:e}"),
            Tol::Each(xs) => {
                let (low, high) = xs.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), &x| (l.min(x), h.max(x)));
                write!(f, "{low:e}..{high:e}")
            }
        }
    }
}

impl Tol {
    /// The same tolerance for a state whose parts have `parts` components: one value per part becomes one per
    /// component.
    ///
    /// # Errors
    /// A number of values that matches neither components nor parts.
    pub(super) fn spread(&self, name: &'static str, parts: &[usize]) -> Result<Tol, ConfigError> {
        let Tol::Each(xs) = self else { return Ok(self.clone()) };
        let components: usize = parts.iter().sum();
        if xs.len() == components {
            return Ok(self.clone());
        }
        if parts.len() > 1 && xs.len() == parts.len() {
            let each = xs.iter().zip(parts).flat_map(|(&x, &n)| std::iter::repeat_n(x, n));
            return Ok(Tol::Each(each.collect()));
        }
        Err(ConfigError::ToleranceLength { name, len: xs.len(), components, parts: parts.len() })
    }

    fn number(&self) -> f64 {
        match self {
            Tol::All(x) => *x,
            Tol::Each(_) => f64::NAN,
        }
    }
    fn list(&self) -> Option<&[f64]> {
        match self {
            Tol::All(_) => None,
            Tol::Each(xs) => Some(xs),
        }
    }
}

/// The tolerance `atol_j + rtol_j max(|y0_j|, |y1_j|)` of component j.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance<'a> {
    rtol: f64,
    atol: f64,
    /// One value per component, which replaces `rtol`; `None` if all components have the same.
    rtols: Option<&'a [f64]>,
    atols: Option<&'a [f64]>,
}

impl Tolerance<'static> {
    /// Creates a tolerance that is the same for every component; atol is in the unit of y.
    pub const fn new(rtol: f64, atol: f64) -> Self {
        Tolerance { rtol, atol, rtols: None, atols: None }
    }

    /// The larger rtol and the larger atol, for a state with parts of different precision.
    #[must_use]
    pub fn looser(self, other: Self) -> Self {
        Tolerance::new(self.rtol.max(other.rtol), self.atol.max(other.atol))
    }
}

impl<'a> Tolerance<'a> {
    /// Creates a tolerance from rtol and atol, each a scalar or one value per component.
    pub fn of(rtol: &'a Tol, atol: &'a Tol) -> Self {
        Tolerance { rtol: rtol.number(), atol: atol.number(), rtols: rtol.list(), atols: atol.list() }
    }

    /// rtol and atol, if they are the same for every component.
    #[inline(always)]
    pub fn uniform(&self) -> Option<(f64, f64)> {
        match (self.rtols, self.atols) {
            (None, None) => Some((self.rtol, above_zero(self.atol))),
            _ => None,
        }
    }

    /// rtol and atol of component j.
    #[inline(always)]
    pub fn at(&self, j: usize) -> (f64, f64) {
        (self.rtols.map_or(self.rtol, |r| r[j]), above_zero(self.atols.map_or(self.atol, |a| a[j])))
    }

    /// The tolerances of the first n components, and of the others.
    #[inline(always)]
    pub fn split(&self, n: usize) -> (Self, Self) {
        let cut = |list: Option<&'a [f64]>| match list {
            None => (None, None),
            Some(xs) => (Some(&xs[..n]), Some(&xs[n..])),
        };
        let ((r0, r1), (a0, a1)) = (cut(self.rtols), cut(self.atols));
        (Tolerance { rtols: r0, atols: a0, ..*self }, Tolerance { rtols: r1, atols: a1, ..*self })
    }

    /// Rejects an rtol between 0 and `epsilon`, the precision of the numbers of the state, because rounding alone
    /// exceeds it.
    pub(super) fn check_precision(&self, epsilon: f64) -> Result<(), ConfigError> {
        let rtols = self.rtols.unwrap_or(std::slice::from_ref(&self.rtol));
        match rtols.iter().find(|rtol| 0.0 < **rtol && **rtol < epsilon) {
            Some(&rtol) => Err(ConfigError::TolerancePrecision { rtol, least: epsilon }),
            None => Ok(()),
        }
    }

    /// Rejects tolerances that are negative, NaN or infinite, components whose rtol and atol are both 0, and an
    /// rtol of 1 or more, which allows errors as large as y.
    pub fn check(&self) -> Result<(), ConfigError> {
        let valid = |x: f64| x.is_finite() && x >= 0.0;
        let n = self.rtols.map_or(0, <[f64]>::len).max(self.atols.map_or(0, <[f64]>::len)).max(1);
        for j in 0..n {
            let (rtol, atol) =
                (self.rtols.map_or(self.rtol, |r| r[j]), self.atols.map_or(self.atol, |a| a[j]));
            if !(valid(rtol) && valid(atol) && rtol + atol > 0.0 && rtol < 1.0) {
                return Err(ConfigError::Tolerance { rtol, atol });
            }
        }
        Ok(())
    }
}

/// atol as used in divisions. It is above 0, so that a component that stays 0 has the error 0, not 0/0.
#[inline(always)]
fn above_zero(atol: f64) -> f64 {
    atol.max(f64::MIN_POSITIVE)
}
