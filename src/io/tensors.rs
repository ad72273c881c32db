//! Trees of tensors as safetensors files: each leaf under its path (`layers.0.weight`).
//!
//! Equal trees have equal bytes. The format sorts tensors by alignment, then by name, so the order of insertion
//! has no effect. The metadata has at most one entry, because several would have the order of a hash map.
//! Booleans are stored as U32, as in memory.

use super::{IoError, read, write_atomic};
use crate::array::{Array, DType, Data};
use crate::tensor::{Tensor, Tree};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use std::collections::BTreeMap;
use std::path::Path;

/// The key of the metadata entry.
pub(super) const METADATA_KEY: &str = "flowline";

/// Writes the tensor leaves of a tree, each under its path.
///
/// # Errors
/// [`IoError::Write`].
///
/// # Examples
/// ```
/// use flowline::io;
/// use flowline::nn::prelude::*;
/// let path = std::env::temp_dir().join("flowline-save-doc.safetensors");
/// let pair = vec![Tensor::from([1.0, 2.0]), Tensor::ones([3])];
/// io::save(&path, &pair)?;
/// let zeros = vec![Tensor::from([0.0, 0.0]), Tensor::zeros([3])];
/// assert_eq!(io::load(&path, &zeros)?[0].to_vec(), [1.0, 2.0]);
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), flowline::io::IoError>(())
/// ```
#[doc(alias = "tree_serialise_leaves")]
#[doc(alias = "state_dict")]
#[doc(alias = "save_state_dict")]
pub fn save(path: impl AsRef<Path>, tree: &impl Tree) -> Result<(), IoError> {
    let bytes = to_bytes(&tree.named_leaves(), None);
    write_atomic(path, |file| file.write_all(&bytes))
}

/// Reads the file's tensors into a tree; each must have the shape and the element type of the leaf with this
/// path.
///
/// Static values (an activation, a number of layers) are not in the file and are taken from `like`.
///
/// # Errors
/// If the file cannot be read, is damaged, or was saved from a tree with other leaves.
#[doc(alias = "tree_deserialise_leaves")]
#[doc(alias = "load_state_dict")]
pub fn load<T: Tree>(path: impl AsRef<Path>, like: &T) -> Result<T, IoError> {
    let path = path.as_ref();
    let (tensors, _) = from_bytes(path, &read(path)?)?;
    fill(path, tensors, like)
}

/// The bytes of a file with these tensors and this metadata entry.
pub(super) fn to_bytes(leaves: &[(String, Tensor)], metadata: Option<String>) -> Vec<u8> {
    let data: Vec<Vec<u8>> = leaves.iter().map(|(_, t)| little_endian(t.array().data())).collect();
    let views = leaves.iter().zip(&data).map(|((name, t), bytes)| {
        let view = TensorView::new(file_dtype(t.dtype()), t.shape().to_vec(), bytes);
        (name.as_str(), view.expect("invariant: the number of bytes matches the shape"))
    });
    let metadata = metadata.map(|text| [(METADATA_KEY.to_owned(), text)].into_iter().collect());
    safetensors::serialize(views, metadata)
        .expect("invariant: leaves have different paths and a short header")
}

/// The tensors by name, and the metadata entry if there is one.
pub(super) fn from_bytes(
    path: &Path,
    bytes: &[u8],
) -> Result<(BTreeMap<String, Tensor>, Option<String>), IoError> {
    let damaged = |reason: String| IoError::Damaged { path: path.to_owned(), bytes: bytes.len(), reason };
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| damaged(e.to_string()))?;
    let metadata = header.metadata().as_ref().and_then(|map| map.get(METADATA_KEY)).cloned();
    let file = SafeTensors::deserialize(bytes).map_err(|e| damaged(e.to_string()))?;
    let mut tensors = BTreeMap::new();
    for (name, view) in file.iter() {
        let data = numbers(view.dtype(), view.data())
            .ok_or_else(|| damaged(format!("tensor \"{name}\" has element type {}", view.dtype())))?;
        tensors.insert(name.to_owned(), Tensor::from_array(Array::new(view.shape(), data)));
    }
    Ok((tensors, metadata))
}

