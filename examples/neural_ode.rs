//! A neural ODE that learns a linear map of the plane as a flow, from 4,096 points in batches of 256.

use flowline::nn::prelude::*;
use flowline::ode::ConstantStepSize;

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
    let model = Mlp::new([2, 32, 32, 2], Activation::Tanh, &key);
    let optimizer = chain((clip_by_global_norm(1.0), AdamW::new(Schedule::cosine_decay(1e-2, 600))));
    let fit = Fit::new(model, batch(4_096, &data)).batch(256).updates(600).optimizer(optimizer);
    let fit = fit.on_progress(|progress| println!("{progress}")).run(|model, batch, _| loss(model, batch))?;
    let held_out = loss(&fit.model, &batch(1_000, &data.fold_in(1)))?; // the same code, not compiled
    println!("held out {:.2e}", held_out.item());
    assert!(held_out.item() < 1e-3, "the held-out loss must be below 1e-3");
    Ok(())
}
