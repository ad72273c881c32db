//! `Clock`: the numbers that control a solve.
//!
//! t, dt, the error ratio, the controller's history, counters and the status of a solve are all values of one
//! `Clock`: `f64` for plain states, a vector of lanes when many trajectories step together, a traced scalar
//! when the solve is recorded into a graph. A clock has arithmetic and comparisons, and nothing that is
//! specific to solves.
//!
//! There is no `PartialOrd` here on purpose: a comparison returns a `Mask` for [`Clock::select`], not a
//! condition for `if`. A recorded solve has no value to branch on; a branch would fix the first step's
//! decision for all later steps. Only [`Clock::known`] returns a `bool`, which may be used only to skip work
//! whose result is unused. Alternatives considered: a generic float trait with `PartialOrd` (cannot be
//! traced, cannot hold lanes), a second copy of the algorithm for tensors (two copies diverge).

/// A number that controls a solve, or one such number per lane.
///
/// Counters are clocks too, and hold integers below 2^53 exactly.
pub trait Clock: Clone {
    /// The result of a comparison.
    type Mask: Clone;

    /// The constant `x` in the lanes or the trace of `self`.
    fn like(&self, x: f64) -> Self;
    /// `self + other`.
    fn add(&self, other: &Self) -> Self;
    /// `self - other`.
    fn sub(&self, other: &Self) -> Self;
    /// `self * other`.
    fn mul(&self, other: &Self) -> Self;
    /// `self / other`.
    fn div(&self, other: &Self) -> Self;
    /// `|self|`.
    fn abs(&self) -> Self;
    /// The square root.
    fn sqrt(&self) -> Self;
    /// `self^exponent`.
    fn powf(&self, exponent: f64) -> Self;

    /// `self < other`; false where either is NaN.
    fn lt(&self, other: &Self) -> Self::Mask;
    /// `self <= other`; false where either is NaN.
    fn le(&self, other: &Self) -> Self::Mask;
    /// `a && b`.
    fn and(a: &Self::Mask, b: &Self::Mask) -> Self::Mask;
    /// `a || b`.
    fn or(a: &Self::Mask, b: &Self::Mask) -> Self::Mask;
    /// `!m`.
    fn not(m: &Self::Mask) -> Self::Mask;
    /// `a` where `m` holds, else `b`. A NaN in the unselected operand does not propagate.
    fn select(m: &Self::Mask, a: &Self, b: &Self) -> Self;
    /// The value of `m`, if it is the same in all lanes; `None` if lanes differ or `m` is traced.
    fn known(m: &Self::Mask) -> Option<bool>;

    /// `table[self]` for a whole number `self`; an index past the end returns the last entry.
    fn lookup(&self, table: &[f64]) -> Self;
    /// The number of entries of the ascending `table` that are at most `self`.
    fn count_up_to(&self, table: &[f64]) -> Self;
    /// The number of entries of the descending `table` that are at least `self`.
    fn count_down_to(&self, table: &[f64]) -> Self;

    /// The smaller of the two; unspecified if either is NaN.
    #[inline(always)]
    fn min(&self, other: &Self) -> Self {
        Self::select(&self.lt(other), self, other)
    }
    /// The larger of the two; unspecified if either is NaN.
    #[inline(always)]
    fn max(&self, other: &Self) -> Self {
        Self::select(&other.lt(self), self, other)
    }
    /// Whether the value is neither NaN nor infinite.
    #[inline(always)]
    fn is_finite(&self) -> Self::Mask {
        self.abs().lt(&self.like(f64::INFINITY))
    }
}

impl Clock for f64 {
    type Mask = bool;

    #[inline(always)]
    fn like(&self, x: f64) -> f64 {
        x
    }
    #[inline(always)]
    fn add(&self, other: &f64) -> f64 {
        self + other
    }
    #[inline(always)]
    fn sub(&self, other: &f64) -> f64 {
        self - other
    }
    #[inline(always)]
    fn mul(&self, other: &f64) -> f64 {
        self * other
    }
    #[inline(always)]
    fn div(&self, other: &f64) -> f64 {
        self / other
    }
    #[inline(always)]
    fn abs(&self) -> f64 {
        f64::abs(*self)
    }
    #[inline(always)]
    fn sqrt(&self) -> f64 {
        f64::sqrt(*self)
    }
    #[inline(always)]
    fn powf(&self, exponent: f64) -> f64 {
        f64::powf(*self, exponent)
    }
    #[inline(always)]
    fn lt(&self, other: &f64) -> bool {
        self < other
    }
    #[inline(always)]
    fn le(&self, other: &f64) -> bool {
        self <= other
    }
    #[inline(always)]
    fn and(a: &bool, b: &bool) -> bool {
        *a && *b
    }
    #[inline(always)]
    fn or(a: &bool, b: &bool) -> bool {
        *a || *b
    }
    #[inline(always)]
    fn not(m: &bool) -> bool {
        !*m
    }
    #[inline(always)]
    fn select(m: &bool, a: &f64, b: &f64) -> f64 {
        if *m { *a } else { *b }
    }
    #[inline(always)]
    fn known(m: &bool) -> Option<bool> {
        Some(*m)
    }
    #[inline(always)]
    fn lookup(&self, table: &[f64]) -> f64 {
        table[(*self as usize).min(table.len() - 1)]
    }
    #[inline(always)]
    fn count_up_to(&self, table: &[f64]) -> f64 {
        table.partition_point(|entry| entry <= self) as f64
    }
    #[inline(always)]
    fn count_down_to(&self, table: &[f64]) -> f64 {
        table.partition_point(|entry| entry >= self) as f64
    }
}
