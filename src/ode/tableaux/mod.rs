//! The tables of the methods, one file each, with their published digits.
//!
//! Each is a `const`, so that a loop over stages compiled for one method has its numbers at hand.

mod dopri5;
mod euler;
mod rk4;
mod tsit5;

pub use dopri5::DOPRI5;
pub use euler::EULER;
pub use rk4::RK4;
pub use tsit5::TSIT5;
