//! Layers: products that take the bias of their rows, or a matrix that they are added to, and the activation behind it.
//!
//! The kernel finishes rows while they are in the first-level cache, which saves a pass over the result
//! and gives the bits of separate kernels. It knows which nodes belong together, not how they run.

use super::fuse::{Kind, Units, insert};
use super::kernels::K_BLOCK;
use super::places::Place;
use crate::graph::{BinaryOp, Func, Op, UnaryOp};

/// Which part of `activation((A B + term) gate + shift)` a node of a layer is, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Product,
    Bias,
    Matrix,
    Gate,
    Shift,
    Activation,
}

impl Units {
    /// What each node of a product's unit is, and for the terms where their operand is.
    pub(super) fn parts<'a>(
        &'a self,
        nodes: &'a [usize],
        func: &'a Func,
    ) -> impl Iterator<Item = (Part, Option<&'a Place>)> + 'a {
        let mut last: Option<(usize, Part)> = None;
        nodes.iter().map(move |&id| {
            let (part, place) = match (last, &func.nodes()[id].op) {
                (None, _) => (Part::Product, None),
                (Some(_), Op::Unary(_)) => (Part::Activation, None),
                (Some((before, part)), op) => {
                    let k = usize::from(func.nodes()[id].args[0].index() == before);
                    let place = &self.operands[id][k];
                    let part = match op {
                        Op::Binary(BinaryOp::Mul) => Part::Gate,
                        _ if part == Part::Gate => Part::Shift,
                        _ if is_row(place, func.nodes()[id].ty.shape()) => Part::Bias,
                        _ => Part::Matrix,
                    };
                    (part, Some(place))
                }
            };
            last = Some((id, part));
            (part, place)
        })
    }

    /// Appends node `id` to a product if it adds a bias to each row or a matrix to all, multiplies that by a row and
    /// adds another, or is the activation of that: such a layer is finished while its rows are in cache. Only where no
    /// one else reads what lies between.
    pub(super) fn layer(&mut self, func: &Func, id: usize, op: &Op) -> bool {
        let args = &func.nodes()[id].args;
        // Of two products the later one adds to the earlier one.
        let both = || {
            let mut both = [(0, 1), (1, 0)].map(|(k, other)| (args[k].index(), args[other].index()));
            both.sort_unstable_by(|a, b| b.cmp(a));
            both.into_iter()
        };
        let by_row = |units: &mut Units, before: &[Part]| {
            both().any(|(from, row)| {
                is_row(&units.places[row], func.nodes()[id].ty.shape())
                    && units.append(id, from, Some(row), before, func)
            })
        };
        match op {
            Op::Binary(BinaryOp::Add) => {
                by_row(self, &[Part::Product, Part::Gate])
                    || both().any(|(from, matrix)| {
                        is_one_product(func, from)
                            && is_matrix(&self.places[matrix])
                            && self.append(id, from, Some(matrix), &[Part::Product], func)
                    })
            }
            Op::Binary(BinaryOp::Mul) => by_row(self, &[Part::Product, Part::Bias]),
            Op::Unary(UnaryOp::Tanh | UnaryOp::Sigmoid) => {
                let before = [Part::Product, Part::Bias, Part::Matrix, Part::Gate, Part::Shift];
                self.append(id, args[0].index(), None, &before, func)
            }
            _ => false,
        }
    }

    /// Appends node `id` to the unit of the product that it reads as `from`, if the last part there is one of `before`,
    /// unless the other value that it reads depends on that.
    fn append(&mut self, id: usize, from: usize, other: Option<usize>, before: &[Part], func: &Func) -> bool {
        let Some(unit) = self.made_by[from] else { return false };
        let nodes = &self.all[unit].nodes;
        let fits = self.all[unit].kind == Kind::Single
            && nodes.last() == Some(&from)
            && self.num_readers[from] == 1
            && matches!(func.nodes()[nodes[0]].op, Op::Dot { .. })
            && self.parts(nodes, func).last().is_some_and(|(part, _)| before.contains(&part));
        let pred = other.and_then(|at| self.places[at].root()).and_then(|root| self.unit_of(root));
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

/// Whether a node is a product, not a batch of them, whose terms are added in one chain: then adding it to a matrix as
/// it leaves the registers gives the bits of a sum of the two.
fn is_one_product(func: &Func, id: usize) -> bool {
    let node = &func.nodes()[id];
    matches!(node.op, Op::Dot { .. })
        && node.ty.shape().rank() == 2
        && func.node(node.args[1]).ty.shape()[0] <= K_BLOCK
}

/// Whether a place is a matrix without gaps.
fn is_matrix(place: &Place) -> bool {
    matches!(place, Place::At(o) if o.view.is_linear())
}

/// Whether a place repeats a row over a matrix.
fn is_row(place: &Place, shape: &[usize]) -> bool {
    let Place::At(o) = place else { return false };
    matches!((shape, &o.view.dims[..]), ([rows, cols], [r, c])
        if *cols > 0 && (r.stride == 0 || *rows == 1) && (c.stride == 1 || *cols == 1))
}
