//! A stiff neural ODE: a network with one hidden layer; the second equation has a rate of 1e4.

use super::{ALL, assert_falls, relative};
use crate::ode::{Method, Ode};
use crate::vector_field;

const UNITS: usize = 16;

vector_field! {
    /// y' = -D (y - W2 tanh(W1 y + b1) - (sin 3t, cos 3t)), D = diag(1, rate); `layers` has a row of W1, an
    /// entry of b1 and a column of W2 for each unit.
    struct Neural<R> { rate: R, layers: [([f64; 2], f64, [f64; 2]); UNITS] }
    fn eval(&self, t, y: &[R; 2]) -> [R; 2] {
        let mut out = [y[0] - (3.0 * t).sin(), y[1] - (3.0 * t).cos()];
        for (inward, bias, outward) in &self.layers {
            let unit = (inward[0] * y[0] + inward[1] * y[1] + *bias).tanh();
            (out[0], out[1]) = (out[0] - outward[0] * unit, out[1] - outward[1] * unit);
        }
        [-out[0], -self.rate * out[1]]
    }
}

#[test]
fn stiff_neural_ode() {
    let layers = std::array::from_fn(|i| {
        let i = i as f64;
        ([(1.0 + 2.0 * i).sin(), (2.0 + 2.0 * i).sin()], (1.0 + i).cos(), [(3.0 + i).sin(), (19.0 + i).sin()])
    });
    assert_falls("neural ODE", ALL, 1.0, |rtol| {
        let ode =
            Ode::from_generic(Neural { rate: 1e4, layers }).method(Method::Rodas5P).rtol(rtol).atol(rtol);
        let y1 = ode.solve(0.0, 1.0, [1.0, -1.0]).unwrap().y1;
        relative(&y1, &[2.64927454253631423e+00, -2.70195963362878144e+00])
    });
}
