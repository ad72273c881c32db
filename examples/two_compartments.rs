//! Pharmacokinetics: a drug with two compartments, oral doses and a lag, fitted to measured concentrations without tensors.
//!
//! A dose enters the gut after a lag. From there the drug reaches the blood, which exchanges it with the tissue:
//! `gut' = -ka gut`, `blood' = ka gut - cl c - q (c - c_tissue)`, `tissue' = q (c - c_tissue)` (mg, liters, hours), where
//! c = blood / v and c_tissue = tissue / v_tissue. The exchange q and the volume of the tissue are known. The other four
//! parameters are fitted by the Levenberg-Marquardt method. Each update needs one solve: its `sensitivity_matrix` is the
//! Jacobian of the concentrations, also with respect to the lag, which moves the times of the doses.
//!
//! `data/two_compartments.csv` has a row per dose or measurement. Its 27 concentrations are computed from the true
//! parameters, with a relative noise of 5 %. The fit recovers each parameter to within one standard error.
//! `cargo run --release --example two_compartments` prints the fit, and the fitted concentrations with their derivatives.

use flowline::ode::Times;
use flowline::prelude::*;
use std::array::from_fn;

vector_field! {
    /// y: the amounts in the gut, in the blood and in the tissue.
    struct Drug<R> {
        /// The rate of absorption from the gut.
        ka: R,
        /// The clearance: the volume of blood that is freed of the drug per hour.
        cl: R,
        /// The volume of the blood.
        v: R,
        /// The time from a dose to its arrival in the gut.
        lag: R,
        q: R,
        v_tissue: R,
    }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        let [gut, blood, tissue] = *y;
        let (absorbed, cleared) = (self.ka * gut, self.cl * blood / self.v);
        let exchanged = self.q * (blood / self.v - tissue / self.v_tissue);
        [-absorbed, absorbed - cleared - exchanged, exchanged]
    }
    fn dose(&self, _t, y: &[R; 3], mg) -> [R; 3] { [y[0] + mg, y[1], y[2]] }
    fn late(&self, t) -> R { t + self.lag }
    fn concentration(&self, _t, y: &[R; 3]) -> R { y[1] / self.v }
}

/// The parameters that are fitted.
const FITTED: Drug<bool> = Drug { ka: true, cl: true, v: true, lag: true, q: false, v_tissue: false };
/// Names, true values and units of the fitted parameters.
const TRUTH: [(&str, f64, &str); 4] =
    [("absorption", 1.1, "1/h"), ("clearance", 5.0, "l/h"), ("volume", 20.0, "l"), ("lag", 0.4, "h")];

/// The variables of the fit: the logarithms of `ka`, `cl` and `v`, so that these stay positive, and the lag.
type Variables = [f64; 4];

fn drug(x: &Variables) -> Drug {
    let [ka, cl, v] = from_fn(|i| x[i].exp());
    Drug { ka, cl, v, lag: x[3], q: 4.0, v_tissue: 30.0 }
}

/// The derivatives of the parameters with respect to the variables.
fn scales(x: &Variables) -> [f64; 4] {
    let Drug { ka, cl, v, .. } = drug(x);
    [ka, cl, v, 1.0]
}

/// The rows of the table.
#[derive(Default)]
struct Course {
    /// Times and amounts.
    doses: Vec<(f64, f64)>,
    ts: Vec<f64>,
    /// The concentrations at `ts`.
    measured: Vec<f64>,
}

impl Course {
    fn read() -> Course {
        let mut course = Course::default();
        for row in include_str!("data/two_compartments.csv").lines().skip(1) {
            let cells: Vec<Option<f64>> = row.split(',').map(|cell| cell.parse().ok()).collect();
            match cells[..] {
                [Some(t), Some(amount), None] => course.doses.push((t, amount)),
                [Some(t), None, Some(concentration)] => {
                    course.ts.push(t);
                    course.measured.push(concentration);
                }
                _ => panic!("a row has a time, and a dose or a concentration: {row}"),
            }
        }
        course
    }
}

/// The residuals at some variables, and their derivatives.
struct Residuals {
    /// Relative differences: model over measurement, minus 1.
    values: Vec<f64>,
    jacobian: Vec<[f64; 4]>,
}

impl Residuals {
    fn at(x: &Variables, course: &Course) -> flowline::Result<Residuals> {
        let doses = Times::at(&course.doses).moved_to(Drug::late);
        let ode = Ode::from_generic(drug(x)).rtol(1e-8).atol(1e-8).on_field_times(doses, Drug::dose);
        let ode = ode.save_at(&course.ts[..]).forward_sensitivity().observe([Drug::concentration]);
        let s = ode.with_respect_to(FITTED).solve(0.0, 48.0, [0.0; 3])?;
        let (matrix, _shape) = s.sensitivity_matrix(); // [time, 1, parameter]
        let scales = scales(x);
        let rows = matrix.chunks_exact(4).zip(&course.measured);
        let values = s.observed.iter().zip(&course.measured).map(|(model, measured)| model / measured - 1.0);
        Ok(Residuals {
            values: values.collect(),
            jacobian: rows.map(|(row, measured)| from_fn(|j| row[j] * scales[j] / measured)).collect(),
        })
    }

