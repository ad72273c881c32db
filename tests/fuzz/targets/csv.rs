//! CSV: a table, its columns by name, points.
#![no_main]

use flowline::data::Points;
use flowline::io::read_csv;
use flowline_fuzz::file;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let path = file("a.csv", bytes);
    if let Ok(table) = read_csv(&path) {
        assert_eq!(table.data.len(), table.lines.len() * table.columns.len());
        for name in &table.columns {
            assert_eq!(table.column(name).unwrap().len(), table.lines.len());
        }
    }
    let _ = Points::open(&path);
});
