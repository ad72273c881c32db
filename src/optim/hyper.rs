//! Hyper-parameters: plain numbers, or tensors from the caller's state.
//!
//! A plain number costs no operation: it is processed in f64 and becomes a constant of the required element
//! type. A traced tensor enters the program as a value, so a new value needs no new trace.

use crate::array::DType;
use crate::tensor::Tensor;

/// Replaces the value of a hyper-parameter, given its name.
pub(super) type MapNumber<'a> = dyn FnMut(&str, &Tensor) -> Tensor + 'a;

/// A tensor of one element.
#[derive(Clone, Debug)]
pub(super) struct Hyper(Tensor);

impl Hyper {
    #[track_caller]
    pub fn new(name: &str, x: impl Into<Tensor>) -> Hyper {
        let x = x.into();
        assert!(x.size() == 1, "optimizer setting `{name}` must be a single number, got shape {}", x.shape());
        Hyper(x.reshape([]))
    }

    fn known(&self) -> Option<f64> {
        (!self.0.is_traced()).then(|| self.0.item())
    }

    /// Whether the value is the constant 0; false for a traced value.
    pub fn is_zero(&self) -> bool {
        self.known() == Some(0.0)
    }

    /// The value in the given type.
    pub fn cast(&self, dtype: DType) -> Tensor {
        self.known().map_or_else(|| self.0.cast(dtype), |x| Tensor::scalar(dtype, x))
    }

    /// The value in the type of x.
    pub fn like(&self, x: &Tensor) -> Tensor {
        self.cast(x.dtype())
    }

    /// The value in f64.
    pub fn real(&self) -> Tensor {
        self.cast(DType::F64)
    }

    /// `1 - x`, computed in f64 before rounding to the weight's type.
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

    /// Replaces the value by `f`.
    pub fn map(&self, name: &str, f: &mut MapNumber) -> Hyper {
        Hyper(f(name, &self.0))
    }
}

/// The documentation of each setter, by its name.
macro_rules! meaning {
    (beta1) => {
        "The decay rate of the average of gradients; for Lion, the weight of the momentum in the update."
    };
    (beta2) => {
        "The decay rate of the second moment; for Lion, of the momentum that the next update uses."
    };
    (eps) => {
        "Keeps the denominator away from zero: outside the square root for variants of Adam, inside it for RMSProp and AdaGrad."
    };
    (eps_root) => {
        "Added to the second moment at every update."
    };
    (decay) => {
        "The decay rate of the mean of squared gradients."
    };
    (initial_accumulator) => {
        "The initial value of the sum of squared gradients."
    };
    (threshold) => {
        "The second moment is used once its effective averaging length reaches this value."
    };
    (rtol) => {
        "The relative improvement over the best loss that counts as progress; 1e-4 by default."
    };
    (cooldown) => {
        "The number of updates after a reduction during which patience does not count; 0 by default."
    };
    (min_scale) => {
        "The smallest scale; 0 by default."
    };
}

/// Setters of a part: each takes a number or a tensor and stores it in the field after `=>`.
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
