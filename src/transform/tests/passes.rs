//! Passes keep the meaning.

use super::*;
use crate::graph::arbitrary::{Recipe, function};
use crate::graph::{BinaryOp, Op, ReduceOp, UnaryOp};
use crate::transform::{erase_stop_gradient, simplify};

/// Equal elements, whatever the signs of zeros; NaN equals NaN; relative difference up to `tol`.
pub(super) fn assert_same(got: &[Array], want: &[Array], tol: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (k, (g, w)) in got.iter().zip(want).enumerate() {
        assert_eq!((g.shape(), g.dtype()), (w.shape(), w.dtype()), "{what}");
        for (g, w) in g.to_f64().into_iter().zip(w.to_f64()) {
            let close = (g - w).abs() <= tol * w.abs().max(1.0);
            assert!(g == w || close || (g.is_nan() && w.is_nan()), "{what}, output {k}: {g} is not {w}");
        }
    }
}

/// Functions of every op and loop, and gradients of them.
pub(super) fn samples() -> impl Iterator<Item = (String, Func, Vec<Array>)> {
    (0..300u64).flat_map(|seed| {
        let float = if seed % 3 == 0 { DType::F32 } else { DType::F64 };
        let recipe = Recipe { ops: 10 + seed as usize % 30, float, loops: seed % 2 == 0 };
        let (f, x) = function(seed, recipe);
        let outs: Vec<usize> = (0..f.num_outputs()).filter(|&k| f.output_type(k).is_float()).collect();
        let wrt = [0, 1, 2, 3, 4, 6];
        let g = vjp(&f, &outs, &wrt).expect("a first derivative");
        let mut draws = Draws::new(seed + 1000);
        let u: Vec<Array> = outs.iter().map(|&k| draws.array(f.output_type(k))).collect();
        let dx: Vec<Array> = wrt.iter().map(|&k| draws.array(f.input_type(k))).collect();
        let (gx, hx) = ([&x[..], &u].concat(), [&x[..], &u, &dx].concat());
        let h = jvp(&g, &wrt);
        [
            (format!("seed {seed}"), f, x),
            (format!("gradient, seed {seed}"), g, gx),
            (format!("hessian, seed {seed}"), h, hx),
        ]
    })
}

#[test]
fn random_functions_have_right_gradients() {
    for seed in 0..200 {
        let (f, x) = function(seed, Recipe { ops: 8, float: DType::F64, loops: false });
        let outs: Vec<usize> = (0..f.num_outputs()).filter(|&k| f.output_type(k).is_float()).collect();
        let wrt = [0, 1, 2, 3, 4, 6];
        let mut draws = Draws::new(seed);
        let u: Vec<Array> = outs.iter().map(|&k| draws.array(f.output_type(k))).collect();
        let dx: Vec<Array> = wrt.iter().map(|&k| draws.array(f.input_type(k))).collect();
        let g = eval(&vjp(&f, &outs, &wrt).unwrap(), &[&x[..], &u].concat()).split_off(f.num_outputs());
        let dy = eval(&jvp(&f, &wrt), &[&x[..], &dx].concat()).split_off(f.num_outputs());
        let (l, r) = (inner(&g, &dx), inner(&u, &dy));
        assert!((l - r).abs() <= 1e-10 * (1.0 + l.abs()), "seed {seed}: {l} is not {r}");
    }
}

#[test]
fn simplification_keeps_the_meaning() {
    let (mut before, mut after) = (0, 0);
    for (what, f, x) in samples() {
        let s = simplify(&f);
        before += f.nodes().len();
        after += s.nodes().len();
        // sums of equal terms are rounded once; all else keeps its bits
        let tol = if f.input_type(0).dtype() == DType::F32 { 1e-5 } else { 1e-13 };
        assert_same(&eval(&s, &x), &eval(&f, &x), tol, &what);
        assert_eq!(simplify(&s), s, "{what}: a fixpoint");
    }
    assert!(after * 10 < before * 9, "{before} nodes became {after}");
}
