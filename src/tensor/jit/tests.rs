//! The number of programs that a jitted function stores, and results that are errors.

use crate::error::Error;
use crate::optim::{Adam, OptState};
use crate::tensor::{Tensor, cond, grad, jit, value_and_grad};
use crate::tree;

#[test]
fn forty_shapes_in_turn_are_traced_once_where_forty_programs_are_kept() {
    let rounds = |most: Option<usize>| {
        let mut sum = jit(|x: Tensor| x.square().sum());
        if let Some(most) = most {
            sum = sum.max_programs(most);
        }
        for n in (1..=40).chain(1..=40) {
            assert_eq!(sum.call(Tensor::ones([n])).unwrap().item(), n as f64);
        }
        (sum.num_traces(), sum.num_evicted())
    };
    assert_eq!(rounds(Some(40)), (40, 0));
    assert_eq!(rounds(Some(39)), (80, 41));
    assert_eq!(rounds(None), (80, 64));
    assert_eq!(rounds(Some(0)), (80, 79), "the last program is always kept");
}

#[test]
fn a_retrace_error_reports_evicted_programs() {
    let sum = jit(|x: Tensor| x.sum()).max_programs(2).max_traces(3);
    for n in 1..=3 {
        sum.call(Tensor::ones([n])).unwrap();
    }
    let e = sum.call(Tensor::ones([1])).unwrap_err();
    assert!(matches!(e, Error::Retrace { num_evicted: 1, .. }));
    assert!(e.to_string().ends_with("; 1 program(s) were evicted, raise `Jit::max_programs` to keep them"));
    let kept = jit(|x: Tensor| x.sum()).max_traces(1);
    kept.call(Tensor::ones([1])).unwrap();
    assert!(kept.call(Tensor::ones([2])).unwrap_err().to_string().ends_with("or allow more traces"));
}

tree! { struct Model { w: Tensor, memory: OptState } }
tree! { struct Report { loss: Tensor, parts: Tensor, count: Tensor } }

#[test]
fn a_loss_that_is_not_finite_leaves_the_state_and_is_named() {
    let optimizer = Adam::new(0.1).build();
    let update = |Model { w, memory }: Model, x: Tensor| {
        let loss = |w: &Tensor| {
            let parts = (w * &x).ln();
            (parts.sum(), parts)
        };
        let ((loss, parts), gradient) = value_and_grad(loss, &w);
        let (w, memory) = optimizer.update(&w, gradient, memory);
        (Model { w, memory }, Report { loss, parts, count: Tensor::from(3) })
    };
    let w = Tensor::from([1.0, 2.0]);
    let start = || Model { memory: optimizer.init(&w), w: w.clone() };
    let careful = jit(update).refuse_non_finite();
    let mut state = start();
    careful.step(&mut state, Tensor::from([1.0, 1.0])).unwrap();
    let before = [state.w.to_vec(), state.memory.leaves["0.count"].to_vec()];
    let e = careful.step(&mut state, Tensor::from([1.0, 0.0])).unwrap_err();
    let Error::NonFinite { leaf, index, value } = &e else { panic!("{e}") };
    assert_eq!((leaf.as_str(), index.len(), *value), ("1.loss", 0, f64::NEG_INFINITY));
    assert_eq!([state.w.to_vec(), state.memory.leaves["0.count"].to_vec()], before);
    assert!(careful.step(&mut state, Tensor::from([1.0, 1.0])).is_ok() && careful.num_traces() == 1);
    // Without `refuse_non_finite`, the result is returned.
    let mut state = start();
    let report = jit(update).step(&mut state, Tensor::from([1.0, 0.0])).unwrap();
    assert!(report.loss.item() == f64::NEG_INFINITY && state.w.to_vec()[1].is_nan());
}

#[test]
fn a_step_exchanges_buffers_with_the_state_and_copies_nothing() {
    let step = jit(|Model { w, memory }: Model, x: Tensor| {
        let w = w + x;
        (Model { memory, w: w.clone() }, w * 2.0)
    });
    let start = Tensor::from([1.0, 2.0]);
    let mut state = Model { memory: Adam::new(0.1).build().init(&start), w: start };
    state.w.array().set_name("tests.exchanged");
    let address = |x: &Tensor| x.array().data().as_ptr();
    let mut addresses = vec![];
    for n in 1..=6 {
        let twice = step.step(&mut state, Tensor::from([1.0, 1.0])).unwrap();
        let now = [1.0, 2.0].map(|x| x + f64::from(n));
        assert_eq!((state.w.to_vec(), twice.to_vec()), (now.to_vec(), now.map(|x| 2.0 * x).to_vec()));
        addresses.push(address(&state.w));
    }
    // Two buffers take turns.
    assert!(addresses[0] != addresses[1] && addresses[..4] == addresses[2..], "{addresses:?}");
    assert!(crate::memory::live_arrays().iter().any(|a| a.name.as_deref() == Some("tests.exchanged")));
    // The buffer of a state that is shared stays with its other owner.
    let before = state.w.clone();
    step.step(&mut state, Tensor::from([1.0, 1.0])).unwrap();
    assert_eq!((before.to_vec(), state.w.to_vec()), (vec![7.0, 8.0], vec![8.0, 9.0]));
    assert_eq!(address(&before), addresses[5]);
}

