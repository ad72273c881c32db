//! Robertson's problem by reverse mode beside reference values: Radau IIA of order 13 in 80-bit numbers on the variational
//! equations; order 9 agrees in 15 digits.

use crate::ode::Method;
use crate::ode::Ode;
use crate::tensor::{Tensor, grad, jit};

/// The time, y, and the derivatives of y with respect to each of the rates 0.04, 3e7, 1e4.
type Reference = (f64, [f64; 3], [[f64; 3]; 3]);

const REFERENCES: [Reference; 3] = [
    (
        0.4,
        [9.85172113860989906e-01, 3.38639537897490419e-05, 1.47940221852203881e-02],
        [
            [-3.55952565982855573e-01, 3.90254405381821841e-04, 3.55562311577473755e-01],
            [-1.58317663555763497e-11, -5.29004109321481472e-13, 1.63607704648978292e-11],
            [9.54238142784976915e-08, -2.13096103019364633e-10, -9.52107181754783209e-08],
        ],
    ),
    (
        40.0,
        [7.15827068719405046e-01, 9.18553476455776429e-06, 2.84163745745830365e-01],
        [
            [-4.24755877170573282e+00, 4.59119624925389384e-05, 4.24751285974323967e+00],
            [-2.28835508890566941e-09, -1.13805950935012730e-13, 2.28846889485660431e-09],
            [1.37308079734462482e-05, -2.35719211384633328e-10, -1.37305722542348626e-05],
        ],
    ),
    (
        4e5,
        [4.93827452097981515e-03, 1.98499408795437557e-08, 9.95061705629079252e-01],
        [
            [-2.36333732902316657e-01, -4.58407856062153099e-07, 2.36334191310172692e-01],
            [-1.57504845353563875e-10, -6.36251477842254960e-16, 1.57505481605041727e-10],
            [9.45027194043004417e-07, 1.83250715287399199e-12, -9.45029026550157322e-07],
        ],
    ),
];

/// The largest error relative to the largest number.
fn off(found: &[f64], exact: &[f64]) -> f64 {
    let most = exact.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    found.iter().zip(exact).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / most
}

#[test]
fn derivatives_by_the_rates_are_as_accurate_as_the_solution() {
    let k = Tensor::from([0.04, 3e7, 1e4]);
    for (t1, y1, by_rates) in REFERENCES {
        for rtol in [1e-5, 1e-7] {
            let solve = move |k: &Tensor| -> crate::Result<Tensor> {
                let k = k.clone();
                let rates = move |_t: Tensor, y: &Tensor| {
                    let [a, b, c] = [0, 1, 2].map(|i: usize| y.index(i));
                    let [slow, fast, back] = [k.index(0) * &a, k.index(1) * &b * &b, k.index(2) * &b * &c];
                    Tensor::stack(&[&(&back - &slow), &(slow - &fast - back), &fast])
                };
                let ode = Ode::new(rates).method(Method::Rodas5P).rtol(rtol).atol(1e-6 * rtol);
                Ok(ode.solve(0.0, t1, Tensor::from([1.0, 0.0, 0.0]))?.y1)
            };
            let all = jit(move |k: Tensor| {
                let of = |i: usize| grad(|k: &Tensor| Ok(solve(k)?.index(i)), &k);
                Ok((solve(&k)?, Tensor::stack(&[&of(0)?, &of(1)?, &of(2)?])))
            });
            let (y, gradients) = all.call(&k).unwrap();
            let error = off(&y.to_vec(), &y1).max(rtol);
            for (j, exact) in by_rates.iter().enumerate() {
                let by: Vec<f64> = (0..3).map(|i| gradients.to_vec()[3 * i + j]).collect();
                let of_rate = off(&by, exact);
                assert!(of_rate <= 10.0 * error, "t={t1}, rate {j}: {of_rate:e}, of y {error:e}");
            }
        }
    }
}
