//! Prints tensors in nested brackets, in the format of `ndarray`, which is only an optional dependency.

use super::Tensor;
use super::handle::Repr;
use crate::array::{DType, Data};
use std::fmt;

/// Tensors with fewer than this many elements are printed in full.
const LONG: usize = 500;

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Concrete(a) => write!(f, "{}{}", a.dtype(), a.shape()),
            Repr::Traced { id, ty, .. } => write!(f, "{id}: {ty}"),
        }
    }
}

/// Prints the numbers of a concrete tensor, floats with six decimals. From 500 elements on, the middle of
/// long axes is omitted. For a traced tensor, prints its node, element type and shape.
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_traced() {
            return fmt::Debug::fmt(self, f);
        }
        let digits = if matches!(self.dtype(), DType::F64 | DType::F32) { 6 } else { 0 };
        let numbers = Numbers { data: self.array().data(), shape: self.shape(), digits };
        numbers.write(f, 0, 0)
    }
}

/// Numbers in row-major order.
struct Numbers<'a> {
    data: &'a Data,
    shape: &'a [usize],
    digits: usize,
}

impl Numbers<'_> {
    /// Prints the axes from `depth` on, starting at element `from`.
    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize, from: usize) -> fmt::Result {
        let [len, inner @ ..] = &self.shape[depth..] else {
            return write!(f, "{:.*}", self.digits, self.data.get_f64(from));
        };
        let (len, size) = (*len, inner.iter().product::<usize>());
        if len * size == 0 {
            let axes = inner.len() + 1;
            return write!(f, "{}{}", "[".repeat(axes), "]".repeat(axes));
        }
        let separator = match inner.len() {
            0 => ", ".to_owned(),
            axes => format!(",\n{}{}", "\n".repeat(axes - 1), " ".repeat(depth + 1)),
        };
        // The maximum for rows and columns is odd, so that the ellipsis takes the place of the middle entry.
        let most = if inner.len() < 2 { 11 } else { 6 };
        let is_whole = self.data.len() < LONG || len <= most;
        let edge = if is_whole { len } else { most / 2 };
        f.write_str("[")?;
        for i in (0..edge).chain((len - edge).max(edge)..len) {
            if i > 0 {
                f.write_str(&separator)?;
            }
            if !is_whole && i == len - edge {
                write!(f, "...{separator}")?;
            }
            self.write(f, depth + 1, from + i * size)?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use crate::tensor::Tensor;

    #[test]
    fn numbers_are_printed_in_brackets_and_long_axes_are_elided() {
        let text = Tensor::from([[1.0, 2.5], [-3.0, 0.0]]).to_string();
        assert_eq!(text, "[[1.000000, 2.500000],\n [-3.000000, 0.000000]]");
        let whole = Tensor::from((0..600).collect::<Vec<u32>>());
        assert_eq!(whole.to_string(), "[0, 1, 2, 3, 4, ..., 595, 596, 597, 598, 599]");
        assert_eq!(Tensor::from(1_i32).to_string(), "1");
    }
}
