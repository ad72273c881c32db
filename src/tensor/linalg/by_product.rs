//! Systems whose matrix is also known as a function from v to `a v`.
//!
//! With `a dx = db - d(a x)`, where x is held fixed in `d(a x)`, the reverse derivative of a solution is one sweep through
//! the product. That costs as much as a few products. The derivative of [`Factored::solve`] without a product has a
//! cotangent of a, `[n, n]`, and takes it back through the n columns that made a.
//!
//! The rule of a solution solves a system itself. This one has no product, so that rules end; a second derivative is
//! exact, and goes through the columns.

use super::{Factored, solution_of};
use crate::tensor::{Tensor, Traced, apply, custom_derivatives, jvp, trace};

impl Factored {
    /// The same matrix `[n, n]`, with the product of it and v `[n, 1]`. Systems then have one right-hand side.
    pub(crate) fn with_product(self, product: impl Fn(&Tensor) -> Tensor) -> Factored {
        let column = self.a.ty().with_shape([self.a.shape()[0], 1]);
        Factored { product: Some(trace(&[column], &mut |v| vec![product(&v[0])])), ..self }
    }
}

/// The solution x of `a x = b` from the factors of a.
pub(super) fn solve([factors, a, b]: [&Tensor; 3], product: &Traced) -> Tensor {
    let rule = custom_derivatives(|x: &Vec<Tensor>| solution_of([&x[0], &x[1], &x[2]])).jvp(|x, y, dx| {
        let of_solution = |captures: &Vec<Tensor>| {
            let args: Vec<Tensor> = [y].into_iter().chain(captures).cloned().collect();
            apply(&product.func, &args).remove(0)
        };
        let moved = jvp(of_solution, &x[3..].to_vec(), &dx[3..].to_vec()).1;
        solution_of([&x[0], &x[1], &(&dx[2] - moved)])
    });
    let operands: Vec<Tensor> = [factors, a, b].into_iter().chain(&product.captures).cloned().collect();
    rule.call(&operands)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::DType;
    use crate::ode::tests::draw::{Draw, num_cases};
    use crate::tensor::{grad, hvp, vmap};

    /// A matrix made of p: `diag(3 + p^2) + p q^T`, and q p^T v behind a nonlinear function.
    fn system(p: &Tensor, by_product: bool) -> Factored {
        let n = p.size();
        let (column, q) = (p.reshape([n, 1]), Tensor::iota(DType::F64, [1, n], 1).cos());
        let a = Tensor::eye(DType::F64, n) * (p.square() + 3.0).reshape([n, 1]) + column.matmul(&q);
        let of = Factored::of(&a);
        let times = |v: &Tensor| (column.square() + 3.0) * v + &column * q.matmul(v);
        if by_product { of.with_product(times) } else { of }
    }

    /// Ranges: n from 1 to 9, alone and in batches of 3 that share b; values, both first derivatives and a second one.
    #[test]
    fn a_product_changes_no_value_and_no_derivative() {
        let mut draw = Draw(387);
        for case in 0..num_cases(10) {
            let n = 1 + draw.below(9);
            let mut vector =
                |n: usize| Tensor::from((0..n).map(|_| draw.uniform(-1.0, 1.0)).collect::<Vec<_>>());
            let (p, b, v) = (vector(n), vector(n), vector(n));
            let rows = vector(3 * n).reshape([3, n]);
            let off = |a: &Tensor, b: &Tensor| ((a - b).abs().max().item()) / (1.0 + b.abs().max().item());
            let all = |by_product: bool| {
                let loss = |p: &Tensor, b: &Tensor| {
                    let x = system(p, by_product).solve(&b.reshape([n, 1]));
                    (x.square() * (Tensor::iota(DType::F64, [n, 1], 0) + 1.0)).sum()
                };
                let each = |x: &(Tensor, Tensor)| vmap(|p: &Tensor| Ok(loss(p, &x.1)), &x.0).unwrap().sum();
                let by_all = grad(|x: &(Tensor, Tensor)| each(x), &(rows.clone(), b.clone()));
                let twice = hvp(|p: &Tensor| loss(p, &b), &p, &v).1;
                let backward = grad(|p: &Tensor| (grad(|p: &Tensor| loss(p, &b), p) * &v).sum(), &p);
                let (value, forward) = jvp(|p: &Tensor| loss(p, &b), &p, &v);
                (vec![value], vec![forward, by_all.0, by_all.1, twice, backward])
            };
            let ((value, got), (same, want)) = (all(true), all(false));
            assert_eq!(value[0].item().to_bits(), same[0].item().to_bits(), "case {case}");
            let most = got.iter().zip(&want).map(|(a, b)| off(a, b)).fold(0.0, f64::max);
            assert!(most < 1e-12, "case {case}, n {n}: {most:e}");
        }
    }
}
