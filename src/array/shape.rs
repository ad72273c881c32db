//! Shapes: the lengths of an array's axes, outermost first.

use smallvec::SmallVec;
use std::fmt;
use std::ops::Deref;

/// Lengths of the axes, row-major; `[]` is a scalar.
///
/// Invariant: the product of the nonzero lengths, times the size of the largest element type, fits into an
/// `isize`. So no size, stride or number of bytes of an array overflows, and shapes with fewer or shorter axes
/// need no check.
#[derive(Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Shape(Lengths);

/// Up to four lengths are stored inline.
type Lengths = SmallVec<[usize; 4]>;

/// Lengths of which the nonzero ones have a product above [`Shape::MAX_SIZE`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an array of shape {dims:?} has more elements than memory can address")]
pub struct ShapeError {
    /// The lengths.
    pub dims: Vec<usize>,
}

impl Shape {
    /// The maximum number of elements of an array: `isize::MAX` bytes of the largest element type.
    pub const MAX_SIZE: usize = isize::MAX as usize / size_of::<f64>();

    /// A shape of these lengths.
    ///
    /// # Errors
    /// If the product of the nonzero lengths is above [`Shape::MAX_SIZE`].
    pub fn try_new(dims: impl Into<Vec<usize>>) -> Result<Shape, ShapeError> {
        Shape::of(&dims.into())
    }

    fn of(dims: &[usize]) -> Result<Shape, ShapeError> {
        let product = dims.iter().filter(|&&d| d > 0).try_fold(1_usize, |size, &d| size.checked_mul(d));
        match product {
            Some(size) if size <= Self::MAX_SIZE => Ok(Shape(SmallVec::from_slice(dims))),
            _ => Err(ShapeError { dims: dims.to_vec() }),
        }
    }

    #[track_caller]
    fn new(dims: &[usize]) -> Shape {
        Shape::of(dims).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The shape of a single number.
    pub const fn scalar() -> Shape {
        Shape(SmallVec::new_const())
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// Number of elements.
    pub fn size(&self) -> usize {
        self.0.iter().product()
    }

    /// Row-major strides in elements.
    pub fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.rank()];
        for axis in (1..self.rank()).rev() {
            strides[axis - 1] = strides[axis] * self.0[axis];
        }
        strides
    }

    /// The shape with length `len` on axis `axis`.
    ///
    /// # Panics
    /// If `axis` is out of range, or an array of the new shape would exceed the address space.
    #[track_caller]
    pub fn with_axis(&self, axis: usize, len: usize) -> Shape {
        let mut dims = self.0.clone();
        dims[axis] = len;
        Shape::new(&dims)
    }

