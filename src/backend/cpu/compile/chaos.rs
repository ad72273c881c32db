//! Decisions of the compiler made at random, for tests.
//!
//! Which operations share a kernel, what is recomputed, which residuals are stored, where buffers lie and in which order
//! tiles run: these are decisions about speed and memory, and none of them may change a bit of a result. While a test
//! runs a compilation in [`with_seed`], they are drawn. Outside of tests, the functions are the identity.
//!
//! One decision does change bits and is not drawn: a product that is added to a matrix from its registers may be a term of a
//! sum over trips, whose terms are then added in groups (`run/totals.rs`).

#[cfg(test)]
use std::cell::Cell;

/// What is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Whether a product finishes the bias, gate, shift and activation of its layer.
    Layer,
    /// Which elementwise operations and reductions share a kernel.
    Fusion,
    /// Which cheap values are recomputed where they are read.
    Recompute,
    /// Where buffers lie, and which of them share bytes.
    Memory,
    /// Which residuals are stored.
    Residuals,
    /// The order of tiles.
    #[cfg(test)]
    Tiles,
}

#[cfg(test)]
impl Decision {
    pub(crate) const ALL: [Decision; 6] = [
        Decision::Layer,
        Decision::Fusion,
        Decision::Recompute,
        Decision::Memory,
        Decision::Residuals,
        Decision::Tiles,
    ];
}

#[cfg(test)]
thread_local! {
    /// The state of the generator, if decisions are drawn on this thread.
    static STATE: Cell<Option<u64>> = const { Cell::new(None) };
    /// Draws so far, of each decision.
    static NUM: Cell<[u64; Decision::ALL.len()]> = const { Cell::new([0; Decision::ALL.len()]) };
}

/// The result of `f`, with decisions drawn from `seed`, and the number of draws of each decision.
#[cfg(test)]
pub(crate) fn with_seed<R>(seed: u64, f: impl FnOnce() -> R) -> (R, [u64; Decision::ALL.len()]) {
    STATE.set(Some(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1));
    NUM.take();
    let result = f();
    STATE.set(None);
    (result, NUM.get())
}

/// A number below `n`, or `None` if no decisions are drawn.
#[cfg(test)]
fn below(of: Decision, n: usize) -> Option<usize> {
    let mut x = STATE.get()?;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    STATE.set(Some(x));
    let mut num = NUM.get();
    num[of as usize] += 1;
    NUM.set(num);
    Some(((x >> 11) as usize) % n.max(1))
}

#[cfg(not(test))]
const fn below(_: Decision, _: usize) -> Option<usize> {
    None
}

/// Whether to forgo something that would pay, one time in three.
pub(crate) fn forgoes(of: Decision) -> bool {
    below(of, 3) == Some(0)
}

/// A bound: `usual`, or one of `drawn`.
pub(crate) fn bound(of: Decision, usual: usize, drawn: &[usize]) -> usize {
    below(of, drawn.len()).map_or(usual, |k| drawn[k])
}

/// Changes an order that may be any.
pub(crate) fn shuffle<T>(of: Decision, list: &mut [T]) {
    for i in (1..list.len()).rev() {
        if let Some(j) = below(of, i + 1) {
            list.swap(i, j);
        }
    }
}

/// The numbers below `n` in any order.
#[cfg(test)]
pub(crate) fn order(of: Decision, n: usize) -> Box<[usize]> {
    let mut all: Box<[usize]> = (0..n).collect();
    shuffle(of, &mut all);
    all
}
