//! ndarray's owned arrays of any dimension as states, and their borrowed form for in-place vector fields.
//!
//! Components are numbered in the array's logical order, the last index fastest, whatever the memory layout.
//! Arrays in standard layout are summed as slices. Other arrays (column-major ones, or a transpose that a
//! vector field returns) are summed term by term in the same order, so that the bits agree. No step
//! allocates.

use super::heap::{self, same_shape};
use super::{PARTIAL_SUMS, add_up};
use crate::ode::plain::plain_drive;
use crate::ode::{PlainState, Real, ShapeMismatch, Solution, Stages, State, Tolerance, View};
use ::ndarray::{Array, Array2, ArrayRef, Dimension, Zip};

/// Whether all of `ys` and the stages of non-zero weight can be viewed as slices.
fn in_order<R, D: Dimension, K: Stages<Array<R, D>> + ?Sized>(ys: &[&Array<R, D>], a: &[f64], k: &K) -> bool {
    let weighted = a.iter().enumerate().filter(|(_, a)| **a != 0.0);
    ys.iter().all(|y| y.is_standard_layout())
        && weighted.fold(true, |all, (i, _)| all && k.stage(i).is_standard_layout())
}

fn slice<R, D: Dimension>(y: &Array<R, D>) -> &[R] {
    y.as_slice().expect("invariant: the layout is standard")
}
fn slice_mut<R, D: Dimension>(y: &mut Array<R, D>) -> &mut [R] {
    y.as_slice_mut().expect("invariant: the layout is standard")
}

/// Writes `sum_i a_i k_i` over the non-zero `a_i`. Returns false if all `a_i` are 0.
#[inline(always)]
fn weighted_sum<R: Real, D: Dimension, K: Stages<Array<R, D>> + ?Sized>(
    out: &mut Array<R, D>,
    a: &[f64],
    k: &K,
) -> bool {
    let mut first = true;
    for (i, &a) in a.iter().enumerate().filter(|(_, a)| **a != 0.0) {
        let add = Zip::from(&mut *out).and(k.stage(i));
        if first {
            add.for_each(|sum, &k| *sum = k.scale(a));
        } else {
            add.for_each(|sum, &k| *sum = k.scale_add(K::FUSED, a, *sum));
        }
        first = false;
    }
    !first
}

impl<R: Real<Clock = f64>, D: Dimension> State for Array<R, D> {
    type Clock = f64;

    fn lincomb<K: Stages<Self> + ?Sized>(&mut self, y: &Self, dt: &f64, a: &[f64], k: &K) {
        if in_order(&[self, y], a, k) {
            return heap::lincomb(K::FUSED, slice_mut(self), slice(y), dt, a, |i| slice(k.stage(i)));
        }
        if weighted_sum(self, a, k) {
            Zip::from(self).and(y).for_each(|out, &y| *out = out.scale_by_add(K::FUSED, dt, y));
        } else {
            self.assign(y);
        }
    }

    fn error_ratio<K: Stages<Self> + ?Sized>(
        &mut self,
        dt: &f64,
        b: &[f64],
        k: &K,
        y0: &Self,
        y1: &Self,
        tol: &Tolerance,
    ) -> f64 {
        if in_order(&[self, y0, y1], b, k) {
            let stage = |i| slice(k.stage(i));
            return heap::error_ratio(K::FUSED, slice_mut(self), dt, b, stage, slice(y0), slice(y1), tol);
        }
        if !weighted_sum(self, b, k) {
            return 0.0;
        }
        let mut sums = [0.0; PARTIAL_SUMS];
        for (j, ((sum, &y0), &y1)) in self.iter().zip(y0).zip(y1).enumerate() {
            let (rtol, atol) = tol.at(j);
            sums[j % PARTIAL_SUMS] += sum.scale_by(dt).squared_ratio(y0, y1, rtol, atol);
        }
        add_up(&sums, self.len())
    }

    fn scaled_error<K: Stages<Self> + ?Sized>(
        &mut self,
        dt: &f64,
        b: &[f64],
        k: &K,
        y0: &Self,
        y1: &Self,
        tol: &Tolerance,
    ) {
        if in_order(&[self, y0, y1], b, k) {
            let stage = |i| slice(k.stage(i));
            return heap::scaled_error(K::FUSED, slice_mut(self), *dt, b, stage, slice(y0), slice(y1), tol);
        }
        if !weighted_sum(self, b, k) {
            Zip::from(&mut *self).and(y0).for_each(|e, &y| *e = y.scale(0.0));
        }
        for (j, ((e, &y0), &y1)) in self.iter_mut().zip(y0).zip(y1).enumerate() {
            let (rtol, atol) = tol.at(j);
            *e = e.scale_by(dt).ratio(y0, y1, rtol, atol);
        }
    }

    fn num_components(&self) -> usize {
        self.len()
    }
    fn keep(&mut self, m: &bool, new: &mut Self) {
        if *m {
            std::mem::swap(self, new);
        }
    }
    fn first_non_finite(&self, _like: &f64) -> f64 {
        heap::first_non_finite(self.iter().copied())
    }
    #[inline(always)]
    fn conforms(&self, y: &Self) -> Result<(), ShapeMismatch> {
        same_shape(&self.shape(), &y.shape(), |shape| match shape {
            [n] => n.to_string(),
            shape => shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" x "),
        })
    }
}
plain_drive!({R: Real<Clock = f64>, D: Dimension + 'static} Array<R, D>, |_y| R::TOLERANCE, false, R, |y| y.iter(), |y| y.iter_mut());

impl<R: Real<Clock = f64>, D: Dimension + 'static> View for ArrayRef<R, D> {
    type Owned = Array<R, D>;
    fn view(y: &Array<R, D>) -> &ArrayRef<R, D> {
        y
    }
    fn view_mut(y: &mut Array<R, D>) -> &mut ArrayRef<R, D> {
        y
    }
}

impl<Y, O: PlainState> Solution<Y, O> {
    /// The saved values as an array `[time, component]`: row i is `ys[i]`.
    ///
    /// # Panics
    /// If the number of components differs between times.
    ///
    /// # Examples
    /// ```
    /// use flowline::ode::Ode;
    /// use ndarray::{Array1, ArrayRef1, array};
    /// let decay = Ode::new(|_t, y: &Array1<f64>| -y).save_at([0.5, 1.0]);
    /// let ys = decay.solve(0.0, 1.0, array![1.0, 2.0, 3.0])?.to_ndarray();
    /// assert!(ys.dim() == (2, 3) && (ys[[1, 2]] - 3.0 * (-1.0_f64).exp()).abs() < 1e-5);
    ///
    /// let heat = Ode::in_place(|_t, u: &ArrayRef1<f64>, du: &mut ArrayRef1<f64>| du.assign(&(-2.0 * u)));
    /// let u1 = heat.solve(0.0, 1.0, Array1::ones(400))?.y1;
    /// assert!((u1[399] - (-2.0_f64).exp()).abs() < 1e-6);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn to_ndarray(&self) -> Array2<f64> {
        let (rows, columns, numbers) = self.table();
        Array2::from_shape_vec((rows, columns), numbers).expect("invariant: as many numbers as the table has")
    }
}
