//! Public accounting of live buffers: three counters, the only mutable statics of the crate
//! besides cached processor features.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static BUFFERS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Buffers alive now: arrays that some tensor, plan or workspace holds.
pub fn live_buffers() -> usize {
    BUFFERS.load(Relaxed)
}

/// Bytes in live buffers.
pub fn live_bytes() -> usize {
    BYTES.load(Relaxed)
}

/// The largest [`live_bytes`] since the process started or [`reset_peak`].
pub fn peak_bytes() -> usize {
    PEAK.load(Relaxed)
}

/// Starts the peak again from what is live now.
pub fn reset_peak() {
    PEAK.store(live_bytes(), Relaxed);
}

/// A share of the counters, given back when dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    bytes: usize,
}

impl Counted {
    pub(crate) fn new(bytes: usize) -> Counted {
        BUFFERS.fetch_add(1, Relaxed);
        let now = BYTES.fetch_add(bytes, Relaxed) + bytes;
        PEAK.fetch_max(now, Relaxed);
        Counted { bytes }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        BUFFERS.fetch_sub(1, Relaxed);
        BYTES.fetch_sub(self.bytes, Relaxed);
    }
}
