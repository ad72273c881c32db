//! A solution as a file: times and components, for spreadsheets and numpy.
//!
//! This file is not part of `ode`, because the solver also runs without a file system.

use super::{IoError, write_csv, write_npy};
#[cfg(feature = "autodiff")]
use crate::adjoint::{TensorSolution, TensorState};
use crate::ode::{AsNumbers, PlainState, Solution};
use std::path::Path;

impl<Y: PlainState, O: PlainState> Solution<Y, O> {
    /// Writes the saved values: `.csv` (a heading `t,y0,y1,...`, one row per time, digits that read back to the same
    /// number) or `.npy` (f64, shape `[time, 1 + component]`, t first), by the extension.
    ///
    /// If the solution has only dense output, y is written at the step times, where it is exactly what the
    /// steps computed. The file is written completely or not at all.
    ///
    /// # Errors
    /// [`IoError::Format`] for another extension, [`IoError::NothingSaved`], [`IoError::Ragged`] if `save_fn` returned values
    /// of different lengths, [`IoError::Write`].
    ///
    /// # Examples
    /// ```
    /// use flowline::ode::{Ode, SaveAt};
    /// let path = std::env::temp_dir().join("flowline-decay.csv");
    /// let decay = Ode::new(|_t, y: &[f64; 1]| [-y[0]]).save_at([0.0, 0.5, 1.0]);
    /// decay.solve(0.0, 1.0, [1.0])?.save(&path)?;
    /// let rows = flowline::io::read_csv(&path)?.data;
    /// assert!(rows[..3] == [0.0, 1.0, 0.5] && (rows[3] - (-0.5_f64).exp()).abs() < 1e-6);
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), IoError> {
        save(self, path.as_ref())
    }
}

#[cfg(feature = "autodiff")]
impl<Y: TensorState> TensorSolution<Y> {
    /// Writes the saved values as [`Solution::save`] does, with one component per element of the state, row by row.
    ///
    /// # Errors
    /// As [`Solution::save`]; [`IoError::OwnTimes`] if rows have their own times.
    ///
    /// # Panics
    /// If the solution is traced.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let path = std::env::temp_dir().join("flowline-decays.csv");
    /// let decay = Ode::new(|_t, y: &Tensor| -y).save_at([0.0, 1.0]);
    /// decay.solve(0.0, 1.0, Tensor::from([[1.0], [2.0]]))?.save(&path)?;
    /// let table = flowline::io::read_csv(&path)?;
    /// assert_eq!((table.columns.join(","), &table.data[..3]), ("t,y0,y1".to_owned(), &[0.0, 1.0, 2.0][..]));
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), IoError> {
        save(self, path.as_ref())
    }
}

fn save(solution: &impl AsNumbers, path: &Path) -> Result<(), IoError> {
    let ending = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    let write = match ending.as_deref() {
        Some("csv") => as_csv,
        Some("npy") => as_npy,
        _ => return Err(IoError::Format { path: path.to_owned() }),
    };
    let Some(rows) = solution.rows() else { return Err(IoError::OwnTimes { path: path.to_owned() }) };
    let rows: Vec<Vec<f64>> = rows.into_iter().map(|(t, y)| [vec![t], y].concat()).collect();
    let Some(columns) = rows.first().map(Vec::len) else {
        return Err(IoError::NothingSaved { path: path.to_owned() });
    };
    if let Some(row) = rows.iter().find(|row| row.len() != columns) {
        let (t, found, expected) = (row[0], row.len() - 1, columns - 1);
        return Err(IoError::Ragged { path: path.to_owned(), t, found, expected });
    }
    write(path, &rows)
}

fn as_csv(path: &Path, rows: &[Vec<f64>]) -> Result<(), IoError> {
    let names = (0..rows[0].len() - 1).map(|j| format!("y{j}"));
    let columns: Vec<String> = std::iter::once("t".to_owned()).chain(names).collect();
    write_csv(path, &columns, rows)
}

fn as_npy(path: &Path, rows: &[Vec<f64>]) -> Result<(), IoError> {
    write_npy(path, &[rows.len(), rows[0].len()], &rows.concat())
}

#[cfg(test)]
mod tests {
    use crate::io::{IoError, read_csv, read_npy};
    use crate::ode::{Ode, SaveAt};

