//! Shapes: the lengths of an array's axes, outermost first.

use std::fmt;
use std::ops::Deref;

/// Lengths of the axes, row-major; `[]` is a scalar.
#[derive(Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Shape(Vec<usize>);

impl Shape {
    /// The shape of a single number.
    pub const fn scalar() -> Shape {
        Shape(Vec::new())
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

    /// The shape with one axis of another length.
    pub fn with_axis(&self, axis: usize, len: usize) -> Shape {
        let mut dims = self.0.clone();
        dims[axis] = len;
        Shape(dims)
    }

    /// The shape without the given axes.
    pub fn without_axes(&self, axes: &[usize]) -> Shape {
        Shape(self.0.iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, &d)| d).collect())
    }

    /// What two shapes broadcast to (trailing axes aligned, length 1 stretches), if they do.
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
            .collect::<Option<Vec<_>>>()
            .map(Shape)
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl<T: AsRef<[usize]> + ?Sized> From<&T> for Shape {
    fn from(dims: &T) -> Shape {
        Shape(dims.as_ref().to_vec())
    }
}

impl From<Vec<usize>> for Shape {
    fn from(dims: Vec<usize>) -> Shape {
        Shape(dims)
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Shape {
        Shape(dims.to_vec())
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
}
