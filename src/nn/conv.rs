//! Convolution layers for images.
//!
//! Without stride and dilation, a convolution is one operation ([`Tensor::conv2d`]), which allocates nothing
//! larger than its inputs and output. Strided, dilated and transposed convolutions, and those with at least as many
//! zeros on a side as the kernel is long, use im2col: the windows of the padded image are concatenated along the
//! channels and multiplied by the weights as a matrix. This takes slices, reshapes, one concatenation and one
//! product, and temporarily up to `kernel height x kernel width` times the memory of the padded image, which in a
//! transposed convolution includes zeros between the pixels. One product per tap would need less memory but run
//! slower, because each product would be only as wide as the channels.
//!
//! Images are `[n, height, width, channels]`: channels last makes the rows of the product contiguous.

use super::Init;
use crate::tensor::{Key, Tensor};
use crate::tree;

tree! {
    /// Zeros around an image.
    #[derive(Copy, PartialEq, Eq)]
    pub enum Padding {
        /// No padding: windows lie inside the image.
        Valid,
        /// A side of length n becomes `ceil(n / stride)`; if the number of zeros is odd, the extra zero is at
        /// the end.
        Same,
        /// `lo` zeros above and left, `hi` zeros below and right.
        By {
            /// Above and left.
            lo: [usize; 2],
            /// Below and right.
            hi: [usize; 2],
        },
    }
}

tree! {
    /// `y[n, p, q, o] = b[o] + sum over i, j, c of x[n, p s + i d - lo, q s + j d - lo, c] W[i, j, c, o]`, with
    /// zeros around x.
    ///
    /// A side of length n becomes `floor((n + lo + hi - d (k - 1) - 1) / s) + 1`.
    ///
    /// # Shapes and units
    /// x `[n, height, width, in]`, W `[kernel height, kernel width, in, out]`, b `[out]`; s, d and lo are per
    /// side.
    ///
    /// # References
    /// LeCun et al. (1998), Gradient-based learning applied to document recognition, section II.A; output
    /// sizes as in Dumoulin and Visin (2016), A guide to convolution arithmetic.
    pub struct Conv2d {
        /// W, of shape `[kernel height, kernel width, in, out]`.
        pub weight: Tensor,
        /// b, of shape `[out]`.
        pub bias: Option<Tensor>,
        /// s, the distance between windows.
        pub stride: [usize; 2],
        /// d, the distance between the taps of a window.
        pub dilation: [usize; 2],
        /// The zeros around the image.
        pub padding: Padding,
    }
}

impl Conv2d {
    /// Stride 1, no padding. Weights and bias are uniform within 1 / sqrt(kernel height x kernel width x in)
    /// ([`Init::FanIn`]), as in PyTorch and Equinox.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::*;
    /// use flowline::nn::extra::Padding;
    /// use flowline::nn::prelude::*;
    /// let conv = Conv2d::new(3, 8, [3, 3], &Key::new(0)).stride([2, 2]).padding(Padding::Same);
    /// assert_eq!(**conv.forward(&Tensor::zeros([1, 28, 28, 3])).shape(), [1, 14, 14, 8]);
    /// ```
    pub fn new(inputs: usize, outputs: usize, kernel: [usize; 2], key: &Key) -> Conv2d {
        let (weight, bias) = weights(inputs, outputs, kernel, key);
        Conv2d { weight, bias: Some(bias), stride: [1, 1], dilation: [1, 1], padding: Padding::Valid }
    }

    /// Sets the distance between windows.
    ///
    /// # Panics
    /// For a stride of 0.
    #[track_caller]
    pub fn stride(self, stride: [usize; 2]) -> Conv2d {
        assert!(stride[0] > 0 && stride[1] > 0, "strides must be at least 1, got {stride:?}");
        Conv2d { stride, ..self }
    }

    /// Sets the distance between the taps of a window.
    ///
    /// # Panics
    /// For a dilation of 0.
    #[track_caller]
    pub fn dilation(self, dilation: [usize; 2]) -> Conv2d {
        assert!(dilation[0] > 0 && dilation[1] > 0, "dilations must be at least 1, got {dilation:?}");
        Conv2d { dilation, ..self }
    }

    /// Sets the zeros around the image.
    pub fn padding(self, padding: Padding) -> Conv2d {
        Conv2d { padding, ..self }
    }

    /// Removes the bias.
    pub fn without_bias(self) -> Conv2d {
        Conv2d { bias: None, ..self }
    }

