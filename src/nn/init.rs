//! Weight initializers by name, written as tensor programs.
//!
//! Sampling is a function of a [`Key`] and a shape. It is recorded under `jit` and runs eagerly otherwise, with
//! the same bits and no other random generator. It depends on shapes, not on layers: one rule determines the
//! input and output axes ([`Init::sample`]).

use crate::array::{DType, Shape};
use crate::tensor::{Key, Tensor};
use std::fmt;
use std::str::FromStr;

mod orthogonal;

/// A distribution of weights.
///
/// "Normal" is the untruncated normal distribution, as in the papers and in PyTorch. Haiku, Flax and Keras
/// truncate at two standard deviations and divide by 0.8796 to keep the variance.
///
/// # Examples
/// ```
/// use flowline::nn::*;
/// use flowline::nn::extra::Init;
/// use flowline::nn::prelude::*;
/// let init: Init = "he_normal".parse().unwrap();
/// let draw = jit(move |key: Key| init.sample([50, 30], &key));
/// assert_eq!(draw.call(Key::new(1)).unwrap().to_vec(), Init::HeNormal.sample([50, 30], &Key::new(1)).to_vec());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// 0
    Zeros,
    /// 1
    Ones,
    /// A constant.
    Constant(f64),
    /// Uniform in `[-x, x)`.
    Uniform(f64),
    /// Normal with mean 0 and the given standard deviation.
    Normal(f64),
    /// Normal with the given standard deviation, truncated at two standard deviations. The samples' standard
    /// deviation is 0.8796 times the given one.
    TruncatedNormal(f64),
    /// Uniform in `[-1/sqrt(in), 1/sqrt(in))`, with variance `1 / (3 in)`: the default of
    /// [`Linear::new`](super::Linear::new), PyTorch and Equinox.
    FanIn,
    /// Uniform with variance `1 / in` (LeCun et al. 1998, Efficient BackProp, section 4.6).
    LecunUniform,
    /// Normal with variance `1 / in`.
    LecunNormal,
    /// Uniform with variance `2 / (in + out)` (Glorot and Bengio 2010, Understanding the difficulty of
    /// training deep feedforward neural networks, eq. 16).
    GlorotUniform,
    /// Normal with variance `2 / (in + out)`.
    GlorotNormal,
    /// Uniform with variance `2 / in` (He et al. 2015, Delving deep into rectifiers, eq. 10).
    HeUniform,
    /// Normal with variance `2 / in`.
    HeNormal,
    /// The given factor times a matrix `[.., in] x [out]` with orthonormal columns (or rows, if there are
    /// fewer rows), Haar-distributed (Saxe et al. 2014, Exact solutions to the nonlinear dynamics of learning
    /// in deep linear neural networks, section 3).
    Orthogonal(f64),
}

/// The default standard deviation or half width of a name without a number, as in Flax.
const WIDTH: f64 = 0.01;

/// The initializers by name, each with its default number.
const NAMES: [(&str, Init); 14] = [
    ("zeros", Init::Zeros),
    ("ones", Init::Ones),
    ("constant", Init::Constant(0.0)),
    ("uniform", Init::Uniform(WIDTH)),
    ("normal", Init::Normal(WIDTH)),
    ("truncated_normal", Init::TruncatedNormal(WIDTH)),
    ("fan_in", Init::FanIn),
    ("lecun_uniform", Init::LecunUniform),
    ("lecun_normal", Init::LecunNormal),
    ("glorot_uniform", Init::GlorotUniform),
    ("glorot_normal", Init::GlorotNormal),
    ("he_uniform", Init::HeUniform),
    ("he_normal", Init::HeNormal),
    ("orthogonal", Init::Orthogonal(1.0)),
];

impl Init {
    /// Samples a tensor, f32.
    ///
    /// # Shapes and units
    /// The last axis counts outputs, the one before it inputs; leading axes (the window of a convolution)
    /// multiply both. For a vector, the numbers of inputs and outputs are its length; for a scalar, both are 1.
    ///
    /// # Panics
    /// When [`Init::Orthogonal`] is used with a shape of fewer than two axes.
    #[track_caller]
    pub fn sample(self, shape: impl Into<Shape>, key: &Key) -> Tensor {
        self.drawn(shape.into(), key)
    }

