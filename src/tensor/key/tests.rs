//! Words as Philox gives them, and distributions by moments, by Kolmogorov's distance and by chi-square.
//!
//! The seeds are fixed, so the tests do not fail by chance. Bounds are those of the sample size: 5 standard errors for a mean,
//! 2.2 / sqrt(n) for the largest distance of distributions, which a sample exceeds with probability 10^-4.

use super::*;
use crate::array::refusal;
use crate::graph::philox_block;
use crate::ode::tests::draw::{Draw, num_cases};
use crate::tensor::{grad, jit, vmap};

/// The largest distance between the distribution of a sample and `cdf`, times sqrt(n).
fn distance(x: &Tensor, cdf: impl Fn(f64) -> f64) -> f64 {
    let (sorted, n) = (x.sort(0).to_vec(), x.size() as f64);
    let off = |(i, &x): (usize, &f64)| (cdf(x) - i as f64 / n).abs().max((cdf(x) - (i + 1) as f64 / n).abs());
    sorted.iter().enumerate().map(off).fold(0.0, f64::max) * n.sqrt()
}

/// How many standard deviations the chi-square sum of counts is above its mean, for k outcomes of probabilities p.
fn excess(drawn: impl IntoIterator<Item = usize>, p: &[f64]) -> f64 {
    let mut counts = vec![0.0; p.len()];
    drawn.into_iter().for_each(|i| counts[i] += 1.0);
    let n: f64 = counts.iter().sum();
    let term =
        |(&count, &p): (&f64, &f64)| if p == 0.0 { count * 1e9 } else { (count - n * p).powi(2) / (n * p) };
    let free = p.iter().filter(|p| **p > 0.0).count() as f64 - 1.0;
    (counts.iter().zip(p).map(term).sum::<f64>() - free) / (2.0 * free).sqrt()
}

fn numbers(x: &Tensor) -> Vec<usize> {
    x.to_vec().into_iter().map(|x| x as usize).collect()
}

fn bits(x: &Tensor) -> Vec<u64> {
    x.to_vec().into_iter().map(f64::to_bits).collect()
}

#[test]
fn the_words_of_a_key_are_those_of_philox() {
    let key = Key::new(0x0123_4567_89ab_cdef);
    let words = |k: &Key| k.words().to_vec().into_iter().map(|w| w as u32).collect::<Vec<u32>>();
    assert_eq!(words(&key), [0x89ab_cdef, 0x0123_4567]);
    let drawn: Vec<u32> = key.bits([6]).to_vec().into_iter().map(|w| w as u32).collect();
    assert_eq!(drawn[..4], [3_092_259_374, 3_314_331_723, 346_529_824, 2_055_536_633]);
    let block = |i, stream| philox_block([0x89ab_cdef, 0x0123_4567], [i, 0, stream, 0]);
    assert_eq!(drawn, [&block(0, 0)[..], &block(1, 0)[..2]].concat());
    let [a, b] = key.split();
    assert_eq!([words(&a), words(&b)].concat(), [4_204_658_526, 1_813_021_771, 1_769_588_503, 93_388_675]);
    assert_eq!(words(&key.fold_in(1)), [4_049_840_748, 154_180_409]);
    assert_eq!(words(&key.fold_in(2)), [4_284_682_209, 1_795_463_805]);
    let u: Vec<f32> =
        drawn.iter().map(|&w| (w as f32 * 2.0_f32.powi(-32)).min(1.0 - 2.0_f32.powi(-24))).collect();
    assert_eq!(key.uniform([6]).as_slice::<f32>().unwrap(), u);
    let signs: Vec<f32> = drawn.iter().map(|&w| if w < 1 << 31 { -1.0 } else { 1.0 }).collect();
    assert_eq!(key.rademacher([6]).as_slice::<f32>().unwrap(), signs);
    let radius = |u: f32| (-2.0 * (1.0 - f64::from(u)).ln()).sqrt();
    let angle = |v: f32| f64::from(v) * std::f64::consts::TAU;
    let pairs = [(u[0], u[2]), (u[1], u[3])];
    let normal = pairs.map(|(u, v)| radius(u) * angle(v).cos()).into_iter();
    let normal: Vec<f64> = normal.chain(pairs.map(|(u, v)| radius(u) * angle(v).sin())).collect();
    let off = key.normal([4]) - Tensor::from(normal.clone());
    assert!(off.abs().max().item() < 1e-6, "{:?} {normal:?}", key.normal([4]));
    let whole = |upper: u32, lower: u32| f64::from(upper >> 5) * 2.0_f64.powi(26) + f64::from(lower >> 6);
    let want: Vec<f64> = (0..3).map(|i| whole(drawn[i], drawn[i + 3]) * 2.0_f64.powi(-53)).collect();
    assert_eq!(key.uniform_of(DType::F64, [3]).to_vec(), want);
}

