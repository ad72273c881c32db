//! Methods as types, for attempts compiled for one method and one vector field.
//!
//! A [`Method`] is a value: one loop serves all methods. A method as a type makes its coefficients compile-time
//! constants, and `Ode::inlined` and `EnsembleBuilder::inlined` compile attempts with them and with the vector
//! field inlined, once per pair of method and vector field.

use super::Method;

/// A method whose coefficients can be compiled into attempts.
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
