//! How weights are drawn before training: initializers by name, as programs of tensors.
//!
//! A draw is a function of a [`Key`] and a shape that is recorded under `jit` and runs at once outside of
//! it, with the same bits; no generator outside of tensors takes part. It knows shapes, not layers: which axes are
//! inputs and outputs follows from one rule ([`Init::sample`]).

use crate::array::{DType, Shape};
use crate::tensor::{Key, Tensor};
use std::fmt;
use std::str::FromStr;

mod orthogonal;

/// A distribution of weights.
///
/// "Normal" draws are whole normal draws, as in the papers and in PyTorch; Haiku, Flax and Keras cut theirs
/// at two standard deviations and widen them by 1/0.8796 to keep the variance.
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
    /// One number.
    Constant(f64),
    /// Uniform in `[-x, x)`.
    Uniform(f64),
    /// Normal of mean 0 and the given standard deviation.
    Normal(f64),
    /// Normal, cut at two of the given standard deviations; those of the draws are 0.8796 of it.
    TruncatedNormal(f64),
    /// Uniform in `[-1/sqrt(in), 1/sqrt(in))`, of variance `1 / (3 in)`: what [`Linear::new`](super::Linear::new)
    /// draws, and PyTorch and Equinox.
    FanIn,
    /// Uniform of variance `1 / in` (LeCun et al. 1998, Efficient BackProp, section 4.6).
    LecunUniform,
    /// Normal of variance `1 / in`.
    LecunNormal,
    /// Uniform of variance `2 / (in + out)` (Glorot and Bengio 2010, Understanding the difficulty of training
    /// deep feedforward neural networks, eq. 16).
    GlorotUniform,
    /// Normal of variance `2 / (in + out)`.
    GlorotNormal,
    /// Uniform of variance `2 / in` (He et al. 2015, Delving deep into rectifiers, eq. 10).
    HeUniform,
    /// Normal of variance `2 / in`.
    HeNormal,
    /// The given factor times a matrix `[.., in] x [out]` with orthonormal columns (rows, where there are
    /// fewer of them), uniform over all such (Saxe et al. 2014, Exact solutions to the nonlinear dynamics of
    /// learning in deep linear neural networks, section 3).
    Orthogonal(f64),
}

/// Standard deviation, or half width, where a name comes without a number: that of Flax.
const WIDTH: f64 = 0.01;

/// The initializers by name, with the number that stands where the name comes alone.
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
    /// Draws a tensor, f32.
    ///
    /// # Shapes and units
    /// The last axis counts outputs, the one before it inputs, and what stands before both (the window of a
    /// convolution) multiplies both. Of a vector both are its length, of a number 1.
    ///
    /// # Panics
    /// When a matrix with orthonormal columns is asked for in a shape of fewer than two axes.
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

    /// The number of the distributions that have one.
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

/// Inputs and outputs of weights of a shape; at least 1, so that empty weights are drawn too.
fn fans(shape: &Shape) -> (f64, f64) {
    let rank = shape.rank();
    let (inputs, outputs) = match rank {
        0 => (1, 1),
        1 => (shape[0], shape[0]),
        _ => (shape[..rank - 1].iter().product(), shape.size() / shape[rank - 2].max(1)),
    };
    (inputs.max(1) as f64, outputs.max(1) as f64)
}

/// Normal draws cut at -2 and 2, by the inverse of the distribution function:
/// `sqrt(2) erfinv(u)`, u uniform in `(-erf(sqrt 2), erf(sqrt 2))`.
///
/// Not by rejection: a program has no loop that ends on a draw, and a fixed number of tries costs as many draws.
fn truncated_normal(shape: Shape, key: &Key) -> Tensor {
    const ERF_ROOT_2: f64 = 0.9544997361036416;
    // Half of the last bit of a draw is added, which makes 0 the middle.
    let u = (key.uniform(shape) * 2.0 - (1.0 - 2.0f64.powi(-24))) * ERF_ROOT_2;
    let two = Tensor::scalar(DType::F32, 2.0);
    (central_erfinv(&u) * std::f64::consts::SQRT_2).minimum(&two).maximum(&-&two)
}

/// `erfinv(x)` in f32 for `|x| < 0.9966`, to 4e-7 of itself: a polynomial in `-ln(1 - x^2) - 5/2`.
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

/// A name that is no initializer's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no initializer; there are {}, with a number behind a colon where they have one (normal:0.02)", NAMES.map(|(n, _)| n).join(", "))]
pub struct ParseInitError {
    /// What was given.
    pub name: String,
}

/// `he_normal`, `normal:0.02`; without a number widths are 0.01, a constant is 0, and an orthogonal matrix is
/// scaled by 1.
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

/// The name that is parsed to it.
impl fmt::Display for Init {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let same = |other: &Init| std::mem::discriminant(other) == std::mem::discriminant(self);
        let (name, _) = NAMES.iter().find(|(_, init)| same(init)).expect("invariant: every one has a name");
        let mut init = *self;
        match init.number() {
            Some(x) => write!(f, "{name}:{x}"),
            None => f.write_str(name),
        }
    }
}
