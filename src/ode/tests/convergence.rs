//! Each method converges with its order, on linear, nonlinear and non-autonomous problems.

use crate::ode::{Constant, Method, Ode};

/// The slope of log(error) against log(dt) over three halvings, by least squares.
fn observed_order(error: impl Fn(f64) -> f64, dt: f64) -> f64 {
    let points: Vec<(f64, f64)> =
        (0..4).map(|i| dt * 0.5_f64.powi(i)).map(|dt| (dt.ln(), error(dt).ln())).collect();
    let n = points.len() as f64;
    let mean = |f: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / n;
    let (x, y) = (mean(&|p| p.0), mean(&|p| p.1));
    mean(&|p| (p.0 - x) * (p.1 - y)) / mean(&|p| (p.0 - x).powi(2))
}

fn assert_order(method: Method, problem: &str, error: impl Fn(f64) -> f64) {
    let order = method.tableau().order;
    // Coarse steps for high orders: errors stay far above rounding.
    let dt = if order == 1 { 0.02 } else { 0.1 };
    let observed = observed_order(error, dt);
    assert!((observed - f64::from(order)).abs() < 0.2, "{method} on {problem}: order {observed:.3}");
}

#[test]
fn linear() {
    for method in Method::ALL {
        assert_order(method, "y'' = -y", |dt| {
            let ode = Ode::new(|_t, y: &[f64; 2]| [y[1], -y[0]]).method(method);
            let y1 = ode.controller(Constant { dt0: dt }).solve(0.0, 2.0, [1.0, 0.0]).unwrap().y1;
            (y1[0] - 2.0_f64.cos()).hypot(y1[1] + 2.0_f64.sin())
        });
    }
}

#[test]
fn nonlinear() {
    for method in Method::ALL {
        assert_order(method, "a rotation as fast as |y|^2", |dt| {
            let ode = Ode::new(|_t, y: &[f64; 2]| {
                let speed = y[0] * y[0] + y[1] * y[1];
                [-y[1] * speed, y[0] * speed]
            });
            let y1 =
                ode.method(method).controller(Constant { dt0: dt }).solve(0.0, 4.0, [1.0, 0.0]).unwrap().y1;
            (y1[0] - 4.0_f64.cos()).hypot(y1[1] - 4.0_f64.sin())
        });
    }
}

#[test]
fn non_autonomous() {
    for method in Method::ALL {
        assert_order(method, "y' = y cos t", |dt| {
            let ode = Ode::new(|t: f64, y: &f64| y * t.cos()).method(method);
            let y1 = ode.controller(Constant { dt0: dt }).solve(0.0, 3.0, 1.0).unwrap().y1;
            (y1 - 3.0_f64.sin().exp()).abs()
        });
    }
}

#[test]
fn an_adaptive_solve_follows_its_tolerance() {
    for method in [Method::Tsit5, Method::Dopri5] {
        let error = |tol: f64| {
            let ode = Ode::new(|_t, y: &[f64; 2]| [y[1], -y[0]]).method(method).rtol(tol).atol(tol);
            let y1 = ode.solve(0.0, 10.0, [1.0, 0.0]).unwrap().y1;
            (y1[0] - 10.0_f64.cos()).hypot(y1[1] + 10.0_f64.sin())
        };
        for tol in [1e-4, 1e-6, 1e-8, 1e-10, 1e-12] {
            assert!(error(tol) < 30.0 * tol, "{method} at {tol:e}: {:e}", error(tol));
        }
    }
}
