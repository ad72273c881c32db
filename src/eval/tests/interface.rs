//! The interface of a density, on flows whose density is known: rows of any number of columns, invalid rows and settings.
//!
//! The cases are drawn at random. `FLOWLINE_CASES=300` draws more of them.

use super::*;
use crate::data::{ImageDensity, ImageSet, Rows};
use crate::error::Error;
use crate::eval::{Fitted, Frames, ImageFrame, PointsFrame};
use crate::nn::{Activation, Mlp};
use crate::ode::tests::draw::{Draw, num_cases};
use crate::tensor::Tensor;
use std::f64::consts::TAU;
use std::sync::OnceLock;

/// The flow `dx/dt = a x` per coordinate, in the units of points or of an image: `x = mean + std e^a z`.
struct Case {
    fitted: Fitted,
    mean: Vec<f64>,
    /// `std e^a`.
    scale: Vec<f64>,
}

impl Case {
    /// 1 to 60 columns of scales from 1e-3 to 1e3; every fourth case is an image.
    fn new(draw: &mut Draw, is_image: bool) -> Case {
        let most = draw.one(&[3, 60]);
        let dim = if is_image { 2 } else { 1 + draw.below(most) };
        let rates: Vec<f64> = (0..dim).map(|_| draw.uniform(-0.7, 0.7)).collect();
        let mut frames = Frames::default();
        if is_image {
            static FRAME: OnceLock<ImageFrame> = OnceLock::new();
            frames.image = Some(FRAME.get_or_init(|| ImageFrame::of(&ImageDensity::embedded())).clone());
        } else {
            let mean: Vec<f64> = (0..dim).map(|_| draw.uniform(-1e3, 1e3)).collect();
            let std: Vec<f64> = (0..dim).map(|_| draw.decade(-3.0, 3.0)).collect();
            // Two points have the mean and the standard deviation of these.
            let ends = [-1.0, 1.0].map(|sign| (0..dim).map(|i| mean[i] + sign * std[i]).collect::<Vec<_>>());
            frames.points = Some(PointsFrame::of(&Points::from_rows(ends.to_vec()).unwrap(), String::new()));
        }
        let standard = frames.standard(dim);
        let diagonal = (0..dim * dim).map(|i| if i % (dim + 1) == 0 { rates[i / dim] as f32 } else { 0.0 });
        let weight = Tensor::from_vec([dim, dim], diagonal.collect());
        let field: AnyVelocityField = Mlp::new([dim, dim], Activation::Tanh, &Key::new(0)).into();
        let field = field.map_leaves(|leaf| if leaf.rank() == 2 { weight.clone() } else { leaf * 0.0 });
        let scale = standard.std.iter().zip(&rates).map(|(std, rate)| std * f64::from(*rate as f32).exp());
        Case {
            mean: standard.mean.clone(),
            scale: scale.collect(),
            fitted: Fitted::new(Cnf::new(field), &frames, None),
        }
    }

    fn dim(&self) -> usize {
        self.mean.len()
    }

    /// A row of which each coordinate is at most `reach` standard deviations of the flow from the mean.
    fn row(&self, draw: &mut Draw, reach: f64) -> Vec<f64> {
        (0..self.dim()).map(|i| self.mean[i] + self.scale[i] * draw.uniform(-reach, reach)).collect()
    }

    fn log_prob(&self, row: &[f64]) -> f64 {
        let of = |i: usize| {
            let z = (row[i] - self.mean[i]) / self.scale[i];
            -0.5 * z * z - self.scale[i].ln() - 0.5 * TAU.ln()
        };
        (0..self.dim()).map(of).sum()
    }

    fn is_near(&self, rows: &Rows, log_probs: &[f64], tolerance: f64) {
        assert_eq!(rows.len(), log_probs.len());
        for (row, found) in rows.iter().zip(log_probs) {
            let exact = self.log_prob(row);
            // Rows are rounded to f32 in standardized coordinates.
            assert!((found - exact).abs() < tolerance * (10.0 + exact.abs()), "{row:?}: {found} {exact}");
        }
    }
}

