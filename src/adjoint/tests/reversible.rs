//! The reversible solve, against the same map differentiated with every state stored, and against the states
//! that it may store.

use crate::adjoint::Adjoint;
use crate::graph::{Builder, Func, NodeId, Op, Policy, Solve};
use crate::ode::{ConstantStepSize, Method, Ode};
use crate::tensor::{Tensor, apply, grad, jit, jvp, trace, value_and_grad};
use crate::transform::vjp;
use std::sync::Arc;

/// A damped pendulum that is driven in time, from 0 to 4 in n steps of `method`; its state at the end.
fn pendulum(p: &Tensor, y0: &Tensor, n: usize, coupling: f64, method: Method) -> Tensor {
    let ode = Ode::new(|t: Tensor, y: &Tensor| {
        let force = (t * p.index(1)).sin() - p.index(0) * y.index(0).sin() - y.index(1) * 0.1;
        Tensor::stack(&[&y.index(1), &force])
    });
    let ode = ode.method(method).controller(ConstantStepSize { dt0: 4.0 / n as f64 });
    ode.adjoint(Adjoint::Reversible { coupling }).solve(0.0, 4.0, y0).unwrap().y1
}

/// The same function with solves that store every state and have no inverse.
fn stored(f: &Func) -> Func {
    let (mut b, ids) = Builder::with_inputs(&f.input_types());
    let mut map: Vec<NodeId> = vec![];
    for node in f.nodes() {
        let x: Vec<NodeId> = node.args.iter().map(|a| map[a.index()]).collect();
        map.push(match &node.op {
            Op::Input(k) => ids[*k],
            Op::Solve(s) => {
                assert!(s.inverse.is_some() && s.policy == Policy::Reversible);
                let s = Solve { inverse: None, policy: Policy::Direct, ..(**s).clone() };
                b.push(Op::Solve(Arc::new(s)), &x, None)
            }
            op => b.push(op.clone(), &x, Some(&node.ty)),
        });
    }
    let outputs: Vec<NodeId> = f.outputs().iter().map(|o| map[o.index()]).collect();
    b.finish(&outputs)
}

/// The largest difference between the gradients of the reversible map by its inverse and with every state
/// stored, relative to the largest entry.
fn difference(n: usize, coupling: f64) -> f64 {
    let args = [Tensor::from(&[1.3, 0.7][..]), Tensor::from(&[1.0, -0.4][..])];
    let types: Vec<_> = args.iter().map(Tensor::ty).collect();
    let traced = trace(&types, &mut |x| {
        let y1 = pendulum(&x[0], &x[1], n, coupling, Method::Tsit5);
        vec![y1.square().sum()]
    });
    assert!(traced.captures.is_empty());
    let gradients = |f: &Func| -> Vec<f64> {
        let g = vjp(f, &[0], &[0, 1]).unwrap();
        let out = apply(&g, &[args[0].clone(), args[1].clone(), Tensor::from(1.0)]);
        out[f.num_outputs()..].iter().flat_map(Tensor::to_vec).collect()
    };
    let (by_inverse, kept) = (gradients(&traced.func), gradients(&stored(&traced.func)));
    let size = kept.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    // NaN counts as the largest.
    let worst = |a: f64, b: f64| if b > a || b.is_nan() { b } else { a };
    by_inverse.iter().zip(&kept).map(|(a, b)| (a - b).abs()).fold(0.0, worst) / size
}

#[test]
fn the_gradient_is_exact_up_to_rounding_that_grows_as_the_coupling_to_the_minus_n() {
    for (n, coupling) in
        [(10, 0.99), (100, 0.99), (1000, 0.99), (1000, 0.999), (100, 0.9), (10, 0.5), (40, 0.5)]
    {
        let (error, growth) = (difference(n, coupling), coupling.powi(-(n as i32)));
        assert!(error <= 64.0 * f64::EPSILON * growth, "N {n}, coupling {coupling}: {error:e}, {growth:e}");
    }
    assert!(difference(40, 0.5) > 1e-8, "rounding errors grow");
    assert!(difference(50, 0.5).is_nan(), "y0 is not recovered");
}

#[test]
fn the_state_is_the_coupled_map_written_out() {
    let (l, n, h) = (0.9, 4, 0.25);
    let f = |t: f64, y: f64| (t - y).sin();
    // Heun's increment.
    let psi = |t: f64, h: f64, y: f64| {
        let k = f(t, y);
        0.5 * h * (k + f(t + h, y + h * k))
    };
    let (mut y, mut z) = (0.3, 0.3);
    for i in 0..n {
        let t = h * f64::from(i);
        let next = l * y + (1.0 - l) * z + psi(t, h, z);
        z -= psi(t + h, -h, next);
        y = next;
    }
    let ode = Ode::new(|t: Tensor, y: &Tensor| (t - y).sin()).method(Method::Heun);
    let ode = ode.controller(ConstantStepSize { dt0: h }).adjoint(Adjoint::Reversible { coupling: l });
    let got = ode.solve(0.0, 1.0, Tensor::from(0.3)).unwrap();
    assert!((got.y1.item() - y).abs() < 1e-14, "{} {y}", got.y1.item());
    assert_eq!(got.stats.num_fn_evals.item(), 16.0);
}

