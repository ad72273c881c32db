//! Plans that are broken on purpose are refused, with the names of the step and the buffers.
//!
//! A plan is one of a random function (without loops) of 10 to 60 operations, of a function that puts values together
//! from parts, or of the body of a loop with packed weights, a ring of deferred products and sums, in f32 and in f64. One
//! random defect of one of [`KINDS`] is made in it. The test draws until it has refused each kind forty times. Another
//! test binds too little memory to a good plan.

use super::Rng;
use super::defects::KINDS;
use super::random::{function, grown, node};
use crate::array::{DType, refusal};
use crate::backend::cpu::compile::buffers::Home;
use crate::backend::cpu::plan::{Laid, Trips, lay_out};
use crate::graph::{Builder, Func, Op, ReduceOp, Type, UnaryOp};
use crate::simd::Level;

/// The message of the check, if it refuses the plan.
fn refused_with(laid: &mut Laid) -> Option<String> {
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| laid.check()));
    checked.err().map(|panic| *panic.downcast::<String>().expect("a message with numbers"))
}

/// The body of a loop: products by captured weights, products that are summed over the trips, one of them deferred, sums of
/// one and of several elements.
fn body(rng: &mut Rng, dtype: DType) -> (Func, Trips) {
    let square = Type::array(dtype, [40, 40]);
    let (mut b, x) = Builder::with_inputs(&vec![square.clone(); 5]);
    let mut values = x[..3].to_vec();
    values.push(b.dot(x[0], x[3], false, false));
    for _ in 0..10 + rng.below(30) {
        let of = values[rng.below(values.len())];
        values.extend(node(rng, &mut b, &values, of));
    }
    let squares: Vec<_> = values.iter().copied().filter(|&v| *b.ty(v) == square).collect();
    let mut drawn = || squares[rng.below(squares.len())];
    let (left, right, summed, result) = (drawn(), drawn(), drawn(), drawn());
    let product = b.dot(left, right, true, false);
    // Few rows: such products wait in a ring.
    let few = |b: &mut Builder, of| b.push(Op::Slice { start: vec![0, 0], limit: vec![3, 40] }, &[of], None);
    let (few_left, few_right) = (few(&mut b, left), few(&mut b, right));
    let deferred = b.dot(few_left, few_right, true, false);
    let one = b.reduce(ReduceOp::Sum, summed, vec![0, 1]);
    let last = b.dot(result, x[4], false, false);
    let f = b.finish(&[result, last, product, deferred, summed, one]);
    (f, Trips { captured: 3..5, sums: 2..6 })
}

/// Values that are put together from others, each of which needs steps of its own.
fn of_parts(rng: &mut Rng, dtype: DType) -> Func {
    let square = Type::array(dtype, [40, 40]);
    let (mut b, x) = Builder::with_inputs(&vec![square.clone(); 3]);
    let mut values = x.clone();
    for _ in 0..4 + rng.below(6) {
        let mut parts: Vec<_> = (0..2 + rng.below(3)).map(|_| values[rng.below(values.len())]).collect();
        for part in &mut parts {
            if rng.below(3) > 0 {
                *part = b.dot(*part, x[rng.below(3)], false, false);
            }
        }
        let limit = vec![40 * parts.len(), 40];
        let all = b.push(Op::Concat { axis: 0 }, &parts, None);
        let all = b.unary(UnaryOp::Tanh, all);
        let start = 40 * rng.below(parts.len());
        let part = b.push(Op::Slice { start: vec![start, 0], limit: vec![start + 40, 40] }, &[all], None);
        let whole = b.push(Op::Slice { start: vec![0, 0], limit }, &[all], None);
        let folded = b.dot(whole, whole, true, false);
        values.extend([part, folded]);
    }
    b.finish(&values[values.len() - 2..])
}

fn drawn(seed: usize, rng: &mut Rng) -> Laid {
    let dtype = [DType::F32, DType::F64][seed % 2];
    let square = Type::array(dtype, [40, 40]);
    let (f, trips) = match seed / 2 % 4 {
        0 => (grown(rng, &[square.clone(), square.clone(), square], 60), Trips::default()),
        1 => body(rng, dtype),
        2 => (of_parts(rng, dtype), Trips::default()),
        _ => (function(rng, dtype), Trips::default()),
    };
    let laid = lay_out(&f, Level::Portable, trips);
    assert_eq!(laid.lowered.rings.is_empty(), laid.sums.is_empty(), "bodies have rings");
    laid
}

#[test]
fn broken_plans_are_refused_by_name() {
    for (kind, (name, make)) in KINDS.into_iter().enumerate() {
        let (mut rng, mut refused, mut seed) = (Rng(20 + kind as u64), 0, 0);
        while refused < 40 {
            seed += 1;
            assert!(seed < 4000, "{name}: only {refused} defects of this kind were drawn");
            let mut laid = drawn(seed, &mut rng);
            laid.check();
            let Some(parts) = make(&mut laid, &mut rng) else { continue };
            let message =
                refused_with(&mut laid).unwrap_or_else(|| panic!("{name}, seed {seed}: not refused"));
            for part in parts {
                assert!(message.contains(&part), "{name}, seed {seed}: expected `{part}` in `{message}`");
            }
            refused += 1;
        }
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
