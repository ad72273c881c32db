//! `vector_field!`: a vector field written once and compiled for each kind of number.
//!
//! A Rust closure is never generic, so it works for one kind of number. Lanes and sensitivities need other
//! kinds, so this macro repeats the body for each: `f64`, [`Single`](super::Single), lanes of both,
//! [`Dual`](super::Dual), and nested `Dual`. The types in the body are concrete, so constants may stand on
//! either side of an operator (`2.0 * PI * y[0]` does not compile in a generic body). It is a `macro_rules!`
//! macro, because a derive macro would need a second crate.

use std::fmt::Debug;

/// A type of parameter of a `vector_field!`.
#[doc(hidden)]
pub trait FieldParam: Clone + Debug + Send + Sync {}
impl<T: Clone + Debug + Send + Sync> FieldParam for T {}

/// A vector field written by [`vector_field!`](crate::vector_field); not meant to be implemented by hand.
///
/// `Self` holds the parameters as f64; `Of<T>` is the same struct with parameters of type `T`.
pub trait GenericField<const N: usize>: Clone + Send + Sync + 'static {
    /// The struct with parameters of another type.
    type Of<T: FieldParam>: FieldParam;

    /// The struct with `f` applied to each parameter, in the order of declaration; static fields are cloned.
    fn map_params<T: FieldParam>(&self, f: impl FnMut(f64) -> T) -> Self::Of<T>;
    /// Calls `f` on each parameter of `of` together with the parameter of `self`.
    fn zip_params<T: FieldParam>(&self, of: &mut Self::Of<T>, f: impl FnMut(&mut T, f64));
    /// Whether all static fields are equal, so that both vector fields may run in the same lanes.
    fn same_statics(&self, other: &Self) -> bool;

    #[doc(hidden)]
    fn eval_f64(field: &Self::Of<f64>, t: f64, y: &[f64; N]) -> [f64; N];
    #[doc(hidden)]
    fn eval_single(field: &Self::Of<Single>, t: Single, y: &[Single; N]) -> [Single; N];
    #[doc(hidden)]
    fn eval_lanes(field: &Self::Of<F64Lanes>, t: F64Lanes, y: &[F64Lanes; N]) -> [F64Lanes; N];
    #[doc(hidden)]
    fn eval_single_lanes(field: &Self::Of<F32Lanes>, t: F32Lanes, y: &[F32Lanes; N]) -> [F32Lanes; N];
    #[doc(hidden)]
    fn eval_dual(field: &Self::Of<FieldDual>, t: FieldDual, y: &[FieldDual; N]) -> [FieldDual; N];
    #[doc(hidden)]
    fn eval_nested_dual(field: &Self::Of<NestedDual>, t: NestedDual, y: &[NestedDual; N]) -> [NestedDual; N];
}

use super::{DIRECTIONS, Dual, JACOBIAN_DIRECTIONS, LANES, Lanes, SINGLE_LANES, Single};

#[doc(hidden)]
pub type F64Lanes = Lanes<f64, LANES>;
#[doc(hidden)]
pub type F32Lanes = Lanes<f32, SINGLE_LANES>;
#[doc(hidden)]
pub type FieldDual = Dual<f64, DIRECTIONS>;
#[doc(hidden)]
pub type NestedDual = Dual<FieldDual, JACOBIAN_DIRECTIONS>;

