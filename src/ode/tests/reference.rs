//! Published problems, their published end values, and closed forms.
//!
//! DETEST: Enright and Pryce (1987), Two FORTRAN packages for assessing initial value methods, ACM TOMS 13 (and
//! its code, algorithm 648). Lorenz: an 80-bit Gragg-Bulirsch-Stoer run.

use crate::ode::{Method, Ode};

/// Solves from 0 to t1 with rtol = atol = tol; the largest error relative to `1 + |y|`.
fn error<const N: usize>(
    method: Method,
    tol: f64,
    t1: f64,
    f: impl Fn(f64, &[f64; N]) -> [f64; N],
    y0: [f64; N],
    expected: [f64; N],
) -> f64 {
    let solution =
        Ode::new(f).method(method).rtol(tol).atol(tol).max_steps(1_000_000).solve(0.0, t1, y0).unwrap();
    assert!(solution.outcome.is_completed(), "{solution}");
    let relative = |i: usize| (solution.y1[i] - expected[i]).abs() / (1.0 + expected[i].abs());
    (0..N).map(relative).fold(0.0, f64::max)
}

/// The methods that low tolerances are asked of.
fn high_orders() -> impl Iterator<Item = Method> {
    Method::ALL.into_iter().filter(|method| method.tableau().order >= 5)
}

fn check<const N: usize>(
    name: &str,
    bound: f64,
    f: impl Fn(f64, &[f64; N]) -> [f64; N] + Copy,
    y0: [f64; N],
    expected: [f64; N],
) {
    for method in high_orders() {
        for tol in [1e-7, 1e-11] {
            let error = error(method, tol, 20.0, f, y0, expected);
            assert!(error <= bound * tol, "{name} by {method} at {tol:e}: {error:e}");
        }
    }
}

#[test]
fn detest_a() {
    check("A1", 100.0, |_, y| [-y[0]], [1.0], [2.061153622438558e-9]);
    check("A2", 100.0, |_, y| [-y[0].powi(3) / 2.0], [1.0], [0.2182178902359887]);
    check("A3", 200.0, |t, y| [y[0] * t.cos()], [1.0], [2.491650271850414]);
    check("A4", 100.0, |_, y| [y[0] / 4.0 * (1.0 - y[0] / 20.0)], [1.0], [17.73016648131483]);
    check("A5", 100.0, |t, y| [(y[0] - t) / (y[0] + t)], [4.0], [-0.7887826688964196]);
}

#[test]
fn detest_b() {
    let predator = |_: f64, y: &[f64; 2]| [2.0 * (y[0] - y[0] * y[1]), -(y[1] - y[0] * y[1])];
    check("B1", 100.0, predator, [1.0, 3.0], [0.6761876008576667, 0.1860816099640036]);
    let linear = |_: f64, y: &[f64; 3]| [-y[0] + y[1], y[0] - 2.0 * y[1] + y[2], y[1] - y[2]];
    check("B2", 100.0, linear, [2.0, 0.0, 1.0], [1.000000001030576, 1.0, 0.9999999989694235]);
    let chemical = |_: f64, y: &[f64; 3]| [-y[0], y[0] - y[1] * y[1], y[1] * y[1]];
    let end = [2.061153488557776e-9, 0.05257228022048349, 0.947427717718363];
    check("B3", 100.0, chemical, [1.0, 0.0, 0.0], end);
    let torus = |_: f64, y: &[f64; 3]| {
        let r = y[0].hypot(y[1]);
        [-y[1] - y[0] * y[2] / r, y[0] - y[1] * y[2] / r, y[0] / r]
    };
    check("B4", 100.0, torus, [3.0, 0.0, 0.0], [0.9826950928005993, 2.198447081694832, 0.9129452507276399]);
    let body = |_: f64, y: &[f64; 3]| [y[1] * y[2], -y[0] * y[2], -0.51 * y[0] * y[1]];
    check("B5", 100.0, body, [0.0, 1.0, 1.0], [-0.9396570798729192, -0.3421177754000779, 0.7414126596199957]);
}

#[test]
fn detest_d() {
    let orbit = |_: f64, y: &[f64; 4]| {
        let r3 = y[0].hypot(y[1]).powi(3);
        [y[2], y[3], -y[0] / r3, -y[1] / r3]
    };
    let ends = [
        (0.1, [0.2198835352008397, 0.9427076846341813, -0.9787659841058176, 0.3287977990962036]),
        (0.3, [-0.1777027357140412, 0.9467784719905892, -1.030294163192969, 0.1211074890053952]),
        (0.5, [-0.5780432953035362, 0.8633840009194192, -0.9595083730380727, -0.0650491512671209]),
        (0.7, [-0.9538990293416394, 0.6907409024219432, -0.8212674270877433, -0.1539574259125825]),
        (0.9, [-1.295266250987574, 0.4003938963792321, -0.6775390924707566, -0.1270838154278686]),
    ];
    for (e, end) in ends {
        let y0 = [1.0 - e, 0.0, 0.0, f64::sqrt((1.0 + e) / (1.0 - e))];
        check(&format!("D with e={e}"), 5000.0, orbit, y0, end);
    }
}

#[test]
fn lorenz() {
    let f = |_: f64, y: &[f64; 3]| {
        [10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]]
    };
    let at_1 = [-9.37857001092506180, -8.35703378842664392, 29.3623253373634275];
    let at_5 = [-6.51211369941959865, -6.97404278841707586, 23.9241295721033699];
    for method in high_orders() {
        let error = |t1, end| error(method, 1e-12, t1, f, [1.0; 3], end);
        assert!(error(1.0, at_1) < 1e-10, "{method}: {:e}", error(1.0, at_1));
        assert!(error(5.0, at_5) < 1e-9, "{method}: {:e}", error(5.0, at_5));
    }
}

#[test]
fn logistic_growth_with_its_log_derivative() {
    // z' = z (1 - z), and l' = 1 - 2 z is the divergence whose integral is log dz1/dz0
    let f = |_: f64, y: &[f64; 2]| [y[0] * (1.0 - y[0]), 1.0 - 2.0 * y[0]];
    for method in high_orders() {
        let error = error(method, 1e-12, 1.0, f, [0.2, 0.0], [0.4046096751916897, 0.4092109417593047]);
        assert!(error < 1e-12, "{method}: {error:e}");
    }
    let fixed = Ode::new(f).method(Method::Rk4).dt0(1e-3).solve(0.0, 1.0, [0.2, 0.0]).unwrap().y1;
    assert!((fixed[0] - 0.4046096751916897).abs() + (fixed[1] - 0.4092109417593047).abs() < 1e-13);
}

#[test]
fn powers_of_t_are_exact_up_to_the_order() {
    // y' = (p + 1) t^p is integrated exactly for p < order: a wrong c would show
    for method in Method::ALL {
        for p in 0..method.tableau().order as i32 {
            let ode = Ode::new(move |t: f64, _y: &f64| f64::from(p + 1) * t.powi(p)).method(method);
            let y1 = ode.controller(crate::ode::Constant { dt0: 0.25 }).solve(0.0, 1.0, 0.0).unwrap().y1;
            assert!((y1 - 1.0).abs() < 1e-14, "{method} p={p}: {y1}");
        }
    }
}
