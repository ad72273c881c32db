//! Many different functions and shapes: their compiled programs are bounded, counted and released.

use super::watch::{Live, Report, Watch, on_threads};
use flowline::memory;
use flowline::nn::prelude::*;

pub fn run(iterations: usize) -> Report {
    on_threads(1, || compile(iterations))
}

fn compile(iterations: usize) -> Report {
    let mut watch = Watch::begin();
    let before = Live::now();
    let same = jit(|x: Tensor| (x.exp() * 2.0).sum());
    for i in 0..iterations {
        let x = Tensor::zeros([i + 1]);
        // A new function, dropped with its program; one function on another shape; operations run eagerly.
        assert_eq!(jit(move |x: Tensor| (x + i as f64).max()).call(&x).unwrap().item(), i as f64);
        assert_eq!(same.call(&x).unwrap().item(), 2.0 * (i + 1) as f64);
        assert_eq!((&x + 1.0).max().item(), 1.0);
        watch.tick();
    }
    let kept = memory::caches();
    let report = watch.end(same.num_traces());
    memory::clear_caches();
    let (emptied, cleared) = (memory::caches(), Live::now());
    let compiles = |x: usize| {
        let before = memory::caches().compiles;
        same.call(Tensor::zeros([x])).unwrap();
        (memory::caches().compiles - before) as f64
    };
    let again = [compiles(iterations), compiles(iterations)];
    // A retrace after `clear_caches` does not count against `max_traces`, because nothing has changed.
    let once = jit(|x: Tensor| x + 1.0).max_traces(1);
    once.call(1.0).unwrap();
    memory::clear_caches();
    once.call(1.0).unwrap();
    let refused = once.call(1.0f32).is_err();
    let kb = |live: &Live| (live.heap_bytes - before.heap_bytes) as f64 / 1e3;
    let measured = vec![
        ("programs", kept.programs as f64),
        ("plans", kept.plans as f64),
        ("evictions", report.evictions as f64),
        ("left_after_clear", (emptied.programs + emptied.plans) as f64),
        ("bytes_after_clear", cleared.bytes as f64 - before.bytes as f64),
        ("heap_kb_kept", kb(&report.at_end)),
        ("heap_kb_after_clear", kb(&cleared)),
        ("compiles_next", again[0]),
        ("compiles_after_next", again[1]),
        ("traces_after_clear", once.num_traces() as f64),
        ("refused_after_clear", f64::from(refused)),
    ];
    Report { measured, ..report }
}

pub fn hold(report: &Report) {
    let n = report.iterations as f64;
    assert_eq!(report.traces, report.iterations);
    report.at_most("programs", 16.0);
    report.at_most("plans", 512.0);
    // At least the programs of one function beyond 16, and the plans beyond 512.
    assert!(
        report.get("evictions") >= (n - 16.0) + (2.0 * n - 512.0),
        "{} evictions",
        report.get("evictions")
    );
    report.at_most("heap_kb_kept", 8_000.0);
    report.at_most("left_after_clear", 0.0);
    report.at_most("bytes_after_clear", 0.0);
    report.at_most("heap_kb_after_clear", 50.0);
    assert_eq!((report.get("compiles_next"), report.get("compiles_after_next")), (1.0, 0.0));
    assert_eq!((report.get("traces_after_clear"), report.get("refused_after_clear")), (2.0, 1.0));
}
