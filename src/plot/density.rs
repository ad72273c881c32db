//! Heat maps of densities: one alone, or the image's beside the learned one.
use super::{
    ColorScale, Extent, Figure, Heatmap, PlotError,
    map::Cells,
    sheet::{Rect, Sheet},
};

/// Room left of the first panel, over and below the panels, and right of them for the color bar.
const LEFT: u32 = 150;
const TOP: u32 = 100;
const BELOW: u32 = 125;
const BAR: u32 = 160;
const BAR_GAP: u32 = 40;
const BAR_WIDTH: u32 = 34;
/// Between panels, and between small ones.
const GAP: u32 = 60;
const SMALL_GAP: u32 = 36;
/// Least room between the numbers below two neighbors, a little more than a space.
const APART: u32 = 12;

/// A row of panels that show one frame, with room for axes, titles and a color bar.
pub(super) struct Panels {
    pub sheet: Sheet,
    pub rects: Vec<Rect>,
    gap: u32,
    /// Whether what they show is in pixel coordinates.
    pixels: bool,
    names: Option<[String; 2]>,
}

/// What the axes of a plane are called; without names, x and y, in pixels where y points down.
pub type AxisNames<'a> = Option<&'a [String; 2]>;

impl Panels {
    /// `count` panels, each as large as the frame's aspect allows in `width` x `height`.
    pub(super) fn row(
        frame: Extent,
        count: u32,
        [width, height]: [u32; 2],
        bar: bool,
        names: AxisNames,
    ) -> Result<Self, PlotError> {
        frame.check()?;
        let fit = (f64::from(width)).min(f64::from(height) * frame.aspect());
        let size = |length: f64| (length.round() as u32).clamp(120, width.max(height));
        let (width, height) = (size(fit), size(fit / frame.aspect()));
        let right = if bar { BAR_GAP + BAR_WIDTH + BAR } else { GAP };
        let gap = if width < 400 { SMALL_GAP } else { GAP };
        let sheet = Sheet::new(LEFT + count * width + (count - 1) * gap + right, TOP + height + BELOW);
        let rects = (0..count).map(|i| Rect { x: LEFT + i * (width + gap), y: TOP, width, height }).collect();
        Ok(Self { sheet, rects, gap, pixels: !frame.is_upward(), names: names.cloned() })
    }

    /// Axes and titles of all panels; the axes are named once.
    pub(super) fn axes(&mut self, frame: Extent, titles: &[&str]) -> Result<(), PlotError> {
        for (i, (&rect, title)) in self.rects.iter().zip(titles).enumerate() {
            self.sheet.plane_axes(rect, frame, self.names.as_ref(), i == 0, (self.gap - APART) / 2)?;
            self.sheet.title(title, rect)?;
        }
        Ok(())
    }

    /// The color bar right of the last panel.
    pub(super) fn bar(&mut self, scale: ColorScale, clipped: bool) -> Result<(), PlotError> {
        let last = self.rects[self.rects.len() - 1];
        let rect = Rect { x: last.right() + BAR_GAP, width: BAR_WIDTH, ..last };
        self.sheet.color_bar(rect, scale, clipped, self.pixels)
    }
}

/// One density as a heat map, with axes in pixel coordinates (y down) and a color bar.
///
/// # Errors
/// [`PlotError::Shape`], [`PlotError::Value`] or [`PlotError::Extent`] for a map that is none.
pub fn density(title: &str, map: &Heatmap, scale: ColorScale) -> Result<Figure, PlotError> {
    density_with(title, map, scale, None)
}

/// [`density`] with names of the axes.
///
/// # Errors
/// As [`density`].
pub fn density_with(
    title: &str,
    map: &Heatmap,
    scale: ColorScale,
    names: AxisNames,
) -> Result<Figure, PlotError> {
    heat_maps(&[(title, map)], scale, [1000, 900], Cells::Smooth, names)
}

/// The image's density beside the learned one on one scale, with one color bar.
///
/// Both maps show the frame of `truth`.
///
/// # Errors
/// As [`density`].
pub fn density_comparison(
    truth: &Heatmap,
    learned: &Heatmap,
    scale: ColorScale,
) -> Result<Figure, PlotError> {
    density_comparison_with("density of the image", truth, learned, scale, None)
}

/// [`density_comparison`] with something else than an image, named by its title, and names of the axes.
///
/// # Errors
/// As [`density`].
pub fn density_comparison_with(
    title: &str,
    truth: &Heatmap,
    learned: &Heatmap,
    scale: ColorScale,
    names: AxisNames,
) -> Result<Figure, PlotError> {
    let maps = [(title, truth), ("learned density", learned)];
    heat_maps(&maps, scale, [760, 800], Cells::Smooth, names)
}

