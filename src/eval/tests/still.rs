//! Flows that do not move, in drawn units: their densities are normal densities in closed form.

use crate::cnf::Cnf;
use crate::cnf::config::{Flow, ModelConfig};
use crate::data::{Rounding, Rows};
use crate::eval::measure::Sampler;
use crate::eval::{EvalError, FAR, Fitted, Frames, PointsFrame, check_tolerances};
use crate::nn::{Activation, AnyVelocityField, Mlp};
use crate::ode::tests::draw::{Draw, num_cases};
use crate::tensor::{Key, Tree};
use crate::{Error, ode::ConfigError};
use std::f64::consts::TAU;

/// A flow in `dim` dimensions that does not move.
pub(in crate::eval) fn still(dim: usize) -> Flow {
    let field: AnyVelocityField = Mlp::new([dim, dim], Activation::Tanh, &Key::new(0)).into();
    let flow = ModelConfig::of(&Cnf::new(field).fixed_steps(1)).build(&Key::new(0)).unwrap();
    flow.map_leaves(|leaf| leaf * 0.0)
}

/// The log-density of the standard normal.
pub(super) fn log_normal(z: &[f64]) -> f64 {
    z.iter().map(|z| -0.5 * z * z - 0.5 * TAU.ln()).sum()
}

/// A standard normal number, by the method of Box and Muller.
pub(super) fn normal(draw: &mut Draw) -> f64 {
    (-2.0 * (1.0 - draw.unit()).ln()).sqrt() * (TAU * draw.unit()).cos()
}

/// `ln(sum exp(x) / n)`, by pairs.
pub(super) fn log_mean_exp(all: &[f64]) -> f64 {
    let add = |a: f64, b: f64| {
        let (low, high) = (a.min(b), a.max(b));
        if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
    };
    all.iter().copied().fold(f64::NEG_INFINITY, add) - (all.len() as f64).ln()
}

/// Rows of `case` from one flat list.
fn table(case: &Case, rows: &[f64]) -> Rows {
    Rows::from_flat(rows.to_vec(), case.dim)
}

/// Points in `dim` columns: means and standard deviations in their units, and L of `x = L^-1 (p - mean) / std`.
struct Case {
    dim: usize,
    mean: Vec<f64>,
    std: Vec<f64>,
    /// Row by row; its rows have the length 1.
    factor: Vec<Vec<f64>>,
    fitted: Fitted,
}

impl Case {
    /// Standard deviations of 1e-290 to 1e290, means of up to 1,000 of them, and a factor in half of the cases.
    fn draw(draw: &mut Draw, dim: usize) -> Case {
        let std: Vec<f64> = (0..dim).map(|_| draw.decade(-290.0, 290.0)).collect();
        Case::with_std(draw, std)
    }

    fn with_std(draw: &mut Draw, std: Vec<f64>) -> Case {
        let dim = std.len();
        let mean: Vec<f64> = std.iter().map(|std| std * draw.uniform(-1e3, 1e3)).collect();
        let is_plain = draw.coin();
        let factor: Vec<Vec<f64>> = (0..dim)
            .map(|a| {
                let entry = |b: usize, draw: &mut Draw| match () {
                    () if b == a => draw.uniform(0.3, 1.0),
                    () if b > a || is_plain => 0.0,
                    () => draw.uniform(-1.0, 1.0),
                };
                let row: Vec<f64> = (0..dim).map(|b| entry(b, draw)).collect();
                let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
                row.into_iter().map(|x| x / length).collect()
            })
            .collect();
        let frame = PointsFrame {
            name: "drawn".to_owned(),
            columns: (1..=dim).map(|a| format!("x{a}")).collect(),
            mean: mean.clone(),
            std: std.clone(),
            factor: if is_plain { Vec::new() } else { factor.concat() },
            entropy_nats: None,
            fingerprint: String::new(),
            steps: Vec::new(),
            num_dropped: None,
            label_column: None,
            class_names: Vec::new(),
        };
        let fitted = Fitted::new(still(dim), &Frames { points: Some(frame), ..Frames::default() }, None);
        Case { dim, mean, std, factor, fitted }
    }

    fn with_tolerance(mut self, tolerance: f64) -> Case {
        (self.fitted.settings.rtol, self.fitted.settings.atol) = (Some(tolerance), Some(tolerance));
        self
    }

