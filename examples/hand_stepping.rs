//! Manual stepping: the caller writes the loop, evaluates the last step, and changes the state between steps.
//!
//! A drug is taken every eight hours: `gut' = -1.2 gut`, `blood' = 1.2 gut - 0.2 blood` (mg, hours). Steps end at
//! the times of the doses (`tstops`), and the loop then adds a dose. Within steps, it evaluates the amount in the
//! blood every hour. `cargo run --release --example hand_stepping` prints the table.

use flowline::prelude::*;

const ABSORBED: f64 = 1.2;
const CLEARED: f64 = 0.2;
const DOSE: f64 = 100.0;

/// The results of the loop.
pub struct Course {
    /// The amount in the blood after each hour, in mg.
    pub hourly: Vec<f64>,
    /// The largest amount at the end of a step.
    pub peak: f64,
    /// A summary of the solve.
    pub stats: String,
}

/// Two days of treatment.
pub fn run() -> flowline::Result<Course> {
    let doses: Vec<f64> = (1..6).map(|i| 8.0 * f64::from(i)).collect();
    let drug = Ode::new(|_t, y: &[f64; 2]| [-ABSORBED * y[0], ABSORBED * y[0] - CLEARED * y[1]]);
    let drug = drug.rtol(1e-9).atol(1e-9).tstops(&doses);

    let mut steps = drug.stepper(0.0, 48.0, [DOSE, 0.0])?;
    let (mut hourly, mut peak) = (Vec::new(), 0.0_f64);
    while let Some(step) = steps.step()? {
        let t = step.t; // step.y is borrowed, not copied
        peak = peak.max(step.y[1]);
        while (hourly.len() + 1) as f64 <= t {
            let hour = (hourly.len() + 1) as f64;
            hourly.push(steps.interpolate(hour)?[1]);
        }
        if doses.contains(&t) {
            steps.y_mut()[0] += DOSE; // the next step recomputes its first stage
        }
    }
    Ok(Course { hourly, peak, stats: steps.stats().to_string() })
}

fn main() -> flowline::Result<()> {
    let course = run()?;
    for (hour, blood) in course.hourly.iter().enumerate().step_by(4) {
        println!("{:2} h  {blood:7.3} mg  {}", hour + 1, "#".repeat((blood / 2.0) as usize));
    }
    println!("peak {:.2} mg after {}", course.peak, course.stats);
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/hand_stepping.rs"]
mod tests;
