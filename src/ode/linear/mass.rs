//! `Mass`: the constant matrix M of M y' = f(t, y).

#[cfg(feature = "autodiff")]
use super::Constraints;
use super::Matrix;
use crate::ode::ConfigError;

/// The constant matrix M of a problem `M y' = f(t, y)`. If M is singular, some equations, or combinations of
/// equations, are algebraic constraints.
///
/// The constraints must determine the components whose derivatives do not occur (index 1), and y0 must
/// satisfy the constraints within 10 tolerances. After a state reset, a change by
/// [`Stepper::y_mut`](crate::ode::Stepper::y_mut) and a declared discontinuity, the solver solves the
/// constraints again by Newton's method. It does not change M y.
///
/// # Examples
/// ```
/// use flowline::ode::{Mass, Method, Ode};
/// // y' = -z, 0 = z - y
/// let ode = Ode::new(|_t, y: &[f64; 2]| [-y[1], y[1] - y[0]]).method(Method::Rodas5P);
/// let y1 = ode.mass_matrix(Mass::diagonal([1.0, 0.0])).rtol(1e-8).solve(0.0, 1.0, [1.0, 1.0])?.y1;
/// assert!((y1[0] - (-1.0_f64).exp()).abs() < 1e-7 && (y1[1] - y1[0]).abs() < 1e-7);
/// # Ok::<(), flowline::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Mass {
    matrix: Matrix<f64>,
}

/// A mass matrix M and a matrix E, such that rows of E M are 0 if M is singular.
#[cfg(feature = "autodiff")]
pub(crate) struct Elimination {
    /// The order of the matrices.
    pub(crate) n: usize,
    /// M, row by row.
    pub(crate) mass: Vec<f64>,
    /// E, row by row.
    pub(crate) multiples: Vec<f64>,
    /// E M, row by row; 0 if no equation is algebraic.
    pub(crate) kept: Vec<f64>,
    /// Whether each row of E M is 0.
    pub(crate) is_algebraic: Vec<bool>,
}

impl Mass {
    /// A matrix given by its rows.
    ///
    /// # Panics
    /// If the matrix is not square.
    #[track_caller]
    pub fn dense<Row: AsRef<[f64]>>(rows: impl IntoIterator<Item = Row>) -> Mass {
        let rows: Vec<Row> = rows.into_iter().collect();
        let n = rows.len();
        let mut matrix = Matrix::zeros(n, n, n);
        for (i, row) in rows.iter().enumerate() {
            let row = row.as_ref();
            assert!(row.len() == n, "`Mass::dense`: row {i} has {} entries, expected {n}", row.len());
            for (j, &entry) in row.iter().enumerate() {
                matrix[(i, j)] = entry;
            }
        }
        Mass { matrix }
    }

    /// A diagonal matrix. An entry of 0 makes its equation a constraint.
    pub fn diagonal(diagonal: impl IntoIterator<Item = f64>) -> Mass {
        let diagonal: Vec<f64> = diagonal.into_iter().collect();
        let mut matrix = Matrix::zeros(diagonal.len(), 0, 0);
        for (i, entry) in diagonal.into_iter().enumerate() {
            matrix[(i, i)] = entry;
        }
        Mass { matrix }
    }

    /// An n x n banded matrix with `lower` subdiagonals and `upper` superdiagonals: `entry(i, j)` returns the
    /// entry in row i and column j, counted from 0.
    pub fn banded(n: usize, lower: usize, upper: usize, entry: impl Fn(usize, usize) -> f64) -> Mass {
        let mut matrix = Matrix::zeros(n, lower, upper);
        for j in 0..n {
            for i in j.saturating_sub(upper)..n.min(j + lower + 1) {
                matrix[(i, j)] = entry(i, j);
            }
        }
        Mass { matrix }
    }

    /// The matrix and its elimination, row by row.
    #[cfg(feature = "autodiff")]
    pub(crate) fn eliminated(&self) -> Elimination {
        let n = self.matrix.n();
        let entry = |i: usize, j: usize| if self.matrix.contains(i, j) { self.matrix[(i, j)] } else { 0.0 };
        let mass: Vec<f64> = (0..n * n).map(|k| entry(k / n, k % n)).collect();
        let constraints = Constraints::of(&self.matrix);
        let (mut multiples, mut kept) = (vec![0.0; n * n], vec![0.0; n * n]);
        for j in 0..n {
            let mut unit = vec![0.0; n];
            unit[j] = 1.0;
            constraints.iter().for_each(|constraints| constraints.reduce(&mut unit));
            unit.iter().enumerate().for_each(|(i, x)| multiples[i * n + j] = *x);
        }
        for (i, row) in constraints.iter().flat_map(Constraints::rows).enumerate() {
            row.iter().for_each(|&(j, x)| kept[i * n + j] = x);
        }
        let is_algebraic = |i: usize| constraints.as_ref().is_some_and(|of| of.is_algebraic(i));
        Elimination { n, mass, multiples, kept, is_algebraic: (0..n).map(is_algebraic).collect() }
    }

    pub(in crate::ode) fn matrix(&self) -> &Matrix<f64> {
        &self.matrix
    }

    /// Returns an error if the size is not n, the number of components, or if an entry is not finite.
    pub(in crate::ode) fn check(&self, n: usize) -> Result<(), ConfigError> {
        if self.matrix.n() != n {
            return Err(ConfigError::LinearShape {
                setting: "mass_matrix",
                found: self.matrix.n(),
                components: n,
            });
        }
        match self.matrix.data.iter().find(|x| !x.is_finite()) {
            Some(&value) => Err(ConfigError::MatrixEntry { value }),
            None => Ok(()),
        }
    }
}
