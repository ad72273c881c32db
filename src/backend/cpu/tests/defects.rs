//! The kinds of defects that plans must not have, and how to make one of each kind at random.

use super::Rng;
use crate::backend::cpu::address::{Access, Address};
use crate::backend::cpu::compile::buffers::Home;
use crate::backend::cpu::compile::extents::{Span, Spans};
use crate::backend::cpu::plan::{INPUTS, Laid};
use crate::backend::cpu::run::step::Step;
use crate::graph::Type;

/// Makes a defect of one kind; returns what the message must contain, or `None` if the plan has no place for it.
pub(super) type Break = fn(&mut Laid, &mut Rng) -> Option<Vec<String>>;

pub(super) const KINDS: [(&str, Break); 19] = [
    // Bounds and alignment.
    ("a step uses bytes past the end of a buffer", past_a_buffer),
    ("a buffer ends past the arena", past_the_arena),
    ("a value of the whole loop lies outside of its buffer", past_a_value_of_the_loop),
    ("a misaligned buffer", misaligned),
    ("a misaligned value of the whole loop", misaligned_value_of_the_loop),
    ("a buffer in memory that may start misaligned", in_memory_of_another_type),
    // Order.
    ("a step comes after the step that reads its result", read_before_written),
    ("a sum is read after the run has added to it", sum_read_late),
    ("a value is written in parts, and another one in between at its place", overwritten_between_parts),
    // Overlap.
    ("two buffers alive together at one place", overlap),
    ("a buffer at the place of one that the loop keeps", over_a_kept_one),
    ("two buffers that the loop keeps at one place", two_kept_ones),
    ("a buffer at the place of an output that was written", over_an_output),
    ("a result at its operand's place without a declaration", undeclared),
    ("a result over a part of its operand", shifted),
    ("two results of a step at one place", twice),
    // Memory that steps only read.
    ("a step writes an input or a constant", written_input),
    ("a step writes a sum through the input that holds it", written_sum),
    ("a step adds to an input or a constant", added_to_an_input),
];

fn pick<T: Copy>(all: &[T], rng: &mut Rng) -> Option<T> {
    (!all.is_empty()).then(|| all[rng.below(all.len())])
}

fn step(laid: &Laid, i: usize) -> String {
    format!("step {i} ({})", laid.lowered.steps[i].name())
}

/// The spans with bytes, each with its step.
fn spans(laid: &Laid) -> Vec<(usize, Span)> {
    let all = (0..laid.spans.len()).flat_map(|i| laid.spans.step(i).iter().map(move |&span| (i, span)));
    all.filter(|(_, span)| span.extent.bytes > 0).collect()
}

/// Moves the `k`-th span of step `i` to another address.
fn set_address(laid: &mut Laid, i: usize, k: usize, to: Address) {
    let mut number = 0;
    laid.lowered.steps[i].each_span(laid.level, &mut |at, _| {
        if number == k {
            *at = to;
        }
        number += 1;
    });
    laid.spans = Spans::of(&mut laid.lowered.steps, laid.level);
}

fn home(laid: &Laid, b: u32) -> &Home {
    &laid.lowered.buffers.list[b as usize].home
}

/// The first input that holds a sum.
fn first_sum(laid: &Laid) -> usize {
    laid.func.num_inputs() - laid.sums.len()
}

/// Whether a buffer is an input that holds a sum.
fn is_sum(laid: &Laid, b: u32) -> bool {
    matches!(home(laid, b), Home::Input(k) if *k >= first_sum(laid))
}

/// The base and the offset of an address. The memory of a sum is bound as an output.
fn memory(laid: &Laid, at: Address) -> Address {
    let (num, first) = (laid.func.num_inputs(), first_sum(laid));
    let place = match *home(laid, at.base) {
        Home::Input(k) if k >= first => {
            Address { base: INPUTS + (num + laid.sums.start + k - first) as u32, offset: 0 }
        }
        _ => laid.places[at.base as usize],
    };
    Address { offset: place.offset + at.offset, ..place }
}

