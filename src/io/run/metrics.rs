//! `metrics.csv`: one row per update, for plots and for the report of a resumed run.
//!
//! Rows are appended, so this is the only file of a run folder that may end in an incomplete line. A resumed
//! run removes such a line, and all rows after the checkpoint. The rows up to the checkpoint have a checksum
//! ([`Extent`]): an unreadable row among them is an error and is not removed.

use crate::io::{Fnv, IoError, fault, write_atomic};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The heading of the file.
pub const COLUMNS: &str =
    "update,phase,loss,nll_nats,ms,field_evals,live_buffers,live_bytes,rss_mb,traces,nll_stderr_nats";
/// The last column, which earlier files do not have.
const LATER: &str = ",nll_stderr_nats";
/// More columns, of runs that estimate their KL divergence.
const ESTIMATES: &str = ",kl_estimate_nats,kl_estimate_stderr_nats,\
                         loss_t1,loss_t2,loss_t3,loss_t4,loss_t5,loss_t6,loss_t7,loss_t8";
/// The columns that all files have.
const FIRST: usize = 10;
/// The largest number of columns after those.
const LATER_CELLS: usize = 11;
/// The first row after this time writes all rows to the file.
const FLUSH: Duration = Duration::from_millis(500);

/// The metrics of one update.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Row {
    /// Number of the update, from 1.
    pub update: u64,
    /// Name of the phase's objective.
    pub phase: String,
    /// Loss of the batch, in the objective's unit.
    pub loss: f64,
    /// NLL of the validation part after the update, if it was measured; for a known density, its entropy plus
    /// the KL divergence.
    pub nll_nats: Option<f64>,
    /// Standard error of the NLL, or of the KL divergence if the density is known.
    pub nll_stderr_nats: Option<f64>,
    /// The estimate of the KL divergence after the update, its standard error, and the loss in each eighth of t, if they
    /// were evaluated.
    pub kl_estimate: Option<[f64; 10]>,
    /// Wall time in milliseconds, without validation and figures.
    pub ms: f64,
    /// Function evaluations of the update.
    pub field_evals: u64,
    /// Number of live buffers after the update.
    pub live_buffers: usize,
    /// Bytes of live buffers after the update.
    pub live_bytes: usize,
    /// Resident memory after the update, in MB of 10^6 bytes.
    pub rss_mb: f64,
    /// Number of times that the program of the phase was traced so far.
    pub traces: usize,
}

impl Row {
    /// The row of a file with this number of columns.
    fn line(&self, columns: usize) -> String {
        let Row { update, phase, ms, field_evals, live_buffers, live_bytes, rss_mb, traces, .. } = self;
        let cell = |x: Option<f64>| x.map_or(String::new(), |x| x.to_string());
        let (loss, nll, stderr) = (self.loss as f32, cell(self.nll_nats), cell(self.nll_stderr_nats));
        let mut line = format!(
            "{update},{phase},{loss},{nll},{ms:.3},{field_evals},{live_buffers},{live_bytes},{rss_mb:.3},{traces}"
        );
        let later = (0..LATER_CELLS - 1).map(|i| cell(self.kl_estimate.map(|estimate| estimate[i])));
        for cell in std::iter::once(stderr).chain(later).take(columns - FIRST) {
            line.push(',');
            line.push_str(&cell);
        }
        line
    }

    fn parse(line: &str) -> Option<Row> {
        let (mut cells, mut num, mut start) = ([""; FIRST + LATER_CELLS], 0, 0);
        // A run has tens of thousands of rows. A search for the next comma costs more than these short cells.
        for (at, byte) in line.bytes().chain([b',']).enumerate() {
            if byte == b',' {
                *cells.get_mut(num)? = &line[start..at];
                (num, start) = (num + 1, at + 1);
            }
        }
        let ([update, phase, loss, nll, ms, field_evals, live_buffers, live_bytes, rss_mb, traces], later) =
            cells[..num].split_first_chunk::<FIRST>()?;
        let kl_estimate = match later {
            [] | [_] | [_, "", ..] if [0, 1, LATER_CELLS].contains(&later.len()) => None,
            [_, estimate @ ..] => Some(estimate_of(estimate)?),
            [] => None,
        };
        let optional = |cell: &str| if cell.is_empty() { Some(None) } else { cell.parse().ok().map(Some) };
        Some(Row {
            update: update.parse().ok()?,
            phase: (*phase).to_owned(),
            loss: loss.parse::<f32>().ok()?.into(),
            nll_nats: optional(nll)?,
            nll_stderr_nats: optional(later.first().copied().unwrap_or_default())?,
            kl_estimate,
            ms: ms.parse().ok()?,
            field_evals: field_evals.parse().ok()?,
            live_buffers: live_buffers.parse().ok()?,
            live_bytes: live_bytes.parse().ok()?,
            rss_mb: rss_mb.parse().ok()?,
            traces: traces.parse().ok()?,
        })
    }
}

