//! Flows against closed forms, against themselves, and their gradients against differences.

use super::*;
use crate::array::DType;
use crate::error::Result;
use crate::graph::{Op, Type, UnaryOp};
use crate::nn::{ConcatSquash, Drift, FourierMlp, golden_frequencies};
use crate::ode::Method;
use crate::odeint::Adjoint;
use crate::optim::{OptState, adamw, chain, clip_global_norm, cosine, ema};
use crate::tensor::{Key, Tensor, Tree, jit, trace, value_and_grad};
use crate::tree;

tree! {
    /// `z' = rate z (1 - z)` in one dimension.
    struct Logistic { rate: Tensor }
}

impl Drift for Logistic {
    fn eval(&self, _t: &Tensor, y: &Tensor) -> Tensor {
        y * (1.0 - y) * &self.rate
    }
    fn dim(&self) -> usize {
        1
    }
}

tree! {
    /// `z' = A z`, A transposed.
    struct Linear { a: Tensor }
}

impl Drift for Linear {
    fn eval(&self, _t: &Tensor, y: &Tensor) -> Tensor {
        y.matmul(&self.a)
    }
    fn dim(&self) -> usize {
        2
    }
}

fn logistic() -> Cnf<Logistic> {
    Cnf::new(Logistic { rate: Tensor::from(1.0) }, StandardNormal::new(1)).tolerances(1e-10, 1e-10)
}

fn linear(a: [[f64; 2]; 2]) -> Cnf<Linear> {
    Cnf::new(Linear { a: Tensor::from(a).transpose() }, StandardNormal::new(2)).tolerances(1e-10, 1e-10)
}

/// z' = A z with known exp(A) and trace 0.2.
fn dense() -> Cnf<Linear> {
    linear([[0.3, -1.2], [0.7, -0.1]])
}

fn key() -> Key {
    Key::new(11)
}

fn double<T: Tree>(tree: &T) -> T {
    tree.map_leaves(|x| if x.dtype().is_float() { x.cast(DType::F64) } else { x.clone() })
}

/// Two small blocks with time, in f64.
fn small() -> Cnf<ConcatSquash> {
    let blocks = [1, 2].map(|seed| double(&ConcatSquash::new(2, [5], &Key::new(seed))));
    Cnf::with_blocks(blocks.into(), StandardNormal::new(2)).t1(0.5).fixed_steps(3).tile(4)
}

fn points(n: usize) -> Tensor {
    Key::new(5).normal([n, 2]).cast(DType::F64)
}

fn largest(x: &Tensor) -> f64 {
    x.abs().max().item()
}

#[test]
fn a_logistic_flow_has_its_density() {
    let (z, x) = (Tensor::from([[0.2]]), Tensor::from([[0.4046096751916897]]));
    let flow = logistic();
    assert!(largest(&(flow.push_forward(&z).unwrap() - &x)) < 1e-9);
    let change = flow.log_prob(&x, &key()).unwrap() - flow.base.log_prob(&z);
    assert!((change.item() + 0.4092109417593047).abs() < 1e-8, "{}", change.item());
}

#[test]
fn a_linear_flow_has_its_density() {
    let (z, x) = (Tensor::from([[0.5, -1.25]]), Tensor::from([[1.8876563142352462, -0.2865899503348209]]));
    let flow = dense();
    assert!(largest(&(flow.push_forward(&z).unwrap() - &x)) < 1e-9);
    assert!((flow.log_prob(&x, &key()).unwrap().item() + 2.9441270664093455).abs() < 1e-8);
    assert!((flow.base.log_prob(&z).item() + 2.7441270664093455).abs() < 1e-12);
}

#[test]
fn probes_know_a_diagonal_and_are_right_on_average() {
    let x = points(12);
    for probe in [Probe::Rademacher, Probe::Gaussian] {
        let estimated = |flow: Cnf<Linear>, k| {
            let flow = flow.divergence(Divergence::Hutchinson { probe, num_probes: k });
            flow.log_prob(&x, &key()).unwrap()
        };
        let exact = |flow: Cnf<Linear>| flow.log_prob(&x, &key()).unwrap();
        let diagonal = || linear([[0.3, 0.0], [0.0, -0.8]]).fixed_steps(8);
        let off = largest(&(estimated(diagonal(), 1) - exact(diagonal())));
        assert_eq!(off < 1e-12, probe == Probe::Rademacher, "{probe:?} {off}");
        // A probe's e^T A e has a deviation of 0.5 (Rademacher) or 0.67 (Gaussian): 12 x 400 of them.
        let mean = (estimated(dense().fixed_steps(4), 400) - exact(dense().fixed_steps(4))).mean().item();
        assert!(mean.abs() < 4.0 * 0.7 / 4_800.0_f64.sqrt(), "{probe:?} {mean}");
    }
}

