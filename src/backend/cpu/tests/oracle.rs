//! Random functions, with loops and tiles, against the reference interpreter.

use super::{Rng, run};
use crate::array::{Array, DType};
use crate::backend::cpu::Plan;
use crate::graph::tests::arbitrary::{Recipe, function};
use crate::graph::{Func, Type, interpret};
use crate::simd::Level;
use crate::transform::{Searches, batch_with, jvp, optimize, vjp};

/// Whether elements are equal, both NaN, or differ by at most `tol` times the element plus a hundredth of the
/// largest element (for terms that cancel). For functions without loops, `bounds` computes a bound for each
/// element.
fn close(got: &Array, want: &Array, tol: f64) -> bool {
    let (g, w) = (got.to_f64(), want.to_f64());
    let largest = w.iter().filter(|x| x.is_finite()).fold(1e-3f64, |m, x| m.max(x.abs()));
    let near = |g: f64, w: f64| (g - w).abs() <= tol * (w.abs() + 0.01 * largest);
    g.iter().zip(&w).all(|(&g, &w)| g == w || g.is_nan() && w.is_nan() || near(g, w))
}

#[test]
fn loops_in_lockstep_and_their_gradients_equal_the_interpreter() {
    for seed in 0..12 {
        let (f, x) = function(
            seed,
            Recipe { ops: 10 + seed as usize, float: DType::F64, loops: true, short: false, singular: false },
        );
        let mapped: Vec<bool> = (0..x.len()).map(|k| seed >> (k % 6) & 1 == 0).collect();
        let rows = 2 + seed as usize % 3;
        let many = batch_with(&f, &mapped, rows, Searches::Lockstep);
        let floats = |k: &usize| f.output_type(*k).is_float();
        let outs: Vec<usize> = (0..f.num_outputs()).filter(floats).collect();
        let back = vjp(&many, &outs, &[0, 1, 2, 3, 4, 6]).expect("none of its loops is a gradient");
        let mut rng = Rng(seed + 1);
        let args: Vec<Array> = back.input_types().iter().map(|ty| rng.array(ty)).collect();
        for g in [&back, &jvp(&back, &[0, 1, 2])] {
            let args: Vec<Array> = [&args[..], &args[..3]].concat()[..g.num_inputs()].to_vec();
            let (want, g) = (interpret(g, &args).expect("it is well formed"), optimize(g));
            for level in Level::available() {
                let got = run(&Plan::compile(&g, level), &args);
                for (k, (g, w)) in got.iter().zip(&want).enumerate() {
                    assert!(
                        close(g, w, 1e-10),
                        "output {k} of seed {seed} at {level:?}: got {g:?}, expected {w:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn random_functions_with_loops_equal_the_interpreter() {
    for seed in 0..300 {
        let float = if seed % 2 == 0 { DType::F32 } else { DType::F64 };
        let (f, x) = function(
            seed,
            Recipe {
                ops: 10 + seed as usize % 40,
                float,
                loops: seed % 3 > 0,
                short: false,
                singular: false,
            },
        );
        let want = interpret(&f, &x).expect("a random function is well formed");
        for level in Level::available() {
            let got = run(&Plan::compile(&f, level), &x);
            for (k, (g, w)) in got.iter().zip(&want).enumerate() {
                let tol = if float == DType::F32 { 1e-4 } else { 1e-11 };
                assert!(
                    close(g, w, tol),
                    "output {k} of seed {seed} at {level:?}: got {g:?}, expected {w:?}\n{f:?}"
                );
            }
        }
    }
}

/// The number of functions with short axes. `SHORT_FUNCTIONS=<n>` sets another number.
const NUM_SHORT: u64 = 1000;

/// A function, or its gradient, or the function mapped over two examples.
fn derived(f: Func, kind: u64) -> Func {
    let floats = |types: Vec<Type>| (0..types.len()).filter(|&k| types[k].is_float()).collect::<Vec<_>>();
    let (outs, wrt) = (floats(f.output_types()), floats(f.input_types()));
    match kind {
        0 => vjp(&f, &outs, &wrt).unwrap_or(f),
        1 => batch_with(&f, &vec![true; f.num_inputs()], 2, Searches::Lockstep),
        _ => f,
    }
}

#[test]
fn functions_with_axes_of_no_and_one_element_equal_the_interpreter() {
    let num = std::env::var("SHORT_FUNCTIONS").map_or(NUM_SHORT, |n| n.parse().expect("a number"));
    for seed in 0..num {
        let float = if seed % 3 == 2 { DType::F32 } else { DType::F64 };
        let recipe =
            Recipe { ops: 4 + seed as usize % 16, float, loops: seed % 4 == 0, short: true, singular: false };
        let f = derived(function(seed, recipe).0, seed % 3);
        let mut rng = Rng(seed + 1);
        let x: Vec<Array> = f.input_types().iter().map(|ty| rng.array(ty)).collect();
        let want = interpret(&f, &x).expect("a random function is well formed");
        let tol = if float == DType::F32 { 1e-4 } else { 1e-9 };
        for (level, g) in Level::available().into_iter().flat_map(|l| [(l, f.clone()), (l, optimize(&f))]) {
            let got = run(&Plan::compile(&g, level), &x);
            for (k, (g, w)) in got.iter().zip(&want).enumerate() {
                assert!(
                    close(g, w, tol),
                    "output {k} of seed {seed} at {level:?}: got {g:?}, expected {w:?}\n{f}"
                );
            }
        }
    }
}
