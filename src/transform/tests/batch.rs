//! A batched function against a loop of single calls.

use super::passes::{assert_same, samples};
use super::*;
use crate::graph::{BinaryOp, CompareOp, FactorOp, Margins, Node, Op, ReduceOp, ScatterOp, Triangle};
use crate::transform::{Searches, batch, batch_with, optimize};

/// The inputs with example `i` of every mapped input; the other inputs are unchanged.
fn example(x: &[Array], mapped: &[bool], i: usize) -> Vec<Array> {
    x.iter().zip(mapped).map(|(x, &on)| if on { entry(x, i) } else { x.clone() }).collect()
}

/// Entry `i` of the first axis.
fn entry(x: &Array, i: usize) -> Array {
    let mut out = Array::zeros(x.dtype(), x.shape()[1..].to_vec());
    let len = out.data().len();
    (0..len).for_each(|j| out.data_mut().set_f64(j, x.data().get_f64(i * len + j)));
    out
}

/// Random arguments for `f`, with `n` examples of the mapped arguments.
fn arguments(f: &Func, mapped: &[bool], n: usize, seed: u64) -> Vec<Array> {
    let mut draws = Draws::new(seed);
    let types = f.input_types().into_iter().zip(mapped);
    let lead = |ty: Type, on| if on { ty.with_shape([&[n][..], ty.shape()].concat()) } else { ty };
    types.map(|(ty, &on)| draws.array(&lead(ty, on))).collect()
}

/// Asserts that the batched function gives exactly the results of single calls; returns the batched function.
#[track_caller]
fn check_batch(f: &Func, mapped: &[bool], n: usize, seed: u64, what: &str) -> Func {
    check_batch_with(Searches::Alone, f, mapped, n, seed, what)
}

#[track_caller]
fn check_batch_with(searches: Searches, f: &Func, mapped: &[bool], n: usize, seed: u64, what: &str) -> Func {
    let (many, x) = (batch_with(f, mapped, n, searches), arguments(f, mapped, n, seed));
    let all = eval(&many, &x);
    for i in 0..n {
        let want = eval(f, &example(&x, mapped, i));
        let got: Vec<Array> = all.iter().map(|y| entry(y, i)).collect();
        assert_same(&got, &want, 0.0, &format!("{what}, example {i}"));
    }
    many
}

/// Every set of mapped inputs, as a flag per input.
fn masks(inputs: usize) -> impl Iterator<Item = Vec<bool>> {
    (0..1usize << inputs).map(move |set| (0..inputs).map(|k| set >> k & 1 == 1).collect())
}

#[track_caller]
fn check_all(f: &Func, what: &str) {
    for mask in masks(f.num_inputs()) {
        check_batch(f, &mask, 3, 5, &format!("{what} {mask:?}"));
    }
}

#[test]
fn every_product_equals_that_of_each_example() {
    for lead in [&[][..], &[2], &[2, 3]] {
        for (ta, tb) in [(false, false), (false, true), (true, false), (true, true)] {
            for (m, k, n) in [(2, 3, 4), (1, 3, 4), (2, 3, 1), (2, 1, 3)] {
                let of =
                    |p: usize, q: usize, t: bool| f64s([lead, &if t { [q, p] } else { [p, q] }[..]].concat());
                let f = func(&[of(m, k, ta), of(k, n, tb)], |b, x| vec![b.dot(x[0], x[1], ta, tb)]);
                check_all(&f, &format!("{lead:?} {m} {k} {n} {ta} {tb}"));
            }
        }
    }
}

