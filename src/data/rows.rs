//! Rows of numbers of equal length: points to learn from, points to evaluate, and samples.

use super::{DataError, Points};
use crate::io::{IoError, write_csv, write_npy};
use std::ops::Index;
use std::path::Path;
use std::slice::ChunksExact;

/// Rows of numbers `[n, d]`, in the units of the data: what a trained density draws, and what it evaluates.
///
/// Functions that take rows take anything that converts to `Rows`: arrays of arrays, slices and `Vec`s of rows, `ndarray`
/// matrices, [`Points`], all of f64 or f32. Rows of different lengths are an error of the function that takes them.
///
/// # Examples
/// ```
/// use flowline::data::{Points, Rows};
/// let rows = Rows::from_flat(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3);
/// assert_eq!((rows.len(), rows.dim(), &rows[1]), (2, 3, &[4.0, 5.0, 6.0][..]));
/// assert_eq!(rows, Rows::from(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]));
/// let sums: Vec<f64> = rows.iter().map(|row| row.iter().sum()).collect();
/// assert_eq!(sums, [6.0, 15.0]);
/// assert_eq!(Points::from_rows(&rows)?.dim(), 3);
/// # Ok::<(), flowline::data::DataError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    count: usize,
    dim: usize,
    /// Row-major; empty if the rows differ in length.
    values: Vec<f64>,
    /// If the rows differ in length: the first row (from 1) that differs from row 1, its length, and the
    /// length of row 1.
    ragged: Option<[usize; 3]>,
    /// Names of the columns; empty if they have none.
    names: Vec<String>,
    /// The name of each row's class; empty without labels.
    labels: Vec<String>,
}

impl Rows {
    /// Rows of `dim` numbers that follow each other in one `Vec`.
    pub fn from_flat(values: Vec<f64>, dim: usize) -> Rows {
        let (count, rest) = (values.len() / dim.max(1), values.len() % dim.max(1));
        if rest > 0 || dim == 0 && !values.is_empty() {
            return Rows { dim, ragged: Some([count + 1, rest.max(dim.min(1)), dim]), ..Rows::default() };
        }
        Rows { count, dim, values, ..Rows::default() }
    }

    /// Rows of one number.
    pub fn from_column(values: Vec<f64>) -> Rows {
        Rows::from_flat(values, 1)
    }

