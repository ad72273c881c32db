//! Objectives: gradients against finite differences, formulas, path regularization, and learning with each.

use super::*;
use crate::adjoint::Adjoint;
use crate::error::Result;
use crate::nn::{Activation, FourierMlp, Mlp, golden_frequencies};
use crate::ode::Method;
use crate::optim::{AdamW, Ema, OptState, Schedule, chain, clip_by_global_norm};
use crate::tensor::{jit, value_and_grad};

/// The derivative of a loss along a fixed direction: by gradient and by central differences.
fn derivatives<M: Tree>(at: &M, loss: impl Fn(&M) -> Result<Tensor>) -> (f64, f64) {
    let directions: Vec<Tensor> = (0u32..)
        .zip(at.leaves())
        .map(|(i, x)| Key::new(77).fold_in(i).normal(x.shape().clone()).cast(x.dtype()))
        .collect();
    let moved = |h: f64| at.with_leaves(at.leaves().iter().zip(&directions).map(|(x, d)| x + d * h));
    let (_, grads) = value_and_grad(&loss, at).unwrap();
    let along = grads.leaves().iter().zip(&directions).map(|(g, d)| (g * d).sum().item()).sum();
    let h = 1e-5;
    let value = |h: f64| loss(&moved(h)).unwrap().item();
    (along, (value(h) - value(-h)) / (2.0 * h))
}

fn assert_derivatives((along, difference): (f64, f64), what: &str) {
    assert!((along - difference).abs() < 1e-6 * difference.abs().max(0.1), "{what}: {along} {difference}");
}

#[test]
fn gradients_of_the_likelihood_are_those_of_differences() {
    let x = points(6);
    let weights = Tensor::from([1.0, 0.5, 2.0, 0.0, 1.0, 0.3]);
    let adjoints = [Adjoint::Direct, Adjoint::recursive_checkpoint(2)];
    for divergence in [Divergence::Exact, Divergence::hutchinson(ProbeDistribution::Gaussian)] {
        for adjoint in adjoints {
            let flow = small().divergence(divergence).adjoint(adjoint).method(Method::Rk4);
            let loss = |flow: &Cnf<ConcatSquash>| Ok(flow.nll_loss_with_stats(&x, Some(&weights), &key())?.0);
            assert_derivatives(derivatives(&flow, loss), &format!("{divergence:?} {adjoint:?}"));
        }
    }
}

#[test]
fn gradients_of_flow_matching_are_those_of_differences() {
    let net = double(&FourierMlp::new(golden_frequencies(3, 1.0), [6, 6], &Key::new(3)));
    let x = points(40);
    let loss = |net: &FourierMlp| Cnf::new(net.clone()).flow_matching_loss(&x, &key());
    // The fixed frequencies have no gradient: only the MLP is perturbed.
    let of_mlp = |mlp: &Mlp| loss(&FourierMlp { mlp: mlp.clone(), ..net.clone() });
    assert_derivatives(derivatives(&net.mlp, of_mlp), "flow matching");
    let (_, grads) = value_and_grad(loss, &net).unwrap();
    assert_eq!(largest(&grads.frequencies.get()), 0.0);
}

/// x0, x1 - x0 and the time of each row on its line, as `flow_matching_loss` samples them from a key.
fn lines(x1: &Tensor) -> (Tensor, Tensor, Tensor) {
    let (n, [noise, time]) = (x1.shape()[0], key().split());
    let (x0, u) = (noise.normal([n, 2]).cast(DType::F64), time.uniform([1]).item());
    let s: Vec<f64> = (0..n).map(|i| (u + i as f64 / n as f64) % 1.0).collect();
    (x0.clone(), x1 - x0, Tensor::from_vec([n, 1], s))
}

#[test]
fn flow_matching_is_its_formula() {
    let x1 = points(40);
    let net = double(&ConcatSquash::new(2, [5], &Key::new(8)));
    let (x0, line, s) = lines(&x1);
    let velocity = net.eval(&s, &(&x0 + &line * &s));
    let want = (velocity - line).square().sum_last().mean().item();
    let got = Cnf::new(net).flow_matching_loss(&x1, &key()).unwrap().item();
    assert!((got - want).abs() < 1e-6 * want, "{got} {want}");
}

#[test]
fn flow_matching_asks_each_block_for_its_part_of_the_line_in_its_own_time() {
    let (n, x1, t1) = (40, points(40), 0.5);
    let classes = Key::new(4).uniform([n, 1]).ge(0.5).cast(DType::F64);
    let blocks: Vec<Mlp> =
        [1, 2].map(|seed| double(&Mlp::new([2 + 1 + 2, 6, 2], Activation::Tanh, &Key::new(seed)))).into();
    let (x0, line, s) = lines(&x1);
    let mut sum = 0.0;
    for i in 0..n {
        let row = |x: &Tensor| x.slice(0, i..i + 1);
        let place = 2.0 * row(&s).item();
        let block = &blocks[place as usize];
        let t = Tensor::from(place.fract() * t1);
        let at = row(&x0) + row(&line) * row(&s);
        // Two blocks of half a unit of time each: the velocity over [0, 1] is 2 t1 times theirs.
        let velocity = block.eval_conditional(&t, &at, Some(&row(&classes))) * (2.0 * t1);
        sum += (velocity - row(&line)).square().sum().item();
    }
    let flow = Cnf::from_blocks(blocks).t1(t1).condition_on_classes(&classes);
    let got = flow.flow_matching_loss(&x1, &key()).unwrap().item();
    assert!((got - sum / n as f64).abs() < 1e-6 * got, "{got} {}", sum / n as f64);
}

