//! The notebook `notebooks/06_stiff_fit.ipynb` as a program. Lines that begin with `//|` are the text of the notebook,
//! and the code between them is its cells.
//!
//! `cargo run --release --example notebook_stiff_fit -- [FOLDER]` prints the output of the cells and writes their
//! figures to FOLDER.

#[path = "notebook/show.rs"]
mod shown;

use shown::show;

#[allow(clippy::too_many_lines, reason = "all cells of a notebook are in `main`")]
fn main() -> flowline::Result<()> {
    //| # Rates of a stiff reaction
    //|
    //| Robertson's reaction (1966) has three substances and three rates:
    //|
    //| $$\dot a = -k_1 a + k_3 b c, \qquad \dot b = k_1 a - k_2 b^2 - k_3 b c, \qquad \dot c = k_2 b^2.$$
    //|
    //| It is stiff: $b$ reaches its quasi-steady state within milliseconds, and the reaction ends after years. This
    //| notebook estimates the rates from noisy measurements by the Gauss-Newton method, with standard errors. The
    //| Jacobian of the residuals comes from `forward_sensitivity`, by the stiff method `Rodas5P`.
    //|
    //| ## The model
    //|
    //| The parameters are the logarithms of the rates, so that the rates stay positive. Functions after `eval` can be
    //| saved with their derivatives; here they are the logarithms of the concentrations. The module makes the struct
    //| available to later cells.
    use flowline::nn::prelude::*;
    use flowline::plot::{Axes, Figure};

    mod model {
        flowline::vector_field! {
            pub struct Robertson<R> { pub ln_k: [R; 3] }
            fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
                let [k1, k2, k3] = [0, 1, 2].map(|i| self.ln_k[i].exp());
                let (d, b) = (k1 * y[0] - k3 * y[1] * y[2], k2 * y[1] * y[1]);
                [-d, d - b, b]
            }
            pub fn ln_a(&self, _t, y: &[R; 3]) -> R { y[0].ln() }
            pub fn ln_b(&self, _t, y: &[R; 3]) -> R { y[1].ln() }
            pub fn ln_c(&self, _t, y: &[R; 3]) -> R { y[2].ln() }
        }
    }
    use model::Robertson;

    /// ln a, ln b, ln c at each time in turn, and the derivatives of each with respect to ln k.
    fn concentrations(ln_k: [f64; 3], ts: &[f64]) -> flowline::Result<(Vec<f64>, Vec<[f64; 3]>)> {
        let ode = Ode::from_generic(Robertson { ln_k }).method(Method::Rodas5P).save_at(ts);
        let ode = ode.rtol(1e-7).atol([1e-12, 1e-16, 1e-12]).forward_sensitivity();
        let ode = ode.observe([Robertson::ln_a, Robertson::ln_b, Robertson::ln_c]);
        let ode = ode.with_respect_to(Robertson { ln_k: [true; 3] });
        let s = ode.solve(0.0, ts[ts.len() - 1], [1.0, 0.0, 0.0])?;
        let (matrix, _) = s.sensitivity_matrix();
        Ok((s.observed.clone(), matrix.chunks(3).map(|row| [row[0], row[1], row[2]]).collect()))
    }
    /// `n` times from 1e-4 to 1e5, at equal ratios.
    fn times(n: u32) -> Vec<f64> {
        (0..n).map(|i| 10_f64.powf(-4.0 + 9.0 * f64::from(i) / f64::from(n - 1))).collect()
    }
    // The published rates.
    let ln_k = [0.04_f64, 3e7, 1e4].map(f64::ln);
    //| ## Which times determine which rate?
    //|
    //| The curves show $\partial \ln a / \partial \ln k_j$, then the same for $b$ and $c$. A value of 1 means that the
    //| concentration is proportional to the rate. Early values of $b$ depend on $k_1$ only: $b \approx k_1 t$. In the
    //| quasi-steady state, $b$ also depends on $k_2$, and late values depend on $k_3$. Measurements at all times
    //| therefore determine all three rates.
    let fine = times(200);
    let (_, derivatives) = concentrations(ln_k, &fine)?;
    fn panel(i: usize, ts: &[f64], derivatives: &[[f64; 3]]) -> flowline::Result<Figure> {
        let mut axes = Axes::new("t", ["d ln a / d ln k", "d ln b / d ln k", "d ln c / d ln k"][i]);
        for (j, name) in ["k1", "k2", "k3"].into_iter().enumerate() {
            let path = ts.iter().enumerate().map(|(k, t)| [*t, derivatives[3 * k + i][j]]).collect();
            axes = axes.lines(name, &[path], j);
        }
        Ok(axes.log_x().size(560, 480).render()?)
    }
    let [a, b, c] =
        [panel(0, &fine, &derivatives)?, panel(1, &fine, &derivatives)?, panel(2, &fine, &derivatives)?];
    show(&a.hstack(&b).hstack(&c));
    //| ## Data
    //|
    //| Each concentration is measured at 20 times, with an error of 5 %. The errors of the logarithms are independent
    //| and normal, with the standard deviation $\sigma = 0.05$.
    fn measured(ln_k: [f64; 3], ts: &[f64], key: &Key) -> flowline::Result<Vec<f64>> {
        let (exact, _) = concentrations(ln_k, ts)?;
        let noise = key.normal([exact.len()]).to_vec();
        Ok(exact.iter().zip(noise).map(|(value, noise)| value + 0.05 * noise).collect())
    }
    let ts = times(20);
    let data = measured(ln_k, &ts, &Key::new(0))?;
    //| ## Gauss-Newton
    //|
    //| Let $r$ be the residuals, model minus data over $\sigma$, and $J$ their Jacobian. The Gauss-Newton method solves
    //| a linear least-squares problem in each iteration:
    //|
    //| $$\ln k \leftarrow \ln k - (J^T J)^{-1} J^T r.$$
    //|
    //| The covariance matrix of the estimates is $(J^T J)^{-1}$ at the minimum, because the residuals are in units of
    //| $\sigma$. The function returns both. It starts at rates that are wrong by a factor of 5.
    /// The inverse of a symmetric positive definite matrix, by the Gauss-Jordan method.
    fn inverse(mut a: [[f64; 3]; 3]) -> [[f64; 3]; 3] {
        for k in 0..3 {
            let pivot = std::mem::replace(&mut a[k][k], 1.0);
            a[k] = a[k].map(|x| x / pivot);
            let row = a[k];
            for i in (0..3).filter(|&i| i != k) {
                let factor = std::mem::replace(&mut a[i][k], 0.0);
                for j in 0..3 {
                    a[i][j] -= factor * row[j];
                }
            }
        }
        a
    }
    type Fit = ([f64; 3], [[f64; 3]; 3]); // the logarithms of the rates, and their covariance matrix
    fn fit(data: &[f64], ts: &[f64], start: [f64; 3], prints: bool) -> flowline::Result<Fit> {
        let mut ln_k = start;
        for iteration in 0.. {
            let (model, jacobian) = concentrations(ln_k, ts)?;
            let (mut jtj, mut jtr, mut squares) = ([[0.0; 3]; 3], [0.0; 3], 0.0);
            for ((value, datum), row) in model.iter().zip(data).zip(&jacobian) {
                let (r, row) = ((value - datum) / 0.05, [0, 1, 2].map(|j| row[j] / 0.05));
                squares += r * r;
                for i in 0..3 {
                    jtr[i] += row[i] * r;
                    (0..3).for_each(|j| jtj[i][j] += row[i] * row[j]);
                }
            }
            if prints {
                let [k1, k2, k3] = ln_k.map(f64::exp);
                println!("{iteration}: k = {k1:.5}, {k2:.4e}, {k3:.4e}, sum of squares {squares:.2}");
            }
            let covariance = inverse(jtj);
            let step = covariance.map(|row| -(0..3).map(|j| row[j] * jtr[j]).sum::<f64>());
            if step.iter().all(|x| x.abs() < 1e-5) || iteration == 20 {
                return Ok((ln_k, covariance));
            }
            (0..3).for_each(|i| ln_k[i] += step[i]);
        }
        unreachable!("the loop ends by `return`")
    }
    let factor = 5_f64.ln();
    let start = [ln_k[0] + factor, ln_k[1] - factor, ln_k[2] + factor];
    let (found, covariance) = fit(&data, &ts, start, true)?;
    //| With 60 data and 3 parameters, a sum of squares of 57 is expected, with a standard deviation of 11. The standard
    //| errors of the logarithms are relative errors of the rates:
    for j in 0..3 {
        println!(
            "k{} = {:.4e} +- {:.1} %, off by {:+.1} %",
            j + 1,
            found[j].exp(),
            100.0 * covariance[j][j].sqrt(),
            100.0 * (found[j] - ln_k[j])
        );
    }
    let (fitted, _) = concentrations(found, &fine)?;
    let mut axes = Axes::new("t", "concentration").log_x().log_y().title("Data (dots) and the fit");
    for (i, name) in ["a", "b", "c"].into_iter().enumerate() {
        let path = fine.iter().enumerate().map(|(k, t)| [*t, fitted[3 * k + i].exp()]).collect();
        let dots: Vec<[f64; 2]> = ts.iter().enumerate().map(|(k, t)| [*t, data[3 * k + i].exp()]).collect();
        axes = axes.lines(name, &[path], i).scatter("", &dots, i);
    }
    show(&axes.render()?);
    //| ## Are the standard errors right?
    //|
    //| The measurements are repeated 500 times with new noise, and each series is fitted. The standard deviation of 500
    //| estimates has a standard error of 3 % itself. The figure shows the estimates of $k_2$ and $k_3$, with the ellipse
    //| of the covariance matrix of the first fit that contains 95 % of the estimates.
    let mut repeated = Vec::new();
    for i in 1..=500_u32 {
        repeated.push(fit(&measured(ln_k, &ts, &Key::new(0).fold_in(i))?, &ts, ln_k, false)?.0);
    }
    for j in 0..3 {
        let mean = repeated.iter().map(|k| k[j]).sum::<f64>() / 500.0;
        let variance = repeated.iter().map(|k| (k[j] - mean).powi(2)).sum::<f64>() / 499.0;
        println!(
            "ln k{}: standard deviation {:.4}, standard error {:.4}",
            j + 1,
            variance.sqrt(),
            covariance[j][j].sqrt()
        );
    }
    // The Cholesky factor of the covariance matrix of ln k2 and ln k3; 5.99: the quantile of chi-squared.
    let l22 = covariance[1][1].sqrt();
    let l32 = covariance[1][2] / l22;
    let l33 = (covariance[2][2] - l32 * l32).sqrt();
    let mut ellipse = Vec::new();
    for i in 0..=100 {
        let (sin, cos) = (std::f64::consts::TAU * f64::from(i) / 100.0).sin_cos();
        let radius = 5.99_f64.sqrt();
        ellipse.push([radius * l22 * cos, radius * (l32 * cos + l33 * sin)]);
    }
    let off: Vec<[f64; 2]> = repeated.iter().map(|k| [k[1] - ln_k[1], k[2] - ln_k[2]]).collect();
    show(
        &Axes::new("error of ln k2", "error of ln k3")
            .title("500 fits, and the 95 % ellipse of the first fit")
            .scatter("", &off, 0)
            .lines("", &[ellipse], 1)
            .render()?,
    );
    //| [Sensitivities](../docs/how-to/sensitivities.md) explains the functions of a `vector_field!`. The example
    //| [`two_compartments`](../examples/two_compartments.rs) fits a model with doses. For more parameters, or a fit
    //| without a Jacobian, see [Fit parameters](../docs/how-to/fit-parameters.md).
    Ok(())
}
