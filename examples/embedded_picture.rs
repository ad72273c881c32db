//! Draws the image that ships with the crate, and prints how hard its density is to learn.
//!
//! `cargo run --example embedded_picture -- [PATH]` writes `assets/flowlines.png` by default. The image shows three
//! trajectories of the vector field `y' = A y`, `A = [[g, -w], [w, g]]`, an outward spiral: in closed form
//! `r(t) = r0 exp(g t)`, `angle(t) = angle0 + w t`. Each is a stroke that swells and tapers, so the image has broad dark
//! shapes (easy) and lines of one pixel (fine structure). It was chosen among some twenty drawings: arms of one vortex are
//! learned in a minute or two. With parallel lines or several vortices of the same fineness, a flow of 17,000 weights
//! remains two to eight times as far from the entropy after the same time.
use flowline::data::ImageDensity;
use flowline::io::raster::{Channels, Depth, encode_png};
use std::f64::consts::TAU;

/// Pixels along a side.
const SIDE: usize = 144;
/// Samples along a side of a pixel.
const SAMPLES: usize = 4;
const CENTER: f64 = SIDE as f64 / 2.0;
/// Distance of an arm's ends from the center, in pixels.
const RADII: [f64; 2] = [4.5, 65.5];
/// Turns of an arm between its ends.
const TURNS: f64 = 0.78;
/// Width of an arm at its ends, and its increase in the middle, in pixels.
const WIDTHS: [f64; 2] = [1.0, 5.5];
const ARMS: usize = 3;
/// Discs per arm.
const STAMPS: usize = 1200;

/// Darkness of the samples, row-major.
struct Canvas {
    dark: Vec<f64>,
}

impl Canvas {
    const SIDE: usize = SIDE * SAMPLES;

    /// A disc of diameter `width` around `center` (pixels), with an edge one sample wide.
    fn disc(&mut self, center: [f64; 2], width: f64) {
        let reach = 0.5 * width + 1.0;
        let range = |c: f64| {
            let scale = |x: f64| (x * SAMPLES as f64).clamp(0.0, Self::SIDE as f64) as usize;
            scale(c - reach)..scale(c + reach)
        };
        let at = |i: usize| (i as f64 + 0.5) / SAMPLES as f64;
        for row in range(center[1]) {
            for col in range(center[0]) {
                let distance = (at(col) - center[0]).hypot(at(row) - center[1]);
                let cover = ((0.5 * width - distance) * SAMPLES as f64 + 0.5).clamp(0.0, 1.0);
                let sample = &mut self.dark[row * Self::SIDE + col];
                *sample = sample.max(cover);
            }
        }
    }

    /// One trajectory from `angle0` (turns) outward.
    fn arm(&mut self, angle0: f64) {
        for i in 0..=STAMPS {
            let t = i as f64 / STAMPS as f64;
            let r = RADII[0] * (RADII[1] / RADII[0]).powf(t);
            let angle = TAU * (angle0 + TURNS * t);
            let width = WIDTHS[0] + WIDTHS[1] * (0.5 * TAU * t).sin().max(0.0).powf(0.8);
            self.disc([CENTER + r * angle.cos(), CENTER + r * angle.sin()], width);
        }
    }

    /// Mean darkness of each pixel's samples as a gray level, row-major.
    fn grays(&self) -> Vec<u8> {
        let gray = |pixel: usize| {
            let (y, x) = (pixel / SIDE, pixel % SIDE);
            let samples = (0..SAMPLES * SAMPLES).map(|i| {
                let (row, col) = (y * SAMPLES + i / SAMPLES, x * SAMPLES + i % SAMPLES);
                self.dark[row * Self::SIDE + col]
            });
            let dark = samples.sum::<f64>() / (SAMPLES * SAMPLES) as f64;
            (255.0 * (1.0 - dark)).round() as u8
        };
        (0..SIDE * SIDE).map(gray).collect()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "assets/flowlines.png".to_owned());
    let mut canvas = Canvas { dark: vec![0.0; Canvas::SIDE * Canvas::SIDE] };
    for arm in 0..ARMS {
        canvas.arm(0.03 + arm as f64 / ARMS as f64);
    }
    let png = encode_png([SIDE as u32; 2], Channels::Gray, Depth::Eight, &canvas.grays())?;
    std::fs::write(&path, png)?;
    let density = ImageDensity::open(&path)?;
    println!("{path}: {} x {} pixels, {} of them dark", density.width, density.height, density.support);
    println!("entropy {:.4} nats, best Gaussian {:.4} nats", density.entropy_nats(), density.gaussian_nats());
    println!("blurring it by 1.5 pixels costs {:.4} nats", density.blur_cost_nats(1.5));
    Ok(())
}
