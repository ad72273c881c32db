//! Factorizations and linear systems of compiled programs, alone and in batches.
//!
//! `cargo bench --bench linalg --features autodiff -- [--f32] [NAME COUNT ROWS [COLUMNS]]` prints the median and the least
//! time of calls in microseconds, of one case or of a list of them. `benches/peers/py/linalg_jax.py` has the same cases and
//! arguments. The matrices of `cholesky`, `eigh` and `triangular_solve` are positive definite.

use flowline::nn::prelude::*;
use flowline::tensor::linalg::{self, Triangle};
use std::hint::black_box;
use std::time::Instant;

/// Names, numbers of matrices, rows and columns.
const CASES: [(&str, usize, [usize; 2]); 15] = [
    ("solve", 1000, [4, 4]),
    ("triangular_solve", 200, [8, 8]),
    ("triangular_solve", 1, [512, 512]),
    ("cholesky", 200, [8, 8]),
    ("cholesky", 1, [128, 128]),
    ("cholesky", 1, [512, 512]),
    ("qr", 1000, [4, 4]),
    ("qr", 200, [8, 8]),
    ("qr", 200, [20, 5]),
    ("qr", 1, [200, 200]),
    ("eigh", 1000, [4, 4]),
    ("eigh", 200, [8, 8]),
    ("eigh", 1, [100, 100]),
    ("eigh", 1, [200, 200]),
    ("lstsq", 200, [20, 5]),
];

/// Numbers between -1 and 1, the same in each run.
fn drawn(dtype: DType, shape: Vec<usize>) -> Tensor {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    let numbers: Vec<f64> = (0..shape.iter().product()).map(|_| next()).collect();
    Tensor::from_vec(shape, numbers).cast(dtype)
}

/// The median and the least time of a compiled function of matrices and right-hand sides, in microseconds.
fn times(f: impl Fn(&Tensor, &Tensor) -> Tensor + Send + Sync + 'static, a: &Tensor, b: &Tensor) -> [f64; 2] {
    let compiled = jit(move |a: Tensor, b: Tensor| f(&a, &b));
    let call = || {
        let start = Instant::now();
        black_box(compiled.call(a, b).expect("a program without solves"));
        start.elapsed().as_secs_f64() * 1e6
    };
    let first = call().max(call());
    let mut all: Vec<f64> = (0..(3e5 / first).clamp(15.0, 2000.0) as usize).map(|_| call()).collect();
    all.sort_by(f64::total_cmp);
    [all[all.len() / 2], all[0]]
}

fn measure(name: &str, dtype: DType, count: usize, [m, n]: [usize; 2]) {
    let lead = if count == 1 { vec![] } else { vec![count] };
    let (a, b) = (drawn(dtype, [&lead[..], &[m, n]].concat()), drawn(dtype, [&lead[..], &[m, 1]].concat()));
    let one = Tensor::iota(DType::I32, [m, n], 0).eq(Tensor::iota(DType::I32, [m, n], 1)).cast(dtype);
    let last = a.rank() - 1;
    let turned = a.permute(&(0..last - 1).chain([last, last - 1]).collect::<Vec<_>>());
    let definite = || a.matmul(&turned) + one.clone() * n as f64;
    let [median, least] = match name {
        "solve" => times(linalg::solve, &(&a + one * 4.0), &b),
        "triangular_solve" => times(|a, b| linalg::triangular_solve(a, b, Triangle::LOWER), &definite(), &b),
        "cholesky" => times(|a, _| linalg::cholesky(a), &definite(), &b),
        "qr" => times(
            |a, _| {
                let (q, r) = linalg::qr(a);
                Tensor::concat(&[&q, &r], q.rank() - 2)
            },
            &a,
            &b,
        ),
        "eigh" => times(
            |a, _| {
                let (w, v) = linalg::eigh(a);
                Tensor::concat(&[&v, &w.expand_dims(v.rank() - 2)], v.rank() - 2)
            },
            &definite(),
            &b,
        ),
        "lstsq" => times(linalg::lstsq, &a, &b),
        _ => panic!("{name} is not a case; the names are {:?}", CASES.map(|case| case.0)),
    };
    println!("{name:18} {count:5} x {m} x {n} {dtype}: median {median:9.1} us, least {least:9.1} us");
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let dtype = if words.iter().any(|word| word == "--f32") { DType::F32 } else { DType::F64 };
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "--f32").collect();
    let number = |word: &str| word.parse().unwrap_or_else(|_| panic!("{word} is not a number"));
    match words[..] {
        [] => CASES.iter().for_each(|&(name, count, sides)| measure(name, dtype, count, sides)),
        [name, count, n] => measure(name, dtype, number(count), [number(n); 2]),
        [name, count, m, n] => measure(name, dtype, number(count), [number(m), number(n)]),
        _ => panic!("the arguments are NAME COUNT ROWS [COLUMNS], not {words:?}"),
    }
}
