//! The gradient of a mean over examples, in whose making each example could have a copy of the parameters'
//! gradient: 500 times 18,448 numbers.
//!
//! The batch axis is written out here. A gradient inside a map over examples is the same program once the map's
//! batching rules have pushed the axis into the operations, and belongs beside [`gradient`] with these limits.

use super::watch::{Report, Watch, on_threads};
use flowline::memory;
use flowline::prelude::*;

const EXAMPLES: usize = 500;
const STEPS: usize = 10;

type Flow = Cnf<ConcatSquash>;

/// Two blocks of three hidden layers of 64, ten steps of Tsit5 each, exact divergence.
fn flow(key: &Key) -> Flow {
    let [a, b] = key.split();
    let blocks = vec![ConcatSquash::new(2, [64, 64, 64], &a), ConcatSquash::new(2, [64, 64, 64], &b)];
    Cnf::with_blocks(blocks, StandardNormal::new(2)).t1(0.5).fixed_steps(STEPS)
}

fn gradient(flow: &Flow, x: &Tensor, key: &Key) -> flowline::Result<Flow> {
    let loss = |flow: &Flow| Ok(-flow.log_prob(x, key)?.mean());
    Ok(value_and_grad(loss, flow)?.1)
}

/// Workspace of a plan, the states that its loops keep, and those of the bodies that run inside it.
fn planned(plan: &flowline::backend::PlanReport) -> usize {
    fn kept(plan: &flowline::backend::PlanReport) -> usize {
        let own: usize = plan.tapes.iter().map(|&(bytes, num)| bytes * num.min(STEPS + 1)).sum();
        own + plan.bodies.iter().map(|(_, body)| kept(body)).sum::<usize>()
    }
    plan.arena_bytes + kept(plan)
}

pub fn run(iterations: usize) -> Report {
    let of = |num_threads: usize, iterations: usize, flow: fn(&Key) -> Flow| {
        on_threads(num_threads, move || differentiate(iterations, flow(&Key::new(0))))
    };
    let two = of(2, 3, flow).get("measured_bytes");
    let narrow = of(2, 3, |key| flow(key).tile(32)).get("measured_bytes");
    let report = of(1, iterations, flow);
    report.with("measured_bytes_on_2_threads", two).with("measured_bytes_on_2_threads_tile_32", narrow)
}

fn differentiate(iterations: usize, flow: Flow) -> Report {
    let mut watch = Watch::begin();
    let key = Key::new(0);
    let x = key.normal([EXAMPLES, 2]);
    let jitted = jit(|flow: Flow, x: Tensor, key: Key| gradient(&flow, &x, &key)).max_traces(1);
    let planned = planned(&jitted.plan(&(flow.clone(), x.clone(), key.clone())).unwrap());
    let before = memory::live_bytes();
    memory::reset_peak();
    for _ in 0..iterations {
        jitted.call(flow.clone(), &x, &key).unwrap();
        watch.tick();
    }
    let report = watch.end(jitted.traces());
    let measured = report.peak_bytes - before;
    let report = report.with("parameters", num_elements(&flow) as f64).with("planned_bytes", planned as f64);
    report.with("measured_bytes", measured as f64)
}

pub fn hold(report: &Report) {
    assert_eq!((report.traces, report.get("parameters")), (1, 18_448.0));
    report.at_most("planned_bytes", 8e6);
    report.at_most("measured_bytes", 8e6);
    // Each thread has a workspace of its own, of the size of a tile: smaller tiles where that counts.
    report.at_most("measured_bytes_on_2_threads_tile_32", 8e6);
}
