//! Random functions from a seed, for tests of passes and backends. They contain most ops; derivatives add
//! replays that read states.
//!
//! Values stay finite and near 1, because the arguments of functions that could grow are bounded. Patterns
//! that passes match (ones, zeros, transposes, equal captures, constant captures) are frequent. A seed
//! determines the function, on every machine.

mod draws;
mod loops;
mod short;
mod systems;
#[cfg(test)]
mod tests;

pub(crate) use draws::Draws;
#[cfg(test)]
pub(crate) use loops::{search, times};
#[cfg(test)]
pub(crate) use systems::{determined, regular};

use crate::array::{Array, DType, Shape};
use crate::graph::functions::Domain;
use crate::graph::*;
use std::sync::Arc;

/// The parameters of a random function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe {
    /// The approximate number of operations.
    pub(crate) ops: usize,
    /// The float type.
    pub(crate) float: DType,
    /// Whether to generate searches, other loops and tiles.
    pub(crate) loops: bool,
    /// Whether half of the operations have drawn shapes, with axes of 0 and 1 elements.
    pub(crate) short: bool,
    /// Whether a matrix of these shapes that is factored may be singular or nearly so.
    pub(crate) singular: bool,
}

/// The position of the index input.
const INDEX: usize = 5;

/// A function and arguments for it.
#[cfg(test)]
pub(crate) fn function(seed: u64, recipe: Recipe) -> (Func, Vec<Array>) {
    drawn(&mut Draws::new(seed), recipe)
}

/// A random function and arguments for it, from given random numbers.
pub(crate) fn drawn(draws: &mut Draws, recipe: Recipe) -> (Func, Vec<Array>) {
    let float = |shape: &[usize]| Type::array(recipe.float, shape);
    let index = Type::array(DType::I32, [3]);
    let types =
        [float(&[3, 2]), float(&[2, 2]), float(&[2]), float(&[]), float(&[3, 2]), index, float(&[5, 2])];
    let x = types.iter().map(|t| draws.array(t)).collect();
    let (mut b, pool) = Builder::with_inputs(&types);
    let mut g = Grow { b: &mut b, pool, draws: draws.clone(), recipe };
    (0..recipe.ops).for_each(|_| g.grow());
    if recipe.short {
        g.end_short();
    }
    let all = g.pool.len();
    let mut outputs: Vec<NodeId> = (0..3).map(|k| g.pool[all - 1 - k]).collect();
    outputs.push(g.any_float());
    if recipe.short {
        // A write outside of an empty buffer shows in values that are computed beside it.
        (0..4).for_each(|_| outputs.push(g.any_float()));
    }
    (b.finish(&outputs), x)
}

struct Grow<'a> {
    b: &'a mut Builder,
    pool: Vec<NodeId>,
    draws: Draws,
    recipe: Recipe,
}

