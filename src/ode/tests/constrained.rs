//! Solves with singular mass matrices: consistent starts, and algebraic equations that are solved again after
//! resets, changes by the caller and discontinuities. Cases are drawn, and compared with the reduced ODE.

use super::draw::{Draw, num_cases};
use super::stiff::STIFF;
use crate::ode::*;

/// `M y' = f(t, y)` with `w = Q y`, `w = (x, z)`, `x' = -rates x + mix z + sin t`, `0 = z + cubic z^3 - a x - s(t)`.
/// M is `P diag(1, 0) Q` and f is P times these right-hand sides.
#[derive(Clone, Debug)]
struct Problem {
    num_x: usize,
    rates: Vec<f64>,
    mix: Vec<Vec<f64>>,
    cubic: Vec<f64>,
    a: Vec<Vec<f64>>,
    /// The jump of s at the discontinuity.
    jump: Vec<f64>,
    t_jump: f64,
    p: Vec<Vec<f64>>,
    q: Vec<Vec<f64>>,
    is_dense: bool,
}

fn product(matrix: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
    matrix.iter().map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect()
}

/// The solution of a linear system by Gauss-Jordan elimination.
fn solved(matrix: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    let n = b.len();
    let mut rows: Vec<Vec<f64>> = matrix.iter().zip(b).map(|(row, b)| [&row[..], &[*b]].concat()).collect();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| rows[i][k].abs().total_cmp(&rows[j][k].abs())).unwrap();
        rows.swap(k, pivot);
        let top: Vec<f64> = rows[k].iter().map(|x| x / rows[k][k]).collect();
        for (i, row) in rows.iter_mut().enumerate().filter(|(i, _)| *i != k) {
            let (factor, _) = (row[k], i);
            row.iter_mut().zip(&top).for_each(|(x, top)| *x -= factor * top);
        }
        rows[k] = top;
    }
    rows.iter().map(|row| row[n]).collect()
}

impl Problem {
    fn draw(draw: &mut Draw) -> Problem {
        let (num_x, num_z, is_dense) = (1 + draw.below(3), 1 + draw.below(3), draw.coin());
        let n = num_x + num_z;
        let mut matrix = |rows, columns, size: f64| -> Vec<Vec<f64>> {
            (0..rows).map(|_| (0..columns).map(|_| draw.uniform(-size, size)).collect()).collect()
        };
        let (mix, a) = (matrix(num_x, num_z, 1.0), matrix(num_z, num_x, 1.0));
        let size = if is_dense { 0.8 / n as f64 } else { 0.0 };
        let (mut p, mut q) = (matrix(n, n, size), matrix(n, n, size));
        for i in 0..n {
            (p[i][i], q[i][i]) = (p[i][i] + 1.0, q[i][i] + 1.0);
        }
        for i in 0..n {
            // In any order, and at any scale.
            p.swap(i, draw.below(n));
            if is_dense {
                q.swap(i, draw.below(n));
            }
        }
        for row in &mut p {
            let scale = draw.log_uniform(1e-8, 1e12);
            row.iter_mut().for_each(|x| *x *= scale);
        }
        let numbers =
            |draw: &mut Draw, n, low, high| -> Vec<f64> { (0..n).map(|_| draw.uniform(low, high)).collect() };
        let cubic = if draw.coin() { vec![0.0; num_z] } else { numbers(draw, num_z, 0.0, 1.0) };
        let rates = (0..num_x).map(|_| draw.log_uniform(0.1, 1e3)).collect();
        let jump = numbers(draw, num_z, -2.0, 2.0);
        Problem { num_x, rates, mix, cubic, a, jump, t_jump: draw.uniform(0.3, 0.8), p, q, is_dense }
    }

    fn n(&self) -> usize {
        self.q.len()
    }

    fn s(&self, t: f64, i: usize) -> f64 {
        (t + i as f64).cos() + if t < self.t_jump { 0.0 } else { self.jump[i] }
    }

