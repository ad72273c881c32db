//! Time-dependent affine layers against their formulas.

use super::*;
use crate::cnf::{Cnf, Divergence};
use crate::ode::Method;

fn column(t: f64) -> Tensor {
    Tensor::from([[t]])
}

#[test]
fn layers_of_time_are_their_formulas() {
    let (y, t) = ([0.3, -1.2], 0.4);
    let row = Tensor::from([y]);
    let concat: ConcatLinear = double(&TimeLayer::new(2, 3, &Key::new(1)));
    close(&concat.forward(&column(t), &row), &affine(&concat.linear, &[y[0], y[1], t]));
    let squash: SquashLinear = double(&TimeLayer::new(2, 3, &Key::new(2)));
    let gate = affine(&squash.gate, &[t]);
    let want: Vec<f64> =
        affine(&squash.linear, &y).iter().zip(gate).map(|(a, g)| a / (1.0 + (-g).exp())).collect();
    close(&squash.forward(&column(t), &row), &want);
    let blend: BlendLinear = double(&TimeLayer::new(2, 3, &Key::new(3)));
    let (zero, one) = (affine(&blend.at_zero, &y), affine(&blend.at_one, &y));
    let want: Vec<f64> = zero.iter().zip(&one).map(|(a, b)| 0.6 * a + 0.4 * b).collect();
    close(&blend.forward(&column(t), &row), &want);
    close(&blend.forward(&column(1.0), &row), &one);
    assert_eq!((concat.inputs(), squash.inputs(), blend.inputs()), (2, 2, 2));
}

/// Checks of every time-dependent network: each row uses its own time, and gradients match finite
/// differences.
fn check<L: TimeLayer>() {
    let net: TimeMlp<L> = double(&TimeMlp::new(2, [5, 4], &Key::new(4)).activation(Activation::Softplus));
    let y = draws([3, 2], 5);
    let at = |t: f64, row: usize| net.eval(&Tensor::from(t), &y.slice(0, row..row + 1)).to_vec();
    let (times, all) = ([0.1, 0.5, 0.9], Tensor::from([[0.1], [0.5], [0.9]]));
    let rows: Vec<f64> = (0..3).flat_map(|i| at(times[i], i)).collect();
    close(&net.eval(&all, &y), &rows);
    assert_ne!(at(0.1, 0), at(0.9, 0));
    assert_eq!(net.dim(), 2);
    assert_gradients(&net, &y, |net, y| net.eval(&Tensor::from(0.3), y));
}

#[test]
fn every_network_of_time_is_a_field_of_rows_with_right_gradients() {
    check::<ConcatLinear>();
    check::<SquashLinear>();
    check::<BlendLinear>();
    check::<ConcatSquashLinear>();
}

#[test]
fn concat_squash_keeps_the_names_of_its_weights() {
    let named = ConcatSquash::new(2, [8], &Key::new(6)).named_leaves();
    let names: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
    let parts = ["linear.weight", "linear.bias", "gate.weight", "gate.bias", "shift.weight"];
    let want: Vec<String> = (0..2).flat_map(|i| parts.map(|part| format!("layers.{i}.{part}"))).collect();
    assert_eq!(names, want);
}

#[test]
fn a_flow_of_blended_layers_has_a_density_that_differentiates() {
    let net = double(&BlendMlp::new(2, [6], &Key::new(7)));
    let x = draws([3, 2], 8);
    let loss = |net: &BlendMlp| {
        let flow = Cnf::new(net.clone()).divergence(Divergence::Exact);
        flow.method(Method::Rk4).fixed_steps(4).log_prob(&x).unwrap().sum()
    };
    let (value, grads) = value_and_grad(loss, &net);
    assert!(value.item() < -3.0 * (2.0 * PI).ln() / 2.0 && value.item() > -30.0, "{value}");
    assert!(grads.leaves().iter().all(|g| g.to_vec().iter().all(|x| x.is_finite())));
    let along: f64 = grads.leaves().iter().map(|g| g.sum().item()).sum();
    let moved = |h: f64| loss(&net.map_leaves(|x| x + h)).item();
    let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
    assert!((along - difference).abs() < 1e-6 * difference.abs().max(1.0), "{along} {difference}");
}
