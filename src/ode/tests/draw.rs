//! Random draws for generated tests, the same on every machine, and the number of cases.

/// Draws by SplitMix64 from a fixed seed.
pub struct Draw(pub u64);

impl Draw {
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A whole number below n.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// A number of `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * f64::EPSILON / 2.0
    }

    /// A number in `low..high`, uniform.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// A number in `low..high`, whose logarithm is uniform.
    pub fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        self.uniform(low.ln(), high.ln()).exp()
    }

    /// A power of ten with an exponent in `low..high`.
    pub fn decade(&mut self, low: f64, high: f64) -> f64 {
        10.0_f64.powf(self.uniform(low, high))
    }

    /// One of `all`.
    pub fn one<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// True in half of the cases.
    pub fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}

/// The number of cases that a test draws: `few`, or the environment variable `FLOWLINE_CASES`.
pub fn num_cases(few: usize) -> usize {
    std::env::var("FLOWLINE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(few)
}