fn is_in_arena(laid: &Laid, span: &Span) -> bool {
    matches!(home(laid, span.at.base), Home::Arena)
}

fn past_a_buffer(laid: &mut Laid, rng: &mut Rng) -> Option<Vec<String>> {
    let (i, span) = pick(&spans(laid), rng)?;
    let b = span.at.base as usize;
    let offset =
        laid.lowered.buffers.list[b].bytes - span.extent.bytes + (1 + rng.below(3)) * span.extent.align;
    let k = laid.spans.step(i).iter().position(|x| *x == span)?;
    set_address(laid, i, k, Address { offset, ..span.at });
    let uses =
        format!("{} uses {} bytes from byte {offset} of buffer {b} (", step(laid, i), span.extent.bytes);
    Some(vec![uses])
}

fn past_the_arena(laid: &mut Laid, rng: &mut Rng) -> Option<Vec<String>> {
    let all = spans(laid).into_iter().filter(|(_, span)| is_in_arena(laid, span));
    let (_, span) = pick(&all.collect::<Vec<_>>(), rng)?;
    let b = span.at.base as usize;
    let offset = laid.memory.bytes - laid.lowered.buffers.list[b].bytes + 64 * (1 + rng.below(3));
    laid.places[b].offset = offset.next_multiple_of(64);
    let (i, _) = spans(laid).into_iter().find(|(_, span)| span.at.base as usize == b)?;
    Some(vec![
        format!("{} uses buffer {b} (", step(laid, i)),
        format!("whose base has {} bytes", laid.memory.bytes),
    ])
}

fn misaligned(laid: &mut Laid, rng: &mut Rng) -> Option<Vec<String>> {
    let is_typed = |span: &Span| is_in_arena(laid, span) && span.extent.align > 1;
    let all = spans(laid).into_iter().filter(|(_, span)| is_typed(span));
    let (_, span) = pick(&all.collect::<Vec<_>>(), rng)?;
    let b = span.at.base as usize;
    laid.places[b].offset += 1 + rng.below(span.extent.align - 1);
    laid.memory.bytes += 64;
    let needs = |span: &Span| span.at.base as usize == b && span.extent.align > 1;
    let wrong = |span: &Span| !(laid.places[b].offset + span.at.offset).is_multiple_of(span.extent.align);
    let (i, span) = spans(laid).into_iter().find(|(_, span)| needs(span) && wrong(span))?;
    let (offset, align) = (span.at.offset, span.extent.align);
    Some(vec![
        format!("{} needs byte {offset} of buffer {b} (", step(laid, i)),
        format!("at a multiple of {align} bytes"),
    ])
}

fn read_before_written(laid: &mut Laid, rng: &mut Rng) -> Option<Vec<String>> {
    let all = spans(laid);
    let writers = |b: u32| {
        let all =
            all.iter().filter(move |(_, span)| span.at.base == b && span.extent.access == Access::Write);
        all.map(|(i, _)| *i).collect::<Vec<usize>>()
    };
    let written_by = |i: usize| {
        let all = all.iter().filter(move |(of, span)| *of == i && span.extent.access != Access::Read);
        all.map(|(_, span)| span.at.base)
    };
    let reads: Vec<(usize, Span)> =
        all.iter().filter(|(_, span)| span.extent.access != Access::Write).copied().collect();
    // Steps that add to a value are rare.
    let adding: Vec<_> =
        reads.iter().filter(|(_, span)| span.extent.access == Access::Update).copied().collect();
    let (_, read) = pick(if rng.below(2) == 0 { &adding } else { &reads }, rng)?;
    // The step that writes the value is the only one that writes its results. It moves behind the first reader.
    let &i = writers(read.at.base).first()?;
    let is_alone = written_by(i).all(|b| writers(b) == [i] && matches!(home(laid, b), Home::Arena));
    let first = reads.iter().find(|(_, span)| written_by(i).any(|b| b == span.at.base));
    let &(j, _) = first.filter(|_| is_alone)?;
    let (kind, writer) = (laid.lowered.steps[j].name(), laid.lowered.steps.remove(i));
    let pairs = laid.lowered.in_place.remove(i);
    laid.lowered.steps.insert(j, writer);
    laid.lowered.in_place.insert(j, pairs);
    laid.spans = Spans::of(&mut laid.lowered.steps, laid.level);
    let reads = format!("step {} ({kind}) reads bytes ", j - 1);
    Some(vec![reads, " of buffer ".into(), "before a step writes them".into()])
}

