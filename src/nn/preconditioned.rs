//! A vector field that adds a network to the velocity of a normal density.

use super::velocity_field::{VelocityField, time_column};
use crate::tensor::Tensor;
use crate::tree;

tree! {
    /// A field G on points scaled to variance 1, added to the velocity of standard normal data on a straight path:
    ///
    /// `v(t, x) = (2 t - 1) / r^2 x + G(t, x / r) / r`, `r^2 = (1 - t)^2 + t^2`.
    ///
    /// If x0 is standard normal and x1 has mean 0 and covariance I, so has `((1 - t) x0 + t x1) / r`: the inputs of G
    /// have the same scale at every t. A field that returns 0 gives the exact flow to a standard normal density. It is
    /// meant for flow matching of standardized data with one block and integration time 1, where t is in [0, 1].
    ///
    /// # References
    /// The preconditioning of Karras et al. (2022), Elucidating the design space of diffusion-based generative models,
    /// section 5, with `sigma_data = 1`, in the variables of a straight path.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::*;
    /// use flowline::nn::extra::{Preconditioned, golden_frequencies};
    /// use flowline::nn::prelude::*;
    /// let net = FourierMlp::new(golden_frequencies(48, 3.4), [72, 72, 72], &Key::new(0)).damping(1.0);
    /// let field = Preconditioned::new(net);
    /// assert_eq!((field.dim(), num_params(&field)), (2, 18_362));
    /// ```
    pub struct Preconditioned<D: VelocityField> {
        /// G.
        pub field: D,
    }
}

impl<D: VelocityField> Preconditioned<D> {
    /// Adds a field to the velocity of standard normal data.
    pub fn new(field: D) -> Preconditioned<D> {
        Preconditioned { field }
    }
}

impl<D: VelocityField> VelocityField for Preconditioned<D> {
    #[track_caller]
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor {
        self.eval_conditional(t, y, None)
    }

    #[track_caller]
    fn eval_conditional(&self, t: &Tensor, y: &Tensor, labels: Option<&Tensor>) -> Tensor {
        let t = time_column(t, y);
        let square = (1.0 - &t).square() + t.square();
        let r = square.sqrt();
        let added = self.field.eval_conditional(&t, &(y / &r), labels);
        y * ((&t * 2.0 - 1.0) / square) + added / r
    }

    fn num_classes(&self) -> usize {
        self.field.num_classes()
    }

    fn is_preconditioned(&self) -> bool {
        true
    }

    fn dim(&self) -> usize {
        self.field.dim()
    }

    fn rows_per_tile(&self) -> usize {
        self.field.rows_per_tile()
    }
}
