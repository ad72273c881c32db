//! Convolutions against direct sums.

use super::*;

/// y[n, p, q, o] from a padded x, by direct sums.
fn naive(conv: &Conv2d, x: &Tensor, lo: [usize; 2], out: [usize; 2]) -> Vec<f64> {
    let (w, v) = (conv.weight.to_vec(), x.to_vec());
    let (ws, xs) = (conv.weight.shape(), x.shape());
    let bias = conv.bias.as_ref().map_or(vec![0.0; ws[3]], Tensor::to_vec);
    let mut y = Vec::new();
    let place = |p: usize, i: usize, a: usize| {
        let at = (p * conv.stride[a] + i * conv.dilation[a]).checked_sub(lo[a])?;
        (at < xs[a + 1]).then_some(at)
    };
    for n in 0..xs[0] {
        for p in 0..out[0] {
            for q in 0..out[1] {
                for o in 0..ws[3] {
                    let mut sum = bias[o];
                    for i in 0..ws[0] {
                        for j in 0..ws[1] {
                            let (Some(r), Some(s)) = (place(p, i, 0), place(q, j, 1)) else { continue };
                            for c in 0..ws[2] {
                                sum += v[((n * xs[1] + r) * xs[2] + s) * xs[3] + c]
                                    * w[((i * ws[1] + j) * ws[2] + c) * ws[3] + o];
                            }
                        }
                    }
                    y.push(sum);
                }
            }
        }
    }
    y
}

#[test]
fn a_convolution_is_its_sum_over_windows_for_every_stride_dilation_and_padding() {
    let x = draws([2, 7, 6, 3], 1);
    let conv = double(&Conv2d::new(3, 4, [3, 2], &Key::new(2)));
    let by = Padding::By { lo: [2, 0], hi: [1, 3] };
    // (layer, zeros before, sides of y)
    let cases = [
        (conv.clone(), [0, 0], [5, 5]),
        (conv.clone().stride([2, 3]), [0, 0], [3, 2]),
        (conv.clone().dilation([2, 3]), [0, 0], [3, 3]),
        (conv.clone().padding(Padding::Same), [1, 0], [7, 6]),
        (conv.clone().padding(Padding::Same).stride([2, 2]), [1, 0], [4, 3]),
        (conv.clone().padding(Padding::Same).stride([4, 5]), [0, 0], [2, 2]),
        (conv.clone().padding(by).stride([3, 2]).dilation([2, 1]), [2, 0], [2, 4]),
        (conv.clone().padding(by).without_bias(), [2, 0], [8, 8]),
    ];
    for (conv, lo, out) in cases {
        let y = conv.forward(&x);
        assert_eq!(**y.shape(), [2, out[0], out[1], 4], "{conv:?}");
        close(&y, &naive(&conv, &x, lo, out));
    }
}

#[test]
fn a_convolution_of_one_tap_is_a_linear_layer_of_each_place() {
    let conv = double(&Conv2d::new(3, 2, [1, 1], &Key::new(3)));
    let x = draws([2, 3, 4, 3], 4);
    let linear = Linear { weight: conv.weight.reshape([3, 2]), bias: conv.bias.clone() };
    close(&conv.forward(&x), &linear.forward(&x).to_vec());
}

#[test]
fn gradients_of_convolutions_are_those_of_differences() {
    let x = draws([2, 5, 4, 2], 5);
    let conv = Conv2d::new(2, 3, [3, 2], &Key::new(6)).stride([2, 1]).padding(Padding::Same);
    assert_gradients(&conv, &x, Conv2d::forward);
    let up = ConvTranspose2d::new(2, 3, [3, 2], [2, 1], &Key::new(6));
    assert_gradients(&up, &x, ConvTranspose2d::forward);
}

/// `sum of a * b`
fn inner(a: &Tensor, b: &Tensor) -> f64 {
    (a * b).sum().item()
}

#[test]
fn a_transposed_convolution_is_the_transpose_of_the_convolution() {
    // <conv(x), u> = <x, transposed(u)>, with the channels of the weights exchanged.
    let paddings = [Padding::Valid, Padding::Same, Padding::By { lo: [1, 0], hi: [0, 1] }];
    for (stride, padding, sides) in [
        ([1, 1], paddings[0], [7, 6]),
        ([2, 3], paddings[0], [7, 9]),
        ([2, 2], paddings[1], [8, 6]),
        ([2, 3], paddings[2], [6, 8]),
    ] {
        let conv = double(&Conv2d::new(3, 4, [3, 3], &Key::new(7)).without_bias());
        let conv = conv.stride(stride).padding(padding);
        let x = draws([2, sides[0], sides[1], 3], 8);
        let y = conv.forward(&x);
        let u = draws([y.size()], 9).reshape(y.shape().clone());
        let weight = conv.weight.permute(&[0, 1, 3, 2]);
        let back = ConvTranspose2d { weight, bias: None, stride, padding }.forward(&u);
        assert_eq!(back.shape(), x.shape(), "{stride:?} {padding:?}");
        let (forward, backward) = (inner(&y, &u), inner(&x, &back));
        assert!((forward - backward).abs() < 1e-12 * forward.abs().max(1.0), "{forward} {backward}");
    }
}

#[test]
#[should_panic(expected = "padding of 2 and 2 leaves no pixel of 3: use less padding")]
fn a_transposed_convolution_without_output_is_refused() {
    let padding = Padding::By { lo: [2, 2], hi: [2, 2] };
    let _ = ConvTranspose2d::new(1, 1, [3, 3], [1, 1], &Key::new(1))
        .padding(padding)
        .forward(&draws([1, 1, 1, 1], 2));
}

#[test]
fn an_image_is_repeated_along_its_sides() {
    let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]).reshape([1, 1, 2, 2]);
    close(&upsample(&x, [2, 2]), &[1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0].repeat(2));
}

#[test]
#[should_panic(expected = "a window of 5 does not fit into a padded side of 4")]
fn a_window_larger_than_the_image_is_refused() {
    Conv2d::new(1, 1, [3, 1], &Key::new(0)).dilation([2, 1]).forward(&Tensor::zeros([1, 4, 4, 1]));
}

#[test]
#[should_panic(expected = "a convolution of 3 channels takes [n, height, width, channels], got [2,8,8,1]")]
fn a_image_of_other_channels_is_refused() {
    Conv2d::new(3, 1, [3, 3], &Key::new(0)).forward(&Tensor::zeros([2, 8, 8, 1]));
}
