//! Draws the work-precision picture of the documentation: `cargo bench --bench work_precision [-- FILE]`.
//!
//! Error at the end against time, for six methods on two problems, each at tolerances half a decade apart. A time
//! is the least of many short batches, taken in turns over all methods and tolerances: the machine may be shared.
//! FILE is `assets/work_precision.png` where none is given.

use flowline::ode::{Method, Ode};
use image::imageops::FilterType;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

/// The methods, from low order to high, each with its colour.
const SERIES: [(Method, &str, RGBColor); 6] = [
    (Method::Bosh3, "Bosh3", RGBColor(150, 152, 160)),
    (Method::Dopri5, "Dopri5", RGBColor(226, 164, 44)),
    (Method::Tsit5, "Tsit5", RGBColor(214, 84, 44)),
    (Method::Vern7, "Vern7", RGBColor(38, 128, 130)),
    (Method::Dop853, "Dop853", RGBColor(66, 112, 190)),
    (Method::Vern9, "Vern9", RGBColor(92, 60, 153)),
];
const INK: RGBColor = RGBColor(38, 40, 48);
const FAINT: RGBColor = RGBColor(150, 152, 160);
const GRID: RGBColor = RGBColor(232, 233, 237);

/// The picture is drawn this much larger and scaled down, which smooths its lines.
const OVERSAMPLING: u32 = 3;
const SIZE: [u32; 2] = [1700, 860];
const FONT: &str = "flowline";
/// Batches of each solve, and the least time of one in seconds.
const ROUNDS: usize = 25;
const BATCH: f64 = 1e-3;

/// Time in milliseconds and error of one method at each tolerance.
type Curve = Vec<[f64; 2]>;

/// A problem's panel.
struct Panel {
    title: &'static str,
    /// In the order of [`SERIES`].
    curves: Vec<Curve>,
    /// Decades of error at the left and the right edge.
    errors: [i32; 2],
    /// Milliseconds at the lower and the upper edge.
    times: [f64; 2],
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    let file =
        file.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/assets/work_precision.png").into());
    let lorenz = measure(lorenz, [1.0; 3], 10.0, &LORENZ_END, 3e-12);
    let pleiades = measure(pleiades, pleiades_y0(), 3.0, &PLEIADES_END, 3e-12);
    let panels = [
        Panel {
            title: "Lorenz to t = 10, 3 unknowns",
            curves: lorenz,
            errors: [-1, -12],
            times: [9e-3, 1.0],
        },
        Panel { title: "Pleiades, 28 unknowns", curves: pleiades, errors: [-1, -12], times: [8e-2, 6.0] },
    ];
    draw(&panels, &file)?;
    println!("{file}");
    Ok(())
}

/// Every method at every tolerance, without errors below `floor`, which are rounding, and above 0.1.
fn measure<const N: usize>(
    f: impl Fn(&[f64; N], &mut [f64; N]) + Copy,
    y0: [f64; N],
    t1: f64,
    end: &[f64; N],
    floor: f64,
) -> Vec<Curve> {
    let mut solves = Vec::new();
    for (index, (method, ..)) in SERIES.iter().enumerate() {
        let tightest = if method.tableau().order < 5 { 16 } else { 27 };
        for halves in 5..=tightest {
            let tol = 10_f64.powf(-0.5 * f64::from(halves));
            let ode = Ode::in_place(move |_t, y: &[f64; N], dy: &mut [f64; N]| f(y, dy));
            let ode = ode.method(*method).rtol(tol).atol(tol).max_steps(10_000_000);
            let solve = move || ode.solve(0.0, t1, y0).expect("the options are valid").y1;
            let y1 = solve();
            let error = (0..N).map(|i| (y1[i] - end[i]).abs() / (1.0 + end[i].abs())).fold(0.0, f64::max);
            if error > floor && error < 0.1 {
                solves.push((index, error, solve, f64::INFINITY));
            }
        }
    }
    for _ in 0..ROUNDS {
        for (_, _, solve, least) in &mut solves {
            *least = least.min(milliseconds(solve));
        }
    }
    let curve = |index| {
        let points = solves.iter().filter(|s| s.0 == index);
        points.map(|(_, error, _, ms)| [*error, *ms]).collect()
    };
    (0..SERIES.len()).map(curve).collect()
}

/// Milliseconds a call, over a batch.
fn milliseconds<T>(f: &impl Fn() -> T) -> f64 {
    let (start, mut calls) = (Instant::now(), 0);
    loop {
        black_box(f());
        calls += 1;
        let elapsed = start.elapsed().as_secs_f64();
        if elapsed >= BATCH {
            return elapsed * 1e3 / f64::from(calls);
        }
    }
}

