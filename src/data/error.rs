//! Errors in images used as densities, in points, in sets of images and in names of toy densities.
//!
//! Each message states the problem and the remedy. If an image is read without an error, its density has a
//! finite entropy; if points are, their standardized form is finite. Later code does not check this again.

use crate::io::shortened;

/// Why an image, points or a set of images cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The file or folder is missing or not readable.
    #[error("{name} cannot be read: {source}; check the path and its permissions")]
    Unreadable {
        /// The file or folder, as named by the caller.
        name: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Validation or test images differ in size or number of channels from the training images.
    #[error(
        "{name} holds images of {} x {} pixels and {} channels; the training images have {} x {} pixels and {} channels; give images with the same size and channels",
        found[1], found[0], found[2], wanted[1], wanted[0], wanted[2]
    )]
    OtherSize {
        /// The file, as named by the caller.
        name: String,
        /// Height, width, channels.
        found: [usize; 3],
        /// Height, width and channels of the training images.
        wanted: [usize; 3],
    },
    /// The training images have labels, but the validation or test images have none.
    #[error("the training images have labels but {name} has no labels; give them with `with_labels`")]
    NoLabels {
        /// The images without labels.
        name: String,
    },
    /// There are too few rows for a training, a validation and a test part.
    #[error(
        "{kind} {name}: {found} are too few to split into training, validation and test; give at least {least}, preferably thousands, or files for `validation` and `test`"
    )]
    TooFew {
        /// `points` or `images`.
        kind: &'static str,
        /// The name of the data.
        name: String,
        /// Number of rows.
        found: usize,
        /// The minimum number of rows.
        least: usize,
    },
    /// The file is empty.
    #[error("image {name} is empty (0 bytes); give a PNG, JPEG, BMP, GIF or WebP image")]
    Empty {
        /// The file, as named by the caller.
        name: String,
    },
    /// The bytes are not a complete image in a known format.
    #[error(
        "image {name} ({bytes} bytes) cannot be decoded: {source}; give a complete PNG, JPEG, BMP, GIF or WebP image"
    )]
    Undecodable {
        /// The file, as named by the caller.
        name: String,
        /// Number of bytes.
        bytes: usize,
        /// The error of the decoder.
        source: crate::io::raster::DecodeError,
    },
    /// The image has fewer than two rows or fewer than two columns.
    #[error(
        "image {name} is {width} x {height} pixels, too small for a density over the plane; give at least 2 x 2"
    )]
    TooSmall {
        /// The file, as named by the caller.
        name: String,
        /// Columns.
        width: usize,
        /// Rows.
        height: usize,
    },
    /// The image has more pixels than the tables and quadratures support.
    #[error(
        "image {name} is {width} x {height} pixels; at most {limit} pixels and {side} along a side are supported; scale it down"
    )]
    TooLarge {
        /// The file, as named by the caller.
        name: String,
        /// Columns.
        width: usize,
        /// Rows.
        height: usize,
        /// The maximum number of pixels.
        limit: usize,
        /// The maximum number of pixels along a side.
        side: usize,
    },
    /// Every pixel has the same gray value, so the image does not define a density.
    #[error(
        "image {name} has one gray only ({gray:.1} of 255 in all {width} x {height} pixels); give a dark drawing on a light background"
    )]
    OneGray {
        /// The file, as named by the caller.
        name: String,
        /// The gray value, 0 (black) to 255 (white), on a white background.
        gray: f64,
        /// Columns.
        width: usize,
        /// Rows.
        height: usize,
    },
    /// No pixel is darker than the threshold, so the density would be zero everywhere.
    #[error(
        "image {name} has no pixel darker than gray {below} (darkest {darkest:.1}, lightest {lightest:.1} of 255), so its density would be zero everywhere; raise its contrast or use the default rule"
    )]
    NoDarkPixels {
        /// The file, as named by the caller.
        name: String,
        /// Only pixels darker than this gray are used.
        below: f64,
        /// The smallest gray value.
        darkest: f64,
        /// The largest gray value.
        lightest: f64,
    },
    /// All probability lies in one row or one column: the standard deviation across it is zero.
    #[error(
        "image {name} has dark pixels only in {line} {index}, so its {axis} coordinate cannot be standardized; give a drawing that covers several rows and columns"
    )]
    Line {
        /// The file, as named by the caller.
        name: String,
        /// `row` or `column`.
        line: &'static str,
        /// Index of the row or column, from 0 at the top left.
        index: usize,
        /// `x` or `y`.
        axis: &'static str,
    },
    /// No toy density has this name.
    #[error(
        "unknown toy density \"{name}\"; choose one of moons, 8gaussians, pinwheel, circles, 2spirals, checkerboard, rings, swissroll"
    )]
    UnknownToy {
        /// The requested name.
        name: String,
    },
    /// The reader of the format rejected a file of points or images.
    #[error(transparent)]
    File(#[from] crate::io::IoError),
    /// The array does not have the shape of points.
    #[error(
        "points {name} have shape {shape:?}, expected [n, d]; give one row per point and one column per coordinate"
    )]
    PointsShape {
        /// The name of the points.
        name: String,
        /// The shape of the array.
        shape: Vec<usize>,
    },
    /// The points have no coordinates.
    #[error("points {name} have no columns (d = 0, {rows} rows); give at least one coordinate per point")]
    NoColumns {
        /// The name of the points.
        name: String,
        /// The number of rows.
        rows: usize,
    },
    /// There are no points.
    #[error("{name} contains no points; give at least one row of numbers")]
    NoPoints {
        /// The name of the points.
        name: String,
    },
    /// There are fewer than two points.
    #[error("points {name}: {found} is too few; give at least 2 points, preferably thousands")]
    TooFewPoints {
        /// The name of the points.
        name: String,
        /// The number of points.
        found: usize,
    },
    /// A row is shorter or longer than the first.
    #[error(
        "points {name}: row {row} has {found} coordinates, row 1 has {expected}; give every point the same number"
    )]
    RaggedPoints {
        /// The name of the points.
        name: String,
        /// The number of the row, from 1.
        row: usize,
        /// The length of the row.
        found: usize,
        /// The length of the first row.
        expected: usize,
    },
    /// A coordinate is NaN or infinite.
    #[error(
        "points {name}: {place}, column {} is {value}; points must be finite; remove this point",
        shortened(column)
    )]
    NonFinite {
        /// The name of the points.
        name: String,
        /// `row 3` of an array or `line 4` of a file, counted from 1.
        place: String,
        /// The column's name in the heading, or its number from 1.
        column: String,
        /// The value.
        value: f64,
    },
    /// A coordinate has the same value in every point, so its standard deviation is zero.
    #[error(
        "points {name}: column {} is {} in all {rows} rows, so it has no density; remove the column, or choose others with `columns`",
        shortened(column), in_short(*value)
    )]
    ConstantColumn {
        /// The name of the points.
        name: String,
        /// The column's name in the heading, or its number from 1.
        column: String,
        /// The value.
        value: f64,
        /// Number of rows.
        rows: usize,
    },
    /// The mean or the standard deviation of a coordinate overflows or underflows in f64.
    #[error(
        "points {name}: column {} cannot be standardized: its mean is {mean:?} and its standard deviation {std:?}; scale the column so that its largest magnitude is between about 1e-150 and 1e150, or remove outliers",
        shortened(column)
    )]
    Spread {
        /// The name of the points.
        name: String,
        /// The column's name in the heading, or its number from 1.
        column: String,
        /// Mean of the column.
        mean: f64,
        /// Standard deviation of the column.
        std: f64,
    },
    /// The number of channels is neither 1 nor 3.
    #[error(
        "images {name} have {channels} channels; give 1 (gray) or 3 (red, green, blue), without an alpha channel"
    )]
    Channels {
        /// The file.
        name: String,
        /// The number of channels.
        channels: usize,
    },
    /// The number of columns differs from that of the training points.
    #[error(
        "points {name} have {found} columns, but the training points have {expected}; give the same columns"
    )]
    OtherColumns {
        /// The name of the points.
        name: String,
        /// The number of columns.
        found: usize,
        /// The number of columns of the training points.
        expected: usize,
    },
    /// The number of names is not that of the columns.
    #[error("{found} {} for {expected} columns; give one name per column", if *found == 1 { "name" } else { "names" })]
    ColumnNames {
        /// The number of names.
        found: usize,
        /// The number of columns.
        expected: usize,
    },
    /// The file or folder is not a set of images.
    #[error(
        "images {name}: {reason}; give a folder of image files, an IDX file (gzip or not) or an .npy array [n, h, w] or [n, h, w, c]"
    )]
    NotImages {
        /// The file or folder.
        name: String,
        /// The reason.
        reason: String,
    },
    /// The file is shorter than its header says.
    #[error(
        "{name} is truncated: {what} takes {wanted} bytes, the file has {found}; copy or download it again"
    )]
    Truncated {
        /// The file.
        name: String,
        /// The contents according to the header.
        what: String,
        /// The expected number of bytes, including the header.
        wanted: u64,
        /// The actual number of bytes.
        found: u64,
    },
    /// The first bytes are not those of an IDX file.
    #[error(
        "{name} is not an IDX file of {wanted}: it begins with the bytes {found:02x?}; give {wanted} as an IDX or .npy file"
    )]
    Magic {
        /// The file.
        name: String,
        /// Its first four bytes.
        found: Vec<u8>,
        /// The expected contents: `images` or `labels`.
        wanted: &'static str,
    },
    /// Two images of a set differ in size.
    #[error(
        "images {name}: {file} is {} x {} pixels, {first} is {} x {}; all images of a set must have the same size; scale or remove the others",
        found[0], found[1], expected[0], expected[1]
    )]
    UnequalSizes {
        /// The folder.
        name: String,
        /// The image that differs.
        file: String,
        /// Its width and height.
        found: [usize; 2],
        /// The first image.
        first: String,
        /// Its width and height.
        expected: [usize; 2],
    },
    /// There are fewer than two images, the images have no pixels, or the bytes are not a whole number of
    /// images.
    #[error("images {name}: {found}; give at least 2 images of at least 1 x 1 pixels")]
    NoImages {
        /// The file or folder.
        name: String,
        /// What was given, in words.
        found: String,
    },
    /// The number of labels differs from the number of images.
    #[error("{name}: {found} labels for {images} images; give one label per image")]
    LabelsLength {
        /// The file of labels, or a description of labels in memory.
        name: String,
        /// The number of labels.
        found: usize,
        /// The number of images.
        images: usize,
    },
    /// The labels of a table are no classes: they are all equal, or too many.
    #[error("points {name}: {found} classes in {rows} rows; give 2 or more, of about 2 rows or more each")]
    ClassCount {
        /// The file, or `given`, and the label column.
        name: String,
        /// Number of classes.
        found: usize,
        /// Number of rows.
        rows: usize,
    },
    /// No training row has a class.
    #[error("points {name}: no training row has the class {class}; leave it out, or join it with another")]
    EmptyClass {
        /// The file, or `given`.
        name: String,
        /// The name of the class.
        class: String,
    },
    /// A label of other points is no class of the training points.
    #[error("points {place}: \"{class}\" is no class of the training points; their classes are {classes}")]
    UnknownClass {
        /// The file and the line or row.
        place: String,
        /// The label.
        class: String,
        /// The classes of the training points.
        classes: String,
    },
    /// Other points have no labels, but the training points have.
    #[error("points {name} have no labels, but the training points have; give them the same label column")]
    NoClasses {
        /// The file, or `given`.
        name: String,
    },
    /// The number of labels differs from the number of rows.
    #[error("points {name}: {found} labels for {rows} rows; give one label per row")]
    RowLabels {
        /// The file, or `given`.
        name: String,
        /// The number of labels.
        found: usize,
        /// The number of rows.
        rows: usize,
    },
    /// A label is not a class number.
    #[error("labels {name}: label {row} is {}; labels are whole numbers from 0 to 65535", in_short(*value))]
    Label {
        /// The file of labels.
        name: String,
        /// The number of the label, from 1.
        row: usize,
        /// The label.
        value: f64,
    },
    /// A pixel value is not a whole number from 0 to 255.
    #[error(
        "images {name}: image {image} has a value of {}; pixel values are whole numbers from 0 to 255; save them as u1 (NumPy's uint8)",
        in_short(*value)
    )]
    GrayLevel {
        /// The file.
        name: String,
        /// The number of the image, from 1.
        image: usize,
        /// The value.
        value: f64,
    },
    /// The set must be held in memory, but is larger than the memory budget.
    #[error(
        "images {name} take {} MB in memory, {} MB are allowed, and {what} cannot be read in parts; {remedy}",
        bytes / 1_000_000, budget / 1_000_000
    )]
    OverBudget {
        /// The file or folder.
        name: String,
        /// The memory that reading all images needs, in bytes.
        bytes: u64,
        /// The memory budget in bytes.
        budget: u64,
        /// The format that cannot be read in parts.
        what: &'static str,
        /// The remedy.
        remedy: &'static str,
    },
    /// A share is out of range, or there are too few rows for the parts.
    #[error(
        "{rows} rows cannot be split with shares of {} for validation and {} for the test; each share must be in [0, 1) and their sum below 1; training needs at least 2 rows, each other part at least 1",
        shares[0], shares[1]
    )]
    Share {
        /// The requested shares for validation and test.
        shares: [f64; 2],
        /// Number of rows.
        rows: usize,
    },
}

/// Formats a number; from 1e16 and below 1e-4, in scientific notation.
fn in_short(x: f64) -> String {
    if x == 0.0 || (1e-4..1e16).contains(&x.abs()) { x.to_string() } else { format!("{x:e}") }
}

#[cfg(test)]
mod tests {
    use super::in_short;

    #[test]
    fn numbers_are_short() {
        let numbers = [0.0, 0.25, -3.0, 65536.0, 1e16, 1e-300, f64::NAN, f64::INFINITY];
        let texts = ["0", "0.25", "-3", "65536", "1e16", "1e-300", "NaN", "inf"];
        assert_eq!(numbers.map(in_short), texts);
    }
}
