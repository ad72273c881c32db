//! `metrics.csv`: one row an update, for plots and for the report of a resumed run.
//!
//! It knows columns and how to cut the file where a checkpoint stands. Rows are appended, not written as a whole: the
//! file is the one of a run folder that may end in a broken line, and [`Metrics::resume`] takes that line away.

use crate::io::{IoError, write_atomic};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The heading of the file.
pub const COLUMNS: &str = "update,phase,loss,nll_nats,ms,field_evals,live_buffers,live_bytes,rss_mb,traces";
/// Rows reach the file at the latest after this time.
const FLUSH: Duration = Duration::from_millis(500);

/// What one update was.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Row {
    /// Its number, from 1.
    pub update: u64,
    /// Name of the phase's objective.
    pub phase: String,
    /// Loss of its batch, in the objective's unit.
    pub loss: f64,
    /// NLL of the held-out points after it, where that was measured.
    pub nll_nats: Option<f64>,
    /// Its wall time in milliseconds, measuring and drawing excluded.
    pub ms: f64,
    /// Evaluations of the field.
    pub field_evals: u64,
    /// Buffers alive after it.
    pub live_buffers: usize,
    /// Their bytes.
    pub live_bytes: usize,
    /// Resident memory after it, in MB.
    pub rss_mb: f64,
    /// Times that the phase's step function has been traced.
    pub traces: usize,
}

impl Row {
    fn line(&self) -> String {
        let Row { update, phase, ms, field_evals, live_buffers, live_bytes, rss_mb, traces, .. } = self;
        let (loss, nll) = (self.loss as f32, self.nll_nats.map_or(String::new(), |x| x.to_string()));
        format!(
            "{update},{phase},{loss},{nll},{ms:.3},{field_evals},{live_buffers},{live_bytes},{rss_mb:.3},{traces}"
        )
    }

    fn parse(line: &str) -> Option<Row> {
        let cells: Vec<&str> = line.split(',').collect();
        let [update, phase, loss, nll, ms, field_evals, live_buffers, live_bytes, rss_mb, traces] = cells[..]
        else {
            return None;
        };
        Some(Row {
            update: update.parse().ok()?,
            phase: phase.to_owned(),
            loss: loss.parse::<f32>().ok()?.into(),
            nll_nats: if nll.is_empty() { None } else { Some(nll.parse().ok()?) },
            ms: ms.parse().ok()?,
            field_evals: field_evals.parse().ok()?,
            live_buffers: live_buffers.parse().ok()?,
            live_bytes: live_bytes.parse().ok()?,
            rss_mb: rss_mb.parse().ok()?,
            traces: traces.parse().ok()?,
        })
    }
}

/// The open file.
#[derive(Debug)]
pub struct Metrics {
    path: PathBuf,
    file: BufWriter<File>,
    flushed: Instant,
}

impl Metrics {
    /// A new file with a heading.
    ///
    /// # Errors
    /// [`IoError::Write`].
    pub fn create(path: &Path) -> Result<Metrics, IoError> {
        write_atomic(path, |file| writeln!(file, "{COLUMNS}"))?;
        Metrics::append(path)
    }

    /// The file as it was after `update`: later rows, and a last line that a killed run cut, are gone. Each row that
    /// stays is shown to `each`.
    ///
    /// # Errors
    /// [`IoError::Write`].
    pub fn resume(path: &Path, update: u64, mut each: impl FnMut(Row)) -> Result<Metrics, IoError> {
        let rows = read(path).take_while(|row| row.update <= update);
        write_atomic(path, |file| {
            writeln!(file, "{COLUMNS}")?;
            for row in rows {
                writeln!(file, "{}", row.line())?;
                each(row);
            }
            Ok(())
        })?;
        Metrics::append(path)
    }

    fn append(path: &Path) -> Result<Metrics, IoError> {
        let file = OpenOptions::new().append(true).open(path);
        let file = file.map_err(|source| IoError::Write { path: path.to_owned(), source })?;
        Ok(Metrics { path: path.to_owned(), file: BufWriter::new(file), flushed: Instant::now() })
    }

    /// Appends a row; it reaches the file within half a second of further rows, or by [`Metrics::flush`].
    ///
    /// # Errors
    /// [`IoError::Write`].
    pub fn push(&mut self, row: &Row) -> Result<(), IoError> {
        writeln!(self.file, "{}", row.line()).map_err(|source| self.failed(source))?;
        if self.flushed.elapsed() >= FLUSH { self.flush() } else { Ok(()) }
    }

    /// Brings all rows into the file.
    ///
    /// # Errors
    /// [`IoError::Write`].
    pub fn flush(&mut self) -> Result<(), IoError> {
        self.flushed = Instant::now();
        self.file.flush().map_err(|source| self.failed(source))
    }

    fn failed(&self, source: std::io::Error) -> IoError {
        IoError::Write { path: self.path.clone(), source }
    }
}

/// The rows of a file in order, up to the first that is none; no file has no rows.
pub fn read(path: &Path) -> impl Iterator<Item = Row> + use<> {
    let file = File::open(path).ok();
    let lines = file.into_iter().flat_map(|file| BufReader::new(file).lines().map_while(Result::ok));
    lines.skip(1).map_while(|line| Row::parse(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(update: u64) -> Row {
        Row {
            update,
            phase: "flow_matching".into(),
            loss: f64::from(0.1f32),
            nll_nats: (update == 2).then_some(1.0 / 3.0),
            ms: 1.25,
            field_evals: 1,
            live_buffers: 12,
            live_bytes: 3456,
            rss_mb: 40.5,
            traces: 1,
        }
    }

    #[test]
    fn a_file_is_cut_at_the_checkpoint_and_at_a_broken_line() {
        let folder = crate::io::scratch();
        let path = folder.path().join("metrics.csv");
        let mut metrics = Metrics::create(&path).unwrap();
        (1..=5).for_each(|u| metrics.push(&row(u)).unwrap());
        metrics.flush().unwrap();
        std::fs::write(&path, [&std::fs::read(&path).unwrap()[..], b"6,flow_mat"].concat()).unwrap();
        assert_eq!(read(&path).count(), 5);

        let mut seen = Vec::new();
        let mut metrics = Metrics::resume(&path, 3, |row| seen.push(row)).unwrap();
        assert_eq!(seen, [row(1), row(2), row(3)]);
        metrics.push(&row(4)).unwrap();
        drop(metrics);
        assert_eq!(read(&path).map(|r| r.update).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert!(std::fs::read_to_string(path).unwrap().starts_with("update,phase,loss,nll_nats,ms,"));
    }

    #[test]
    fn a_missing_file_is_begun_anew() {
        let folder = crate::io::scratch();
        let path = folder.path().join("metrics.csv");
        drop(Metrics::resume(&path, 9, |_| panic!("no row")).unwrap());
        assert_eq!(std::fs::read_to_string(path).unwrap().trim(), COLUMNS);
    }
}