/// A length of the finished picture in pixels of the larger one.
fn px(length: i32) -> i32 {
    length * OVERSAMPLING as i32
}

fn draw(panels: &[Panel; 2], file: &str) -> Result<(), Box<dyn Error>> {
    let font = epaint_default_fonts::UBUNTU_LIGHT;
    plotters::style::register_font(FONT, FontStyle::Normal, font).map_err(|_| "the font is not one")?;
    let [width, height] = SIZE.map(|length| length * OVERSAMPLING);
    let mut rgb = vec![255; (3 * width * height) as usize];
    {
        let area = BitMapBackend::with_buffer(&mut rgb, (width, height)).into_drawing_area();
        legend(&area)?;
        for (panel, left) in panels.iter().zip([150, 1000]) {
            draw_panel(&area, panel, [left, 170, left + 660, 720])?;
        }
        area.present()?;
    }
    let large = image::RgbImage::from_raw(width, height, rgb).ok_or("the buffer has another size")?;
    image::imageops::resize(&large, SIZE[0], SIZE[1], FilterType::Triangle).save(file)?;
    Ok(())
}

fn text(
    area: &DrawingArea<BitMapBackend, Shift>,
    text: &str,
    [x, y]: [i32; 2],
    size: i32,
    anchor: (HPos, VPos),
) -> Result<(), Box<dyn Error>> {
    // A line without descenders has its middle above that of the font's box.
    let y = if matches!(anchor.1, VPos::Center) { y + size / 6 } else { y };
    let style = (FONT, px(size)).into_font().color(&INK).pos(Pos::new(anchor.0, anchor.1));
    area.draw_text(text, &style, (px(x), px(y)))?;
    Ok(())
}

/// A straight or broken line, `width` wide.
fn line(
    area: &DrawingArea<BitMapBackend, Shift>,
    points: &[[f64; 2]],
    width: u32,
    colour: RGBColor,
) -> Result<(), Box<dyn Error>> {
    let scaled = |v: f64| (v * f64::from(OVERSAMPLING)).round() as i32;
    let points: Vec<(i32, i32)> = points.iter().map(|p| (scaled(p[0]), scaled(p[1]))).collect();
    area.draw(&PathElement::new(points, colour.stroke_width(width * OVERSAMPLING)))?;
    Ok(())
}

fn dot(
    area: &DrawingArea<BitMapBackend, Shift>,
    [x, y]: [f64; 2],
    colour: RGBColor,
) -> Result<(), Box<dyn Error>> {
    let scaled = |v: f64| (v * f64::from(OVERSAMPLING)).round() as i32;
    let centre = (scaled(x), scaled(y));
    area.draw(&Circle::new(centre, px(7), WHITE.filled()))?;
    area.draw(&Circle::new(centre, px(5), colour.filled()))?;
    Ok(())
}

/// The methods in a row above the panels.
fn legend(area: &DrawingArea<BitMapBackend, Shift>) -> Result<(), Box<dyn Error>> {
    for (i, (_, name, colour)) in SERIES.iter().enumerate() {
        let (x, y) = (275 + 205 * i as i32, 46);
        line(area, &[[f64::from(x), f64::from(y)], [f64::from(x + 54), f64::from(y)]], 3, *colour)?;
        dot(area, [f64::from(x + 27), f64::from(y)], *colour)?;
        text(area, name, [x + 68, y], 28, (HPos::Left, VPos::Center))?;
    }
    Ok(())
}

/// One problem: decades of error to the right, smaller ones further, time upwards.
fn draw_panel(
    area: &DrawingArea<BitMapBackend, Shift>,
    panel: &Panel,
    [left, top, right, bottom]: [i32; 4],
) -> Result<(), Box<dyn Error>> {
    let between = |v: f64, [from, to]: [f64; 2], [a, b]: [i32; 2]| {
        f64::from(a) + (v - from) / (to - from) * f64::from(b - a)
    };
    let x = |error: f64| between(error.log10(), panel.errors.map(f64::from), [left, right]);
    let y = |ms: f64| between(ms.log10(), panel.times.map(f64::log10), [bottom, top]);
    for decade in panel.errors[1]..=panel.errors[0] {
        let at = x(10_f64.powi(decade));
        line(area, &[[at, f64::from(top)], [at, f64::from(bottom)]], 1, GRID)?;
        if decade % 2 == 0 {
            power_of_ten(area, decade, [at as i32, bottom + 14])?;
        }
    }
    for ms in round_numbers(panel.times) {
        let at = y(ms);
        line(area, &[[f64::from(left), at], [f64::from(right), at]], 1, GRID)?;
        text(area, &ms.to_string(), [left - 14, at as i32], 24, (HPos::Right, VPos::Center))?;
    }
    let [l, t, r, b] = [left, top, right, bottom].map(f64::from);
    line(area, &[[l, t], [r, t], [r, b], [l, b], [l, t]], 1, FAINT)?;
    for (curve, (_, _, colour)) in panel.curves.iter().zip(&SERIES) {
        let points: Vec<[f64; 2]> = curve.iter().map(|[error, ms]| [x(*error), y(*ms)]).collect();
        line(area, &points, 3, *colour)?;
        points.iter().try_for_each(|point| dot(area, *point, *colour))?;
    }
    text(area, panel.title, [i32::midpoint(left, right), top - 22], 32, (HPos::Center, VPos::Bottom))?;
    text(area, "error at the end", [i32::midpoint(left, right), bottom + 62], 28, (HPos::Center, VPos::Top))?;
    let style = (FONT, px(28)).into_font().transform(FontTransform::Rotate270);
    let style = style.color(&INK).pos(Pos::new(HPos::Center, VPos::Bottom));
    area.draw_text("time (ms)", &style, (px(left - 84), px(i32::midpoint(top, bottom))))?;
    Ok(())
}

