//! Given rules are used; derivatives without a rule are derived.

use crate::ode::{ConstantStepSize, Ode};
use crate::tensor::{Tensor, custom_derivatives, grad, jit, jvp, map_rows, value_and_grad};

fn f64s(x: &[f64]) -> Tensor {
    Tensor::from(x)
}

fn one() -> Tensor {
    Tensor::from(1.0)
}

/// x^2, with a deliberately wrong rule: derivative 10 x.
fn wrong_rule(x: &Tensor) -> Tensor {
    custom_derivatives(|x: &Tensor| x.square()).jvp(|x, _y, dx| x * 10 * dx).call(x)
}

#[test]
fn the_reverse_derivative_of_a_forward_rule_is_its_transpose() {
    let (y, dy) = jvp(wrong_rule, &f64s(&[3.0]), &f64s(&[2.0]));
    assert_eq!((y.to_vec(), dy.to_vec()), (vec![9.0], vec![60.0]));
    assert_eq!(grad(|x: &Tensor| wrong_rule(x).sum(), &f64s(&[3.0])).to_vec(), vec![30.0]);
    let rotated = |x: &Tensor| {
        let op = custom_derivatives(|x: &Tensor| x.clone());
        op.jvp(|_x, _y, d| Tensor::stack(&[&(d.index(1) * 3), &(d.index(0) * 5)])).call(x)
    };
    let gradient = grad(|x: &Tensor| rotated(x).index(0) * 7 + rotated(x).index(1), &f64s(&[1.0, 1.0]));
    assert_eq!(gradient.to_vec(), vec![5.0, 21.0]);
}

#[test]
fn a_reverse_rule_leaves_the_forward_derivative_to_the_function() {
    let op = custom_derivatives(|x: &Tensor| x.square()).vjp(|x, y, g| x * y * g);
    assert_eq!(jvp(|x: &Tensor| op.call(x), &Tensor::from(3.0), &one()).1.item(), 6.0);
    assert_eq!(grad(|x: &Tensor| op.call(x), &Tensor::from(3.0)).item(), 27.0);
}

#[test]
fn with_both_rules_each_is_used_and_nesting_uses_them_again() {
    // The forward rule is 2 y, the reverse rule is 3 y, where y is the result.
    let op = custom_derivatives(|x: &Tensor| x.exp()).jvp(|_x, y, dx| y * 2 * dx).vjp(|_x, y, g| y * 3 * g);
    let f = |x: &Tensor| op.call(x);
    let e = 1.0_f64.exp();
    let near = |got: Tensor, want: f64| assert!((got.item() - want).abs() < 1e-12 * want, "{got:?} {want}");
    near(jvp(f, &one(), &one()).1, 2.0 * e);
    near(grad(f, &one()), 3.0 * e);
    near(grad(|x: &Tensor| grad(f, x), &one()), 9.0 * e);
    near(jvp(|x: &Tensor| grad(f, x), &one(), &one()).1, 6.0 * e);
    near(grad(|x: &Tensor| jvp(f, x, &one()).1, &one()), 6.0 * e);
}

#[test]
fn a_rounding_may_have_the_gradient_of_the_identity() {
    let round = custom_derivatives(|x: &Tensor| (x + 0.5).floor()).vjp(|_x, _y, g| g.clone());
    let (y, gradient) = value_and_grad(|x: &Tensor| (round.call(x) * x).sum(), &f64s(&[1.2, 2.7]));
    assert_eq!((y.item(), gradient.to_vec()), (1.2 + 3.0 * 2.7, vec![1.0 + 1.2, 3.0 + 2.7]));
}

#[test]
fn trees_go_in_and_out_and_integers_have_no_derivative() {
    let take = custom_derivatives(|(x, i): &(Tensor, Tensor)| (x.take(i), i.clone()));
    let take = take.vjp(|(x, i), _y, (g, none)| {
        assert_eq!(none.shape(), i.shape());
        (x * g.sum(), i.clone())
    });
    let at = f64s(&[1.0, 2.0]);
    let gradient = grad(|x: &Tensor| take.call(&(x.clone(), Tensor::from([1, 1, 0]))).0.sum(), &at);
    assert_eq!(gradient.to_vec(), vec![3.0, 6.0]);
}

#[test]
fn eager_jitted_and_tiled_calls_agree() {
    let at = f64s(&[1.0, 2.0, 3.0, 4.0]);
    assert_eq!(wrong_rule(&at).to_vec(), vec![1.0, 4.0, 9.0, 16.0]);
    let step = jit(|x: Tensor| value_and_grad(|x: &Tensor| wrong_rule(x).sum(), &x));
    let (y, gradient) = step.call(&at).unwrap();
    assert_eq!((y.item(), gradient.to_vec()), (30.0, vec![10.0, 20.0, 30.0, 40.0]));
    let tiled = |x: &Tensor| {
        map_rows(std::slice::from_ref(x), 2, |x| (vec![], vec![wrong_rule(&x[0]).sum()])).1[0].clone()
    };
    assert_eq!(grad(tiled, &at).to_vec(), gradient.to_vec());
}

#[test]
fn rules_hold_inside_a_solve() {
    // y' = p y, with a rule that doubles the derivative with respect to p.
    let growth = |p: &Tensor| {
        let times = custom_derivatives(|(p, y): &(Tensor, Tensor)| p * y);
        let times = times.vjp(|(p, y), _, g| (g * y * 2, g * p));
        let ode = Ode::new(|_t, y: &Tensor| times.call(&(p.clone(), y.clone())))
            .controller(ConstantStepSize { dt0: 0.01 });
        ode.solve(0.0, 1.0, one()).unwrap().y1
    };
    let gradient = grad(growth, &Tensor::from(0.5)).item();
    assert!((gradient / (2.0 * 0.5_f64.exp()) - 1.0).abs() < 1e-6, "{gradient}");
}

#[test]
fn a_rule_whose_solve_ends_early_gives_nan() {
    let lost = custom_derivatives(|x: &Tensor| x.clone()).vjp(|x, _y, g| {
        let y = Ode::new(|_t, y: &Tensor| y.square()).solve(0.0, 2.0, x).unwrap().y1;
        g + (&y - &y)
    });
    let gradient = |x: f64| grad(|x: &Tensor| lost.call(x), &Tensor::from(x)).item();
    assert!(gradient(0.1) == 1.0 && gradient(1.0).is_nan());
}

#[test]
#[should_panic(expected = "the function used a traced tensor that is not part of its argument")]
fn a_traced_tensor_beside_the_argument_is_refused() {
    grad(|p: &Tensor| custom_derivatives(|x: &Tensor| x * p).call(&one()), &one());
}

#[test]
#[should_panic(expected = "leaf 0 of the result of the vjp rule is f64[], expected f64[2]")]
fn a_rule_of_another_shape_is_refused() {
    let op = custom_derivatives(|x: &Tensor| x.sum()).vjp(|_x, _y, g| g.clone());
    grad(|x: &Tensor| op.call(x), &f64s(&[1.0, 2.0]));
}
