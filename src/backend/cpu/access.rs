//! Layout of a value in a buffer: an offset and a stride per axis.
//!
//! Reshapes, broadcasts, slices and transposes only change this description; no element moves. A view
//! consists of an offset, lengths and strides. Strides are counted in elements and are never negative, since
//! no operation reverses an axis.

use crate::array::Shape;

/// One axis: its length and the distance between its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Dim {
    pub len: usize,
    pub stride: usize,
}

/// Element `(i_0, i_1, ..)` is at `offset + sum_d i_d stride_d`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct View {
    pub offset: usize,
    pub dims: Vec<Dim>,
}

impl View {
    /// Row-major, without gaps.
    pub fn contiguous(shape: &Shape) -> View {
        let dims = shape.iter().zip(shape.strides()).map(|(&len, stride)| Dim { len, stride }).collect();
        View { offset: 0, dims }
    }

    /// Number of elements.
    pub fn size(&self) -> usize {
        self.dims.iter().map(|d| d.len).product()
    }

    /// Axis `i` becomes axis `at[i]` of `shape`. Along axes of length 1 and new axes, the elements are
    /// repeated.
    pub fn broadcast(&self, at: &[usize], shape: &Shape) -> View {
        let mut dims: Vec<Dim> = shape.iter().map(|&len| Dim { len, stride: 0 }).collect();
        for (d, &axis) in self.dims.iter().zip(at) {
            dims[axis].stride = if d.len == dims[axis].len { d.stride } else { 0 };
        }
        View { offset: self.offset, dims }
    }

    /// Axis `i` of the result is axis `perm[i]`.
    pub fn transpose(&self, perm: &[usize]) -> View {
        View { offset: self.offset, dims: perm.iter().map(|&p| self.dims[p]).collect() }
    }

    /// Elements `start[i] .. limit[i]` of each axis `i`. A view without elements keeps the offset, since the
    /// start of an empty part may lie outside of the buffer.
    pub fn slice(&self, start: &[usize], limit: &[usize]) -> View {
        let lengths = self.dims.iter().zip(start.iter().zip(limit));
        let dims: Vec<Dim> = lengths.map(|(d, (s, l))| Dim { len: l - s, stride: d.stride }).collect();
        let skipped = || self.dims.iter().zip(start).map(|(d, s)| d.stride * s).sum::<usize>();
        let is_empty = dims.iter().any(|d| d.len == 0);
        View { offset: self.offset + if is_empty { 0 } else { skipped() }, dims }
    }

    /// The same elements in row-major order with another shape, if strides can express it.
    pub fn reshape(&self, shape: &Shape) -> Option<View> {
        if shape.size() == 0 {
            return Some(View { offset: self.offset, dims: View::contiguous(shape).dims });
        }
        let mut rest = self.pattern();
        let mut inner = Dim { len: 1, stride: 0 };
        let mut dims = vec![Dim { len: 1, stride: 0 }; shape.rank()];
        for (axis, &len) in shape.iter().enumerate().rev().filter(|(_, len)| **len != 1) {
            if inner.len == 1 {
                inner = rest.pop()?;
            }
            if !inner.len.is_multiple_of(len) {
                return None;
            }
            dims[axis] = Dim { len, stride: inner.stride };
            inner = Dim { len: inner.len / len, stride: inner.stride * len };
        }
        Some(View { offset: self.offset, dims })
    }

    /// The fewest axes that visit the same elements in the same order, outermost first. The result is `[]`
    /// for one element, and one axis of length 0 if there are no elements.
    pub fn pattern(&self) -> Vec<Dim> {
        if self.size() == 0 {
            return vec![Dim { len: 0, stride: 1 }];
        }
        let mut out: Vec<Dim> = Vec::with_capacity(self.dims.len());
        for &d in self.dims.iter().filter(|d| d.len != 1) {
            match out.last_mut() {
                Some(o) if o.stride == d.len * d.stride => *o = Dim { len: o.len * d.len, stride: d.stride },
                _ => out.push(d),
            }
        }
        out
    }

    /// Whether the elements are contiguous in their order.
    pub fn is_linear(&self) -> bool {
        match self.pattern()[..] {
            [] => true,
            [d] => d.stride == 1,
            _ => false,
        }
    }

    /// Whether there are several axes and the innermost has a stride above 1, as in a transposed matrix. A
    /// transpose through registers is then many times faster than a strided read.
    pub fn is_transposed(&self) -> bool {
        let p = self.pattern();
        p.len() > 1 && p.last().is_some_and(|d| d.stride > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(v: &View) -> Vec<usize> {
        let mut at = vec![v.offset];
        for d in &v.dims {
            at = at.iter().flat_map(|&a| (0..d.len).map(move |i| a + i * d.stride)).collect();
        }
        at
    }

    #[test]
    fn views_visit_the_elements_that_the_operations_name() {
        let v = View::contiguous(&Shape::from([2, 3, 4]));
        assert_eq!(elements(&v), (0..24).collect::<Vec<_>>());
        assert_eq!(elements(&v.slice(&[1, 0, 2], &[2, 2, 4])), [14, 15, 18, 19]);
        assert_eq!(elements(&v.transpose(&[2, 0, 1]))[..4], [0, 4, 8, 12]);
        assert_eq!(v.slice(&[1, 3, 4], &[2, 3, 4]).offset, 0, "the start of an empty part");
        let row = View::contiguous(&Shape::from([3])).broadcast(&[1], &Shape::from([2, 3]));
        assert_eq!(elements(&row), [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn a_reshape_is_a_view_exactly_where_strides_can_say_it() {
        let v = View::contiguous(&Shape::from([4, 6]));
        for view in [v.clone(), v.transpose(&[1, 0]), v.slice(&[1, 2], &[3, 5]), v.slice(&[0, 0], &[4, 1])] {
            for dims in [vec![view.size()], vec![2, view.size() / 2], vec![view.size() / 2, 1, 2]] {
                if let Some(r) = view.reshape(&Shape::from(dims)) {
                    assert_eq!(elements(&r), elements(&view));
                }
            }
        }
        assert!(v.reshape(&Shape::from([3, 8])).is_some());
        assert!(v.transpose(&[1, 0]).reshape(&Shape::from([24])).is_none());
        assert!(v.slice(&[0, 0], &[4, 1]).reshape(&Shape::from([2, 2])).is_some());
    }

    #[test]
    fn patterns_merge_what_is_adjacent() {
        let v = View::contiguous(&Shape::from([2, 3, 4]));
        assert_eq!(v.pattern(), [Dim { len: 24, stride: 1 }]);
        assert!(v.is_linear() && !v.is_transposed() && v.transpose(&[0, 2, 1]).is_transposed());
        let column = View::contiguous(&Shape::from([5, 1])).broadcast(&[0, 1], &Shape::from([5, 7]));
        assert_eq!(column.pattern(), [Dim { len: 5, stride: 1 }, Dim { len: 7, stride: 0 }]);
        assert_eq!(View::contiguous(&Shape::from([0, 3])).pattern(), [Dim { len: 0, stride: 1 }]);
    }
}
