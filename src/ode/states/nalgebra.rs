//! nalgebra's vectors and matrices of static and dynamic size as states.
//!
//! Components are numbered as nalgebra stores them: column by column. Static vectors and matrices use the
//! same code as arrays.

use super::arrays::fixed_state;
use super::heap::heap_state;
use super::in_registers;
use crate::ode::plain::plain_drive;
use crate::ode::{PlainState, Real, Solution};
use ::nalgebra::{Const, DMatrix, Dim, Dyn, Matrix, SMatrix, Scalar, VecStorage};

#[inline(always)]
fn read<R: Real, const N: usize, const M: usize>(y: &SMatrix<R, N, M>) -> &[R] {
    y.data.0.as_flattened()
}
#[inline(always)]
fn write<R: Real, const N: usize, const M: usize>(y: &mut SMatrix<R, N, M>) -> &mut [R] {
    y.data.0.as_flattened_mut()
}
fixed_state!({R: Real + Scalar, const N: usize, const M: usize} SMatrix<R, N, M>, N * M, read, write);
plain_drive!(
    {R: Real<Clock = f64> + Scalar, const N: usize, const M: usize} SMatrix<R, N, M>,
    |_y| R::TOLERANCE, R::UNROLLED && in_registers::<R>(N * M), R, |y| y.iter(), |y| y.iter_mut()
);

/// A shape as text: `3` for a vector, `3 x 2` for a matrix.
fn describe((rows, columns): &(usize, usize)) -> String {
    match columns {
        1 => rows.to_string(),
        _ => format!("{rows} x {columns}"),
    }
}
macro_rules! dynamic {
    ($({$($generics:tt)*} $t:ty;)*) => { $(
        heap_state!({$($generics)*} $t, |y| y.data.as_slice(), |y| y.data.as_mut_slice(), |y: &$t| y.shape(), describe);
        plain_drive!({$($generics)*} $t, |_y| R::TOLERANCE, false, R, |y| y.iter(), |y| y.iter_mut());
    )* };
}
dynamic!(
    {R: Real<Clock = f64> + Scalar, C: Dim} Matrix<R, Dyn, C, VecStorage<R, Dyn, C>>;
    {R: Real<Clock = f64> + Scalar, const N: usize} Matrix<R, Const<N>, Dyn, VecStorage<R, Const<N>, Dyn>>;
);

impl<Y, O: PlainState> Solution<Y, O> {
    /// The saved values as a matrix `[time, component]`: row i is `ys[i]`.
    ///
    /// # Panics
    /// If the number of components differs between times.
    ///
    /// # Examples
    /// ```
    /// use flowline::ode::Ode;
    /// use nalgebra::{DVector, Vector3};
    /// let decay = Ode::new(|_t, y: &Vector3<f64>| -y).save_at([0.5, 1.0]);
    /// let ys = decay.solve(0.0, 1.0, Vector3::new(1.0, 2.0, 3.0))?.to_dmatrix();
    /// assert!(ys.shape() == (2, 3) && (ys[(1, 2)] - 3.0 * (-1.0_f64).exp()).abs() < 1e-5);
    ///
    /// let heat = Ode::in_place(|_t, u: &DVector<f64>, du: &mut DVector<f64>| du.copy_from(&(-2.0 * u)));
    /// let u1 = heat.solve(0.0, 1.0, DVector::from_element(400, 1.0))?.y1;
    /// assert!((u1[399] - (-2.0_f64).exp()).abs() < 1e-6);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn to_dmatrix(&self) -> DMatrix<f64> {
        let (rows, columns, numbers) = self.table();
        DMatrix::from_row_slice(rows, columns, &numbers)
    }
}
