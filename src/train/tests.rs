//! A run as a program of the library sees it.

use super::evaluate::{LogDensity, crop, over_domain};
use super::*;
use crate::cnf::{Cnf, StandardNormal};
use crate::data::ImageDensity;
use crate::error::Error;
use crate::nn::{ConcatSquash, DriftNet};
use crate::ode::Outcome;
use crate::tensor::{Key, Tensor, Tree};

/// Two dark boxes on 16 x 12 pixels.
fn image() -> ImageDensity {
    let dark = |x: u32, y: u32| match (x, y) {
        (2..6, 3..9) => 0,
        (8..14, 2..5) => 80,
        _ => 255,
    };
    let picture = image::GrayImage::from_fn(16, 12, |x, y| image::Luma([dark(x, y)]));
    let mut png = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut png, image::ImageFormat::Png).unwrap();
    ImageDensity::from_bytes(png.get_ref(), "boxes").unwrap()
}

fn flow(seed: u64) -> Cnf<ConcatSquash> {
    Cnf::new(ConcatSquash::new(2, [8], &Key::new(seed)), StandardNormal::new(2)).fixed_steps(4)
}

fn small() -> Recipe {
    let mut recipe = Recipe::new(&Options { updates: Some(30), ..Options::default() });
    recipe.phases.iter_mut().for_each(|phase| phase.batch = 64);
    recipe
}

#[test]
fn draws_follow_the_density_of_the_image() {
    for data in [image(), image().with_rule(crate::data::Rule::Documented).unwrap()] {
        let batch = Tables::new(&data).draw(40_000, &Key::new(5));
        let (points, weight) = (batch.points.to_vec(), batch.weight.to_vec());
        let total: f64 = weight.iter().sum();
        assert!((total / 40_000.0 - data.mean_weight).abs() < 0.01, "{total}");
        for axis in 0..2 {
            let x = |i: usize| points[2 * i + axis];
            let mean = (0..40_000).map(|i| weight[i] * x(i)).sum::<f64>() / total;
            let exact: f64 = data.positions.iter().zip(&data.mass).map(|(p, m)| f64::from(p[axis]) * m).sum();
            assert!((mean - exact).abs() < 0.02, "axis {axis}: {mean} {exact}");
            let square = (0..40_000).map(|i| weight[i] * x(i).powi(2)).sum::<f64>() / total;
            let jitter = data.jitter_sd[axis].powi(2);
            let pixels = data.positions.iter().zip(&data.mass).map(|(p, m)| f64::from(p[axis]).powi(2) * m);
            let exact = pixels.sum::<f64>() + jitter;
            assert!((square / exact - 1.0).abs() < 0.03, "axis {axis}: {square} {exact}");
        }
    }
}

#[test]
fn the_mass_of_any_flow_is_one_and_a_crop_is_the_image() {
    let frame = ImageFrame::of(&image());
    let flow = ModelConfig::of(&Density::new(flow(3), image()).flow).build(&Key::new(3)).unwrap();
    let density = LogDensity::new(1e-4, 1e-4);
    let (cells, values, mass) = over_domain(&density, &flow, &frame, 2).unwrap();
    assert!((mass.total - 1.0).abs() < 1e-3 && mass.outer < 1e-5, "{mass:?}");
    let (inside, rows, cols) = crop(&frame, &cells, &values, mass.margin);
    assert_eq!((rows, cols), (24, 32));
    let (again, centre) = (frame.square_cells(0, 2), 12 * 32 + 16);
    let found = density.eval(&flow, &again.centres[centre..=centre]).unwrap()[0];
    assert!((f64::from(found) + frame.log_jacobian() - inside[centre].ln()).abs() < 1e-3);
}

#[test]
fn a_run_of_the_library_resumes_by_itself_and_opens_again() {
    let folder = tempfile::tempdir().unwrap();
    let key = Key::new(4);
    let mut seen = Vec::new();
    let run = |folder: &std::path::Path| Density::new(flow(0), image()).recipe(small()).run_folder(folder);
    let learned = run(folder.path()).on_update(|p| seen.push(p.update)).run(&key).unwrap();
    assert_eq!(seen, (1..=30).collect::<Vec<_>>());
    let report = learned.report.unwrap();
    assert!(report.gap_nats > 0.0 && report.phases.iter().all(|phase| phase.traces == 1), "{report:?}");

    let model = std::fs::read(folder.path().join(MODEL_FILE)).unwrap();
    let again = run(folder.path()).run(&key).unwrap();
    assert_eq!(again.report.unwrap().resumed_from_update, Some(30));
    assert_eq!(std::fs::read(folder.path().join(MODEL_FILE)).unwrap(), model);
    let opened = Cnf::<DriftNet>::open(folder.path()).unwrap();
    let leaves = |flow: &Flow| flow.leaves().iter().map(Tensor::to_vec).collect::<Vec<_>>();
    assert_eq!(leaves(&opened), leaves(&learned.flow));

    let other = run(folder.path()).updates(31).run(&key).unwrap_err().to_string();
    assert!(other.contains("recipe.phases.0.updates"), "{other}");
    let other = run(folder.path()).run(&Key::new(9)).unwrap_err().to_string();
    assert!(other.contains("key"), "{other}");
}

#[test]
fn numbers_that_turn_nan_end_a_run_with_where_and_leave_the_checkpoint() {
    let mut flow = flow(0);
    flow.blocks[0].layers[0].linear.weight = Tensor::full(crate::array::DType::F32, [2, 8], f64::NAN);
    let mut recipe = small();
    recipe.phases.remove(0);
    let folder = tempfile::tempdir().unwrap();
    let run = |recipe: Recipe| Density::new(flow.clone(), image()).recipe(recipe).run_folder(folder.path());
    let failed = run(recipe).run(&Key::new(0)).unwrap_err();
    let outcome = match &failed {
        Error::Train(TrainError::Diverged { outcome, update: 1, .. }) => outcome,
        other => panic!("{other}"),
    };
    assert!(matches!(outcome, Outcome::NonFinite { .. }));
    let message = failed.to_string();
    assert!(
        message.contains("from t=1") && message.contains("at update 1 (maximum_likelihood)"),
        "{message}"
    );
    assert_eq!(Learned::open(folder.path()).unwrap().update, 0);

    let other = tempfile::tempdir().unwrap();
    let failed =
        Density::new(flow.clone(), image()).recipe(small()).run_folder(other.path()).run(&Key::new(0));
    let message = failed.unwrap_err().to_string();
    assert!(message.contains("the loss is NaN at update 1 (flow_matching)"), "{message}");
}