    fn circle(_t: f64, y: &[f64; 2]) -> [f64; 2] {
        [y[1], -y[0]]
    }

    #[test]
    fn both_formats_read_back_to_the_saved_bits() {
        let folder = crate::io::scratch();
        let solution =
            Ode::new(circle).save_at(SaveAt::ts(&[0.1, 0.7]).and_t0()).solve(0.0, 1.0, [1.0, 0.0]).unwrap();
        let expected: Vec<f64> =
            solution.ts.iter().zip(&solution.ys).flat_map(|(&t, y)| [t, y[0], y[1]]).collect();
        assert_eq!(expected.len(), 9);
        let (csv, npy) = (folder.path().join("a.csv"), folder.path().join("a.NPY"));
        solution.save(&csv).unwrap();
        solution.save(&npy).unwrap();
        assert_eq!(read_csv(&csv).unwrap().data, expected);
        let array = read_npy(&npy).unwrap();
        assert_eq!((array.shape, array.data), (vec![3, 3], expected));
        assert!(std::fs::read_to_string(&csv).unwrap().starts_with("t,y0,y1\n0,1,0\n"));
    }

    #[test]
    fn dense_output_alone_is_written_at_the_step_times() {
        let folder = crate::io::scratch();
        let path = folder.path().join("a.npy");
        let solution = Ode::new(circle).save_at(SaveAt::dense()).solve(0.0, 1.0, [1.0, 0.0]).unwrap();
        solution.save(&path).unwrap();
        let array = read_npy(&path).unwrap();
        assert_eq!(array.shape, [solution.step_times.len(), 3]);
        assert_eq!(array.data[array.data.len() - 3..], [1.0, solution.y1[0], solution.y1[1]]);
    }

    #[cfg(feature = "autodiff")]
    #[test]
    fn a_solution_of_tensors_is_written_row_by_row() {
        use crate::adjoint::Batching;
        use crate::tensor::Tensor;
        let folder = crate::io::scratch();
        let path = folder.path().join("a.csv");
        let decay = Ode::new(|_t, y: &Tensor| -y).batching(Batching::PerRow);
        let y0 = Tensor::from([[1.0_f32, 2.0], [0.5, 4.0]]);
        let solution = decay.clone().save_at([0.0, 0.5]).solve(0.0, 1.0, &y0).unwrap();
        solution.save(&path).unwrap();
        let table = read_csv(&path).unwrap();
        assert_eq!(table.columns, ["t", "y0", "y1", "y2", "y3"]);
        let ys = solution.ys.to_vec();
        let expected = [&[0.0], &ys[..4], &[0.5], &ys[4..]].concat();
        assert_eq!((&table.data, &ys[..4]), (&expected, &[1.0, 2.0, 0.5, 4.0][..]));
        let steps = decay.save_at(SaveAt::steps()).solve(0.0, 1.0, &y0).unwrap();
        assert!(matches!(steps.save(folder.path().join("b.csv")), Err(IoError::OwnTimes { .. })));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn invalid_requests_are_refused_and_leave_no_file() {
        let folder = crate::io::scratch();
        let at = |name: &str| folder.path().join(name);
        let end = Ode::new(circle).solve(0.0, 1.0, [1.0, 0.0]).unwrap();
        let message = end.save(at("a.txt")).unwrap_err().to_string();
        assert!(
            message.ends_with(
                "a.txt has no known file type; its name must end in .csv or .npy (points are also read from .tsv, .txt, .dat and .csv.gz)"
            ),
            "{message}"
        );
        let none = Ode::new(circle).save_at(SaveAt::ts(&[])).solve(0.0, 1.0, [1.0, 0.0]).unwrap();
        assert!(matches!(none.save(at("a.csv")), Err(IoError::NothingSaved { .. })));
        let ragged = Ode::new(circle).save_at([0.0, 1.0]).save_fn(|t, _| vec![t; 1 + t as usize]);
        let error = ragged.solve(0.0, 1.0, [1.0, 0.0]).unwrap().save(at("a.csv")).unwrap_err();
        assert!(matches!(error, IoError::Ragged { t: 1.0, found: 2, expected: 1, .. }), "{error}");
        assert!(matches!(end.save(at("no/folder.csv")), Err(IoError::Write { .. })));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
