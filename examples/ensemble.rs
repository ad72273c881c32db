//! A parameter sweep: one vector field and ten thousand parameters, on SIMD lanes and threads, then sensitivities.

use flowline::prelude::*;

vector_field! {
    /// Duffing's oscillator: a stiffening spring, damped and driven. The third component integrates x^2 after the transient has
    /// died away.
    struct Duffing<R> { damping: R, stiffening: R, force: R, frequency: R, settled: R }
    fn eval(&self, t, y: &[R; 3]) -> [R; 3] {
        let [x, v, _] = *y;
        let spring = x + self.stiffening * x * x.square();
        let drive = self.force * (self.frequency * t).cos();
        // A branch would take one side for all lanes; `select_positive` chooses per lane.
        let weight = (t - self.settled).select_positive(1.0, 0.0);
        [v, drive - self.damping * v - spring, weight * x.square()]
    }
}

const T1: f64 = 120.0;
const SETTLED: f64 = 80.0;

fn duffing(frequency: f64) -> Duffing {
    Duffing { damping: 0.2, stiffening: 0.05, force: 0.3, frequency, settled: SETTLED }
}

/// The root mean square of x after the transient.
fn response(y1: [f64; 3]) -> f64 {
    (y1[2] / (T1 - SETTLED)).sqrt()
}

fn main() -> flowline::Result<()> {
    let frequencies: Vec<f64> = (0..10_000).map(|i| 0.2 + 2.0 * f64::from(i) / 9_999.0).collect();
    let ode = ensemble(&frequencies, |&frequency| (duffing(frequency), [0.0; 3]))
        .rtol(1e-6)
        .atol(1e-8)
        .discontinuities(&[SETTLED]);
    let sweep = ode.solve(0.0, T1)?;
    println!("{sweep}");

    let columns = 25;
    let per_column = frequencies.len() / columns;
    let responses: Vec<f64> = sweep.y1.iter().map(|&y1| response(y1)).collect();
    let most = responses.iter().copied().fold(0.0, f64::max);
    for (column, part) in responses.chunks(per_column).enumerate() {
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        let bar = "#".repeat((50.0 * mean / most) as usize);
        println!("{:5.2} rad/s {mean:6.3} {bar}", frequencies[column * per_column]);
    }
    let peak = responses.iter().position(|&x| x == most).unwrap_or(0);
    println!("the largest response, {most:.4}, is at {:.4} rad/s", frequencies[peak]);

    // The number of steps differs per trajectory: each lane has its own step size.
    let steps = sweep.stats.iter().map(|stats| stats.num_steps);
    println!("between {} and {} steps", steps.clone().min().unwrap_or(0), steps.max().unwrap_or(0));

    // The derivative of the response at the peak with respect to each parameter.
    let s = Ode::from_generic(duffing(frequencies[peak]))
        .rtol(1e-8)
        .discontinuities(&[SETTLED])
        .forward_sensitivity()
        .solve(0.0, T1, [0.0; 3])?;
    let by = |column: [f64; 3]| column[2] / (2.0 * (T1 - SETTLED) * response(s.y1));
    println!("d response / d damping = {:.3}, d force = {:.3}", by(s.dy1_dp.damping), by(s.dy1_dp.force));
    Ok(())
}
