//! Tests that combine the handle, traces, trees, jit and gradients.

use super::*;
use crate::array::DType;
use crate::graph::Type;
use crate::tree;

tree! { struct State { model: Tensor, count: Tensor, depth: usize } }

fn state(depth: usize) -> State {
    State { model: Tensor::from([1.0, 2.0]), count: Tensor::from(0), depth }
}

#[test]
fn operands_broadcast_and_promote() {
    let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    let y = &x * Tensor::from(2.0f64) + Tensor::from([10, 20]);
    assert_eq!((y.dtype(), y.to_vec()), (DType::F32, vec![12.0, 24.0, 16.0, 28.0]));
    assert_eq!((x.index(0) + Tensor::from([1.0f64, 1.0])).dtype(), DType::F64);
    assert_eq!((1.0 - x.sum()).item(), -9.0);
    assert_eq!(x.matmul(&x.transpose()).to_vec(), [5.0, 11.0, 11.0, 25.0]);
    assert_eq!(x.gt(2.5).select(&x, &Tensor::from(0.0)).to_vec(), [0.0, 0.0, 3.0, 4.0]);
}

#[test]
fn integers_and_bools_keep_their_values_beside_numbers() {
    let n = Tensor::from([3u32, 5]);
    assert_eq!((&n + -1).to_vec(), [2.0, 4.0], "u32 cannot represent -1, so the result is f64");
    assert_eq!(((&n * 2).dtype(), (&n * 0.5).to_vec()), (DType::U32, vec![1.5, 2.5]));
    assert_eq!((Tensor::from([1, 2]) * 3e9).to_vec(), [3e9, 6e9]);
    let mask = n.gt(Tensor::from(4u32));
    assert_eq!(
        ((&mask + 1).to_vec(), (Tensor::from([7, 7]) * &mask).to_vec()),
        (vec![1.0, 2.0], vec![0.0, 7.0])
    );
    assert_eq!((&mask * Tensor::from([7, 7])).to_vec(), [0.0, 7.0]);
    let many = Tensor::from([1, 1, 0, 1]).eq(1);
    assert_eq!((many.sum().item(), many.mean().item()), (3.0, 0.75));
    assert_eq!((Tensor::from([4]).mean().dtype(), Tensor::from([3, 4]).mean().item()), (DType::F64, 3.5));
}

#[test]
fn a_product_over_no_terms_is_zero() {
    assert_eq!(Tensor::zeros([3, 0]).matmul(&Tensor::zeros([0, 2])).to_vec(), [0.0; 6]);
}

/// `len` pseudo-random numbers.
pub(super) fn numbers(len: usize) -> Vec<f64> {
    (0..len).map(|i| ((i * i + 3 * i + 1) as f64 * 0.7).sin()).collect()
}

#[test]
fn leading_axes_of_a_product_broadcast() {
    let of = |dims: &[usize]| Tensor::from_vec(dims.to_vec(), numbers(dims.iter().product()));
    let cases: [(&[usize], &[usize], &[usize]); 9] = [
        (&[5, 2, 3], &[5, 3, 4], &[5, 2, 4]),
        (&[6, 1, 2, 3], &[5, 3, 4], &[6, 5, 2, 4]),
        (&[5, 2, 3], &[3, 4], &[5, 2, 4]),
        (&[2, 3], &[6, 5, 3, 4], &[6, 5, 2, 4]),
        (&[1, 1, 2, 3], &[5, 3, 4], &[1, 5, 2, 4]),
        (&[3], &[5, 3, 4], &[5, 4]),
        (&[5, 2, 3], &[3], &[5, 2]),
        (&[3], &[3], &[]),
        (&[0, 2, 3], &[3, 4], &[0, 2, 4]),
    ];
    for (a, b, c) in cases {
        let (x, y) = (of(a), of(b));
        let z = x.matmul(&y);
        assert_eq!(&z.shape()[..], c, "{a:?} {b:?}");
        // The same result as from an elementwise product and a sum over the inner axis.
        let (x, y) = (
            if a.len() == 1 { x.expand_dims(0) } else { x },
            if b.len() == 1 { y.expand_dims(1) } else { y },
        );
        let naive =
            (x.expand_dims(x.rank()) * y.expand_dims(y.rank() - 2)).sum_axes(&[z_axis(x.rank(), y.rank())]);
        for (got, want) in z.to_vec().iter().zip(naive.to_vec()) {
            assert!((got - want).abs() < 1e-14, "{a:?} {b:?}: {got} {want}");
        }
    }
    assert_eq!(of(&[5, 2, 3]).matmul(&of(&[5, 3, 4])).index(3).to_vec(), {
        of(&[5, 2, 3]).index(3).matmul(&of(&[5, 3, 4]).index(3)).to_vec()
    });
}

