//! Shared random numbers of a comparison: initial weights, data and probes from splitmix64.
//!
//! A program in any language can generate the same numbers, so none needs a file of weights. README.md states the rules.
//!
//! # References
//! Steele, Lea and Flood (2014), Fast splittable pseudorandom number generators.

use flowline::nn::extra::ConcatSquashLinear;
use flowline::nn::{Activation, Linear, Mlp};
use flowline::tensor::Tensor;

/// The generator: a counter and a hash of it.
pub struct SplitMix(u64);

impl SplitMix {
    pub fn new(seed: u64) -> SplitMix {
        SplitMix(seed)
    }

    /// Uniform in [0, 1), 53 bits.
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        (z >> 11) as f64 * 2.0f64.powi(-53)
    }

    pub fn uniforms(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.uniform()).collect()
    }

    /// Standard normal, by Box and Muller from consecutive pairs: the cosine first, then the sine.
    pub fn normals(&mut self, n: usize) -> Vec<f64> {
        let pairs = (0..n.div_ceil(2)).flat_map(|_| {
            let (radius, angle) = ((-2.0 * (1.0 - self.uniform()).ln()).sqrt(), self.uniform());
            let (sin, cos) = (std::f64::consts::TAU * angle).sin_cos();
            [radius * cos, radius * sin]
        });
        let mut all: Vec<f64> = pairs.collect();
        all.truncate(n);
        all
    }

    /// 1 if a uniform sample is at least 1/2, else -1.
    pub fn signs(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| if self.uniform() >= 0.5 { 1.0 } else { -1.0 }).collect()
    }

    /// Weight, then bias, each uniform in [-1/sqrt(in), 1/sqrt(in)); the weight is drawn row by row of its
    /// transpose `[out, in]`.
    pub fn linear(&mut self, inputs: usize, outputs: usize) -> Linear {
        let weight = self.weight(inputs, outputs);
        Linear { weight, bias: Some(matrix(&self.bounded(inputs, outputs), [outputs])) }
    }

    fn weight(&mut self, inputs: usize, outputs: usize) -> Tensor {
        let drawn = self.bounded(inputs, inputs * outputs);
        matrix(&transposed(&drawn, outputs, inputs), [inputs, outputs])
    }

    fn bounded(&mut self, inputs: usize, n: usize) -> Vec<f64> {
        let bound = 1.0 / (inputs as f64).sqrt();
        self.uniforms(n).into_iter().map(|u| (2.0 * u - 1.0) * bound).collect()
    }

    /// Layers in order, from one generator.
    pub fn mlp(&mut self, sizes: &[usize], activation: Activation) -> Mlp {
        Mlp { layers: sizes.windows(2).map(|s| self.linear(s[0], s[1])).collect(), activation }
    }

    /// Layers in order; of each the affine part, the gate, the shift.
    pub fn concat_squash(&mut self, sizes: &[usize]) -> Vec<ConcatSquashLinear> {
        let layer = |s: &[usize]| ConcatSquashLinear {
            linear: self.linear(s[0], s[1]),
            gate: self.linear(1, s[1]),
            shift: Linear { weight: self.weight(1, s[1]), bias: None },
        };
        sizes.windows(2).map(layer).collect()
    }
}

/// Numbers, row-major, as a tensor of f32.
pub fn matrix<const N: usize>(x: &[f64], shape: [usize; N]) -> Tensor {
    Tensor::from_vec(shape, x.iter().map(|&x| x as f32).collect::<Vec<_>>())
}

/// A matrix `[rows, columns]`, row-major, transposed.
pub fn transposed(x: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    (0..columns).flat_map(|c| (0..rows).map(move |r| x[r * columns + c])).collect()
}
