//! Data sets, and their batches of equal shape.
//!
//! A jitted function is compiled for the shapes of its arguments, so a smaller batch at the end of an epoch
//! would need a second program. Two iterators avoid smaller batches. [`Dataset::batches`] continues into the
//! next epoch, so that every batch is full and every row is used equally often. [`Dataset::epoch`] ends after
//! one pass, and fills the last batch with rows of weight 0. (A user who slices a smaller batch by hand pays
//! only one more trace, because a jitted function stores one program per signature.)
//!
//! This module uses trees of concrete tensors and keys, and must not depend on where the rows come from. A
//! batch is a function of (data, key, number of the batch), so a resumed run can skip the batches that it has
//! already used.

use super::tree::Tree;
use super::{Key, Tensor};
use crate::array::{Array, Data, Shape};
use crate::error::{Error, Result};
use rand_core::Rng;

/// A tree of tensors whose first axes have the same length: the rows of the data.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// let data = Dataset::new((Tensor::from([1.0, 2.0, 3.0]), Tensor::from([[1.0], [4.0], [9.0]])))?;
/// for (x, y) in data.batches(2, &Key::new(0)).take(30) {
///     assert_eq!((x.shape().len(), (x.square() - y.reshape([2])).abs().max().item()), (1, 0.0));
/// }
/// let weights: Vec<f64> = data.epoch(2, &Key::new(0)).flat_map(|batch| batch.mask.to_vec()).collect();
/// assert_eq!(weights, [1.0, 1.0, 1.0, 0.0]);
/// # Ok::<(), flowline::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Dataset<T> {
    tree: T,
    rows: usize,
}

crate::tree! {
    /// A batch, and a mask that marks the rows of the data.
    pub struct MaskedBatch<T> {
        /// The rows.
        pub rows: T,
        /// 1 for a row of the data, 0 for a row that only fills the batch; f32 `[rows]`.
        pub mask: Tensor,
    }
}

impl<T: Tree> MaskedBatch<T> {
    /// The mean of `values` over the rows of the data, without the rows that only fill the batch. `values`
    /// has shape `[rows]`.
    ///
    /// # Panics
    /// If there is not one value per row.
    #[track_caller]
    pub fn mean(&self, values: &Tensor) -> Tensor {
        assert!(
            values.shape() == self.mask.shape(),
            "a mean over masked rows needs one value per row: shape {}, not {}",
            self.mask.shape(),
            values.shape()
        );
        let weight = self.mask.cast(values.dtype());
        (values * &weight).sum() / weight.sum()
    }

    /// The number of rows of the data.
    ///
    /// # Panics
    /// For a traced batch.
    #[track_caller]
    pub fn count(&self) -> usize {
        self.mask.to_vec().iter().filter(|&&weight| weight != 0.0).count()
    }
}

impl<T: Tree> Dataset<T> {
    /// A data set of the leaves of `tree`. The leaves are not copied.
    ///
    /// # Errors
    /// [`Error::Rows`] if a leaf has rank 0, the leaves have first axes of different length, or there is no
    /// leaf or no row.
    ///
    /// # Panics
    /// If a leaf is traced.
    #[track_caller]
    pub fn new(tree: T) -> Result<Dataset<T>> {
        let leaves = tree.named_leaves();
        let first = leaves.first().and_then(|(_, x)| x.shape().first().copied());
        let wanted = first.filter(|&rows| rows > 0);
        for (leaf, x) in &leaves {
            if wanted.is_none() || x.array().shape().first() != wanted.as_ref() {
                let wanted = wanted.map_or_else(|| "1 or more".to_owned(), |rows| rows.to_string());
                return Err(Error::Rows { leaf: leaf.clone(), shape: x.shape().clone(), wanted });
            }
        }
        let none = || {
            let (leaf, wanted) = ("(there is none)".to_owned(), "1 or more".to_owned());
            Error::Rows { leaf, shape: Shape::scalar(), wanted }
        };
        Ok(Dataset { tree, rows: wanted.ok_or_else(none)? })
    }

