//! Figures of solutions, densities, samples, flows and training runs, as PNG files.
//!
//! What it knows: solutions of plain states, slices of numbers, frames in pixel coordinates (x to the right, y **down**), colors. What it must
//! never know: tensors, models, training. Every function returns a [`Figure`] in memory and only
//! [`Figure::save`] touches the disk, whole files only: tests need no folder, and a run that dies while drawing
//! leaves the former figure. Lines and text are rasterized by plotters with a font that is compiled in (no system
//! library, the same figure on every machine); heat maps are written straight into the pixels, so that a cell is
//! never split by a rectangle's rounding.
//!
//! Colors mean numbers: one [`ColorScale`] for all figures of a run makes them comparable, and each figure that uses
//! one carries its color bar.
//!
//! # Examples
//! ```
//! use flowline::plot::{self, ColorScale, Extent, Heatmap};
//!
//! let frame = Extent { x: [0.0, 2.0], y: [0.0, 1.0] };
//! let map = Heatmap { values: &[0.1, 0.4], rows: 1, cols: 2, frame };
//! let figure = plot::density("two cells", &map, ColorScale::of(&map))?;
//! assert_eq!(&figure.to_png_bytes()?[1..4], b"PNG");
//! # Ok::<(), flowline::plot::PlotError>(())
//! ```
mod axes;
mod chart;
mod color;
mod corner;
mod density;
mod error;
mod figure;
mod images;
mod loss;
mod map;
#[cfg(feature = "evcxr")]
mod notebook;
mod points;
mod sheet;
mod space_time;
mod trace;
mod trajectory;
mod work_precision;

pub use crate::heatmap::{ColorScale, Extent, Heatmap};
pub use axes::Axes;
pub use corner::corner;
pub use density::{density, density_comparison};
pub use error::PlotError;
pub use figure::Figure;
pub use images::{ImageGrid, image_grid};
pub use loss::{LossCurve, LossPhase, loss_curve};
pub use points::{flow_panels, sample_scatter};
pub use space_time::{SpaceTime, space_time};
pub use trajectory::{phase_portrait, time_series};
pub use work_precision::{MethodCurve, work_precision};

pub mod extra {
    //! Less common figures.
    pub use super::density::{AxisNames, density_comparison_with, density_with};
    pub use super::points::{flow_panels_with, histogram, histogram_of_parts, sample_scatter_with};
}
