//! `Cnf`: blocks, base density and settings.
//!
//! This file defines a flow and its settings; it calls no solver. Densities are in `density`, samples in
//! `sample`. `rows` evaluates both on any number of rows.

use super::{CnfOptions, Divergence, ErrorNorm, PathRegularization, StandardNormal, StepControl};
use crate::adjoint::Adjoint;
use crate::array::DType;
use crate::nn::VelocityField;
use crate::ode::Method;
use crate::tensor::{Tensor, Tree};
use crate::tree;

tree! {
    /// A continuous normalizing flow: `x = flow(z)`, z standard normal.
    ///
    /// The blocks are integrated in sequence, each over t in `[0, t1]`, from the base end (t = 0 of the
    /// first) to the data end (t = t1 of the last). Along each, `d log p / dt = -div f`, so
    /// `log p(x) = log N(z; 0, I) - sum over blocks of the integral of div f dt`.
    ///
    /// # References
    /// Chen et al. (2018), Neural ordinary differential equations, eq. 8; Grathwohl et al. (2019), FFJORD.
    ///
    /// # Examples
    /// ```
    /// use flowline::cnf::*;
    /// use flowline::cnf::prelude::*;
    /// use flowline::nn::*;
    /// let key = Key::new(0);
    /// let flow = Cnf::new(ConcatSquash::new(2, [16, 16], &key));
    /// let (x, log_prob) = flow.sample_with_log_prob(10, &key)?;
    /// let again = flow.log_prob(&x)?;
    /// assert!((log_prob - again).abs().max().item() < 1e-3);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[doc(alias = "FFJORD")]
    pub struct Cnf<D: VelocityField> {
        /// The velocity fields, from the base end to the data end.
        pub blocks: Vec<D>,
        /// The density at the base end.
        pub base: StandardNormal,
        /// How the flow is solved.
        pub settings: CnfOptions,
        /// The class of each row, `[n, 1]`, if the flow is conditional; see [`Cnf::condition_on_classes`].
        pub context: Option<Tensor>,
    }
}

impl<D: VelocityField> Cnf<D> {
    /// A flow with one block and a standard normal base density.
    pub fn new(field: D) -> Self {
        Cnf::from_blocks(vec![field])
    }

    /// A flow of several blocks, from the base end to the data end.
    ///
    /// # Panics
    /// When there are no blocks, or their dimensions differ.
    #[track_caller]
    pub fn from_blocks(blocks: Vec<D>) -> Self {
        assert!(!blocks.is_empty(), "a flow needs at least one block");
        let first = blocks[0].dim();
        for (i, block) in blocks.iter().enumerate() {
            let dim = block.dim();
            assert!(
                dim == first,
                "all blocks need the same dimension: block {i} has {dim}, block 0 has {first}"
            );
        }
        Cnf { blocks, base: StandardNormal::new(first), settings: CnfOptions::default(), context: None }
    }

    /// Conditions the flow on one class label per row, `p(x | label)`. Later calls must pass the same number
    /// of rows.
    ///
    /// # Shapes and units
    /// labels `[n, 1]`, integers below the fields' number of classes, of any element type.
    ///
    /// # Panics
    /// When the labels have another shape. Fields without classes panic on evaluation.
    ///
    /// # Examples
    /// ```
    /// use flowline::cnf::*;
    /// use flowline::cnf::prelude::*;
    /// use flowline::nn::*;
    /// // Inputs: y, t and one of three classes; output: a velocity.
    /// let field = Mlp::new([2 + 1 + 3, 16, 2], Activation::Tanh, &Key::new(0));
    /// let flow = Cnf::new(field);
    /// let of_each_class = flow.condition_on_classes(&Tensor::from([[0.0], [1.0], [2.0]]));
    /// assert_eq!(of_each_class.sample(3, &Key::new(1))?.shape()[..], [3, 2]);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[track_caller]
    #[doc(alias = "class_labels")]
    pub fn condition_on_classes(&self, labels: &Tensor) -> Self {
        let is_column = labels.rank() == 2 && labels.shape()[1] == 1;
        assert!(is_column, "labels must have shape [n, 1], got {}", labels.shape());
        Cnf { context: Some(labels.cast(self.dtype())), ..self.clone() }
    }

