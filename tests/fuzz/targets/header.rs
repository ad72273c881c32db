//! The header of a run's checkpoint; the rest of the file is valid.
#![no_main]

use flowline::io::write_checkpoint;
use flowline::tensor::Tensor;
use flowline::train::TrainedFlow;
use flowline_fuzz::folder;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(header) = serde_json::from_slice::<serde_json::Value>(bytes) else { return };
    let update = vec![("update".to_owned(), Tensor::from(3u32))];
    let path = folder().join("model.safetensors");
    write_checkpoint(&path, &header, &update[0].1).expect("room for a file");
    let _ = TrainedFlow::open(folder());
});
