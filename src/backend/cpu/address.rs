//! Addresses of values, relative to a few bases.
//!
//! During compilation the base of an [`Address`] is the number of a buffer. The memory plan replaces it by one of
//! the run's bases (the arena, the pool of constants, an input, an output, a constant array), and a run only
//! adds the offset.

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
}

/// The cost of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    pub flops: usize,
    pub bytes: usize,
}

/// The addresses of one run.
#[derive(Clone, Copy)]
pub(crate) struct Env {
    /// The bases that locations refer to.
    pub bases: *const *mut u8,
    /// Registers of strip programs.
    pub scratch: *mut u8,
    /// The table of addresses of a strip program: its registers and operands.
    pub table: *mut *mut u8,
}

impl Env {
    /// The address of a location.
    ///
    /// # Safety
    /// The base exists and the offset lies within it.
    #[inline(always)]
    pub unsafe fn at(&self, loc: Address) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { (*self.bases.add(loc.base as usize)).add(loc.offset) }
    }
}