/// The axis of `[.., m, k, 1] * [.., 1, k, n]` that a product sums over.
fn z_axis(a: usize, b: usize) -> usize {
    (a + 1).max(b + 1) - 2
}

#[test]
#[should_panic(expected = "matmul: shapes [5,2,3] and [4,3,4] do not fit ([.., m, k] x [.., k, n])")]
fn batches_of_different_length_are_refused() {
    Tensor::zeros([5, 2, 3]).matmul(&Tensor::zeros([4, 3, 4]));
}

#[test]
fn one_matrix_against_a_batch_is_not_repeated_forward_or_back() {
    if crate::backend::oracle_lacks("memory plan") {
        return;
    }
    let f = |a: &Tensor, b: &Tensor| a.matmul(b).square().sum();
    let (w, x) = (Tensor::zeros([30, 20]), Tensor::zeros([50, 20, 3]));
    for (w, x) in [(w.clone(), x.clone()), (w.transpose(), x.permute(&[0, 2, 1]))] {
        let by_w =
            jit(move |w: Tensor| grad(|w: &Tensor| if w.shape()[0] == 30 { f(w, &x) } else { f(&x, w) }, &w));
        let size = 4 * 50 * 30 * 20;
        let peak = by_w.plan(&(w,)).unwrap().arena_bytes;
        assert!(peak < size / 3, "{peak} bytes: less than {size}, which fifty of the matrix take");
    }
}

#[test]
fn tiles_of_a_batch_have_the_bits_of_the_whole() {
    let of = |dims: [usize; 3]| Tensor::from_vec(dims, numbers(dims.iter().product()));
    let (x, y) = (of([37, 3, 5]), of([37, 5, 4]));
    let whole = x.matmul(&y);
    let f = |x: &[Tensor]| (vec![x[0].matmul(&x[1])], vec![]);
    let tiled = map_rows(&[x.clone(), y.clone()], 8, f).0.remove(0);
    assert_eq!(tiled.to_vec(), whole.to_vec());
    let gradient = grad(|x: &Tensor| map_rows(&[x.clone(), y.clone()], 8, f).0[0].square().sum(), &x);
    assert_eq!(gradient.to_vec(), grad(|x: &Tensor| x.matmul(&y).square().sum(), &x).to_vec());
}

#[test]
#[should_panic(expected = "sum_last: a tensor of rank 0 has no last axis")]
fn the_last_axis_of_a_number_is_refused() {
    Tensor::from(1.0).sum_last();
}

#[test]
#[should_panic(expected = "leaf 0 of a tangent is f64[3], expected f32[2]")]
fn a_tangent_of_another_type_is_refused_while_it_is_traced_too() {
    let f = jit(|v: Tensor| jvp(|x: &Tensor| x.square(), &Tensor::from([1.0f32, 2.0]), &v).1);
    let _ = f.call(Tensor::from([1.0, 2.0, 3.0]));
}

#[test]
fn equal_fills_are_one_constant_of_a_program() {
    let one = || Tensor::full(DType::F64, [2, 3], 1.0);
    let ones = trace(&[one().ty()], &mut |x| vec![(&x[0] + one()) * (&x[0] + one())]).func;
    let constants = ones.nodes().iter().filter(|n| matches!(n.op, crate::graph::Op::Const(_)));
    assert_eq!((constants.count(), ones.nodes().len()), (1, 4));
    assert_eq!(Tensor::from([1.0, 1.0 + f64::EPSILON]).array().uniform(), None);
    assert_eq!(Tensor::from([0.0, -0.0]).array().uniform(), None);
    assert_eq!(Tensor::zeros([0]).array().uniform(), None);
}

