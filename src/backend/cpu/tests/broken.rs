//! Plans that are broken on purpose are refused, with the names of the step and the buffers.
//!
//! Each plan is one of a random function (without loops) of 10 to 60 operations on inputs with up to 1,600
//! elements, in f32 and in f64. One random defect is made in it: a step that uses bytes past the end of a buffer,
//! a buffer past the end of the arena, a buffer at an odd address, a step that comes after the step that reads its
//! result, or two buffers alive together at one place. The test draws until it has refused each kind forty times.
//! Another test binds too little memory to a good plan.

use super::Rng;
use super::random::{function, grown};
use crate::array::{DType, refusal};
use crate::backend::cpu::address::Access;
use crate::backend::cpu::compile::buffers::Home;
use crate::backend::cpu::compile::extents::{Span, Spans};
use crate::backend::cpu::plan::{Laid, Trips, lay_out};
use crate::graph::Type;
use crate::simd::Level;

/// Makes a defect of one kind; returns what the message must contain, or `None` if the plan has no place for it.
type Break = fn(&mut Laid, &mut Rng) -> Option<Vec<String>>;

const KINDS: [(&str, Break); 5] = [
    ("past a buffer", past_a_buffer),
    ("past the arena", past_the_arena),
    ("misaligned", misaligned),
    ("read before written", read_before_written),
    ("overlap", overlap),
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

fn home(laid: &Laid, b: u32) -> &Home {
    &laid.lowered.buffers.list[b as usize].home
}

fn is_in_arena(laid: &Laid, span: &Span) -> bool {
    matches!(home(laid, span.at.base), Home::Arena)
}

fn past_a_buffer(laid: &mut Laid, rng: &mut Rng) -> Option<Vec<String>> {
    let (i, span) = pick(&spans(laid), rng)?;
    let b = span.at.base as usize;
    let offset =
        laid.lowered.buffers.list[b].bytes - span.extent.bytes + (1 + rng.below(3)) * span.extent.align;
    let mut is_first = true;
    let steps = &mut laid.lowered.steps;
    steps[i].each_span(laid.level, &mut |at, extent| {
        if at.base as usize == b && extent == span.extent && std::mem::take(&mut is_first) {
            at.offset = offset;
        }
    });
    laid.spans = Spans::of(steps, laid.level);
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
        let all = all.iter().filter(move |(_, span)| span.at.base == b && span.extent.access != Access::Read);
        all.map(|(i, _)| *i).collect::<Vec<usize>>()
    };
    let written_by = |i: usize| {
        let all = all.iter().filter(move |(of, span)| *of == i && span.extent.access != Access::Read);
        all.map(|(_, span)| span.at.base)
    };
    let reads: Vec<(usize, Span)> =
        all.iter().filter(|(_, span)| span.extent.access == Access::Read).copied().collect();
    let (_, read) = pick(&reads, rng)?;
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
        spans(laid).into_iter().filter(|(_, span)| matches!(home(laid, span.at.base), Home::Arena)).collect();
    let first = |b: u32| all.iter().find(|(_, span)| span.at.base == b).map(|(i, _)| *i);
    let mut pairs = Vec::new();
    for &(i, written) in all.iter().filter(|(_, span)| span.extent.access == Access::Write) {
        let new = written.at.base;
        // A value that was written before this step and is read after it.
        let is_read = |(j, span): &&(usize, Span)| *j > i && span.extent.access == Access::Read;
        for old in all.iter().filter(is_read).map(|(_, span)| span.at.base) {
            if old != new && first(new) == Some(i) && first(old).is_some_and(|first| first < i) {
                pairs.push((new, old));
            }
        }
    }
    let (new, old) = pick(&pairs, rng)?;
    let [new_bytes, old_bytes] = [new, old].map(|b| laid.lowered.buffers.list[b as usize].bytes);
    laid.places[new as usize].offset =
        laid.places[old as usize].offset + 64 * rng.below(old_bytes.div_ceil(64));
    laid.memory.bytes += new_bytes;
    Some(vec!["step ".into(), format!("buffer {new} ("), "of the arena)".into()])
}

