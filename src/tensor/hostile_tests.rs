//! Extreme sizes, constants and numbers in safe programs: each leads to a result or an error.

use super::*;
use crate::array::{Array, DType, Shape, refusal};

#[test]
fn sizes_that_wrap_are_refused_with_the_shape() {
    let most = Shape::MAX_SIZE;
    for dims in [[1 << 62, 4], [usize::MAX, 2], [most, 2]] {
        let message = refusal(|| Tensor::from_array(Array::from_vec(dims, Vec::<f32>::new())));
        assert!(message.contains(&format!("{dims:?}")), "{message}");
        assert!(refusal(|| Tensor::from([1.0]).reshape(dims)).contains("more elements"));
        assert!(refusal(|| Tensor::zeros(dims)).contains("more elements"));
    }
    let x = Tensor::from([1.0_f32, 2.0, 3.0, 4.0]);
    for (lo, hi) in [(usize::MAX - 3, 4), (usize::MAX, 0), (0, most), (usize::MAX / 2, usize::MAX / 2)] {
        let message = refusal(|| x.pad(&[lo], &[hi]));
        assert!(message.contains("more elements"), "{message}");
    }
    assert!(refusal(|| x.slice(0, 1000..1001)).contains("out of range"));
    assert_eq!(x.pad(&[1], &[0]).to_vec(), [0.0, 1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn operands_that_differ_in_type_are_refused() {
    let message = refusal(|| Tensor::concat(&[&Tensor::from([1.0_f32]), &Tensor::from([1.0])], 0));
    assert!(message.contains("differ in element type"), "{message}");
}

#[test]
fn a_cast_between_integers_keeps_its_bits_jitted_or_not() {
    let cast = |x: &Tensor| {
        let chosen = cond(
            &x.gt(0.0),
            &(x.clone(), Tensor::from(-1)),
            |(_, i)| i.cast(DType::U32),
            |(_, i)| i.cast(DType::U32),
        );
        (chosen, Tensor::from(u32::MAX).cast(DType::I32))
    };
    let x = Tensor::from(1.0);
    let (eager, jitted) = (cast(&x), jit(|x: Tensor| cast(&x)).call(x.clone()).unwrap());
    assert_eq!((eager.0.item(), eager.1.item()), (4_294_967_295.0, -1.0));
    assert_eq!((jitted.0.item(), jitted.1.item()), (4_294_967_295.0, -1.0));
}

#[test]
#[cfg_attr(miri, ignore = "Miri's processor keeps denormals")]
fn denormals_are_zeros_in_every_program() {
    let decay = jit(|x: Tensor| &x * 0.1);
    let mut x = Tensor::from([1e-36_f32, 1.0]);
    for _ in 0..4 {
        x = decay.call(x).unwrap();
    }
    assert_eq!(x.to_vec()[0], 0.0, "jitted");
    // Single operations and row tiles flush denormals, too.
    let tiny = Tensor::from([[2e-38_f32], [3e-38]]);
    assert_eq!((&tiny * 0.1).to_vec(), [0.0, 0.0], "eager");
    let (rows, _) = map_rows(&[tiny], 1, |x| (vec![&x[0] * 0.1], vec![]));
    assert_eq!(rows[0].to_vec(), [0.0, 0.0], "rows");
    // The thread's floating-point mode is restored.
    assert!(std::hint::black_box(2e-38_f32) * 0.1 > 0.0);
}

#[test]
fn a_panic_that_is_caught_leaves_the_trace_open() {
    let ended = std::cell::RefCell::new(None);
    grad(|x: &Tensor| (*ended.borrow_mut() = Some(x.clone()), x * x).1, &Tensor::from(2.0));
    let ended = ended.into_inner().unwrap();
    let square = |x: &Tensor| {
        assert!(refusal(|| x + &ended).contains("after its trace had ended"));
        assert!(refusal(|| Tensor::stack(&[x, &ended])).contains("after its trace had ended"));
        assert!(refusal(|| x.reshape([2]) + x).contains("[2]"));
        x * x
    };
    assert_eq!(grad(square, &Tensor::from(3.0)).item(), 6.0);
}

#[test]
fn no_random_words_are_an_empty_tensor() {
    // The program has no other values, so its arena is empty and has no address.
    let draw = jit(|_: Tensor| Key::new(0).bits([0]).cast(DType::F32));
    assert_eq!(draw.call(Tensor::from(1.0_f32)).unwrap().to_vec(), [0.0; 0]);
}

#[test]
fn rows_that_a_tile_cannot_number_are_refused() {
    let x = Tensor::zeros([(1 << 32) + 1, 0]);
    let message = refusal(|| map_rows(&[x], 128, |x| (vec![x[0].clone()], vec![])));
    assert!(message.contains("4294967297 rows"), "{message}");
}

#[test]
fn bools_are_not_summed_into_rows() {
    let flags = Tensor::from([1.0, 0.0]).cast(DType::Bool);
    let message = refusal(|| flags.scatter_add(&Tensor::from([0, 1]), &flags));
    assert!(message.contains("bools have no sum"), "{message}");
}

#[test]
fn products_without_columns_are_empty_and_products_without_terms_are_zeros() {
    for dtype in [DType::F32, DType::F64] {
        let ones = |dims: &[usize]| Tensor::full(dtype, dims, 1.0);
        for (m, k) in [(1, 1), (2, 3), (7, 2), (40, 130)] {
            assert_eq!(ones(&[m, k]).matmul(&ones(&[k, 0])).shape()[..], [m, 0]);
            assert_eq!(ones(&[0, k]).matmul(&ones(&[k, m])).shape()[..], [0, m]);
            assert_eq!(ones(&[m, 0]).matmul(&ones(&[0, k])).to_vec(), vec![0.0; m * k]);
            let product = |x: &Tensor| einsum("ij,jk->ik", &[x, &ones(&[k, 0])]);
            assert_eq!(product(&ones(&[m, k])).shape()[..], [m, 0]);
            assert_eq!(vmap(product, &ones(&[3, m, k])).shape()[..], [3, m, 0]);
        }
        // The cotangent is a product [5, 3] x [3, 0].
        let gradient = grad(|x: &Tensor| x.matmul(&ones(&[0, 3])).sum(), &ones(&[5, 0]));
        assert_eq!(gradient.shape()[..], [5, 0]);
        let images = ones(&[2, 4, 4, 3]);
        let none = |kernel: &Tensor| images.conv2d(kernel, [1, 1], [1, 1]).sum();
        assert_eq!(grad(none, &ones(&[3, 3, 3, 0])).shape()[..], [3, 3, 3, 0]);
    }
    // A layer without inputs.
    let (weight, bias) = (Tensor::ones([0, 16]), Tensor::ones([16]));
    let layer = |x: &Tensor| (x.matmul(&weight) + &bias).sum();
    assert_eq!(grad(layer, &Tensor::ones([8, 0])).shape()[..], [8, 0]);
}

#[test]
fn an_empty_product_leaves_the_values_beside_it_unchanged() {
    for (rows, columns) in [(9, 5), (9, 16), (3, 3), (33, 7)] {
        let x = Tensor::iota(DType::F64, [rows, columns], 0).sin();
        let f = |x: &Tensor, with_empty: bool| {
            let (a, b) = (x.sin(), x.tanh());
            let c = a.transpose().matmul(&b);
            let none = if with_empty { a.matmul(&x.transpose().slice(1, 0..0).cos()).sum() } else { x.sum() };
            (none, c.matmul(&c).sum())
        };
        let both = [true, false].map(|with_empty| jit(move |x: Tensor| f(&x, with_empty)).call(&x).unwrap());
        assert_eq!(both[0].0.item(), 0.0);
        assert_eq!(both[0].1.item(), both[1].1.item(), "{rows} x {columns}");
    }
}
