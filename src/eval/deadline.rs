//! A moment by which measures and figures are to be done: how much fits in by the rate of what was done so far.

use std::ops::Range;
use std::time::{Duration, Instant};

/// Part of the time left that nothing is planned into: the machine may become slower.
const SPARE: f64 = 0.2;

/// A moment by which something is to be done; none for as long as it takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(pub Option<Instant>);

impl Deadline {
    /// As long as it takes.
    #[cfg(test)]
    pub const NONE: Deadline = Deadline(None);

    /// Seconds left; infinitely many without a deadline.
    pub fn left_s(self) -> f64 {
        self.0.map_or(f64::INFINITY, |at| at.saturating_duration_since(Instant::now()).as_secs_f64())
    }

    /// When such a share of what is left will have gone.
    pub fn share(self, share: f64) -> Deadline {
        Deadline(self.0.map(|_| Instant::now() + Duration::from_secs_f64(share * self.left_s())))
    }

    /// Whether something that takes so long fits in, with time to spare.
    pub fn fits(self, seconds: f64) -> bool {
        seconds <= (1.0 - SPARE) * self.left_s()
    }

    /// How many of `n` things fit in of which each takes so long.
    pub fn count(self, n: usize, each_s: f64) -> usize {
        let fit = (1.0 - SPARE) * self.left_s() / each_s.max(1e-12);
        if fit >= n as f64 { n } else { fit as usize }
    }

    /// Runs `f` on `n` things, `chunk` at a time, for as long as the next chunk fits in by the slowest so far; the first
    /// always runs. Reports the share that is done after each, and how many things are done at the end.
    pub fn in_chunks<E>(
        self,
        n: usize,
        chunk: usize,
        mut told: impl FnMut(f64),
        mut f: impl FnMut(Range<usize>) -> Result<(), E>,
    ) -> Result<usize, E> {
        let (mut done, mut slowest) = (0, 0.0_f64);
        while done < n && (done == 0 || self.fits(slowest)) {
            let (end, since) = (n.min(done + chunk), Instant::now());
            f(done..end)?;
            // The first one may have compiled.
            slowest = if done == 0 {
                0.5 * since.elapsed().as_secs_f64()
            } else {
                slowest.max(since.elapsed().as_secs_f64())
            };
            done = end;
            told(done as f64 / n as f64);
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
        let mut told = Vec::new();
        let done = by.in_chunks(1_000, 10, |share| told.push(share), slow(0.03)).unwrap();
        assert!((10..70).contains(&done) && done == 10 * told.len(), "{done} {told:?}");
        assert!(by.left_s() < 0.2 && by.0.is_some_and(|at| at + Duration::from_millis(100) > Instant::now()));
        assert_eq!(by.in_chunks(1_000, 10, |_| (), slow(0.3)), Ok(10), "the first always runs");
        assert_eq!(Deadline::NONE.in_chunks(95, 10, |_| (), slow(0.0)), Ok(95));
    }
}
