//! How much work fits before a deadline, at the speed of the machine as measured so far.
//!
//! A [`Stopwatch`] measures each piece of long work of a run, by its [kind](Work). It stores the time per unit of each
//! kind, and the *load*: how much slower the machine is now than when this kind of work was fastest. The load is
//! common to all kinds, so an update of the training tells how long the next score will take.
//!
//! A [`Deadline`] admits a piece of work if it ends in time at the present speed, and ends soon enough if the machine
//! becomes as slow as [`STALL`] says. Pieces are short, so little time is left unused.

use crate::time_source::TimeSource;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// Fraction of the remaining time held in reserve, because the machine may become slower.
const SPARE: f64 = 0.2;
/// How many times slower than at its fastest a machine may become, when other processes use it.
const STALL: f64 = 8.0;
/// A measurement of this many seconds determines the load alone. Shorter ones are averaged.
const STEADY_S: f64 = 0.5;

/// The kinds of work that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// An update of the weights.
    Update,
    /// Log-densities of held-out points. The unit is a point.
    Score,
    /// Densities on a grid. The unit is a cell.
    Grid,
    /// Samples. The unit is a point.
    Samples,
    /// Trajectories. The unit is a point.
    Trajectories,
    /// Values of the target density. The unit is a cell.
    Target,
    /// Figures. The unit is about the time of a heat map.
    Figures,
    /// Bits/dim. The unit is an image.
    ImageScore,
    /// Samples of image sets, trajectories included. The unit is an image.
    ImageSamples,
}

/// The number of kinds.
const KINDS: usize = Work::ImageSamples as usize + 1;

impl Work {
    /// The time of a unit that has not been measured: of a similar kind with a factor, or in seconds.
    fn like(self) -> Result<(Work, f64), f64> {
        match self {
            Work::Grid | Work::Samples => Ok((Work::Score, 1.0)),
            // A trajectory has many times, and a step ends at each.
            Work::Trajectories => Ok((Work::Samples, 6.0)),
            Work::ImageSamples => Ok((Work::ImageScore, 1.0)),
            Work::Figures => Err(0.1),
            Work::Target => Err(1e-6),
            Work::Update | Work::Score | Work::ImageScore => Err(0.0),
        }
    }
}

/// Seconds per unit of a kind of work.
#[derive(Clone, Copy, Debug)]
struct Unit {
    /// Without load.
    free_s: f64,
    /// The shortest time measured.
    least_s: f64,
}

/// The time that work takes.
#[derive(Clone, Debug)]
struct Speed {
    units: [Option<Unit>; KINDS],
    /// How many times slower the machine is now; at least 1.
    load: f64,
}

impl Speed {
    fn unit(&self, work: Work) -> Unit {
        self.units[work as usize].unwrap_or_else(|| match work.like() {
            Ok((other, factor)) => {
                let Unit { free_s, least_s } = self.unit(other);
                Unit { free_s: factor * free_s, least_s: factor * least_s }
            }
            Err(seconds) => Unit { free_s: seconds, least_s: seconds },
        })
    }

    fn record(&mut self, work: Work, units: f64, seconds: f64) {
        if units <= 0.0 {
            return;
        }
        let each_s = seconds / units;
        let Some(unit) = &mut self.units[work as usize] else {
            self.units[work as usize] = Some(Unit { free_s: each_s / self.load, least_s: each_s });
            return;
        };
        let ratio = each_s / unit.free_s.max(1e-12);
        *unit = Unit { free_s: unit.free_s.min(each_s), least_s: unit.least_s.min(each_s) };
        let weight = (seconds / STEADY_S).min(1.0);
        self.load += weight * (ratio.max(1.0) - self.load);
    }
}

/// Measures work, and predicts how long more of it will take. Clones share the measurements.
#[derive(Clone, Debug)]
pub(crate) struct Stopwatch {
    pub time: TimeSource,
    speed: Rc<RefCell<Speed>>,
}

impl Stopwatch {
    pub fn new(time: TimeSource) -> Stopwatch {
        Stopwatch { time, speed: Rc::new(RefCell::new(Speed { units: [None; KINDS], load: 1.0 })) }
    }

    /// Does work of this many units and measures it. Work that fails is not measured.
    pub fn run<T, E>(&self, work: Work, units: f64, f: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let since_s = self.time.now_s();
        let done = f()?;
        self.time.worked(work as usize, units);
        self.speed.borrow_mut().record(work, units, self.time.now_s() - since_s);
        Ok(done)
    }

