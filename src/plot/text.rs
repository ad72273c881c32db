//! Text in the compiled-in font, with kerning and subpixel positions.
//!
//! Glyphs are not placed by plotters, which rounds every advance to a whole pixel and spaces letters unevenly. The
//! font is Inter Regular, reduced by `.ci/font` to the letters of European languages and mathematical signs.
//!
//! A sign and the letters and digits after `^` are raised and smaller: `10^-3`.
use ab_glyph::{Font, FontRef, GlyphId, PxScale, point};
use std::sync::OnceLock;

/// Font size of a raised run and its height above the line, as shares of the font size of the text.
const RAISED: f64 = 0.7;
const LIFT: f64 = 0.36;
/// Half the height of a digit as a share of the font size: the distance from the middle of a line to its baseline.
pub(super) const HALF_DIGIT: f64 = 0.364;
/// Levels between no ink and full ink. Few levels make few colors and small files.
pub(super) const LEVELS: f64 = 16.0;

fn font() -> &'static FontRef<'static> {
    static FONT: OnceLock<FontRef> = OnceLock::new();
    FONT.get_or_init(|| {
        FontRef::try_from_slice(include_bytes!("inter.otf")).expect("invariant: the font is valid")
    })
}

/// A part of a text in one size, and its start relative to the start of the baseline.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    pub text: String,
    pub x: f64,
    pub lift: f64,
    pub size: f64,
}

/// The runs of a text at a font size in pixels, and its width.
pub(super) fn runs(text: &str, size: f64) -> (Vec<Run>, f64) {
    let (mut runs, mut x) = (Vec::new(), 0.0);
    let mut add = |text: &str, raised: bool| {
        let (size, lift) = if raised { (RAISED * size, LIFT * size) } else { (size, 0.0) };
        if !text.is_empty() {
            runs.push(Run { text: text.to_owned(), x, lift, size });
            x += glyphs(text, size).1;
        }
    };
    let mut parts = text.split('^');
    add(parts.next().unwrap_or_default(), false);
    for part in parts {
        let is_raised = |(i, c): (usize, char)| c.is_alphanumeric() || (i == 0 && "-\u{2212}+".contains(c));
        let end = part.char_indices().find(|&c| !is_raised(c)).map_or(part.len(), |(i, _)| i);
        add(&part[..end].replace('-', "\u{2212}"), true);
        add(&part[end..], false);
    }
    (runs, x)
}

/// Width of a text in pixels.
pub(super) fn width(text: &str, size: u32) -> i32 {
    runs(text, f64::from(size)).1.ceil() as i32
}

/// A text that fits into a length, and its font size: at most `size`, and two thirds of it at least. If it is still too long, it
/// ends with dots.
pub(super) fn fitted(text: &str, size: u32, length: u32) -> (String, u32) {
    let fits = |text: &str, size: u32| width(text, size) <= length as i32;
    let least = size * 2 / 3;
    if let Some(size) = (least..=size).rev().find(|&size| fits(text, size)) {
        return (text.to_owned(), size);
    }
    let mut kept = text.to_owned();
    while kept.pop().is_some() {
        let shown = format!("{}...", kept.trim_end());
        if fits(&shown, least) {
            return (shown, least);
        }
    }
    (String::new(), least)
}

/// Glyphs of a run with their positions, and the length of the line.
fn glyphs(text: &str, size: f64) -> (Vec<(GlyphId, f64)>, f64) {
    let font = font();
    let unit = size / f64::from(font.units_per_em().unwrap_or(1000.0));
    let (mut placed, mut x): (Vec<(GlyphId, f64)>, f64) = (Vec::new(), 0.0);
    for character in text.chars() {
        let id = font.glyph_id(character);
        if let Some((before, _)) = placed.last() {
            x += unit * f64::from(font.kern_unscaled(*before, id));
        }
        placed.push((id, x));
        x += unit * f64::from(font.h_advance_unscaled(id));
    }
    (placed, x)
}

