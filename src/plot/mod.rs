//! Figures of solutions, densities, samples, flows and training runs, as PNG and SVG files; flows as GIF animations.
//!
//! Functions take solutions of plain states, slices of numbers, colors and extents. An extent is in pixel
//! coordinates (x to the right, y **down**) or in data coordinates (y up). The module does not depend on tensors,
//! models or training. Every function returns a [`Figure`] in memory. Only the methods `save` and `plot...` write
//! files. A file is written completely or not at all, so a crash leaves the previous figure. Every element is drawn
//! into the pixels and stored as a mark, from which plotters writes SVG. The font is compiled in, so figures are
//! the same on every machine. Heat maps are written directly into the pixels, so that rounding never splits a cell.
//!
//! One [`ColorScale`] for all figures of a run makes them comparable; each figure that uses a scale shows its color
//! bar.
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
mod animation;
mod axes;
mod axis;
mod chart;
mod clip;
mod color;
mod corner;
mod cover;
mod dark;
mod density;
mod error;
mod field;
mod figure;
mod images;
mod loss;
mod map;
mod marks;
#[cfg(feature = "evcxr")]
mod notebook;
mod pairs;
mod plane;
mod points;
mod series;
mod sheet;
mod space_time;
mod steps;
mod streams;
mod svg;
mod tags;
mod text;
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
pub use pairs::pair_plot;
pub use points::{flow_panels, sample_scatter};
pub use space_time::{SpaceTime, space_time};
pub use trajectory::{phase_portrait, time_series};
pub use work_precision::{MethodCurve, work_precision};

pub mod extra {
    //! Less common figures.
    pub use super::animation::Animation;
    pub use super::density::density_sheet;
    pub use super::field::FieldPanel;
    pub use super::plane::Plane;
    pub use super::points::histogram;
    pub use super::steps::step_sizes;
}
