//! Jacobians: a pattern that is too narrow and a wrong entry are named, other Jacobians are accepted; and
//! differences take about as many steps as dual numbers.

use super::draw::{Draw, num_cases};
use crate::ode::*;

/// Two components per cell, which diffuse and react (the Brusselator), interleaved.
fn brusselator(_t: f64, y: &[f64], dy: &mut [f64]) {
    let cells = y.len() / 2;
    let at = |i: usize, k: usize, end: f64| if i < cells { y[2 * i + k] } else { end };
    for i in 0..cells {
        let (u, v) = (y[2 * i], y[2 * i + 1]);
        let spread = |k: usize, end: f64| {
            let left = i.checked_sub(1).map_or(end, |i| at(i, k, end));
            50.0 * (left - 2.0 * y[2 * i + k] + at(i + 1, k, end))
        };
        dy[2 * i] = 1.0 + u * u * v - 4.0 * u + spread(0, 1.0);
        dy[2 * i + 1] = 3.0 * u - u * u * v + spread(1, 3.0);
    }
}

#[test]
fn a_band_that_is_too_narrow_is_named() {
    let y0: Vec<f64> =
        (0..60).map(|i| if i % 2 == 0 { 1.0 + 0.1 * f64::from(i).sin() } else { 3.0 }).collect();
    let solve = |lower, upper| {
        let ode = Ode::in_place(brusselator).method(Method::Rodas5P);
        ode.jacobian_sparsity(Sparsity::banded(lower, upper)).solve(0.0, 0.1, y0.clone())
    };
    for (lower, upper) in [(2, 2), (3, 2), (2, 5), (59, 59)] {
        solve(lower, upper).unwrap();
    }
    for (lower, upper) in [(1, 1), (2, 1), (1, 2), (0, 0), (2, 0)] {
        let error = solve(lower, upper).unwrap_err();
        let SolveError::Config(ConfigError::SparsityTooNarrow { row, column, difference, .. }) = error else {
            panic!("{error}")
        };
        assert!(row > column + lower || column > row + upper, "({row}, {column}) of ({lower}, {upper})");
        assert!(row.abs_diff(column) <= 2 && difference != 0.0, "({row}, {column}): {difference}");
    }
    let text = solve(1, 1).unwrap_err().to_string();
    assert!(text.starts_with("`jacobian_sparsity` leaves out entry (") && text.contains("= 50"), "{text}");
}

#[test]
fn a_wrong_entry_of_the_jacobian_is_named_and_an_inexact_one_is_not() {
    let solve = |entry: f64| {
        let ode = Ode::new(|_t, y: &[f64; 2]| [-y[0] + y[1], -y[1]]).method(Method::Rodas5P);
        let ode = ode.jacobian(move |_t, _y, jacobian| {
            (jacobian[(0, 0)], jacobian[(0, 1)], jacobian[(1, 1)]) = (-1.0, entry, -1.0);
        });
        ode.solve(0.0, 1.0, [1.0, 1.0])
    };
    for good in [1.0, 1.05, 0.95] {
        solve(good).unwrap();
    }
    for wrong in [2.0, 0.5, -1.0, 0.0, 1e6] {
        let error = solve(wrong).unwrap_err();
        let SolveError::Config(ConfigError::WrongJacobian { row: 0, column: 1, given, difference, .. }) =
            error
        else {
            panic!("{error}")
        };
        assert!(given == wrong && (difference - 1.0).abs() < 1e-5, "{given}, {difference}");
    }
    let text = solve(2.0).unwrap_err().to_string();
    assert!(text.starts_with("`jacobian` gives df[0]/dy[1] = 2.0 at t=0"), "{text}");
}

