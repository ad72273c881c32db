//! Stiff methods: orders, constraints, counters, and the features that every method has.

use super::stiff_problems::*;
use crate::ode::{
    ConfigError, ConstantStepSize, Event, Mass, Method, Ode, SaveAt, SolveError, Sparsity, Stats, ensemble,
};
use crate::vector_field;

pub const STIFF: [Method; 2] = [Method::Rodas5P, Method::Rosenbrock23];

/// The observed order: log2 of the ratio of the errors with `steps` and with twice as many constant steps.
fn observed(error: impl Fn(f64) -> f64 + Copy, steps: u32) -> f64 {
    (error(1.0 / f64::from(steps)) / error(0.5 / f64::from(steps))).log2()
}

vector_field! {
    /// A nonlinear vector field that depends on t.
    struct Mixed<R> { rate: R }
    fn eval(&self, t, y: &[R; 2]) -> [R; 2] {
        [t.cos() * y[0] * y[1], -(t + self.rate) * y[1] * y[1]]
    }
}

const MIXED: Mixed = Mixed { rate: 2.0 };

fn mixed_exact(t: f64) -> [f64; 2] {
    let y = Ode::from_generic(MIXED).method(Method::Vern9).rtol(1e-14).atol(1e-14);
    y.solve(0.0, t, [1.0, 1.0]).unwrap().y1
}

vector_field! {
    /// y' = -rate z y, 0 = z - y^2 - sin t.
    struct Constrained<R> { rate: R }
    fn eval(&self, t, y: &[R; 2]) -> [R; 2] {
        [-self.rate * y[1] * y[0], y[1] - y[0] * y[0] - t.sin()]
    }
}

#[test]
fn constant_steps_have_their_order() {
    let exact = mixed_exact(1.0);
    for (method, order, steps) in
        [(Method::Rodas5P, 5.0, 64), (Method::Rosenbrock23, 2.0, 128), (Method::Rkc2, 2.0, 128)]
    {
        let error = |dt0: f64| {
            let ode = Ode::from_generic(MIXED).method(method).controller(ConstantStepSize { dt0 });
            let y1 = ode.solve(0.0, 1.0, [1.0, 1.0]).unwrap().y1;
            (y1[0] - exact[0]).hypot(y1[1] - exact[1])
        };
        let all = [steps / 4, steps / 2, steps, 2 * steps].map(|steps| observed(error, steps));
        assert!((all[2] - order).abs() < 0.1, "{method}: {all:.3?}");
    }
}

#[test]
fn very_stiff_steps_keep_order_three_and_two() {
    for (method, order) in [(Method::Rodas5P, 3.0), (Method::Rosenbrock23, 2.0)] {
        let error = |dt0: f64| {
            let ode = Ode::new(prothero_robinson(-1e6)).method(method).controller(ConstantStepSize { dt0 });
            (ode.solve(0.0, 1.0, QUARTER.sin()).unwrap().y1 - (1.0 + QUARTER).sin()).abs()
        };
        let observed = observed(error, 16);
        assert!((observed - order).abs() < 0.2, "{method}: {observed:.3}");
    }
}

#[test]
fn dense_output_has_its_order_inside_of_steps() {
    let exact: Vec<[f64; 2]> = (1..=9).map(|i| mixed_exact(0.5 + 0.01 * f64::from(i))).collect();
    let start = mixed_exact(0.5);
    for (method, order) in [(Method::Rodas5P, 5.0), (Method::Rosenbrock23, 3.0)] {
        // One step of h and one of h/2 from the same start: the local error is proportional to h^(q + 1).
        let error = |h: f64| {
            let ode = Ode::from_generic(MIXED)
                .method(method)
                .controller(ConstantStepSize { dt0: h })
                .save_at(SaveAt::dense());
            let solution = ode.solve(0.5, 0.5 + h, start).unwrap();
            let worst = |i: usize| {
                let y = solution.dense().unwrap().eval(0.5 + 0.01 * (i + 1) as f64 * (h / 0.1)).unwrap();
                let exact =
                    if h == 0.1 { exact[i] } else { mixed_exact(0.5 + 0.01 * (i + 1) as f64 * (h / 0.1)) };
                (y[0] - exact[0]).hypot(y[1] - exact[1])
            };
            (0..9).map(worst).fold(0.0, f64::max)
        };
        let observed = (error(0.1) / error(0.05)).log2();
        assert!(observed > order - 0.3, "{method}: {observed:.3}");
    }
}

