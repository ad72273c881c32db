//! Methods for stiff problems are refused on tensors, by their names.

use crate::ode::{Method, Ode};
use crate::tensor::Tensor;

#[test]
fn methods_for_stiff_problems_are_refused_by_name() {
    for method in [Method::Rodas5P, Method::Rosenbrock23, Method::Rkc2, Method::AutoTsit5Rodas5P] {
        let error = Ode::new(|_t, y: &Tensor| -y).method(method).solve(0.0, 1.0, Tensor::from(1.0));
        let text = error.map(|_| ()).unwrap_err().to_string();
        assert!(
            text.starts_with(&format!("{method:?} does not run on tensors: use an explicit method")),
            "{text}"
        );
    }
}
