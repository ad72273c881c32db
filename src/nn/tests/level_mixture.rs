//! The level mixture against the posterior mean by quadrature, and for a network that returns 0.

use super::*;
use crate::cnf::Cnf;

/// Two pixels with ranges that end at -1 and 0.5, and at 0 and 2; the network returns `output` at each pixel.
fn field(output: [f64; 3]) -> LevelMixture {
    let config = UNetConfig { patch: 1, ..UNetConfig::new([2, 1, 3], [4]) };
    let mut net = UNet::new(&config, &Key::new(1)).cast_floats(DType::F64);
    net.head.bias = Some(Tensor::from(output.to_vec()));
    LevelMixture::new(&Tensor::from([[-1.0, 0.0], [0.5, 2.0]]), net)
}

/// The mean of `x1 - x0` given `(1 - t) x0 + t x1 = x`, by a sum over x1: x0 is normal, x1 is normal times a
/// weight per range.
fn velocity(x: f64, t: f64, ends: [f64; 2], weights: [f64; 3]) -> f64 {
    let phi = |z: f64| (-0.5 * z * z).exp();
    let (mut mass, mut mean) = (0.0, 0.0);
    let n = 40_000;
    for i in 0..=n {
        let x1 = -8.0 + 16.0 * f64::from(i) / f64::from(n);
        let x0 = (x - t * x1) / (1.0 - t);
        let range = usize::from(x1 > ends[0]) + usize::from(x1 > ends[1]);
        let p = phi(x0) * phi(x1) * weights[range];
        (mass, mean) = (mass + p, mean + p * (x1 - x0));
    }
    mean / mass
}

#[test]
fn the_velocity_is_the_mean_over_normal_pixels_whose_ranges_are_weighed() {
    let output = [1.5, -0.7, 0.4];
    let weights = output.map(|o: f64| (8.0 * (o / 8.0).tanh()).exp());
    let net = field(output);
    for t in [0.05, 0.4, 0.8] {
        for x in [[-1.3, 0.2], [0.6, 1.1]] {
            let found = net.eval(&Tensor::from(t), &Tensor::from([x])).to_vec();
            let want = [velocity(x[0], t, [-1.0, 0.5], weights), velocity(x[1], t, [0.0, 2.0], weights)];
            for (found, want) in found.iter().zip(want) {
                // The quadrature error comes from the range ends, where the weight changes inside a cell of 4e-4.
                assert!((found - want).abs() < 1e-3, "t={t} x={x:?}: {found} {want}");
            }
        }
    }
}

/// The mean of `x1 - x0` of one pixel, by a sum over x1. Without weights, x1 given x is normal with standard deviation
/// s as in the formula; the sum covers 12 standard deviations on each side.
fn velocity_of_sure_levels(x: f64, t: f64, ends: [f64; 2], weights: [f64; 3]) -> f64 {
    let left = 1.0 - t;
    let r2 = left * left + t * t;
    let (mean, s) = (x * t / r2, (left / r2.sqrt()).max(0.05));
    let n = 200_000;
    let (mut mass, mut moment) = (0.0, 0.0);
    // One sum per range, so that no cell contains a range end.
    let edges = [mean - 12.0 * s, ends[0], ends[1], mean + 12.0 * s];
    for (k, w) in weights.into_iter().enumerate() {
        let (from, to) = (edges[k].clamp(edges[0], edges[3]), edges[k + 1].clamp(edges[0], edges[3]));
        let cell = (to - from) / f64::from(n);
        for i in 0..n {
            let a = (from + (f64::from(i) + 0.5) * cell - mean) / s;
            let p = w * (-0.5 * a * a).exp() * cell;
            (mass, moment) = (mass + p, moment + p * a);
        }
    }
    (2.0 * t - 1.0) / r2 * x + moment / mass / r2.sqrt()
}

#[test]
fn weights_as_sure_as_they_get_keep_single_precision_right_up_to_the_end() {
    // tanh saturates: the weights are e^8 and e^-8.
    for output in [[1.0, -1.0, 1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0], [1.0, 1.0, -1.0]] {
        let output = output.map(|sign: f64| 1e3 * sign);
        let weights = output.map(|o| (8.0 * o.signum()).exp());
        let double = field(output);
        let single = double.cast_floats(DType::F32);
        for t in [0.0, 0.05, 0.4, 0.8, 0.95, 0.99, 1.0] {
            for x in [-3.0, -1.3, -0.6, -0.2, 0.0, 0.2, 0.45, 0.9, 2.5] {
                let x = f64::from(x as f32);
                let eval = |net: &LevelMixture, dtype: DType| {
                    net.eval(&Tensor::from(t), &Tensor::from([[x, x]]).cast(dtype)).to_vec()
                };
                let (found, of_f64) = (eval(&single, DType::F32), eval(&double, DType::F64));
                let ends = [[-1.0, 0.5], [0.0, 2.0]];
                for ((found, of_f64), ends) in found.into_iter().zip(of_f64).zip(ends) {
                    let want = velocity_of_sure_levels(x, t, ends, weights);
                    let what = format!("output {output:?} t={t} x={x} ends {ends:?}");
                    assert!((of_f64 - want).abs() < 1e-6 * want.abs().max(1.0), "{what}: {of_f64} {want}");
                    assert!((found - want).abs() < 1e-3 * want.abs().max(1.0), "{what}: {found} {want}");
                }
            }
        }
    }
}

#[test]
fn a_network_that_says_nothing_leaves_independent_pixels_as_they_are() {
    let flow = Cnf::new(field([0.0; 3])).rtol(1e-9).atol(1e-9);
    let x = draws([5, 2], 3);
    let (found, base) = (flow.log_prob(&x).unwrap(), flow.base.log_prob(&x));
    assert!((found - base).abs().max().item() < 1e-8);
    assert!((flow.push_forward(&x).unwrap() - &x).abs().max().item() < 1e-7);
}

#[test]
fn rows_of_classes_and_of_times_get_what_each_gets_alone() {
    let config = UNetConfig { patch: 1, num_classes: 3, ..UNetConfig::new([2, 2, 2], [4]) };
    let mut i = 0u32;
    let net = UNet::new(&config, &Key::new(2)).map_leaves(|x| {
        i += 1;
        (x + Key::new(5).fold_in(i).normal(x.shape().clone()) * 0.3).cast(DType::F64)
    });
    let net = LevelMixture::new(&Tensor::from([[0.1, -0.2, 0.5, 1.0]]), net);
    let (y, t) = (draws([3, 4], 4), [0.1, 0.5, 0.9]);
    let labels = Tensor::from([[0.0], [2.0], [1.0]]);
    let together = net.eval_conditional(&Tensor::from([[0.1], [0.5], [0.9]]), &y, Some(&labels)).to_vec();
    for (i, t) in t.into_iter().enumerate() {
        let row = |x: &Tensor| x.slice(0, i..i + 1);
        let alone = net.eval_conditional(&Tensor::from(t), &row(&y), Some(&row(&labels)));
        close(&alone, &together[4 * i..4 * (i + 1)]);
        let other =
            net.eval_conditional(&Tensor::from(t), &row(&y), Some(&Tensor::from([[[1.0, 0.0, 2.0][i]]])));
        assert!((other - alone).abs().max().item() > 1e-8, "the class must change the velocity");
    }
    assert_eq!((net.dim(), net.num_classes()), (4, 3));
}
