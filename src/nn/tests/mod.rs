//! Layers against numbers computed in plain Rust.

mod attention;
mod conv;
mod embedding;
mod frozen;
mod gru;
mod init;
mod layer_norm;
mod level_mixture;
mod mixture_preconditioned;
mod preconditioned;
mod time_layers;
mod unet;

use super::*;
use crate::array::DType;
use crate::tensor::{Key, Tensor, Tree, num_elements, value_and_grad};
use std::f64::consts::PI;

fn close(got: &Tensor, want: &[f64]) {
    let got = got.to_vec();
    assert_eq!(got.len(), want.len());
    for (g, w) in got.iter().zip(want) {
        assert!((g - w).abs() < 1e-12 * (1.0 + w.abs()), "{got:?} {want:?}");
    }
}

/// A tree's leaves as f64.
fn double<T: Tree>(tree: &T) -> T {
    tree.cast_floats(DType::F64)
}

/// Standard normal samples in f64.
fn draws<const N: usize>(shape: [usize; N], seed: u64) -> Tensor {
    Key::new(seed).normal(shape).cast(DType::F64)
}

/// Asserts that the directional derivative of `f` (weighted to one number), along a fixed direction in every
/// leaf of a layer and in its input, equals central differences, in f64.
fn assert_gradients<T: Tree>(layer: &T, x: &Tensor, f: impl Fn(&T, &Tensor) -> Tensor) {
    let at = (double(layer), x.cast(DType::F64));
    let loss = |at: &(T, Tensor)| {
        let y = f(&at.0, &at.1);
        (&y * draws([y.size()], 51).reshape(y.shape().clone())).sum()
    };
    let leaves = at.leaves();
    let directions: Vec<Tensor> =
        leaves.iter().zip(60..).map(|(x, i)| draws([x.size()], i).reshape(x.shape().clone())).collect();
    let moved = |h: f64| loss(&at.with_leaves(leaves.iter().zip(&directions).map(|(x, d)| x + d * h))).item();
    let (_, grads) = value_and_grad(loss, &at);
    let along: f64 = grads.leaves().iter().zip(&directions).map(|(g, d)| (g * d).sum().item()).sum();
    let (h, third) = (1e-4, 1.0 / 3.0);
    let derivative = |h: f64| (moved(h) - moved(-h)) / (2.0 * h);
    let difference = 4.0 * third * derivative(h) - third * derivative(2.0 * h);
    assert!(
        (along - difference).abs() < 1e-8 * difference.abs().max(1.0),
        "derivative {along}, finite difference {difference}"
    );
}

/// `x W + b` of one row in plain Rust.
fn affine(linear: &Linear, x: &[f64]) -> Vec<f64> {
    let (w, n) = (linear.weight.to_vec(), linear.outputs());
    let b = linear.bias.as_ref().map_or(vec![0.0; n], Tensor::to_vec);
    (0..n).map(|j| b[j] + x.iter().enumerate().map(|(i, x)| x * w[i * n + j]).sum::<f64>()).collect()
}

#[test]
fn a_linear_layer_is_x_w_plus_b() {
    let linear = Linear {
        weight: Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        bias: Some(Tensor::from([0.5, 0.0, -0.5])),
    };
    close(&linear.forward(&Tensor::from([[1.0, -1.0], [2.0, 0.5]])), &[-2.5, -3.0, -3.5, 4.5, 6.5, 8.5]);
    let thin = Linear { weight: Tensor::from([[2.0, -3.0]]), bias: None };
    close(&thin.forward(&Tensor::from([[0.5], [4.0]])), &[1.0, -1.5, 8.0, -12.0]);
}

#[test]
fn weights_are_uniform_within_the_root_of_the_inputs() {
    let linear = Linear::new(100, 50, &Key::new(3));
    let w = linear.weight.to_vec();
    let (mean, square) = (w.iter().sum::<f64>() / 5e3, w.iter().map(|x| x * x).sum::<f64>() / 5e3);
    assert!(w.iter().all(|x| (-0.1..0.1).contains(x)) && mean.abs() < 3e-3);
    assert!(
        (square - 0.01 / 3.0).abs() < 2e-4,
        "the variance of a uniform sample on [-w, w) is w^2 / 3: {square}"
    );
    assert_ne!(Linear::new(100, 50, &Key::new(4)).weight.to_vec(), w);
}

#[test]
fn activations_have_their_values() {
    let x = Tensor::from([-1.0, 0.5]);
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    close(&Activation::Tanh.apply(&x), &[(-1.0f64).tanh(), 0.5f64.tanh()]);
    close(&Activation::Silu.apply(&x), &[-sigmoid(-1.0), 0.5 * sigmoid(0.5)]);
    close(&Activation::Softplus.apply(&x), &[(-1.0f64).exp().ln_1p(), 0.5f64.exp().ln_1p()]);
    close(&Activation::Relu.apply(&x), &[0.0, 0.5]);
    close(&Activation::Sigmoid.apply(&x), &[sigmoid(-1.0), sigmoid(0.5)]);
    close(&Activation::Identity.apply(&x), &[-1.0, 0.5]);
    close(&Activation::Gelu.apply(&x), &[-0.158_655_253_931_457_05, 0.5 * 0.691_462_461_274_013_1]);
    close(&Activation::Elu.apply(&x), &[(-1.0f64).exp_m1(), 0.5]);
    close(&Activation::LeakyRelu.apply(&x), &[-0.01, 0.5]);
}

