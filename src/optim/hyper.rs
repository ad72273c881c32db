//! Hyper-parameters: plain numbers, or tensors that a caller carries in a state of its own.
//!
//! A number costs no operation: it becomes a constant of the element type at hand, computed in plain Rust in
//! f64. A traced tensor is computed with, so that another value of it is no other program.

use crate::array::DType;
use crate::tensor::Tensor;

/// Gives another tensor for a hyper-parameter, by its name.
pub(super) type MapNumber<'a> = dyn FnMut(&str, &Tensor) -> Tensor + 'a;

/// A tensor of one element.
#[derive(Clone, Debug)]
pub(super) struct Hyper(Tensor);

impl Hyper {
    #[track_caller]
    pub fn new(name: &str, x: impl Into<Tensor>) -> Hyper {
        let x = x.into();
        assert!(x.size() == 1, "`{name}` of an optimizer is one number, this one has shape {}", x.shape());
        Hyper(x.reshape([]))
    }

    fn known(&self) -> Option<f64> {
        (!self.0.is_traced()).then(|| self.0.item())
    }

    /// Whether it is the number 0, now and in every run of a program that is being traced.
    pub fn is_zero(&self) -> bool {
        self.known() == Some(0.0)
    }

    /// In the given type.
    pub fn cast(&self, dtype: DType) -> Tensor {
        self.known().map_or_else(|| self.0.cast(dtype), |x| Tensor::scalar(dtype, x))
    }

    /// In the type of x.
    pub fn like(&self, x: &Tensor) -> Tensor {
        self.cast(x.dtype())
    }

    /// As f64.
    pub fn real(&self) -> Tensor {
        self.cast(DType::F64)
    }

    /// `1 - x`, in f64 before anything is rounded to the type of a weight.
    pub fn complement(&self) -> Hyper {
        self.apply(|x| 1.0 - x, |x| 1.0 - x)
    }

    /// `ln x`
    pub fn ln(&self) -> Tensor {
        self.apply(f64::ln, |x| x.ln()).0
    }

    fn apply(&self, number: impl Fn(f64) -> f64, tensor: impl Fn(&Tensor) -> Tensor) -> Hyper {
        Hyper(match self.known() {
            Some(x) => Tensor::scalar(DType::F64, number(x)),
            None => tensor(&self.0.cast(DType::F64)),
        })
    }

    /// The hyper-parameter that `f` gives for this one.
    pub fn map(&self, name: &str, f: &mut MapNumber) -> Hyper {
        Hyper(f(name, &self.0))
    }
}

/// What a hyper-parameter is, by the name of its setter.
macro_rules! meaning {
    (beta1) => {
        "The decay rate of the average of gradients."
    };
    (beta2) => {
        "The decay rate of the average of squares; of Lion, of the momentum that the next update reads."
    };
    (eps) => {
        "What keeps a root in a denominator from zero: beside it in forms of Adam, under it in RMSProp and AdaGrad."
    };
    (eps_root) => {
        "What is added to the second moment at every update."
    };
    (decay) => {
        "The decay rate of the average of squares."
    };
    (initial_accumulator) => {
        "What the sum of squares is before the first update."
    };
    (threshold) => {
        "The length of the average above which the second moment is used."
    };
    (rtol) => {
        "By which part of itself the best loss has to be beaten; 1e-4 by default."
    };
    (cooldown) => {
        "For how many updates after a reduction none is counted; 0 by default."
    };
    (min_scale) => {
        "The smallest scale; 0 by default."
    };
}

/// Setters of a part: each puts a number or a tensor where `=>` says.
macro_rules! setters {
    ($part:ident { $($name:ident => $($field:ident).+),+ $(,)? }) => {
        impl $part {$(
            #[doc = $crate::optim::hyper::meaning!($name)]
            #[track_caller]
            pub fn $name(mut self, $name: impl Into<Tensor>) -> $part {
                self.$($field).+ = Hyper::new(stringify!($name), $name);
                self
            }
        )+}
    };
}

pub(super) use {meaning, setters};