    #[track_caller]
    fn drawn(self, shape: Shape, key: &Key) -> Tensor {
        let (inputs, outputs) = fans(&shape);
        let uniform = |bound: f64, shape| (key.uniform(shape) * 2.0 - 1.0) * bound;
        match self {
            Init::Zeros => Tensor::zeros(shape),
            Init::Ones => Tensor::ones(shape),
            Init::Constant(x) => Tensor::full(DType::F32, shape, x),
            Init::Uniform(bound) => uniform(bound, shape),
            Init::Normal(std) => key.normal(shape) * std,
            Init::TruncatedNormal(std) => truncated_normal(shape, key) * std,
            Init::FanIn => uniform(1.0 / inputs.sqrt(), shape),
            Init::LecunUniform => uniform((3.0 / inputs).sqrt(), shape),
            Init::LecunNormal => key.normal(shape) * (1.0 / inputs).sqrt(),
            Init::GlorotUniform => uniform((6.0 / (inputs + outputs)).sqrt(), shape),
            Init::GlorotNormal => key.normal(shape) * (2.0 / (inputs + outputs)).sqrt(),
            Init::HeUniform => uniform((6.0 / inputs).sqrt(), shape),
            Init::HeNormal => key.normal(shape) * (2.0 / inputs).sqrt(),
            Init::Orthogonal(gain) => orthogonal::draw(shape, key) * gain,
        }
    }

    /// The parameter of the initializer, if it has one.
    fn number(&mut self) -> Option<&mut f64> {
        match self {
            Init::Constant(x)
            | Init::Uniform(x)
            | Init::Normal(x)
            | Init::TruncatedNormal(x)
            | Init::Orthogonal(x) => Some(x),
            _ => None,
        }
    }
}

/// The numbers of inputs and outputs of weights with this shape, at least 1 so that empty weights can be
/// sampled.
fn fans(shape: &Shape) -> (f64, f64) {
    let rank = shape.rank();
    let (inputs, outputs) = match rank {
        0 => (1, 1),
        1 => (shape[0], shape[0]),
        _ => (shape[..rank - 1].iter().product(), shape.size() / shape[rank - 2].max(1)),
    };
    (inputs.max(1) as f64, outputs.max(1) as f64)
}

/// Normal samples truncated to [-2, 2], by the inverse of the distribution function: `sqrt(2) erfinv(u)`, u
/// uniform in `(-erf(sqrt 2), erf(sqrt 2))`.
///
/// Rejection sampling would need a loop whose length depends on the samples, or a limit on the number of tries.
fn truncated_normal(shape: Shape, key: &Key) -> Tensor {
    const ERF_ROOT_2: f64 = 0.9544997361036416;
    // Adds half of the last bit of a sample, which centers the distribution at 0.
    let u = (key.uniform(shape) * 2.0 - (1.0 - 2.0f64.powi(-24))) * ERF_ROOT_2;
    let two = Tensor::scalar(DType::F32, 2.0);
    (central_erfinv(&u) * std::f64::consts::SQRT_2).minimum(&two).maximum(&-&two)
}

/// `erfinv(x)` in f32 for `|x| < 0.9966`, relative error 4e-7: a polynomial in `-ln(1 - x^2) - 5/2`.
///
/// # References
/// Giles (2011), Approximating the erfinv function, table 5, the central branch.
fn central_erfinv(x: &Tensor) -> Tensor {
    const POLYNOMIAL: [f64; 9] = [
        2.81022636e-08,
        3.43273939e-07,
        -3.5233877e-06,
        -4.39150654e-06,
        0.00021858087,
        -0.00125372503,
        -0.00417768164,
        0.246640727,
        1.50140941,
    ];
    let w = -(-x.square()).log1p() - 2.5;
    let first = Tensor::full(x.dtype(), x.shape().clone(), POLYNOMIAL[0]);
    x * POLYNOMIAL[1..].iter().fold(first, |p, &c| p * &w + c)
}

/// The name of an initializer could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown initializer `{name}`; known ones are {}; constant, uniform, normal, truncated_normal and orthogonal may have a finite number after a colon (normal:0.02)", NAMES.map(|(n, _)| n).join(", "))]
pub struct ParseInitError {
    /// The text that was given.
    pub name: String,
}

/// Parses a name, with a finite number if the initializer has one: `he_normal`, `normal`, `normal:0.02`. The
/// default number is 0.01 for the half width or standard deviation, 0 for a constant and 1 for the factor of
/// an orthogonal matrix.
impl FromStr for Init {
    type Err = ParseInitError;

    fn from_str(s: &str) -> Result<Init, ParseInitError> {
        let unknown = || ParseInitError { name: s.to_owned() };
        let (name, number) = s.split_once(':').map_or((s, None), |(name, x)| (name, Some(x)));
        let (_, mut init) = *NAMES.iter().find(|(n, _)| *n == name).ok_or_else(unknown)?;
        if let Some(text) = number {
            let x = text.parse().ok().filter(|x: &f64| x.is_finite()).ok_or_else(unknown)?;
            *init.number().ok_or_else(unknown)? = x;
        }
        Ok(init)
    }
}

/// Writes the name that parses to this initializer.
impl fmt::Display for Init {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let same = |other: &Init| std::mem::discriminant(other) == std::mem::discriminant(self);
        let (name, _) =
            NAMES.iter().find(|(_, init)| same(init)).expect("invariant: every initializer has a name");
        let mut init = *self;
        match init.number() {
            Some(x) => write!(f, "{name}:{x}"),
            None => f.write_str(name),
        }
    }
}
