//! Drawn sets of images under a flow that does not move. With the transform by marginals, the probability of an image is
//! the product of the frequencies of its levels, whatever the noise.

use super::bits::{Images, nats_of_bits};
use super::samples::levels;
use super::*;
use crate::data::{
    DataError, Estimate, ImageSet, LogitTransform, MarginalTransform, PixelTransform, dequantize,
};
use crate::eval::tests::still::still;
use crate::eval::{Deadline, EvalError, Fitted, Frames};
use crate::ode::tests::draw::{Draw, num_cases};
use crate::tensor::Key;
use crate::{Error, data::SMOOTHING};
use std::sync::Arc;

/// Images of 1 to 3 pixels per side with 1 or 3 channels. Each pixel has 1 to 256 levels; lower ones are more frequent.
fn set(draw: &mut Draw, n: usize) -> ImageSet {
    let size = [1 + draw.below(3), 1 + draw.below(3), draw.one(&[1, 3])];
    let dim = size.iter().product::<usize>();
    let most: Vec<usize> = (0..dim).map(|_| draw.one(&[1, 2, 20, 256])).collect();
    let level = |i: usize, draw: &mut Draw| draw.below(most[i % dim]).min(draw.below(256)) as u8;
    let bytes = (0..n * dim).map(|i| level(i, draw)).collect();
    ImageSet::from_bytes("drawn", bytes, size).unwrap()
}

fn frame(set: &ImageSet, pixels: PixelTransformKind, classes: Option<usize>) -> ImagesFrame {
    ImagesFrame {
        name: set.name.clone(),
        height: set.height,
        width: set.width,
        channels: set.channels,
        pixels,
        classes,
        fingerprint: String::new(),
    }
}

fn fitted(set: &ImageSet, transform: PixelTransform, classes: Option<usize>) -> Fitted {
    let frame = frame(set, PixelTransformKind::Marginals, classes);
    Fitted::new(still(set.dim()), &Frames { images: Some(frame), ..Frames::default() }, Some(transform))
}

/// The frequency of each level of each pixel, with the smoothing of the transform.
fn frequencies(set: &ImageSet) -> Vec<[f64; 256]> {
    let (n, bytes) = (set.len(), set.rows(&(0..set.len()).collect::<Vec<_>>()).unwrap());
    let count = |pixel: usize, level: usize| {
        bytes.iter().skip(pixel).step_by(set.dim()).filter(|&&byte| usize::from(byte) == level).count() as f64
    };
    let total = n as f64 + 256.0 * SMOOTHING;
    let of_pixel = |pixel| std::array::from_fn(|level| (count(pixel, level) + SMOOTHING) / total);
    (0..set.dim()).map(of_pixel).collect()
}

fn log_probs(of: &ImageSet, frequencies: &[[f64; 256]]) -> Vec<f64> {
    let bytes = of.rows(&(0..of.len()).collect::<Vec<_>>()).unwrap();
    let log_prob = |image: &[u8]| -> f64 {
        image.iter().zip(frequencies).map(|(&level, p)| p[usize::from(level)].ln()).sum()
    };
    bytes.chunks(of.dim()).map(log_prob).collect()
}

/// Sets of 2 to 300 images, 1 to 3 draws of noise.
#[test]
fn images_have_the_probability_of_their_levels() {
    let mut draw = Draw(41);
    for i in 0..num_cases(6) {
        let (n, draws) = (draw.one(&[2, 3, 40, 257, 300]), 1 + draw.below(3));
        let set = set(&mut draw, n);
        let rows: Vec<usize> = (0..n).collect();
        let transform = PixelTransformKind::Marginals.fit(&set, &rows, 0).unwrap();
        let mut fitted = fitted(&set, transform.clone(), None);
        let exact = log_probs(&set, &frequencies(&set));
        (fitted.settings.noise_draws, fitted.settings.noise_seed) = (Some(draws), draw.bits());
        let mut progress = 0;
        let scores = fitted.image_scores(&set, |part| progress += part).unwrap();
        let (found, bits) = (scores.log_probs, scores.bits_per_dim);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-4 * (1.0 + b.abs());
        assert_eq!(found.len(), n);
        assert!(found.iter().zip(&exact).all(|(&a, &b)| close(a, b)), "case {i}: {found:?} {exact:?}");
        let again = if draws == 1 { n.min(256) } else { 0 };
        assert_eq!((progress, bits.draws), (n * draws + again, draws));
        let mean = Estimate::of(&exact).times(-bits_of_nats(1.0, set.dim()));
        assert!(close(bits.bits.mean, mean.mean) && close(bits.bits.stderr.unwrap(), mean.stderr.unwrap()));
        assert!(bits.noise_stderr.unwrap() < 1e-4, "case {i}: {bits:?}");
        assert!(close(nats_of_bits(mean.mean, set.dim()), -Estimate::of(&exact).mean));
        // The scores of a run are of at most 128 validation and 1,000 test images.
        let half = rows.split_at(n / 2);
        let set = Arc::new(set);
        let (validation, test) = ((&*set, half.0.to_vec()), (&*set, half.1.to_vec()));
        let mut images = Images::new(set.clone(), rows.clone(), validation, test, transform, 3).unwrap();
        let flow = &fitted.flow;
        let test = images.test(flow, &Deadline::none(), &mut |_| ()).unwrap();
        let of = |rows: &[usize]| -Estimate::of(&rows.iter().map(|&i| exact[i]).collect::<Vec<_>>()).mean;
        assert!(test.count as usize == half.1.len() && close(test.mean, of(half.1)), "case {i}: {test:?}");
        if half.0.len() <= 128 {
            let most = images.watch(flow, usize::MAX, &Deadline::none(), &mut |_| ()).unwrap();
            assert!(close(most.mean, of(half.0)), "case {i}: {most:?}");
            let one = images.watch(flow, 1, &Deadline::none(), &mut |_| ()).unwrap();
            assert!(
                one.count == 1 && half.0.iter().any(|&i| close(one.mean, -exact[i])),
                "case {i}: {one:?}"
            );
        }
        if i == 0 {
            let rows = images.tolerances(flow, &Deadline::none()).unwrap();
            let bits = bits_of_nats(of(half.0), set.dim());
            assert!(rows.len() == 4 && rows.iter().all(|row| close(row.bits_per_dim, bits)), "{rows:?}");
        }
    }
}

