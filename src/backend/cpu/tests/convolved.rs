//! Convolutions: values in every form, bitwise equal results of an image alone and among others, and
//! allocations of a run.

use super::{Rng, allocations, bits, check, f32s, run};
use crate::array::{Array, DType};
use crate::backend::cpu::{Plan, Workspace};
use crate::graph::{Builder, Func, Margins, Op, Type};
use crate::simd::Level;

/// The convolution of images and a kernel, its transpose, and the kernel from image and result.
fn forms(dtype: DType, lead: &[usize], x: [usize; 4], w: [usize; 4], margins: Margins) -> Func {
    let of = |four: [usize; 4]| Type::array(dtype, [lead, &four].concat());
    let (mut b, x) = Builder::with_inputs(&[of(x), of(w)]);
    let back = margins.turned([w[0], w[1]]);
    let y = b.push(Op::Conv { margins, turned: false }, &x, None);
    let turned = b.push(Op::Conv { margins: back, turned: true }, &[y, x[1]], None);
    let kernel = b.push(Op::ConvKernel { margins }, &[x[0], y], None);
    b.finish(&[y, turned, kernel])
}

#[test]
fn convolutions_in_every_form_have_the_values_of_their_sums() {
    let margins = |lo, hi| Margins { lo, hi };
    for (x, w, m) in [
        ([2, 5, 6, 3], [3, 3, 3, 4], margins([1, 1], [1, 1])),
        ([1, 7, 4, 20], [3, 2, 20, 33], margins([0, 1], [2, 0])),
        ([3, 3, 3, 2], [3, 3, 2, 2], margins([0, 0], [0, 0])),
        ([2, 4, 5, 1], [1, 1, 1, 6], margins([0, 0], [0, 0])),
        ([2, 1, 8, 5], [2, 4, 5, 1], margins([1, 3], [1, 3])),
        ([1, 4, 4, 65], [3, 3, 65, 64], margins([1, 1], [1, 1])),
        ([0, 3, 3, 2], [2, 2, 2, 2], margins([1, 0], [0, 1])),
    ] {
        for dtype in [DType::F32, DType::F64] {
            for lead in [&[][..], &[2]] {
                if x.iter().product::<usize>() < 300 || lead.is_empty() {
                    check(&forms(dtype, lead, x, w, m), 8);
                }
            }
        }
    }
}

#[test]
fn a_image_has_the_same_bits_alone_and_among_others() {
    let m = Margins { lo: [1, 1], hi: [1, 1] };
    let mut rng = Rng(3);
    let (x, w) = (rng.array(&f32s([5, 7, 7, 24])), rng.array(&f32s([3, 3, 24, 40])));
    let conv = |n: usize| {
        let (mut b, x) = Builder::with_inputs(&[f32s([n, 7, 7, 24]), f32s([3, 3, 24, 40])]);
        let y = b.push(Op::Conv { margins: m, turned: false }, &x, None);
        b.finish(&[y])
    };
    for level in Level::available() {
        let all = run(&Plan::compile(&conv(5), level), &[x.clone(), w.clone()]);
        let last =
            Array::from_vec([1, 7, 7, 24], x.to_f64()[4 * 49 * 24..].iter().map(|x| *x as f32).collect());
        let one = run(&Plan::compile(&conv(1), level), &[last, w.clone()]);
        assert_eq!(bits(&one[0]), bits(&all[0])[4 * 49 * 40..], "{level:?}");
    }
}

#[test]
fn a_run_of_convolutions_allocates_nothing() {
    let f = forms(DType::F32, &[], [2, 6, 6, 8], [3, 3, 8, 8], Margins { lo: [1, 1], hi: [1, 1] });
    let plan = Plan::compile(&f, Level::detect());
    let mut rng = Rng(5);
    let inputs: Vec<Array> = f.input_types().iter().map(|ty| rng.array(ty)).collect();
    let mut outputs: Vec<Array> =
        f.output_types().iter().map(|ty| Array::zeros(ty.dtype(), ty.shape().clone())).collect();
    let (refs, mut ws) = (inputs.iter().collect::<Vec<_>>(), Workspace::new());
    plan.run_arrays(&mut ws, &refs, &mut outputs);
    let before = allocations();
    plan.run_arrays(&mut ws, &refs, &mut outputs);
    assert_eq!(allocations(), before);
}
