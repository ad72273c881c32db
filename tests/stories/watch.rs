//! Measurements of a regression test: a counting allocator, the counters of `memory`, resident memory.

use flowline::memory::{self, Caches};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

struct Counting;

static BLOCKS: AtomicIsize = AtomicIsize::new(0);
static BYTES: AtomicIsize = AtomicIsize::new(0);

// SAFETY: every call is passed to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BLOCKS.fetch_add(1, Relaxed);
        BYTES.fetch_add(layout.size() as isize, Relaxed);
        // SAFETY: as the caller guarantees.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        BLOCKS.fetch_add(1, Relaxed);
        BYTES.fetch_add(layout.size() as isize, Relaxed);
        // SAFETY: as the caller guarantees.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        BLOCKS.fetch_sub(1, Relaxed);
        BYTES.fetch_sub(layout.size() as isize, Relaxed);
        // SAFETY: as the caller guarantees.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Live memory at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Live {
    /// Buffers of tensors, plans and workspaces.
    pub buffers: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Heap blocks.
    pub blocks: isize,
    /// Their bytes.
    pub heap_bytes: isize,
    /// Resident memory in MB, 0 if it cannot be read.
    pub rss_mb: f64,
}

impl Live {
    pub fn now() -> Live {
        Live {
            rss_mb: rss_mb(),
            buffers: memory::live_buffers(),
            bytes: memory::live_bytes(),
            blocks: BLOCKS.load(Relaxed),
            heap_bytes: BYTES.load(Relaxed),
        }
    }
}

/// Field 2 of `/proc/self/statm` is in pages of 4 KiB.
fn rss_mb() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<f64>().ok());
    pages.unwrap_or(0.0) * 4096.0 / 1e6
}

/// Measures the iterations of a regression test.
pub struct Watch {
    before: Caches,
    iterations: usize,
    at_100: Live,
    compiles_at_100: usize,
}

impl Watch {
    /// Starts measuring; releases compiled programs first.
    pub fn begin() -> Watch {
        memory::clear_caches();
        memory::reset_peak();
        Watch { before: memory::caches(), iterations: 0, at_100: Live::default(), compiles_at_100: 0 }
    }

    /// Ends an iteration.
    pub fn tick(&mut self) {
        self.iterations += 1;
        if self.iterations <= 100 {
            self.compiles_at_100 = memory::caches().compiles;
            self.at_100 = Live::now();
        }
    }

    /// Ends the measurement.
    pub fn end(self, traces: usize) -> Report {
        let after = memory::caches();
        Report {
            iterations: self.iterations,
            traces,
            compiles: after.compiles - self.before.compiles,
            compiles_after_100: after.compiles - self.compiles_at_100,
            evictions: after.evictions - self.before.evictions,
            at_100: self.at_100,
            at_end: Live::now(),
            peak_bytes: memory::peak_bytes(),
            measured: Vec::new(),
            said: String::new(),
        }
    }
}

/// The measurements.
#[derive(Clone, Debug)]
pub struct Report {
    pub iterations: usize,
    pub traces: usize,
    pub compiles: usize,
    pub compiles_after_100: usize,
    pub evictions: usize,
    /// After 100 iterations, or after the last iteration if there were fewer.
    pub at_100: Live,
    pub at_end: Live,
    pub peak_bytes: usize,
    /// Further measurements.
    pub measured: Vec<(&'static str, f64)>,
    /// The message of an error that the test provokes.
    pub said: String,
}

impl Report {
    /// Adds a measurement.
    pub fn with(mut self, name: &'static str, x: f64) -> Report {
        self.measured.push((name, x));
        self
    }

    /// A further measurement, by name.
    pub fn get(&self, name: &str) -> f64 {
        self.measured.iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("no {name}")).1
    }

    /// Asserts that as much is live at the end as after 100 iterations, and that nothing was compiled in between.
    #[track_caller]
    pub fn is_flat(&self) {
        let what = |live: &Live| [live.buffers as isize, live.bytes as isize, live.blocks, live.heap_bytes];
        let (then, now) = (what(&self.at_100), what(&self.at_end));
        assert_eq!(now, then, "live buffers, their bytes, live heap blocks, their bytes: at the end, at 100");
        assert_eq!(self.compiles_after_100, 0, "compiles after 100 iterations");
    }

    /// Asserts that a measurement is at most `limit`.
    #[track_caller]
    pub fn at_most(&self, name: &str, limit: f64) {
        let x = self.get(name);
        assert!(x <= limit, "{name} is {x}, the limit {limit}");
    }
}

/// Runs `f` on a pool with this number of threads, so that the queues of the global pool are not counted.
pub fn on_threads<R: Send>(num_threads: usize, f: impl FnOnce() -> R + Send) -> R {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(num_threads).build().unwrap();
    pool.install(f)
}
