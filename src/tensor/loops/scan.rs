//! Loops over the rows of tensors, and loops of a known number of trips.

use super::trips::{Trips, trips};
use super::{Stored, same_state};
use crate::error::Result;
use crate::graph::Checkpoints;
use crate::tensor::Tensor;
use crate::tensor::output::Output;
use crate::tensor::tree::Tree;
use std::ops::Range;

/// Applies `f` to a carried state and each row of `xs`, in order: `(c, y[i]) = f(c, x[i])`. Returns the last state and
/// all y, stacked along a new first axis.
///
/// The state c and the rows x are trees of tensors. The shapes and element types of the state do not change. All leaves
/// of `xs` have equally long first axes; a trip receives one entry of each. Tensors that all trips share, such as
/// weights, are captured.
///
/// The derivative is exact, in forward and in reverse mode. By default every state is stored if all of them fit into 32
/// MiB. Otherwise those that fit are stored, a backward pass computes the others again, and the gradient has no reverse
/// derivative. [`Scan`] offers further choices. In [`vmap`](crate::tensor::vmap), all examples share one loop; the 32 MiB are
/// those of one example.
///
/// # Shapes and units
/// Leaves of `xs` are `[n, ..]`, of a row `[..]`; a leaf `[..]` of y becomes `[n, ..]`.
///
/// # Errors
/// If `f` returns a `Result`: its error, or, on concrete tensors, a solve in `f` that ended early.
///
/// # Panics
/// If `xs` has no tensor leaf, first axes differ in length, or `f` returns a state of other types. If `f` does not return
/// a `Result`, the cases under "Errors" panic.
///
/// # Examples
/// A moving average, and its derivative with respect to the decay:
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::scan;
/// let data = Tensor::from([1.0, 2.0, 3.0]);
/// let average = |decay: &Tensor| {
///     let step = |m: &Tensor, x: &Tensor| {
///         let m = decay * m + (1.0 - decay) * x;
///         (m.clone(), m)
///     };
///     scan(step, &Tensor::from(0.0), &data)
/// };
/// assert_eq!(average(&Tensor::from(0.5)).1.to_vec(), [0.5, 1.25, 2.125]);
/// assert_eq!(grad(|d: &Tensor| average(d).0, &Tensor::from(0.5)).item(), -2.75);
/// ```
#[track_caller]
pub fn scan<C: Tree, X: Tree, Y: Tree, R: Output<Tree = (C, Y)>>(
    f: impl Fn(&C, &X) -> R,
    init: &C,
    xs: &X,
) -> R::Of<(C, Y)> {
    Scan::new(f).call(init, xs)
}

/// A [`scan`] with a choice of its direction and of the states that are stored.
///
/// # Examples
/// ```
/// use flowline::adjoint::Checkpoints;
/// use flowline::nn::prelude::*;
/// use flowline::tensor::Scan;
/// let add = |sum: &Tensor, x: &Tensor| (sum + x, sum + x);
/// let backwards = Scan::new(add).reversed().checkpoints(Checkpoints::Count(2));
/// let (sum, sums) = backwards.call(&Tensor::from(0.0), &Tensor::from([1.0, 2.0, 3.0]));
/// assert_eq!((sum.item(), sums.to_vec()), (6.0, vec![6.0, 5.0, 3.0]));
/// ```
pub struct Scan<F> {
    f: F,
    pub(super) stored: Stored,
    pub(super) is_reversed: bool,
}

impl<F> Scan<F> {
    /// A loop that applies `f`; see [`scan`].
    pub fn new(f: F) -> Scan<F> {
        Scan { f, stored: Stored::default(), is_reversed: false }
    }

    /// Runs from the last row to the first one. `y[i]` still belongs to `x[i]`.
    #[must_use]
    pub fn reversed(self) -> Self {
        Scan { is_reversed: true, ..self }
    }

    /// Stores fewer states; a backward pass computes the others again. Derivatives are bitwise equal for every choice.
    #[must_use]
    pub fn checkpoints(self, checkpoints: Checkpoints) -> Self {
        Scan { stored: Stored::Few(checkpoints), ..self }
    }

    /// Stores every state, however many. A reverse derivative of a reverse derivative needs them all.
    #[must_use]
    pub fn store_all(self) -> Self {
        Scan { stored: Stored::All, ..self }
    }

    /// Runs the loop; see [`scan`].
    #[track_caller]
    pub fn call<C: Tree, X: Tree, Y: Tree, R: Output<Tree = (C, Y)>>(&self, init: &C, xs: &X) -> R::Of<(C, Y)>
    where
        F: Fn(&C, &X) -> R,
    {
        let leaves = xs.named_leaves();
        let num = num_rows("scan", &leaves);
        let of = Trips { num, stored: self.stored, is_reversed: self.is_reversed };
        let rows = leaves.into_iter().map(|(_, x)| x).collect();
        R::answer(run("scan", &of, init, rows, &|_, c, x| {
            (self.f)(c, &xs.with_leaves(x.to_vec())).into_result()
        }))
    }
}

