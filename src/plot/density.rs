//! Heat maps of densities: one alone, or the image's beside the learned one.
use super::{ColorScale, Figure, Heatmap, PlotError, plane::Plane};

/// One density as a heat map, with axes in pixel coordinates (y down) and a color bar.
///
/// # Errors
/// [`PlotError::Shape`], [`PlotError::Value`] or [`PlotError::Extent`] for a map that is none.
pub fn density(title: &str, map: &Heatmap, scale: ColorScale) -> Result<Figure, PlotError> {
    Plane::unnamed(map.frame, scale).density(title, map)
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
    density_comparison_with("Density of the image", truth, learned, scale)
}

/// [`density_comparison`] with something else than an image, named by its title.
///
/// # Errors
/// As [`density`].
pub fn density_comparison_with(
    title: &str,
    truth: &Heatmap,
    learned: &Heatmap,
    scale: ColorScale,
) -> Result<Figure, PlotError> {
    Plane::unnamed(truth.frame, scale).comparison([title, "Learned density"], [truth, learned])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{
        Extent,
        chart::{BAR_GAP, BAR_WIDTH, BELOW, LEFT},
        color::inferno,
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
        let figure = density_comparison(&truth, &learned, ColorScale::of(&truth)).unwrap();
        assert_eq!(figure.pixel(LEFT + 100, TOP + 100), inferno(1.0 / 1.1));
        assert_eq!(figure.pixel(LEFT + TWO[0] + GAP + 100, TOP + 100), inferno(0.5 / 1.1));
        assert!((1500..2100).contains(&figure.width));
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
