//! The effect of parts on updates, on each other and on the state.

use super::{Model, gradient, model, numbers, optimizer, start};
use crate::array::DType;
use crate::optim::*;
use crate::tensor::{Tensor, jit};
use crate::tree;

/// One update by a gradient that is the same for every element.
fn update(optimizer: &Optimizer, x: &Tensor, g: f64, state: OptState) -> (Tensor, OptState) {
    optimizer.update(x, Tensor::full(x.dtype(), x.shape().clone(), g), state)
}

fn bits(x: &Tensor) -> Vec<u64> {
    x.to_vec().iter().map(|x| x.to_bits()).collect()
}

fn state_bits(state: &OptState, part: &str) -> Vec<(String, Vec<u64>)> {
    let of_part = state.leaves.iter().filter(|(name, _)| name.starts_with(part));
    of_part.map(|(name, x)| (name.clone(), bits(x))).collect()
}

tree! { struct TrainState { x: Tensor, rate: Tensor, decay: Tensor, optimizer: OptState } }

#[test]
fn a_rate_of_the_callers_state_changes_without_a_trace() {
    let build = |rate: &Tensor, decay: &Tensor| chain((clip(0.5), AdamW::new(rate).weight_decay(decay)));
    let step = jit(|state: TrainState, g: Tensor| {
        let optimizer = build(&state.rate, &state.decay);
        let (x, optimizer) = optimizer.update(&state.x, g, state.optimizer);
        (TrainState { x, optimizer, ..state }, Tensor::from(0.0))
    });
    let step = step.max_traces(1);
    let (rate, decay) = (Tensor::from(0.1), Tensor::from(0.0));
    let optimizer = build(&rate, &decay).init(&start());
    let mut traced = TrainState { x: start(), rate, decay, optimizer };
    let mut eager = traced.clone();
    for n in 0..4 {
        traced.rate = Tensor::from(0.1 / f64::from(n + 1));
        traced.decay = Tensor::from(0.01 * f64::from(n));
        let g = Tensor::from(gradient(&traced.x.to_vec()));
        let before = traced.x.to_vec();
        (eager.x, eager.optimizer) =
            build(&traced.rate, &traced.decay).update(&eager.x, g.clone(), eager.optimizer);
        step.step(&mut traced, g).unwrap();
        for ((a, b), x) in traced.x.to_vec().iter().zip(eager.x.to_vec()).zip(before) {
            assert!((a - b).abs() < 1e-14 && a != &x, "update {n}: {a} {b} from {x}");
        }
    }
    assert_eq!(step.num_traces(), 1);
}

#[test]
fn a_number_in_the_state_is_turned_without_a_trace() {
    let optimizer = inject_hyperparams(chain((clip(1.0), Sgd::new(0.5).momentum(0.9))));
    let step = jit(|x: Tensor, g: Tensor, state: OptState| optimizer.update(&x, g, state)).max_traces(1);
    let mut state = optimizer.init(&Tensor::from(0.0));
    let hyper: Vec<&str> = state.leaves.keys().map(String::as_str).filter(|n| n.contains("hyper")).collect();
    assert_eq!(hyper, ["0.hyper.0.max", "0.hyper.1.momentum", "0.hyper.2.weight_decay", "0.hyper.3.rate"]);
    let mut x = Tensor::from(0.0);
    for (name, value, want) in [("rate", 0.5, -0.5), ("max", 4.0, -2.45), ("momentum", 0.0, -3.95)] {
        state.set(name, value);
        (x, state) = step.call(x, 3.0, state).unwrap();
        assert!((x.item() - want).abs() < 1e-15, "{name}: {x}");
    }
}

#[test]
#[should_panic(expected = "no leaf `count`, or several")]
fn a_name_of_two_leaves_is_refused() {
    Adam::new(0.1).build().init(&start()).set("count", 3);
}

#[test]
fn elements_are_clipped_one_by_one() {
    let optimizer = chain((clip(1.0), Sgd::new(1.0)));
    let x = Tensor::from([0.0, 0.0, 0.0]);
    let (x, _) = optimizer.update(&x, Tensor::from([0.5, -7.0, f64::NAN]), optimizer.init(&x));
    assert_eq!(x.to_vec()[..2], [-0.5, 1.0]);
    assert!(x.to_vec()[2].is_nan());
}

#[test]
fn weights_decay_where_the_path_says_so() {
    let optimizer = Sgd::new(1.0).weight_decay(0.5).decay_where(|path| path == "weight").build();
    let zero = Tensor::from([0.0f32, 0.0]);
    let grads = Model { weight: zero, bias: Tensor::from(0.0f32), ..model() };
    let (after, _) = optimizer.update(&model(), grads, optimizer.init(&model()));
    assert_eq!(numbers(&after), [0.5, -1.0, 0.5, 3.0, 7.0]);
}

#[test]
fn leaves_that_are_masked_out_pass() {
    let optimizer = chain((masked(|path| path == "bias", clip(0.25)), Sgd::new(1.0)));
    let (after, _) = optimizer.update(&model(), model(), optimizer.init(&model()));
    assert_eq!(numbers(&after), [0.0, 0.0, 0.25, 3.0, 7.0]);
}