#[test]
fn a_result_takes_the_buffer_of_an_argument_and_other_results_keep_their_own() {
    let both = jit(|x: Tensor| (&x * 2.0, x + 1.0));
    let (first, second) = both.call(Tensor::from([1.0, 2.0])).unwrap();
    let (again, _) = both.call(Tensor::from([5.0, 6.0])).unwrap();
    assert_eq!([first.to_vec(), second.to_vec(), again.to_vec()], [[2.0, 4.0], [2.0, 3.0], [10.0, 12.0]]);
    // One buffer, given twice.
    let each = jit(|x: Tensor, y: Tensor| (x + 1.0, y + 2.0));
    for n in 0..3 {
        let x = Tensor::from([f64::from(n)]);
        let (a, b) = each.call(x.clone(), x).unwrap();
        assert_eq!((a.to_vec(), b.to_vec()), (vec![f64::from(n) + 1.0], vec![f64::from(n) + 2.0]));
    }
}

#[test]
fn a_run_that_panics_leaves_the_state_and_its_buffers() {
    let step = jit(|w: Tensor, x: Tensor| {
        let checked = (&w + &x).debug_callback(|v| assert!(v.values[0] < 10.0, "too large"));
        (checked, x.sum())
    });
    let mut w = Tensor::from([1.0, 2.0]);
    step.step(&mut w, Tensor::from([1.0, 1.0])).unwrap();
    let before = (w.to_vec(), w.array().data().as_ptr());
    let x = Tensor::from([100.0, 1.0]);
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| step.step(&mut w, x)));
    assert!(failed.is_err());
    assert_eq!((w.to_vec(), w.array().data().as_ptr()), before);
    step.step(&mut w, Tensor::from([1.0, 1.0])).unwrap();
    assert_eq!((w.to_vec(), step.num_traces()), (vec![3.0, 4.0], 1));
}

#[test]
fn a_state_may_hold_an_infinity_and_a_call_checks_all_of_its_result() {
    let count = |best: Tensor, x: Tensor| (best, x);
    let mut best = Tensor::from(f64::INFINITY);
    let careful = jit(count).refuse_non_finite();
    assert_eq!(careful.step(&mut best, Tensor::from(1.0)).unwrap().item(), 1.0);
    let e = careful.call(&best, Tensor::from(1.0)).unwrap_err();
    assert!(e.to_string().starts_with("leaf 0 of the result is inf at []"), "{e}");
    let rows = jit(|x: Tensor| x.sqrt()).refuse_non_finite();
    let e = rows.call(Tensor::from([[1.0, 4.0], [-1.0, 0.0]])).unwrap_err();
    assert!(matches!(e, Error::NonFinite { index, .. } if index == [1, 0]));
}

#[test]
fn a_jitted_function_may_capture_traced_tensors() {
    let (x, w) = (Tensor::from([1.0, 2.0]), Tensor::from([3.0, 5.0]));
    // The argument is concrete; the capture belongs to the trace of the gradient.
    let loss = |w: &Tensor| {
        let scaled = jit(move |x: Tensor| (x * w).square().sum());
        scaled.call(&x).unwrap()
    };
    assert_eq!(grad(loss, &w).to_vec(), [6.0, 40.0]);
    assert_eq!(jit(move |w: Tensor| grad(loss, &w)).call(&w).unwrap().to_vec(), [6.0, 40.0]);
    let sum = |w: &Tensor| {
        let add = jit(move |state: Tensor, x: Tensor| (&state + &x * w, (x * w).sum()));
        let mut state = x.clone();
        let value = add.step(&mut state, x.clone()).unwrap();
        (state * 2.0).sum() + value
    };
    assert_eq!(grad(sum, &w).to_vec(), [3.0, 6.0]);
}

#[test]
fn a_nested_call_traces_all_arguments_as_a_direct_call_does() {
    let branches = jit(|x: Tensor, p: Tensor| {
        assert!(x.is_traced() && p.is_traced());
        cond(&p.gt(0.0), &x, |x| x * 2.0, |x| x * 3.0)
    });
    let (x, p) = (Tensor::from([1.0, 2.0]), Tensor::from(1.0));
    assert_eq!(branches.call(&x, &p).unwrap().to_vec(), [2.0, 4.0]);
    assert_eq!(jit(|x: Tensor| branches.call(x, &p)).call(&x).unwrap().to_vec(), [2.0, 4.0]);
    assert_eq!(grad(|x: &Tensor| branches.call(x, -1.0).unwrap().sum(), &x).to_vec(), [3.0, 3.0]);
}

#[test]
fn arguments_may_be_references_to_trees() {
    let model =
        Model { w: Tensor::from([1.0, 2.0]), memory: Adam::new(0.1).build().init(&Tensor::from(1.0)) };
    let sum = jit(|model: Model, x: Tensor| (model.w * x).sum());
    assert_eq!(sum.call(&model, &model.w).unwrap().item(), 5.0);
}