/// Ranges: each distribution of numbers, outside functions, compiled with a traced key, mapped over keys.
#[test]
fn draws_depend_on_the_key_alone() {
    type Function = fn(&Key) -> Tensor;
    let weights = || Tensor::from([0.5, 1.0, 0.0, 2.5]);
    let ways: [(&str, Function); 13] = [
        ("uniform", |k| k.uniform([7])),
        ("uniform_of", |k| k.uniform_of(DType::F64, [7])),
        ("normal", |k| k.normal([7])),
        ("normal_of", |k| k.normal_of(DType::F64, [7])),
        ("rademacher", |k| k.rademacher([7])),
        ("exponential", |k| k.exponential([7])),
        ("gumbel", |k| k.gumbel([7])),
        ("bernoulli", |k| k.bernoulli(0.3, [7])),
        ("gamma", |k| k.gamma(0.7, [7])),
        ("randint", |k| k.randint([7], -5, 9)),
        ("permutation", |k| k.permutation(7)),
        ("categorical", |k| k.categorical(&Tensor::zeros([5, 4]), 1)),
        ("choice", |k| k.choice(9, 4, Replacement::Without, None)),
    ];
    let weighted: [(&str, fn(&Key, &Tensor) -> Tensor); 2] = [
        ("choice with", |k, w| k.choice(4, 7, Replacement::With, Some(w))),
        ("choice without", |k, w| k.choice(4, 2, Replacement::Without, Some(w))),
    ];
    let check = |name: &str, f: &(dyn Fn(&Key) -> Tensor + Send + Sync), traced: &dyn Fn(&Key) -> Tensor| {
        let keys: [Key; 3] = Key::new(5).split();
        let alone: Vec<Vec<u64>> = keys.iter().map(|k| bits(&f(k))).collect();
        assert!(alone[0] != alone[1] || alone[0] != alone[2], "{name}: {alone:?}");
        assert_eq!(bits(&f(&keys[0])), alone[0], "{name}");
        assert_eq!(bits(&traced(&keys[0])), alone[0], "{name}");
        let words: Vec<&Tensor> = keys.iter().map(Key::words).collect();
        let mapped = vmap(f, &Key { words: Tensor::stack(&words) });
        for (i, alone) in alone.iter().enumerate() {
            assert_eq!(bits(&mapped.index(i)), *alone, "{name}");
        }
    };
    for (name, f) in ways {
        check(name, &f, &|k| jit(move |k: Key| f(&k)).call(k.clone()).unwrap());
    }
    for (name, f) in weighted {
        let traced = |k: &Key| jit(move |k: Key, w: Tensor| f(&k, &w)).call(k.clone(), weights()).unwrap();
        check(name, &move |k: &Key| f(k, &Tensor::from([0.5, 1.0, 0.0, 2.5])), &traced);
    }
}

