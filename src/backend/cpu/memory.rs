//! Aligned, counted memory for workspaces and constant pools.

use crate::array::memory::Counted;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Alignment of the buffers in workspaces and constant pools: one cache line, one AVX-512 register.
pub(crate) const ALIGN: usize = 64;

/// `bytes` rounded up to a whole number of [`ALIGN`].
pub(crate) const fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGN)
}

/// Zeroed memory aligned to [`ALIGN`].
#[derive(Debug)]
pub(crate) struct Storage {
    start: NonNull<u8>,
    bytes: usize,
    _counted: Option<Counted>,
}

impl Storage {
    /// Memory of at least `bytes`, listed under `name` in `live_arrays`; nothing is allocated for 0 bytes.
    pub fn new(name: &'static str, bytes: usize) -> Storage {
        if bytes == 0 {
            return Storage { start: NonNull::dangling(), bytes, _counted: None };
        }
        let layout = Storage::layout(bytes);
        // SAFETY: the layout has a size above 0.
        let start = unsafe { alloc(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        // The zeros are written, not allocated with `alloc_zeroed`, so that every page is committed from the
        // start. Otherwise resident memory would grow whenever another worker takes its first tile.
        // SAFETY: just allocated with these bytes.
        unsafe { start.write_bytes(0, bytes) };
        Storage { start, bytes, _counted: Some(Counted::bytes(name, bytes)) }
    }

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, ALIGN)
            .expect("invariant: a buffer is smaller than half the address space")
    }

    /// The number of requested bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first byte. Valid for reads and writes of the requested bytes while `self` lives.
    pub fn ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: allocated in `new` with this layout.
            unsafe { dealloc(self.start.as_ptr(), Storage::layout(self.bytes)) };
        }
    }
}

// SAFETY: the storage owns its memory; code that writes through `ptr` guarantees exclusive access.
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}
