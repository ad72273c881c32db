//! Stiff solves that are refused, or end early: singular matrices, Jacobians that are not finite, settings
//! that the method does not read.

use super::stiff::STIFF;
use crate::ode::{ConfigError, ConstantStepSize, Mass, Method, Ode, Outcome, SolveError, Sparsity, Tableau};
use crate::vector_field;

#[test]
fn a_singular_matrix_recovers_by_a_shorter_step_and_ends_constant_steps() {
    let gamma = 0.21193756319429014;
    let dt0 = 0.125;
    let rate = 1.0 / gamma / dt0;
    let ode = Ode::new(move |_t, y: &f64| rate * y).method(Method::Rodas5P);
    let ode = ode
        .jacobian(move |_t, _y, jacobian| jacobian[(0, 0)] = rate)
        .time_derivative(|_t, _y, f_t| *f_t = 0.0);
    let y1 = ode.clone().dt0(dt0).solve(0.0, 0.125, 1.0).unwrap().y1;
    assert!((y1 / (rate * 0.125).exp() - 1.0).abs() < 1e-4, "{y1}");
    let error = ode.controller(ConstantStepSize { dt0 }).solve(0.0, 1.0, 1.0).unwrap_err();
    let SolveError::Incomplete { outcome, partial, .. } = &error else { panic!("{error}") };
    assert_eq!(*outcome, Outcome::SingularMatrix { t: 0.0, component: 0, step: 1 });
    assert_eq!((partial.t1, partial.y1), (0.0, 1.0));
}

#[test]
fn constraints_that_leave_a_component_open_are_named() {
    for method in STIFF {
        let ode = Ode::new(|_t, y: &[f64; 3]| [-y[0], y[0], y[0] + y[1] - 1.0]).method(method);
        let ode = ode.mass_matrix(Mass::diagonal([1.0, 1.0, 0.0]));
        let error = ode.solve(0.0, 1.0, [1.0, 0.0, 0.0]).unwrap_err();
        assert!(
            matches!(error, SolveError::Config(ConfigError::HigherIndex { component: 2, .. })),
            "{method}: {error}"
        );
        let text = "the algebraic equations do not determine y[2] at t0=0, so their index is above 1";
        assert!(error.to_string().starts_with(text), "{error}");
    }
}

vector_field! {
    struct Root<R> { rate: R }
    fn eval(&self, _t, y: &[R; 2]) -> [R; 2] {
        [self.rate, y[0].sqrt()]
    }
}

#[test]
fn a_jacobian_that_is_not_finite_is_named() {
    let expected = "the Jacobian is not finite at t=0: row 1, column 0 (df[1]/dy[0]); y[0]=0; keep y inside the \
                    field's domain, or, on plain states, give `jacobian`";
    let dual = Ode::from_generic(Root { rate: 1.0 }).method(Method::Rodas5P);
    let text = dual.solve(0.0, 1.0, [0.0, 0.0]).unwrap_err().to_string();
    assert!(text.ends_with(expected), "{text}");
    let ode = Ode::new(|_t, y: &[f64; 2]| [1.0, y[0].sqrt()]).method(Method::Rodas5P);
    let ode = ode.jacobian(|_t, y, jacobian| jacobian[(1, 0)] = 0.5 / y[0].sqrt());
    let text = ode.solve(0.0, 1.0, [0.0, 0.0]).unwrap_err().to_string();
    assert!(text.ends_with(expected), "{text}");
}

vector_field! {
    /// The true solution leaves 0, at which the entry of the diagonal is infinite.
    struct OwnRoot<R> { rate: R }
    fn eval(&self, _t, y: &[R; 2]) -> [R; 2] {
        [-y[0], y[1].sqrt() + self.rate]
    }
}

#[test]
fn an_infinite_entry_of_the_diagonal_ends_a_solve() {
    let named = Outcome::NonFiniteJacobian { t: 0.0, row: 1, column: 1, y: 0.0 };
    for (method, t1) in STIFF.into_iter().flat_map(|method| [(method, 1.0), (method, -1.0)]) {
        let solved = Ode::from_generic(OwnRoot { rate: 1.0 }).method(method).allow_incomplete();
        assert_eq!(solved.solve(0.0, t1, [1.0, 0.0]).unwrap().outcome, named, "{method}");
        let ode = Ode::new(|_t, y: &f64| y.sqrt() + 1.0).method(method).allow_incomplete();
        let ode = ode.jacobian(|_t, y, jacobian| jacobian[(0, 0)] = 0.5 / y.sqrt());
        let named = Outcome::NonFiniteJacobian { t: 0.0, row: 0, column: 0, y: 0.0 };
        assert_eq!(ode.clone().solve(0.0, t1, 0.0).unwrap().outcome, named, "{method}");
        // h J overflows.
        let large = Ode::new(|_t, y: &f64| 1e300 * y).method(method).allow_incomplete();
        let large = large.jacobian(|_t, _y, jacobian| jacobian[(0, 0)] = 1e300);
        let large = large.controller(ConstantStepSize { dt0: 1e10 });
        let outcome = large.solve(0.0, t1 * 1e10, 1e-300).unwrap().outcome;
        assert!(matches!(outcome, Outcome::NonFinite { .. }), "{method}: {outcome:?}");
    }
}

#[test]
fn settings_that_the_method_does_not_read_are_refused() {
    let ode = || Ode::new(|_t, y: &[f64; 2]| *y);
    let refused = |ode: Ode<'_, _, _>| ode.solve(0.0, 1.0, [1.0; 2]).unwrap_err().to_string();
    let text = refused(ode().jacobian(|_t, _y, _j| ()));
    assert!(text.starts_with("`jacobian` has no effect with a method that uses no Jacobian"), "{text}");
    assert!(refused(ode().time_derivative(|_t, _y, _f| ())).starts_with("`time_derivative` has no effect"));
    assert!(
        refused(ode().jacobian_sparsity(Sparsity::banded(0, 0)))
            .starts_with("`jacobian_sparsity` has no effect")
    );
    assert!(refused(ode().spectral_radius(|_t, _y| 1.0)).starts_with("`spectral_radius` has no effect"));
    let own = Tableau::new("own", &[], &[1.0], &[0.0]).unwrap();
    let text = refused(ode().tableau(own).mass_matrix(Mass::diagonal([1.0, 0.0])));
    assert!(text.starts_with("a tableau does not run with `mass_matrix`"), "{text}");
    let text = refused(ode().mass_matrix(Mass::diagonal([1.0, 0.0])));
    assert!(text.starts_with("Tsit5 does not run with `mass_matrix`"), "{text}");
    let rodas = || ode().method(Method::Rodas5P);
    let text = refused(rodas().mass_matrix(Mass::diagonal([1.0])));
    assert_eq!(text, "`mass_matrix` has size 1, but the state has 2 components");
    let text = refused(rodas().jacobian_sparsity(Sparsity::pattern([(0, 2)])));
    assert_eq!(text, "`jacobian_sparsity` has the entry (0, 2), which is outside the 2 x 2 Jacobian");
}

#[test]
fn an_infinite_spectral_radius_ends_a_solve() {
    let ode = Ode::new(|_t, y: &f64| -y).method(Method::Rkc2).spectral_radius(|_t, _y| f64::INFINITY);
    assert!(ode.max_steps(50).solve(0.0, 1.0, 1.0).is_err());
}