#[test]
fn robertson_runs_through_eleven_decades_with_one_jacobian_a_step() {
    let ode = Ode::new(rober).method(Method::Rodas5P).rtol(1e-8).atol([1e-10, 1e-14, 1e-10]);
    let solution = ode.solve(0.0, 1e11, [1.0, 0.0, 0.0]).unwrap();
    assert!(relative(&solution.y1, &ROBER_1E11) < 1e-3, "{solution}: {:?}", solution.y1);
    let stats = solution.stats;
    assert!(stats.num_steps < 1500, "{stats:?}");
    assert_eq!((stats.num_jac_evals, stats.num_factorizations), (stats.num_accepted, stats.num_steps));
    // Two evaluations at the start; nine per Jacobian (f, two per column, two for df/dt); seven more per attempt.
    assert_eq!(stats.num_fn_evals, 9 * stats.num_accepted + 7 * stats.num_steps + 2);
    assert!(stats.num_rejected * 20 < stats.num_steps, "{stats:?}");
    let explicit = Ode::new(|_t, y: &f64| -y).solve(0.0, 1.0, 1.0).unwrap().stats;
    assert_eq!((explicit.num_jac_evals, explicit.num_factorizations), (0, 0));
}

#[test]
fn every_kind_of_jacobian_and_of_state_gives_the_same_to_the_tolerance() {
    let (tol, atol) = (1e-8, [1e-10, 1e-14, 1e-10]);
    let y0 = [1.0, 0.0, 0.0];
    let dual = Ode::from_generic(Rober { k: [0.04, 3e7, 1e4] }).method(Method::Rodas5P).rtol(tol).atol(atol);
    let dual = dual.solve(0.0, 40.0, y0).unwrap();
    assert_eq!(dual.stats.num_fn_evals, dual.stats.num_accepted + 7 * dual.stats.num_steps + 2);
    let given = Ode::new(rober)
        .method(Method::Rodas5P)
        .rtol(tol)
        .atol(atol)
        .time_derivative(|_t, _y, f_t| *f_t = [0.0; 3]);
    let given = given.jacobian(|_t, y, jacobian| {
        (jacobian[(0, 0)], jacobian[(0, 1)], jacobian[(0, 2)]) = (-0.04, 1e4 * y[2], 1e4 * y[1]);
        (jacobian[(2, 1)], jacobian[(1, 0)]) = (6e7 * y[1], 0.04);
        (jacobian[(1, 1)], jacobian[(1, 2)]) = (-6e7 * y[1] - 1e4 * y[2], -1e4 * y[1]);
    });
    let given = given.solve(0.0, 40.0, y0).unwrap();
    // The comparison of the Jacobian with the vector field: here two, because f is quadratic at zero.
    assert_eq!(given.stats.num_fn_evals, dual.stats.num_fn_evals + 2);
    let heap = Ode::new(|t, y: &Vec<f64>| rober(t, &[y[0], y[1], y[2]]).to_vec());
    let heap = heap.method(Method::Rodas5P).rtol(tol).atol(atol).solve(0.0, 40.0, y0.to_vec()).unwrap();
    let array = Ode::new(rober).method(Method::Rodas5P).rtol(tol).atol(atol).solve(0.0, 40.0, y0).unwrap();
    assert_eq!(heap.y1, array.y1.to_vec());
    let pair = Ode::new(|t, y: &(f64, [f64; 2])| {
        let dy = rober(t, &[y.0, y.1[0], y.1[1]]);
        (dy[0], [dy[1], dy[2]])
    });
    let pair = pair.method(Method::Rodas5P).rtol(tol).atol(atol).solve(0.0, 40.0, (1.0, [0.0, 0.0])).unwrap();
    // A pair adds the squares of its errors in another order.
    assert!(relative(&[pair.y1.0, pair.y1.1[0], pair.y1.1[1]], &array.y1) < 1e-12, "{:?}", pair.y1);
    for y1 in [dual.y1, given.y1, array.y1] {
        assert!(relative(&y1, &ROBER_40) < 1e-6, "{y1:?}");
    }
}