    /// The shape without the given axes.
    pub fn without_axes(&self, axes: &[usize]) -> Shape {
        Shape(self.0.iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, &d)| d).collect())
    }

    /// The index along each axis of element `i`, counted in row-major order.
    pub fn unravel(&self, mut i: usize) -> Vec<usize> {
        let mut index: Vec<usize> = self.iter().rev().map(|&n| (i % n.max(1), i /= n.max(1)).0).collect();
        index.reverse();
        index
    }

    /// The shape that two shapes broadcast to, by the rules of NumPy; `None` if they are incompatible or the
    /// result would exceed the address space.
    pub fn broadcast(&self, other: &Shape) -> Option<Shape> {
        let rank = self.rank().max(other.rank());
        let axis = |s: &Shape, i: usize| (i + s.rank()).checked_sub(rank).map_or(1, |j| s[j]);
        (0..rank)
            .map(|i| match (axis(self, i), axis(other, i)) {
                (a, b) if a == b => Some(a),
                (1, b) => Some(b),
                (a, 1) => Some(a),
                _ => None,
            })
            .collect::<Option<Lengths>>()
            .and_then(|dims| Shape::of(&dims).ok())
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl<T: AsRef<[usize]> + ?Sized> From<&T> for Shape {
    #[track_caller]
    fn from(dims: &T) -> Shape {
        Shape::new(dims.as_ref())
    }
}

impl From<Vec<usize>> for Shape {
    #[track_caller]
    fn from(dims: Vec<usize>) -> Shape {
        Shape::new(&dims)
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    #[track_caller]
    fn from(dims: [usize; N]) -> Shape {
        Shape::new(&dims)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, d) in self.0.iter().enumerate() {
            write!(f, "{}{d}", if i > 0 { "," } else { "" })?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_broadcast_as_in_numpy() {
        let s = |d: &[usize]| Shape::from(d);
        assert_eq!(s(&[3, 1]).broadcast(&s(&[4])), Some(s(&[3, 4])));
        assert_eq!(s(&[]).broadcast(&s(&[2, 2])), Some(s(&[2, 2])));
        assert_eq!(s(&[3]).broadcast(&s(&[4])), None);
        assert_eq!(s(&[2, 3, 4]).strides(), [12, 4, 1]);
        assert_eq!(s(&[2, 3]).to_string(), "[2,3]");
    }

    /// Drawn: 2,000 shapes of 0 to 7 axes of length 0 to 3, inline and on the heap, beside the same rules on lists.
    #[test]
    fn shapes_of_any_rank_agree_with_lists() {
        let mut draw = crate::ode::tests::draw::Draw(1);
        let mut num_long = 0;
        for _ in 0..2000 {
            let dims: Vec<usize> = (0..draw.below(8)).map(|_| draw.below(4)).collect();
            let shape = Shape::from(dims.clone());
            num_long += usize::from(dims.len() > 4);
            assert_eq!((&*shape, shape.rank(), shape.size()), (&*dims, dims.len(), dims.iter().product()));
            let strides: Vec<usize> = (0..dims.len()).map(|i| dims[i + 1..].iter().product()).collect();
            assert_eq!(shape.strides(), strides);
            for i in 0..shape.size() {
                let index = shape.unravel(i);
                assert!(index.iter().zip(&dims).all(|(i, n)| i < n));
                assert_eq!(index.iter().zip(&strides).map(|(i, stride)| i * stride).sum::<usize>(), i);
            }
            let dropped: Vec<usize> = (0..dims.len()).filter(|_| draw.below(2) == 0).collect();
            let kept = (0..dims.len()).filter(|axis| !dropped.contains(axis)).map(|axis| dims[axis]);
            assert_eq!(*shape.without_axes(&dropped), *kept.collect::<Vec<_>>());
            // Broadcasting with ones, and with fewer axes, gives the shape back.
            let first = draw.below(dims.len() + 1);
            let ones: Vec<usize> =
                dims[first..].iter().map(|&n| if draw.below(2) == 0 { 1 } else { n }).collect();
            assert_eq!(shape.broadcast(&Shape::from(ones)), Some(shape.clone()));
        }
        assert!((500..1500).contains(&num_long), "{num_long} shapes on the heap");
    }

    #[test]
    fn lengths_whose_product_wraps_are_refused() {
        let most = Shape::MAX_SIZE;
        for dims in
            [vec![1 << 62, 4], vec![usize::MAX], vec![most + 1], vec![usize::MAX, 0, 2], vec![1 << 32; 3]]
        {
            assert_eq!(Shape::try_new(dims.clone()), Err(ShapeError { dims }));
        }
        for dims in [vec![most], vec![], vec![0, 0], vec![most, 0, 1]] {
            assert_eq!(&*Shape::try_new(dims.clone()).unwrap(), &dims);
        }
        assert_eq!(Shape::from([1, most]).broadcast(&Shape::from([2, 1])), None);
        assert_eq!(
            crate::array::refusal(|| Shape::from([1 << 62, 4])),
            "an array of shape [4611686018427387904, 4] has more elements than memory can address"
        );
    }
}
