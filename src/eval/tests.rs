//! The total probability of a flow over the plane, and its KL divergence from a known density.

mod classes;
mod decorrelated;
mod domain;
mod frame;
mod interface;
mod scores;
pub(super) mod still;

use super::measure::score;
use super::*;
use crate::cnf::Cnf;
use crate::cnf::config::{Flow, ModelConfig};
use crate::data::tests::boxes as image;
use crate::data::{Estimate, Points, Standardizer, ToyDensity};
use crate::nn::{AnyVelocityField, ConcatSquash};
use crate::tensor::{Key, Tree};
use crate::time_source::TimeSource;

/// An untrained flow, close enough to its base that its density covers the image.
fn flow() -> Flow {
    let block: AnyVelocityField = ConcatSquash::new(2, [8], &Key::new(0)).into();
    let flow = Cnf::new(block).fixed_steps(4);
    ModelConfig::of(&flow).build(&Key::new(3)).unwrap()
}

#[test]
fn the_mass_of_any_flow_is_one_and_a_crop_is_the_image() {
    let frame = ImageFrame::of(&image());
    let flow = flow();
    let density = LogDensity::new(1e-4, 1e-4);
    let sampler = Sampler::of_rows(density.rows_per_call());
    let plane = OnPlane { density: &density, sampler: &sampler, flow: &flow, frame: &frame, image: None };
    let ((inside, rows, cols), mass) = plane.over_domain(32, &Deadline::none(), &mut |_| ()).unwrap();
    assert!((mass.total - 1.0).abs() < 1e-3 && mass.outer < 1e-5, "{mass:?}");
    assert_eq!((rows, cols), (24, 32));
    let ((again, _), center) = (frame.cells_around(32, 0), 12 * 32 + 16);
    let found = density.eval(&flow, &again.centers[center..=center]).unwrap()[0];
    assert!((f64::from(found) + frame.log_jacobian() - inside[center].ln()).abs() < 1e-3);
    // Out of time from the start: the result is coarse but complete.
    let watch = Stopwatch::new(TimeSource::set());
    let ((coarse, rows, cols), mass) = plane.over_domain(96, &watch.deadline(0.0, 0.0), &mut |_| ()).unwrap();
    assert_eq!((coarse.len(), rows, cols), (36 * 48, 36, 48));
    assert!((mass.total - 1.0).abs() < 5e-2, "{mass:?}");
    // On a slow machine it is coarser.
    let slow = Stopwatch::new(TimeSource::on(|now, _, units| now + 1e-3 * units));
    slow.run(Work::Score, 64.0, || Ok::<_, ()>(())).unwrap();
    let density = LogDensity::for_points(64, 1e-4, 1e-4);
    let plane = OnPlane { density: &density, ..plane };
    let ((coarse, rows, cols), mass) = plane.over_domain(96, &slow.deadline(5.0, 7.0), &mut |_| ()).unwrap();
    assert!(coarse.len() == rows * cols && (16..48).contains(&cols), "{rows} {cols}");
    assert!((mass.total - 1.0).abs() < 0.2, "{mass:?}");
}