/// Ranges: concentrations from 0.05 to 300, f32 and f64; means, variances, and distances for 1/2, 1 and 2.
#[test]
fn gamma_samples_have_their_distributions() {
    let n = 10_000;
    let exact: [(f64, fn(f64) -> f64); 3] = [
        (0.5, |x| crate::graph::erf(x.sqrt())),
        (1.0, |x| -(-x).exp_m1()),
        (2.0, |x| 1.0 - (1.0 + x) * (-x).exp()),
    ];
    for (dtype, key) in [DType::F32, DType::F64].into_iter().zip(Key::new(72).split::<2>()) {
        for (i, (a, cdf)) in exact.into_iter().enumerate() {
            let x = key.fold_in(i as i32).gamma_of(dtype, a, [n]);
            assert!(x.dtype() == dtype && distance(&x, cdf) < 2.2, "{a}: {}", distance(&x, cdf));
        }
        let mut draw = Draw(72);
        let all: Vec<f64> = (0..6).map(|_| 10_f64.powf(draw.uniform(-1.3, 2.5))).collect();
        let x = key.gamma_of(dtype, Tensor::from(&all[..]).expand_dims(1), [6, n]).cast(DType::F64);
        for (i, a) in all.into_iter().enumerate() {
            let off = (x.index(i).mean().item() - a) / (a / n as f64).sqrt();
            assert!(off.abs() < 5.0, "the mean for {a} is off by {off} standard errors");
            // The fourth central moment is 3 a^2 + 6 a.
            let spread = ((2.0 * a * a + 6.0 * a) / n as f64).sqrt();
            let off = (x.index(i).var().item() - a) / spread;
            assert!(off.abs() < 5.0, "the variance for {a} is off by {off} standard errors");
        }
    }
    let key = Key::new(0);
    assert_eq!(key.gamma(1.0, [0, 3]).shape().to_vec(), [0, 3]);
    let void = key.gamma(Tensor::from([0.0, -1.0, f64::NAN, 1.0, 1e39, 1e30]), [6]).is_nan().to_vec();
    assert_eq!(void, [1.0, 1.0, 1.0, 0.0, 1.0, 0.0]);
    let slope = grad(|a: &Tensor| key.gamma(a, [3]).sum(), &Tensor::from(2.0));
    assert!(slope.item().is_nan());
    let said = refusal(|| key.gamma(Tensor::from([1.0, 2.0]), [3]));
    assert_eq!(said, "gamma: the concentrations f64[2] do not broadcast to [3]");
}

#[test]
fn numbers_have_their_distributions() {
    let keys: [Key; 8] = Key::new(71).split();
    let n = 20_000;
    let phi = |x: f64| 0.5 * (1.0 + crate::graph::erf(x / 2.0_f64.sqrt()));
    let near = |x: &Tensor, mean: f64, var: f64, what: &str| {
        let x = x.cast(DType::F64);
        let off = (x.mean().item() - mean) / (var / n as f64).sqrt();
        assert!(off.abs() < 5.0, "{what}: the mean is off by {off} standard errors");
        assert!((x.var().item() / var - 1.0).abs() < 0.1, "{what}: the variance is {}", x.var().item());
    };
    for (dtype, key) in [(DType::F32, &keys[0]), (DType::F64, &keys[1])] {
        let [a, b] = key.split();
        let (u, z) = (a.uniform_of(dtype, [n]), b.normal_of(dtype, [n]));
        assert_eq!((u.dtype(), z.dtype()), (dtype, dtype));
        near(&u, 0.5, 1.0 / 12.0, "uniform");
        near(&z, 0.0, 1.0, "normal");
        assert!(distance(&u, |x| x) < 2.2 && distance(&z, phi) < 2.2);
        // The halves of the normal samples, which share their radii, are not correlated.
        let product = z.slice(0, 0..n / 2) * z.slice(0, n / 2..n);
        assert!(product.mean().item().abs() < 5.0 / (n as f64 / 2.0).sqrt());
    }
    let fine = keys[2].uniform_of(DType::F64, [100]).to_vec();
    assert!(fine.iter().any(|u| (u * 2.0_f64.powi(53)) % 2.0 == 1.0), "the last bit is drawn");
    let e = keys[3].exponential([n]);
    near(&e, 1.0, 1.0, "exponential");
    assert!(e.min().item() >= 0.0 && distance(&e, |x| -(-x).exp_m1()) < 2.2);
    let g = keys[4].gumbel([n]);
    near(&g, 0.577_215_664_901_532_9, std::f64::consts::PI.powi(2) / 6.0, "gumbel");
    assert!(distance(&g, |x| (-(-x).exp()).exp()) < 2.2);
}

/// Ranges: intervals from one integer to all of i32, of both signs.
#[test]
fn integers_are_drawn_with_equal_probability() {
    let mut draw = Draw(431);
    for case in 0..num_cases(30) {
        let width = 1 + draw.below(40);
        let low = draw.below(2000) as i32 - 1000;
        let n = 50 * width;
        let x = Key::new(case as u64).randint([n], low, low + width as i32);
        assert_eq!(x.dtype(), DType::I32);
        let drawn = x.to_vec().into_iter().map(|x| (x - f64::from(low)) as usize);
        if width == 1 {
            assert!(drawn.into_iter().all(|i| i == 0));
        } else {
            let off = excess(drawn, &vec![1.0 / width as f64; width]);
            assert!(off < 6.0, "{low} {width}: {off}");
        }
    }
    let wide = Key::new(1).randint([4000], i32::MIN, i32::MAX);
    let part = |x: f64| ((x - f64::from(i32::MIN)) / 2.0_f64.powi(28)) as usize;
    assert!(excess(wide.to_vec().into_iter().map(part), &[1.0 / 16.0; 16]) < 6.0);
    assert!(wide.max().item() < f64::from(i32::MAX));
    assert_eq!(Key::new(1).randint([0], 0, 1).size(), 0);
    assert_eq!(refusal(|| Key::new(1).randint([2], 3, 3)), "randint: there is no integer from 3 to below 3");
}

