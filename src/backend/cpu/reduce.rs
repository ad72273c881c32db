//! Reductions of strips: groups of neighbours, long rows in blocks, and lines added to a line.
//!
//! The order of a sum depends on the reduction's shape alone. Neighbours are summed in blocks of
//! [`BLOCK`], lane `i % 16` of a block first, and the blocks' sums in double precision; lines are
//! added one after the other. It knows elements and lengths, and nothing of programs.

use super::kernels::Elem;
use super::places::Geometry;
use crate::graph::ReduceOp;

/// Neighbours that are summed in one go.
pub(crate) const BLOCK: usize = 256;
const LANES: usize = 16;

/// One reduction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reducer {
    pub op: ReduceOp,
    pub elem: Elem,
    pub geometry: Geometry,
}

/// What reductions need of an element.
trait Element: Copy {
    const LEAST: Self;
    const MOST: Self;
    const ZERO: Self;
    fn plus(self, other: Self) -> Self;
    fn larger(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
    fn to_f64(self) -> f64;
    fn of_f64(x: f64) -> Self;
}

macro_rules! float {
    ($t:ident) => {
        impl Element for $t {
            const LEAST: $t = $t::NEG_INFINITY;
            const MOST: $t = $t::INFINITY;
            const ZERO: $t = 0.0;
            fn plus(self, other: $t) -> $t {
                self + other
            }
            fn larger(self, other: $t) -> $t {
                if self > other || self.is_nan() { self } else { other }
            }
            fn smaller(self, other: $t) -> $t {
                if self < other || self.is_nan() { self } else { other }
            }
            fn to_f64(self) -> f64 {
                self.into()
            }
            fn of_f64(x: f64) -> $t {
                x as $t
            }
        }
    };
}
float!(f32);
float!(f64);

macro_rules! int {
    ($t:ident) => {
        impl Element for $t {
            const LEAST: $t = $t::MIN;
            const MOST: $t = $t::MAX;
            const ZERO: $t = 0;
            fn plus(self, other: $t) -> $t {
                self.wrapping_add(other)
            }
            fn larger(self, other: $t) -> $t {
                self.max(other)
            }
            fn smaller(self, other: $t) -> $t {
                self.min(other)
            }
            fn to_f64(self) -> f64 {
                self.into()
            }
            fn of_f64(x: f64) -> $t {
                x as i64 as $t
            }
        }
    };
}
int!(i32);
int!(u32);

macro_rules! typed {
    ($elem:expr, $t:ident => $body:expr) => {
        match $elem {
            Elem::F32 => {
                type $t = f32;
                $body
            }
            Elem::F64 => {
                type $t = f64;
                $body
            }
            Elem::I32 => {
                type $t = i32;
                $body
            }
            Elem::U32 => {
                type $t = u32;
                $body
            }
        }
    };
}

impl Reducer {
    /// Sets all results to what no element changes.
    ///
    /// # Safety
    /// `dst` holds all results.
    pub unsafe fn clear(&self, dst: *mut u8) {
        let len = self.geometry.outer * self.geometry.inner;
        // SAFETY: the caller's promise.
        typed!(self.elem, T => unsafe {
            for i in 0..len {
                dst.cast::<T>().add(i).write_unaligned(start::<T>(self.op));
            }
        });
    }

    /// Reduces `count` groups of neighbours to one element each.
    ///
    /// # Safety
    /// `src` holds the groups, `dst` their results.
    pub unsafe fn groups(&self, dst: *mut u8, src: *const u8, count: usize) {
        let len = self.geometry.reduced;
        // SAFETY: the caller's promise.
        typed!(self.elem, T => unsafe {
            for g in 0..count {
                let x = block(self.op, src.cast::<T>().add(g * len), len);
                dst.cast::<T>().add(g).write_unaligned(x);
            }
        });
    }

    /// Reduces elements `from .. from + n` of a long row, which starts and goes on with whole blocks;
    /// `acc` keeps the sum of the blocks, `dst` gets the result with the last of them.
    ///
    /// # Safety
    /// `src` holds `n` elements, `dst` one, `acc` one f64.
    pub unsafe fn part(&self, dst: *mut u8, acc: *mut u8, src: *const u8, from: usize, n: usize) {
        let acc = acc.cast::<f64>();
        // SAFETY: the caller's promise.
        typed!(self.elem, T => unsafe {
            let mut sum = if from == 0 { start::<f64>(self.op) } else { acc.read() };
            let mut i = 0;
            while i < n {
                let len = BLOCK.min(n - i);
                let x = block(self.op, src.cast::<T>().add(i), len).to_f64();
                sum = combine(self.op, sum, x);
                i += len;
            }
            acc.write(sum);
            if from + n == self.geometry.reduced {
                dst.cast::<T>().write_unaligned(T::of_f64(sum));
            }
        });
    }

    /// Adds `rows` lines of `len` elements to the line at `dst`, one after the other.
    ///
    /// # Safety
    /// `src` holds the lines, `dst` one of them.
    pub unsafe fn lines(&self, dst: *mut u8, src: *const u8, rows: usize, len: usize) {
        // SAFETY: the caller's promise.
        typed!(self.elem, T => unsafe {
            for r in 0..rows {
                for i in 0..len {
                    let (d, s) = (dst.cast::<T>().add(i), src.cast::<T>().add(r * len + i));
                    d.write_unaligned(combine(self.op, d.read_unaligned(), s.read_unaligned()));
                }
            }
        });
    }
}

fn start<T: Element>(op: ReduceOp) -> T {
    match op {
        ReduceOp::Sum => T::ZERO,
        ReduceOp::Max => T::LEAST,
        ReduceOp::Min => T::MOST,
    }
}

fn combine<T: Element>(op: ReduceOp, a: T, b: T) -> T {
    match op {
        ReduceOp::Sum => a.plus(b),
        ReduceOp::Max => a.larger(b),
        ReduceOp::Min => a.smaller(b),
    }
}

unsafe fn block<T: Element>(op: ReduceOp, src: *const T, len: usize) -> T {
    let mut lanes = [start::<T>(op); LANES];
    for i in 0..len {
        // SAFETY: `len` elements exist.
        let x = unsafe { src.add(i).read_unaligned() };
        lanes[i % LANES] = combine(op, lanes[i % LANES], x);
    }
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = combine(op, lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}
