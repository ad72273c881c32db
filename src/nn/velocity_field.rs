//! The vector field of a flow, as a tree.

use super::{ConcatSquash, FourierMlp, LevelMixture, MixturePreconditioned, Mlp, Preconditioned, UNet};
use crate::array::Shape;
use crate::tensor::{Tensor, Tree};
use crate::tree;

/// A vector field `dy/dt = f(t, y)` whose parameters are the leaves of a tree; rows are independent.
pub trait VelocityField: Tree {
    /// The velocity at time t.
    ///
    /// # Shapes and units
    /// t: one number for all rows, or `[rows, 1]`, of any float type; y `[rows, dim]`; the result has the
    /// shape of y.
    ///
    /// # Panics
    /// When the shapes do not fit.
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor;

    /// The velocity of rows with a class each, for conditional fields ([`num_classes`](Self::num_classes)
    /// above 0).
    ///
    /// # Shapes and units
    /// As in [`eval`](Self::eval); labels `[rows, 1]`, integers below the number of classes in the element
    /// type of y.
    ///
    /// # Panics
    /// When the shapes do not fit, labels are passed to a field without classes, or a field with classes gets
    /// none.
    #[track_caller]
    fn eval_conditional(&self, t: &Tensor, y: &Tensor, labels: Option<&Tensor>) -> Tensor {
        assert!(labels.is_none(), "this field has no classes, but labels were passed");
        self.eval(t, y)
    }

    /// Number of classes; 0 for an unconditional field.
    fn num_classes(&self) -> usize {
        0
    }

    /// Length of a row.
    fn dim(&self) -> usize;

    /// Whether the field is `v = (2 t - 1) / r^2 x + G(t, x / r) / r` with `r^2 = (1 - t)^2 + t^2`, and G as smooth as v
    /// ([`Preconditioned`], [`MixturePreconditioned`]). Samples in a few steps then solve an equation of G
    /// ([`push_forward_in_steps`](crate::cnf::Cnf::push_forward_in_steps)).
    fn is_preconditioned(&self) -> bool {
        false
    }

    /// Rows per tile in flow matching. For an MLP of width 80, the forward and backward pass of 128 rows fit
    /// into a 1 MiB cache. Fields that compute more per row use smaller tiles, which also gives several
    /// threads work.
    fn rows_per_tile(&self) -> usize {
        128
    }
}

/// Labels `[rows, 1]` as one-hot rows, `[rows, classes]`.
#[track_caller]
pub(super) fn one_hot(labels: &Tensor, classes: usize, y: &Tensor) -> Tensor {
    let wanted = Shape::from([y.shape()[0], 1]);
    assert!(*labels.shape() == wanted, "labels must have shape {wanted}, got {}", labels.shape());
    labels.column(0).one_hot(classes).cast(y.dtype())
}

/// t in the element type of y, as a column with one row or with as many rows as y.
#[track_caller]
pub(super) fn time_column(t: &Tensor, y: &Tensor) -> Tensor {
    assert!(y.rank() == 2, "a velocity field takes y of shape [rows, dim], got {}", y.shape());
    let t = t.cast(y.dtype());
    if t.size() == 1 {
        return t.reshape([1, 1]);
    }
    let column = Shape::from([y.shape()[0], 1]);
    assert!(*t.shape() == column, "t must be one number or of shape {column}, got {}", t.shape());
    t
}

tree! {
    /// A vector field that run folders can name, for programs that know only at run time which field they load.
    #[allow(clippy::large_enum_variant, reason = "a program has few of them, and a box would complicate the type")]
    pub enum AnyVelocityField {
        /// Affine layers scaled and shifted by functions of time.
        ConcatSquash(ConcatSquash),
        /// An MLP on fixed Fourier features.
        Fourier(FourierMlp),
        /// The same, added to the velocity of a normal density.
        PreconditionedFourier(Preconditioned<FourierMlp>),
        /// The same, added to the velocity of a mixture of normal densities.
        MixturePreconditionedFourier(MixturePreconditioned<FourierMlp>),
        /// An MLP of y, and of t and a class if it has inputs for them.
        Mlp(Mlp),
        /// Convolutions of an image.
        UNet(UNet),
        /// A mixture over ranges of gray levels, weighted by a U-Net.
        Levels(LevelMixture),
    }
}

/// Delegates to the contained field.
macro_rules! each_net {
    ($self:ident, $net:ident => $what:expr) => {
        match $self {
            AnyVelocityField::ConcatSquash($net) => $what,
            AnyVelocityField::Fourier($net) => $what,
            AnyVelocityField::PreconditionedFourier($net) => $what,
            AnyVelocityField::MixturePreconditionedFourier($net) => $what,
            AnyVelocityField::Mlp($net) => $what,
            AnyVelocityField::UNet($net) => $what,
            AnyVelocityField::Levels($net) => $what,
        }
    };
}

impl VelocityField for AnyVelocityField {
    #[track_caller]
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor {
        each_net!(self, net => net.eval(t, y))
    }

    #[track_caller]
    fn eval_conditional(&self, t: &Tensor, y: &Tensor, labels: Option<&Tensor>) -> Tensor {
        each_net!(self, net => net.eval_conditional(t, y, labels))
    }

    fn num_classes(&self) -> usize {
        each_net!(self, net => net.num_classes())
    }

    fn dim(&self) -> usize {
        each_net!(self, net => net.dim())
    }

    fn is_preconditioned(&self) -> bool {
        each_net!(self, net => net.is_preconditioned())
    }

    fn rows_per_tile(&self) -> usize {
        each_net!(self, net => net.rows_per_tile())
    }
}

macro_rules! from_nets {
    ($($variant:ident $net:ty;)*) => {$(
        impl From<$net> for AnyVelocityField {
            fn from(net: $net) -> Self {
                AnyVelocityField::$variant(net)
            }
        }
    )*};
}
from_nets! {
    ConcatSquash ConcatSquash; Fourier FourierMlp; PreconditionedFourier Preconditioned<FourierMlp>;
    MixturePreconditionedFourier MixturePreconditioned<FourierMlp>; Mlp Mlp; UNet UNet; Levels LevelMixture;
}
