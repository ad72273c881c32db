//! The three preludes: for solving, for differentiating and training, and for learning densities.
//!
//! Each is the `prelude` of a module and contains the previous one. This file is the only one in which a lower
//! module re-exports names of a higher one.

pub mod ode {
    //! Names for solving.
    pub use crate::ode::{Event, Method, Ode, Outcome, SaveAt, Solution, SolveError, ensemble, odeint};
    pub use crate::state;
    pub use crate::vector_field;
}

#[cfg(feature = "autodiff")]
pub mod nn {
    //! Names for differentiating and training.
    pub use super::ode::*;
    pub use crate::adjoint::{Adjoint, TensorSolution};
    pub use crate::at;
    pub use crate::io;
    pub use crate::nn::{Activation, Linear, Mlp, num_params};
    pub use crate::optim::{
        Adam, AdamW, Fit, FitState, OptState, Optimizer, Schedule, Sgd, chain, clip_by_global_norm,
        covariance, minimize,
    };
    pub use crate::tensor::{
        DType, Dataset, Key, Tensor, Tree, cond, grad, hvp, jit, jvp, value_and_grad, vjp, vmap,
    };
    pub use crate::tree;
}

#[cfg(feature = "autodiff")]
pub mod cnf {
    //! Names for learning densities.
    pub use super::nn::*;
    pub use crate::cnf::{Cnf, Divergence, PathRegularization};
    #[cfg(feature = "train")]
    pub use crate::data::{ImageDensity, ImageSet, Points, ToyDensity};
    pub use crate::nn::{ConcatSquash, VelocityField};
    #[cfg(feature = "train")]
    pub use crate::train::{TrainOptions, TrainedFlow, Trainer};
}
