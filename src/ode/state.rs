//! `State`: the integrated quantity as the stepping algorithm sees it.
//!
//! A Runge-Kutta step needs only a few operations on states; arrays, `Vec`s and trees of tensors implement
//! them. Stages are passed as [`Stages`], not as a slice, because the stages of one part of a compound state
//! are not contiguous. A state does not depend on the method, the controller or the loop. Alternatives
//! considered: operators (`y + dt * k`), which allocate a temporary per term of a heap state and record a
//! node per term of a traced one; a slice of `f64`, which tensors are not.

use super::{Clock, ShapeMismatch, Tolerance};

/// The stages of a step, one state each.
pub trait Stages<S> {
    /// Whether sums of these stages use fused multiply-add.
    ///
    /// It is true only in loops compiled for a CPU level that has the instruction. On other levels, each
    /// fused multiply-add would be a call into the C library.
    const FUSED: bool = false;
    /// Whether the weights are compile-time constants, so that sums of small states are unrolled.
    const KNOWN: bool = false;
    /// Stage `i`.
    fn stage(&self, i: usize) -> &S;
    /// The number of stages.
    fn count(&self) -> usize;
}
impl<S> Stages<S> for [S] {
    #[inline(always)]
    fn stage(&self, i: usize) -> &S {
        &self[i]
    }
    #[inline(always)]
    fn count(&self) -> usize {
        self.len()
    }
}
/// Stages in a loop compiled for the CPU's instruction set, or for a method.
#[derive(Debug)]
pub struct Compiled<'a, S, const FUSED: bool, const KNOWN: bool>(pub &'a [S]);
impl<S, const FUSED: bool, const KNOWN: bool> Stages<S> for Compiled<'_, S, FUSED, KNOWN> {
    const FUSED: bool = FUSED;
    const KNOWN: bool = KNOWN;
    #[inline(always)]
    fn stage(&self, i: usize) -> &S {
        &self.0[i]
    }
    #[inline(always)]
    fn count(&self) -> usize {
        self.0.len()
    }
}
impl<S> Stages<S> for Vec<S> {
    #[inline(always)]
    fn stage(&self, i: usize) -> &S {
        &self[i]
    }
    #[inline(always)]
    fn count(&self) -> usize {
        self.len()
    }
}
impl<S, const N: usize> Stages<S> for [S; N] {
    #[inline(always)]
    fn stage(&self, i: usize) -> &S {
        &self[i]
    }
    #[inline(always)]
    fn count(&self) -> usize {
        N
    }
}

/// The integrated quantity: numbers that can be combined linearly and measured against a tolerance.
///
/// Plain states are: f64, f32; arrays and `Vec`s of them; nalgebra's vectors and matrices (feature
/// `nalgebra`); ndarray's arrays of any dimension (feature `ndarray`); tuples of up to six states; structs of
/// states by [`state!`](crate::state!). Components are numbered in memory order; those of an ndarray array in
/// logical order; those of a tuple or struct part by part. Plain states have an f64 clock, even if y is f32.
///
/// Every implementation must give the same bits for the same inputs, whether called from `attempt` or from
/// `step`.
///
/// # Examples
/// ```
/// use flowline::ode::Ode;
/// let exact = (-1.0_f64).exp();
/// let close = |y: f64| assert!((y - exact).abs() < 1e-4);
/// close(Ode::new(|_t, y: &f64| -y).solve(0.0, 1.0, 1.0)?.y1);
/// close(Ode::new(|_t, y: &[f32; 2]| y.map(|y| -y)).solve(0.0, 1.0, [1.0; 2])?.y1[1].into());
/// close(Ode::in_place(|_t, y: &[f64], dy: &mut [f64]| dy[0] = -y[0]).solve(0.0, 1.0, vec![1.0])?.y1[0]);
/// close(Ode::new(|_t, y: &(f64, [f64; 2])| (-y.0, y.1)).solve(0.0, 1.0, (1.0, [1.0; 2]))?.y1.0);
/// # Ok::<(), flowline::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a state that flowline can integrate",
    label = "not a `State`",
    note = "a state is f64, f32, [f64; N], [f32; N], Vec<f64>, Vec<f32>, a nalgebra vector or matrix, an ndarray array (features `nalgebra`, `ndarray`), a tuple of these, or a struct of them made by `state!`",
    note = "a slice has no size: use `y: &Vec<f64>`, or write dy in place with `Ode::in_place(|t, y: &[f64], dy: &mut [f64]| ...)`"
)]
pub trait State: Clone {
    /// The number type of t and dt.
    type Clock: Clock;

