//! Reverse mode: cotangents are propagated from the outputs back to the inputs.
//!
//! The function is inserted once, then its nodes are visited from the last to the first. A node is visited
//! only if a cotangent reached it and it depends on an argument, so inactive nodes need no work. An absent
//! cotangent is zero and becomes an array only if it is a result. Unlike JAX, reverse mode here has no
//! separate steps for linearization and transposition: each rule emits the transposed nodes itself.

use super::flow::{active_args, dependence, node_flows, num_values};
use super::jvp::{AtExtremum, add, float_input, or_zero, spread};
use super::{
    Cotangents, Set, TransformError, cond, custom, lu, partials, replay, scatter, tiles, triangular,
};
use crate::array::Shape;
use crate::graph::{Builder, FactorOp, Func, LineOp, Node, NodeId, NodeIds, Op, ReduceOp, ScatterOp, Type};

/// The vector-Jacobian product: `(x.., g..) -> (f(x).., g df(x)/dx..)`.
///
/// The inputs are those of `f`, then one cotangent per output in `outs`. The outputs are those of `f`, then one
/// cotangent per input in `wrt`, zero if no output in `outs` depends on it. At a tie of a maximum, each operand
/// gets half of the derivative. Along a solve, the accepted step times are held fixed.
///
/// # Errors
/// If a path from `wrt` to `outs` goes through a loop without a reverse derivative:
/// [`TransformError::SecondReverse`] for a reverse loop that does not store every state,
/// [`TransformError::SecondReverseOfRows`] for a reverse loop in lockstep, [`TransformError::ForwardOnly`]
/// for a loop that has only forward derivatives.
///
/// # Panics
/// If an output in `outs` or an input in `wrt` is not a float, or an input is listed twice.
#[track_caller]
pub fn vjp(f: &Func, outs: &[usize], wrt: &[usize]) -> Result<Func, TransformError> {
    let mut types = f.input_types();
    for &o in outs {
        let ty = f.output_type(o);
        assert!(ty.is_float(), "invariant: output {o} is {ty}, which has no derivative");
        types.push(ty.clone());
    }
    let (mut b, ids) = Builder::with_inputs(&types);
    let (x, g) = ids.split_at(f.num_inputs());
    let mut active = vec![false; f.num_inputs()];
    for &k in wrt {
        float_input(f, k);
        assert!(!std::mem::replace(&mut active[k], true), "invariant: input {k} is listed twice");
    }
    let mut cotangents = vec![None; f.num_outputs()];
    for (&o, &g) in outs.iter().zip(g) {
        cotangents[o] = add(&mut b, cotangents[o], Some(g));
    }
    let (mut outputs, found) = vjp_into(&mut b, f, x, &active, &cotangents)?;
    for &k in wrt {
        outputs.push(or_zero(&mut b, found[k], x[k]));
    }
    Ok(b.finish(&outputs))
}

/// Inserts `f` applied to `args` and its reverse derivative for `cotangents` of its outputs (absent: zero);
/// returns the outputs, and for each input in `wrt` its cotangent (absent: zero).
///
/// # Errors
/// The errors of [`vjp`].
#[track_caller]
pub fn vjp_into(
    b: &mut Builder,
    f: &Func,
    args: &[NodeId],
    wrt: &[bool],
    cotangents: &[Option<NodeId>],
) -> Result<(Vec<NodeId>, Vec<Option<NodeId>>), TransformError> {
    let all = dependence(f);
    let wrt: Set = (0..f.num_inputs()).filter(|&k| wrt[k]).collect();
    let map = insert(b, f, args);
    let mut ct: Vec<Vec<Option<NodeId>>> = f.nodes().iter().map(|n| vec![None; num_values(&n.ty)]).collect();
    for (o, &g) in f.outputs().iter().zip(cotangents) {
        ct[o.index()][0] = add(b, ct[o.index()][0], g);
    }
    let mut found = vec![None; f.num_inputs()];
    for (i, node) in f.nodes().iter().enumerate().rev() {
        let active: Vec<bool> = all[i].iter().map(|s| s.meets(&wrt)).collect();
        let g: Vec<_> =
            active.iter().zip(std::mem::take(&mut ct[i])).map(|(on, g)| g.filter(|_| *on)).collect();
        if g.iter().all(Option::is_none) {
            continue;
        }
        match node.op {
            Op::Input(k) => found[k] = g[0],
            Op::Proj(k) => {
                let slot = &mut ct[node.args[0].index()][k];
                *slot = add(b, *slot, g[0]);
            }
            _ => {
                let x: NodeIds = node.args.iter().map(|a| map[a.index()]).collect();
                let on = active_args(node, &all, &wrt);
                let rule = VjpRule { f, node, x: &x, y: map[i], g: &g, on: &on, active: &active };
                for (a, g) in node.args.iter().zip(rule.emit(b)?) {
                    ct[a.index()][0] = add(b, ct[a.index()][0], g);
                }
            }
        }
    }
    Ok((f.outputs().iter().map(|o| map[o.index()]).collect(), found))
}

