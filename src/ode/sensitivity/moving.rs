//! `Moving`: the vector field in dual numbers, on a step whose end times have derivatives.
//!
//! Let the times t and t + h of a step have the tangents a and b. Runge-Kutta and Rosenbrock methods commute
//! with an affine change of time. So the step between the moved times is the step from t to t + h of the
//! vector field `w f(T(s), y)` with `T(s) = s + e (a + (b - a) theta)`, `theta = (s - t)/h` and
//! `w = dT/ds = 1 + e (b - a)/h`, where e is the dual unit. All values keep their bits. The Jacobian has the
//! factor w, and the derivative by s the factor `w^2`.

use crate::ode::{DIRECTIONS, FieldDual, FieldError, Linearize, VectorField};
use crate::simd::{Bound, Level};

/// A number with its derivative in each direction of a pass.
pub(super) type D = FieldDual;
/// The state of a replay.
pub(super) type Y = Vec<D>;
/// A derivative in each direction of a pass.
pub(super) type Tangent = [f64; DIRECTIONS];

/// The tangent of a time that has no derivatives.
pub(super) const FIXED: Tangent = [0.0; DIRECTIONS];

/// The vector field behind a pointer, compiled for a CPU level.
pub(super) type Eval<'a> = Bound<'a, D, [D], [D], ()>;

/// The functions of a vector field in dual numbers, with the parameters of one pass.
pub(super) trait DualFunctions: Sync {
    /// The vector field, compiled for a CPU level, or for the target of the crate if `level` is `None`.
    fn eval(&self, level: Option<Level>) -> Eval<'_>;
    /// Calls `column` as [`Linearize::columns`] does.
    fn columns(&self, t: D, y: &[D], colors: (&[usize], usize), column: &mut dyn FnMut(usize, &[D]));
    /// The function of an event.
    fn event(&self, index: usize, t: D, y: &[D]) -> D;
    /// The derivative of an event's function by t alone, where y is on a curve with this slope.
    fn event_rate(&self, index: usize, t: f64, y: &[D], slope: &[D]) -> f64;
    /// Whether an event resets the state.
    fn resets(&self, index: usize) -> bool;
    /// The state reset of an event, if it has one.
    fn reset_by_event(&self, index: usize, t: D, y: &mut [D]);
    /// An entry of a list of times.
    fn time(&self, list: usize, entry: usize) -> D;
    /// The state reset of a list of times, if it has one.
    fn reset_at_time(&self, list: usize, t: D, y: &mut [D], x: f64);
    /// An observable.
    fn observed(&self, index: usize, t: D, y: &[D]) -> D;
}

/// The vector field on one step.
pub(super) struct Moving<'a> {
    pub eval: Eval<'a>,
    pub functions: &'a dyn DualFunctions,
    /// The start of the step, and its size.
    pub t: f64,
    pub h: f64,
    /// The tangents of its start and of its end.
    pub a: Tangent,
    pub b: Tangent,
    pub moves: bool,
}

impl Moving<'_> {
    /// The tangent of a time within the step.
    pub fn tangent_at(&self, s: f64) -> Tangent {
        if !self.moves || self.h == 0.0 {
            return self.a;
        }
        let theta = (s - self.t) / self.h;
        std::array::from_fn(|p| self.a[p] + (self.b[p] - self.a[p]) * theta)
    }

    /// The tangents of w.
    #[inline(always)]
    fn rate(&self, p: usize) -> f64 {
        (self.b[p] - self.a[p]) / self.h
    }

    /// Multiplies `x` by the `power` of w.
    #[inline(always)]
    fn stretch(&self, x: &mut [D], power: f64) {
        for x in x {
            for p in 0..DIRECTIONS {
                x.tangent[p] += power * x.value * self.rate(p);
            }
        }
    }
}

impl VectorField<Y> for Moving<'_> {
    #[inline(always)]
    fn eval(&self, t: &f64, y: &Y, dy: &mut Y) -> Result<(), FieldError> {
        if self.moves {
            self.eval.call(&D { value: *t, tangent: self.tangent_at(*t) }, y, dy);
            self.stretch(dy, 1.0);
        } else {
            self.eval.call(&D::from(*t), y, dy);
        }
        Ok(())
    }
    fn linearize(&self) -> Option<&dyn Linearize<Y>> {
        Some(self)
    }
}

impl Linearize<Y> for Moving<'_> {
    fn columns(
        &self,
        t: &f64,
        y: &Y,
        colors: &[usize],
        num_colors: usize,
        column: &mut dyn FnMut(usize, &Y),
    ) {
        let (time, mut out) = (D { value: *t, tangent: self.tangent_at(*t) }, y.clone());
        self.functions.columns(time, y, (colors, num_colors), &mut |color, dy: &[D]| {
            out.copy_from_slice(dy);
            if self.moves {
                self.stretch(&mut out, if color == num_colors { 2.0 } else { 1.0 });
            }
            column(color, &out);
        });
    }
}
