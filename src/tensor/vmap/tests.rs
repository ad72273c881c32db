//! Compiled `vmap` against loops of single calls.

use super::vmap;
use crate::adjoint::Adjoint;
use crate::array::{DType, refusal};
use crate::error::Error;
use crate::graph::tests::arbitrary::{Draws, Recipe, function};
use crate::nn::{Activation, Mlp};
use crate::ode::Ode;
use crate::tensor::tests::numbers;
use crate::tensor::{Key, Tensor, Tree, apply, grad, jit, jvp, map_rows, num_elements, value_and_grad, vjp};
use crate::{transform, tree};

fn of(dtype: DType, dims: &[usize]) -> Tensor {
    Tensor::from_vec(dims.to_vec(), numbers(dims.iter().product())).cast(dtype)
}

fn bits(x: &Tensor) -> Vec<u64> {
    x.to_vec().into_iter().map(f64::to_bits).collect()
}

/// Asserts that all numbers are equal up to `tol` times the largest number or 1.
#[track_caller]
fn assert_close(got: &Tensor, want: &Tensor, tol: f64) {
    assert_eq!((got.dtype(), got.shape()), (want.dtype(), want.shape()));
    let size = want.to_vec().iter().fold(1.0, |m: f64, x| m.max(x.abs()));
    for (g, w) in got.to_vec().into_iter().zip(want.to_vec()) {
        assert!((g - w).abs() <= tol * size || g.is_nan() && w.is_nan(), "{g} is not {w}");
    }
}

/// The results of `f` for each entry alone, stacked.
fn each(xs: &Tensor, f: impl Fn(&Tensor) -> Tensor) -> Tensor {
    let all: Vec<Tensor> = (0..xs.shape()[0]).map(|i| f(&xs.index(i))).collect();
    Tensor::stack(&all.iter().collect::<Vec<_>>())
}

#[test]
fn every_kind_of_op_gives_the_bits_of_single_calls() {
    for dtype in [DType::F32, DType::F64] {
        let (xs, w) = (of(dtype, &[7, 5, 3]), of(dtype, &[3, 4]));
        let cases: [&dyn Fn(&Tensor) -> Tensor; 8] = [
            &|x| x.tanh() * 2 + x.exp().sqrt() - x.erf(),
            &|x| x.matmul(&w).sigmoid(),
            &|x| w.transpose().matmul(&x.transpose()),
            &|x| x.transpose().matmul(x),
            &|x| x.gt(0.1).select(x, &(x * 0.5)).slice(0, 1..4).pad(&[0, 2], &[1, 0]),
            &|x| Tensor::concat(&[x, &w.transpose().slice(1, 0..3).slice(0, 0..2)], 0).permute(&[1, 0]),
            &|x| x.take(&Tensor::from([4, 0, -3, 2])).scatter_add(&Tensor::from([1, 1]), &x.slice(0, 0..2)),
            &|x| Tensor::iota(dtype, [5, 3], 0) + x.index(2).broadcast_to([5, 3]) + x.max(),
        ];
        for (k, f) in cases.into_iter().enumerate() {
            let (got, want) = (vmap(f, &xs), each(&xs, f));
            assert_eq!((got.dtype(), got.shape()), (want.dtype(), want.shape()), "case {k}");
            assert_eq!(bits(&got), bits(&want), "case {k}, {dtype}");
        }
    }
}

#[test]
fn compiled_random_functions_of_examples_give_what_a_loop_gives() {
    let (mut outputs, mut equal) = (0, 0);
    for seed in 0..40 {
        let float = if seed % 2 == 0 { DType::F32 } else { DType::F64 };
        let (f, _) = function(
            seed,
            Recipe { ops: 6 + seed as usize % 20, float, loops: seed % 4 < 2, short: false, singular: false },
        );
        let mut draws = Draws::new(seed);
        let mapped: Vec<bool> = (0..f.num_inputs()).map(|_| draws.below(3) > 0).collect();
        let many = transform::batch(&f, &mapped, 5);
        let x: Vec<Tensor> = many.input_types().iter().map(|t| Tensor::from_array(draws.array(t))).collect();
        let all = apply(&many, &x);
        for i in 0..5 {
            let one = |(x, &on): (&Tensor, &bool)| if on { x.index(i) } else { x.clone() };
            let single = apply(&f, &x.iter().zip(&mapped).map(one).collect::<Vec<_>>());
            for (got, want) in all.iter().map(|y| y.index(i)).zip(&single) {
                assert_close(&got, want, if float == DType::F32 { 2e-5 } else { 1e-13 });
                outputs += 1;
                equal += usize::from(bits(&got) == bits(want));
            }
        }
    }
    // On the development machine, all 800 outputs are equal; at other CPU levels, sums may be split
    // differently.
    assert!(equal * 100 >= outputs * 99, "{equal} of {outputs} have the bits of single calls");
}