/// The tree with the given tensors; names, element types and shapes must match.
pub(super) fn fill<T: Tree>(
    path: &Path,
    mut tensors: BTreeMap<String, Tensor>,
    like: &T,
) -> Result<T, IoError> {
    let mut leaves = Vec::new();
    for (name, leaf) in like.named_leaves() {
        let path = path.to_owned();
        let Some(found) = tensors.remove(&name) else {
            return Err(IoError::MissingTensor { path, name });
        };
        let is_other_type = found.dtype() != stored_as(leaf.dtype());
        if is_other_type || found.shape() != leaf.shape() {
            let (found, expected) = (format!("{found:?}"), format!("{leaf:?}"));
            return Err(match is_other_type {
                true => IoError::OtherType { path, name, found, expected },
                false => IoError::OtherTensor { path, name, found, expected },
            });
        }
        leaves.push(found.cast(leaf.dtype()));
    }
    match tensors.into_keys().next() {
        Some(name) => Err(IoError::UnknownTensor { path: path.to_owned(), name }),
        None => Ok(like.with_leaves(leaves)),
    }
}

/// The element type with which a file stores tensors of type `dtype`.
pub(super) fn stored_as(dtype: DType) -> DType {
    if dtype == DType::Bool { DType::U32 } else { dtype }
}

fn file_dtype(dtype: DType) -> Dtype {
    match dtype {
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
        DType::I32 => Dtype::I32,
        DType::U32 | DType::Bool => Dtype::U32,
    }
}

pub(super) fn little_endian(data: &Data) -> Vec<u8> {
    match data {
        Data::F32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::F64(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::I32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::U32(v) | Data::Bool(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
    }
}

fn numbers(dtype: Dtype, bytes: &[u8]) -> Option<Data> {
    let (words, _) = bytes.as_chunks::<4>();
    let (longs, _) = bytes.as_chunks::<8>();
    Some(match dtype {
        Dtype::F32 => Data::F32(words.iter().map(|&b| f32::from_le_bytes(b)).collect()),
        Dtype::F64 => Data::F64(longs.iter().map(|&b| f64::from_le_bytes(b)).collect()),
        Dtype::I32 => Data::I32(words.iter().map(|&b| i32::from_le_bytes(b)).collect()),
        Dtype::U32 => Data::U32(words.iter().map(|&b| u32::from_le_bytes(b)).collect()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Vec<Tensor> {
        vec![
            Tensor::from(vec![1.5f32, -0.0, f32::MIN_POSITIVE]),
            Tensor::from([[1.0f64, 2.0]]),
            Tensor::from(vec![7u32, u32::MAX]),
            Tensor::from(-3i32),
        ]
    }

    #[test]
    fn a_tree_comes_back_bit_for_bit_and_gives_the_same_bytes() {
        let folder = crate::io::scratch();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        save(&a, &tree()).unwrap();
        let zeros = tree().map_leaves(|t| Tensor::full(t.dtype(), t.shape().clone(), 0.0));
        let back = load(&a, &zeros).unwrap();
        for (x, y) in tree().iter().zip(&back) {
            assert_eq!(x.array(), y.array());
        }
        save(&b, &back).unwrap();
        assert_eq!(std::fs::read(a).unwrap(), std::fs::read(b).unwrap());
    }

    #[test]
    fn trees_that_do_not_fit_are_refused_by_name() {
        let folder = crate::io::scratch();
        let path = folder.path().join("a");
        save(&path, &tree()).unwrap();
        let other = |change: &dyn Fn(&mut Vec<Tensor>)| {
            let mut like = tree();
            change(&mut like);
            load(&path, &like).unwrap_err().to_string()
        };
        assert!(other(&|t| t.push(Tensor::zeros([1]))).contains("has no tensor \"4\""));
        assert!(other(&|t| drop(t.pop())).contains("has a tensor \"3\" that is not a leaf"));
        let shape = other(&|t| t[0] = Tensor::zeros([2]));
        assert!(shape.contains(
            "tensor \"0\" is f32[3], expected f32[2]; the file was saved from a tree with other shapes"
        ));
        let dtype = other(&|t| t[0] = t[0].cast(DType::F64));
        assert!(
            dtype.contains(
                "tensor \"0\" is f32[3], expected f64[3]; cast the tree to the file's element type"
            )
        );
    }
}
