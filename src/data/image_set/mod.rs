//! A set of images as points: one gray level a coordinate, as bytes, from a folder, an IDX file or an `.npy` array.
//!
//! Knows bytes, sizes and labels. Must never know a model: what turns a byte into a real number (dequantization, the
//! transforms) is beside it, in `pixels`. Bytes stay bytes, 47 MB for MNIST where f32 would take 188 MB; a file that is
//! larger than the budget is read row by row where it lies.
//!
//! A memory map would do the latter too, and bring `unsafe` and a crate; rows are read in the shuffled order of a batch
//! either way, and the operating system keeps the same pages for both.

mod folder;
mod idx;
mod labels;
mod npy;
mod source;
#[cfg(test)]
mod tests;

use super::DataError;
use crate::io::Fnv;
use source::Source;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of images that are held in memory; a larger file is read in parts.
pub const MEMORY_BUDGET: u64 = 256 << 20;

/// Images of one size, and a label for each where labels were given.
///
/// # Shapes and units
/// Image i is `height x width x channels` bytes in 0..=255, row-major with the first row on top, channels last.
///
/// # Examples
/// A loader that shuffles by key, with batches of one shape, is a [`Dataset`](crate::tensor::Dataset) of row numbers: it
/// goes through a set that is larger than memory, for only the rows of a batch are read.
/// ```no_run
/// use flowline::data::ImageSet;
/// use flowline::data::extra::Split;
/// use flowline::nn::prelude::*;
/// let images = ImageSet::open("train-images-idx3-ubyte.gz")?.with_labels("train-labels-idx1-ubyte.gz")?;
/// let rows = Split::seeded(images.len(), [0.1, 0.0], images.labels(), 0)?.train.iter().map(|&row| row as u32).collect::<Vec<_>>();
/// let rows = Dataset::new(Tensor::from(rows))?;
/// for batch in rows.epoch(256, &Key::new(0)) {  // the last is filled with rows of weight 0
///     let which: Vec<usize> = batch.rows.to_vec().into_iter().map(|row| row as usize).collect();
///     println!("{} bytes, {} count", images.rows(&which)?.len(), batch.count());
/// }
/// # Ok::<(), flowline::Error>(())
/// ```
#[derive(Debug)]
pub struct ImageSet {
    /// What the set is called in messages: its path, where it has one.
    pub name: String,
    /// Rows of an image.
    pub height: usize,
    /// Columns of an image.
    pub width: usize,
    /// 1 for gray, 3 for red, green and blue.
    pub channels: usize,
    labels: Option<Vec<u16>>,
    images: usize,
    source: Source,
}

/// What an opened file turned out to hold.
struct Found {
    images: usize,
    /// Height, width, channels.
    size: [usize; 3],
    source: Source,
}

