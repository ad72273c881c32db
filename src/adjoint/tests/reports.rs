//! Plan reports of the states that solves store: the choice, its reason and the result.

use crate::adjoint::{Adjoint, Checkpoints};
use crate::array::DType;
use crate::backend::{BodyKind, LoopReport, LoopRun};
use crate::ode::{ConstantStepSize, Ode};
use crate::tensor::{RunReport, Tensor, grad, jit, map_rows};

/// The report of a gradient through 200 constant steps of 25 numbers, before and after a run, and the run's
/// counters.
fn reports(adjoint: Adjoint) -> (LoopReport, LoopReport, RunReport) {
    let f = jit(move |p: Tensor| {
        grad(
            |p: &Tensor| {
                let ode = Ode::new(|_t, y: &Tensor| -(p * y)).controller(ConstantStepSize { dt0: 0.005 });
                ode.adjoint(adjoint).solve(0.0, 1.0, Tensor::full(DType::F64, [25], 1.0)).unwrap().y1.sum()
            },
            &p,
        )
    });
    let report = || f.plan(&(Tensor::from(1.0),)).unwrap().loops[0].clone();
    let before = report();
    f.call(1.0).unwrap();
    (before, report(), f.last_run())
}

#[test]
fn a_choice_by_bytes_reports_its_budget_and_recomputed_steps() {
    if crate::backend::oracle_lacks("report of stored states") {
        return;
    }
    // 25 f64 are 200 bytes, 256 with alignment: 1,300 bytes have room for 5.
    let adjoint = Adjoint::RecursiveCheckpoint { checkpoints: Checkpoints::Bytes(1300) };
    let (before, after, run) = reports(adjoint);
    assert_eq!((before.state_bytes, before.budget_bytes(), before.slots), (256, Some(1300), Some(5)));
    assert_eq!((before.last, before.with_steps(200).recomputed), (None, run.recomputed));
    let last = LoopRun { runs: 1, steps: 200, kept: 5, recomputed: run.recomputed, recomputed_residuals: 0 };
    assert!(run.recomputed > 200 && !last.fits());
    assert_eq!((after.last, after.with_steps(200)), (Some(last), last));
    let text = format!(
        "256 bytes per state, 1300 bytes: 5 slots; 200 steps: 5 states stored, {} steps recomputed",
        run.recomputed
    );
    assert_eq!(after.to_string(), text);
}

#[test]
fn the_automatic_choice_stores_and_reports_every_state_of_a_known_number_that_fits() {
    if crate::backend::oracle_lacks("report of stored states") {
        return;
    }
    let (before, after, run) = reports(Adjoint::default());
    assert_eq!((before.budget_bytes(), before.slots), (Some(32 << 20), Some((32 << 20) / 256)));
    assert_eq!((run.recomputed, run.states_kept_max), (0, 200));
    assert_eq!(
        after.last,
        Some(LoopRun { runs: 1, steps: 200, kept: 200, recomputed: 0, recomputed_residuals: 0 })
    );
    assert!(after.to_string().ends_with("every state fits: nothing is recomputed"), "{after}");
    let (_, direct, _) = reports(Adjoint::Direct);
    assert_eq!((direct.slots, direct.last, direct.budget_bytes()), (None, after.last, None));
}

#[test]
fn loops_in_tiles_are_reported_together() {
    if crate::backend::oracle_lacks("report of stored states") {
        return;
    }
    let f = jit(|p: Tensor| {
        grad(
            |p: &Tensor| {
                let (_, sums) = map_rows(&[Tensor::iota(DType::F64, [23, 2], 0)], 4, |x| {
                    let ode = Ode::new(|_t, y: &Tensor| -(p * y)).controller(ConstantStepSize { dt0: 0.1 });
                    let ode = ode.adjoint(Adjoint::recursive_checkpoint(3));
                    (vec![], vec![ode.solve(0.0, 1.0, &x[0]).unwrap().y1.sum()])
                });
                sums[0].clone()
            },
            &p,
        )
    });
    f.call(1.0).unwrap();
    let (plan, run) = (f.plan(&(Tensor::from(1.0),)).unwrap(), f.last_run());
    let all: Vec<LoopRun> = plan.all_loops().iter().map(|l| l.last.unwrap()).collect();
    // Five tiles of four rows and one of three.
    assert_eq!(all.iter().map(|l| (l.runs, l.steps, l.kept)).collect::<Vec<_>>(), [(5, 10, 3), (1, 10, 3)]);
    assert_eq!(all.iter().map(|l| l.recomputed).sum::<u64>(), run.recomputed);
    assert!(plan.to_string().contains("5 runs of at most 10 steps: 3 states stored"), "{plan}");
}

#[test]
fn solves_in_stages_are_reported_where_they_ran() {
    if crate::backend::oracle_lacks("report of stored states") {
        return;
    }
    let f = jit(|p: Tensor| {
        let loss = |p: &Tensor| {
            let inner = |y: &Tensor| {
                let ode = Ode::new(|_t, z: &Tensor| -(p * z)).controller(ConstantStepSize { dt0: 0.25 });
                ode.adjoint(Adjoint::Direct).solve(0.0, 1.0, y).unwrap().y1.square().sum()
            };
            let ode = Ode::new(|_t, y: &Tensor| -grad(inner, y)).rtol(1e-5).atol(1e-8);
            ode.adjoint(Adjoint::Direct).solve(0.0, 1.0, Tensor::ones([4])).unwrap().y1.sum()
        };
        grad(loss, &p)
    });
    f.call(1.0).unwrap();
    let plan = f.plan(&(Tensor::from(1.0),)).unwrap();
    let attempts = plan.bodies.iter().filter(|(body, _)| *body == BodyKind::Attempt);
    let runs: Vec<usize> =
        attempts.flat_map(|(_, of)| of.all_loops()).map(|l| l.last.unwrap().runs).collect();
    // An attempt runs the inner solve once per stage.
    assert!(runs.len() == 6 && runs[0] > 1 && runs.iter().all(|n| *n == runs[0]), "{runs:?}");
}
