//! The time that training, its evaluation and the ranks of a job read.
//!
//! Every reading goes through a [`TimeSource`], so a test can set the time: a result that depends on the time is then
//! a function of the test, and not of the load of the machine. In builds with debug assertions,
//! `FLOWLINE_TIME=0.05` sets the time of a training process: it starts at 0, and each reading advances it by 0.05 s.
//! Release builds ignore the variable.

use std::sync::{Condvar, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
#[cfg(any(test, all(feature = "train", debug_assertions)))]
use {
    std::fmt,
    std::sync::{Arc, Mutex},
};

/// A clock that never goes back. Clones read the same time.
#[derive(Clone, Debug)]
pub struct TimeSource(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// The time of the machine, from this instant.
    Machine(Instant),
    #[cfg(any(test, all(feature = "train", debug_assertions)))]
    Set(Arc<Mutex<SetTime>>),
}

impl TimeSource {
    /// The time of the machine, from now.
    pub fn machine() -> TimeSource {
        TimeSource(Kind::Machine(Instant::now()))
    }

    /// [`TimeSource::of_process`] for a process that begins now.
    #[cfg(feature = "train")]
    pub fn of_this_process() -> TimeSource {
        TimeSource::of_process(Instant::now())
    }

    /// The time of a process that began at this instant: of the machine, or as `FLOWLINE_TIME` sets it.
    #[cfg(feature = "train")]
    pub fn of_process(began: Instant) -> TimeSource {
        #[cfg(debug_assertions)]
        if let Some(reading_s) = std::env::var("FLOWLINE_TIME").ok().and_then(|text| text.parse().ok()) {
            return TimeSource(Kind::Set(Arc::new(Mutex::new(SetTime { reading_s, ..SetTime::default() }))));
        }
        TimeSource(Kind::Machine(began))
    }

    /// Seconds since the start.
    pub fn now_s(&self) -> f64 {
        match &self.0 {
            Kind::Machine(from) => from.elapsed().as_secs_f64(),
            #[cfg(any(test, all(feature = "train", debug_assertions)))]
            Kind::Set(time) => {
                let mut time = lock(time);
                time.now_s += time.reading_s;
                time.now_s
            }
        }
    }

    /// A number that differs between processes: the nanoseconds since 1970, or the time that is set.
    #[cfg(feature = "train")]
    pub fn stamp(&self) -> u128 {
        match &self.0 {
            Kind::Machine(_) => std::time::SystemTime::now()
                .duration_since(std::time::SystemTime::UNIX_EPOCH)
                .unwrap_or_default()
                .as_nanos(),
            #[cfg(any(test, all(feature = "train", debug_assertions)))]
            Kind::Set(time) => u128::from(lock(time).now_s.to_bits()),
        }
    }

    /// Waits for `news`, but for no longer than this many seconds. The wait may end earlier. If a test sets the time,
    /// another thread may advance it, so the wait ends after a millisecond.
    pub fn wait<'a, T>(&self, news: &Condvar, guard: MutexGuard<'a, T>, seconds: f64) -> MutexGuard<'a, T> {
        let longest = match &self.0 {
            Kind::Machine(_) => Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
            #[cfg(any(test, all(feature = "train", debug_assertions)))]
            Kind::Set(time) => {
                lock(time).waited.insert(std::thread::current().id());
                Duration::from_millis(1)
            }
        };
        news.wait_timeout(guard, longest).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Reports that this many units of work are done. It has an effect only if a test sets the time: it then advances
    /// by what the work takes on the test's machine.
    #[cfg(feature = "train")]
    pub fn worked(&self, kind: usize, units: f64) {
        match &self.0 {
            Kind::Machine(_) => _ = (kind, units),
            #[cfg(any(test, all(feature = "train", debug_assertions)))]
            Kind::Set(time) => {
                let mut time = lock(time);
                let SetTime { now_s, machine, .. } = &mut *time;
                if let Some(machine) = machine {
                    *now_s = machine(*now_s, kind, units);
                }
            }
        }
    }
}

#[cfg(any(test, all(feature = "train", debug_assertions)))]
fn lock(time: &Mutex<SetTime>) -> MutexGuard<'_, SetTime> {
    time.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The time at the end of work that begins at a time: `(time, kind, units)`.
#[cfg(all(feature = "train", any(test, debug_assertions)))]
type Machine = Box<dyn FnMut(f64, usize, f64) -> f64 + Send>;

/// A time that is set by hand.
#[cfg(any(test, all(feature = "train", debug_assertions)))]
#[derive(Default)]
struct SetTime {
    now_s: f64,
    /// By how much a reading advances the time.
    reading_s: f64,
    #[cfg(feature = "train")]
    machine: Option<Machine>,
    /// The threads that have waited.
    waited: std::collections::HashSet<std::thread::ThreadId>,
}

#[cfg(any(test, all(feature = "train", debug_assertions)))]
impl fmt::Debug for SetTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetTime")
            .field("now_s", &self.now_s)
            .field("reading_s", &self.reading_s)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
impl TimeSource {
    /// A time that starts at 0 and stands still.
    pub fn set() -> TimeSource {
        TimeSource(Kind::Set(Arc::default()))
    }

    /// A time on a machine on which work takes as long as this function says.
    #[cfg(feature = "train")]
    pub fn on(machine: impl FnMut(f64, usize, f64) -> f64 + Send + 'static) -> TimeSource {
        TimeSource(Kind::Set(Arc::new(Mutex::new(SetTime {
            machine: Some(Box::new(machine)),
            ..SetTime::default()
        }))))
    }

    /// The number of threads that have waited.
    #[cfg(feature = "train")]
    pub fn num_waited(&self) -> usize {
        match &self.0 {
            Kind::Machine(_) => panic!("only a time that is set counts the threads that wait"),
            Kind::Set(time) => lock(time).waited.len(),
        }
    }

    /// Advances the time.
    pub fn advance(&self, seconds: f64) {
        match &self.0 {
            Kind::Machine(_) => panic!("only a time that is set can be advanced"),
            Kind::Set(time) => lock(time).now_s += seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_set_advances_as_the_test_says_and_clones_share_it() {
        let time = TimeSource::set();
        let other = time.clone();
        time.advance(2.5);
        assert_eq!((time.now_s(), other.now_s()), (2.5, 2.5));
        let (mutex, news) = (Mutex::new(7), Condvar::new());
        assert_eq!(*time.wait(&news, mutex.lock().unwrap(), 1e9), 7);
        let machine = TimeSource::machine();
        assert!(machine.now_s() <= machine.now_s());
    }

    #[test]
    #[cfg(feature = "train")]
    fn work_takes_what_the_machine_of_the_test_says() {
        let time = TimeSource::on(|now, kind, units| now + kind as f64 * units);
        time.worked(3, 0.5);
        time.worked(0, 9.0);
        assert_eq!(time.now_s(), 1.5);
    }
}
