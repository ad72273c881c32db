//! Densities and points over the plane: a row of panels with the same axes and one color bar.
use super::{
    ColorScale, Extent, Figure, Heatmap, PlotError,
    chart::{BAR_GAP, BAR_WIDTH, BELOW, LEFT},
    map::Cells,
    sheet::{Rect, Sheet},
};

/// Space above the panels for titles, and right of them for the labels of the color bar.
pub(super) const TOP: u32 = 104;
const BAR: u32 = 160;
/// Space between panels, and between small ones.
pub(super) const GAP: u32 = 60;
const SMALL_GAP: u32 = 36;
/// Least space between the tick labels of neighboring panels, a little more than a space character.
const APART: u32 = 12;
/// Pixels of a single panel, and of each of two.
pub(super) const ONE: [u32; 2] = [1100, 1046];
pub(super) const TWO: [u32; 2] = [780, 800];
/// Least width of a panel beside others.
const NARROW: u32 = 420;

/// A part of the plane, the names of its axes, and the colors of densities over it.
///
/// # Examples
/// ```
/// use flowline::plot::{ColorScale, Extent, Heatmap, extra::Plane};
/// let frame = Extent { x: [0.0, 2.0], y: [1.0, 0.0] };
/// let plane = Plane { frame, names: ["height (m)", "weight (kg)"], scale: ColorScale { max: 0.5 } };
/// let map = Heatmap { values: &[0.1, 0.4], rows: 1, cols: 2, frame };
/// assert!(plane.density("Two cells", &map).is_ok());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Plane<'a> {
    /// The limits of the axes.
    pub frame: Extent,
    /// Names of the axes: x, then y.
    pub names: [&'a str; 2],
    /// The color scale of all densities.
    pub scale: ColorScale,
}

impl Plane<'_> {
    /// A plane with the default names of pixel or data coordinates.
    pub(super) fn unnamed(frame: Extent, scale: ColorScale) -> Plane<'static> {
        let names = if frame.is_upward() { ["x", "y"] } else { ["x (pixels)", "y (pixels)"] };
        Plane { frame, names, scale }
    }

    /// One density as a heat map, with a color bar.
    ///
    /// # Errors
    /// As [`density`](super::density()).
    pub fn density(&self, title: &str, map: &Heatmap) -> Result<Figure, PlotError> {
        self.heat_maps(&[(title, map)], ONE, Cells::Smooth)
    }

    /// Densities side by side, each with a title, on one scale with one color bar.
    ///
    /// # Errors
    /// As [`density`](super::density()); [`PlotError::Nothing`] without maps.
    pub fn comparison(&self, maps: &[(&str, &Heatmap)]) -> Result<Figure, PlotError> {
        let panels = maps.len().max(2) as u32;
        self.heat_maps(maps, [(2 * TWO[0] / panels).max(NARROW), TWO[1]], Cells::Smooth)
    }

    /// Maps side by side on one scale, each panel as large as fits into `size`.
    pub(super) fn heat_maps(
        &self,
        maps: &[(&str, &Heatmap)],
        size: [u32; 2],
        cells: Cells,
    ) -> Result<Figure, PlotError> {
        if maps.is_empty() {
            return Err(PlotError::Nothing { what: "densities" });
        }
        for (_, map) in maps {
            map.check()?;
        }
        let mut panels = Panels::row(*self, maps.len() as u32, size, true)?;
        for (i, (_, map)) in maps.iter().enumerate() {
            panels.sheet.heat(panels.rects[i], map, self.scale, cells);
        }
        panels.axes(&maps.iter().map(|m| m.0).collect::<Vec<_>>())?;
        panels.bar(maps.iter().any(|(_, map)| map.values.iter().any(|v| *v > self.scale.max)))?;
        Ok(panels.sheet.figure)
    }
}

/// A row of panels with the same axes, with space for axes, titles and a color bar.
pub(super) struct Panels<'a> {
    pub sheet: Sheet,
    pub rects: Vec<Rect>,
    plane: Plane<'a>,
    gap: u32,
}

impl<'a> Panels<'a> {
    /// `count` panels, each as large as the aspect ratio allows in `width` x `height`.
    pub(super) fn row(
        plane: Plane<'a>,
        count: u32,
        [width, height]: [u32; 2],
        bar: bool,
    ) -> Result<Self, PlotError> {
        plane.frame.check()?;
        let aspect = plane.frame.aspect();
        let fit = (f64::from(width)).min(f64::from(height) * aspect);
        let size = |length: f64| (length.round() as u32).clamp(120, width.max(height));
        let (width, height) = (size(fit), size(fit / aspect));
        let right = if bar { BAR_GAP + BAR_WIDTH + BAR } else { GAP };
        let gap = if width < 400 { SMALL_GAP } else { GAP };
        let sheet = Sheet::new(LEFT + count * width + (count - 1) * gap + right, TOP + height + BELOW);
        let rects = (0..count).map(|i| Rect { x: LEFT + i * (width + gap), y: TOP, width, height }).collect();
        Ok(Self { sheet, rects, plane, gap })
    }

    /// Axes and titles of all panels; only the first panel has a name and labels on its y axis.
    pub(super) fn axes(&mut self, titles: &[&str]) -> Result<(), PlotError> {
        let Plane { frame, names, .. } = self.plane;
        for (i, (&rect, title)) in self.rects.iter().zip(titles).enumerate() {
            self.sheet.plane_axes(rect, frame, names, i == 0, (self.gap - APART) / 2)?;
            self.sheet.title(title, rect);
        }
        Ok(())
    }

    /// The color bar right of the last panel; `clipped` if values lie above the scale.
    pub(super) fn bar(&mut self, clipped: bool) -> Result<(), PlotError> {
        let last = self.rects[self.rects.len() - 1];
        let rect = Rect { x: last.right() + BAR_GAP, width: BAR_WIDTH, ..last };
        let columns = self.plane.frame.is_upward().then_some(self.plane.names);
        self.sheet.color_bar(rect, self.plane.scale, clipped, columns)
    }
}
