//! The second half of code generation: linear-scan register allocation, operand modes, and in-place pairs.

use super::buffers::Buffers;
use super::codegen::{Gen, Generated, Held, Input, ValueId};
use crate::array::DType;
use crate::backend::cpu::access::Dim;
use crate::backend::cpu::address::{Access, Address};
use crate::backend::cpu::kernels::{Elem, OneInstr, by_strip};
use crate::backend::cpu::memory::aligned;
use crate::backend::cpu::run::ones::{Ones, Port, REGISTERS};
use crate::backend::cpu::run::program::{Cut, Ending, Instr, Mode, Program, Reduction, Stream};

/// Stands for no register or slot.
const NONE: u16 = u16::MAX;
/// Stands for the end of the program: the reductions read the value, after all instructions.
const AT_END: usize = usize::MAX;

impl Gen<'_> {
    /// For each value, the last instruction that reads it.
    fn last_uses(&self) -> Vec<Option<usize>> {
        let mut last = vec![None; self.values.len()];
        for (i, d) in self.drafts.iter().enumerate() {
            d.args.iter().flatten().for_each(|v| last[v.0 as usize] = Some(i));
        }
        self.ends.iter().for_each(|(v, ..)| last[v.0 as usize] = Some(AT_END));
        last
    }

    /// The register of each value that is held in a register, and the number of registers.
    fn assign(&self, last: &[Option<usize>]) -> (Vec<u16>, u16) {
        let mut of = vec![NONE; self.values.len()];
        let (mut free, mut count) = (Vec::new(), 0u16);
        for (i, d) in self.drafts.iter().enumerate() {
            let size = |v: ValueId| match self.values[v.0 as usize] {
                Held::Register { elem } => Some(elem.size()),
                Held::Stream(_) => None,
            };
            let mut dying: Vec<ValueId> = vec![];
            for &v in d.args.iter().flatten().filter(|v| last[v.0 as usize] == Some(i)) {
                if !dying.contains(&v) {
                    dying.push(v);
                }
            }
            let wide_enough = |v: &ValueId| size(*v) >= size(d.dst);
            // A kernel may overwrite an operand whose elements are at least as wide as the result's.
            let register = |v: ValueId| (size(v).is_some()).then(|| of[v.0 as usize]);
            let (before, after): (Vec<ValueId>, Vec<ValueId>) = dying.into_iter().partition(wide_enough);
            free.extend(before.into_iter().filter_map(register));
            let after: Vec<u16> = after.into_iter().filter_map(register).collect();
            if size(d.dst).is_some() {
                of[d.dst.0 as usize] = free.pop().unwrap_or_else(|| {
                    count += 1;
                    count - 1
                });
            }
            free.extend(after);
        }
        (of, count)
    }

    /// The program, and the pairs of its operands that may share a buffer.
    pub fn finish(self, buffers: &mut Buffers) -> Generated {
        let last = self.last_uses();
        let (of, mut registers) = self.assign(&last);
        let unit = &self.units.all[self.unit];
        let (cut, ending) = Cut::of(unit.size, unit.geometry, self.strip_len(registers as usize));
        let longest = cut.strip.min(cut.row_len).max(1);

        let modes: Vec<Mode> = self.inputs.iter().map(|i| mode(i, cut, ending)).collect();
        let (order, linear, direct) = in_order(&modes);
        let mut own = vec![NONE; self.inputs.len()];
        let copied = |m: &Mode| matches!(m, Mode::Periodic | Mode::Strided);
        for i in (0..modes.len()).filter(|&i| copied(&modes[i])) {
            own[i] = registers;
            registers += 1;
        }
        let first_acc = registers;
        registers += if ending == Ending::Row { self.ends.len() as u16 } else { 0 };

        let mut slot_of = vec![NONE; self.inputs.len()];
        order.iter().enumerate().for_each(|(k, &i)| slot_of[i] = registers + k as u16);
        let slot = |v: ValueId| match self.values[v.0 as usize] {
            Held::Register { .. } => of[v.0 as usize],
            Held::Stream(s) => slot_of[s],
        };
        let in_place = self.in_place(&modes, &last);
        let widest = self.widest();
        let streams = order.iter().map(|&i| {
            let input = &self.inputs[i];
            let loc = input.splat.map_or(input.loc, |(dtype, bits)| buffers.splat(dtype, bits, longest));
            let (access, elem, mode) = (input.access, input.elem, modes[i].clone());
            Stream { loc, access, register: own[i], elem, mode, dims: input.dims.as_slice().into() }
        });
        let streams: Box<[Stream]> = streams.collect();
        let instrs = self.drafts.iter().map(|d| Instr {
            run: d.run,
            imm: d.imm,
            dst: slot(d.dst),
            args: d.args.map(|v| v.map_or(0, slot)),
        });
        let reductions = self.ends.iter().enumerate().map(|(k, (v, dst, reducer))| Reduction {
            src: slot(*v),
            acc: first_acc + k as u16,
            dst: *dst,
            reducer: *reducer,
        });
        let is_one = unit.size == 1 && self.ends.is_empty() && direct == streams.len();
        let ones =
            is_one.then(|| self.ones(&slot, |i| slot_of[i], registers as usize + streams.len())).flatten();
        let program = Program {
            cut,
            ending,
            register_bytes: aligned(longest * widest),
            registers,
            slots: registers + streams.len() as u16,
            instrs: instrs.collect(),
            reductions: reductions.collect(),
            direct: streams[..direct].iter().map(|s| s.loc).collect(),
            streams,
            linear,
            ones,
            flops: self.flops,
        };
        Generated { program, in_place }
    }

    /// The program on a register file of `num` registers, one per slot of the table; `None` if `num` is too
    /// large.
    fn ones(
        &self,
        slot: &dyn Fn(ValueId) -> u16,
        of_input: impl Fn(usize) -> u16,
        num: usize,
    ) -> Option<Ones> {
        if num > REGISTERS {
            return None;
        }
        let instrs = self.drafts.iter().map(|d| OneInstr {
            run: d.one.unwrap_or(by_strip),
            kernel: d.run,
            imm: d.imm,
            dst: slot(d.dst),
            args: d.args.map(|v| v.map_or(0, slot)),
        });
        let (mut numbers, mut ports, mut written) = (vec![], vec![], vec![]);
        for (i, input) in self.inputs.iter().enumerate() {
            let register = of_input(i);
            if let Some((dtype, bits)) = input.splat {
                numbers.push((register, word(dtype, f64::from_bits(bits))));
                continue;
            }
            let to = if input.access == Access::Write { &mut written } else { &mut ports };
            to.push(Port { loc: input.loc, register, wide: input.elem == Elem::F64 });
        }
        let num_read = ports.len();
        ports.append(&mut written);
        Some(Ones { numbers: numbers.into(), ports: ports.into(), num_read, instrs: instrs.collect() })
    }

    /// Bytes of the widest element; 8 if there are reductions, which may accumulate in f64.
    pub fn widest(&self) -> usize {
        let held = |h: &Held| matches!(h, Held::Register { elem: Elem::F64 });
        let wide = self.inputs.iter().any(|i| i.elem == Elem::F64) || self.values.iter().any(held);
        if wide || !self.ends.is_empty() { 8 } else { 4 }
    }

    fn in_place(&self, modes: &[Mode], last: &[Option<usize>]) -> Vec<(Address, Address)> {
        let stream_of = |v: ValueId| match self.values[v.0 as usize] {
            Held::Stream(s) => Some(s),
            Held::Register { .. } => None,
        };
        let mut read = vec![None; self.inputs.len()];
        for v in (0..self.values.len()).map(|v| ValueId(v as u32)) {
            if let Some(s) = stream_of(v) {
                read[s] = last[v.0 as usize];
            }
        }
        let mut pairs = Vec::new();
        for (i, d) in self.drafts.iter().enumerate() {
            let Some(w) = stream_of(d.dst) else { continue };
            for (r, input) in self.inputs.iter().enumerate() {
                let base = input.loc.base;
                let alone = self.inputs.iter().filter(|o| o.loc.base == base).count() == 1;
                let same = input.elem.size() == self.inputs[w].elem.size() && modes[r] == Mode::Linear;
                let over = read[r].is_some_and(|l| l <= i);
                if input.access == Access::Read && input.splat.is_none() && alone && same && over {
                    pairs.push((self.inputs[w].loc, input.loc));
                }
            }
        }
        pairs
    }
}

