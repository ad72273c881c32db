//! Heat maps of densities: one density, or several side by side.
use super::{
    ColorScale, Figure, Heatmap, PlotError,
    axis::Axis,
    chart::{BAR_GAP, BAR_WIDTH},
    color::{INK, inferno},
    map::Cells,
    marks::Colors,
    plane::Plane,
    sheet::{Anchor, LABEL, Rect, Sheet},
};

/// One density as a heat map, with a color bar. Its frame is in pixel coordinates (y down) or in data coordinates
/// (y up).
///
/// # Errors
/// [`PlotError::Shape`], [`PlotError::Value`] or [`PlotError::Extent`] for an invalid map.
#[doc(alias("imshow", "pcolormesh"))]
pub fn density(title: &str, map: &Heatmap, scale: ColorScale) -> Result<Figure, PlotError> {
    Plane::unnamed(map.frame, scale).density(title, map)
}

/// Densities side by side, each with a title, on one scale with one color bar.
///
/// The axes of all panels have the extent of the first map.
///
/// # Errors
/// As [`density`]; [`PlotError::Nothing`] without maps.
///
/// # Examples
/// ```
/// use flowline::plot::{ColorScale, Extent, Heatmap, density_comparison};
/// let frame = Extent { x: [0.0, 2.0], y: [1.0, 0.0] };
/// let [truth, learned] = [&[0.1, 0.4], &[0.2, 0.3]].map(|values| Heatmap { values, rows: 1, cols: 2, frame });
/// let maps = [("true density", &truth), ("learned density", &learned)];
/// assert!(density_comparison(&maps, ColorScale::of(&truth)).is_ok());
/// ```
pub fn density_comparison(maps: &[(&str, &Heatmap)], scale: ColorScale) -> Result<Figure, PlotError> {
    let [(_, first), ..] = maps else { return Err(PlotError::Nothing { what: "densities" }) };
    Plane::unnamed(first.frame, scale).comparison(maps)
}

/// Side of a panel, space between panels, above each for its name, and around them.
const PANEL: u32 = 420;
const BETWEEN: u32 = 28;
const NAME: u32 = 64;
const AROUND: u32 = 40;

