//! Layers: products with a row bias or an added matrix, a gate, a shift and an activation.
//!
//! The kernel finishes rows while they are in a cache. This saves a pass over the result, and the result has the
//! same bits as that of separate kernels. This file determines which nodes belong to a layer.

use super::chaos::{self, Decision};
use super::fuse::{Kind, Units, insert};
use super::places::Place;
use crate::backend::cpu::kernels::K_BLOCK;
use crate::graph::{BinaryOp, Func, Op, UnaryOp};

/// The part of `activation((A B + term) gate + shift)` that a node computes, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Product,
    Bias,
    Matrix,
    Gate,
    Shift,
    Activation,
}

impl Units {
    /// The part of each node in a product's unit, and the place of the matrix or row that the node adds or
    /// multiplies.
    pub fn parts<'a>(
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

    /// Appends node `id` to a product's unit if it adds a row or a matrix, multiplies by a row, adds another
    /// row, or is the activation after these operations. No other node may read the intermediate values.
    pub fn layer(&mut self, func: &Func, id: usize, op: &Op) -> bool {
        let args = &func.nodes()[id].args;
        // The later operand comes first: in a sum of two products, the later product adds to the earlier one.
        let both = || {
            let mut both = [(0, 1), (1, 0)].map(|(k, other)| (args[k].index(), args[other].index()));
            both.sort_unstable_by(|a, b| b.cmp(a));
            both.into_iter()
        };
        let by_row = |units: &mut Units, before: &[Part]| {
            !chaos::forgoes(Decision::Layer)
                && both().any(|(from, row)| {
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
            Op::Unary(UnaryOp::Tanh | UnaryOp::Sigmoid) if !chaos::forgoes(Decision::Layer) => {
                let before = [Part::Product, Part::Bias, Part::Matrix, Part::Gate, Part::Shift];
                self.append(id, args[0].index(), None, &before, func)
            }
            _ => false,
        }
    }

    /// Appends node `id` to the unit of the product that it reads as `from`, if the unit's last part is one
    /// of `before` and the node's other operand does not depend on the product.
    fn append(&mut self, id: usize, from: usize, other: Option<usize>, before: &[Part], func: &Func) -> bool {
        let Some(unit) = self.made_by[from] else { return false };
        let nodes = &self.all[unit].nodes;
        let fits = self.all[unit].kind == Kind::Single
            && nodes.last() == Some(&from)
            && self.num_readers[from] == 1
            && matches!(func.nodes()[nodes[0]].op, Op::Dot { .. })
            && self.parts(nodes, func).last().is_some_and(|(part, _)| before.contains(&part));
        let pred = other.and_then(|at| self.places[at].root()).and_then(|root| self.unit_of(root));
        if !fits || pred.is_some_and(|p| p == unit || self.reach[p].contains(unit)) {
            return false;
        }
        if let Some(p) = pred {
            insert(&mut self.all[unit].preds, p);
            insert(&mut self.all[unit].blocking, p);
            let reach = self.reach[p].clone();
            self.reach[unit].join(&reach);
            self.reach[unit].insert(p);
        }
        self.all[unit].nodes.push(id);
        self.made_by[id] = Some(unit);
        self.operands[id] = func.nodes()[id].args.iter().map(|a| self.places[a.index()].clone()).collect();
        true
    }
}

/// Whether a node is a single product whose terms are added in one chain. If it is added to a matrix directly
/// from the registers, the result then has the same bits as that of a separate sum.
fn is_one_product(func: &Func, id: usize) -> bool {
    let node = &func.nodes()[id];
    matches!(node.op, Op::Dot { .. })
        && node.ty.shape().rank() == 2
        && func.node(node.args[1]).ty.shape()[0] <= K_BLOCK
}

/// Whether a place is a contiguous matrix.
fn is_matrix(place: &Place) -> bool {
    matches!(place, Place::At(o) if o.view.is_linear())
}

/// Whether a place is a row repeated over a matrix.
fn is_row(place: &Place, shape: &[usize]) -> bool {
    let Place::At(o) = place else { return false };
    matches!((shape, &o.view.dims[..]), ([rows, cols], [r, c])
        if *cols > 0 && (r.stride == 0 || *rows == 1) && (c.stride == 1 || *cols == 1))
}