fn overlap(laid: &mut Laid, rng: &mut Rng) -> Option<Vec<String>> {
    let all: Vec<(usize, Span)> =
        spans(laid).into_iter().filter(|(_, span)| is_in_arena(laid, span)).collect();
    let first = |b: u32| all.iter().find(|(_, span)| span.at.base == b).map(|(i, _)| *i);
    let mut pairs = Vec::new();
    for &(i, written) in all.iter().filter(|(_, span)| span.extent.access == Access::Write) {
        let new = written.at.base;
        // A value that was written before this step and is read after it.
        let is_read = |(j, span): &&(usize, Span)| *j > i && span.extent.access == Access::Read;
        let is_written =
            |b: u32| all.iter().any(|(j, x)| *j > i && x.at.base == b && x.extent.access != Access::Read);
        for old in all.iter().filter(is_read).map(|(_, span)| span.at.base) {
            if old != new
                && first(new) == Some(i)
                && first(old).is_some_and(|first| first < i)
                && !is_written(old)
            {
                pairs.push((i, new, old));
            }
        }
    }
    let (i, new, old) = pick(&pairs, rng)?;
    let bytes = |b: u32| laid.lowered.buffers.list[b as usize].bytes;
    let (new_bytes, start) = (bytes(new), |b: u32| laid.places[b as usize].offset);
    let at = start(old) + 64 * rng.below(bytes(old).div_ceil(64));
    // If a third buffer there has parts that are written before and after this step, the message is about these.
    let is_met = |b: u32| b != new && start(b) < at + new_bytes && at < start(b) + bytes(b);
    let mut later = all.iter().filter(|(j, x)| *j > i && x.extent.access != Access::Read);
    if later.any(|(_, x)| is_met(x.at.base) && first(x.at.base).is_some_and(|first| first <= i)) {
        return None;
    }
    laid.places[new as usize].offset = at;
    laid.memory.bytes += new_bytes;
    Some(vec!["step ".into(), format!("buffer {new} ("), "of the arena)".into()])
}

/// A ring of deferred products, or weights that are packed before the first trip.
fn past_a_value_of_the_loop(laid: &mut Laid, rng: &mut Rng) -> Option<Vec<String>> {
    let rings = laid.lowered.rings.iter_mut().flat_map(|ring| [&mut ring.at, &mut ring.total]);
    let packed = laid.lowered.packed.iter_mut().flat_map(|packed| [&mut packed.from, &mut packed.to]);
    let mut all: Vec<&mut Address> = rings.chain(packed).collect();
    let at = (!all.is_empty()).then(|| rng.below(all.len())).map(|k| &mut *all[k])?;
    at.offset += 64;
    Some(vec!["the start of the loop uses ".into(), format!(" bytes from byte 64 of buffer {} (", at.base)])
}

fn misaligned_value_of_the_loop(laid: &mut Laid, rng: &mut Rng) -> Option<Vec<String>> {
    let b = pick(&kept_ones(laid, false), rng)?;
    // Behind all others, so that it overlaps none.
    laid.places[b].offset = laid.memory.bytes + 1 + rng.below(3);
    laid.memory.bytes += laid.lowered.buffers.list[b].bytes + 64;
    Some(vec![format!("the start of the loop needs byte 0 of buffer {b} ("), "at a multiple of ".into()])
}

