//! Densities and samples against closed forms and against each other, and with classes.

use super::*;
use crate::nn::{Activation, Mlp};
use crate::tensor::value_and_grad;

#[test]
fn a_logistic_flow_has_its_density() {
    let (z, x) = (Tensor::from([[0.2]]), Tensor::from([[0.4046096751916897]]));
    let flow = logistic();
    assert!(largest(&(flow.push_forward(&z).unwrap() - &x)) < 1e-9);
    let change = flow.log_prob(&x).unwrap() - flow.base.log_prob(&z);
    assert!((change.item() + 0.4092109417593047).abs() < 1e-8, "{}", change.item());
}

#[test]
fn a_linear_flow_has_its_density() {
    let (z, x) = (Tensor::from([[0.5, -1.25]]), Tensor::from([[1.8876563142352462, -0.2865899503348209]]));
    let flow = dense();
    assert!(largest(&(flow.push_forward(&z).unwrap() - &x)) < 1e-9);
    assert!((flow.log_prob(&x).unwrap().item() + 2.9441270664093455).abs() < 1e-8);
    assert!((flow.base.log_prob(&z).item() + 2.7441270664093455).abs() < 1e-12);
}

#[test]
fn probes_know_a_diagonal_and_are_right_on_average() {
    let x = points(12);
    for probe in [ProbeDistribution::Rademacher, ProbeDistribution::Gaussian] {
        let estimated = |flow: Cnf<Linear>, k| {
            let flow = flow.divergence(Divergence::Hutchinson { probe, num_probes: k });
            flow.log_prob_estimate(&x, &key()).unwrap()
        };
        let exact = |flow: Cnf<Linear>| flow.log_prob(&x).unwrap();
        let diagonal = || linear([[0.3, 0.0], [0.0, -0.8]]).fixed_steps(8);
        let off = largest(&(estimated(diagonal(), 1) - exact(diagonal())));
        assert_eq!(off < 1e-12, probe == ProbeDistribution::Rademacher, "{probe:?} {off}");
        // A probe's e^T A e has a standard deviation of 0.5 (Rademacher) or 0.67 (Gaussian); there are 12 x
        // 400 probes.
        let mean = (estimated(dense().fixed_steps(4), 400) - exact(dense().fixed_steps(4))).mean().item();
        assert!(mean.abs() < 4.0 * 0.7 / 4_800.0_f64.sqrt(), "{probe:?} {mean}");
    }
}

#[test]
fn a_log_prob_is_exact_whatever_the_flow_estimates_with() {
    let estimating = dense().divergence(Divergence::hutchinson(ProbeDistribution::Gaussian));
    let (exact, x) = (dense().log_prob(&points(5)).unwrap().to_vec(), points(5));
    assert_eq!(estimating.log_prob(&x).unwrap().to_vec(), exact);
    assert_ne!(estimating.log_prob_estimate(&x, &key()).unwrap().to_vec(), exact);
    assert_eq!(dense().log_prob_estimate(&x, &key()).unwrap().to_vec(), exact);
}

#[test]
fn a_density_follows_the_probes_that_it_is_given() {
    let flow = dense().divergence(Divergence::hutchinson(ProbeDistribution::Gaussian));
    let x = Tensor::from([[0.5, -0.3], [0.5, -0.3]]);
    let probes = Tensor::from([[1.0, 2.0], [0.0, 1.0]]);
    let along = flow.log_prob_with_probes(&x, &[probes]).unwrap();
    // The estimates e^T A e are -1.1 and -0.1, the trace is 0.2, over one unit of time.
    let exact = dense().log_prob(&x).unwrap();
    assert!(largest(&(along - exact - Tensor::from([1.3, 0.3]))) < 1e-8);
}

#[test]
#[should_panic(expected = "a flow of 1 blocks needs one tensor of probes [2, 2] per block, got [f64[1,2]]")]
fn probes_are_one_a_row() {
    let flow = dense().divergence(Divergence::hutchinson(ProbeDistribution::Gaussian));
    let _ =
        flow.log_prob_with_probes(&Tensor::from([[0.5, -0.3], [0.5, -0.3]]), &[Tensor::from([[1.0, 2.0]])]);
}

#[test]
fn samples_have_the_density_that_is_evaluated() {
    let flow = small().rtol(1e-9).atol(1e-9);
    let (x, log_prob) = flow.sample_with_log_prob(10, &key()).unwrap();
    assert!(largest(&(flow.log_prob(&x).unwrap() - log_prob)) < 1e-6);
    let [base, _] = key().split();
    assert!(largest(&(flow.sample(10, &base).unwrap() - x)) < 1e-6);
}

#[test]
fn a_density_has_total_probability_one() {
    let flow = small();
    let side = 60;
    let grid =
        (0..side * side).flat_map(|i| [i % side, i / side].map(|k| -7.0 + 14.0 * (k as f64 + 0.5) / 60.0));
    let x = Tensor::from_vec([side * side, 2], grid.collect::<Vec<f64>>());
    let total = flow.rows_per_tile(900).log_prob(&x).unwrap().exp().sum().item() * (14.0_f64 / 60.0).powi(2);
    assert!((total - 1.0).abs() < 1e-3, "{total}");
}

#[test]
fn rows_of_classes_have_densities_that_each_has_alone() {
    let field = Mlp::new([2 + 1 + 3, 8, 2], Activation::Tanh, &Key::new(4));
    let flow = Cnf::new(field).rtol(1e-6).atol(1e-8).rows_per_tile(2);
    let x = Key::new(5).normal([5, 2]);
    let classes = [2.0, 0.0, 1.0, 1.0, 2.0];
    let labels = Tensor::from(classes.map(|k| [k]));
    let together = flow.condition_on_classes(&labels).log_prob(&x).unwrap().to_vec();
    let (drawn, log_prob) = flow.condition_on_classes(&labels).sample_with_log_prob(5, &Key::new(6)).unwrap();
    let again = flow.condition_on_classes(&labels).log_prob(&drawn).unwrap();
    assert!((log_prob - again).abs().max().item() < 1e-4);
    for (i, k) in classes.into_iter().enumerate() {
        let alone = |k: f64| {
            let flow = flow.condition_on_classes(&Tensor::from([[k]]));
            flow.log_prob(&x.slice(0, i..i + 1)).unwrap().item()
        };
        assert!((alone(k) - together[i]).abs() < 1e-4, "{i}");
        assert!((alone((k + 1.0) % 3.0) - together[i]).abs() > 1e-3, "{i}: the class has no effect");
    }
    // The gradient of one class's labels reaches only that class's weights.
    let loss = |flow: &Cnf<Mlp>| {
        let flow = flow.condition_on_classes(&Tensor::from([[1.0], [1.0]]));
        flow.nll_loss(&x.slice(0, 0..2), &Key::new(0))
    };
    let (_, grads) = value_and_grad(|flow: &Cnf<Mlp>| loss(flow).map(|loss| (loss, ())), &flow)
        .map(|((l, ()), g)| (l, g))
        .unwrap();
    let of_input = |row: usize| {
        let weight = &grads.blocks[0].layers[0].weight;
        weight.slice(0, row..row + 1).abs().max().item()
    };
    assert!(of_input(4) > 0.0 && of_input(3) == 0.0 && of_input(5) == 0.0);
}
