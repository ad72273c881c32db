//! Trees of tensors as safetensors, and the same bytes as a checkpoint.
#![no_main]

use flowline::io::load;
use flowline::tensor::Tensor;
use flowline::train::TrainedFlow;
use flowline_fuzz::{file, folder};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let path = file("model.safetensors", bytes);
    let like = vec![Tensor::from([1.0, 2.0]), Tensor::from(0u32)];
    if let Ok(tree) = load(&path, &like) {
        assert_eq!((tree[0].size(), tree[1].size()), (2, 1));
    }
    let _ = TrainedFlow::open(folder());
});
