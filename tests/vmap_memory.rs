//! The gradient of a mean of mapped losses needs no copy of itself per example, measured by the counters of live
//! buffers. A separate binary, so that nothing else is counted.
#![cfg(feature = "autodiff")]

use flowline::__internal::array::memory;
use flowline::nn::prelude::*;
use flowline::tensor::extra::num_elements;

const EXAMPLES: usize = 500;

fn loss(model: &Mlp, x: &Tensor, y: &Tensor) -> Tensor {
    (model.forward(x) - y).square().sum()
}

#[test]
fn the_gradient_of_18448_parameters_over_500_mapped_examples_peaks_under_2_mb() {
    let key = Key::new(3);
    let model = Mlp::new([37, 116, 116, 4], Activation::Tanh, &key);
    assert_eq!(num_elements(&model), 18_448);
    let (xs, ys) = (key.fold_in(1).normal([EXAMPLES, 37]), key.fold_in(2).normal([EXAMPLES, 4]));
    let step = jit(|model: Mlp, xs: Tensor, ys: Tensor| {
        let mean = |m: &Mlp| vmap(|(x, y): &(Tensor, Tensor)| loss(m, x, y), &(xs, ys)).mean();
        value_and_grad(mean, &model)
    });
    let planned = step.plan(&(model.clone(), xs.clone(), ys.clone())).unwrap().arena_bytes;
    let before = memory::live_bytes();
    memory::reset_peak();
    let (_, grads) = step.call(model, &xs, &ys).unwrap();
    let measured = memory::peak_bytes() - before;
    assert_eq!(num_elements(&grads), 18_448);
    // a gradient per example would be 500 x 18,448 x 4 = 36.9 MB
    // measured: 994 kB and 1,068 kB
    assert!(planned < 1_500_000, "{planned} bytes of workspace planned");
    assert!(measured < 2_000_000, "{measured} bytes of workspace and results measured");
}
