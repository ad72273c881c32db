//! The Brusselator with diffusion on a line and on a square: sparse Jacobians.

use super::brusselator_values::*;
use super::{ALL, assert_falls, relative};
use crate::ode::{Method, Ode, Sparsity, VectorField};
use std::f64::consts::TAU;

/// The number of inner points of the line. u and v alternate in y; u = 1 and v = 3 at both ends.
const POINTS: usize = 40;

fn line(_t: f64, y: &[f64], dy: &mut [f64]) {
    let rate = ((POINTS + 1) as f64).powi(2) / 50.0;
    for i in 0..POINTS {
        let around = |at: usize, end: f64| {
            let left = if i > 0 { y[2 * i - 2 + at] } else { end };
            let right = if i + 1 < POINTS { y[2 * i + 2 + at] } else { end };
            rate * (left - 2.0 * y[2 * i + at] + right)
        };
        let (u, v) = (y[2 * i], y[2 * i + 1]);
        dy[2 * i] = 1.0 + u * u * v - 4.0 * u + around(0, 1.0);
        dy[2 * i + 1] = 3.0 * u - u * u * v + around(1, 3.0);
    }
}

#[test]
fn on_a_line_with_a_banded_jacobian() {
    let wave = |i: usize| (TAU * (i + 1) as f64 / (POINTS + 1) as f64).sin();
    let y0: Vec<f64> = (0..POINTS).flat_map(|i| [1.0 + wave(i), 3.0]).collect();
    let exact: Vec<f64> = LINE_U.iter().zip(&LINE_V).flat_map(|(&u, &v)| [u, v]).collect();
    assert_falls("Brusselator on a line", ALL, 10.0, |rtol| {
        let ode = Ode::in_place(line).method(Method::Rodas5P).jacobian_sparsity(Sparsity::banded(2, 2));
        relative(&ode.rtol(rtol).atol(1e-2 * rtol).solve(0.0, 10.0, y0.clone()).unwrap().y1, &exact)
    });
}

/// The square is periodic and has SIDE x SIDE points. y holds all u, row by row, then all v.
const SIDE: usize = 8;
const AREA: usize = SIDE * SIDE;
const DIFFUSION: f64 = 0.1 * AREA as f64;
/// The time at which the source in the disc is switched on.
const SWITCHED: f64 = 1.1;

/// The four neighbors of a point.
fn neighbors(i: usize) -> [usize; 4] {
    let (row, column) = (i / SIDE, i % SIDE);
    let next = |k: usize| (k + 1) % SIDE;
    let before = |k: usize| (k + SIDE - 1) % SIDE;
    [
        next(row) * SIDE + column,
        before(row) * SIDE + column,
        row * SIDE + next(column),
        row * SIDE + before(column),
    ]
}

fn square(t: f64, y: &[f64], dy: &mut [f64]) {
    let (u, v) = y.split_at(AREA);
    let (du, dv) = dy.split_at_mut(AREA);
    for i in 0..AREA {
        let around = |w: &[f64]| neighbors(i).iter().map(|&j| w[j]).sum::<f64>() - 4.0 * w[i];
        let (row, column) = ((i / SIDE) as f64 / SIDE as f64, (i % SIDE) as f64 / SIDE as f64);
        let is_fed = t >= SWITCHED && (column - 0.3).powi(2) + (row - 0.6).powi(2) <= 0.01;
        let reaction = u[i] * u[i] * v[i];
        du[i] = 1.0 + reaction - 4.4 * u[i] + DIFFUSION * around(u) + if is_fed { 5.0 } else { 0.0 };
        dv[i] = 3.4 * u[i] - reaction + DIFFUSION * around(v);
    }
}

fn start() -> Vec<f64> {
    let at = |i: usize| i as f64 / SIDE as f64;
    let u = (0..AREA).map(|i| 22.0 * at(i / SIDE) * (1.0 - at(i / SIDE)).powf(1.5));
    let v = (0..AREA).map(|i| 27.0 * at(i % SIDE) * (1.0 - at(i % SIDE)).powf(1.5));
    u.chain(v).collect()
}

/// The values at all points. They no longer depend on the start, so they have the symmetry of the source.
fn end() -> Vec<f64> {
    let (rows, columns) = ([0, 1, 0, 2, 3, 4, 3, 2], [0, 1, 2, 2, 1, 0, 3, 3]);
    [SQUARE_U, SQUARE_V]
        .iter()
        .flat_map(|w| rows.map(|row| columns.map(|column| w[row][column])))
        .flatten()
        .collect()
}

fn pattern() -> Sparsity {
    let at = |i: usize| {
        let around = neighbors(i).into_iter().chain([i]);
        around.flat_map(move |j| [(i, j), (AREA + i, AREA + j)]).chain([(i, AREA + i), (AREA + i, i)])
    };
    Sparsity::pattern((0..AREA).flat_map(at))
}

fn on_square(rtol: f64) -> Ode<'static, Vec<f64>, impl VectorField<Vec<f64>> + Clone> {
    let ode = Ode::in_place(square).method(Method::Rodas5P).discontinuities(&[SWITCHED]);
    ode.rtol(rtol).atol(1e-2 * rtol)
}

#[test]
fn on_a_square_with_a_pattern_and_a_discontinuity() {
    let exact = end();
    assert_falls("Brusselator on a square", ALL, 10.0, |rtol| {
        let ode = on_square(rtol).jacobian_sparsity(pattern());
        relative(&ode.solve(0.0, 11.5, start()).unwrap().y1, &exact)
    });
}

#[test]
fn a_pattern_gives_the_bits_of_the_dense_jacobian() {
    let (dense, sparse) = (on_square(1e-4), on_square(1e-4).jacobian_sparsity(pattern()));
    let [dense, sparse] = [dense, sparse].map(|ode| ode.solve(0.0, 3.0, start()).unwrap());
    assert_eq!(dense.y1, sparse.y1);
    // A sparse Jacobian takes one evaluation per color, a dense one per component.
    let colors = 1 + (2 * AREA as u64)
        - (dense.stats.num_fn_evals - sparse.stats.num_fn_evals) / dense.stats.num_jac_evals;
    assert!(colors < 20, "{colors}");
    assert_eq!(dense.stats.num_steps, sparse.stats.num_steps);
    let given = on_square(1e-4).jacobian_sparsity(pattern()).time_derivative(|_t, _y, f_t| f_t.fill(0.0));
    let given = given.jacobian(|_t, y, jacobian| {
        for i in 0..AREA {
            for j in neighbors(i) {
                (jacobian[(i, j)], jacobian[(AREA + i, AREA + j)]) = (DIFFUSION, DIFFUSION);
            }
            let (u, v) = (y[i], y[AREA + i]);
            jacobian[(i, i)] = 2.0 * u * v - 4.4 - 4.0 * DIFFUSION;
            (jacobian[(i, AREA + i)], jacobian[(AREA + i, i)]) = (u * u, 3.4 - 2.0 * u * v);
            jacobian[(AREA + i, AREA + i)] = -u * u - 4.0 * DIFFUSION;
        }
    });
    let given = given.solve(0.0, 3.0, start()).unwrap();
    let difference = relative(&given.y1, &dense.y1);
    assert!(difference < 1e-7, "{difference:e}");
}
