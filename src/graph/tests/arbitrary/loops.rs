//! Random searches, loops and tiles.

use super::*;

impl Grow<'_> {
    pub(super) fn search(&mut self) -> Option<NodeId> {
        let y = if self.recipe.short {
            let rows = self.draws.of(&[0, 1, 1, 4]);
            self.fitted(&[rows, 2])
        } else {
            self.pick(|t| t.is_float() && t.shape().rank() == 2 && t.shape()[1] == 2)?
        };
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
        let values = solve.places();
        let (zero, none) = (self.b.splat(DType::F64, [], 0.0), self.b.splat(DType::U32, [], 0.0));
        let replayed = solve.replay();
        let times = times(self.b, taps.times);
        let first = first_residuals(self.b, &solve, (&field, y), &captures);
        let args = [&[none, zero], &times[..], &[y, none], &first, &captures].concat();
        let all = self.b.push(Op::Solve(Arc::new(solve)), &args, None);
        let end = self.b.proj(all, 0);
        if taps.num_rows() > 0 {
            self.pool.push(self.b.proj(all, values.tapped[2]));
            let rates = self.b.proj(all, values.tapped[3]);
            let rate = self.b.reduce(ReduceOp::Sum, rates, vec![0]);
            self.pool.push(rate);
        }
        if self.draws.below(2) == 0 {
            return Some(end);
        }
        self.pool.push(end);
        let schedule = self.b.proj(all, values.schedule[0]);
        let scan = Replay { policy: SMALL, ..replayed };
        let args = [&[schedule, end], &captures[..]].concat();
        let tapped = scan.places().tapped;
        if self.draws.below(2) == 0 {
            self.stored(&scan.body, schedule, end, &captures, taps.num_rows());
        }
        let all = self.b.push(Op::Replay(Arc::new(scan)), &args, None);
        if taps.num_rows() > 0 {
            self.pool.push(self.b.proj(all, tapped[3]));
        }
        Some(self.b.proj(all, 0))
    }

    /// A loop that stores values in each trip, and a loop in the opposite direction that reads these values.
    fn stored(&mut self, step: &Func, schedule: NodeId, y: NodeId, captures: &[NodeId], num_tap_rows: usize) {
        let (num_rows, ty) = (usize::from(num_tap_rows > 0), self.b.ty(y).clone());
        let types = [step.input_types(), vec![ty.clone(); num_rows]].concat();
        let (mut b, x) = Builder::with_inputs(&types);
        let mut next = b.inline(step, &x[..step.num_inputs()])[0];
        if num_rows > 0 {
            next = b.add(next, x[step.num_inputs()]);
        }
        let (next, term) = (b.unary(UnaryOp::Tanh, next), b.mul(next, x[4]));
        let kept = b.unary(UnaryOp::Sin, term);
        let body = b.finish(&[&[next, kept, term], &[next][..num_rows]].concat());
        let is_reversed = self.draws.below(2) == 0;
        let of = |body| Replay { num_carry: 1, num_ys: 1, num_sums: 1, ..Replay::new(body) };
        let walk = Replay { is_reversed, num_rows, num_tap_rows, ..of(body) };
        let rows = crate::graph::Taps::at(num_tap_rows.max(1)).tapped(&ty, None);
        let rows = self.b.broadcast(y, rows.shape(), vec![1, 2]);
        let args = [&[schedule, y], captures, &[rows][..num_rows]].concat();
        let places = walk.places();
        let walked = self.b.push(Op::Replay(Arc::new(walk)), &args, None);
        let walked = places.map(|k| self.b.proj(walked, k));
        let (mut b, x) = Builder::with_inputs(&[&types[..4], &vec![ty; 4]].concat());
        let (sum, both) = (b.add(x[4], x[5]), b.mul(x[4], x[6]));
        let (next, term) = (b.unary(UnaryOp::Tanh, sum), b.mul(both, x[7]));
        let body = b.finish(&[next, both, term]);
        let back = Replay { is_reversed: !is_reversed, num_xs: 2, ..of(body) };
        let args = [schedule, y, walked.states[0], walked.ys[0], y];
        let places = back.places();
        let back = self.b.push(Op::Replay(Arc::new(back)), &args, None);
        let [end, sum] = [places.carry[0], places.sums[0]].map(|k| self.b.proj(back, k));
        let sums = [walked.sums[0], sum].map(|sum| self.b.unary(UnaryOp::Tanh, sum));
        self.pool.extend([walked.carry[0], sums[0], end, sums[1]]);
    }

    pub(super) fn tiles(&mut self) -> Option<NodeId> {
        let (x, y, rows) = if self.recipe.short {
            let rows = self.draws.of(&[0, 1, 1, 3]);
            (self.fitted(&[rows, 2]), self.fitted(&[rows, 2]), rows)
        } else {
            let rows = self.draws.of(&[3, 5]);
            let wanted = |t: &Type| t.is_float() && **t.shape() == [rows, 2];
            (self.pick(wanted)?, self.pick(wanted)?, rows)
        };
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

/// (t, y: [rows, 2], captures..) -> [rows, 2], bounded, and the values inside; its operations do not depend on `rows`.
fn field(seed: u64, rows: usize, captures: &[Type], float: DType) -> Func {
    let y = Type::array(float, [rows, 2]);
    let (mut b, x) = Builder::with_inputs(&[&[Type::scalar(DType::F64), y], captures].concat());
    let mut draws = Draws::new(seed);
    let ops = 2 + draws.below(4);
    // The part that depends only on captures is generated separately, without use of the number of rows.
    let recipe = Recipe { ops, float, loops: false, short: false, singular: false };
    let pool = x[2..].to_vec();
    let index = b.splat(DType::I32, [3], 1.0);
    let mut g = Grow { b: &mut b, pool: [&pool[..1], &pool[..1], &pool, &[index]].concat(), draws, recipe };
    g.pool.swap(INDEX, pool.len() + 2);
    (0..ops).for_each(|_| g.grow());
    let (fixed, mut draws) = (g.pool.clone(), g.draws);
    let (shape, mut h, mut inside) = (Shape::from([rows, 2]), x[1], vec![]);
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
        inside.push(h);
        h = b.unary(draws.of(&[UnaryOp::Tanh, UnaryOp::Sin]), h);
        inside.push(h);
    }
    let t = b.cast(x[0], float);
    let t = b.broadcast(t, &shape, vec![]);
    let y = b.add(h, t);
    let y = b.unary(UnaryOp::Tanh, y);
    b.finish(&[&[y], &inside[..]].concat())
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

/// Whether the residuals of a step are those that the step before it computes.
fn has_first(field: &Func) -> bool {
    field.nodes().len() % 2 == 1
}

/// The operands `first` of a search from time 0.
fn first_residuals(
    b: &mut Builder,
    s: &Solve,
    (field, y): (&Func, NodeId),
    captures: &[NodeId],
) -> Vec<NodeId> {
    let zero = b.splat(DType::F64, [], 0.0);
    let mut all = b.inline(field, &[&[zero, y], captures].concat());
    all.split_off(all.len() - s.num_first)
}

/// An Euler search over [0, 1] that accepts every other attempt. Its taps are the start and end times of the
/// trip, y and dy/dt. Its residuals are the outputs of `field` after the first one.
pub(crate) fn search(field: &Func, y: &Type, captures: &[Type], taps: Taps, policy: Policy) -> Solve {
    let time = Type::scalar(DType::F64);
    let flag = Type::scalar(DType::Bool);
    let euler = |b: &mut Builder, t: NodeId, next: NodeId, y: NodeId, captures: &[NodeId]| {
        let all = b.inline(field, &[&[t, y], captures].concat());
        let (rate, inside) = (all[0], all[1..].to_vec());
        let h = b.sub(next, t);
        let (dtype, shape) = (b.ty(y).dtype(), b.ty(y).shape().clone());
        let h = b.cast(h, dtype);
        let h = b.broadcast(h, &shape, vec![]);
        let dy = b.mul(h, rate);
        (b.add(y, dy), rate, inside)
    };
    let num_taps = if taps.num_rows() > 0 { 4 } else { 0 };
    let types = [&[flag.clone(), flag, time.clone(), time.clone(), y.clone()], captures].concat();
    let (mut b, x) = Builder::with_inputs(&types);
    let (next, rate, inside) = euler(&mut b, x[2], x[3], x[4], &x[5..]);
    let step = b.finish(&[&[next], &[x[2], x[3], x[4], rate][..num_taps], &inside].concat());
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
    let (new, rate, mut inside) = euler(&mut b, x[0], aim, x[1], &x[3..]);
    if has_first(field) {
        inside = b.inline(field, &[&[aim, new], &x[3..]].concat()).split_off(1);
    }
    let wide = b.broadcast(accept, y.shape(), vec![]);
    let new = b.select(wide, new, x[1]);
    let step_time = b.select(accept, aim, x[0]);
    let running = b.compare(CompareOp::Lt, step_time, end);
    let reached = b.unary(UnaryOp::Not, running);
    let tapped = &[x[0], step_time, x[1], rate][..num_taps];
    let attempt = b.finish(&[&[accept, running, reached, step_time, new, tries], tapped, &inside].concat());
    let num = inside.len();
    let (num_own, num_first) = if has_first(field) { (0, num) } else { (num, 0) };
    Solve { attempt, step, inverse: None, num_carry: 1, num_ext: 1, num_own, num_first, taps, policy }
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
        let residuals = first_residuals(&mut b, &solve, (&f, y), &x[3..]);
        let args = [&[none, zero, y, none], &residuals[..], &x[3..]].concat();
        let all = b.push(Op::Solve(Arc::new(solve)), &args, None);
        y = b.proj(all, 0);
    }
    let z = b.mul(y, x[2]);
    let sum = b.reduce(ReduceOp::Sum, z, vec![0]);
    b.finish(&[z, sum])
}
