//! No decision about speed or memory changes a bit: programs compiled with drawn decisions against the usual ones.

use super::{Rng, bits, random, run};
use crate::array::{Array, DType};
use crate::backend::cpu::compile::chaos::{Decision, with_seed};
use crate::backend::cpu::{Plan, Workspace};
use crate::graph::tests::arbitrary::{Recipe, function};
use crate::graph::{Checkpoints, Func, Node, Op, Policy, Solve, Type};
use crate::simd::Level;
use crate::transform::{Searches, batch_with, optimize, vjp};
use std::sync::Arc;

/// Programs, and drawn compilations of each. `CHAOS_PROGRAMS=<n>` sets another number of programs.
const NUM_PROGRAMS: u64 = 40;
const NUM_SEEDS: u64 = 4;

fn num_programs() -> u64 {
    std::env::var("CHAOS_PROGRAMS").map_or(NUM_PROGRAMS, |n| n.parse().expect("a number"))
}

fn floats(types: &[Type]) -> Vec<usize> {
    (0..types.len()).filter(|&k| types[k].is_float()).collect()
}

fn gradient(f: &Func) -> Func {
    vjp(f, &floats(&f.output_types()), &floats(&f.input_types())).expect("none of its loops is a gradient")
}

/// A program of one of five kinds: dozens of small operations; operations on matrices; loops and tiles; their gradient; the
/// same in lockstep.
fn program(seed: u64) -> Func {
    let mut rng = Rng(seed * 91 + 7);
    let float = if rng.below(2) == 0 { DType::F32 } else { DType::F64 };
    let loops = || {
        function(
            seed,
            Recipe {
                ops: 8 + seed as usize % 25,
                float,
                loops: true,
                short: seed.is_multiple_of(3),
                singular: false,
            },
        )
        .0
    };
    match seed % 5 {
        0 => random::function(&mut rng, float),
        1 => random::grown(&mut rng, &vec![Type::array(float, [40, 40]); 3], 60),
        2 => optimize(&loops()),
        3 => optimize(&gradient(&loops())),
        _ => {
            let f = loops();
            let mapped: Vec<bool> = (0..f.num_inputs()).map(|k| seed >> (k % 5) & 1 == 0).collect();
            optimize(&gradient(&batch_with(&f, &mapped, 2 + seed as usize % 3, Searches::Lockstep)))
        }
    }
}

fn arguments(f: &Func, seed: u64) -> Vec<Array> {
    let mut rng = Rng(seed + 1);
    f.input_types().iter().map(|ty| rng.array(ty)).collect()
}

fn all_bits(plan: &Plan, x: &[Array]) -> Vec<Vec<u64>> {
    run(plan, x).iter().map(bits).collect()
}

/// The bits of the results, and how the loops with residuals stored them: all, some, or none.
fn counted(plan: &Plan, x: &[Array]) -> (Vec<Vec<u64>>, Vec<usize>) {
    let types = plan.output_types().iter();
    let mut outputs: Vec<Array> = types.map(|ty| Array::zeros(ty.dtype(), ty.shape().clone())).collect();
    let mut ws = Workspace::new();
    plan.run_arrays(&mut ws, &x.iter().collect::<Vec<_>>(), &mut outputs);
    let mut report = plan.report().clone();
    ws.report_loops(&mut report);
    let with_residuals = report.all_loops().into_iter().filter(|l| l.residual_bytes > 0);
    let runs = with_residuals.filter_map(|l| l.last).filter(|run| run.runs == 1 && run.steps > 0);
    let kind = |made: u64, steps: u64| usize::from(made > 0) + usize::from(made >= steps);
    let kinds = runs.map(|run| kind(run.recomputed_residuals, run.steps as u64)).collect();
    (outputs.iter().map(bits).collect(), kinds)
}

