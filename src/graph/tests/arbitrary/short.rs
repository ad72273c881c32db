//! Operations on drawn shapes, whose axes often have 0 or 1 elements.
//!
//! The length of each axis is drawn. The operands are values of the function, repeated or cut to the drawn
//! shapes. Any value can therefore be an operand of any operation: operations of both kinds feed each other,
//! and passes fuse them. Other values are computed in the same workspace, so a write outside of an empty
//! buffer changes an output.

use super::*;

/// The lengths of an axis. The longer ones exceed the columns of a thin product and a vector of 16 lanes.
const LENGTHS: [usize; 11] = [0, 0, 1, 1, 1, 2, 3, 4, 5, 7, 18];

/// The maximum number of elements of an operand, because the reference computes a derivative along each
/// element of the arguments.
const MAX_SIZE: usize = 72;

impl Grow<'_> {
    /// An operation with drawn lengths.
    pub(super) fn short(&mut self) -> NodeId {
        match self.draws.below(20) {
            0..=3 => self.short_product(),
            4 => self.short_conv(),
            5 => self.short_conv_kernel(),
            6 | 7 => self.short_reduce(),
            8 => self.short_rows(),
            9 => self.short_concat(),
            10 => self.short_broadcast(),
            11 => self.short_fill(),
            12..=15 => {
                let (rank, kind) = (1 + self.draws.below(4), self.draws.below(7));
                let dims = self.shape(rank);
                let x = self.fitted(&dims);
                self.elementwise(kind, x)
            }
            16 | 17 => self.short_system(),
            _ => self.short_move(),
        }
    }

    /// Appends operations until the result, which is an output, has an axis of 0 or 1 elements.
    pub(super) fn end_short(&mut self) {
        loop {
            let last = self.short();
            self.pool.push(last);
            if self.b.ty(last).shape().iter().any(|&len| len < 2) {
                return;
            }
        }
    }

    fn length(&mut self) -> usize {
        self.draws.of(&LENGTHS)
    }

    /// A shape of the given rank with at most [`MAX_SIZE`] elements.
    pub(super) fn shape(&mut self, rank: usize) -> Vec<usize> {
        let mut dims: Vec<usize> = (0..rank).map(|_| self.length()).collect();
        while dims.iter().product::<usize>() > MAX_SIZE {
            let longest = (0..rank).max_by_key(|&axis| dims[axis]).expect("a rank above 0");
            dims[longest] /= 2;
        }
        dims
    }

    /// A float value of the function, or a constant, with this shape.
    pub(super) fn fitted(&mut self, dims: &[usize]) -> NodeId {
        let size: usize = dims.iter().product();
        let shape = Shape::from(dims.to_vec());
        let x = self.any_float();
        let have = self.b.ty(x).shape().size();
        if have == 0 && size > 0 || self.draws.below(12) == 0 {
            let c = self.draws.of(&[0.0, 1.0, -1.0, 0.3]);
            return self.b.splat(self.recipe.float, shape, c);
        }
        if **self.b.ty(x).shape() == *dims {
            return x;
        }
        let flat = self.b.reshape(x, [have]);
        let flat = if have >= size {
            let start = self.draws.below(have - size + 1);
            self.b.push(Op::Slice { start: vec![start], limit: vec![start + size] }, &[flat], None)
        } else {
            let times = size.div_ceil(have);
            let wide = self.b.broadcast(flat, &Shape::from([times, have]), vec![1]);
            let long = self.b.reshape(wide, [times * have]);
            self.b.push(Op::Slice { start: vec![0], limit: vec![size] }, &[long], None)
        };
        self.b.reshape(flat, shape)
    }

    /// An index of this shape: elements of the index input, possibly out of range.
    fn index(&mut self, dims: &[usize]) -> NodeId {
        let size: usize = dims.iter().product();
        let input = self.pool[INDEX];
        let have = self.b.ty(input).shape().size();
        let times = size.div_ceil(have);
        let wide = self.b.broadcast(input, &Shape::from([times, have]), vec![1]);
        let long = self.b.reshape(wide, [times * have]);
        let part = self.b.push(Op::Slice { start: vec![0], limit: vec![size] }, &[long], None);
        self.b.reshape(part, dims.to_vec())
    }

    /// A product or a batch of products, often with the epilogue of a layer.
    fn short_product(&mut self) -> NodeId {
        let rank = self.draws.of(&[0, 0, 0, 1, 1, 2]);
        let lead = (0..rank).map(|_| self.draws.of(&[0, 1, 2, 2])).collect::<Vec<_>>();
        let [m, k, n] = [0; 3].map(|_| self.length());
        let (ta, tb) = (self.draws.below(2) == 0, self.draws.below(2) == 0);
        let matrix = |rows, columns, turned| if turned { [columns, rows] } else { [rows, columns] };
        let (a, b) = (matrix(m, k, ta), matrix(k, n, tb));
        let x = self.fitted(&[&lead[..], &a].concat());
        let y = self.fitted(&[&lead[..], &b].concat());
        let mut z = self.b.dot(x, y, ta, tb);
        let result = [&lead[..], &[m, n]].concat();
        if self.draws.below(3) == 0 {
            let addend = self.fitted(&result);
            z = self.b.add(z, addend);
        }
        for _ in 0..self.draws.below(4) {
            let row = self.fitted(&[n]);
            let row = self.b.broadcast(row, &Shape::from(result.clone()), vec![result.len() - 1]);
            z = if self.draws.below(2) == 0 { self.b.add(z, row) } else { self.b.mul(z, row) };
        }
        let bounded = self.draws.of(&[UnaryOp::Tanh, UnaryOp::Sigmoid, UnaryOp::Sin]);
        self.b.unary(bounded, z)
    }

    /// Lengths of the taps, the margins, and images that are large enough for them, along both axes. Images have
    /// at least one pixel.
    fn windows(&mut self) -> ([usize; 2], Margins, [usize; 2]) {
        let taps = [0; 2].map(|_| 1 + self.draws.below(3));
        let lo = taps.map(|taps| self.draws.below(taps));
        let hi = taps.map(|taps| self.draws.below(taps));
        let sides = [0, 1].map(|a| {
            let side = self.draws.of(&[1, 1, 2, 4]);
            side.max(taps[a].saturating_sub(lo[a] + hi[a]))
        });
        (taps, Margins { lo, hi }, sides)
    }

    /// The batch axes, and the numbers of images and of channels before and after a convolution.
    fn channels(&mut self) -> (Vec<usize>, [usize; 3]) {
        let lead = self.draws.of(&[0, 0, 1]);
        let lead = (0..lead).map(|_| self.draws.of(&[0, 1, 2])).collect();
        (lead, [0; 3].map(|_| self.draws.of(&[0, 1, 1, 2, 3, 5])))
    }

    fn short_conv(&mut self) -> NodeId {
        let (taps, margins, sides) = self.windows();
        let (lead, [num, c, o]) = self.channels();
        let turned = self.draws.below(2) == 0;
        let image = self.fitted(&[&lead[..], &[num, sides[0], sides[1], c]].concat());
        let kernel = if turned { [o, c] } else { [c, o] };
        let kernel = self.fitted(&[&lead[..], &taps, &kernel].concat());
        let y = self.b.push(Op::Conv { margins, turned }, &[image, kernel], None);
        self.b.unary(UnaryOp::Tanh, y)
    }

    fn short_conv_kernel(&mut self) -> NodeId {
        let (taps, margins, sides) = self.windows();
        let (lead, [num, c, o]) = self.channels();
        let out = [0, 1].map(|a| sides[a] + margins.lo[a] + margins.hi[a] + 1 - taps[a]);
        let image = self.fitted(&[&lead[..], &[num, sides[0], sides[1], c]].concat());
        let result = self.fitted(&[&lead[..], &[num, out[0], out[1], o]].concat());
        let kernel = self.b.push(Op::ConvKernel { margins }, &[image, result], None);
        self.b.unary(UnaryOp::Tanh, kernel)
    }

    /// A reduction over some of up to four axes.
    fn short_reduce(&mut self) -> NodeId {
        let rank = 1 + self.draws.below(4);
        let dims = self.shape(rank);
        let axes: Vec<usize> = (0..rank).filter(|_| self.draws.below(2) == 0).collect();
        let x = self.fitted(&dims);
        let op = self.draws.of(&[ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min]);
        let op = if self.has_no_terms(x, &axes) { ReduceOp::Sum } else { op };
        let y = self.b.reduce(op, x, axes);
        self.b.unary(UnaryOp::Tanh, y)
    }

    /// Gathers rows, and often adds rows at an index.
    fn short_rows(&mut self) -> NodeId {
        let (rank, of_index) = (1 + self.draws.below(3), self.draws.below(3));
        let (mut dims, at) = (self.shape(rank), self.shape(of_index));
        if at.iter().all(|&len| len > 0) {
            dims[0] = dims[0].max(1);
        }
        let (x, index) = (self.fitted(&dims), self.index(&at));
        if self.draws.below(2) == 0 {
            return self.b.push(Op::Gather, &[x, index], None);
        }
        let updates = self.fitted(&[&at[..], &dims[1..]].concat());
        let op = self.draws.of(&ScatterOp::ALL);
        let rows = self.b.push(Op::Scatter(op), &[x, index, updates], None);
        self.b.unary(UnaryOp::Sin, rows)
    }

    fn short_concat(&mut self) -> NodeId {
        let rank = 1 + self.draws.below(3);
        let (dims, axis, num) = (self.shape(rank), self.draws.below(rank), 1 + self.draws.below(3));
        let mut parts = Vec::new();
        for _ in 0..num {
            let mut part = dims.clone();
            part[axis] = self.draws.of(&[0, 1, 2, 3]);
            parts.push(self.fitted(&part));
        }
        self.b.push(Op::Concat { axis }, &parts, None)
    }

    /// Repeats along some axes of length 1 and along new axes.
    fn short_broadcast(&mut self) -> NodeId {
        let rank = self.draws.below(4);
        let to = self.shape(rank);
        let dims: Vec<usize> = (0..rank).filter(|_| self.draws.below(3) > 0).collect();
        let from: Vec<usize> =
            dims.iter().map(|&axis| if self.draws.below(3) == 0 { 1 } else { to[axis] }).collect();
        let x = self.fitted(&from);
        self.b.broadcast(x, &Shape::from(to), dims)
    }

    /// An iota or random numbers.
    fn short_fill(&mut self) -> NodeId {
        let rank = 1 + self.draws.below(3);
        let dims = self.shape(rank);
        if self.draws.below(2) == 0 {
            let ty = Type::array(self.recipe.float, dims);
            let count = self.b.push(Op::Iota { axis: self.draws.below(rank) }, &[], Some(&ty));
            return self.b.unary(UnaryOp::Sin, count);
        }
        let (key, start) = (self.b.splat(DType::U32, [2], 5.0), self.b.splat(DType::U32, [], 3.0));
        let bits = Type::array(DType::U32, dims);
        let bits = self.b.push(Op::RandomBits { stream: 1 }, &[key, start], Some(&bits));
        let real = self.b.cast(bits, self.recipe.float);
        self.b.scale(real, 0.5f64.powi(32))
    }

    /// Moves elements, or stops their gradient.
    fn short_move(&mut self) -> NodeId {
        let rank = 1 + self.draws.below(4);
        let dims = self.shape(rank);
        let x = self.fitted(&dims);
        match self.draws.below(4) {
            0 => {
                let mut perm: Vec<usize> = (0..rank).collect();
                (1..rank).for_each(|i| perm.swap(i, self.draws.below(i + 1)));
                self.b.transpose(x, perm)
            }
            1 => {
                let start: Vec<usize> = dims.iter().map(|&len| self.draws.below(len + 1)).collect();
                let limit = (0..rank).map(|a| start[a] + self.draws.below(dims[a] - start[a] + 1)).collect();
                self.b.push(Op::Slice { start, limit }, &[x], None)
            }
            2 => {
                let [lo, hi] = [0; 2].map(|_| dims.iter().map(|_| self.draws.below(2)).collect());
                self.b.push(Op::Pad { lo, hi }, &[x], None)
            }
            _ => self.b.push(Op::StopGradient, &[x], None),
        }
    }
}