#[test]
fn accumulated_gradients_are_those_of_one_batch() {
    let inner = chain((clip_by_global_norm(2.0), AdamW::new(Schedule::linear(0.1, 0.0, 10))));
    let optimizer = accumulate_gradients(4, inner.clone());
    let step = jit(|x: Tensor, g: Tensor, state: OptState| optimizer.update(&x, g, state)).max_traces(1);
    let (mut x, mut state) = (start(), optimizer.init(&start()));
    let (mut y, mut of_mean) = (start(), inner.init(&start()));
    for _ in 0..5 {
        let grads: Vec<Tensor> =
            (0..4).map(|i| Tensor::from(gradient(&x.to_vec())) * (0.5 + f64::from(i))).collect();
        let mean = grads.iter().fold(Tensor::from(0.0), |sum, g| sum + g) / 4;
        for (i, g) in grads.into_iter().enumerate() {
            let before = (bits(&x), state_bits(&state, "0.inner"));
            (x, state) = step.call(x, g, state).unwrap();
            if i < 3 {
                assert_eq!((bits(&x), state_bits(&state, "0.inner")), before, "call {i} changes nothing");
            }
        }
        (y, of_mean) = inner.update(&y, mean, of_mean);
        for (a, b) in x.to_vec().iter().zip(y.to_vec()) {
            assert!((a - b).abs() < 1e-14, "{x} {y}");
        }
    }
    assert_eq!(state.get("calls").unwrap().item(), 0.0);
    assert_eq!(state.get("inner.1.count").unwrap().item(), 5.0);
}

#[test]
fn an_update_that_is_not_finite_leaves_every_bit_and_is_counted() {
    let optimizer = apply_if_finite(chain((clip(1.0), RAdam::new(0.1))));
    let step = jit(|x: Tensor, g: Tensor, state: OptState| optimizer.update(&x, g, state)).max_traces(1);
    let x = Tensor::from([-0.0, 0.0, 1.5]);
    let (x, state) = step.call(&x, [0.0, -1.0, 2.0], optimizer.init(&x)).unwrap();
    assert_eq!(bits(&x)[0], (-0.0f64).to_bits());
    let (mut y, mut after) = (x.clone(), state.clone());
    for bad in [f64::NAN, f64::INFINITY] {
        (y, after) = step.call(y, [1.0, bad, 1.0], after).unwrap();
    }
    assert_eq!(bits(&y), bits(&x));
    assert_eq!(state_bits(&after, "0.inner"), state_bits(&state, "0.inner"));
    let counts = |s: &OptState| [s.get("skipped").unwrap().item(), s.get("skipped_in_a_row").unwrap().item()];
    assert_eq!((counts(&state), counts(&after)), ([0.0, 0.0], [2.0, 2.0]));
    let (y, after) = step.call(y, [1.0, 1.0, 1.0], after).unwrap();
    assert_eq!(counts(&after), [2.0, 0.0]);
    assert_ne!(bits(&y), bits(&x));
}

#[test]
fn an_update_that_its_rate_makes_infinite_is_skipped_too() {
    let optimizer = apply_if_finite(Sgd::new(f64::INFINITY));
    let (x, state) = update(&optimizer, &start(), 1.0, optimizer.init(&start()));
    assert_eq!(x.to_vec(), start().to_vec());
    assert_eq!(state.get("skipped").unwrap().item(), 1.0);
}

/// The scale of each update, given these losses.
fn scales(optimizer: &Optimizer, losses: &[f64]) -> Vec<f64> {
    let step = jit(|x: Tensor, value: Tensor, state: OptState| {
        optimizer.update_with_value(&x, Tensor::from(-1.0), state, &value)
    });
    let step = step.max_traces(1);
    let mut state = optimizer.init(&Tensor::from(0.0));
    let mut values = Vec::new();
    for &loss in losses {
        let x;
        (x, state) = step.call(0.0, loss, state).unwrap();
        values.push(x.item());
    }
    values
}

#[test]
fn the_rate_falls_when_the_loss_has_not_for_the_patience() {
    let optimizer = chain((Sgd::new(1.0), reduce_on_plateau(0.5, 2)));
    // 2.9999 is not below 3 (1 - 1e-4). A new best restarts the count.
    let losses = [3.0, 2.9999, 2.0, 2.0, 2.0, 2.0, f64::NAN, 1.0, 1.0];
    assert_eq!(scales(&optimizer, &losses), [1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.25]);
}

#[test]
fn a_reduction_is_followed_by_a_cooldown_and_ends_at_the_least_scale() {
    let optimizer = chain((Sgd::new(1.0), reduce_on_plateau(0.5, 1).cooldown(2).min_scale(0.3)));
    assert_eq!(scales(&optimizer, &[3.0; 8]), [1.0, 0.5, 0.5, 0.5, 0.3, 0.3, 0.3, 0.3]);
    let optimizer = chain((Sgd::new(1.0), reduce_on_plateau(0.5, 1).rtol(0.5)));
    assert_eq!(scales(&optimizer, &[4.0, 1.9, 1.0]), [1.0, 1.0, 0.5]);
}

