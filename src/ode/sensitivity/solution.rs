//! `Sensitivity`: a solution with its derivatives.

use super::assemble::Curves;
use crate::ode::shown::shown;
use crate::ode::{ConfigError, DenseOutput, GenericField, Outcome, Stats, Tol, Warning};
use std::fmt;

/// A solution and its derivatives with respect to parameters and initial state.
///
/// A derivative with respect to the parameters has the form of the vector field's struct, in which each
/// parameter is replaced by the derivative with respect to it. It is NaN for parameters that
/// [`with_respect_to`](super::SensitivityBuilder::with_respect_to) does not select.
///
/// Times that an event sets, or that depend on parameters, have derivatives. The derivative of a state at
/// such a time is the total derivative: it includes the motion of the time. At given times it is the derivative
/// at this fixed time.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Sensitivity<G: GenericField<N>, const N: usize> {
    /// The time reached.
    pub t1: f64,
    /// The state at t1, bit for bit equal to that of the plain solve.
    pub y1: [f64; N],
    /// `dt1_dp.name` is dt1 / d name. For a selected parameter it is 0 unless an event ended the solve, or it ended
    /// early at a time that depends on parameters.
    pub dt1_dp: G::Of<f64>,
    /// `dt1_dy0[j]` is dt1 / dy0_j.
    pub dt1_dy0: [f64; N],
    /// `dy1_dp.name[i]` is dy1_i / d name.
    pub dy1_dp: G::Of<[f64; N]>,
    /// `dy1_dy0[i][j]` is dy1_i / dy0_j.
    pub dy1_dy0: [[f64; N]; N],
    /// The saved times.
    pub ts: Vec<f64>,
    /// The states at these times, bit for bit equal to those of the plain solve.
    pub ys: Vec<[f64; N]>,
    /// `dys_dp[k].name[i]` is dy_i / d name at time k.
    pub dys_dp: Vec<G::Of<[f64; N]>>,
    /// `dys_dy0[k][i][j]` is dy_i / dy0_j at time k.
    pub dys_dy0: Vec<[[f64; N]; N]>,
    /// The values of [`observe`](super::SensitivityBuilder::observe), at each saved time in turn.
    pub observed: Vec<f64>,
    /// The derivatives of `observed` with respect to the parameters.
    pub dobserved_dp: Vec<G::Of<f64>>,
    /// The derivatives of `observed` with respect to the initial state.
    pub dobserved_dy0: Vec<[f64; N]>,
    /// Records of events, in the order of the solve.
    pub events: Vec<EventSensitivity<G, N>>,
    /// t0 and the end times of all accepted steps.
    pub step_times: Vec<f64>,
    /// The counters of the plain solve.
    pub stats: Stats,
    /// The number of times the accepted steps were computed again, each with up to
    /// [`DIRECTIONS`](crate::ode::DIRECTIONS) directions.
    pub num_passes: usize,
    /// Why the solve ended.
    pub outcome: Outcome,
    /// Warnings about the solution and its derivatives.
    pub warnings: Vec<Warning>,
    /// The method used.
    pub method: String,
    /// The relative tolerance used.
    pub rtol: Tol,
    /// The absolute tolerance used.
    pub atol: Tol,
    pub(super) dense: Option<DenseOutput<[f64; N]>>,
    pub(super) curves: Curves<G>,
    /// The numbers of observables, or of components if there are none, and of directions.
    pub(super) sizes: [usize; 2],
    pub(super) matrix: Vec<f64>,
}

/// The record of an event that occurred, with its derivatives.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EventSensitivity<G: GenericField<N>, const N: usize> {
    /// The index of the event, in the order of declaration.
    pub index: usize,
    /// The time of the event.
    pub t: f64,
    /// The state at this time, before a state reset of the event.
    pub y: [f64; N],
    /// `dt_dp.name` is dt / d name.
    pub dt_dp: G::Of<f64>,
    /// `dt_dy0[j]` is dt / dy0_j.
    pub dt_dy0: [f64; N],
    /// `dy_dp.name[i]` is the total derivative dy_i / d name along the moving event.
    pub dy_dp: G::Of<[f64; N]>,
    /// `dy_dy0[i][j]` is the total derivative dy_i / dy0_j along the moving event.
    pub dy_dy0: [[f64; N]; N],
}

impl<G: GenericField<N>, const N: usize> Sensitivity<G, N> {
    /// The derivatives of the observed numbers, or of the components if nothing is observed, as one matrix
    /// `[time, observed number, direction]`, and its shape. The directions are the selected parameters in the
    /// order of declaration, then the components of y0 if y0 is given as numbers and
    /// [`with_respect_to`](super::SensitivityBuilder::with_respect_to) was not called. The first two axes
    /// together are the rows of the Jacobian of a fit.
    pub fn sensitivity_matrix(&self) -> (&[f64], [usize; 3]) {
        let [rows, directions] = self.sizes;
        (&self.matrix, [self.ts.len(), rows, directions])
    }

    /// The state at `t`, and its derivatives with respect to the parameters and to y0, from dense output. `t` is a
    /// given time: it has no derivatives.
    ///
    /// # Errors
    /// As [`DenseOutput::eval`]; [`ConfigError::NotSaved`] unless
    /// [`SaveAt::dense`](crate::ode::SaveAt::dense) was selected.
    ///
    /// # Examples
    /// ```
    /// use flowline::ode::{Ode, SaveAt};
    /// flowline::vector_field! {
    ///     struct Decay<R> { rate: R }
    ///     fn eval(&self, _t, y: &[R; 1]) -> [R; 1] { [-self.rate * y[0]] }
    /// }
    /// let decay = Ode::from_generic(Decay { rate: 2.0 }).rtol(1e-9).save_at(SaveAt::dense());
    /// let s = decay.forward_sensitivity().solve(0.0, 1.0, [3.0])?;
    /// let (y, by_parameters, by_y0) = s.eval(0.3)?;
    /// assert!((by_parameters.rate[0] + 0.3 * y[0]).abs() < 1e-7);
    /// assert!((by_y0[0][0] - y[0] / 3.0).abs() < 1e-7);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn eval(&self, t: f64) -> Result<([f64; N], G::Of<[f64; N]>, [[f64; N]; N]), ConfigError> {
        let y = self.dense()?.eval(t)?;
        let (by_params, by_y0) = self.curves.at(t)?;
        Ok((y, by_params, by_y0))
    }

    /// The dense output of the plain solve.
    ///
    /// # Errors
    /// [`ConfigError::NotSaved`] unless [`SaveAt::dense`](crate::ode::SaveAt::dense) was selected.
    pub fn dense(&self) -> Result<&DenseOutput<[f64; N]>, ConfigError> {
        self.dense.as_ref().ok_or(ConfigError::NotSaved { what: "dense output" })
    }
}

impl<G: GenericField<N>, const N: usize> fmt::Display for Sensitivity<G, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sensitivity { outcome, t1, stats, rtol, atol, .. } = self;
        write!(f, "{outcome} at t={}: {stats}, rtol={rtol:e}, atol={atol:e}, ", shown(*t1))?;
        match self.num_passes {
            1 => write!(f, "one pass")?,
            passes => write!(f, "{passes} passes")?,
        }
        self.warnings.iter().try_for_each(|warning| write!(f, "; {warning}"))
    }
}
