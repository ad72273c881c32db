//! `VectorField`: the right-hand side dy/dt = f(t, y), and the closures that implement it.
//!
//! Parameters are captured, so there is no `args`. A vector field receives only t and y, never dt, the method
//! or the step number; otherwise the solution would depend on the choice of steps. Evaluation may fail, for
//! example at the end of a table or if a root search does not converge. Evaluation writes into `dy` instead
//! of returning it, because heap states must not allocate per stage; closures that return dy/dt are wrapped.

use super::attempts::{Run, attempts_by, attempts_of};
use super::inline::InlineMethod;
use super::{Linearize, Native, PlainState, State};
use std::marker::PhantomData;
use std::sync::Arc;

/// The error of a vector field that could not be evaluated.
pub type FieldError = Box<dyn std::error::Error + Send + Sync>;

/// The failure of a vector field, with the time of the evaluation.
#[derive(Debug)]
pub struct FieldFailure<C> {
    /// The time of the stage that failed.
    pub t: C,
    /// The vector field's error.
    pub source: FieldError,
}

impl<C> FieldFailure<C> {
    /// Whether a shorter step may avoid the failure.
    pub(crate) fn is_recoverable(&self) -> bool {
        self.source.is::<Recoverable>()
    }
}

/// An error that shortens the step instead of ending the solve: adaptive steps treat it as NaN.
///
/// It ends the solve like any other error if there is no shorter step to try: at t0, with constant steps or
/// `StepTo`, and after 20 consecutive failed trial steps or when the next step would be below the smallest
/// step size.
///
/// # Examples
/// ```
/// use flowline::ode::{Ode, Recoverable};
/// // a table of rates that ends at y = 0: a trial step may look beyond it, the solution never does
/// let decay = Ode::new(|_t, y: &[f64; 1]| match y[0] >= 0.0 {
///     true => Ok([-1000.0 * y[0]]),
///     false => Err(Recoverable("no rate below 0".into())),
/// });
/// assert!(decay.dt0(0.1).solve(0.0, 1.0, [1.0])?.y1[0] < 1e-6);
/// # Ok::<(), flowline::Error>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Recoverable(pub FieldError);

/// A vector field `dy/dt = f(t, y)`.
///
/// A box or an [`Arc`] of a vector field is a vector field, so a vector field of unknown type, or one shared by
/// several problems, can be stored.
///
/// # Examples
/// ```
/// use flowline::ode::{Ode, VectorField};
/// struct Decay(f64);
/// impl VectorField<f64> for Decay {
///     fn eval(&self, _t: &f64, y: &f64, dy: &mut f64) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
///         *dy = -self.0 * y;
///         Ok(())
///     }
/// }
/// let fields: Vec<Box<dyn VectorField<f64>>> = vec![Box::new(Decay(1.0)), Box::new(Decay(2.0))];
/// for (field, rate) in fields.iter().zip([1.0, 2.0_f64]) {
///     let y1 = Ode::from_field(field).rtol(1e-9).solve(0.0, 1.0, 1.0)?.y1;
///     assert!((y1 - (-rate).exp()).abs() < 1e-8);
/// }
/// # Ok::<(), flowline::Error>(())
/// ```
pub trait VectorField<S: State> {
    /// Writes `f(t, y)` into `dy`, which has the right shape and unspecified values, and must keep this shape.
    ///
    /// # Errors
    /// Any error of the evaluation. It ends the solve, which returns the error with t and the step. A
    /// [`Recoverable`] error shortens the trial step instead.
    fn eval(&self, t: &S::Clock, y: &S, dy: &mut S) -> Result<(), FieldError>;

    /// The derivatives of the vector field, if it can compute them.
    #[doc(hidden)]
    fn linearize(&self) -> Option<&dyn Linearize<S>> {
        None
    }