#[test]
fn a_negative_loss_that_rises_a_little_is_no_new_best() {
    let optimizer = chain((Sgd::new(1.0), reduce_on_plateau(0.5, 2)));
    let losses = [1.0, -3.0, -2.9999, -2.9998, -3.0001, -4.0, -4.0];
    assert_eq!(scales(&optimizer, &losses), [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5]);
}

#[test]
fn a_plateau_behind_accumulation_sees_mean_losses() {
    let optimizer = accumulate_gradients(2, chain((Sgd::new(1.0), reduce_on_plateau(0.5, 1))));
    // The means are 2, 1, 1: the third is not a new best.
    assert_eq!(scales(&optimizer, &[3.0, 1.0, 0.0, 2.0, 1.0, 1.0]), [0.0, 1.0, 0.0, 1.0, 0.0, 0.5]);
}

#[test]
#[should_panic(expected = "call `update_with_value`")]
fn a_plateau_without_a_loss_is_refused() {
    let optimizer = reduce_on_plateau(0.5, 1).into();
    let _ = update(&optimizer, &start(), 1.0, optimizer.init(&start()));
}

#[test]
fn parts_make_the_named_optimizers() {
    let pairs: [(Optimizer, Optimizer); 4] = [
        (Adam::new(0.1).into(), chain((scale_by_adam(), scale_by_learning_rate(0.1)))),
        (NAdam::new(0.1).into(), chain((scale_by_adam().nesterov(), scale_by_learning_rate(0.1)))),
        (Sgd::new(0.1).momentum(0.9).into(), chain((scale_by_momentum(0.9), scale_by_learning_rate(0.1)))),
        (
            Lion::new(0.1).into(),
            chain((scale_by_lion(), add_decayed_weights(1e-3), scale_by_learning_rate(0.1))),
        ),
    ];
    for (named, made) in pairs {
        let after = [named, made].map(|optimizer| {
            let (x, state) = update(&optimizer, &start(), 0.5, optimizer.init(&start()));
            bits(&update(&optimizer, &x, -0.25, state).0)
        });
        assert_eq!(after[0], after[1]);
    }
}

#[test]
fn a_list_of_one_type_is_a_chain_too() {
    let (as_list, as_tuple) =
        (chain(vec![clip(0.5), Sgd::new(0.1).into()]), chain((clip(0.5), Sgd::new(0.1))));
    let after = [as_list, as_tuple]
        .map(|optimizer| bits(&update(&optimizer, &start(), 3.0, optimizer.init(&start())).0));
    assert_eq!(after[0], after[1]);
}

#[test]
#[should_panic(expected = "optimizer setting `beta2` must be a single number, got shape [2]")]
fn a_hyper_parameter_of_several_numbers_is_refused_by_name() {
    let _ = Adam::new(0.1).beta2(Tensor::from([0.9, 0.99]));
}

#[test]
fn states_and_updates_of_f32_weights_are_f32() {
    for name in ["sgd_nesterov", "rmsprop", "adagrad", "adamw", "adabelief", "nadam", "radam", "lamb", "lion"]
    {
        let optimizer = apply_if_finite(accumulate_gradients(2, optimizer(name)));
        let x = start().cast(DType::F32);
        let (x, state) = update(&optimizer, &x, 0.5, optimizer.init(&x));
        let (x, state) = update(&optimizer, &x, 0.5, state);
        assert_eq!(x.dtype(), DType::F32, "{name}");
        let moments = state.leaves.iter().filter(|(_, t)| t.rank() > 0);
        assert!(moments.clone().count() > 0 && moments.into_iter().all(|(_, t)| t.dtype() == DType::F32));
    }
}

#[test]
fn every_update_adds_eps_root_to_the_second_moment_of_adabelief() {
    // The recursion of Optax 0.2.8 in numpy, f64: nu = 0.999 nu + 0.001 (g - mu)^2 + eps_root, then bias
    // correction. With eps_root only inside the square root, weights differ by 2e-4 within these 60 updates.
    let first = [
        -0.9444450100073896,
        -0.7698282317746156,
        -0.37303359872433517,
        -0.0873033477335986,
        0.08730272927786628,
        0.4840881178526618,
        0.658730160330995,
        1.0555479077343104,
    ];
    let last = [
        -0.22177498522967112,
        -0.8156648365865226,
        -0.26083562205730904,
        0.01312982923399135,
        -0.457018604749049,
        1.7249645690484485,
        -2.401917405409062,
        1.3785702802752897,
    ];
    let optimizer = AdaBelief::new(0.05).eps_root(1e-7).build();
    let (mut x, mut state) = (start(), optimizer.init(&start()));
    for n in 1..=60 {
        (x, state) = optimizer.update(&x, Tensor::from(gradient(&x.to_vec())), state);
        for want in [(1, first), (60, last)]
            .iter()
            .filter(|(at, _)| *at == n)
            .flat_map(|(_, xs)| xs.iter().enumerate())
        {
            let got = x.to_vec()[want.0];
            assert!((got - want.1).abs() < 1e-10, "update {n}, weight {}: {got} {}", want.0, want.1);
        }
    }
}
