//! Random places: categories, permutations, choices with and without replacement.

use super::Key;
use crate::array::{DType, Shape};
use crate::tensor::Tensor;

/// Whether a [choice](Key::choice) can choose a place more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// It can.
    With,
    /// Chosen places are distinct.
    Without,
}

impl Key {
    /// One place of an axis, which is removed, with probabilities proportional to `e^logits`; i32. It is the place of the
    /// largest sum of logit and [Gumbel](Key::gumbel) number. A logit of -infinity has probability 0.
    ///
    /// For several draws of each row broadcast the logits: `logits.broadcast_to([draws, n])`.
    ///
    /// # Panics
    /// If there is no such axis, or it is empty.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let logits = Tensor::from([[0.25, 0.75]]).ln().broadcast_to([1000, 2]);
    /// let ones = Key::new(0).categorical(&logits, 1).sum().item();
    /// assert!((ones - 750.0).abs() < 50.0);
    /// ```
    ///
    /// # References
    /// Maddison, Tarlow and Minka (2014), A* sampling, section 2.
    #[track_caller]
    pub fn categorical(&self, logits: &Tensor, axis: usize) -> Tensor {
        let n = logits.len_along("categorical", axis);
        assert!(n > 0, "categorical: axis {axis} of {} is empty", logits.ty());
        (logits + self.gumbel(logits.shape().clone())).argmax(axis)
    }

    /// The numbers 0 to n - 1 in random order, i32, all orders with equal probability: they are sorted by random words.
    ///
    /// Words can be equal. So numbers are sorted repeatedly, by new words, as often as words of 3 log2(n) bits need: once for
    /// n up to 1625. (JAX uses the same rule.) Two numbers then keep their order with a probability that is off by less than
    /// 1 / n^3.
    ///
    /// # Panics
    /// If n is more than 2^31 - 1.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let order = Key::new(0).permutation(5);
    /// let mut sorted = order.to_vec();
    /// sorted.sort_by(f64::total_cmp);
    /// assert_eq!(sorted, [0.0, 1.0, 2.0, 3.0, 4.0]);
    /// ```
    #[track_caller]
    #[doc(alias = "shuffle")]
    pub fn permutation(&self, n: usize) -> Tensor {
        assert!(i32::try_from(n).is_ok(), "permutation: {n} numbers are more than an i32 counts");
        if n < 2 {
            return Tensor::full(DType::I32, [n], 0.0);
        }
        let rounds = (3.0 * (n as f64).log2() / 32.0).ceil() as usize;
        let words = self.bits([rounds, n]);
        let first = words.index(0).argsort(0);
        (1..rounds).fold(first, |order, k| order.take_clamped(&words.index(k).argsort(0)))
    }

    /// `num` of the places 0 to n - 1, i32; the chosen rows of x are `x.take(&places)`.
    ///
    /// With weights, the probabilities are proportional to them. With replacement, a place is found in the cumulative sums of
    /// the weights, in f64. Without replacement, the places are drawn one after another from those that are left: they are
    /// the `num` largest sums of `ln(weights)` and Gumbel numbers.
    ///
    /// # Shapes and units
    /// weights: `[n]`, not negative; the result `[num]`.
    ///
    /// # Panics
    /// If n is 0 or has fewer places than are chosen without replacement, or more than an i32 counts; if the weights are
    /// not `[n]`, or if concrete weights are negative, not finite, or positive for too few places.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// use flowline::tensor::extra::Replacement;
    /// let weights = Tensor::from([0.0, 1.0, 2.0]);
    /// let places = Key::new(0).choice(3, 2, Replacement::Without, Some(&weights)).sort(0);
    /// assert_eq!(places.to_vec(), [1.0, 2.0]);
    /// ```
    ///
    /// # References
    /// Efraimidis and Spirakis (2006), Weighted random sampling with a reservoir: their keys are monotonic functions of the
    /// sums.
    #[track_caller]
    pub fn choice(&self, n: usize, num: usize, replacement: Replacement, weights: Option<&Tensor>) -> Tensor {
        assert!(i32::try_from(n).is_ok(), "choice: {n} places are more than an i32 counts");
        let least = if replacement == Replacement::Without { num } else { num.min(1) };
        assert!(least <= n, "choice: {num} of {n} places, {replacement:?} replacement");
        let Some(weights) = weights else {
            return match replacement {
                _ if num == 0 => Tensor::full(DType::I32, [0], 0.0),
                Replacement::With => self.randint([num], 0, n as i32),
                Replacement::Without => self.permutation(n).slice(0, 0..num),
            };
        };
        check(weights, n, least);
        let weights = weights.cast(DType::F64);
        match replacement {
            _ if num == 0 => Tensor::full(DType::I32, [0], 0.0),
            Replacement::With => {
                let sums = weights.cumsum(0);
                let at = self.double(Shape::from([num])) * sums.last();
                sums.search_sorted(&at, true).minimum(&Tensor::from(n as i32 - 1))
            }
            Replacement::Without => {
                // u is neither 0 nor 1, whose Gumbel numbers are infinite.
                let u = (self.double(Shape::from([n])) + 0.5_f64.powi(54))
                    .minimum(&Tensor::from(1.0 - 0.5_f64.powi(53)));
                let gumbel = -(-(-u).log1p()).ln();
                (weights.ln() + gumbel).top_k(num).1
            }
        }
    }
}

/// Panics if weights do not fit. The numbers of traced weights are not known.
#[track_caller]
fn check(weights: &Tensor, n: usize, least: usize) {
    assert!(
        *weights.shape() == Shape::from([n]),
        "choice: the weights {} are not those of {n} places",
        weights.ty()
    );
    if weights.is_traced() {
        return;
    }
    let numbers = weights.to_vec();
    if let Some(w) = numbers.iter().find(|w| !(0.0..f64::INFINITY).contains(*w)) {
        panic!("choice: a weight is {w}: it must be finite and not negative");
    }
    let positive = numbers.iter().filter(|w| **w > 0.0).count();
    assert!(positive >= least, "choice: {positive} places have a positive weight, not {least}");
}
