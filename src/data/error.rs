//! What can be wrong with a picture that is to become a density.
//!
//! Knows names and numbers only. Each message names the picture, the value found and the remedy. A picture that
//! passes gives a density with a finite entropy: nothing downstream has to check again.

/// Why a picture cannot become a density.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The file is missing or may not be read.
    #[error("image {name} cannot be read: {source}; check the path and its permissions")]
    Unreadable {
        /// File as it was named by the caller.
        name: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// There are no bytes.
    #[error("image {name} is empty (0 bytes); give a PNG, JPEG, BMP, GIF or WebP picture")]
    Empty {
        /// File as it was named by the caller.
        name: String,
    },
    /// The bytes are no whole picture in a known format.
    #[error(
        "image {name} ({bytes} bytes) cannot be decoded: {source}; give a whole PNG, JPEG, BMP, GIF or WebP picture"
    )]
    Undecodable {
        /// File as it was named by the caller.
        name: String,
        /// Length of what was read.
        bytes: usize,
        /// What the decoder said.
        source: image::ImageError,
    },
    /// One row or one column, or a single pixel.
    #[error(
        "image {name} is {width} x {height} pixels, too small for a density over the plane; give at least 2 x 2"
    )]
    TooSmall {
        /// File as it was named by the caller.
        name: String,
        /// Columns.
        width: usize,
        /// Rows.
        height: usize,
    },
    /// More pixels than the tables and quadratures are made for.
    #[error("image {name} is {width} x {height} pixels; at most {limit} pixels are supported, scale it down")]
    TooLarge {
        /// File as it was named by the caller.
        name: String,
        /// Columns.
        width: usize,
        /// Rows.
        height: usize,
        /// The largest number of pixels.
        limit: usize,
    },
    /// Every pixel has the same grey: there is nothing to learn.
    #[error(
        "image {name} has one grey only ({grey:.1} of 255 in all {width} x {height} pixels); give a dark drawing on a light ground"
    )]
    OneGrey {
        /// File as it was named by the caller.
        name: String,
        /// The grey, 0 (black) to 255 (white), on a white ground.
        grey: f64,
        /// Columns.
        width: usize,
        /// Rows.
        height: usize,
    },
    /// No pixel of the support carries mass.
    #[error(
        "image {name} has no dark pixel below grey {below} (darkest {darkest:.1}, lightest {lightest:.1} of 255), so it holds no mass; raise its contrast or use the default rule"
    )]
    NoMass {
        /// File as it was named by the caller.
        name: String,
        /// Pixels at or above this grey are left out.
        below: f64,
        /// Least grey found.
        darkest: f64,
        /// Largest grey found.
        lightest: f64,
    },
    /// All mass lies in one row or one column: the deviation across it is zero.
    #[error(
        "image {name} has all its darkness in {line} {index}, so its {axis} coordinate cannot be standardised; give a drawing that covers several rows and columns"
    )]
    Line {
        /// File as it was named by the caller.
        name: String,
        /// `row` or `column`.
        line: &'static str,
        /// Which, from 0 at the top left.
        index: usize,
        /// `x` or `y`.
        axis: &'static str,
    },
}
