//! A set of images as points: one byte per pixel value, from a folder, an IDX file or an `.npy` array.
//!
//! This module handles bytes, sizes and labels; `pixels` turns bytes into real numbers (dequantization and
//! transforms). Pixel values are stored as bytes: 47 MB for MNIST instead of 188 MB as f32. An
//! uncompressed file of bytes that is larger than the memory budget is read image by image on demand.
//!
//! A memory map would also read on demand, but needs `unsafe` and a crate. It would not be faster: images are
//! read in the shuffled order of a batch either way, and the operating system caches the same pages.

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

/// Default memory budget in bytes: images up to this size are held in memory, larger ones are read in parts
/// if their format allows it.
pub const MEMORY_BUDGET: u64 = 256 << 20;

/// Images of one size, optionally with a label per image.
///
/// # Shapes and units
/// Image i is `height x width x channels` bytes in 0..=255, row-major, top row first, channels last.
///
/// # Examples
/// A shuffled loader with fixed batch shapes is a [`Dataset`](crate::tensor::Dataset) of row numbers. It
/// works for sets larger than memory, because only the rows of a batch are read.
/// ```no_run
/// use flowline::data::ImageSet;
/// use flowline::data::extra::Split;
/// use flowline::nn::prelude::*;
/// let images = ImageSet::open("train-images-idx3-ubyte.gz")?.with_labels("train-labels-idx1-ubyte.gz")?;
/// let rows = Split::seeded(images.len(), [0.1, 0.0], images.labels(), 0)?.train.iter().map(|&row| row as u32).collect::<Vec<_>>();
/// let rows = Dataset::new(Tensor::from(rows))?;
/// for batch in rows.epoch(256, &Key::new(0)) {  // the last batch is padded with rows of weight 0
///     let which: Vec<usize> = batch.rows.to_vec().into_iter().map(|row| row as usize).collect();
///     println!("{} bytes, {} count", images.rows(&which)?.len(), batch.count());
/// }
/// # Ok::<(), flowline::Error>(())
/// ```
#[derive(Debug)]
pub struct ImageSet {
    /// The name used in messages; the path if there is one.
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

/// The contents of a file, of a folder or of bytes in memory.
struct Found {
    images: usize,
    /// Height, width, channels.
    size: [usize; 3],
    source: Source,
}

impl ImageSet {
    /// Opens a folder of equal-sized images (sorted by name), an IDX file, gzipped or not (recognized by its
    /// first bytes, not its name), or an `.npy` array `[n, h, w]` or `[n, h, w, c]`. Up to [`MEMORY_BUDGET`]
    /// bytes of images are held in memory.
    ///
    /// # Errors
    /// [`DataError`] for unequal sizes (names the two files), a truncated file (with the expected and actual
    /// bytes), an unknown magic number, fewer than two images, or images over the budget that cannot be read
    /// in parts (gzip files, folders, and arrays other than row-major u1).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        Self::open_within(path, MEMORY_BUDGET)
    }

    /// [`open`](Self::open) with another memory budget, in bytes.
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

    /// A set from bytes in memory, `[n, height, width, channels]`; `size` is `[height, width, channels]`.
    ///
    /// # Errors
    /// [`DataError::NoImages`] for fewer than two images, images without pixels, or bytes that are not a
    /// whole number of images; [`DataError::Channels`] unless there are 1 or 3 channels.
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
                "{} bytes, not a whole number of images of {width} x {height} x {channels} bytes",
                bytes.len()
            );
            return Err(DataError::NoImages { name: name.to_owned(), found });
        }
        let images = bytes.len() / dim.max(1);
        Self::of(name.to_owned(), Found { images, size, source: Source::Memory(bytes) })
    }

    /// Adds the class of each image from an IDX file of labels (gzipped or not), `.npy` `[n]`, or `.csv` with
    /// one column.
    ///
    /// # Errors
    /// [`DataError`] if the file cannot be read, if there is not one label per image, or if a label is not a
    /// whole number from 0 to 65535.
    pub fn with_labels(self, path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        self.labeled(labels::read(path)?, path.display().to_string())
    }

    /// Adds the class of each image, counted from 0.
    ///
    /// # Errors
    /// [`DataError::LabelsLength`] if there is not one class per image.
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

    /// Number of pixel values of an image: `height * width * channels`.
    pub fn dim(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// A fingerprint of the set: its sizes, its labels and up to 64 evenly spaced images.
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

    /// The class of each image, if labels were given.
    pub fn labels(&self) -> Option<&[u16]> {
        self.labels.as_deref()
    }

    /// The number of classes (the largest label plus 1), if labels were given.
    pub fn classes(&self) -> Option<usize> {
        self.labels().map(|labels| usize::from(labels.iter().copied().max().unwrap_or(0)) + 1)
    }

    /// Whether the images are held in memory; otherwise each call of [`rows`](Self::rows) reads them from the
    /// file.
    pub fn in_memory(&self) -> bool {
        matches!(self.source, Source::Memory(_))
    }

    /// The images with the given numbers, concatenated: bytes `[rows, dim]`.
    ///
    /// # Errors
    /// [`DataError::Unreadable`] if a file that is read in parts was truncated since it was opened, or cannot
    /// be read for another reason.
    ///
    /// # Panics
    /// When a number is not below [`len`](Self::len).
    #[track_caller]
    pub fn rows(&self, which: &[usize]) -> Result<Vec<u8>, DataError> {
        let outside = which.iter().find(|&&row| row >= self.images);
        assert!(
            outside.is_none(),
            "image {} is out of range for a set of {} images",
            outside.unwrap_or(&0),
            self.images
        );
        let mut bytes = vec![0; which.len() * self.dim()];
        let unreadable = |source| DataError::Unreadable { name: self.name.clone(), source };
        self.source.read(which, self.dim(), &mut bytes).map_err(unreadable)?;
        Ok(bytes)
    }

    /// All images in order, in blocks of at most `block`: bytes `[rows, dim]` each.
    ///
    /// # Panics
    /// When `block` is 0.
    pub fn blocks(&self, block: usize) -> impl Iterator<Item = Result<Vec<u8>, DataError>> + '_ {
        assert!(block > 0, "a block needs at least one image");
        let all = move |first: usize| (first..(first + block).min(self.images)).collect::<Vec<_>>();
        (0..self.images).step_by(block).map(move |first| self.rows(&all(first)))
    }
}

/// The first four bytes of a file, or fewer if it is shorter.
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