#[test]
fn concat_squash_is_its_formula() {
    let net = double(&ConcatSquash::new(2, [3], &Key::new(1)));
    let layer = |layer: &ConcatSquashLinear, t: f64, y: &[f64]| -> Vec<f64> {
        let (a, g, s) = (affine(&layer.linear, y), affine(&layer.gate, &[t]), affine(&layer.shift, &[t]));
        (0..a.len()).map(|i| a[i] / (1.0 + (-g[i]).exp()) + s[i]).collect()
    };
    let field = |t: f64, y: &[f64]| {
        let hidden: Vec<f64> = layer(&net.layers[0], t, y).iter().map(|x| x.tanh()).collect();
        layer(&net.layers[1], t, &hidden)
    };
    let y = Tensor::from([[0.3, -1.2], [2.0, 0.1]]);
    let want = |t: [f64; 2]| [field(t[0], &[0.3, -1.2]), field(t[1], &[2.0, 0.1])].concat();
    close(&net.eval(&Tensor::from(0.4), &y), &want([0.4, 0.4]));
    close(&net.eval(&Tensor::from([[0.4], [0.9]]), &y), &want([0.4, 0.9]));
    assert_eq!(num_elements(&ConcatSquash::new(2, [64, 64, 64], &Key::new(0))), 18_448 / 2);
}

#[test]
fn a_fourier_field_is_its_formula() {
    let net = double(&FourierMlp::new(golden_frequencies(3, 1.5), [5], &Key::new(2)));
    let b = net.frequencies.get().to_vec();
    let field = |t: f64, y: &[f64]| {
        let angles: Vec<f64> = (0..3).map(|j| y[0] * b[j] + y[1] * b[3 + j]).collect();
        let turns = [1.0, 2.0, 4.0, 8.0].map(|f| PI * t * f);
        let mut x = y.to_vec();
        x.extend(angles.iter().map(|a| a.sin()).chain(angles.iter().map(|a| a.cos())));
        x.extend(turns.iter().map(|a| a.sin()).chain(turns.iter().map(|a| a.cos())));
        let hidden: Vec<f64> =
            affine(&net.mlp.layers[0], &x).iter().map(|x| x / (1.0 + (-x).exp())).collect();
        affine(&net.mlp.layers[1], &hidden)
    };
    let y = Tensor::from([[0.3, -1.2], [2.0, 0.1]]);
    let want = |t: [f64; 2]| [field(t[0], &[0.3, -1.2]), field(t[1], &[2.0, 0.1])].concat();
    close(&net.eval(&Tensor::from(0.4), &y), &want([0.4, 0.4]));
    close(&net.eval(&Tensor::from([[0.4], [0.9]]), &y), &want([0.4, 0.9]));
}

#[test]
fn a_perceptron_takes_time_behind_y() {
    let net = double(&Mlp::new([3, 4, 2], Activation::Tanh, &Key::new(5)));
    let y = Tensor::from([[0.3, -1.2], [2.0, 0.1]]);
    let with_t = Tensor::from([[0.3, -1.2, 0.7], [2.0, 0.1, 0.7]]);
    let want = net.forward(&with_t).to_vec();
    close(&net.eval(&Tensor::from(0.7), &y), &want);
    close(&AnyVelocityField::from(net.clone()).eval(&Tensor::from([[0.7], [0.7]]), &y), &want);
    let autonomous = double(&Mlp::new([2, 4, 2], Activation::Tanh, &Key::new(5)));
    close(&autonomous.eval(&Tensor::from(0.7), &y), &autonomous.forward(&y).to_vec());
}

#[test]
fn golden_frequencies_grow_geometrically_in_golden_directions() {
    let b = golden_frequencies(4, 2.6).to_vec();
    let (x, y) = b.split_at(4);
    for j in 0..4 {
        let want = (2.6 * j as f64 / 3.0).exp();
        assert!((x[j].hypot(y[j]) - want).abs() < 1e-5, "{b:?}");
    }
    let turn = y[1].atan2(x[1]) - y[0].atan2(x[0]);
    assert!((turn - 2.399_963_229_728_653).abs() < 1e-6);
    assert_eq!(**normal_frequencies(784, 5, 1.0, &Key::new(0)).shape(), [784, 5]);
}

#[test]
fn a_fixed_leaf_says_so_in_its_path() {
    let net = FourierMlp::new(golden_frequencies(3, 1.5), [5], &Key::new(2));
    let fixed: Vec<String> = net.named_leaves().into_iter().map(|(p, _)| p).filter(|p| is_fixed(p)).collect();
    assert_eq!(fixed, ["frequencies.fixed"]);
}

#[test]
fn dropout_keeps_the_mean() {
    let x = dropout(&Tensor::ones([100, 100]), 0.25, &Key::new(9)).to_vec();
    let kept = x.iter().filter(|x| **x != 0.0).count();
    assert!(x.iter().all(|x| *x == 0.0 || (x - 4.0 / 3.0).abs() < 1e-6));
    assert!((7_350..7_650).contains(&kept), "{kept} of 10,000 kept at a rate of 0.25");
}

#[test]
#[should_panic(expected = "t must be one number or of shape [2,1], got [2]")]
fn a_time_of_another_shape_is_refused() {
    let net = ConcatSquash::new(2, [3], &Key::new(1));
    let _ = net.eval(&Tensor::from([0.1, 0.2]), &Tensor::zeros([2, 2]));
}
