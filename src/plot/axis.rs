//! The ticks of an axis: positions, labels and their format.
use super::text;

/// The range of an axis, and its ticks with labels.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    pub range: [f64; 2],
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Ticks at about `count` round numbers, at least two if the range has an extent; labels are divided by `unit`.
    pub(super) fn round(range: [f64; 2], count: usize, unit: f64) -> Self {
        let axis = Self::spaced(range, count, unit);
        if axis.ticks.len() >= 2 {
            return axis;
        }
        let mut finer = [2, 4].map(|times| Self::spaced(range, times * count, unit)).into_iter();
        finer.find(|axis| axis.ticks.len() >= 2).unwrap_or(axis)
    }

    fn spaced(range: [f64; 2], count: usize, unit: f64) -> Self {
        let step = round_step((range[1] - range[0]).abs() / unit / count as f64);
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let (low, high) = (range[0].min(range[1]) / unit, range[0].max(range[1]) / unit);
        let first = (low / step - 1e-9).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        let ticks =
            (first..=last).map(|i| i as f64 * step).map(|v| (v * unit, written(v, decimals))).collect();
        Self { range, ticks }
    }

    /// A logarithmic axis with at most about `most` ticks; its range and its ticks are exponents of 10.
    pub(super) fn decades([low, high]: [f64; 2], most: i32) -> Self {
        let every = (((high - low) as i32 + most - 1) / most).max(1);
        let ticks = (low.ceil() as i32..=high.floor() as i32).filter(|k| k.rem_euclid(every) == 0);
        Axis { range: [low, high], ticks: ticks.map(|k| (f64::from(k), power_of_ten(k))).collect() }
    }

    /// The same axis with tick marks but without labels.
    pub(super) fn bare(&self) -> Self {
        Self { ticks: self.ticks.iter().map(|(v, _)| (*v, String::new())).collect(), ..*self }
    }

    /// Width of the widest label, in pixels.
    pub(super) fn widest(&self, size: u32) -> i32 {
        self.ticks.iter().map(|(_, text)| text::width(text, size)).max().unwrap_or(0)
    }

    /// Position of a number between the ends: 0 at the first end, 1 at the second.
    pub(super) fn at(&self, value: f64) -> f64 {
        (value - self.range[0]) / (self.range[1] - self.range[0])
    }
}

/// The smallest number that is at least `step` and is 1, 2 or 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let decade = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|m| m * decade)
        .find(|s| *s >= step * (1.0 - 1e-9))
        .unwrap_or(10.0 * decade)
}

fn written(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let is_zero = text.chars().all(|c| c == '0' || c == '.');
    let sign = if value < 0.0 && !is_zero { "\u{2212}" } else { "" };
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    format!("{sign}{}{rest}", thousands(whole))
}

/// A power of ten; the part after `^` is drawn raised.
pub(super) fn power_of_ten(exponent: i32) -> String {
    match exponent {
        0 => "1".to_owned(),
        1 => "10".to_owned(),
        _ => format!("10^{exponent}").replace('-', "\u{2212}"),
    }
}

/// `30000` as `30,000`.
pub(super) fn thousands(digits: &str) -> String {
    let n = digits.len();
    digits
        .char_indices()
        .flat_map(|(i, c)| (i > 0 && (n - i).is_multiple_of(3)).then_some(',').into_iter().chain([c]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let ticks = |range, unit| -> Vec<String> {
            Axis::round(range, 5, unit).ticks.into_iter().map(|t| t.1).collect()
        };
        assert_eq!(ticks([0.0, 200.0], 1.0), ["0", "50", "100", "150", "200"]);
        assert_eq!(ticks([-12.0, 156.0], 1.0), ["0", "50", "100", "150"]);
        assert_eq!(ticks([1.3, 1.31], 1.0), ["1.300", "1.302", "1.304", "1.306", "1.308", "1.310"]);
        assert_eq!(ticks([0.0, 6.2e-4], 1e-4), ["0", "2", "4", "6"]);
        assert_eq!(ticks([-1.0, 1.0], 1.0), ["\u{2212}1.0", "\u{2212}0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(ticks([0.0, 60_000.0], 1.0), ["0", "20,000", "40,000", "60,000"]);
        assert_eq!(
            ticks([-4_000.0, 4_000.0], 1.0),
            ["\u{2212}4,000", "\u{2212}2,000", "0", "2,000", "4,000"]
        );
    }

    #[test]
    fn a_range_around_one_round_number_has_two_ticks() {
        let of = |range| Axis::round(range, 3, 1.0).ticks.into_iter().map(|t| t.0).collect::<Vec<_>>();
        assert_eq!(of([165.0, 235.0]), [180.0, 200.0, 220.0]);
        assert_eq!(of([235.0, 165.0]), [180.0, 200.0, 220.0]);
        assert_eq!(of([0.0, 100.0]), [0.0, 50.0, 100.0]);
        for i in 0..1000 {
            let low = f64::from(i) * 0.37;
            assert!(of([low, low + 1.0 + f64::from(i % 7) * 13.0]).len() >= 2, "{i}");
        }
    }

    #[test]
    fn decades_are_thinned_to_fit() {
        let every =
            |range, most| -> Vec<f64> { Axis::decades(range, most).ticks.into_iter().map(|t| t.0).collect() };
        assert_eq!(every([-3.5, 0.5], 8), [-3.0, -2.0, -1.0, 0.0]);
        assert_eq!(every([-12.2, 0.1], 7), [-12.0, -10.0, -8.0, -6.0, -4.0, -2.0, 0.0]);
        assert_eq!([-12, 0, 1, 5].map(power_of_ten), ["10^\u{2212}12", "1", "10", "10^5"]);
    }
}
