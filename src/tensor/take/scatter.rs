//! Rows of the first axis that are combined with updates.

use crate::graph::{Op, ScatterOp};
use crate::tensor::Tensor;

impl Tensor {
    /// `self` with updates added to rows of the first axis, in order: `y = x`, then `y[index[i..], ..] +=
    /// updates[i.., ..]`.
    ///
    /// Indices are interpreted as in [`Tensor::take`].
    ///
    /// # Shapes and units
    /// x and y `[n, ..]`; index of any shape; updates have the index's shape, followed by `[..]`.
    ///
    /// # Panics
    /// If a concrete index is out of range, the updates have another shape or element type, or for bools.
    #[track_caller]
    #[doc(alias = "index_add")]
    pub fn scatter_add(&self, index: &Tensor, updates: &Tensor) -> Tensor {
        self.scattered(ScatterOp::Add, index, updates)
    }

    /// `self` with rows of the first axis replaced by updates, in order: `y = x`, then `y[index[i..], ..] =
    /// updates[i.., ..]`. Of several updates of one row, the last one is the result, as in NumPy.
    ///
    /// Indices are interpreted as in [`Tensor::take`]. The derivative of a row that was replaced is 0, as is that of an
    /// update that a later one replaced. To replace the elements at which a mask is true, use [`Tensor::select`].
    ///
    /// # Shapes and units
    /// As for [`Tensor::scatter_add`].
    ///
    /// # Panics
    /// If a concrete index is out of range, or the updates have another shape or element type.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// let x = Tensor::from([1.0, 2.0, 3.0]);
    /// let y = x.scatter_set(&Tensor::from([-1, 0, 0]), &Tensor::from([7.0, 8.0, 9.0]));
    /// assert_eq!(y.to_vec(), [9.0, 2.0, 7.0]);
    /// ```
    #[track_caller]
    #[doc(alias = "index_copy")]
    #[doc(alias = "put")]
    pub fn scatter_set(&self, index: &Tensor, updates: &Tensor) -> Tensor {
        self.scattered(ScatterOp::Set, index, updates)
    }

    /// The largest of each element and its updates: `y = x`, then `y[index[i..], ..] = max(y[index[i..], ..],
    /// updates[i.., ..])`; NaN if one of them is NaN.
    ///
    /// Indices are interpreted as in [`Tensor::take`]. Equal largest elements share the derivative, as in
    /// [`Tensor::max_axes`]. The largest of each group is `Tensor::full(dtype, [groups, ..], f64::NEG_INFINITY)
    /// .scatter_max(&group, &x)`.
    ///
    /// # Shapes and units
    /// As for [`Tensor::scatter_add`].
    ///
    /// # Panics
    /// As for [`Tensor::scatter_add`].
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// let x = Tensor::from([1.0, 2.0, 3.0]);
    /// let y = x.scatter_max(&Tensor::from([0, 0, 2]), &Tensor::from([5.0, 4.0, 0.0]));
    /// assert_eq!(y.to_vec(), [5.0, 2.0, 3.0]);
    /// ```
    #[track_caller]
    #[doc(alias = "segment_max")]
    pub fn scatter_max(&self, index: &Tensor, updates: &Tensor) -> Tensor {
        self.scattered(ScatterOp::Max, index, updates)
    }

    #[track_caller]
    fn scattered(&self, op: ScatterOp, index: &Tensor, updates: &Tensor) -> Tensor {
        Tensor::op(Op::Scatter(op), &[self, &self.places(op.name(), index, 0), updates], None)
    }
}

#[cfg(test)]
mod tests {
    use crate::array::{DType, refusal};
    use crate::ode::tests::draw::{Draw, num_cases};
    use crate::tensor::{Tensor, grad, jit, jvp, vjp, vmap};

    type Scatter = fn(&Tensor, &Tensor, &Tensor) -> Tensor;

    /// A case: rows x, an index into them, updates.
    fn drawn(draw: &mut Draw, dtype: DType) -> (Tensor, Tensor, Tensor) {
        let count = draw.below(5);
        let rows = if count == 0 { draw.below(4) } else { 1 + draw.below(4) };
        let rest: Vec<usize> = (0..draw.below(3)).map(|_| draw.below(4)).collect();
        let of_index: Vec<usize> = if draw.coin() { vec![count] } else { vec![count.div_ceil(2), 2] };
        let of_index = if rows == 0 { vec![0] } else { of_index };
        let mut numbers = |lead: &[usize]| {
            let shape = [lead, &rest].concat();
            let one = |_| if draw.below(15) == 0 { f64::NAN } else { draw.below(5) as f64 - 2.0 };
            let all: Vec<f64> = (0..shape.iter().product()).map(one).collect();
            Tensor::from_vec(shape, all).cast(dtype)
        };
        let (x, updates) = (numbers(&[rows]), numbers(&of_index));
        let at = |_| draw.below(2 * rows) as i32 - rows as i32;
        let index: Vec<i32> = (0..of_index.iter().product()).map(at).collect();
        (x, Tensor::from_vec(of_index, index), updates)
    }

    /// The result by its definition.
    fn by_loops(name: &str, (x, index, updates): &(Tensor, Tensor, Tensor)) -> Vec<f64> {
        let (n, mut y) = (x.shape()[0], x.to_vec());
        let (row, updates) = (y.len().checked_div(n).unwrap_or(0), updates.to_vec());
        for (k, i) in index.to_vec().into_iter().enumerate() {
            let to = if i < 0.0 { i + n as f64 } else { i } as usize;
            for j in 0..row {
                let (old, new) = (y[to * row + j], updates[k * row + j]);
                y[to * row + j] = match name {
                    "set" => new,
                    _ if old.is_nan() || new.is_nan() => f64::NAN,
                    _ => old.max(new),
                };
            }
        }
        y
    }

