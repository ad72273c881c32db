//! Convolutions, summed tap by tap in f64 and rounded once: the reference for the kernels.

use crate::array::{Array, Data, Shape};
use crate::graph::Margins;

/// The last four axes of a shape, without batch axes.
fn four(shape: &Shape) -> [usize; 4] {
    *shape.last_chunk().expect("invariant: images and kernels have four axes")
}

/// The row-major index of element `at`.
fn index(s: [usize; 4], at: [usize; 4]) -> usize {
    at.iter().zip(s).fold(0, |i, (a, len)| i * len + a)
}

/// Calls `f` for each position p of the result and each tap i whose image element, `p + i - lo`, exists.
fn meet(m: Margins, out: [usize; 2], kernel: [usize; 2], x: [usize; 2], mut f: impl FnMut([[usize; 2]; 3])) {
    let at = |a: usize, p: usize, i: usize| (p + i).checked_sub(m.lo[a]).filter(|at| *at < x[a]);
    for (p, q) in (0..out[0]).flat_map(|p| (0..out[1]).map(move |q| (p, q))) {
        for (i, j) in (0..kernel[0]).flat_map(|i| (0..kernel[1]).map(move |j| (i, j))) {
            if let (Some(r), Some(s)) = (at(0, p, i), at(1, q, j)) {
                f([[p, q], [i, j], [r, s]]);
            }
        }
    }
}

/// `conv` with a result of the given shape.
pub(super) fn conv(m: Margins, turned: bool, x: &Array, w: &Array, shape: &Shape) -> Data {
    let (xs, ws, ys) = (four(x.shape()), four(w.shape()), four(shape));
    let [xn, wn, yn] = [xs, ws, ys].map(|s| s.iter().product::<usize>());
    let mut sums = vec![0.0; shape.size()];
    for (e, n) in (0..shape.size().checked_div(yn).unwrap_or(0)).flat_map(|e| (0..xs[0]).map(move |n| (e, n)))
    {
        meet(m, [ys[1], ys[2]], [ws[0], ws[1]], [xs[1], xs[2]], |[[p, q], [i, j], [r, s]]| {
            for (c, o) in (0..xs[3]).flat_map(|c| (0..ys[3]).map(move |o| (c, o))) {
                let tap = if turned { [ws[0] - 1 - i, ws[1] - 1 - j, o, c] } else { [i, j, c, o] };
                let x = x.data().get_f64(e * xn + index(xs, [n, r, s, c]));
                sums[e * yn + index(ys, [n, p, q, o])] += x * w.data().get_f64(e * wn + index(ws, tap));
            }
        });
    }
    rounded(x, &sums)
}

/// `conv_kernel` with a result of the given shape.
pub(super) fn conv_kernel(m: Margins, x: &Array, y: &Array, shape: &Shape) -> Data {
    let (xs, ys, ws) = (four(x.shape()), four(y.shape()), four(shape));
    let [xn, yn, wn] = [xs, ys, ws].map(|s| s.iter().product::<usize>());
    let mut sums = vec![0.0; shape.size()];
    for (e, n) in (0..shape.size().checked_div(wn).unwrap_or(0)).flat_map(|e| (0..xs[0]).map(move |n| (e, n)))
    {
        meet(m, [ys[1], ys[2]], [ws[0], ws[1]], [xs[1], xs[2]], |[[p, q], [i, j], [r, s]]| {
            for (c, o) in (0..xs[3]).flat_map(|c| (0..ys[3]).map(move |o| (c, o))) {
                let x = x.data().get_f64(e * xn + index(xs, [n, r, s, c]));
                let y = y.data().get_f64(e * yn + index(ys, [n, p, q, o]));
                sums[e * wn + index(ws, [i, j, c, o])] += x * y;
            }
        });
    }
    rounded(x, &sums)
}

fn rounded(like: &Array, sums: &[f64]) -> Data {
    let mut out = Data::zeros(like.dtype(), sums.len());
    sums.iter().enumerate().for_each(|(i, x)| out.set_f64(i, *x));
    out
}
