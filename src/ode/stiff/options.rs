//! Options for stiff problems: derivatives of the vector field, their sparsity, the mass matrix.

use super::Jacobian;
use crate::ode::{Mass, Ode, OdeState, PlainState, Sparsity};
use std::sync::Arc;

impl<'f, Y: PlainState, F, O> Ode<'f, Y, F, O> {
    /// The Jacobian of the vector field, for methods that need it: `write(t, y, jacobian)` sets `jacobian[(i,
    /// j)]`, initially 0, to df_i / dy_j.
    ///
    /// By default a [`vector_field!`](crate::vector_field) is differentiated by dual numbers and a closure by
    /// finite differences. The solve compares the Jacobian once with the vector field, along one direction, and
    /// returns an error if an entry is wrong by more than 10 %.
    ///
    /// # Examples
    /// ```
    /// use flowline::ode::{Method, Ode};
    /// let ode = Ode::new(|_t, y: &[f64; 2]| [y[1], 1e3 * (1.0 - y[0] * y[0]) * y[1] - y[0]])
    ///     .method(Method::Rodas5P)
    ///     .jacobian(|_t, y, jacobian| {
    ///         jacobian[(0, 1)] = 1.0;
    ///         jacobian[(1, 0)] = -2e3 * y[0] * y[1] - 1.0;
    ///         jacobian[(1, 1)] = 1e3 * (1.0 - y[0] * y[0]);
    ///     });
    /// let solution = ode.solve(0.0, 100.0, [2.0, 0.0])?;
    /// assert!((solution.y1[0] - 1.93136).abs() < 1e-4 && solution.stats.num_jac_evals < 100);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn jacobian(mut self, write: impl Fn(f64, &Y, &mut Jacobian) + Send + Sync + 'f) -> Self {
        self.functions.jacobian = Some(Arc::new(write));
        self
    }
    /// df/dt, for methods that need it: `write(t, y, f_t)` writes the partial derivative of f with respect to
    /// t. The default is the same as for the [Jacobian](Ode::jacobian). A finite difference in time stays
    /// within the step.
    pub fn time_derivative(mut self, write: impl Fn(f64, &Y, &mut Y) + Send + Sync + 'f) -> Self {
        self.functions.time_derivative = Some(Arc::new(write));
        self
    }
    /// An upper bound of the spectral radius of the Jacobian at (t, y), for `Method::Rkc2`. By default, a
    /// power iteration estimates it every 25 attempted steps and after a rejected step.
    ///
    /// # Examples
    /// ```
    /// use flowline::ode::{Method, Ode};
    /// let heat = |_t: f64, u: &[f64], du: &mut [f64]| {
    ///     let n = u.len();
    ///     let at = |i: usize| u.get(i).copied().unwrap_or(0.0);
    ///     (0..n).for_each(|i| du[i] = 1e4 * (at(i.wrapping_sub(1)) - 2.0 * u[i] + at(i + 1)));
    /// };
    /// let ode = Ode::in_place(heat).method(Method::Rkc2).spectral_radius(|_t, _u| 4e4);
    /// assert!(ode.solve(0.0, 1.0, vec![1.0; 99])?.stats.num_fn_evals < 10_000);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn spectral_radius(mut self, radius: impl Fn(f64, &Y) -> f64 + Send + Sync + 'f) -> Self {
        self.functions.spectral_radius = Some(Arc::new(radius));
        self
    }
    /// The sparsity pattern of the [Jacobian](Ode::jacobian). A Jacobian by differences or dual
    /// numbers then takes fewer evaluations. If the band is narrow, the time to solve a linear system is
    /// proportional to the number of components. A pattern that leaves out an entry is an error, if the entry
    /// contributes more than 10 % to its row at the start of the solve.
    ///
    /// # Examples
    /// ```
    /// use flowline::ode::{Method, Ode, Sparsity};
    /// let heat = |_t: f64, u: &[f64], du: &mut [f64]| {
    ///     let n = u.len();
    ///     let at = |i: usize| u.get(i).copied().unwrap_or(0.0);
    ///     (0..n).for_each(|i| du[i] = 1e4 * (at(i.wrapping_sub(1)) - 2.0 * u[i] + at(i + 1)));
    /// };
    /// let ode = Ode::in_place(heat).method(Method::Rodas5P).jacobian_sparsity(Sparsity::banded(1, 1));
    /// let stats = ode.solve(0.0, 1.0, vec![1.0; 99])?.stats;
    /// assert!(stats.num_fn_evals < 15 * stats.num_steps);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn jacobian_sparsity(mut self, sparsity: Sparsity) -> Self {
        self.settings.sparsity = Some(Arc::new(sparsity));
        self
    }
}

impl<Y: OdeState, F, O> Ode<'_, Y, F, O> {
    /// The constant matrix M of a problem `M y' = f(t, y)`, for `Rodas5P` and `Rosenbrock23`. If M is singular, some
    /// equations are algebraic constraints; see [`Mass`]. On tensors, M has one row per component of a group of rows that
    /// share their steps, and a singular M with `discontinuities` or `stop_at_rows` is an error.
    pub fn mass_matrix(mut self, mass: Mass) -> Self {
        self.settings.mass = Some(Arc::new(mass));
        self
    }
}