#[test]
#[should_panic(expected = "add: shapes [2] and [3] do not broadcast to each other")]
fn a_wrong_shape_panics_with_both_shapes() {
    let _ = Tensor::zeros([2]) + Tensor::zeros([3]);
}

#[test]
fn a_counter_that_is_a_tensor_never_retraces_and_a_static_one_names_itself() {
    let step = jit(|s: State, x: Tensor| {
        let count = &s.count + 1;
        (State { model: &s.model + &x * s.depth as f64, count, ..s }, x.sum())
    });
    let step = step.max_traces(1);
    let mut s = state(3);
    for _ in 0..50 {
        step.step(&mut s, Tensor::from([1.0, 1.0])).unwrap();
    }
    assert_eq!((s.count.item(), s.model.to_vec(), step.num_traces()), (50.0, vec![151.0, 152.0], 1));
    let e = step.call(State { depth: 4, ..s }, Tensor::from([1.0, 1.0])).unwrap_err();
    assert!(e.to_string().contains("leaf 0.depth: static 3 -> static 4"), "{e}");
}

#[test]
fn a_step_reuses_the_buffers_of_its_state() {
    let step = jit(|s: State, x: Tensor| (State { model: &s.model + x, ..s.clone() }, s.count));
    let mut s = state(1);
    let x = Tensor::from([1.0, 1.0]);
    step.step(&mut s, x.clone()).unwrap();
    let place = s.model.array().data().as_ptr();
    let held = s.clone();
    step.step(&mut s, x.clone()).unwrap();
    assert_ne!(place, s.model.array().data().as_ptr(), "a shared buffer is not written to");
    assert_eq!(held.model.to_vec(), [2.0, 3.0]);
    drop(held);
    let place = s.model.array().data().as_ptr();
    (0..4).for_each(|_| drop(step.step(&mut s, x.clone()).unwrap()));
    assert_eq!(place, s.model.array().data().as_ptr(), "two buffers take turns");
}

#[test]
fn a_step_takes_over_a_state_that_comes_back_in_another_form() {
    let step = jit(|(memory, calls): (Option<Tensor>, usize), x: Tensor| {
        let sum = memory.map_or_else(|| x.clone(), |m| m + &x);
        ((Some(sum.clone()), calls + 1), sum * 10)
    });
    let mut state = (None, 0);
    for k in 1..=3 {
        let result = step.step(&mut state, Tensor::from([1.0, 2.0])).unwrap();
        let k = f64::from(k);
        assert_eq!(state.0.as_ref().unwrap().to_vec(), [k, 2.0 * k]);
        assert_eq!(result.to_vec(), [10.0 * k, 20.0 * k]);
    }
    assert_eq!(state.1, 3);
}

#[test]
fn a_step_whose_state_holds_one_buffer_twice_tells_the_leaves_apart() {
    let step = jit(|(a, b): (Tensor, Tensor), x: Tensor| ((a + &x, b * 2), x));
    let zero = Tensor::from([1.0, 2.0]);
    let mut state = (zero.clone(), zero);
    for _ in 0..2 {
        step.step(&mut state, Tensor::from(1.0)).unwrap();
    }
    assert_eq!((state.0.to_vec(), state.1.to_vec()), (vec![3.0, 4.0], vec![4.0, 8.0]));
    let swap = jit(|a: Tensor, b: Tensor| (b + 1, a - 1));
    let x = Tensor::from([5.0, 6.0]);
    let (a, b) = swap.call(x.clone(), x).unwrap();
    assert_eq!((a.to_vec(), b.to_vec()), (vec![6.0, 7.0], vec![4.0, 5.0]));
}

