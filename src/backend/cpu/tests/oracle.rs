//! Random functions, loops and tiles included, against the reference interpreter.

use super::run;
use crate::array::{Array, DType};
use crate::backend::cpu::Plan;
use crate::graph::arbitrary::{Recipe, function};
use crate::graph::interpret;
use crate::simd::Level;

/// Whether the elements agree to `tol` of the largest, and in what is not finite.
fn close(got: &Array, want: &Array, tol: f64) -> bool {
    let (g, w) = (got.to_f64(), want.to_f64());
    let scale = w.iter().filter(|x| x.is_finite()).fold(1.0f64, |m, x| m.max(x.abs()));
    g.iter().zip(&w).all(|(g, w)| g == w || g.is_nan() && w.is_nan() || (g - w).abs() <= tol * scale)
}

#[test]
fn random_functions_with_loops_equal_the_interpreter() {
    for seed in 0..300 {
        let float = if seed % 2 == 0 { DType::F32 } else { DType::F64 };
        let (f, x) = function(seed, Recipe { ops: 10 + seed as usize % 40, float, loops: seed % 3 > 0 });
        let want = interpret(&f, &x).expect("a drawn function is well formed");
        for level in Level::available() {
            let got = run(&Plan::compile(&f, level), &x);
            for (k, (g, w)) in got.iter().zip(&want).enumerate() {
                let tol = if float == DType::F32 { 1e-4 } else { 1e-11 };
                assert!(close(g, w, tol), "output {k} of seed {seed} at {level:?}: {g:?} is not {w:?}\n{f:?}");
            }
        }
    }
}