    fn place(&self, z: &[f64]) -> Vec<f64> {
        let along = |a: usize| (0..self.dim).map(|b| self.factor[a][b] * z[b]).sum::<f64>();
        (0..self.dim).map(|a| self.mean[a] + self.std[a] * along(a)).collect()
    }

    /// The log-density at `place(z)`, in the units of the data.
    fn log_prob(&self, z: &[f64]) -> f64 {
        log_normal(z) - (0..self.dim).map(|a| self.std[a].ln() + self.factor[a][a].ln()).sum::<f64>()
    }

    fn rows(&self, n: usize, draw: &mut Draw) -> (Vec<Vec<f64>>, Vec<f64>) {
        let z: Vec<Vec<f64>> = (0..n).map(|_| (0..self.dim).map(|_| 1.5 * normal(draw)).collect()).collect();
        let rows = z.iter().flat_map(|z| self.place(z)).collect();
        (z, rows)
    }
}

/// Tables of 1 to 5 columns and 1 to 2,100 rows. In half of the cases, a few rows are not finite or 101 to 1e200 standard
/// deviations away.
#[test]
fn log_densities_are_those_of_the_normal_density_in_any_units() {
    let (mut draw, mut drawn) = (Draw(11), [0; 4]);
    for i in 0..num_cases(40) {
        let n = draw.one(&[1, 2, 64, 65, 1_024, 1_025, 2_100]);
        let dim = 1 + draw.below(5);
        let case = Case::draw(&mut draw, dim).with_tolerance(1e-4);
        let (z, mut rows) = case.rows(n, &mut draw);
        let parts: Vec<Vec<f64>> =
            case.fitted.log_prob_parts(table(&case, &rows)).unwrap().map(Result::unwrap).collect();
        assert_eq!(parts.concat().len(), n);
        for (z, found) in z.iter().zip(parts.concat()) {
            let (exact, size) = (case.log_prob(z), z.iter().map(|z| z * z).sum::<f64>());
            assert!((found - exact).abs() < 3e-6 * (3.0 + size), "case {i}: {z:?} {found} {exact}");
        }
        drawn[usize::from(n > 1_024)] += 1;
        if draw.coin() {
            continue;
        }
        let mut bad: Vec<usize> = (0..3).map(|_| draw.below(n)).collect();
        for &row in &bad {
            let far = draw.decade(2.02, 200.0).min(1e300 / case.std[0]);
            let value = draw.one(&[f64::NAN, f64::INFINITY, case.mean[0] + case.std[0] * far]);
            rows[row * dim] = value;
        }
        bad.sort_unstable();
        match case.fitted.log_prob_parts(table(&case, &rows)).err() {
            Some(Error::Eval(EvalError::Point { row, place, reason, .. })) => {
                let is_finite = rows[row * dim].is_finite();
                assert_eq!((row, place), (bad[0], format!("point {}", bad[0] + 1)), "case {i}");
                assert_eq!(reason.contains("standard deviations"), is_finite, "case {i}: {reason}");
                drawn[2 + usize::from(is_finite)] += 1;
            }
            other => panic!("case {i}: {other:?}, rows {bad:?} are farther than {FAR} or not finite"),
        }
    }
    assert!(drawn.iter().all(|&count| count > 3), "{drawn:?}");
}

