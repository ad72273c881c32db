//! What a flow integrates: a tree with a vector field.

use super::{ConcatSquash, FourierMlp, LevelMixture, Mlp, UNet};
use crate::array::Shape;
use crate::tensor::{Tensor, Tree};
use crate::tree;

/// A vector field `dy/dt = f(t, y)` whose parameters are the leaves of a tree; each row for itself.
pub trait VelocityField: Tree {
    /// The velocity at time t.
    ///
    /// # Shapes and units
    /// t: one number for all rows, or `[rows, 1]`, of any float type; y `[rows, dim]`; the result as y.
    ///
    /// # Panics
    /// When the shapes do not fit.
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor;

    /// The velocity of rows that each have a class, for fields that take one ([`classes`](Self::num_classes)).
    ///
    /// # Shapes and units
    /// As [`eval`](Self::eval); labels `[rows, 1]`, whole numbers below the number of classes in the element type of y.
    ///
    /// # Panics
    /// When the shapes do not fit, or labels are given to a field without classes.
    #[track_caller]
    fn eval_conditional(&self, t: &Tensor, y: &Tensor, labels: Option<&Tensor>) -> Tensor {
        assert!(labels.is_none(), "this field has no classes, rows of some were given to it");
        self.eval(t, y)
    }

    /// Number of classes that rows may have; 0 for a field that knows none.
    fn num_classes(&self) -> usize {
        0
    }

    /// Length of a row.
    fn dim(&self) -> usize;

    /// Rows of a tile in flow matching. With an MLP of width 80 the forward and backward pass of 128 rows stay in
    /// a cache of 1 MiB; a field that does more for a row asks for fewer, of which then several threads have some.
    fn rows_per_tile(&self) -> usize {
        128
    }
}

/// Classes `[rows, 1]` as rows of zeros with a one, `[rows, classes]`.
#[track_caller]
pub(super) fn one_hot(labels: &Tensor, classes: usize, y: &Tensor) -> Tensor {
    let wanted = Shape::from([y.shape()[0], 1]);
    assert!(*labels.shape() == wanted, "labels are {wanted}, their shape is {}", labels.shape());
    let numbers = Tensor::iota(y.dtype(), [1, classes], 1);
    labels.cast(y.dtype()).eq(&numbers).cast(y.dtype())
}

/// t in the element type of y, as a column of one row or of y's rows.
#[track_caller]
pub(super) fn time_column(t: &Tensor, y: &Tensor) -> Tensor {
    assert!(y.rank() == 2, "a velocity field takes y of shape [rows, dim], this one is {}", y.shape());
    let t = t.cast(y.dtype());
    if t.size() == 1 {
        return t.reshape([1, 1]);
    }
    let column = Shape::from([y.shape()[0], 1]);
    assert!(*t.shape() == column, "t must be one number or {column}, its shape is {}", t.shape());
    t
}

tree! {
    /// One of the fields that run folders name, for programs that learn at run time which one they have.
    #[allow(clippy::large_enum_variant, reason = "a program has a handful, and a box would be one more name to know")]
    pub enum AnyVelocityField {
        /// Affine layers scaled and shifted by functions of time.
        ConcatSquash(ConcatSquash),
        /// An MLP of fixed frequencies.
        Fourier(FourierMlp),
        /// An MLP of y and t.
        Mlp(Mlp),
        /// Convolutions of an image.
        UNet(UNet),
        /// Pixels whose levels a convolution of images weighs.
        Levels(LevelMixture),
    }
}

/// The same of whichever field it is.
macro_rules! each_net {
    ($self:ident, $net:ident => $what:expr) => {
        match $self {
            AnyVelocityField::ConcatSquash($net) => $what,
            AnyVelocityField::Fourier($net) => $what,
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

    fn rows_per_tile(&self) -> usize {
        each_net!(self, net => net.rows_per_tile())
    }
}

macro_rules! from_nets {
    ($($variant:ident $net:ident;)*) => {$(
        impl From<$net> for AnyVelocityField {
            fn from(net: $net) -> Self {
                AnyVelocityField::$variant(net)
            }
        }
    )*};
}
from_nets! { ConcatSquash ConcatSquash; Fourier FourierMlp; Mlp Mlp; UNet UNet; Levels LevelMixture; }