#[test]
fn a_density_follows_the_probes_that_it_is_given() {
    let flow = dense().divergence(Divergence::hutchinson(Probe::Gaussian));
    let x = Tensor::from([[0.5, -0.3], [0.5, -0.3]]);
    let probes = Tensor::from([[1.0, 2.0], [0.0, 1.0]]);
    let along = flow.log_prob_with_probes(&x, &[probes]).unwrap();
    // The estimates e^T A e are -1.1 and -0.1 where the trace is 0.2, over one unit of time.
    let exact = dense().log_prob(&x, &key()).unwrap();
    assert!(largest(&(along - exact - Tensor::from([1.3, 0.3]))) < 1e-8);
}

#[test]
#[should_panic(expected = "1 blocks want as many tensors of probes [2, 2], not [f64[1,2]]")]
fn probes_are_one_a_row() {
    let flow = dense().divergence(Divergence::hutchinson(Probe::Gaussian));
    let _ =
        flow.log_prob_with_probes(&Tensor::from([[0.5, -0.3], [0.5, -0.3]]), &[Tensor::from([[1.0, 2.0]])]);
}

#[test]
fn samples_have_the_density_that_is_evaluated() {
    let flow = small().tolerances(1e-9, 1e-9);
    let (x, log_prob) = flow.sample_with_log_prob(10, &key()).unwrap();
    assert!(largest(&(flow.log_prob(&x, &key()).unwrap() - log_prob)) < 1e-6);
    let [base, _] = key().split();
    assert!(largest(&(flow.sample(10, &base).unwrap() - x)) < 1e-6);
}

#[test]
fn a_density_has_mass_one() {
    let flow = small();
    let side = 60;
    let grid =
        (0..side * side).flat_map(|i| [i % side, i / side].map(|k| -7.0 + 14.0 * (k as f64 + 0.5) / 60.0));
    let x = Tensor::from_vec([side * side, 2], grid.collect::<Vec<f64>>());
    let mass = flow.tile(900).log_prob(&x, &key()).unwrap().exp().sum().item() * (14.0_f64 / 60.0).powi(2);
    assert!((mass - 1.0).abs() < 1e-3, "{mass}");
}

#[test]
fn a_first_step_is_tried_and_one_too_long_is_a_whole_block() {
    let slow = Logistic { rate: Tensor::from(0.1) };
    let flow = Cnf::new(slow, StandardNormal::new(1)).tolerances(1e-3, 1e-3);
    let evals = |flow: &Cnf<Logistic>| {
        let stats = jit(|flow: Cnf<Logistic>, x: Tensor| Ok(flow.log_prob_with_stats(&x, &key())?.1));
        stats
            .call(flow.clone(), points(8).column(0).expand(1) * 0.1)
            .map(|s: SolveStats| s.num_field_evals.item())
    };
    let found = evals(&flow).unwrap();
    let [short, whole, beyond] = [0.05, 1.0, 7.0].map(|dt0| evals(&flow.clone().first_step(dt0)).unwrap());
    // Tsit5: six evaluations for the step and one for its start; none to find its length.
    assert_eq!((whole, beyond), (7.0, 7.0));
    assert!(found > whole && short > whole, "{found} {short}");
    for dt0 in [0.0, f64::NAN] {
        let error = evals(&flow.clone().first_step(dt0)).expect_err(&dt0.to_string()).to_string();
        assert!(error.contains("dt0"), "{error}");
    }
}

#[test]
fn tiles_do_not_change_fixed_steps() {
    let x = points(11);
    for divergence in [Divergence::Exact, Divergence::hutchinson(Probe::Rademacher)] {
        let flow = small().divergence(divergence);
        let whole = flow.clone().tile(100).log_prob(&x, &key()).unwrap().to_vec();
        assert_eq!(flow.tile(3).log_prob(&x, &key()).unwrap().to_vec(), whole);
    }
}

#[test]
fn a_path_leads_from_the_base_to_the_data() {
    let flow = small();
    let path = flow.sample_path(6, &key(), 5).unwrap();
    assert_eq!(**path.shape(), [5, 6, 2]);
    assert_eq!(path.at(0).to_vec(), flow.base.sample(6, DType::F64, &key()).to_vec());
    assert!(largest(&(path.at(4) - flow.sample(6, &key()).unwrap())) < 1e-5);
    // Half way in time is the end of the first of two blocks.
    let first = Cnf { blocks: vec![flow.blocks[0].clone()], ..flow };
    assert!(largest(&(path.at(2) - first.sample(6, &key()).unwrap())) < 1e-5);
}