fn in_memory_of_another_type(laid: &mut Laid, rng: &mut Rng) -> Option<Vec<String>> {
    let types = laid.func.input_types();
    let (_, span) =
        pick(&spans(laid).into_iter().filter(|(_, span)| is_in_arena(laid, span)).collect::<Vec<_>>(), rng)?;
    let b = span.at.base as usize;
    let bytes = laid.lowered.buffers.list[b].bytes;
    let suits = |ty: &Type| ty.bytes() >= bytes && ty.dtype().size() < span.extent.align;
    let k = types.iter().position(suits)?;
    laid.places[b] = Address { base: INPUTS + k as u32, offset: 0 };
    Some(vec![" needs byte ".into(), format!(" of buffer {b} ("), "at a multiple of ".into()])
}

/// Lets a step that comes after the sum was written read the input that holds it, in place of a value of the same size.
fn sum_read_late(laid: &mut Laid, rng: &mut Rng) -> Option<Vec<String>> {
    let all = spans(laid);
    let mut found = Vec::new();
    for &(_, sum) in all.iter().filter(|(_, span)| is_sum(laid, span.at.base)) {
        let total = memory(laid, sum.at).base;
        let is_total =
            |span: &Span| memory(laid, span.at).base == total && span.extent.access == Access::Write;
        let Some(&(written, total)) = all.iter().find(|(_, span)| is_total(span)) else { continue };
        for i in written + 1..laid.spans.len() {
            let like = laid.spans.step(i).iter().enumerate().filter(|(_, span)| span.extent == sum.extent);
            found.extend(like.map(|(k, _)| (i, k, sum.at, total.at.base)));
        }
    }
    let (i, k, at, total) = pick(&found, rng)?;
    set_address(laid, i, k, at);
    let over = format!(" wrote buffer {total} (");
    Some(vec![format!("{} reads buffer {} (", step(laid, i), at.base), over, " over it".into()])
}

fn overwritten_between_parts(laid: &mut Laid, rng: &mut Rng) -> Option<Vec<String>> {
    let all: Vec<(usize, Span)> =
        spans(laid).into_iter().filter(|(_, span)| is_in_arena(laid, span)).collect();
    let of = |b: u32| all.iter().filter(move |(_, span)| span.at.base == b);
    let mut pairs = Vec::new();
    for &(i, written) in all.iter().filter(|(_, span)| span.extent.access == Access::Write) {
        let new = written.at.base;
        let last = of(new).map(|(j, _)| *j).max()?;
        if of(new).any(|(j, _)| *j < i) {
            continue;
        }
        for old in all.iter().map(|(_, span)| span.at.base).filter(|&old| old != new) {
            let before = of(old).any(|(j, span)| *j < i && span.extent.access == Access::Write);
            let not_used = !of(old).any(|(j, _)| (i..=last).contains(j));
            let next = of(old).find(|(j, _)| *j > last);
            let [new_bytes, old_bytes] = [new, old].map(|b| laid.lowered.buffers.list[b as usize].bytes);
            if before
                && not_used
                && new_bytes <= old_bytes
                && next.is_some_and(|(_, span)| span.extent.access == Access::Write)
            {
                pairs.push((new, old));
            }
        }
    }
    let (new, old) = pick(&pairs, rng)?;
    laid.places[new as usize].offset = laid.places[old as usize].offset;
    laid.memory.bytes += laid.lowered.buffers.list[new as usize].bytes;
    Some(vec![format!(" of buffer {old} ("), "before a step writes them".into()])
}

/// A written buffer of the arena that fits into `bytes` bytes and needs no alignment above 4, and the step that writes it
/// first.
fn small(laid: &Laid, bytes: usize, rng: &mut Rng) -> Option<(usize, usize)> {
    let all = spans(laid);
    let mut found = Vec::new();
    for (i, span) in all.iter().filter(|(_, span)| span.extent.access == Access::Write) {
        let of = || all.iter().filter(|(_, x)| x.at.base == span.at.base);
        let is_first = of().all(|(j, _)| j >= i) && of().all(|(_, x)| x.extent.align <= 4);
        let b = span.at.base as usize;
        if is_first && is_in_arena(laid, span) && laid.lowered.buffers.list[b].bytes <= bytes {
            found.push((b, *i));
        }
    }
    pick(&found, rng)
}

