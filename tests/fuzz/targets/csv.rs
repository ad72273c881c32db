//! CSV: a table, columns that are asked for, points.
#![no_main]

use flowline::data::Points;
use flowline::io::{read_csv, read_csv_table};
use flowline_fuzz::file;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let path = file("a.csv", bytes);
    if let Ok(table) = read_csv_table(&path) {
        assert!(table.lines.is_empty() || table.data.len() % table.lines.len() == 0);
    }
    for columns in 1..4 {
        if let Ok(numbers) = read_csv(&path, columns) {
            assert_eq!(numbers.len() % columns, 0);
        }
    }
    let _ = Points::open(&path);
});
