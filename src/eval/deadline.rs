//! A deadline for scores and figures: how much work fits, at the rate measured so far.

use std::ops::Range;
use std::time::{Duration, Instant};

/// Fraction of the remaining time held in reserve, because the machine may become slower.
const SPARE: f64 = 0.2;

/// A point in time by which work must end; `None` for no deadline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(pub Option<Instant>);

impl Deadline {
    /// No deadline.
    #[cfg(test)]
    pub const NONE: Deadline = Deadline(None);

    /// Remaining seconds; infinite without a deadline.
    pub fn left_s(self) -> f64 {
        self.0.map_or(f64::INFINITY, |at| at.saturating_duration_since(Instant::now()).as_secs_f64())
    }

    /// The deadline for this fraction of the remaining time.
    pub fn share(self, share: f64) -> Deadline {
        Deadline(self.0.map(|_| Instant::now() + Duration::from_secs_f64(share * self.left_s())))
    }

    /// Whether work of this duration fits, with some reserve.
    pub fn fits(self, seconds: f64) -> bool {
        seconds <= (1.0 - SPARE) * self.left_s()
    }

    /// How many of `n` items fit if each takes `each_s` seconds.
    pub fn count(self, n: usize, each_s: f64) -> usize {
        let fit = (1.0 - SPARE) * self.left_s() / each_s.max(1e-12);
        if fit >= n as f64 { n } else { fit as usize }
    }

    /// Runs `f` on `n` items in chunks, until there is no time for another chunk as slow as the slowest so
    /// far. The first chunk always runs. Reports the fraction done after each chunk; returns the number of
    /// items done.
    pub fn in_chunks<E>(
        self,
        n: usize,
        chunk: usize,
        mut progress: impl FnMut(f64),
        mut f: impl FnMut(Range<usize>) -> Result<(), E>,
    ) -> Result<usize, E> {
        let (mut done, mut slowest) = (0, 0.0_f64);
        while done < n && (done == 0 || self.fits(slowest)) {
            let (end, since) = (n.min(done + chunk), Instant::now());
            f(done..end)?;
            // The first chunk may include the compilation, so only half of its time counts.
            slowest = if done == 0 {
                0.5 * since.elapsed().as_secs_f64()
            } else {
                slowest.max(since.elapsed().as_secs_f64())
            };
            done = end;
            progress(done as f64 / n as f64);
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_stop_where_the_next_would_come_too_late() {
        let slow = |seconds: f64| {
            move |_: Range<usize>| -> Result<(), ()> {
                std::thread::sleep(Duration::from_secs_f64(seconds));
                Ok(())
            }
        };
        let by = Deadline(Some(Instant::now() + Duration::from_millis(200)));
        let mut progress = Vec::new();
        let done = by.in_chunks(1_000, 10, |share| progress.push(share), slow(0.03)).unwrap();
        assert!((10..70).contains(&done) && done == 10 * progress.len(), "{done} {progress:?}");
        assert!(by.left_s() < 0.2 && by.0.is_some_and(|at| at + Duration::from_millis(100) > Instant::now()));
        assert_eq!(by.in_chunks(1_000, 10, |_| (), slow(0.3)), Ok(10), "the first always runs");
        assert_eq!(Deadline::NONE.in_chunks(95, 10, |_| (), slow(0.0)), Ok(95));
    }
}