#[test]
fn a_log_density_outside_the_norm_changes_steps_and_not_the_answer() {
    let x = points(8);
    let flow = small().tolerances(1e-7, 1e-7).tile(8);
    let (both, stats) = flow.log_prob_with_stats(&x, &key()).unwrap();
    let flow = flow.error_norm(ErrorNorm::State);
    let (state, fewer) = flow.log_prob_with_stats(&x, &key()).unwrap();
    assert!(largest(&(both - state)) < 1e-5);
    assert!(fewer.num_steps.item() <= stats.num_steps.item());
    // The steps are those of a solve without a density.
    let z = flow.settings.flow((&flow.blocks[1], None), (0.5, 0.0), &x).unwrap();
    let way = flow.settings.flow_with_density((&flow.blocks[1], None), (0.5, 0.0), &x, None).unwrap();
    let (y, counts) = (way.y1, way.counts);
    assert_eq!(counts.to_vec(), z.1.to_vec());
    assert!(largest(&(y - z.0)) < 1e-12);
}

#[test]
fn counters_are_of_all_blocks() {
    let (_, stats) = small().log_prob_with_stats(&points(10), &key()).unwrap();
    assert_eq!((stats.num_steps.item(), stats.num_rejected.item()), (6.0, 0.0));
    // 2 blocks x 3 steps x 6 stages.
    assert_eq!(stats.num_field_evals.item(), 36.0);
}

#[test]
fn many_rows_stream_through_one_program() {
    let (x, flow) = (points(23), small());
    let streamed = Streamed::new(5, |flow: &Cnf<ConcatSquash>, x: &Tensor, key: &Key| flow.log_prob(x, key));
    let got = streamed.call(&flow, &x, &key()).unwrap();
    assert_eq!(streamed.traces(), 1);
    assert_eq!(got.to_vec(), flow.log_prob(&x, &key()).unwrap().to_vec());
}

#[test]
fn a_solve_that_fails_is_an_error() {
    let mut flow = logistic();
    flow.blocks[0].rate = Tensor::from(f64::NAN);
    let message = flow.log_prob(&Tensor::from([[0.5]]), &key()).unwrap_err().to_string();
    assert!(message.contains("not finite"), "{message}");
    assert!(logistic().tolerances(-1.0, 0.0).log_prob(&Tensor::from([[0.5]]), &key()).is_err());
}

