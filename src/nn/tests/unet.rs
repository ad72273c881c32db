//! The U-Net: its parts against their formulas, its derivatives against finite differences.

use super::*;
use crate::cnf::{Cnf, Divergence, ProbeDistribution, StepControl};

/// A field of two levels in f64, with random numbers added to all weights, because some start at zero.
fn drawn(image: [usize; 3], seed: u64) -> UNet {
    let config = UNetConfig { time_dim: 6, ..UNetConfig::new(image, [3, 4]) };
    let net = UNet::new(&config, &Key::new(seed));
    let key = Key::new(seed + 1);
    let mut i = 0u32;
    net.map_leaves(|x| {
        i += 1;
        let draw = key.fold_in(i).normal(x.shape().clone()) * 0.3;
        (x + draw).cast(DType::F64)
    })
}

#[test]
fn a_field_of_images_starts_at_zero_in_the_shape_of_its_rows() {
    let config = UNetConfig::new([6, 5, 2], [4, 6, 8]);
    let net = UNet::new(&config, &Key::new(1));
    let y = Key::new(2).normal([3, 60]);
    for t in [Tensor::from(0.3), Tensor::from([[0.1], [0.2], [0.9]])] {
        let velocity = net.eval(&t, &y);
        assert_eq!((**velocity.shape()).to_vec(), [3, 60]);
        assert_eq!(velocity.to_vec(), [0.0; 180]);
    }
    assert_eq!((net.dim(), net.config()), (60, config));
    assert_eq!(**net.position.shape(), [4, 4, 4], "8 x 8 pixels in squares of 2 x 2");
}

#[test]
fn rows_with_their_own_times_get_what_each_gets_alone() {
    let net = drawn([5, 4, 1], 3);
    let (y, t) = (draws([3, 20], 4), [0.0, 0.4, 0.9]);
    let together = net.eval(&Tensor::from([[t[0]], [t[1]], [t[2]]]), &y).to_vec();
    for (i, t) in t.into_iter().enumerate() {
        let alone = net.eval(&Tensor::from(t), &y.slice(0, i..i + 1));
        close(&alone, &together[20 * i..20 * (i + 1)]);
        let others = net.eval(&Tensor::from(t + 0.1), &y.slice(0, i..i + 1)).to_vec();
        assert!((others[0] - alone.to_vec()[0]).abs() > 1e-4, "time must change the velocity");
    }
}

#[test]
fn a_block_is_its_formula() {
    let net = drawn([4, 4, 1], 5);
    let (block, x, time) = (&net.middle[0], draws([2, 2, 2, 4], 6), draws([2, 6], 7));
    let film = block.film.forward(&time).to_vec();
    let hidden = block.conv1.forward(&x.silu()).to_vec();
    let scaled: Vec<f64> = (0..hidden.len())
        .map(|i| {
            let (row, channel) = (i / 16, i % 4);
            hidden[i] * (1.0 + film[row * 8 + channel]) + film[row * 8 + 4 + channel]
        })
        .map(|x| x / (1.0 + (-x).exp()))
        .collect();
    let second = block.conv2.forward(&Tensor::from(scaled).reshape([2, 2, 2, 4]));
    close(&block.forward(&time, &x), &(x + second).to_vec());
}

#[test]
fn squares_of_pixels_are_the_channels_of_a_place_and_come_back() {
    // The stem and the head copy all channels of a position, so the velocity is silu(y).
    let mut net =
        UNet::new(&UNetConfig { blocks_middle: 0, ..UNetConfig::new([4, 6, 1], [4]) }, &Key::new(8));
    let tap = |x: &Tensor| {
        let eye: [[f32; 4]; 4] = std::array::from_fn(|i| std::array::from_fn(|j| f32::from(i == j)));
        let center = Tensor::from(eye).reshape([1, 1, 4, 4]).pad(&[1, 1, 0, 0], &[1, 1, 0, 0]);
        assert_eq!(center.shape(), x.shape());
        center
    };
    net.stem.weight = tap(&net.stem.weight);
    net.head.weight = tap(&net.head.weight);
    net.stem.bias = None;
    let y = draws([2, 24], 9).cast(DType::F32);
    let (velocity, want) = (net.eval(&Tensor::from(0.5), &y).to_vec(), y.silu().to_vec());
    assert!(velocity.iter().zip(&want).all(|(v, w)| (v - w).abs() < 1e-6), "{velocity:?} {want:?}");
}

#[test]
fn gradients_of_a_padded_image_match_finite_differences() {
    let net = drawn([5, 3, 2], 10);
    let t = Tensor::from([[0.2], [0.7]]);
    assert_gradients(&net, &draws([2, 30], 11), |net, y| net.eval(&t, y));
}

#[test]
fn averaged_estimates_of_the_divergence_agree_with_the_exact_one() {
    // 400 rows with the same image, each with one probe.
    const ROWS: usize = 400;
    let net = drawn([4, 4, 1], 12);
    let x = draws([1, 16], 13);
    let log_prob = |divergence: Divergence, rows: usize| {
        let mut flow = Cnf::from_blocks(vec![net.clone()]);
        flow.settings.divergence = divergence;
        flow.settings.step_control = StepControl::Fixed { steps: 4 };
        flow.log_prob_estimate(&x.broadcast_to([rows, 16]), &Key::new(14)).unwrap().to_vec()
    };
    let exact = log_prob(Divergence::Exact, 1)[0];
    let estimates = log_prob(Divergence::hutchinson(ProbeDistribution::Rademacher), ROWS);
    let mean = estimates.iter().sum::<f64>() / ROWS as f64;
    let variance = estimates.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (ROWS - 1) as f64;
    let error = (variance / ROWS as f64).sqrt();
    assert!((mean - exact).abs() < 4.0 * error, "mean {mean}, exact {exact}, standard error {error}");
    assert!(error > 0.0 && error < 0.01 * exact.abs(), "standard error {error}, exact {exact}");
}

#[test]
#[should_panic(expected = "rows must have 16 pixels, got 15")]
fn a_row_of_another_length_is_refused() {
    let net = UNet::new(&UNetConfig::new([4, 4, 1], [2]), &Key::new(0));
    let _ = net.eval(&Tensor::from(0.0), &Tensor::zeros([1, 15]));
}