    /// Ranges: 0 to 4 rows of up to two further axes of lengths 0 to 3; vectors and matrices of up to 6 indices of either sign,
    /// most of them repeated; small integers, so that many are equal, with NaN for floats; every element type.
    #[test]
    fn drawn_rows_become_those_of_loops() {
        let (mut draw, mut seen) = (Draw(401), [0; 5]);
        let ways: [(&str, Scatter); 2] = [("set", Tensor::scatter_set), ("max", Tensor::scatter_max)];
        for case in 0..num_cases(60) {
            let dtype = draw.one(&[DType::F64, DType::F32, DType::I32, DType::U32, DType::Bool]);
            let of = drawn(&mut draw, dtype);
            for (name, f) in ways {
                if name == "max" && dtype == DType::Bool {
                    continue;
                }
                let want = format!("{:?}", by_loops(name, &of));
                let (x, index, updates) = &of;
                assert_eq!(
                    format!("{:?}", f(x, index, updates).to_vec()),
                    want,
                    "case {case}: {name} of {of:?}"
                );
                let compiled = jit(move |x: Tensor, i: Tensor, u: Tensor| f(&x, &i, &u));
                let traced = compiled.call(x, index, updates).unwrap();
                assert_eq!(format!("{:?}", traced.to_vec()), want, "case {case}: {name} of {of:?}");
                let pair = |x: &Tensor| Tensor::stack(&[x, x]);
                let mapped = vmap(
                    |(x, i, u): &(Tensor, Tensor, Tensor)| f(x, i, u),
                    &(pair(x), pair(index), pair(updates)),
                );
                assert_eq!(format!("{:?}", mapped.index(1).to_vec()), want, "case {case}: {name} of {of:?}");
            }
            let (x, index, _) = &of;
            let mut rows = index.to_vec();
            rows.sort_by(f64::total_cmp);
            rows.dedup();
            let is = [
                index.size() == 0,
                x.shape()[0] == 0,
                rows.len() < index.size(),
                x.to_vec().iter().any(|x| x.is_nan()),
                dtype == DType::Bool,
            ];
            seen.iter_mut().zip(is).for_each(|(seen, is)| *seen += usize::from(is));
        }
        assert!(seen.iter().all(|&n| n > 0), "no index, no rows, repeated, NaN, bool: {seen:?}");
    }

    /// Ranges: as above, without NaN and with different numbers; derivatives with respect to rows and updates.
    #[test]
    fn drawn_derivatives_are_those_of_differences() {
        let mut draw = Draw(402);
        let ways: [(&str, Scatter); 2] = [("set", Tensor::scatter_set), ("max", Tensor::scatter_max)];
        for _ in 0..num_cases(12) {
            let (x, index, updates) = drawn(&mut draw, DType::F64);
            let mut noise = |x: &Tensor| {
                let all: Vec<f64> = (0..x.size()).map(|_| draw.uniform(-1.0, 1.0)).collect();
                Tensor::from_vec(x.shape().clone(), all)
            };
            let (at, along) = ((noise(&x), noise(&updates)), (noise(&x), noise(&updates)));
            for (name, f) in ways {
                let loss = |(x, u): &(Tensor, Tensor)| {
                    let y = f(x, &index, u);
                    (y.square() * (Tensor::iota(DType::F64, y.shape().clone(), 0) + 1.0)).sum()
                };
                let moved = |h: f64| (&at.0 + &along.0 * h, &at.1 + &along.1 * h);
                let dot = |g: &(Tensor, Tensor)| (&g.0 * &along.0).sum() + (&g.1 * &along.1).sum();
                let near =
                    |a: Tensor, b: Tensor| assert!((&a - &b).abs().item() < 1e-7, "{name}: {a:?} {b:?}");
                let h = 1e-6;
                let first = dot(&grad(loss, &at));
                near(first.clone(), (loss(&moved(h)) - loss(&moved(-h))) / (2.0 * h));
                near(first, jvp(loss, &at, &along).1);
                let gradient = |at: &(Tensor, Tensor)| dot(&grad(loss, at));
                let second = dot(&grad(gradient, &at));
                near(second, (gradient(&moved(h)) - gradient(&moved(-h))) / (2.0 * h));
            }
        }
    }

    #[test]
    fn replaced_rows_have_no_derivative_and_equal_largest_ones_share_it() {
        let (x, index) = (Tensor::from([1.0, 2.0, 2.0]), Tensor::from([2, 0, 2, 2]));
        let updates = Tensor::from([2.0, -1.0, 2.0, 1.0]);
        let cotangents = |f: Scatter| {
            let (_, pull) = vjp(|(x, u): &(Tensor, Tensor)| f(x, &index, u), &(x.clone(), updates.clone()));
            let (x, u) = pull(&Tensor::from([10.0, 20.0, 30.0]));
            (x.to_vec(), u.to_vec())
        };
        assert_eq!(cotangents(Tensor::scatter_set), (vec![0.0, 20.0, 0.0], vec![0.0, 10.0, 0.0, 30.0]));
        assert_eq!(cotangents(Tensor::scatter_max), (vec![10.0, 20.0, 10.0], vec![10.0, 0.0, 10.0, 0.0]));
        let said = refusal(|| Tensor::zeros([2]).scatter_set(&Tensor::from([2]), &Tensor::zeros([1])));
        assert!(said.starts_with("scatter_set: index 2 is out of range for axis 0 of f32[2]"), "{said}");
        let said = refusal(|| Tensor::zeros([2]).scatter_max(&Tensor::from([1]), &Tensor::zeros([2])));
        assert!(said.contains("the updates must be f32[1]"), "{said}");
    }
}