    /// The whole tree.
    pub fn tree(&self) -> &T {
        &self.tree
    }

    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.rows
    }

    /// The rows with the given indices, in the order of the indices.
    ///
    /// # Panics
    /// If an index is out of range.
    #[track_caller]
    pub fn rows(&self, which: &[usize]) -> T {
        let outside = which.iter().find(|&&row| row >= self.rows);
        assert!(
            outside.is_none(),
            "row {} is out of range for a data set of {} rows",
            outside.unwrap_or(&0),
            self.rows
        );
        self.tree.map_leaves(|leaf| Tensor::from_array(take(leaf.array(), which)))
    }

    /// An endless iterator over batches of `n` rows, each epoch in a new random order. A batch may contain
    /// the end of one epoch and the start of the next, so all batches are full. `skip(k)` does not copy the
    /// rows that it skips.
    ///
    /// # Panics
    /// If `n` is 0, or the key is traced.
    #[track_caller]
    #[doc(alias = "DataLoader")]
    pub fn batches(&self, n: usize, key: &Key) -> Batches<'_, T> {
        assert!(n > 0, "a batch needs at least one row");
        let _concrete = key.words().array();
        Batches { data: self, n, key: key.clone(), next: 0, epoch: None }
    }

    /// The batches of `n` rows of one epoch, in a random order determined by the key. The last batch is filled
    /// with rows of weight 0.
    ///
    /// # Panics
    /// If `n` is 0, or the key is traced.
    #[track_caller]
    pub fn epoch(&self, n: usize, key: &Key) -> Epoch<'_, T> {
        assert!(n > 0, "a batch needs at least one row");
        Epoch { data: self, n, order: shuffled(self.rows, key), next: 0 }
    }
}

/// See [`Dataset::batches`].
#[derive(Clone, Debug)]
pub struct Batches<'a, T> {
    data: &'a Dataset<T>,
    n: usize,
    key: Key,
    /// The number of the next batch.
    next: usize,
    /// The current epoch and the order of its rows.
    epoch: Option<(usize, Vec<usize>)>,
}

impl<T: Tree> Iterator for Batches<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let (first, rows) = (self.next * self.n, self.data.rows);
        let mut which = Vec::with_capacity(self.n);
        for i in first..first + self.n {
            let epoch = i / rows;
            if self.epoch.as_ref().is_none_or(|(begun, _)| *begun != epoch) {
                self.epoch = Some((epoch, shuffled(rows, &self.key.fold_in(epoch as u32))));
            }
            which.extend(self.epoch.as_ref().map(|(_, order)| order[i % rows]));
        }
        self.next += 1;
        Some(self.data.rows(&which))
    }

    fn nth(&mut self, n: usize) -> Option<T> {
        self.next += n;
        self.next()
    }
}

/// See [`Dataset::epoch`].
#[derive(Clone, Debug)]
pub struct Epoch<'a, T> {
    data: &'a Dataset<T>,
    n: usize,
    order: Vec<usize>,
    next: usize,
}

impl<T: Tree> Iterator for Epoch<'_, T> {
    type Item = MaskedBatch<T>;

    fn next(&mut self) -> Option<MaskedBatch<T>> {
        let left = &self.order[self.next.min(self.order.len())..];
        let count = left.len().min(self.n);
        if count == 0 {
            return None;
        }
        // The batch is filled with rows of the data, not with zeros: a model may be NaN for zeros, and 0 times
        // NaN is NaN.
        let which: Vec<usize> = left[..count].iter().copied().cycle().take(self.n).collect();
        self.next += count;
        let weight: Vec<f32> = (0..self.n).map(|i| f32::from(i < count)).collect();
        Some(MaskedBatch { rows: self.data.rows(&which), mask: weight.into() })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.order.len() - self.next.min(self.order.len())).div_ceil(self.n);
        (left, Some(left))
    }
}

impl<T: Tree> ExactSizeIterator for Epoch<'_, T> {}

