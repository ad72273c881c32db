//! Samples in a few steps: their error against maps that are known, and against adaptive samples.

use super::*;
use crate::nn::{FourierMlp, Preconditioned, normal_frequencies};

tree! {
    /// G of a normal density with independent coordinates, from its mean and variance `[1, dim]`. In the angle,
    /// `y = sin m + sqrt(cos^2 + variance sin^2) z`.
    struct NormalGain { mean: Tensor, variance: Tensor }
}

impl VelocityField for NormalGain {
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor {
        let left = 1.0 - t;
        let r = (left.square() + t.square()).sqrt();
        let (sin, cos) = (t / &r, left / &r);
        let variance = cos.square() + sin.square() * &self.variance;
        let rate = &sin * &cos * (&self.variance - 1.0) / variance;
        &cos * &self.mean + rate * (y - sin * &self.mean)
    }
    fn dim(&self) -> usize {
        self.mean.size()
    }
}

/// Flows to 12 normal densities with means from -1 to 1 and standard deviations from 0.02 to 2, 1 to 3 coordinates.
fn normals() -> Vec<(Cnf<Preconditioned<NormalGain>>, Tensor, Tensor)> {
    let draw = |i: u32| {
        let ([mean, std], dim) = (Key::new(21).fold_in(i).split(), 1 + i as usize % 3);
        let mean = (mean.uniform([1, dim]) * 2.0 - 1.0).cast(DType::F64);
        let std = (std.uniform([1, dim]).cast(DType::F64) * 100.0_f64.ln()).exp() * 0.02;
        let gain = NormalGain { mean: mean.clone(), variance: std.square() };
        (Cnf::new(Preconditioned::new(gain)), mean, std)
    };
    (0..12).map(draw).collect()
}

#[test]
fn the_error_falls_with_the_square_of_the_number_of_steps() {
    for (flow, mean, std) in normals() {
        let z = Key::new(3).normal([16, flow.base.dim]).cast(DType::F64);
        let exact = &mean + &std * &z;
        let off = |steps| largest(&(flow.push_forward_in_steps(&z, steps).unwrap() - &exact));
        let found: Vec<f64> = [1, 2, 4, 8, 16, 32, 64, 128].map(off).into();
        assert!(found.iter().all(|x| x.is_finite()) && found[3] < 0.5, "{found:?}");
        for pair in found.windows(2).skip(5) {
            let order = (pair[0] / pair[1]).log2();
            assert!(
                (1.7..2.3).contains(&order) || pair[1] < 1e-7,
                "order {order}: {found:?} {:?}",
                std.to_vec()
            );
        }
        // The adaptive solve maps the same points to the same samples.
        let adaptive = flow.clone().rtol(1e-8).atol(1e-8).sample(16, &Key::new(3)).unwrap();
        assert!(
            largest(&(adaptive - flow.sample_in_steps(16, 128, &Key::new(3)).unwrap()))
                < 2.0 * found[7] + 1e-6
        );
    }
}

#[test]
fn standard_normal_data_need_one_step_and_no_field_needs_none() {
    let still = NormalGain { mean: Tensor::from([[0.0, 0.0]]), variance: Tensor::from([[1.0, 1.0]]) };
    let (flow, z) = (Cnf::new(Preconditioned::new(still)), points(9));
    assert!(largest(&(flow.push_forward_in_steps(&z, 1).unwrap() - &z)) < 1e-12);
    // Other fields, several blocks and integration times: equal steps of t.
    let (flow, z) = (small(), points(11));
    let steps = flow.clone().method(crate::ode::Method::Midpoint).fixed_steps(5).push_forward(&z).unwrap();
    assert_eq!(flow.push_forward_in_steps(&z, 5).unwrap().to_vec(), steps.to_vec());
    let net = FourierMlp::new(normal_frequencies(2, 6, 1.0, &key()), [8], &key());
    let flow = double(&Cnf::from_blocks(vec![Preconditioned::new(net.clone()), Preconditioned::new(net)]));
    for t1 in [1.0, 0.7] {
        let flow = flow.clone().t1(t1).rtol(1e-9).atol(1e-9);
        let exact = flow.push_forward(&z).unwrap();
        let [few, many] = [8, 64].map(|n| largest(&(flow.push_forward_in_steps(&z, n).unwrap() - &exact)));
        assert!(many < few / 10.0 && many < 1e-2, "{t1}: {few} {many}");
    }
}

#[test]
#[should_panic(expected = "steps is 0, but a sample needs at least one step")]
fn no_steps_are_refused() {
    let _ = small().sample_in_steps(3, 0, &key());
}
