//! Problems with a closed form. Published problems are in `accuracy`.

use crate::ode::{Method, Ode};

#[test]
fn logistic_growth_with_its_log_derivative() {
    // z' = z (1 - z). l' = 1 - 2 z is the divergence, whose integral is log dz1/dz0.
    let f = |_: f64, y: &[f64; 2]| [y[0] * (1.0 - y[0]), 1.0 - 2.0 * y[0]];
    for method in Method::EXPLICIT.into_iter().filter(|method| method.tableau().order >= 5) {
        let ode = Ode::new(f).method(method).rtol(1e-12).atol(1e-12);
        let y1 = ode.solve(0.0, 1.0, [0.2, 0.0]).unwrap().y1;
        let error = (y1[0] - 0.4046096751916897).abs().max((y1[1] - 0.4092109417593047).abs());
        assert!(error < 1e-12, "{method}: {error:e}");
    }
    let fixed = Ode::new(f).method(Method::Rk4).dt0(1e-3).solve(0.0, 1.0, [0.2, 0.0]).unwrap().y1;
    assert!((fixed[0] - 0.4046096751916897).abs() + (fixed[1] - 0.4092109417593047).abs() < 1e-13);
}

#[test]
fn powers_of_t_are_exact_up_to_the_order() {
    // y' = (p + 1) t^p is integrated exactly for p < order. With a wrong c it would not be.
    for method in Method::EXPLICIT {
        for p in 0..method.tableau().order as i32 {
            let ode = Ode::new(move |t: f64, _y: &f64| f64::from(p + 1) * t.powi(p)).method(method);
            let y1 =
                ode.controller(crate::ode::ConstantStepSize { dt0: 0.25 }).solve(0.0, 1.0, 0.0).unwrap().y1;
            assert!((y1 - 1.0).abs() < 1e-14, "{method} p={p}: {y1}");
        }
    }
}
