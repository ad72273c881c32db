//! A neural ODE that learns a linear map of the plane as a flow: one jitted call per update, traced once.

use flowline::nn::prelude::*;
use flowline::ode::ConstantStepSize;

tree! {
    /// The state of the training.
    struct TrainState { model: Mlp, optimizer: OptState, update: Tensor }
}
tree! {
    /// Points and their targets at t = 1.
    struct Batch { y0: Tensor, y1: Tensor }
}

fn loss(model: &Mlp, batch: &Batch) -> flowline::Result<Tensor> {
    let field = Ode::new(|_t, y: &Tensor| model.forward(y)).controller(ConstantStepSize { dt0: 0.1 });
    let end = field.adjoint(Adjoint::recursive_checkpoint(4)).solve(0.0, 1.0, &batch.y0)?.y1;
    Ok((end - &batch.y1).square().mean())
}

/// Points of the plane, and the same points rotated by one radian and shrunk by e^-0.3.
fn batch(n: usize, key: &Key) -> Batch {
    let y0 = key.normal([n, 2]);
    let (sin, cos, shrink) = (1f64.sin(), 1f64.cos(), (-0.3f64).exp());
    let turn = Tensor::from([[cos, sin], [-sin, cos]]) * shrink;
    Batch { y1: y0.matmul(&turn.cast(y0.dtype())), y0 }
}

fn main() -> flowline::Result<()> {
    let [key, data] = Key::new(0).split();
    let optimizer = chain((clip_by_global_norm(1.0), AdamW::new(Schedule::cosine_decay(1e-2, 600))));
    let step = jit(|state: TrainState, key: Key| {
        let batch = batch(256, &key.fold_in(&state.update));
        let (value, grads) = value_and_grad(|model| loss(model, &batch), &state.model)?;
        let (model, optimizer) = optimizer.update(&state.model, grads, state.optimizer);
        Ok((TrainState { model, optimizer, update: state.update + 1 }, value))
    });
    let step = step.max_traces(1);
    let model = Mlp::new([2, 32, 32, 2], Activation::Tanh, &key);
    let mut state = TrainState { optimizer: optimizer.init(&model), model, update: 0.into() };
    for i in 0..600 {
        let value = step.step(&mut state, data.clone())?;
        if i % 100 == 99 {
            println!("update {:4}  loss {:.2e}", i + 1, value.item());
        }
    }
    let held_out = loss(&state.model, &batch(1_000, &data.fold_in(u32::MAX / 4)))?; // the same code, eager
    println!("held out {:.2e}, traced {} time(s)", held_out.item(), step.num_traces());
    assert!(held_out.item() < 1e-3, "the held-out loss must be below 1e-3");
    Ok(())
}
