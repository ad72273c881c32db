//! Lowers factorizations and linear systems.

use super::lower::Lower;
use crate::array::DType;
use crate::backend::cpu::kernels::Sides;
use crate::backend::cpu::run::factor::Factor;
use crate::backend::cpu::run::step::Step;
use crate::backend::cpu::run::systems::{Matrices, Systems};
use crate::graph::{FactorOp, Triangle, Type};

/// The number of matrices of a batch, and their rows and columns.
fn matrices(ty: &Type) -> (usize, [usize; 2]) {
    let (lead, &last) = ty.shape().split_last_chunk().expect("invariant: a matrix has two axes");
    (lead.iter().product(), last)
}

impl Lower<'_> {
    pub fn factor(&mut self, id: usize, op: FactorOp) {
        let (func, units) = (self.func, self.units);
        let a = &func.node(func.nodes()[id].args[0]).ty;
        let (src, dst) = (self.held(&units.operands[id][0], a), self.buffers.at(id));
        let (count, sides) = matrices(a);
        let work = self.buffers.arena(Factor::room(op, sides, count) * a.dtype().size());
        let double = a.dtype() == DType::F64;
        self.push(Step::Factor(Factor { op, src, dst, work, double, sides, count }), vec![]);
    }

    /// The unit has no operand for the matrix of the systems, which the kernel does not read.
    pub fn lu_solve(&mut self, id: usize, transposed: bool) {
        self.systems(id, Matrices::Factors { transposed }, [0, 2]);
    }

    pub fn triangular_solve(&mut self, id: usize, triangle: Triangle) {
        self.systems(id, Matrices::Triangles(triangle), [0, 1]);
    }

    /// Solves with the matrices that operand `args[0]` of the node is, and the right-hand sides `args[1]`.
    fn systems(&mut self, id: usize, of: Matrices, args: [usize; 2]) {
        let (func, units) = (self.func, self.units);
        let node = &func.nodes()[id];
        let [matrix, b] =
            [0, 1].map(|k| self.held(&units.operands[id][k], &func.node(node.args[args[k]]).ty));
        let (count, [n, m]) = matrices(&node.ty);
        let (double, dst) = (node.ty.dtype() == DType::F64, self.buffers.at(id));
        let sides = Sides { n, m };
        let work = self.buffers.arena(Systems::room(sides, count) * node.ty.dtype().size());
        let systems = Systems { of, matrices: matrix, b, dst, work, double, sides, count };
        self.push(Step::Systems(systems), vec![]);
    }
}
