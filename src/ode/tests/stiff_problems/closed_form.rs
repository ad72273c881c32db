//! Problems with a closed form: the heat equation, and Prothero and Robinson's.

use super::{ALL, assert_falls, relative};
use crate::ode::{Method, Ode, SaveAt, Sparsity};
use std::f64::consts::PI;

/// Prothero and Robinson: the solution is sin(t + pi/4) for every `rate`.
pub fn prothero_robinson(rate: f64) -> impl Fn(f64, &f64) -> f64 + Clone {
    move |t, y| rate * (y - (t + QUARTER).sin()) + (t + QUARTER).cos()
}
pub const QUARTER: f64 = std::f64::consts::FRAC_PI_4;

/// The largest relative error at the end of a step.
fn prothero_robinson_error(rate: f64, rtol: f64) -> f64 {
    let ode = Ode::new(prothero_robinson(rate)).method(Method::Rodas5P).rtol(rtol).atol(1e-2 * rtol);
    let solution = ode.save_at(SaveAt::steps().and_t1()).solve(0.0, 1.0, QUARTER.sin()).unwrap();
    let exact: Vec<f64> = solution.ts.iter().map(|t| (t + QUARTER).sin()).collect();
    relative(&solution.ys, &exact)
}

#[test]
fn prothero_and_robinson() {
    assert_falls("Prothero-Robinson, -1e3", ALL, 10.0, |rtol| prothero_robinson_error(-1e3, rtol));
    // The error is 3e-9 at rtol = 1e-3 and 1e-11 at 1e-10: far below rtol, and it decreases more slowly than
    // rtol.
    let errors = [1e-3, 1e-6, 1e-8, 1e-10].map(|rtol| prothero_robinson_error(-1e6, rtol) / rtol);
    assert!(errors.iter().all(|&ratio| ratio < 1.0), "{errors:.3?}");
}

/// The heat equation on `side` inner points of (0, 1) or on `side` x `side` inner points of the unit square.
/// u is 0 at the boundary.
fn heat(side: usize, u: &[f64], du: &mut [f64]) {
    let rate = ((side + 1) as f64).powi(2);
    let is_square = u.len() > side;
    for i in 0..u.len() {
        let column = i % side;
        let west = if column > 0 { u[i - 1] } else { 0.0 };
        let east = if column + 1 < side { u[i + 1] } else { 0.0 };
        du[i] = rate * (west - 2.0 * u[i] + east);
        if is_square {
            let south = if i >= side { u[i - side] } else { 0.0 };
            let north = if i + side < u.len() { u[i + side] } else { 0.0 };
            du[i] += rate * (south - 2.0 * u[i] + north);
        }
    }
}

/// The largest relative error at t = 0.1, where the exact solution is the start times `factor`.
fn heat_error(
    method: Method,
    sparsity: Option<Sparsity>,
    (side, is_square, factor): (usize, bool, f64),
    rtol: f64,
) -> f64 {
    let wave: Vec<f64> = (1..=side).map(|i| (PI * i as f64 / (side + 1) as f64).sin()).collect();
    let u0: Vec<f64> =
        if is_square { wave.iter().flat_map(|y| wave.iter().map(move |x| x * y)).collect() } else { wave };
    let exact: Vec<f64> = u0.iter().map(|u| u * factor).collect();
    let ode = Ode::in_place(move |_t: f64, u: &[f64], du: &mut [f64]| heat(side, u, du));
    let ode = ode.method(method).rtol(rtol).atol(1e-2 * rtol);
    let ode = match sparsity {
        Some(sparsity) => ode.jacobian_sparsity(sparsity),
        None => ode,
    };
    relative(&ode.solve(0.0, 0.1, u0).unwrap().y1, &exact)
}

const LINE: (usize, bool, f64) = (64, false, 0.3727794479111586435);
const SQUARE: (usize, bool, f64) = (32, true, 0.13911831412230265342);

#[test]
fn heat_by_linear_systems() {
    let band = || Some(Sparsity::banded(1, 1));
    assert_falls("heat on a line", ALL, 1.0, |rtol| heat_error(Method::Rodas5P, band(), LINE, rtol));
    let side = SQUARE.0;
    let neighbors = move |i: usize| {
        [(i, i), (i, i + side), (i + side, i)].into_iter().chain(
            // The end of a row and the start of the next row are not neighbors.
            [(i, i + 1), (i + 1, i)].into_iter().filter(move |_| !(i + 1).is_multiple_of(side)),
        )
    };
    let entries = (0..side * side).flat_map(neighbors).filter(move |&(i, j)| i.max(j) < side * side);
    let pattern = || Some(Sparsity::pattern(entries.clone()));
    assert_falls("heat on a square", 3..=8, 1.0, |rtol| heat_error(Method::Rodas5P, pattern(), SQUARE, rtol));
}

/// The number of steps of order 2 is proportional to rtol^(-1/3), so the error is proportional to rtol^(2/3):
/// 0.24 rtol^(2/3) on the line, 0.57 rtol^(2/3) on the square. On the square it is above 100 rtol at
/// rtol = 1e-7.
#[test]
fn heat_without_a_jacobian() {
    for (name, problem) in [("line", LINE), ("square", SQUARE)] {
        assert_falls(&format!("heat on a {name} by Rkc2"), 3..=6, 100.0, |rtol| {
            let error = heat_error(Method::Rkc2, None, problem, rtol);
            assert!(error < rtol.powf(2.0 / 3.0), "{name} at {rtol:e}: {error:e}");
            error
        });
    }
}