    /// Convolves each image.
    ///
    /// # Panics
    /// When x does not have the shape `[n, height, width, in]`, or the padded image is smaller than a window.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        assert_image("a convolution", x, &self.weight);
        let kernel = [self.weight.shape()[0], self.weight.shape()[1]];
        let sides = [0, 1].map(|a| {
            let (length, stride) = (x.shape()[a + 1], self.stride[a]);
            let span = (kernel[a] - 1) * self.dilation[a] + 1;
            let (lo, hi) = match self.padding {
                Padding::Valid => (0, 0),
                Padding::By { lo, hi } => (lo[a], hi[a]),
                Padding::Same => {
                    let all = ((length.div_ceil(stride).max(1) - 1) * stride + span).saturating_sub(length);
                    (all / 2, all - all / 2)
                }
            };
            let padded = length + lo + hi;
            assert!(padded >= span, "a window of {span} does not fit into a padded side of {padded}");
            Side { lo, hi, outputs: (padded - span) / stride + 1, stride, dilation: self.dilation[a] }
        });
        let (lo, hi) = (sides.each_ref().map(|side| side.lo), sides.each_ref().map(|side| side.hi));
        if self.stride != [1, 1] || self.dilation != [1, 1] || (0..2).any(|a| lo[a].max(hi[a]) >= kernel[a]) {
            return convolve(x, &self.weight, self.bias.as_ref(), sides, false);
        }
        let y = x.conv2d(&self.weight, lo, hi);
        match &self.bias {
            Some(bias) => y + bias,
            None => y,
        }
    }
}

tree! {
    /// The transpose of a convolution: each element of x adds its multiple of the kernel to a window of y,
    /// `y[n, p s + i - lo, q s + j - lo, o] += x[n, p, q, c] W[i, j, c, o]`; then b is added.
    ///
    /// A side of length n becomes `(n - 1) s + k - lo - hi`, the size that a [`Conv2d`] with the same stride
    /// and padding maps back to n. Here [`Padding`] is cropped from the output; `Same` gives `n s`.
    ///
    /// # Shapes and units
    /// x `[n, height, width, in]`, W `[kernel height, kernel width, in, out]`, b `[out]`.
    ///
    /// # References
    /// Zeiler et al. (2010), Deconvolutional networks; Dumoulin and Visin (2016), A guide to convolution
    /// arithmetic, chapter 4.
    pub struct ConvTranspose2d {
        /// W, of shape `[kernel height, kernel width, in, out]`.
        pub weight: Tensor,
        /// b, of shape `[out]`.
        pub bias: Option<Tensor>,
        /// s, the distance between windows of y.
        pub stride: [usize; 2],
        /// The rows and columns cropped from the output.
        pub padding: Padding,
    }
}

impl ConvTranspose2d {
    /// No cropping; weights and bias as in [`Conv2d::new`].
    ///
    /// # Panics
    /// For a stride of 0.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::*;
    /// use flowline::nn::extra::{ConvTranspose2d, Padding};
    /// use flowline::nn::prelude::*;
    /// let up = ConvTranspose2d::new(8, 3, [4, 4], [2, 2], &Key::new(0)).padding(Padding::Same);
    /// assert_eq!(**up.forward(&Tensor::zeros([1, 14, 14, 8])).shape(), [1, 28, 28, 3]);
    /// ```
    #[track_caller]
    pub fn new(
        inputs: usize,
        outputs: usize,
        kernel: [usize; 2],
        stride: [usize; 2],
        key: &Key,
    ) -> ConvTranspose2d {
        assert!(stride[0] > 0 && stride[1] > 0, "strides must be at least 1, got {stride:?}");
        let (weight, bias) = weights(inputs, outputs, kernel, key);
        ConvTranspose2d { weight, bias: Some(bias), stride, padding: Padding::Valid }
    }

    /// Sets the rows and columns that are cropped from the output.
    pub fn padding(self, padding: Padding) -> ConvTranspose2d {
        ConvTranspose2d { padding, ..self }
    }

    /// Applies the transposed convolution to each image.
    ///
    /// # Panics
    /// When x does not have the shape `[n, height, width, in]`, `lo` or `hi` exceeds the kernel size minus 1,
    /// the output would be empty, or, for [`Padding::Same`], the stride is larger than the kernel.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        assert_image("a transposed convolution", x, &self.weight);
        let sides = [0, 1].map(|a| {
            let (kernel, stride) = (self.weight.shape()[a], self.stride[a]);
            let (lo, hi) = match self.padding {
                Padding::Valid => (0, 0),
                Padding::By { lo, hi } => (lo[a], hi[a]),
                Padding::Same => {
                    assert!(
                        kernel >= stride,
                        "`Same` needs a kernel at least as large as the stride ({stride}), got {kernel}"
                    );
                    ((kernel - stride) / 2, (kernel - stride).div_ceil(2))
                }
            };
            assert!(
                lo.max(hi) < kernel,
                "padding must be smaller than the kernel ({kernel}), got {lo} and {hi}"
            );
            let full = (x.shape()[a + 1].max(1) - 1) * stride + kernel;
            assert!(full > lo + hi, "padding of {lo} and {hi} leaves no pixel of {full}: use less padding");
            let outputs = full - lo - hi;
            Side { lo: kernel - 1 - lo, hi: kernel - 1 - hi, outputs, stride: 1, dilation: 1 }
        });
        let spread = spread(x, self.stride);
        convolve(&spread, &self.weight, self.bias.as_ref(), sides, true)
    }
}

