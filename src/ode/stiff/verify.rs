//! One comparison of the Jacobian with the vector field per solve: along one direction, and entry by entry
//! only if the two disagree.
//!
//! A sparsity pattern that is too narrow and a wrong Jacobian change no step's solution by much, but multiply the
//! number of steps, up to a hundredfold. The comparison costs one evaluation. The direction moves every
//! component by a different fraction of the increment of a forward difference, so no two wrong entries cancel.
//! A vector field that is not smooth, or whose derivative vanishes at the start, may disagree as well. An entry
//! is reported only if differences at several distances on both sides agree with each other and not with the
//! entry.

use crate::ode::ConfigError;
use crate::ode::linear::Coloring;

/// The relative difference from which an entry is wrong.
const WRONG: f64 = 0.1;
/// The relative difference of two differences up to which f is taken as linear between them.
const LINEAR: f64 = 0.05;
/// A multiple of the machine epsilon, which bounds the rounding error of f relative to its terms.
const ROUNDING: f64 = 100.0;

/// A Jacobian, and the point at which it was computed.
pub(super) struct Claim<'a> {
    pub t: f64,
    pub y: &'a [f64],
    /// f(t, y).
    pub f: &'a [f64],
    /// The size of each component, with the sign of an increment.
    pub sizes: &'a [f64],
    /// The machine epsilon of the precision in which f is evaluated.
    pub epsilon: f64,
    pub plan: &'a Coloring,
    /// Whether the user wrote the Jacobian. Otherwise only entries outside of the pattern can be wrong.
    pub is_given: bool,
    /// The entries of row i that are not 0, with their columns.
    pub row: &'a dyn Fn(usize) -> Vec<(usize, f64)>,
}

/// Evaluates f(t, y) for the y given. Returns false if the vector field fails.
pub(super) type Eval<'a> = dyn FnMut(&[f64], &mut [f64]) -> bool + 'a;

impl Claim<'_> {
    /// Returns the error that names a wrong entry, if there is one.
    pub fn verify(&self, eval: &mut Eval<'_>) -> Option<ConfigError> {
        let n = self.y.len();
        let direction: Vec<f64> = (0..n).map(|j| self.sizes[j] * self.epsilon.sqrt() * fraction(j)).collect();
        let at = |part: f64| -> Vec<f64> { (0..n).map(|j| self.y[j] + part * direction[j]).collect() };
        let whole = self.change(&at(1.0), eval)?;
        let mut suspects: Vec<usize> = (0..n).filter(|&i| self.differs(i, &at(1.0), whole[i])).collect();
        if suspects.is_empty() {
            return None;
        }
        let half = self.change(&at(0.5), eval)?;
        suspects.retain(|&i| is_close(whole[i], 2.0 * half[i]));
        if suspects.is_empty() { None } else { self.search(&suspects, eval) }
    }

    /// `f(t, y) - f` at `moved`; `None` if the vector field fails.
    fn change(&self, moved: &[f64], eval: &mut Eval<'_>) -> Option<Vec<f64>> {
        let mut f = vec![0.0; moved.len()];
        let is_good = eval(moved, &mut f);
        f.iter_mut().zip(self.f).for_each(|(f, &base)| *f -= base);
        is_good.then_some(f)
    }

    /// Whether row i of the Jacobian gives another change of f than `change`. A change that is not finite does
    /// not differ.
    fn differs(&self, i: usize, moved: &[f64], change: f64) -> bool {
        let (mut product, mut terms) = (0.0, 0.0);
        for (j, entry) in (self.row)(i) {
            let term = entry * (moved[j] - self.y[j]);
            product += term;
            terms += f64::abs(term);
        }
        (change - product).abs() > WRONG * terms + self.noise(i, 0.0) && change.is_finite()
    }

    /// A bound of the rounding error of `f[i]`. `term` is the magnitude of a term beside those of the Jacobian.
    fn noise(&self, i: usize, term: f64) -> f64 {
        let terms: f64 = (self.row)(i).iter().map(|&(j, entry)| (entry * self.sizes[j]).abs()).sum();
        ROUNDING * self.epsilon * (self.f[i].abs() + terms + term)
    }

    /// Finds the entry of the suspected rows that is most wrong, relative to the rounding error of its row.
    fn search(&self, suspects: &[usize], eval: &mut Eval<'_>) -> Option<ConfigError> {
        let mut worst: Option<(f64, ConfigError)> = None;
        for j in 0..self.y.len() {
            let distance = self.sizes[j] * self.epsilon.cbrt();
            let mut slopes = |part: f64| {
                let mut moved = self.y.to_vec();
                moved[j] += part * distance;
                let change = self.change(&moved, eval)?;
                Some(change.into_iter().map(|change| change / (moved[j] - self.y[j])).collect::<Vec<f64>>())
            };
            let (Some(whole), Some(half), back) = (slopes(1.0), slopes(0.5), slopes(-1.0)) else { continue };
            for &i in suspects.iter().filter(|&&i| self.is_given || !self.plan.contains(i, j)) {
                let entry = (self.row)(i).iter().find(|(column, _)| *column == j).map_or(0.0, |&(_, x)| x);
                let (slope, term) = (half[i], (half[i] * self.sizes[j]).abs());
                let is_smooth = is_close(whole[i], slope)
                    && back.as_ref().is_none_or(|back| is_close(back[i], slope) || !back[i].is_finite());
                let error = (slope - entry).abs();
                let ratio = error * distance.abs() / self.noise(i, term);
                let is_wrong = error > WRONG * slope.abs().max(entry.abs()) && ratio > 2.0;
                if is_smooth && is_wrong && worst.as_ref().is_none_or(|(most, _)| ratio > *most) {
                    worst = Some((ratio, self.error((i, j), entry, slope)));
                }
            }
        }
        worst.map(|(_, error)| error)
    }

    fn error(&self, (row, column): (usize, usize), given: f64, difference: f64) -> ConfigError {
        let t = self.t;
        if self.plan.contains(row, column) {
            ConfigError::WrongJacobian { row, column, t, given, difference }
        } else {
            ConfigError::SparsityTooNarrow { row, column, t, difference }
        }
    }
}

/// A fixed pseudorandom number in [0.5, 1).
fn fraction(j: usize) -> f64 {
    let mut x = (j as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    0.5 + ((x ^ (x >> 31)) >> 12) as f64 / (1_u64 << 53) as f64
}

/// Whether two numbers are equal but for the nonlinearity of f; false for NaN.
fn is_close(a: f64, b: f64) -> bool {
    (a - b).abs() <= LINEAR * a.abs().max(b.abs())
}
