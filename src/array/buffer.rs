//! [`Array`]: a shape and its elements. [`super::memory`] counts and lists every live array.

use super::memory::Counted;
use super::{DType, Shape};

/// The elements of an array, row-major.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 64-bit floats.
    F64(Vec<f64>),
    /// 32-bit signed integers.
    I32(Vec<i32>),
    /// 32-bit unsigned integers.
    U32(Vec<u32>),
    /// Truth values: 0 is false, 1 is true.
    Bool(Vec<u32>),
}

macro_rules! each {
    ($data:expr, $v:ident => $body:expr) => {
        match $data {
            Data::F32($v) => $body,
            Data::F64($v) => $body,
            Data::I32($v) => $body,
            Data::U32($v) | Data::Bool($v) => $body,
        }
    };
}

impl Data {
    /// Zeros (false for booleans).
    pub fn zeros(dtype: DType, len: usize) -> Data {
        match dtype {
            DType::F32 => Data::F32(vec![0.0; len]),
            DType::F64 => Data::F64(vec![0.0; len]),
            DType::I32 => Data::I32(vec![0; len]),
            DType::U32 => Data::U32(vec![0; len]),
            DType::Bool => Data::Bool(vec![0; len]),
        }
    }

    /// `len` copies of one number, converted to the element type by `as`; for booleans, nonzero is true.
    pub fn full(dtype: DType, len: usize, x: f64) -> Data {
        match dtype {
            DType::F32 => Data::F32(vec![x as f32; len]),
            DType::F64 => Data::F64(vec![x; len]),
            DType::I32 => Data::I32(vec![x as i32; len]),
            DType::U32 => Data::U32(vec![x as u32; len]),
            DType::Bool => Data::Bool(vec![u32::from(x != 0.0); len]),
        }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        match self {
            Data::F32(_) => DType::F32,
            Data::F64(_) => DType::F64,
            Data::I32(_) => DType::I32,
            Data::U32(_) => DType::U32,
            Data::Bool(_) => DType::Bool,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        each!(self, v => v.len())
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The address of the elements, for kernels.
    pub fn as_ptr(&self) -> *const u8 {
        each!(self, v => v.as_ptr().cast())
    }

    /// The address of the elements, for kernels that write.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        each!(self, v => v.as_mut_ptr().cast())
    }

    /// Element `i` as a 64-bit float.
    pub fn get_f64(&self, i: usize) -> f64 {
        match self {
            Data::F32(v) => f64::from(v[i]),
            Data::F64(v) => v[i],
            Data::I32(v) => f64::from(v[i]),
            Data::U32(v) | Data::Bool(v) => f64::from(v[i]),
        }
    }

    /// Copies the elements of `from`, which must have the same type and number of elements.
    ///
    /// # Panics
    /// If the type or the number of elements differs.
    pub fn copy_from(&mut self, from: &Data) {
        match (self, from) {
            (Data::F32(a), Data::F32(b)) => a.copy_from_slice(b),
            (Data::F64(a), Data::F64(b)) => a.copy_from_slice(b),
            (Data::I32(a), Data::I32(b)) => a.copy_from_slice(b),
            (Data::U32(a), Data::U32(b)) | (Data::Bool(a), Data::Bool(b)) => a.copy_from_slice(b),
            (a, b) => {
                panic!("invariant: a copy keeps the element type, but {} is not {}", b.dtype(), a.dtype())
            }
        }
    }

    /// Stores a number in element `i`, converted to the element type by `as`; for booleans, nonzero is true.
    pub fn set_f64(&mut self, i: usize, x: f64) {
        match self {
            Data::F32(v) => v[i] = x as f32,
            Data::F64(v) => v[i] = x,
            Data::I32(v) => v[i] = x as i32,
            Data::U32(v) => v[i] = x as u32,
            Data::Bool(v) => v[i] = u32::from(x != 0.0),
        }
    }
}

/// A plain Rust number that can be an array's element.
pub trait Element: Copy + Send + Sync + 'static {
    /// The element type of an array of these numbers.
    const DTYPE: DType;
    /// Converts a vector without a copy.
    fn into_data(v: Vec<Self>) -> Data;
    /// The elements, if they are of this type.
    fn slice(data: &Data) -> Option<&[Self]>;
    /// The elements for writing, if they are of this type.
    fn slice_mut(data: &mut Data) -> Option<&mut [Self]>;
    /// The elements as a vector without a copy, if they are of this type; otherwise returns `data` unchanged.
    fn into_vec(data: Data) -> Result<Vec<Self>, Data>;
}

macro_rules! element {
    ($($t:ty, $variant:ident);*) => { $(
        impl Element for $t {
            const DTYPE: DType = DType::$variant;
            fn into_data(v: Vec<Self>) -> Data { Data::$variant(v) }
            fn slice(data: &Data) -> Option<&[Self]> { if let Data::$variant(v) = data { Some(v) } else { None } }
            fn slice_mut(data: &mut Data) -> Option<&mut [Self]> { if let Data::$variant(v) = data { Some(v) } else { None } }
            fn into_vec(data: Data) -> Result<Vec<Self>, Data> { if let Data::$variant(v) = data { Ok(v) } else { Err(data) } }
        }
    )* };
}
element!(f32, F32; f64, F64; i32, I32; u32, U32);

