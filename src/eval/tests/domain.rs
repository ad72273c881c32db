//! Total probabilities of flows that do not move, over drawn images and windows: products of normal probabilities.

use super::still::{log_normal, still};
use crate::data::SamplingRule;
use crate::eval::refine::Accuracy;
use crate::eval::{Fitted, Frames, ImageFrame, LogDensity, OUTER_MASS, OnPlane, Sampler, Stopwatch, Units};
use crate::ode::tests::draw::{Draw, num_cases};
use crate::time_source::TimeSource;
use std::cell::Cell;
use std::f64::consts::TAU;

/// The standard normal probability of an interval, by Simpson's rule.
fn probability([from, to]: [f64; 2]) -> f64 {
    let (from, to, n) = (from.clamp(-9.0, 9.0), to.clamp(-9.0, 9.0), 600);
    let h = (to - from) / f64::from(n);
    let weight = |i: i32| if i == 0 || i == n { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
    let phi = |z: f64| (-0.5 * z * z).exp() / TAU.sqrt();
    (0..=n).map(|i| weight(i) * phi(from + f64::from(i) * h)).sum::<f64>() * h / 3.0
}

/// A frame, and its mean and standard deviations in pixels.
struct Case {
    frame: ImageFrame,
    mean: [f64; 2],
    std: [f64; 2],
    sides: [usize; 2],
}

impl Case {
    /// Images and windows of 1 to 40 pixels per side; standard deviations of 0.15 to 0.5 of the longer side, or of 0.5 to
    /// 1.5 of it, so that the largest domain does not hold the density; pixels of 1e-175 to 1e175 units in windows.
    fn draw(draw: &mut Draw) -> Case {
        let sides = [0; 2].map(|_| draw.one(&[1, 2, 3, 17, 40]));
        let longer = sides[0].max(sides[1]) as f64;
        let [least, most] = draw.one(&[[0.15, 0.5], [0.5, 1.5]]);
        let std = [0; 2].map(|_| longer * draw.uniform(least, most));
        let mean = sides.map(|side| side as f64 * draw.uniform(0.2, 0.8));
        let exponent = draw.one(&[-175.0, -5.0, 165.0]);
        let pixel = [1.0, -1.0].map(|sign| sign * draw.decade(exponent, exponent + 10.0));
        let units =
            draw.coin().then(|| Units { origin: pixel.map(|p| p * draw.uniform(-50.0, 50.0)), pixel });
        let seen = |a: usize, p: f64| units.map_or(p, |units| units.origin[a] + units.pixel[a] * p);
        let size = |a: usize| units.map_or(1.0, |units| units.pixel[a].abs());
        let frame = ImageFrame {
            width: sides[0],
            height: sides[1],
            mean: [0, 1].map(|a| seen(a, mean[a])),
            std: [0, 1].map(|a| std[a] * size(a)),
            factor: Vec::new(),
            entropy_nats: 0.0,
            density_max: 1.0,
            rule: SamplingRule::Default,
            fingerprint: String::new(),
            units,
        };
        Case { frame, mean, std, sides }
    }

    /// The probability of the image grown by a margin.
    fn within(&self, margin: f64) -> f64 {
        let ends =
            |a: usize| [-margin, self.sides[a] as f64 + margin].map(|p| (p - self.mean[a]) / self.std[a]);
        if margin < 0.0 { 0.0 } else { probability(ends(0)) * probability(ends(1)) }
    }

    /// The margin at which the outer band is nearly empty, or the largest, and the probability of the band.
    fn margin(&self) -> (f64, f64) {
        let side = self.sides[0].max(self.sides[1]) as f64;
        let width = (side / 16.0).ceil();
        let all = (1..).map(|k| f64::from(k) * width).take_while(|margin| margin <= &(1.5 * side));
        let bands: Vec<(f64, f64)> =
            all.map(|margin| (margin, self.within(margin) - self.within(margin - width))).collect();
        let found = bands.iter().find(|(_, band)| *band < OUTER_MASS).or(bands.last());
        *found.expect("a band fits around a pixel")
    }
}

/// On 12 to 25 cells along the longer side, with and without time.
#[test]
fn the_total_probability_is_that_of_the_domain_and_the_inner_values_are_densities() {
    let (mut draw, mut drawn) = (Draw(31), [0; 6]);
    let (density, flow) = (LogDensity::new(1e-3, 1e-3), still(2));
    for i in 0..num_cases(14) {
        let (case, is_late) = (Case::draw(&mut draw), draw.coin());
        let sampler = Sampler::of_rows(density.rows_per_call());
        let plane =
            OnPlane { density: &density, sampler: &sampler, flow: &flow, frame: &case.frame, image: None };
        let watch = Stopwatch::new(TimeSource::on(|now_s, _, units| now_s + units));
        let by = if is_late { watch.deadline(0.0, 0.0) } else { watch.no_deadline() };
        let finest = draw.one(&[12, 16, 25]);
        let ((values, rows, cols), found) = plane.over_domain(finest, &by, &mut |_| ()).unwrap();
        let text = format!("case {i}, late: {is_late}, {rows} x {cols}, {found:?}: {:?}", case.frame);
        let side = case.frame.side() as f64;
        let [width, height] = case.sides.map(|n| (n as f64 * finest as f64 / side - 1e-9).ceil() as usize);
        assert_eq!([cols, rows, values.len()], [width, height, width * height], "{text}");
        for _ in 0..20 {
            let k = draw.below(values.len());
            let place = [k % cols, k / cols].map(|cell| cell as f64 + 0.5);
            let cells = [cols as f64, rows as f64];
            let log_axis = |a: usize| {
                let z = (place[a] / cells[a] * case.sides[a] as f64 - case.mean[a]) / case.std[a];
                -0.5 * z * z - 0.5 * TAU.ln() - case.frame.std[a].ln()
            };
            let exact = log_axis(0) + log_axis(1);
            if exact.abs() > 700.0 {
                continue; // A density per unit area beyond the range of numbers.
            }
            assert!((values[k].ln() - exact).abs() < 1e-4, "cell {k}: {} {exact}, {text}", values[k].ln());
        }
        // Without time, the domain is the image and its first band.
        let width = (side / 16.0).ceil();
        let (margin, band) =
            if is_late { (width, case.within(width) - case.within(0.0)) } else { case.margin() };
        let total = case.within(margin);
        // A domain is a whole number of cells.
        let cell = side / finest as f64;
        let rounded = case.within(margin + cell) - total;
        assert!(
            found.total > total - 2e-3 && found.total < total + rounded + 2e-3,
            "{total} {rounded}, {text}"
        );
        assert!((found.outer - band).abs() < 0.5 * band + 2.0 * rounded + OUTER_MASS, "{band}, {text}");
        let [is_tiny, is_huge] = [case.frame.std[0] < 1e-160, case.frame.std[0] > 1e160];
        let largest = 3.0 * side - 2.0 * (margin + width) < 0.0;
        let seen = [is_late, total > 0.999, total < 0.99 && largest, side == 1.0, is_tiny, is_huge];
        drawn.iter_mut().zip(seen).for_each(|(count, seen)| *count += usize::from(seen));
    }
    assert!(drawn.iter().all(|&count| count > 0), "{drawn:?}");
}

/// Windows whose middle lies up to 8 standard deviations from the center of the density, cropped and grown, on 1 to 1,060
/// cells per side; with the most cells, in several parts.
#[test]
fn a_grid_of_any_size_has_the_densities_of_its_window_in_parts() {
    let (mut draw, mut drawn) = (Draw(53), [0; 5]);
    for i in 0..num_cases(24) {
        let mut frame = Case::draw(&mut draw).frame;
        let middle = frame.to_standard([0, 1].map(|a| {
            let half = 0.5 * [frame.width, frame.height][a] as f64;
            frame.units.map_or(half, |units| units.origin[a] + units.pixel[a] * half)
        }));
        let (radius, angle) = (draw.uniform(0.0, 8.0), draw.uniform(0.0, TAU));
        let off = [radius * angle.cos(), radius * angle.sin()];
        (0..2).for_each(|a| frame.mean[a] += (middle[a] + off[a]) * frame.std[a]);
        let size = if i % 12 == 0 { 1060 } else { draw.one(&[1, 2, 63, 64, 65, 200, 257]) };
        let margin = draw.uniform(-0.4, 1.0) * frame.width.min(frame.height) as f64;
        let all = [Accuracy::FIGURE, Accuracy::NUMBERS, Accuracy::EVERY_CELL];
        let accuracy = draw.one(if size > 300 { &all[..2] } else { &all });
        let frames = Frames { image: Some(frame.clone()), ..Frames::default() };
        let fitted = Fitted::new(still(2), &frames, None);
        let (done, mut parts, mut found) = (Cell::new(0), 0, Vec::new());
        let progress = |now: usize| {
            assert!(now >= done.get() && now <= size * size, "case {i}: {now} after {}", done.get());
            done.set(now);
        };
        for part in fitted.log_grid_parts(([size; 2], margin), accuracy, progress).unwrap() {
            found.extend(part.unwrap());
            (parts, drawn[0]) = (parts + 1, drawn[0] + usize::from(parts == 1));
            assert_eq!((found.len() % size, done.get()), (0, found.len()), "case {i}");
        }
        assert_eq!(found.len(), size * size);
        let center = frame.centers(frame.grown(margin), [size; 2]);
        let exact = (0..size * size).map(|k| log_normal(&center([k / size, k % size]).map(f64::from)));
        let exact: Vec<f64> = exact.map(|log_p| log_p + frame.log_jacobian()).collect();
        let peak = exact.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let [mut mass, mut expected] = [0.0; 2];
        for (found, exact) in found.iter().zip(&exact) {
            let [p, q] = [found, exact].map(|x| (x - peak).exp());
            (mass, expected) = (mass + p, expected + q);
            let is_low = exact - peak < f64::from(accuracy.floor);
            let near = if accuracy.first == 1 { 1e-3 } else { 2.0 * f64::from(accuracy.nats) };
            assert!((p - q).abs() < 1e-3, "case {i}, {size} cells, {accuracy:?}: {p} {q}, {frame:?}");
            assert!(
                is_low || (found - exact).abs() < near,
                "case {i}, {size} cells, {accuracy:?}: {found} {exact}"
            );
        }
        assert!((mass / expected - 1.0).abs() < 1e-3, "case {i}: {mass} of {expected}");
        let seen = [size == 1, margin < 0.0, radius > 4.0, accuracy.first > 1 && size > 64];
        drawn[1..].iter_mut().zip(seen).for_each(|(count, seen)| *count += usize::from(seen));
    }
    assert!(drawn.iter().all(|&count| count > 0), "parts, one cell, cropped, far, interpolated: {drawn:?}");
}
