//! NPY arrays, as `numpy.save` writes them: writes version 1.0, reads versions 1 to 3.
//!
//! The writer supports u1 and little-endian f4 and f8, in row-major order. The reader supports u1 and
//! little-endian f4, f8, i4 and i8, row- or column-major. The format is a magic number, a Python dictionary
//! as text and the raw numbers (numpy.lib.format, "Format Version 1.0"). A crate would be more code than this
//! file.

use super::IoError;
use super::atomic::write_parts;
use std::io::Read;
use std::path::Path;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Maximum number of bytes that are read for a header.
const HEADER_MAX: u64 = 1 << 17;
/// Numbers that are converted to bytes at a time.
const CHUNK: usize = 1 << 16;
/// Maximum number of axes, as in NumPy.
const MOST_AXES: usize = 64;

/// An array read from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Npy {
    /// The shape.
    pub shape: Vec<usize>,
    /// The numbers, row-major.
    pub data: Vec<f64>,
}

/// The header of an NPY file, and the offset of the numbers, for reading them in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyHeader {
    /// NumPy's name of the element type: `<f8`, `|u1`, ...
    pub descr: String,
    /// Whether the array is column-major.
    pub fortran_order: bool,
    /// The shape.
    pub shape: Vec<usize>,
    /// Bytes before the first number.
    pub offset: u64,
}

/// An element type that [`write_npy`] writes: f64, f32 or u8.
pub trait NpyNumber: Copy {
    /// NumPy's name of the type.
    #[doc(hidden)]
    const DESCR: &'static str;
    /// Appends the little-endian bytes.
    #[doc(hidden)]
    fn append(self, bytes: &mut Vec<u8>);
}

impl NpyNumber for u8 {
    const DESCR: &'static str = "|u1";
    fn append(self, bytes: &mut Vec<u8>) {
        bytes.push(self);
    }
}

impl NpyNumber for f32 {
    const DESCR: &'static str = "<f4";
    fn append(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }
}

impl NpyNumber for f64 {
    const DESCR: &'static str = "<f8";
    fn append(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }
}

/// Writes a row-major array of f64, f32 or u8. The file is written completely or not at all.
///
/// # Errors
/// [`IoError::Elements`] if there are more or fewer numbers than the shape has elements; [`IoError::Write`].
///
/// # Examples
/// ```
/// use flowline::io::{read_npy, write_npy};
/// let path = std::env::temp_dir().join("flowline-doc.npy");
/// write_npy(&path, &[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
/// assert_eq!(read_npy(&path)?.shape, [2, 2]);
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), flowline::io::IoError>(())
/// ```
pub fn write_npy<T: NpyNumber>(path: impl AsRef<Path>, shape: &[usize], data: &[T]) -> Result<(), IoError> {
    if data.len() != shape.iter().product::<usize>() {
        let (path, shape) = (path.as_ref().to_owned(), shape.to_vec());
        return Err(IoError::Elements { path, shape, found: data.len() });
    }
    write_npy_parts::<T, IoError>(path, shape, data.chunks(CHUNK).map(|part| Ok(part.to_vec())))
}

/// [`write_npy`] for numbers that arrive in parts. Only one part is in memory at a time.
///
/// # Errors
/// The error of a part, or [`IoError::Write`]; an existing file is then unchanged.
///
/// # Panics
/// If the parts do not have as many elements as the shape. The file has been written by then.
pub fn write_npy_parts<T: NpyNumber, E: From<IoError>>(
    path: impl AsRef<Path>,
    shape: &[usize],
    parts: impl Iterator<Item = Result<Vec<T>, E>>,
) -> Result<(), E> {
    let axes = shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let axes = if shape.len() == 1 { axes + "," } else { axes };
    let mut header = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({axes}), }}", T::DESCR);
    let start = MAGIC.len() + 4;
    let padded = (start + header.len() + 1).next_multiple_of(64) - start - 1;
    header.push_str(&" ".repeat(padded - header.len()));
    header.push('\n');
    let head = [MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes()].concat();
    let size = shape.iter().product::<usize>();
    let written = std::cell::Cell::new(0);
    write_parts(path.as_ref(), &head, parts, |part, file| {
        written.set(written.get() + part.len());
        let mut bytes = Vec::with_capacity(size_of::<T>() * part.len());
        part.into_iter().for_each(|x| x.append(&mut bytes));
        file.write_all(&bytes)
    })?;
    assert_eq!(size, written.get(), "write_npy_parts: the number of elements does not match shape {shape:?}");
    Ok(())
}