fn insert(b: &mut Builder, f: &Func, args: &[NodeId]) -> Vec<NodeId> {
    let mut map: Vec<NodeId> = Vec::with_capacity(f.nodes().len());
    for node in f.nodes() {
        let x: NodeIds = node.args.iter().map(|a| map[a.index()]).collect();
        map.push(match node.op {
            Op::Input(k) => args[k],
            _ => b.push(node.op.clone(), &x, Some(&node.ty)),
        });
    }
    map
}

/// A node to differentiate: its operands, its value, and the cotangents of its values.
pub(super) struct VjpRule<'a> {
    pub(super) f: &'a Func,
    pub(super) node: &'a Node,
    pub(super) x: &'a [NodeId],
    pub(super) y: NodeId,
    /// The cotangents of the values; at least one is present.
    pub(super) g: &'a [Option<NodeId>],
    /// Which operands depend on the inputs of the derivative.
    pub(super) on: &'a [bool],
    /// Which values depend on the inputs of the derivative.
    pub(super) active: &'a [bool],
}

impl VjpRule<'_> {
    /// The cotangents of the operands; absent if they are zero or not needed.
    fn emit(&self, b: &mut Builder) -> Result<Cotangents, TransformError> {
        match &self.node.op {
            Op::Solve(s) => return replay::vjp_solve(b, s, self),
            Op::Replay(l) => return replay::vjp_replay(b, l, self),
            Op::Tiles(t) => return tiles::vjp_tiles(b, t, self),
            Op::Custom(c) => return custom::vjp_custom(b, c, self),
            Op::Cond(c) => return cond::vjp_cond(b, c, self),
            _ => {}
        }
        let g = self.g[0].expect("invariant: a node without a cotangent is not visited");
        let mut out = vec![None; self.x.len()];
        for k in (0..self.x.len()).filter(|&k| self.on[k]) {
            out[k] = self.operand(b, g, k);
        }
        Ok(out)
    }

    /// For each operand, whether a value that has a cotangent depends on it.
    pub(super) fn counting(&self) -> Vec<bool> {
        let flows = node_flows(self.f, self.node);
        let counts = |k: usize| flows.iter().zip(self.g).any(|(s, g)| g.is_some() && s.contains(k));
        (0..self.x.len()).map(counts).collect()
    }

    /// The operands that have a cotangent which is needed.
    pub(super) fn wanted(&self) -> Vec<usize> {
        let counts = self.counting();
        (0..self.x.len()).filter(|&k| self.on[k] && counts[k]).collect()
    }

    /// The cotangent of operand `k`.
    fn operand(&self, b: &mut Builder, g: NodeId, k: usize) -> Option<NodeId> {
        let x = self.x;
        match &self.node.op {
            Op::Unary(op) => partials::unary(b, *op, x[0], self.y).apply(b, g),
            Op::Binary(op) => partials::binary(b, *op, [x[0], x[1]], self.y, k).apply(b, g),
            Op::Scalar(f) => partials::scalar(b, *f, x, self.y, k).apply(b, g),
            Op::Select => {
                let zero = b.splat_like(g, 0.0);
                Some(if k == 1 { b.select(x[0], g, zero) } else { b.select(x[0], zero, g) })
            }
            Op::Lincomb { coeffs } => match f64::from_bits(coeffs[k]) {
                0.0 => None,
                1.0 => Some(g),
                -1.0 => Some(b.neg(g)),
                c => Some(b.scale(g, c)),
            },
            Op::Dot { ta, tb } => Some(match (k, *ta, *tb) {
                (0, false, tb) => b.dot(g, x[1], false, !tb),
                (0, true, tb) => b.dot(x[1], g, tb, true),
                (_, ta, false) => b.dot(x[0], g, !ta, false),
                (_, ta, true) => b.dot(g, x[0], true, ta),
            }),
            Op::Conv { .. } | Op::ConvKernel { .. } => Some(self.convolved(b, g, k)),
            Op::Lines(LineOp::CumSum { reverse }) => {
                Some(b.push(Op::Lines(LineOp::CumSum { reverse: !reverse }), &[g], None))
            }
            Op::Factor(FactorOp::Lu) => Some(lu::cotangent(b, self.y, g)),
            Op::LuSolve { transposed } => lu::cotangent_of_solution(b, *transposed, (x, self.y), (g, k)),
            Op::TriangularSolve(triangle) => Some(triangular::cotangent(b, *triangle, (x, self.y), (g, k))),
            Op::Gather => {
                let zero = b.splat_like(x[0], 0.0);
                Some(b.push(Op::Scatter(ScatterOp::Add), &[zero, x[1], g], None))
            }
            Op::Observe(_) => Some(g),
            Op::Scatter(op) => Some(scatter::cotangent(b, *op, (x, self.y), (g, k))),
            Op::Cast
            | Op::Broadcast { .. }
            | Op::Reshape
            | Op::Transpose { .. }
            | Op::Slice { .. }
            | Op::Pad { .. }
            | Op::Concat { .. }
            | Op::Reduce { .. } => Some(self.moved(b, g, k)),
            Op::Input(_)
            | Op::Const(_)
            | Op::Iota { .. }
            | Op::Compare(_)
            | Op::StopGradient
            | Op::Lines(LineOp::CumMax | LineOp::Argsort)
            | Op::Factor(FactorOp::Cholesky | FactorOp::Qr | FactorOp::Eigh)
            | Op::RandomBits { .. }
            | Op::Proj(_) => None,
            Op::Solve(_) | Op::Replay(_) | Op::Tiles(_) | Op::Custom(_) | Op::Cond(_) => {
                unreachable!("invariant: loops, custom functions and conds have separate rules")
            }
        }
    }

    /// The cotangent of the image or of the kernel, computed from the other operand and the cotangent of the
    /// result.
    fn convolved(&self, b: &mut Builder, g: NodeId, k: usize) -> NodeId {
        let x = self.x;
        let taps = |b: &Builder, kernel: NodeId| {
            let (_, [height, width, ..]) =
                b.ty(kernel).shape().split_last_chunk::<4>().expect("invariant: a kernel");
            [*height, *width]
        };
        let (op, args) = match (&self.node.op, k) {
            (Op::Conv { margins, turned }, 0) => {
                let margins = margins.turned(taps(b, x[1]));
                (Op::Conv { margins, turned: !turned }, [g, x[1]])
            }
            (Op::Conv { margins, turned: false }, _) => (Op::ConvKernel { margins: *margins }, [x[0], g]),
            (Op::Conv { margins, turned: true }, _) => {
                (Op::ConvKernel { margins: margins.turned(taps(b, x[1])) }, [g, x[0]])
            }
            (Op::ConvKernel { margins }, 0) => {
                (Op::Conv { margins: margins.turned(taps(b, g)), turned: true }, [x[1], g])
            }
            (Op::ConvKernel { margins }, _) => (Op::Conv { margins: *margins, turned: false }, [x[0], g]),
            (other, _) => unreachable!("invariant: {} is not a convolution", other.name()),
        };
        b.push(op, &args, None)
    }

    /// The transposes of movement ops and reductions.
    fn moved(&self, b: &mut Builder, g: NodeId, k: usize) -> NodeId {
        let from: Type = b.ty(self.x[k]).clone();
        match &self.node.op {
            Op::Cast => b.cast(g, from.dtype()),
            Op::Broadcast { dims } => gathered(b, g, from.shape(), dims),
            Op::Reshape => b.reshape(g, from.shape().clone()),
            Op::Transpose { perm } => {
                let mut inverse = vec![0; perm.len()];
                perm.iter().enumerate().for_each(|(i, &p)| inverse[p] = i);
                b.transpose(g, inverse)
            }
            Op::Slice { start, limit } => {
                let hi = from.shape().iter().zip(limit).map(|(n, l)| n - l).collect();
                b.push(Op::Pad { lo: start.clone(), hi }, &[g], None)
            }
            Op::Pad { lo, .. } => {
                let limit = lo.iter().zip(from.shape().iter()).map(|(l, n)| l + n).collect();
                b.push(Op::Slice { start: lo.clone(), limit }, &[g], None)
            }
            Op::Concat { axis } => {
                let before = self.x[..k].iter().map(|&x| b.ty(x).shape()[*axis]).sum();
                let mut start = vec![0; from.shape().rank()];
                start[*axis] = before;
                let mut limit = from.shape().to_vec();
                limit[*axis] += before;
                b.push(Op::Slice { start, limit }, &[g], None)
            }
            Op::Reduce { op: ReduceOp::Sum, axes } => spread(b, g, from.shape(), axes),
            Op::Reduce { op: ReduceOp::Max | ReduceOp::Min, axes } => {
                let taken = AtExtremum::new(b, self.x[0], self.y, axes);
                let shared = b.div(g, taken.count);
                let (shared, zero) = (spread(b, shared, from.shape(), axes), b.splat_like(self.x[0], 0.0));
                b.select(taken.mask, shared, zero)
            }
            other => unreachable!("invariant: {} is not a movement op", other.name()),
        }
    }
}

