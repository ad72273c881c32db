//! A folder of images, sorted by name.
//!
//! [`raster`] reads the formats. Folders are always held in memory: images are compressed, so reading a batch
//! would decode one file per image. The set is gray if every image is gray, otherwise RGB. Transparency is
//! composited on white.

use super::source::Source;
use super::{DataError, Found};
use crate::io::raster::{self, Raster};
use std::fs;
use std::path::{Path, PathBuf};

/// File extensions of images; other files in the folder are ignored.
const ENDINGS: [&str; 6] = ["png", "jpg", "jpeg", "bmp", "gif", "webp"];

/// Decodes all images of a folder.
pub(super) fn read(path: &Path, name: &str, budget: u64) -> Result<Found, DataError> {
    let files = images(path, name)?;
    let Some(first) = files.first() else {
        let reason = "the folder holds no PNG, JPEG, BMP, GIF or WebP image".to_owned();
        return Err(DataError::NotImages { name: name.to_owned(), reason });
    };
    let sample = decode(first)?;
    let (width, height) = (sample.width() as usize, sample.height() as usize);
    let mut channels = if sample.is_gray() { 1 } else { 3 };
    let bytes = |channels: usize| (files.len() * width * height * channels) as u64;
    let mut all = Vec::new();
    for file in &files {
        let image = decode(file)?;
        let found = [image.width() as usize, image.height() as usize];
        if found != [width, height] {
            let (name, first, expected) = (name.to_owned(), called(first), [width, height]);
            return Err(DataError::UnequalSizes { name, file: called(file), found, first, expected });
        }
        if channels == 1 && !image.is_gray() {
            // The first color image: the gray images so far get three equal channels.
            channels = 3;
            all = all.into_iter().flat_map(|v: u8| [v; 3]).collect();
        }
        if bytes(channels) > budget {
            let (name, bytes) = (name.to_owned(), bytes(channels));
            let (what, remedy) = ("a folder of image files", "save them as one u1 .npy array or IDX file");
            return Err(DataError::OverBudget { name, bytes, budget, what, remedy });
        }
        append(&image, channels, &mut all);
    }
    Ok(Found { images: files.len(), size: [height, width, channels], source: Source::Memory(all) })
}

fn images(path: &Path, name: &str) -> Result<Vec<PathBuf>, DataError> {
    let unreadable = |source| DataError::Unreadable { name: name.to_owned(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        let ending = file.extension().map(|e| e.to_string_lossy().to_lowercase());
        if ending.is_some_and(|e| ENDINGS.contains(&e.as_str())) && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn decode(file: &Path) -> Result<Raster, DataError> {
    let name = file.display().to_string();
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(source) => return Err(DataError::Unreadable { name, source }),
    };
    let length = bytes.len();
    raster::decode(&bytes).map_err(|source| DataError::Undecodable { name, bytes: length, source })
}

fn append(image: &Raster, channels: usize, all: &mut Vec<u8>) {
    let on_white = |v: u8, opacity: u8| {
        let (v, a) = (u32::from(v), u32::from(opacity));
        ((v * a + 255 * (255 - a) + 127) / 255) as u8
    };
    all.extend(image.rgba8().flat_map(|p| (0..channels).map(move |c| on_white(p[c], p[3]))));
}

fn called(file: &Path) -> String {
    file.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned())
}
