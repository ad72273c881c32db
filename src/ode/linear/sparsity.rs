//! `Sparsity`: the sparsity pattern of a Jacobian; `Coloring`: its column coloring.

use super::Matrix;
use crate::ode::{ConfigError, Real};

/// The sparsity pattern of the Jacobian.
///
/// Columns that have no nonzero row in common are computed together. By forward differences, a Jacobian then
/// takes one evaluation of the vector field per group of such columns, besides f(t, y). A banded Jacobian has
/// at most `lower + upper + 1` groups for any number of components. If the band is narrow, the linear systems
/// are banded too.
#[derive(Clone, Debug, PartialEq)]
pub struct Sparsity(Kind);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Banded { lower: usize, upper: usize },
    Pattern(Vec<(usize, usize)>),
}

impl Sparsity {
    /// A banded Jacobian: `f[i]` depends on `y[i - lower]` to `y[i + upper]`.
    pub fn banded(lower: usize, upper: usize) -> Sparsity {
        Sparsity(Kind::Banded { lower, upper })
    }

    /// A general pattern: the entries (i, j) for which `f[i]` depends on `y[j]`, in any order.
    pub fn pattern(entries: impl IntoIterator<Item = (usize, usize)>) -> Sparsity {
        let mut entries: Vec<_> = entries.into_iter().collect();
        entries.sort_unstable_by_key(|&(i, j)| (j, i));
        entries.dedup();
        Sparsity(Kind::Pattern(entries))
    }

    /// Returns an error if an entry is outside of an n x n Jacobian.
    pub(in crate::ode) fn check(&self, n: usize) -> Result<(), ConfigError> {
        let Kind::Pattern(entries) = &self.0 else { return Ok(()) };
        match entries.iter().find(|&&(i, j)| i >= n || j >= n) {
            Some(&(i, j)) => Err(ConfigError::SparsityEntry { row: i, column: j, components: n }),
            None => Ok(()),
        }
    }
}

/// The colors of a Jacobian's columns, and the positions of its nonzero entries. Columns of one color have no
/// nonzero row in common.
#[derive(Clone, Debug)]
pub struct Coloring {
    /// The color of each column.
    color: Vec<usize>,
    num_colors: usize,
    /// For a pattern: the rows of its entries, column by column, and the index at which each column starts.
    pattern: Option<(Vec<usize>, Vec<usize>)>,
    lower: usize,
    upper: usize,
}

impl Coloring {
    /// The coloring for n components; without `sparsity` the Jacobian is dense.
    pub fn new(n: usize, sparsity: Option<&Sparsity>) -> Coloring {
        match sparsity.map(|sparsity| &sparsity.0) {
            None => Coloring { color: (0..n).collect(), num_colors: n, pattern: None, lower: n, upper: n },
            Some(&Kind::Banded { lower, upper }) => {
                let width = (lower + upper + 1).min(n);
                let color = (0..n).map(|j| j % width.max(1)).collect();
                Coloring { color, num_colors: width, pattern: None, lower, upper }
            }
            Some(Kind::Pattern(entries)) => Coloring::of_pattern(n, entries),
        }
    }

    /// Greedy coloring: each column takes the first color that no earlier column with a common row has.
    fn of_pattern(n: usize, entries: &[(usize, usize)]) -> Coloring {
        let mut starts = vec![0; n + 1];
        for &(_, j) in entries {
            starts[j + 1] += 1;
        }
        for j in 0..n {
            starts[j + 1] += starts[j];
        }
        let rows: Vec<usize> = entries.iter().map(|&(i, _)| i).collect();
        // The colors used in each row.
        let mut seen: Vec<Vec<bool>> = vec![Vec::new(); n];
        let (mut color, mut num_colors) = (vec![0; n], 0);
        for j in 0..n {
            let column = &rows[starts[j]..starts[j + 1]];
            let is_free = |c: usize| column.iter().all(|&i| !seen[i].get(c).copied().unwrap_or(false));
            let free = (0..=num_colors).find(|&c| is_free(c)).expect("invariant: a new color is free");
            color[j] = free;
            num_colors = num_colors.max(free + 1);
            for &i in column {
                let len = seen[i].len().max(free + 1);
                seen[i].resize(len, false);
                seen[i][free] = true;
            }
        }
        let distance =
            |f: fn(usize, usize) -> usize| entries.iter().map(|&(i, j)| f(i, j)).max().unwrap_or(0);
        let lower = distance(usize::saturating_sub);
        let upper = distance(|i, j| j.saturating_sub(i));
        // Pivoting adds up to `lower` superdiagonals. A matrix with a wide band is stored as dense.
        let (lower, upper) = if 2 * (2 * lower + upper) < n { (lower, upper) } else { (n, n) };
        Coloring { color, num_colors, pattern: Some((rows, starts)), lower, upper }
    }