/// 1, 2 and 5 times each power of ten in a range.
fn round_numbers([low, high]: [f64; 2]) -> impl Iterator<Item = f64> {
    let numbers = (-3..3).flat_map(|k| [1, 2, 5].map(|m| format!("{m}e{k}")));
    // Read from decimal digits, so that they are written as short as they are.
    let numbers = numbers.filter_map(|digits| digits.parse().ok());
    numbers.filter(move |v| (low..=high).contains(v))
}

/// `10^k` centred below a point; the font has no raised minus, so the exponent is a text of its own.
fn power_of_ten(
    area: &DrawingArea<BitMapBackend, Shift>,
    k: i32,
    [x, y]: [i32; 2],
) -> Result<(), Box<dyn Error>> {
    let exponent = k.to_string().replace('-', "\u{2212}");
    text(area, "10", [x + 4, y], 24, (HPos::Right, VPos::Top))?;
    text(area, &exponent, [x + 5, y - 6], 18, (HPos::Left, VPos::Top))
}

/// Lorenz 1963, at t = 10: an extrapolation run in 80-bit numbers.
const LORENZ_END: [f64; 3] = [-4.90268754113464477, -3.74387292180291261, 24.6908581027905636];

#[inline(always)]
fn lorenz(y: &[f64; 3], dy: &mut [f64; 3]) {
    *dy = [10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]];
}

/// Hairer, Norsett, Wanner I, section II.10: x, y, x', y' of seven bodies of masses 1 to 7.
fn pleiades_y0() -> [f64; 28] {
    let mut y0 = [0.0; 28];
    y0[..7].copy_from_slice(&[3.0, 3.0, -1.0, -3.0, 2.0, -2.0, 2.0]);
    y0[7..14].copy_from_slice(&[3.0, -3.0, 2.0, 0.0, 0.0, -4.0, 4.0]);
    (y0[19], y0[20], y0[24], y0[25]) = (1.75, -1.5, -1.25, 1.0);
    y0
}

#[inline(always)]
fn pleiades(y: &[f64; 28], dy: &mut [f64; 28]) {
    dy[..14].copy_from_slice(&y[14..]);
    for i in 0..7 {
        let (mut ax, mut ay) = (0.0, 0.0);
        for j in 0..7 {
            if j != i {
                let (rx, ry) = (y[j] - y[i], y[7 + j] - y[7 + i]);
                let r2 = rx * rx + ry * ry;
                let pull = (j + 1) as f64 / (r2 * r2.sqrt());
                ax += pull * rx;
                ay += pull * ry;
            }
        }
        (dy[14 + i], dy[21 + i]) = (ax, ay);
    }
}

/// At t = 3: the Bari test set for IVP solvers (plei.f).
const PLEIADES_END: [f64; 28] = [
    0.3706139143970502,
    3.237284092057233,
    -3.222559032418324,
    0.659709145577531,
    0.3425581707156584,
    1.562172101400631,
    -0.7003092922212495,
    -3.943437585517392,
    -3.27138097397255,
    5.225081843456543,
    -2.59061243497747,
    1.198213693392275,
    -0.2429682344935824,
    1.09144924042898,
    3.417003806314313,
    1.354584501625501,
    -2.590065597810775,
    2.025053734714242,
    -1.155815100160448,
    -0.8072988170223021,
    0.595239635420871,
    -3.74124496123401,
    0.377345968575063,
    0.9386858869551074,
    0.3667922227200571,
    -0.347404635380849,
    2.344915448180937,
    -1.947020434263292,
];