/// Maps side by side on one scale, each panel as large as fits in `size`.
pub(super) fn heat_maps(
    maps: &[(&str, &Heatmap)],
    scale: ColorScale,
    size: [u32; 2],
    cells: Cells,
    names: AxisNames,
) -> Result<Figure, PlotError> {
    for (_, map) in maps {
        map.check()?;
    }
    let frame = maps[0].1.frame;
    let mut panels = Panels::row(frame, maps.len() as u32, size, true, names)?;
    for (i, (_, map)) in maps.iter().enumerate() {
        panels.sheet.heat(panels.rects[i], map, scale, cells);
    }
    panels.axes(frame, &maps.iter().map(|m| m.0).collect::<Vec<_>>())?;
    panels.bar(scale, maps.iter().any(|(_, map)| map.values.iter().any(|v| *v > scale.max)))?;
    Ok(panels.sheet.figure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::color::inferno;

    const FRAME: Extent = Extent { x: [0.0, 40.0], y: [0.0, 20.0] };

    #[test]
    fn the_least_and_the_largest_density_have_the_ends_of_the_scale() {
        let mut values = [0.0; 8];
        values[..4].fill(0.01); // upper row
        let map = Heatmap { values: &values, rows: 2, cols: 4, frame: FRAME };
        let figure = density("halves", &map, ColorScale { max: 0.01 }).unwrap();
        assert_eq!(
            (figure.width, figure.height),
            (LEFT + 1000 + BAR_GAP + BAR_WIDTH + BAR, TOP + 500 + BELOW)
        );
        assert_eq!(figure.pixel(LEFT + 5, TOP + 5), inferno(1.0));
        assert_eq!(figure.pixel(LEFT + 5, TOP + 495), inferno(0.0));
        let bar = LEFT + 1000 + BAR_GAP + BAR_WIDTH / 2;
        assert_eq!(figure.pixel(bar, TOP), inferno(1.0 - 0.5 / 500.0));
        assert_eq!(figure.pixel(bar, TOP + 499), inferno(0.5 / 500.0));
        assert_eq!(figure.pixel(2, 2), [255; 3]);
    }

    #[test]
    fn both_panels_of_a_comparison_share_the_image_s_scale() {
        let truth = Heatmap { values: &[0.02; 2], rows: 1, cols: 2, frame: FRAME };
        let learned = Heatmap { values: &[0.01; 2], rows: 1, cols: 2, frame: FRAME };
        let figure = density_comparison(&truth, &learned, ColorScale::of(&truth)).unwrap();
        assert_eq!(figure.pixel(LEFT + 100, TOP + 100), inferno(1.0 / 1.1));
        assert_eq!(figure.pixel(LEFT + 760 + GAP + 100, TOP + 100), inferno(0.5 / 1.1));
        assert!((1500..2100).contains(&figure.width));
    }

    #[test]
    fn names_of_the_axes_are_drawn() {
        let map = Heatmap { values: &[0.0; 6], rows: 2, cols: 3, frame: FRAME };
        let drawn = |names: AxisNames| density_with("", &map, ColorScale { max: 1.0 }, names).unwrap();
        let named = drawn(Some(&["height_cm", "weight_kg"].map(str::to_owned)));
        let plain = drawn(None);
        // The rows below the numbers, where the name of the x axis stands.
        let below = |figure: &Figure| {
            let rows = figure.height - BELOW + 55..figure.height;
            rows.flat_map(|y| (0..figure.width).map(move |x| (x, y)))
                .filter(|&(x, y)| figure.pixel(x, y) != [255; 3])
                .count()
        };
        assert!(below(&named) > below(&plain), "{} {}", below(&named), below(&plain));
        assert_eq!(named.width, plain.width);
    }

    #[test]
    fn a_map_of_zeros_is_drawn() {
        let map = Heatmap { values: &[0.0; 6], rows: 2, cols: 3, frame: FRAME };
        let figure = density("nothing", &map, ColorScale::of(&map)).unwrap();
        assert_eq!(figure.pixel(LEFT + 50, TOP + 50), inferno(0.0));
    }

    #[test]
    fn maps_that_are_none_are_refused() {
        let refused = |values: &[f64], rows, cols, frame| {
            let map = Heatmap { values, rows, cols, frame };
            density("", &map, ColorScale { max: 1.0 }).unwrap_err().to_string()
        };
        assert!(refused(&[1.0; 5], 2, 3, FRAME).contains("2 x 3 cells needs 6 values"));
        assert!(refused(&[1.0, f64::NAN], 1, 2, FRAME).contains("density of cell 1 is NaN"));
        assert!(refused(&[1.0], 1, 1, Extent { x: [3.0, 3.0], ..FRAME }).contains("[3, 3] has no extent"));
    }
}
