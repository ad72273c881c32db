//! Hessian-vector products and Jacobians.

use super::grad::{Pull, along, derivative_along, recorded, value_with_grad};
use super::output::{Loss, Output};
use super::tree::Tree;
use super::{Tensor, vmap};
use crate::array::Shape;
use crate::error::Result;

/// The gradient of a loss and the Hessian-vector product with `v`, a tree like `at`: forward mode along `v`
/// over reverse mode. The Hessian itself is never formed.
///
/// # Errors
/// The errors of [`value_and_grad`](crate::tensor::value_and_grad).
///
/// # Panics
/// As for [`value_and_grad`](crate::tensor::value_and_grad); also if `v` and `at` differ in number of leaves, or
/// in the type or shape of a float leaf.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// let energy = |p: &Tensor| {
///     Ok(Ode::new(|_t, y: &Tensor| -(p * y)).solve(0.0, 2.0, Tensor::from([1.0, 2.0]))?.y1.square().sum())
/// };
/// let (grad, hv) = hvp(energy, &Tensor::from([0.5, 1.0]), &Tensor::from([1.0, 0.0]))?;
/// // The energy is exp(-4 p0) + 4 exp(-4 p1).
/// assert!((grad.index(0).item() + 4.0 * (-2.0_f64).exp()).abs() < 1e-3);
/// assert!((hv.index(0).item() - 16.0 * (-2.0_f64).exp()).abs() < 1e-2 && hv.index(1).item() == 0.0);
/// # Ok::<(), flowline::Error>(())
/// ```
#[track_caller]
pub fn hvp<M: Tree, L: Output<Tree: Loss>>(f: impl FnOnce(&M) -> L, at: &M, v: &M) -> L::Of<(M, M)> {
    L::answer(derivative_along(|x| value_with_grad(f, x).map(|(_, grad)| grad), at, v))
}

/// The Jacobian of a function of one tensor: entry `[i.., j..]` is the partial derivative of element i of the
/// result with respect to element j of `at`.
///
/// The function is traced once. Its derivative is mapped over the elements of `at` (forward mode), or, if the
/// result has fewer elements, over those of the result (reverse mode). If the function contains a solve, all
/// directions share its steps. If `at` or the result has no elements, neither has the Jacobian.
///
/// # Errors
/// The errors of [`vjp`](crate::tensor::vjp).
///
/// # Panics
/// As for [`vjp`](crate::tensor::vjp); also if `at` or the result is not a float tensor.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::jacobian;
/// let y = Tensor::from([2.0, 3.0]);
/// let gradients = jacobian(|y: &Tensor| Tensor::stack(&[&(y.index(0) * y.index(1)), &y.sum(), &y.index(0)]), &y);
/// assert_eq!((gradients.shape().to_vec(), gradients.to_vec()), (vec![3, 2], vec![3.0, 2.0, 1.0, 1.0, 1.0, 0.0]));
/// ```
#[track_caller]
#[doc(alias = "jacfwd")]
#[doc(alias = "jacrev")]
pub fn jacobian<R: Output<Tree = Tensor>>(f: impl FnOnce(&Tensor) -> R, at: &Tensor) -> R::Of<Tensor> {
    R::answer(partials(|x| f(x).into_result(), at))
}

#[track_caller]
fn partials(f: impl FnOnce(&Tensor) -> Result<Tensor>, at: &Tensor) -> Result<Tensor> {
    let leaves = [at.clone()];
    let (traced, y) = recorded(f, at, &leaves)?;
    let is_float = at.dtype().is_float() && y.dtype().is_float();
    assert!(
        is_float,
        "a Jacobian needs float tensors: the result is {}, the argument is {}",
        y.ty(),
        at.ty()
    );
    let shape: Shape = [&y.shape()[..], at.shape()].concat().into();
    if shape.size() == 0 {
        // There is no direction to map over.
        let dtype = if at.size() <= y.size() { y.dtype() } else { at.dtype() };
        return Ok(Tensor::full(dtype, shape, 0.0));
    }
    if at.size() <= y.size() {
        let each = vmap(
            |v: &Tensor| Ok(along(&traced, &leaves, std::slice::from_ref(v))?.1.remove(0)),
            &unit_vectors(at),
        )?;
        return Ok(each.reshape([at.size(), y.size()]).transpose().reshape(shape));
    }
    let (ys, pull) = Pull::new(traced, leaves.to_vec())?;
    let each = vmap(|g: &Tensor| Ok(pull.back(std::slice::from_ref(g)).remove(0)), &unit_vectors(&ys[0]))?;
    Ok(each.reshape(shape))
}

/// The unit vectors in the shape of `x`, stacked along a new first axis.
fn unit_vectors(x: &Tensor) -> Tensor {
    Tensor::eye(x.dtype(), x.size()).reshape([&[x.size()], &x.shape()[..]].concat())
}

#[cfg(test)]
mod tests {
    use crate::array::{DType, refusal};
    use crate::error::Error;
    use crate::ode::Ode;
    use crate::tensor::{Tensor, cond, grad, hvp, jacobian, jit, jvp, vjp, vmap};

