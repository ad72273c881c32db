//! What a flow integrates: a tree with a vector field.

use super::{ConcatSquash, FourierMlp, Mlp, UNet};
use crate::array::Shape;
use crate::tensor::{Tensor, Tree};
use crate::tree;

/// A vector field `dy/dt = f(t, y)` whose parameters are the leaves of a tree; each row for itself.
pub trait Drift: Tree {
    /// The velocity at time t.
    ///
    /// # Shapes and units
    /// t: one number for all rows, or `[rows, 1]`, of any float type; y `[rows, dim]`; the result as y.
    ///
    /// # Panics
    /// When the shapes do not fit.
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor;

    /// Length of a row.
    fn dim(&self) -> usize;

    /// Rows of a tile in flow matching. With a perceptron of width 80 the forward and backward pass of 128 rows stay in
    /// a cache of 1 MiB; a field that does more for a row asks for fewer, of which then several threads have some.
    fn tile(&self) -> usize {
        128
    }
}

/// t in the element type of y, as a column of one row or of y's rows.
#[track_caller]
pub(super) fn time_column(t: &Tensor, y: &Tensor) -> Tensor {
    assert!(y.rank() == 2, "a drift takes y of shape [rows, dim], this one is {}", y.shape());
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
    pub enum DriftNet {
        /// Affine layers scaled and shifted by functions of time.
        ConcatSquash(ConcatSquash),
        /// A perceptron of fixed frequencies.
        Fourier(FourierMlp),
        /// A perceptron of y and t.
        Mlp(Mlp),
        /// Convolutions of a picture.
        UNet(UNet),
    }
}

impl Drift for DriftNet {
    #[track_caller]
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor {
        match self {
            DriftNet::ConcatSquash(net) => net.eval(t, y),
            DriftNet::Fourier(net) => net.eval(t, y),
            DriftNet::Mlp(net) => net.eval(t, y),
            DriftNet::UNet(net) => net.eval(t, y),
        }
    }

    fn dim(&self) -> usize {
        match self {
            DriftNet::ConcatSquash(net) => net.dim(),
            DriftNet::Fourier(net) => net.dim(),
            DriftNet::Mlp(net) => net.dim(),
            DriftNet::UNet(net) => net.dim(),
        }
    }

    fn tile(&self) -> usize {
        match self {
            DriftNet::ConcatSquash(net) => net.tile(),
            DriftNet::Fourier(net) => net.tile(),
            DriftNet::Mlp(net) => net.tile(),
            DriftNet::UNet(net) => net.tile(),
        }
    }
}

impl From<ConcatSquash> for DriftNet {
    fn from(net: ConcatSquash) -> Self {
        DriftNet::ConcatSquash(net)
    }
}
impl From<FourierMlp> for DriftNet {
    fn from(net: FourierMlp) -> Self {
        DriftNet::Fourier(net)
    }
}
impl From<Mlp> for DriftNet {
    fn from(net: Mlp) -> Self {
        DriftNet::Mlp(net)
    }
}
impl From<UNet> for DriftNet {
    fn from(net: UNet) -> Self {
        DriftNet::UNet(net)
    }
}