#[test]
fn rows_taken_and_added_stay_within_their_example() {
    let index = Type::array(DType::I32, [2, 2]);
    let take = func(&[f64s([3, 2]), index.clone()], |b, x| {
        // The indices are shifted and scaled, so that some are out of range and are clamped.
        let far = b.push(Op::Lincomb { coeffs: vec![1f64.to_bits()] }, &[x[0]], None);
        let two = b.splat_like(x[1], 2.0);
        let (low, wide) = (b.sub(x[1], two), b.mul(x[1], two));
        vec![b.push(Op::Gather, &[far, low], None), b.push(Op::Gather, &[far, wide], None)]
    });
    check_all(&take, "gather");
    for op in ScatterOp::ALL {
        let f = func(&[f64s([3, 2]), index.clone(), f64s([2, 2, 2])], |b, x| {
            let two = b.splat_like(x[1], 2.0);
            let (low, wide) = (b.sub(x[1], two), b.mul(x[1], two));
            let rows = b.push(Op::Scatter(op), &[x[0], low, x[2]], None);
            vec![b.push(Op::Scatter(op), &[rows, wide, x[2]], None)]
        });
        check_all(&f, op.name());
    }
}

#[test]
fn random_bits_of_many_keys_equal_those_of_each_key() {
    let (key, start) = (Type::array(DType::U32, [2]), Type::scalar(DType::U32));
    let f = func(&[key, start], |b, x| {
        let bits = Type::array(DType::U32, [2, 5]);
        vec![b.push(Op::RandomBits { stream: 1 }, x, Some(&bits))]
    });
    check_all(&f, "random_bits");
}

#[test]
fn movement_and_reductions_keep_the_axis_of_examples() {
    let f = func(&[f64s([3, 2]), f64s([2])], |b, x| {
        let wide = b.broadcast(x[1], &Shape::from([3, 2]), vec![1]);
        let p = b.compare(CompareOp::Lt, wide, x[0]);
        let chosen = b.select(p, x[0], wide);
        let turned = b.transpose(chosen, vec![1, 0]);
        let pad = b.push(Op::Pad { lo: vec![1, 0], hi: vec![0, 2] }, &[turned], None);
        let cut = b.push(Op::Slice { start: vec![1, 1], limit: vec![3, 4] }, &[pad], None);
        let count = b.push(Op::Iota { axis: 1 }, &[], Some(&f64s([2, 3])));
        let joined = b.push(Op::Concat { axis: 1 }, &[cut, count, turned], None);
        let flat = b.reshape(joined, [9, 2]);
        let largest = b.reduce(ReduceOp::Max, flat, vec![1]);
        let all = b.reduce(ReduceOp::Sum, flat, vec![0, 1]);
        let low = b.binary(BinaryOp::Min, x[1], x[1]);
        vec![joined, largest, all, low, count]
    });
    check_all(&f, "movement");
}

#[test]
fn shared_values_are_computed_once() {
    let f = func(&[f64s([2, 2]), f64s([2])], |b, x| {
        let fixed = b.unary(crate::graph::UnaryOp::Exp, x[0]);
        let row = b.reshape(x[1], [1, 2]);
        vec![b.dot(row, fixed, false, false)]
    });
    let many = optimize(&batch(&f, &[false, true], 7));
    let shapes: Vec<String> = many.nodes().iter().map(|n| format!("{} {}", n.op.name(), n.ty)).collect();
    assert!(shapes.contains(&"exp f64[2,2]".into()), "{shapes:?}");
    assert!(shapes.contains(&"dot f64[7,2]".into()), "one product for all rows: {shapes:?}");
}

#[test]
fn random_functions_and_their_gradients_give_what_a_loop_gives() {
    for (seed, (what, f, x)) in samples(40).enumerate() {
        let mut draws = Draws::new(seed as u64);
        let mapped: Vec<bool> = x.iter().map(|_| draws.below(3) > 0).collect();
        check_batch(&f, &mapped, 2 + seed % 2, seed as u64, &what);
    }
}

