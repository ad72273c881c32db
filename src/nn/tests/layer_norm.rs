//! Layer normalization.

use super::*;

#[test]
fn normalized_rows_have_mean_zero_and_variance_one() {
    // At a mean of 1e6 the variance must not be lost to cancellation.
    for mean in [0.0, -3.0, 1e6] {
        let x = draws([6, 5, 40], 1) * 2.5 + mean;
        let y = double(&LayerNorm::new(40)).forward(&x).to_vec();
        for row in y.chunks(40) {
            let m = row.iter().sum::<f64>() / 40.0;
            let variance = row.iter().map(|x| (x - m).powi(2)).sum::<f64>() / 40.0;
            assert!(m.abs() < 1e-9 && (variance - 1.0).abs() < 1e-5, "{m} {variance} at {mean}");
        }
    }
}

#[test]
fn a_layer_norm_is_its_formula() {
    let norm =
        LayerNorm { gain: Tensor::from([2.0, 3.0, 0.5]), bias: Tensor::from([0.1, 0.0, -1.0]), eps: 0.25 };
    // mean 2, variance 2/3
    let root = (2.0f64 / 3.0 + 0.25).sqrt();
    close(&norm.forward(&Tensor::from([1.0, 2.0, 3.0])), &[-2.0 / root + 0.1, 0.0, 0.5 / root - 1.0]);
}

#[test]
fn gradients_of_a_layer_norm_are_those_of_differences() {
    let norm = LayerNorm { gain: draws([5], 2), bias: draws([5], 3), eps: 1e-5 };
    assert_gradients(&norm, &draws([3, 5], 4), LayerNorm::forward);
}

#[test]
#[should_panic(expected = "a layer norm of size 4 needs a last axis of length 4, got shape [2,3]")]
fn rows_of_another_length_are_refused() {
    LayerNorm::new(4).forward(&Tensor::zeros([2, 3]));
}