    /// Names the columns.
    ///
    /// # Errors
    /// [`DataError::ColumnNames`] if there is not one name per column.
    pub fn with_columns<N: Into<String>>(
        self,
        names: impl IntoIterator<Item = N>,
    ) -> Result<Rows, DataError> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        if names.len() != self.dim {
            return Err(DataError::ColumnNames { found: names.len(), expected: self.dim });
        }
        Ok(Rows { names, ..self })
    }

    /// Adds the class of each row, by its name. [`TrainedFlow::log_prob`](crate::train::TrainedFlow::log_prob) of a run
    /// with classes evaluates each row under its class.
    ///
    /// # Errors
    /// [`DataError::RowLabels`] if there is not one label per row, [`RaggedPoints`](DataError::RaggedPoints).
    pub fn with_labels<L: Into<String>>(
        self,
        labels: impl IntoIterator<Item = L>,
    ) -> Result<Rows, DataError> {
        let labels: Vec<String> = labels.into_iter().map(Into::into).collect();
        let of_rows = self.of_equal_length("given")?;
        if labels.len() != of_rows.count {
            let (name, found, rows) = ("given".to_owned(), labels.len(), of_rows.count);
            return Err(DataError::RowLabels { name, found, rows });
        }
        Ok(Rows { labels, ..of_rows })
    }

    /// The name of each row's class; empty without labels.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Number of columns.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Names of the columns: `x1`, `x2`, ... if they have none.
    pub fn columns(&self) -> Vec<String> {
        if self.names.is_empty() {
            (1..=self.dim).map(|i| format!("x{i}")).collect()
        } else {
            self.names.clone()
        }
    }

    /// The rows in order.
    pub fn iter(&self) -> ChunksExact<'_, f64> {
        self.values.chunks_exact(self.dim.max(1))
    }

    /// The numbers of a column, counted from 0.
    ///
    /// # Panics
    /// When there is no such column.
    #[track_caller]
    pub fn column(&self, index: usize) -> Vec<f64> {
        assert!(index < self.dim, "column {index} is out of range for rows of {} columns", self.dim);
        self.iter().map(|row| row[index]).collect()
    }

    /// All numbers, row after row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// All numbers, row after row.
    pub fn into_values(self) -> Vec<f64> {
        self.values
    }

    /// Writes the rows: `.csv` (a heading with the names of the columns, one line per row, digits that read back to the same
    /// number) or `.npy` (f64, shape `[n, d]`), by the extension. The file is written completely or not at all.
    ///
    /// # Errors
    /// [`IoError::Format`] for another extension, [`IoError::RowLength`] for rows of different lengths, [`IoError::Write`].
    ///
    /// # Examples
    /// ```
    /// use flowline::data::{Points, Rows};
    /// let path = std::env::temp_dir().join("flowline-rows-doc.csv");
    /// let rows = Rows::from([[172.0, 65.0], [160.0, 58.0]]).with_columns(["height_cm", "weight_kg"])?;
    /// rows.save(&path)?;
    /// let points = Points::open(&path)?;
    /// assert_eq!((&points.columns[..], points.values()), (&rows.columns()[..], rows.values()));
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), IoError> {
        let path = path.as_ref();
        if let Some([row, found, expected]) = self.ragged {
            return Err(IoError::RowLength { path: path.to_owned(), row, found, expected });
        }
        let ending = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        match ending.as_deref() {
            Some("csv") => write_csv(path, &self.columns(), self),
            Some("npy") => write_npy(path, &[self.count, self.dim], &self.values),
            _ => Err(IoError::Format { path: path.to_owned() }),
        }
    }

    /// The numbers as bytes: pixel values of images. Fractions are rounded, and numbers below 0 or above 255 are moved to
    /// these ends.
    pub fn to_pixel_bytes(&self) -> Vec<u8> {
        self.values.iter().map(|x| x.round().clamp(0.0, 255.0) as u8).collect()
    }

    /// The rows, if all have the same length.
    ///
    /// # Errors
    /// [`DataError::RaggedPoints`] under this name.
    pub(crate) fn of_equal_length(self, name: &str) -> Result<Rows, DataError> {
        match self.ragged {
            Some([row, found, expected]) => {
                Err(DataError::RaggedPoints { name: name.to_owned(), row, found, expected })
            }
            None => Ok(self),
        }
    }

    /// The values, and the names of the columns, empty if they have none.
    pub(super) fn into_named(self) -> (Vec<f64>, Vec<String>) {
        (self.values, self.names)
    }

    fn of<R: AsRef<[T]>, T: Copy + Into<f64>>(rows: &[R]) -> Rows {
        let dim = rows.first().map_or(0, |row| row.as_ref().len());
        if let Some(i) = rows.iter().position(|row| row.as_ref().len() != dim) {
            return Rows { dim, ragged: Some([i + 1, rows[i].as_ref().len(), dim]), ..Rows::default() };
        }
        let values = rows.iter().flat_map(AsRef::as_ref).map(|&x| x.into()).collect();
        Rows { count: rows.len(), dim, values, ..Rows::default() }
    }
}

impl Index<usize> for Rows {
    type Output = [f64];

    /// The row with this number, from 0.
    fn index(&self, row: usize) -> &[f64] {
        assert!(row < self.count, "row {row} is out of range for {} rows", self.count);
        &self.values[row * self.dim..(row + 1) * self.dim]
    }
}

impl<'a> IntoIterator for &'a Rows {
    type Item = &'a [f64];
    type IntoIter = ChunksExact<'a, f64>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<&Rows> for Rows {
    fn from(rows: &Rows) -> Rows {
        rows.clone()
    }
}

impl From<&Points> for Rows {
    fn from(points: &Points) -> Rows {
        let named = Rows::from_flat(points.values().to_vec(), points.dim());
        Rows { names: points.columns.clone(), labels: points.names_of_labels(), ..named }
    }
}