/// Reads an array of numbers.
///
/// # Errors
/// If the file cannot be read, is not an NPY file, is truncated, or has another element type.
pub fn read_npy(path: impl AsRef<Path>) -> Result<Npy, IoError> {
    let path = path.as_ref();
    let bytes = super::read(path)?;
    parse(&bytes).map_err(|reason| IoError::Npy { path: path.to_owned(), reason })
}

/// Reads the header of a file, without the numbers.
///
/// # Errors
/// If the file cannot be read or is not an NPY file.
pub fn read_npy_header(path: impl AsRef<Path>) -> Result<NpyHeader, IoError> {
    let path = path.as_ref();
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(HEADER_MAX).read_to_end(&mut bytes));
    read.map_err(|source| IoError::Read { path: path.to_owned(), source })?;
    let header = header(&bytes).map_err(|reason| IoError::Npy { path: path.to_owned(), reason });
    Ok(header?.0)
}

fn parse(bytes: &[u8]) -> Result<Npy, String> {
    let (NpyHeader { descr, fortran_order, shape, .. }, body) = header(bytes)?;
    let size = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).ok_or("its shape is too large")?;
    let data = elements(&descr, body)?;
    if data.len() != size {
        return Err(format!("shape {shape:?} has {size} elements, but the file holds {}", data.len()));
    }
    let data = if fortran_order { row_major(&shape, &data) } else { data };
    Ok(Npy { shape, data })
}

/// The header and the bytes after it.
fn header(bytes: &[u8]) -> Result<(NpyHeader, &[u8]), String> {
    let (header, body) = split(bytes).ok_or("it does not begin like an NPY file of version 1 to 3")?;
    let header = std::str::from_utf8(header).map_err(|_| "its header is not text")?;
    let descr = value(header, "descr").ok_or("its header names no element type")?;
    let shape = shape(value(header, "shape").ok_or("its header names no shape")?)
        .ok_or("its shape is not a tuple")?;
    if shape.len() > MOST_AXES {
        return Err(format!("its shape has {} axes, but at most {MOST_AXES} are supported", shape.len()));
    }
    let fortran_order = value(header, "fortran_order").is_some_and(|v| v.starts_with("True"));
    let (descr, offset) = (descr.trim_matches(['\'', '"']).to_owned(), (bytes.len() - body.len()) as u64);
    Ok((NpyHeader { descr, fortran_order, shape, offset }, body))
}

/// The text of the header and the bytes after it.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (length, rest) = match rest {
        [1, _, a, b, rest @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), rest),
        [2 | 3, _, a, b, c, d, rest @ ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest),
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// The text after a key of the dictionary, up to the end of the value.
fn value<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let at = header.find(&format!("'{key}'"))? + key.len() + 2;
    let rest = header[at..].trim_start().strip_prefix(':')?.trim_start();
    let end = if rest.starts_with('(') { rest.find(')')? + 1 } else { rest.find([',', '}'])? };
    Some(rest[..end].trim())
}

fn shape(text: &str) -> Option<Vec<usize>> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    inner.split(',').map(str::trim).filter(|s| !s.is_empty()).map(|s| s.parse().ok()).collect()
}

fn elements(descr: &str, body: &[u8]) -> Result<Vec<f64>, String> {
    fn each<const N: usize>(body: &[u8], number: impl Fn([u8; N]) -> f64) -> Result<Vec<f64>, String> {
        let (whole, rest) = body.as_chunks::<N>();
        if rest.is_empty() {
            Ok(whole.iter().map(|&b| number(b)).collect())
        } else {
            Err("it is truncated".into())
        }
    }
    match descr {
        "<f4" => each(body, |b| f64::from(f32::from_le_bytes(b))),
        "<f8" => each(body, f64::from_le_bytes),
        "<i4" => each(body, |b| f64::from(i32::from_le_bytes(b))),
        "<i8" => each(body, |b| i64::from_le_bytes(b) as f64),
        "|u1" => each(body, |[b]| f64::from(b)),
        other => Err(format!("its element type is {other}")),
    }
}

