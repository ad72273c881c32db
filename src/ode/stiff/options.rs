//! What a user says of a stiff problem: derivatives of the field, their pattern, the matrix in front of y'.

use super::Jacobian;
use crate::ode::{Mass, Ode, PlainState, Sparsity};
use std::sync::Arc;

impl<'f, Y: PlainState, F, O> Ode<'f, Y, F, O> {
    /// The Jacobian of the field, for methods that need it: `write(t, y, jacobian)` sets `jacobian[(i, j)]`, which is 0
    /// before, to df_i / dy_j.
    ///
    /// Where it is not given, a [`vector_field!`](crate::vector_field) is differentiated by dual numbers and a closure by
    /// forward differences. In builds with debug assertions a Jacobian that differs from differences of the field panics.
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
    /// assert!((solution.y1[0] - 1.9306).abs() < 1e-4 && solution.stats.num_jac_evals < 100);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn jacobian(mut self, write: impl Fn(f64, &Y, &mut Jacobian) + Send + Sync + 'f) -> Self {
        self.functions.jacobian = Some(Arc::new(write));
        self
    }
    /// df/dt, for methods that need it: `write(t, y, f_t)` writes the derivative of each component by t alone. Where it is not
    /// given, it is found as the [Jacobian](Ode::jacobian) is; a difference in time never leaves the step.
    pub fn time_derivative(mut self, write: impl Fn(f64, &Y, &mut Y) + Send + Sync + 'f) -> Self {
        self.functions.time_derivative = Some(Arc::new(write));
        self
    }
    /// A bound on the spectral radius of the Jacobian, for [`Method::Rkc2`]; where it is not given, it is estimated by a power
    /// iteration every 25 steps.
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
    /// assert!(ode.solve(0.0, 1.0, vec![1.0; 99])?.stats.num_fn_evals < 3_000);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn spectral_radius(mut self, radius: impl Fn(f64, &Y) -> f64 + Send + Sync + 'f) -> Self {
        self.functions.spectral_radius = Some(Arc::new(radius));
        self
    }
    /// Which entries of the [Jacobian](Ode::jacobian) can differ from 0: fewer evaluations determine it, and linear systems
    /// within a narrow band take time in proportion to the number of components.
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
    /// M of a problem `M y' = f(t, y)`, a constant matrix; a singular one makes some equations constraints.
    pub fn mass_matrix(mut self, mass: Mass) -> Self {
        self.settings.mass = Some(Arc::new(mass));
        self
    }
}