#[test]
fn single_precision_solves_a_stiff_problem() {
    let ode = Ode::new(|t: f64, y: &[f32; 2]| [-1e4 * (y[0] - (t as f32).cos()), y[0] - y[1]]);
    let y1 = ode.method(Method::Rodas5P).solve(0.0, 2.0, [1.0, 1.0]).unwrap().y1;
    let exact = Ode::new(|t: f64, y: &[f64; 2]| [-1e4 * (y[0] - t.cos()), y[0] - y[1]])
        .method(Method::Rodas5P)
        .rtol(1e-9);
    let exact = exact.solve(0.0, 2.0, [1.0, 1.0]).unwrap().y1;
    assert!((0..2).all(|i| (f64::from(y1[i]) - exact[i]).abs() < 1e-3), "{y1:?} {exact:?}");
}

/// Reaction and diffusion on a line, with 0 at both ends.
fn line(_t: f64, u: &[f64], du: &mut [f64]) {
    let n = u.len();
    for i in 0..n {
        let (left, right) = (if i == 0 { 0.0 } else { u[i - 1] }, if i + 1 == n { 0.0 } else { u[i + 1] });
        du[i] = 400.0 * (left - 2.0 * u[i] + right) + u[i] * (1.0 - u[i]);
    }
}

#[test]
fn a_band_and_a_pattern_give_the_dense_jacobian() {
    let n = 40;
    let u0: Vec<f64> = (0..n).map(|i| (f64::from(i) * 0.3).sin().abs()).collect();
    let ode = || Ode::in_place(line).method(Method::Rodas5P).rtol(1e-8);
    let dense = ode().solve(0.0, 0.1, u0.clone()).unwrap();
    let banded = ode().jacobian_sparsity(Sparsity::banded(1, 1)).solve(0.0, 0.1, u0.clone()).unwrap();
    let entries =
        (0..n as usize).flat_map(|i| [(i, i), (i, i + 1), (i + 1, i)]).filter(|e| e.0 < 40 && e.1 < 40);
    let pattern = ode().jacobian_sparsity(Sparsity::pattern(entries)).solve(0.0, 0.1, u0.clone()).unwrap();
    for other in [&banded, &pattern] {
        assert!((0..40).all(|i| (other.y1[i] - dense.y1[i]).abs() < 1e-10));
        // Per Jacobian at rtol = 1e-8: f(t, y), six for groups of columns, two for df/dt. One for the comparison
        // with the pattern, two for the first step size.
        assert_eq!(other.stats.num_fn_evals, 9 * other.stats.num_accepted + 7 * other.stats.num_steps + 3);
    }
    let rkc = Ode::in_place(line).method(Method::Rkc2).rtol(1e-6).solve(0.0, 0.1, u0).unwrap();
    assert!((0..40).all(|i| (rkc.y1[i] - dense.y1[i]).abs() < 1e-4), "{:?}", rkc.stats);
}