/// The operands in order (linear, fixed, others), the number of linear operands, and the number of linear and
/// fixed operands.
fn in_order(modes: &[Mode]) -> (Vec<usize>, usize, usize) {
    let (mut order, mut fixed, mut others) = (vec![], vec![], vec![]);
    for (i, mode) in modes.iter().enumerate() {
        match mode {
            Mode::Linear => order.push(i),
            Mode::Fixed => fixed.push(i),
            _ => others.push(i),
        }
    }
    let linear = order.len();
    order.append(&mut fixed);
    let direct = order.len();
    order.append(&mut others);
    (order, linear, direct)
}

/// The word that represents a number in a register.
fn word(dtype: DType, x: f64) -> u64 {
    match dtype {
        DType::F64 => x.to_bits(),
        DType::F32 => (x as f32).to_bits().into(),
        DType::I32 => (x as i32 as u32).into(),
        DType::U32 => (x as u32).into(),
        DType::Bool => u64::from(x != 0.0),
    }
}

fn mode(input: &Input, cut: Cut, ending: Ending) -> Mode {
    let Cut { rows, row_len, strip } = cut;
    let n = rows * row_len;
    let repeats = |period: usize| (strip % period == 0 || n <= strip) && (rows == 1 || row_len % period == 0);
    match input.dims[..] {
        _ if input.splat.is_some() => Mode::Fixed,
        [] if n <= 1 => Mode::Fixed,
        [Dim { stride: 1, .. }] => Mode::Linear,
        [Dim { stride: 0, .. }] => Mode::Periodic,
        [Dim { stride: 0, .. }, ..] if repeats(input.dims[1..].iter().map(|d| d.len).product()) => {
            Mode::Periodic
        }
        [_, Dim { len, stride: 1 }] if len >= strip => {
            let inside = match ending {
                Ending::Row | Ending::Lines { .. } | Ending::Line { .. } if rows > 1 => {
                    len % row_len == 0 || row_len % len == 0 && len % strip == 0
                }
                _ => len % strip == 0,
            };
            if inside { Mode::Rows } else { Mode::Strided }
        }
        _ => Mode::Strided,
    }
}
