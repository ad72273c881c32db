//! Checks a plan before it can run: bounds, alignment, order and overlap of all spans of its steps.
//!
//! Kernels trust their addresses. [`check`] therefore asserts once per compilation, in release builds too:
//!
//! - each span lies inside its buffer, the buffer lies inside its base, and the address has the alignment that the
//!   kernel needs;
//! - a step reads only bytes that an earlier step wrote and that no step has overwritten since with another buffer;
//! - what a step writes overlaps nothing that the step uses, except the operands that it declares as in place;
//! - no step writes inputs, constants, or bytes of a buffer that is kept between runs.
//!
//! The check follows the steps in order. A buffer *owns* its bytes from its first write until a step writes another
//! buffer over them. Two values that are alive together can thus share no bytes, however the memory plan was made.
//! The span of a strided access covers the gaps between its elements. The check therefore does not see a read of a
//! byte in such a gap that no step wrote.

use super::buffers::{Buffer, Home};
use super::extents::{Span, Spans};
use crate::backend::cpu::address::{Access, Address};
use crate::backend::cpu::plan::INPUTS;
use crate::backend::cpu::run::step::Step;
use std::collections::BTreeMap;
use std::ops::Range;

/// The memory of a base.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub bytes: usize,
    /// The alignment that every run guarantees.
    pub align: usize,
}

/// A plan whose buffers have places in the bases of a run. The addresses of its steps still name buffers.
pub(crate) struct Placed<'a> {
    pub steps: &'a [Step],
    pub spans: &'a Spans,
    /// The addresses that a loop uses when it starts or ends, for rings and packed operands.
    pub around: &'a [Span],
    /// For each step, pairs (written, read) that may share bytes.
    pub in_place: &'a [Vec<(Address, Address)>],
    pub buffers: &'a [Buffer],
    pub places: &'a [Address],
    pub bases: &'a [Memory],
    /// Outputs that are sums over runs. The last inputs are the same memory, one per sum.
    pub sums: Range<usize>,
    pub num_inputs: usize,
}

/// # Panics
/// If a step could read or write what it must not. The message names the step and the buffers.
pub(crate) fn check(plan: &Placed<'_>) {
    if let Err(fault) = Check::new(plan).and_then(Check::run) {
        panic!("invariant: {fault}");
    }
}

/// What the steps so far have done to a buffer.
#[derive(Clone, Debug, Default)]
struct Value {
    /// Byte ranges that were written: sorted, disjoint and not adjacent.
    written: Vec<(usize, usize)>,
    owns: bool,
    /// The step that overwrote the buffer, and the buffer that it wrote.
    taken: Option<(usize, usize)>,
}

struct Check<'a> {
    plan: &'a Placed<'a>,
    /// The places, with sums over runs at the same place as the inputs that hold them.
    places: Vec<Address>,
    values: Vec<Value>,
    /// The buffers that own bytes, by base and first byte: the end, and the buffer.
    owners: BTreeMap<(u32, usize), (usize, usize)>,
    /// The spans of a step by position.
    sorted: Vec<(u32, Range<usize>, Span)>,
}

impl Value {
    fn holds(&self, start: usize, end: usize) -> bool {
        self.written.iter().any(|&(from, to)| from <= start && end <= to)
    }

    fn write(&mut self, mut start: usize, mut end: usize) {
        self.written.retain(|&(from, to)| {
            let is_apart = to < start || end < from;
            if !is_apart {
                (start, end) = (start.min(from), end.max(to));
            }
            is_apart
        });
        self.written.push((start, end));
    }
}

