//! Only one branch runs, and derivatives are those of this branch.

use crate::array::DType;
use crate::ode::{ConstantStepSize, Ode};
use crate::tensor::{Tensor, cond, grad, jit, jvp, map_rows, value_and_grad};

fn f64s(x: &[f64]) -> Tensor {
    Tensor::from(x)
}

/// x / e, computed by a solve with this many steps.
fn solved(x: &Tensor, steps: f64) -> Tensor {
    let ode = Ode::new(|_t, y: &Tensor| -y).controller(ConstantStepSize { dt0: 1.0 / steps });
    ode.solve(0.0, 1.0, x).unwrap().y1
}

#[test]
fn a_branch_that_is_not_chosen_does_not_run() {
    let f = jit(|x: Tensor| cond(&x.lt(0.0), &x, |x| solved(x, 1000.0), |x| solved(x, 10.0)));
    for (x, steps) in [(-1.0, 1000), (1.0, 10), (-2.0, 1000)] {
        assert!((f.call(x).unwrap().item() - x * (-1.0_f64).exp()).abs() < 1e-6);
        assert_eq!(f.last_run().attempts, steps);
    }
    assert_eq!(f.num_traces(), 1);
}

#[test]
fn a_gradient_is_that_of_the_branch_and_free_of_the_other_ones_nan() {
    let f = |x: &Tensor| cond(&x.le(0.0), x, |x| x * x * 5, |x| x.sqrt() * 2);
    let step = jit(move |x: Tensor| value_and_grad(f, &x));
    for (x, y, gradient) in [(-1.0, 5.0, -10.0), (0.0, 0.0, 0.0), (4.0, 4.0, 0.5)] {
        let (value, got) = step.call(x).unwrap();
        assert_eq!((value.item(), got.item()), (y, gradient), "at {x}");
        assert_eq!(jvp(f, &Tensor::from(x), &Tensor::from(3.0)).1.item(), 3.0 * gradient);
    }
    assert_eq!(grad(|x: &Tensor| grad(f, x), &Tensor::from(-1.0)).item(), 10.0);
    assert_eq!(grad(|x: &Tensor| jvp(f, x, &Tensor::from(1.0)).1, &Tensor::from(4.0)).item(), -0.0625);
}

#[test]
fn trees_captures_and_gradients_by_captures_go_through() {
    let w = f64s(&[2.0, 3.0]);
    let loss = |w: &Tensor, flag: f64| {
        let at = (f64s(&[1.0, 4.0]), Tensor::from([7]));
        let step = jit(move |(w, flag): (Tensor, Tensor)| {
            let (y, n) = cond(&flag.lt(0.5), &at, |(x, n)| (x * &w, n.clone()), |(x, n)| (x.clone(), n + 1));
            (y.sum(), n)
        });
        step.call((w.clone(), Tensor::from(flag))).unwrap()
    };
    let (y, n) = loss(&w, 0.0);
    assert_eq!((y.item(), n.to_vec()), (14.0, vec![7.0]));
    let (y, n) = loss(&w, 1.0);
    assert_eq!((y.item(), n.to_vec()), (5.0, vec![8.0]));
    let gradient = |flag: f64| {
        let step = jit(|(w, flag): (Tensor, Tensor)| {
            let x = f64s(&[1.0, 4.0]);
            grad(|w: &Tensor| cond(&flag.lt(0.5), &x, |x| (x * w).sum(), Tensor::sum), &w)
        });
        step.call((w.clone(), Tensor::from(flag))).unwrap().to_vec()
    };
    assert_eq!((gradient(0.0), gradient(1.0)), (vec![1.0, 4.0], vec![0.0, 0.0]));
}

#[test]
fn cond_works_in_tiles_and_in_the_field_of_a_solve() {
    let f = |x: &Tensor| {
        let tiles = map_rows(std::slice::from_ref(x), 2, |x| {
            let up = x[0].sum().lt(5.0);
            (vec![cond(&up, &x[0], |x| x * 10, |x| -x)], vec![])
        });
        tiles.0[0].sum()
    };
    assert_eq!(grad(f, &f64s(&[1.0, 2.0, 3.0, 4.0])).to_vec(), vec![10.0, 10.0, -1.0, -1.0]);
    // y' = p y up to t = 1/2, then 0
    let growth = |p: &Tensor| {
        let at = |y: &Tensor| (p.clone(), y.clone());
        let ode =
            Ode::new(|t: Tensor, y: &Tensor| cond(&t.lt(0.5), &at(y), |(p, y)| p * y, |(_, y)| y * 0.0));
        ode.discontinuities(&[0.5]).rtol(1e-10).solve(0.0, 1.0, Tensor::from(1.0)).unwrap().y1
    };
    let (y, gradient) = value_and_grad(growth, &Tensor::from(0.8));
    let want = 0.4_f64.exp();
    assert!(
        (y.item() - want).abs() < 1e-8 && (gradient.item() - 0.5 * want).abs() < 1e-8,
        "{y:?} {gradient:?}"
    );
}

#[test]
fn a_failed_solve_counts_in_the_branch_that_ran_alone() {
    let f = jit(|x: Tensor| {
        let blow_up = |x: &Tensor| Ode::new(|_t, y: &Tensor| y.square()).solve(0.0, 2.0, x).unwrap().y1;
        cond(&x.lt(10.0), &x, blow_up, Tensor::clone)
    });
    assert!(f.call(0.1).is_ok());
    assert_eq!(f.call(20.0).unwrap().item(), 20.0);
    assert!(f.call(1.0).unwrap_err().to_string().contains("the solve ended early"));
    assert_eq!(f.num_traces(), 1);
}

#[test]
fn a_concrete_predicate_is_a_choice_of_code() {
    let yes = Tensor::from(1.0).lt(2.0);
    let f = |x: &Tensor| cond(&yes, x, |x| x * 2, |_| panic!("this branch must not run"));
    assert_eq!((f(&Tensor::from(3.0)).item(), grad(f, &Tensor::from(3.0)).item()), (6.0, 2.0));
}

#[test]
#[should_panic(expected = "cond: one branch returns f64[], but the other returns f32[]")]
fn branches_of_other_types_are_refused() {
    let f = jit(|x: Tensor| cond(&x.lt(0.0), &x, Tensor::clone, |x| x.cast(DType::F32)));
    let _ = f.call(1.0);
}

#[test]
#[should_panic(expected = "cond: pred is bool[2], expected one boolean")]
fn a_predicate_is_one_truth_value() {
    let x = f64s(&[1.0, 2.0]);
    cond(&x.lt(1.5), &x, Tensor::clone, Tensor::clone);
}