#[test]
fn a_step_inside_a_trace_is_part_of_it() {
    let step = jit(|w: Tensor, x: Tensor| (w * &x, x.square()));
    let gradient = grad(
        |x: &Tensor| {
            let mut w = Tensor::from(3.0);
            let y = step.step(&mut w, x.clone()).unwrap();
            w + y
        },
        &Tensor::from(2.0),
    );
    assert_eq!((gradient.item(), step.num_traces()), (7.0, 0));
}

#[test]
fn a_jitted_function_survives_a_panic_and_an_error_of_its_first_trace() {
    let f = jit(|x: Tensor, y: Tensor| -> crate::Result<Tensor> {
        if x.rank() == 0 {
            return Err(crate::Error::Retrace { max_traces: 7, change: String::new(), num_evicted: 0 });
        }
        Ok(x + y)
    });
    let f = f.max_traces(1);
    let call = |x: Tensor, y: [f64; 2]| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f.call(x, Tensor::from(y))))
    };
    assert!(call(Tensor::from([1.0, 2.0, 3.0]), [1.0, 2.0]).is_err());
    for _ in 0..2 {
        let e = call(Tensor::from(1.0), [1.0, 2.0]).unwrap().unwrap_err();
        assert!(e.to_string().contains("more than 7"), "{e}");
    }
    assert_eq!(call(Tensor::from([1.0, 2.0]), [1.0, 2.0]).unwrap().unwrap().to_vec(), [2.0, 4.0]);
    assert_eq!(f.num_traces(), 1);
}

#[test]
#[should_panic(expected = "was used after its trace had ended")]
fn a_tracer_that_escapes_its_trace_panics() {
    let kept = std::sync::Mutex::new(None);
    let f = jit(|x: Tensor| {
        *kept.lock().unwrap() = Some(x.clone());
        x * 2
    });
    f.call(Tensor::from(1.0)).unwrap();
    let x = kept.lock().unwrap().take().unwrap();
    let _ = x + 1;
}

#[test]
fn derivatives_nest() {
    let x = Tensor::from(0.7);
    let gradient = |x: &Tensor| grad(|x: &Tensor| x.sin() * x, x);
    let second = grad(|x: &Tensor| gradient(x), &x);
    let want = 2.0 * 0.7f64.cos() - 0.7 * 0.7f64.sin();
    assert!((second.item() - want).abs() < 1e-12);
    // The inner function captures the variable of the outer derivative.
    let mixed = grad(|x: &Tensor| x * grad(|y: &Tensor| x * y, &Tensor::from(1.0)), &x);
    assert!((mixed.item() - 1.4).abs() < 1e-12);
    let (y, dy) = jvp(|x: &Tensor| grad(|x: &Tensor| x.exp() * x, x), &x, &Tensor::from(1.0));
    assert!((dy.item() - (y.item() + 0.7f64.exp())).abs() < 1e-12);
}

#[test]
fn a_captured_row_stays_a_row() {
    let (row, wide) = (Type::array(DType::F64, [3]), Type::array(DType::F64, [2, 3]));
    let mut captured = vec![];
    trace(&[row], &mut |x| {
        let repeated = x[0].broadcast_to([2, 3]);
        let inner = trace(std::slice::from_ref(&wide), &mut |y| {
            vec![&y[0] * &repeated + &x[0].exp().broadcast_to([2, 3])]
        });
        captured = inner.captures.iter().map(|c| c.shape().to_vec()).collect();
        vec![x[0].clone()]
    });
    assert_eq!(captured, [[3], [3]]);
}

#[test]
fn a_pullback_is_the_transpose_of_the_push_forward() {
    let x = Tensor::from([0.3, -0.8, 1.1]);
    let f = |x: &Tensor| (x.tanh() * x.sum(), x.square().sum());
    let (u, v) = (Tensor::from([1.0, 0.5, -2.0]), (Tensor::from([0.4, -1.0, 0.2]), Tensor::from(0.9)));
    let (_, push) = jvp(f, &x, &u);
    let (_, pull) = vjp(f, &x);
    let left = (push.0 * &v.0).sum().item() + push.1.item() * 0.9;
    let right = (pull(&v) * &u).sum().item();
    assert!((left - right).abs() < 1e-12, "{left} {right}");
}