/// The slope of a loss along a fixed direction: by gradient and by central differences.
fn slopes<M: Tree>(at: &M, loss: impl Fn(&M) -> Result<Tensor>) -> (f64, f64) {
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

fn assert_slopes((along, difference): (f64, f64), what: &str) {
    assert!((along - difference).abs() < 1e-6 * difference.abs().max(0.1), "{what}: {along} {difference}");
}

#[test]
fn gradients_of_the_likelihood_are_those_of_differences() {
    let x = points(6);
    let weights = Tensor::from([1.0, 0.5, 2.0, 0.0, 1.0, 0.3]);
    let adjoints = [Adjoint::Direct, Adjoint::recursive_checkpoint(2)];
    for divergence in [Divergence::Exact, Divergence::hutchinson(Probe::Gaussian)] {
        for adjoint in adjoints {
            let flow = small().divergence(divergence).adjoint(adjoint).method(Method::Rk4);
            let loss =
                |flow: &Cnf<ConcatSquash>| Ok(maximum_likelihood_loss(flow, &x, Some(&weights), &key())?.0);
            assert_slopes(slopes(&flow, loss), &format!("{divergence:?} {adjoint:?}"));
        }
    }
}

#[test]
fn gradients_of_flow_matching_are_those_of_differences() {
    let net = double(&FourierMlp::new(golden_frequencies(3, 1.0), [6, 6], &Key::new(3)));
    let x = points(40);
    // The fixed frequencies have no gradient: only the perceptron is moved.
    let loss = |mlp: &crate::nn::Mlp| {
        let net = FourierMlp { frequencies: net.frequencies.clone(), mlp: mlp.clone() };
        Ok(flow_matching_loss(&net, &x, &key()))
    };
    assert_slopes(slopes(&net.mlp, loss), "flow matching");
    let (_, grads) = value_and_grad(|net: &FourierMlp| flow_matching_loss(net, &x, &key()), &net);
    assert_eq!(largest(&grads.frequencies.get()), 0.0);
}

#[test]
fn flow_matching_is_its_formula() {
    let (n, x1) = (40, points(40));
    let net = double(&ConcatSquash::new(2, [5], &Key::new(8)));
    let [noise, time] = key().split();
    let (x0, u) = (noise.normal([n, 2]).cast(DType::F64), time.uniform([1]).item());
    let t: Vec<f64> = (0..n).map(|i| (u + i as f64 / n as f64) % 1.0).collect();
    let t = Tensor::from_vec([n, 1], t);
    let velocity = net.eval(&t, &(&x0 * (1.0 - &t) + &x1 * &t));
    let want = (velocity - (&x1 - &x0)).square().sum_last().mean().item();
    let got = flow_matching_loss(&net, &x1, &key()).item();
    assert!((got - want).abs() < 1e-6 * want, "{got} {want}");
}

/// How often an operation stands in the graph of a field and its exact divergence.
fn occurrences<D: Drift>(net: &D, op: &Op) -> usize {
    let (t, y) = (Type::scalar(DType::F64), Type::array(DType::F32, [4, 2]));
    let types: Vec<Type> = [t, y].into_iter().chain(net.leaves().iter().map(Tensor::ty)).collect();
    let traced = trace(&types, |x| {
        let net = net.with_leaves(x[2..].to_vec());
        let directions = divergence::Directions::new(&x[1], None);
        let divergence::Local { velocity: v, divergence: d, .. } =
            divergence::local((&net, None), &x[0], &x[1], &directions, false);
        (vec![v, d], ())
    });
    traced.func.nodes().iter().filter(|n| n.op == *op).count()
}

#[test]
fn directions_share_one_evaluation_of_the_field() {
    let dot = Op::Dot { ta: false, tb: false };
    let squash = ConcatSquash::new(2, [8, 8, 8], &key());
    assert_eq!(occurrences(&squash, &Op::Unary(UnaryOp::Tanh)), 3);
    // Four layers, forward once and along each of two directions.
    assert_eq!(occurrences(&squash, &dot), 12);
    let fourier = FourierMlp::new(golden_frequencies(4, 1.0), [8, 8], &key());
    assert_eq!(occurrences(&fourier, &Op::Unary(UnaryOp::Sigmoid)), 2);
    // y B and three layers three times, and the time's part of the first layer once.
    assert_eq!(occurrences(&fourier, &dot), 13);
}

tree! {
    struct TrainState { flow: Cnf<FourierMlp>, average: Cnf<FourierMlp>, optimiser: OptState, update: Tensor }
}

#[test]
fn training_by_either_objective_is_traced_once_and_learns() {
    let flow =
        Cnf::new(FourierMlp::new(golden_frequencies(4, 1.0), [16, 16], &key()), StandardNormal::new(2))
            .fixed_steps(4);
    let x = |update: f64| Key::new(9).fold_in(update).normal([96, 2]) * 0.4 + 1.0;
    let nll = |flow: &Cnf<FourierMlp>| -flow.log_prob(&x(1e6), &key()).unwrap().mean().item();
    let optimiser = chain([clip_global_norm(1.0), adamw(cosine(2e-2, 60))]);
    let update = |state: TrainState, matching: bool, x: Tensor| {
        let draws = Key::new(3).fold_in(&state.update);
        let loss = |flow: &Cnf<FourierMlp>| {
            if matching {
                return Ok(flow_matching_loss(&flow.blocks[0], &x, &draws));
            }
            Ok(maximum_likelihood_loss(flow, &x, None, &draws)?.0)
        };
        let (value, grads) = value_and_grad(loss, &state.flow)?;
        let (flow, optimiser) = optimiser.update(&state.flow, grads, state.optimiser);
        let average = ema(0.9).update(&state.average, &flow, &state.update);
        Ok((TrainState { flow, average, optimiser, update: state.update + 1 }, value))
    };
    let matching = jit(|s: TrainState, x: Tensor| update(s, true, x)).max_traces(1);
    let likelihood = jit(|s: TrainState, x: Tensor| update(s, false, x)).max_traces(1);
    let mut state = TrainState {
        optimiser: optimiser.init(&flow),
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
fn the_plane_recipe_fits_its_budget() {
    let flow = Cnf::plane(&key());
    let trained = flow.named_leaves().into_iter().filter(|(path, _)| !crate::nn::is_fixed(path));
    assert_eq!(trained.map(|(_, x)| x.size()).sum::<usize>(), 17_842);
    let (x, log_prob) = flow.fixed_steps(2).sample_with_log_prob(3, &key()).unwrap();
    assert_eq!((x.dtype(), log_prob.dtype()), (DType::F32, DType::F32));
}

#[test]
fn a_path_costs_its_energy_and_its_jacobian_in_closed_form() {
    let rates = [0.5, -0.3];
    let a = Tensor::from([[rates[0], 0.0], [0.0, rates[1]]]);
    let flow = Cnf::new(Linear { a }, StandardNormal::new(2)).tolerances(1e-10, 1e-10);
    let x = [[0.4, -1.2], [1.5, 0.3]];
    let loss = |flow: &Cnf<Linear>| {
        maximum_likelihood_loss(flow, &Tensor::from(x), None, &Key::new(3)).unwrap().0.item()
    };
    // z(t) = x exp(rate (t - 1)): the integral of |rate z|^2 over [0, 1] is rate x^2 (1 - exp(-2 rate)) / 2.
    let energy = |x: [f64; 2]| {
        x.iter().zip(rates).map(|(x, r)| r * x * x * (1.0 - (-2.0 * r).exp()) / 2.0).sum::<f64>()
    };
    let kinetic = f64::midpoint(energy(x[0]), energy(x[1]));
    let jacobian = rates.iter().map(|r| r * r).sum::<f64>();
    for divergence in [Divergence::Exact, Divergence::hutchinson(Probe::Rademacher)] {
        let flow = flow.clone().divergence(divergence);
        let plain = loss(&flow);
        for (cost, want) in [
            (PathCost { kinetic: 0.7, jacobian: 0.0 }, 0.7 * kinetic),
            (PathCost { kinetic: 0.7, jacobian: 0.2 }, 0.7 * kinetic + 0.2 * jacobian),
        ] {
            let found = loss(&flow.clone().path_cost(cost)) - plain;
            assert!((found - want).abs() < 1e-7, "{divergence:?} {cost:?}: {found} {want}");
        }
        // The density itself costs nothing.
        let with = flow.clone().path_cost(PathCost { kinetic: 1.0, jacobian: 1.0 });
        let log_prob = |flow: &Cnf<Linear>| flow.log_prob(&Tensor::from(x), &Key::new(3)).unwrap().to_vec();
        assert_eq!(log_prob(&with), log_prob(&flow));
    }
}

#[test]
fn rows_of_classes_have_densities_that_each_has_alone() {
    let field = crate::nn::Mlp::new([2 + 1 + 3, 8, 2], crate::nn::Activation::Tanh, &Key::new(4));
    let flow = Cnf::new(field, StandardNormal::new(2)).tolerances(1e-8, 1e-8).tile(2);
    let x = Key::new(5).normal([5, 2]);
    let classes = [2.0, 0.0, 1.0, 1.0, 2.0];
    let labels = Tensor::from(classes.map(|k| [k]));
    let together = flow.given(&labels).log_prob(&x, &Key::new(0)).unwrap().to_vec();
    let (drawn, told) = flow.given(&labels).sample_with_log_prob(5, &Key::new(6)).unwrap();
    let again = flow.given(&labels).log_prob(&drawn, &Key::new(0)).unwrap();
    assert!((told - again).abs().max().item() < 1e-4);
    for (i, k) in classes.into_iter().enumerate() {
        let alone = |k: f64| {
            let flow = flow.given(&Tensor::from([[k]]));
            flow.log_prob(&x.slice(0, i..i + 1), &Key::new(0)).unwrap().item()
        };
        assert!((alone(k) - together[i]).abs() < 1e-4, "{i}");
        assert!((alone((k + 1.0) % 3.0) - together[i]).abs() > 1e-3, "{i}: the class is seen");
    }
    // And a gradient sees the weights of its class alone.
    let loss = |flow: &Cnf<crate::nn::Mlp>| {
        let flow = flow.given(&Tensor::from([[1.0], [1.0]]));
        maximum_likelihood_loss(&flow, &x.slice(0, 0..2), None, &Key::new(0)).map(|(loss, _)| loss)
    };
    let (_, grads) = value_and_grad(|flow: &Cnf<crate::nn::Mlp>| loss(flow).map(|loss| (loss, ())), &flow)
        .map(|((l, ()), g)| (l, g))
        .unwrap();
    let of_input = |row: usize| {
        let weight = &grads.blocks[0].layers[0].weight;
        weight.slice(0, row..row + 1).abs().max().item()
    };
    assert!(of_input(4) > 0.0 && of_input(3) == 0.0 && of_input(5) == 0.0);
}
