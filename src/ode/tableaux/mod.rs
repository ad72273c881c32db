//! The Butcher tableaux of the methods, with their published digits.
//!
//! Each tableau is a `const`, so that a loop compiled for one method has constant coefficients.

mod bosh3;
mod cashkarp;
mod dop853;
mod dopri5;
mod euler;
mod fehlberg45;
mod rk4;
mod rkc2;
mod rodas5p;
mod rosenbrock23;
mod second_order;
mod ssprk3;
mod tsit5;
mod vern7;
mod vern9;

pub use bosh3::BOSH3;
pub use cashkarp::CASHKARP;
pub use dop853::DOP853;
pub use dopri5::DOPRI5;
pub use euler::EULER;
pub use fehlberg45::FEHLBERG45;
pub use rk4::RK4;
pub use rkc2::RKC2;
pub use rodas5p::RODAS5P;
pub use rosenbrock23::ROSENBROCK23;
pub use second_order::{HEUN, MIDPOINT, RALSTON};
pub use ssprk3::SSPRK3;
pub use tsit5::TSIT5;
pub use vern7::VERN7;
pub use vern9::VERN9;

/// Tsit5, the method with which `AutoTsit5Rodas5P` starts.
pub const AUTO_TSIT5: super::ButcherTableau<'static> =
    super::ButcherTableau { name: "autotsit5rodas5p", ..TSIT5 };
