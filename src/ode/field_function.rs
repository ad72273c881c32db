//! The functions of a `vector_field!` beside `eval`: event functions, observables, state resets and times.
//!
//! A closure works for one kind of number, so it cannot be differentiated. A function of a
//! [`vector_field!`](crate::vector_field) is compiled for f64 and for dual numbers. Its name becomes an
//! associated constant of the struct, which holds a pointer to each of the two. So only functions in use are
//! compiled, and no trait of the vector field grows with them.

use super::{FieldDual, GenericField};
use std::fmt;

/// A function `(t, y) -> number` of a [`vector_field!`](crate::vector_field): an event function or an
/// observable. The constant of its name has this type.
///
/// # Examples
/// ```
/// flowline::vector_field! {
///     struct Fall<R> { gravity: R }
///     fn eval(&self, _t, y: &[R; 2]) -> [R; 2] { [y[1], -self.gravity] }
///     fn energy(&self, _t, y: &[R; 2]) -> R { self.gravity * y[0] + 0.5 * y[1] * y[1] }
/// }
/// assert_eq!(Fall::energy.eval(&Fall { gravity: 10.0 }, 0.0, &[1.0, 2.0]), 12.0);
/// ```
pub struct NumberFn<G: GenericField<N>, const N: usize> {
    name: &'static str,
    plain: fn(&G, f64, &[f64; N]) -> f64,
    pub(super) dual: DualNumberFn<G, N>,
}

/// A function `(t, y) -> y` or `(t, y, x) -> y` of a [`vector_field!`](crate::vector_field): a state reset or an
/// initial state. The constant of its name has this type.
pub struct StateFn<G: GenericField<N>, const N: usize> {
    name: &'static str,
    plain: fn(&G, f64, &[f64; N], f64) -> [f64; N],
    pub(super) dual: DualStateFn<G, N>,
}

/// A function `t -> t` of a [`vector_field!`](crate::vector_field): a time that depends on parameters. The
/// constant of its name has this type.
pub struct TimeFn<G: GenericField<N>, const N: usize> {
    name: &'static str,
    plain: fn(&G, f64) -> f64,
    pub(super) dual: DualTimeFn<G, N>,
}

type DualOf<G, const N: usize> = <G as GenericField<N>>::Of<FieldDual>;
type DualNumberFn<G, const N: usize> = fn(&DualOf<G, N>, FieldDual, &[FieldDual; N]) -> FieldDual;
type DualStateFn<G, const N: usize> =
    fn(&DualOf<G, N>, FieldDual, &[FieldDual; N], FieldDual) -> [FieldDual; N];
type DualTimeFn<G, const N: usize> = fn(&DualOf<G, N>, FieldDual) -> FieldDual;

impl<G: GenericField<N>, const N: usize> NumberFn<G, N> {
    #[doc(hidden)]
    pub const fn new(
        name: &'static str,
        plain: fn(&G, f64, &[f64; N]) -> f64,
        dual: DualNumberFn<G, N>,
    ) -> Self {
        NumberFn { name, plain, dual }
    }
    /// The function's value.
    #[inline]
    pub fn eval(&self, field: &G, t: f64, y: &[f64; N]) -> f64 {
        (self.plain)(field, t, y)
    }
}

impl<G: GenericField<N>, const N: usize> StateFn<G, N> {
    #[doc(hidden)]
    pub const fn new(
        name: &'static str,
        plain: fn(&G, f64, &[f64; N], f64) -> [f64; N],
        dual: DualStateFn<G, N>,
    ) -> Self {
        StateFn { name, plain, dual }
    }
    /// The function's value. A function without the argument `x` ignores it.
    #[inline]
    pub fn eval(&self, field: &G, t: f64, y: &[f64; N], x: f64) -> [f64; N] {
        (self.plain)(field, t, y, x)
    }
}

impl<G: GenericField<N>, const N: usize> TimeFn<G, N> {
    #[doc(hidden)]
    pub const fn new(name: &'static str, plain: fn(&G, f64) -> f64, dual: DualTimeFn<G, N>) -> Self {
        TimeFn { name, plain, dual }
    }
    /// The function's value.
    #[inline]
    pub fn eval(&self, field: &G, t: f64) -> f64 {
        (self.plain)(field, t)
    }
}

macro_rules! handle {
    ($($t:ident)*) => { $(
        #[allow(clippy::expl_impl_clone_on_copy, reason = "a derive would need `G: Copy`")]
        impl<G: GenericField<N>, const N: usize> Clone for $t<G, N> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<G: GenericField<N>, const N: usize> Copy for $t<G, N> {}
        impl<G: GenericField<N>, const N: usize> fmt::Debug for $t<G, N> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name)
            }
        }
    )* };
}
handle!(NumberFn StateFn TimeFn);
