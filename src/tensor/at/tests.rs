//! Indices against loops over all elements.

use super::*;
use crate::array::{DType, refusal};
use crate::at;
use crate::ode::tests::draw::{Draw, num_cases};
use crate::tensor::{grad, jit, jvp, vmap};

/// The places of a range by the definition of Python: from the start on in steps, before the end.
fn places(start: Option<i64>, end: Option<i64>, is_inclusive: bool, step: i64, n: i64) -> Vec<i64> {
    let from_start = |i: i64| if i < 0 { i + n } else { i };
    let first = start.map_or(if step > 0 { 0 } else { n - 1 }, from_start);
    let is_inside = |i: i64| match end.map(from_start) {
        None => true,
        Some(end) if is_inclusive && i == end => true,
        Some(end) => (end - i) * step > 0,
    };
    // A start beyond the axis is cut to it: the first place is its last one, or there is none before its first one.
    let first = if step > 0 { first.max(0) } else { first.min(n - 1) };
    let all = (0..).map(|k| first + k * step);
    all.take_while(|&i| (0..n).contains(&i) && is_inside(i)).collect()
}

fn drawn(draw: &mut Draw, n: usize) -> At {
    let reach = n as i64 + 3;
    let mut end = || (draw.below(3) > 0).then(|| draw.below(2 * reach as usize + 1) as i64 - reach);
    let (start, end) = (end(), end());
    let step = draw.one(&[1, 1, 1, 2, 3, 7, -1, -2, -3, i64::MAX, i64::MIN]);
    match draw.below(4) {
        0 if n > 0 => At::Place(draw.below(2 * n) as i64 - n as i64),
        _ => At::Range { start, end, is_inclusive: draw.below(4) == 0, step },
    }
}

/// The part in f32, compiled, mapped and differentiated; the elements of x are their own places.
fn check(at: &[At], x: &Tensor, want: &[f64]) {
    let single = x.cast(DType::F32).get(at);
    assert_eq!((single.dtype(), single.to_vec()), (DType::F32, want.to_vec()));
    let at = at.to_vec();
    let f = move |x: &Tensor| x.get(&at);
    let g = f.clone();
    assert_eq!(jit(move |x: Tensor| g(&x)).call(x).unwrap().to_vec(), want);
    let mut counts = vec![0.0; x.size()];
    want.iter().for_each(|&i| counts[i as usize] += 2.0 * i);
    let loss = |x: &Tensor| f(x).square().sum();
    assert_eq!(grad(loss, x).to_vec(), counts);
    assert_eq!(jvp(&f, x, x).1.to_vec(), want);
    let second = grad(|x: &Tensor| (grad(loss, x) * x).sum(), x);
    assert_eq!(second.to_vec(), counts.iter().map(|c| 2.0 * c).collect::<Vec<_>>());
    assert_eq!(vmap(&f, &Tensor::stack(&[x, x])).index(1).to_vec(), want);
}

