//! Attention over hundreds of nodes with features per edge, initialized and run forward.
//!
//! The edge features, [4, n, n, 128], are the largest array that is needed: 351 MB for 414 nodes, 537 MB for 512. An
//! initializer or a layer that makes a few copies of that size, or of the products of heads and features, runs out of
//! memory.

use super::watch::{Report, Watch};
use flowline::memory;
use flowline::nn::MultiHeadAttention;
use flowline::nn::extra::AttentionOptions;
use flowline::nn::prelude::*;

const GRAPHS: usize = 4;
const WIDTH: usize = 128;
const HEADS: usize = 8;
const LARGEST: usize = 512;

fn attend(key: &Key, x: &Tensor, edges: &Tensor) -> Tensor {
    let [a, b] = key.split();
    let attention = MultiHeadAttention::new(WIDTH, HEADS, &a).with_edges(WIDTH, &b);
    attention.forward(x, AttentionOptions { edges: Some(edges), ..AttentionOptions::default() })
}

/// Values in [-1, 1), generated in place: sampling with a key would need several times the memory.
fn numbers<const N: usize>(shape: [usize; N]) -> Tensor {
    let len = shape.iter().product::<usize>();
    let number = |i: usize| ((i as u32).wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 23) as f32 - 1.0;
    Tensor::from_vec(shape, (0..len).map(number).collect())
}

/// Peak bytes of `f`, divided by the bytes of the edges.
fn peak(edges: &Tensor, f: impl FnOnce() -> Tensor) -> (f64, Tensor) {
    memory::reset_peak();
    let y = f();
    (memory::peak_bytes() as f64 / edges.array().bytes() as f64, y)
}

pub fn run(iterations: usize) -> Report {
    let mut watch = Watch::begin();
    let key = Key::new(0);
    let (mut measured, mut traces, mut peak_bytes) = (Vec::new(), 0, 0);
    let names = [
        (414, ["planned_over_live_414", "jitted_over_edges_414", "eager_over_edges_414", "apart_414"]),
        (LARGEST, ["planned_over_live_512", "jitted_over_edges_512", "eager_over_edges_512", "apart_512"]),
    ];
    for (n, names) in names {
        let (x, edges) = (numbers([GRAPHS, n, WIDTH]), numbers([GRAPHS, n, n, WIDTH]));
        let jitted = jit(|key: Key, x: Tensor, edges: Tensor| attend(&key, &x, &edges)).max_traces(1);
        let plan = jitted.plan(&(key.clone(), x.clone(), edges.clone())).unwrap();
        let planned = plan.arena_bytes as f64 / plan.arena_bytes_live as f64;
        for i in 0..iterations {
            let (of_jitted, y) = peak(&edges, || jitted.call(&key, &x, &edges).unwrap());
            peak_bytes = peak_bytes.max(memory::peak_bytes());
            memory::clear_caches();
            let (of_eager, z) = peak(&edges, || attend(&key, &x, &edges));
            peak_bytes = peak_bytes.max(memory::peak_bytes());
            let apart = (y - z).abs().max().item();
            if i == 0 {
                measured.extend(names.into_iter().zip([planned, of_jitted, of_eager, apart]));
            }
            if n == LARGEST {
                watch.tick();
            }
        }
        traces += jitted.num_traces();
    }
    Report { peak_bytes, measured, ..watch.end(traces) }
}

pub fn hold(report: &Report) {
    for n in [414, 512] {
        report.at_most(&format!("planned_over_live_{n}"), 1.2);
        report.at_most(&format!("jitted_over_edges_{n}"), 3.0);
        report.at_most(&format!("eager_over_edges_{n}"), 4.0);
        report.at_most(&format!("apart_{n}"), 1e-4);
    }
}
