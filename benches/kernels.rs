//! Times the CPU kernels at each level: `cargo bench --bench kernels [-- <parts of names, separated by commas>]`.
//!
//! Reports the best of many short batches, because the machine may be shared; operands fit into the caches.
#![allow(unsafe_code, reason = "kernels take addresses")]

use std::hint::black_box;
use std::time::Instant;

use flowline::__internal::array::{Array, DType};
use flowline::__internal::backend::cpu::kernels::{
    Activation, Arith, Elem, Epilogue, Gemm, RowFactors, StripOp, cast, gemm_f32, gemm_f64, gemm_layer_f32,
    max_strip, philox_fill, strip, sum_cols, sum_rows, sum_strip, transpose_4,
};
use flowline::__internal::backend::cpu::{Plan, Workspace};
use flowline::__internal::graph::{Builder, FloatFn, Type};
use flowline::__internal::simd::Level;

/// Best nanoseconds per call over 300 batches of about 30 us, short enough that some are not interrupted.
fn best(mut f: impl FnMut()) -> f64 {
    let once = {
        f();
        let t = Instant::now();
        f();
        t.elapsed().as_nanos().max(20) as f64
    };
    let calls = (30_000.0 / once).ceil() as usize;
    (0..300)
        .map(|_| {
            let t = Instant::now();
            for _ in 0..calls {
                f();
            }
            t.elapsed().as_nanos() as f64 / calls as f64
        })
        .fold(f64::INFINITY, f64::min)
}

struct Bench {
    filter: String,
}

impl Bench {
    fn report(&self, level: Level, name: &str, count: f64, unit: &str, f: impl FnMut()) {
        if self.filter.split(',').any(|part| name.contains(part)) {
            let ns = best(f);
            let rate = if unit == "GF/s" { count / ns } else { ns / count };
            println!("{:9} {name:38} {rate:8.3} {unit}  {ns:10.0} ns", format!("{level:?}"));
        }
    }

    fn strips(&self, level: Level) {
        const N: usize = 256;
        let x: Vec<f64> = (0..N).map(|i| i as f64 / 64.0 - 1.99).collect();
        let positive: Vec<f64> = x.iter().map(|x| x.abs() + 0.01).collect();
        for elem in [Elem::F32, Elem::F64] {
            let others = [
                StripOp::Copy,
                StripOp::Add,
                StripOp::Then(Arith::Mul, Arith::Add),
                StripOp::Axpy2,
                StripOp::Div,
                StripOp::Max,
                StripOp::Lt,
            ];
            for op in others.into_iter().chain(FloatFn::ALL.iter().map(|&f| StripOp::Float(f))) {
                let data = if op == StripOp::Float(FloatFn::Ln) { &positive } else { &x };
                let f = strip(level, op, elem);
                let mut dst = vec![0f64; N];
                let narrow: Vec<f32> = data.iter().map(|&x| x as f32).collect();
                let a: *const u8 =
                    if elem == Elem::F32 { narrow.as_ptr().cast() } else { data.as_ptr().cast() };
                self.report(level, &format!("strip {op:?} {elem:?}"), N as f64, "ns/el", || {
                    // SAFETY: all operands hold 256 elements.
                    unsafe { f(black_box(dst.as_mut_ptr()).cast(), a, a, a, [1.5, 0.5], N) };
                });
            }
        }
        let mut y = [0f32; N];
        let f = strip(level, StripOp::Axpy, Elem::F32);
        let p: *mut u8 = y.as_mut_ptr().cast();
        self.report(level, "strip Axpy F32 in place", N as f64, "ns/el", || {
            // SAFETY: all operands hold 256 elements.
            unsafe { f(black_box(p), p, p, p, [0.5, 0.5], N) };
        });
        let words = [1u32; N];
        for (from, to) in
            [(Elem::U32, Elem::F32), (Elem::I32, Elem::F32), (Elem::F32, Elem::I32), (Elem::F32, Elem::U32)]
        {
            let f = cast(level, from, to);
            self.report(level, &format!("cast {from:?} {to:?}"), N as f64, "ns/el", || {
                // SAFETY: as above.
                unsafe { f(black_box(p), words.as_ptr().cast(), p, p, [0.0; 2], N) };
            });
        }
    }