/// Tables of 1 to 3 columns with steps of 0 to 0.5 standard deviations in each column, and 1 to 6 draws per row.
#[test]
fn log_densities_over_the_rounding_are_means_over_the_same_noise() {
    let (mut draw, mut drawn) = (Draw(12), [0; 2]);
    for i in 0..num_cases(12) {
        let (dim, n, count, seed) =
            (1 + draw.below(3), 1 + draw.below(1_100), 1 + draw.below(6), draw.bits());
        let std = (0..dim).map(|_| draw.decade(-3.0, 3.0)).collect();
        let mut case = Case::with_std(&mut draw, std).with_tolerance(1e-4);
        let step = |std: &f64| if draw.coin() { 0.0 } else { std * draw.uniform(0.0, 0.5) };
        let steps: Vec<f64> = case.std.iter().map(step).collect();
        case.fitted.frames.points.as_mut().unwrap().steps.clone_from(&steps);
        let (_, rows) = case.rows(n, &mut draw);
        (case.fitted.settings.noise_draws, case.fitted.settings.noise_seed) = (Some(count), seed);
        let parts = case.fitted.log_prob_parts(table(&case, &rows)).unwrap();
        let found = parts.map(Result::unwrap).collect::<Vec<_>>().concat();
        let rounding = Rounding::with_steps(steps.clone());
        for (row, found) in found.iter().enumerate() {
            let of_draw = |k: usize| {
                let mut noisy = rows[row * dim..(row + 1) * dim].to_vec();
                rounding.add_noise(&mut noisy, seed, (row * count + k) as u64);
                // Solves of L z = (p - mean) / std, row by row.
                let mut z = vec![0.0; dim];
                for a in 0..dim {
                    let rest: f64 = (0..a).map(|b| case.factor[a][b] * z[b]).sum();
                    z[a] = ((noisy[a] - case.mean[a]) / case.std[a] - rest) / case.factor[a][a];
                }
                case.log_prob(&z)
            };
            let exact = log_mean_exp(&(0..count).map(of_draw).collect::<Vec<_>>());
            assert!((found - exact).abs() < 2e-4, "case {i}, row {row}: {found} {exact}");
        }
        drawn[usize::from(steps.iter().any(|&step| step > 0.0) && count > 1)] += 1;
    }
    assert!(drawn.iter().all(|&count| count > 0), "{drawn:?}");
}

/// Standard deviations of which the largest 64-bit number is 3.3 to 4.3, so that about every second part of 4,096 samples
/// has one beyond it.
#[test]
fn samples_beyond_the_range_of_numbers_are_named_by_their_own_number() {
    let (mut draw, mut drawn) = (Draw(13), [0; 3]);
    for i in 0..num_cases(12) {
        let (dim, n, key) = (1 + draw.below(3), 1 + draw.below(12_000), Key::new(draw.bits()));
        let std = (0..dim).map(|_| f64::MAX / draw.uniform(3.3, 4.3)).collect();
        let mut case = Case::with_std(&mut draw, std);
        let frame = case.fitted.frames.points.as_mut().unwrap();
        (frame.mean, frame.factor) = (vec![0.0; dim], Vec::new());
        let (mut numbers, mut after, mut firsts) = (1.., false, Vec::new());
        let standard = Sampler::with_tolerances((1e-4, 1e-4)).draw(&case.fitted.flow, n, &key);
        for (part, found) in standard.zip(case.fitted.sample_parts(n, &key).unwrap()) {
            let rows: Vec<Vec<f64>> = part
                .unwrap()
                .chunks(dim)
                .map(|x| x.iter().zip(&case.std).map(|(x, std)| x * std).collect())
                .collect();
            assert!(!firsts.contains(&rows[0]), "case {i}: two parts are equal");
            firsts.push(rows[0].clone());
            let of_part: Vec<(usize, &Vec<f64>)> = numbers.by_ref().zip(&rows).collect();
            let first = of_part.iter().find(|(_, row)| row.iter().any(|x| x.is_infinite()));
            match (first, found) {
                (None, Ok(found)) => assert_eq!(found.values(), rows.concat(), "case {i}"),
                (Some((number, _)), Err(Error::Eval(EvalError::Overflow { row, .. }))) => {
                    assert_eq!(row, *number, "case {i}, {n} samples");
                    drawn[1 + usize::from(after)] += 1;
                    after = true;
                }
                (first, found) => panic!("case {i}: {first:?} {found:?}"),
            }
            drawn[0] += usize::from(first.is_none());
        }
    }
    assert!(drawn.iter().all(|&count| count > 2), "{drawn:?}");
}