macro_rules! rows {
    ($([$($size:tt)*] $rows:ty;)*) => { $(
        impl<$($size)*> From<$rows> for Rows {
            fn from(rows: $rows) -> Rows { Rows::of(&rows[..]) }
        }
    )* };
}
macro_rules! rows_of {
    ($($number:ty)*) => { $(
        rows! {
            [const N: usize, const D: usize] [[$number; D]; N];
            [const N: usize, const D: usize] &[[$number; D]; N];
            [const D: usize] &[[$number; D]];
            [const D: usize] Vec<[$number; D]>;
            [const D: usize] &Vec<[$number; D]>;
            [] Vec<Vec<$number>>;
            [] &Vec<Vec<$number>>;
            [] &[Vec<$number>];
            [] &[&[$number]];
            [] Vec<&[$number]>;
            [const N: usize] [&[$number]; N];
        }
        #[cfg(feature = "ndarray")]
        impl From<ndarray::ArrayView2<'_, $number>> for Rows {
            fn from(rows: ndarray::ArrayView2<'_, $number>) -> Rows {
                let values = rows.iter().map(|&x| f64::from(x)).collect();
                Rows { count: rows.nrows(), dim: rows.ncols(), values, ..Rows::default() }
            }
        }
        #[cfg(feature = "ndarray")]
        impl From<ndarray::Array2<$number>> for Rows {
            fn from(rows: ndarray::Array2<$number>) -> Rows { rows.view().into() }
        }
        #[cfg(feature = "ndarray")]
        impl From<&ndarray::Array2<$number>> for Rows {
            fn from(rows: &ndarray::Array2<$number>) -> Rows { rows.view().into() }
        }
    )* };
}
rows_of!(f32 f64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ode::tests::draw::Draw;

    /// Rows of 0 to 60 columns, 0 to 9 of them, as every type that converts to rows; and flat values of any length.
    #[test]
    fn rows_are_the_same_from_every_type_and_odd_lengths_are_named() {
        let mut draw = Draw(3);
        let mut found = [0; 4];
        for _ in 0..400 {
            let (n, d) = (draw.below(10), draw.below(61));
            let values: Vec<f64> = (0..n * d).map(|_| draw.below(1_000) as f64 / 8.0).collect();
            let vecs: Vec<Vec<f64>> = (0..n).map(|i| values[i * d..(i + 1) * d].to_vec()).collect();
            let slices: Vec<&[f64]> = vecs.iter().map(Vec::as_slice).collect();
            let singles: Vec<Vec<f32>> =
                vecs.iter().map(|row| row.iter().map(|&x| x as f32).collect()).collect();
            let rows = Rows::from(&vecs);
            for other in
                [vecs.clone().into(), vecs[..].into(), slices[..].into(), slices.into(), (&singles).into()]
            {
                assert_eq!(rows, other);
            }
            assert!(rows.len() == n && (n == 0 || rows.dim() == d) && rows.values() == values);
            if d > 0 && n > 0 {
                let flat = Rows::from_flat(values.clone(), d);
                assert!(
                    flat == rows && rows.iter().zip(&vecs).all(|(a, b)| a == b) && rows[n - 1] == vecs[n - 1]
                );
                assert_eq!(rows.column(d - 1)[n - 1], vecs[n - 1][d - 1]);
                found[0] += 1;
            }
            let rest = draw.below(d.max(1));
            let short = Rows::from_flat(values.iter().copied().chain(vec![0.5; rest]).collect(), d);
            match short.of_equal_length("given") {
                Ok(rows) => assert!(rest == 0 && (rows.len() == n || d == 0)),
                Err(e) => {
                    let expected = format!("row {} has {rest} coordinates, row 1 has {d}", n + 1);
                    assert!(rest > 0 && e.to_string().contains(&expected), "{e}");
                    found[1] += 1;
                }
            }
            if n > 1 {
                let mut odd = vecs;
                let row = 1 + draw.below(n - 1);
                odd[row].push(0.0);
                let message = Rows::from(odd).of_equal_length("given").unwrap_err().to_string();
                let expected = format!("row {} has {} coordinates, row 1 has {d}", row + 1, d + 1);
                assert!(message.contains(&expected), "{message}");
                found[2] += 1;
            }
            found[3] += usize::from(n == 0 || d == 0);
        }
        assert!(found.iter().all(|&count| count > 20), "{found:?}");
        assert!(Rows::from_flat(vec![1.0], 0).of_equal_length("given").is_err());
    }

    #[test]
    fn columns_have_names_and_bytes_are_rounded() {
        let rows = Rows::from([[1.0, 2.0], [3.0, 4.0]]);
        assert_eq!(rows.columns(), ["x1", "x2"]);
        let named = rows.clone().with_columns(["a", "b"]).unwrap();
        assert_eq!(
            (named.columns(), &Points::from_rows(&named).unwrap().columns),
            (vec!["a".into(), "b".into()], &vec!["a".to_owned(), "b".to_owned()])
        );
        let message = rows.with_columns(["a"]).unwrap_err().to_string();
        assert!(message.contains("1 name") && message.contains("2 columns"), "{message}");
        assert_eq!(
            Rows::from([[-3.0, 0.4, 0.6, 254.6, 300.0, f64::NAN]]).to_pixel_bytes(),
            [0, 0, 1, 255, 255, 0]
        );
    }
}
