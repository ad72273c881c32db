//! Forward sensitivities are the derivatives of the discrete solve with its step times fixed.

use crate::ode::*;
use crate::vector_field;

vector_field! {
    struct Logistic<R> { rate: R, capacity: R }
    fn eval(&self, _t, y: &[R; 1]) -> [R; 1] {
        [self.rate * y[0] * (1.0 - y[0] / self.capacity)]
    }
}

vector_field! {
    struct Lorenz<R> { sigma: R, rho: R, beta: R }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        [self.sigma * (y[1] - y[0]), y[0] * (self.rho - y[2]) - y[1], y[0] * y[1] - self.beta * y[2]]
    }
}

vector_field! {
    /// y_i' = rate_i y_i t^power. It has more directions than one pass computes.
    struct Decays<R> { rates: [R; 7], power: i32 }
    fn eval(&self, t, y: &[R; 7]) -> [R; 7] {
        std::array::from_fn(|i| self.rates[i] * y[i] * t.powi(self.power))
    }
}

#[test]
fn logistic_growth_has_its_closed_form() {
    for (t1, z0) in [(1.0, 0.3), (-2.0, 0.4)] {
        let (rate, capacity) = (1.3, 2.0);
        let ode = Ode::from_generic(Logistic { rate, capacity }).rtol(1e-12).atol(1e-12);
        let s = ode.forward_sensitivity().solve(0.0, t1, [z0]).unwrap();
        let (u0, e) = (z0 / capacity, (rate * t1).exp());
        let u1 = u0 * e / (1.0 + u0 * (e - 1.0));
        let du = e / (1.0 + u0 * (e - 1.0)).powi(2);
        let want = [u1 * capacity, du, t1 * capacity * u1 * (1.0 - u1), u1 - du * u0];
        let got = [s.y1[0], s.dy1_dy0[0][0], s.dy1_dp.rate[0], s.dy1_dp.capacity[0]];
        for (got, want) in got.into_iter().zip(want) {
            assert!((got - want).abs() < 1e-10, "{got} for {want}");
        }
        assert!(s.to_string().ends_with("one pass"), "{s}");
    }
}

#[test]
fn finite_differences_on_fixed_step_times_agree() {
    let lorenz = |p: [f64; 3]| Lorenz { sigma: p[0], rho: p[1], beta: p[2] };
    let (p, y0) = ([10.0, 28.0, 8.0 / 3.0], [1.0, 1.2, 0.9]);
    for method in [Method::Tsit5, Method::Dop853, Method::Bosh3] {
        let ode = Ode::from_generic(lorenz(p)).method(method).rtol(1e-7);
        let plain = ode.clone().save_at(SaveAt::steps().and_t0().and_t1()).solve(0.0, 1.0, y0).unwrap();
        let s = ode.forward_sensitivity().solve(0.0, 1.0, y0).unwrap();
        assert_eq!((s.y1.map(f64::to_bits), s.stats), (plain.y1.map(f64::to_bits), plain.stats), "{method}");
        let grid = StepTo { ts: plain.ts.clone() };
        let at = |p, y0| {
            let ode = Ode::from_generic(lorenz(p)).method(method).controller(grid.clone());
            ode.solve(0.0, 1.0, y0).unwrap().y1
        };
        let columns = [s.dy1_dp.sigma, s.dy1_dp.rho, s.dy1_dp.beta];
        for j in 0..3 {
            let (mut up, mut down, h) = (p, p, 1e-5 * p[j]);
            (up[j], down[j]) = (p[j] + h, p[j] - h);
            let (up, down) = (at(up, y0), at(down, y0));
            for i in 0..3 {
                let difference = (up[i] - down[i]) / (2.0 * h);
                let off = (columns[j][i] - difference).abs() / (1.0 + difference.abs());
                assert!(off < 1e-6, "{method}: dy{i}/dp{j} {} for {difference}", columns[j][i]);
            }
            let (mut up, mut down, h) = (y0, y0, 1e-5);
            (up[j], down[j]) = (y0[j] + h, y0[j] - h);
            let (up, down) = (at(p, up), at(p, down));
            for i in 0..3 {
                let difference = (up[i] - down[i]) / (2.0 * h);
                let off = (s.dy1_dy0[i][j] - difference).abs() / (1.0 + difference.abs());
                assert!(off < 1e-6, "{method}: dy{i}/dy0_{j} {} for {difference}", s.dy1_dy0[i][j]);
            }
        }
    }
}

#[test]
fn more_directions_than_a_pass_has_take_more_passes() {
    let rates = std::array::from_fn(|i| 0.1 * i as f64 - 0.3);
    let ode = Ode::from_generic(Decays { rates, power: 1 }).rtol(1e-11).atol(1e-12);
    let s = ode.forward_sensitivity().solve(0.0, 1.5, [2.0; 7]).unwrap();
    assert_eq!(s.num_passes, 2);
    for i in 0..7 {
        // y = y0 e^(rate t^2/2)
        let growth = (rates[i] * 1.125).exp();
        for j in 0..7 {
            let (by_rate, by_y0) = if i == j { (2.0 * 1.125 * growth, growth) } else { (0.0, 0.0) };
            assert!((s.dy1_dp.rates[j][i] - by_rate).abs() < 1e-9, "dy{i}/drate{j}");
            assert!((s.dy1_dy0[i][j] - by_y0).abs() < 1e-9, "dy{i}/dy0_{j}");
        }
    }
}