#[test]
fn a_loss_may_carry_more_than_its_value() {
    let x = Tensor::from([1.0, 2.0]);
    let ((value, twice), gradient) = value_and_grad(|x: &Tensor| (x.square().sum(), x * 2), &x);
    assert_eq!((value.item(), twice.to_vec(), gradient.to_vec()), (5.0, vec![2.0, 4.0], vec![2.0, 4.0]));
    let failed = value_and_grad(
        |x: &Tensor| -> crate::Result<Tensor> {
            Err(crate::Error::Retrace { max_traces: x.size(), change: String::new(), num_evicted: 0 })
        },
        &x,
    );
    let error = failed.map(|_| ()).unwrap_err();
    assert!(
        matches!(error, crate::Error::Retrace { max_traces: 2, .. }),
        "the error of the loss is returned: {error}"
    );
}

#[test]
fn rows_in_tiles_give_the_values_and_gradients_of_all_at_once() {
    let x = Tensor::iota(DType::F64, [37, 3], 0) * 0.1;
    let w = Tensor::from([[0.3, -0.2], [0.5, 0.1], [-0.4, 0.7]]);
    let whole = |w: &Tensor| x.matmul(w).tanh().square().sum();
    let tiled = |w: &Tensor| {
        let (rows, sums) = map_rows(std::slice::from_ref(&x), 8, |x| {
            let y = x[0].matmul(w).tanh();
            (vec![y.clone()], vec![y.square().sum()])
        });
        (sums[0].clone(), rows[0].clone())
    };
    let (a, da) = value_and_grad(whole, &w);
    let ((b, rows), db) = value_and_grad(tiled, &w);
    assert!((a.item() - b.item()).abs() < 1e-12 && rows.shape()[..] == [37, 2]);
    for (p, q) in da.to_vec().iter().zip(db.to_vec()) {
        assert!((p - q).abs() < 1e-12, "{p} {q}");
    }
    let by_rows = grad(
        |x: &Tensor| map_rows(std::slice::from_ref(x), 8, |x| (vec![x[0].exp()], vec![])).0[0].sum(),
        &x,
    );
    for (p, q) in by_rows.to_vec().iter().zip(x.exp().to_vec()) {
        assert!((p - q).abs() < 1e-12 * q, "{p} {q}");
    }
}

#[test]
fn random_numbers_depend_on_the_key_alone_and_have_their_distributions() {
    let key = Key::new(42);
    let x = key.normal([10_001]);
    assert_eq!(x.to_vec(), jit(|k: Key| k.normal([10_001])).call(key.clone()).unwrap().to_vec());
    let (mean, square) = (x.mean().item(), x.square().mean().item());
    assert!(mean.abs() < 0.03 && (square - 1.0).abs() < 0.05, "{mean} {square}");
    let u = key.uniform([10_000]);
    assert!(u.min().item() >= 0.0 && u.max().item() < 1.0 && (u.mean().item() - 0.5).abs() < 0.01);
    let signs = key.rademacher([10_000]);
    assert!(signs.square().mean().item() == 1.0 && signs.mean().item().abs() < 0.03);
    let [a, b] = key.split();
    let folded = [key.fold_in(0), key.fold_in(1), a, b];
    let first: Vec<u64> = folded.iter().map(|k| k.bits([1]).item() as u64).collect();
    assert!((0..4).all(|i| (0..i).all(|j| first[i] != first[j])), "{first:?}");
}

tree! { enum Layer { Scale { by: Tensor }, Shift(Tensor), Tanh } }

#[test]
fn leaves_have_paths_and_come_back_in_place() {
    let net =
        (vec![Layer::Scale { by: Tensor::from(2.0) }, Layer::Tanh], Some(Layer::Shift(Tensor::zeros([3]))));
    let names: Vec<String> = net.named_leaves().into_iter().map(|(p, _)| p).collect();
    assert_eq!(names, ["0.0.Scale.by", "1.Shift"]);
    assert_eq!(num_elements(&net), 4);
    let doubled = net.map_leaves(|t| t * 2);
    assert_eq!(doubled.leaves()[0].item(), 4.0);
    assert!(tree_summary(&net).lines().last().unwrap().ends_with('4'));
}