impl<'a> Check<'a> {
    fn new(plan: &'a Placed<'a>) -> Result<Check<'a>, String> {
        let first_sum = plan.num_inputs - plan.sums.len();
        let alias = |(place, buffer): (&Address, &Buffer)| match buffer.home {
            Home::Input(k) if k >= first_sum => Address {
                base: INPUTS + (plan.num_inputs + plan.sums.start + k - first_sum) as u32,
                ..*place
            },
            _ => *place,
        };
        let places = plan.places.iter().zip(plan.buffers).map(alias).collect();
        let values = vec![Value::default(); plan.buffers.len()];
        let mut check = Check { plan, places, values, owners: BTreeMap::new(), sorted: vec![] };
        for (b, buffer) in plan.buffers.iter().enumerate().filter(|(_, buffer)| buffer.bytes > 0) {
            let (is_there, owns) = match buffer.home {
                Home::Arena => (false, false),
                Home::Kept | Home::Splat { .. } | Home::Iota { .. } => (true, true),
                Home::Input(k) => (true, k >= first_sum),
                Home::Output(k) => (plan.sums.contains(&k), false),
                Home::Const(_) => (true, false),
            };
            if is_there {
                check.values[b].write(0, buffer.bytes);
            }
            if owns {
                check.own(None, b)?;
            }
        }
        Ok(check)
    }

    fn run(mut self) -> Result<(), String> {
        let plan = self.plan;
        for &span in plan.around {
            self.place(None, span)?;
        }
        for i in 0..plan.spans.len() {
            plan.spans.step(i).iter().try_for_each(|&span| self.place(Some(i), span))?;
        }
        for i in 0..plan.spans.len() {
            self.apart(i)?;
            let used = || plan.spans.step(i).iter().filter(|span| span.extent.bytes > 0);
            used()
                .filter(|span| span.extent.access != Access::Write)
                .try_for_each(|span| self.read(i, span))?;
            used()
                .filter(|span| span.extent.access != Access::Read)
                .try_for_each(|span| self.write(i, span))?;
        }
        Ok(())
    }

    /// Bounds and alignment.
    fn place(&self, step: Option<usize>, Span { at, extent }: Span) -> Result<(), String> {
        let (b, bytes) = (at.base as usize, extent.bytes);
        let (who, have) = (|| self.step(step), self.plan.buffers[b].bytes);
        if at.offset.checked_add(bytes).is_none_or(|end| end > have) {
            let Address { offset, .. } = at;
            return Err(format!("{} uses {bytes} bytes from byte {offset} of {}", who(), self.buffer(b)));
        }
        let place = self.plan.places[b];
        let base = self.plan.bases[place.base as usize];
        if bytes == 0 {
            return Ok(());
        }
        if place.offset.checked_add(have).is_none_or(|end| end > base.bytes) {
            return Err(format!("{} uses {}, whose base has {} bytes", who(), self.buffer(b), base.bytes));
        }
        let start = place.offset + at.offset;
        if !start.is_multiple_of(extent.align) || !base.align.is_multiple_of(extent.align) {
            return Err(format!(
                "{} needs byte {} of {} at a multiple of {} bytes",
                who(),
                at.offset,
                self.buffer(b),
                extent.align
            ));
        }
        Ok(())
    }

    /// What a step writes overlaps nothing else that it uses, except in place. A step may write parts of a buffer twice.
    fn apart(&mut self, i: usize) -> Result<(), String> {
        let mut sorted = std::mem::take(&mut self.sorted);
        sorted.clear();
        sorted.extend(self.plan.spans.step(i).iter().filter(|span| span.extent.bytes > 0).map(|&span| {
            let place = self.places[span.at.base as usize];
            let start = place.offset + span.at.offset;
            (place.base, start..start + span.extent.bytes, span)
        }));
        sorted.sort_unstable_by_key(|(base, range, _)| (*base, range.start));
        for (k, (base, range, a)) in sorted.iter().enumerate() {
            let meets = |(of, other, _): &&(u32, Range<usize>, Span)| of == base && other.start < range.end;
            for (_, other, b) in sorted[k + 1..].iter().take_while(meets) {
                let is_allowed = match (a.extent.access, b.extent.access) {
                    (Access::Read, Access::Read) => true,
                    (Access::Read, _) => range.start == other.start && self.is_in_place(i, b, a),
                    (_, Access::Read) => range.start == other.start && self.is_in_place(i, a, b),
                    _ => a.at.base == b.at.base,
                };
                if !is_allowed {
                    let (step, [a, b]) =
                        (self.step(Some(i)), [a, b].map(|x| self.buffer(x.at.base as usize)));
                    return Err(format!("{step} writes one of two values that overlap: {a}, {b}"));
                }
            }
        }
        self.sorted = sorted;
        Ok(())
    }

    /// Whether a step may write over its operand. Elementwise steps read a sum over runs in one place; a sum of one element
    /// needs no declaration, because it is read before the result is stored.
    fn is_in_place(&self, i: usize, written: &Span, read: &Span) -> bool {
        let home = &self.plan.buffers[read.at.base as usize].home;
        let is_sum = matches!(home, Home::Input(_)) && matches!(self.plan.steps[i], Step::Strip(_));
        let is_one = read.extent.bytes == read.extent.align && written.extent.bytes == read.extent.bytes;
        is_sum && is_one || self.plan.in_place[i].contains(&(written.at, read.at))
    }

    fn read(&self, i: usize, Span { at, extent }: &Span) -> Result<(), String> {
        let b = at.base as usize;
        let value = &self.values[b];
        if let Some((by, over)) = value.taken {
            return Err(format!(
                "{} reads {}, but {} wrote {} over it",
                self.step(Some(i)),
                self.buffer(b),
                self.step(Some(by)),
                self.buffer(over)
            ));
        }
        let (start, end) = (at.offset, at.offset + extent.bytes);
        if !value.holds(start, end) {
            let (step, buffer) = (self.step(Some(i)), self.buffer(b));
            return Err(format!("{step} reads bytes {start} to {end} of {buffer} before a step writes them"));
        }
        Ok(())
    }

    fn write(&mut self, i: usize, Span { at, extent }: &Span) -> Result<(), String> {
        let b = at.base as usize;
        let is_read_only = match self.plan.buffers[b].home {
            Home::Arena | Home::Kept | Home::Output(_) => false,
            Home::Input(_) | Home::Const(_) | Home::Splat { .. } | Home::Iota { .. } => true,
        };
        if is_read_only {
            return Err(format!("{} writes {}, which steps only read", self.step(Some(i)), self.buffer(b)));
        }
        if !self.values[b].owns {
            self.own(Some(i), b)?;
        }
        self.values[b].write(at.offset, at.offset + extent.bytes);
        Ok(())
    }

    /// From now on, the bytes of a buffer are its own.
    fn own(&mut self, step: Option<usize>, b: usize) -> Result<(), String> {
        let (place, bytes) = (self.places[b], self.plan.buffers[b].bytes);
        let end = place.offset + bytes;
        while let Some((&at, &(to, other))) = self.owners.range(..(place.base, end)).next_back()
            && at.0 == place.base
            && to > place.offset
        {
            if !matches!(self.plan.buffers[other].home, Home::Arena | Home::Input(_)) {
                let (step, [b, other]) = (self.step(step), [b, other].map(|x| self.buffer(x)));
                return Err(format!("{step} writes {b} over {other}"));
            }
            self.owners.remove(&at);
            self.values[other].owns = false;
            self.values[other].taken = step.map(|step| (step, b));
        }
        self.owners.insert((place.base, place.offset), (end, b));
        let value = &mut self.values[b];
        value.owns = true;
        if value.taken.take().is_some() {
            value.written.clear();
        }
        Ok(())
    }

    /// A step, for messages.
    fn step(&self, i: Option<usize>) -> String {
        i.map_or("the start of the loop".into(), |i| format!("step {i} ({})", self.plan.steps[i].name()))
    }

    /// A buffer, for messages.
    fn buffer(&self, b: usize) -> String {
        let (Buffer { bytes, home }, offset) = (&self.plan.buffers[b], self.plan.places[b].offset);
        match home {
            Home::Arena => format!("buffer {b} ({bytes} bytes at byte {offset} of the arena)"),
            Home::Kept => format!("buffer {b} ({bytes} bytes kept at byte {offset} of the arena)"),
            Home::Input(k) => format!("buffer {b} (input {k}, {bytes} bytes)"),
            Home::Output(k) => format!("buffer {b} (output {k}, {bytes} bytes)"),
            Home::Const(_) => format!("buffer {b} (a constant array, {bytes} bytes)"),
            Home::Splat { .. } | Home::Iota { .. } => {
                format!("buffer {b} ({bytes} bytes at byte {offset} of the pool of constants)")
            }
        }
    }
}
