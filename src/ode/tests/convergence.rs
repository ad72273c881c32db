//! Each method converges with its order, on linear, nonlinear and non-autonomous problems.

use crate::ode::{ConstantStepSize, Method, Ode};
use crate::simd::{Level, is_fused};

/// A scalar or planar problem with its solution, from t = 0 to t1.
#[derive(Clone, Copy)]
struct Problem {
    name: &'static str,
    f: fn(f64, &[f64; 2]) -> [f64; 2],
    exact: fn(f64) -> [f64; 2],
    t1: f64,
}

const OSCILLATOR: Problem =
    Problem { name: "y'' = -y", f: |_t, y| [y[1], -y[0]], exact: |t| [t.cos(), -t.sin()], t1: 8.0 };
const ROTATION: Problem = Problem {
    name: "a rotation as fast as |y|^2",
    f: |_t, y| {
        let speed = y[0] * y[0] + y[1] * y[1];
        [-y[1] * speed, y[0] * speed]
    },
    exact: |t| [t.cos(), t.sin()],
    t1: 8.0,
};
const CUBIC: Problem = Problem {
    name: "y' = -y^3 / 2",
    f: |_t, y| y.map(|y| -y.powi(3) / 2.0),
    exact: |t| [1.0 / (1.0 + t).sqrt(); 2],
    t1: 4.0,
};
const WAVES: Problem = Problem {
    name: "y' = y cos t",
    f: |t, y| y.map(|y| y * t.cos()),
    exact: |t| [t.sin().exp(); 2],
    t1: 8.0,
};
const BELL: Problem = Problem {
    name: "y' = -2 t y^2",
    f: |t, y| y.map(|y| -2.0 * t * y * y),
    exact: |t| [1.0 / (1.0 + t * t); 2],
    t1: 2.0,
};

/// The slope of log(error) over log(dt) between `steps` and twice as many equal steps. The error is the
/// largest error at the end of a step.
fn observed_order(method: Method, problem: &Problem, steps: u32) -> f64 {
    let error = |steps: u32| {
        let dt = problem.t1 / f64::from(steps);
        let ode = Ode::new(problem.f).method(method).controller(ConstantStepSize { dt0: dt });
        let mut y0 = (problem.exact)(0.0);
        (1..=steps).map(|n| (dt * f64::from(n - 1), dt * f64::from(n))).fold(
            0.0,
            |worst: f64, (t, t_next)| {
                y0 = ode.solve(t, t_next, y0).unwrap().y1;
                let exact = (problem.exact)(t_next);
                worst.max((y0[0] - exact[0]).hypot(y0[1] - exact[1]))
            },
        )
    };
    (error(steps) / error(2 * steps)).log2()
}

/// Checks the order of every explicit method. `choose` maps an order to a problem and a number of steps for
/// which the leading error term dominates and is above rounding. For order 9 few step sizes and few problems
/// are suitable.
fn assert_orders(choose: fn(u32) -> (Problem, u32)) {
    for method in Method::EXPLICIT {
        let order = method.tableau().order;
        let (problem, steps) = choose(order);
        let observed = observed_order(method, &problem, steps);
        let off = (observed - f64::from(order)).abs();
        // Without fused multiply-add, rounding matters at the step sizes for order 9.
        let allowed = if order == 9 && !is_fused(Level::detect()) { 0.5 } else { 0.2 };
        assert!(off < allowed, "{method} on {}: order {observed:.3}", problem.name);
    }
}

#[test]
fn linear() {
    assert_orders(|order| (OSCILLATOR, [512, 128, 64, 64, 128, 128, 32, 16, 26][order as usize - 1]));
}

#[test]
fn nonlinear() {
    assert_orders(|order| match order {
        1 => (CUBIC, 128),
        2..=5 => (ROTATION, 384),
        8 => (CUBIC, 24),
        9 => (CUBIC, 8),
        _ => (ROTATION, 32),
    });
}

#[test]
fn non_autonomous() {
    assert_orders(|order| match order {
        4 => (BELL, 64),
        9 => (BELL, 8),
        8 => (WAVES, 24),
        7 => (WAVES, 48),
        _ => (WAVES, 256),
    });
}

#[test]
fn an_adaptive_solve_follows_its_tolerance() {
    let order = |method: &Method| method.tableau().order;
    for method in Method::EXPLICIT.into_iter().filter(|method| order(method) >= 5) {
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

/// The first component reveals a wrong stage time, the second component a wrong weight.
#[test]
fn a_quadrature_and_a_linear_problem_follow_the_tolerance_with_every_estimate() {
    for method in Method::EXPLICIT.into_iter().filter(|method| method.tableau().b_err.is_some()) {
        let ode = Ode::new(|t: f64, y: &[f64; 2]| [7.0 * t.powi(6), y[1] + t]).method(method).atol(1e-7);
        for (t0, t1) in [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0)] {
            let exact = |t: f64| [t.powi(7), 2.0 * t.exp() - t - 1.0];
            let y1 = ode.clone().rtol(1e-7).solve(t0, t1, exact(t0)).unwrap().y1;
            let error = (y1[0] - exact(t1)[0]).hypot(y1[1] - exact(t1)[1]);
            assert!(error < 100.0 * 1e-7, "{method} from {t0} to {t1}: {error:e}");
        }
    }
}
