//! The exact velocity of an image or a toy density as the target of flow matching. This file is the only link between
//! [`data`](crate::data), which has the formula, and [`cnf`](crate::cnf), which has the loss.

use crate::cnf::ExactVelocity;
use crate::data::MixtureVelocity;

impl ExactVelocity for MixtureVelocity {
    fn dim(&self) -> usize {
        2
    }

    fn velocity(&self, noise: [f64; 2], data: [f64; 2], x: &[f64], velocity: &mut [f64]) {
        velocity.copy_from_slice(&self.velocity(noise, data, [x[0], x[1]]));
    }
}