#[test]
fn the_comparison_takes_one_evaluation_and_changes_no_bit() {
    let y0: Vec<f64> = (0..60).map(|i| if i % 2 == 0 { 1.0 } else { 3.0 }).collect();
    let solve = |sparsity: Option<Sparsity>| {
        let ode = Ode::in_place(brusselator).method(Method::Rodas5P);
        match sparsity {
            Some(sparsity) => ode.jacobian_sparsity(sparsity),
            None => ode,
        }
        .solve(0.0, 0.1, y0.clone())
        .unwrap()
    };
    let all = solve(Some(Sparsity::pattern((0..60).flat_map(|i| (0..60).map(move |j| (i, j))))));
    let but_one = solve(Some(Sparsity::pattern(
        (0..60).flat_map(|i| (0..60).map(move |j| (i, j))).filter(|&entry| entry != (59, 0)),
    )));
    // Both patterns take 60 evaluations a Jacobian or one less.
    assert_eq!(all.y1, but_one.y1);
    assert_eq!(all.y1, solve(None).y1);
    assert_eq!(all.stats.num_fn_evals, solve(None).stats.num_fn_evals);
}

/// A smooth or rough function of one number, and its derivative.
fn shape(kind: usize, x: f64) -> [f64; 2] {
    match kind {
        0 => [x, 1.0],
        1 => [x * x, 2.0 * x],
        2 => [x * x * x, 3.0 * x * x],
        3 => [x.abs(), if x < 0.0 { -1.0 } else { 1.0 }],
        4 => [x.max(0.0), if x > 0.0 { 1.0 } else { 0.0 }],
        5 => [x.abs().sqrt(), if x == 0.0 { 0.0 } else { 0.5 * x.signum() / x.abs().sqrt() }],
        6 => [x.signum(), 0.0],
        7 => [x.sin(), x.cos()],
        8 => [(x / 1e3).exp(), 1e-3 * (x / 1e3).exp()],
        _ => [1.0 / (1.0 + x * x), -2.0 * x / (1.0 + x * x).powi(2)],
    }
}

#[test]
fn exact_jacobians_and_patterns_of_any_field_raise_no_alarm() {
    let (mut draw, mut kinds) = (Draw(23), [0; 10]);
    for case in 0..num_cases(3000) {
        let n = 1 + draw.below(6);
        let power = [1.0, 8.0, 100.0, 290.0][draw.below(4)];
        let scale = draw.log_uniform(10.0_f64.powf(-power), 10.0_f64.powf(power));
        // Each entry: a shape or nothing, with a coefficient; components may be 0, and differ in size.
        let mut entries = Vec::new();
        for i in 0..n {
            for j in 0..n {
                if draw.below(3) > 0 {
                    let kind = draw.below(10);
                    kinds[kind] += 1;
                    let size = draw.log_uniform(1e-6, 1e6) * if draw.coin() { -1.0 } else { 1.0 };
                    entries.push((i, j, kind, size));
                }
            }
        }
        let y0: Vec<f64> = (0..n)
            .map(|_| match draw.below(4) {
                0 => 0.0,
                1 => draw.uniform(-1.0, 1.0),
                2 => draw.log_uniform(1e-12, 1e2),
                _ => -draw.log_uniform(1e-3, 1e3),
            })
            .collect();
        let field = |_t: f64, y: &[f64], dy: &mut [f64]| {
            dy.fill(0.0);
            // In units of the size 1 / scale.
            entries.iter().for_each(|&(i, j, kind, size)| dy[i] += size * shape(kind, y[j])[0] * scale);
        };
        let write = |_t: f64, y: &Vec<f64>, jacobian: &mut Jacobian| {
            for &(i, j, kind, size) in &entries {
                jacobian[(i, j)] = size * shape(kind, y[j])[1] * scale;
            }
        };
        let (rtol, atol) =
            (draw.log_uniform(1e-10, 1e-2), if draw.coin() { 0.0 } else { draw.log_uniform(1e-12, 1e-2) });
        let ode = || {
            Ode::in_place(field).method(Method::Rodas5P).rtol(rtol).atol(atol).max_steps(1).allow_incomplete()
        };
        let pattern = Sparsity::pattern(entries.iter().map(|&(i, j, ..)| (i, j)));
        let context = format!("case {case}: scale {scale:e}, y0={y0:?}, {entries:?}");
        ode()
            .jacobian(write)
            .solve(0.0, 1e-3, y0.clone())
            .unwrap_or_else(|e| panic!("jacobian: {e}: {context}"));
        ode()
            .jacobian_sparsity(pattern)
            .solve(0.0, 1e-3, y0)
            .unwrap_or_else(|e| panic!("pattern: {e}: {context}"));
    }
    assert!(kinds.iter().all(|&count| count > 0), "{kinds:?}");
}