/// Calls `ink` with each pixel of a run at a screen position, and the pixel's coverage.
pub(super) fn cover(run: &str, size: f64, at: [f64; 2], upwards: bool, mut ink: impl FnMut(i32, i32, f64)) {
    let font = font();
    // `ab_glyph` scales by the height of a line, not by the font size.
    let scale = size * f64::from(font.height_unscaled()) / f64::from(font.units_per_em().unwrap_or(1000.0));
    let (whole, fraction) = (at.map(f64::floor), at.map(|v| v - v.floor()));
    // Fractional positions along the line, whole pixels across it: baselines stay sharp.
    let along = if upwards { 1.0 - fraction[1] } else { fraction[0] };
    for (id, x) in glyphs(run, size).0 {
        let glyph = id.with_scale_and_position(PxScale::from(scale as f32), point((along + x) as f32, 0.0));
        let Some(outline) = font.outline_glyph(glyph) else { continue };
        let corner = outline.px_bounds().min;
        let [left, top] = [corner.x, corner.y].map(|v| v.round() as i32);
        outline.draw(|i, j, share| {
            let (i, j) = (left + i as i32, top + j as i32);
            let share = (f64::from(share).clamp(0.0, 1.0) * LEVELS).round() / LEVELS;
            let [x, y] = whole.map(|v| v as i32);
            if share > 0.0 && upwards {
                ink(x + j, y - i, share);
            } else if share > 0.0 {
                ink(x + i, y + j, share);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_kerned_and_advances_are_even() {
        let long = |text: &str| glyphs(text, 100.0).1;
        assert!(long("AV") < long("A") + long("V") - 1.0, "{} {}", long("AV"), long("A") + long("V"));
        let places: Vec<f64> = glyphs("nnnnnn", 27.3).0.iter().map(|g| g.1).collect();
        let steps: Vec<f64> = places.windows(2).map(|p| p[1] - p[0]).collect();
        assert!(steps.iter().all(|step| (step - steps[0]).abs() < 1e-9), "{steps:?}");
        assert!((steps[0] - steps[0].round()).abs() > 1e-3, "a fraction of a pixel: {}", steps[0]);
    }

    #[test]
    fn the_font_has_the_characters_of_figures() {
        let missing: String = "azAZ09éßñøčπλσΔЖя−±×·°–—…’→≤≥≈∞∂√∑⁰¹²³⁴⁵⁶⁷⁸⁹⁻₀₁µ"
            .chars()
            .filter(|&c| font().glyph_id(c).0 == 0)
            .collect();
        assert_eq!(missing, "");
    }

    #[test]
    fn a_power_is_raised_and_the_words_after_it_are_not() {
        let (found, wide) = runs("per 10^-4 square pixels", 30.0);
        let texts: Vec<_> = found.iter().map(|run| (run.text.as_str(), run.lift > 0.0)).collect();
        assert_eq!(texts, [("per 10", false), ("\u{2212}4", true), (" square pixels", false)]);
        assert!(found.windows(2).all(|pair| pair[0].x < pair[1].x) && wide > found[2].x);
    }

    #[test]
    fn ink_lies_on_the_line_and_turns_with_it() {
        let box_of = |upwards| {
            let mut found = [i32::MAX, i32::MAX, i32::MIN, i32::MIN];
            cover("Hx", 40.0, [100.0, 200.0], upwards, |x, y, _| {
                found = [found[0].min(x), found[1].min(y), found[2].max(x), found[3].max(y)];
            });
            found
        };
        let [left, top, right, bottom] = box_of(false);
        assert!(left >= 100 && right < 160 && bottom == 199 && (169..173).contains(&top), "{top} {bottom}");
        let [left, top, right, bottom] = box_of(true);
        assert!((169 - 100..173 - 100).contains(&left) && right == 99 && bottom <= 200 && top > 140);
    }

    /// Draws 300 texts of 0 to 100 characters and lengths of 60 to 600 pixels.
    #[test]
    fn a_fitted_text_is_not_longer_and_begins_as_the_text() {
        let (mut draw, mut found) = (crate::ode::tests::draw::Draw(7), [0; 3]);
        for _ in 0..300 {
            let letters = [0, 5, 20, 100][draw.below(4)];
            let text: String = (0..letters).map(|_| ['a', 'W', ' ', 'é', '('][draw.below(5)]).collect();
            let length = 60 + draw.below(540) as u32;
            let (shown, size) = fitted(&text, 32, length);
            assert!(width(&shown, size) <= length as i32 && (21..=32).contains(&size), "{text:?} {length}");
            match shown.strip_suffix("...") {
                _ if shown == text => found[usize::from(size < 32)] += 1,
                Some(start) => {
                    assert!(text.starts_with(start) && size == 21, "{text:?} {shown:?}");
                    found[2] += 1;
                }
                None => panic!("{text:?} {shown:?}"),
            }
        }
        assert!(found.iter().all(|&n| n > 20), "{found:?}");
    }
}
