//! W5: a flow in 784 dimensions, with the log-density estimated by one Rademacher probe per row. An update of 100
//! rows at the initial weights, or at weights that need more steps; the value is the loss with given probes.

use crate::measure::{Measured, Options, Result, time};
use crate::splitmix::{SplitMix, matrix};
use flowline::cnf::extra::ProbeDistribution;
use flowline::cnf::prelude::*;

pub const VARIANTS: &[&str] = &["gain 1", "gain 6"];

const DIM: usize = 784;
const ROWS: usize = 100;
const TOL: f64 = 1e-5;

tree! {
    /// Reverses a field f from the data (t = 0) to the base (t = 1), because flowline's flows run from the base to the
    /// data: `-f(1 - t, y)`.
    struct Backward { field: ConcatSquash }
}
tree! { struct State { flow: Cnf<Backward>, optimizer: OptState } }

impl VelocityField for Backward {
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor {
        -self.field.eval(&(1.0 - t), y)
    }
    fn dim(&self) -> usize {
        DIM
    }
}

/// The flow; the weights of its affine parts are multiplied by `gain`.
fn flow(gain: f64) -> Cnf<Backward> {
    let mut layers = SplitMix::new(5).concat_squash(&[DIM, 512, 512, DIM]);
    for layer in &mut layers {
        layer.linear.weight = &layer.linear.weight * gain;
    }
    let field = ConcatSquash { layers, activation: Activation::Softplus };
    let flow = Cnf::new(Backward { field });
    flow.method(Method::Dopri5)
        .rtol(TOL)
        .atol(TOL)
        .divergence(Divergence::hutchinson(ProbeDistribution::Rademacher))
}

pub fn measure(variant: &str, options: &Options) -> Result<Measured> {
    let optimizer = Adam::new(1e-3).build();
    let flow = flow(if variant == "gain 6" { 6.0 } else { 1.0 });
    let begin = State { optimizer: optimizer.init(&flow), flow };
    let x = matrix(&SplitMix::new(6).uniforms(ROWS * DIM), [ROWS, DIM]);

    let stated = matrix(&SplitMix::new(7).signs(ROWS * DIM), [ROWS, DIM]);
    let log_prob =
        jit(|flow: Cnf<Backward>, x: Tensor, probe: Tensor| flow.log_prob_with_probes(&x, &[probe]));
    let value = -log_prob.call(begin.flow.clone(), &x, stated)?.mean().item();
    drop(log_prob);

    let step = jit(|state: State, x: Tensor| {
        let loss = |flow: &Cnf<Backward>| flow.nll_loss(&x, &Key::new(7));
        let (value, grads) = value_and_grad(loss, &state.flow)?;
        let (flow, optimizer) = optimizer.update(&state.flow, grads, state.optimizer);
        Ok((State { flow, optimizer }, value))
    })
    .max_traces(1);
    // The same weights and probes each time, so that every call takes the same steps.
    let times = time(options, || {
        step.step(&mut begin.clone(), x.clone())?;
        Ok(())
    })?;
    Ok(Measured::new(times, [value]))
}