    /// `self = y + dt * sum_i a_i k_i`. Terms with `a_i == 0` are skipped, so a NaN in their `k_i` is harmless.
    ///
    /// Before the call, `self` has the right shape and unspecified values.
    fn lincomb<K: Stages<Self> + ?Sized>(&mut self, y: &Self, dt: &Self::Clock, a: &[f64], k: &K);

    /// The RMS over all components of `dt sum_i b_i k_i / (atol + rtol max(|y0|, |y1|))`; `self` is scratch.
    ///
    /// Terms with `b_i == 0` are skipped. The result is not finite if a component of the sum or of `y1` is not finite.
    ///
    /// Implement this or [`error_sum`](Self::error_sum): the default of each calls the other.
    #[inline(always)]
    fn error_ratio<K: Stages<Self> + ?Sized>(
        &mut self,
        dt: &Self::Clock,
        b: &[f64],
        k: &K,
        y0: &Self,
        y1: &Self,
        tol: &Tolerance,
    ) -> Self::Clock {
        let sum = self.error_sum(dt, b, k, y0, y1, tol);
        sum.mul(&sum.like(1.0 / self.num_components().max(1) as f64)).sqrt()
    }

    /// [`error_ratio`](Self::error_ratio) squared, times the number of components: the quantity that a tuple
    /// or struct sums over its parts.
    fn error_sum<K: Stages<Self> + ?Sized>(
        &mut self,
        dt: &Self::Clock,
        b: &[f64],
        k: &K,
        y0: &Self,
        y1: &Self,
        tol: &Tolerance,
    ) -> Self::Clock {
        let ratio = self.error_ratio(dt, b, k, y0, y1, tol);
        ratio.mul(&ratio).mul(&ratio.like(self.num_components() as f64))
    }

    /// Writes the scaled errors `dt sum_i b_i k_i / (atol + rtol max(|y0|, |y1|))` into `self`, for custom norms.
    ///
    /// Not finite if a component of the sum or of `y1` is not finite.
    fn scaled_error<K: Stages<Self> + ?Sized>(
        &mut self,
        dt: &Self::Clock,
        b: &[f64],
        k: &K,
        y0: &Self,
        y1: &Self,
        tol: &Tolerance,
    );

    /// Copies `other` without allocating. A type whose `clone_from` allocates must override it.
    #[inline(always)]
    fn copy_of(&mut self, other: &Self) {
        self.clone_from(other);
    }

    /// The number of components.
    fn num_components(&self) -> usize;

    /// The number of components of each part: one part, unless the state consists of several states.
    fn parts(&self) -> Vec<usize> {
        vec![self.num_components()]
    }

    /// Replaces `self` by `new` where `m` holds; `new` is unspecified afterwards.
    fn keep(&mut self, m: &<Self::Clock as Clock>::Mask, new: &mut Self);

    /// The index of the first component that is NaN or infinite, as a number in the lanes or the trace of
    /// `like`; -1 if there is none.
    fn first_non_finite(&self, like: &Self::Clock) -> Self::Clock;

    /// Checks that `self`, which code of the caller may have changed, has the shape of `y`.
    ///
    /// # Errors
    /// The two shapes, and the part of the state that has them.
    #[inline(always)]
    fn conforms(&self, _y: &Self) -> Result<(), ShapeMismatch> {
        Ok(())
    }
}
