//! Dense output: the solution between step times.
//!
//! The method's [`Interpolant`] turns the stages of a step into a polynomial. [`Segment`] is the polynomial
//! of one step, [`DenseOutput`] the solution over the whole interval. Neither depends on the controller.

use super::{ConfigError, Interpolant, State};
use std::sync::Arc;

/// One accepted step and its stages.
pub(super) struct Segment<'a, Y> {
    /// The start time of the step.
    pub t: f64,
    /// The step size that its stages were computed with.
    pub h: f64,
    /// The state at t.
    pub y: &'a Y,
    /// The stages of the step, including extra stages for dense output.
    pub k: &'a [Y],
}

impl<Y: State<Clock = f64>> Segment<'_, Y> {
    /// Writes the state at `t` into `out`; `weights` is scratch with one number per stage.
    #[inline]
    pub fn eval(&self, interpolant: &Interpolant, t: f64, weights: &mut [f64], out: &mut Y) {
        interpolant.weights((t - self.t) / self.h, weights);
        out.lincomb(self.y, &self.h, weights, self.k);
    }

    /// Writes dy/dt at `t` into `out`; `zero` is a state of zeros.
    pub fn derivative(&self, interpolant: &Interpolant, t: f64, weights: &mut [f64], zero: &Y, out: &mut Y) {
        interpolant.derivative_weights((t - self.t) / self.h, weights);
        out.lincomb(zero, &1.0, weights, self.k);
    }
}

/// A solution that can be evaluated anywhere in its interval.
///
/// At step times it returns the step's own values; between them the error is that of the method's
/// interpolant, of order [`DenseOutput::order`]. At an event that changes the state, it returns the state
/// before the change.
#[derive(Clone, Debug)]
#[doc(alias = "DenseInterpolation")]
pub struct DenseOutput<Y> {
    /// The interpolants in order; more than one if the solve switched methods.
    pieces: Vec<Piece>,
    /// Ends of the steps, t0 first; the event time for a step that an event cut short.
    step_times: Vec<f64>,
    /// Sizes of the steps before any cut by an event.
    hs: Vec<f64>,
    /// States at the starts of the steps.
    starts: Vec<Y>,
    /// States at the ends of the steps; without steps, the state at t0.
    ends: Vec<Y>,
    /// Stages, as many per step as its interpolant has.
    stages: Vec<Y>,
}

/// Steps with one interpolant.
#[derive(Clone, Debug)]
struct Piece {
    interpolant: Arc<Interpolant>,
    /// The index of the first of these steps, and of its first stage.
    step: usize,
    stage: usize,
}

impl<Y: State<Clock = f64>> DenseOutput<Y> {
    pub(super) fn new(interpolant: Arc<Interpolant>, t0: f64) -> Self {
        DenseOutput {
            pieces: vec![Piece { interpolant, step: 0, stage: 0 }],
            step_times: vec![t0],
            hs: vec![],
            starts: vec![],
            ends: vec![],
            stages: vec![],
        }
    }

    /// Adds a step that is valid until `t_end`, where the state is `y_end`.
    pub(super) fn push(
        &mut self,
        interpolant: &Arc<Interpolant>,
        segment: &Segment<Y>,
        (t_end, y_end): (f64, &Y),
    ) {
        if !Arc::ptr_eq(interpolant, &self.piece(self.hs.len()).interpolant) {
            let (interpolant, step, stage) = (Arc::clone(interpolant), self.hs.len(), self.stages.len());
            self.pieces.push(Piece { interpolant, step, stage });
        }
        if self.hs.is_empty() {
            self.ends.clear();
        }
        self.step_times.push(t_end);
        self.hs.push(segment.h);
        self.starts.push(segment.y.clone());
        self.ends.push(y_end.clone());
        self.stages.extend_from_slice(segment.k);
    }

    /// The order q of the interpolant: inside a step the error is O(h^(q+1)). If the solve switched methods,
    /// it is the lowest order.
    pub fn order(&self) -> u32 {
        self.pieces.iter().map(|piece| piece.interpolant.order()).min().unwrap_or(0)
    }

