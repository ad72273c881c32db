//! Compiles a fused unit to a strip program: chooses instructions, assigns registers and sizes strips.
//!
//! A product and a sum are not contracted to a fused multiply-add, because a body that is compiled in two
//! contexts must have the same results in both, bit for bit. The exception is `Lincomb`, which is defined as a
//! chain of multiply-adds.

use super::buffers::Buffers;
use super::fuse::Units;
use super::places::{Operand, Place};
use crate::array::DType;
use crate::backend::cpu::access::Dim;
use crate::backend::cpu::address::{Access, Address};
use crate::backend::cpu::kernels::{Elem, OneFn, StripFn, StripOp, cast, cast_one, one, strip};
use crate::backend::cpu::run::program::Program;
use crate::backend::cpu::run::reduce::Reducer;
use crate::graph::{BinaryOp, CompareOp, Func, Op, UnaryOp};
use crate::simd::Level;

/// L1 bytes available to the registers and operands of a strip.
const L1_BYTES: usize = 40 << 10;

/// The storage type of elements.
pub(crate) fn elem(dtype: DType) -> Elem {
    match dtype {
        DType::F32 => Elem::F32,
        DType::F64 => Elem::F64,
        DType::I32 => Elem::I32,
        DType::U32 | DType::Bool => Elem::U32,
    }
}

/// A value inside the program, before register allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueId(pub u32);

/// Where a value is held.
#[derive(Clone, Copy, Debug)]
pub enum Held {
    /// In a register, from its instruction to its last use.
    Register { elem: Elem },
    /// In memory: the index of its stream in [`Gen::inputs`].
    Stream(usize),
}

/// An instruction on values.
pub struct Draft {
    /// The operation, if the instruction may be merged with another instruction.
    pub op: Option<(StripOp, Elem)>,
    pub run: StripFn,
    /// The same operation on a single element, if its result has the same bits at all levels.
    pub one: Option<OneFn>,
    pub imm: [f64; 2],
    pub dst: ValueId,
    pub args: [Option<ValueId>; 3],
}

/// A stream whose mode depends on the strip length.
pub struct Input {
    pub loc: Address,
    pub access: Access,
    pub elem: Elem,
    pub dims: Vec<Dim>,
    /// The constant that the stream repeats, if any. Its buffer must be as long as a strip.
    pub splat: Option<(DType, u64)>,
    /// The operand in the graph; equal operands share a stream.
    pub operand: Option<Operand>,
}

/// A program, and the pairs of its locations that the memory plan may overlap.
pub(crate) struct Generated {
    pub program: Program,
    /// Pairs (written, read) of locations that may share bytes.
    pub in_place: Vec<(Address, Address)>,
}

/// A program under construction.
pub struct Gen<'a> {
    pub func: &'a Func,
    pub units: &'a Units,
    pub level: Level,
    pub unit: usize,
    pub values: Vec<Held>,
    pub of_node: Vec<(usize, ValueId)>,
    pub inputs: Vec<Input>,
    pub drafts: Vec<Draft>,
    pub ends: Vec<(ValueId, Address, Reducer)>,
    pub flops: usize,
}

/// The program of fused unit `unit`. The value of a node that has a buffer is written to this buffer.
pub(crate) fn generate(
    func: &Func,
    units: &Units,
    unit: usize,
    level: Level,
    buffers: &mut Buffers,
) -> Generated {
    let mut g = Gen {
        func,
        units,
        level,
        unit,
        values: vec![],
        of_node: vec![],
        inputs: vec![],
        drafts: vec![],
        ends: vec![],
        flops: 0,
    };
    for &id in &units.all[unit].nodes {
        g.node(id, buffers);
    }
    g.chain();
    g.finish(buffers)
}