#[test]
fn adaptive_steps_saved_times_and_both_times_have_the_derivatives_of_the_solution() {
    // y = y0 e^(-p t): the derivatives of the saved values are known.
    let ode = |p: &Tensor| {
        let p = p.clone();
        move |t1: &Tensor, y0: &Tensor| {
            let ode =
                Ode::new(|_t, y: &Tensor| -(&p * y)).rtol(1e-9).atol(1e-9).adjoint(Adjoint::reversible());
            ode.save_at([0.0, 0.2, 0.55, 1.0]).solve(0.0, t1, y0).unwrap()
        }
    };
    let at = (Tensor::from(0.8), Tensor::from(1.5), Tensor::from(2.0));
    let sum = |x: &(Tensor, Tensor, Tensor)| {
        let solution = ode(&x.0)(&x.1, &x.2);
        solution.ys.sum() + solution.y1
    };
    let (value, gradients) = value_and_grad(sum, &at);
    let ts = [0.0, 0.2, 0.55, 1.0, 1.5];
    let y = |t: f64| 2.0 * (-0.8 * t).exp();
    let total: f64 = ts.iter().map(|&t| y(t)).sum();
    let by_p: f64 = ts.iter().map(|&t| -t * y(t)).sum();
    let want = [total, by_p, -0.8 * y(1.5), total / 2.0];
    let got = [value.item(), gradients.0.item(), gradients.1.item(), gradients.2.item()];
    for (g, w) in got.iter().zip(want) {
        assert!((g - w).abs() < 1e-6, "{got:?} {want:?}");
    }
    let whole = ode(&at.0)(&Tensor::from(1.0), &at.2);
    let last = whole.ys.to_vec()[3];
    assert!((last - whole.y1.item()).abs() < 1e-14, "{last} {}", whole.y1.item());
}

#[test]
fn saved_times_have_the_order_of_the_method_s_curve() {
    let error = |n: usize| {
        let ode = Ode::new(|_t, y: &Tensor| y.cos()).controller(ConstantStepSize { dt0: 1.0 / n as f64 });
        let ode = ode.adjoint(Adjoint::reversible()).save_at([0.23, 0.487, 0.71]);
        let got = ode.solve(0.0, 1.0, Tensor::from(0.0)).unwrap().ys.to_vec();
        let want = [0.23_f64, 0.487, 0.71].map(|t| t.sinh().atan()); // the Gudermannian function
        got.iter().zip(want).map(|(g, w)| (g - w).abs()).fold(0.0, f64::max)
    };
    let order = (error(8) / error(32)).log2() / 2.0;
    assert!(order > 3.7, "{order}");
}

#[test]
fn no_state_is_kept_whatever_the_number_of_steps() {
    if crate::backend::oracle_lacks("memory plan") {
        return;
    }
    let kept = |steps: f64| {
        let f = jit(move |p: Tensor| {
            grad(
                |p: &Tensor| {
                    let ode =
                        Ode::new(|_t, y: &Tensor| -(p * y)).controller(ConstantStepSize { dt0: 1.0 / steps });
                    ode.adjoint(Adjoint::reversible()).solve(0.0, 1.0, Tensor::ones([100])).unwrap().y1.sum()
                },
                &p,
            )
        });
        f.call(1.0).unwrap();
        let plan = f.plan(&(Tensor::from(1.0),)).unwrap();
        (f.last_run().accepted, f.last_run().states_kept_max, f.last_run().recomputed, plan.arena_bytes)
    };
    let (few, many) = (kept(10.0), kept(1000.0));
    assert_eq!((few.0, few.1, few.2), (10, 0, 0));
    assert_eq!((many.0, many.1, many.2), (1000, 0, 0));
    assert_eq!(few.3, many.3);
    assert!(many.3 < 100 * 8 * 60, "{}", many.3);
}

#[test]
fn a_forward_derivative_of_the_gradient_equals_differences_and_a_coupling_out_of_range_is_refused() {
    let y0 = Tensor::from(&[1.0, -0.4][..]);
    let gradient =
        |p: &Tensor| grad(|p: &Tensor| pendulum(p, &y0, 20, 0.99, Method::Tsit5).square().sum(), p);
    let (p, v) = (Tensor::from(&[1.3, 0.7][..]), Tensor::from(&[0.5, -1.0][..]));
    let second = jvp(gradient, &p, &v).1.to_vec();
    let (ahead, behind) = (gradient(&(&p + &v * 1e-4)).to_vec(), gradient(&(&p - &v * 1e-4)).to_vec());
    for i in 0..2 {
        let difference = (ahead[i] - behind[i]) / 2e-4;
        assert!((second[i] - difference).abs() < 1e-6, "{} {difference}", second[i]);
    }
    for coupling in [0.0, 1.0, f64::NAN] {
        let ode = Ode::new(|_t, y: &Tensor| -y).adjoint(Adjoint::Reversible { coupling });
        let e = ode.solve(0.0, 1.0, Tensor::from(1.0)).unwrap_err().to_string();
        assert!(e.contains("must be in (0, 1)"), "{e}");
    }
}
