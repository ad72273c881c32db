//! Axes of length 1.

use crate::tensor::Tensor;

impl Tensor {
    /// Adds an axis of length 1, which becomes axis `axis`; [`Tensor::expand_axes`] adds several.
    ///
    /// # Panics
    /// If `axis` is larger than the rank.
    #[track_caller]
    #[doc(alias = "unsqueeze")]
    #[doc(alias = "newaxis")]
    pub fn expand_dims(&self, axis: usize) -> Tensor {
        self.expanded("expand_dims", &[axis])
    }

    /// Adds axes of length 1, which become these axes of the result: the axes that a reduction over them removed. (NumPy's
    /// `keepdims` adds the same axes.)
    ///
    /// # Shapes and units
    /// x of rank r; the result has rank r + the number of axes.
    ///
    /// # Panics
    /// If an axis is not below the rank of the result, or is given twice.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let x = Tensor::zeros([2, 3, 4]);
    /// let sums = x.sum_axes(&[0, 2]).expand_axes(&[0, 2]);
    /// assert_eq!(sums.shape().to_vec(), [1, 3, 1]);
    /// ```
    #[track_caller]
    #[doc(alias = "keepdims")]
    pub fn expand_axes(&self, axes: &[usize]) -> Tensor {
        self.expanded("expand_axes", axes)
    }

    #[track_caller]
    fn expanded(&self, name: &str, axes: &[usize]) -> Tensor {
        let rank = self.rank() + axes.len();
        let mut left = self.shape().iter().copied();
        for (i, &axis) in axes.iter().enumerate() {
            assert!(axis < rank, "{name}: {} cannot have a new axis {axis}", self.ty());
            assert!(!axes[..i].contains(&axis), "{name}: axis {axis} is given twice");
        }
        let len = |axis| if axes.contains(&axis) { 1 } else { left.next().unwrap_or(1) };
        let shape: Vec<usize> = (0..rank).map(len).collect();
        self.reshape(shape)
    }

    /// Removes axes of length 1.
    ///
    /// # Panics
    /// If there is no such axis, it is given twice, or its length is not 1.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// assert_eq!(Tensor::zeros([1, 3, 1]).squeeze(&[0, 2]).shape().to_vec(), [3]);
    /// ```
    #[track_caller]
    pub fn squeeze(&self, axes: &[usize]) -> Tensor {
        for axis in self.distinct("squeeze", axes) {
            let len = self.shape()[axis];
            assert!(len == 1, "squeeze: axis {axis} of {} has length {len}, not 1", self.ty());
        }
        self.reshape(self.shape().without_axes(axes))
    }

    /// The axes in ascending order.
    ///
    /// # Panics
    /// If there is no such axis, or it is given twice.
    #[track_caller]
    pub(in crate::tensor) fn distinct(&self, name: &str, axes: &[usize]) -> Vec<usize> {
        let mut sorted = axes.to_vec();
        sorted.sort_unstable();
        for (i, &axis) in sorted.iter().enumerate() {
            assert!(axis < self.rank(), "{name}: {} has no axis {axis}", self.ty());
            assert!(i == 0 || sorted[i - 1] < axis, "{name}: axis {axis} is given twice");
        }
        sorted
    }
}

#[cfg(test)]
mod tests {
    use crate::array::refusal;
    use crate::ode::tests::draw::{Draw, num_cases};
    use crate::tensor::Tensor;

    /// Ranges: ranks 0 to 4, lengths 0 to 3, any set of axes in any order.
    #[test]
    fn removed_axes_come_back() {
        let (mut draw, mut seen) = (Draw(411), [0; 3]);
        for _ in 0..num_cases(40) {
            let shape: Vec<usize> = (0..draw.below(5)).map(|_| draw.below(4)).collect();
            let mut axes: Vec<usize> = (0..shape.len()).filter(|_| draw.coin()).collect();
            if draw.coin() {
                axes.reverse();
            }
            let kept: Vec<usize> =
                (0..shape.len()).map(|a| if axes.contains(&a) { 1 } else { shape[a] }).collect();
            let sum = Tensor::ones(shape.clone()).sum_axes(&axes);
            let back = sum.expand_axes(&axes);
            assert_eq!(back.shape().to_vec(), kept);
            assert_eq!(back.squeeze(&axes).shape(), sum.shape());
            assert_eq!(back.to_vec(), sum.to_vec());
            seen.iter_mut()
                .zip([axes.is_empty(), shape.contains(&0), axes.len() > 1])
                .for_each(|(seen, is)| *seen += usize::from(is));
        }
        assert!(seen.iter().all(|&n| n > 0), "no axes, empty, several: {seen:?}");
    }

    #[test]
    fn axes_that_do_not_fit_are_refused() {
        let x = || Tensor::zeros([1, 3]);
        assert_eq!(
            refusal(move || x().expand_axes(&[0, 4])),
            "expand_axes: f32[1,3] cannot have a new axis 4"
        );
        assert_eq!(refusal(move || x().expand_axes(&[0, 0])), "expand_axes: axis 0 is given twice");
        assert_eq!(refusal(move || x().squeeze(&[1])), "squeeze: axis 1 of f32[1,3] has length 3, not 1");
        assert_eq!(refusal(move || x().squeeze(&[2])), "squeeze: f32[1,3] has no axis 2");
        assert_eq!(refusal(move || x().squeeze(&[0, 0])), "squeeze: axis 0 is given twice");
    }
}