/// 1 to 700 samples: those of a shorter draw come first, and the mean level of each pixel is that of its frequencies.
#[test]
fn samples_have_the_frequencies_of_the_levels() {
    let mut draw = Draw(42);
    for i in 0..num_cases(4) {
        let set = set(&mut draw, 30);
        let transform = PixelTransformKind::Marginals.fit(&set, &(0..30).collect::<Vec<_>>(), 0).unwrap();
        let (fitted, key) = (fitted(&set, transform, None), Key::new(draw.bits()));
        let drawn = |n: usize| {
            let parts = fitted.sample_images(n, None, &key).unwrap();
            parts.flat_map(|part| part.unwrap().to_pixel_bytes()).collect::<Vec<u8>>()
        };
        let all = drawn(700);
        let few = 1 + draw.below(600);
        assert_eq!(all.len(), 700 * set.dim());
        assert_eq!(drawn(few), all[..few * set.dim()], "case {i}: {few}");
        for (pixel, p) in frequencies(&set).iter().enumerate() {
            let moment =
                |k: i32| p.iter().enumerate().map(|(level, p)| p * (level as f64).powi(k)).sum::<f64>();
            let (mean, square) = (moment(1), moment(2));
            let column = all.iter().skip(pixel).step_by(set.dim());
            let found = column.map(|&level| f64::from(level)).sum::<f64>() / 700.0;
            let error = 5.0 * ((square - mean * mean) / 700.0).sqrt();
            assert!((found - mean).abs() < error, "case {i}, pixel {pixel}: {found} {mean} {error}");
        }
    }
}

/// Sets of another size, without labels or with a label out of range, classes that do not exist, and no draws.
#[test]
fn requests_that_do_not_fit_the_training_set_are_refused() {
    let mut draw = Draw(43);
    for _ in 0..num_cases(20) {
        let (set, classes) = (set(&mut draw, 6), 1 + draw.below(4));
        let transform = PixelTransformKind::Marginals.fit(&set, &[0, 1], 0).unwrap();
        let mut fitted = fitted(&set, transform, Some(classes));
        fitted.settings.noise_draws = Some(1);
        let score = |images: &ImageSet| fitted.image_scores(images, |_| ()).map(drop).unwrap_err();
        let size = [set.height + 1, set.width, set.channels];
        let other = ImageSet::from_bytes("other", vec![0; 2 * size.iter().product::<usize>()], size).unwrap();
        assert!(matches!(score(&other),
            Error::Data(DataError::OtherSize { found, wanted, .. })
                if found == size && wanted == [set.height, set.width, set.channels]));
        assert!(matches!(score(&set), Error::Data(DataError::NoLabels { .. })));
        let asked = classes + draw.below(3);
        let mut labels: Vec<u16> = (0..6).map(|_| draw.below(classes) as u16).collect();
        labels[draw.below(6)] = asked as u16;
        let bytes = set.rows(&[0, 1, 2, 3, 4, 5]).unwrap();
        let size = [set.height, set.width, set.channels];
        let labeled = ImageSet::from_bytes("labeled", bytes, size).unwrap().with_classes(labels).unwrap();
        let is_class = |error: Error, label: Option<usize>| {
            matches!(error, Error::Eval(EvalError::Class { asked, classes: Some(of) })
                if asked == label && of == classes)
        };
        assert!(is_class(score(&labeled), Some(asked)));
        for label in [None, Some(asked)] {
            fitted.settings.class = label;
            let error = fitted.sample_images(3, None, &Key::new(0)).map(drop).unwrap_err();
            assert!(is_class(error, label));
        }
    }
}

