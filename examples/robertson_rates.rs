//! The three rates of Robertson's stiff reaction from sixty noisy concentrations, with their standard errors.
//!
//! The reaction is `a' = -k1 a + k3 b c`, `b' = k1 a - k2 b^2 - k3 b c`, `c' = k2 b^2`, from (1, 0, 0). The data are the
//! concentrations at twenty times from 1e-4 to 1e5, with a relative error of 5 %. `Rodas5P` solves the reaction on
//! tensors, and reverse mode differentiates the loss with respect to ln k, because the rates differ by nine orders of
//! magnitude and must stay positive. The residuals are those of the logarithms, because the errors are relative. The
//! fit starts with each rate wrong by a factor of 10. [`notebook_stiff_fit`](notebook_stiff_fit.rs) solves the same
//! problem by forward sensitivities and the Gauss-Newton method.
//!
//! `cargo run --release --example robertson_rates` takes less than a second and prints the rates.

use flowline::nn::prelude::*;
use flowline::tensor::DType::F64;

/// The published rates, which generate the data.
pub const K: [f64; 3] = [0.04, 3e7, 1e4];
const NOISE: f64 = 0.05;

/// ln a, ln b and ln c at the given times: [time, substance].
fn logarithms(k: &Tensor, ts: &Tensor) -> flowline::Result<Tensor> {
    let field = Ode::new(|_t, y: &Tensor| {
        let [a, b, c] = [0, 1, 2].map(|i: usize| y.index(i));
        // The difference of two nearly equal terms is computed once.
        let change = k.index(0) * a - k.index(2) * &b * c;
        let last = k.index(1) * b.square();
        Tensor::stack(&[&-&change, &(&change - &last), &last])
    });
    // b falls to 8e-8 at the end, and c is 1e-8 at the start.
    let field = field.method(Method::Rodas5P).rtol(1e-6).atol([1e-12, 1e-14, 1e-14]).save_at(ts);
    let solution = field.solve(0.0, ts.index(ts.size() - 1), Tensor::from([1.0, 0.0, 0.0]))?;
    Ok(solution.ys.ln())
}

/// The results of the fit.
#[derive(Debug)]
pub struct Found {
    /// The rates.
    pub k: [f64; 3],
    /// The standard error of ln k: the relative standard error of each rate.
    pub error: [f64; 3],
    /// The mean squared residual in units of the noise variance.
    pub loss: f64,
}

/// Fits the rates.
pub fn run(updates: usize) -> flowline::Result<Found> {
    let ts = (Tensor::linspace(-4.0, 5.0, 20) * std::f64::consts::LN_10).exp();
    let noise = Key::new(0).normal([20, 3]).cast(F64) * NOISE;
    let measured = logarithms(&Tensor::from(K), &ts)? + noise;
    let residuals =
        |ln_k: &Tensor| Ok::<_, flowline::Error>((logarithms(&ln_k.exp(), &ts)? - &measured) * (1.0 / NOISE));
    let start = Tensor::from([10.0 * K[0], 0.1 * K[1], 10.0 * K[2]]).ln();
    let loss = |ln_k: &Tensor| Ok(residuals(ln_k)?.square().mean());
    let (ln_k, _) = minimize(loss, start, Adam::new(Schedule::cosine_decay(0.1, updates as u32)), updates)?;
    let covariance = covariance(residuals, &ln_k)?.with_variance(1.0);
    let three = |x: &Tensor| std::array::from_fn(|i| x.index(i).item());
    let k = three(&ln_k.exp());
    Ok(Found { k, error: three(&covariance.standard_errors()), loss: loss(&ln_k)?.item() })
}

fn main() -> flowline::Result<()> {
    let fit = run(300)?;
    for (i, ((k, error), truth)) in fit.k.iter().zip(fit.error).zip(K).enumerate() {
        println!("k{} = {k:.3e} +- {:.1} %, true value {truth:.0e}", i + 1, 100.0 * error);
        assert!((k / truth).ln().abs() < 4.0 * error, "a rate is not found");
    }
    println!("mean squared error {:.3} noise variances", fit.loss);
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/robertson_rates.rs"]
mod tests;
