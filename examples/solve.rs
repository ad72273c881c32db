//! Solving ordinary differential equations on the host: one call, then the builder.

use flowline::prelude::*;

fn main() -> flowline::Result<()> {
    let ys = odeint(|_t, y: &[f64; 2]| [y[1], -y[0]], [1.0, 0.0], &[0.0, 1.0, 2.0])?;
    println!("a circle at t = 0, 1, 2: {ys:?}");

    let lotka_volterra = |_t: f64, y: &[f64; 2]| [1.5 * y[0] - y[0] * y[1], y[0] * y[1] - 3.0 * y[1]];
    let solution = Ode::new(lotka_volterra).rtol(1e-8).atol(1e-8).solve(0.0, 10.0, [1.0, 1.0])?;
    println!("{solution}");
    println!("{:?} after {} steps", solution.y1, solution.stats.num_accepted);

    let n = 200;
    let heat = Ode::in_place(|_t, u: &[f64], du: &mut [f64]| {
        for i in 1..u.len() - 1 {
            du[i] = u[i - 1] - 2.0 * u[i] + u[i + 1];
        }
        (du[0], du[u.len() - 1]) = (0.0, 0.0);
    });
    let bump: Vec<f64> = (0..n).map(|i| f64::from(u8::from(i == n / 2))).collect();
    let spread = heat.solve(0.0, 10.0, bump)?;
    println!("heat at the middle after t = 10: {:.6}", spread.y1[n / 2]);
    Ok(())
}
