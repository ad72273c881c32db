//! Samples in a few steps of fixed cost.
//!
//! A field that is [added to the velocity of a normal density](crate::nn::extra::Preconditioned) has a simple equation
//! in other variables. With `r^2 = t^2 + (1 - t)^2`, the angle `theta = atan2(t, 1 - t)` and `y = x / r`, both
//! `d theta / dt` and the factor of the part that is known are powers of r, and what is left is `dy / d theta = G(t, y)`.
//! G is 0 for standard normal data, so any number of steps is exact for them. Close to t = 1, G changes as fast as the
//! finest structure of the data. The steps are equal in u, with
//! `pi / 2 - theta = s ((1 + pi / (2 s))^(1 - u) - 1)`: from one step to the next, `pi / 2 - theta + s` falls by the same
//! factor.
//!
//! Fields without this form are solved in equal steps of t.

use super::{Cnf, CnfOptions, StepControl};
use crate::error::Result;
use crate::nn::VelocityField;
use crate::ode::Method;
use crate::tensor::{Key, Tensor};
use std::f64::consts::FRAC_PI_2;

/// s, the standard deviation of the finest structure for which the steps become shorter, in the flow's coordinates.
const SCALE: f64 = 0.02;
/// Two evaluations of the field per step.
const METHOD: Method = Method::Midpoint;

/// Samples in a few steps.
impl<D: VelocityField> Cnf<D> {
    /// `x = flow(z)` in `steps` steps per block, each of two evaluations of the field (the midpoint method), whatever
    /// the flow's own method, tolerances and steps.
    ///
    /// A field `v = (2 t - 1) / r^2 x + G(t, x / r) / r` ([`VelocityField::is_preconditioned`]) with an integration time
    /// of 1 is solved as `dy / d theta = G(t, y)` for `y = x / r`, `theta = atan2(t, 1 - t)`,
    /// `r^2 = t^2 + (1 - t)^2`, in steps that become shorter towards t = 1. Other fields are solved in equal steps of t.
    ///
    /// # Shapes and units
    /// z and the result `[n, dim]`.
    ///
    /// # Numerics
    /// The error falls with the square of the number of steps, once there are enough of them. The density of such a
    /// sample is not exactly [`Cnf::log_prob`].
    ///
    /// # Errors
    /// Invalid settings.
    ///
    /// # Panics
    /// When there are no steps.
    ///
    /// # Examples
    /// ```
    /// use flowline::cnf::*;
    /// use flowline::cnf::prelude::*;
    /// use flowline::nn::*;
    /// let key = Key::new(0);
    /// let flow = Cnf::new(ConcatSquash::new(2, [16], &key));
    /// let z = key.normal([100, 2]);
    /// let exact = flow.push_forward(&z)?;
    /// let off = |steps| Ok::<_, flowline::Error>((flow.push_forward_in_steps(&z, steps)? - &exact).abs().max().item());
    /// assert!(off(8)? < 0.1 * off(2)?);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    ///
    /// # References
    /// Karras et al. (2022), Elucidating the design space of diffusion-based generative models, section 3, has other
    /// variables and steps for the same purpose.
    #[track_caller]
    pub fn push_forward_in_steps(&self, z: &Tensor, steps: usize) -> Result<Tensor> {
        assert!(steps > 0, "steps is 0, but a sample needs at least one step");
        self.on_rows(z, &Key::new(0), move |flow, z, _| flow.steps_from(z, steps))
    }

    /// n samples `[n, dim]` in `steps` steps per block; [`Cnf::sample`] maps the same points of the base.
    ///
    /// # Errors
    /// As [`Cnf::push_forward_in_steps`].
    ///
    /// # Panics
    /// As [`Cnf::push_forward_in_steps`].
    #[track_caller]
    pub fn sample_in_steps(&self, n: usize, steps: usize, key: &Key) -> Result<Tensor> {
        self.push_forward_in_steps(&self.base.sample(n, self.dtype(), key), steps)
    }

    fn steps_from(&self, z: &Tensor, steps: usize) -> Result<Tensor> {
        let rows = [&[z.cast(self.dtype())], self.labels_of(z.shape()[0])].concat();
        let step_control = StepControl::Fixed { steps };
        let settings = CnfOptions { method: METHOD, step_control, ..self.settings.clone() };
        let (mut found, _) = self.in_tiles(&rows, |tile| {
            let step = |x: Tensor, block: &D| match block.is_preconditioned() && settings.t1 == 1.0 {
                true => Ok(settings
                    .integrate(|u, y: &Tensor| along(block, &u, y, tile.get(1)), (0.0, 1.0), &x)?
                    .0),
                false => Ok(settings.flow((block, tile.get(1)), (0.0, settings.t1), &x)?.0),
            };
            let x = self.blocks.iter().try_fold(tile[0].clone(), step);
            x.map(|x| (vec![x], vec![]))
        })?;
        Ok(found.remove(0))
    }
}

/// `dy / du = G(t, y) d theta / du`, with G from the field: `G(t, y) = r v(t, r y) - (2 t - 1) y`.
fn along<D: VelocityField>(field: &D, u: &Tensor, y: &Tensor, labels: Option<&Tensor>) -> Tensor {
    let growth = (FRAC_PI_2 / SCALE).ln_1p();
    let rest = ((1.0 - u) * growth).exp() * SCALE;
    let left = &rest - SCALE; // pi / 2 - theta
    let (sin, cos) = (left.sin(), left.cos());
    let r = 1.0 / (&sin + &cos);
    let t = &cos * &r;
    let of = |x: &Tensor| x.cast(y.dtype());
    let velocity = field.eval_conditional(&t, &(y * of(&r)), labels);
    let gain = velocity * of(&r) - y * of(&(&t * 2.0 - 1.0));
    gain * of(&(rest * growth))
}