    /// The element type of the weights.
    pub fn dtype(&self) -> DType {
        let floats = self.blocks.leaves().into_iter().map(|x| x.dtype()).find(|d| d.is_float());
        floats.unwrap_or(DType::F32)
    }
}

/// Solver settings, fields of [`CnfOptions`]. `fixed_steps`, `rtol` and `atol` set `step_control`; the others set the
/// field of the same name.
impl<D: VelocityField> Cnf<D> {
    /// Integration time per block.
    pub fn t1(mut self, t1: f64) -> Self {
        self.settings.t1 = t1;
        self
    }

    /// How the divergence is computed.
    pub fn divergence(mut self, divergence: Divergence) -> Self {
        self.settings.divergence = divergence;
        self
    }

    /// The Runge-Kutta method.
    pub fn method(mut self, method: Method) -> Self {
        self.settings.method = method;
        self
    }

    /// A fixed number of equal steps per block.
    pub fn fixed_steps(mut self, steps: usize) -> Self {
        self.settings.step_control = StepControl::Fixed { steps };
        self
    }

    /// Adaptive steps with this relative tolerance. The absolute tolerance is unchanged; after fixed steps it
    /// is 1e-5.
    pub fn rtol(mut self, rtol: f64) -> Self {
        let (_, atol) = self.settings.tolerances();
        self.settings.step_control = StepControl::Adaptive { rtol, atol };
        self
    }

    /// Adaptive steps with this absolute tolerance. The relative tolerance is unchanged; after fixed steps it
    /// is 1e-5.
    pub fn atol(mut self, atol: f64) -> Self {
        let (rtol, _) = self.settings.tolerances();
        self.settings.step_control = StepControl::Adaptive { rtol, atol };
        self
    }

    /// The first step size of adaptive steps in a block. A first step that is too long is rejected like any other step.
    ///
    /// At a loose tolerance, a smooth flow takes only a few steps per block. The automatic choice makes the
    /// first of them short, and costs one more evaluation of the field.
    pub fn dt0(mut self, dt0: f64) -> Self {
        self.settings.dt0 = Some(dt0);
        self
    }

    /// The norm of the error of an adaptive step.
    pub fn error_norm(mut self, error_norm: ErrorNorm) -> Self {
        self.settings.error_norm = error_norm;
        self
    }

    /// Path regularization in maximum likelihood training.
    pub fn path_regularization(mut self, path_regularization: PathRegularization) -> Self {
        self.settings.path_regularization = path_regularization;
        self
    }

    /// How gradients through the solves are computed.
    pub fn adjoint(mut self, adjoint: Adjoint) -> Self {
        self.settings.adjoint = adjoint;
        self
    }

    /// The maximum number of steps per solve.
    pub fn max_steps(mut self, max_steps: u64) -> Self {
        self.settings.max_steps = max_steps;
        self
    }

    /// Approximate number of rows that are solved together.
    pub fn rows_per_tile(mut self, rows: usize) -> Self {
        self.settings.rows_per_tile = rows;
        self
    }

    /// If true, each row has its own steps, so that no row depends on its neighbors.
    ///
    /// # Examples
    /// ```
    /// use flowline::cnf::*;
    /// use flowline::cnf::prelude::*;
    /// use flowline::nn::*;
    /// let key = Key::new(0);
    /// let flow = Cnf::new(ConcatSquash::new(2, [8], &key)).per_row(true);
    /// let x = Tensor::from([[0.5_f32, 1.0], [-3.0, 0.1]]);
    /// let together = flow.log_prob(&x)?.to_vec();
    /// assert_eq!(flow.log_prob(&x.slice(0, 1..2))?.to_vec(), together[1..]);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn per_row(mut self, per_row: bool) -> Self {
        self.settings.per_row = per_row;
        self
    }
}
