//! Random numbers for tests that generate their cases, and the number of cases.

/// A generator of random numbers: `SplitMix64`, from a fixed seed.
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Draw(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `low..high`, uniform.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.bits() >> 11) as f64 * 0.5_f64.powi(53)
    }

    /// A number in `low..high`, whose logarithm is uniform.
    pub fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        self.uniform(low.ln(), high.ln()).exp()
    }

    /// An index below `n`.
    pub fn index(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// One of `from`.
    pub fn one_of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }
}

/// The number of cases that a test draws: `few`, or the environment variable `FLOWLINE_CASES`.
pub fn num_cases(few: usize) -> usize {
    std::env::var("FLOWLINE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(few)
}
