//! Merges pairs of arithmetic instructions of a strip program.
//!
//! The cost of a strip instruction is its L1 traffic: two loads and a store for one product. If the result of
//! a sum, difference or product is read only by one other such instruction, one merged instruction computes
//! both in registers. The product with the derivative of tanh, `g (1 - x^2)`, is also one instruction. Each
//! part is rounded as before, so no bit of a result changes. The pass works on drafts of instructions, not on
//! nodes.

use super::codegen::{Draft, Gen, Held, ValueId};
use crate::backend::cpu::kernels::{Arith, Elem, StripOp, strip};

/// The number of readers of each value, and the draft that produces it.
struct Uses {
    reads: Vec<usize>,
    made: Vec<Option<usize>>,
}

impl Gen<'_> {
    /// Merges drafts, each with at most one draft whose result it reads.
    pub fn chain(&mut self) {
        let mut of = Uses { reads: vec![0; self.values.len()], made: vec![None; self.values.len()] };
        for (i, draft) in self.drafts.iter().enumerate() {
            draft.args.iter().flatten().for_each(|v| of.reads[v.0 as usize] += 1);
            of.made[draft.dst.0 as usize] = Some(i);
        }
        self.ends.iter().for_each(|(v, ..)| of.reads[v.0 as usize] += 1);
        let mut is_gone = vec![false; self.drafts.len()];
        for i in 0..self.drafts.len() {
            if let Some((j, joined)) = self.joined(i, &of) {
                self.drafts[i] = joined;
                is_gone[j] = true;
            }
        }
        let mut gone = is_gone.into_iter();
        self.drafts.retain(|_| !gone.next().unwrap_or_default());
    }

    /// Draft `i` merged with another draft, and the index of the other draft.
    fn joined(&self, i: usize, of: &Uses) -> Option<(usize, Draft)> {
        let draft = &self.drafts[i];
        let (op, elem) = draft.op.filter(|(_, elem)| matches!(elem, Elem::F32 | Elem::F64))?;
        let [Some(a), Some(b), None] = draft.args else { return None };
        let ways = [(a, b, second(op, false)), (b, a, second(op, true))];
        ways.into_iter().find_map(|(inner, other, second)| {
            let j = self.inside(inner, of)?;
            let first = &self.drafts[j];
            let [Some(x), y, _] = first.args else { return None };
            let (op, args, imm) = match (first.op?.0, second?) {
                (StripOp::Mul, Arith::SubFrom) if y == Some(x) && self.number(other).is_some() => {
                    (StripOp::SubSquare, [Some(x), None, None], self.number(other)?)
                }
                (StripOp::SubSquare, Arith::Mul) => {
                    (StripOp::Gate, [Some(x), Some(other), None], first.imm[0])
                }
                (first, second) => (StripOp::Then(basic(first)?, second), [Some(x), y, Some(other)], 0.0),
            };
            let run = strip(self.level, op, elem);
            Some((j, Draft { op: Some((op, elem)), run, one: None, imm: [imm, 0.0], dst: draft.dst, args }))
        })
    }

    /// The draft that produces a value, if it has no other reader.
    fn inside(&self, value: ValueId, of: &Uses) -> Option<usize> {
        let k = value.0 as usize;
        let is_read_once = of.reads[k] == 1 && matches!(self.values[k], Held::Register { .. });
        of.made[k].filter(|_| is_read_once)
    }

    /// The number that a value equals at every element, if any.
    fn number(&self, value: ValueId) -> Option<f64> {
        let Held::Stream(at) = self.values[value.0 as usize] else { return None };
        self.inputs[at].splat.map(|(_, bits)| f64::from_bits(bits))
    }
}

/// The second part of a merged instruction; `flipped` if the first part's result is its second operand.
fn second(op: StripOp, flipped: bool) -> Option<Arith> {
    match op {
        StripOp::Sub if flipped => Some(Arith::SubFrom),
        op => basic(op),
    }
}

fn basic(op: StripOp) -> Option<Arith> {
    match op {
        StripOp::Add => Some(Arith::Add),
        StripOp::Sub => Some(Arith::Sub),
        StripOp::Mul => Some(Arith::Mul),
        _ => None,
    }
}
