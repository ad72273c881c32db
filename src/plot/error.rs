//! Errors of drawing a figure and writing it.
use std::path::PathBuf;

/// Why a figure was not drawn or not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlotError {
    /// A map's values do not fill its cells.
    #[error("a map of {rows} x {cols} cells needs {} values, found {found}; a map has at least one cell", rows * cols)]
    Shape {
        /// Cells from top to bottom.
        rows: usize,
        /// Cells from left to right.
        cols: usize,
        /// Values given.
        found: usize,
    },
    /// A value is NaN or infinite, or a density is negative.
    #[error("{what} {index} is {value}, which cannot be drawn; check what produced it")]
    Value {
        /// The kind of value, as written before the index.
        what: &'static str,
        /// Its index.
        index: usize,
        /// The value.
        value: f64,
    },
    /// Limits that are equal, not finite or in the wrong order.
    #[error(
        "{what} [{from}, {to}] is empty or not finite, or its ends are in the wrong order; give two different finite ends, in order"
    )]
    Extent {
        /// The object with these limits.
        what: &'static str,
        /// First end.
        from: f64,
        /// Second end.
        to: f64,
    },
    /// There is nothing to draw.
    #[error("no {what} to draw; give at least one")]
    Nothing {
        /// What is missing.
        what: &'static str,
    },
    /// More is given than a figure shows.
    #[error("{found} {what} are too many for one figure; give at most {most}")]
    TooMany {
        /// What is too many.
        what: &'static str,
        /// How many are given.
        found: usize,
        /// How many a figure shows.
        most: usize,
    },
    /// A solution with too few values for a curve.
    #[error(
        "a solution with {found} saved values or step times has no curve to draw; save a curve with `save_at(SaveAt::dense())`, and let t1 differ from t0"
    )]
    NoCurve {
        /// Number of saved values; in `step_sizes`, of step times.
        found: usize,
    },
    /// The rows of a solution on tensors have their own times.
    #[error(
        "the rows of the solution have their own saved times; save all rows at the same times or `SaveAt::dense()`, or solve with `Batching::Joint`"
    )]
    OwnTimes,
    /// A component that the state does not have.
    #[error("no component {index}: the state has {components} components, and indices start at 0")]
    Component {
        /// Index given.
        index: usize,
        /// Number of components.
        components: usize,
    },
    /// The rows of a space-time figure differ in length, or their number differs from the number of times.
    #[error("{what}: {found} instead of {expected}")]
    Length {
        /// The counted objects.
        what: &'static str,
        /// Number given.
        found: usize,
        /// Number expected.
        expected: usize,
    },
    /// The rasterizer failed.
    #[error("drawing failed: {message}")]
    Draw {
        /// Its message.
        message: String,
    },
    /// The figure could not be encoded as PNG or GIF.
    #[error("figure of {width} x {height} pixels cannot be encoded: {source}")]
    Encode {
        /// Columns.
        width: u32,
        /// Rows.
        height: u32,
        /// Error of the encoder.
        source: crate::io::raster::EncodeError,
    },
    /// The file could not be written; an existing file is unchanged.
    #[error("figure {} cannot be written: {source}; check that the folder exists, is writable and has free space", path.display())]
    Write {
        /// The path given.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
}
