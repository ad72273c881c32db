//! Derivatives at special points, and values.

use super::*;
use crate::backend::PlanReport;
use crate::nn::Activation;
use crate::ode::Ode;
use crate::tensor::{grad, hvp, jit, jvp, value_and_grad, vmap};

#[test]
fn the_derivative_of_relu_at_0_is_0_eager_fused_and_mapped() {
    for dtype in [DType::F32, DType::F64] {
        let x = Tensor::from([-1.0, -0.0, 0.0, 1e-30, 2.0]).cast(dtype);
        let (gradient, ones) = ([0.0, 0.0, 0.0, 1.0, 1.0], Tensor::full(dtype, [5], 1.0));
        let relus: [fn(&Tensor) -> Tensor; 2] = [Tensor::relu, |x| Activation::Relu.apply(x)];
        for relu in relus {
            let sum = move |x: &Tensor| relu(x).sum();
            assert_eq!(grad(sum, &x).to_vec(), gradient);
            assert_eq!(jvp(relu, &x, &ones).1.to_vec(), gradient);
            assert_eq!(jit(move |x: Tensor| grad(sum, &x)).call(&x).unwrap().to_vec(), gradient);
            assert_eq!(vmap(|x: &Tensor| grad(sum, x), &x).to_vec(), gradient);
            // Fused with its surroundings: d/dx tanh(relu(x)^2 + relu(x)), and the derivative of that.
            let chain = move |x: &Tensor| (relu(x).square() + relu(x)).tanh().sum();
            let first = jit(move |x: Tensor| grad(chain, &x)).call(&x).unwrap().to_vec();
            let second = jvp(move |x: &Tensor| grad(chain, x), &x, &ones).1.to_vec();
            assert_eq!((&first[..3], &second[..3]), (&[0.0; 3][..], &[0.0; 3][..]));
            assert!((first[3] - 1.0).abs() < 1e-6 && (second[3] - 2.0).abs() < 1e-6, "{first:?} {second:?}");
        }
        let half = grad(|x: &Tensor| x.softplus().sum(), &Tensor::scalar(dtype, 0.0));
        assert_eq!(half.item(), 0.5);
    }
}

#[test]
fn whole_powers_of_any_exponent() {
    let x = Tensor::from([-2.0, 1.0, 0.5]);
    assert_eq!(x.powi(0).to_vec(), [1.0; 3]);
    assert_eq!(x.powi(5).to_vec(), [-32.0, 1.0, 0.03125]);
    assert_eq!(x.powi(-3).to_vec(), [-0.125, 1.0, 8.0]);
    assert_eq!(x.powi(i32::MIN).to_vec(), [0.0, 1.0, f64::INFINITY]);
}

#[test]
fn relu_keeps_nan_and_integers() {
    let y = Tensor::from([f64::NAN, f64::NEG_INFINITY, f64::INFINITY]).relu().to_vec();
    assert!(y[0].is_nan() && y[1] == 0.0 && y[2] == f64::INFINITY, "{y:?}");
    let n = Tensor::from([-2, 3]).relu();
    assert_eq!((n.dtype(), n.to_vec()), (DType::I32, vec![0.0, 3.0]));
}

/// A function, and its value and first two derivatives at x in closed form.
struct Known {
    name: String,
    f: Box<dyn Fn(&Tensor) -> Tensor + Send + Sync>,
    at: Box<dyn Fn(f64) -> [f64; 3]>,
    has_negative: bool,
}

