//! Points with any number of coordinates, from files and arrays: checked once and standardized, with their
//! names and units.
//!
//! Training points are at least two; their values are finite and not constant in any column, so their
//! standardized form exists. Held-out points use the mean and standard deviation of the training points.

use super::classes::Classes;
use super::{DataError, Rounding, Rows, Standardizer};
use crate::io::{Fnv, Table, is_table_name, listed, read_csv, read_npy};
use std::path::Path;

/// Points `[n, d]` in the units of the data, and their standardized coordinates.
///
/// # Examples
/// ```
/// use flowline::data::Points;
/// let points = Points::from_rows([[0.0, 10.0], [2.0, 30.0]])?;
/// assert_eq!((points.len(), points.dim()), (2, 2));
/// assert_eq!(points.standardized(), [-1.0, -1.0, 1.0, 1.0]);
/// assert_eq!(points.standard.inverse_transform(&[1.0, 0.0]), [2.0, 20.0]);
/// # Ok::<(), flowline::data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// The name used in messages: the file, or `given` for values in memory.
    pub name: String,
    /// Column names, from the file's header row or `x1`, `x2`, ...
    pub columns: Vec<String>,
    /// The map between the units of the data and standardized coordinates, from the mean and standard
    /// deviation of these points or, for held-out points, of the training points.
    pub standard: Standardizer,
    values: Vec<f64>,
    /// The line of each row in the file, from 1; empty if the rows are not from a text file.
    lines: Vec<usize>,
    num_dropped: usize,
    classes: Option<Classes>,
}