#[test]
fn searches_in_lockstep_give_what_a_loop_gives() {
    let mut searches = 0;
    for (seed, (what, f, x)) in samples(40).enumerate() {
        let mut draws = Draws::new(seed as u64);
        let mapped: Vec<bool> = x.iter().map(|_| draws.below(3) > 0).collect();
        let many = check_batch_with(Searches::Lockstep, &f, &mapped, 3, seed as u64, &what);
        let rows = |f: &Func| {
            f.nodes().iter().filter(|n| matches!(&n.op, Op::Solve(s) if s.rows().is_some())).count()
        };
        searches += rows(&many);
        // A second axis of examples: loops in lockstep then run for each example alone.
        let again: Vec<bool> = x.iter().map(|_| draws.below(2) > 0).collect();
        check_batch_with(Searches::Lockstep, &many, &again, 2, seed as u64, &what);
    }
    assert!(searches > 20, "{searches} searches in lockstep");
}

#[test]
fn directions_of_a_derivative_share_the_search() {
    let count = |f: &Func, name: &str| f.nodes().iter().filter(|n| n.op.name() == name).count();
    // Loops with sequences are excluded: they run once per direction.
    let sequences = |f: &Func| {
        let has = |node: &Node| matches!(&node.op, Op::Replay(l) if l.num_xs + l.num_ys > 0);
        f.nodes().iter().any(has)
    };
    let (mut loops, mut tapped) = (0, 0);
    let derivatives = samples(800).enumerate().filter(|(_, (what, ..))| !what.starts_with("seed"));
    for (seed, (what, f, x)) in derivatives.filter(|(_, (_, f, _))| !sequences(f)) {
        // The inputs after the seventh are cotangents and tangents.
        let mapped: Vec<bool> = (0..x.len()).map(|k| k >= 7).collect();
        let many = check_batch(&f, &mapped, 2, seed as u64, &what);
        // Nodes after a loop that stores values run per example.
        if count(&f, "tiles") == 0 {
            loops += count(&f, "replay");
            let has_rows = |node: &&Node| matches!(&node.op, Op::Replay(l) if l.num_tap_rows > 0);
            tapped += f.nodes().iter().filter(has_rows).count();
            let kinds = |f: &Func| ["solve", "replay", "tiles"].map(|name| count(f, name));
            assert_eq!(kinds(&many), kinds(&f), "{what}");
        }
    }
    assert!(
        loops > 20 && tapped > 20,
        "{loops} loops along a shared schedule, {tapped} of them with tap rows"
    );
}

#[test]
fn a_sum_in_a_derivative_has_the_type_of_its_tangent() {
    for (seed, (what, f, _)) in samples(60).enumerate().filter(|(_, (what, ..))| what.starts_with("seed")) {
        let wrt = [0, 1, 2, 3, 4, 6];
        let along = jvp(&f, &wrt);
        let tangents: Vec<usize> = (f.num_inputs()..along.num_inputs()).collect();
        let back =
            vjp(&along, &(f.num_outputs()..along.num_outputs()).collect::<Vec<_>>(), &tangents).unwrap();
        let mapped: Vec<bool> = (0..back.num_inputs()).map(|k| tangents.contains(&k)).collect();
        check_batch(&back, &mapped, 2, seed as u64, &what);
    }
}

#[test]
fn a_batch_of_a_batch_gives_what_two_loops_give() {
    for (seed, (what, f, x)) in samples(12).enumerate() {
        let mut draws = Draws::new(seed as u64);
        let inner: Vec<bool> = x.iter().map(|_| draws.below(2) > 0).collect();
        let outer: Vec<bool> = x.iter().map(|_| draws.below(2) > 0).collect();
        check_batch(&batch(&f, &inner, 2), &outer, 3, seed as u64, &what);
    }
}

#[test]
fn a_gradient_of_a_batch_is_that_of_each_example_and_their_sum() {
    [Searches::Alone, Searches::Lockstep].into_iter().for_each(check_gradients);
}

