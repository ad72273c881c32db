//! Interpolation of measured inputs: a function u(t) from rows (t, u), for vector fields that data drive.
//!
//! Between two rows, u is a polynomial of degree 0, 1 or 3 in t. A method of order p keeps its order only on steps that
//! do not contain a row's time, so a solve stops there ([`Ode::stop_at_rows`]). The polynomials are kept by their
//! coefficients, and [`Interpolation::at`] is generic over numbers, so that one implementation serves plain vector
//! fields, lanes and dual numbers. Tensors have their own, [`Interpolation::of_tensor`].

mod check;
mod error;
mod missing;
#[cfg(test)]
mod tests;

pub(crate) use check::InputRows;
pub use error::InterpolationError;
pub use missing::fill_missing;

use super::{Number, Ode};
use std::array::from_fn;
use std::sync::Arc;

/// A function u(t) with M components through measured rows.
///
/// Three functions make one: [`constant`](Self::constant), [`linear`](Self::linear) and [`hermite`](Self::hermite).
/// [`at`](Self::at) evaluates it. A clone shares the rows.
///
/// Outside of its rows, u is NaN, and a solve that [stops at the rows](Ode::stop_at_rows) is refused if its interval
/// exceeds them. [`hold`](Self::hold) continues the first and the last row instead.
///
/// # Examples
/// A tank with a measured inflow:
/// ```
/// use flowline::ode::{Interpolation, Ode};
/// let hours = [0.0, 1.0, 2.0, 4.0];
/// let inflow = Interpolation::linear(&hours, &[[0.0], [3.0], [1.0], [0.0]])?;
/// let tank = Ode::new(|t: f64, level: &f64| inflow.at(t)[0] - 0.5 * level).stop_at_rows(&inflow);
/// let solution = tank.rtol(1e-9).solve(0.0, 4.0, 0.0)?;
/// assert!((solution.y1 - 1.368_697).abs() < 1e-6, "{}", solution.y1);
/// # Ok::<(), flowline::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Interpolation<const M: usize> {
    times: InputRows,
    rows: Arc<Rows<M>>,
}

impl<const M: usize> PartialEq for Interpolation<M> {
    fn eq(&self, other: &Self) -> bool {
        let same = Arc::ptr_eq(&self.rows, &other.rows);
        self.times.holds == other.times.holds
            && (same || self.rows == other.rows && self.times.ts == other.times.ts)
    }
}

#[derive(Debug, PartialEq)]
struct Rows<const M: usize> {
    kind: Between,
    /// The rows as given.
    values: Vec<[f64; M]>,
    /// Before the first row, between rows, behind the last row: one more piece than rows.
    pieces: Vec<Piece<M>>,
}

/// The polynomials between two rows.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece<const M: usize> {
    /// The time at which the argument of the polynomials is 0.
    start: f64,
    /// The coefficients of each component, from the constant one.
    coefficients: [[f64; 4]; M],
}

/// What lies between two rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Between {
    Constant,
    Linear,
    Hermite,
}

impl<const M: usize> Interpolation<M> {
    /// Each row holds until the next one: `u(t) = u_i` for `t_i <= t < t_(i+1)`.
    ///
    /// # Errors
    /// No rows; another number of times than of rows; a time that is not finite or not after the one before; a value
    /// that is NaN ([`fill_missing`] fills it) or infinite.
    pub fn constant(ts: &[f64], rows: &[[f64; M]]) -> Result<Self, InterpolationError> {
        Self::new(Between::Constant, ts, rows)
    }

    /// Straight lines between the rows.
    ///
    /// # Errors
    /// As [`constant`](Self::constant); fewer than two rows; a slope that is too large for a number.
    pub fn linear(ts: &[f64], rows: &[[f64; M]]) -> Result<Self, InterpolationError> {
        Self::new(Between::Linear, ts, rows)
    }

    /// Cubic polynomials with a continuous derivative: at each row, u' is the slope from the row before, at the first
    /// row the slope to the second.
    ///
    /// With `h = t_(i+1) - t_i`, `d_i = (u_i - u_(i-1)) / (t_i - t_(i-1))` and `s = t - t_i`:
    /// `u(t) = u_i + d_i s + 2 (d_(i+1) - d_i) s^2 / h - (d_(i+1) - d_i) s^3 / h^2`. Slopes from the past make u up to a
    /// row independent of later rows. Two rows close together may make a steep slope, which continues into the next
    /// interval; [`linear`](Self::linear) has no such overshoot.
    ///
    /// # References
    /// Morrill, Kidger, Yang and Lyons (2022), On the choice of interpolation scheme for neural CDEs, TMLR, section 3.4.
    ///
    /// # Errors
    /// As [`linear`](Self::linear).
    pub fn hermite(ts: &[f64], rows: &[[f64; M]]) -> Result<Self, InterpolationError> {
        Self::new(Between::Hermite, ts, rows)
    }

