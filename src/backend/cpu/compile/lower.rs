//! Lowers units to steps: assigns buffers to roots and a kernel to each unit.
//!
//! The memory plan assigns offsets in the arena later.

use super::buffers::{Buffers, Home};
use super::codegen::{elem, generate};
use super::fuse::{Kind, Units};
use super::layers::Part;
use super::lower_loops::{Made, Spaces};
use super::places::Place;
use crate::array::{DType, Shape};
use crate::backend::cpu::access::{Dim, View};
use crate::backend::cpu::address::Address;
use crate::backend::cpu::kernels::{Activation, Gemm, takes_packed};
use crate::backend::cpu::plan::Trips;
use crate::backend::cpu::report::{CompiledBody, StoringLoop};
use crate::backend::cpu::run::copy::{Gather, Move, Random, Scatter, TransposeCopy};
use crate::backend::cpu::run::dot::{Dot, Layer, Term, products};
use crate::backend::cpu::run::observe::Observe;
use crate::backend::cpu::run::packed::Packed;
use crate::backend::cpu::run::step::Step;
use crate::backend::cpu::run::totals::{DeferredProduct, Ring};
use crate::graph::{Func, Op, Type, UnaryOp};
use crate::simd::Level;
use crate::transform::Residuals;

/// Below this number of elements, a transpose through registers is not faster than a strided copy.
const MIN_TRANSPOSE: usize = 64;

/// Steps in order, with locations that name buffers.
pub(crate) struct Lowered {
    pub steps: Vec<Step>,
    /// For each step, pairs (written, read) of locations that may share bytes.
    pub in_place: Vec<Vec<(Address, Address)>>,
    pub buffers: Buffers,
    /// The loops' data in a workspace.
    pub spaces: Spaces,
    pub bodies: Vec<CompiledBody>,
    /// The loops with a backward pass.
    pub loops: Vec<StoringLoop>,
    /// Ring buffers of deferred products.
    pub rings: Vec<Ring>,
    /// Captured right operands, which are packed when the loop starts.
    pub packed: Vec<Packed>,
}

/// A plan under construction.
pub struct Lower<'a> {
    pub func: &'a Func,
    pub units: &'a Units,
    pub level: Level,
    pub buffers: Buffers,
    pub steps: Vec<Step>,
    pub spaces: Spaces,
    pub bodies: Vec<CompiledBody>,
    pub loops: Vec<StoringLoop>,
    /// The schedule and tape of each loop node.
    pub made: Vec<(usize, Made)>,
    /// The residuals of future backward passes, by the tape that they read.
    pub halves: Vec<(usize, Residuals)>,
    /// The loop node and value of each sequence.
    pub sequences: Vec<((usize, usize), usize)>,
    /// The roots whose buffers a product is added to in place.
    pub overwritten: Vec<usize>,
    in_place: Vec<Vec<(Address, Address)>>,
    /// For the body of a loop: its captured inputs, and its outputs that are summed over the runs.
    trips: Trips,
    /// The rings of sums over the runs.
    rings: Vec<(usize, Ring)>,
    packed: Vec<Packed>,
}

/// Lowers the units of a function; `trips` describes its repeated runs.
pub(crate) fn lower(func: &Func, units: &Units, level: Level, trips: Trips) -> Lowered {
    let buffers = Buffers::new(func);
    let mut l = Lower {
        func,
        units,
        level,
        buffers,
        steps: vec![],
        in_place: vec![],
        spaces: Spaces::default(),
        bodies: vec![],
        loops: vec![],
        made: vec![],
        halves: vec![],
        sequences: vec![],
        overwritten: vec![],
        trips,
        rings: vec![],
        packed: vec![],
    };
    let order = units.schedule(func);
    let copies = l.homes(&order);
    for &u in &order {
        match units.all[u].kind {
            Kind::Fused => {
                let made = generate(func, units, u, level, &mut l.buffers);
                l.push(Step::Strip(made.program), made.in_place);
            }
            Kind::Move => {
                let id = units.all[u].nodes[0];
                let dst = l.buffers.at(id);
                l.copy(&units.operands[id][0], dst, &func.nodes()[id].ty);
            }
            Kind::Single => l.single(u),
        }
    }
    for k in copies {
        let ty = func.output_type(k);
        let dst = l.buffers.make(ty.bytes(), Home::Output(k));
        l.copy(&units.places[func.outputs()[k].index()], dst, ty);
    }
    let Lower { steps, in_place, buffers, spaces, bodies, loops, rings, packed, .. } = l;
    let rings = rings.into_iter().map(|(_, ring)| ring).collect();
    Lowered { steps, in_place, buffers, spaces, bodies, loops, rings, packed }
}

