//! Factorizations and linear systems of drawn shapes.

use super::*;

/// Orders of the matrices, and numbers of right-hand sides.
const ORDERS: [usize; 9] = [0, 1, 1, 2, 2, 3, 4, 5, 6];
const RIGHT_SIDES: [usize; 5] = [0, 1, 1, 2, 3];

/// The maximum number of elements of a batch of matrices, because the reference computes a derivative along each element.
const MAX_SIZE: usize = 72;

impl Grow<'_> {
    /// The factors of a batch of matrices, or the solution of one or two systems with the same factors.
    pub(super) fn short_system(&mut self) -> NodeId {
        let rank = self.draws.of(&[0, 0, 1, 1, 2]);
        let lead: Vec<usize> = (0..rank).map(|_| self.draws.of(&[0, 1, 1, 2, 3])).collect();
        let mut n = self.draws.of(&ORDERS);
        while lead.iter().product::<usize>() * n * n > MAX_SIZE {
            n -= 1;
        }
        let a = self.matrices(&lead, n);
        let factors = self.b.push(Op::Lu, &[a], None);
        if self.draws.below(3) == 0 {
            let small = self.b.scale(factors, 0.25);
            let small = self.b.unary(UnaryOp::Tanh, small);
            self.pool.push(small);
        }
        let m = self.draws.of(&RIGHT_SIDES);
        let mut x = self.fitted(&[&lead[..], &[n, m]].concat());
        for _ in 0..=self.draws.below(2) {
            let transposed = self.draws.below(2) == 0;
            x = self.b.push(Op::LuSolve { transposed }, &[factors, a, x], None);
            x = self.b.unary(UnaryOp::Tanh, x);
        }
        x
    }

    /// Square matrices with drawn permutations, by [`regular`]; if the recipe allows singular ones, now and then any values.
    fn matrices(&mut self, lead: &[usize], n: usize) -> NodeId {
        let x = self.fitted(&[lead, &[n, n]].concat());
        if self.recipe.singular && self.draws.below(4) == 0 {
            return x;
        }
        let mut places: Vec<usize> = (0..n).collect();
        (1..n).for_each(|i| places.swap(i, self.draws.below(i + 1)));
        regular(self.b, x, &places)
    }
}

/// The square matrices `tanh x` with n + 1 added in column `places[i]` of each row i.
///
/// That entry is at least n, and the others of its row and column have a sum of at most n - 1. So each pivot is larger by 1
/// than the entries below it, and the condition number in the maximum norm is at most 2 n + 1.
pub(crate) fn regular(b: &mut Builder, x: NodeId, places: &[usize]) -> NodeId {
    let (n, ty) = (places.len(), b.ty(x).clone());
    let x = b.unary(UnaryOp::Tanh, x);
    let mut large = Array::zeros(ty.dtype(), [n, n]);
    for (row, place) in places.iter().enumerate() {
        large.data_mut().set_f64(row * n + place, n as f64 + 1.0);
    }
    let of_large = Type::array(ty.dtype(), [n, n]);
    let large = b.push(Op::Const(Literal::Array(Arc::new(large))), &[], Some(&of_large));
    let rank = ty.shape().rank();
    let large = b.broadcast(large, ty.shape(), vec![rank - 2, rank - 1]);
    b.add(x, large)
}