impl Points {
    /// Reads points from `.npy` (an array `[n, d]`, or `[n]` for d = 1), or from a table (`.csv`, `.tsv`, `.txt`,
    /// `.dat`, or one of them and `.gz`; a heading gives the names of the columns). To choose columns, use
    /// [`CsvOptions`](crate::io::CsvOptions), then [`from_table`](Self::from_table).
    ///
    /// # Errors
    /// [`DataError::File`] for other formats, an unreadable file or rows of different length;
    /// [`DataError::PointsShape`] for an array of another shape; otherwise as [`from_rows`](Self::from_rows).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            _ if is_table_name(path) => Self::from_table(read_csv(path)?),
            Some("npy") => {
                let array = read_npy(path)?;
                let dim = match array.shape[..] {
                    [_] => 1,
                    [_, dim] => dim,
                    _ => return Err(DataError::PointsShape { name, shape: array.shape }),
                };
                let count = array.shape[0];
                Self::build(name, (array.data, dim), count, (Vec::new(), Vec::new()))
            }
            _ => Err(crate::io::IoError::Format { path: path.to_owned() }.into()),
        }
    }

    /// The rows of a table, with the names of its columns.
    ///
    /// # Errors
    /// As [`from_rows`](Self::from_rows); messages name lines of the table's file. [`DataError::ClassCount`] for its
    /// labels.
    pub fn from_table(table: Table) -> Result<Self, DataError> {
        let Table { path, columns, data, lines, num_dropped, label_column, labels, .. } = table;
        let (count, dim) = (lines.len(), columns.len());
        // Messages name columns without a heading by their number.
        let is_named = columns.iter().enumerate().any(|(i, name)| *name != format!("x{}", i + 1));
        let heading = if is_named { columns } else { Vec::new() };
        let points = Self::build(path.display().to_string(), (data, dim), count, (heading, lines))?;
        let points = Self { num_dropped, ..points };
        let Some(column) = label_column else { return Ok(points) };
        let classes = Some(Classes::of(&points.name, column, &labels)?);
        Ok(Self { classes, ..points })
    }

    /// Adds the class of each row, by its name.
    ///
    /// # Errors
    /// [`DataError::RowLabels`] if there is not one label per row, [`DataError::ClassCount`] for more than 65,535 classes.
    ///
    /// # Examples
    /// ```
    /// use flowline::data::Points;
    /// let points = Points::from_rows([[1.0], [2.0], [3.0], [5.0]])?.with_labels(["b", "a", "a", "b"])?;
    /// assert_eq!((points.class_names(), points.labels()), (&["a", "b"].map(String::from)[..], Some(&[1, 0, 0, 1][..])));
    /// # Ok::<(), flowline::data::DataError>(())
    /// ```
    pub fn with_labels<L: Into<String>>(
        self,
        labels: impl IntoIterator<Item = L>,
    ) -> Result<Self, DataError> {
        let labels: Vec<String> = labels.into_iter().map(Into::into).collect();
        if labels.len() != self.len() {
            let (found, rows) = (labels.len(), self.len());
            return Err(DataError::RowLabels { name: self.name, found, rows });
        }
        let classes = Some(Classes::of(&self.name, String::new(), &labels)?);
        Ok(Self { classes, ..self })
    }

    /// Checks that a density per class can be learned.
    ///
    /// # Errors
    /// [`DataError::ClassCount`] for one class, or more than half as many as rows.
    pub(crate) fn check_classes(&self) -> Result<(), DataError> {
        self.classes.as_ref().map_or(Ok(()), |classes| classes.check(&self.name))
    }

    /// The number of each row's class, from 0, if the points have labels.
    pub fn labels(&self) -> Option<&[u16]> {
        self.classes.as_ref().map(|classes| &classes.of_rows[..])
    }

    /// The number of classes, if the points have labels.
    pub fn classes(&self) -> Option<usize> {
        self.classes.as_ref().map(|classes| classes.names.len())
    }

    /// The number of rows of each class; empty without labels.
    pub fn class_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.classes().unwrap_or(0)];
        self.labels().unwrap_or_default().iter().for_each(|&class| counts[usize::from(class)] += 1);
        counts
    }

    /// The names of the classes, numbers in their order, then text; empty without labels.
    pub fn class_names(&self) -> &[String] {
        self.classes.as_ref().map_or(&[], |classes| &classes.names)
    }

    /// The label column; empty for labels in memory, and without labels.
    pub(crate) fn label_column(&self) -> &str {
        self.classes.as_ref().map_or("", |classes| &classes.column)
    }

    /// The name of each row's class; empty without labels.
    pub(super) fn names_of_labels(&self) -> Vec<String> {
        self.classes.as_ref().map_or_else(Vec::new, Classes::labels)
    }

    /// Points from values in memory, with the names of the columns and the labels of the rows if they have them.
    ///
    /// # Errors
    /// [`DataError::NoColumns`], [`TooFewPoints`](DataError::TooFewPoints),
    /// [`RaggedPoints`](DataError::RaggedPoints), [`NonFinite`](DataError::NonFinite),
    /// [`ConstantColumn`](DataError::ConstantColumn) and [`Spread`](DataError::Spread), each with row and
    /// column where it applies.
    pub fn from_rows(rows: impl Into<Rows>) -> Result<Self, DataError> {
        let name = "given".to_owned();
        let rows = rows.into().of_equal_length(&name)?;
        let (labels, count, dim) = (rows.labels().to_vec(), rows.len(), rows.dim());
        let (values, heading) = rows.into_named();
        let points = Self::build(name, (values, dim), count, (heading, Vec::new()))?;
        if labels.is_empty() { Ok(points) } else { points.with_labels(labels) }
    }

    /// The same points with another name in messages.
    pub fn with_name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// `heading` has the names of the columns, and `lines` the line of each row; both may be empty.
    fn build(
        name: String,
        (values, d): (Vec<f64>, usize),
        n: usize,
        (heading, lines): (Vec<String>, Vec<usize>),
    ) -> Result<Self, DataError> {
        if d == 0 {
            return Err(DataError::NoColumns { name, rows: n });
        }
        if n < 2 {
            return Err(DataError::TooFewPoints { name, found: n });
        }
        let called = |a: usize| heading.get(a).filter(|c| !c.is_empty()).cloned();
        if let Some(i) = values.iter().position(|x| !x.is_finite()) {
            let (row, column) = (i / d, called(i % d).unwrap_or_else(|| (i % d + 1).to_string()));
            let place = lines.get(row).map_or_else(|| format!("row {}", row + 1), |l| format!("line {l}"));
            return Err(DataError::NonFinite { name, place, column, value: values[i] });
        }
        let constant = |a: usize| values.chunks_exact(d).all(|row| row[a] == values[a]);
        if let Some(a) = (0..d).find(|&a| constant(a)) {
            let column = called(a).unwrap_or_else(|| (a + 1).to_string());
            return Err(DataError::ConstantColumn { name, column, value: values[a], rows: n });
        }
        let columns: Vec<_> = (0..d).map(|a| called(a).unwrap_or_else(|| format!("x{}", a + 1))).collect();
        let standard = Standardizer::of(&values, d);
        let is_fine = |a: &usize| standard.mean[*a].is_finite() && standard.std[*a].is_normal();
        if let Some(a) = (0..d).find(|a| !is_fine(a)) {
            let (column, mean, std) = (columns[a].clone(), standard.mean[a], standard.std[a]);
            return Err(DataError::Spread { name, column, mean, std });
        }
        Ok(Self { name, columns, standard, values, lines, num_dropped: 0, classes: None })
    }

    /// Number of rows of the table that were left out because a cell is missing.
    pub fn num_dropped(&self) -> usize {
        self.num_dropped
    }

    /// The place of a row, from 0, in messages: `points.csv line 3`, or `points.npy row 2 (from 1)`.
    pub(crate) fn place(&self, row: usize) -> String {
        place(&self.name, &self.lines, row)
    }

    /// Number of points.
    #[allow(clippy::len_without_is_empty, reason = "there are at least two")]
    pub fn len(&self) -> usize {
        self.values.len() / self.dim()
    }

    /// Number of coordinates of a point.
    pub fn dim(&self) -> usize {
        self.columns.len()
    }

    /// The points in the units of the data, row-major `[n, d]`.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The points in standardized coordinates, row-major `[n, d]`.
    pub fn standardized(&self) -> Vec<f32> {
        self.standard.transform(&self.values).into_iter().map(|x| x as f32).collect()
    }

    /// The given rows as training points: standardized by their own mean and standard deviation.
    ///
    /// # Errors
    /// [`DataError::TooFewPoints`]; [`DataError::ConstantColumn`] or [`DataError::Spread`] if a column of
    /// these rows is constant or cannot be standardized.
    pub fn rows(&self, which: &[usize]) -> Result<Self, DataError> {
        let (values, lines) = (self.values_of(which), self.lines_of(which));
        let name = self.name.clone();
        let rows = Self::build(name, (values, self.dim()), which.len(), (self.columns.clone(), lines))?;
        let classes = self.classes.as_ref().map(|classes| classes.select(which));
        Ok(Self { classes, ..rows })
    }

    /// The given rows in the standardized coordinates of the training points `learned`: held-out points from
    /// the same file or another.
    ///
    /// # Errors
    /// [`DataError::OtherColumns`] if the number of columns differs.
    pub fn standardized_as(&self, which: &[usize], learned: &Points) -> Result<Self, DataError> {
        if self.dim() != learned.dim() {
            let (found, expected) = (self.dim(), learned.dim());
            return Err(DataError::OtherColumns { name: self.name.clone(), found, expected });
        }
        let (standard, values) = (learned.standard.clone(), self.values_of(which));
        let lines = self.lines_of(which);
        let (name, columns) = (self.name.clone(), self.columns.clone());
        let classes = self.numbered_as(which, learned)?;
        Ok(Self { name, columns, standard, values, lines, num_dropped: 0, classes })
    }

    /// The classes of the given rows, with the numbers that the training points have.
    fn numbered_as(&self, which: &[usize], learned: &Points) -> Result<Option<Classes>, DataError> {
        let Some(known) = &learned.classes else { return Ok(None) };
        let Some(own) = &self.classes else { return Err(DataError::NoClasses { name: self.name.clone() }) };
        let labels = own.select(which).labels();
        let of_rows = known.numbers(&labels).map_err(|i| DataError::UnknownClass {
            place: self.place(which[i]),
            class: labels[i].clone(),
            classes: listed(&known.names, "classes"),
        })?;
        Ok(Some(Classes { of_rows, ..known.clone() }))
    }

    /// Decorrelates the coordinates of these training points, unless their covariance is nearly singular.
    pub(crate) fn decorrelate(&mut self) {
        self.standard.decorrelate(&self.values);
    }

    /// The same points with noise of one step on rounded columns: a function of the seed and of the numbers of the
    /// rows.
    pub(crate) fn dequantized(mut self, rounding: &Rounding, numbers: &[usize], seed: u64) -> Self {
        let d = self.dim();
        for (row, &number) in self.values.chunks_exact_mut(d).zip(numbers) {
            rounding.add_noise(row, seed, number as u64);
        }
        self
    }

    fn lines_of(&self, which: &[usize]) -> Vec<usize> {
        which.iter().filter_map(|&row| self.lines.get(row)).copied().collect()
    }

    fn values_of(&self, which: &[usize]) -> Vec<f64> {
        let d = self.dim();
        which.iter().flat_map(|&i| &self.values[i * d..(i + 1) * d]).copied().collect()
    }

    /// A fingerprint of the data (FNV-1a, 64 bit, of dimension and values, and of the classes if there are any).
    pub fn fingerprint(&self) -> u64 {
        let words = std::iter::once(self.dim() as u64).chain(self.values.iter().map(|v| v.to_bits()));
        let labels = self.labels().unwrap_or_default().iter().flat_map(|label| label.to_le_bytes());
        let names = self.class_names().iter().flat_map(|name| name.bytes().chain([0]));
        Fnv::of(words.flat_map(u64::to_le_bytes).chain(names).chain(labels)).number()
    }
}

