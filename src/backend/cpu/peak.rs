//! Measured peak rates of the machine: matrix products and copies within a core's own cache.
//!
//! The rates are for reports only: they vary between measurements, so no plan or result may depend on them.
//!
//! A formula (lanes x ports x clock) is not enough: the clock depends on other load, and a hypervisor reports
//! neither ports nor clock. The measurement uses the crate's own kernel. The fraction of this rate that a
//! plan achieves then shows the overhead around the products, which a better plan could save.

use super::kernels::{Gemm, gemm_f32, packed_len};
use crate::simd::Level;
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Instant;

/// The product: A and C of 120 and 60 KiB and a packed B of 32 KiB fit into a 256 KiB L2 cache, and one call
/// takes 10 to 40 microseconds, so call overhead is negligible.
const M: usize = 240;
const K: usize = 128;
const N: usize = 64;
/// Cache lines per copy: 64 KiB read, 64 KiB written.
const COPIED: usize = 1024;
/// Measurements per rate. The highest rate is reported, since other load can only lower a rate.
const RUNS: usize = 5;
/// Seconds per measurement: three rates, five times each, take 45 ms.
const RUN_S: f64 = 3e-3;

/// Peak rates of this machine.
///
/// # Numerics
/// Each rate is the best of five measurements of 3 ms; all measurements take about 50 ms. Load from other
/// programs lowers the rates.
///
/// # Examples
/// ```
/// let peak = flowline::__internal::backend::Peak::measure();
/// assert!(peak.gflops > 0.0 && peak.threads >= 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Peak {
    /// Threads of the measured pool.
    pub threads: usize,
    /// 10^9 floating-point operations per second of f32 matrix products on one thread; a multiply-add counts
    /// as two.
    pub gflops_one_thread: f64,
    /// The same rate on all threads together.
    pub gflops: f64,
    /// Bytes read and written per second by copies within the L2 cache, on all threads together.
    pub bytes_per_s: f64,
}

impl Peak {
    /// Measures the machine on the threads of the current rayon pool.
    pub fn measure() -> Peak {
        let threads = rayon::current_num_threads();
        // More threads than cores add nothing.
        let workers = available_parallelism().map_or(threads, |cores| cores.get().min(threads));
        let mut all_buffers: Vec<_> =
            (0..workers).map(|_| Mutex::new(Buffers::new(Level::detect()))).collect();
        let first = all_buffers[0].get_mut().unwrap_or_else(PoisonError::into_inner);
        let products = calls_of_a_run(|times| first.products(times));
        let copies = calls_of_a_run(|times| first.copies(times));
        let one = best_rate(|| {
            first.products(products);
            products as f64
        });
        let all = |run: fn(&mut Buffers, usize), calls: usize| {
            best_rate(|| {
                rayon::broadcast(|context| {
                    if let Some(buffers) = all_buffers.get(context.index()) {
                        run(&mut buffers.lock().unwrap_or_else(PoisonError::into_inner), calls);
                    }
                });
                (calls * workers) as f64
            })
        };
        let gflop = (2 * M * K * N) as f64 / 1e9;
        Peak {
            threads,
            gflops_one_thread: one * gflop,
            gflops: all(Buffers::products, products) * gflop,
            bytes_per_s: all(Buffers::copies, copies) * (2 * COPIED * size_of::<Line>()) as f64,
        }
    }
}

/// A cache line of numbers, aligned like packed panels.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; 16]);

/// The data of one thread.
struct Buffers {
    level: Level,
    a: Vec<Line>,
    /// All elements are equal, so the packed layout has the same contents as the plain layout.
    b: Vec<Line>,
    c: Vec<Line>,
}

impl Buffers {
    fn new(level: Level) -> Buffers {
        let lines = |len: usize, x: f32| vec![Line([x; 16]); len.div_ceil(16)];
        let b = packed_len(level, false, K, N);
        Buffers {
            level,
            a: lines((M * K).max(16 * COPIED), 0.5),
            b: lines(b, 0.25),
            c: lines((M * N).max(16 * COPIED), 0.0),
        }
    }

    fn products(&mut self, times: usize) {
        let (rsa, csa, ldb, ldc, accumulate, packed) = (K, 1, N, N, false, true);
        let shape = Gemm { m: M, n: N, k: K, rsa, csa, ldb, ldc, accumulate, packed };
        let (a, b, c) = (self.a.as_ptr().cast(), self.b.as_ptr().cast(), self.c.as_mut_ptr().cast());
        for _ in 0..times {
            // SAFETY: the vectors have room for M x K, a packed K x N and M x N numbers, and are disjoint; the level is
            // that of the machine.
            unsafe { gemm_f32(self.level, black_box(&shape), a, b, c) };
        }
    }

    fn copies(&mut self, times: usize) {
        for _ in 0..times {
            black_box(&mut self.c)[..COPIED].copy_from_slice(&self.a[..COPIED]);
        }
    }
}

/// The number of calls per measurement, determined by doubling. The doubling also powers up the core's wide
/// vector units.
fn calls_of_a_run(mut run: impl FnMut(usize)) -> usize {
    let mut calls = 1;
    loop {
        let begun = Instant::now();
        run(calls);
        let took = begun.elapsed().as_secs_f64();
        if took > RUN_S / 4.0 {
            return ((calls as f64 * RUN_S / took) as usize).max(1);
        }
        calls *= 2;
    }
}

/// The best rate of several measurements.
fn best_rate(mut run: impl FnMut() -> f64) -> f64 {
    let rates = (0..RUNS).map(|_| {
        let begun = Instant::now();
        let done = run();
        done / begun.elapsed().as_secs_f64().max(1e-9)
    });
    rates.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_products_that_are_timed_are_right() {
        for level in Level::available() {
            let mut buffers = Buffers::new(level);
            buffers.products(1);
            // 128 terms of 0.5 x 0.25.
            assert!(buffers.c[..M * N / 16].iter().all(|line| line.0 == [16.0; 16]), "{level:?}");
            buffers.copies(1);
            assert!(buffers.c[..COPIED].iter().all(|line| line.0 == [0.5; 16]));
        }
    }

    #[test]
    fn the_measured_peak_is_positive_and_of_the_pool() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let peak = pool.install(Peak::measure);
        assert_eq!(peak.threads, 2);
        // Two multiply-adds per lane and cycle at 10 GHz: no core exceeds this, and none is a thousand times
        // slower.
        let lanes = match Level::detect() {
            Level::Portable | Level::Avx2 => 8.0,
            Level::Avx512 => 16.0,
        };
        let most = 2.0 * 2.0 * lanes * 10.0;
        for (rate, most) in [(peak.gflops_one_thread, most), (peak.gflops, 2.0 * most)] {
            assert!(rate < most && rate > 1e-3 * most, "{peak:?}");
        }
        // 64 bytes read and 64 written per cycle by each of two cores.
        assert!(peak.bytes_per_s < 2.0 * 128.0 * 10e9 && peak.bytes_per_s > 1e8, "{peak:?}");
    }

    #[test]
    fn the_best_rate_is_that_of_the_shortest_run() {
        let (mut buffers, mut least) = (Buffers::new(Level::detect()), f64::INFINITY);
        let rate = best_rate(|| {
            let begun = Instant::now();
            buffers.products(50);
            least = least.min(begun.elapsed().as_secs_f64());
            3.0
        });
        let most = 3.0 / least;
        assert!(rate <= most && rate > 0.8 * most, "{rate} of {most}");
    }
}
