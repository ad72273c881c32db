//! Strip programs: fused elementwise kernels as short lists of vector instructions.
//!
//! Elements are processed in strips of a few hundred, so that every intermediate value stays in L1. An
//! instruction is one call through a function pointer per strip: about 3 ns of dispatch for 20 to 200 ns of
//! work. In measurements, strip programs reached 77 to 88 % of the speed of a compiled loop. A machine-code
//! generator would reach the full speed, but would be a second, unsafe and unportable backend.
//!
//! An instruction processes each element of its strip independently, and sums are grouped by the reduction's
//! shape alone. Results therefore depend neither on the strip length nor on the fusion. A program contains
//! addresses and strides, but no nodes.

use super::ones::Ones;
use super::reduce::{BLOCK, Reducer};
use super::walk::load;
use crate::backend::cpu::access::Dim;
use crate::backend::cpu::address::{Access, Address, Cost, Env};
use crate::backend::cpu::compile::places::Geometry;
use crate::backend::cpu::kernels::{Elem, StripFn};

/// How the elements of an operand reach the instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// In place; the address advances with the strips.
    Linear,
    /// In place; the same strip each time (constants, single elements).
    Fixed,
    /// A pattern that repeats in each strip (or one element), copied to a register once per run.
    Periodic,
    /// Rows longer than strips: in place, at an address computed per strip.
    Rows,
    /// Anything else: copied to a register per strip.
    Strided,
}

/// An operand in memory.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub loc: Address,
    pub access: Access,
    /// The register that it is copied to, if its mode has one.
    pub register: u16,
    pub elem: Elem,
    pub mode: Mode,
    pub dims: Box<[Dim]>,
}

/// One instruction. Operands are slots of the table of addresses; the kernel ignores those that it does not
/// need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instr {
    pub run: StripFn,
    pub imm: [f64; 2],
    pub dst: u16,
    pub args: [u16; 3],
}

/// A reduction of a strip value into memory.
#[derive(Clone, Debug)]
pub(crate) struct Reduction {
    pub src: u16,
    /// A register for the partial result of a long row.
    pub acc: u16,
    pub dst: Address,
    pub reducer: Reducer,
}

/// How a program's elements are split: `rows` times `row_len`, each row into strips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub rows: usize,
    pub row_len: usize,
    pub strip: usize,
}

/// How reductions consume the strips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// There are no reductions.
    None,
    /// Each strip holds whole groups of `reduced` elements; each group is reduced to one element.
    Groups { reduced: usize },
    /// Each row is reduced to one element.
    Row,
    /// Each strip holds whole lines of `inner` contiguous elements. The lines of a row are added, element by
    /// element, to one output line.
    Lines { inner: usize },
    /// Each row is one line, which is added to output line `row / reduced`.
    Line { reduced: usize },
}

/// A fused kernel.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub cut: Cut,
    pub ending: Ending,
    /// Bytes of a register.
    pub register_bytes: usize,
    /// Registers, which are the first slots of the table.
    pub registers: u16,
    /// Length of the table of addresses.
    pub slots: u16,
    /// Operands: linear, then fixed, then others. Their slots follow the registers, in order.
    pub streams: Box<[Stream]>,
    pub linear: usize,
    /// Locations of the linear and fixed operands, stored contiguously, because binding takes most of the time
    /// of small programs.
    pub direct: Box<[Address]>,
    pub instrs: Box<[Instr]>,
    pub reductions: Box<[Reduction]>,
    /// Runs instead of the instructions if the program has one element.
    pub ones: Option<Ones>,
    /// Floating-point operations per element.
    pub flops: usize,
}

impl Cut {
    /// How the elements are split for reductions over `geometry`; `wanted` is the preferred strip length of
    /// the operands.
    pub fn of(size: usize, geometry: Option<Geometry>, wanted: usize) -> (Cut, Ending) {
        let whole = |len: usize| len.max(1) * (wanted / len.max(1)).max(1);
        match geometry {
            None => (Cut { rows: 1, row_len: size, strip: wanted }, Ending::None),
            Some(Geometry { inner: 1, reduced, outer }) if reduced <= BLOCK => {
                (Cut { rows: 1, row_len: outer * reduced, strip: whole(reduced) }, Ending::Groups { reduced })
            }
            Some(Geometry { inner: 1, reduced, outer }) => {
                let strip = wanted.next_multiple_of(BLOCK);
                (Cut { rows: outer, row_len: reduced, strip }, Ending::Row)
            }
            Some(Geometry { inner, reduced, outer }) if inner <= wanted => {
                let row_len = inner * reduced;
                (Cut { rows: outer, row_len, strip: whole(inner) }, Ending::Lines { inner })
            }
            Some(Geometry { inner, reduced, outer }) => {
                let rows = outer * reduced;
                (Cut { rows, row_len: inner, strip: wanted }, Ending::Line { reduced })
            }
        }
    }

    fn size(&self) -> usize {
        self.rows * self.row_len
    }
}

impl Program {
    /// Bytes of registers.
    pub fn scratch_bytes(&self) -> usize {
        self.registers as usize * self.register_bytes
    }