    /// Expected seconds of work of this many units at the present speed; 0 if nothing similar has been measured.
    pub fn expected_s(&self, work: Work, units: f64) -> f64 {
        let speed = self.speed.borrow();
        units * speed.unit(work).free_s * speed.load
    }

    /// The same if the machine becomes as slow as possible.
    fn stalled_s(&self, work: Work, units: f64) -> f64 {
        let least_s = units * self.speed.borrow().unit(work).least_s;
        (STALL * least_s).max(self.expected_s(work, units))
    }

    /// Whether this kind of work has been measured.
    pub fn knows(&self, work: Work) -> bool {
        self.speed.borrow().units[work as usize].is_some()
    }

    /// Forgets the time of a kind whose units change.
    pub fn forget(&self, work: Work) {
        self.speed.borrow_mut().units[work as usize] = None;
    }
}

/// A time by which work must end, if there is one.
#[derive(Clone, Debug)]
pub(crate) struct Deadline {
    pub watch: Stopwatch,
    ends: Option<Ends>,
}

/// In seconds of the time source.
#[derive(Clone, Copy, Debug)]
struct Ends {
    /// When work should end.
    at_s: f64,
    /// When it must have ended on a machine that has become slow.
    latest_s: f64,
}

impl Deadline {
    /// No deadline, outside of a run.
    pub fn none() -> Deadline {
        Stopwatch::new(TimeSource::machine()).no_deadline()
    }

    /// The same work without a deadline.
    pub fn open(&self) -> Deadline {
        self.watch.no_deadline()
    }

    /// Whether there is a deadline.
    pub fn is_limited(&self) -> bool {
        self.ends.is_some()
    }

    /// Remaining seconds; infinite without a deadline.
    pub fn left_s(&self) -> f64 {
        self.ends.map_or(f64::INFINITY, |ends| (ends.at_s - self.watch.time.now_s()).max(0.0))
    }

    /// The deadline for this fraction of the remaining time.
    pub fn share(&self, share: f64) -> Deadline {
        let left_s = self.left_s();
        let ends = self.ends.map(|ends| Ends { at_s: ends.at_s - (1.0 - share) * left_s, ..ends });
        Deadline { ends, ..self.clone() }
    }

    /// Whether a piece of work of this many units ends in time, also if the machine becomes slower.
    pub fn fits(&self, work: Work, units: f64) -> bool {
        let Some(Ends { latest_s, .. }) = self.ends else { return true };
        self.watch.expected_s(work, units) <= (1.0 - SPARE) * self.left_s()
            && self.watch.stalled_s(work, units) <= latest_s - self.watch.time.now_s()
    }

    /// How many of `n` units fit at the present speed.
    pub fn count(&self, work: Work, n: usize) -> usize {
        let fit = (1.0 - SPARE) * self.left_s() / self.watch.expected_s(work, 1.0).max(1e-12);
        if fit >= n as f64 { n } else { fit as usize }
    }

    /// Runs `f` on `n` units in chunks, as long as the next chunk fits. The first `least` units are done in any case.
    /// Reports the fraction done after each chunk; returns the number of units done.
    ///
    /// # Errors
    /// Errors of `f`.
    pub fn in_chunks<E>(
        &self,
        (work, n, chunk, least): (Work, usize, usize, usize),
        mut progress: impl FnMut(f64),
        mut f: impl FnMut(Range<usize>) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut done = 0;
        while done < n && (done < least || self.fits(work, chunk as f64)) {
            let end = n.min(done + chunk);
            // A program has a fixed number of rows, so a smaller chunk takes as long as a whole one.
            self.watch.run(work, chunk as f64, || f(done..end))?;
            done = end;
            progress(done as f64 / n as f64);
        }
        Ok(done)
    }
}

impl Stopwatch {
    /// No deadline.
    pub fn no_deadline(&self) -> Deadline {
        Deadline { watch: self.clone(), ends: None }
    }

    /// A deadline at these seconds; on a machine that becomes slow, work must end at the latest time.
    pub fn deadline(&self, at_s: f64, latest_s: f64) -> Deadline {
        Deadline { watch: self.clone(), ends: Some(Ends { at_s, latest_s }) }
    }
}

#[cfg(test)]
mod machine;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use machine::Machine;