    /// x' and the residuals of the algebraic equations.
    fn rates(&self, t: f64, w: &[f64]) -> Vec<f64> {
        let (x, z) = w.split_at(self.num_x);
        let (mixed, ax) = (product(&self.mix, z), product(&self.a, x));
        let x_rates = (0..x.len()).map(|k| -self.rates[k] * x[k] + mixed[k] + (t + k as f64).sin());
        let residuals = (0..z.len()).map(|i| z[i] + self.cubic[i] * z[i].powi(3) - ax[i] - self.s(t, i));
        x_rates.chain(residuals).collect()
    }

    /// z as a function of x, by Newton's method for a monotone convex-concave function.
    fn z(&self, t: f64, x: &[f64]) -> Vec<f64> {
        let ax = product(&self.a, x);
        (0..ax.len())
            .map(|i| {
                let (cubic, right) = (self.cubic[i], ax[i] + self.s(t, i));
                let mut z = right;
                for _ in 0..100 {
                    z -= (z + cubic * z * z * z - right) / (1.0 + 3.0 * cubic * z * z);
                }
                z
            })
            .collect()
    }

    fn f(&self, t: f64, y: &[f64], dy: &mut [f64]) {
        dy.copy_from_slice(&product(&self.p, &self.rates(t, &product(&self.q, y))));
    }

    fn mass(&self) -> Mass {
        let n = self.n();
        Mass::dense((0..n).map(|i| (0..n).map(|j| self.entry(i, j)).collect::<Vec<_>>()))
    }

    fn entry(&self, i: usize, j: usize) -> f64 {
        (0..self.num_x).map(|k| self.p[i][k] * self.q[k][j]).sum()
    }

    /// The consistent state with the same M y.
    fn consistent(&self, t: f64, y: &[f64]) -> Vec<f64> {
        let w = product(&self.q, y);
        self.state(t, &w[..self.num_x])
    }

    /// The consistent state for x.
    fn state(&self, t: f64, x: &[f64]) -> Vec<f64> {
        solved(&self.q, &[x, &self.z(t, x)].concat())
    }

    /// The correction that y needs, in tolerances.
    fn correction(&self, t: f64, y: &[f64], (rtol, atol): (f64, f64)) -> f64 {
        let needed = self.consistent(t, y);
        let each = y.iter().zip(&needed).map(|(y, c)| (y - c).abs() / (atol + rtol * y.abs().max(c.abs())));
        each.fold(0.0, f64::max)
    }

    /// x at `ts`, by the reduced ODE. At `t_reset`, `kick` is added to x.
    fn reduced(&self, ts: &[f64], x0: &[f64], (t_reset, kick): (f64, &[f64])) -> Vec<Vec<f64>> {
        let field = |t: f64, x: &[f64], dx: &mut [f64]| {
            let w = [x, &self.z(t, x)].concat();
            dx.copy_from_slice(&self.rates(t, &w)[..x.len()]);
        };
        let ode = Ode::in_place(field).method(Method::Vern9).rtol(1e-11).atol(1e-12);
        let ode = ode.discontinuities(&[self.t_jump]).save_at(SaveAt::ts(ts)).on_event(
            Event::rising(),
            move |t, _x: &Vec<f64>| t - t_reset,
            |_t, x: &mut Vec<f64>| x.iter_mut().zip(kick).for_each(|(x, kick)| *x += kick),
        );
        ode.solve(0.0, 1.0, x0.to_vec()).unwrap().ys
    }
}

