//! Total probabilities of flows that do not move, over drawn images and windows: products of normal probabilities.

use super::still::still;
use crate::data::SamplingRule;
use crate::eval::{ImageFrame, LogDensity, OUTER_MASS, OnPlane, Sampler, Stopwatch, Units};
use crate::ode::tests::draw::{Draw, num_cases};
use crate::time_source::TimeSource;
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