impl Gen<'_> {
    fn node(&mut self, id: usize, buffers: &Buffers) {
        let node = &self.func.nodes()[id];
        let dtype = node.ty.dtype();
        if let Op::Reduce { op, .. } = node.op {
            let src = self.arg(id, 0, buffers);
            let geometry = self.units.all[self.unit].geometry.expect("invariant: a reduction has one");
            self.ends.push((src, buffers.at(id), Reducer::new(self.level, op, elem(dtype), geometry)));
            return;
        }
        // If the node belongs to another unit, its copy in this unit is not written to a buffer.
        let own = self.units.unit_of(id) == Some(self.unit);
        let held = match buffers.get(id).filter(|_| own) {
            Some(loc) => {
                let dims = vec![Dim { len: node.ty.shape().size(), stride: 1 }];
                let write = Access::Write;
                let input = Input { loc, access: write, elem: elem(dtype), dims, splat: None, operand: None };
                self.inputs.push(input);
                Held::Stream(self.inputs.len() - 1)
            }
            None => Held::Register { elem: elem(dtype) },
        };
        let dst = self.value(held);
        self.of_node.push((id, dst));
        self.instruct(id, dst, buffers);
    }

    fn value(&mut self, held: Held) -> ValueId {
        self.values.push(held);
        ValueId(self.values.len() as u32 - 1)
    }

    fn emit(&mut self, run: StripFn, dst: ValueId, args: &[ValueId], imm: [f64; 2]) -> &mut Draft {
        let mut all = [None; 3];
        for (to, &from) in all.iter_mut().zip(args) {
            *to = Some(from);
        }
        self.drafts.push(Draft { op: None, run, one: None, imm, dst, args: all });
        self.drafts.last_mut().expect("invariant: it was just pushed")
    }

    /// The number that operand `k` of node `id` equals, if it is constant.
    fn number_at(&self, id: usize, k: usize) -> Option<f64> {
        match self.units.operands[id][k] {
            Place::Splat { bits, .. } => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    fn arg(&mut self, id: usize, k: usize, buffers: &Buffers) -> ValueId {
        let dtype = self.func.node(self.func.nodes()[id].args[k]).ty.dtype();
        match self.units.operands[id][k].clone() {
            Place::Opaque { node } => panic!("invariant: %{node} has elements"),
            Place::Splat { dtype, bits } => self.splat(dtype, bits),
            Place::At(o) => {
                if let Some(&(_, v)) = self.of_node.iter().find(|(node, _)| *node == o.root) {
                    assert!(
                        o.view.is_linear() && o.view.offset == 0,
                        "invariant: a fused value is read in place"
                    );
                    return v;
                }
                let known = self.inputs.iter().position(|i| i.operand.as_ref() == Some(&o));
                let at = known.unwrap_or_else(|| {
                    let loc = buffers.at(o.root);
                    let elem = elem(dtype);
                    let loc = Address { offset: loc.offset + o.view.offset * elem.size(), ..loc };
                    let dims = o.view.pattern();
                    let (access, splat) = (Access::Read, None);
                    self.inputs.push(Input { loc, access, elem, dims, splat, operand: Some(o) });
                    self.inputs.len() - 1
                });
                self.stream(at)
            }
        }
    }

    /// The value of a stream.
    fn stream(&mut self, at: usize) -> ValueId {
        let same = |h: &Held| matches!(h, Held::Stream(s) if *s == at);
        match self.values.iter().position(same) {
            Some(v) => ValueId(v as u32),
            None => self.value(Held::Stream(at)),
        }
    }

    fn splat(&mut self, dtype: DType, bits: u64) -> ValueId {
        let known = self.inputs.iter().position(|i| i.splat == Some((dtype, bits)));
        let at = known.unwrap_or_else(|| {
            self.inputs.push(Input {
                loc: Address { base: u32::MAX, offset: 0 },
                access: Access::Read,
                elem: elem(dtype),
                dims: vec![],
                splat: Some((dtype, bits)),
                operand: None,
            });
            self.inputs.len() - 1
        });
        self.stream(at)
    }

    fn op(&mut self, op: StripOp, elem: Elem, dst: ValueId, args: &[ValueId], imm: f64) {
        self.flops += 1;
        let is_one = self.units.all[self.unit].size == 1;
        let draft = self.emit(strip(self.level, op, elem), dst, args, [imm, 0.0]);
        match is_one {
            true => draft.one = one(op, elem),
            false => draft.op = Some((op, elem)),
        }
    }

    fn instruct(&mut self, id: usize, dst: ValueId, buffers: &Buffers) {
        let node = &self.func.nodes()[id];
        let to = node.ty.dtype();
        let from = self.func.node(node.args[0]).ty.dtype();
        match &node.op {
            Op::Unary(u) => {
                let x = self.arg(id, 0, buffers);
                let (op, imm) = unary(*u);
                self.op(op, elem(from), dst, &[x], imm);
            }
            Op::Binary(op) => self.binary(id, *op, elem(to), dst, buffers),
            Op::Compare(op) => {
                let args = [self.arg(id, 0, buffers), self.arg(id, 1, buffers)];
                self.op(compare(*op), elem(from), dst, &args, 0.0);
            }
            Op::Select => {
                let args = [0, 1, 2].map(|k| self.arg(id, k, buffers));
                self.op(StripOp::Select, elem(to), dst, &args, 0.0);
            }
            Op::Scalar(f) => {
                let args: Vec<ValueId> = (0..f.arity()).map(|k| self.arg(id, k, buffers)).collect();
                self.op(StripOp::Scalar, elem(to), dst, &args, f64::from(*f as u8));
            }
            Op::Lincomb { coeffs } => self.lincomb(id, coeffs, elem(to), dst, buffers),
            Op::Cast => {
                let x = self.arg(id, 0, buffers);
                if to == DType::Bool && from != DType::Bool {
                    let zero = self.splat(from, 0.0f64.to_bits());
                    self.op(StripOp::Ne, elem(from), dst, &[x, zero], 0.0);
                } else {
                    self.flops += 1;
                    let draft = self.emit(cast(self.level, elem(from), elem(to)), dst, &[x], [0.0; 2]);
                    draft.one = Some(cast_one(elem(from), elem(to)));
                }
            }
            other => panic!("invariant: {} is not elementwise", other.name()),
        }
    }

    fn binary(&mut self, id: usize, op: BinaryOp, elem: Elem, dst: ValueId, buffers: &Buffers) {
        let float = matches!(elem, Elem::F32 | Elem::F64);
        let (a, b) = (self.number_at(id, 0), self.number_at(id, 1));
        let (short, arg, imm) = match (op, a, b) {
            (BinaryOp::Mul, _, Some(c)) => (StripOp::Scale, 0, c),
            (BinaryOp::Mul, Some(c), _) => (StripOp::Scale, 1, c),
            (BinaryOp::Add, _, Some(c)) => (StripOp::AddImm, 0, c),
            (BinaryOp::Add, Some(c), _) => (StripOp::AddImm, 1, c),
            (BinaryOp::Sub, _, Some(c)) => (StripOp::AddImm, 0, -c),
            (BinaryOp::Div, Some(1.0), _) => (StripOp::Recip, 1, 0.0),
            _ => (StripOp::Copy, usize::MAX, 0.0),
        };
        if float && arg != usize::MAX {
            let x = self.arg(id, arg, buffers);
            return self.op(short, elem, dst, &[x], imm);
        }
        let full = match op {
            BinaryOp::Add => StripOp::Add,
            BinaryOp::Sub => StripOp::Sub,
            BinaryOp::Mul => StripOp::Mul,
            BinaryOp::Div => StripOp::Div,
            BinaryOp::Max => StripOp::Max,
            BinaryOp::Min => StripOp::Min,
            BinaryOp::And => StripOp::And,
            BinaryOp::Or => StripOp::Or,
        };
        let args = [self.arg(id, 0, buffers), self.arg(id, 1, buffers)];
        self.op(full, elem, dst, &args, 0.0);
    }

    fn lincomb(&mut self, id: usize, coeffs: &[u64], elem: Elem, dst: ValueId, buffers: &Buffers) {
        let c: Vec<f64> = coeffs.iter().map(|&b| f64::from_bits(b)).collect();
        let x: Vec<ValueId> = (0..c.len()).map(|k| self.arg(id, k, buffers)).collect();
        self.flops += 2 * c.len() - 1;
        let kernel = |op| strip(self.level, op, elem);
        let (scale, axpy, axpy2) = (kernel(StripOp::Scale), kernel(StripOp::Axpy), kernel(StripOp::Axpy2));
        // A product with 1 is exact, so it needs no instruction.
        let mut sum = x[0];
        if c[0] != 1.0 || c.len() == 1 {
            let to = if c.len() == 1 { dst } else { self.value(Held::Register { elem }) };
            self.emit(scale, to, &[x[0]], [c[0], 0.0]).one = one(StripOp::Scale, elem);
            sum = to;
        }
        let mut k = 1;
        while k < c.len() {
            let n = if k + 1 < c.len() { 2 } else { 1 };
            let to = if k + n == c.len() { dst } else { self.value(Held::Register { elem }) };
            match n {
                2 => self.emit(axpy2, to, &[x[k], x[k + 1], sum], [c[k], c[k + 1]]),
                _ => self.emit(axpy, to, &[x[k], sum], [c[k], 0.0]),
            };
            sum = to;
            k += n;
        }
    }

    /// The preferred strip length, small enough for L1: if possible, a multiple or a divisor of the longest
    /// row of an operand.
    pub fn strip_len(&self, registers: usize) -> usize {
        let widest = self.widest();
        let live = (registers + self.inputs.len()).max(1);
        let budget = [512, 256, 128].into_iter().find(|len| live * len * widest <= L1_BYTES).unwrap_or(64);
        let budget = if widest == 8 { budget.min(256) } else { budget };
        let rows =
            self.inputs.iter().filter(|i| i.dims.len() > 1).map(|i| i.dims[i.dims.len() - 1].len).max();
        match rows {
            Some(len) if len <= budget => budget / len * len,
            Some(len) => (budget / 2..=budget).rev().find(|d| len % d == 0).unwrap_or(budget),
            None => budget,
        }
    }
}

fn unary(op: UnaryOp) -> (StripOp, f64) {
    if let Some(f) = op.float_fn() {
        return (StripOp::Float(f), 0.0);
    }
    let op = match op {
        UnaryOp::Neg => StripOp::Neg,
        UnaryOp::Abs => StripOp::Abs,
        UnaryOp::Sign => StripOp::Sign,
        UnaryOp::Not => StripOp::Not,
        UnaryOp::IsFinite => StripOp::IsFinite,
        UnaryOp::Powf(bits) => match f64::from_bits(bits) {
            1.0 => StripOp::Copy,
            2.0 => StripOp::Square,
            -1.0 => StripOp::Recip,
            p => return (StripOp::Powf, p),
        },
        other => unreachable!("invariant: {} is in the table of functions", other.name()),
    };
    (op, 0.0)
}

fn compare(op: CompareOp) -> StripOp {
    match op {
        CompareOp::Eq => StripOp::Eq,
        CompareOp::Ne => StripOp::Ne,
        CompareOp::Lt => StripOp::Lt,
        CompareOp::Le => StripOp::Le,
    }
}