#[test]
fn no_drawn_decision_changes_a_bit() {
    let (mut draws, mut names) = ([0; Decision::ALL.len()], std::collections::BTreeMap::new());
    for seed in 0..num_programs() {
        let f = program(seed);
        f.nodes().iter().for_each(|node| *names.entry(node.op.name()).or_insert(0) += 1);
        let x = arguments(&f, seed);
        for level in Level::available() {
            let want = all_bits(&Plan::compile(&f, level), &x);
            for chaos in 0..NUM_SEEDS {
                let (plan, num) = with_seed(1 + seed * NUM_SEEDS + chaos, || Plan::compile(&f, level));
                assert_eq!(all_bits(&plan, &x), want, "program {seed}, decisions {chaos}, {level:?}:\n{f}");
                draws.iter_mut().zip(num).for_each(|(all, num)| *all += num);
            }
        }
    }
    for (decision, draws) in Decision::ALL.iter().zip(draws) {
        assert!(draws > num_programs(), "{decision:?} was drawn {draws} times");
    }
    for name in ["solve", "replay", "tiles", "dot", "gather", "reduce_sum"] {
        assert!(names.contains_key(name), "no program has {name}: {names:?}");
    }
}

/// `f` with searches under another policy.
fn under(f: &Func, policy: Policy) -> Func {
    let with = |node: &Node| match &node.op {
        Op::Solve(s) => Node { op: Op::Solve(Arc::new(Solve { policy, ..Solve::clone(s) })), ..node.clone() },
        _ => node.clone(),
    };
    Func::new(f.nodes().iter().map(with).collect(), f.inputs().to_vec(), f.outputs().to_vec())
}

/// Loops, alone and as 3 rows in lockstep, with 1 to 9 stored states, with 100 to 10,000 bytes of states and residuals, and
/// with all of both. All have drawn decisions, by which none, some or all of the residuals are stored.
#[test]
fn no_number_of_stored_states_or_residuals_changes_a_bit() {
    // Runs of one row and in lockstep that stored all residuals, some, and none.
    let mut stored = [[0; 3]; 2];
    let recipe = Recipe { ops: 12, float: DType::F64, loops: true, short: false, singular: false };
    let drawn = (1000..).map(|seed| (seed, function(seed, recipe).0));
    let with_loops = drawn.filter(|(_, f)| f.nodes().iter().any(|node| matches!(node.op, Op::Solve(_))));
    for (seed, f) in with_loops.take(num_programs() as usize / 8) {
        let mut rng = Rng(seed);
        let mut policies = vec![Policy::Checkpoint(Checkpoints::Auto), Policy::Direct];
        policies.extend((0..2).map(|_| Policy::Checkpoint(Checkpoints::Count(1 + rng.below(9)))));
        policies.extend((0..2).map(|_| Policy::Checkpoint(Checkpoints::Bytes(100 + rng.below(9_900)))));
        for is_lockstep in [false, true] {
            let make = |policy| {
                let f = under(&f, policy);
                let many = |f: &Func| batch_with(f, &vec![true; f.num_inputs()], 3, Searches::Lockstep);
                optimize(&gradient(&if is_lockstep { many(&f) } else { f }))
            };
            let direct = make(Policy::Direct);
            let x = arguments(&direct, seed);
            let (want, _) = counted(&Plan::compile(&direct, Level::detect()), &x);
            for &policy in &policies {
                let g = make(policy);
                for chaos in 0..NUM_SEEDS {
                    let (plan, _) =
                        with_seed(7 + seed * NUM_SEEDS + chaos, || Plan::compile(&g, Level::detect()));
                    let (found, kinds) = counted(&plan, &x);
                    assert!(
                        found == want,
                        "program {seed}, {policy:?}, decisions {chaos}, lockstep {is_lockstep}"
                    );
                    kinds.into_iter().for_each(|kind| stored[usize::from(is_lockstep)][kind] += 1);
                }
            }
        }
    }
    let is_all = stored.iter().flatten().all(|&runs| runs > 0);
    assert!(is_all, "{stored:?} runs of one row and in lockstep stored all, some and no residuals");
}