    /// The numbers of subdiagonals and superdiagonals of a matrix that holds the Jacobian.
    pub fn band(&self) -> (usize, usize) {
        (self.lower, self.upper)
    }

    /// The color of each column.
    pub fn colors(&self) -> &[usize] {
        &self.color
    }

    /// The number of colors.
    pub fn num_colors(&self) -> usize {
        self.num_colors
    }

    /// Whether the pattern has the entry (i, j).
    pub fn contains(&self, i: usize, j: usize) -> bool {
        match &self.pattern {
            None => i <= j.saturating_add(self.lower) && j <= i.saturating_add(self.upper),
            Some((rows, starts)) => rows[starts[j]..starts[j + 1]].binary_search(&i).is_ok(),
        }
    }

    /// Whether some entries of the Jacobian are not in the pattern.
    pub fn is_sparse(&self) -> bool {
        let n = self.color.len();
        match &self.pattern {
            None => self.lower + 1 < n || self.upper + 1 < n,
            Some((rows, _)) => rows.len() < n * n,
        }
    }

    /// The columns of a color.
    #[inline(always)]
    fn columns(&self, color: usize) -> impl Iterator<Item = usize> + '_ {
        // In a dense or banded matrix the columns of a color are equally spaced.
        let is_regular = self.pattern.is_none();
        let (first, step) = if is_regular { (color, self.num_colors.max(1)) } else { (0, 1) };
        (first..self.color.len()).step_by(step).filter(move |&j| is_regular || self.color[j] == color)
    }

    /// Sets each entry (i, j) in the columns of a color to `f(i, j)`.
    #[inline(always)]
    pub fn each_entry<R: Real>(
        &self,
        color: usize,
        matrix: &mut Matrix<R>,
        mut f: impl FnMut(usize, usize) -> R,
    ) {
        for j in self.columns(color) {
            match &self.pattern {
                None => {
                    let end = j.saturating_add(self.lower).saturating_add(1).min(self.color.len());
                    let rows = j.saturating_sub(self.upper)..end;
                    for (entry, i) in matrix.column_mut(j, rows.clone()).iter_mut().zip(rows) {
                        *entry = f(i, j);
                    }
                }
                Some((rows, starts)) => {
                    for &i in &rows[starts[j]..starts[j + 1]] {
                        matrix[(i, j)] = f(i, j);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_one_color_share_no_row() {
        // A 2-D five-point stencil, row by row.
        let (n, side) = (30, 6);
        let is_neighbor = |i: usize, j: usize| {
            let (a, b) = ((i / side, i % side), (j / side, j % side));
            a.0.abs_diff(b.0) + a.1.abs_diff(b.1) <= 1
        };
        let entries: Vec<_> =
            (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).filter(|&(i, j)| is_neighbor(i, j)).collect();
        let plan = Coloring::new(n, Some(&Sparsity::pattern(entries.clone())));
        assert!(plan.num_colors() <= 9, "{}", plan.num_colors());
        for &(i, j) in &entries {
            for &(k, l) in &entries {
                assert!(i != k || j == l || plan.colors()[j] != plan.colors()[l]);
            }
        }
    }

    #[test]
    fn a_band_takes_as_many_directions_as_it_is_wide() {
        let plan = Coloring::new(100, Some(&Sparsity::banded(2, 1)));
        assert_eq!((plan.num_colors(), plan.band()), (4, (2, 1)));
        assert_eq!(plan.columns(3).take(3).collect::<Vec<_>>(), [3, 7, 11]);
    }
}
