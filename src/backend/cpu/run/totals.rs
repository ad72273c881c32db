//! Sums over the trips of a loop, accumulated inside the body's plan.
//!
//! If a body returned the contribution of one trip, it would write the contribution, and another kernel would
//! load the contribution and the partial sum and store the new sum. These are several passes over a matrix for
//! a product of a few rows. Instead, the partial sum is an additional input of the body that aliases the
//! output, and products add to it from their registers ([`layers`](crate::backend::cpu::compile::layers)).
//!
//! If a product has so few rows (the `k` of its [`Gemm`]) that a pass over the sum costs more than the
//! product, it is deferred: a trip stores its rows in a ring buffer, and when the buffer is full, one product
//! of all rows is added. The terms are added in the order of the trips, so the result does not depend on
//! which states a loop stores and which it recomputes.

use super::bind::Body;
use crate::backend::cpu::address::{Address, Bound, Cost, Env};
use crate::backend::cpu::kernels::{Gemm, gemm_f32, gemm_f64};
use crate::graph::{BinaryOp, Builder, Func, NodeId, NodeIds, Op};
use crate::simd::Level;
use std::ops::Range;
use std::ptr::null_mut;

/// The maximum number of rows of a deferred product. With 8 rows, the pass over the sum takes only as long as
/// the product.
const MAX_ROWS: usize = 4;
/// Rows of a ring buffer. With 16, a pass over the sum takes a tenth of a trip; a longer ring costs more L2
/// space than it saves.
const RING_ROWS: usize = 16;
/// Bytes of a ring's counter; the rows follow the counter.
const HEAD_BYTES: usize = 64;

/// `body` with its outputs in `sums` added to additional inputs, which follow its own.
///
/// Gradients contain left-deep chains of sums. The total becomes the first term of such a chain, so that each
/// product of the chain is added to it in turn.
pub(crate) fn with_totals(body: &Func, sums: Range<usize>) -> Func {
    let (mut b, inputs) = Builder::with_inputs(&body.input_types());
    let totals: Vec<NodeId> = sums.clone().map(|k| b.input(body.output_type(k).clone())).collect();
    let mut uses = vec![0usize; body.nodes().len()];
    let read = body.nodes().iter().flat_map(|n| &n.args).chain(body.outputs());
    read.for_each(|id| uses[id.index()] += 1);
    let mut map: Vec<NodeId> = Vec::with_capacity(body.nodes().len());
    for node in body.nodes() {
        let args: NodeIds = node.args.iter().map(|a| map[a.index()]).collect();
        map.push(match &node.op {
            Op::Input(k) => inputs[*k],
            op => b.push(op.clone(), &args, Some(&node.ty)),
        });
    }
    let mut outputs: Vec<NodeId> = body.outputs().iter().map(|o| map[o.index()]).collect();
    for (k, total) in sums.zip(totals) {
        let (mut at, mut later) = (body.outputs()[k], vec![]);
        while let (Op::Binary(BinaryOp::Add), [first, second]) = (&body.node(at).op, &body.node(at).args[..])
            && uses[at.index()] == 1
        {
            later.push(*second);
            at = *first;
        }
        let start = b.add(total, map[at.index()]);
        outputs[k] = later.iter().rev().fold(start, |sum, part| b.add(sum, map[part.index()]));
    }
    b.finish(&outputs)
}

/// A sum over the trips of a loop.
#[derive(Debug)]
pub(crate) struct Total {
    pub at: Address,
    pub bytes: usize,
}

impl Body<'_> {
    /// Sets the sums of a loop to zero, binds them as the outputs from `first` on, and empties the rings.
    pub fn start_totals(&mut self, totals: &[Total], first: usize, env: Env) {
        let first_input = self.plan.0.inputs.len() - totals.len();
        for (k, total) in totals.iter().enumerate() {
            let at = env.bound(total.at);
            at.zero(total.bytes);
            self.input(first_input + k, at);
            self.output(first + k, at);
        }
        self.plan.0.rings.iter().for_each(|ring| ring.clear(self.bound()));
    }

    /// Adds the deferred products to the sums.
    pub fn finish_totals(&mut self) {
        let inner = &self.plan.0;
        inner.rings.iter().for_each(|ring| ring.flush(self.bound(), inner.level));
    }

    /// The addresses that the plan's locations refer to.
    pub fn bound(&self) -> Env {
        // SAFETY: the workspace has been prepared for the plan, so it has all bases of the plan.
        unsafe { Env::new(self.ws.bases.as_ptr(), null_mut(), null_mut()) }
    }
}

