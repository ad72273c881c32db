//! Layers: products that take the bias of their rows and the activation behind it.
//!
//! The kernel finishes rows while they are in the first-level cache, which saves a pass over the result
//! and gives the bits of separate kernels. It knows which nodes belong together, not how they run.

use super::fuse::{Kind, Units, insert};
use super::places::Place;
use crate::graph::{BinaryOp, Func, Op, UnaryOp};

impl Units {
    /// Appends node `id` to a product if it adds a bias to each row, or is the activation of that: such
    /// a layer is finished while its rows are in cache. Only where no one else reads what lies between.
    pub(super) fn layer(&mut self, func: &Func, id: usize, op: &Op) -> bool {
        let args = &func.nodes()[id].args;
        match op {
            Op::Binary(BinaryOp::Add) => [(0, 1), (1, 0)].into_iter().any(|(k, other)| {
                let bias = &self.places[args[other].index()];
                is_row(bias, func.nodes()[id].ty.shape())
                    && self.append(id, args[k].index(), bias.root(), func)
            }),
            Op::Unary(UnaryOp::Tanh | UnaryOp::Sigmoid) => self.append(id, args[0].index(), None, func),
            _ => false,
        }
    }

    /// Appends node `id` to the product or the sum that it reads, unless another value that it reads
    /// depends on that.
    fn append(&mut self, id: usize, from: usize, other: Option<usize>, func: &Func) -> bool {
        let is_sum = matches!(func.nodes()[id].op, Op::Binary(_));
        let is_product = matches!(func.nodes()[from].op, Op::Dot { .. });
        let Some(unit) = self.made_by[from] else { return false };
        let fits = self.all[unit].kind == Kind::Single
            && self.all[unit].nodes.last() == Some(&from)
            && self.num_readers[from] == 1
            && if is_sum { is_product } else { self.all[unit].nodes.len() == 2 };
        let pred = other.and_then(|r| self.unit_of(r));
        if !fits || pred.is_some_and(|p| p == unit || self.reach[p].has(unit)) {
            return false;
        }
        if let Some(p) = pred {
            insert(&mut self.all[unit].preds, p);
            insert(&mut self.all[unit].barred, p);
            let reach = self.reach[p].clone();
            self.reach[unit].or(&reach);
            self.reach[unit].set(p);
        }
        self.all[unit].nodes.push(id);
        self.made_by[id] = Some(unit);
        self.operands[id] = func.nodes()[id].args.iter().map(|a| self.places[a.index()].clone()).collect();
        true
    }
}

/// Whether a place repeats a row over a matrix.
fn is_row(place: &Place, shape: &[usize]) -> bool {
    let Place::At(o) = place else { return false };
    matches!((shape, &o.view.dims[..]), ([rows, cols], [r, c])
        if *cols > 0 && (r.stride == 0 || *rows == 1) && (c.stride == 1 || *cols == 1))
}
