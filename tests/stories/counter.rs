//! Training of a flow with an update counter in the training loop.
//!
//! If a plain integer among the arguments were part of the program, every update would compile a new program.
//! Here a counter is a tensor of the state, and the error for a static counter names its leaf.

use super::watch::{Report, Watch, on_threads};
use flowline::cnf::prelude::*;

tree! { struct State { flow: Cnf<ConcatSquash>, optimizer: OptState, step: Tensor } }
tree! { struct Counted { weight: Tensor, step: usize } }

pub fn run(iterations: usize) -> Report {
    on_threads(1, || train(iterations))
}

fn train(iterations: usize) -> Report {
    let mut watch = Watch::begin();
    let key = Key::new(0);
    let flow = Cnf::new(ConcatSquash::new(2, [8], &key)).fixed_steps(2);
    let optimizer = Adam::new(Schedule::cosine_decay(1e-3, 10_000)).build();
    let step = jit(|state: State, key: Key| {
        let key = key.fold_in(&state.step);
        let x = key.normal([16, 2]) * 0.5 + 1.0;
        let loss = |flow: &Cnf<ConcatSquash>| flow.nll_loss(&x, &key);
        let (value, grads) = value_and_grad(loss, &state.flow)?;
        let (flow, optimizer) = optimizer.update(&state.flow, grads, state.optimizer);
        Ok((State { flow, optimizer, step: state.step + 1 }, value))
    });
    let step = step.max_traces(1);
    let mut state = State { optimizer: optimizer.init(&flow), flow, step: 0.into() };
    for _ in 0..iterations {
        step.step(&mut state, key.clone()).unwrap();
        watch.tick();
    }
    let report = watch.end(step.num_traces()).with("counter", state.step.item());
    Report { said: a_counter_that_is_static(), ..report }
}

/// The error for a plain integer counter.
fn a_counter_that_is_static() -> String {
    let step = jit(|state: Counted, x: Tensor| {
        (Counted { weight: &state.weight + &x, step: state.step + 1 }, state.weight)
    });
    let step = step.max_traces(1);
    let mut state = Counted { weight: 0.0.into(), step: 0 };
    step.step(&mut state, 1.0.into()).unwrap();
    step.step(&mut state, 1.0.into()).unwrap_err().to_string()
}

pub fn hold(report: &Report) {
    report.is_flat();
    assert_eq!((report.traces, report.get("counter")), (1, report.iterations as f64));
    assert!(report.said.contains("leaf 0.step: static 0 -> static 1"), "{}", report.said);
}
