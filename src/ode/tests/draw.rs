//! Pseudorandom numbers for tests that draw their cases.

/// A generator with a fixed seed (SplitMix64).
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Draw {
        Draw(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number in [low, high).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number in [low, high) whose logarithm is uniform.
    pub fn scale(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    /// An index below n.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    pub fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}

/// The number of cases to draw: `usual`, or the number in the environment variable `FLOWLINE_CASES`.
pub fn num_cases(usual: usize) -> usize {
    std::env::var("FLOWLINE_CASES").ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}
