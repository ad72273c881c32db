//! COVID-19 in Italy in early 2020 (SIDARTHE): Giordano et al., Nature Medicine 26:855-860 (2020).
//!
//! The equations, the parameters of each phase, the days of its changes and the initial state are the paper's, with
//! the two cumulative states and the seven observables of the collection's Giordano_Nature2020. They were read from the
//! collection's table of observables and from a published transcription of its SBML file. That file also has a phase
//! after day 50 for predictions, which the model here lacks. The table of measurements was not at hand, so the times
//! are the 46 days of the paper's data (20 February to 5 April). The paper gives the reproduction number of each phase.

use super::{Model, Switches};
use crate::ode::extra::Number;
use crate::ode::*;
use crate::vector_field;

vector_field! {
    /// The states are S, I, D, A, R, T, H, E, the diagnosed cases so far, and those of them that have healed.
    struct Sidarthe<R> {
        /// Before day 4, and from days 4, 22 and 28.
        alpha: [R; 4], gamma: [R; 4],
        /// Before day 4, and from days 4 and 22.
        beta: [R; 3], delta: [R; 3],
        /// Before day 12, and from days 12 and 38.
        epsilon: [R; 3],
        /// Before day 22, and from days 22 and 38.
        zeta: [R; 3], eta: [R; 3], kappa: [R; 3], xi: [R; 3], rho: [R; 3], sigma: [R; 3],
        /// Before and from day 22.
        lambda: [R; 2], mu: [R; 2], nu: [R; 2],
        theta: R, tau: R,
        /// I, D, A, R.
        initial: [R; 4],
        first_day: R,
    }
    fn eval(&self, t, y: &[R; 10]) -> [R; 10] {
        let [s, i, d, a, r, th, ..] = *y;
        let k = rates(self, t);
        let infected = s * (k.alpha * i + k.beta * d + k.gamma * a + k.delta * r);
        let diagnosed = k.epsilon * i + (self.theta + k.mu) * a;
        let healed = k.rho * d + k.xi * r + k.sigma * th;
        [
            -infected,
            infected - (k.epsilon + k.zeta + k.lambda) * i,
            k.epsilon * i - (k.eta + k.rho) * d,
            k.zeta * i - (self.theta + k.mu + k.kappa) * a,
            k.eta * d + self.theta * a - (k.nu + k.xi) * r,
            k.mu * a + k.nu * r - (k.sigma + self.tau) * th,
            k.lambda * i + k.kappa * a + healed,
            self.tau * th,
            diagnosed,
            healed,
        ]
    }
    fn start(&self, _t, y: &[R; 10]) -> [R; 10] {
        let [i, d, a, r] = self.initial;
        let mut start = *y;
        (start[0], start[1], start[2], start[3], start[4]) = (1.0 - (i + d + a + r), i, d, a, r);
        start[8] = d + r;
        start
    }
    fn moved(&self, t) -> R { self.first_day + t }
    fn total_cases(&self, _t, y: &[R; 10]) -> R { y[8] }
    fn deaths(&self, _t, y: &[R; 10]) -> R { y[7] }
    fn recovered(&self, _t, y: &[R; 10]) -> R { y[9] }
    fn current_cases(&self, _t, y: &[R; 10]) -> R { y[2] + y[4] + y[5] }
    fn at_home(&self, _t, y: &[R; 10]) -> R { y[2] }
    fn in_hospital(&self, _t, y: &[R; 10]) -> R { y[4] }
    fn in_intensive_care(&self, _t, y: &[R; 10]) -> R { y[5] }
    /// R0 of the paper.
    fn reproduction_number(&self, t) -> R {
        let k = rates(self, t);
        let r1 = k.epsilon + k.zeta + k.lambda;
        let r2 = k.eta + k.rho;
        let r3 = self.theta + k.mu + k.kappa;
        let r4 = k.nu + k.xi;
        let by_recognized = k.eta * k.epsilon / (r2 * r4) + k.zeta * self.theta / (r3 * r4);
        (k.alpha + k.beta * k.epsilon / r2 + k.gamma * k.zeta / r3 + k.delta * by_recognized) / r1
    }
}

