//! `Tableau`: a custom Butcher tableau, checked on construction.
//!
//! It owns its numbers. A [`ButcherTableau`] borrows them, so nothing is leaked, and the rest of the crate
//! treats all tableaux alike. Orders are derived from the numbers: a tableau with a wrong digit gets its actual
//! order, and [`Tableau::check_order`] names the condition that fails.

use super::interpolant::from_powers;
use super::order::{Conditions, Failure, ORDER_MAX};
use super::tableau::{DEGREE_MAX, Kind, row};
use super::{ButcherTableau, ConfigError, DenseTableau};

/// The allowed residual of a condition, relative to the sum of the absolute values of its terms; coefficients
/// of 13 digits pass.
const TOLERANCE: f64 = 1e-12;

/// Fractions of a step at which dense output is checked, in addition to the end of the step.
const INSIDE: [f64; 2] = [0.375, 0.8125];

/// A custom explicit Runge-Kutta method.
///
/// # Examples
/// ```
/// use flowline::ode::Tableau;
/// let kutta3 = Tableau::new("kutta3", &[&[0.5], &[-1.0, 2.0]], &[1.0 / 6.0, 2.0 / 3.0, 1.0 / 6.0], &[0.0, 0.5, 1.0])?
///     .with_embedded(&[0.0, 1.0, 0.0], 3)?;  // against the midpoint method
/// assert_eq!(kutta3.order(), 3);
/// # Ok::<(), flowline::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Tableau {
    name: String,
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
    order: u32,
    b_err: Option<Vec<f64>>,
    error_order: u32,
    dense: Option<Dense>,
}

#[derive(Clone, Debug, PartialEq)]
struct Dense {
    extra_a: Vec<f64>,
    extra_c: Vec<f64>,
    weights: Vec<f64>,
    degree: usize,
    order: u32,
}

impl Tableau {
    /// Creates a tableau from the rows of a (i weights for each stage i >= 1, counted from 0), the weights b
    /// and the times c.
    ///
    /// The order is derived from the numbers, up to 10.
    ///
    /// # Errors
    /// Shapes that do not agree, numbers that are not finite, a c that is not the sum of its row, weights b
    /// that do not sum to 1.
    pub fn new(name: impl Into<String>, a: &[&[f64]], b: &[f64], c: &[f64]) -> Result<Tableau, ConfigError> {
        let name = name.into();
        let check = Check { name: &name };
        let s = b.len();
        check.shape("b", s, s.max(1))?;
        check.shape("c", c.len(), s)?;
        check.shape("the rows of a (stage 0 has none)", a.len(), s - 1)?;
        check.numbers("b", b)?;
        check.stage(0, c[0], &[], 0)?;
        for (row, i) in a.iter().zip(1..) {
            check.stage(i, c[i], row, i)?;
        }
        let rows: Vec<&[f64]> = std::iter::once(&[] as &[f64]).chain(a.iter().copied()).collect();
        let conditions = Conditions::new(&rows, ORDER_MAX);
        check.holds("b", conditions.failure(1, b, 1.0, TOLERANCE))?;
        let order = conditions.order(b, 1.0, TOLERANCE);
        let (a, b, c) = (a.concat(), b.to_vec(), c.to_vec());
        Ok(Tableau { name, a, b, c, order, b_err: None, error_order: order, dense: None })
    }

    /// Adds the weights of an embedded solution; the error estimate is the difference of the two solutions.
    ///
    /// `error_order` is the k of an error estimate O(h^k): one more than the lower of the two orders. The step
    /// size controller uses 1/k as its exponent.
    ///
    /// # Errors
    /// Too few or too many weights, weights that are not finite or equal b, an `error_order` of 0 or above
    /// 11, or a difference from b that is not O(h^`error_order`).
    pub fn with_embedded(mut self, b_embedded: &[f64], error_order: u32) -> Result<Tableau, ConfigError> {
        let check = Check { name: &self.name };
        check.shape("b_embedded", b_embedded.len(), self.b.len())?;
        check.numbers("b_embedded", b_embedded)?;
        let b_err: Vec<f64> = self.b.iter().zip(b_embedded).map(|(b, other)| b - other).collect();
        let size: f64 = self.b.iter().chain(b_embedded).map(|b| b.abs()).sum();
        if error_order == 0 || b_err.iter().all(|b| b.abs() <= TOLERANCE * size) {
            return Err(ConfigError::TableauEstimate { tableau: self.name, error_order });
        }
        check.max_order(error_order - 1)?;
        let conditions = Conditions::new(&self.rows(), error_order - 1);
        check.holds("b - b_embedded", conditions.failure(error_order - 1, &b_err, 0.0, TOLERANCE))?;
        (self.b_err, self.error_order) = (Some(b_err), error_order);
        Ok(self)
    }