/// Repeats the rows and columns of images `[n, height, width, channels]` (nearest-neighbor upsampling); `times` are
/// the factors of height and width.
///
/// # Examples
/// ```
/// use flowline::nn::*;
/// use flowline::nn::extra::upsample;
/// use flowline::nn::prelude::*;
/// let x = Tensor::from([1.0, 2.0]).reshape([1, 1, 2, 1]);
/// assert_eq!(upsample(&x, [1, 2]).to_vec(), [1.0, 1.0, 2.0, 2.0]);
/// ```
///
/// # Panics
/// When x does not have four axes.
#[track_caller]
pub fn upsample(x: &Tensor, times: [usize; 2]) -> Tensor {
    let &[n, h, w, c] = &**x.shape() else {
        panic!("images must have shape [n, height, width, channels], got {}", x.shape())
    };
    let [a, b] = times;
    x.reshape([n, h, 1, w, 1, c]).broadcast_to([n, h, a, w, b, c]).reshape([n, h * a, w * b, c])
}

/// Padding, number of windows, and distances of windows and taps along one side.
struct Side {
    lo: usize,
    hi: usize,
    outputs: usize,
    stride: usize,
    dilation: usize,
}

fn weights(inputs: usize, outputs: usize, kernel: [usize; 2], key: &Key) -> (Tensor, Tensor) {
    let [weight, bias] = key.split();
    let taps = (kernel[0] * kernel[1] * inputs) as f64;
    let bias = Init::Uniform(1.0 / taps.sqrt()).sample([outputs], &bias);
    (Init::FanIn.sample([kernel[0], kernel[1], inputs, outputs], &weight), bias)
}

#[track_caller]
fn assert_image(what: &str, x: &Tensor, weight: &Tensor) {
    assert!(
        x.rank() == 4 && x.shape()[3] == weight.shape()[2],
        "{what} of {} channels takes [n, height, width, channels], got {}",
        weight.shape()[2],
        x.shape()
    );
}

/// The product of the windows of x and the weights, plus the bias; `flipped` reverses the order of the taps.
#[track_caller]
fn convolve(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>, sides: [Side; 2], flipped: bool) -> Tensor {
    let &[kh, kw, inputs, outputs] = &**weight.shape() else {
        panic!("the weights of a convolution must be [height, width, in, out], got {}", weight.shape())
    };
    let (n, [vertical, horizontal]) = (x.shape()[0], &sides);
    let padded = pad(x, [(vertical, kh), (horizontal, kw)]);
    let mut taps: Vec<[usize; 2]> = (0..kh).flat_map(|i| (0..kw).map(move |j| [i, j])).collect();
    if flipped {
        taps.reverse();
    }
    let windows: Vec<Tensor> = taps
        .into_iter()
        .map(|[i, j]| {
            every(&every(&padded, 1, i * vertical.dilation, vertical), 2, j * horizontal.dilation, horizontal)
        })
        .collect();
    let (taps, places) = (kh * kw * inputs, n * vertical.outputs * horizontal.outputs);
    let rows = Tensor::concat(&windows.iter().collect::<Vec<_>>(), 3).reshape([places, taps]);
    let product = rows.matmul(&weight.reshape([taps, outputs]));
    let y = match bias {
        Some(bias) => product + bias,
        None => product,
    };
    y.reshape([n, vertical.outputs, horizontal.outputs, outputs])
}

/// Pads with zeros, and adds zeros at the end so that [`every`] can slice a whole stride for the last window.
#[track_caller]
fn pad(x: &Tensor, sides: [(&Side, usize); 2]) -> Tensor {
    let (mut lo, mut hi) = ([0; 4], [0; 4]);
    for (a, (side, kernel)) in sides.into_iter().enumerate() {
        let needed = (kernel - 1) * side.dilation + side.outputs * side.stride;
        lo[a + 1] = side.lo;
        hi[a + 1] = side.hi.max(needed.saturating_sub(x.shape()[a + 1] + side.lo));
    }
    if lo == [0; 4] && hi == [0; 4] { x.clone() } else { x.pad(&lo, &hi) }
}

/// Elements `start`, `start + stride`, ... along an axis, one per window.
#[track_caller]
fn every(x: &Tensor, axis: usize, start: usize, side: &Side) -> Tensor {
    let Side { outputs, stride, .. } = *side;
    let run = x.slice(axis, start..start + outputs * stride);
    if stride == 1 {
        return run;
    }
    let mut split = run.shape().to_vec();
    split.splice(axis..=axis, [outputs, stride]);
    run.reshape(split).slice(axis + 1, 0..1).reshape(x.shape().with_axis(axis, outputs))
}

/// Inserts `stride - 1` zeros between neighboring elements, along height and width.
fn spread(x: &Tensor, [a, b]: [usize; 2]) -> Tensor {
    if a == 1 && b == 1 || x.size() == 0 {
        return x.clone();
    }
    let (n, h, w, c) = (x.shape()[0], x.shape()[1], x.shape()[2], x.shape()[3]);
    let gaps = x.reshape([n, h, 1, w, 1, c]).pad(&[0; 6], &[0, 0, a - 1, 0, b - 1, 0]);
    gaps.reshape([n, h * a, w * b, c]).slice(1, 0..(h - 1) * a + 1).slice(2, 0..(w - 1) * b + 1)
}
