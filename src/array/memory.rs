//! Public accounting of live buffers: counters, and a list.
//!
//! Every buffer of tensors and plans has an entry from its creation to its drop: the elements of an
//! [`Array`](super::Array), and the workspace and constants of a plan. The entries are in one vector under
//! one lock. Adding and removing an entry takes 50 ns, counters included; allocating its elements and its
//! shape takes 20 ns. A compiled update takes 100 us or more and creates only two or three buffers, because
//! the intermediate values are in the plan's arena. A list of weak references that is cleaned from time to
//! time would cost as much, and would also list dropped buffers. Several lists with a lock each would only
//! help threads that do little except create buffers.

use super::slab::Slab;
use super::{DType, Shape};
use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

static BUFFERS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static LIVE: Mutex<Slab<Entry>> = Mutex::new(Slab::new());

/// The number of live buffers: arrays, and the workspaces and constants of plans.
pub fn live_buffers() -> usize {
    BUFFERS.load(Relaxed)
}

/// Bytes in live buffers.
pub fn live_bytes() -> usize {
    BYTES.load(Relaxed)
}

/// The largest [`live_bytes`] since the process started, or since the last call of [`reset_peak`].
pub fn peak_bytes() -> usize {
    PEAK.load(Relaxed)
}

/// Resets the peak to the bytes that are live now.
pub fn reset_peak() {
    PEAK.store(live_bytes(), Relaxed);
}

/// A live buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveArray {
    /// The name given by `memory::set_names`; the name of a workspace or of constants states their use.
    pub name: Option<String>,
    /// The element type; `None` for a workspace or the constants of a plan, which hold values of several
    /// types.
    pub dtype: Option<DType>,
    /// The shape, or `[bytes]` without an element type.
    pub shape: Shape,
    /// Bytes of the elements.
    pub bytes: usize,
}

impl fmt::Display for LiveArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LiveArray { name, dtype, shape, bytes } = self;
        write!(f, "{bytes:>12} bytes  {}{shape}", dtype.map_or("bytes", DType::name))?;
        name.as_ref().map_or(Ok(()), |name| write!(f, "  {name}"))
    }
}

/// All live buffers, the largest first. The list shows why [`live_bytes`] is larger than expected.
///
/// # Examples
/// ```
/// use flowline::memory;
/// use flowline::nn::prelude::*;
/// let model = Mlp::new([2, 64, 2], Activation::Tanh, &Key::new(0));
/// memory::set_names("model", &model);
/// let largest = &memory::live_arrays()[0];
/// assert!(largest.name.as_ref().unwrap().starts_with("model.layers."));
/// assert_eq!((largest.bytes, largest.shape.size()), (512, 128));
/// ```
pub fn live_arrays() -> Vec<LiveArray> {
    let mut all: Vec<LiveArray> = live().iter().map(Entry::describe).collect();
    all.sort_by(|a, b| (b.bytes, &a.name, &a.shape, a.dtype).cmp(&(a.bytes, &b.name, &b.shape, b.dtype)));
    all
}

/// Axes of an entry's shape that are stored without a heap block.
const AXES: usize = 5;

#[derive(Debug)]
enum Dims {
    Few(u8, [usize; AXES]),
    Many(Box<[usize]>),
}

#[derive(Debug)]
struct Entry {
    name: Option<Cow<'static, str>>,
    dtype: Option<DType>,
    dims: Dims,
    bytes: usize,
}

impl Entry {
    fn new(name: Option<&'static str>, dtype: Option<DType>, dims: &[usize], bytes: usize) -> Entry {
        let mut few = [0; AXES];
        let dims = match few.get_mut(..dims.len()) {
            Some(place) => {
                place.copy_from_slice(dims);
                Dims::Few(dims.len() as u8, few)
            }
            None => Dims::Many(dims.into()),
        };
        Entry { name: name.map(Cow::Borrowed), dtype, dims, bytes }
    }

    fn describe(&self) -> LiveArray {
        let shape = match &self.dims {
            Dims::Few(len, dims) => Shape::from(&dims[..usize::from(*len)]),
            Dims::Many(dims) => Shape::from(dims),
        };
        let Entry { name, dtype, bytes, .. } = self;
        LiveArray { name: name.as_ref().map(ToString::to_string), dtype: *dtype, shape, bytes: *bytes }
    }
}

/// Locks the list. No code that holds the lock panics, so a poisoned lock is not an error.
fn live() -> MutexGuard<'static, Slab<Entry>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An entry in the counters and the list; dropping it removes the entry.
#[derive(Debug)]
pub(crate) struct Counted {
    bytes: usize,
    place: usize,
}

impl Counted {
    /// An entry for the elements of an array.
    pub(crate) fn array(dtype: DType, shape: &Shape) -> Counted {
        Counted::new(Entry::new(None, Some(dtype), shape, shape.size() * dtype.size()))
    }

    /// An entry for bytes without an element type.
    pub(crate) fn bytes(name: &'static str, bytes: usize) -> Counted {
        Counted::new(Entry::new(Some(name), None, &[bytes], bytes))
    }

    fn new(entry: Entry) -> Counted {
        let bytes = entry.bytes;
        BUFFERS.fetch_add(1, Relaxed);
        let now = BYTES.fetch_add(bytes, Relaxed) + bytes;
        PEAK.fetch_max(now, Relaxed);
        Counted { bytes, place: live().insert(entry) }
    }

    /// Sets or removes the name.
    pub(crate) fn rename(&self, name: Option<String>) {
        if let Some(entry) = live().get_mut(self.place) {
            entry.name = name.map(Cow::Owned);
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        BUFFERS.fetch_sub(1, Relaxed);
        BYTES.fetch_sub(self.bytes, Relaxed);
        live().remove(self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Array;
    use super::*;

    #[test]
    fn the_list_has_the_type_the_shape_and_the_name_of_what_lives_and_nothing_else() {
        let find = || live_arrays().into_iter().find(|a| a.name.as_deref() == Some("tests.seven"));
        let a = Array::zeros(DType::F64, [1, 2, 3, 1, 2, 1, 7]);
        assert_eq!(find(), None);
        a.set_name("tests.seven");
        let found = find().unwrap();
        assert_eq!(
            (found.dtype, found.shape.to_string(), found.bytes),
            (Some(DType::F64), "[1,2,3,1,2,1,7]".to_owned(), 672)
        );
        assert_eq!(found.to_string(), "         672 bytes  f64[1,2,3,1,2,1,7]  tests.seven");
        let copy = a.clone();
        drop(a);
        assert_eq!(find(), None, "a copy is another array");
        drop(copy);
    }
}
