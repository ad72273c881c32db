//! A figure as SVG: plotters draws the marks of the figure, in order, over its rasters.
//!
//! plotters uses integer coordinates, so marks are drawn at [`FINE`] units per pixel, and the file states its
//! display size. Rasters lie below everything else in every figure, so they come first, cut from the finished
//! pixels.
use super::{
    Figure, PlotError,
    marks::Mark,
    sheet::{Rect, failed, rgb},
};
use crate::io::raster::encode_figure;
use base64::{Engine, engine::general_purpose::STANDARD};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Write;

/// SVG units per pixel.
const FINE: f64 = 4.0;
/// Pixels per unit of length.
const PIXELS: u32 = 2;
/// Fonts, in order of preference.
const FAMILY: &str = "Inter, Helvetica, Arial, sans-serif";
/// plotters divides font sizes by this.
const PLOTTERS_SIZE: f64 = 1.24;
/// Height of the letter x as a share of the font size; plotters shifts a line of text by half of it.
const X_HEIGHT: f64 = 0.54;

pub(super) fn written(figure: &Figure) -> Result<String, PlotError> {
    let fine = |pixels: u32| (f64::from(pixels) * FINE) as u32;
    let size = (fine(figure.width), fine(figure.height));
    let mut drawn = String::new();
    {
        let area = SVGBackend::with_string(&mut drawn, size).into_drawing_area();
        for mark in &figure.marks {
            draw(&area, mark)?;
        }
        area.present().map_err(failed)?;
    }
    let marks = drawn.split_once('>').map_or("", |(_, marks)| marks).trim_start();
    let mut file = String::new();
    let (width, height) =
        (f64::from(figure.width) / f64::from(PIXELS), f64::from(figure.height) / f64::from(PIXELS));
    let _ = write!(
        file,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {} {}\" stroke-linejoin=\"round\" stroke-linecap=\"round\">\n<desc>{}</desc>\n<rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n",
        size.0,
        size.1,
        escaped(&figure.about),
        hex(figure.paper)
    );
    for mark in &figure.marks {
        if let Mark::Raster { rect, .. } = mark {
            image(&mut file, figure, *rect)?;
        }
    }
    file.push_str(marks);
    Ok(file)
}

fn draw(area: &DrawingArea<SVGBackend, Shift>, mark: &Mark) -> Result<(), PlotError> {
    let fine = |p: &[f64; 2]| ((p[0] * FINE).round() as i32, (p[1] * FINE).round() as i32);
    match mark {
        Mark::Raster { .. } => Ok(()),
        Mark::Path { points, width, color, opacity, .. } if points.len() == 1 => {
            let dot = Circle::new(
                fine(&points[0]),
                (0.5 * width * FINE).round() as i32,
                rgb(*color).mix(*opacity).filled(),
            );
            area.draw(&dot).map_err(failed)
        }
        Mark::Path { points, width, color, opacity, .. } => {
            let width = (width * FINE).round().max(1.0) as u32;
            let style = rgb(*color).mix(*opacity).stroke_width(width);
            area.draw(&PathElement::new(points.iter().map(fine).collect::<Vec<_>>(), style)).map_err(failed)
        }
        Mark::Area { points, color, opacity, .. } => {
            let points: Vec<_> = points.iter().map(fine).collect();
            area.draw(&Polygon::new(points, rgb(*color).mix(*opacity).filled())).map_err(failed)
        }
        Mark::Text { text, at, size, upwards, color } => {
            // plotters centers small letters at the point; `at` is on the baseline.
            let lift = 0.5 * X_HEIGHT * size;
            let at = if *upwards { [at[0] - lift, at[1]] } else { [at[0], at[1] - lift] };
            let font = (FAMILY, size * FINE * PLOTTERS_SIZE).into_font();
            let font = if *upwards { font.transform(FontTransform::Rotate270) } else { font };
            let color = rgb(*color);
            let style = TextStyle::from(font).color(&color).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw_text(text, &style, fine(&at)).map_err(failed)
        }
    }
}

/// Pixels of the figure as an embedded PNG file.
fn image(file: &mut String, figure: &Figure, rect: Rect) -> Result<(), PlotError> {
    let row = |y: u32| (0..rect.width).flat_map(move |x| figure.pixel(rect.x + x, rect.y + y));
    let pixels: Vec<u8> = (0..rect.height).flat_map(row).collect();
    let (width, height) = (rect.width, rect.height);
    let bytes = encode_figure([width, height], &pixels, "").map_err(|source| PlotError::Encode {
        width,
        height,
        source,
    })?;
    let [x, y, w, h] = [rect.x, rect.y, width, height].map(|v| f64::from(v) * FINE);
    let _ = writeln!(
        file,
        "<image x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" href=\"data:image/png;base64,{}\"/>",
        STANDARD.encode(bytes)
    );
    Ok(())
}

fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02X}{g:02X}{b:02X}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