    /// Runs attempts with the code compiled for this vector field. By default it is that of the default method.
    #[doc(hidden)]
    fn run_attempts(&self, native: Native, run: Run<'_, S>) -> Result<u64, FieldFailure<f64>>
    where
        Self: Sized,
        S: PlainState,
    {
        attempts_of(self, native, run)
    }
}

/// A vector field with attempts compiled for a method, created by
/// [`Ode::inlined`](super::Ode::inlined).
#[derive(Clone, Copy, Debug)]
pub struct Inlined<F, M>(F, PhantomData<M>);

impl<F, M> Inlined<F, M> {
    pub(super) fn new(f: F) -> Self {
        Inlined(f, PhantomData)
    }
}

impl<S: State, F: VectorField<S>, M: InlineMethod> VectorField<S> for Inlined<F, M> {
    #[inline(always)]
    fn eval(&self, t: &S::Clock, y: &S, dy: &mut S) -> Result<(), FieldError> {
        self.0.eval(t, y, dy)
    }
    fn linearize(&self) -> Option<&dyn Linearize<S>> {
        self.0.linearize()
    }
    fn run_attempts(&self, native: Native, run: Run<'_, S>) -> Result<u64, FieldFailure<f64>>
    where
        S: PlainState,
    {
        attempts_by::<M, S, F>(&self.0, native, run)
    }
}

impl<S: State, F: VectorField<S> + ?Sized> VectorField<S> for &F {
    #[inline(always)]
    fn eval(&self, t: &S::Clock, y: &S, dy: &mut S) -> Result<(), FieldError> {
        (**self).eval(t, y, dy)
    }
    fn linearize(&self) -> Option<&dyn Linearize<S>> {
        (**self).linearize()
    }
}

impl<S: State, F: VectorField<S> + ?Sized> VectorField<S> for Box<F> {
    #[inline(always)]
    fn eval(&self, t: &S::Clock, y: &S, dy: &mut S) -> Result<(), FieldError> {
        (**self).eval(t, y, dy)
    }
    fn linearize(&self) -> Option<&dyn Linearize<S>> {
        (**self).linearize()
    }
}

impl<S: State, F: VectorField<S> + ?Sized> VectorField<S> for Arc<F> {
    #[inline(always)]
    fn eval(&self, t: &S::Clock, y: &S, dy: &mut S) -> Result<(), FieldError> {
        (**self).eval(t, y, dy)
    }
    fn linearize(&self) -> Option<&dyn Linearize<S>> {
        (**self).linearize()
    }
}

/// The return types of a closure: dy/dt, or a `Result` with it.
#[diagnostic::on_unimplemented(
    message = "the vector field returns `{Self}` but the state is `{Y}`",
    label = "must return dy/dt, of the type of y, or a Result with it"
)]
pub trait Rate<Y> {
    /// Converts to dy/dt or the error.
    fn rate(self) -> Result<Y, FieldError>;
}
impl<Y> Rate<Y> for Y {
    #[inline(always)]
    fn rate(self) -> Result<Y, FieldError> {
        Ok(self)
    }
}
impl<Y, E: Into<FieldError>> Rate<Y> for Result<Y, E> {
    #[inline(always)]
    fn rate(self) -> Result<Y, FieldError> {
        self.map_err(Into::into)
    }
}

/// A closure `f(t, y) -> dy/dt` as a [`VectorField`].
#[derive(Clone, Debug)]
pub struct Closure<F>(pub F);

impl<Y: State, R: Rate<Y>, F: Fn(Y::Clock, &Y) -> R> VectorField<Y> for Closure<F> {
    #[inline(always)]
    fn eval(&self, t: &Y::Clock, y: &Y, dy: &mut Y) -> Result<(), FieldError> {
        *dy = (self.0)(t.clone(), y).rate()?;
        Ok(())
    }
}

/// The borrowed form of a state that an in-place closure reads and writes, for example `[f64]` for
/// `Vec<f64>`.
pub trait View {
    /// The type of the state.
    type Owned: PlainState;
    /// The state for reading.
    fn view(y: &Self::Owned) -> &Self;
    /// The state for writing.
    fn view_mut(y: &mut Self::Owned) -> &mut Self;
}
macro_rules! slice_view {
    ($($t:ty)*) => { $(
        impl View for [$t] {
            type Owned = Vec<$t>;
            #[inline(always)]
            fn view(y: &Vec<$t>) -> &[$t] {
                y
            }
            #[inline(always)]
            fn view_mut(y: &mut Vec<$t>) -> &mut [$t] {
                y
            }
        }
    )* };
}
slice_view!(f64 f32);
impl<Y: PlainState> View for Y {
    type Owned = Y;
    #[inline(always)]
    fn view(y: &Y) -> &Y {
        y
    }
    #[inline(always)]
    fn view_mut(y: &mut Y) -> &mut Y {
        y
    }
}

/// The return types of an in-place closure: nothing, or a `Result` of nothing.
pub trait Done {
    /// Success or the error.
    fn done(self) -> Result<(), FieldError>;
}
impl Done for () {
    #[inline(always)]
    fn done(self) -> Result<(), FieldError> {
        Ok(())
    }
}
impl<E: Into<FieldError>> Done for Result<(), E> {
    #[inline(always)]
    fn done(self) -> Result<(), FieldError> {
        self.map_err(Into::into)
    }
}

/// A closure `f(t, y, dy)` that writes dy, as a [`VectorField`].
#[derive(Debug)]
pub struct InPlace<F, V: ?Sized>(F, PhantomData<fn(&V)>);

impl<F: Clone, V: ?Sized> Clone for InPlace<F, V> {
    fn clone(&self) -> Self {
        InPlace(self.0.clone(), PhantomData)
    }
}

impl<F, V: ?Sized> InPlace<F, V> {
    /// Converts the closure to a vector field.
    pub fn new(f: F) -> Self {
        InPlace(f, PhantomData)
    }
}

impl<V: View + ?Sized, D: Done, F: Fn(f64, &V, &mut V) -> D> VectorField<V::Owned> for InPlace<F, V> {
    #[inline(always)]
    fn eval(&self, t: &f64, y: &V::Owned, dy: &mut V::Owned) -> Result<(), FieldError> {
        (self.0)(*t, V::view(y), V::view_mut(dy)).done()
    }
}