/// Packed weights, rings, the pool of constants, and sums before a step reads them.
fn over_a_kept_one(laid: &mut Laid, rng: &mut Rng) -> Option<Vec<String>> {
    let kept = pick(&kept_ones(laid, true), rng)?;
    let (b, i) = small(laid, laid.lowered.buffers.list[kept].bytes, rng)?;
    let of_sum = || spans(laid).into_iter().filter(|(_, span)| span.at.base as usize == kept);
    let is_of_sum = is_sum(laid, kept as u32);
    // A sum that was read may be overwritten.
    if is_of_sum && !of_sum().any(|(j, _)| j > i) {
        return None;
    }
    laid.places[b] = memory(laid, Address { base: kept as u32, offset: 0 });
    let writes = format!("writes buffer {b} (");
    Some(if is_of_sum {
        vec![format!("buffer {b} (")]
    } else {
        vec![writes, format!(" over buffer {kept} (")]
    })
}

/// The buffers that keep their bytes between runs.
fn kept_ones(laid: &Laid, with_read_only: bool) -> Vec<usize> {
    let list = &laid.lowered.buffers.list;
    let is_kept = |b: &usize| match list[*b].home {
        Home::Kept => list[*b].bytes > 0,
        Home::Splat { .. } | Home::Iota { .. } => with_read_only && list[*b].bytes > 0,
        _ => with_read_only && is_sum(laid, *b as u32),
    };
    (0..list.len()).filter(is_kept).collect()
}

fn two_kept_ones(laid: &mut Laid, rng: &mut Rng) -> Option<Vec<String>> {
    let kept = kept_ones(laid, false);
    let (a, b) = (pick(&kept, rng)?, pick(&kept, rng)?);
    if a == b {
        return None;
    }
    laid.places[a] = laid.places[b];
    laid.memory.bytes += laid.lowered.buffers.list[a].bytes;
    let [first, second] = [a.min(b), a.max(b)];
    Some(vec![format!("the start of the loop writes buffer {second} ("), format!(" over buffer {first} (")])
}

fn over_an_output(laid: &mut Laid, rng: &mut Rng) -> Option<Vec<String>> {
    let is_output = |b: u32| matches!(home(laid, b), Home::Output(_));
    let written = spans(laid).into_iter().filter(|(_, span)| span.extent.access == Access::Write);
    let (i, span) = pick(&written.filter(|(_, span)| is_output(span.at.base)).collect::<Vec<_>>(), rng)?;
    let output = span.at.base as usize;
    let (b, j) = small(laid, laid.lowered.buffers.list[output].bytes, rng)?;
    if j <= i {
        return None;
    }
    laid.places[b] = laid.places[output];
    Some(vec![format!("{} writes buffer {b} (", step(laid, j)), format!(" over buffer {output} (")])
}

/// The steps with operands whose bytes the result takes: the step, the written and the read address. Without sums of one
/// element, which need no declaration.
fn in_place(laid: &Laid) -> Vec<(usize, Address, Address)> {
    let is_one = |of: &Span| of.extent.bytes == of.extent.align;
    let meet = |&(i, w, r): &(usize, Address, Address)| {
        let span = |at: Address| laid.spans.step(i).iter().find(|x| x.at == at && x.extent.bytes > 0);
        let is_free = |of: &Span| is_one(of) && is_sum(laid, r.base);
        memory(laid, w) == memory(laid, r) && span(r).is_some() && span(w).is_some_and(|of| !is_free(of))
    };
    let all = laid.lowered.in_place.iter().enumerate();
    all.flat_map(|(i, pairs)| pairs.iter().map(move |&(w, r)| (i, w, r))).filter(meet).collect()
}

fn undeclared(laid: &mut Laid, rng: &mut Rng) -> Option<Vec<String>> {
    let (i, w, r) = pick(&in_place(laid), rng)?;
    laid.lowered.in_place[i].retain(|pair| *pair != (w, r));
    let [w, r] = [w, r].map(|at| format!("buffer {} (", at.base));
    Some(vec![format!("{} writes {w}", step(laid, i)), format!(" over {r}"), "which it also uses".into()])
}