    /// Adds an interpolant, `y(t + theta h) = y + h sum_i w_i(theta) k_i`.
    ///
    /// `extra` holds extra stages, each as (c, weights of all the stages before it). `weights[i]` has the
    /// coefficients of theta, theta^2, ... in w_i, for the method's stages and then the extra ones; all rows
    /// have the same length. The order of the interpolant is derived from the numbers.
    ///
    /// # Errors
    /// Shapes that do not agree, numbers that are not finite, a c that is not the sum of its row, weights at
    /// theta = 1 that are not b, or weights that do not sum to theta.
    pub fn with_dense(mut self, extra: &[(f64, &[f64])], weights: &[&[f64]]) -> Result<Tableau, ConfigError> {
        let (check, s) = (Check { name: &self.name }, self.b.len());
        for (i, (c, row)) in extra.iter().enumerate() {
            check.stage(s + i, *c, row, s + i)?;
        }
        check.shape("the rows of the dense weights", weights.len(), s + extra.len())?;
        let degree = weights[0].len();
        check.shape("row 0 of the dense weights", degree, degree.clamp(1, DEGREE_MAX))?;
        for (i, powers) in weights.iter().enumerate() {
            check.shape(&format!("row {i} of the dense weights"), powers.len(), degree)?;
            check.numbers("the dense weights", powers)?;
        }
        for (i, powers) in weights.iter().enumerate() {
            let (at_end, b) = (powers.iter().sum::<f64>(), self.b.get(i).copied().unwrap_or(0.0));
            let size: f64 = powers.iter().map(|x| x.abs()).sum::<f64>() + b.abs();
            if (at_end - b).abs() > TOLERANCE * size {
                return Err(ConfigError::TableauDenseEnd { tableau: self.name, stage: i, at_end, b });
            }
        }
        let mut rows = self.rows();
        rows.extend(extra.iter().map(|(_, row)| *row));
        let conditions = Conditions::new(&rows, self.order);
        let mut order = self.order;
        for theta in INSIDE {
            let power = |powers: &&[f64]| powers.iter().rev().fold(0.0, |sum, x| (sum + x) * theta);
            let at_theta: Vec<f64> = weights.iter().map(power).collect();
            check.holds("the dense weights", conditions.failure(1, &at_theta, theta, TOLERANCE))?;
            order = order.min(conditions.order(&at_theta, theta, TOLERANCE));
        }
        self.dense = Some(Dense {
            extra_a: extra.iter().flat_map(|(_, row)| row.iter().copied()).collect(),
            extra_c: extra.iter().map(|(c, _)| *c).collect(),
            weights: weights.iter().flat_map(|powers| from_powers(powers)).collect(),
            degree,
            order,
        });
        Ok(self)
    }

    /// Returns the tableau if its solution has order p or higher.
    ///
    /// # Errors
    /// The first order condition that fails, with its rooted tree and its residual; or a p above 10.
    pub fn check_order(self, p: u32) -> Result<Tableau, ConfigError> {
        let check = Check { name: &self.name };
        check.max_order(p)?;
        let conditions = Conditions::new(&self.rows(), p);
        check.holds("b", conditions.failure(p, &self.b, 1.0, TOLERANCE))?;
        Ok(self)
    }

    /// The order of the solution.
    pub fn order(&self) -> u32 {
        self.order
    }

    /// The coefficients in the form that the solver uses.
    pub fn view(&self) -> ButcherTableau<'_> {
        ButcherTableau {
            name: &self.name,
            a: &self.a,
            b: &self.b,
            b_err: self.b_err.as_deref(),
            b_err_low: None,
            c: &self.c,
            order: self.order,
            error_order: self.error_order,
            kind: Kind::Explicit,
            dense: self.dense.as_ref().map(|dense| DenseTableau {
                extra_a: &dense.extra_a,
                extra_c: &dense.extra_c,
                weights: &dense.weights,
                degree: dense.degree,
                order: dense.order,
            }),
        }
    }

    fn rows(&self) -> Vec<&[f64]> {
        (0..self.b.len()).map(|i| row(&self.a, 0, i)).collect()
    }
}

/// The checks of a tableau. Their errors contain its name.
struct Check<'a> {
    name: &'a str,
}

impl Check<'_> {
    fn shape(&self, part: &str, found: usize, expected: usize) -> Result<(), ConfigError> {
        if found == expected {
            return Ok(());
        }
        Err(ConfigError::TableauShape { tableau: self.name.into(), part: part.into(), found, expected })
    }

    fn numbers(&self, part: &str, numbers: &[f64]) -> Result<(), ConfigError> {
        match numbers.iter().enumerate().find(|(_, x)| !x.is_finite()) {
            None => Ok(()),
            Some((index, &value)) => {
                Err(ConfigError::TableauNumber { tableau: self.name.into(), part: part.into(), index, value })
            }
        }
    }

    /// Checks a stage's row: its length, its numbers, its sum.
    fn stage(&self, stage: usize, c: f64, row: &[f64], length: usize) -> Result<(), ConfigError> {
        let part = format!("the row of stage {stage}");
        self.shape(&part, row.len(), length)?;
        self.numbers(&part, row)?;
        self.numbers(&format!("c[{stage}]"), &[c])?;
        let (sum, size) = row.iter().fold((0.0, c.abs()), |(sum, size), a| (sum + a, size + a.abs()));
        if (sum - c).abs() <= TOLERANCE * size {
            return Ok(());
        }
        Err(ConfigError::TableauRowSum { tableau: self.name.into(), stage, sum, c })
    }

    fn max_order(&self, order: u32) -> Result<(), ConfigError> {
        if order <= ORDER_MAX {
            return Ok(());
        }
        Err(ConfigError::TableauOrderAsked { tableau: self.name.into(), order, max: ORDER_MAX })
    }

    fn holds(&self, weights: &'static str, failure: Option<Failure>) -> Result<(), ConfigError> {
        let Some(Failure { tree, nodes, residual }) = failure else { return Ok(()) };
        Err(ConfigError::TableauOrder { tableau: self.name.into(), weights, tree, nodes, residual })
    }
}
