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
//! buffer over them. Two values that are alive together can thus share no bytes, however the memory plan was made,
//! except for the operands that a step declares as in place.
//! The span of a strided access covers the gaps between its elements. The check therefore does not see a read of a
//! byte in such a gap that no step wrote.

use super::buffers::{Buffer, Home};
use super::extents::{Span, Spans};
use crate::backend::cpu::address::{Access, Address};
use crate::backend::cpu::plan::INPUTS;
use crate::backend::cpu::run::step::Step;
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
#[derive(Clone, Debug)]
struct Value {
    /// The first bytes that were written, as start and end. Most values are written at once.
    written: (usize, usize),
    /// Other ranges of bytes that were written, in order and not adjacent.
    apart: Vec<(usize, usize)>,
    owns: bool,
    /// The step that overwrote the buffer, and the buffer that it wrote.
    overwritten_by: Option<(usize, usize)>,
    /// The last step that used the buffer.
    used: Option<usize>,
}

/// A buffer and the bytes that it owns: the base, the first byte and the end.
#[derive(Clone, Copy, Debug)]
struct Owner {
    base: u32,
    start: usize,
    end: usize,
    buffer: usize,
}

struct Check<'a> {
    plan: &'a Placed<'a>,
    /// The places, with sums over runs at the same place as the inputs that hold them.
    places: Vec<Address>,
    values: Vec<Value>,
    /// By base and first byte. They do not overlap.
    owners: Vec<Owner>,
}

impl Value {
    const NEW: Value =
        Value { written: (0, 0), apart: Vec::new(), owns: false, overwritten_by: None, used: None };

    fn holds(&self, start: usize, end: usize) -> bool {
        let holds = |&(from, to): &(usize, usize)| from <= start && end <= to;
        holds(&self.written) || self.apart.iter().any(holds)
    }

    fn write(&mut self, start: usize, end: usize) {
        if self.written.0 == self.written.1 {
            self.written = (start, end);
        }
        if self.holds(start, end) {
            return;
        }
        let mut all = std::mem::take(&mut self.apart);
        all.extend([self.written, (start, end)]);
        all.sort_unstable();
        self.written = all[0];
        for (from, to) in all {
            match self.apart.last_mut().unwrap_or(&mut self.written) {
                last if from <= last.1 => last.1 = last.1.max(to),
                _ => self.apart.push((from, to)),
            }
        }
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
        let values = vec![Value::NEW; plan.buffers.len()];
        let mut check = Check { plan, places, values, owners: Vec::new() };
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
        // All alignments are powers of two.
        if start & (extent.align - 1) != 0 || extent.align > base.align {
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

    /// What step `i` writes to a buffer overlaps nothing that it uses of a buffer, except in place. A padded copy writes
    /// zeros first.
    fn require_apart(&self, i: usize, written: usize, used: usize) -> Result<(), String> {
        let spans = |b: usize| {
            let spans = self.plan.spans.step(i).iter();
            spans.filter(move |span| span.at.base as usize == b && span.extent.bytes > 0)
        };
        let start = |span: &Span| self.places[span.at.base as usize].offset + span.at.offset;
        for w in spans(written).filter(|span| span.extent.access != Access::Read) {
            for x in spans(used) {
                let (of, other) = (start(w), start(x));
                let meet = of < other + x.extent.bytes && other < of + w.extent.bytes;
                let is_allowed = match x.extent.access {
                    Access::Read => of == other && self.is_in_place(i, w, x),
                    // The zeros and the elements of a padded copy, or one span.
                    Access::Write | Access::Update => {
                        std::ptr::eq(w, x) || written == used && matches!(self.plan.steps[i], Step::Move(_))
                    }
                };
                if meet && !is_allowed {
                    let (step, [w, x]) = (self.step(Some(i)), [written, used].map(|b| self.buffer(b)));
                    return Err(format!("{step} writes {w} over {x}, which it also uses"));
                }
            }
        }
        Ok(())
    }

    /// Whether a step may write over its operand. Elementwise steps read a sum over runs in one place; a sum of
    /// one element needs no declaration, because it is read before the result is stored.
    fn is_in_place(&self, i: usize, written: &Span, read: &Span) -> bool {
        let home = &self.plan.buffers[read.at.base as usize].home;
        let is_sum = matches!(home, Home::Input(_)) && matches!(self.plan.steps[i], Step::Strip(_));
        let is_one = read.extent.bytes == read.extent.align && written.extent.bytes == read.extent.bytes;
        is_sum && is_one || self.plan.in_place[i].contains(&(written.at, read.at))
    }

    fn read(&mut self, i: usize, Span { at, extent }: &Span) -> Result<(), String> {
        let b = at.base as usize;
        self.values[b].used = Some(i);
        let value = &self.values[b];
        if let Some((by, over)) = value.overwritten_by {
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
        if self.values[b].used == Some(i) {
            self.require_apart(i, b, b)?;
        }
        let value = &mut self.values[b];
        value.used = Some(i);
        value.write(at.offset, at.offset + extent.bytes);
        Ok(())
    }

    /// From now on, the bytes of a buffer are its own.
    fn own(&mut self, step: Option<usize>, b: usize) -> Result<(), String> {
        let (Address { base, offset: start }, bytes) = (self.places[b], self.plan.buffers[b].bytes);
        let end = start + bytes;
        let first = self.owners.partition_point(|of| (of.base, of.end) <= (base, start));
        let met = self.owners[first..].iter().take_while(|of| of.base == base && of.start < end);
        let last = first + met.count();
        for k in first..last {
            let other = self.owners[k].buffer;
            if let Some(i) = step.filter(|_| self.values[other].used == step) {
                self.require_apart(i, b, other)?;
            }
            if !matches!(self.plan.buffers[other].home, Home::Arena | Home::Input(_)) {
                let (step, [b, other]) = (self.step(step), [b, other].map(|x| self.buffer(x)));
                return Err(format!("{step} writes {b} over {other}"));
            }
            self.values[other].owns = false;
            self.values[other].overwritten_by = step.map(|step| (step, b));
        }
        self.owners.splice(first..last, [Owner { base, start, end, buffer: b }]);
        let value = &mut self.values[b];
        value.owns = true;
        if value.overwritten_by.take().is_some() {
            (value.written, value.apart) = ((0, 0), Vec::new());
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