/// The message of the check, if it refuses the plan.
fn refused_with(laid: &mut Laid) -> Option<String> {
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| laid.check()));
    checked.err().map(|panic| *panic.downcast::<String>().expect("a message with numbers"))
}

#[test]
fn broken_plans_are_refused_by_name() {
    let (mut rng, mut refused, mut seed) = (Rng(20), [0; KINDS.len()], 0);
    while refused.iter().any(|&n| n < 40) {
        seed += 1;
        assert!(seed < 4000, "no defects of some kind were drawn: {refused:?}");
        let dtype = [DType::F32, DType::F64][seed % 2];
        let square = Type::array(dtype, [40, 40]);
        let f = match seed % 5 {
            0 => grown(&mut rng, &[square.clone(), square.clone(), square], 60),
            _ => function(&mut rng, dtype),
        };
        let mut laid = lay_out(&f, Level::Portable, Trips::default());
        laid.check();
        let kind = seed % KINDS.len();
        let (name, make) = KINDS[kind];
        let Some(parts) = make(&mut laid, &mut rng) else { continue };
        let message = refused_with(&mut laid).unwrap_or_else(|| panic!("{name}, seed {seed}: not refused"));
        for part in parts {
            assert!(message.contains(&part), "{name}, seed {seed}: expected `{part}` in `{message}`");
        }
        refused[kind] += 1;
    }
}

#[test]
fn the_message_of_an_overlap_names_both_steps_and_both_buffers() {
    use crate::graph::{Builder, UnaryOp};
    let (mut b, x) = Builder::with_inputs(&[Type::array(DType::F32, [8, 8])]);
    // Two products, so that each value has a buffer.
    let first = b.dot(x[0], x[0], false, false);
    let second = b.dot(first, x[0], false, false);
    let sum = b.dot(first, second, false, false);
    let out = b.unary(UnaryOp::Exp, sum);
    let f = b.finish(&[out]);
    let mut laid = lay_out(&f, Level::Portable, Trips::default());
    laid.check();
    let arena: Vec<usize> = (0..laid.places.len())
        .filter(|&b| matches!(laid.lowered.buffers.list[b].home, Home::Arena))
        .collect();
    laid.places[arena[1]] = laid.places[arena[0]];
    let message = refusal(|| laid.check());
    let [a, b] = [arena[0], arena[1]].map(|b| format!("buffer {b} (256 bytes at byte 0 of the arena)"));
    let want = format!("step 1 (product) writes {b} over {a}, which it also uses");
    assert!(message.contains(&want), "{message}");
}

/// Runs a plan of 16 numbers on an input of `bytes` bytes that starts `skip` bytes after an aligned address.
#[cfg(debug_assertions)]
fn run_on(bytes: usize, skip: usize) {
    use crate::backend::cpu::address::Bound;
    use crate::backend::cpu::run::bind::Body;
    use crate::backend::cpu::{Plan, Workspace};
    use crate::graph::{Builder, UnaryOp};
    let (mut b, x) = Builder::with_inputs(&[Type::array(DType::F32, [16])]);
    let out = b.unary(UnaryOp::Exp, x[0]);
    let plan = Plan::compile(&b.finish(&[out]), Level::Portable);
    let (mut from, mut to) = ([0u64; 9], [0f32; 16]);
    let mut ws = Workspace::of(&plan);
    let mut body = Body { plan: &plan, ws: &mut ws };
    // SAFETY: the arrays outlive the run, and the input has 72 bytes.
    unsafe {
        let from = Bound::new((&raw mut from).cast(), 72);
        body.input(0, from.part(skip, bytes));
        body.output(0, Bound::new((&raw mut to).cast(), 64));
    }
    body.run();
}

#[cfg(debug_assertions)]
#[test]
fn debug_builds_compare_each_step_with_what_is_bound() {
    run_on(64, 0);
    run_on(64, 4);
    for (bytes, skip) in [(60, 0), (0, 0), (64, 1), (64, 6)] {
        let message = refusal(|| run_on(bytes, skip));
        assert!(message.contains("step 0 (elementwise) uses "), "{bytes} bytes, skip {skip}: {message}");
    }
    assert!(refusal(|| run_on(64, 12)).contains("76 bytes are used, 72 are bound"));
}
