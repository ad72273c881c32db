//! Preconditioned fields and damped features against their formulas.

use super::*;
use crate::nn::Preconditioned;

/// A damped feature is the mean over noise of the feature at the noisy point, by quadrature.
#[test]
fn a_damped_feature_is_its_mean_over_the_noise() {
    let frequencies = Tensor::from([[1.5, 0.4], [-0.7, 2.0]]);
    let mut net = double(&FourierMlp::new(frequencies.cast(DType::F32), [], &Key::new(1)));
    // The inputs are y, two sines, two cosines and eight features of t: the output is the two sines.
    let inputs = net.mlp.layers[0].inputs();
    let weight: Vec<f64> =
        (0..2 * inputs).map(|i| f64::from(u8::from(i == 2 * 2 || i == 3 * 2 + 1))).collect();
    net.mlp.layers[0].weight = Tensor::from_vec([inputs, 2], weight);
    net.mlp.layers[0].bias = net.mlp.layers[0].bias.clone().map(|bias| Tensor::zeros(bias.shape().clone()));
    let damped = net.clone().damping(1.0);
    let x1 = [0.3, -1.1];
    for t in [0.05, 0.5, 0.9, 1.0] {
        let r = f64::hypot(t, 1.0 - t);
        let frequency = |j: usize, y: [f64; 2]| {
            let f = net.frequencies.get().to_vec();
            y[0] * f[j] + y[1] * f[2 + j]
        };
        let y = x1.map(|x| x * t / r);
        let found = damped.eval(&Tensor::from(t), &Tensor::from([y])).to_vec();
        for (j, found) in found.into_iter().enumerate() {
            let (mut sum, mut whole) = (0.0, 0.0);
            for i in 0..161 * 161 {
                let z = [i % 161, i / 161].map(|i| (i as f64 - 80.0) / 10.0);
                let weight = (-0.5 * (z[0] * z[0] + z[1] * z[1])).exp();
                let noisy = [0, 1].map(|axis| y[axis] + z[axis] * (1.0 - t) / r);
                sum += weight * frequency(j, noisy).sin();
                whole += weight;
            }
            assert!((found - sum / whole).abs() < 1e-8, "t={t} {j}: {found} {}", sum / whole);
        }
    }
}

#[test]
fn one_time_for_all_rows_is_as_good_as_one_per_row() {
    let net = FourierMlp::new(golden_frequencies(5, 2.0), [7], &Key::new(2)).damping(0.7);
    let field = double(&Preconditioned::new(net));
    let y = Key::new(3).normal([4, 2]).cast(DType::F64);
    let [one, each] = [Tensor::from(0.3), Tensor::full(DType::F64, [4, 1], 0.3)];
    close(&field.eval(&one, &y), &field.eval(&each, &y).to_vec());
    let scaled = &y * (1.0 / f64::hypot(0.3, 0.7));
    let expected = &y * (-0.4 / 0.58) + field.field.eval(&one, &scaled) * (1.0 / f64::hypot(0.3, 0.7));
    close(&field.eval(&one, &y), &expected.to_vec());
}