    pub fn cost(&self) -> Cost {
        let n = self.cut.size();
        let bytes = |s: &Stream| match s.mode {
            Mode::Linear | Mode::Rows | Mode::Strided => n * s.elem.size(),
            Mode::Fixed | Mode::Periodic => {
                s.elem.size() * s.dims.iter().filter(|d| d.stride > 0).map(|d| d.len).product::<usize>()
            }
        };
        let out = |r: &Reduction| r.reducer.geometry.outer * r.reducer.geometry.inner * r.reducer.elem.size();
        let moved =
            self.streams.iter().map(bytes).sum::<usize>() + self.reductions.iter().map(out).sum::<usize>();
        Cost { flops: n * (self.flops + self.reductions.len()), bytes: moved }
    }

    /// Runs the program.
    ///
    /// # Safety
    /// The locations are valid for their lengths, no operand overlaps a written one unless it starts
    /// at the same address and is read by no later instruction, scratch and table are as long as
    /// [`Program::scratch_bytes`] and `slots`, and the level of the kernels is available.
    pub unsafe fn run(&self, env: Env) {
        // SAFETY: `Program::each_span` gives the bytes of the operands and results, and strips stay inside the rows.
        // `Plan::of_body` sizes registers and table for its largest program.
        unsafe {
            if let Some(ones) = &self.ones {
                return ones.run(env);
            }
            self.bind(env);
            for r in &self.reductions {
                if self.cut.size() == 0 || !matches!(self.ending, Ending::Groups { .. } | Ending::Row) {
                    r.reducer.clear(env.at(r.dst));
                }
            }
            let Cut { rows, row_len, strip } = self.cut;
            for row in 0..rows {
                let mut i = 0;
                while i < row_len {
                    let n = strip.min(row_len - i);
                    self.strip(env, row * row_len + i, n);
                    if !self.reductions.is_empty() {
                        self.reduce(env, row, i, n);
                    }
                    i += n;
                    if i < row_len || row + 1 < rows {
                        self.advance(env, n);
                    }
                }
            }
        }
    }

    /// Advances the addresses of linear operands by `n` elements.
    unsafe fn advance(&self, env: Env, n: usize) {
        for (k, s) in self.streams[..self.linear].iter().enumerate() {
            // SAFETY: as for `run`; the next strip exists.
            unsafe {
                let at = env.table.add(self.registers as usize + k);
                *at = (*at).add(n * s.elem.size());
            }
        }
    }

    /// Fills the table of addresses, and the registers that stay constant.
    #[inline]
    unsafe fn bind(&self, env: Env) {
        // SAFETY: as for `run`.
        unsafe {
            for r in 0..self.registers as usize {
                *env.table.add(r) = env.scratch.add(r * self.register_bytes);
            }
            let table = env.table.add(self.registers as usize);
            for (k, loc) in self.direct.iter().enumerate() {
                *table.add(k) = env.at(*loc);
            }
            for (k, s) in self.streams.iter().enumerate().skip(self.direct.len()) {
                let at = env.scratch.add(s.register as usize * self.register_bytes);
                *table.add(k) = at;
                if s.mode == Mode::Periodic {
                    let first = self.cut.strip.min(self.cut.row_len);
                    load(at, env.at(s.loc), s.elem, &s.dims, 0, first);
                }
            }
        }
    }

    #[inline]
    unsafe fn strip(&self, env: Env, start: usize, n: usize) {
        // SAFETY: as for `run`; `start + n` elements exist.
        unsafe {
            for (k, s) in self.streams.iter().enumerate().skip(self.direct.len()) {
                let slot = self.registers as usize + k;
                match s.mode {
                    Mode::Strided => {
                        let to = *env.table.add(slot);
                        load(to, env.at(s.loc), s.elem, &s.dims, start, n);
                    }
                    Mode::Rows => {
                        let [outer, inner] = s.dims[..] else { unreachable!("invariant: rows have 2 axes") };
                        let at = start / inner.len * outer.stride + start % inner.len;
                        *env.table.add(slot) = env.at(s.loc).add(at * s.elem.size());
                    }
                    _ => {}
                }
            }
            let at = |slot: u16| *env.table.add(slot as usize);
            for k in &self.instrs {
                let [a, b, c] = k.args;
                (k.run)(at(k.dst), at(a), at(b), at(c), k.imm, n);
            }
        }
    }

    unsafe fn reduce(&self, env: Env, row: usize, i: usize, n: usize) {
        for r in &self.reductions {
            let size = r.reducer.elem.size();
            // SAFETY: as for `run`; results lie where the geometry places them.
            unsafe {
                let src = (*env.table.add(r.src as usize)).cast_const();
                let dst = env.at(r.dst);
                match self.ending {
                    Ending::None => {}
                    Ending::Groups { reduced: 0 } => {}
                    Ending::Groups { reduced } => {
                        r.reducer.groups(dst.add(i / reduced * size), src, n / reduced);
                    }
                    Ending::Row => {
                        let acc = env.scratch.add(r.acc as usize * self.register_bytes);
                        r.reducer.part(dst.add(row * size), acc, src, i, n);
                    }
                    Ending::Lines { inner } => {
                        r.reducer.lines(dst.add(row * inner * size), src, n / inner, inner);
                    }
                    Ending::Line { reduced } => {
                        let line = row / reduced * self.cut.row_len + i;
                        r.reducer.lines(dst.add(line * size), src, 1, n);
                    }
                }
            }
        }
    }
}
