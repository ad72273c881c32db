//! Measured inputs on tensors: values as on numbers, and gradients by the rows.

use super::*;
use crate::ode::tests::draw::{Draw, num_cases};
use crate::ode::{Interpolation, InterpolationError};

type Make = fn(&[f64], &[[f64; 2]]) -> Result<Interpolation<2>, InterpolationError>;

/// 2 to 12 rows with distances of 0.1 to 0.5, the three kinds, both directions, held and not held.
#[test]
fn inputs_on_tensors_equal_those_on_numbers_with_exact_gradients() {
    let mut draw = Draw(6);
    for case in 0..num_cases(12) {
        let make: Make = [Interpolation::constant, Interpolation::linear, Interpolation::hermite][case % 3];
        let n = 2 + draw.below(11);
        let mut t = -1.0;
        let mut next = || {
            t += draw.uniform(0.1, 0.5);
            t
        };
        let ts: Vec<f64> = (0..n).map(|_| next()).collect();
        let rows: Vec<[f64; 2]> = (0..n).map(|_| [0; 2].map(|_| draw.uniform(-2.0, 2.0))).collect();
        let u = make(&ts, &rows).unwrap();
        let u = if draw.coin() { u.hold() } else { u };
        let tensor = Tensor::from_vec([n, 2], rows.as_flattened().to_vec());
        let input = u.of_tensor(&tensor);
        for _ in 0..20 {
            let t = if draw.coin() { draw.one(&ts) } else { draw.uniform(ts[0] - 0.5, ts[n - 1] + 0.5) };
            for (x, y) in input.at(&Tensor::from(t)).to_vec().iter().zip(u.at(t)) {
                let same = x.is_nan() && y.is_nan() || (x - y).abs() < 1e-12;
                assert!(same, "case {case}: u({t}) is {y}, on tensors {x}");
            }
        }
        // y' = u_0 + 0.5 u_1 - y from 0 is linear in the rows, so a derivative is a solve with one value 1.
        let (t0, t1) = if draw.coin() { (ts[0], ts[n - 1]) } else { (ts[n - 1], ts[0]) };
        let end = |rows: &Tensor| {
            let input = u.of_tensor(rows);
            let f = |t: Tensor, y: &Tensor| {
                let u = input.at(&t);
                u.index(0) + u.index(1) * 0.5 - y
            };
            let ode = Ode::new(f).method(Method::Vern9).rtol(1e-13).atol(1e-13).stop_at_rows(&u);
            Ok(ode.solve(t0, t1, Tensor::from(0.0))?.y1)
        };
        let gradient: crate::Result<Tensor> = grad(end, &tensor);
        let gradient = gradient.unwrap().to_vec();
        for (k, found) in gradient.iter().enumerate() {
            let mut one = vec![[0.0; 2]; n];
            one[k / 2][k % 2] = 1.0;
            let unit = make(&ts, &one).unwrap();
            let f = |t: f64, y: &f64| unit.at(t)[0] + 0.5 * unit.at(t)[1] - y;
            let ode = Ode::new(f).method(Method::Vern9).rtol(1e-13).atol(1e-13).stop_at_rows(&unit);
            let want = ode.solve(t0, t1, 0.0).unwrap().y1;
            assert!((found - want).abs() < 1e-9, "case {case}: by value {k} {found}, not {want}");
        }
    }
}

#[test]
fn rows_of_a_batch_read_the_input_at_their_own_times() {
    let u = Interpolation::linear(&[0.0, 1.0, 2.0], &[[0.0], [2.0], [-1.0]]).unwrap();
    let input = u.of_tensor(&Tensor::from([[0.0_f64], [2.0], [-1.0]]));
    let f = |t: Tensor, y: &Tensor| input.at(&t).index(0) * y;
    let ode = Ode::new(f).batching(crate::adjoint::Batching::PerRow).rtol(1e-10).atol(1e-10).stop_at_rows(&u);
    let y1 = ode.solve(0.0, 2.0, Tensor::from([1.0_f64, 3.0])).unwrap().y1.to_vec();
    // The integral of u is 1.5.
    assert!((y1[0] - 1.5_f64.exp()).abs() < 1e-7 && (y1[1] - 3.0 * 1.5_f64.exp()).abs() < 1e-7, "{y1:?}");
}
