//! The buffers of roots: which root has one, and which roots share one.
//!
//! A root shares the buffer of an output, of a sum in place of one of its terms, or of a concatenation that it is a part of. A
//! buffer that is overwritten holds only values that nothing else reads.

use super::buffers::Home;
use super::fuse::Kind;
use super::layers::Part;
use super::lower::Lower;
use super::places::{Operand, Place};
use crate::backend::cpu::address::Address;
use crate::graph::{Op, Type};

impl Lower<'_> {
    /// Whether an operand is an entire computed root without a buffer.
    fn is_whole_and_free(&self, o: &Operand) -> bool {
        self.units.unit_of(o.root).is_some()
            && self.buffers.get(o.root).is_none()
            && o.view.offset == 0
            && o.view.is_linear()
            && o.view.size() == self.ty(o.root).shape().size()
    }

    /// Assigns a buffer to each root that is read outside its unit; returns the outputs that must be copied.
    pub fn homes(&mut self, order: &[usize]) -> Vec<usize> {
        let mut copies = Vec::new();
        for (k, out) in self.func.outputs().iter().enumerate() {
            match &self.units.places[out.index()] {
                Place::At(o) if self.is_whole_and_free(o) => {
                    let loc = self.buffers.make(self.func.output_type(k).bytes(), Home::Output(k));
                    self.buffers.set(o.root, loc);
                    self.add_in_place(o.root, loc);
                }
                Place::Opaque { node } => panic!("invariant: output {k} (%{node}) is not an array"),
                _ => copies.push(k),
            }
        }
        for &u in order.iter().rev() {
            let id = self.units.all[u].nodes[0];
            if let Op::Concat { axis } = self.func.nodes()[id].op {
                self.join_parts(id, axis);
            }
        }
        for &u in order {
            let unit = &self.units.all[u];
            for &id in &unit.nodes {
                let last = unit.kind != Kind::Fused && unit.nodes.last() == Some(&id);
                if last || matches!(self.func.nodes()[id].op, Op::Reduce { .. }) {
                    self.home(id);
                }
                for place in &self.units.operands[id] {
                    if let Place::At(o) = place
                        && self.units.unit_of(o.root).is_some_and(|made| made != u)
                        && unit.nodes.binary_search(&o.root).is_err()
                    {
                        self.home(o.root);
                    }
                }
            }
        }
        for &k in &copies {
            if let Place::At(o) = &self.units.places[self.func.outputs()[k].index()] {
                self.home(o.root);
            }
        }
        copies
    }

    /// If `root` is a product that is added to a matrix that nothing else reads, assigns the matrix to the
    /// location of `root`. Does the same along a chain of such products.
    fn add_in_place(&mut self, mut root: usize, at: Address) {
        while let Some(unit) = self.units.unit_of(root)
            && let Some(Place::At(o)) = self.addend(&self.units.all[unit].nodes)
            && self.is_whole_and_free(o)
            && self.units.num_reads(o.root, self.func) == 1
        {
            root = o.root;
            self.buffers.set(root, at);
            self.overwritten.push(root);
        }
    }

    /// The place of the matrix that is added to a unit's product.
    pub fn addend<'b>(&'b self, nodes: &'b [usize]) -> Option<&'b Place> {
        let Op::Dot { .. } = self.func.nodes()[nodes[0]].op else { return None };
        let mut parts = self.units.parts(nodes, self.func);
        parts.find(|(part, _)| *part == Part::Matrix).and_then(|(_, place)| place)
    }

    fn home(&mut self, root: usize) {
        if self.buffers.get(root).is_none() && matches!(self.ty(root), Type::Array { .. }) {
            let loc = self.buffers.arena(self.ty(root).bytes());
            self.buffers.set(root, loc);
        }
    }

    /// Assigns the operands of a concatenation along its outermost axis to their final locations. If a product is added to the
    /// concatenation in place, operands that something else reads stay apart.
    fn join_parts(&mut self, id: usize, axis: usize) {
        self.home(id);
        let mut at = self.buffers.at(id);
        let shape = self.ty(id).shape();
        if shape[..axis].iter().any(|&len| len != 1) {
            return;
        }
        let is_overwritten = self.overwritten.contains(&id);
        for (k, place) in self.units.operands[id].iter().enumerate() {
            if let Place::At(o) = place
                && self.is_whole_and_free(o)
                && (!is_overwritten || self.units.num_reads(o.root, self.func) == 1)
            {
                self.buffers.set(o.root, at);
                // The operand may be a concatenation, too.
                self.overwritten.extend(is_overwritten.then_some(o.root));
            }
            at.offset += self.func.node(self.func.nodes()[id].args[k]).ty.bytes();
        }
    }
}
