//! A machine for tests, whose speed changes at random moments.

use super::{KINDS, STALL, Work};
use crate::time_source::TimeSource;
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use rand_distr::Exp1;

/// Work takes `each_s` per unit, and a compilation the first time, times a factor from 1 to [`STALL`] that changes at
/// random moments.
pub(crate) struct Machine {
    pub each_s: [f64; KINDS],
    pub compiling_s: f64,
    /// Mean seconds between two changes of the speed; infinite for a constant speed.
    pub change_s: f64,
    /// The present factor, and until when it holds.
    pub slow: f64,
    until_s: f64,
    has_run: [bool; KINDS],
    rng: SmallRng,
}

impl Machine {
    /// A machine on which no work takes time.
    pub(crate) fn new(seed: u64, change_s: f64) -> Machine {
        let (mut rng, each_s) = (SmallRng::seed_from_u64(seed), [0.0; KINDS]);
        let slow = STALL.powf(rng.random());
        Machine { each_s, compiling_s: 0.0, change_s, slow, until_s: 0.0, has_run: [false; KINDS], rng }
    }

    /// Sets the seconds per unit of a kind.
    pub(crate) fn takes(&mut self, work: Work, each_s: f64) {
        self.each_s[work as usize] = each_s;
    }

    /// The time on this machine.
    pub(crate) fn time(mut self) -> TimeSource {
        TimeSource::on(move |now_s, kind, units| self.end_s(now_s, kind, units))
    }

    fn end_s(&mut self, mut now_s: f64, kind: usize, units: f64) -> f64 {
        let is_first = !std::mem::replace(&mut self.has_run[kind], true);
        let mut work_s = self.each_s[kind] * units + if is_first { self.compiling_s } else { 0.0 };
        while self.change_s.is_finite() && now_s + self.slow * work_s > self.until_s {
            work_s -= (self.until_s - now_s).max(0.0) / self.slow;
            now_s = now_s.max(self.until_s);
            // Long spells at both ends of the range, and any factor between.
            self.slow = match self.rng.random_range(0..4) {
                0 => 1.0,
                1 => STALL,
                _ => STALL.powf(self.rng.random()),
            };
            self.until_s = now_s + self.change_s * self.rng.sample::<f64, _>(Exp1);
        }
        now_s + self.slow * work_s
    }
}