    /// The piece that contains step i.
    fn piece(&self, i: usize) -> &Piece {
        &self.pieces[self.pieces.partition_point(|piece| piece.step <= i) - 1]
    }

    /// The interval from t0 to the time reached.
    pub fn interval(&self) -> (f64, f64) {
        (self.step_times[0], self.step_times[self.step_times.len() - 1])
    }

    /// The state at `t`.
    ///
    /// # Errors
    /// [`ConfigError::OutsideInterval`] for a t outside [`DenseOutput::interval`].
    #[doc(alias = "evaluate")]
    #[doc(alias = "interpolate")]
    pub fn eval(&self, t: f64) -> Result<Y, ConfigError> {
        let Some(i) = self.find(t)? else { return self.only_point() };
        if t == self.step_times[i + 1] {
            return Ok(self.ends[i].clone());
        }
        if t == self.step_times[i] {
            return Ok(self.starts[i].clone());
        }
        let mut out = self.starts[i].clone();
        let interpolant = &self.piece(i).interpolant;
        self.segment(i).eval(interpolant, t, &mut vec![0.0; interpolant.num_stages()], &mut out);
        Ok(out)
    }

    /// The state and its derivative at `t`, both from the same polynomial.
    ///
    /// # Errors
    /// As [`DenseOutput::eval`]; [`ConfigError::NotSaved`] if there are no steps, because a single point has
    /// no derivative.
    pub fn eval_with_derivative(&self, t: f64) -> Result<(Y, Y), ConfigError> {
        let y = self.eval(t)?;
        let Some(i) = self.find(t)? else {
            return Err(ConfigError::NotSaved { what: "derivative, because it has no steps" });
        };
        let interpolant = &self.piece(i).interpolant;
        let mut weights = vec![0.0; interpolant.num_stages()];
        let (mut zero, mut dy) = (y.clone(), y.clone());
        zero.lincomb(&y, &-1.0, &[1.0], std::slice::from_ref(&y));
        self.segment(i).derivative(interpolant, t, &mut weights, &zero, &mut dy);
        Ok((y, dy))
    }

    /// The states at several times.
    ///
    /// # Errors
    /// As [`DenseOutput::eval`].
    pub fn eval_many(&self, ts: &[f64]) -> Result<Vec<Y>, ConfigError> {
        ts.iter().map(|&t| self.eval(t)).collect()
    }

    /// The number of the step that contains t, and the start and the size that its stages were computed for; `None`
    /// if there are no steps.
    pub(super) fn step_at(&self, t: f64) -> Result<Option<(usize, f64, f64)>, ConfigError> {
        Ok(self.find(t)?.map(|i| (i, self.step_times[i], self.hs[i])))
    }

    /// The end of step i.
    pub(super) fn end_of(&self, i: usize) -> f64 {
        self.step_times[i + 1]
    }

    fn segment(&self, i: usize) -> Segment<'_, Y> {
        let Piece { interpolant, step, stage } = self.piece(i);
        let s = interpolant.num_stages();
        let k = &self.stages[stage + (i - step) * s..][..s];
        Segment { t: self.step_times[i], h: self.hs[i], y: &self.starts[i], k }
    }

    /// The index of the step that contains t; at the end of a step, that step and not the next. `None` if
    /// there are no steps.
    fn find(&self, t: f64) -> Result<Option<usize>, ConfigError> {
        let (t0, t1) = self.interval();
        if !(t0.min(t1) <= t && t <= t0.max(t1)) {
            return Err(ConfigError::OutsideInterval { t, t0, t1 });
        }
        if self.hs.is_empty() {
            return Ok(None);
        }
        let before = |step_time: &f64| if t1 < t0 { *step_time > t } else { *step_time < t };
        Ok(Some(self.step_times.partition_point(before).saturating_sub(1)))
    }

    fn only_point(&self) -> Result<Y, ConfigError> {
        self.ends.first().cloned().ok_or(ConfigError::NotSaved { what: "steps" })
    }

    /// Stores the only point of a solve without steps.
    pub(super) fn point(&mut self, y: &Y) {
        if self.hs.is_empty() {
            self.ends = vec![y.clone()];
        }
    }
}