    fn reductions(&self, level: Level) {
        let a = vec![0.5f32; 500 * 64];
        let (pa, mut out) = (a.as_ptr().cast::<u8>(), vec![0f32; 16_000]);
        let po: *mut u8 = out.as_mut_ptr().cast();
        let (sum, max) = (sum_strip(level, Elem::F32), max_strip(level, Elem::F32));
        // SAFETY: the shapes below are within the buffers, here and in the following calls.
        self.report(level, "sum_strip 512", 512.0, "ns/el", || unsafe { sum(black_box(po), pa, 512) });
        // SAFETY: as above.
        self.report(level, "max_strip 512", 512.0, "ns/el", || unsafe { max(black_box(po), pa, 512) });
        let rows = sum_rows(level, Elem::F32);
        for (r, c) in [(500, 64), (64, 64), (500, 2)] {
            self.report(level, &format!("sum_rows {r}x{c}"), (r * c) as f64, "ns/el", || {
                // SAFETY: as above.
                unsafe { rows(black_box(po), pa, r, c, c) }
            });
        }
        let cols = sum_cols(level, Elem::F32);
        for (r, c) in [(500, 64), (500, 16), (500, 8), (500, 2)] {
            self.report(level, &format!("sum_cols {r}x{c}"), (r * c) as f64, "ns/el", || {
                // SAFETY: as above.
                unsafe { cols(black_box(po), pa, r, c, c, false) }
            });
        }
        for (r, c) in [(64, 64), (500, 64), (500, 2)] {
            let mut t = vec![0u32; r * c];
            self.report(level, &format!("transpose_4 {r}x{c}"), (r * c) as f64, "ns/el", || {
                // SAFETY: as above.
                unsafe { transpose_4(level, r, c, pa.cast(), c, black_box(t.as_mut_ptr()), r) }
            });
        }
        let mut words = vec![0u32; 4096];
        self.report(level, "philox 4096", 4096.0, "ns/el", || philox_fill(level, [1, 2], 0, 3, &mut words));
    }

    fn layers(&self, level: Level) {
        for (m, n, k) in [(64, 64, 64), (50, 64, 64), (500, 64, 64), (500, 2, 64)] {
            let (a, b, mut c) = (vec![0.01f32; m * k], vec![0.01f32; k * n], vec![0f32; m * n]);
            let (bias, s) = (
                vec![0.1f32; n],
                Gemm { m, n, k, rsa: k, csa: 1, ldb: n, ldc: n, accumulate: false, packed: false },
            );
            let tanh = strip(level, StripOp::Float(FloatFn::Tanh), Elem::F32);
            self.report(level, &format!("layer m{m} n{n} k{k} gemm then tanh"), 1000.0, "us", || {
                // SAFETY: the buffers have these shapes.
                unsafe {
                    let p = black_box(c.as_mut_ptr());
                    gemm_f32(level, &s, a.as_ptr(), b.as_ptr(), p);
                    for i in (0..m * n).step_by(256) {
                        let p = p.add(i).cast::<u8>();
                        tanh(p, p, p, p, [0.0; 2], (m * n - i).min(256));
                    }
                }
            });
            let epilogue = Epilogue {
                rows: RowFactors { bias: bias.as_ptr(), ..RowFactors::NONE },
                activation: Activation::Tanh,
            };
            self.report(level, &format!("layer m{m} n{n} k{k} fused bias tanh"), 1000.0, "us", || {
                // SAFETY: as above.
                unsafe {
                    gemm_layer_f32(level, &s, &epilogue, a.as_ptr(), b.as_ptr(), black_box(c.as_mut_ptr()));
                };
            });
        }
    }

    fn products(&self, level: Level) {
        let shapes = [
            (64, 64, 64),
            (128, 64, 64),
            (500, 64, 64),
            (128, 80, 80),
            (50, 64, 64),
            (100, 512, 784),
            (512, 512, 512),
            (64, 64, 500),
            (500, 64, 2),
            (500, 2, 64),
            (500, 1, 64),
            (500, 4, 64),
            (500, 2, 2),
            (64, 2, 500),
            (500, 10, 64),
            (1, 64, 64),
            (4, 4, 4),
            (7, 2, 64),
            (7, 1, 64),
            (1, 1, 64),
        ];
        for (m, n, k) in shapes {
            let (a, b, mut c) = (vec![0.5f32; m * k], vec![0.5f32; k * n], vec![0f32; m * n]);
            let (a64, b64, mut c64) = (vec![0.5f64; m * k], vec![0.5f64; k * n], vec![0f64; m * n]);
            for (layout, rsa, csa) in [("", k, 1), ("At", 1, m)] {
                let s = Gemm { m, n, k, rsa, csa, ldb: n, ldc: n, accumulate: false, packed: false };
                let flops = 2.0 * (m * n * k) as f64;
                self.report(level, &format!("gemm f32 m{m} n{n} k{k} {layout}"), flops, "GF/s", || {
                    // SAFETY: the buffers have these shapes.
                    unsafe { gemm_f32(level, &s, a.as_ptr(), b.as_ptr(), black_box(c.as_mut_ptr())) };
                });
                self.report(level, &format!("gemm f64 m{m} n{n} k{k} {layout}"), flops, "GF/s", || {
                    // SAFETY: as above.
                    unsafe { gemm_f64(level, &s, a64.as_ptr(), b64.as_ptr(), black_box(c64.as_mut_ptr())) };
                });
            }
        }
    }