/// The place of row `row`, from 0, of a file: its line if the lines are known, otherwise its number from 1.
pub fn place(file: &str, lines: &[usize], row: usize) -> String {
    match lines.get(row) {
        Some(line) => format!("{file} line {line}"),
        None => format!("{file} row {} (from 1)", row + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::write_npy;

    #[test]
    fn points_come_the_same_from_either_file_and_from_arrays() {
        let folder = crate::io::scratch();
        let (npy, csv) = (folder.path().join("p.npy"), folder.path().join("p.csv"));
        let given = [[1.0, -2.0, 0.5], [3.0, 4.0, 0.25], [8.0, 1.0, 7.0]];
        write_npy(&npy, &[3, 3], given.as_flattened()).unwrap();
        std::fs::write(&csv, "mass,,speed\n1,-2,0.5\n3,4,0.25\n8,1,7\n").unwrap();
        let from = Points::from_rows(given).unwrap();
        let (npy, csv) = (Points::open(npy).unwrap(), Points::open(csv).unwrap());
        assert_eq!((npy.values(), csv.values()), (from.values(), from.values()));
        assert_eq!(
            (&npy.columns[2], &csv.columns[..]),
            (&"x3".into(), &["mass", "x2", "speed"].map(String::from)[..])
        );
        assert_eq!(Points::from_rows(given.map(|row| row.map(|x| x as f32))).unwrap(), from);
        assert_eq!(from.fingerprint(), csv.fingerprint());
        let tsv = folder.path().join("p.tsv");
        std::fs::write(&tsv, "mass\tspeed\n1\t0.5\n3\t0.25\n").unwrap();
        assert_eq!(Points::open(tsv).unwrap().columns, ["mass", "speed"]);
        let chosen = crate::io::CsvOptions::default().columns(["speed"]);
        let table = chosen.read(folder.path().join("p.csv")).unwrap();
        let points = Points::from_table(table).unwrap();
        assert_eq!(
            (points.columns.clone(), points.values()),
            (vec!["speed".to_owned()], &[0.5, 0.25, 7.0][..])
        );
    }

    #[test]
    fn held_out_labels_have_the_numbers_of_the_training_points() {
        let rows = || Points::from_rows([[1.0], [2.0], [4.0], [7.0]]).unwrap();
        let train =
            rows().with_labels(["b", "a", "10", "9"]).unwrap().check_classes().unwrap_err().to_string();
        assert!(train.contains("given: 4 classes in 4 rows"), "{train}");
        let train = rows().with_labels(["b", "a", "b", "a"]).unwrap();
        let other = rows().with_name("t.csv").with_labels(["b", "b", "c", "c"]).unwrap();
        let held_out = other.standardized_as(&[1, 0], &train).unwrap();
        assert_eq!((held_out.labels(), held_out.classes()), (Some(&[1, 1][..]), Some(2)));
        let message = other.standardized_as(&[0, 3], &train).unwrap_err().to_string();
        assert!(
            message.contains(
                "t.csv row 4 (from 1): \"c\" is no class of the training points; their classes are a, b"
            ),
            "{message}"
        );
        assert!(rows().standardized_as(&[0], &train).unwrap_err().to_string().contains("have no labels"));
        assert_ne!(train.fingerprint(), rows().fingerprint());
    }

    #[cfg(feature = "ndarray")]
    #[test]
    fn points_come_from_matrices_of_ndarray() {
        let given = [[1.0, -2.0, 0.5], [3.0, 4.0, 0.25], [8.0, 1.0, 7.0]];
        let array = ndarray::arr2(&given.map(|row| row.map(|x| x as f32)));
        assert_eq!(Points::from_rows(&array).unwrap(), Points::from_rows(given).unwrap());
        let none = Points::from_rows(ndarray::Array2::<f64>::zeros((4, 0))).unwrap_err().to_string();
        assert!(none.contains("d = 0, 4 rows"), "{none}");
    }

    #[test]
    fn standardized_points_have_mean_0_deviation_1_and_come_back_to_units() {
        let points = Points::from_rows(vec![[1e6, 0.1], [1e6 + 3.0, 0.2], [1e6 + 9.0, -0.4]]).unwrap();
        let x = points.standardized();
        for a in 0..2 {
            let column = || x.iter().skip(a).step_by(2).map(|&x| f64::from(x));
            assert!(column().sum::<f64>().abs() < 1e-6);
            assert!((column().map(|x| x * x).sum::<f64>() / 3.0 - 1.0).abs() < 1e-6);
        }
        let exact = points.standard.transform(points.values());
        let back = points.standard.inverse_transform(&exact);
        assert!(back.iter().zip(points.values()).all(|(a, b)| (a - b).abs() < 1e-9));
        let volume: f64 = points.standard.std.iter().product();
        assert!((points.standard.log_jacobian() + volume.ln()).abs() < 1e-12);
    }

    #[test]
    fn held_out_points_are_others_and_measured_by_the_frame_of_those_learned() {
        let all = Points::from_rows((0..100).map(|i| [f64::from(i), f64::from(i * i)]).collect::<Vec<_>>())
            .unwrap();
        let split = crate::data::Split::seeded(100, [0.25, 0.0], None, 3).unwrap();
        let train = all.rows(&split.train).unwrap();
        let held_out = all.standardized_as(&split.validation, &train).unwrap();
        assert_eq!((train.len(), held_out.len()), (75, 25));
        assert_eq!(train.standard, held_out.standard);
        assert_ne!(train.standard, all.standard);
        assert!(held_out.values().chunks(2).all(|p| train.values().chunks(2).all(|q| p != q)));
        let own = Points::from_rows([[1.0], [2.0]]).unwrap();
        let message = own.standardized_as(&[0], &all).unwrap_err().to_string();
        assert!(message.contains("1 columns, but the training points have 2"), "{message}");
    }

    #[test]
    fn unusable_points_are_named_with_their_place_and_remedy() {
        let folder = crate::io::scratch();
        let path = folder.path().join("odd.csv");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Points::open(&path).unwrap_err().to_string()
        };
        let cases = [
            (read("a,b\n1,2\n\n3,inf\n"), "odd.csv: line 4, column b is inf"),
            (read("a,b\n1,2\n\n3,nan\n"), "odd.csv line 4: column b: \"nan\" stands for a missing value"),
            (read("a,b\n1,2\n"), "odd.csv: 1 is too few"),
            (read("a,b\n"), "odd.csv: 0 is too few"),
            (read("1,2\n3,4\n5\n"), "odd.csv line 3: 1 column instead of 2"),
            (read("1,2,3\n5,2,6\n"), "odd.csv: column 2 is 2 in all 2 rows"),
            (read(""), "odd.csv have no columns (d = 0, 0 rows)"),
            (
                Points::from_rows(vec![vec![1.0], vec![2.0, 3.0]]).unwrap_err().to_string(),
                "row 2 has 2 coordinates",
            ),
            (
                Points::from_rows([[1.0, 0.0], [2.0, f64::INFINITY]]).unwrap_err().to_string(),
                "row 2, column 2 is inf",
            ),
            (Points::from_rows([[0.0; 0]; 4]).unwrap_err().to_string(), "d = 0, 4 rows"),
            (
                Points::open("points.pdf").unwrap_err().to_string(),
                "must end in .csv or .npy (points are also read from .tsv, .txt, .dat and .csv.gz)",
            ),
        ];
        for (message, expected) in cases {
            assert!(message.contains(expected) && message.lines().count() == 1, "{message}");
        }
        let cube = folder.path().join("cube.npy");
        write_npy(&cube, &[2, 2, 2], &[0.0; 8]).unwrap();
        assert!(Points::open(cube).unwrap_err().to_string().contains("shape [2, 2, 2], expected [n, d]"));
    }
}
