//! The mass of a flow over the plane.

use super::measure::LogDensity;
use super::*;
use crate::cnf::config::ModelConfig;
use crate::cnf::{Cnf, StandardNormal};
use crate::data::ImageDensity;
use crate::io::raster::{Channels, Depth, encode_png};
use crate::nn::{ConcatSquash, DriftNet};
use crate::tensor::Key;

/// Two dark boxes on 16 x 12 pixels.
fn image() -> ImageDensity {
    let dark = |x: u32, y: u32| match (x, y) {
        (2..6, 3..9) => 0,
        (8..14, 2..5) => 80,
        _ => 255,
    };
    let greys: Vec<u8> = (0..16 * 12).map(|i| dark(i % 16, i / 16)).collect();
    let png = encode_png([16, 12], Channels::Grey, Depth::Eight, &greys).unwrap();
    ImageDensity::from_bytes(&png, "boxes").unwrap()
}

#[test]
fn the_mass_of_any_flow_is_one_and_a_crop_is_the_image() {
    let frame = ImageFrame::of(&image());
    let block: DriftNet = ConcatSquash::new(2, [8], &Key::new(3)).into();
    let flow = Cnf::new(block, StandardNormal::new(2)).fixed_steps(4);
    let flow = ModelConfig::of(&flow).build(&Key::new(3)).unwrap();
    let density = LogDensity::new(1e-4, 1e-4);
    let plane = OnPlane { density: &density, flow: &flow, frame: &frame };
    let ((inside, rows, cols), mass) = plane.over_domain(32, Deadline::NONE, &mut |_| ()).unwrap();
    assert!((mass.total - 1.0).abs() < 1e-3 && mass.outer < 1e-5, "{mass:?}");
    assert_eq!((rows, cols), (24, 32));
    let ((again, _), centre) = (frame.cells_around(32, 0), 12 * 32 + 16);
    let found = density.eval(&flow, &again.centres[centre..=centre]).unwrap()[0];
    assert!((f64::from(found) + frame.log_jacobian() - inside[centre].ln()).abs() < 1e-3);
    // Out of time from the start: coarse, and whole.
    let late = Deadline(Some(std::time::Instant::now()));
    let ((coarse, rows, cols), mass) = plane.over_domain(96, late, &mut |_| ()).unwrap();
    assert_eq!((coarse.len(), rows, cols), (36 * 48, 36, 48));
    assert!((mass.total - 1.0).abs() < 5e-2, "{mass:?}");
}
