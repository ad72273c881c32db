//! Derivatives against finite differences and against each other.

mod batch;
mod carries;
mod cond;
mod custom;
mod loops;
mod lu;
mod ops;
mod passes;
mod residuals;
mod rules;
mod sequence;
mod triangular;

use super::{jvp, vjp};
use crate::array::{Array, DType, Shape};
use crate::graph::tests::arbitrary::Draws;
use crate::graph::{Builder, Func, NodeId, Type, interpret, verify};

/// Evaluates a function; panics if it is not well formed.
pub(crate) fn eval(f: &Func, x: &[Array]) -> Vec<Array> {
    verify(f).unwrap_or_else(|e| panic!("{e}"));
    interpret(f, x).unwrap_or_else(|e| panic!("{e}"))
}

pub(crate) fn f64s(shape: impl Into<Shape>) -> Type {
    Type::array(DType::F64, shape)
}

/// A function built by a closure.
pub(crate) fn func(types: &[Type], body: impl FnOnce(&mut Builder, &[NodeId]) -> Vec<NodeId>) -> Func {
    let (mut b, x) = Builder::with_inputs(types);
    let out = body(&mut b, &x);
    b.finish(&out)
}

fn inner(a: &[Array], b: &[Array]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a.to_f64().iter().zip(b.to_f64()).map(|(x, y)| x * y).sum::<f64>()).sum()
}

fn moved(x: &[Array], dx: &[Array], wrt: &[usize], h: f64) -> Vec<Array> {
    let mut x = x.to_vec();
    for (&k, d) in wrt.iter().zip(dx) {
        for i in 0..d.data().len() {
            let v = x[k].data().get_f64(i) + h * d.data().get_f64(i);
            x[k].data_mut().set_f64(i, v);
        }
    }
    x
}

fn assert_close(got: &[Array], want: &[Array], tol: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (g, w) in got.iter().zip(want) {
        assert_eq!(g.shape(), w.shape(), "{what}");
        // Elements much smaller than the others may be differences of large numbers, so their relative error
        // is larger.
        let largest = w.to_f64().iter().fold(1e-3, |m: f64, x| m.max(x.abs()));
        for (g, w) in g.to_f64().into_iter().zip(w.to_f64()) {
            assert!((g - w).abs() <= tol * (w.abs() + 0.1 * largest), "{what}: {g} is not {w}");
        }
    }
}

/// Central differences of the float outputs along `dx`, with Richardson extrapolation; the error is O(h^4).
fn differences(f: &Func, x: &[Array], dx: &[Array], wrt: &[usize]) -> Vec<Array> {
    let floats: Vec<usize> = (0..f.num_outputs()).filter(|&k| f.output_type(k).is_float()).collect();
    let at = |h: f64| -> Vec<Vec<f64>> {
        let (p, m) = (eval(f, &moved(x, dx, wrt, h)), eval(f, &moved(x, dx, wrt, -h)));
        let difference =
            |k: &usize| p[*k].to_f64().iter().zip(m[*k].to_f64()).map(|(p, m)| (p - m) / (2.0 * h)).collect();
        floats.iter().map(difference).collect()
    };
    let (coarse, fine) = (at(2e-3), at(1e-3));
    let refine = |(c, f): (&Vec<f64>, &Vec<f64>)| c.iter().zip(f).map(|(c, f)| (4.0 * f - c) / 3.0).collect();
    let differences = coarse.iter().zip(&fine).map(refine);
    differences.zip(&floats).map(|(v, &k)| Array::from_vec(f.output_type(k).shape().clone(), v)).collect()
}

/// Checks jvp against finite differences; returns the values, the direction and the tangents.
fn check_forward(f: &Func, x: &[Array], wrt: &[usize], what: &str) -> [Vec<Array>; 3] {
    let mut draws = Draws::new(7);
    let dx: Vec<Array> = wrt.iter().map(|&k| draws.array(f.input_type(k))).collect();
    let y = eval(f, x);
    let mut out = eval(&jvp(f, wrt), &[x, &dx].concat());
    let dy = out.split_off(f.num_outputs());
    assert_eq!(out, y, "{what}: jvp keeps the values");
    assert_close(&dy, &differences(f, x, &dx, wrt), 1e-6, what);
    [y, dx, dy]
}

/// Checks jvp against finite differences, and vjp against jvp.
fn check(f: &Func, x: &[Array], wrt: &[usize], what: &str) {
    let [y, dx, dy] = check_forward(f, x, wrt, what);
    let mut draws = Draws::new(9);
    let outs: Vec<usize> = (0..f.num_outputs()).filter(|&k| f.output_type(k).is_float()).collect();
    let u: Vec<Array> = outs.iter().map(|&k| draws.array(f.output_type(k))).collect();
    let backward = vjp(f, &outs, wrt).unwrap();
    let mut out = eval(&backward, &[x, &u].concat());
    let g = out.split_off(f.num_outputs());
    assert_eq!(out, y, "{what}: vjp keeps the values");
    for (g, &k) in g.iter().zip(wrt) {
        assert_eq!(g.shape(), f.input_type(k).shape(), "{what}");
    }
    let (l, r) = (inner(&g, &dx), inner(&u, &dy));
    assert!((l - r).abs() <= 1e-11 * (1.0 + l.abs()), "{what}: <vjp u, v> = {l} but <u, jvp v> = {r}");
}

/// [`check`] for a function and for its first derivatives.
fn check_twice(f: &Func, x: &[Array], wrt: &[usize], what: &str) {
    check(f, x, wrt, what);
    let mut draws = Draws::new(11);
    let outs: Vec<usize> = (0..f.num_outputs()).filter(|&k| f.output_type(k).is_float()).collect();
    let u: Vec<Array> = outs.iter().map(|&k| draws.array(f.output_type(k))).collect();
    let dx: Vec<Array> = wrt.iter().map(|&k| draws.array(f.input_type(k))).collect();
    let with = |extra: &[Array]| [x, extra].concat();
    let all = |n: usize| wrt.iter().copied().chain(f.num_inputs()..f.num_inputs() + n).collect::<Vec<_>>();
    check(&vjp(f, &outs, wrt).unwrap(), &with(&u), &all(u.len()), &format!("vjp of {what}"));
    check(&jvp(f, wrt), &with(&dx), &all(dx.len()), &format!("jvp of {what}"));
}
