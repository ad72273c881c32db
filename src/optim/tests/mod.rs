//! Optimizers compared with Optax; schedules and averages compared with their formulas.

mod fits;
mod parts;
mod schedules;

use super::*;
use crate::array::DType;
use crate::nn::Buffer;
use crate::tensor::{Tensor, jit};
use crate::tree;
use std::collections::BTreeMap;

/// Optimizer, number of updates, and the eight weights after them.
const TRAJECTORIES: &str = include_str!("trajectories.csv");

/// For the loss `sum(c (x - a)^2 / 2 + 0.3 sin 3x) + 0.1 sum(x_i x_(i+1))`.
const C: [f64; 8] = [1.0, 4.0, 0.25, 9.0, 2.0, 0.5, 16.0, 1.5];
const A: [f64; 8] = [0.5, -1.0, 2.0, 0.1, -0.3, 1.7, -2.2, 0.9];

/// The gradient of this loss in plain Rust, rounded in the order of the chain rule. The order matters for RMSProp,
/// whose updates near a minimum keep their length: it amplifies a change of 1e-15 at the start to 1e-4 at update 70.
fn gradient(x: &[f64]) -> Vec<f64> {
    let at = |i: Option<usize>| i.and_then(|i| x.get(i)).copied().unwrap_or(0.0);
    let term = |i: usize| C[i] * (x[i] - A[i]) + 0.3 * (3.0 * x[i]).cos() * 3.0;
    (0..x.len()).map(|i| term(i) + 0.1 * (at(i.checked_sub(1)) + at(Some(i + 1)))).collect()
}

/// The start of the trajectories: eight numbers from -1 to 1.
fn start() -> Tensor {
    (0..8).map(|i| f64::from(i) * (2.0 / 7.0) - 1.0).collect::<Vec<_>>().into()
}

fn optimizer(name: &str) -> Optimizer {
    let cosine = Schedule::cosine_decay;
    match name {
        "sgd" => Sgd::new(0.01).into(),
        "sgd_momentum" => Sgd::new(0.01).momentum(0.9).into(),
        "sgd_nesterov" => Sgd::new(0.01).nesterov(0.9).into(),
        "rmsprop" => RmsProp::new(0.01).into(),
        "adagrad" => AdaGrad::new(0.1).into(),
        "adam" => Adam::new(0.05).into(),
        "adamw" => AdamW::new(0.05).weight_decay(0.01).into(),
        "adabelief" => AdaBelief::new(0.05).into(),
        "nadam" => NAdam::new(0.05).into(),
        "radam" => RAdam::new(0.05).into(),
        "lamb" => Lamb::new(0.05).into(),
        "lion" => Lion::new(0.01).into(),
        "adam_cosine_clip" => chain((clip_by_global_norm(1.0), Adam::new(cosine(0.1, 100)))),
        "adam_warmup_cosine" => Adam::new(cosine(0.1, 90).end(0.001).warmup(10)).into(),
        other => panic!("unknown optimizer {other}"),
    }
}

/// The weights after each of 100 updates.
fn trajectory(optimizer: &Optimizer) -> Vec<Vec<f64>> {
    let step = jit(|x: Tensor, g: Tensor, state: OptState| optimizer.update(&x, g, state)).max_traces(1);
    let (mut x, mut state) = (start(), optimizer.init(&start()));
    let mut after = Vec::new();
    for _ in 0..100 {
        let g = gradient(&x.to_vec());
        (x, state) = step.call(x, g, state).unwrap();
        after.push(x.to_vec());
    }
    after
}

fn compare_with_optax(change: fn(Optimizer) -> Optimizer) {
    let (mut name, mut xs, mut rows, mut worst) = ("", Vec::new(), 0, BTreeMap::new());
    for line in TRAJECTORIES.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split(',');
        let of = fields.next().unwrap();
        if of != name {
            (name, xs) = (of, trajectory(&change(optimizer(of))));
        }
        let n: usize = fields.next().unwrap().parse().unwrap();
        for (got, want) in xs[n - 1].iter().zip(fields.map(|x| x.parse::<f64>().unwrap())) {
            let worst: &mut f64 = worst.entry(name).or_default();
            *worst = worst.max((got - want).abs());
            rows += 1;
        }
    }
    for (name, worst) in &worst {
        let within = match *name {
            // The reference computes its warmup in f32.
            "adam_warmup_cosine" => 1e-6,
            // See `gradient`.
            "rmsprop" => 1e-7,
            _ => 1e-10,
        };
        assert!(*worst < within, "{name} is off by {worst}");
    }
    assert_eq!(rows, 14 * 9 * 8, "every reference number must be compared");
}

