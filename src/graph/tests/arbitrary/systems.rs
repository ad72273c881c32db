//! Factorizations and linear systems of drawn shapes.

use super::*;
use crate::graph::{FactorOp, Triangle};

/// Orders of the matrices, and numbers of right-hand sides.
const ORDERS: [usize; 9] = [0, 1, 1, 2, 2, 3, 4, 5, 6];
const RIGHT_SIDES: [usize; 5] = [0, 1, 1, 2, 3];

/// The maximum number of elements of a batch of matrices, because the reference computes a derivative along each element.
const MAX_SIZE: usize = 72;

impl Grow<'_> {
    /// The factors of a batch of matrices, or the solutions of systems.
    pub(super) fn short_system(&mut self) -> NodeId {
        let rank = self.draws.of(&[0, 0, 1, 1, 2]);
        let lead: Vec<usize> = (0..rank).map(|_| self.draws.of(&[0, 1, 1, 2, 3])).collect();
        let mut n = self.draws.of(&ORDERS);
        while lead.iter().product::<usize>() * n * n > MAX_SIZE {
            n -= 1;
        }
        match self.draws.below(8) {
            0..=3 => self.solutions(&lead, n),
            4 => self.triangular_solutions(&lead, n),
            kind => self.factors(&lead, n, [FactorOp::Cholesky, FactorOp::Qr, FactorOp::Eigh][kind - 5]),
        }
    }

    /// The solution of one or two systems with the same factors; now and then the factors, too.
    fn solutions(&mut self, lead: &[usize], n: usize) -> NodeId {
        let a = self.matrices(lead, n);
        let factors = self.b.push(Op::Factor(FactorOp::Lu), &[a], None);
        if self.draws.below(3) == 0 {
            let small = self.b.scale(factors, 0.25);
            let small = self.b.unary(UnaryOp::Tanh, small);
            self.pool.push(small);
        }
        let mut x = self.right_sides(lead, n);
        for _ in 0..=self.draws.below(2) {
            let transposed = self.draws.below(2) == 0;
            x = self.b.push(Op::LuSolve { transposed }, &[factors, a, x], None);
            x = self.b.unary(UnaryOp::Tanh, x);
        }
        x
    }

    /// The solution of systems with a triangle of regular matrices.
    fn triangular_solutions(&mut self, lead: &[usize], n: usize) -> NodeId {
        let x = self.fitted(&[lead, &[n, n]].concat());
        let a = regular(self.b, x, &(0..n).collect::<Vec<_>>());
        let mut flag = || self.draws.below(2) == 0;
        let triangle = Triangle { upper: flag(), transposed: flag(), unit_diagonal: flag() };
        // With ones on the diagonal, small entries beside it keep the solution from growing.
        let a = if triangle.unit_diagonal { self.b.scale(a, 0.25) } else { a };
        let x = self.right_sides(lead, n);
        let x = self.b.push(Op::TriangularSolve(triangle), &[a, x], None);
        self.b.unary(UnaryOp::Tanh, x)
    }

    /// The factors of matrices that determine them well.
    fn factors(&mut self, lead: &[usize], n: usize, op: FactorOp) -> NodeId {
        let columns = if op == FactorOp::Qr { self.draws.of(&RIGHT_SIDES) } else { n };
        let x = self.fitted(&[lead, &[n, columns]].concat());
        let a = determined(self.b, x, op);
        let factors = self.b.push(Op::Factor(op), &[a], None);
        let small = self.b.scale(factors, 0.25 / (n * n).max(1) as f64);
        self.b.unary(UnaryOp::Tanh, small)
    }

    fn right_sides(&mut self, lead: &[usize], n: usize) -> NodeId {
        let m = self.draws.of(&RIGHT_SIDES);
        self.fitted(&[lead, &[n, m]].concat())
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
    let n = places.len();
    raised(b, x, |row, column| if places[row] == column { n as f64 + 1.0 } else { 0.0 })
}

/// Matrices of the shape of x whose factors are determined well: `tanh x` with large numbers on the diagonal.
///
/// For eigenvalues, these are 3 n apart: the sum of the entries beside each is at most n, so the eigenvalues are at least
/// n apart, and an eigenvector has its largest entry on the diagonal. For other factors, each is larger than the sum of
/// the others in its row and column.
pub(crate) fn determined(b: &mut Builder, x: NodeId, op: FactorOp) -> NodeId {
    let &[rows, columns] = b.ty(x).shape().last_chunk().expect("matrices");
    let n = rows.max(columns) as f64;
    let size = |row: usize| if op == FactorOp::Eigh { 3.0 * n * (row + 1) as f64 } else { n + 1.0 };
    raised(b, x, |row, column| if row == column { size(row) } else { 0.0 })
}

/// `tanh x` plus the same matrix, by its entries, for each index of the leading axes.
fn raised(b: &mut Builder, x: NodeId, entry: impl Fn(usize, usize) -> f64) -> NodeId {
    let ty = b.ty(x).clone();
    let &[rows, columns] = ty.shape().last_chunk().expect("matrices");
    let x = b.unary(UnaryOp::Tanh, x);
    let mut large = Array::zeros(ty.dtype(), [rows, columns]);
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        large.data_mut().set_f64(row * columns + column, entry(row, column));
    }
    let of_large = Type::array(ty.dtype(), [rows, columns]);
    let large = b.push(Op::Const(Literal::Array(Arc::new(large))), &[], Some(&of_large));
    let rank = ty.shape().rank();
    let large = b.broadcast(large, ty.shape(), vec![rank - 2, rank - 1]);
    b.add(x, large)
}
