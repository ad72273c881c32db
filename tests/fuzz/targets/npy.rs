//! `.npy` arrays: as numbers, as points, as images.
#![no_main]

use flowline::data::{ImageSet, Points};
use flowline::io::{read_npy, read_npy_header};
use flowline_fuzz::{MANY, file};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let path = file("a.npy", bytes);
    if let Ok(array) = read_npy(&path) {
        assert_eq!(array.shape.iter().product::<usize>(), array.data.len());
        assert!(array.data.len() < MANY && read_npy_header(&path).is_ok());
    }
    let _ = Points::open(&path);
    if let Ok(images) = ImageSet::open(&path) {
        let rows = images.rows(&[0, images.len() - 1]).map(|rows| rows.len());
        assert_eq!(rows.expect("an opened set can be read"), 2 * images.dim());
    }
});