#[test]
fn trajectories_are_those_of_optax() {
    compare_with_optax(|optimizer| optimizer);
}

#[test]
fn trajectories_are_the_same_where_every_number_is_a_leaf_of_the_state() {
    compare_with_optax(inject_hyperparams);
}

tree! {
    struct Model { weight: Tensor, bias: Tensor, constant: Buffer, steps: Tensor }
}

fn model() -> Model {
    Model {
        weight: Tensor::from([1.0f32, -2.0]),
        bias: Tensor::from(0.5f32),
        constant: Buffer::new([3.0f32]),
        steps: Tensor::from(7u32),
    }
}

fn numbers(model: &Model) -> Vec<f64> {
    [&model.weight, &model.bias, &model.constant.get(), &model.steps]
        .iter()
        .flat_map(|x| x.to_vec())
        .collect()
}

#[test]
fn leaves_that_are_fixed_or_no_floats_stay() {
    let optimizer = chain((clip_by_global_norm(1e9), AdamW::new(0.5).weight_decay(0.1)));
    let state = optimizer.init(&model());
    let names: Vec<&str> = state.leaves.keys().map(String::as_str).collect();
    assert_eq!(names, ["1.count", "1.mu.bias", "1.mu.weight", "1.nu.bias", "1.nu.weight", "3.count"]);
    let (after, state) = optimizer.update(&model(), model(), state);
    let after_numbers = numbers(&after);
    // At the first update, m / sqrt(v) is the sign of the gradient.
    for (got, want) in after_numbers.iter().zip([0.45, -1.4, -0.025, 3.0, 7.0]) {
        assert!((got - want).abs() < 1e-6, "{after_numbers:?}");
    }
    assert_eq!(after.bias.dtype(), DType::F32);
    assert_eq!(state.leaves["1.count"].item(), 1.0);
}

#[test]
fn groups_have_an_optimizer_each() {
    let optimizer = partition(|path| usize::from(path == "bias"), (Sgd::new(0.5), set_to_zero()));
    let state = optimizer.init(&model());
    let (after, _) = optimizer.update(&model(), model(), state);
    assert_eq!(numbers(&after), [0.5, -1.0, 0.5, 3.0, 7.0]);
}

#[test]
#[should_panic(expected = "the optimizer state has no `0.mu.steps`")]
fn a_state_of_another_model_is_refused() {
    tree! { struct Other { steps: Tensor } }
    let other = Other { steps: Tensor::from(1.0) };
    let adam = Adam::new(0.1).build();
    let _ = adam.update(&other, other.clone(), adam.init(&model()));
}

#[test]
fn clipping_scales_to_the_norm_and_not_below_it() {
    let clipped = |g: [f64; 2]| {
        let optimizer = chain((clip_by_global_norm(1.0), Sgd::new(1.0)));
        let zero = Tensor::from([0.0, 0.0]);
        let (x, _) = optimizer.update(&zero, g.into(), optimizer.init(&zero));
        x.to_vec()
    };
    assert_eq!(clipped([0.3, 0.4]), [-0.3, -0.4]);
    let x = clipped([3.0, 4.0]);
    assert!((x[0] + 0.6).abs() < 1e-15 && (x[1] + 0.8).abs() < 1e-15);
    assert!(clipped([f64::NAN, 1.0]).iter().all(|x| x.is_nan()));
}

#[test]
fn an_average_is_warm_at_first_and_slow_at_last() {
    let (a, w) = (model(), model().weight * 2);
    let mut moved = model();
    moved.weight = w;
    let early = Ema::new(0.99).update(&a, &moved, &Tensor::from(0u32));
    assert!((early.weight.to_vec()[0] - 1.9).abs() < 1e-6);
    let late = Ema::new(0.99).update(&a, &moved, &Tensor::from(1_000_000u32));
    assert!((late.weight.to_vec()[0] - 1.01).abs() < 1e-6);
    assert_eq!(late.steps.item(), 7.0);
}
