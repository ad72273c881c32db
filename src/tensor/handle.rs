//! The tensor handle and its conversions from and to plain Rust values.

use super::trace::Trace;
use crate::array::{Array, DType, Element, Shape};
use crate::graph::{NodeId, Type};
use std::sync::{Arc, Weak};

/// An array of numbers, concrete or traced; a cheap handle that is `Send` and `Sync`.
///
/// Element types are f32, f64, i32, u32 and bool. Two operands broadcast as in NumPy. If their element types
/// differ, a bool becomes the other type, and an integer becomes the float type of the other operand. If both
/// are floats, or both are integers, a tensor of rank 0 takes the type of the other operand. If no operand or
/// both have rank 0, f32 becomes f64, and of two integer types the left operand's type is used. A plain Rust
/// number that the tensor's element type cannot represent (0.5 with integers, -1 with u32) makes the result
/// f64.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
/// assert_eq!((2.0 * &x - 1).sum().item(), 16.0);
/// ```
#[derive(Clone)]
pub struct Tensor(pub(super) Repr);

#[derive(Clone)]
pub(super) enum Repr {
    Concrete(Arc<Array>),
    Traced { trace: Weak<Trace>, id: NodeId, ty: Arc<Type> },
}

impl Tensor {
    /// A tensor from an array, without a copy.
    #[doc(hidden)]
    pub fn from_array(a: Array) -> Tensor {
        Tensor(Repr::Concrete(Arc::new(a)))
    }

    /// A tensor from plain Rust numbers, without a copy.
    ///
    /// # Panics
    /// If the number of elements differs from the shape's size.
    #[track_caller]
    pub fn from_vec<T: Element>(shape: impl Into<Shape>, v: Vec<T>) -> Tensor {
        Tensor::from_array(Array::from_vec(shape, v))
    }

    /// Zeros of type f32.
    pub fn zeros(shape: impl Into<Shape>) -> Tensor {
        Tensor::full(DType::F32, shape, 0.0)
    }

    /// Ones of type f32.
    pub fn ones(shape: impl Into<Shape>) -> Tensor {
        Tensor::full(DType::F32, shape, 1.0)
    }

    /// A tensor whose elements all equal `x`.
    pub fn full(dtype: DType, shape: impl Into<Shape>, x: f64) -> Tensor {
        Tensor::from_array(Array::full(dtype, shape, x))
    }

    /// A number of the given type, of rank 0.
    pub fn scalar(dtype: DType, x: f64) -> Tensor {
        Tensor::from_array(Array::scalar(dtype, x))
    }

    /// n equally spaced numbers from `first` to `last`, both included, in f64: `first + i (last - first) / (n - 1)`. For
    /// n = 1 it is `first`.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// assert_eq!(Tensor::linspace(0.0, 1.0, 5).to_vec(), [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// ```
    ///
    /// # Panics
    /// If `first` or `last` is not finite.
    #[track_caller]
    pub fn linspace(first: f64, last: f64, n: usize) -> Tensor {
        assert!(
            first.is_finite() && last.is_finite(),
            "linspace from {first} to {last}: both must be finite"
        );
        Tensor::from_vec([n], crate::ode::linspace(first, last, n))
    }

    /// 0, 1, 2, ... along `axis`.
    pub fn iota(dtype: DType, shape: impl Into<Shape>, axis: usize) -> Tensor {
        let mut a = Array::zeros(dtype, shape);
        let (stride, len) = (a.shape().strides()[axis], a.shape()[axis]);
        (0..a.shape().size()).for_each(|i| a.data_mut().set_f64(i, (i / stride % len) as f64));
        Tensor::from_array(a)
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        match &self.0 {
            Repr::Concrete(a) => a.shape(),
            Repr::Traced { ty, .. } => ty.shape(),
        }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        match &self.0 {
            Repr::Concrete(a) => a.dtype(),
            Repr::Traced { ty, .. } => ty.dtype(),
        }
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.shape().rank()
    }

    /// Number of elements.
    pub fn size(&self) -> usize {
        self.shape().size()
    }

    pub(crate) fn ty(&self) -> Type {
        Type::array(self.dtype(), self.shape().clone())
    }

    /// Whether this is a value of a program under construction, which has no numbers yet.
    pub fn is_traced(&self) -> bool {
        matches!(self.0, Repr::Traced { .. })
    }

    /// The array of a concrete tensor.
    ///
    /// # Panics
    /// For a traced tensor, which has no numbers yet.
    #[doc(hidden)]
    #[track_caller]
    pub fn array(&self) -> &Array {
        match &self.0 {
            Repr::Concrete(a) => a,
            Repr::Traced { ty, .. } => panic!(
                "a traced tensor ({ty}) has no numbers yet: return it from the traced function, or compute with tensors (to branch on a value, use `mask.select(a, b)`)"
            ),
        }
    }

    pub(super) fn into_concrete(self) -> Option<Arc<Array>> {
        match self.0 {
            Repr::Concrete(a) => Some(a),
            Repr::Traced { .. } => None,
        }
    }

    /// The number in a concrete tensor of one element.
    ///
    /// # Panics
    /// If there is not exactly one element, or the tensor is traced.
    #[track_caller]
    pub fn item(&self) -> f64 {
        assert_eq!(self.size(), 1, "item() needs one element, but the shape is {}", self.shape());
        self.array().data().get_f64(0)
    }

    /// All elements of a concrete tensor as f64, in row-major order.
    ///
    /// # Panics
    /// For a traced tensor.
    #[track_caller]
    pub fn to_vec(&self) -> Vec<f64> {
        self.array().to_f64()
    }

    /// The elements of a concrete tensor, if they are of type `T`.
    ///
    /// # Panics
    /// For a traced tensor.
    #[track_caller]
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        T::slice(self.array().data())
    }
}

impl From<&Tensor> for Tensor {
    fn from(x: &Tensor) -> Self {
        x.clone()
    }
}

macro_rules! from_plain {
    ($($t:ty)*) => { $(
        impl From<$t> for Tensor {
            fn from(x: $t) -> Self { Tensor::from_vec(Shape::scalar(), vec![x]) }
        }
        impl From<Vec<$t>> for Tensor {
            fn from(x: Vec<$t>) -> Self { Tensor::from_vec([x.len()], x) }
        }
        impl From<&[$t]> for Tensor {
            fn from(x: &[$t]) -> Self { x.to_vec().into() }
        }
        impl<const N: usize> From<[$t; N]> for Tensor {
            fn from(x: [$t; N]) -> Self { x.to_vec().into() }
        }
        impl<const N: usize, const M: usize> From<[[$t; M]; N]> for Tensor {
            fn from(x: [[$t; M]; N]) -> Self { Tensor::from_vec([N, M], x.concat()) }
        }
    )* };
}
from_plain!(f32 f64 i32 u32);