#[test]
fn products_of_any_size_give_the_bits_of_single_calls() {
    for dtype in [DType::F32, DType::F64] {
        for (n, m, k, cols) in
            [(9, 1, 116, 116), (33, 1, 37, 5), (5, 7, 130, 70), (70, 1, 300, 1), (3, 64, 64, 64)]
        {
            let (xs, w) = (of(dtype, &[n, m, k]), of(dtype, &[k, cols]));
            let left = |x: &Tensor| x.matmul(&w);
            let right = |x: &Tensor| w.transpose().matmul(&x.transpose());
            let both = |x: &Tensor| x.matmul(&x.transpose());
            let outer = |x: &Tensor| x.transpose().matmul(x);
            let cases: [&dyn Fn(&Tensor) -> Tensor; 4] = [&left, &right, &both, &outer];
            for (case, f) in cases.into_iter().enumerate() {
                assert_eq!(
                    bits(&vmap(f, &xs)),
                    bits(&each(&xs, f)),
                    "{dtype} {n} {m} {k} {cols}, case {case}"
                );
            }
        }
    }
}

#[test]
fn sums_of_any_axes_give_the_bits_of_single_calls() {
    for dtype in [DType::F32, DType::F64] {
        for dims in [[4, 3, 1000, 1], [2, 40, 17, 9], [5, 1, 3000, 3], [3, 300, 1, 70], [6, 7, 8, 33]] {
            let xs = of(dtype, &dims);
            for axes in [&[0][..], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]] {
                let f = |x: &Tensor| (x * 1.5).sum_axes(axes);
                assert_eq!(bits(&vmap(f, &xs)), bits(&each(&xs, f)), "{dtype} {dims:?} over {axes:?}");
            }
        }
    }
}

/// An MLP, inputs and targets.
fn problem(sizes: &[usize], batch: usize) -> (Mlp, Tensor, Tensor) {
    let key = Key::new(3);
    let model = Mlp::new(sizes, Activation::Tanh, &key);
    let xs = key.fold_in(1).normal([batch, sizes[0]]);
    let ys = key.fold_in(2).normal([batch, sizes[sizes.len() - 1]]);
    (model, xs, ys)
}

fn loss(model: &Mlp, x: &Tensor, y: &Tensor) -> Tensor {
    (model.forward(x) - y).square().sum()
}

#[test]
fn gradients_of_each_example_equal_a_loop() {
    let (model, xs, ys) = problem(&[4, 8, 8, 2], 9);
    let one = |x: &Tensor, y: &Tensor| value_and_grad(|m: &Mlp| loss(m, x, y), &model);
    let (values, grads) = vmap(|(x, y): &(Tensor, Tensor)| one(x, y), &(xs.clone(), ys.clone()));
    for i in 0..9 {
        let (value, grad) = one(&xs.index(i), &ys.index(i));
        assert_close(&values.index(i), &value, 1e-6);
        for (all, g) in grads.leaves().iter().zip(grad.leaves()) {
            assert_close(&all.index(i), &g, 1e-6);
        }
    }
}

