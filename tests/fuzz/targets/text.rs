//! The text form of graphs: what is read prints as something that reads back as the same.
#![no_main]

use flowline::__internal::graph::{Func, verify};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(func) = Func::parse(text) else { return };
    verify(&func).expect("what is read is well formed");
    let printed = func.to_string();
    if !printed.contains("digest=") {
        let again = Func::parse(&printed).unwrap_or_else(|e| panic!("{e}\n{printed}"));
        // As text: a constant array is itself and no other, so functions that hold one are never equal.
        assert_eq!(again.to_string(), printed);
    }
});
