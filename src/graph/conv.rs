//! Convolutions: shape inference and transposes.
//!
//! Both operations are contractions of the trilinear sum over positions, taps and channels of `x[p + i - lo,
//! c] w[i, c, o] y[p, o]`. `conv` computes y from x and w, or x from y and w if turned; `conv_kernel`
//! computes w from x and y. Each derivative of one of the two operations is therefore one of these two
//! operations: the set is closed. With strides or dilation, the set would not be closed. Callers that need
//! strides or dilation slice and pad.

use super::Type;

/// Zero padding of images in pixels. Each margin is less than the kernel's length along its axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Margins {
    /// Above and left.
    pub lo: [usize; 2],
    /// Below and right.
    pub hi: [usize; 2],
}

impl Margins {
    /// The margins of the transpose: the kernel's length - 1 - margin.
    pub fn turned(self, kernel: [usize; 2]) -> Margins {
        let rest = |of: [usize; 2]| [0, 1].map(|a| kernel[a] - 1 - of[a]);
        Margins { lo: rest(self.lo), hi: rest(self.hi) }
    }

    /// The size of the result along an axis, from the sizes of the image and the kernel.
    fn side(self, axis: usize, image: usize, kernel: usize) -> Result<usize, String> {
        let (lo, hi) = (self.lo[axis], self.hi[axis]);
        // Images with margins alone have no transposed convolution: its result would be empty.
        if image == 0 {
            return Err("images of 0 pixels have no convolution".into());
        }
        if kernel == 0 || lo.max(hi) >= kernel {
            return Err(format!(
                "margins of {lo} and {hi} must be smaller than the kernel's length of {kernel}"
            ));
        }
        (image + lo + hi + 1).checked_sub(kernel).filter(|side| *side > 0).ok_or_else(|| {
            format!(
                "a kernel of length {kernel} does not fit into {image} pixels with margins of {lo} and {hi}"
            )
        })
    }
}

/// The batch axes and the last four axes of an operand.
type Four<'a> = (&'a [usize], [usize; 4]);

fn fours<'a>(x: &'a Type, y: &'a Type) -> Result<[Four<'a>; 2], String> {
    if !x.is_float() || x.dtype() != y.dtype() {
        return Err("the operands must be float arrays of equal element type".into());
    }
    let split = |ty: &'a Type| ty.shape().split_last_chunk::<4>().map(|(lead, four)| (lead, *four));
    let (Some(a), Some(b)) = (split(x), split(y)) else {
        return Err("the operands must have at least four axes".into());
    };
    if a.0 != b.0 {
        return Err(format!("the leading axes {:?} and {:?} differ", a.0, b.0));
    }
    Ok([a, b])
}

/// The type of `conv`.
pub(super) fn conv(m: Margins, turned: bool, x: &Type, w: &Type) -> Result<Type, String> {
    let [(lead, [n, height, width, c]), (_, [kh, kw, inputs, outputs])] = fours(x, w)?;
    let (inputs, outputs) = if turned { (outputs, inputs) } else { (inputs, outputs) };
    if c != inputs {
        return Err(format!("the images have {c} channels, but the kernel has {inputs}"));
    }
    let sides = [n, m.side(0, height, kh)?, m.side(1, width, kw)?, outputs];
    Ok(x.with_shape([lead, &sides].concat()))
}

/// The type of `conv_kernel`.
pub(super) fn conv_kernel(m: Margins, x: &Type, y: &Type) -> Result<Type, String> {
    let [(lead, [n, height, width, c]), (_, [count, oh, ow, o])] = fours(x, y)?;
    if n != count {
        return Err(format!("there are {n} images before the convolution and {count} after it"));
    }
    let taps = |axis: usize, from: usize, to: usize| {
        let taps = (from + m.lo[axis] + m.hi[axis] + 1).saturating_sub(to);
        m.side(axis, from, taps).map(|_| taps)
    };
    let sides = [taps(0, height, oh)?, taps(1, width, ow)?, c, o];
    Ok(x.with_shape([lead, &sides].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::DType;
    use crate::graph::{Op, infer};

    #[test]
    fn sides_follow_from_margins_and_each_form_gives_back_the_others() {
        let of = |dims: &[usize]| Type::array(DType::F32, dims);
        let (x, w) = (of(&[2, 7, 5, 3]), of(&[3, 2, 3, 4]));
        let margins = Margins { lo: [1, 0], hi: [2, 1] };
        let y = infer(&Op::Conv { margins, turned: false }, &[&x, &w], None).unwrap();
        assert_eq!(y, of(&[2, 8, 5, 4]));
        assert_eq!(infer(&Op::ConvKernel { margins }, &[&x, &y], None), Ok(w.clone()));
        let turned = Op::Conv { margins: margins.turned([3, 2]), turned: true };
        assert_eq!(infer(&turned, &[&y, &w], None), Ok(x.clone()));
        let wide = Op::Conv { margins: Margins { lo: [3, 0], hi: [0, 0] }, turned: false };
        let e = infer(&wide, &[&x, &w], None).unwrap_err().to_string();
        assert!(e.ends_with("margins of 3 and 0 must be smaller than the kernel's length of 3"), "{e}");
        let e = infer(&wide, &[&x, &of(&[9, 2, 3, 4])], None).unwrap().to_string();
        assert_eq!(e, "f32[2,2,4,4]");
        let e = infer(&wide, &[&of(&[2, 0, 5, 3]), &w], None).unwrap_err().to_string();
        assert!(e.ends_with("images of 0 pixels have no convolution"), "{e}");
        let e = infer(&turned, &[&x, &w], None).unwrap_err().to_string();
        assert!(e.ends_with("the images have 3 channels, but the kernel has 4"), "{e}");
    }
}