impl ImageSet {
    /// Opens a folder of equal-sized images (in the order of their names), an IDX file, gzip or not (recognized by its first
    /// bytes, not by its name), or an `.npy` array `[n, h, w]` or `[n, h, w, c]`; up to [`MEMORY_BUDGET`] bytes of images
    /// are held in memory.
    ///
    /// # Errors
    /// [`DataError`]: unequal sizes with the two files, a truncated file with the bytes wanted and found, another first
    /// word, no image, or a file that is over the budget and cannot be read in parts (gzip and folders).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        Self::open_within(path, MEMORY_BUDGET)
    }

    /// [`open`](Self::open) with another budget, in bytes.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_within(path: impl AsRef<Path>, budget: u64) -> Result<Self, DataError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let found = if path.is_dir() {
            folder::read(path, &name, budget)?
        } else {
            match first_bytes(path, &name)? {
                [0x93, b'N', b'U', b'M'] => npy::open(path, &name, budget)?,
                [0x1f, 0x8b, ..] => idx::unpack(path, &name, budget)?,
                _ => idx::open(path, &name, budget)?,
            }
        };
        Self::of(name, found)
    }

    fn of(name: String, found: Found) -> Result<Self, DataError> {
        let Found { images, size: [height, width, channels], source } = found;
        if images < 2 || height * width * channels == 0 {
            let found = format!("{images} of {width} x {height} pixels");
            return Err(DataError::NoImages { name, found });
        }
        if !matches!(channels, 1 | 3) {
            return Err(DataError::Channels { name, channels });
        }
        Ok(Self { name, height, width, channels, labels: None, images, source })
    }

    /// Images `[n, height, width, channels]` that a program holds; `size` is the last three.
    ///
    /// # Errors
    /// [`DataError::NoImages`] for fewer than two, for images of no pixel, and for bytes that are no whole number of them.
    ///
    /// # Examples
    /// ```
    /// use flowline::data::ImageSet;
    /// let halves: Vec<u8> = (0..10).flat_map(|i| [255 * (i % 2), 255 * ((i + 1) % 2)]).collect();
    /// let images = ImageSet::from_bytes("halves", halves, [1, 2, 1])?.with_classes((0..10).map(|i| i % 2).collect())?;
    /// assert_eq!((images.len(), images.dim()), (10, 2));
    /// # Ok::<(), flowline::data::DataError>(())
    /// ```
    pub fn from_bytes(name: &str, bytes: Vec<u8>, size: [usize; 3]) -> Result<Self, DataError> {
        let dim: usize = size.iter().product();
        if !bytes.len().is_multiple_of(dim.max(1)) {
            let [height, width, channels] = size;
            let found = format!(
                "{} bytes, which are no whole number of {width} x {height} x {channels}",
                bytes.len()
            );
            return Err(DataError::NoImages { name: name.to_owned(), found });
        }
        let images = bytes.len() / dim.max(1);
        Self::of(name.to_owned(), Found { images, size, source: Source::Memory(bytes) })
    }

    /// Adds the class of each image, from an IDX file of labels (gzip or not), `.npy` `[n]`, or `.csv` of one column.
    ///
    /// # Errors
    /// [`DataError::LabelsLength`] when they are not one an image, [`DataError::Label`] for one that is no class.
    pub fn with_labels(self, path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        self.labeled(labels::read(path)?, path.display().to_string())
    }

    /// Adds the class of each image, counted from 0.
    ///
    /// # Errors
    /// [`DataError::LabelsLength`] when they are not one an image.
    pub fn with_classes(self, classes: Vec<u16>) -> Result<Self, DataError> {
        let name = format!("the classes of {}", self.name);
        self.labeled(classes, name)
    }

    fn labeled(mut self, labels: Vec<u16>, name: String) -> Result<Self, DataError> {
        if labels.len() != self.images {
            return Err(DataError::LabelsLength { name, found: labels.len(), images: self.images });
        }
        self.labels = Some(labels);
        Ok(self)
    }

    /// Number of images.
    #[allow(clippy::len_without_is_empty, reason = "there are at least two")]
    pub fn len(&self) -> usize {
        self.images
    }

    /// Coordinates of an image as a point: `height * width * channels`.
    pub fn dim(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// A number that identifies sets: of their sizes, their labels and up to 64 images, evenly spread.
    ///
    /// # Errors
    /// As [`rows`](Self::rows).
    pub fn fingerprint(&self) -> Result<u64, DataError> {
        let spread: Vec<usize> =
            (0..self.images.min(64)).map(|i| i * self.images / self.images.min(64)).collect();
        let sizes = [self.images, self.height, self.width, self.channels].map(|n| (n as u64).to_le_bytes());
        let labels = self.labels.iter().flatten().flat_map(|label| label.to_le_bytes());
        let bytes = sizes.into_iter().flatten().chain(labels).chain(self.rows(&spread)?);
        Ok(Fnv::of(bytes).number())
    }

    /// The class of each image, where labels were given.
    pub fn labels(&self) -> Option<&[u16]> {
        self.labels.as_deref()
    }

    /// The number of classes, where labels were given: one more than the largest.
    pub fn classes(&self) -> Option<usize> {
        self.labels().map(|labels| usize::from(labels.iter().copied().max().unwrap_or(0)) + 1)
    }

    /// Whether the images are held in memory; otherwise each call reads them from the file.
    pub fn in_memory(&self) -> bool {
        matches!(self.source, Source::Memory(_))
    }

    /// The images of the given numbers, one after the other: bytes `[rows, dim]`.
    ///
    /// # Errors
    /// [`DataError::Unreadable`] when a file that is read in parts has gone or shrunk since it was opened.
    ///
    /// # Panics
    /// For a number that is no image.
    #[track_caller]
    pub fn rows(&self, which: &[usize]) -> Result<Vec<u8>, DataError> {
        let outside = which.iter().find(|&&row| row >= self.images);
        assert!(outside.is_none(), "image {} of a set of {}", outside.unwrap_or(&0), self.images);
        let mut bytes = vec![0; which.len() * self.dim()];
        let unreadable = |source| DataError::Unreadable { name: self.name.clone(), source };
        self.source.read(which, self.dim(), &mut bytes).map_err(unreadable)?;
        Ok(bytes)
    }

    /// All images in order, at most `block` at a time: bytes `[rows, dim]` each.
    ///
    /// # Panics
    /// When `block` is 0.
    pub fn blocks(&self, block: usize) -> impl Iterator<Item = Result<Vec<u8>, DataError>> + '_ {
        assert!(block > 0, "a block has at least one image");
        let all = move |first: usize| (first..(first + block).min(self.images)).collect::<Vec<_>>();
        (0..self.images).step_by(block).map(move |first| self.rows(&all(first)))
    }
}

/// The first four bytes of a file, fewer where it has no more.
fn first_bytes(path: &Path, name: &str) -> Result<[u8; 4], DataError> {
    let unreadable = |source| DataError::Unreadable { name: name.to_owned(), source };
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(4).read_to_end(&mut bytes)).map_err(unreadable)?;
    let truncated = |_| DataError::Truncated {
        name: name.to_owned(),
        what: "its first word".to_owned(),
        wanted: 4,
        found: bytes.len() as u64,
    };
    <[u8; 4]>::try_from(&bytes[..]).map_err(truncated)
}