#[test]
fn an_observer_sees_each_value_once_wherever_it_is_computed_and_changes_no_derivative() {
    use std::sync::{Arc, Mutex};
    let seen = Arc::new(Mutex::new(Vec::<f64>::new()));
    let log = seen.clone();
    let cube = move |x: &Tensor| {
        let log = log.clone();
        let square = x.square().debug_callback(move |v| {
            assert!(v.shape.rank() == 0);
            log.lock().unwrap().extend_from_slice(v.values);
        });
        square * x
    };
    let x = Tensor::from(3.0);
    assert_eq!(cube(&x).item(), 27.0);
    let (value, gradient) = value_and_grad(&cube, &x);
    assert_eq!((value.item(), gradient.item()), (27.0, 27.0));
    let second = jit(|x: Tensor| grad(|x: &Tensor| grad(&cube, x), &x));
    assert_eq!(second.call(&x).unwrap().item(), 18.0);
    assert_eq!(*seen.lock().unwrap(), [9.0, 9.0]);
}

/// The largest error, in ulps of the reference. Numbers below `least` have the ulp of `least`.
fn softplus_off<T: Copy + Into<f64>>(x: &[T], found: &[f64], digits: i32, least: f64) -> f64 {
    let off = |(&x, &y): (&T, &f64)| {
        let want = crate::graph::softplus(x.into());
        (y - want).abs() / 2f64.powi(want.max(least).log2().floor() as i32) * 2f64.powi(digits)
    };
    x.iter().zip(found).map(off).fold(0.0, f64::max)
}

#[test]
fn softplus_is_within_4_ulp_wherever_it_is_normal() {
    let single: Vec<f32> = (0..400_000)
        .map(|i| -87.0 + 187.0 * i as f32 / 4e5)
        .chain([0.0, -0.0, 1e-30, -1e-30, 3e38])
        .collect();
    let found = Tensor::from(single.clone()).softplus().to_vec();
    let off = softplus_off(&single, &found, 23, f64::from(f32::MIN_POSITIVE));
    assert!(off <= 4.0, "{off} ulp in f32");
    let double: Vec<f64> = (0..400_000)
        .map(|i| -708.39 + 808.0 * f64::from(i) / 4e5)
        .chain([0.0, 1e-300, -1e-300, 1e308])
        .collect();
    let off = softplus_off(&double, &Tensor::from(double.clone()).softplus().to_vec(), 52, f64::MIN_POSITIVE);
    assert!(off <= 4.0, "{off} ulp in f64");
}

#[test]
fn arrays_that_tiles_capture_are_operands_of_a_plan_that_is_kept() {
    // 15 rows: two tiles of seven rows and one tile of one row. All bodies capture the arrays.
    let waves =
        |rows: usize| (Tensor::iota(DType::F64, [rows, 3], 0) * 1.7 + Tensor::from([0.1, 0.2, 0.3])).sin();
    let (x, w, bias) = (waves(15), waves(3), waves(1).index(0));
    let loss = |s: &Tensor| {
        let (_, sums) = map_rows(std::slice::from_ref(&x), 7, |x| {
            let inner = map_rows(x, 2, |x| (vec![(&x[0] * s).matmul(&w)], vec![])).0;
            (vec![], vec![(&inner[0] + &bias).square().sum()])
        });
        sums[0].clone()
    };
    let f = trace(&[Tensor::from(1.0).ty()], &mut |s| vec![loss(&s[0])]).func;
    assert!(f.holds_data());
    let (lifted, arrays) = f.with_arrays_as_inputs();
    crate::graph::verify(&lifted).unwrap();
    assert!(!lifted.holds_data());
    assert_eq!(arrays.len(), 3, "each array is an operand once");
    let s = Tensor::from(1.5);
    let jitted = jit(|s: Tensor| value_and_grad(loss, &s)).call(s.clone()).unwrap();
    let eager = value_and_grad(loss, &s);
    assert_eq!((eager.0.item(), eager.1.item()), (jitted.0.item(), jitted.1.item()));
}