/// The bounds of tolerances and numbers beside them.
#[test]
fn tolerances_out_of_range_are_refused_as_by_the_solver() {
    let below_1 = 1.0 - f64::EPSILON;
    let all = [f64::NAN, f64::INFINITY, -f64::INFINITY, -1e-9, 0.0, 1e-300, 1e-6, below_1, 1.0, 1e9];
    let mut case = Case::with_std(&mut Draw(14), vec![1.0, 2.0]);
    for (rtol, atol) in all.into_iter().flat_map(|rtol| all.map(|atol| (rtol, atol))) {
        let is_fine = [0.0, 1e-300, 1e-6, below_1].contains(&rtol)
            && [0.0, 1e-300, 1e-6, below_1, 1.0, 1e9].contains(&atol)
            && (rtol, atol) != (0.0, 0.0);
        let refused = |found: Result<(), Error>| match found {
            Ok(()) => false,
            Err(Error::Config(e)) => {
                assert_eq!(e.to_string(), ConfigError::Tolerance { rtol, atol }.to_string());
                true
            }
            Err(e) => panic!("{e}"),
        };
        assert_eq!(refused(check_tolerances(rtol, atol)), !is_fine, "{rtol} {atol}");
        (case.fitted.settings.rtol, case.fitted.settings.atol) = (Some(rtol), Some(atol));
        assert_eq!(refused(case.fitted.log_prob_parts(table(&case, &[])).map(drop)), !is_fine);
    }
}

/// Tables of 2, 4 or 6 columns: the p-value of a row is `exp(-h) sum h^k / k!` over k below half of the columns, for half
/// of its squared distance h.
#[test]
fn anomaly_scores_are_those_of_the_chi_squared_distribution_in_any_units() {
    let mut draw = Draw(15);
    for i in 0..num_cases(6) {
        let (dim, n) = (draw.one(&[2, 4, 6]), 1 + draw.below(100));
        let case = Case::draw(&mut draw, dim).with_tolerance(1e-4);
        let (z, rows) = case.rows(n, &mut draw);
        let key = Key::new(draw.bits());
        let scores = case.fitted.anomaly_scores(table(&case, &rows), 1_500, &key).unwrap();
        assert_eq!(scores.len(), n);
        for (z, score) in z.iter().zip(scores) {
            let half = 0.5 * z.iter().map(|z| z * z).sum::<f64>();
            let terms = (1..dim / 2).scan(1.0, |term, k| {
                *term *= half / k as f64;
                Some(*term)
            });
            let exact = (-half).exp() * (1.0 + terms.sum::<f64>());
            // Four standard errors, and the error of a probability that no sample shows.
            let error = 4.0 * (exact * (1.0 - exact) / 1_500.0).sqrt() + 3e-3;
            assert!((score.p_value - exact).abs() < error, "case {i}: {score:?} {exact}");
            assert!((score.z_squared - 2.0 * half).abs() < 1e-4 * (1.0 + half), "case {i}: {score:?} {half}");
            let off = score.log_prob - case.log_prob(z);
            assert!(off.abs() < 1e-5 * (1.0 + half), "case {i}: {score:?} {off}");
        }
    }
}

/// 2 to 50 numbers in units of 1e-100 to 1e100: 600 places from a tenth of the extent before the least to a tenth after the
/// largest, and the normal density there.
#[cfg(feature = "plot")]
#[test]
fn the_density_over_a_line_is_in_the_units_of_the_data() {
    use crate::data::Points;
    use crate::eval::figures::{on_line, over_line};
    let (mut draw, flow) = (Draw(16), still(1));
    for i in 0..num_cases(8) {
        let (unit, shift) = (draw.decade(-100.0, 100.0), draw.uniform(-100.0, 100.0));
        let values: Vec<[f64; 1]> =
            (0..2 + draw.below(49)).map(|_| [unit * (shift + normal(&mut draw))]).collect();
        let points = Points::from_rows(values.clone()).unwrap();
        let line = on_line(&points);
        let mut sorted = values.concat();
        sorted.sort_by(f64::total_cmp);
        let (first, extent) = (sorted[0], sorted[sorted.len() - 1] - sorted[0]);
        for (k, found) in line.iter().enumerate() {
            let exact = first + extent * (1.2 * k as f64 / 599.0 - 0.1);
            assert!((found - exact).abs() < 1e-12 * (extent + 100.0 * unit), "case {i}: {found} {exact}");
        }
        let (mean, std) = (points.standard.mean[0], points.standard.std[0]);
        for ([x, p], place) in over_line(&flow, &points.standard, line.clone()).unwrap().into_iter().zip(line)
        {
            let exact = log_normal(&[(x - mean) / std]) - std.ln();
            assert!(x == place && (p.ln() - exact).abs() < 1e-4, "case {i}: {p} at {x}, {exact}");
        }
    }
}