#[test]
fn a_hessian_is_mapped_derivatives_of_a_gradient() {
    // f = x0^2 x1 + sin(x1) x2
    let f = |x: &Tensor| x.index(0).square() * x.index(1) + x.index(1).sin() * x.index(2);
    let at = Tensor::from([0.5, -1.25, 2.0]);
    let eye = Tensor::from([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    let h = vmap(|v: &Tensor| jvp(|x: &Tensor| grad(f, x), &at, v).1, &eye);
    let (s, c) = (-1.25f64).sin_cos();
    let want = [[-2.5, 1.0, 0.0], [1.0, -2.0 * s, c], [0.0, c, 0.0]];
    assert_close(&h, &Tensor::from(want), 1e-15);
}

#[test]
fn maps_nest_and_captured_values_are_shared() {
    let (a, b) = (of(DType::F64, &[3, 2]), of(DType::F64, &[4, 2]));
    let distance = |x: &Tensor, y: &Tensor| (x - y).square().sum();
    let all = vmap(|x: &Tensor| vmap(|y: &Tensor| distance(x, y), &b), &a);
    assert_eq!(all.shape()[..], [3, 4]);
    let want = each(&a, |x| each(&b, |y| distance(x, y)));
    assert_close(&all, &want, 1e-15);
    let jitted = jit(|a: Tensor, b: Tensor| vmap(|x: &Tensor| vmap(|y: &Tensor| distance(x, y), &b), &a));
    assert_eq!(bits(&jitted.call(&a, &b).unwrap()), bits(&all));
    assert_eq!(
        vmap(|_: &Tensor| Tensor::from(2.5), &a).to_vec(),
        [2.5; 3],
        "a value that does not depend on the example"
    );
}

#[test]
fn derivatives_of_a_map_are_those_of_the_loop() {
    let (xs, w) = (of(DType::F64, &[5, 3]), of(DType::F64, &[3, 3]));
    let one = |w: &Tensor, x: &Tensor| x.matmul(w).tanh().matmul(x);
    let mapped = |w: &Tensor| vmap(|x: &Tensor| one(w, x), &xs).square().sum();
    let looped = |w: &Tensor| each(&xs, |x| one(w, x)).square().sum();
    assert_close(&grad(mapped, &w), &grad(looped, &w), 1e-14);
    let v = of(DType::F64, &[9]).reshape([3, 3]);
    assert_close(&jvp(mapped, &w, &v).1, &jvp(looped, &w, &v).1, 1e-14);
    let twice = |f: &dyn Fn(&Tensor) -> Tensor| grad(|w: &Tensor| (grad(f, w) * &v).sum(), &w);
    assert_close(&twice(&mapped), &twice(&looped), 1e-13);
}

#[test]
fn mapped_keys_give_the_same_numbers_as_single_keys() {
    let key = Key::new(11);
    let keys = vmap(|i: &Tensor| key.fold_in(i), &Tensor::from([0, 1, 2, 3]));
    let draws = vmap(|key: &Key| key.normal([5]), &keys);
    let want = each(&Tensor::from([0, 1, 2, 3]), |i| key.fold_in(i).normal([5]));
    assert_eq!(bits(&draws), bits(&want));
}

tree! { struct Pair { place: Tensor, order: usize } }

#[test]
fn trees_go_in_and_come_out_and_static_leaves_stay() {
    let pair = Pair { place: Tensor::from([1.0, 2.0, 3.0]), order: 2 };
    let out = vmap(
        |p: &Pair| (Pair { place: &p.place * p.order as f64, order: p.order + 1 }, p.place.lt(2.5)),
        &pair,
    );
    assert_eq!((out.0.place.to_vec(), out.0.order), (vec![2.0, 4.0, 6.0], 3));
    assert_eq!((out.1.dtype(), out.1.to_vec()), (DType::Bool, vec![1.0, 1.0, 0.0]));
}

/// y' = -a y^3 over [0, 1]; larger a needs more steps.
fn decay(a: &Tensor, y0: &Tensor) -> crate::Result<(Tensor, Tensor)> {
    let ode = Ode::new(|_t, y: &Tensor| -(a * y * y * y)).rtol(1e-6).atol(1e-8);
    let end = ode.adjoint(Adjoint::recursive_checkpoint(3)).solve(0.0, 1.0, y0)?;
    Ok((end.y1, end.stats.num_accepted))
}

#[test]
fn each_example_has_a_separate_solve() {
    let (a, y0) = (
        Tensor::from([0.5, 8.0, 100.0, 0.0]),
        Tensor::from([[1.0, 2.0], [0.5, 1.0], [1.5, 1.0], [1.0, 1.0]]),
    );
    let (ends, steps) = vmap(|(a, y): &(Tensor, Tensor)| decay(a, y).unwrap(), &(a.clone(), y0.clone()));
    let mut counts = Vec::new();
    for i in 0..4 {
        let (end, n) = decay(&a.index(i), &y0.index(i)).unwrap();
        assert_eq!(bits(&ends.index(i)), bits(&end), "example {i}");
        counts.push(n.item());
    }
    assert_eq!(steps.to_vec(), counts);
    assert!(counts[2] > 2.0 * counts[0], "too few steps for large a: {counts:?}");
}

#[test]
fn gradients_through_mapped_solves_equal_a_loop_and_solve_once() {
    let n = 70; // nested tiles
    let y0 = of(DType::F64, &[n, 2]);
    let a = Tensor::from(3.0);
    let one = |a: &Tensor, y: &Tensor| decay(a, y).unwrap().0.square().sum();
    let step = jit(|a: Tensor, y0: Tensor| {
        value_and_grad(|(a, y0): &(Tensor, Tensor)| vmap(|y: &Tensor| one(a, y), y0).mean(), &(a, y0))
    });
    let (value, (da, dy0)) = step.call(&a, &y0).unwrap();
    let singles: Vec<(Tensor, (Tensor, Tensor))> = (0..n)
        .map(|i| value_and_grad(|(a, y): &(Tensor, Tensor)| one(a, y), &(a.clone(), y0.index(i))))
        .collect();
    let mean = |f: &dyn Fn(&(Tensor, (Tensor, Tensor))) -> f64| singles.iter().map(f).sum::<f64>() / n as f64;
    assert_close(&value, &Tensor::from(mean(&|s| s.0.item())), 1e-14);
    assert_close(&da, &Tensor::from(mean(&|s| s.1.0.item())), 1e-13);
    for i in 0..n {
        assert_close(&(dy0.index(i) * n as f64), &singles[i].1.1, 1e-14);
    }
    let forward = jit(|a: Tensor, y0: Tensor| vmap(|y: &Tensor| decay(&a, y).unwrap().1, &y0).sum());
    let accepted = forward.call(&a, &y0).unwrap().item() as u64;
    let run = step.last_run();
    assert_eq!(run.accepted, accepted, "one search per example, shared by the value and the gradient");
}

#[test]
fn jacobians_of_a_solve_search_once() {
    let (w, y0) = (of(DType::F64, &[3, 3]), of(DType::F64, &[3]));
    let end = |y0: &Tensor| {
        let ode = Ode::new(|_t, y: &Tensor| y.matmul(&w).sin() - y).rtol(1e-7).atol(1e-9);
        ode.adjoint(Adjoint::recursive_checkpoint(2)).solve(0.0, 2.0, y0).unwrap().y1
    };
    let eye = Tensor::from([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    let forward = jit(|y0: Tensor, eye: Tensor| vmap(|v: &Tensor| jvp(end, &y0, v).1, &eye));
    let reverse = jit(|y0: Tensor, eye: Tensor| vmap(|u: &Tensor| vjp(end, &y0).1(u), &eye));
    let (columns, rows) = (forward.call(&y0, &eye).unwrap(), reverse.call(&y0, &eye).unwrap());
    assert_eq!(bits(&columns), bits(&each(&eye, |v| jvp(end, &y0, v).1)));
    assert_eq!(bits(&rows), bits(&each(&eye, |u| vjp(end, &y0).1(u))));
    assert_close(&rows.transpose(), &columns, 1e-13);
    let once = jit(|y0: Tensor| end(&y0));
    once.call(&y0).unwrap();
    for run in [forward.last_run(), reverse.last_run()] {
        assert_eq!(run.attempts, once.last_run().attempts);
    }
    let driven = |w: &Tensor| Ode::new(|_t, y: &Tensor| y.matmul(w).sin()).solve(0.0, 2.0, &y0).unwrap().y1;
    let by_w = |u: &Tensor| vjp(driven, &w).1(u);
    let all = jit(|eye: Tensor| vmap(by_w, &eye));
    assert_close(&all.call(&eye).unwrap(), &each(&eye, by_w), 1e-14);
    // The function is linear in the tangent, so its gradient is the same for each example.
    let by_tangent = |v: &Tensor| grad(|v: &Tensor| jvp(driven, &w, v).1.sum(), v);
    let directions = of(DType::F64, &[2, 3, 3]);
    assert_close(&vmap(by_tangent, &directions), &each(&directions, by_tangent), 1e-14);
    // Second derivatives of a component: forward over reverse.
    let hessian = vmap(|v: &Tensor| jvp(|y: &Tensor| grad(|y: &Tensor| end(y).index(1), y), &y0, v).1, &eye);
    assert_close(&hessian.transpose(), &hessian, 1e-12);
}

#[test]
fn the_gradient_of_mapped_solves_keeps_few_copies_for_its_sum() {
    if crate::backend::oracle_lacks("memory plan") {
        return;
    }
    let model = Mlp::new([8, 128, 8], Activation::Tanh, &Key::new(1));
    let y0 = Key::new(2).normal([100, 8]);
    let step = jit(|model: Mlp, y0: Tensor| {
        let end =
            |m: &Mlp, y: &Tensor| Ode::new(|_t, y: &Tensor| m.forward(y)).solve(0.0, 1.0, y).unwrap().y1;
        grad(|m: &Mlp| vmap(|y: &Tensor| end(m, y).square().sum(), &y0).mean(), &model)
    });
    let (planned, one) = (step.plan(&(model.clone(), y0)).unwrap().arena_bytes, 4 * num_elements(&model));
    // Residuals of the first stage are rows of 128 numbers for each example, some 6 gradients each.
    assert!(planned < 60 * one, "{planned} bytes, {} times the gradient of 100 examples", planned / one);
}

#[test]
fn a_failed_solve_of_one_example_is_the_error_of_the_map() {
    let explode = |y: &Tensor| -> crate::Result<Tensor> {
        Ok(Ode::new(|_t, y: &Tensor| y * y).rtol(1e-6).atol(1e-8).solve(0.0, 2.0, y)?.y1)
    };
    let fine = vmap(explode, &Tensor::from([0.1, 0.2])).unwrap();
    assert_close(&fine, &Tensor::from([0.125, 1.0 / 3.0]), 1e-5);
    let failed = vmap(explode, &Tensor::from([0.1, 3.0, 0.2]));
    assert!(matches!(failed, Err(Error::Solve(_))), "{failed:?}");
    let jitted = jit(|y: Tensor| vmap(explode, &y));
    assert!(matches!(jitted.call(Tensor::from([0.1, 3.0])), Err(Error::Solve(_))));
}

#[test]
fn tiles_in_a_map_are_each_examples_own() {
    let xs = of(DType::F64, &[3, 6, 2]);
    let f = |x: &Tensor| {
        let (rows, sums) = map_rows(std::slice::from_ref(x), 2, |x| (vec![x[0].sin()], vec![x[0].sum()]));
        &rows[0] * &sums[0]
    };
    assert_eq!(bits(&vmap(f, &xs)), bits(&each(&xs, f)));
}

#[test]
fn the_gradient_of_a_mean_of_mapped_losses_has_no_copy_for_each_example() {
    let (model, xs, ys) = problem(&[37, 116, 116, 4], 500);
    assert_eq!(num_elements(&model), 18_448);
    let step = jit(|model: Mlp, xs: Tensor, ys: Tensor| {
        let mean = |m: &Mlp| vmap(|(x, y): &(Tensor, Tensor)| loss(m, x, y), &(xs, ys)).mean();
        value_and_grad(mean, &model)
    });
    let args = (model.clone(), xs.clone(), ys.clone());
    let planned = step.plan(&args).unwrap().arena_bytes;
    assert!(planned < 2_000_000, "{planned} bytes planned; 37 MB would be a gradient for each example");
    let (value, grads) = step.call(model.clone(), &xs, &ys).unwrap();
    let rows = |m: &Mlp| (m.forward(&xs) - &ys).square().sum() / 500.0;
    let (whole, want) = value_and_grad(rows, &model);
    assert_close(&value, &whole, 1e-6);
    for (g, w) in grads.leaves().iter().zip(want.leaves()) {
        assert_close(g, &w, 1e-6);
    }
}

#[test]
fn a_misfit_names_the_leaf_its_shape_and_the_lengths() {
    let id = |x: &Pair| x.clone();
    let pair = |x: &Tensor| Pair { place: x.clone(), order: 1 };
    let message = refusal(|| vmap(id, &pair(&Tensor::from(1.0f32))));
    assert_eq!(message, "vmap: leaf place is a f32 without an axis to map over: capture it");
    let message = refusal(|| vmap(|x: &Tensor| x.clone(), &Tensor::zeros([0, 2])));
    assert_eq!(message, "vmap: the argument has shape [0,2], which has no examples");
    let both = (Tensor::zeros([3, 2]), pair(&Tensor::zeros([4])));
    let message = refusal(|| vmap(|x: &(Tensor, Pair)| x.0.clone(), &both));
    assert_eq!(
        message,
        "vmap: leaf 1.place has shape [4], 4 examples, but leaf 0 has shape [3,2], 3 examples"
    );
}

#[test]
fn custom_derivatives_branches_and_observers_are_mapped() {
    use crate::tensor::{cond, custom_derivatives};
    use std::sync::{Arc, Mutex};
    let xs = of(DType::F64, &[5, 3]);

    // Three times the gradient of the squared product with a shared weight: the rule is applied per example.
    let weight = of(DType::F64, &[3]);
    let tripled = custom_derivatives(|(w, x): &(Tensor, Tensor)| (w * x).square().sum());
    let tripled = tripled.vjp(|(w, x), _y, g| (w * x.square() * g * 6.0, w.square() * x * g * 2.0));
    let gradient = |x: &Tensor| grad(|w: &Tensor| tripled.call(&(w.clone(), x.clone())), &weight);
    assert_close(&vmap(gradient, &xs), &each(&xs, gradient), 1e-15);
    let total =
        grad(|w: &Tensor| vmap(|x: &Tensor| tripled.call(&(w.clone(), x.clone())), &xs).sum(), &weight);
    assert_close(&total, &each(&xs, gradient).sum_axes(&[0]), 1e-14);

    // One predicate per example, and one predicate for all examples.
    let own = |x: &Tensor| cond(&x.sum().lt(1.0), x, |x| x.square(), |x| x.sin());
    assert_eq!(bits(&vmap(own, &xs)), bits(&each(&xs, own)));
    let yes = Tensor::from(1.0).gt(0.5);
    let shared =
        jit(|(yes, xs): (Tensor, Tensor)| vmap(|x: &Tensor| cond(&yes, x, |x| x.square(), |x| x.sin()), &xs));
    assert_eq!(bits(&shared.call((yes, xs.clone())).unwrap()), bits(&each(&xs, |x| x.square())));

    // An observer is called once, with all examples.
    let seen = Arc::new(Mutex::new(vec![]));
    let log = seen.clone();
    let watched =
        vmap(|x: &Tensor| x.debug_callback(move |v| log.lock().unwrap().push(v.values.len())).square(), &xs);
    assert_eq!((bits(&watched), seen.lock().unwrap().clone()), (bits(&xs.square()), vec![15]));
}

#[test]
fn rows_taken_from_an_axis_of_one_stay_those_of_their_example() {
    for n in [2, 3, 100] {
        for count in [1, 2, 10] {
            let x = Tensor::from((0..n).map(f64::from).collect::<Vec<_>>()).reshape([n as usize, 1]);
            let index = Tensor::from(vec![0; count]);
            let taken = vmap(|x: &Tensor| x.take(&index), &x);
            assert_eq!(bits(&taken), bits(&each(&x, |x| x.take(&index))), "{n} examples, {count} indices");

            let rows = Tensor::from((0..n * count as i32).map(f64::from).collect::<Vec<_>>());
            let rows = rows.reshape([n as usize, count]);
            let sum = |rows: &Tensor| Tensor::from([0.5]).scatter_add(&index, rows);
            let sums = vmap(sum, &rows);
            assert_eq!(bits(&sums), bits(&each(&rows, sum)), "{n} examples, {count} indices");
        }
    }
}