#[test]
fn settings_apply_as_in_the_plain_solve_or_are_rejected_by_name() {
    let lorenz = Lorenz { sigma: 10.0, rho: 28.0, beta: 8.0 / 3.0 };
    let ode = || Ode::from_generic(lorenz.clone()).rtol(1e-7);
    let plain = ode().solve(0.0, 1.0, [1.0, 1.2, 0.9]).unwrap();
    let max = |e: &[f64; 3]| e.iter().fold(0.0_f64, |max, e| max.max(e.abs()));
    for ode in [ode().norm(max), ode().tstops(&[0.37]), ode().discontinuities(&[0.37])] {
        let other = ode.clone().solve(0.0, 1.0, [1.0, 1.2, 0.9]).unwrap();
        let s = ode.forward_sensitivity().solve(0.0, 1.0, [1.0, 1.2, 0.9]).unwrap();
        assert!(other.y1 != plain.y1);
        assert_eq!((s.y1.map(f64::to_bits), s.stats), (other.y1.map(f64::to_bits), other.stats));
    }
    let height = |_t: f64, y: &[f64; 3]| y[0] - 2.0;
    let refused = [
        ("event", "field_event", ode().event(Event::crossing(), height)),
        ("event", "field_event", ode().event(Event::crossing().terminal(), height)),
        ("on_event", "on_field_event", ode().on_event(Event::crossing(), height, |_t, y| y[1] = 0.0)),
        ("on_times", "on_field_times", ode().on_times(&[0.5], |_t, y, _x| y[1] = 0.0)),
    ];
    for (setting, instead, ode) in refused {
        let error = ode.forward_sensitivity().solve(0.0, 1.0, [1.0, 1.2, 0.9]).unwrap_err().to_string();
        let all = [setting, instead].map(|name| format!("`{name}`"));
        assert!(all.iter().all(|name| error.contains(name)), "{error}");
    }
}

#[test]
fn an_empty_interval_and_an_early_end_have_derivatives_too() {
    let lorenz = Lorenz { sigma: 10.0, rho: 28.0, beta: 2.0 };
    let s = Ode::from_generic(lorenz.clone()).forward_sensitivity().solve(1.0, 1.0, [1.0; 3]).unwrap();
    assert_eq!((s.dy1_dy0, s.dy1_dp.rho), ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [0.0; 3]));
    let early =
        Ode::from_generic(lorenz).max_steps(5).forward_sensitivity().solve(0.0, 1.0, [1.0; 3]).unwrap_err();
    let s = early.into_partial().unwrap();
    assert!(
        matches!(s.outcome, Outcome::MaxSteps { step: 5, .. }) && s.t1 < 1.0 && s.dy1_dy0[0][0].is_finite()
    );
}

#[test]
fn dual_functions_agree_with_finite_differences() {
    type D = Dual<f64, 2>;
    let functions: [(&str, fn(D, D) -> D, fn(f64, f64) -> f64); 20] = [
        ("sin", |x, _| x.sin(), |x, _| x.sin()),
        ("cos", |x, _| x.cos(), |x, _| x.cos()),
        ("exp", |x, _| x.exp(), |x, _| x.exp()),
        ("ln", |x, _| x.ln(), |x, _| x.ln()),
        ("sqrt", |x, _| x.sqrt(), |x, _| x.sqrt()),
        ("tanh", |x, _| x.tanh(), |x, _| x.tanh()),
        ("abs", |x, _| (-x).abs(), |x, _| (-x).abs()),
        ("powi", |x, _| x.powi(-3), |x, _| x.powi(-3)),
        ("powf", |x, y| x.powf(y), |x, y| x.powf(y)),
        ("powf by a number", |x, _| x.powf(2.5), |x, _| x.powf(2.5)),
        ("max", |x, y| x.max(y), |x, y| x.max(y)),
        ("min", |x, y| x.min(y), |x, y| x.min(y)),
        ("hypot", |x, y| x.hypot(y), |x, y| x.hypot(y)),
        ("recip", |x, _| x.recip(), |x, _| x.recip()),
        ("square", |x, _| x.square(), |x, _| x * x),
        ("select_positive", |x, y| (x - y).select_positive(x * x, y), |x, y| if x > y { x * x } else { y }),
        ("divide", |x, y| x / y + 2.0 / x - y / 3.0, |x, y| x / y + 2.0 / x - y / 3.0),
        ("multiply", |x, y| 2.0 * x * y * 3.0, |x, y| 2.0 * x * y * 3.0),
        ("add", |x, y| 1.0 - x + y - 2.0, |x, y| 1.0 - x + y - 2.0),
        ("sum", |x, y| [x, y, x].into_iter().sum(), |x, y| x + y + x),
    ];
    for (name, dual, plain) in functions {
        for (x, y) in [(0.7, 1.9), (1.3, 0.4)] {
            let got = dual(D::variable(x, 0), D::variable(y, 1));
            let h = 1e-6;
            let derivatives = [
                (plain(x + h, y) - plain(x - h, y)) / (2.0 * h),
                (plain(x, y + h) - plain(x, y - h)) / (2.0 * h),
            ];
            assert_eq!(got.value, plain(x, y), "{name}");
            for p in 0..2 {
                assert!(
                    (got.tangent[p] - derivatives[p]).abs() < 1e-8,
                    "{name}: {} for {}",
                    got.tangent[p],
                    derivatives[p]
                );
            }
        }
    }
    let zero = D::variable(0.0, 0);
    assert_eq!([zero.powf(2.0).tangent[0], zero.powi(2).tangent[0], zero.abs().tangent[0]], [0.0; 3]);
    assert_eq!(D::from(0.0).sqrt().tangent, [0.0; 2]);
}