fn check_gradients(searches: Searches) {
    for (seed, (what, f, x)) in samples(40).enumerate().filter(|(_, (what, ..))| what.starts_with("seed")) {
        let mut draws = Draws::new(seed as u64);
        let mapped: Vec<bool> = x.iter().map(|_| draws.below(2) > 0).collect();
        let outs: Vec<usize> = (0..f.num_outputs()).filter(|&k| f.output_type(k).is_float()).collect();
        let wrt = [0, 1, 2, 3, 4, 6];
        let (many, x) = (batch_with(&f, &mapped, 3, searches), arguments(&f, &mapped, 3, seed as u64));
        let u: Vec<Array> = outs.iter().map(|&k| draws.array(many.output_type(k))).collect();
        let all = vjp(&many, &outs, &wrt).unwrap();
        let got = eval(&all, &[&x[..], &u].concat()).split_off(f.num_outputs());
        let single = vjp(&f, &outs, &wrt).unwrap();
        let each: Vec<Vec<Array>> = (0..3)
            .map(|i| {
                let u: Vec<Array> = u.iter().map(|u| entry(u, i)).collect();
                eval(&single, &[example(&x, &mapped, i), u].concat()).split_off(f.num_outputs())
            })
            .collect();
        let tol = if x[0].dtype() == DType::F32 { 1e-4 } else { 1e-11 };
        for (j, (&k, got)) in wrt.iter().zip(&got).enumerate() {
            if mapped[k] {
                (0..3).for_each(|i| assert_close(&[entry(got, i)], &each[i][j..=j], tol, &what));
            } else {
                let mut sum = each[0][j].clone();
                for e in 0..sum.data().len() {
                    sum.data_mut().set_f64(e, each.iter().map(|g| g[j].data().get_f64(e)).sum());
                }
                assert_close(std::slice::from_ref(got), &[sum], tol, &what);
            }
        }
    }
}

#[test]
fn every_convolution_equals_that_of_each_example() {
    let margins = Margins { lo: [1, 0], hi: [0, 1] };
    for lead in [&[][..], &[2]] {
        let of = |four: [usize; 4]| f64s([lead, &four].concat());
        for turned in [false, true] {
            let w = if turned { [2, 2, 4, 3] } else { [2, 2, 3, 4] };
            let types = [of([2, 3, 2, 3]), of(w)];
            let f = func(&types, |b, x| vec![b.push(Op::Conv { margins, turned }, x, None)]);
            check_all(&f, &format!("conv {lead:?} {turned}"));
        }
        let types = [of([2, 3, 2, 3]), of([2, 3, 2, 4])];
        let f = func(&types, |b, x| vec![b.push(Op::ConvKernel { margins }, x, None)]);
        check_all(&f, &format!("conv_kernel {lead:?}"));
    }
}

#[test]
fn every_system_equals_that_of_each_example() {
    for lead in [&[][..], &[2]] {
        for transposed in [false, true] {
            let of = |last: [usize; 2]| f64s([lead, &last].concat());
            let f = func(&[of([3, 3]), of([3, 2])], |b, x| {
                let factors = b.push(Op::Factor(FactorOp::Lu), &[x[0]], None);
                vec![factors, b.push(Op::LuSolve { transposed }, &[factors, x[0], x[1]], None)]
            });
            check_all(&f, &format!("systems {lead:?} {transposed}"));
            let triangle = Triangle { transposed, ..Triangle::LOWER };
            let f = func(&[of([3, 3]), of([3, 2])], |b, x| {
                vec![b.push(Op::TriangularSolve(triangle), &[x[0], x[1]], None)]
            });
            check_all(&f, &format!("triangular systems {lead:?} {transposed}"));
        }
        for op in FactorOp::ALL {
            let f = func(&[f64s([lead, &[3, 3]].concat())], |b, x| vec![b.push(Op::Factor(op), x, None)]);
            check_all(&f, &format!("{} {lead:?}", op.name()));
        }
    }
}