#[test]
fn constraints_are_solved_with_the_equations() {
    let y0 = [1.0, 0.0, 0.0];
    let ode = |mass| {
        Ode::new(rober_dae).method(Method::Rodas5P).rtol(1e-8).atol([1e-10, 1e-14, 1e-10]).mass_matrix(mass)
    };
    let rows = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0; 3]];
    let band = Mass::banded(3, 0, 0, |i, _| [1.0, 1.0, 0.0][i]);
    let mut ends = Vec::new();
    for mass in [Mass::diagonal([1.0, 1.0, 0.0]), Mass::dense(rows), band] {
        let solution = ode(mass).solve(0.0, 40.0, y0).unwrap();
        assert!(relative(&solution.y1, &ROBER_40) < 1e-6, "{:?}", solution.y1);
        ends.push(solution.y1);
    }
    assert_eq!(ends[0], ends[1]);
    assert_eq!(ends[0], ends[2]);
    let error = ode(Mass::diagonal([1.0, 1.0, 0.0])).solve(0.0, 40.0, [1.0, 0.0, 0.25]).unwrap_err();
    assert!(
        matches!(error, SolveError::Config(ConfigError::InconsistentStart { equation: 2, component: 2, .. })),
        "{error}"
    );
    let text =
        "y0 violates algebraic equation 2: y[2]=0.25 would have to be about 0.0, 9.6e7 tolerances away";
    assert!(error.to_string().starts_with(text), "{error}");
    // An entry other than 0 and 1 on the diagonal scales the equation.
    let scaled = Ode::new(|_t, y: &[f64; 1]| [-2e3 * y[0]]).method(Method::Rodas5P).rtol(1e-8);
    let y1 = scaled.mass_matrix(Mass::diagonal([2e3])).solve(0.0, 1.0, [1.0]).unwrap().y1;
    assert!((y1[0] - (-1.0_f64).exp()).abs() < 1e-7);
}

#[test]
fn constraints_may_come_in_any_order() {
    // The second equation determines the third component, and the third equation the second one: their
    // diagonal entries in the Jacobian are 0.
    let ode = Ode::new(|t: f64, y: &[f64; 3]| [-y[1], y[2] - t.cos(), y[1] - y[0]]).method(Method::Rodas5P);
    let ode = ode.mass_matrix(Mass::diagonal([1.0, 0.0, 0.0])).rtol(1e-8);
    let y1 = ode.solve(0.0, 1.0, [1.0, 1.0, 1.0]).unwrap().y1;
    let exact = [(-1.0_f64).exp(), (-1.0_f64).exp(), 1.0_f64.cos()];
    assert!(relative(&y1, &exact) < 1e-7, "{y1:?}");
}

#[test]
fn order_of_constraints_on_constant_steps() {
    let exact =
        Ode::new(|t: f64, y: &f64| -(y * y + t.sin()) * y).method(Method::Vern9).rtol(1e-14).atol(1e-14);
    let exact = exact.solve(0.0, 1.0, 1.0).unwrap().y1;
    for (method, order, steps) in [(Method::Rodas5P, 5.0, 16), (Method::Rosenbrock23, 2.0, 64)] {
        let error = |dt0: f64| {
            let ode = Ode::from_generic(Constrained { rate: 1.0 }).method(method);
            let ode = ode.mass_matrix(Mass::diagonal([1.0, 0.0])).controller(ConstantStepSize { dt0 });
            let y1 = ode.solve(0.0, 1.0, [1.0, 1.0]).unwrap().y1;
            (y1[0] - exact).abs() + (y1[1] - exact * exact - 1.0_f64.sin()).abs()
        };
        let all = [steps / 4, steps / 2, steps, 2 * steps].map(|steps| observed(error, steps));
        assert!((all[2] - order).abs() < 0.2, "{method}: {all:.3?}");
    }
}