#[test]
fn saved_states_are_consistent_after_resets_and_discontinuities() {
    let (mut draw, mut seen, mut worst) = (Draw(7), [0; 5], [0.0_f64; 2]);
    for case in 0..num_cases(60) {
        let problem = Problem::draw(&mut draw);
        let method = STIFF[draw.below(2)];
        let rtol = if method == Method::Rodas5P {
            draw.log_uniform(1e-8, 1e-3)
        } else {
            draw.log_uniform(1e-5, 1e-3)
        };
        let atol = rtol * draw.log_uniform(1e-3, 1.0);
        let (n, num_x) = (problem.n(), problem.num_x);
        let t_reset = if draw.coin() { problem.t_jump } else { draw.uniform(0.2, 0.9) };
        // The reset changes y in any way. It determines how x changes.
        let change: Vec<f64> = (0..n).map(|_| draw.uniform(-1.0, 1.0)).collect();
        let kick = product(&problem.q, &change)[..num_x].to_vec();
        let x0: Vec<f64> = (0..num_x).map(|_| draw.uniform(-1.0, 1.0)).collect();
        let instants = [t_reset, problem.t_jump];
        let mut ts: Vec<f64> = (0..20).map(|_| draw.uniform(0.0, 1.0)).collect();
        ts.extend(instants.iter().flat_map(|t| [t + 1e-12, t + 1e-9, t + 1e-5, t - 1e-9]));
        ts.push(1.0);
        ts.sort_by(f64::total_cmp);
        ts.dedup();
        let field = |t: f64, y: &[f64], dy: &mut [f64]| problem.f(t, y, dy);
        let ode = Ode::in_place(field).method(method).rtol(rtol).atol(atol).mass_matrix(problem.mass());
        let ode = ode.discontinuities(&[problem.t_jump]).save_at(SaveAt::ts(&ts)).on_event(
            Event::rising(),
            move |t, _y: &Vec<f64>| t - t_reset,
            |_t, y: &mut Vec<f64>| y.iter_mut().zip(&change).for_each(|(y, change)| *y += change),
        );
        let context =
            format!("case {case}: {method}, rtol={rtol:e}, atol={atol:e}, reset at {t_reset}, {problem:?}");
        let solution =
            ode.solve(0.0, 1.0, problem.state(0.0, &x0)).unwrap_or_else(|e| panic!("{context}: {e}"));
        let exact = problem.reduced(&ts, &x0, (t_reset, &kick));
        assert_eq!((solution.ts.len(), solution.events.len()), (ts.len(), 1), "{context}");
        for ((&t, y), x) in ts.iter().zip(&solution.ys).zip(&exact) {
            let correction = problem.correction(t, y, (rtol, atol));
            // Between the ends of steps, the state has the error of the dense output too.
            let is_end = t == 1.0 || instants.iter().any(|at| t > *at && t <= at + 1e-9);
            let (most, bound) = if is_end { (&mut worst[0], 10.0) } else { (&mut worst[1], 100.0) };
            *most = most.max(correction);
            assert!(correction <= bound, "{correction} tolerances at t={t}: {context}");
            let error = product(&problem.q, y).iter().zip(x).map(|(w, x)| (w - x).abs()).fold(0.0, f64::max);
            assert!(error <= 1e3 * (rtol + atol), "error {error:e} at t={t}: {context}");
        }
        for (count, is_so) in seen.iter_mut().zip([
            problem.is_dense,
            !problem.is_dense,
            method == Method::Rosenbrock23,
            t_reset == problem.t_jump,
            problem.cubic[0] != 0.0,
        ]) {
            *count += usize::from(is_so);
        }
    }
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
    println!("largest corrections, after an instant and elsewhere: {worst:.3?} tolerances; drawn: {seen:?}");
}

#[test]
fn starts_are_refused_by_the_correction_that_they_need() {
    let (mut draw, mut seen) = (Draw(11), [0; 3]);
    for case in 0..num_cases(300) {
        let problem = Problem::draw(&mut draw);
        let (rtol, atol) = (draw.log_uniform(1e-10, 1e-3), draw.log_uniform(1e-12, 1e-3));
        let x0: Vec<f64> = (0..problem.num_x).map(|_| draw.uniform(-1.0, 1.0)).collect();
        let consistent = problem.state(0.0, &x0);
        // A change of z alone, in tolerances of y.
        let w: Vec<f64> =
            (0..problem.n()).map(|i| if i < problem.num_x { 0.0 } else { draw.uniform(-1.0, 1.0) }).collect();
        let change = solved(&problem.q, &w);
        let size = change
            .iter()
            .zip(&consistent)
            .map(|(c, y)| c.abs() / (atol + rtol * y.abs()))
            .fold(0.0, f64::max);
        let wanted = if draw.coin() { draw.log_uniform(1e-4, 8.0) } else { draw.log_uniform(12.0, 1e7) };
        // Far starts are limited to a change of size 1, so that the tolerance hardly depends on it.
        let part = (wanted / size).min(0.1);
        let y0: Vec<f64> = consistent.iter().zip(&change).map(|(y, c)| y + part * c).collect();
        let needed = problem.correction(0.0, &y0, (rtol, atol));
        let field = |t: f64, y: &[f64], dy: &mut [f64]| problem.f(t, y, dy);
        let ode = Ode::in_place(field)
            .method(Method::Rodas5P)
            .rtol(rtol)
            .atol(atol)
            .max_steps(3)
            .allow_incomplete();
        let found = ode.mass_matrix(problem.mass()).solve(0.0, 1.0, y0.clone());
        let context = format!("case {case}: {needed} tolerances, rtol={rtol:e}, atol={atol:e}, {problem:?}");
        if needed < 9.0 {
            seen[0] += 1;
            found.unwrap_or_else(|error| panic!("{error}: {context}"));
        } else if needed > 11.0 {
            seen[if problem.is_dense { 1 } else { 2 }] += 1;
            let error = found.expect_err(&context);
            let SolveError::Config(ConfigError::InconsistentStart {
                component,
                given,
                needed: value,
                tolerances,
                ..
            }) = error
            else {
                panic!("{error}: {context}")
            };
            assert!((tolerances / needed - 1.0).abs() < 0.01, "{tolerances}: {context}");
            assert_eq!(given, y0[component], "{context}");
            let error = (value - consistent[component]).abs();
            assert!(error < 1e-6 * (given - value).abs() + 1e-12, "y[{component}]={value}: {context}");
        }
    }
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
    println!("accepted, refused with dense M, refused with zero rows: {seen:?}");
}

