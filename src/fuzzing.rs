//! A program generated from bytes, for the fuzzer (`tests/fuzz`). It is compiled only with `cfg(fuzzing)`.
//!
//! It is part of the library because it uses the generator of functions of the unit tests, which is private.

use crate::array::{Array, DType};
use crate::backend::{Backend, available, run_on};
use crate::graph::tests::arbitrary::{Draws, Recipe, drawn};
use crate::graph::{Func, interpret};
use crate::transform::{Searches, batch_with, jvp, optimize, vjp};

/// The allowed difference of an element, relative to its magnitude plus a hundredth of the largest magnitude in
/// its array.
const TOLERANCE: f64 = 1e-7;

/// Generates a function from bytes, leaves it as it is or applies jvp, vjp or batching, and compares its programs on each
/// backend with the interpreter.
///
/// # Panics
/// If the results differ, or a function is not valid.
pub fn program(bytes: &[u8]) {
    let mut draws = Draws::of_bytes(bytes);
    let [loops, short] = [0; 2].map(|_| draws.below(2) == 0);
    let recipe = Recipe { ops: 1 + draws.below(30), float: DType::F64, loops, short, singular: false };
    let derivation = draws.below(4);
    let (f, _) = drawn(&mut draws, recipe);
    let floats = |k: &usize| f.input_type(*k).is_float();
    let wrt: Vec<usize> = (0..f.num_inputs()).filter(floats).collect();
    let outs: Vec<usize> = (0..f.num_outputs()).filter(|&k| f.output_type(k).is_float()).collect();
    let f = match derivation {
        0 => f,
        1 => jvp(&f, &wrt),
        2 => vjp(&f, &outs, &wrt).unwrap_or(f),
        _ => batch_with(&f, &vec![true; f.num_inputs()], 2, Searches::Lockstep),
    };
    let x: Vec<Array> = f.input_types().iter().map(|ty| draws.array(ty)).collect();
    let want = interpret(&f, &x).expect("a drawn function is well formed");
    for backend in available() {
        for g in [&f, &optimize(&f)] {
            compare(g, &x, &want, &*backend);
        }
    }
}

fn compare(f: &Func, x: &[Array], want: &[Array], backend: &dyn Backend) {
    let (got, _) = run_on(backend, f, &x.iter().collect::<Vec<_>>());
    for (k, (g, w)) in got.iter().zip(want).enumerate() {
        let largest = w.to_f64().into_iter().filter(|x| x.is_finite()).fold(1e-3, |m: f64, x| m.max(x.abs()));
        for (g, w) in g.to_f64().into_iter().zip(w.to_f64()) {
            let near = (g - w).abs() <= TOLERANCE * (w.abs() + 0.01 * largest);
            assert!(
                near || g == w || g.is_nan() && w.is_nan(),
                "output {k} on {}: {g} is not {w}\n{f}",
                backend.name()
            );
        }
    }
}
