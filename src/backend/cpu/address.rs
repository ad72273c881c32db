//! Addresses of values, relative to a few bases, and the memory that a run binds to them.
//!
//! During compilation the base of an [`Address`] is the number of a buffer. The memory plan replaces it by one of
//! the run's bases (the arena, the pool of constants, an input, an output, a constant array), and a run only
//! adds the offset.
//!
//! Before a plan exists, [`compile::check_plan`](super::compile::check_plan) has compared each [`Extent`] of its
//! steps with the base that it refers to. A run therefore does not check addresses again. Debug builds do: there,
//! a [`Bound`] has a length, and [`run::exec`](super::run::exec) compares it with the step before each step.

use std::ptr::{copy_nonoverlapping, null_mut, write_bytes};

/// An address: a base and an offset in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub base: u32,
    pub offset: usize,
}

/// Whether a step reads or writes a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    /// Reads bytes that an earlier step wrote, and writes them.
    Update,
}

/// The bytes that a step uses from an address on, from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub bytes: usize,
    /// The alignment that the kernel needs.
    pub align: usize,
    pub access: Access,
}

/// A visitor of the addresses of a step; it may replace them.
pub(crate) type Visit<'a> = dyn FnMut(&mut Address, Extent) + 'a;

/// The cost of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    pub flops: usize,
    pub bytes: usize,
}

/// Memory that a run uses: the start of a base, or of a part of one. In debug builds also its length, which each
/// access checks.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(debug_assertions), repr(transparent))]
pub(crate) struct Bound {
    at: *mut u8,
    #[cfg(debug_assertions)]
    bytes: usize,
}

/// Element types that drivers read and write: any bits are a value.
pub(crate) trait Word: Copy {}
impl Word for u32 {}
impl Word for f64 {}
impl Word for usize {}

impl Bound {
    /// Nothing; a base before it is bound.
    pub const NONE: Bound = Bound {
        at: null_mut(),
        #[cfg(debug_assertions)]
        bytes: 0,
    };

    /// # Safety
    /// While the run lasts, `bytes` bytes at `at` are readable, and they are writable if a step writes them.
    #[inline]
    pub unsafe fn new(at: *mut u8, bytes: usize) -> Bound {
        let _ = bytes;
        Bound {
            at,
            #[cfg(debug_assertions)]
            bytes,
        }
    }

    /// A value that no step writes and that stays in place during the run.
    #[inline]
    pub fn of<T: Word>(x: &T) -> Bound {
        // SAFETY: a reference is valid for the bytes of its type.
        unsafe { Bound::new(std::ptr::from_ref(x).cast_mut().cast(), size_of::<T>()) }
    }

    /// The first byte.
    #[inline(always)]
    pub fn ptr(self) -> *mut u8 {
        self.at
    }

    /// Length in bytes.
    #[cfg(debug_assertions)]
    pub fn bytes(self) -> usize {
        self.bytes
    }

    /// The bytes from `offset` on.
    #[inline(always)]
    pub fn from(self, offset: usize) -> Bound {
        self.require(offset);
        Bound {
            at: self.at.wrapping_add(offset),
            #[cfg(debug_assertions)]
            bytes: self.bytes - offset,
        }
    }

    /// The next `bytes` bytes from `offset` on.
    #[inline(always)]
    pub fn part(self, offset: usize, bytes: usize) -> Bound {
        self.require(offset.wrapping_add(bytes));
        Bound {
            at: self.at.wrapping_add(offset),
            #[cfg(debug_assertions)]
            bytes,
        }
    }

    /// Copies `bytes` bytes to other memory.
    #[inline]
    pub fn copy_to(self, to: Bound, bytes: usize) {
        self.require(bytes);
        to.require(bytes);
        debug_assert!(
            self.at.addr() + bytes <= to.at.addr() || to.at.addr() + bytes <= self.at.addr() || bytes == 0,
            "invariant: a copy of {bytes} bytes does not overlap its source"
        );
        // SAFETY: drivers copy values between spans that `check_plan` has found inside of their bases and disjoint,
        // and slots of tapes, which lie outside of all bases and have the bytes of their layout.
        unsafe { copy_nonoverlapping(self.at, to.at, bytes) }
    }

    /// Sets `bytes` bytes to zero.
    #[inline]
    pub fn zero(self, bytes: usize) {
        self.require(bytes);
        // SAFETY: drivers clear whole spans, which `check_plan` has found inside of their bases.
        unsafe { write_bytes(self.at, 0, bytes) }
    }

    /// Element `i`.
    #[inline]
    pub fn read<T: Word>(self, i: usize) -> T {
        self.require_aligned::<T>(i);
        // SAFETY: drivers read elements of spans that `check_plan` has found inside of their bases and aligned.
        unsafe { self.at.cast::<T>().add(i).read() }
    }

    /// Sets element `i`.
    #[inline]
    pub fn write<T: Word>(self, i: usize, x: T) {
        self.require_aligned::<T>(i);
        // SAFETY: as for `read`; the span is one that the step writes.
        unsafe { self.at.cast::<T>().add(i).write(x) }
    }

    /// Checks in debug builds that there are `bytes` bytes.
    #[inline(always)]
    #[track_caller]
    fn require(self, bytes: usize) {
        #[cfg(debug_assertions)]
        assert!(bytes <= self.bytes, "invariant: {bytes} bytes are used, {} are bound", self.bytes);
        let _ = bytes;
    }

    #[inline(always)]
    #[track_caller]
    fn require_aligned<T>(self, i: usize) {
        self.require((i + 1) * size_of::<T>());
        debug_assert!(self.at.cast::<T>().is_aligned(), "invariant: {:?} is not aligned", self.at);
    }
}

/// The addresses of one run.
#[derive(Clone, Copy)]
pub(crate) struct Env {
    /// The bases that locations refer to.
    bases: *const Bound,
    /// Registers of strip programs.
    pub scratch: *mut u8,
    /// The table of addresses of a strip program: its registers and operands.
    pub table: *mut *mut u8,
}

impl Env {
    /// # Safety
    /// `bases` has the bases of one plan, and each is bound before a step uses it. Only locations of this plan are looked up.
    /// The rest of the code that has an `Env` relies on this.
    #[inline]
    pub unsafe fn new(bases: *const Bound, scratch: *mut u8, table: *mut *mut u8) -> Env {
        Env { bases, scratch, table }
    }

    /// The memory at a location of the plan that runs, up to the end of its base.
    #[inline(always)]
    pub fn bound(&self, loc: Address) -> Bound {
        // SAFETY: by the contract of `Env::new` and by `check_plan`, the plan's locations refer to its bases.
        let base = unsafe { *self.bases.add(loc.base as usize) };
        base.from(loc.offset)
    }

    /// The address of a location of the plan that runs.
    #[inline(always)]
    pub fn at(&self, loc: Address) -> *mut u8 {
        self.bound(loc).ptr()
    }
}
