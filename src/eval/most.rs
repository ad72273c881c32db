//! The most points and cells of scores, which tests of whole programs may lower.
//!
//! Such tests look at files, messages and exit codes of short runs. The score of a hardly trained flow takes seconds in
//! them and tells nothing. In builds with debug assertions, the environment variable `FLOWLINE_POINTS` is the most
//! points that a score has, that one call of a density solves, and that the rectangles of a total probability evaluate. A
//! grid then has at most 64 cells along its longer side.

use std::cell::Cell;

/// The most cells along the longer side of a grid in such a test. A grid of fewer cells does not resolve a small image.
const SIDE: usize = 64;

/// `n`, or the bound of a test if it is less.
pub fn at_most(n: usize) -> usize {
    bound().map_or(n, |most| n.min(most))
}

/// The cells along the longer side of a grid: `side`, or at most [`SIDE`] if a test bounds its points.
pub fn side_at_most(side: usize) -> usize {
    bound().map_or(side, |_| side.min(SIDE))
}

thread_local! {
    static BOUND: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Runs `f`. In builds with debug assertions, scores on this thread then have at most `points` points, as by
/// `FLOWLINE_POINTS`.
pub fn with_at_most<T>(points: usize, f: impl FnOnce() -> T) -> T {
    let before = BOUND.replace(Some(points));
    let found = f();
    BOUND.set(before);
    found
}

fn bound() -> Option<usize> {
    if !cfg!(debug_assertions) {
        return None;
    }
    BOUND.get().or_else(|| std::env::var("FLOWLINE_POINTS").ok()?.parse().ok())
}