#[test]
fn saved_times_events_resets_stops_and_discontinuities_are_those_of_every_method() {
    for method in STIFF {
        // A relay: y' = -100 (y - 1) before t = 1, y' = -100 (y + 1) after it.
        let ode = Ode::new(|t: f64, y: &f64| -100.0 * (y - if t < 1.0 { 1.0 } else { -1.0 }))
            .method(method)
            .rtol(1e-7)
            .atol(1e-9);
        let exact = |t: f64| {
            if t <= 1.0 {
                1.0 - (-100.0 * t).exp()
            } else {
                -1.0 + (2.0 - (-100.0_f64).exp()) * (-100.0 * (t - 1.0)).exp()
            }
        };
        let solution = ode
            .clone()
            .discontinuities(&[1.0])
            .tstops(&[0.25])
            .save_at([0.003, 0.25, 1.0, 1.004, 2.0])
            .solve(0.0, 2.0, 0.0)
            .unwrap();
        for (t, y) in solution.ts.iter().zip(&solution.ys) {
            assert!((y - exact(*t)).abs() < 1e-4, "{method} at {t}: {y} {}", exact(*t));
        }
        assert!(solution.step_times.contains(&0.25) && solution.step_times.contains(&1.0));
        let event =
            ode.event(Event::rising().terminal(), |_t, y: &f64| y - 0.5).solve(0.0, 1.0, 0.0).unwrap();
        assert!((event.t1 - 0.5_f64.ln() / -100.0).abs() < 1e-6, "{method}: {}", event.t1);
        // A reset to 0 whenever y passes 0.5.
        let reset = Ode::new(|_t, y: &f64| -100.0 * (y - 1.0)).method(method).rtol(1e-7).atol(1e-9);
        let reset = reset
            .on_event(Event::rising(), |_t, y: &f64| y - 0.5, |_t, y| *y = 0.0)
            .solve(0.0, 0.05, 0.0)
            .unwrap();
        assert_eq!(reset.events.len(), 7, "{method}");
        let ode = Ode::new(rober).method(method).rtol(1e-4).atol([1e-6, 1e-10, 1e-6]);
        let mut stepper = ode.stepper(0.0, 40.0, [1.0, 0.0, 0.0]).unwrap();
        while stepper.step().unwrap().is_some() {
            let t = stepper.t();
            stepper.interpolate(t).unwrap();
        }
        assert!(relative(stepper.y(), &ROBER_40) < 1e-2, "{method}: {:?}", stepper.y());
    }
}

#[test]
fn a_solve_backward_in_time_returns() {
    for method in STIFF {
        let ode = Ode::new(|t: f64, y: &f64| 50.0 * (y - t.sin()) + t.cos()).method(method).rtol(1e-6);
        let y1 = ode.solve(2.0, 0.0, 2.0_f64.sin()).unwrap().y1;
        assert!(y1.abs() < 1e-4, "{method}: {y1}");
    }
}

#[test]
fn a_component_at_zero_has_a_derivative_without_absolute_tolerance() {
    let ode =
        Ode::new(|t: f64, y: &f64| 1e6 * (t.sin() - y) + 1.0).method(Method::Rodas5P).rtol(1e-6).atol(0.0);
    let stats = ode.dt0(1e-2).solve(0.0, 1.0, 0.0).unwrap().stats;
    assert!(stats.num_steps < 8 && stats.num_rejected == 0, "{stats:?}");
}

#[test]
fn a_method_that_switches_leaves_the_explicit_one_soon() {
    // The Oregonator is not stiff for some steps after each stiff part.
    let oregonator = |_t: f64, y: &[f64; 3]| {
        let rate = y[1] + y[0] * (1.0 - 8.375e-6 * y[0] - y[1]);
        [77.27 * rate, (y[2] - (1.0 + y[0]) * y[1]) / 77.27, 0.161 * (y[0] - y[2])]
    };
    for tol in [1e-3, 1e-5] {
        let num_steps = |method| {
            let ode = Ode::new(oregonator).method(method).rtol(tol).atol(1e-4 * tol);
            ode.solve(0.0, 360.0, [1.0, 2.0, 3.0]).unwrap().stats.num_steps
        };
        let (auto, stiff) = (num_steps(Method::AutoTsit5Rodas5P), num_steps(Method::Rodas5P));
        assert!(auto < stiff + stiff / 2, "{auto} steps, {stiff} by Rodas5P");
    }
}