    /// A batch of matrix products: by one step of a plan, by kernel calls, and by scalar loops.
    fn batches(&self, level: Level) {
        for (count, n) in [(32, 8), (512, 4), (32, 64)] {
            let shape = [count, n, n];
            let (mut b, x) = Builder::with_inputs(&[DType::F32, DType::F32].map(|t| Type::array(t, shape)));
            let y = b.dot(x[0], x[1], false, false);
            let plan = Plan::compile(&b.finish(&[y]), level);
            let x = Array::from_vec(shape, vec![0.5f32; count * n * n]);
            let (mut ws, mut out) = (Workspace::new(), [x.clone()]);
            let flops = 2.0 * (count * n * n * n) as f64;
            let name = |how: &str| format!("batch {count} of {n}x{n}x{n} {how}");
            self.report(level, &name("plan"), flops, "GF/s", || {
                plan.run_arrays(&mut ws, &[black_box(&x), &x], &mut out);
            });
            let (a, mut c) = (vec![0.5f32; count * n * n], vec![0f32; count * n * n]);
            let s = Gemm { m: n, n, k: n, rsa: n, csa: 1, ldb: n, ldc: n, accumulate: false, packed: false };
            self.report(level, &name("kernel calls"), flops, "GF/s", || {
                for i in (0..a.len()).step_by(n * n) {
                    // SAFETY: the buffers hold `count` matrices.
                    unsafe {
                        let (a, c) = (a.as_ptr().add(i), black_box(c.as_mut_ptr()).add(i));
                        gemm_f32(level, &s, a, a, c);
                    }
                }
            });
            self.report(level, &name("loops"), flops, "GF/s", || {
                let (a, c) = (black_box(&a), black_box(&mut c));
                for (a, c) in a.chunks_exact(n * n).zip(c.chunks_exact_mut(n * n)) {
                    c.fill(0.0);
                    for (row, out) in a.chunks_exact(n).zip(c.chunks_exact_mut(n)) {
                        for (x, b) in row.iter().zip(a.chunks_exact(n)) {
                            out.iter_mut().zip(b).for_each(|(o, b)| *o += x * b);
                        }
                    }
                }
            });
        }
    }
}

/// Chains of multiply-adds in registers: an upper bound for the rate of products.
#[cfg(target_arch = "x86_64")]
mod peak {
    use std::arch::x86_64::*;

    pub const ROUNDS: usize = 1000;

    #[target_feature(enable = "avx512f")]
    pub fn avx512() -> f32 {
        let x = std::hint::black_box(_mm512_set1_ps(0.5));
        let mut chains = [x; 16];
        for _ in 0..ROUNDS {
            for c in &mut chains {
                *c = _mm512_fmadd_ps(x, *c, x);
            }
        }
        chains.iter().map(|c| _mm512_reduce_add_ps(*c)).sum()
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn avx2() -> f32 {
        let x = std::hint::black_box(_mm256_set1_ps(0.5));
        let mut chains = [x; 12];
        for _ in 0..ROUNDS {
            for c in &mut chains {
                *c = _mm256_fmadd_ps(x, *c, x);
            }
        }
        chains.iter().map(|c| _mm256_cvtss_f32(*c)).sum()
    }
}

#[cfg(target_arch = "x86_64")]
fn peaks(bench: &Bench, level: Level) {
    let rounds = peak::ROUNDS as f64;
    match level {
        Level::Portable => {}
        Level::Avx2 => bench.report(level, "peak f32", rounds * 12.0 * 16.0, "GF/s", || {
            // SAFETY: the level is available.
            black_box(unsafe { peak::avx2() });
        }),
        Level::Avx512 => bench.report(level, "peak f32", rounds * 16.0 * 32.0, "GF/s", || {
            // SAFETY: the level is available.
            black_box(unsafe { peak::avx512() });
        }),
    }
}

fn main() {
    let filter = std::env::args().skip(1).find(|x| !x.starts_with('-')).unwrap_or_default();
    let bench = Bench { filter };
    for level in Level::available() {
        #[cfg(target_arch = "x86_64")]
        peaks(&bench, level);
        bench.strips(level);
        bench.reductions(level);
        bench.layers(level);
        bench.products(level);
        bench.batches(level);
    }
}