/// A random permutation of 0 .. n, determined by the key (the shuffle of Fisher and Yates).
///
/// Each sample from 0 .. k is a 64-bit word times k, divided by 2^64 and rounded down. Its bias is below k /
/// 2^64.
fn shuffled(n: usize, key: &Key) -> Vec<usize> {
    let mut rng = key.rng();
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        let j = (u128::from(rng.next_u64()) * (i as u128 + 1)) >> 64;
        order.swap(i, j as usize);
    }
    order
}

/// Copies the rows `which` of an array.
fn take(a: &Array, which: &[usize]) -> Array {
    let shape = a.shape().with_axis(0, which.len());
    let width = a.shape()[1..].iter().product::<usize>();
    macro_rules! rows {
        ($($kind:ident)*) => { match a.data() { $(Data::$kind(all) => {
            let mut out = Vec::with_capacity(shape.size());
            which.iter().for_each(|&row| out.extend_from_slice(&all[row * width..(row + 1) * width]));
            Data::$kind(out)
        })* } };
    }
    let data = rows!(F32 F64 I32 U32 Bool);
    Array::new(shape, data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> Dataset<(Tensor, Tensor)> {
        let x = Tensor::from((0..10u32).collect::<Vec<_>>());
        let y = Tensor::from_vec([10, 2], (0..20).map(f64::from).collect());
        Dataset::new((x, y)).unwrap()
    }

    #[test]
    fn every_epoch_hands_out_every_row_once_in_a_new_order() {
        let data = data();
        let rows: Vec<f64> = data.batches(4, &Key::new(1)).take(5).flat_map(|(x, _)| x.to_vec()).collect();
        let sorted = |part: &[f64]| {
            let mut part = part.to_vec();
            part.sort_by(f64::total_cmp);
            part
        };
        let all: Vec<f64> = (0..10).map(f64::from).collect();
        assert_eq!((sorted(&rows[..10]), sorted(&rows[10..])), (all.clone(), all));
        assert_ne!(rows[..10], rows[10..]);
    }

    #[test]
    fn leaves_stay_row_by_row_together_and_keep_their_types() {
        let (x, y) = data().batches(7, &Key::new(2)).nth(3).unwrap();
        assert_eq!((x.dtype().name(), y.dtype().name(), &y.shape()[..]), ("u32", "f64", &[7, 2][..]));
        let want: Vec<f64> = x.to_vec().iter().flat_map(|row| [2.0 * row, 2.0 * row + 1.0]).collect();
        assert_eq!(y.to_vec(), want);
    }

    #[test]
    fn a_batch_is_a_function_of_the_key_and_its_number() {
        let data = data();
        let batches = |key| data.batches(3, &Key::new(key));
        let seventh: Vec<f64> = batches(5).nth(7).unwrap().0.to_vec();
        assert_eq!(batches(5).take(8).last().unwrap().0.to_vec(), seventh);
        assert_ne!(batches(6).nth(7).unwrap().0.to_vec(), seventh);
    }

    #[test]
    fn the_last_batch_of_an_epoch_has_the_shape_of_the_others_and_its_mean_is_masked() {
        let data = data();
        let batches: Vec<_> = data.epoch(4, &Key::new(3)).collect();
        assert_eq!(data.epoch(4, &Key::new(3)).len(), 3);
        assert_eq!(batches.iter().map(MaskedBatch::count).collect::<Vec<_>>(), [4, 4, 2]);
        assert!(batches.iter().all(|b| b.rows.1.shape()[..] == [4, 2]));
        let means = batches.iter().map(|b| b.mean(&b.rows.0.cast(crate::array::DType::F64)).item());
        let sum: f64 = means.zip([4.0, 4.0, 2.0]).map(|(mean, count)| mean * count).sum();
        assert!((sum - 45.0).abs() < 1e-12, "{sum}");
    }

    #[test]
    fn leaves_of_different_length_are_refused_by_name() {
        let e = Dataset::new((Tensor::zeros([3, 2]), Tensor::zeros([4]))).unwrap_err().to_string();
        assert!(e.contains("leaf 1 ") && e.contains("[4]") && e.contains("3 rows"), "{e}");
        assert!(Dataset::new(Tensor::from(1.0)).is_err() && Dataset::new(Tensor::zeros([0, 2])).is_err());
    }
}