/// Several densities in rows of equal panels. A map is given with its name and its own color scale. The common
/// color bar runs from 0 to 1, where 1 is the upper end of each scale.
///
/// # Errors
/// As [`density`]; [`PlotError::Nothing`] without maps, or for zero columns.
pub fn density_sheet(
    title: &str,
    maps: &[(&str, Heatmap, ColorScale)],
    columns: usize,
) -> Result<Figure, PlotError> {
    if maps.is_empty() || columns == 0 {
        return Err(PlotError::Nothing { what: "densities or columns" });
    }
    let across = columns.min(maps.len()) as u32;
    let rows = maps.len().div_ceil(columns) as u32;
    let top = if title.is_empty() { 0 } else { NAME };
    let place = |i: u32, [from, step]: [u32; 2]| from + i * step;
    let (step_x, step_y) = (PANEL + BETWEEN, PANEL + NAME);
    let end = AROUND + across * step_x - BETWEEN;
    let height = top + rows * step_y + AROUND;
    let mut sheet = Sheet::new(end + BAR_GAP + BAR_WIDTH + 150, height);
    sheet.title(title, Rect { x: AROUND, y: top + 24, width: end - AROUND, height });
    for (i, (name, map, scale)) in maps.iter().enumerate() {
        map.check()?;
        let (column, row) = ((i % columns) as u32, (i / columns) as u32);
        let [x, y] = [place(column, [AROUND, step_x]), place(row, [top + NAME, step_y])];
        let panel = Rect { x, y, width: PANEL, height: PANEL };
        sheet.text(name, [x as i32, y as i32 - 26], LABEL, Anchor::Left, INK);
        sheet.raster(panel, |_, _| scale.color(0.0));
        let aspect = map.frame.aspect();
        let size = |share: f64| (f64::from(PANEL) * share.min(1.0)).round() as u32;
        let (width, height) = (size(aspect), size(1.0 / aspect));
        let inside = Rect { x: x + (PANEL - width) / 2, y: y + (PANEL - height) / 2, width, height };
        sheet.heat(inside, map, *scale, Cells::Smooth);
    }
    let bar = Rect { x: end + BAR_GAP, y: top + NAME, width: BAR_WIDTH, height: rows * step_y - NAME };
    sheet.colors(bar, inferno, Colors::Map)?;
    sheet.axis_right(bar, &Axis::round([1.0, 0.0], 5, 1.0), "density / end of the panel's scale")?;
    Ok(sheet.figure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{
        Extent,
        chart::{BELOW, LEFT},
        plane::{GAP, ONE, TOP, TWO},
    };

    const FRAME: Extent = Extent { x: [0.0, 40.0], y: [0.0, 20.0] };

    #[test]
    fn the_least_and_the_largest_density_have_the_ends_of_the_scale() {
        let mut values = [0.0; 8];
        values[..4].fill(0.01); // upper row
        let map = Heatmap { values: &values, rows: 2, cols: 4, frame: FRAME };
        let figure = density("halves", &map, ColorScale { max: 0.01 }).unwrap();
        let [width, height] = [ONE[0], ONE[0] / 2];
        assert_eq!(figure.height, TOP + height + BELOW);
        assert_eq!(figure.pixel(LEFT + 5, TOP + 5), inferno(1.0));
        assert_eq!(figure.pixel(LEFT + 5, TOP + height - 5), inferno(0.0));
        let bar = LEFT + width + BAR_GAP + BAR_WIDTH / 2;
        let end = 0.5 / f64::from(height);
        assert_eq!(figure.pixel(bar, TOP), inferno(1.0 - end));
        assert_eq!(figure.pixel(bar, TOP + height - 1), inferno(end));
        assert_eq!(figure.pixel(2, 2), [255; 3]);
    }

    #[test]
    fn both_panels_of_a_comparison_share_the_image_s_scale() {
        let truth = Heatmap { values: &[0.02; 2], rows: 1, cols: 2, frame: FRAME };
        let learned = Heatmap { values: &[0.01; 2], rows: 1, cols: 2, frame: FRAME };
        let figure =
            density_comparison(&[("true", &truth), ("learned", &learned)], ColorScale::of(&truth)).unwrap();
        assert_eq!(figure.pixel(LEFT + 100, TOP + 100), inferno(1.0 / 1.1));
        assert_eq!(figure.pixel(LEFT + TWO[0] + GAP + 100, TOP + 100), inferno(0.5 / 1.1));
        assert!((1500..2100).contains(&figure.width));
    }

    #[test]
    fn panels_of_a_sheet_are_equal_and_aligned() {
        let wide = Heatmap { values: &[0.5; 2], rows: 1, cols: 2, frame: FRAME };
        let square = Heatmap { frame: Extent { x: [0.0, 1.0], y: [0.0, 1.0] }, ..wide };
        let maps = [
            ("a", wide, ColorScale { max: 0.5 }),
            ("b", square, ColorScale { max: 1.0 }),
            ("c", wide, ColorScale { max: 1.0 }),
        ];
        let figure = density_sheet("", &maps, 2).unwrap();
        assert_eq!(figure.height, 2 * (PANEL + NAME) + AROUND);
        let middle = |column: u32, row: u32| {
            let half = PANEL / 2;
            figure.pixel(AROUND + column * (PANEL + BETWEEN) + half, NAME + row * (PANEL + NAME) + half)
        };
        assert_eq!([middle(0, 0), middle(1, 0), middle(0, 1)], [inferno(1.0), inferno(0.5), inferno(0.5)]);
        // The wide map has dark bands above and below it.
        assert_eq!(figure.pixel(AROUND + 5, NAME + 5), inferno(0.0));
        assert!(matches!(density_sheet("", &[], 2), Err(PlotError::Nothing { .. })));
    }

    #[test]
    fn a_map_of_zeros_is_drawn() {
        let map = Heatmap { values: &[0.0; 6], rows: 2, cols: 3, frame: FRAME };
        let figure = density("nothing", &map, ColorScale::of(&map)).unwrap();
        assert_eq!(figure.pixel(LEFT + 50, TOP + 50), inferno(0.0));
    }

    #[test]
    fn invalid_maps_are_refused() {
        let refused = |values: &[f64], rows, cols, frame| {
            let map = Heatmap { values, rows, cols, frame };
            density("", &map, ColorScale { max: 1.0 }).unwrap_err().to_string()
        };
        assert!(refused(&[1.0; 5], 2, 3, FRAME).contains("2 x 3 cells needs 6 values"));
        assert!(refused(&[1.0, f64::NAN], 1, 2, FRAME).contains("density of cell 1 is NaN"));
        assert!(
            refused(&[1.0], 1, 1, Extent { x: [3.0, 3.0], ..FRAME })
                .contains("[3, 3] is empty or not finite")
        );
    }
}