#[test]
fn a_method_that_switches_takes_the_cheap_one_of_two() {
    // The problem is stiff from t = 20 to t = 40, with a rate of 1e5. Before and after, the rate is 1.
    let rate = |t: f64| if (20.0..40.0).contains(&t) { 1e5 } else { 1.0 };
    let field = move |t: f64, y: &[f64; 2]| [-rate(t) * (y[0] - t.cos()) - t.sin(), y[0] - y[1]];
    let auto =
        Ode::new(field).method(Method::AutoTsit5Rodas5P).rtol(1e-6).atol(1e-8).discontinuities(&[20.0, 40.0]);
    let auto = auto.save_at(SaveAt::dense());
    let solution = auto.solve(0.0, 400.0, [1.0, 1.0]).unwrap();
    assert!((solution.y1[0] - 400.0_f64.cos()).abs() < 1e-4, "{:?}", solution.y1);
    let Stats { num_jac_evals, num_accepted, num_steps, .. } = solution.stats;
    assert!(num_jac_evals > 5 && num_jac_evals < num_accepted / 2, "{:?}", solution.stats);
    assert!(num_steps < 6_000 && solution.warnings.is_empty(), "{solution}");
    for i in 0..400 {
        let t = f64::from(i);
        let y = solution.dense().unwrap().eval(t).unwrap();
        assert!((y[0] - t.cos()).abs() < 1e-3, "{t}: {y:?}");
    }
    let mut stepper = Ode::new(field).method(Method::AutoTsit5Rodas5P).rtol(1e-6).atol(1e-8);
    stepper = stepper.discontinuities(&[20.0, 40.0]);
    let mut stepper = stepper.stepper(0.0, 400.0, [1.0, 1.0]).unwrap();
    while let Some(step) = stepper.step().unwrap() {
        let t = step.t - 0.4 * step.dt;
        assert_eq!(stepper.interpolate(t).unwrap(), solution.dense().unwrap().eval(t).unwrap(), "{t}");
        assert!(stepper.warnings().is_empty(), "{t}");
    }
    assert_eq!((stepper.y(), stepper.stats().num_jac_evals), (&solution.y1, num_jac_evals));
    // If the problem is not stiff, the result is that of Tsit5, bit for bit.
    let mild = || Ode::new(|t: f64, y: &f64| -y + t.sin());
    let tsit5 = mild().solve(0.0, 50.0, 1.0).unwrap();
    assert_eq!(mild().method(Method::AutoTsit5Rodas5P).solve(0.0, 50.0, 1.0).unwrap().y1, tsit5.y1);
}

#[test]
fn lanes_take_the_steps_that_a_trajectory_takes_alone() {
    let k: Vec<f64> = (0..40).map(|i| 0.01 * 1.2_f64.powi(i % 20)).collect();
    let problem = |&k: &f64| (Rober { k: [k, 3e7, 1e4] }, [1.0, 0.0, 0.0]);
    for method in STIFF {
        let builder = |k| ensemble(k, problem).method(method).rtol(1e-5).atol([1e-8, 1e-12, 1e-8]);
        let all = builder(&k).solve(0.0, 40.0).unwrap();
        for i in [0, 7, 19] {
            let one = builder(&k[i..=i]).solve(0.0, 40.0).unwrap();
            assert_eq!((one.y1[0], one.stats[0]), (all.y1[i], all.stats[i]), "{method} {i}");
            let alone = Ode::from_generic(Rober { k: [k[i], 3e7, 1e4] })
                .method(method)
                .rtol(1e-5)
                .atol([1e-8, 1e-12, 1e-8]);
            let alone = alone.solve(0.0, 40.0, [1.0, 0.0, 0.0]).unwrap();
            assert!(relative(&alone.y1, &all.y1[i]) < 1e-3, "{method} {i}: {:?} {:?}", alone.y1, all.y1[i]);
            // Lanes evaluate the Jacobian in every attempt, a trajectory alone once per accepted step.
            let Stats { num_steps, num_accepted, num_jac_evals, .. } = all.stats[i];
            assert_eq!(num_jac_evals, if all.num_lanes == 1 { num_accepted } else { num_steps });
        }
        let total = all.total_stats();
        assert_eq!(total.num_jac_evals, all.stats.iter().map(|stats| stats.num_jac_evals).sum::<u64>());
        assert!(total.num_factorizations >= total.num_jac_evals, "{total:?}");
    }
    let text = ensemble(&k, problem).method(Method::Rkc2).solve(0.0, 1.0).unwrap_err().to_string();
    assert!(text.starts_with("Rkc2 does not run in ensembles: use Method::Rodas5P"), "{text}");
}
