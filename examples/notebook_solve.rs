//! The notebook `notebooks/01_solve.ipynb` as a program. Lines that begin with `//|` are the text of the notebook, and
//! the code between them is its cells.
//!
//! `cargo run --release --example notebook_solve -- [FOLDER]` prints the output of the cells and writes their figures
//! to FOLDER.

#[path = "notebook/show.rs"]
mod shown;

use shown::show;

#[allow(clippy::too_many_lines, reason = "all cells of a notebook are in `main`")]
fn main() -> flowline::Result<()> {
    //| # Solving differential equations
    //|
    //| An ordinary differential equation defines how a state changes,
    //|
    //| $$\frac{dy}{dt} = f(t, y), \qquad y(t_0) = y_0,$$
    //|
    //| and a solver approximates its solution in steps. The step sizes follow from a tolerance. This notebook shows a
    //| first solve, the accuracy and cost of methods, step sizes, events, chaos, and the derivative of a solve. It
    //| uses no crate except `flowline`.
    //|
    //| ## Hares and lynxes
    //|
    //| The Lotka-Volterra equations (Lotka 1925, Volterra 1926) describe $x$ hares and $y$ lynxes. Hares multiply and
    //| are eaten; lynxes multiply by eating hares, and die:
    //|
    //| $$\dot x = \tfrac32 x - x y, \qquad \dot y = x y - 3 y.$$
    //|
    //| The vector field is a function of time and state. The builder methods before `solve` set the tolerances and
    //| save the dense output.
    use flowline::nn::prelude::*;
    use flowline::plot::{self, Axes, MethodCurve};

    fn lotka_volterra(_t: f64, y: &[f64; 2]) -> [f64; 2] {
        [1.5 * y[0] - y[0] * y[1], y[0] * y[1] - 3.0 * y[1]]
    }
    let populations = Ode::new(lotka_volterra).rtol(1e-8).atol(1e-8).save_at(SaveAt::dense()).solve(
        0.0,
        10.0,
        [1.0, 1.0],
    )?;
    println!("{populations}");
    show(&plot::time_series(&populations, &["hares", "lynxes"])?);
    //| The curves show the dense output: an interpolating polynomial for each step. `eval` evaluates the dense output
    //| at any time of the solve.
    //|
    //| The quantity $V = x - 3 \ln x + y - \tfrac32 \ln y$ is constant along each exact solution, so orbits are level
    //| lines of $V$. The change of $V$ along the computed solution measures the error of the solver.
    fn conserved(y: &[f64; 2]) -> f64 {
        y[0] - 3.0 * y[0].ln() + y[1] - 1.5 * y[1].ln()
    }
    let mut max_change = 0.0_f64;
    for i in 0..=1_000 {
        let y = populations.dense()?.eval(0.01 * f64::from(i))?;
        max_change = max_change.max((conserved(&y) - conserved(&[1.0, 1.0])).abs());
    }
    println!("V changes by at most {max_change:.1e}");
    show(&plot::phase_portrait(&populations, ["hares", "lynxes"], |y| [y[0], y[1]])?);
    //| ## Accuracy and cost
    //|
    //| A method of order $p$ has an error of $O(h^{p+1})$ per step and $O(h^p)$ at the end. For one more digit, a
    //| method of order 3 needs $10^{1/3} \approx 2.2$ times as many steps, a method of order 9 needs 1.3 times as
    //| many. The cheapest method therefore depends on the required number of digits. The errors below are distances
    //| from a reference, the end state of a solve with Verner's method of order 9 at a tolerance of 1e-14.
    /// The state at t = 10, and the number of function evaluations.
    fn end_state(method: Method, tolerance: f64) -> flowline::Result<([f64; 2], u64)> {
        let ode = Ode::new(lotka_volterra).method(method).rtol(tolerance).atol(tolerance);
        let solution = ode.max_steps(1_000_000).solve(0.0, 10.0, [1.0, 1.0])?;
        Ok((solution.y1, solution.stats.num_fn_evals))
    }
    let (reference, _) = end_state(Method::Vern9, 1e-14)?;
    let mut curves = Vec::new();
    for method in [Method::Bosh3, Method::Tsit5, Method::Dop853, Method::Vern9] {
        let mut points = Vec::new();
        for digits in 3..=11 {
            let (y1, evals) = end_state(method, 10_f64.powi(-digits))?;
            points.push([(y1[0] - reference[0]).hypot(y1[1] - reference[1]), evals as f64]);
        }
        println!(
            "{method:>7}: error {:.1e} with {:5} evaluations at tolerance 1e-6, {:.1e} with {:5} at 1e-10",
            points[3][0], points[3][1], points[7][0], points[7][1]
        );
        curves.push((method.to_string(), points));
    }
    fn curve((name, points): &(String, Vec<[f64; 2]>)) -> MethodCurve<'_> {
        MethodCurve { name, points }
    }
    let title = "Lotka-Volterra, t from 0 to 10";
    show(&plot::work_precision(
        title,
        ["largest error of a component at t = 10", "function evaluations"],
        &curves.iter().map(curve).collect::<Vec<_>>(),
    )?);
    //| ## Step sizes
    //|
    //| In Van der Pol's oscillator, long slow phases alternate with short fast phases:
    //|
    //| $$\ddot x = \mu (1 - x^2) \dot x - x, \qquad \mu = 20.$$
    //|
    //| The step size controller divides the estimated error of a step by the tolerance, and chooses the size of the
    //| next step from this ratio. (A PID controller uses the ratios of the last three steps.) The longest steps of
    //| the slow phases are about thirty times as long as the shortest steps of the fast phases.
    fn van_der_pol(_t: f64, y: &[f64; 2]) -> [f64; 2] {
        [y[1], 20.0 * (1.0 - y[0] * y[0]) * y[1] - y[0]]
    }
    let oscillation = Ode::new(van_der_pol).save_at(SaveAt::steps()).solve(0.0, 60.0, [2.0, 0.0])?;
    println!("{oscillation}");
    let x: Vec<[f64; 2]> = oscillation.ts.iter().zip(&oscillation.ys).map(|(&t, y)| [t, y[0]]).collect();
    let step_sizes: Vec<[f64; 2]> = oscillation.ts.windows(2).map(|t| [t[1], t[1] - t[0]]).collect();
    let left =
        Axes::new("t", "x").title("solution at the step times").size(760, 560).scatter("", &x, 0).render()?;
    let right = Axes::new("t", "step size")
        .title("step sizes")
        .size(760, 560)
        .log_y()
        .lines("", &[step_sizes], 1)
        .render()?;
    show(&left.hstack(&right));
    //| ## Events
    //|
    //| A ball falls, $\ddot h = -9.81$. A bounce is an event: the height crosses zero from above. A root search on
    //| the dense output computes the time of the bounce. The velocity is then multiplied by -0.9. A second event, the
    //| velocity crossing zero from above, records the highest points. It does not change the state.
    let ball = Ode::new(|_t, y: &[f64; 2]| [y[1], -9.81])
        .on_event(Event::falling(), |_t, y| y[0], |_t, y| y[1] *= -0.9)
        .event(Event::falling(), |_t, y| y[1])
        .save_at(SaveAt::dense())
        .solve(0.0, 8.0, [10.0, 0.0])?;
    for event in ball.events.iter().take(4) {
        println!(
            "{} at t = {:.9}, height {:.6}",
            if event.index == 0 { "bounce       " } else { "highest point" },
            event.t,
            event.y[0]
        );
    }
    println!("time of the first bounce in closed form: t = {:.9}", (2.0 * 10.0 / 9.81_f64).sqrt());
    show(&plot::time_series(&ball, &["height", "velocity"])?);
    //| ## Chaos
    //|
    //| Lorenz's equations of 1963 are a model of convection in the air. On the attractor, the distance between two
    //| neighboring solutions grows as $e^{0.9 t}$ on average, until it is as large as the attractor. The figure shows
    //| a projection of one solution to a vertical plane.
    fn lorenz(_t: f64, y: &[f64; 3]) -> [f64; 3] {
        [10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]]
    }
    let orbit = Ode::new(lorenz).method(Method::Vern9).rtol(1e-12).atol(1e-12).save_at(SaveAt::dense());
    let orbit = orbit.solve(0.0, 60.0, [1.0, 1.0, 1.0])?;
    show(&plot::phase_portrait(&orbit, ["0.8 x + 0.6 y", "z"], |y| [0.8 * y[0] + 0.6 * y[1], y[2]])?);
    //| A hundred neighbors start at distances of 1e-11 to 1e-9 from the first initial state. The next figure shows
    //| the root mean square (RMS) of their distances from the first solution. The growth begins at about $t = 13$.
    let times: Vec<f64> = (0..=80).map(|i| 0.5 * f64::from(i)).collect();
    let starts: Vec<[f64; 3]> = (0..=100).map(|i| [1.0 + 1e-11 * f64::from(i), 1.0, 1.0]).collect();
    let mut trajectories = Vec::new();
    for &start in &starts {
        let neighbor = Ode::new(lorenz).method(Method::Vern9).rtol(1e-13).atol(1e-13).save_at(times.clone());
        trajectories.push(neighbor.solve(0.0, 40.0, start)?.ys);
    }
    let mut distances = Vec::new();
    for (k, &t) in times.iter().enumerate() {
        let first = trajectories[0][k];
        let squared = |ys: &Vec<[f64; 3]>| (0..3).map(|j| (ys[k][j] - first[j]).powi(2)).sum::<f64>();
        distances.push([t, (trajectories[1..].iter().map(squared).sum::<f64>() / 100.0).sqrt()]);
    }
    for k in [0, 30, 60, 80] {
        println!("t = {:2}: RMS distance {:.1e}", distances[k][0], distances[k][1]);
    }
    let rate = (distances[70][1] / distances[30][1]).ln() / 20.0;
    println!("growth between t = 15 and t = 35: e^({rate:.2} t)");
    show(
        &Axes::new("t", "distance")
            .title("distances of 100 neighbors from the first solution")
            .log_y()
            .lines("root mean square", &[distances], 0)
            .render()?,
    );
    //| ## Derivatives of a solve
    //|
    //| If the state is a tensor, a solve with the same builder can be differentiated. The example differentiates the
    //| number of hares at $t = 10$ with respect to their birth rate. The gradient is exact for the steps taken. It
    //| agrees with a finite difference.
    fn hares(birth: &Tensor) -> flowline::Result<Tensor> {
        let field = Ode::new(|_t, y: &Tensor| {
            let (x, xy) = (y.index(0), y.index(0) * y.index(1));
            Tensor::stack(&[&(birth * x - &xy), &(xy - 3.0 * y.index(1))])
        });
        Ok(field.rtol(1e-9).atol(1e-9).solve(0.0, 10.0, Tensor::from([1.0, 1.0]))?.y1.index(0))
    }
    let (value, grad) = value_and_grad(hares, &Tensor::from(1.5))?;
    let h = 1e-4;
    let finite_difference =
        (hares(&Tensor::from(1.5 + h))?.item() - hares(&Tensor::from(1.5 - h))?.item()) / (2.0 * h);
    println!(
        "{:.6} hares, d hares / d birth rate = {:.5}, finite difference {finite_difference:.5}",
        value.item(),
        grad.item()
    );
    //| Next: [`02_neural_ode`](02_neural_ode.ipynb) learns a vector field from noisy solutions.
    Ok(())
}
