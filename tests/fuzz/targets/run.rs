//! The files beside a checkpoint: `metrics.csv` and `counters.json`, separated by a zero byte. The header is taken from
//! the run in the folder `FUZZ_RUN`.
#![no_main]

use flowline::train::{TrainedFlow, Recorded};
use flowline_fuzz::{file, folder};
use std::sync::OnceLock;

fn learned() -> &'static TrainedFlow {
    static LEARNED: OnceLock<TrainedFlow> = OnceLock::new();
    LEARNED.get_or_init(|| {
        let run = std::env::var_os("FUZZ_RUN").expect("FUZZ_RUN names the folder of a run");
        TrainedFlow::open(run).expect("a run")
    })
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let at = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    file("metrics.csv", &bytes[..at]);
    file("counters.json", bytes.get(at + 1..).unwrap_or_default());
    let Ok(recorded) = Recorded::read(folder(), &learned().header, u64::MAX) else { return };
    assert!(recorded.phases.len() <= learned().header.config.phases.len());
});
