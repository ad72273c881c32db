//! A drawn figure in memory, and its way to disk: whole or not at all.
use super::PlotError;
use crate::io::raster::{Channels, Depth, encode_png};
use std::io::Write;
use std::path::Path;

/// An RGB figure, row-major from the top left.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figure {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// `3 * width * height` bytes.
    pub rgb: Vec<u8>,
}

impl Figure {
    /// A white figure.
    pub(super) fn white(width: u32, height: u32) -> Self {
        Self { width, height, rgb: vec![255; (3 * width * height) as usize] }
    }

    /// The color of a pixel.
    pub fn pixel(&self, x: u32, y: u32) -> [u8; 3] {
        let at = self.index(x, y);
        [self.rgb[at], self.rgb[at + 1], self.rgb[at + 2]]
    }

    /// This figure with another on its right; the lower one ends in white.
    pub fn hstack(&self, right: &Figure) -> Figure {
        let mut both = Figure::white(self.width + right.width, self.height.max(right.height));
        for (figure, from) in [(self, 0), (right, self.width)] {
            let width = 3 * figure.width as usize;
            for (y, row) in (0..figure.height).zip(figure.rgb.chunks_exact(width.max(1))) {
                let at = both.index(from, y);
                both.rgb[at..at + width].copy_from_slice(row);
            }
        }
        both
    }

    pub(super) fn set(&mut self, x: u32, y: u32, color: [u8; 3]) {
        let at = self.index(x, y);
        self.rgb[at..at + 3].copy_from_slice(&color);
    }

    fn index(&self, x: u32, y: u32) -> usize {
        3 * (y as usize * self.width as usize + x as usize)
    }

    /// The figure as a PNG file held in memory; the same figure gives the same bytes.
    ///
    /// # Errors
    /// [`PlotError::Encode`].
    pub fn to_png_bytes(&self) -> Result<Vec<u8>, PlotError> {
        let Self { width, height, ref rgb } = *self;
        encode_png([width, height], Channels::Rgb, Depth::Eight, rgb).map_err(|source| PlotError::Encode {
            width,
            height,
            source,
        })
    }

    /// Writes a PNG file: to a temporary file beside it, synced, then renamed.
    ///
    /// # Errors
    /// [`PlotError::Write`] names the file; no partial file stays behind, and what stood at `path` is untouched.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), PlotError> {
        let path = path.as_ref();
        let bytes = self.to_png_bytes()?;
        write_whole(path, &bytes).map_err(|source| PlotError::Write { path: path.to_owned(), source })
    }
}

fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let name = path.file_name().ok_or_else(|| std::io::Error::other("the path names no file"))?;
    let temporary = path.with_file_name(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
    let written = std::fs::File::create(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one to tell; that the temporary file may never have been made is no second one.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_file_holds_the_picture() {
        let folder = crate::io::scratch();
        let path = folder.path().join("a.png");
        let mut figure = Figure::white(7, 5);
        figure.set(3, 4, [1, 2, 3]);
        figure.save(&path).unwrap();
        figure.save(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), figure.to_png_bytes().unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn pictures_beside_each_other_keep_their_pixels() {
        let (mut a, mut b) = (Figure::white(3, 2), Figure::white(2, 4));
        a.set(2, 1, [1, 2, 3]);
        b.set(0, 3, [4, 5, 6]);
        let both = a.hstack(&b);
        assert_eq!((both.width, both.height), (5, 4));
        assert_eq!((both.pixel(2, 1), both.pixel(3, 3), both.pixel(0, 3)), ([1, 2, 3], [4, 5, 6], [255; 3]));
    }

    #[test]
    fn failed_write_names_the_file_and_leaves_nothing() {
        let folder = crate::io::scratch();
        let taken = folder.path().join("taken.png");
        std::fs::create_dir_all(taken.join("inside")).unwrap(); // a rename onto it fails
        let missing = folder.path().join("no/such/folder.png");
        for path in [&taken, &missing] {
            let message = Figure::white(3, 2).save(path).unwrap_err().to_string();
            assert!(message.contains(&path.display().to_string()), "{message}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