/// A deferred product of few rows: `C += A B` for the rows of many trips at once.
#[derive(Clone, Debug)]
pub(crate) struct DeferredProduct {
    pub a: Address,
    pub b: Address,
    /// The product of one trip.
    pub shape: Gemm,
    pub ring: Ring,
}

/// Rows of trips that wait to be multiplied, stored in the arena during all trips: their number, then the
/// rows of A^T, then the rows of B.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring {
    pub at: Address,
    pub total: Address,
    pub m: usize,
    pub n: usize,
    pub double: bool,
}

impl Ring {
    /// Whether deferring saves time for a product of this shape.
    pub fn suits(shape: &Gemm) -> bool {
        (1..=MAX_ROWS).contains(&shape.k) && shape.m > 1 && shape.n > 1
    }

    /// Bytes in the arena for sums of `m` by `n` elements.
    pub fn bytes(m: usize, n: usize, elem: usize) -> usize {
        HEAD_BYTES + RING_ROWS * (m + n) * elem
    }

    fn elem(&self) -> usize {
        if self.double { size_of::<f64>() } else { size_of::<f32>() }
    }

    /// Discards the waiting rows.
    pub fn clear(&self, env: Env) {
        env.bound(self.at).write::<usize>(0, 0);
    }

    /// Adds the product of the waiting rows to the total.
    pub fn flush(&self, env: Env, level: Level) {
        let &Ring { m, n, .. } = self;
        let ring = env.bound(self.at);
        let k = ring.read::<usize>(0);
        if k == 0 {
            return;
        }
        self.clear(env);
        let shape = Gemm { m, n, k, rsa: 1, csa: m, ldb: n, ldc: n, accumulate: true, packed: false };
        let a = ring.from(HEAD_BYTES).ptr();
        let (b, c) = (ring.from(HEAD_BYTES + RING_ROWS * m * self.elem()).ptr(), env.at(self.total));
        // SAFETY: `check_plan` has checked the ring and the total, which `Ring::each_span` gives and which do not
        // overlap. `DeferredProduct::run` lets at most `RING_ROWS` rows wait. The level is that of the plan.
        unsafe {
            match self.double {
                false => gemm_f32(level, &shape, a.cast(), b.cast(), c.cast()),
                true => gemm_f64(level, &shape, a.cast(), b.cast(), c.cast()),
            }
        }
    }
}

impl DeferredProduct {
    pub fn cost(&self) -> Cost {
        let Gemm { m, n, k, .. } = self.shape;
        Cost { flops: 2 * m * n * k, bytes: (2 * k * (m + n) + 2 * m * n * k / RING_ROWS) * self.ring.elem() }
    }

    /// Adds the rows of this trip to the ring.
    pub fn run(&self, env: Env, level: Level) {
        let Gemm { m, n, k, rsa, csa, ldb, .. } = self.shape;
        let elem = self.ring.elem();
        let ring = env.bound(self.ring.at);
        if ring.read::<usize>(0) + k > RING_ROWS {
            self.ring.flush(env, level);
        }
        let waiting = ring.read::<usize>(0);
        let (rows, a, b) = (ring.from(HEAD_BYTES), env.bound(self.a), env.bound(self.b));
        for row in waiting..waiting + k {
            let p = row - waiting;
            gather(rows.from(row * m * elem), a.from(p * csa * elem), m, rsa, elem);
            b.from(p * ldb * elem).copy_to(rows.from((RING_ROWS * m + row * n) * elem), n * elem);
        }
        ring.write(0, waiting + k);
    }
}

/// Copies `len` elements that are `stride` apart.
fn gather(to: Bound, from: Bound, len: usize, stride: usize, elem: usize) {
    if stride == 1 {
        return from.copy_to(to, len * elem);
    }
    for i in 0..len {
        from.from(i * stride * elem).copy_to(to.from(i * elem), elem);
    }
}
