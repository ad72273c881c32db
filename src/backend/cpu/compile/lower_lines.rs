//! Lowers operations along lines.

use super::codegen::elem;
use super::lower::Lower;
use crate::backend::cpu::run::lines::Lines;
use crate::backend::cpu::run::step::Step;
use crate::graph::LineOp;

impl Lower<'_> {
    pub fn lines(&mut self, id: usize, op: LineOp) {
        let (func, units) = (self.func, self.units);
        let x = &func.node(func.nodes()[id].args[0]).ty;
        let (src, dst) = (self.held(&units.operands[id][0], x), self.buffers.at(id));
        let n = *x.shape().last().expect("invariant: a line has an axis");
        let count = x.shape().size().checked_div(n).unwrap_or(0);
        self.push(Step::Lines(Lines { op, src, dst, elem: elem(x.dtype()), n, count }), vec![]);
    }
}