/// A shape and its elements: the buffer of a tensor.
///
/// Invariant: `data.len() == shape.size()`. [`super::memory`] counts and lists the array from creation to
/// drop.
#[derive(Debug)]
pub struct Array {
    shape: Shape,
    data: Data,
    counted: Counted,
}

impl Array {
    /// An array of the given elements.
    ///
    /// # Panics
    /// If the number of elements is not the shape's size.
    #[track_caller]
    pub fn new(shape: impl Into<Shape>, data: Data) -> Array {
        let shape = shape.into();
        assert_eq!(
            shape.size(),
            data.len(),
            "an array of shape {shape} needs {} elements, not {}",
            shape.size(),
            data.len()
        );
        let counted = Counted::array(data.dtype(), &shape);
        Array { shape, data, counted }
    }

    /// An array of plain Rust numbers, without a copy of the vector.
    #[track_caller]
    pub fn from_vec<T: Element>(shape: impl Into<Shape>, v: Vec<T>) -> Array {
        Array::new(shape, T::into_data(v))
    }

    /// Zeros.
    pub fn zeros(dtype: DType, shape: impl Into<Shape>) -> Array {
        let shape = shape.into();
        let data = Data::zeros(dtype, shape.size());
        Array::new(shape, data)
    }

    /// An array whose elements all equal `x`.
    pub fn full(dtype: DType, shape: impl Into<Shape>, x: f64) -> Array {
        let shape = shape.into();
        let data = Data::full(dtype, shape.size(), x);
        Array::new(shape, data)
    }

    /// A single number of the given type.
    pub fn scalar(dtype: DType, x: f64) -> Array {
        Array::full(dtype, Shape::scalar(), x)
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }

    /// The elements.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// The elements, for writing; their number and type must not change.
    pub(crate) fn data_mut(&mut self) -> &mut Data {
        &mut self.data
    }

    /// Whether `other` has the same shape and element type.
    pub fn is_like(&self, other: &Array) -> bool {
        self.dtype() == other.dtype() && self.shape == other.shape
    }

    /// Exchanges the elements of two arrays of the same shape and element type, without a copy. Each array keeps its name.
    ///
    /// # Panics
    /// If the shapes or the element types differ.
    pub(crate) fn swap_data(&mut self, other: &mut Array) {
        assert!(self.is_like(other), "invariant: {} and {} have the same type", self.shape, other.shape);
        std::mem::swap(&mut self.data, &mut other.data);
    }

    /// The elements, moved out.
    pub fn into_data(self) -> Data {
        self.data
    }

    /// Names this buffer in [`super::memory::live_arrays`]; copies have no name.
    pub fn set_name(&self, name: impl Into<String>) {
        self.counted.rename(Some(name.into()));
    }

    /// Removes the name, for an array that is reused for another value.
    pub(crate) fn forget_name(&self) {
        self.counted.rename(None);
    }

    /// Bytes of the elements.
    pub fn bytes(&self) -> usize {
        self.data.len() * self.dtype().size()
    }

    /// The number that all elements equal, bit for bit; `None` if elements differ or the array is empty.
    pub fn uniform(&self) -> Option<f64> {
        let first = (!self.data.is_empty()).then(|| self.data.get_f64(0))?;
        (1..self.data.len()).all(|i| self.data.get_f64(i).to_bits() == first.to_bits()).then_some(first)
    }

    /// All elements as 64-bit floats.
    pub fn to_f64(&self) -> Vec<f64> {
        (0..self.data.len()).map(|i| self.data.get_f64(i)).collect()
    }
}

impl Clone for Array {
    fn clone(&self) -> Array {
        Array::new(self.shape.clone(), self.data.clone())
    }
}

impl PartialEq for Array {
    fn eq(&self, other: &Array) -> bool {
        self.shape == other.shape && self.data == other.data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_counted_while_it_lives() {
        use super::super::memory::{live_arrays, live_bytes, peak_bytes};
        // Other tests create arrays at the same time, so this test uses a shape that no other test uses.
        let listed =
            || live_arrays().iter().filter(|a| *a.shape == [11, 13, 17]).map(|a| a.bytes).collect::<Vec<_>>();
        assert!(listed().is_empty());
        let a = Array::zeros(DType::F64, [11, 13, 17]);
        assert_eq!((a.bytes(), listed()), (8 * 11 * 13 * 17, vec![a.bytes()]));
        assert!(live_bytes() >= a.bytes() && peak_bytes() >= live_bytes().min(a.bytes()));
        let copy = a.clone();
        assert_eq!(listed(), [a.bytes(); 2]);
        drop(a);
        assert_eq!(listed(), [copy.bytes()]);
        drop(copy.into_data());
        assert!(listed().is_empty());
    }

    #[test]
    #[should_panic(expected = "an array of shape [2,2] needs 4 elements, not 3")]
    fn a_wrong_number_of_elements_is_refused() {
        let _ = Array::from_vec([2, 2], vec![1.0f32, 2.0, 3.0]);
    }
}