    fn new(kind: Between, ts: &[f64], rows: &[[f64; M]]) -> Result<Self, InterpolationError> {
        error::check(ts, rows, if kind == Between::Constant { 1 } else { 2 })?;
        let (first, last) = (rows[0], rows[rows.len() - 1]);
        let constant = |start, row: [f64; M]| Piece { start, coefficients: row.map(|u| [u, 0.0, 0.0, 0.0]) };
        let mut pieces = vec![constant(ts[0], first)];
        let slopes = slopes(ts, rows);
        for i in 0..rows.len() - 1 {
            let h = ts[i + 1] - ts[i];
            let of = |m| between(kind, h, rows[i][m], [slopes[i][m], slopes[i + 1][m]]);
            let coefficients: [[f64; 4]; M] = from_fn(of);
            let is_finite = |c: &[f64; 4]| h.is_finite() && c.iter().all(|x| x.is_finite());
            if let Some(column) = coefficients.iter().position(|c| !is_finite(c)) {
                return Err(InterpolationError::TooSteep { row: i, column });
            }
            pieces.push(Piece { start: ts[i], coefficients });
        }
        pieces.push(constant(ts[ts.len() - 1], last));
        let shortest = ts.windows(2).map(|t| t[1] - t[0]).fold(f64::INFINITY, f64::min);
        let is_discontinuous = kind == Between::Constant;
        let times = InputRows { ts: ts.into(), shortest, is_discontinuous, holds: false };
        Ok(Interpolation { times, rows: Arc::new(Rows { kind, values: rows.to_vec(), pieces }) })
    }

    /// Before the first row, u is the first row, and behind the last row, the last row.
    pub fn hold(mut self) -> Self {
        self.times.holds = true;
        self
    }

    /// The times of the rows.
    pub fn ts(&self) -> &[f64] {
        &self.times.ts
    }

    /// The values of the rows.
    pub fn rows(&self) -> &[[f64; M]] {
        &self.rows.values
    }

    /// u(t), for t as an `f64` or as the number of a [`vector_field!`](crate::vector_field), whose lanes may be at
    /// different times. NaN outside of the rows, unless they are [held](Self::hold).
    #[inline]
    pub fn at<R: Number>(&self, t: R) -> [R; M] {
        let (mut start, mut c) = (R::from(0.0), [[R::from(0.0); 4]; M]);
        t.values(|lane, t| {
            let piece = self.piece(t, R::EPSILON);
            start.set_value(lane, piece.start);
            for (c, piece) in c.iter_mut().zip(&piece.coefficients) {
                c.iter_mut().zip(piece).for_each(|(c, x)| c.set_value(lane, *x));
            }
        });
        let s = t - start;
        c.map(|[c0, c1, c2, c3]| ((c3 * s + c2) * s + c1) * s + c0)
    }

    /// The polynomials at t, a number of precision `epsilon`.
    #[inline]
    fn piece(&self, t: f64, epsilon: f64) -> Piece<M> {
        let [first, last] = self.times.range(epsilon);
        if t.is_nan() || t < first || t > last {
            return Piece { start: 0.0, coefficients: [[f64::NAN; 4]; M] };
        }
        self.rows.pieces[self.ts().partition_point(|&row| row <= t)]
    }

    /// The times at which u is not NaN.
    #[cfg(feature = "autodiff")]
    pub(crate) fn range(&self) -> [f64; 2] {
        self.times.range(f64::EPSILON)
    }

    #[cfg(feature = "autodiff")]
    pub(crate) fn kind(&self) -> Between {
        self.rows.kind
    }
}

/// At each row the slope from the row before, at the first row the slope to the second; zeros for a single row.
fn slopes<const M: usize>(ts: &[f64], rows: &[[f64; M]]) -> Vec<[f64; M]> {
    let slope = |i: usize| from_fn(|m| (rows[i][m] - rows[i - 1][m]) / (ts[i] - ts[i - 1]));
    (0..rows.len()).map(|i| if rows.len() == 1 { [0.0; M] } else { slope(i.max(1)) }).collect()
}

/// The coefficients between two rows at a distance of `h`: `u` is the first value, `slopes` are those at both rows.
fn between(kind: Between, h: f64, u: f64, [d0, d1]: [f64; 2]) -> [f64; 4] {
    match kind {
        Between::Constant => [u, 0.0, 0.0, 0.0],
        Between::Linear => [u, d1, 0.0, 0.0],
        Between::Hermite => [u, d0, 2.0 * (d1 - d0) / h, (d0 - d1) / h / h],
    }
}

impl<Y: super::OdeState, F, O> Ode<'_, Y, F, O> {
    /// Steps end at the times of an interpolation's rows, so that the method keeps its order. Where u, or for a stiff
    /// method one of its derivatives, is discontinuous, they are [`discontinuities`](Self::discontinuities), otherwise
    /// [`tstops`](Self::tstops). The times of a [`StepTo`](super::StepTo) must include those inside the interval. A solve
    /// whose interval exceeds rows that are not [held](Interpolation::hold) is an error, and so is a traced t0 or t1. Call
    /// it once per interpolation.
    pub fn stop_at_rows<const M: usize>(mut self, u: &Interpolation<M>) -> Self {
        self.settings.inputs.push(u.times.clone());
        self
    }
}