    fn sum_of_squares(&self) -> f64 {
        self.values.iter().map(|r| r * r).sum()
    }

    /// J^T J.
    fn gram(&self) -> [[f64; 4]; 4] {
        from_fn(|i| from_fn(|k| self.jacobian.iter().map(|row| row[i] * row[k]).sum()))
    }

    /// -J^T r.
    fn descent(&self) -> [f64; 4] {
        from_fn(|i| -self.jacobian.iter().zip(&self.values).map(|(row, r)| row[i] * r).sum::<f64>())
    }
}

/// The solution x of a x = b by Gaussian elimination. It needs no pivots, because a is positive definite.
fn solve(mut a: [[f64; 4]; 4], mut b: [f64; 4]) -> [f64; 4] {
    for i in 0..4 {
        for j in i + 1..4 {
            let factor = a[j][i] / a[i][i];
            (i..4).for_each(|k| a[j][k] -= factor * a[i][k]);
            b[j] -= factor * b[i];
        }
    }
    for i in (0..4).rev() {
        let known: f64 = (i + 1..4).map(|k| a[i][k] * b[k]).sum();
        b[i] = (b[i] - known) / a[i][i];
    }
    b
}

/// The results of the fit.
#[derive(Debug)]
pub struct Found {
    /// Absorption, clearance, volume and lag.
    pub p: [f64; 4],
    /// The standard error of each.
    pub error: [f64; 4],
    /// The standard deviation of the relative noise, estimated from the residuals.
    pub noise: f64,
    /// The number of solves.
    pub num_solves: usize,
    /// The time of each measurement, the fitted concentration there and its derivatives with respect to the parameters.
    pub fitted: Vec<(f64, f64, [f64; 4])>,
}

/// Fits the parameters.
pub fn run() -> flowline::Result<Found> {
    let course = Course::read();
    let mut x = [0.5_f64.ln(), 3.0_f64.ln(), 30.0_f64.ln(), 0.2];
    let mut residuals = Residuals::at(&x, &course)?;
    let (mut damping, mut num_solves) = (1e-3, 1);
    while num_solves < 100 {
        // Marquardt (1963): an update between that of Gauss and Newton and a short one along the gradient.
        let mut damped = residuals.gram();
        (0..4).for_each(|i| damped[i][i] *= 1.0 + damping);
        let update = solve(damped, residuals.descent());
        if update.iter().all(|change| change.abs() < 1e-6) {
            break;
        }
        let trial = from_fn(|i| x[i] + update[i]);
        let at_trial = Residuals::at(&trial, &course)?;
        num_solves += 1;
        if at_trial.sum_of_squares() < residuals.sum_of_squares() {
            (x, residuals, damping) = (trial, at_trial, 0.1 * damping);
        } else {
            damping *= 10.0;
        }
    }
    // The covariance s^2 (J^T J)^-1, where s^2 is the mean square per degree of freedom.
    let variance = residuals.sum_of_squares() / (course.measured.len() - 4) as f64;
    let gram = residuals.gram();
    let inverse: [[f64; 4]; 4] = from_fn(|i| solve(gram, from_fn(|k| f64::from(u8::from(i == k)))));
    let (Drug { ka, cl, v, lag, .. }, scales) = (drug(&x), scales(&x));
    let error = from_fn(|i| scales[i] * (variance * inverse[i][i]).sqrt());
    let rows = course.ts.iter().zip(&course.measured).zip(residuals.values.iter().zip(&residuals.jacobian));
    let fitted = rows.map(|((t, measured), (relative, row))| {
        (*t, measured * (1.0 + relative), from_fn(|j| row[j] * measured / scales[j]))
    });
    Ok(Found { p: [ka, cl, v, lag], error, noise: variance.sqrt(), num_solves, fitted: fitted.collect() })
}

fn main() -> flowline::Result<()> {
    let fit = run()?;
    for (i, (name, truth, unit)) in TRUTH.iter().enumerate() {
        println!("{name:10} {:7.3} ± {:.3} {unit}, true value {truth}", fit.p[i], fit.error[i]);
        assert!((fit.p[i] - truth).abs() < 3.0 * fit.error[i], "a parameter is not found");
    }
    println!("relative noise {:.3}, {} solves", fit.noise, fit.num_solves);
    println!("   t    mg/l   by absorption   clearance   volume      lag");
    for (t, c, [ka, cl, v, lag]) in fit.fitted {
        println!("{t:5} {c:7.4} {ka:15.4} {cl:11.4} {v:8.4} {lag:8.4}");
    }
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/two_compartments.rs"]
mod tests;