fn row_major(shape: &[usize], column_major: &[f64]) -> Vec<f64> {
    let place = |mut i: usize| {
        let mut index = vec![0; shape.len()];
        for (axis, &d) in shape.iter().enumerate().rev() {
            (index[axis], i) = (i % d, i / d);
        }
        index.iter().zip(shape).rev().fold(0, |at, (&j, &d)| at * d + j)
    };
    (0..column_major.len()).map(|i| column_major[place(i)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, body: &[u8]) -> Vec<u8> {
        [MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes(), body].concat()
    }

    #[test]
    fn arrays_come_back_and_lie_at_a_multiple_of_64_bytes() {
        let folder = crate::io::scratch();
        let path = folder.path().join("a.npy");
        for shape in [vec![6], vec![2, 3], vec![1, 2, 3], vec![6, 1]] {
            let data = [0.5f64, -1.0, f64::MIN_POSITIVE, 3.0, 1e300, f64::NEG_INFINITY];
            write_npy(&path, &shape, &data).unwrap();
            assert_eq!(read_npy(&path).unwrap(), Npy { shape, data: data.to_vec() });
            assert_eq!((std::fs::read(&path).unwrap().len() - 48) % 64, 0);
        }
        write_npy(&path, &[0, 2], &[] as &[f32]).unwrap();
        assert_eq!(read_npy(&path).unwrap().shape, [0, 2]);
    }

    #[test]
    fn parts_and_the_whole_array_give_the_same_file() {
        let folder = crate::io::scratch();
        let (whole, parts) = (folder.path().join("whole.npy"), folder.path().join("parts.npy"));
        write_npy(&whole, &[3, 2], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let pieces = [Ok(vec![1f32, 2.0]), Ok(vec![3.0, 4.0, 5.0, 6.0])];
        write_npy_parts::<f32, IoError>(&parts, &[3, 2], pieces.into_iter()).unwrap();
        assert_eq!(std::fs::read(whole).unwrap(), std::fs::read(parts).unwrap());
    }

    #[test]
    fn headers_written_by_numpy_are_read() {
        let body: Vec<u8> = (1..=6i64).flat_map(i64::to_le_bytes).collect();
        let text = "{'descr': '<i8', 'fortran_order': True, 'shape': (2, 3), }   \n";
        let read = parse(&file(text, &body)).unwrap();
        assert_eq!(read, Npy { shape: vec![2, 3], data: vec![1.0, 3.0, 5.0, 2.0, 4.0, 6.0] });
        let scalar =
            parse(&file("{'descr': '<f4', 'fortran_order': False, 'shape': (), }\n", &2f32.to_le_bytes()));
        assert_eq!(scalar.unwrap(), Npy { shape: vec![], data: vec![2.0] });
    }

    #[test]
    fn a_header_gives_the_offset_of_the_numbers() {
        let folder = crate::io::scratch();
        let path = folder.path().join("bytes.npy");
        let whole = file("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }\n", &[0, 7, 255, 1]);
        std::fs::write(&path, &whole).unwrap();
        let header = read_npy_header(&path).unwrap();
        assert_eq!(
            (header.descr.as_str(), header.fortran_order, &header.shape[..]),
            ("|u1", false, &[2, 2][..])
        );
        assert_eq!(whole[header.offset as usize..], [0, 7, 255, 1]);
        assert_eq!(read_npy(&path).unwrap().data, [0.0, 7.0, 255.0, 1.0]);
    }

    #[test]
    fn other_files_are_refused_with_the_reason() {
        let reason = |bytes: &[u8]| parse(bytes).unwrap_err();
        assert!(reason(b"PK\x03\x04").contains("does not begin like an NPY file"));
        let text = |descr: &str| format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (2,), }}\n");
        assert!(reason(&file(&text("<c16"), &[0; 32])).contains("its element type is <c16"));
        assert!(reason(&file(&text("<f8"), &[0; 15])).contains("it is truncated"));
        assert!(reason(&file(&text("<f8"), &[0; 8])).contains("has 2 elements, but the file holds 1"));
    }
}