/// The rates at one time.
struct Rates<T> {
    alpha: T,
    beta: T,
    gamma: T,
    delta: T,
    epsilon: T,
    zeta: T,
    eta: T,
    kappa: T,
    xi: T,
    rho: T,
    sigma: T,
    lambda: T,
    mu: T,
    nu: T,
}

const SWITCHES: [f64; 5] = [4.0, 12.0, 22.0, 28.0, 38.0];

fn rates<T: Number>(of: &Sidarthe<T>, t: T) -> Rates<T> {
    let from = |day: f64, new: T, old: T| (t - (of.first_day + day)).select_positive(new, old);
    let two = |k: [T; 2]| from(22.0, k[1], k[0]);
    let three = |k: [T; 3], days: [f64; 2]| from(days[1], k[2], from(days[0], k[1], k[0]));
    let four = |k: [T; 4]| from(28.0, k[3], three([k[0], k[1], k[2]], [4.0, 22.0]));
    let late = [22.0, 38.0];
    Rates {
        alpha: four(of.alpha),
        beta: three(of.beta, [4.0, 22.0]),
        gamma: four(of.gamma),
        delta: three(of.delta, [4.0, 22.0]),
        epsilon: three(of.epsilon, [12.0, 38.0]),
        zeta: three(of.zeta, late),
        eta: three(of.eta, late),
        kappa: three(of.kappa, late),
        xi: three(of.xi, late),
        rho: three(of.rho, late),
        sigma: three(of.sigma, late),
        lambda: two(of.lambda),
        mu: two(of.mu),
        nu: two(of.nu),
    }
}

fn model() -> Model<Sidarthe, 10> {
    let field = Sidarthe {
        alpha: [0.57, 0.422, 0.36, 0.21],
        gamma: [0.456, 0.285, 0.2, 0.11],
        beta: [0.011, 0.0057, 0.005],
        delta: [0.011, 0.0057, 0.005],
        epsilon: [0.171, 0.143, 0.2],
        zeta: [0.125, 0.034, 0.025],
        eta: [0.125, 0.034, 0.025],
        kappa: [0.017, 0.017, 0.02],
        xi: [0.017, 0.017, 0.02],
        rho: [0.034, 0.017, 0.02],
        sigma: [0.017, 0.017, 0.01],
        lambda: [0.034, 0.08],
        mu: [0.017, 0.008],
        nu: [0.027, 0.015],
        theta: 0.371,
        tau: 0.01,
        // 200, 20, 1 and 2 of 60 million.
        initial: [200.0, 20.0, 1.0, 2.0].map(|n| n / 60e6),
        first_day: 0.0,
    };
    let mut num_parameters = 0;
    let _ = field.map_params(|_| num_parameters += 1);
    Model {
        field,
        start: Sidarthe::start,
        observables: vec![
            Sidarthe::total_cases,
            Sidarthe::deaths,
            Sidarthe::recovered,
            Sidarthe::current_cases,
            Sidarthe::at_home,
            Sidarthe::in_hospital,
            Sidarthe::in_intensive_care,
        ],
        times: (1..=46).map(f64::from).collect(),
        methods: [Method::Tsit5, Method::Vern9],
        size: 1e-6,
        rtol: 1e-12,
        group: 1,
        change: 4e-3,
        zero: 1.0,
        switches: Some(Switches {
            times: &SWITCHES,
            moved_to: Sidarthe::moved,
            parameter: num_parameters - 1,
        }),
    }
}

#[test]
fn sensitivities() {
    model().assert_sensitivities("Giordano");
}

#[test]
fn reproduction_numbers_are_as_published() {
    let field = model().field;
    let published = [(0.0, 2.38), (4.5, 1.66), (12.5, 1.80), (22.5, 1.60), (28.5, 0.99), (38.5, 0.85)];
    for (t, published) in published {
        let r0 = Sidarthe::reproduction_number.eval(&field, t);
        assert!((r0 - published).abs() < 0.0051, "day {t}: {r0} for {published}");
    }
}

#[test]
fn people_are_conserved() {
    let model = model();
    for y in model.states(&model.field, Method::Tsit5, 1e-10) {
        assert!((y[..8].iter().sum::<f64>() - 1.0).abs() < 1e-13, "{y:?}");
        let cases = y[2] + y[4] + y[5] + y[7] + y[9];
        assert!((cases / y[8] - 1.0).abs() < 1e-12, "{y:?}");
    }
}
