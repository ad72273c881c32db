//! Conversions between tensors and `ndarray` arrays.

use super::Tensor;
use crate::array::{Data, Element};

impl Tensor {
    /// A copy as an `ndarray` array of `T`, converted from any element type (feature `ndarray`).
    ///
    /// # Panics
    /// For a traced tensor.
    #[track_caller]
    pub fn to_ndarray<T: Element>(&self) -> ndarray::ArrayD<T> {
        let from = self.array().data();
        let mut data = Data::zeros(T::into_data(vec![]).dtype(), self.size());
        (0..from.len()).for_each(|i| data.set_f64(i, from.get_f64(i)));
        let v = T::into_vec(data).unwrap_or_else(|_| unreachable!("invariant: the data was made of T"));
        ndarray::ArrayD::from_shape_vec(self.shape().to_vec(), v)
            .expect("invariant: as many elements as the shape has")
    }
}

impl<T: Element, D: ndarray::Dimension> From<ndarray::Array<T, D>> for Tensor {
    /// Copies the numbers only if the array is not in row-major order, or is part of a larger buffer.
    fn from(a: ndarray::Array<T, D>) -> Self {
        let shape = a.shape().to_vec();
        let a = if a.is_standard_layout() { a } else { a.as_standard_layout().into_owned() };
        let (v, offset) = a.into_raw_vec_and_offset();
        let (offset, size) = (offset.unwrap_or(0), shape.iter().product::<usize>());
        let v = if offset == 0 && v.len() == size { v } else { v[offset..offset + size].to_vec() };
        Tensor::from_vec(shape, v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{ArrayD, IxDyn};

    #[test]
    fn a_tensor_prints_as_the_array_of_its_numbers() {
        let shapes: [&[usize]; 12] = [
            &[],
            &[0],
            &[5],
            &[600],
            &[2, 3],
            &[0, 3],
            &[3, 0],
            &[30, 20],
            &[2, 3, 4],
            &[9, 8, 12],
            &[2, 0, 3],
            &[7, 2, 12, 13],
        ];
        for shape in shapes {
            let size: usize = shape.iter().product();
            let numbers: Vec<f64> = (0..size).map(|i| i as f64 / 7.0 - 20.0).collect();
            let floats = ArrayD::from_shape_vec(IxDyn(shape), numbers).unwrap();
            let singles = floats.mapv(|x| if x > 30.0 { f32::NAN } else { x as f32 });
            let (whole, counts) = (floats.mapv(|x| x as i32), floats.mapv(|x| x.abs() as u32));
            let expected =
                [format!("{floats:.6}"), format!("{singles:.6}"), whole.to_string(), counts.to_string()];
            let ours = [Tensor::from(floats), singles.into(), whole.into(), counts.into()];
            assert_eq!(ours.map(|tensor| tensor.to_string()), expected);
        }
    }
}