    fn polynomial(x: &Tensor) -> Tensor {
        x.index(0) * x.index(0) * x.index(1) + x.index(1).square() * 3.0
    }

    #[test]
    fn an_hvp_is_the_directional_derivative_of_the_gradient() {
        let (at, v) = (Tensor::from([2.0, -1.0]), Tensor::from([0.5, 3.0]));
        // gradient (2 x y, x^2 + 6 y), Hessian [[2 y, 2 x], [2 x, 6]]
        let (gradient, product) = hvp(polynomial, &at, &v);
        assert_eq!((gradient.to_vec(), product.to_vec()), (vec![-4.0, -2.0], vec![11.0, 20.0]));
        let traced = jit(|at: Tensor, v: Tensor| hvp(|x: &Tensor| Ok(polynomial(x)), &at, &v));
        assert_eq!(traced.call(&at, &v).unwrap().1.to_vec(), [11.0, 20.0]);
    }

    #[test]
    fn a_jacobian_is_the_same_by_columns_and_by_rows() {
        let w = Tensor::from([[1.0, 2.0, 3.0], [-1.0, 0.5, 4.0]]);
        // Computed by columns if the result is larger than the argument, else by rows.
        let wide = jacobian(|x: &Tensor| x.matmul(&w), &Tensor::from([[0.1, 0.2]]));
        assert_eq!(wide.shape().to_vec(), [1, 3, 1, 2]);
        assert_eq!(wide.to_vec(), w.transpose().to_vec());
        let tall = jacobian(|x: &Tensor| w.matmul(x), &Tensor::from([0.1, 0.2, 0.3]));
        assert_eq!((tall.shape().to_vec(), tall.to_vec()), (vec![2, 3], w.to_vec()));
    }

    #[test]
    fn a_square_jacobian_has_results_along_its_rows() {
        let w = Tensor::from([[1.0, 2.0], [-3.0, 0.5]]);
        assert_eq!(jacobian(|x: &Tensor| w.matmul(x), &Tensor::from([0.1, 0.2])).to_vec(), w.to_vec());
    }

    #[test]
    fn a_jacobian_of_no_elements_or_by_no_elements_is_empty() {
        for (rows, columns) in [(0, 3), (2, 0), (0, 0)] {
            let w = Tensor::full(DType::F64, [rows, columns], 1.0);
            // By columns if there are no rows, else by rows; also if the result is larger.
            let by_row = |x: &Tensor| x.matmul(&w);
            let at = Tensor::full(DType::F64, [5, rows], 1.0);
            let expected = [5, columns, 5, rows];
            assert_eq!(jacobian(by_row, &at).shape().to_vec(), expected);
            let jitted = jit(move |x: Tensor, w: Tensor| jacobian(|x: &Tensor| x.matmul(&w), &x));
            let found = jitted.call(&at, &w).unwrap();
            assert_eq!((found.shape().to_vec(), found.dtype()), (expected.to_vec(), DType::F64));
        }
    }

    #[test]
    fn a_jacobian_of_a_gradient_is_the_hessian() {
        let at = Tensor::from([2.0, -1.0]);
        let hessian = jacobian(|x: &Tensor| grad(polynomial, x), &at);
        assert_eq!(hessian.to_vec(), [-2.0, 4.0, 4.0, 6.0]);
    }

    #[test]
    #[should_panic(expected = "a Jacobian needs float tensors: the result is f64[2], the argument is i32[2]")]
    fn a_jacobian_by_integers_is_refused() {
        let _ = jacobian(|x: &Tensor| x * 0.5, &Tensor::from([1, 2]));
    }

    /// y' = y^2. From y0 = 1 the solution blows up at t = 1, so the solve ends early.
    fn blow_up(y0: &Tensor) -> crate::Result<Tensor> {
        Ok(Ode::new(|_t, y: &Tensor| y.square()).solve(0.0, 2.0, y0)?.y1)
    }

    #[test]
    fn every_transform_of_a_closure_that_fails_is_its_error() {
        let one = Tensor::from(1.0);
        let all = [
            grad(|y: &Tensor| Ok(blow_up(y)?.sum()), &one).map(drop),
            jvp(|y: &Tensor| Ok(blow_up(y)?.sum()), &one, &one).map(drop),
            vjp(|y: &Tensor| Ok(blow_up(y)?.sum()), &one).map(drop),
            hvp(|y: &Tensor| Ok(blow_up(y)?.sum()), &one, &one).map(drop),
            jacobian(blow_up, &one).map(drop),
            vmap(blow_up, &one.reshape([1])).map(drop),
            jit(|y: Tensor| cond(&y.gt(0.0), &y, blow_up, |y| Ok(y.clone()))).call(1.0).map(drop),
        ];
        for (k, found) in all.into_iter().enumerate() {
            assert!(matches!(found, Err(Error::Solve { .. })), "transform {k}: {found:?}");
        }
    }

    #[test]
    fn a_closure_without_a_result_has_no_error_to_return() {
        let message = refusal(|| grad(|y: &Tensor| blow_up(y).unwrap().sum(), &Tensor::from(1.0)));
        assert!(message.starts_with("the solve ended early"), "{message}");
    }
}