/// Ranges: ranks 0 to 4, lengths 0 to 6, fewer entries than axes, new axes and an ellipsis anywhere; places from either end;
/// ranges with ends up to 3 beyond the axis, open ends, inclusive ends, steps of 1 to 7 and -1 to -3, and the largest ones.
#[test]
fn drawn_parts_are_those_of_loops_and_have_their_derivatives() {
    let (mut draw, mut seen) = (Draw(421), [0; 7]);
    for case in 0..num_cases(250) {
        let shape: Vec<usize> = (0..draw.below(5)).map(|_| draw.below(7)).collect();
        let used = draw.below(shape.len() + 1);
        let skipped = if draw.coin() { shape.len() - used } else { 0 };
        // The axes of the entries before and behind the ellipsis.
        let before = draw.below(used + 1);
        let (mut at, mut each, mut wide) = (vec![], vec![], vec![]);
        for (k, axis) in (0..before).chain(before + skipped..used + skipped).enumerate() {
            if skipped > 0 && k == before {
                at.push(At::Ellipsis);
            }
            if draw.below(5) == 0 {
                at.push(At::NewAxis);
            }
            each.push((axis, drawn(&mut draw, shape[axis])));
            at.push(each[k].1);
        }
        if skipped > 0 && before == used {
            at.push(At::Ellipsis);
        }
        let of_axis: Vec<Vec<i64>> = (0..shape.len())
            .map(|axis| {
                let n = shape[axis] as i64;
                match each.iter().find(|(a, _)| *a == axis).map(|(_, at)| *at) {
                    Some(At::Place(i)) => vec![if i < 0 { i + n } else { i }],
                    Some(At::Range { start, end, is_inclusive, step }) => {
                        wide.push(step);
                        // The sums above would overflow with the largest steps, which take at most one place.
                        places(start, end, is_inclusive, step.clamp(-100, 100), n)
                    }
                    _ => (0..n).collect(),
                }
            })
            .collect();
        let x = Tensor::iota(DType::F64, [shape.iter().product()], 0).reshape(shape.clone());
        let want = of_axis.iter().zip(&shape).fold(vec![0], |sums: Vec<usize>, (places, n)| {
            sums.iter().flat_map(|s| places.iter().map(move |&i| s * n + i as usize)).collect()
        });
        let want: Vec<f64> = want.into_iter().map(|i| i as f64).collect();
        let y = x.get(&at);
        assert_eq!(y.to_vec(), want, "case {case}: {at:?} of {shape:?}");
        let removed = at.iter().filter(|at| matches!(at, At::Place(_))).count();
        let added = at.iter().filter(|at| **at == At::NewAxis).count();
        assert_eq!(y.rank(), shape.len() - removed + added, "case {case}: {at:?} of {shape:?}");
        if case % 3 == 0 {
            check(&at, &x, &want);
        }
        let is = [
            want.is_empty() && x.size() > 0,
            x.size() == 0,
            removed > 0,
            added > 0,
            skipped > 0,
            wide.iter().any(|s| *s > 1),
            wide.iter().any(|s| *s < 0),
        ];
        seen.iter_mut().zip(is).for_each(|(seen, is)| *seen += usize::from(is));
    }
    assert!(seen.iter().all(|&n| n > 5), "{seen:?}");
}

#[test]
fn numbers_and_ranges_become_entries() {
    let x = Tensor::iota(DType::F64, [5], 0);
    let i = 3_usize;
    assert_eq!(x.get(at![i]).item(), 3.0);
    assert_eq!(x.get(at![i - 2..i]).to_vec(), [1.0, 2.0]);
    assert_eq!(x.get(at![..=1]).to_vec(), [0.0, 1.0]);
    assert_eq!(x.get(at![1..=-1; 2]).to_vec(), [1.0, 3.0]);
    assert_eq!(x.get(at![4..=2; -1]).to_vec(), [4.0, 3.0, 2.0]);
    assert_eq!(x.get(at![-2..]).to_vec(), [3.0, 4.0]);
    assert_eq!(x.get(at![..-3]).to_vec(), [0.0, 1.0]);
    assert_eq!(x.get(at![..0]).size(), 0);
    assert_eq!(x.get([]).to_vec(), x.to_vec());
}

#[test]
fn indices_that_do_not_fit_are_refused() {
    let x = || Tensor::zeros([2, 3]);
    assert_eq!(
        refusal(move || x().get(at![0, 3])),
        "get: place 3 is out of range for axis 1 of f32[2,3], of length 3: it must be from -3 to 2"
    );
    assert!(refusal(move || x().get(at![-3])).starts_with("get: place -3 is out of range for axis 0"));
    assert_eq!(refusal(move || x().get(at![.., .., 0])), "get: 3 entries for the 2 axes of f32[2,3]");
    assert_eq!(
        refusal(move || x().get(at![At::Ellipsis, At::Ellipsis])),
        "get: an index has at most one ellipsis"
    );
    assert_eq!(refusal(move || x().get(at![..; 0])), "get: a step of 0");
    assert_eq!(refusal(move || x().get(at![1; 2])), "get: Place(1) is not a range and has no step");
    assert_eq!(
        refusal(|| Tensor::zeros([0]).get(at![0])),
        "get: place 0 of axis 0 of f32[0], which has no elements"
    );
}

#[test]
fn places_and_ranges_are_read_in_place() {
    if crate::backend::oracle_lacks("memory plan") {
        return;
    }
    let part = jit(|x: Tensor| x.get(at![1..3, .., -1]) * 2.0);
    let plan = part.plan(&(Tensor::zeros([4, 5, 6]),)).unwrap();
    assert!(plan.kernels == 1 && plan.arena_bytes <= 64, "{plan}");
    // Only the chosen elements are copied.
    let second = jit(|x: Tensor| x.get(at![..; 2]) * 2.0);
    let plan = second.plan(&(Tensor::zeros([1000]),)).unwrap();
    assert!(plan.arena_bytes <= 4 * 500 + 128, "{plan}");
}