#[test]
fn bools_are_true_with_their_probability() {
    let n = 20_000;
    for p in [0.0, 1e-3, 0.3, 0.5, 0.999, 1.0] {
        let x = Key::new(2).bernoulli(p, [n]);
        assert_eq!(x.dtype(), DType::Bool);
        let off = x.sum().item() - n as f64 * p;
        assert!(off.abs() <= 5.0 * (n as f64 * p * (1.0 - p)).sqrt(), "{p}: {off}");
    }
    let p = Tensor::from([[0.0], [1.0]]);
    assert_eq!(Key::new(2).bernoulli(&p, [2, 3]).to_vec(), [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    for p in [1.5, -0.1, f64::NAN] {
        let said = refusal(move || Key::new(2).bernoulli(p, [2]));
        assert_eq!(said, format!("bernoulli: the probability {p} is not from 0 to 1"));
    }
    let said = refusal(|| Key::new(2).bernoulli(Tensor::from([0.5, 0.5]), [3]));
    assert_eq!(said, "bernoulli: the probabilities f64[2] do not broadcast to [3]");
}

/// Ranges: 1 to 6 categories along each axis of `[draws, n]` and `[n, draws]`, f32 and f64, some of probability 0.
#[test]
fn categories_have_the_probabilities_of_their_logits() {
    let mut draw = Draw(432);
    for case in 0..num_cases(12) {
        let n = 1 + draw.below(6);
        let mut weights: Vec<f64> = (0..n).map(|_| draw.uniform(0.1, 2.0)).collect();
        if n > 2 {
            weights[draw.below(n)] = 0.0;
        }
        let sum: f64 = weights.iter().sum();
        let p: Vec<f64> = weights.iter().map(|w| w / sum).collect();
        let dtype = draw.one(&[DType::F32, DType::F64]);
        let logits = Tensor::from(weights).ln().cast(dtype);
        let key = Key::new(case as u64);
        let (rows, columns) = (logits.broadcast_to([3000, n]), logits.expand_dims(1).broadcast_to([n, 3000]));
        for x in [key.categorical(&rows, 1), key.categorical(&columns, 0)] {
            assert_eq!((x.dtype(), x.shape().to_vec()), (DType::I32, vec![3000]));
            assert!(n == 1 || excess(numbers(&x), &p) < 6.0, "case {case}: {p:?}");
        }
    }
    // Rare categories are drawn, too: the noise has a fine upper tail.
    let logits = Tensor::from([0.0f32, -12.0]).broadcast_to([400_000, 2]);
    let rare = Key::new(3).categorical(&logits, 1).sum().item();
    assert!((rare - 2.46).abs() < 5.0 * 2.46_f64.sqrt(), "{rare}");
    assert_eq!(
        refusal(|| Key::new(3).categorical(&Tensor::zeros([2, 0]), 1)),
        "categorical: axis 1 of f32[2,0] is empty"
    );
}

/// Ranges: 0 to 5 numbers, of which all orders are counted, and 3,000, which are sorted twice.
#[test]
fn permutations_are_equally_probable() {
    for n in 0..6 {
        let orders = (1..=n).product::<usize>();
        let keys = vmap(|i: &Tensor| Key::new(4).fold_in(i), &Tensor::iota(DType::I32, [100 * orders], 0));
        let drawn = vmap(move |k: &Key| k.permutation(n), &keys);
        assert_eq!(drawn.shape().to_vec(), [100 * orders, n]);
        // The number of an order by Lehmer's code.
        let number = |order: &[f64]| {
            (0..n).fold(0, |sum, i| sum * (n - i) + order[i + 1..].iter().filter(|x| **x < order[i]).count())
        };
        if n > 1 {
            let all = drawn.to_vec();
            let off = excess(all.chunks_exact(n).map(number), &vec![1.0 / orders as f64; orders]);
            assert!(off < 6.0, "{n}: {off}");
        }
    }
    let long = Key::new(5).permutation(3000);
    assert_eq!(long.sort(0).to_vec(), Tensor::iota(DType::F64, [3000], 0).to_vec());
    let fixed = long.to_vec().iter().enumerate().filter(|(i, x)| *i as f64 == **x).count();
    assert!(fixed < 8, "{fixed} numbers stay in their places; 1 is expected");
}

/// Ranges: 1 to 5 places, with and without weights, some of which are 0; 1 to n of them without replacement.
#[test]
fn choices_have_their_probabilities() {
    let mut draw = Draw(433);
    for case in 0..num_cases(10) {
        let n = 1 + draw.below(5);
        let mut weights: Vec<f64> = (0..n).map(|_| draw.uniform(0.2, 2.0)).collect();
        if n > 1 {
            weights[draw.below(n)] = 0.0;
        }
        let (sum, positive) = (weights.iter().sum::<f64>(), weights.iter().filter(|w| **w > 0.0).count());
        let p: Vec<f64> = weights.iter().map(|w| w / sum).collect();
        let (given, equal) = (Tensor::from(weights), vec![1.0 / n as f64; n]);
        let key = Key::new(case as u64);
        for (weights, p, most) in [(Some(&given), &p, positive), (None, &equal, n)] {
            let x = key.choice(n, 3000, Replacement::With, weights);
            assert_eq!((x.dtype(), x.size()), (DType::I32, 3000));
            assert!(most == 1 || excess(numbers(&x), p) < 6.0, "case {case}: {p:?}");
            let num = 1 + draw.below(most);
            let keys = vmap(|i: &Tensor| key.fold_in(i), &Tensor::iota(DType::I32, [3000], 0));
            let chosen = vmap(|k: &Key| k.choice(n, num, Replacement::Without, weights), &keys);
            // The first place has the probabilities; the second one those of the places that are left.
            assert!(most == 1 || excess(numbers(&chosen.column(0)), p) < 6.0, "case {case}: {p:?}");
            let of_second = |j: usize| -> f64 {
                (0..n).filter(|i| *i != j && p[*i] < 1.0).map(|i| p[i] * p[j] / (1.0 - p[i])).sum()
            };
            if num > 1 && most > 2 {
                let second: Vec<f64> = (0..n).map(of_second).collect();
                assert!(excess(numbers(&chosen.column(1)), &second) < 6.0, "case {case}: {p:?}");
            }
            for row in chosen.to_vec().chunks_exact(num) {
                assert!((0..num).all(|i| !row[..i].contains(&row[i]) && p[row[i] as usize] > 0.0));
            }
        }
    }
}

#[test]
fn choices_that_are_not_possible_are_refused() {
    let choice = |n, num, replacement| move || Key::new(6).choice(n, num, replacement, None);
    assert_eq!(refusal(choice(2, 3, Replacement::Without)), "choice: 3 of 2 places, Without replacement");
    assert_eq!(refusal(choice(0, 1, Replacement::With)), "choice: 1 of 0 places, With replacement");
    assert_eq!(choice(0, 0, Replacement::With)().size(), 0);
    assert_eq!(choice(3, 0, Replacement::Without)().size(), 0);
    let weighted = |w: Vec<f64>, num| {
        move || Key::new(6).choice(3, num, Replacement::Without, Some(&Tensor::from(w.clone())))
    };
    assert_eq!(refusal(weighted(vec![1.0, 2.0], 1)), "choice: the weights f64[2] are not those of 3 places");
    assert_eq!(
        refusal(weighted(vec![1.0, -2.0, 0.0], 1)),
        "choice: a weight is -2: it must be finite and not negative"
    );
    assert_eq!(refusal(weighted(vec![1.0, 2.0, 0.0], 3)), "choice: 2 places have a positive weight, not 3");
    let said = refusal(|| Key::new(6).uniform_of(DType::I32, [2]));
    assert_eq!(said, "uniform_of: i32 is not a float type");
}

#[test]
fn a_sample_is_a_function_of_its_parameters() {
    let key = Key::new(7);
    let scaled = |s: &Tensor| (key.normal_of(DType::F64, [5]) * s).sum();
    let gradient = grad(scaled, &Tensor::from(2.0)).item();
    assert!((gradient - key.normal_of(DType::F64, [5]).sum().item()).abs() < 1e-12);
}