#[test]
fn combinations_of_equations_are_constraints_too() {
    let ode = Ode::new(|_t, y: &[f64; 2]| [-(y[0] + y[1]) + (y[0] - y[1]), -(y[0] + y[1]) - (y[0] - y[1])]);
    let ode = ode.method(Method::Rodas5P).mass_matrix(Mass::dense([[1.0, 1.0], [1.0, 1.0]]));
    let text = ode.solve(0.0, 1.0, [1.0, 1.5]).unwrap_err().to_string();
    assert!(
        text.starts_with("y0 violates algebraic equation 1: y[0]=1.0 would have to be about 1.25,"),
        "{text}"
    );
    assert!(ode.solve(0.0, 1.0, [1.25, 1.25]).is_ok());
}

#[test]
fn a_start_is_judged_in_tolerances_at_every_scale_of_the_equation() {
    for scale in [1e-8, 1e-6, 1.0, 1e8, 1e12] {
        let ode = Ode::new(move |_t, y: &[f64; 2]| [-y[1], scale * (y[1] - y[0])]).method(Method::Rodas5P);
        let ode = ode.mass_matrix(Mass::diagonal([1.0, 0.0])).rtol(1e-6).atol(1e-6);
        for (offset, is_good) in [(1e-13, true), (1e-9, true), (1.5e-5, true), (2.5e-5, false), (0.5, false)]
        {
            assert_eq!(ode.solve(0.0, 1.0, [1.0, 1.0 + offset]).is_ok(), is_good, "{scale:e}, {offset:e}");
        }
    }
}

#[test]
fn an_index_above_one_is_named_at_the_start() {
    let mut draw = Draw(3);
    for _ in 0..50 {
        // y' = z, 0 = y - sin t, in any basis and at any scale.
        let mut number = || draw.uniform(-0.4, 0.4);
        let (p, q) = (
            [[1.0 + number(), number()], [number(), 1.0 + number()]],
            [[1.0 + number(), number()], [number(), 1.0 + number()]],
        );
        let (low, high) = (draw.log_uniform(1e-8, 1e12), draw.log_uniform(1e-8, 1e12));
        let p = [p[0].map(|x| low * x), p[1].map(|x| high * x)];
        let times = |m: [[f64; 2]; 2], x: [f64; 2]| m.map(|row| row[0] * x[0] + row[1] * x[1]);
        let mass = Mass::dense(p.map(|row| [row[0] * q[0][0], row[0] * q[0][1]]));
        let ode = Ode::new(move |t: f64, y: &[f64; 2]| {
            let [y, z] = times(q, *y);
            times(p, [z, y - t.sin()])
        });
        let determinant = q[0][0] * q[1][1] - q[0][1] * q[1][0];
        let y0 = [-q[0][1] / determinant, q[0][0] / determinant];
        let error = ode.method(Method::Rodas5P).mass_matrix(mass).solve(0.0, 1.0, y0).unwrap_err();
        assert!(matches!(error, SolveError::Config(ConfigError::HigherIndex { .. })), "{error}");
    }
}

