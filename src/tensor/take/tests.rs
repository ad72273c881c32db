//! All ways to call an operation with indices, against its definition.

use super::*;
use crate::array::refusal;
use crate::tensor::{grad, jit, jvp, value_and_grad, vmap};

/// Random numbers by splitmix64.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ (x >> 31)) % n as u64) as usize
    }

    fn numbers(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.below(64) as f64 - 32.0).collect()
    }

    /// An index into an axis of length n, and whether it is out of range.
    fn index(&mut self, dtype: DType, n: usize) -> (f64, bool) {
        let rows = n as f64;
        let signed = dtype != DType::U32;
        let part = if dtype.is_float() { self.below(4) as f64 / 4.0 } else { 0.0 };
        match self.below(12) {
            0 if signed => (-rows - 1.0 - self.below(3) as f64 - part, true),
            1 => (rows + self.below(3) as f64 + part, true),
            2 if signed => (if dtype == DType::I32 { f64::from(i32::MIN) } else { -1e12 }, true),
            3 => (if dtype == DType::U32 { f64::from(u32::MAX) } else { f64::from(i32::MAX) }, true),
            4 if dtype.is_float() => (f64::NAN, true),
            5..=7 if signed => (-1.0 - self.below(n) as f64, false),
            _ => (self.below(n) as f64 + part, false),
        }
    }
}

/// The row of an index, by the definition in the docs of `take`.
fn row(i: f64, n: usize) -> usize {
    let i = i.trunc();
    let from_start = if i < 0.0 { i + n as f64 } else { i };
    if from_start.is_nan() { 0 } else { from_start.clamp(0.0, (n - 1) as f64) as usize }
}

fn taken(x: &[f64], rows: &[usize], inner: usize) -> Vec<f64> {
    rows.iter().flat_map(|r| x[r * inner..(r + 1) * inner].to_vec()).collect()
}

fn scattered(x: &[f64], rows: &[usize], updates: &[f64], inner: usize) -> Vec<f64> {
    let mut out = x.to_vec();
    for (k, r) in rows.iter().enumerate() {
        (0..inner).for_each(|j| out[r * inner + j] += updates[k * inner + j]);
    }
    out
}

/// x, an index into its first axis, updates of the rows at this index, and the rows by the definition.
struct Case {
    x: Tensor,
    index: Tensor,
    updates: Tensor,
    rows: Vec<usize>,
    inner: usize,
    is_out: bool,
}

fn case(draw: &mut Draw) -> Case {
    let dims: Vec<usize> = (0..=draw.below(3)).map(|_| 1 + draw.below(4)).collect();
    let index_dims: Vec<usize> = (0..draw.below(3)).map(|_| draw.below(4)).collect();
    let dtype = [DType::I32, DType::U32, DType::F32, DType::F64][draw.below(4)];
    let (n, inner): (usize, usize) = (dims[0], dims[1..].iter().product());
    let count: usize = index_dims.iter().product();
    let drawn: Vec<(f64, bool)> = (0..count).map(|_| draw.index(dtype, n)).collect();
    let numbers: Vec<f64> = drawn.iter().map(|(i, _)| *i).collect();
    // As f32, i32::MAX is still far beyond the axis.
    let rows = numbers.iter().map(|&i| row(i, n)).collect();
    let updates = draw.numbers(count * inner);
    Case {
        x: Tensor::from_vec(dims.clone(), draw.numbers(n * inner)),
        index: Tensor::from_vec(index_dims.clone(), numbers).cast(dtype),
        updates: Tensor::from_vec([&index_dims[..], &dims[1..]].concat(), updates),
        rows,
        inner,
        is_out: drawn.iter().any(|(_, is_out)| *is_out),
    }
}