#[test]
fn the_gap_over_fresh_points_is_that_of_a_quadrature() {
    for data in [TrainingData::from(ToyDensity::EightGaussians), TrainingData::from(image())] {
        let frame = match &data {
            TrainingData::Image(image) => ImageFrame::of(image),
            TrainingData::Toy(toy) => {
                let points = Points::from_rows(toy.sample(10_000, &mut Key::new(1).rng())).unwrap();
                ImageFrame::of_points(&points, &PointsFrame::of(&points, String::new()))
            }
            _ => unreachable!(),
        };
        let standard = Standardizer { mean: frame.mean.to_vec(), std: frame.std.to_vec(), factor: vec![] };
        let (flow, density) = (flow(), LogDensity::for_measures(1e-5, 1e-5));
        let mut parts = 0;
        let found: crate::Result<Estimate> = Estimate::until(0.01, 1 << 16, |part| {
            parts += 1;
            let rows = data.fresh(&standard, 4096, 5, part).unwrap();
            Ok(score(&density, &flow, (&rows, usize::MAX), 2, &Deadline::none(), |_| ())?.gap)
        });
        let found = found.unwrap();
        assert!(found.stderr.unwrap() <= 0.01 && found.count == 4096 * parts, "{found:?}");
        let cells = frame.cells(0.3 * frame.side() as f64, 300, 300);
        let log_q = density.eval(&flow, &cells.centers).unwrap();
        let log_p: Vec<f64> = match &data {
            TrainingData::Image(image) => image.log_probs(&cells.centers),
            TrainingData::Toy(toy) => {
                let density = toy.density();
                let at = |&z: &[f32; 2]| density.log_prob(frame.to_pixels(z.map(f64::from)));
                cells.centers.iter().map(|z| at(z) - frame.log_jacobian()).collect()
            }
            _ => unreachable!(),
        };
        let area = cells.area * frame.log_jacobian().exp();
        let terms = log_p.iter().zip(&log_q).filter(|(p, _)| p.is_finite());
        let exact: f64 = terms.map(|(p, &q)| p.exp() * (p - f64::from(q)) * area).sum();
        let off = found.plus(-exact);
        assert!(off.mean.abs() < 3.0 * off.stderr.unwrap(), "{}: {found} {exact}", data.name());
        // If the KL divergence were near 0, the comparison would prove little.
        assert!(exact > 0.1, "{exact}");
    }
}

#[test]
fn a_score_leaves_out_rows_whose_solves_end_early_and_counts_them() {
    let points: Vec<f32> =
        [[0.1, 0.2], [90.0, 0.0], [-0.3, 0.1], [0.0, -80.0], [1.5, -2.0], [60.0, 60.0]].concat();
    let rows = |points: &[f32]| HeldOutRows {
        points: points.to_vec(),
        log_p: None,
        places: Vec::new(),
        labels: Vec::new(),
    };
    let density = LogDensity::for_measures(1e-6, 1e-6);
    let scored = |flow: &Flow, points: &[f32]| {
        score(&density, flow, (&rows(points), usize::MAX), 2, &Deadline::none(), |_| ())
    };
    let block: AnyVelocityField = ConcatSquash::new(2, [8], &Key::new(0)).into();
    let mut partly = 0;
    for max_steps in 2..60 {
        let flow =
            ModelConfig::of(&Cnf::new(block.clone()).max_steps(max_steps)).build(&Key::new(3)).unwrap();
        // Larger weights, so that the rows need different numbers of steps.
        let flow = flow.map_leaves(|leaf| leaf * 3.0);
        let alone: Vec<_> = points.chunks(2).map(|row| scored(&flow, row).unwrap()).collect();
        let lost: Vec<usize> = (0..6).filter(|&i| alone[i].lost.is_some()).collect();
        if lost.len() > 4 {
            assert!(scored(&flow, &points).is_err() || lost.len() < 6);
            continue;
        }
        let found = scored(&flow, &points).unwrap();
        if found.lost.is_none() {
            // The rows of a tile share their steps and the norm of their errors, so together all may be solved.
            continue;
        }
        assert_eq!(found.lost.map(|lost| (lost.count, lost.first)), Some((lost.len(), lost[0])));
        assert_eq!(found.nll.count as usize, 6 - lost.len());
        let kept: Vec<f64> = alone.iter().filter(|one| one.lost.is_none()).map(|one| one.nll.mean).collect();
        let exact = Estimate::of(&kept);
        assert!((found.nll.mean / exact.mean - 1.0).abs() < 1e-4, "{found:?} {exact:?}");
        partly += 1;
    }
    assert!(partly > 0, "no number of steps separates the rows");
}
