//! Methods as types, for loops over steps that are compiled for one method and one field.
//!
//! [`Method`] is a value: one loop serves them all, and a program that asks for several compiles it once. A method as a
//! type has its coefficients known where the loop is compiled, with the field inlined: `Ode::inlined` and
//! `EnsembleBuilder::inlined` take one. Such a loop is compiled for each pair of a method and a field.

use super::Method;

/// A method whose coefficients a loop may be compiled with.
pub trait InlineMethod: Copy + Send + Sync + 'static {
    /// The method as a value.
    const METHOD: Method;
}

macro_rules! methods {
    ($($name:ident)*) => { $(
        #[doc = concat!("[`Method::", stringify!($name), "`] as a type.")]
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;
        impl InlineMethod for $name {
            const METHOD: Method = Method::$name;
        }
    )* };
}
methods!(Euler Midpoint Heun Ralston Ssprk3 Bosh3 Rk4 Fehlberg45 CashKarp Dopri5 Tsit5 Vern7 Dop853 Vern9);