/// The estimate in the cells of a row.
fn estimate_of(cells: &[&str]) -> Option<[f64; 10]> {
    let numbers: Vec<f64> = cells.iter().map(|cell| cell.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

/// The length of a first part of the file, and its checksum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    bytes: u64,
    checksum: String,
}

/// The open file.
#[derive(Debug)]
pub struct Metrics {
    path: PathBuf,
    file: BufWriter<File>,
    columns: usize,
    bytes: u64,
    hash: Fnv,
    flushed: Instant,
}

impl Metrics {
    /// Appends a row. Rows are written to the file when one arrives at least half a second after the last
    /// write, and by [`Metrics::flush`].
    ///
    /// # Errors
    /// [`IoError::Write`].
    pub fn push(&mut self, row: &Row) -> Result<(), IoError> {
        let line = format!("{}\n", row.line(self.columns));
        self.bytes += line.len() as u64;
        self.hash.add(line.bytes());
        self.file.write_all(line.as_bytes()).map_err(|source| self.failed(source))?;
        if self.flushed.elapsed() >= FLUSH { self.flush() } else { Ok(()) }
    }

    /// Flushes all rows to the file.
    ///
    /// # Errors
    /// [`IoError::Write`].
    pub fn flush(&mut self) -> Result<(), IoError> {
        self.flushed = Instant::now();
        fault::step().and_then(|()| self.file.flush()).map_err(|source| self.failed(source))
    }

    /// Writes all rows to disk and returns their extent.
    ///
    /// # Errors
    /// [`IoError::Write`].
    pub fn sync(&mut self) -> Result<Extent, IoError> {
        self.flush()?;
        self.file.get_ref().sync_data().map_err(|source| self.failed(source))?;
        Ok(self.extent())
    }

    /// The extent of the rows.
    pub fn extent(&self) -> Extent {
        Extent { bytes: self.bytes, checksum: self.hash.text() }
    }

    fn failed(&self, source: std::io::Error) -> IoError {
        IoError::Write { path: self.path.clone(), source }
    }
}

/// The rows of earlier updates, after which a run continues.
#[derive(Debug)]
pub struct Kept {
    path: PathBuf,
    bytes: Vec<u8>,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Kept {
    /// A heading and no rows, for a run with or without estimates of its KL divergence.
    pub fn none(path: &Path, estimates: bool) -> Kept {
        let bytes = format!("{COLUMNS}{}\n", if estimates { ESTIMATES } else { "" }).into_bytes();
        Kept { path: path.to_owned(), bytes, rows: Vec::new() }
    }

    /// The rows up to `update` of a file that begins with the part `known`; `None` if there is no file. The
    /// last line of a killed run may be incomplete; it is ignored.
    ///
    /// # Errors
    /// [`IoError::Damaged`] if the known part differs, if the heading is not that of metrics, or if a line
    /// before the last is not a row; [`IoError::Read`].
    pub fn read(path: &Path, update: u64, known: Option<&Extent>) -> Result<Option<Kept>, IoError> {
        let mut bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(IoError::Read { path: path.to_owned(), source }),
        };
        let found = known.map_or(Ok(()), |known| known.check(&bytes)).and_then(|()| rows(&bytes, update));
        let length = bytes.len();
        let damaged = |reason| IoError::Damaged { path: path.to_owned(), bytes: length, reason };
        let (rows, end) = found.map_err(damaged)?;
        bytes.truncate(end);
        Ok(Some(Kept { path: path.to_owned(), bytes, rows }))
    }

    /// The extent of the rows.
    pub fn extent(&self) -> Extent {
        Extent { bytes: self.bytes.len() as u64, checksum: Fnv::of(self.bytes.iter().copied()).text() }
    }

    /// Opens the file, truncates it after these rows, and continues there; creates it if needed.
    ///
    /// # Errors
    /// [`IoError::Write`].
    pub fn resume(self) -> Result<Metrics, IoError> {
        let Kept { path, bytes, .. } = self;
        let columns = 1 + bytes.iter().take_while(|&&b| b != b'\n').filter(|&&b| b == b',').count();
        if !path.exists() {
            write_atomic(&path, |file| file.write_all(&bytes))?;
        }
        let open = || -> std::io::Result<File> {
            let file = OpenOptions::new().append(true).open(&path)?;
            if file.metadata()?.len() > bytes.len() as u64 {
                fault::step()?;
                file.set_len(bytes.len() as u64)?;
            }
            Ok(file)
        };
        let file = open().map_err(|source| IoError::Write { path: path.clone(), source })?;
        let (hash, bytes) = (Fnv::of(bytes.iter().copied()), bytes.len() as u64);
        Ok(Metrics { path, file: BufWriter::new(file), columns, bytes, hash, flushed: Instant::now() })
    }
}

impl Extent {
    /// Checks that a file's bytes begin with this part; the error is the difference.
    fn check(&self, bytes: &[u8]) -> Result<(), String> {
        let Some(first) = bytes.get(..self.bytes as usize) else {
            return Err(format!("it had {} bytes when the checkpoint was written", self.bytes));
        };
        if Fnv::of(first.iter().copied()).text() == self.checksum {
            return Ok(());
        }
        // A line that is not a row is the more exact reason.
        rows(bytes, u64::MAX)?;
        Err("its rows were changed after they were written".to_owned())
    }
}

/// The rows up to `update`, and the offset after the last of them.
fn rows(bytes: &[u8], update: u64) -> Result<(Vec<Row>, usize), String> {
    let mut lines = bytes.split_inclusive(|&b| b == b'\n').zip(1..);
    let heading = lines.next().map_or(&[][..], |(line, _)| line);
    let is_known = heading.strip_suffix(b"\n").is_some_and(|found| {
        let more = found.strip_prefix(COLUMNS.as_bytes());
        more.is_some_and(|more| more.is_empty() || more == ESTIMATES.as_bytes())
            || COLUMNS.strip_suffix(LATER).is_some_and(|columns| found == columns.as_bytes())
    });
    if !is_known {
        return Err(format!("its first line is not \"{COLUMNS}\""));
    }
    let (mut rows, mut end) = (Vec::new(), heading.len());
    for (line, number) in lines {
        let text = line.strip_suffix(b"\n").and_then(|text| std::str::from_utf8(text).ok());
        match text.and_then(Row::parse) {
            Some(row) if row.update <= update => rows.push(row),
            Some(_) => break,
            None if end + line.len() == bytes.len() => break,
            None => return Err(format!("line {number} is not a row of metrics")),
        }
        end += line.len();
    }
    Ok((rows, end))
}

/// All rows of a file in order; empty if there is no file.
///
/// # Errors
/// As [`Kept::read`].
pub fn read(path: &Path) -> Result<Vec<Row>, IoError> {
    Ok(Kept::read(path, u64::MAX, None)?.map_or_else(Vec::new, |kept| kept.rows))
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
            nll_stderr_nats: (update == 2).then_some(0.125),
            kl_estimate: None,
            ms: 1.25,
            field_evals: 1,
            live_buffers: 12,
            live_bytes: 3456,
            rss_mb: 40.5,
            traces: 1,
        }
    }

    #[test]
    fn a_file_is_truncated_at_the_checkpoint_and_at_a_broken_end() {
        let folder = crate::io::scratch();
        let path = folder.path().join("metrics.csv");
        let mut metrics = Kept::none(&path, false).resume().unwrap();
        (1..=5).for_each(|u| metrics.push(&row(u)).unwrap());
        let extent = metrics.sync().unwrap();
        fs::write(&path, [&fs::read(&path).unwrap()[..], b"6,flow_mat"].concat()).unwrap();
        assert_eq!(read(&path).unwrap().len(), 5);

        let kept = Kept::read(&path, 3, Some(&extent)).unwrap().unwrap();
        assert_eq!(kept.rows, [row(1), row(2), row(3)]);
        let (at_3, mut metrics) = (kept.extent(), kept.resume().unwrap());
        assert_eq!(metrics.extent(), at_3);
        metrics.push(&row(4)).unwrap();
        metrics.sync().unwrap();
        assert_eq!(read(&path).unwrap().iter().map(|r| r.update).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(Kept::read(&path, 9, Some(&metrics.extent())).unwrap().unwrap().rows.len(), 4);
        assert!(fs::read_to_string(path).unwrap().starts_with("update,phase,loss,nll_nats,ms,"));
    }

    #[test]
    fn a_file_without_the_later_column_is_read() {
        let folder = crate::io::scratch();
        let path = folder.path().join("metrics.csv");
        let before = "update,phase,loss,nll_nats,ms,field_evals,live_buffers,live_bytes,rss_mb,traces\n\
                      1,flow_matching,0.1,,1.250,1,12,3456,40.500,1\n\
                      2,flow_matching,0.1,0.3333333333333333,1.250,1,12,3456,40.500,1\n";
        fs::write(&path, before).unwrap();
        assert_eq!(read(&path).unwrap(), [row(1), Row { nll_stderr_nats: None, ..row(2) }]);
        fs::write(&path, before.replace("3456,40.500,1\n", "3456,40.500\n")).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("line 2 is not a row of metrics"));
    }

    /// A file of a run with estimates, one without, and one from before the last column: each goes on with its columns.
    #[test]
    fn a_file_goes_on_with_its_own_columns() {
        let folder = crate::io::scratch();
        let path = folder.path().join("metrics.csv");
        let estimate = [0.1, 1.0 / 3.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1e-9];
        let with = |update| Row { kl_estimate: (update == 2).then_some(estimate), ..row(update) };
        let old = COLUMNS.strip_suffix(LATER).unwrap();
        for (columns, estimates) in [(21, true), (11, false), (10, false)] {
            let mut kept = Kept::none(&path, estimates);
            if columns == 10 {
                kept.bytes = format!("{old}\n").into_bytes();
            }
            let _ = fs::remove_file(&path);
            let mut metrics = kept.resume().unwrap();
            (1..=3).for_each(|u| metrics.push(&with(u)).unwrap());
            metrics.sync().unwrap();
            let mut metrics = Kept::read(&path, 2, None).unwrap().unwrap().resume().unwrap();
            metrics.push(&with(3)).unwrap();
            metrics.sync().unwrap();
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.lines().all(|line| line.split(',').count() == columns), "{text}");
            let expected = |update| Row {
                kl_estimate: with(update).kl_estimate.filter(|_| estimates),
                nll_stderr_nats: with(update).nll_stderr_nats.filter(|_| columns > 10),
                ..row(update)
            };
            assert_eq!(read(&path).unwrap(), [1, 2, 3].map(expected));
            if estimates {
                fs::write(&path, text.replace("0.000000001\n", "x\n")).unwrap();
                assert!(read(&path).unwrap_err().to_string().contains("line 3 is not a row"), "{text}");
            }
        }
    }

    #[test]
    fn an_unreadable_row_is_reported_with_its_line_and_the_file_is_kept() {
        let folder = crate::io::scratch();
        let path = folder.path().join("metrics.csv");
        assert!(Kept::read(&path, 9, None).unwrap().is_none());
        let mut metrics = Kept::none(&path, false).resume().unwrap();
        (1..=5).for_each(|u| metrics.push(&row(u)).unwrap());
        let extent = metrics.sync().unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        let refusal = |text: &str, known: Option<&Extent>| {
            fs::write(&path, text).unwrap();
            let message = Kept::read(&path, 9, known).unwrap_err().to_string();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            message
        };
        let odd = whole.replace("\n4,flow", "\n4x,flow");
        assert!(refusal(&odd, None).contains("line 5 is not a row of metrics"));
        assert!(refusal(&odd, Some(&extent)).contains("line 5 is not a row of metrics"));
        // With another digit it is still a row.
        let other = whole.replace("\n4,flow", "\n44,flow");
        assert!(refusal(&other, Some(&extent)).contains("changed after they were written"));
        assert!(
            refusal(&whole[..whole.len() - 9], Some(&extent)).contains("when the checkpoint was written")
        );
        assert!(
            refusal("a,b\n1,2\n", None).contains("metrics.csv is damaged (8 bytes): its first line is not")
        );
    }
}
