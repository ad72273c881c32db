//! Frozen parts of models under gradients and optimizers.

use super::*;
use crate::optim::{AdamW, Ema, Sgd, partition, set_to_zero};
use crate::tree;

tree! { struct Model { encoder: Frozen<Linear>, head: Linear } }

fn model() -> Model {
    let (encoder, head) = (Linear::new(3, 4, &Key::new(0)), Linear::new(4, 1, &Key::new(1)));
    Model { encoder: Frozen::new(encoder), head }
}

fn loss(model: &Model) -> Tensor {
    let hidden = model.encoder.get().forward(&Tensor::ones([2, 3])).tanh();
    model.head.forward(&hidden).square().sum()
}

#[test]
fn a_frozen_part_stays_under_an_optimizer_with_decay_and_under_an_average() {
    let (before, optimizer) = (model(), AdamW::new(0.1).weight_decay(0.1).build());
    let (mut after, mut state) = (before.clone(), optimizer.init(&before));
    for _ in 0..5 {
        let (_, grads) = value_and_grad(loss, &after);
        (after, state) = optimizer.update(&after, grads, state);
    }
    let weights = |m: &Model| (m.encoder.clone().thaw().weight.to_vec(), m.head.weight.to_vec());
    assert_eq!(weights(&after).0, weights(&before).0);
    assert!(weights(&after).1.iter().zip(weights(&before).1).all(|(a, b)| (a - b).abs() > 0.01));
    assert!(state.leaves.keys().all(|path| !path.contains("encoder")), "frozen leaves have no moments");
    let average = Ema::new(0.5).update(&before, &after, &Tensor::from(9u32));
    assert_eq!(weights(&average).0, weights(&before).0);
}

#[test]
fn leaves_frozen_by_path_have_no_gradient_and_stay() {
    let net = Mlp::new([2, 4, 3, 1], Activation::Tanh, &Key::new(2));
    let old = |path: &str| path.starts_with("layers.1.") || path.ends_with("bias");
    let loss = |net: &Mlp| freeze(net, old).forward(&Tensor::ones([2, 2])).square().sum();
    let (_, grads) = value_and_grad(loss, &net);
    for (path, g) in grads.named_leaves() {
        assert_eq!(g.to_vec().iter().all(|x| *x == 0.0), old(&path), "{path}");
    }
    let decays = partition(move |path| usize::from(old(path)), (AdamW::new(0.1), set_to_zero()));
    for optimizer in [Sgd::new(0.1).momentum(0.9).build(), decays] {
        let (after, _) = optimizer.update(&net, grads.clone(), optimizer.init(&net));
        for ((path, a), b) in after.named_leaves().into_iter().zip(net.leaves()) {
            assert_eq!(a.to_vec() == b.to_vec(), old(&path), "{path}");
        }
    }
    assert_eq!(num_params_where(&net, |path| !old(path)), 2 * 4 + 3);
}

#[test]
fn counts_tell_what_is_trained() {
    let model = model();
    assert_eq!((num_elements(&model), num_params(&model)), (3 * 4 + 4 + 5, 5));
    assert_eq!(num_params(&(Tensor::from([1, 2]), Tensor::from([1.0]))), 1, "integers are not trained");
    let paths: Vec<String> = model.named_leaves().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["encoder.frozen.weight", "encoder.frozen.bias", "head.weight", "head.bias"]);
    assert_eq!(paths.iter().map(|p| is_fixed(p)).collect::<Vec<_>>(), [true, true, false, false]);
}

#[test]
fn a_frozen_field_still_has_derivatives_by_time_and_state() {
    let field = Frozen::new(double(&ConcatSquash::new(2, [5], &Key::new(3))));
    let at = (field.clone(), Tensor::from(0.3), draws([2, 2], 4));
    let (_, (of_field, of_t, of_y)) =
        value_and_grad(|(f, t, y): &(Frozen<ConcatSquash>, Tensor, Tensor)| f.eval(t, y).sum(), &at);
    assert!(of_field.leaves().iter().all(|g| g.to_vec().iter().all(|x| *x == 0.0)));
    assert!(of_t.item() != 0.0 && of_y.to_vec().iter().all(|x| *x != 0.0));
    assert_eq!(field.dim(), 2);
}