/// Writes a vector field and compiles it once per kind of number: `f64` and `f32`, lanes of them for
/// [ensembles](crate::ode::ensemble), dual numbers for [sensitivities](crate::ode::Ode::forward_sensitivity)
/// and for the Jacobians of stiff methods.
///
/// The struct's type parameter must be called `R`. Its fields of type `R` and `[R; K]` are the parameters;
/// there must be at least one. Fields of other types are static: they need
/// `Clone + Debug + PartialEq + Send + Sync`. The struct derives `Clone, Debug, PartialEq`, and `R` defaults
/// to `f64`.
///
/// In the body, numbers have a concrete type with operators, f64 constants on either side, and the functions of
/// [`Number`](crate::ode::extra::Number). Helper functions are generic over that trait.
///
/// # Examples
/// ```
/// use flowline::vector_field;
/// use flowline::ode::Ode;
/// use std::f64::consts::PI;
///
/// vector_field! {
///     /// A driven pendulum.
///     pub struct Shaken<R> { gravity: R, frequency: R }
///     fn eval(&self, t, y: &[R; 2]) -> [R; 2] {
///         [y[1], -self.gravity * y[0].sin() + (2.0 * PI * self.frequency * t).cos()]
///     }
/// }
///
/// let solution = Ode::from_generic(Shaken { gravity: 9.81, frequency: 1.0 }).solve(0.0, 1.0, [0.1, 0.0])?;
/// assert!((solution.y1[0] + 0.167_438).abs() < 1e-5, "{:?}", solution.y1);
/// # Ok::<(), flowline::Error>(())
/// ```
/// Lanes may need different branches, so the body cannot branch on a number;
/// [`select_positive`](crate::ode::extra::Number::select_positive) selects per lane:
/// ```compile_fail
/// flowline::vector_field! {
///     struct Relay<R> { gain: R }
///     fn eval(&self, _t, y: &[R; 1]) -> [R; 1] {
///         [if y[0] > 0.0 { -self.gain } else { self.gain }]
///     }
/// }
/// ```
/// ```
/// flowline::vector_field! {
///     struct Relay<R> { gain: R }
///     fn eval(&self, _t, y: &[R; 1]) -> [R; 1] {
///         [y[0].select_positive(-self.gain, self.gain)]
///     }
/// }
/// ```
#[macro_export]
macro_rules! vector_field {
    ($(#[$meta:meta])* $vis:vis struct $name:ident<R> { $($fields:tt)* }
     fn eval(&$self:ident, $t:tt, $y:ident: &[R; $n:expr]) -> [R; $n_out:expr] $code:block
     $($functions:tt)*) => {
        $crate::__field! {
            @fields [$(#[$meta])* $vis $name] [&$self, $t, $y, $n, $n_out, $code] [] [] $($fields)*
        }
        $crate::__field! { @functions $name [$n] $($functions)* }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __field {
    (@fields $head:tt $eval:tt [$($params:tt)*] $statics:tt
     $(#[$meta:meta])* $vis:vis $field:ident: R $(, $($rest:tt)*)?) => {
        $crate::__field! {
            @fields $head $eval [$($params)* ($(#[$meta])* $vis $field R one)] $statics $($($rest)*)?
        }
    };
    (@fields $head:tt $eval:tt [$($params:tt)*] $statics:tt
     $(#[$meta:meta])* $vis:vis $field:ident: [R; $k:expr] $(, $($rest:tt)*)?) => {
        $crate::__field! {
            @fields $head $eval [$($params)* ($(#[$meta])* $vis $field [R; $k] many)] $statics $($($rest)*)?
        }
    };
    (@fields $head:tt $eval:tt $params:tt [$($statics:tt)*]
     $(#[$meta:meta])* $vis:vis $field:ident: $type:ty $(, $($rest:tt)*)?) => {
        $crate::__field! {
            @fields $head $eval $params [$($statics)* ($(#[$meta])* $vis $field $type)] $($($rest)*)?
        }
    };
    (@fields [$(#[$meta:meta])* $vis:vis $name:ident] [&$self:ident, $t:tt, $y:ident, $n:expr, $n_out:expr, $code:block]
     [$(($(#[$p_meta:meta])* $p_vis:vis $p:ident $p_type:tt $kind:ident))*]
     [$(($(#[$s_meta:meta])* $s_vis:vis $s:ident $s_type:ty))*]) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name<R = f64> {
            $($(#[$p_meta])* $p_vis $p: $p_type,)*
            $($(#[$s_meta])* $s_vis $s: $s_type,)*
        }
        const _: () = {
            use $crate::ode as __ode;
            impl __ode::GenericField<{ $n }> for $name<f64> {
                type Of<T: __ode::FieldParam> = $name<T>;
                #[inline(always)]
                fn map_params<T: __ode::FieldParam>(&self, mut __f: impl FnMut(f64) -> T) -> $name<T> {
                    $name {
                        $($p: $crate::__field!(@map $kind self.$p, __f),)*
                        $($s: self.$s.clone(),)*
                    }
                }
                #[inline(always)]
                fn zip_params<T: __ode::FieldParam>(&self, __of: &mut $name<T>, mut __f: impl FnMut(&mut T, f64)) {
                    $($crate::__field!(@zip $kind self.$p, __of.$p, __f);)*
                }
                #[inline(always)]
                fn same_statics(&self, __other: &Self) -> bool {
                    true $(&& self.$s == __other.$s)*
                }
                $crate::__field! { @eval eval_f64 $name (f64) [&$self, $t, $y, $n, $n_out, $code] }
                $crate::__field! { @eval eval_single $name (__ode::Single) [&$self, $t, $y, $n, $n_out, $code] }
                $crate::__field! { @eval eval_lanes $name (__ode::F64Lanes) [&$self, $t, $y, $n, $n_out, $code] }
                $crate::__field! {
                    @eval eval_single_lanes $name (__ode::F32Lanes) [&$self, $t, $y, $n, $n_out, $code]
                }
                $crate::__field! { @eval eval_dual $name (__ode::FieldDual) [&$self, $t, $y, $n, $n_out, $code] }
                $crate::__field! {
                    @eval eval_nested_dual $name (__ode::NestedDual) [&$self, $t, $y, $n, $n_out, $code]
                }
            }
            impl __ode::VectorField<[f64; $n]> for $name<f64> {
                #[inline(always)]
                fn eval(
                    &self,
                    t: &f64,
                    y: &[f64; $n],
                    dy: &mut [f64; $n],
                ) -> ::std::result::Result<(), __ode::extra::FieldError> {
                    *dy = <Self as __ode::GenericField<{ $n }>>::eval_f64(self, *t, y);
                    Ok(())
                }
                fn linearize(&self) -> ::std::option::Option<&dyn __ode::Linearize<[f64; $n]>> {
                    ::std::option::Option::Some(self)
                }
            }
            impl __ode::Linearize<[f64; $n]> for $name<f64> {
                fn columns(
                    &self,
                    t: &f64,
                    y: &[f64; $n],
                    colors: &[usize],
                    num_colors: usize,
                    column: &mut dyn FnMut(usize, &[f64; $n]),
                ) {
                    __ode::dual_columns(self, *t, y, (colors, num_colors), column);
                }
            }
        };
    };
    // The body becomes a method of a private trait, so that it may use `self`.
    (@eval $fn:ident $name:ident ($r:ty) [&$self:ident, $t:tt, $y:ident, $n:expr, $n_out:expr, $code:block]) => {
        #[inline(always)]
        fn $fn(__field: &$name<$r>, __t: $r, __y: &[$r; $n]) -> [$r; $n] {
            #[allow(dead_code)]
            type R = $r;
            #[allow(unused_imports)]
            use __ode::extra::Number as _;
            trait Eval {
                fn eval(&self, t: $r, y: &[$r; $n]) -> [$r; $n_out];
            }
            impl Eval for $name<$r> {
                #[inline(always)]
                fn eval(&$self, $t: $r, $y: &[$r; $n]) -> [$r; $n_out] $code
            }
            Eval::eval(__field, __t, __y)
        }
    };
    (@functions $name:ident [$n:expr]) => {};
    (@functions $name:ident [$n:expr] $(#[$meta:meta])* $vis:vis
     fn $f:ident(&$self:ident, $t:tt $(,)?) -> R $code:block $($rest:tt)*) => {
        $crate::__field! {
            @function [$(#[$meta])* $vis $f: TimeFn] $name [$n] &$self [($t: R)] R, $code
        }
        $crate::__field! { @functions $name [$n] $($rest)* }
    };
    (@functions $name:ident [$n:expr] $(#[$meta:meta])* $vis:vis
     fn $f:ident(&$self:ident, $t:tt, $y:ident: &[R; $k:expr] $(,)?) -> R $code:block $($rest:tt)*) => {
        $crate::__field! {
            @function [$(#[$meta])* $vis $f: NumberFn] $name [$n] &$self [($t: R) ($y: &[R; $k])] R, $code
        }
        $crate::__field! { @functions $name [$n] $($rest)* }
    };
    (@functions $name:ident [$n:expr] $(#[$meta:meta])* $vis:vis
     fn $f:ident(&$self:ident, $t:tt, $y:ident: &[R; $k:expr] $(,)?) -> [R; $n_out:expr] $code:block
     $($rest:tt)*) => {
        $crate::__field! {
            @function [$(#[$meta])* $vis $f: StateFn] $name [$n]
            &$self [($t: R) ($y: &[R; $k]) (_x: R)] [R; $n_out], $code
        }
        $crate::__field! { @functions $name [$n] $($rest)* }
    };
    (@functions $name:ident [$n:expr] $(#[$meta:meta])* $vis:vis
     fn $f:ident(&$self:ident, $t:tt, $y:ident: &[R; $k:expr], $x:ident $(: R)? $(,)?)
     -> [R; $n_out:expr] $code:block $($rest:tt)*) => {
        $crate::__field! {
            @function [$(#[$meta])* $vis $f: StateFn] $name [$n]
            &$self [($t: R) ($y: &[R; $k]) ($x: R)] [R; $n_out], $code
        }
        $crate::__field! { @functions $name [$n] $($rest)* }
    };
    (@functions $name:ident [$n:expr] $(#[$meta:meta])* $vis:vis fn $f:ident $($rest:tt)*) => {
        ::std::compile_error!(::std::concat!(
            "vector_field!: the function `", ::std::stringify!($f), "` has none of the four forms: \
             `fn f(&self, t, y: &[R; N]) -> R` for an event function or an observable, \
             `fn f(&self, t, y: &[R; N]) -> [R; N]` for a state reset or an initial state, \
             `fn f(&self, t, y: &[R; N], x) -> [R; N]` for a reset by an amount, \
             `fn f(&self, t) -> R` for a time"
        ));
    };
    (@functions $name:ident [$n:expr] $($rest:tt)*) => {
        ::std::compile_error!("vector_field!: after `fn eval` there may only be functions `fn name(&self, t, ..)`");
    };
    (@function [$(#[$meta:meta])* $vis:vis $f:ident: $handle:ident] $name:ident [$n:expr]
     &$self:ident $arguments:tt $out:ty, $code:block) => {
        impl $name<f64> {
            #[allow(non_upper_case_globals)]
            $(#[$meta])*
            $vis const $f: $crate::ode::extra::$handle<$name<f64>, { $n }> = {
                $crate::ode::extra::$handle::new(
                    ::std::stringify!($f),
                    $crate::__field! { @typed f64, $name &$self $arguments $out, $code },
                    $crate::__field! { @typed $crate::ode::FieldDual, $name &$self $arguments $out, $code },
                )
            };
        }
    };
    // The body becomes a method of a private trait, as for `eval`.
    (@typed $r:ty, $name:ident &$self:ident [$(($argument:tt: $type:ty))*] $out:ty, $code:block) => {{
        #[allow(dead_code)]
        type R = $r;
        #[allow(unused_imports)]
        use $crate::ode::extra::Number as _;
        trait Function {
            fn function(&self, $(_: $type),*) -> $out;
        }
        impl Function for $name<$r> {
            #[inline(always)]
            fn function(&$self, $($argument: $type),*) -> $out $code
        }
        <$name<$r> as Function>::function
    }};
    (@map one $from:expr, $f:ident) => { $f($from) };
    (@map many $from:expr, $f:ident) => { $from.map(|p| $f(p)) };
    (@zip one $from:expr, $to:expr, $f:ident) => { $f(&mut $to, $from) };
    (@zip many $from:expr, $to:expr, $f:ident) => {
        for (to, from) in $to.iter_mut().zip($from) { $f(to, from); }
    };
}