#[test]
fn flow_matching_with_another_t1_learns_the_same_flow() {
    let x = Key::new(9).normal([256, 2]) * 0.4 + 1.0;
    let net = |t1: f64| Cnf::new(FourierMlp::new(golden_frequencies(4, 1.0), [16, 16], &key())).t1(t1);
    let learned = |t1: f64| {
        let optimizer = chain((clip_by_global_norm(1.0), AdamW::new(Schedule::cosine_decay(2e-2, 80))));
        let flow = net(t1);
        let state = (flow.clone(), optimizer.init(&flow));
        let update = |(flow, memory): (Cnf<FourierMlp>, OptState), key: Key| {
            let loss = |flow: &Cnf<FourierMlp>| flow.flow_matching_loss(&x, &key);
            let (value, grads) = value_and_grad(loss, &flow)?;
            Ok((optimizer.update(&flow, grads, memory), value))
        };
        let (step, mut state) = (jit(update), state);
        for i in 0..80u32 {
            step.step(&mut state, Key::new(3).fold_in(i)).unwrap();
        }
        -state.0.log_prob(&x).unwrap().mean().item()
    };
    // A flow over t in [0, 2] learns as well as one over [0, 1]. The entropy of the data is 1.005; the NLL of the
    // untrained flow is above 2.3.
    let (one, two) = (learned(1.0), learned(2.0));
    assert!(one < 1.6 && two < 1.6, "{one} {two}");
}

tree! {
    struct TrainState { flow: Cnf<FourierMlp>, average: Cnf<FourierMlp>, optimizer: OptState, update: Tensor }
}

#[test]
fn training_by_either_objective_is_traced_once_and_learns() {
    let flow = Cnf::new(FourierMlp::new(golden_frequencies(4, 1.0), [16, 16], &key())).fixed_steps(4);
    let x = |update: f64| Key::new(9).fold_in(update).normal([96, 2]) * 0.4 + 1.0;
    let nll = |flow: &Cnf<FourierMlp>| -flow.log_prob(&x(1e6)).unwrap().mean().item();
    let optimizer = chain((clip_by_global_norm(1.0), AdamW::new(Schedule::cosine_decay(2e-2, 60))));
    let update = |state: TrainState, matching: bool, x: Tensor| {
        let draws = Key::new(3).fold_in(&state.update);
        let loss = |flow: &Cnf<FourierMlp>| {
            if matching {
                return flow.flow_matching_loss(&x, &draws);
            }
            flow.nll_loss(&x, &draws)
        };
        let (value, grads) = value_and_grad(loss, &state.flow)?;
        let (flow, optimizer) = optimizer.update(&state.flow, grads, state.optimizer);
        let average = Ema::new(0.9).update(&state.average, &flow, &state.update);
        Ok((TrainState { flow, average, optimizer, update: state.update + 1 }, value))
    };
    let matching = jit(|s: TrainState, x: Tensor| update(s, true, x)).max_traces(1);
    let likelihood = jit(|s: TrainState, x: Tensor| update(s, false, x)).max_traces(1);
    let mut state = TrainState {
        optimizer: optimizer.init(&flow),
        average: flow.clone(),
        update: Tensor::from(0u32),
        flow,
    };
    let mut gaps = vec![nll(&state.flow)];
    for step in [&matching, &likelihood] {
        for _ in 0..30 {
            let x = x(state.update.item());
            step.step(&mut state, x).unwrap();
        }
        gaps.push(nll(&state.average));
    }
    // The entropy of the data is ln(2 pi e) + 2 ln 0.4 = 1.005.
    assert!(gaps[0] > 2.3 && gaps[1] < 1.6 && gaps[2] < 1.2 && gaps[2] > 1.0, "{gaps:?}");
}

#[test]
fn a_path_costs_its_energy_and_its_jacobian_in_closed_form() {
    let rates = [0.5, -0.3];
    let a = Tensor::from([[rates[0], 0.0], [0.0, rates[1]]]);
    let flow = Cnf::new(Linear { a }).rtol(1e-10).atol(1e-10);
    let x = [[0.4, -1.2], [1.5, 0.3]];
    let loss = |flow: &Cnf<Linear>| flow.nll_loss(&Tensor::from(x), &Key::new(3)).unwrap().item();
    // z(t) = x exp(rate (t - 1)): the integral of |rate z|^2 over [0, 1] is rate x^2 (1 - exp(-2 rate)) / 2.
    let energy = |x: [f64; 2]| {
        x.iter().zip(rates).map(|(x, r)| r * x * x * (1.0 - (-2.0 * r).exp()) / 2.0).sum::<f64>()
    };
    let kinetic = f64::midpoint(energy(x[0]), energy(x[1]));
    let jacobian = rates.iter().map(|r| r * r).sum::<f64>();
    for divergence in [Divergence::Exact, Divergence::hutchinson(ProbeDistribution::Rademacher)] {
        let flow = flow.clone().divergence(divergence);
        let plain = loss(&flow);
        for (cost, want) in [
            (PathRegularization { kinetic: 0.7, jacobian: 0.0 }, 0.7 * kinetic),
            (PathRegularization { kinetic: 0.7, jacobian: 0.2 }, 0.7 * kinetic + 0.2 * jacobian),
        ] {
            let found = loss(&flow.clone().path_regularization(cost)) - plain;
            assert!((found - want).abs() < 1e-7, "{divergence:?} {cost:?}: {found} {want}");
        }
        // The density itself includes no regularization.
        let with = flow.clone().path_regularization(PathRegularization { kinetic: 1.0, jacobian: 1.0 });
        let log_prob = |flow: &Cnf<Linear>| flow.log_prob(&Tensor::from(x)).unwrap().to_vec();
        assert_eq!(log_prob(&with), log_prob(&flow));
    }
}