/// Applies `f` to the number of the trip and a state: `for i in range { x = f(i, x) }`. Returns the last state.
///
/// i is an i32 tensor of rank 0. Otherwise the loop is a [`scan`] without rows. To choose the stored states, use [`Scan`] over
/// `Tensor::iota(DType::I32, [n], 0)`.
///
/// # Errors
/// As for [`scan`].
///
/// # Panics
/// As for [`scan`]; also if the range ends beyond the i32 numbers.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::fori_loop;
/// let factorial = fori_loop(1..6, |i, x: &Tensor| x * i, &Tensor::from(1.0));
/// assert_eq!(factorial.item(), 120.0);
/// ```
#[track_caller]
pub fn fori_loop<C: Tree, R: Output<Tree = C>>(
    range: Range<usize>,
    f: impl Fn(&Tensor, &C) -> R,
    init: &C,
) -> R::Of<C> {
    let fits = i32::try_from(range.end).is_ok();
    assert!(fits, "fori_loop: the range {range:?} ends beyond the largest i32, {}", i32::MAX);
    let of = Trips { num: range.len(), stored: Stored::default(), is_reversed: false };
    let from = range.start as i32;
    let all = run("fori_loop", &of, init, vec![], &|i, c, _| Ok((f(&(i + from), c).into_result()?, ())));
    R::answer(all.map(|(c, ())| c))
}

/// Applies `f` to each row of `xs`, one after another, and stacks the results: `y[i] = f(x[i])`.
///
/// The results are those of [`vmap`](crate::tensor::vmap()), which computes all rows together and is faster where rows
/// are small. `map` needs the memory of one row. [`map_rows`](crate::tensor::map_rows) runs tiles of rows in parallel.
///
/// # Errors
/// As for [`scan`].
///
/// # Panics
/// As for [`scan`].
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::map;
/// let rows = Tensor::from([[1.0, -2.0, 3.0], [2.0, 2.0, -1.0]]);
/// let highest = map(|row: &Tensor| row.cumsum(0).max(), &rows);
/// assert_eq!(highest.to_vec(), [2.0, 4.0]);
/// ```
#[track_caller]
pub fn map<X: Tree, R: Output>(f: impl Fn(&X) -> R, xs: &X) -> R::Of<R::Tree> {
    let leaves = xs.named_leaves();
    let of = Trips { num: num_rows("map", &leaves), stored: Stored::All, is_reversed: false };
    let rows = leaves.into_iter().map(|(_, x)| x).collect();
    let all = run("map", &of, &(), rows, &|_, (), x| Ok(((), f(&xs.with_leaves(x.to_vec())).into_result()?)));
    R::answer(all.map(|((), y)| y))
}

/// The length of the first axis of all leaves.
#[track_caller]
fn num_rows(name: &str, leaves: &[(String, Tensor)]) -> usize {
    let Some((first, x)) = leaves.first() else {
        panic!(
            "{name}: xs has no tensor leaf; for n trips without rows use fori_loop, or pass Tensor::iota(DType::I32, [n], 0)"
        )
    };
    let leaf = |path: &str| if path.is_empty() { "xs".to_owned() } else { format!("leaf {path} of xs") };
    let num = x.shape().first().copied();
    for (path, x) in leaves {
        let what = leaf(path);
        let Some(&n) = x.shape().first() else {
            panic!("{name}: {what} is one {}, which has no rows: capture it", x.dtype())
        };
        let (known, of_first) = (num.unwrap_or(n), leaf(first));
        assert!(
            n == known,
            "{name}: {what} has shape {}, {n} rows, but {of_first} has {known} rows",
            x.shape()
        );
    }
    num.unwrap_or(0)
}

/// Runs the trips of a loop over trees. `f` takes the number of the trip, the state and the leaves of a row.
#[track_caller]
fn run<C: Tree, Y: Tree>(
    name: &str,
    of: &Trips,
    init: &C,
    rows: Vec<Tensor>,
    f: &dyn Fn(&Tensor, &C, &[Tensor]) -> Result<(C, Y)>,
) -> Result<(C, Y)> {
    let mut found = None;
    let (state, ys) = trips(of, init.leaves(), rows, &mut |i, state, row| {
        let (next, y) = f(i, &init.with_leaves(state.to_vec()), row)?;
        same_state(name, init, &next);
        let leaves = (next.leaves(), y.leaves());
        found = Some((next, y));
        Ok(leaves)
    })?;
    let (next, y) = found.expect("invariant: a trip is traced once");
    Ok((next.with_leaves(state), y.with_leaves(ys)))
}
