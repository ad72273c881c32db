//! The notebook `notebooks/01_solve.ipynb` as a program: lines that begin with `//|` are its text, the code between
//! them is its cells.
//!
//! `cargo run --release --example notebook_solve -- [FOLDER]` prints the output of the cells and writes their figures
//! to FOLDER.

#[path = "notebook/show.rs"]
mod shown;

use shown::show;

#[allow(clippy::too_many_lines, reason = "a notebook is one story")]
fn main() -> flowline::Result<()> {
    //| # Solving differential equations
    //|
    //| An ordinary differential equation defines how a state changes,
    //|
    //| $$\frac{dy}{dt} = f(t, y), \qquad y(t_0) = y_0,$$
    //|
    //| and a solver approximates its solution in steps that are as long as a tolerance allows. This notebook shows a
    //| first solve, the accuracy and cost of methods, step sizes, events, chaos, and the derivative of a solve. It uses
    //| only `flowline`.
    //|
    //| ## Hares and lynxes
    //|
    //| Prey multiply and are eaten, predators eat and die (Lotka 1925, Volterra 1926):
    //|
    //| $$\dot x = \tfrac32 x - x y, \qquad \dot y = x y - 3 y.$$
    //|
    //| The vector field is a function of time and state. Builder methods before `solve` set everything else.
    use flowline::nn::prelude::*;
    use flowline::plot::{self, Axes, MethodCurve};

    fn hares_and_lynxes(_t: f64, y: &[f64; 2]) -> [f64; 2] {
        [1.5 * y[0] - y[0] * y[1], y[0] * y[1] - 3.0 * y[1]]
    }
    let years = Ode::new(hares_and_lynxes).rtol(1e-8).atol(1e-8).save_at(SaveAt::dense()).solve(
        0.0,
        10.0,
        [1.0, 1.0],
    )?;
    println!("{years}");
    show(&plot::time_series(&years, &["hares", "lynxes"])?);
    //| The curve is the dense output: each step has an interpolating polynomial, whose order matches the order of the
    //| method, and `eval` evaluates it at any time.
    //|
    //| The quantity $V = x - 3 \ln x + y - \tfrac32 \ln y$ is constant along each solution. Orbits are its level lines,
    //| and its change shows the error of the solver.
    fn conserved(y: &[f64; 2]) -> f64 {
        y[0] - 3.0 * y[0].ln() + y[1] - 1.5 * y[1].ln()
    }
    let mut drift = 0.0_f64;
    for i in 0..=1_000 {
        let y = years.dense()?.eval(0.01 * f64::from(i))?;
        drift = drift.max((conserved(&y) - conserved(&[1.0, 1.0])).abs());
    }
    println!("V drifts by at most {drift:.1e}");
    show(&plot::phase_portrait(&years, ["hares", "lynxes"], |y| [y[0], y[1]])?);
    //| ## Accuracy and cost
    //|
    //| A method of order $p$ has an error of $O(h^{p+1})$ per step. For one more digit, a method of order 3 needs about
    //| twice as many steps, a method of order 9 about a quarter more. The cheapest method therefore depends on the
    //| required number of digits. The end state is known to 16 digits from a solve by Verner's method of order 9 at a
    //| tolerance of 1e-14.
    fn end(method: Method, tolerance: f64) -> flowline::Result<([f64; 2], u64)> {
        let ode = Ode::new(hares_and_lynxes).method(method).rtol(tolerance).atol(tolerance);
        let solution = ode.max_steps(1_000_000).solve(0.0, 10.0, [1.0, 1.0])?;
        Ok((solution.y1, solution.stats.num_fn_evals))
    }
    let (reference, _) = end(Method::Vern9, 1e-14)?;
    let mut curves = Vec::new();
    for method in [Method::Bosh3, Method::Tsit5, Method::Dop853, Method::Vern9] {
        let mut points = Vec::new();
        for digits in 3..=11 {
            let (y1, evals) = end(method, 10_f64.powi(-digits))?;
            points.push([(y1[0] - reference[0]).hypot(y1[1] - reference[1]), evals as f64]);
        }
        println!(
            "{method:>7}: error {:.1e} for {:5} evaluations at 1e-6, {:.1e} for {:5} at 1e-10",
            points[3][0], points[3][1], points[7][0], points[7][1]
        );
        curves.push((method.to_string(), points));
    }
    fn curve((name, points): &(String, Vec<[f64; 2]>)) -> MethodCurve<'_> {
        MethodCurve { name, points }
    }
    let title = "hares and lynxes, 0 to 10";
    show(&plot::work_precision(title, "field evaluations", &curves.iter().map(curve).collect::<Vec<_>>())?);
    //| ## Step sizes
    //|
    //| Van der Pol's oscillator changes slowly for a long time, and then very fast,
    //|
    //| $$\ddot x = \mu (1 - x^2) \dot x - x, \qquad \mu = 20.$$
    //|
    //| The controller compares the estimated error of a step with the tolerance, and chooses the size of the next step
    //| from their ratio (a PID controller uses the last three errors). Steps in the slow parts are some thirty times
    //| longer than steps in the fast parts.
    fn van_der_pol(_t: f64, y: &[f64; 2]) -> [f64; 2] {
        [y[1], 20.0 * (1.0 - y[0] * y[0]) * y[1] - y[0]]
    }
    let relaxing = Ode::new(van_der_pol).save_at(SaveAt::steps()).solve(0.0, 60.0, [2.0, 0.0])?;
    println!("{relaxing}");
    let x: Vec<[f64; 2]> = relaxing.ts.iter().zip(&relaxing.ys).map(|(&t, y)| [t, y[0]]).collect();
    let steps: Vec<[f64; 2]> = relaxing.ts.windows(2).map(|t| [t[1], t[1] - t[0]]).collect();
    let above =
        Axes::new("t", "x").title("the ends of the steps").size(760, 560).scatter("", &x, 0).render()?;
    let below = Axes::new("t", "length of a step")
        .title("their lengths")
        .size(760, 560)
        .log_y()
        .lines("", &[steps], 1)
        .render()?;
    show(&above.hstack(&below));
    //| ## Events
    //|
    //| A ball falls, $\ddot h = -9.81$. When its height crosses zero from above, a root search on the dense output
    //| finds the event, and the state is changed: the ball moves up with nine tenths of its speed. A second event only
    //| records the turning points.
    let ball = Ode::new(|_t, y: &[f64; 2]| [y[1], -9.81])
        .on_event(Event::falling(), |_t, y| y[0], |_t, y| y[1] *= -0.9)
        .event(Event::falling(), |_t, y| y[1])
        .save_at(SaveAt::dense())
        .solve(0.0, 8.0, [10.0, 0.0])?;
    for hit in ball.events.iter().take(4) {
        println!(
            "{} at t = {:.9}, height {:.6}",
            if hit.index == 0 { "bounces" } else { "turns  " },
            hit.t,
            hit.y[0]
        );
    }
    println!("the first bounce in closed form: t = {:.9}", (2.0 * 10.0 / 9.81_f64).sqrt());
    show(&plot::time_series(&ball, &["height", "velocity"])?);
    //| ## Chaos
    //|
    //| Lorenz's equations of 1963 are a model of convection in the air. On the attractor, the distance between two
    //| solutions that start a billionth apart grows as $e^{0.9 t}$, until it is as large as the attractor.
    fn lorenz(_t: f64, y: &[f64; 3]) -> [f64; 3] {
        [10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]]
    }
    let orbit = Ode::new(lorenz).method(Method::Vern9).rtol(1e-12).atol(1e-12).save_at(SaveAt::dense());
    let orbit = orbit.solve(0.0, 60.0, [1.0, 1.0, 1.0])?;
    show(&plot::phase_portrait(&orbit, ["across", "upwards"], |y| [0.8 * y[0] + 0.6 * y[1], y[2]])?);
    //| The distances of a hundred such neighbors from the first solution, until they are as large as the attractor.
    let times: Vec<f64> = (0..=80).map(|i| 0.5 * f64::from(i)).collect();
    let starts: Vec<[f64; 3]> = (0..=100).map(|i| [1.0 + 1e-11 * f64::from(i), 1.0, 1.0]).collect();
    let mut paths = Vec::new();
    for &start in &starts {
        let neighbor = Ode::new(lorenz).method(Method::Vern9).rtol(1e-13).atol(1e-13).save_at(times.clone());
        paths.push(neighbor.solve(0.0, 40.0, start)?.ys);
    }
    let mut parted = Vec::new();
    for (k, &t) in times.iter().enumerate() {
        let off = |path: &Vec<[f64; 3]>| (0..3).map(|j| (path[k][j] - paths[0][k][j]).powi(2)).sum::<f64>();
        parted.push([t, (paths[1..].iter().map(off).sum::<f64>() / 100.0).sqrt()]);
    }
    for k in [0, 30, 60, 80] {
        println!("at t = {:2} apart by {:.1e}", parted[k][0], parted[k][1]);
    }
    println!("between t = 15 and t = 35 as e^({:.2} t)", (parted[70][1] / parted[30][1]).ln() / 20.0);
    show(
        &Axes::new("t", "distance")
            .title("a hundred neighbors")
            .log_y()
            .lines("root mean square", &[parted], 0)
            .render()?,
    );
    //| ## Derivatives of a solve
    //|
    //| With tensors, the same builder makes solves that can be differentiated. The example differentiates the number of
    //| hares after ten years with respect to their birth rate. The gradient is exact for the steps taken, and a finite
    //| difference agrees with it.
    fn hares(birth: &Tensor) -> flowline::Result<Tensor> {
        let field = Ode::new(|_t, y: &Tensor| {
            let (x, met) = (y.index(0), y.index(0) * y.index(1));
            Tensor::stack(&[&(birth * x - &met), &(met - 3.0 * y.index(1))])
        });
        Ok(field.rtol(1e-9).atol(1e-9).solve(0.0, 10.0, Tensor::from([1.0, 1.0]))?.y1.index(0))
    }
    let (value, slope) = value_and_grad(hares, &Tensor::from(1.5))?;
    let h = 1e-4;
    let quotient =
        (hares(&Tensor::from(1.5 + h))?.item() - hares(&Tensor::from(1.5 - h))?.item()) / (2.0 * h);
    println!(
        "{:.6} hares, d hares / d birth rate = {:.5}, by a difference quotient {quotient:.5}",
        value.item(),
        slope.item()
    );
    //| Next: [`02_neural_ode`](02_neural_ode.ipynb) learns a vector field from its solutions.
    Ok(())
}
