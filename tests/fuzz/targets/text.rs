//! The text form of graphs: a graph that parses prints as text that parses to the same graph.
#![no_main]

use flowline::__internal::graph::{Func, verify};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(func) = Func::parse(text) else { return };
    verify(&func).expect("a parsed graph is well formed");
    let printed = func.to_string();
    if !printed.contains("digest=") {
        let again = Func::parse(&printed).unwrap_or_else(|e| panic!("{e}\n{printed}"));
        // Compared as text: functions with constant arrays are never equal.
        assert_eq!(again.to_string(), printed);
    }
});