fn message<T>(result: crate::error::Result<T>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn rows_of_any_number_of_columns_are_drawn_and_scored_in_their_units() {
    let mut draw = Draw(5);
    let mut seen = [0; 6];
    for i in 0..num_cases(12) {
        let case = Case::new(&mut draw, i % 4 == 3);
        let (d, key) = (case.dim(), Key::new(draw.bits()));
        let most = draw.one(&[3, 50, 5_000]);
        let n = draw.below(most.min(20_000 / d));
        let given = Rows::from((0..n.min(1_100)).map(|_| case.row(&mut draw, 3.0)).collect::<Vec<_>>());
        let found = case.fitted.log_prob(&given).unwrap();
        case.is_near(&given, &found, 2e-5);
        let parts = case.fitted.log_prob_parts(&given).unwrap().map(Result::unwrap).collect::<Vec<_>>();
        assert_eq!(parts.concat(), found);

        let rows = case.fitted.sample(n, &key).unwrap();
        assert_eq!((rows.len(), rows.dim(), rows.columns()), (n, d, case.fitted.columns()));
        let first = draw.below(n + 1);
        let few = case.fitted.sample(first, &key).unwrap();
        assert!(few.values() == &rows.values()[..first * d], "{first} of {n} rows");
        let parts = case.fitted.sample_parts(n, &key).unwrap();
        assert_eq!(parts.map(|part| part.unwrap().into_values()).collect::<Vec<_>>().concat(), rows.values());
        let (pairs, log_probs) = case.fitted.sample_with_log_prob(n, &key).unwrap();
        case.is_near(&pairs, &log_probs, 2e-4);
        let off = |(i, (a, b)): (usize, (&f64, &f64))| (a - b).abs() / case.scale[i % d];
        let off = pairs.values().iter().zip(rows.values()).enumerate().map(off).fold(0.0, f64::max);
        assert!(off < 1e-2, "samples with and without densities: {off}");
        if n > 2_000 {
            let z = |i: usize| (i % d, (rows.values()[i] - case.mean[i % d]) / case.scale[i % d]);
            let square = (0..n * d).map(|i| z(i).1.powi(2)).sum::<f64>() / (n * d) as f64;
            assert!((square - 1.0).abs() < 6.0 * (2.0 / (n * d) as f64).sqrt(), "{square}");
        }
        for (count, is) in seen.iter_mut().zip([n == 0, n == 1, n > 2_000, d == 1, d > 20, i % 4 == 3]) {
            *count += usize::from(is);
        }
    }
    assert!(seen[2..].iter().all(|&count| count > 0), "{seen:?}");
    let case = Case::new(&mut draw, false);
    assert!(case.fitted.log_prob(Vec::<Vec<f64>>::new()).unwrap().is_empty());
    assert!(case.fitted.sample(0, &Key::new(0)).unwrap().is_empty());
    assert_eq!(case.fitted.sample_with_log_prob(0, &Key::new(0)).unwrap().1, Vec::<f64>::new());
}

#[test]
fn rows_that_have_no_density_are_errors_with_their_place_and_numbers() {
    let mut draw = Draw(6);
    let mut seen = [0; 4];
    for _ in 0..num_cases(60) {
        let case = Case::new(&mut draw, false);
        let (d, n) = (case.dim(), 1 + draw.below(20));
        let mut rows: Vec<Vec<f64>> = (0..n).map(|_| case.row(&mut draw, 2.0)).collect();
        let (row, column) = (draw.below(n), draw.below(d));
        let kind = draw.below(4);
        seen[kind] += 1;
        let expected = match kind {
            0 => {
                let other = if d == 1 || draw.coin() { d + 1 + draw.below(5) } else { draw.below(d - 1) + 1 };
                rows.iter_mut().for_each(|row| row.resize(other, 0.0));
                format!("have {other} columns, but the training points have {d}")
            }
            1 if n > 1 => {
                rows[n - 1].push(1.0);
                format!("row {n} has {} coordinates, row 1 has {d}", d + 1)
            }
            2 => {
                rows[row][column] = draw.one(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
                format!("point {} is", row + 1)
            }
            _ => {
                let far = draw.decade(2.1, 6.0);
                rows[row][column] = case.mean[column] + case.scale[column] * 2.1 * far;
                format!("point {} is", row + 1)
            }
        };
        for found in [
            message(case.fitted.log_prob(&rows)),
            message(case.fitted.log_prob_parts(&rows).map(|_| ())),
            message(case.fitted.anomaly_scores(&rows, 10, &Key::new(0))),
        ] {
            assert!(found.contains(&expected), "{expected}: {found}");
        }
    }
    assert!(seen.iter().all(|&count| count > 3), "{seen:?}");
    let case = Case::new(&mut draw, true);
    let found = message(case.fitted.sample_given(&[1.0, 2.0, f64::NAN], 5, &Key::new(0)));
    assert!(found.contains("3 columns, but the training points have 2"), "{found}");
    for row in [[f64::NAN; 2], [1.0, 2.0], [f64::INFINITY, f64::NAN]] {
        let found = message(case.fitted.sample_given(&row, 5, &Key::new(0)));
        assert!(found.contains("of 2 coordinates") && found.contains("NaN"), "{found}");
    }
    let images = ImageSet::from_bytes("bars", vec![0; 4], [1, 2, 1]).unwrap();
    let found = message(case.fitted.log_prob(&images));
    assert!(found.contains("only available for runs trained on a set of images"), "{found}");
}

#[test]
fn settings_hold_for_every_method_and_impossible_ones_are_errors() {
    let mut draw = Draw(7);
    let mut seen = [0; 2];
    for _ in 0..num_cases(20) {
        let mut case = Case::new(&mut draw, true);
        let value = |draw: &mut Draw| {
            let odd = draw.one(&[0.0, -1e-3, f64::NAN, f64::INFINITY]);
            if draw.coin() { Some(odd) } else { Some(draw.decade(-6.0, -1.0)).filter(|_| draw.coin()) }
        };
        let (rtol, atol) = (value(&mut draw), value(&mut draw));
        (case.fitted.settings.rtol, case.fitted.settings.atol) = (rtol, atol);
        let is_fine = |x: f64| x.is_finite() && x >= 0.0;
        let (r, a) = (rtol.unwrap_or(1e-6), atol.unwrap_or(1e-6));
        let is_possible = is_fine(r) && is_fine(a) && r + a > 0.0;
        seen[usize::from(is_possible)] += 1;
        let (key, fitted, row) = (Key::new(1), &case.fitted, [case.row(&mut draw, 1.0)]);
        let results = [
            fitted.log_prob(&row[..]).err(),
            fitted.sample(2, &key).err(),
            fitted.sample_with_log_prob(2, &key).err(),
            fitted.anomaly_scores(&row[..], 2, &key).err(),
            fitted.log_grid(2, 0.0).err(),
        ];
        for found in results {
            match found {
                Some(Error::Config(error)) => assert!(!is_possible, "{rtol:?} {atol:?}: {error}"),
                // With no absolute tolerance, a solve through 0 may end early.
                Some(other) => assert!(is_possible && a < 1e-9, "{rtol:?} {atol:?}: {other}"),
                None => assert!(is_possible, "{rtol:?} {atol:?} is accepted"),
            }
        }
    }
    assert!(seen.iter().all(|&count| count > 3), "{seen:?}");
    let mut case =
        std::iter::repeat_with(|| Case::new(&mut draw, false)).find(|case| case.dim() > 5).unwrap();
    let (key, row) = (Key::new(2), [(); 20].map(|()| case.row(&mut draw, 2.0)));
    let (fine, drawn) = (case.fitted.log_prob(&row[..]).unwrap(), case.fitted.sample(3, &key).unwrap());
    (case.fitted.settings.rtol, case.fitted.settings.atol) = (Some(0.5), Some(0.5));
    assert_ne!(case.fitted.log_prob(&row[..]).unwrap(), fine);
    assert_ne!(case.fitted.sample(3, &key).unwrap(), drawn);
    case.fitted.settings.steps = Some(4);
    assert_ne!(case.fitted.sample(3, &key).unwrap(), drawn);
    let found = message(case.fitted.sample_with_log_prob(3, &key));
    assert!(found.contains("fixed to 4"), "{found}");
    case.fitted.settings.steps = Some(0);
    assert!(message(case.fitted.sample(3, &key)).contains("0 steps"));
    case.fitted.settings.steps = None;
    assert!(message(case.fitted.anomaly_scores(&row[..], 0, &key)).contains("0 draws"));
    case.fitted.settings.class = Some(3);
    for found in [
        message(case.fitted.sample(3, &key)),
        message(case.fitted.sample_with_log_prob(3, &key)),
        message(case.fitted.log_prob(&row[..])),
    ] {
        assert!(found.contains("`class`=3: this run was trained without classes"), "{found}");
    }
}
