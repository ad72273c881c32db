//! Initializers: variances, orthonormality, names, and the same bits traced and eager.

use super::*;
use crate::tensor::jit;

const ALL: [Init; 14] = [
    Init::Zeros,
    Init::Ones,
    Init::Constant(0.25),
    Init::Uniform(0.3),
    Init::Normal(0.2),
    Init::TruncatedNormal(0.2),
    Init::FanIn,
    Init::LecunUniform,
    Init::LecunNormal,
    Init::GlorotUniform,
    Init::GlorotNormal,
    Init::HeUniform,
    Init::HeNormal,
    Init::Orthogonal(1.5),
];

/// Mean, variance and largest absolute value.
fn moments(x: &[f64]) -> (f64, f64, f64) {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    (mean, variance, x.iter().fold(0.0, |m: f64, x| m.max(x.abs())))
}

#[test]
fn variances_are_those_of_the_names() {
    // 3 x 2 windows, 40 channels in, 70 out: 240 inputs and 420 outputs, 16,800 weights.
    let shape = [3, 2, 40, 70];
    let truncated: f64 = 0.04 * 0.773_741_3;
    for (init, want, bound) in [
        (Init::Uniform(0.3), 0.09 / 3.0, 0.3),
        (Init::Normal(0.2), 0.04, f64::INFINITY),
        (Init::TruncatedNormal(0.2), truncated, 0.4),
        (Init::FanIn, 1.0 / 720.0, 240f64.powf(-0.5)),
        (Init::LecunUniform, 1.0 / 240.0, 80f64.powf(-0.5)),
        (Init::LecunNormal, 1.0 / 240.0, f64::INFINITY),
        (Init::GlorotUniform, 2.0 / 660.0, 110f64.powf(-0.5)),
        (Init::GlorotNormal, 2.0 / 660.0, f64::INFINITY),
        (Init::HeUniform, 2.0 / 240.0, 40f64.powf(-0.5)),
        (Init::HeNormal, 2.0 / 240.0, f64::INFINITY),
    ] {
        let (mean, variance, largest) = moments(&init.sample(shape, &Key::new(8)).to_vec());
        // 4 standard errors of 16,800 samples: 0.031 std for the mean, a factor of 0.044 for a normal
        // variance.
        assert!(mean.abs() < 0.031 * want.sqrt(), "{init}: mean {mean}");
        assert!((variance / want - 1.0).abs() < 0.044, "{init}: variance {variance}, expected {want}");
        let full = if bound.is_finite() { bound } else { largest };
        assert!(largest <= full * (1.0 + 1e-6) && largest > 0.98 * full, "{init}: {largest} of {bound}");
    }
    assert_eq!(Init::Constant(0.25).sample([2], &Key::new(0)).to_vec(), [0.25; 2]);
    assert_eq!(Init::Zeros.sample([2], &Key::new(0)).to_vec(), [0.0; 2]);
    assert_eq!(Init::Ones.sample([2], &Key::new(0)).to_vec(), [1.0; 2]);
}

#[test]
fn a_cut_normal_draw_has_the_distribution_of_one() {
    // For a normal sample given |x| < 2, P(|x| < 1) is 0.682689 / 0.954500 and P(|x| < 1/2) is 0.382925 /
    // 0.954500.
    let x = Init::TruncatedNormal(1.0).sample([100_000], &Key::new(3)).to_vec();
    let share = |a: f64| x.iter().filter(|x| x.abs() < a).count() as f64 / 1e5;
    assert!((share(1.0) - 0.715_233).abs() < 0.006 && (share(0.5) - 0.401_179).abs() < 0.006);
    assert!(x.iter().all(|x| x.abs() <= 2.0));
}

/// The largest entry of `|x^T x - 1|` for a matrix with at least as many rows as columns.
fn orthogonality_error(x: &Tensor) -> f64 {
    let (n, gram) = (x.shape()[1], x.transpose().matmul(x).to_vec());
    let off = |(i, g): (usize, &f64)| (g - f64::from(u8::from(i % (n + 1) == 0))).abs();
    gram.iter().enumerate().map(off).fold(0.0, f64::max)
}

#[test]
fn orthogonal_draws_have_orthonormal_columns_or_rows() {
    for (seed, rows, columns) in [(0, 1, 1), (1, 2, 2), (2, 5, 3), (3, 64, 64), (4, 150, 20), (5, 100, 100)] {
        let tall = Init::Orthogonal(1.0).sample([rows, columns], &Key::new(seed)).cast(DType::F64);
        assert!(orthogonality_error(&tall) < 1e-6, "{rows} x {columns}: {}", orthogonality_error(&tall));
        let wide = Init::Orthogonal(2.0).sample([columns, rows], &Key::new(seed)).cast(DType::F64) * 0.5;
        assert!(orthogonality_error(&wide.transpose()) < 1e-6);
    }
    let window = Init::Orthogonal(1.0).sample([3, 3, 4, 8], &Key::new(6)).cast(DType::F64);
    assert!(orthogonality_error(&window.reshape([36, 8])) < 1e-6);
    for seed in 0..50 {
        let small = Init::Orthogonal(1.0).sample([3, 3], &Key::new(seed)).cast(DType::F64);
        assert!(orthogonality_error(&small) < 1e-6, "seed {seed}: {}", orthogonality_error(&small));
    }
}

#[test]
#[should_panic(expected = "an orthogonal matrix needs at least two axes, got shape [3]")]
fn an_orthogonal_vector_is_refused() {
    Init::Orthogonal(1.0).sample([3], &Key::new(0));
}

#[test]
fn draws_have_the_same_bits_traced_and_at_once() {
    let eager = ALL.map(|init| init.sample([7, 5], &Key::new(4)));
    let draw = jit(|key: Key| ALL.map(|init| init.sample([7, 5], &key)).to_vec());
    for (init, (traced, eager)) in ALL.iter().zip(draw.call(Key::new(4)).unwrap().iter().zip(&eager)) {
        assert_eq!(traced.dtype(), DType::F32);
        assert_eq!(traced.as_slice::<f32>(), eager.as_slice::<f32>(), "{init}");
    }
}

#[test]
fn whole_layers_are_drawn_under_jit() {
    let new = jit(|key: Key| (GruCell::new(3, 4, &key), Conv2d::new(2, 3, [3, 3], &key)));
    let (cell, conv) = new.call(Key::new(1)).unwrap();
    assert_eq!(cell.input.weight.to_vec(), GruCell::new(3, 4, &Key::new(1)).input.weight.to_vec());
    assert_eq!(conv.weight.to_vec(), Conv2d::new(2, 3, [3, 3], &Key::new(1)).weight.to_vec());
}

#[test]
fn a_name_is_parsed_and_printed() {
    for init in ALL {
        assert_eq!(init.to_string().parse::<Init>().unwrap(), init);
    }
    assert_eq!("normal".parse::<Init>().unwrap(), Init::Normal(0.01));
    assert_eq!("orthogonal:2".parse::<Init>().unwrap(), Init::Orthogonal(2.0));
    for wrong in ["", "xavier", "normal:wide", "normal:inf", "he_normal:2"] {
        let message = wrong.parse::<Init>().unwrap_err().to_string();
        assert!(
            message.starts_with(&format!("unknown initializer `{wrong}`; known ones are zeros, ones")),
            "{message}"
        );
    }
}
