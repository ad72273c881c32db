//! Forward mode: tangents are propagated together with their values.
//!
//! A zero tangent is absent, so no nodes are emitted for values that do not depend on the arguments. Only
//! floats have tangents. The rules emit ordinary nodes beside the original nodes, and equal nodes merge. A
//! derivative of a derivative therefore needs no other mechanism.

use super::flow::{active_args, dependence, num_values};
use super::{Set, cond, custom, lu, partials, replay, scatter, tiles, triangular};
use crate::graph::{
    BinaryOp, Builder, CompareOp, FactorOp, Func, LineOp, Node, NodeId, NodeIds, Op, ReduceOp, Type,
};

/// The Jacobian-vector product: `(x.., dx..) -> (f(x).., df(x) dx..)`.
///
/// The inputs are those of `f`, then one tangent per input in `wrt`. The outputs are those of `f`, then one
/// tangent per float output, which is zero if the output does not depend on `wrt`. Other outputs have no
/// tangent. At a tie of a maximum, each operand gets half of the derivative. Along a solve, the accepted step
/// times are held fixed.
///
/// # Panics
/// If an input in `wrt` is not a float or is listed twice.
#[track_caller]
pub fn jvp(f: &Func, wrt: &[usize]) -> Func {
    let mut types = f.input_types();
    types.extend(wrt.iter().map(|&k| float_input(f, k)));
    let (mut b, ids) = Builder::with_inputs(&types);
    let (x, dx) = ids.split_at(f.num_inputs());
    let mut tangents = vec![None; f.num_inputs()];
    for (&k, &d) in wrt.iter().zip(dx) {
        assert!(tangents[k].replace(d).is_none(), "invariant: input {k} is listed twice");
    }
    let (mut outputs, d) = jvp_into(&mut b, f, x, &tangents);
    for (k, d) in d.into_iter().enumerate().filter(|(k, _)| f.output_type(*k).is_float()) {
        outputs.push(or_zero(&mut b, d, outputs[k]));
    }
    b.finish(&outputs)
}

#[track_caller]
pub(super) fn float_input(f: &Func, k: usize) -> crate::graph::Type {
    let ty = f.input_type(k);
    assert!(ty.is_float(), "invariant: input {k} is {ty}, which has no derivative");
    ty.clone()
}

/// The tangent or cotangent, or zeros of the type of `like`.
pub(super) fn or_zero(b: &mut Builder, d: Option<NodeId>, like: NodeId) -> NodeId {
    d.unwrap_or_else(|| b.splat_like(like, 0.0))
}

/// The sum of the tangents that are present.
pub(super) fn add(b: &mut Builder, x: Option<NodeId>, y: Option<NodeId>) -> Option<NodeId> {
    match (x, y) {
        (Some(x), Some(y)) if matches!(b.ty(x), Type::Sequence { .. }) => Some(replay::add(b, x, y)),
        (Some(x), Some(y)) => Some(b.add(x, y)),
        (x, y) => x.or(y),
    }
}

/// Inserts `f` applied to `args` and its derivative along `tangents` (absent: zero); returns the outputs and
/// their tangents (absent: zero).
#[track_caller]
pub fn jvp_into(
    b: &mut Builder,
    f: &Func,
    args: &[NodeId],
    tangents: &[Option<NodeId>],
) -> (Vec<NodeId>, Vec<Option<NodeId>>) {
    let all = dependence(f);
    let wrt: Set = (0..f.num_inputs()).filter(|&k| tangents[k].is_some()).collect();
    let mut map: Vec<NodeId> = Vec::with_capacity(f.nodes().len());
    let mut d: Vec<Vec<Option<NodeId>>> = Vec::with_capacity(f.nodes().len());
    for (i, node) in f.nodes().iter().enumerate() {
        let x: NodeIds = node.args.iter().map(|a| map[a.index()]).collect();
        let y = match node.op {
            Op::Input(k) => args[k],
            _ => b.push(node.op.clone(), &x, Some(&node.ty)),
        };
        map.push(y);
        let active: Vec<bool> = all[i].iter().map(|s| s.meets(&wrt)).collect();
        d.push(match &node.op {
            _ if !active.contains(&true) => vec![None; num_values(&node.ty)],
            Op::Input(k) => vec![tangents[*k]],
            Op::Proj(k) => vec![d[node.args[0].index()][*k]],
            _ => {
                let on = active_args(node, &all, &wrt);
                let dx: Vec<_> =
                    node.args.iter().zip(on).map(|(a, on)| if on { d[a.index()][0] } else { None }).collect();
                JvpRule { node, x: &x, y, dx: &dx, active: &active }.emit(b)
            }
        });
    }
    let at = |o: &NodeId| o.index();
    let outputs = f.outputs();
    (outputs.iter().map(|o| map[at(o)]).collect(), outputs.iter().map(|o| d[at(o)][0]).collect())
}

/// A node to differentiate, with the tangents of its operands.
pub(super) struct JvpRule<'a> {
    pub(super) node: &'a Node,
    pub(super) x: &'a [NodeId],
    pub(super) y: NodeId,
    pub(super) dx: &'a [Option<NodeId>],
    /// Which values of the result depend on the inputs of the derivative.
    pub(super) active: &'a [bool],
}

