//! Lowers factorizations and linear systems.

use super::lower::Lower;
use crate::array::DType;
use crate::backend::cpu::kernels::Systems;
use crate::backend::cpu::run::lu::{Lu, LuSolve};
use crate::backend::cpu::run::step::Step;
use crate::graph::Type;

/// The number of matrices of a batch, and their rows and columns.
fn matrices(ty: &Type) -> (usize, [usize; 2]) {
    let (lead, &last) = ty.shape().split_last_chunk().expect("invariant: a matrix has two axes");
    (lead.iter().product(), last)
}

impl Lower<'_> {
    pub fn lu(&mut self, id: usize) {
        let (func, units) = (self.func, self.units);
        let a = &func.node(func.nodes()[id].args[0]).ty;
        let (src, dst) = (self.held(&units.operands[id][0], a), self.buffers.at(id));
        let (count, [n, _]) = matrices(a);
        self.push(Step::Lu(Lu { src, dst, double: a.dtype() == DType::F64, n, count }), vec![]);
    }

    /// The unit has no operand for the matrix of the systems, which the kernel does not read.
    pub fn lu_solve(&mut self, id: usize, transposed: bool) {
        let (func, units) = (self.func, self.units);
        let node = &func.nodes()[id];
        let [factors, b] =
            [(0, 0), (1, 2)].map(|(k, arg)| self.held(&units.operands[id][k], &func.node(node.args[arg]).ty));
        let (count, [n, m]) = matrices(&node.ty);
        let (double, systems) = (node.ty.dtype() == DType::F64, Systems { n, m, transposed });
        let dst = self.buffers.at(id);
        self.push(Step::LuSolve(LuSolve { factors, b, dst, double, systems, count }), vec![]);
    }
}
