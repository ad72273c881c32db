//! Image sets and labels as IDX, compressed or not, within a memory budget and over it.
#![no_main]

use flowline::data::ImageSet;
use flowline_fuzz::file;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let path = file("a-idx3-ubyte", bytes);
    for budget in [1 << 20, 16] {
        let Ok(images) = ImageSet::open_within(&path, budget) else { continue };
        let rows = images.rows(&[images.len() - 1, 0]).map(|rows| rows.len());
        assert_eq!(rows.expect("an opened set can be read"), 2 * images.dim());
        let _ = images.with_labels(&path);
    }
});
