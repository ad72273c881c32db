//! Jacobians without finite differences: from the user, or from a vector field that computes its own
//! derivatives.

use crate::ode::linear::Matrix;
use crate::ode::{DIRECTIONS, Dual, FieldDual, GenericField, State};
use crate::simd::{Level, Work, is_fused, run_narrow};
use std::fmt;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

/// A Jacobian that the function given to [`Ode::jacobian`](crate::ode::Ode::jacobian) writes: `jacobian[(i,
/// j)]` is df_i / dy_j, and 0 unless it is assigned.
///
/// An entry outside of the matrix panics. An entry outside of the band panics too, if the
/// [sparsity](crate::ode::Sparsity) has a band that is narrow enough to be stored as one.
#[derive(Clone, Debug)]
pub struct Jacobian(pub(super) Matrix<f64>);

impl Jacobian {
    /// The number of rows and of columns: the number of components of the state.
    pub fn n(&self) -> usize {
        self.0.n()
    }

    #[track_caller]
    fn check(&self, (i, j): (usize, usize)) {
        let (n, lower, upper) = (self.0.n(), self.0.lower(), self.0.upper());
        assert!(i < n && j < n, "the Jacobian has {n} rows and columns: there is no entry ({i}, {j})");
        assert!(
            self.0.contains(i, j),
            "the Jacobian has {lower} diagonals below and {upper} above the main one: entry ({i}, {j}) is \
             outside of the band; give a wider `jacobian_sparsity`"
        );
    }
}

impl Index<(usize, usize)> for Jacobian {
    type Output = f64;

    #[track_caller]
    fn index(&self, at: (usize, usize)) -> &f64 {
        self.check(at);
        &self.0[at]
    }
}

impl IndexMut<(usize, usize)> for Jacobian {
    #[track_caller]
    fn index_mut(&mut self, at: (usize, usize)) -> &mut f64 {
        self.check(at);
        &mut self.0[at]
    }
}

/// A vector field that computes its own derivatives.
pub trait Linearize<S: State> {
    /// Calls `column(c, df/dy v_c)` for each of `num_colors` directions `v_c = sum of e_j over colors[j] ==
    /// c`, and `column(num_colors, df/dt)`.
    fn columns(
        &self,
        t: &S::Clock,
        y: &S,
        colors: &[usize],
        num_colors: usize,
        column: &mut dyn FnMut(usize, &S),
    );
}

/// [`Linearize::columns`] of a `vector_field!`, by dual numbers with [`DIRECTIONS`] directions per pass. t is
/// the last direction.
#[doc(hidden)]
pub fn dual_columns<G: GenericField<N>, const N: usize>(
    field: &G,
    t: f64,
    y: &[f64; N],
    (colors, num_colors): (&[usize], usize),
    column: &mut dyn FnMut(usize, &[f64; N]),
) {
    let columns = DualColumns { field, t, y, colors, num_colors, column };
    let level = Level::detect();
    if is_fused(level) { run_narrow(level, columns) } else { columns.run() }
}

/// The arguments of [`dual_columns`].
struct DualColumns<'a, G, const N: usize> {
    field: &'a G,
    t: f64,
    y: &'a [f64; N],
    colors: &'a [usize],
    num_colors: usize,
    column: &'a mut dyn FnMut(usize, &[f64; N]),
}

impl<G: GenericField<N>, const N: usize> Work for DualColumns<'_, G, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let DualColumns { field, t, y, colors, num_colors, column } = self;
        let params = field.map_params(FieldDual::from);
        for first in (0..=num_colors).step_by(DIRECTIONS) {
            // For a direction of another pass the index is out of range, so all tangents are 0.
            let variable = |x: f64, direction: usize| Dual::variable(x, direction.wrapping_sub(first));
            let mut at = [FieldDual::from(0.0); N];
            for j in 0..N {
                at[j] = variable(y[j], colors[j]);
            }
            let dy = G::eval_dual(&params, variable(t, num_colors), &at);
            let mut out = *y;
            for p in 0..DIRECTIONS.min(num_colors + 1 - first) {
                for j in 0..N {
                    out[j] = dy[j].tangent[p];
                }
                column(first + p, &out);
            }
        }
    }
}

type JacobianFn<'f, Y> = dyn Fn(f64, &Y, &mut Jacobian) + Send + Sync + 'f;
type TimeDerivativeFn<'f, Y> = dyn Fn(f64, &Y, &mut Y) + Send + Sync + 'f;
type RadiusFn<'f, Y> = dyn Fn(f64, &Y) -> f64 + Send + Sync + 'f;

/// The functions for stiff methods that the user gives.
pub struct StateFunctions<'f, Y> {
    pub(in crate::ode) jacobian: Option<Arc<JacobianFn<'f, Y>>>,
    pub(in crate::ode) time_derivative: Option<Arc<TimeDerivativeFn<'f, Y>>>,
    pub(in crate::ode) spectral_radius: Option<Arc<RadiusFn<'f, Y>>>,
}

impl<Y> StateFunctions<'_, Y> {
    /// Whether each function is set: Jacobian, time derivative, spectral radius.
    pub(in crate::ode) fn given(&self) -> [bool; 3] {
        [self.jacobian.is_some(), self.time_derivative.is_some(), self.spectral_radius.is_some()]
    }
}

impl<Y> Clone for StateFunctions<'_, Y> {
    fn clone(&self) -> Self {
        StateFunctions {
            jacobian: self.jacobian.clone(),
            time_derivative: self.time_derivative.clone(),
            spectral_radius: self.spectral_radius.clone(),
        }
    }
}

impl<Y> Default for StateFunctions<'_, Y> {
    fn default() -> Self {
        StateFunctions { jacobian: None, time_derivative: None, spectral_radius: None }
    }
}

impl<Y> fmt::Debug for StateFunctions<'_, Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateFunctions").finish_non_exhaustive()
    }
}
