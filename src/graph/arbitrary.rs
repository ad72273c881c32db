//! Random functions from a seed, for tests of passes and backends. They contain most ops; derivatives add
//! `Rev`.
//!
//! Values stay finite and near 1, because the arguments of functions that could grow are bounded. Patterns
//! that passes match (ones, zeros, transposes, equal captures, constant captures) are frequent. A seed
//! determines the function, on every machine.

mod draws;

pub(crate) use draws::Draws;

use super::*;
use crate::array::{Array, DType, Shape};
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
}

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
    let all = g.pool.len();
    let mut outputs: Vec<NodeId> = (0..3).map(|k| g.pool[all - 1 - k]).collect();
    outputs.push(g.any_float());
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
        self.pick(|t| *t == ty).unwrap_or(x)
    }

    fn grow(&mut self) {
        let kinds = if self.recipe.loops { 14 } else { 12 };
        let new = match self.draws.below(kinds) {
            0 | 1 => Some(self.unary()),
            2..=4 => Some(self.binary()),
            5 => Some(self.choice()),
            6 => Some(self.lincomb()),
            7 => self.shift(),
            8 => self.repeat(),
            9 => self.reduce(),
            10 => self.product(),
            11 => self.rows(),
            12 => self.search(),
            _ => self.tiles(),
        };
        self.pool.extend(new);
    }

    fn unary(&mut self) -> NodeId {
        use UnaryOp::*;
        let x = self.any_float();
        let power = Powf(self.draws.of(&[2.0, 3.0, -1.0, 0.5, -1.5, 0.3f64]).to_bits());
        let ops =
            [Neg, Neg, Abs, Sin, Cos, Tanh, Sigmoid, Erf, Floor, Sign, Expm1, Exp, Log1p, Ln, Sqrt, power];
        let op = self.draws.of(&ops);
        let x = match op {
            // The argument is bounded if the function grows fast or is undefined for negative numbers.
            Expm1 | Exp => self.b.unary(Tanh, x),
            Log1p | Ln | Sqrt | Powf(_) => {
                let bounded = self.b.unary(Tanh, x);
                let (square, least) = (self.b.mul(bounded, bounded), self.b.splat_like(x, 0.25));
                self.b.add(square, least)
            }
            _ => x,
        };
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

    fn binary(&mut self) -> NodeId {
        use BinaryOp::*;
        let (x, op) = (self.any_float(), self.draws.of(&[Add, Sub, Mul, Mul, Max, Min, Div]));
        let mut y = self.like(x);
        if op == Div {
            let c = self.draws.of(&[1.0, -1.0, 4.0, 3.0]);
            y = self.b.splat_like(x, c);
        }
        let (x, y) = if op != Div && self.draws.below(2) == 0 { (y, x) } else { (x, y) };
        let z = self.b.binary(op, x, y);
        if op == Add { self.b.unary(UnaryOp::Sin, z) } else { z }
    }

    fn choice(&mut self) -> NodeId {
        let x = self.any_float();
        let (l, r, y) = (self.like(x), self.like(x), self.like(x));
        let op = self.draws.of(&[CompareOp::Lt, CompareOp::Le, CompareOp::Eq, CompareOp::Ne]);
        let mut p = self.b.compare(op, l, r);
        if self.draws.below(3) == 0 {
            p = self.b.unary(UnaryOp::Not, p);
        }
        self.b.select(p, x, y)
    }

    fn lincomb(&mut self) -> NodeId {
        let x = self.any_float();
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
                let start = vec![self.draws.of(&[0, 1, s[0]]), 0];
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
                let head = self.b.push(Op::Slice { start: vec![0, 0], limit: vec![1, s[1]] }, &[x], None);
                let rest = self.b.push(Op::Slice { start: vec![1, 0], limit: s.to_vec() }, &[x], None);
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

    fn reduce(&mut self) -> Option<NodeId> {
        let x = self.pick(|t| t.is_float() && t.shape().rank() > 0)?;
        let rank = self.b.ty(x).shape().rank();
        let op = self.draws.of(&[ReduceOp::Sum, ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min]);
        let axes = if self.draws.below(3) == 0 { (0..rank).collect() } else { vec![self.draws.below(rank)] };
        let y = self.b.reduce(op, x, axes);
        Some(self.b.unary(UnaryOp::Tanh, y))
    }

    fn product(&mut self) -> Option<NodeId> {
        let x = self.pick(|t| t.is_float() && t.shape().rank() == 2)?;
        let (ta, tb) = (self.draws.below(2) == 0, self.draws.below(2) == 0);
        if self.draws.below(5) == 0 {
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
            _ => self.pool[5],
        };
        let ty = self.b.ty(x).clone();
        Some(match self.draws.below(4) {
            0 => self.b.push(Op::Gather, &[x, index], None),
            1 => {
                let rows = self.b.push(Op::Gather, &[x, index], None);
                self.b.push(Op::ScatterAdd, &[x, index, rows], None)
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

    fn search(&mut self) -> Option<NodeId> {
        let y = self.pick(|t| t.is_float() && t.shape().rank() == 2 && t.shape()[1] == 2)?;
        let mut captures = Vec::new();
        for _ in 0..3 {
            captures.push(self.any_float());
        }
        let w = self.pick(|t| t.is_float() && **t.shape() == [2, 2])?;
        let half = self.b.splat(self.recipe.float, [2, 2], 0.5);
        captures.extend([w, half, w]);
        let types: Vec<Type> = captures.iter().map(|&c| self.b.ty(c).clone()).collect();
        let rows = self.b.ty(y).shape()[0];
        let field = field(self.draws.word(), rows, &types, self.recipe.float);
        let policy = self.draws.of(&[Policy::Direct, SMALL]);
        let mut taps = self.draws.of(&[Taps::default(), Taps::at(NUM_TIMES)]);
        // Taps other than times are used only in f64, where the rounding errors of a random function stay far
        // below the tests' tolerances.
        if taps.times > 0 && self.recipe.float == DType::F64 {
            taps = self.draws.of(&TAPS);
        }
        let solve = search(&field, self.b.ty(y), &types, taps, policy);
        let (ends, tapped) = (solve.num_carry, solve.first_tapped());
        let (zero, none) = (self.b.splat(DType::F64, [], 0.0), self.b.splat(DType::U32, [], 0.0));
        let step = solve.step.clone();
        let times = times(self.b, taps.times);
        let args = [&[none, zero], &times[..], &[y, none], &captures].concat();
        let all = self.b.push(Op::Solve(Arc::new(solve)), &args, None);
        let end = self.b.proj(all, 0);
        if taps.num_rows() > 0 {
            self.pool.push(self.b.proj(all, tapped + 2));
            let rates = self.b.proj(all, tapped + 3);
            let rate = self.b.reduce(ReduceOp::Sum, rates, vec![0]);
            self.pool.push(rate);
        }
        if self.draws.below(2) == 0 {
            return Some(end);
        }
        self.pool.push(end);
        let schedule = self.b.proj(all, 2);
        let scan = Scan { step, inverse: None, num_carry: ends, taps, policy: SMALL };
        let args = [&[schedule, end], &captures[..]].concat();
        let tapped = scan.first_tapped();
        if self.draws.below(2) == 0 {
            self.stored(&scan.step, schedule, end, &captures, taps.num_rows());
        }
        let all = self.b.push(Op::Scan(Arc::new(scan)), &args, None);
        if taps.num_rows() > 0 {
            self.pool.push(self.b.proj(all, tapped + 3));
        }
        Some(self.b.proj(all, 0))
    }

    /// A loop that stores values in each trip, and a loop in the opposite direction that reads these values.
    fn stored(&mut self, step: &Func, schedule: NodeId, y: NodeId, captures: &[NodeId], num_places: usize) {
        let (num_rows, ty) = (usize::from(num_places > 0), self.b.ty(y).clone());
        let types = [step.input_types(), vec![ty.clone(); num_rows]].concat();
        let (mut b, x) = Builder::with_inputs(&types);
        let mut next = b.inline(step, &x[..step.num_inputs()])[0];
        if num_rows > 0 {
            next = b.add(next, x[step.num_inputs()]);
        }
        let (next, term) = (b.unary(UnaryOp::Tanh, next), b.mul(next, x[4]));
        let kept = b.unary(UnaryOp::Sin, term);
        let body = b.finish(&[&[next, kept, term], &[next][..num_rows]].concat());
        let (reversed, policy) = (self.draws.below(2) == 0, Policy::Direct);
        let (num_carry, num_xs, num_ys, num_sums) = (1, 0, 1, 1);
        let walk = Loop {
            body,
            is_reversed: reversed,
            num_carry,
            num_xs,
            num_ys,
            num_sums,
            num_rows,
            num_places,
            policy,
        };
        let rows = super::sequence::tapped(&ty, num_places.max(1));
        let rows = self.b.broadcast(y, rows.shape(), vec![1, 2]);
        let args = [&[schedule, y], captures, &[rows][..num_rows]].concat();
        let walked = self.b.push(Op::Loop(Arc::new(walk)), &args, None);
        let walked = self.b.projections(walked);
        let (mut b, x) = Builder::with_inputs(&[&types[..4], &vec![ty; 4]].concat());
        let (sum, both) = (b.add(x[4], x[5]), b.mul(x[4], x[6]));
        let (next, term) = (b.unary(UnaryOp::Tanh, sum), b.mul(both, x[7]));
        let body = b.finish(&[next, both, term]);
        let (num_xs, num_rows, num_places) = (2, 0, 0);
        let back = Loop {
            body,
            is_reversed: !reversed,
            num_carry,
            num_xs,
            num_ys,
            num_sums,
            num_rows,
            num_places,
            policy,
        };
        let back = self.b.push(Op::Loop(Arc::new(back)), &[schedule, y, walked[1], walked[2], y], None);
        let sums = [walked[3], self.b.proj(back, 3)].map(|sum| self.b.unary(UnaryOp::Tanh, sum));
        self.pool.extend([walked[0], sums[0], self.b.proj(back, 0), sums[1]]);
    }

    fn tiles(&mut self) -> Option<NodeId> {
        let rows = self.draws.of(&[3, 5]);
        let wanted = |t: &Type| t.is_float() && **t.shape() == [rows, 2];
        let (x, y) = (self.pick(wanted)?, self.pick(wanted)?);
        let shared: Vec<NodeId> = (0..2).map(|_| self.any_float()).collect();
        let w = self.pick(|t| t.is_float() && **t.shape() == [2, 2])?;
        let captures = [&shared[..], &[w]].concat();
        let types: Vec<Type> = captures.iter().map(|&c| self.b.ty(c).clone()).collect();
        let (seed, float) = (self.draws.word(), self.recipe.float);
        let make = |rows: usize| tile(seed, rows, &types, float);
        let tile = self.draws.of(&[1, 2]);
        let tail = (!rows.is_multiple_of(tile)).then(|| make(rows % tile));
        let outs = vec![TileOut::Rows, TileOut::Sum];
        let t = Tiles { rows, tile, body: make(tile), tail, num_rowed: 2, outs };
        let all = self.b.push(Op::Tiles(Arc::new(t)), &[&[x, y], &captures[..]].concat(), None);
        let (low, sum) = (self.b.proj(all, 0), self.b.proj(all, 1));
        let sum = self.b.unary(UnaryOp::Sin, sum);
        self.pool.push(sum);
        Some(low)
    }
}

const SMALL: Policy = Policy::Checkpoint(Checkpoints::Count(2));

/// (t, y: [rows, 2], captures..) -> [rows, 2], bounded; its operations do not depend on `rows`.
fn field(seed: u64, rows: usize, captures: &[Type], float: DType) -> Func {
    let y = Type::array(float, [rows, 2]);
    let (mut b, x) = Builder::with_inputs(&[&[Type::scalar(DType::F64), y], captures].concat());
    let mut draws = Draws::new(seed);
    let ops = 2 + draws.below(4);
    // The part that depends only on captures is generated separately, without use of the number of rows.
    let recipe = Recipe { ops, float, loops: false };
    let pool = x[2..].to_vec();
    let index = b.splat(DType::I32, [3], 1.0);
    let mut g = Grow { b: &mut b, pool: [&pool[..1], &pool[..1], &pool, &[index]].concat(), draws, recipe };
    g.pool.swap(5, pool.len() + 2);
    (0..ops).for_each(|_| g.grow());
    let (fixed, mut draws) = (g.pool.clone(), g.draws);
    let (shape, mut h) = (Shape::from([rows, 2]), x[1]);
    for &id in fixed.iter().rev().take(4) {
        let ty = b.ty(id).clone();
        let dims: Option<Vec<usize>> = match &**ty.shape() {
            [] => Some(vec![]),
            [2] => Some(vec![1]),
            _ => None,
        };
        if **ty.shape() == [2, 2] && ty.is_float() {
            let turned = draws.below(2) == 0;
            h = b.dot(h, id, false, turned);
        } else if let Some(dims) = dims.filter(|_| ty.is_float()) {
            let wide = b.broadcast(id, &shape, dims);
            h = if draws.below(2) == 0 { b.add(h, wide) } else { b.mul(h, wide) };
        }
        h = b.unary(draws.of(&[UnaryOp::Tanh, UnaryOp::Sin]), h);
    }
    let t = b.cast(x[0], float);
    let t = b.broadcast(t, &shape, vec![]);
    let y = b.add(h, t);
    let y = b.unary(UnaryOp::Tanh, y);
    b.finish(&[y])
}

/// The number of times to tap at.
const NUM_TIMES: usize = 11;

/// The taps to try: times, groups of trips (fewer groups than the search has), the last trip, and all of these
/// together.
const TAPS: [Taps; 4] = [
    Taps { times: NUM_TIMES, every: 0, groups: 0, last: false },
    Taps { times: 0, every: 2, groups: 1, last: false },
    Taps { times: 0, every: 0, groups: 0, last: true },
    Taps { times: NUM_TIMES, every: 1, groups: 5, last: true },
];

/// The operand of times if `num` is not 0: -0.25, -0.25, 0, 0, 0.25, 0.25 and so on.
pub(crate) fn times(b: &mut Builder, num: usize) -> Vec<NodeId> {
    if num == 0 {
        return vec![];
    }
    let index = b.push(Op::Iota { axis: 0 }, &[], Some(&Type::array(DType::F64, [num])));
    let half = b.scale(index, 0.5);
    let pair = b.unary(UnaryOp::Floor, half);
    let quarter = b.splat(DType::F64, [num], 0.25);
    let time = b.scale(pair, 0.25);
    vec![b.sub(time, quarter)]
}

/// An Euler search over [0, 1] that accepts every other attempt. Its taps are the start and end times of the
/// trip, y and dy/dt.
pub(crate) fn search(field: &Func, y: &Type, captures: &[Type], taps: Taps, policy: Policy) -> Solve {
    let time = Type::scalar(DType::F64);
    let flag = Type::scalar(DType::Bool);
    let euler = |b: &mut Builder, t: NodeId, next: NodeId, y: NodeId, captures: &[NodeId]| {
        let rate = b.inline(field, &[&[t, y], captures].concat())[0];
        let h = b.sub(next, t);
        let (dtype, shape) = (b.ty(y).dtype(), b.ty(y).shape().clone());
        let h = b.cast(h, dtype);
        let h = b.broadcast(h, &shape, vec![]);
        let dy = b.mul(h, rate);
        (b.add(y, dy), rate)
    };
    let num_taps = if taps.num_rows() > 0 { 4 } else { 0 };
    let types = [&[flag.clone(), flag, time.clone(), time.clone(), y.clone()], captures].concat();
    let (mut b, x) = Builder::with_inputs(&types);
    let (next, rate) = euler(&mut b, x[2], x[3], x[4], &x[5..]);
    let step = b.finish(&[&[next], &[x[2], x[3], x[4], rate][..num_taps]].concat());
    let types = [&[time, y.clone(), Type::scalar(DType::U32)], captures].concat();
    let (mut b, x) = Builder::with_inputs(&types);
    let (one, end) = (b.splat(DType::U32, [], 1.0), b.splat(DType::F64, [], 1.0));
    let tries = b.add(x[2], one);
    let times = b.cast(tries, DType::F64);
    let half = b.scale(times, 0.5);
    let whole = b.unary(UnaryOp::Floor, half);
    let accept = b.compare(CompareOp::Ne, half, whole);
    let h = b.scale(times, 0.15);
    let aim = b.add(x[0], h);
    let aim = b.binary(BinaryOp::Min, aim, end);
    let (new, rate) = euler(&mut b, x[0], aim, x[1], &x[3..]);
    let wide = b.broadcast(accept, y.shape(), vec![]);
    let new = b.select(wide, new, x[1]);
    let step_time = b.select(accept, aim, x[0]);
    let running = b.compare(CompareOp::Lt, step_time, end);
    let reached = b.unary(UnaryOp::Not, running);
    let tapped = &[x[0], step_time, x[1], rate][..num_taps];
    let attempt = b.finish(&[&[accept, running, reached, step_time, new, tries], tapped].concat());
    Solve { attempt, step, inverse: None, num_carry: 1, num_ext: 1, taps, policy }
}

/// (row0, x: [rows, 2], y: [rows, 2], captures..) -> row results, a sum
fn tile(seed: u64, rows: usize, captures: &[Type], float: DType) -> Func {
    let row = Type::array(float, [rows, 2]);
    let types = [&[Type::scalar(DType::U32), row.clone(), row], captures].concat();
    let (mut b, x) = Builder::with_inputs(&types);
    let f = field(seed, rows, captures, float);
    let mut draws = Draws::new(seed);
    let first = b.cast(x[0], DType::F64);
    let mut y = b.inline(&f, &[&[first, x[1]], &x[3..]].concat())[0];
    if draws.below(2) == 0 {
        let solve = search(&f, b.ty(y), captures, Taps::default(), SMALL);
        let (zero, none) = (b.splat(DType::F64, [], 0.0), b.splat(DType::U32, [], 0.0));
        let args = [&[none, zero, y, none], &x[3..]].concat();
        let all = b.push(Op::Solve(Arc::new(solve)), &args, None);
        y = b.proj(all, 0);
    }
    let z = b.mul(y, x[2]);
    let sum = b.reduce(ReduceOp::Sum, z, vec![0]);
    b.finish(&[z, sum])
}

#[test]
fn one_seed_gives_one_function() {
    let recipe = Recipe { ops: 40, float: DType::F32, loops: true };
    for seed in 0..20 {
        // The texts are compared, because equal constant arrays of two functions do not compare equal.
        assert_eq!(function(seed, recipe).0.to_string(), function(seed, recipe).0.to_string());
    }
}