#[test]
fn all_ways_to_call_an_operation_with_indices_agree_with_its_definition() {
    let count = std::env::var("FLOWLINE_INDEX_CASES").map_or(120, |n| n.parse().unwrap());
    let (mut draw, mut drawn) = (Draw(7), [0; 4]);
    for _ in 0..count {
        let Case { x, index, updates, rows, inner, is_out } = case(&mut draw);
        let n = x.shape()[0];
        let has_negative = index.to_vec().iter().any(|&i| i < 0.0 && i >= -(n as f64));
        drawn[0] += usize::from(is_out);
        drawn[1] += usize::from(has_negative && !is_out);
        drawn[2] += usize::from(rows.is_empty());
        drawn[3] += usize::from(n == 1);
        let take = taken(&x.to_vec(), &rows, inner);
        let scatter = scattered(&x.to_vec(), &rows, &updates.to_vec(), inner);
        let want = [take.clone(), scatter];
        let both = |x: &Tensor, i: &Tensor, u: &Tensor| (x.take(i), x.scatter_add(i, u));
        let check = |way: &str, (a, b): (Tensor, Tensor)| {
            assert_eq!([a.to_vec(), b.to_vec()], want, "{way}: {x:?} at {index:?} with {updates:?}");
        };
        let direct = jit(move |x: Tensor, i: Tensor, u: Tensor| both(&x, &i, &u));
        check("jit", direct.call(&x, &index, &updates).unwrap());
        // The index and the updates are concrete in the outer trace.
        let nested = jit(|x: Tensor| direct.call(x, &index, &updates));
        check("jit in jit", nested.call(&x).unwrap());
        let sum = |x: &Tensor, i: &Tensor| {
            let (a, b) = direct.call(x, i, &updates)?;
            Ok(((&a * &updates).sum(), (a, b)))
        };
        let ((_, found), gradient) = value_and_grad(|x: &Tensor| sum(x, &index), &x).unwrap();
        check("jit in a gradient", found);
        let of_take = scattered(&vec![0.0; x.size()], &rows, &updates.to_vec(), inner);
        assert_eq!(gradient.to_vec(), of_take, "the gradient of {x:?} at {index:?}");
        let ((_, found), _) = value_and_grad(
            |(x, i): &(Tensor, Tensor)| {
                let (a, b) = both(x, i, &updates);
                Ok::<_, crate::Error>((a.sum(), (a, b)))
            },
            &(x.clone(), index.clone()),
        )
        .unwrap();
        check("a gradient with respect to x and the index", found);
        let along = jvp(|x: &Tensor| direct.call(x, &index, &updates).unwrap(), &x, &x);
        check("jit in a forward derivative", along.0);
        assert_eq!(along.1.0.to_vec(), take);
        let pair = |x: &Tensor| Tensor::stack(&[x, x]);
        let mapped = vmap(
            |(x, i, u): &(Tensor, Tensor, Tensor)| both(x, i, u),
            &(pair(&x), pair(&index), pair(&updates)),
        );
        check("vmap, row 0", (mapped.0.index(0), mapped.1.index(0)));
        check("vmap, row 1", (mapped.0.index(1), mapped.1.index(1)));
        let of_x = vmap(|x: &Tensor| direct.call(x, &index, &updates).unwrap(), &pair(&x));
        check("jit in vmap", (of_x.0.index(1), of_x.1.index(1)));
        if is_out {
            assert!(refusal(|| x.take(&index)).contains("is out of range"));
            assert!(refusal(|| x.scatter_add(&index, &updates)).contains("is out of range"));
        } else {
            check("outside functions", both(&x, &index, &updates));
            let (index, updates) = (index.clone(), updates.clone());
            check(
                "jit with a captured index",
                jit(move |x: Tensor| both(&x, &index, &updates)).call(&x).unwrap(),
            );
        }
    }
    assert!(drawn.iter().all(|&n| n >= 8), "out of range, negative, no index, one row: {drawn:?}");
}

#[test]
fn a_known_index_counts_from_the_end_in_every_transform() {
    let (x, last) = (Tensor::from([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), Tensor::from([-1, 1, -3]));
    let want = [5.0, 6.0, 3.0, 4.0, 1.0, 2.0];
    assert_eq!(x.take(&last).to_vec(), want);
    assert_eq!(x.take(&last.cast(DType::F64)).to_vec(), want);
    let index = last.clone();
    assert_eq!(jit(move |x: Tensor| x.take(&index)).call(&x).unwrap().to_vec(), want);
    let columns = vmap(|x: &Tensor| x.take(&Tensor::from([-1, -1])), &x);
    assert_eq!(columns.to_vec(), [2.0, 2.0, 4.0, 4.0, 6.0, 6.0]);
    let gradient = grad(|x: &Tensor| x.take(&last).square().index(0).sum(), &x);
    assert_eq!(gradient.to_vec(), [0.0, 0.0, 0.0, 0.0, 10.0, 12.0]);
    assert_eq!(jvp(|x: &Tensor| x.take(&last), &x, &x).1.to_vec(), want);
    let sum =
        Tensor::from([0.5, 0.5]).scatter_add(&Tensor::from([-1, 1, -2]), &Tensor::from([1.0, 2.0, 4.0]));
    assert_eq!(sum.to_vec(), [4.5, 3.5]);
}

#[test]
fn a_traced_index_counts_from_the_end_and_is_clamped() {
    let x = Tensor::from([1.0, 2.0, 3.0]);
    let f =
        jit(|x: Tensor, index: Tensor| (x.take(&index), x.scatter_add(&index, &Tensor::from([10.0, 20.0]))));
    let (taken, sum) = f.call(&x, Tensor::from([-1, -9])).unwrap();
    assert_eq!((taken.to_vec(), sum.to_vec()), (vec![3.0, 1.0], vec![21.0, 2.0, 13.0]));
    let mapped = vmap(|index: &Tensor| x.take(index), &Tensor::from([-1, 9]));
    assert_eq!(mapped.to_vec(), [3.0, 3.0]);
    // A function under `jit` traces its arguments, also in another function.
    let pick = jit(|x: Tensor, index: Tensor| x.take(&index));
    let last = Tensor::from([-1]);
    assert_eq!(pick.call(&x, &last).unwrap().to_vec(), [3.0]);
    assert_eq!(jit(|x: Tensor| pick.call(x, &last)).call(&x).unwrap().to_vec(), [3.0]);
    let beyond = Tensor::from(7);
    assert_eq!(jit(|x: Tensor| pick.call(x, &beyond)).call(&x).unwrap().item(), 3.0);
}