fn shifted(laid: &mut Laid, rng: &mut Rng) -> Option<Vec<String>> {
    let is_large = |at: Address| laid.lowered.buffers.list[at.base as usize].bytes > 64;
    let all = in_place(laid).into_iter().filter(|&(_, w, r)| w.base != r.base && is_large(w) && is_large(r));
    let (i, w, _) =
        pick(&all.filter(|(_, w, _)| matches!(home(laid, w.base), Home::Arena)).collect::<Vec<_>>(), rng)?;
    laid.places[w.base as usize].offset += 64;
    laid.memory.bytes += 64;
    Some(vec![format!("{} writes buffer {} (", step(laid, i), w.base), "which it also uses".into()])
}

fn twice(laid: &mut Laid, rng: &mut Rng) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for i in (0..laid.spans.len()).filter(|&i| !matches!(laid.lowered.steps[i], Step::Move(_))) {
        let spans = laid.spans.step(i);
        let written = |k: &usize| spans[*k].extent.access == Access::Write && spans[*k].extent.bytes > 0;
        for k in (0..spans.len()).filter(written) {
            let others = (0..k).filter(written).filter(|&j| spans[j].extent == spans[k].extent);
            all.extend(others.map(|j| (i, k, spans[j].at)));
        }
    }
    let (i, k, at) = pick(&all, rng)?;
    set_address(laid, i, k, at);
    Some(vec![format!("{} writes buffer {} (", step(laid, i), at.base), "which it also uses".into()])
}

/// Lets a step write to memory that steps only read.
fn written_to_read_only(
    laid: &mut Laid,
    rng: &mut Rng,
    access: Access,
    is_of_sum: bool,
) -> Option<Vec<String>> {
    let list = &laid.lowered.buffers.list;
    let is_read_only = |b: &usize| match list[*b].home {
        Home::Arena | Home::Kept | Home::Output(_) => false,
        Home::Input(_) => is_sum(laid, *b as u32) == is_of_sum,
        Home::Const(_) | Home::Splat { .. } | Home::Iota { .. } => !is_of_sum,
    };
    let mut all = Vec::new();
    for i in 0..laid.spans.len() {
        let spans = laid.spans.step(i);
        let is_so = |(_, span): &(usize, &Span)| span.extent.access == access && span.extent.bytes > 0;
        for (k, span) in spans.iter().enumerate().filter(is_so) {
            let is_used = |b: &usize| spans.iter().any(|span| span.at.base as usize == *b);
            let to = (0..list.len()).filter(is_read_only).filter(|b| list[*b].bytes >= span.extent.bytes);
            let to = to.filter(|b| !is_used(b) && alignment(laid, *b) >= span.extent.align);
            all.extend(to.map(|b| (i, k, b)));
        }
    }
    let (i, k, b) = pick(&all, rng)?;
    set_address(laid, i, k, Address { base: b as u32, offset: 0 });
    Some(vec![format!("{} writes buffer {b} (", step(laid, i)), "which steps only read".into()])
}

/// The alignment of the memory of a buffer.
fn alignment(laid: &Laid, b: usize) -> usize {
    match &laid.lowered.buffers.list[b].home {
        Home::Input(k) => laid.func.input_types()[*k].dtype().size(),
        Home::Const(array) => array.dtype().size(),
        _ => 64,
    }
}

fn written_input(laid: &mut Laid, rng: &mut Rng) -> Option<Vec<String>> {
    written_to_read_only(laid, rng, Access::Write, false)
}

fn written_sum(laid: &mut Laid, rng: &mut Rng) -> Option<Vec<String>> {
    written_to_read_only(laid, rng, Access::Write, true)
}

fn added_to_an_input(laid: &mut Laid, rng: &mut Rng) -> Option<Vec<String>> {
    written_to_read_only(laid, rng, Access::Update, false)
}