impl Grow<'_> {
    fn pick(&mut self, wanted: impl Fn(&Type) -> bool) -> Option<NodeId> {
        let fit: Vec<NodeId> = self.pool.iter().copied().filter(|&x| wanted(self.b.ty(x))).collect();
        (!fit.is_empty()).then(|| self.draws.of(&fit))
    }

    fn any_float(&mut self) -> NodeId {
        self.pick(Type::is_float).expect("an input is a float")
    }

    /// A value of the type of `x`: a value of the function (possibly `x`), or a special constant.
    fn like(&mut self, x: NodeId) -> NodeId {
        let ty = self.b.ty(x).clone();
        if self.draws.below(4) == 0 {
            let c = self.draws.of(&[0.0, 1.0, -1.0, 2.0, 0.5, 0.3]);
            return self.b.splat(ty.dtype(), ty.shape().clone(), c);
        }
        if self.recipe.short && self.draws.below(2) == 0 {
            return self.fitted(ty.shape());
        }
        self.pick(|t| *t == ty).unwrap_or(x)
    }

    fn grow(&mut self) {
        if self.recipe.short && self.draws.below(2) == 0 {
            let new = self.short();
            return self.pool.push(new);
        }
        let kinds = if self.recipe.loops { 14 } else { 12 };
        let new = match self.draws.below(kinds) {
            kind @ 0..=6 => {
                let x = self.any_float();
                Some(self.elementwise(kind, x))
            }
            7 => self.shift(),
            8 => self.repeat(),
            9 if self.draws.below(2) == 0 => self.lines(),
            9 => self.reduce(),
            10 => self.product(),
            11 => self.rows(),
            12 => self.search(),
            _ => self.tiles(),
        };
        self.pool.extend(new);
    }

    /// An elementwise operation; `kind` is below 7.
    fn elementwise(&mut self, kind: usize, x: NodeId) -> NodeId {
        match kind {
            0 if self.draws.below(4) > 0 => self.scalar(x),
            0 | 1 => self.unary(x),
            2..=4 => self.binary(x),
            5 => self.choice(x),
            _ => self.lincomb(x),
        }
    }

    fn unary(&mut self, x: NodeId) -> NodeId {
        use UnaryOp::*;
        let power = Powf(self.draws.of(&[2.0, 3.0, -1.0, 0.5, -1.5, 0.3f64]).to_bits());
        let own = [Neg, Neg, Abs, Sign, power].into_iter();
        let ops: Vec<UnaryOp> = own.chain(FloatFn::ALL.iter().map(|f| f.op())).collect();
        let op = self.draws.of(&ops);
        let domain = match op {
            Powf(_) => Domain::Positive,
            op => op.float_fn().map_or(Domain::All, FloatFn::domain),
        };
        let x = domain.of(self.b, x);
        let y = self.b.unary(op, x);
        let y = if matches!(op, Powf(_)) { self.b.unary(Sin, y) } else { y };
        match self.draws.below(10) {
            0 => {
                let wide = self.b.cast(y, DType::F64);
                self.b.cast(wide, self.recipe.float)
            }
            1 => self.whole(y),
            _ => y,
        }
    }

    /// A function that is computed one number after another, mostly within its domain.
    fn scalar(&mut self, x: NodeId) -> NodeId {
        let f = self.draws.of(ScalarFn::ALL);
        let operands: Vec<NodeId> =
            [x, self.like(x)].into_iter().zip(f.domains()).map(|(x, domain)| domain.of(self.b, x)).collect();
        let y = self.b.push(Op::Scalar(f), &operands, None);
        // Some grow fast, or are large near a pole.
        self.b.unary(UnaryOp::Sin, y)
    }

    /// Sines of eighths of small integers, so that many elements are equal.
    fn whole(&mut self, x: NodeId) -> NodeId {
        let four = self.b.scale(x, 4.0);
        let whole = self.b.cast(four, DType::I32);
        let op = self.draws.of(&[UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Sign]);
        let other = self.b.unary(op, whole);
        let op = self.draws.of(&[BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Max, BinaryOp::Min]);
        let (y, finite) = (self.b.binary(op, whole, other), self.b.unary(UnaryOp::IsFinite, x));
        let word = self.b.cast(y, DType::U32);
        let y = self.b.cast(word, DType::I32);
        let y = self.b.cast(y, self.recipe.float);
        let y = self.b.scale(y, 0.125);
        let y = self.b.select(finite, y, x);
        self.b.unary(UnaryOp::Sin, y)
    }

    fn binary(&mut self, x: NodeId) -> NodeId {
        use BinaryOp::*;
        let op = self.draws.of(&[Add, Sub, Mul, Mul, Max, Min, Div]);
        let mut y = self.like(x);
        if op == Div {
            let c = self.draws.of(&[1.0, -1.0, 4.0, 3.0]);
            y = self.b.splat_like(x, c);
        }
        let (x, y) = if op != Div && self.draws.below(2) == 0 { (y, x) } else { (x, y) };
        let z = self.b.binary(op, x, y);
        if op == Add { self.b.unary(UnaryOp::Sin, z) } else { z }
    }

    fn choice(&mut self, x: NodeId) -> NodeId {
        let (l, r, y) = (self.like(x), self.like(x), self.like(x));
        let op = self.draws.of(&[CompareOp::Lt, CompareOp::Le, CompareOp::Eq, CompareOp::Ne]);
        let mut p = self.b.compare(op, l, r);
        if self.draws.below(3) == 0 {
            p = self.b.unary(UnaryOp::Not, p);
        }
        self.b.select(p, x, y)
    }

    fn lincomb(&mut self, x: NodeId) -> NodeId {
        let n = 1 + self.draws.below(3);
        let mut coeffs = vec![0.5f64.to_bits()];
        let mut args = vec![x];
        for _ in 0..n {
            args.push(self.like(x));
            coeffs.push(self.draws.of(&[0.0, 1.0, -1.0, 0.25, 0.3f64]).to_bits());
        }
        self.b.push(Op::Lincomb { coeffs }, &args, None)
    }

    /// Moves elements, and often moves them back.
    fn shift(&mut self) -> Option<NodeId> {
        let x = self.pick(|t| t.is_float() && t.shape().rank() == 2)?;
        let s = self.b.ty(x).shape().clone();
        Some(match self.draws.below(7) {
            6 => {
                let none = self.b.push(Op::Slice { start: vec![0, 0], limit: vec![0, s[1]] }, &[x], None);
                let zeros = self.b.dot(none, none, true, false);
                self.pool.push(zeros);
                self.b.push(Op::Concat { axis: 0 }, &[none, x], None)
            }
            0 => {
                let t = self.b.transpose(x, vec![1, 0]);
                self.pool.push(t);
                self.b.transpose(t, vec![1, 0])
            }
            1 => {
                let flat = self.b.reshape(x, [s.size()]);
                self.b.reshape(flat, [s[0], 1, s[1]])
            }
            2 => {
                let p = self.b.push(Op::Pad { lo: vec![1, 0], hi: vec![0, 2] }, &[x], None);
                let limit = vec![s[0] + 1, s[1]];
                self.b.push(Op::Slice { start: vec![self.draws.below(2), 0], limit }, &[p], None)
            }
            3 => {
                let y = self.like(x);
                let c = self.b.push(Op::Concat { axis: 0 }, &[x, y], None);
                let start = vec![self.draws.of(&[0, s[0].min(1), s[0]]), 0];
                let limit = vec![start[0] + s[0], s[1]];
                self.b.push(Op::Slice { start, limit }, &[c], None)
            }
            4 => {
                let y = self.like(x);
                let top = self.b.push(Op::Pad { lo: vec![0, 0], hi: vec![s[0], 0] }, &[x], None);
                let low = self.b.push(Op::Pad { lo: vec![s[0], 0], hi: vec![0, 0] }, &[y], None);
                self.b.add(top, low)
            }
            _ => {
                let first = s[0].min(1);
                let head = self.b.push(Op::Slice { start: vec![0, 0], limit: vec![first, s[1]] }, &[x], None);
                let rest = self.b.push(Op::Slice { start: vec![first, 0], limit: s.to_vec() }, &[x], None);
                self.b.push(Op::Concat { axis: 0 }, &[head, rest], None)
            }
        })
    }

    fn repeat(&mut self) -> Option<NodeId> {
        let x = self.pick(|t| t.is_float() && t.shape().rank() < 2)?;
        let s = self.b.ty(x).shape().clone();
        if s.rank() == 0 {
            let row = self.b.broadcast(x, &Shape::from([2]), vec![]);
            return Some(self.b.broadcast(row, &Shape::from([3, 2]), vec![1]));
        }
        let column = self.b.reshape(x, [1, s[0]]);
        Some(self.b.broadcast(column, &Shape::from([3, s[0]]), vec![0, 1]))
    }

    /// An operation along the last axis; orders are of integers, because those of almost equal floats differ.
    fn lines(&mut self) -> Option<NodeId> {
        let x = self.pick(|t| t.is_float() && t.shape().rank() > 0)?;
        let op = self.draws.of(&LineOp::ALL);
        let y = if op == LineOp::Argsort {
            let four = self.b.scale(x, 4.0);
            let whole = self.b.cast(four, DType::I32);
            let order = self.b.push(Op::Lines(op), &[whole], None);
            let order = self.b.cast(order, self.recipe.float);
            self.b.scale(order, 0.125)
        } else {
            self.b.push(Op::Lines(op), &[x], None)
        };
        Some(self.b.unary(UnaryOp::Sin, y))
    }

    fn reduce(&mut self) -> Option<NodeId> {
        let x = self.pick(|t| t.is_float() && t.shape().rank() > 0)?;
        let rank = self.b.ty(x).shape().rank();
        let op = self.draws.of(&[ReduceOp::Sum, ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min]);
        let axes = if self.draws.below(3) == 0 { (0..rank).collect() } else { vec![self.draws.below(rank)] };
        let op = if self.has_no_terms(x, &axes) { ReduceOp::Sum } else { op };
        let y = self.b.reduce(op, x, axes);
        Some(self.b.unary(UnaryOp::Tanh, y))
    }

    /// Whether a reduction over `axes` has results without terms: tensors refuse such maxima.
    fn has_no_terms(&self, x: NodeId, axes: &[usize]) -> bool {
        let shape = self.b.ty(x).shape();
        shape.size() == 0 && shape.without_axes(axes).size() > 0
    }

    fn product(&mut self) -> Option<NodeId> {
        let x = self.pick(|t| t.is_float() && t.shape().rank() == 2)?;
        let (ta, tb) = (self.draws.below(2) == 0, self.draws.below(2) == 0);
        if self.draws.below(5) == 0 && self.b.ty(x).shape().size() > 0 {
            return Some(self.convolution(x));
        }
        let inner = self.b.ty(x).shape()[usize::from(!ta)];
        let y =
            self.pick(|t| t.is_float() && t.shape().rank() == 2 && t.shape()[usize::from(tb)] == inner)?;
        let z = if self.draws.below(3) == 0 { self.batch(x, y, ta, tb) } else { self.b.dot(x, y, ta, tb) };
        Some(self.b.unary(UnaryOp::Tanh, z))
    }

    /// Treats a matrix as an image: convolves it with its top left corner, and computes the kernel from image
    /// and result. The sides keep their lengths.
    fn convolution(&mut self, x: NodeId) -> NodeId {
        let s = self.b.ty(x).shape().clone();
        let taps = [0, 1].map(|a| s[a].min(1 + self.draws.below(2)));
        let lo = taps.map(|k| self.draws.below(k));
        let margins = Margins { lo, hi: [0, 1].map(|a| taps[a] - 1 - lo[a]) };
        let image = self.b.reshape(x, [1, s[0], s[1], 1]);
        let corner = Op::Slice { start: vec![0, 0], limit: taps.to_vec() };
        let corner = self.b.push(corner, &[x], None);
        let kernel = self.b.reshape(corner, [taps[0], taps[1], 1, 1]);
        let turned = self.draws.below(2) == 0;
        let y = self.b.push(Op::Conv { margins, turned }, &[image, kernel], None);
        let y = self.b.unary(UnaryOp::Tanh, y);
        let kernel = self.b.push(Op::ConvKernel { margins }, &[image, y], None);
        let kernel = self.b.reduce(ReduceOp::Max, kernel, vec![0, 1, 2, 3]);
        let y = self.b.reshape(y, s.clone());
        let kernel = self.b.broadcast(kernel, &s, vec![]);
        let sum = self.b.add(y, kernel);
        self.b.unary(UnaryOp::Tanh, sum)
    }

    /// The maximum of w + sin w over w = x y and w = -x y, computed in one batch.
    fn batch(&mut self, x: NodeId, y: NodeId, ta: bool, tb: bool) -> NodeId {
        let (s, t) = (self.b.ty(x).shape().clone(), self.b.ty(y).shape().clone());
        let minus = self.b.neg(x);
        let both = self.b.push(Op::Concat { axis: 0 }, &[x, minus], None);
        let both = self.b.reshape(both, [2, s[0], s[1]]);
        let twice = self.b.broadcast(y, &Shape::from([2, t[0], t[1]]), vec![1, 2]);
        let z = self.b.dot(both, twice, ta, tb);
        let wave = self.b.unary(UnaryOp::Sin, z);
        let wave = self.b.add(wave, z);
        self.b.reduce(ReduceOp::Max, wave, vec![0])
    }

    /// Gathers, scatters, counts, casts and samples.
    fn rows(&mut self) -> Option<NodeId> {
        let x = self.pick(|t| t.is_float() && t.shape().rank() == 2 && t.shape()[0] > 0)?;
        // Row 1 three times, rows out of range on both sides, or the index input.
        let index = match self.draws.below(4) {
            0 => self.b.splat(DType::I32, [3], 1.0),
            1 => {
                let literal = Literal::Array(Arc::new(Array::from_vec([3], vec![-2i32, 9, 0])));
                self.b.push(Op::Const(literal), &[], Some(&Type::array(DType::I32, [3])))
            }
            _ => self.pool[INDEX],
        };
        let ty = self.b.ty(x).clone();
        Some(match self.draws.below(4) {
            0 => self.b.push(Op::Gather, &[x, index], None),
            1 => {
                let rows = self.b.push(Op::Gather, &[x, index], None);
                let op = self.draws.of(&ScatterOp::ALL);
                self.b.push(Op::Scatter(op), &[x, index, rows], None)
            }
            2 => {
                let axis = self.draws.below(2);
                let count = self.b.push(Op::Iota { axis }, &[], Some(&ty));
                self.b.unary(UnaryOp::Sin, count)
            }
            _ => {
                let (seven, zero) = (self.b.splat(DType::U32, [2], 7.0), self.b.splat(DType::U32, [], 0.0));
                let bits = Type::array(DType::U32, ty.shape().clone());
                let bits = self.b.push(Op::RandomBits { stream: 3 }, &[seven, zero], Some(&bits));
                let real = self.b.cast(bits, self.recipe.float);
                let unit = self.b.scale(real, 0.5f64.powi(32));
                self.b.add(unit, x)
            }
        })
    }
}