/// The transpose of a broadcast: the sum over the repetitions.
fn gathered(b: &mut Builder, g: NodeId, from: &Shape, dims: &[usize]) -> NodeId {
    let to = b.ty(g).shape().clone();
    let source = |axis: usize| dims.iter().position(|&d| d == axis).map(|i| from[i]);
    let axes: Vec<usize> = (0..to.rank()).filter(|&a| source(a).is_none_or(|n| n != to[a])).collect();
    let sum = sum_of_products(b, g, &axes).unwrap_or_else(|| b.reduce(ReduceOp::Sum, g, axes));
    b.reshape(sum, from.clone())
}

/// A sum over a batch of products, as one product with a longer inner index. This computes the cotangent of a
/// matrix that a batch shares in one product, not in one product per entry. `None` if `g` is not a batch
/// of products, if `axes` are not exactly its batch axes, or if the operands that must be transposed for this
/// product are larger than `g`.
fn sum_of_products(b: &mut Builder, g: NodeId, axes: &[usize]) -> Option<NodeId> {
    let node = b.node(g).clone();
    let Op::Dot { ta, tb } = node.op else { return None };
    let rank = node.ty.shape().rank();
    let is_batch = rank > 2 && axes.iter().copied().eq(0..rank - 2);
    let size = |k: usize| b.ty(node.args[k]).shape().size();
    let moved = if ta { 0 } else { size(0) } + if tb { size(1) } else { 0 };
    if !is_batch || moved > node.ty.shape().size() {
        return None;
    }
    // [.., inner, m]^T [.., inner, n]: batch and inner index are adjacent.
    let mut tall = |k: usize, turned: bool| {
        let x = if turned { b.turn(node.args[k]) } else { node.args[k] };
        let (cols, rows) = (b.ty(x).shape()[rank - 1], b.ty(x).shape()[..rank - 1].iter().product());
        b.reshape(x, [rows, cols])
    };
    let (p, q) = (tall(0, !ta), tall(1, tb));
    Some(b.dot(p, q, true, false))
}