fn known(
    name: &str,
    f: impl Fn(&Tensor) -> Tensor + Send + Sync + 'static,
    at: impl Fn(f64) -> [f64; 3] + 'static,
) -> Known {
    Known { name: name.into(), f: Box::new(f), at: Box::new(at), has_negative: true }
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softplus(x: f64) -> [f64; 3] {
    let s = logistic(x);
    [crate::graph::softplus(x), s, s * logistic(-x)]
}

fn functions() -> Vec<Known> {
    let bell = |x: f64| (-x * x).exp() * std::f64::consts::FRAC_2_SQRT_PI;
    let mut all = vec![
        known("softplus", Tensor::softplus, softplus),
        known(
            "ln sigmoid",
            |x| -(-x).softplus(),
            |x| {
                let [y, first, second] = softplus(-x);
                [-y, first, -second]
            },
        ),
        known("sigmoid", Tensor::sigmoid, |x| {
            let (s, rest) = (logistic(x), logistic(-x));
            [s, s * rest, s * rest * (rest - s)]
        }),
        known("silu", Tensor::silu, |x| {
            let (s, rest) = (logistic(x), logistic(-x));
            [x * s, s + x * s * rest, s * rest * (2.0 + x * (rest - s))]
        }),
        known("tanh", Tensor::tanh, |x| {
            let y = x.tanh();
            [y, 1.0 - y * y, -2.0 * y * (1.0 - y * y)]
        }),
        known("atan", Tensor::atan, |x| {
            let slope = 1.0 / (1.0 + x * x);
            [x.atan(), slope, -2.0 * x * slope * slope]
        }),
        known("erf", Tensor::erf, move |x| [f64::NAN, bell(x), -2.0 * x * bell(x)]),
        // At a kink, the second derivative is that of both sides.
        known("relu", Tensor::relu, |x| [x.max(0.0), if x > 0.0 { 1.0 } else { 0.0 }, 0.0]),
        known("abs", Tensor::abs, |x| [x.abs(), if x == 0.0 { 0.0 } else { x.signum() }, 0.0]),
        known("square", Tensor::square, |x| [x * x, 2.0 * x, 2.0]),
        Known {
            has_negative: false,
            ..known("sqrt", Tensor::sqrt, |x| [x.sqrt(), 0.5 / x.sqrt(), -0.25 * x.powf(-1.5)])
        },
        Known {
            has_negative: false,
            ..known("log1p", Tensor::log1p, |x| [x.ln_1p(), 1.0 / (1.0 + x), -(1.0 + x).powi(-2)])
        },
    ];
    for n in -4..=4 {
        let power = move |x: f64| {
            let p = f64::from(n);
            let term = |c: f64, n: i32| if c == 0.0 { 0.0 } else { c * x.powi(n) };
            [x.powi(n), term(p, n - 1), term(p * (p - 1.0), n - 2)]
        };
        all.push(known(&format!("powi({n})"), move |x| x.powi(n), power));
        all.push(known(&format!("powf({n})"), move |x| x.powf(f64::from(n)), power));
    }
    all
}

#[test]
fn first_and_second_derivatives_at_special_points_are_those_in_closed_form() {
    let mut points = vec![
        0.0, -0.0, 1e-30, -1e-30, 1e-8, -1e-8, 0.5, -0.5, 1.0, -1.0, 20.0, -20.0, 300.0, -300.0, 1e15, -1e15,
    ];
    points.extend((crate::tensor::Key::new(5).uniform([40]) * 10.0 - 5.0).to_vec());
    for Known { name, f, at, has_negative } in functions() {
        let xs: Vec<f64> = points.iter().copied().filter(|x| has_negative || !x.is_sign_negative()).collect();
        let (x, f) = (Tensor::from(xs.clone()), &f);
        let ones = Tensor::full(DType::F64, [xs.len()], 1.0);
        let first = move |x: &Tensor| grad(|x: &Tensor| f(x).sum(), x);
        let found = [
            ("value", 0, f(&x)),
            ("jvp", 1, jvp(|x: &Tensor| f(x), &x, &ones).1),
            ("gradient", 1, first(&x)),
            ("jvp of the gradient", 2, jvp(first, &x, &ones).1),
            ("gradient of the gradient", 2, grad(|x: &Tensor| first(x).sum(), &x)),
            ("jvp of jvp", 2, jvp(|x: &Tensor| jvp(|x: &Tensor| f(x), x, &ones).1, &x, &ones).1),
            ("jitted", 2, jit(|x: Tensor| jvp(first, &x, &ones).1).call(&x).unwrap()),
            ("mapped", 2, vmap(|x: &Tensor| jvp(first, x, &Tensor::from(1.0)).1, &x)),
        ];
        for (way, order, found) in found {
            for (&x, y) in xs.iter().zip(found.to_vec()) {
                let want = at(x)[order];
                let is_close = y == want || (y - want).abs() <= 1e-13 * want.abs().max(1.0);
                assert!(
                    is_close || (order == 0 && want.is_nan()),
                    "{way} of {name} at {x:?}: {y}, not {want}"
                );
            }
        }
    }
}

#[test]
fn the_second_derivative_of_softplus_at_0_is_a_quarter() {
    for dtype in [DType::F32, DType::F64] {
        let at = Tensor::from([0.0, -0.0]).cast(dtype);
        let second = hvp(|x: &Tensor| x.softplus().sum(), &at, &Tensor::full(dtype, [2], 1.0)).1;
        assert_eq!(second.to_vec(), [0.25, 0.25]);
        let third = jvp(
            |x: &Tensor| hvp(|x: &Tensor| x.softplus().sum(), x, &Tensor::full(dtype, [2], 1.0)).1,
            &at,
            &Tensor::full(dtype, [2], 1.0),
        );
        assert_eq!(third.1.to_vec(), [0.0, 0.0]);
    }
}

#[test]
fn a_negative_power_at_0_has_infinite_derivatives() {
    let [value, first] = [Tensor::from(0.0).powi(-2), grad(|x: &Tensor| x.powi(-2), &Tensor::from(0.0))];
    let second = hvp(|x: &Tensor| x.powi(-2), &Tensor::from(0.0), &Tensor::from(1.0)).1;
    assert_eq!(
        [value.item(), first.item(), second.item()],
        [f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY]
    );
}

/// The kernels of a program and its bodies, and the bytes that they move.
fn cost(report: &PlanReport) -> [usize; 2] {
    let of_bodies = report.bodies.iter().map(|(_, body)| cost(body));
    of_bodies.fold([report.kernels, report.bytes_moved], |[a, b], [c, d]| [a + c, b + d])
}

#[test]
fn the_training_gradient_of_a_flow_with_softplus_has_no_more_kernels_than_with_the_maximum() {
    if crate::backend::oracle_lacks("kernels") {
        return;
    }
    let cost_of = |act: fn(&Tensor) -> Tensor| {
        let step = jit(move |(w, v): (Tensor, Tensor), x: Tensor, e: Tensor| {
            let loss = |(w, v): &(Tensor, Tensor)| {
                let velocity = |x: &Tensor| act(&x.matmul(w)).matmul(v);
                let field = Ode::new(|_t, (y, _): &(Tensor, Tensor)| {
                    let (rate, along) = jvp(velocity, y, &e);
                    (rate, (along * &e).sum_last())
                });
                let end = field.solve(0.0, 1.0, (x.clone(), x.column(0) * 0.0))?;
                Ok((end.y1.0.square().sum_last() - end.y1.1).mean())
            };
            value_and_grad(loss, &(w, v))
        });
        let ones = |dims: [usize; 2]| Tensor::ones(dims);
        cost(&step.plan(&((ones([3, 64]), ones([64, 3])), ones([32, 3]), ones([32, 3]))).unwrap())
    };
    let by_maximum = |x: &Tensor| x.maximum(&Tensor::scalar(DType::F32, 0.0)) + (-x.abs()).exp().log1p();
    let (new, old) = (cost_of(Tensor::softplus), cost_of(by_maximum));
    assert!(new[0] <= old[0] && new[1] <= old[1], "kernels and bytes: {new:?}, with the maximum {old:?}");
}
