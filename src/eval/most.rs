//! The most points and cells of the final scores, which tests of whole programs may lower.
//!
//! Such tests look at files, messages and exit codes of short runs. The score of a hardly trained flow takes seconds in
//! them and tells nothing. In builds with debug assertions, the environment variable `FLOWLINE_POINTS` is the most
//! points that a score draws, and the most cells of a square grid.

/// `n`, or the bound of a test if it is less.
pub fn at_most(n: usize) -> usize {
    bound().map_or(n, |most| n.min(most))
}

/// The cells along the longer side of a grid: `side`, or the root of the bound of a test if it is less.
pub fn side_at_most(side: usize) -> usize {
    bound().map_or(side, |most| side.min(most.isqrt()))
}

#[cfg(debug_assertions)]
fn bound() -> Option<usize> {
    std::env::var("FLOWLINE_POINTS").ok()?.parse().ok()
}

#[cfg(not(debug_assertions))]
fn bound() -> Option<usize> {
    None
}