/// 0 = y1 - u(t), y0' = y1 with a jump of u at t = 1.
fn jump(t: f64, y: &[f64; 2]) -> [f64; 2] {
    [y[1], y[1] - if t < 1.0 { 1.0 } else { 3.0 }]
}

#[test]
fn an_algebraic_component_jumps_at_a_declared_discontinuity() {
    for method in STIFF {
        let ode =
            Ode::new(jump).method(method).mass_matrix(Mass::diagonal([1.0, 0.0])).discontinuities(&[1.0]);
        let saved = ode.clone().save_at([0.5, 1.0, 1.1, 1.5]).solve(0.0, 2.0, [0.0, 1.0]).unwrap();
        let expected = [[0.5, 1.0], [1.0, 1.0], [1.3, 3.0], [2.5, 3.0]];
        for (y, expected) in saved.ys.iter().zip(expected) {
            assert!(
                (y[0] - expected[0]).abs() < 1e-5 && (y[1] - expected[1]).abs() < 1e-5,
                "{method}: {y:?}"
            );
        }
        // The same without saved states, whose steps are made in one call; and by hand.
        let plain = ode.solve(0.0, 2.0, [0.0, 1.0]).unwrap();
        assert_eq!(plain.y1, saved.y1);
        let mut stepper = ode.stepper(0.0, 2.0, [0.0, 1.0]).unwrap();
        while stepper.step().unwrap().is_some() {}
        assert_eq!(*stepper.y(), plain.y1);
        // Backward in time.
        let back = ode.solve(2.0, 0.0, [4.0, 3.0]).unwrap();
        assert!(
            (back.y1[0] - 0.0).abs() < 1e-5 && (back.y1[1] - 1.0).abs() < 1e-5,
            "{method}: {:?}",
            back.y1
        );
    }
}

#[test]
fn algebraic_components_follow_a_reset_and_a_change_by_the_caller() {
    for method in STIFF {
        let ode = Ode::new(|_t, y: &[f64; 2]| [-y[1], y[1] - 2.0 * y[0]]).method(method);
        let ode = ode.mass_matrix(Mass::diagonal([1.0, 0.0]));
        let reset = ode.clone().on_event(Event::rising(), |t, _y| t - 0.5, |_t, y| y[0] = 5.0);
        let solution = reset.save_at([0.5 + 1e-9, 0.6, 0.7]).solve(0.0, 1.0, [1.0, 2.0]).unwrap();
        for y in &solution.ys {
            assert!((y[1] - 2.0 * y[0]).abs() < 1e-4, "{method}: {y:?}");
        }
        let mut stepper = ode.stepper(0.0, 1.0, [1.0, 2.0]).unwrap();
        stepper.step().unwrap();
        stepper.y_mut()[0] = 5.0;
        stepper.step().unwrap();
        let (end, y) = (stepper.t(), stepper.y().to_owned());
        let middle = stepper.interpolate(end - 1e-3 * stepper.dt().abs().min(end)).unwrap();
        for y in [y, middle] {
            assert!((y[1] - 2.0 * y[0]).abs() < 1e-4, "{method}: {y:?}");
        }
    }
}

#[test]
fn a_reset_without_a_consistent_state_ends_the_solve_and_names_the_equation() {
    // 0 = z^2 - y: no z for y = -1.
    let ode = Ode::new(|_t, y: &[f64; 2]| [0.0, y[1] * y[1] - y[0]]).method(Method::Rodas5P);
    let ode = ode.mass_matrix(Mass::diagonal([1.0, 0.0]));
    let ode = ode.on_event(Event::rising(), |t, _y| t - 0.5, |_t, y| y[0] = -1.0);
    let error = ode.solve(0.0, 1.0, [1.0, 1.0]).unwrap_err();
    let SolveError::Incomplete { outcome: Outcome::Inconsistent { equation: 1, t, .. }, partial, .. } =
        &error
    else {
        panic!("{error}")
    };
    assert_eq!((*t, partial.t1), (0.5, 0.5));
    assert!(error.to_string().contains("satisfies algebraic equation 1"), "{error}");
}