/// 2 to 5 draws of 1 to 30 images.
#[test]
fn errors_of_bits_are_those_of_images_and_draws() {
    let mut draw = Draw(44);
    for i in 0..num_cases(500) {
        let (n, draws) = (1 + draw.below(30), 2 + draw.below(4));
        let bits: Vec<f64> = (0..n * draws).map(|_| draw.uniform(0.0, 8.0)).collect();
        let found = BitsPerDim::of(&bits, draws, 7.0);
        let of_image = |i: usize| (0..draws).map(|k| bits[k * n + i]).collect::<Vec<f64>>();
        let each: Vec<Estimate> = (0..n).map(|i| Estimate::of(&of_image(i))).collect();
        let means: Vec<f64> = each.iter().map(|image| image.mean).collect();
        // The variance of the mean of independent means.
        let noise = each.iter().map(|image| image.stderr.unwrap().powi(2)).sum::<f64>().sqrt() / n as f64;
        assert!((found.noise_stderr.unwrap() / noise - 1.0).abs() < 1e-9, "case {i}: {found:?} {noise}");
        let all = Estimate::of(&means);
        assert!((found.bits.mean - all.mean).abs() < 1e-12 && found.bits.count as usize == n);
        assert_eq!(found.bits.stderr.is_some(), n > 1);
        assert_eq!((found.draws, found.field_evals), (draws, 7.0));
    }
}

/// Transforms of 1 to 20 pixels: tables of a file, and levels of dequantized images.
#[test]
fn transforms_come_back_from_their_tables_and_levels_from_their_coordinates() {
    let mut draw = Draw(45);
    for i in 0..num_cases(100) {
        let dim = 1 + draw.below(20);
        let (kind, transform): (_, PixelTransform) = if draw.coin() {
            let counts: Vec<u32> = (0..dim * 256).map(|_| draw.one(&[0, 0, 1, 50, 1_000_000])).collect();
            (PixelTransformKind::Marginals, MarginalTransform::from_counts(&counts, SMOOTHING).into())
        } else {
            let (alpha, std) = (draw.one(&[1e-6, 0.01, 0.05]), |draw: &mut Draw| draw.decade(-1.0, 1.0));
            let mean = (0..dim).map(|_| draw.uniform(-5.0, 5.0)).collect();
            let std = (0..dim).map(|_| std(&mut draw)).collect();
            (PixelTransformKind::Logit, LogitTransform { alpha, mean, std }.into())
        };
        let tables = PixelTables::of(&transform);
        assert_eq!(tables.transform(), transform, "case {i}");
        let shapes = |tables: &PixelTables| match tables {
            PixelTables::Marginals { counts } => vec![(counts.dtype(), counts.shape().to_vec())],
            PixelTables::Logit { alpha, mean, sd } => {
                [alpha, mean, sd].map(|tensor| (tensor.dtype(), tensor.shape().to_vec())).to_vec()
            }
        };
        assert_eq!(shapes(&PixelTables::like(kind, dim)), shapes(&tables), "case {i}");
        let bytes: Vec<u8> = (0..3 * dim).map(|_| draw.one(&[0, 1, 127, 254, 255])).collect();
        let (z, _) = transform.forward(&dequantize(&bytes, &mut Key::new(draw.bits()).rng()));
        assert_eq!(levels(&transform, &z), bytes, "case {i}: {kind:?}");
        // Coordinates beyond all images are the darkest and the lightest level.
        let ends = [-1e9, 1e9].map(|z| levels(&transform, &vec![z; dim]));
        assert!(ends[0].iter().all(|&x| x == 0) && ends[1].iter().all(|&x| x == 255), "case {i}: {ends:?}");
    }
}

/// 1 to 2,100 training images of few levels, so that many distances are equal: the nearest ones in order of the distance,
/// then of the set.
#[cfg(feature = "plot")]
#[test]
fn the_nearest_images_are_the_first_of_the_sorted_ones() {
    let mut draw = Draw(46);
    for i in 0..num_cases(30) {
        let n = draw.one(&[2, 3, 7, 100, 1_024, 1_025, 2_100]);
        let set = Arc::new(set(&mut draw, n));
        let train: Vec<usize> = (0..n).filter(|&i| i == 0 || draw.below(4) > 0).collect();
        let transform = PixelTransformKind::Marginals.fit(&set, &train, 0).unwrap();
        let part = || (&*set, vec![0]);
        let images = Images::new(set.clone(), train.clone(), part(), part(), transform, 0).unwrap();
        let to: Vec<Vec<u8>> =
            (0..=draw.below(4)).map(|_| (0..set.dim()).map(|_| draw.below(256) as u8).collect()).collect();
        let to: Vec<&[u8]> = to.iter().map(|image| &image[..]).collect();
        let k = 1 + draw.below(6);
        let found = images.nearest(&to, k).unwrap();
        let bytes = set.rows(&train).unwrap();
        for (of, near) in to.iter().zip(found) {
            let distance = |image: &[u8]| -> i64 {
                image.iter().zip(*of).map(|(&a, &b)| (i64::from(a) - i64::from(b)).pow(2)).sum()
            };
            let mut all: Vec<&[u8]> = bytes.chunks(set.dim()).collect();
            all.sort_by_key(|image| distance(image));
            all.truncate(k);
            assert_eq!(near, all, "case {i}: {n} images, {k} of them");
        }
    }
}
