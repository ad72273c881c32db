//! Tensor programs drawn from bytes, compiled at each level and compared with the interpreter.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flowline::fuzzing::program(bytes));