impl JvpRule<'_> {
    /// The tangents of the node's values.
    fn emit(&self, b: &mut Builder) -> Vec<Option<NodeId>> {
        match &self.node.op {
            Op::Solve(s) => replay::jvp_solve(b, s, self),
            Op::Replay(l) => replay::jvp_replay(b, l, self),
            Op::Tiles(t) => tiles::jvp_tiles(b, t, self),
            Op::Custom(c) => custom::jvp_custom(b, c, self),
            Op::Cond(c) => cond::jvp_cond(b, c, self),
            _ => vec![self.single(b)],
        }
    }

    fn single(&self, b: &mut Builder) -> Option<NodeId> {
        let (x, dx) = (self.x, self.dx);
        match &self.node.op {
            Op::Unary(op) => {
                let p = partials::unary(b, *op, x[0], self.y);
                p.apply(b, dx[0]?)
            }
            Op::Binary(op) => self.binary(b, *op),
            Op::Scalar(f) => (0..x.len()).fold(None, |sum, k| {
                let term = dx[k].and_then(|d| partials::scalar(b, *f, x, self.y, k).apply(b, d));
                add(b, sum, term)
            }),
            Op::Select => {
                let (l, r) = (or_zero(b, dx[1], x[1]), or_zero(b, dx[2], x[2]));
                Some(b.select(x[0], l, r))
            }
            Op::Lincomb { coeffs } => self.lincomb(b, coeffs),
            Op::Dot { ta, tb } => {
                let l = dx[0].map(|d| b.dot(d, x[1], *ta, *tb));
                let r = dx[1].map(|d| b.dot(x[0], d, *ta, *tb));
                add(b, l, r)
            }
            Op::Conv { .. } | Op::ConvKernel { .. } => {
                let l = dx[0].map(|d| self.again(b, &[d, x[1]]));
                let r = dx[1].map(|d| self.again(b, &[x[0], d]));
                add(b, l, r)
            }
            Op::Lines(LineOp::CumSum { .. }) => Some(self.again(b, &[dx[0]?])),
            Op::Factor(FactorOp::Lu) => Some(lu::tangent(b, self.y, dx[0]?)),
            Op::LuSolve { transposed } => lu::tangent_of_solution(b, *transposed, (x, self.y), dx),
            Op::TriangularSolve(triangle) => triangular::tangent(b, *triangle, (x, self.y), dx),
            Op::Cast
            | Op::Broadcast { .. }
            | Op::Reshape
            | Op::Transpose { .. }
            | Op::Slice { .. }
            | Op::Pad { .. }
            | Op::Reduce { op: ReduceOp::Sum, .. } => Some(self.again(b, &[dx[0]?])),
            // Observers are not called with tangents.
            Op::Observe(_) => dx[0],
            Op::Concat { .. } => {
                let all: Vec<_> = x.iter().zip(dx).map(|(&x, &d)| or_zero(b, d, x)).collect();
                Some(self.again(b, &all))
            }
            Op::Reduce { op: ReduceOp::Max | ReduceOp::Min, axes } => self.extremum(b, axes),
            Op::Gather => Some(self.again(b, &[dx[0]?, x[1]])),
            Op::Scatter(op) => scatter::tangent(b, *op, (x, self.y), dx),
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

    /// The same operation on tangents; the operation is linear in these operands.
    fn again(&self, b: &mut Builder, args: &[NodeId]) -> NodeId {
        b.push(self.node.op.clone(), args, Some(&self.node.ty))
    }

    fn binary(&self, b: &mut Builder, op: BinaryOp) -> Option<NodeId> {
        let mut sum = None;
        for k in 0..2 {
            if let Some(d) = self.dx[k] {
                let term = partials::binary(b, op, [self.x[0], self.x[1]], self.y, k);
                sum = if let (Some(s), partials::Partial::MinusOne) = (sum, term) {
                    Some(b.sub(s, d))
                } else {
                    let term = term.apply(b, d);
                    add(b, sum, term)
                };
            }
        }
        sum
    }

    fn lincomb(&self, b: &mut Builder, coeffs: &[u64]) -> Option<NodeId> {
        let (coeffs, args): (Vec<u64>, Vec<NodeId>) =
            coeffs.iter().zip(self.dx).filter_map(|(&c, &d)| Some((c, d?))).unzip();
        (!args.is_empty()).then(|| b.push(Op::Lincomb { coeffs }, &args, None))
    }

    /// The mean of the tangents of the elements that equal the extremum.
    fn extremum(&self, b: &mut Builder, axes: &[usize]) -> Option<NodeId> {
        let (d, zero) = (self.dx[0]?, b.splat_like(self.x[0], 0.0));
        let taken = AtExtremum::new(b, self.x[0], self.y, axes);
        let chosen = b.select(taken.mask, d, zero);
        let sum = b.reduce(ReduceOp::Sum, chosen, axes.to_vec());
        Some(b.div(sum, taken.count))
    }
}

/// The elements that equal an extremum over axes, and their number.
pub(super) struct AtExtremum {
    pub(super) mask: NodeId,
    pub(super) count: NodeId,
}

impl AtExtremum {
    pub(super) fn new(b: &mut Builder, x: NodeId, y: NodeId, axes: &[usize]) -> AtExtremum {
        let ty = b.ty(x).clone();
        let spread = spread(b, y, ty.shape(), axes);
        let mask = b.compare(CompareOp::Eq, x, spread);
        let ones = b.cast(mask, ty.dtype());
        AtExtremum { mask, count: b.reduce(ReduceOp::Sum, ones, axes.to_vec()) }
    }
}

/// Restores the axes that a reduction removed, by broadcasting.
pub(super) fn spread(b: &mut Builder, y: NodeId, shape: &crate::array::Shape, axes: &[usize]) -> NodeId {
    let kept = (0..shape.rank()).filter(|i| !axes.contains(i)).collect();
    b.broadcast(y, shape, kept)
}