impl Lower<'_> {
    pub fn push(&mut self, step: Step, in_place: Vec<(Address, Address)>) {
        self.steps.push(step);
        self.in_place.push(in_place);
    }

    pub fn ty(&self, id: usize) -> &Type {
        &self.func.nodes()[id].ty
    }

    /// Location and view of an operand's elements; a number is stored in the pool of constants.
    fn view(&mut self, place: &Place, shape: &Shape, dtype: DType) -> (Address, View) {
        match place {
            Place::Opaque { node } => panic!("invariant: %{node} has elements"),
            Place::Splat { dtype, bits } => {
                let dims = shape.iter().map(|&len| Dim { len, stride: 0 }).collect();
                (self.buffers.splat(*dtype, *bits, 1), View { offset: 0, dims })
            }
            Place::At(o) => {
                let loc = self.buffers.at(o.root);
                (Address { offset: loc.offset + o.view.offset * dtype.size(), ..loc }, o.view.clone())
            }
        }
    }

    /// Location of an operand's contiguous elements.
    pub fn held(&mut self, place: &Place, ty: &Type) -> Address {
        match place {
            Place::Splat { dtype, bits } => self.buffers.splat(*dtype, *bits, ty.shape().size()),
            _ => self.view(place, ty.shape(), ty.dtype()).0,
        }
    }

    /// Copies an operand to `dst`, contiguously.
    fn copy(&mut self, place: &Place, dst: Address, ty: &Type) {
        let (src, view) = self.view(place, ty.shape(), ty.dtype());
        let elem = ty.dtype().size();
        let step = match TransposeCopy::of(&view) {
            Some((batch, rows, cols, stride)) if view.size() >= MIN_TRANSPOSE => {
                Step::TransposeCopy(TransposeCopy { src, dst, elem, batch, rows, cols, stride })
            }
            _ => {
                // If strides cannot express a reshape, only the order of the elements matters.
                let from: Shape = view.dims.iter().map(|d| d.len).collect::<Vec<_>>().into();
                let dims = Move::dims(&view, &View::contiguous(&from));
                Step::Move(Move { src, dst, elem, dims, zero: None })
            }
        };
        self.push(step, vec![]);
    }

    fn single(&mut self, unit: usize) {
        let id = self.units.all[unit].nodes[0];
        let node = &self.func.nodes()[id];
        let args = &self.units.operands[id];
        let ty = |k: usize| &self.func.node(node.args[k]).ty;
        let row_len = |ty: &Type| ty.shape()[1..].iter().product::<usize>();
        let out = |l: &Self| l.buffers.at(id);
        match &node.op {
            Op::Concat { axis } => self.concat(id, *axis),
            Op::Pad { lo, .. } => {
                let dst = out(self);
                let (src, view) = self.view(&args[0], ty(0).shape(), ty(0).dtype());
                let inner = View::contiguous(node.ty.shape()).slice(lo, &ends(lo, ty(0).shape()));
                let elem = node.ty.dtype().size();
                let to = Address { offset: dst.offset + inner.offset * elem, ..dst };
                let zero = Some((dst, node.ty.bytes()));
                let dims = Move::dims(&view, &inner);
                self.push(Step::Move(Move { src, dst: to, elem, dims, zero }), vec![]);
            }
            Op::Gather => {
                let (src, index) = (self.held(&args[0], ty(0)), self.held(&args[1], ty(1)));
                let rows = ty(0).shape()[0];
                let (num, row) = (ty(1).shape().size(), row_len(ty(0)) * ty(0).dtype().size());
                self.push(Step::Gather(Gather { src, index, dst: out(self), rows, num, row }), vec![]);
            }
            Op::Scatter(op) => {
                let dst = out(self);
                self.copy(&args[0], dst, ty(0));
                let (index, updates) = (self.held(&args[1], ty(1)), self.held(&args[2], ty(2)));
                let rows = ty(0).shape()[0];
                let (num, len) = (ty(1).shape().size(), row_len(ty(0)));
                let elem = elem(node.ty.dtype());
                let op = *op;
                self.push(Step::Scatter(Scatter { op, dst, index, updates, rows, num, len, elem }), vec![]);
            }
            Op::Dot { .. } => self.dot(unit),
            Op::Conv { .. } | Op::ConvKernel { .. } => self.conv(id),
            Op::Lines(op) => self.lines(id, *op),
            Op::Factor(op) => self.factor(id, *op),
            Op::LuSolve { transposed } => self.lu_solve(id, *transposed),
            Op::TriangularSolve(triangle) => self.triangular_solve(id, *triangle),
            Op::RandomBits { stream } => {
                let (key, start) = (self.held(&args[0], ty(0)), self.held(&args[1], ty(1)));
                let len = node.ty.shape().size();
                self.push(Step::Random(Random { key, start, dst: out(self), stream: *stream, len }), vec![]);
            }
            Op::Observe(observer) => {
                let ty = ty(0).clone();
                let (src, dst) = (self.held(&args[0], &ty), out(self));
                self.push(Step::Observe(Observe { src, dst, ty, observer: observer.clone() }), vec![]);
            }
            Op::Solve(s) => self.solve(id, s),
            Op::Replay(l) => self.replay(id, l),
            Op::Tiles(t) => self.tiles(id, t),
            Op::Cond(c) => self.cond(id, c),
            other => panic!("invariant: {} has no kernel of its own", other.name()),
        }
    }

    fn concat(&mut self, id: usize, axis: usize) {
        let node = &self.func.nodes()[id];
        let (dst, elem) = (self.buffers.at(id), node.ty.dtype().size());
        let whole = View::contiguous(node.ty.shape());
        let mut start = vec![0; whole.dims.len()];
        for (k, place) in self.units.operands[id].iter().enumerate() {
            let ty = &self.func.node(node.args[k]).ty;
            let part = whole.slice(&start, &ends(&start, ty.shape()));
            start[axis] += ty.shape()[axis];
            let to = Address { offset: dst.offset + part.offset * elem, ..dst };
            let (src, view) = self.view(place, ty.shape(), ty.dtype());
            if src != to && ty.shape().size() > 0 {
                let dims = Move::dims(&view, &part);
                self.push(Step::Move(Move { src, dst: to, elem, dims, zero: None }), vec![]);
            }
        }
    }

    fn dot(&mut self, unit: usize) {
        let nodes = &self.units.all[unit].nodes;
        let (id, last) = (nodes[0], nodes[nodes.len() - 1]);
        let node = &self.func.nodes()[id];
        let (ta, tb) = (&self.func.node(node.args[0]).ty, &self.func.node(node.args[1]).ty);
        let double = node.ty.dtype() == DType::F64;
        let operands = &self.units.operands[id];
        let mut view = |place: &Place, ty: &Type| match place {
            Place::Splat { .. } => (self.held(place, ty), View::contiguous(ty.shape())),
            _ => self.view(place, ty.shape(), ty.dtype()),
        };
        let ((a, va), (b, vb)) = (view(&operands[0], ta), view(&operands[1], tb));
        let (batch, shape) = products(&va, &vb);
        let c = self.buffers.at(last);
        if let Some(ring) = self.ring(nodes, &shape, c, double) {
            return self.push(Step::DeferredProduct(DeferredProduct { a, b, shape, ring }), vec![]);
        }
        let layer = (nodes.len() > 1).then(|| self.layer(nodes));
        let (b, shape) = self.packed(b, &shape, batch.count() == 1, double);
        let in_place = match &layer {
            Some(Layer { term: Some(Term::Matrix(m)), .. }) if ![a.base, b.base].contains(&m.base) => {
                vec![(c, *m)]
            }
            _ => vec![],
        };
        self.push(Step::Dot(Dot { a, b, c, double, batch, shape, layer }), in_place);
    }

    /// The right operand of a product, packed if it is captured and a single product accepts it packed.
    fn packed(&mut self, b: Address, shape: &Gemm, is_one: bool, double: bool) -> (Address, Gemm) {
        let Home::Input(k) = self.buffers.list[b.base as usize].home else { return (b, *shape) };
        if !is_one || !self.trips.captured.contains(&k) || !takes_packed(shape.n) {
            return (b, *shape);
        }
        let factor = (shape.k, shape.n, shape.ldb);
        let known = self.packed.iter().find(|p| p.from == b && p.shape == factor).map(|p| p.to);
        let to = known.unwrap_or_else(|| {
            let to = self.buffers.make(Packed::bytes(self.level, factor, double), Home::Kept);
            self.packed.push(Packed { from: b, to, shape: factor, double });
            to
        });
        (to, Gemm { packed: true, ..*shape })
    }

    /// The epilogue of a unit's product.
    fn layer(&mut self, nodes: &[usize]) -> Layer {
        let mut layer = Layer { term: None, gate: None, shift: None, activation: Activation::Identity };
        let (units, func) = (self.units, self.func);
        for ((part, place), &id) in units.parts(nodes, func).zip(nodes) {
            let ty = &func.nodes()[id].ty;
            let at = place.map(|place| match part {
                Part::Matrix => self.view(place, ty.shape(), ty.dtype()).0,
                _ => self.row(place, ty),
            });
            match part {
                Part::Product => {}
                Part::Bias => layer.term = at.map(Term::Bias),
                Part::Matrix => layer.term = at.map(Term::Matrix),
                Part::Gate => layer.gate = at,
                Part::Shift => layer.shift = at,
                Part::Activation => layer.activation = activation(&func.nodes()[id].op),
            }
        }
        layer
    }

    /// The location of a row that is read after a product. If the row is a sum over runs, the product would
    /// overwrite it, so it is copied first.
    fn row(&mut self, place: &Place, ty: &Type) -> Address {
        let (at, _) = self.view(place, ty.shape(), ty.dtype());
        if !self.is_total(at) {
            return at;
        }
        let aside = self.buffers.arena(ty.bytes());
        self.copy(place, aside, ty);
        aside
    }

    /// Whether a location is a sum over earlier runs.
    fn is_total(&self, at: Address) -> bool {
        let first = self.func.num_inputs() - self.trips.sums.len();
        matches!(self.buffers.list[at.base as usize].home, Home::Input(k) if k >= first)
    }

    /// The ring buffer of a product that is added only to a sum over runs, if deferring the product saves
    /// time.
    fn ring(&mut self, nodes: &[usize], shape: &Gemm, c: Address, double: bool) -> Option<Ring> {
        let Home::Output(k) = self.buffers.list[c.base as usize].home else { return None };
        let Some(Place::At(addend)) = self.addend(nodes).filter(|_| nodes.len() == 2) else { return None };
        let sum = self.buffers.at(addend.root);
        let is_sum = self.trips.sums.contains(&k) && (sum.base == c.base || self.is_total(sum));
        if !is_sum || !Ring::suits(shape) {
            return None;
        }
        let known = self.rings.iter().find(|(of, _)| *of == k).map(|(_, ring)| *ring);
        known.or_else(|| {
            let Gemm { m, n, .. } = *shape;
            let bytes = Ring::bytes(m, n, if double { size_of::<f64>() } else { size_of::<f32>() });
            let ring = Ring { at: self.buffers.make(bytes, Home::Kept), total: c, m, n, double };
            self.rings.push((k, ring));
            Some(ring)
        })
    }
}

fn activation(op: &Op) -> Activation {
    match op {
        Op::Unary(UnaryOp::Tanh) => Activation::Tanh,
        Op::Unary(UnaryOp::Sigmoid) => Activation::Sigmoid,
        op => panic!("invariant: {} is not an activation of a layer", op.name()),
    }
}

fn ends(start: &[usize], len: &[usize]) -> Vec<usize> {
    start.iter().zip(len).map(|(s, l)| s + l).collect()
}
