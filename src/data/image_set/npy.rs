//! Sets of images in `.npy` files.
//!
//! Shapes are `[n, h, w]` and `[n, h, w, c]`. Row-major u1 arrays are read like IDX files, in parts if they
//! exceed the budget. Other element types must hold integers from 0 to 255. Arrays of other types and
//! column-major arrays are converted, so they are read as a whole.

use super::source::Source;
use super::{DataError, Found};
use crate::io::{IoError, NpyHeader, read_npy, read_npy_header};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Mutex;

/// Opens an array of images.
pub(super) fn open(path: &Path, name: &str, budget: u64) -> Result<Found, DataError> {
    let header = read_npy_header(path)?;
    let (&images, rest) = header.shape.split_first().unwrap_or((&0, &[]));
    let size = match *rest {
        [h, w] => [h, w, 1],
        [h, w, c] => [h, w, c],
        _ => {
            let reason = format!("the array has shape {:?}", header.shape);
            return Err(DataError::NotImages { name: name.to_owned(), reason });
        }
    };
    let bytes = header.shape.iter().map(|&n| n as u64).fold(1, u64::saturating_mul);
    let source = if header.descr == "|u1" && !header.fortran_order {
        in_place(path, name, &header, bytes, budget)?
    } else if bytes.saturating_mul(8) > budget {
        // The array is read as a whole and converted through f64, 8 bytes per value.
        let (name, bytes, what) =
            (name.to_owned(), bytes.saturating_mul(8), "an array that is not row-major u1");
        let remedy = "save it as u1 in row-major order, which is read in parts";
        return Err(DataError::OverBudget { name, bytes, budget, what, remedy });
    } else {
        converted(path, name, size.iter().product())?
    };
    Ok(Found { images, size, source })
}

fn in_place(
    path: &Path,
    name: &str,
    header: &NpyHeader,
    bytes: u64,
    budget: u64,
) -> Result<Source, DataError> {
    let unreadable = |source| DataError::Unreadable { name: name.to_owned(), source };
    let mut file = File::open(path).map_err(unreadable)?;
    let (wanted, found) = (header.offset.saturating_add(bytes), file.metadata().map_err(unreadable)?.len());
    if found < wanted {
        let what = format!("shape {:?}", header.shape);
        return Err(DataError::Truncated { name: name.to_owned(), what, wanted, found });
    }
    if bytes > budget {
        return Ok(Source::File { file: Mutex::new(file), offset: header.offset });
    }
    let mut all = vec![0; bytes as usize];
    let read = file.seek(SeekFrom::Start(header.offset)).and_then(|_| file.read_exact(&mut all));
    read.map_err(unreadable)?;
    Ok(Source::Memory(all))
}

fn converted(path: &Path, name: &str, row: usize) -> Result<Source, DataError> {
    let array = read_npy(path).map_err(|e: IoError| DataError::File(e))?;
    let byte = |(i, &value): (usize, &f64)| {
        let whole = value.fract() == 0.0 && (0.0..=255.0).contains(&value);
        let refused = || DataError::GrayLevel { name: name.to_owned(), image: i / row.max(1) + 1, value };
        if whole { Ok(value as u8) } else { Err(refused()) }
    };
    Ok(Source::Memory(array.data.iter().enumerate().map(byte).collect::<Result<_, _>>()?))
}
