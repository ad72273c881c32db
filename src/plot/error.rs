//! What can go wrong between numbers and a figure on disk.
use std::path::PathBuf;

/// Why a figure was not drawn or not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlotError {
    /// A map's values do not fill its cells.
    #[error("a map of {rows} x {cols} cells needs {} values and at least one, found {found}", rows * cols)]
    Shape {
        /// Cells from top to bottom.
        rows: usize,
        /// Cells from left to right.
        cols: usize,
        /// Values given.
        found: usize,
    },
    /// A value is NaN or infinite, or a density negative.
    #[error("{what} {index} is {value}, which cannot be drawn; check what produced it")]
    Value {
        /// What kind of value.
        what: &'static str,
        /// Where in its slice.
        index: usize,
        /// The value.
        value: f64,
    },
    /// A frame, or a figure, without an extent.
    #[error("{what} [{from}, {to}] has no extent; give finite ends, the smaller first")]
    Extent {
        /// Which extent.
        what: &'static str,
        /// Its beginning.
        from: f64,
        /// Its end.
        to: f64,
    },
    /// There is nothing to draw.
    #[error("no {what} to draw; give at least one")]
    Nothing {
        /// What is missing.
        what: &'static str,
    },
    /// A solution kept too little for a curve.
    #[error(
        "a solution with {found} saved values has no curve to draw; ask for one by `save_at(SaveAt::dense())`"
    )]
    NoCurve {
        /// How many values it kept.
        found: usize,
    },
    /// A component that the state does not have.
    #[error("component {index} of a state of {components}: they are counted from 0")]
    Component {
        /// The one asked for.
        index: usize,
        /// How many there are.
        components: usize,
    },
    /// A row of a space-time figure is not as long as the first, or there are not as many rows as times.
    #[error("{what}: {found} where {expected} belong")]
    Length {
        /// Of what.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many belong there.
        expected: usize,
    },
    /// The rasterizer gave up.
    #[error("drawing failed: {message}")]
    Draw {
        /// What it said.
        message: String,
    },
    /// The figure could not be encoded as PNG.
    #[error("figure of {width} x {height} pixels cannot be encoded: {source}")]
    Encode {
        /// Columns.
        width: u32,
        /// Rows.
        height: u32,
        /// What the encoder said.
        source: crate::io::raster::EncodeError,
    },
    /// The file could not be written; what stood there before is untouched.
    #[error("figure {} cannot be written: {source}; check that the folder exists, may be written and has room", path.display())]
    Write {
        /// The file asked for.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
}
