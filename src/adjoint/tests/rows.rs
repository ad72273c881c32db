//! Rows that do not share their steps: bit-equal to single rows, their gradients, and independence of other
//! rows.

use crate::adjoint::{Adjoint, Batching, TensorSolution};
use crate::array::{Array, DType};
use crate::backend::{Backend, available};
use crate::graph::{Func, Type, interpret, verify};
use crate::ode::{ConfigError, Method, Ode, Outcome, SaveAt, SolveError, StepTo};
use crate::tensor::{Tensor, Tree, grad, jit, jvp, map_rows, trace, value_and_grad, vmap};
use crate::transform;

/// The weights of two layers, `[2, 5]` and `[5, 2]`.
type Weights = (Tensor, Tensor);

const W: [[f64; 5]; 2] = [[0.7, -1.1, 0.3, 0.9, -0.4], [0.2, 0.8, -0.6, 1.3, 0.5]];
const V: [[f64; 2]; 5] = [[0.6, -0.3], [-0.9, 0.4], [0.2, 1.1], [0.5, -0.7], [-0.1, 0.8]];

fn weights() -> Weights {
    (Tensor::from(W), Tensor::from(V))
}

/// Larger values change faster.
const Y0: [[f64; 2]; 5] = [[1.0, -0.5], [30.0, 2.0], [0.01, 0.02], [-4.0, 9.0], [0.3, 0.1]];

/// tanh(y w) v - |y| y / 2 + sin 2t
fn rate((w, v): &Weights, t: &Tensor, y: &Tensor) -> Tensor {
    y.matmul(w).tanh().matmul(v) - y.abs() * y * 0.5 + (t * 2.0).sin().cast(y.dtype())
}

fn plain_rate(t: f64, y: [f64; 2]) -> [f64; 2] {
    let mut dy = [0.0; 2];
    for k in 0..5 {
        let h = (y[0] * W[0][k] + y[1] * W[1][k]).tanh();
        (0..2).for_each(|i| dy[i] += h * V[k][i]);
    }
    [0, 1].map(|i| dy[i] - y[i].abs() * y[i] * 0.5 + (2.0 * t).sin())
}

/// One time is repeated and saved once; the last is t1.
const TS: [f64; 6] = [0.0, 0.001, 0.4, 0.4, 0.9, 1.5];
const NUM_TIMES: usize = 5;

struct Setup {
    method: Method,
    adjoint: Adjoint,
    save_at: SaveAt,
    ends: (Tensor, Tensor),
    ts: Option<Tensor>,
}

fn setup() -> Setup {
    let ends = (Tensor::from(0.0), Tensor::from(1.5));
    Setup {
        method: Method::Tsit5,
        adjoint: Adjoint::default(),
        save_at: SaveAt::ts(&TS).and_t1(),
        ends,
        ts: None,
    }
}

fn solve(s: &Setup, p: &Weights, y0: &Tensor, batching: Batching) -> crate::Result<TensorSolution<Tensor>> {
    let ode = Ode::new(|t: Tensor, y: &Tensor| rate(p, &t, y)).method(s.method).adjoint(s.adjoint);
    let ode = ode.rtol(1e-5).atol(1e-7).batching(batching);
    let ode = match &s.ts {
        Some(ts) => ode.save_at(ts),
        None => ode.save_at(s.save_at.clone()),
    };
    Ok(ode.solve(s.ends.0.clone(), s.ends.1.clone(), y0)?)
}

fn found(s: &TensorSolution<Tensor>) -> [Vec<f64>; 7] {
    let t = &s.stats;
    let rows_first = s.ys.permute(&[1, 0, 2]);
    [&s.y1, &rows_first, &s.t1, &t.num_steps, &t.num_accepted, &t.num_rejected, &t.num_fn_evals]
        .map(Tensor::to_vec)
}

fn together(parts: Vec<[Vec<f64>; 7]>) -> [Vec<f64>; 7] {
    let mut all = <[Vec<f64>; 7]>::default();
    parts.into_iter().for_each(|part| all.iter_mut().zip(part).for_each(|(all, part)| all.extend(part)));
    all
}

#[test]
fn rows_together_have_the_bits_of_rows_one_by_one() {
    use Method::*;
    for (method, dtype) in
        [(Tsit5, DType::F64), (Dopri5, DType::F32), (Bosh3, DType::F64), (Vern7, DType::F64)]
    {
        let s = Setup { method, ..setup() };
        let (p, y0) = (weights(), Tensor::from(Y0).cast(dtype));
        let p = (p.0.cast(dtype), p.1.cast(dtype));
        let rows =
            |from: usize, to: usize| found(&solve(&s, &p, &y0.slice(0, from..to), Batching::Joint).unwrap());
        let singles = together((0..5).map(|r| rows(r, r + 1)).collect());
        let got = solve(&s, &p, &y0, Batching::PerRow).unwrap();
        assert_eq!(got.ys.shape().to_vec(), [NUM_TIMES, 5, 2]);
        assert_eq!(found(&got), singles, "{method:?}");
        assert_eq!(found(&solve(&s, &p, &y0, Batching::Groups(1)).unwrap()), singles);
        let pairs = together(vec![rows(0, 2), rows(2, 4), rows(4, 5)]);
        assert_eq!(found(&solve(&s, &p, &y0, Batching::Groups(2)).unwrap()), pairs);
        assert_eq!(found(&solve(&s, &p, &y0, Batching::Groups(9)).unwrap()), rows(0, 5));
        let reversed = Setup { ends: (Tensor::from(0.2), Tensor::from(0.17)), save_at: SaveAt::t1(), ..s };
        let one = |b| found(&solve(&reversed, &p, &y0, b).unwrap());
        assert_eq!(one(Batching::PerRow), one(Batching::Groups(1)));
    }
}

#[test]
fn rows_have_the_counts_and_values_of_plain_states() {
    let got = solve(&setup(), &weights(), &Tensor::from(Y0), Batching::PerRow).unwrap();
    let (ys, stats) = (got.ys.permute(&[1, 0, 2]).to_vec(), &got.stats);
    let counts: Vec<Vec<f64>> =
        [&stats.num_steps, &stats.num_accepted, &stats.num_fn_evals].map(Tensor::to_vec).to_vec();
    for (r, y0) in Y0.into_iter().enumerate() {
        let plain = Ode::new(|t, y: &[f64; 2]| plain_rate(t, *y)).rtol(1e-5).atol(1e-7);
        let plain = plain.save_at(SaveAt::ts(&TS).and_t1()).solve(0.0, 1.5, y0).unwrap();
        assert_eq!(counts[0][r] as u64, plain.stats.num_steps);
        assert_eq!(counts[1][r] as u64, plain.stats.num_accepted);
        assert_eq!(counts[2][r] as u64, plain.stats.num_fn_evals);
        for (a, b) in ys[r * 2 * NUM_TIMES..][..2 * NUM_TIMES].iter().zip(plain.ys.concat()) {
            assert!((a - b).abs() <= 1e-11 * b.abs().max(1e-2), "row {r}: {a} against {b}");
        }
    }
    assert_eq!(got.t1.to_vec(), [1.5; 5]);
    assert_eq!(got.outcomes(), vec![Outcome::Completed; 5]);
    assert_eq!(got.reached_t1().to_vec(), [1.0; 5]);
}

type All = (Weights, Tensor, (Tensor, Tensor), Tensor);

fn all() -> All {
    let ends = (Tensor::from(0.0), Tensor::from(1.5));
    (weights(), Tensor::from(Y0), ends, Tensor::from([0.001, 0.4, 0.4, 0.9, 1.3]))
}

/// A sum in which every saved state has a different weight.
fn loss((p, y0, ends, ts): &All, adjoint: Adjoint, batching: Batching) -> Tensor {
    let s = Setup { adjoint, ends: ends.clone(), ts: Some(ts.clone()), ..setup() };
    let solution = solve(&s, p, y0, batching).unwrap();
    let weigh = |y: &Tensor| {
        (y * (Tensor::iota(DType::F64, [y.size()], 0) + 1.0).sin().reshape(y.shape().clone())).sum()
    };
    weigh(&solution.ys) + weigh(&solution.y1.sin())
}

fn gradient(adjoint: Adjoint, batching: Batching) -> Vec<Vec<f64>> {
    grad(|x: &All| loss(x, adjoint, batching), &all()).leaves().iter().map(Tensor::to_vec).collect()
}

fn assert_near(got: &[Vec<f64>], want: &[Vec<f64>], tol: f64, what: &str) {
    for (k, (g, w)) in got.iter().zip(want).enumerate() {
        let scale = w.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        assert!(scale > 0.0 && g.len() == w.len(), "{what}: {k}");
        for (i, (g, w)) in g.iter().zip(w).enumerate() {
            assert!((g - w).abs() <= tol * scale, "{what}, leaf {k}, number {i}: {g} against {w}");
        }
    }
}

#[test]
fn gradients_are_those_of_rows_alone_and_the_same_bits_for_every_number_of_checkpoints() {
    let direct = gradient(Adjoint::Direct, Batching::PerRow);
    for checkpoints in [1, 2, 5, 1000] {
        let got = gradient(Adjoint::recursive_checkpoint(checkpoints), Batching::PerRow);
        assert_eq!(got, direct, "{checkpoints} checkpoints");
    }
    let alone = gradient(Adjoint::recursive_checkpoint(3), Batching::Groups(1));
    assert_near(&direct, &alone, 1e-13, "lockstep");
    assert_near(&direct[2..3], &alone[2..3], 1e-15, "by y0");
    let pairs = gradient(Adjoint::Direct, Batching::Groups(2));
    assert_eq!(pairs, gradient(Adjoint::recursive_checkpoint(2), Batching::Groups(2)));
}

#[test]
fn gradients_equal_central_differences_on_the_rows_own_grids() {
    let step_times: Vec<Vec<f64>> = Y0
        .into_iter()
        .map(|y0| {
            let plain = Ode::new(|t, y: &[f64; 2]| plain_rate(t, *y)).rtol(1e-5).atol(1e-7);
            plain.solve(0.0, 1.5, y0).unwrap().step_times
        })
        .collect();
    let end = |p: &Weights, y0: &Tensor| {
        let row = |(r, ts): (usize, &Vec<f64>)| {
            let ode = Ode::new(|t: Tensor, y: &Tensor| rate(p, &t, y)).controller(StepTo { ts: ts.clone() });
            ode.solve(0.0, 1.5, y0.slice(0, r..r + 1)).unwrap().y1.sin().sum().item()
        };
        step_times.iter().enumerate().map(row).sum::<f64>()
    };
    let s = Setup { save_at: SaveAt::t1(), adjoint: Adjoint::recursive_checkpoint(4), ..setup() };
    let at = (weights(), Tensor::from(Y0));
    let (value, gradient) = value_and_grad(
        |(p, y0): &(Weights, Tensor)| solve(&s, p, y0, Batching::PerRow).unwrap().y1.sin().sum(),
        &at,
    );
    assert!((value.item() - end(&at.0, &at.1)).abs() < 1e-10);
    let leaves = at.leaves();
    for (k, d) in gradient.leaves().iter().enumerate() {
        for (i, d) in d.to_vec().into_iter().enumerate() {
            let moved = |h: f64| {
                let mut leaves = leaves.clone();
                let mut x = leaves[k].to_vec();
                x[i] += h;
                leaves[k] = Tensor::from(&x[..]).reshape(leaves[k].shape().clone());
                let (p, y0) = at.with_leaves(leaves);
                end(&p, &y0)
            };
            let want = (moved(1e-6) - moved(-1e-6)) / 2e-6;
            assert!((d - want).abs() < 1e-7, "leaf {k}, number {i}: {d} against {want}");
        }
    }
}

/// A solve to t = 1 with a field that is NaN after t = 1. Some rows take one step, others hundreds.
fn until_one(rate: &Tensor, y0: &Tensor, adjoint: Adjoint, batching: Batching) -> TensorSolution<Tensor> {
    let ode = Ode::new(|t: Tensor, y: &Tensor| -(y * rate).square() * y * (1.0 - t).sqrt().exp());
    ode.rtol(1e-9).atol(1e-11).adjoint(adjoint).batching(batching).solve(0.0, 1.0, y0).unwrap()
}

#[test]
fn a_row_of_one_step_waits_for_one_of_hundreds_and_never_steps_past_its_end() {
    let (rate, y0) = (Tensor::from(1.0), Tensor::from([[1e-4], [700.0], [0.1], [1e-4]]));
    let of = |adjoint, batching| {
        value_and_grad(
            |(rate, y0): &(Tensor, Tensor)| until_one(rate, y0, adjoint, batching).y1.sum(),
            &(rate.clone(), y0.clone()),
        )
    };
    let counts = until_one(&rate, &y0, Adjoint::Direct, Batching::PerRow).stats.num_accepted.to_vec();
    assert!(counts[0] <= 2.0 && counts[3] == counts[0] && counts[1] > 200.0, "{counts:?}");
    let (value, (rates, states)) = of(Adjoint::Direct, Batching::Groups(1));
    for checkpoints in [1, 2, 5, 1000] {
        let (v, (r, s)) = of(Adjoint::recursive_checkpoint(checkpoints), Batching::PerRow);
        assert_eq!((v.to_vec(), s.to_vec()), (value.to_vec(), states.to_vec()));
        assert!((r.item() - rates.item()).abs() <= 1e-13 * rates.item().abs(), "{r:?} {rates:?}");
    }
}

fn blow_up(
    y0: &Tensor,
    batching: Batching,
) -> Result<TensorSolution<Tensor>, SolveError<TensorSolution<Tensor>>> {
    let ode = Ode::new(|_t, y: &Tensor| y.square()).batching(batching).save_at([0.25, 1.0]);
    ode.solve(0.0, 1.0, y0)
}

#[test]
fn a_row_that_fails_leaves_the_others_as_they_are_and_is_named() {
    let (good, bad) =
        (Tensor::from([[0.1], [0.2], [0.5], [0.3]]), Tensor::from([[0.1], [0.2], [3.0], [0.3]]));
    for batching in [Batching::PerRow, Batching::Groups(1), Batching::Groups(2)] {
        let (want, error) = (blow_up(&good, batching).unwrap(), blow_up(&bad, batching).unwrap_err());
        let SolveError::Incomplete { outcome, row: Some(2), partial: got, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(outcome, got.outcome());
        let failed: Vec<bool> = got.outcomes().iter().map(|o| !o.reached_t1()).collect();
        let per_group = if batching == Batching::Groups(2) { 2 } else { 1 };
        let wanted: Vec<bool> = (0..4 / per_group).map(|g| g == 2 / per_group).collect();
        assert_eq!((failed, got.outcome().reached_t1()), (wanted, false));
        for r in [0, 1] {
            assert_eq!(got.ys.slice(1, r..r + 1).to_vec(), want.ys.slice(1, r..r + 1).to_vec());
        }
        assert!(got.ys.slice(1, 2..3).to_vec()[1].is_nan());
        let (group, num_saved) = (2 / per_group, got.num_saved.to_vec());
        assert_eq!((num_saved[0], num_saved[group]), (2.0, 1.0));
        assert_eq!(got.ts.column(0).to_vec(), [0.25, 1.0]);
        assert!(got.ts.column(group).to_vec()[1].is_nan());
        assert!(got.t1.to_vec()[2 / per_group] < 0.5, "{:?}", got.t1.to_vec());
        let jitted = jit(move |y: Tensor| Ok(blow_up(&y, batching)?.y1));
        let Err(crate::Error::Solve(SolveError::Incomplete { row: Some(row), outcome, .. })) =
            jitted.call(bad.clone())
        else {
            panic!("the solve must fail")
        };
        assert_eq!((row, outcome), (2, got.outcome()));
        let tiles = map_rows(&[Tensor::concat(&[&good, &bad], 0)], 4, |x| {
            Ok((vec![blow_up(&x[0], batching)?.y1], vec![]))
        });
        let Err(crate::Error::Solve(SolveError::Incomplete { row: Some(row), .. })) = tiles else {
            panic!("the solve must fail")
        };
        assert_eq!(row, 6);
    }
}

#[test]
fn a_state_without_rows_and_groups_without_any_are_refused() {
    let error = |y0: &Tensor, b| match blow_up(y0, b) {
        Err(SolveError::Config(e)) => e,
        other => panic!("{other:?}"),
    };
    assert!(matches!(error(&Tensor::from(1.0), Batching::PerRow), ConfigError::NoRows { .. }));
    assert!(matches!(error(&Tensor::from([1.0]), Batching::Groups(0)), ConfigError::EmptyGroups));
    let pair = (Tensor::zeros([3, 2]), Tensor::zeros([2]));
    let ode = Ode::new(|_t, y: &(Tensor, Tensor)| y.clone()).batching(Batching::PerRow);
    let e = ode.solve(0.0, 1.0, &pair).unwrap_err().to_string();
    assert!(e.ends_with("but the leaves have shapes [3,2], [2]; use `Batching::Joint`"), "{e}");
    let uneven = Ode::new(|_t, y: &Tensor| -y).rtol(vec![1e-3, 1e-4]).batching(Batching::Groups(2));
    let e = crate::Error::from(uneven.solve(0.0, 1.0, Tensor::ones([3])).unwrap_err());
    assert!(matches!(e, crate::Error::Config(ConfigError::UnevenGroups { rows: 3, size: 2 })), "{e}");
}

#[test]
fn trees_and_rows_of_numbers_keep_the_shapes_of_rows_that_share_their_steps() {
    for batching in [Batching::PerRow, Batching::Groups(2)] {
        let ode = Ode::new(|_t, (_, v): &(Tensor, Tensor)| (v.sum_axes(&[1]), -v)).batching(batching);
        let s = ode.save_at([0.5, 1.0]).solve(0.0, 1.0, &(Tensor::ones([3]), Tensor::ones([3, 2]))).unwrap();
        assert_eq!((s.ys.0.shape().to_vec(), s.ys.1.shape().to_vec()), (vec![2, 3], vec![2, 3, 2]));
        let ode = Ode::new(|_t, y: &Tensor| -y).batching(batching).save_at([0.25, 0.5]);
        let s = ode.solve(0.0, 1.0, Tensor::from([1.0, 2.0, 3.0])).unwrap();
        assert_eq!((s.ys.shape().to_vec(), s.ts.column(1).to_vec()), (vec![2, 3], vec![0.25, 0.5]));
        assert!((s.ys.to_vec()[5] - 3.0 * (-0.5_f64).exp()).abs() < 1e-6);
    }
}

#[test]
fn forward_derivatives_and_those_of_gradients_are_those_of_rows_alone() {
    let direction =
        all().with_leaves(all().leaves().iter().map(|x| (x * 3.0 + 1.0).sin()).collect::<Vec<_>>());
    let checkpointed = Adjoint::recursive_checkpoint(3);
    let along = |adjoint, batching| {
        let (y, dy) = jvp(|x: &All| loss(x, adjoint, batching), &all(), &direction);
        vec![y.to_vec(), dy.to_vec()]
    };
    let (rows, alone) =
        (along(Adjoint::ForwardMode, Batching::PerRow), along(Adjoint::ForwardMode, Batching::Groups(1)));
    assert_near(&rows, &alone, 1e-13, "forward");
    let gradient: f64 = gradient(checkpointed, Batching::PerRow)
        .iter()
        .zip(direction.leaves())
        .map(|(g, d)| g.iter().zip(d.to_vec()).map(|(g, d)| g * d).sum::<f64>())
        .sum();
    assert!((rows[1][0] - gradient).abs() < 1e-10 * gradient.abs(), "{} {gradient}", rows[1][0]);
    let twice = |batching| -> Vec<Vec<f64>> {
        let of = |x: &All| grad(|x: &All| loss(x, checkpointed, batching), x);
        jvp(of, &all(), &direction).1.leaves().iter().map(Tensor::to_vec).collect()
    };
    assert_near(&twice(Batching::PerRow), &twice(Batching::Groups(1)), 1e-11, "forward over reverse");
}

fn run(backend: &dyn Backend, f: &Func, args: &[Array]) -> Vec<Array> {
    let program = backend.compile(f);
    let zeros = |ty: &Type| Array::zeros(ty.dtype(), ty.shape().clone());
    let mut out: Vec<Array> = program.output_types().iter().map(zeros).collect();
    let (refs, mut runner) = (args.iter().collect::<Vec<_>>(), program.runner());
    // The second run uses the buffers of the first.
    (0..2).for_each(|_| runner.run(&refs, &mut out));
    out
}

#[test]
fn a_plan_in_lockstep_gives_what_the_interpreter_gives() {
    let x = all();
    let args: Vec<Array> = x.leaves().iter().map(|x| x.array().clone()).collect();
    let types: Vec<_> = x.leaves().iter().map(Tensor::ty).collect();
    let adjoint = Adjoint::recursive_checkpoint(2);
    let programs = [
        trace(&types, &mut |l| vec![loss(&x.with_leaves(l.to_vec()), adjoint, Batching::PerRow)]),
        trace(&types, &mut |l| {
            grad(|x: &All| loss(x, adjoint, Batching::PerRow), &x.with_leaves(l.to_vec())).leaves()
        }),
        trace(&types, &mut |l| {
            let x = x.with_leaves(l.to_vec());
            let of = |x: &All| grad(|x: &All| loss(x, adjoint, Batching::PerRow), x);
            jvp(of, &x, &x).1.leaves()
        }),
    ];
    for (k, program) in programs.iter().enumerate() {
        let f = &program.func;
        verify(f).unwrap();
        let want = interpret(f, &args).unwrap();
        let f = transform::optimize(f);
        verify(&f).unwrap();
        for backend in available() {
            let got = run(&*backend, &f, &args);
            let numbers = |all: &[Array]| all.iter().map(Array::to_f64).collect::<Vec<_>>();
            let n = program.num_outputs;
            assert_near(
                &numbers(&got[..n]),
                &numbers(&want[..n]),
                1e-9,
                &format!("program {k} on {}", backend.name()),
            );
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let of = |(p, y0): &(Weights, Tensor)| {
                let rows = |x: &[Tensor]| {
                    let y = solve(&setup(), p, &x[0], Batching::PerRow).unwrap().ys;
                    (vec![], vec![y.sin().sum()])
                };
                map_rows(std::slice::from_ref(y0), 2, rows).1[0].clone()
            };
            let groups = gradient(Adjoint::Direct, Batching::Groups(2));
            let tiles = value_and_grad(of, &(weights(), Tensor::from(Y0)));
            (groups, tiles.1.leaves().iter().map(Tensor::to_vec).collect::<Vec<_>>())
        })
    };
    let one = on(1);
    assert_eq!(on(3), one);
    assert!(one.1.iter().flatten().all(|x| x.is_finite()));
}

#[test]
fn mapped_solves_in_lockstep_are_solves_of_each_example() {
    let y0 = Tensor::from(Y0);
    let scales = Tensor::from([1.0, 0.5, -0.2]);
    let gradient = |scale: &Tensor| {
        grad(
            |y0: &Tensor| {
                solve(&setup(), &weights(), &(y0 * scale), Batching::PerRow).unwrap().y1.sin().sum()
            },
            &y0,
        )
    };
    let many = vmap(gradient, &scales);
    let each: Vec<f64> = (0..3).flat_map(|k| gradient(&scales.index(k)).to_vec()).collect();
    assert_eq!(many.to_vec(), each);
}

#[test]
fn the_continuous_adjoint_is_taken_row_by_row() {
    let of = |adjoint, batching| {
        let s = Setup { adjoint, save_at: SaveAt::t1(), ..setup() };
        let at = (weights(), Tensor::from(Y0));
        let end = |(p, y0): &(Weights, Tensor)| solve(&s, p, y0, batching).unwrap().y1.sin().sum();
        grad(end, &at).leaves().iter().map(Tensor::to_vec).collect::<Vec<_>>()
    };
    let rows = of(Adjoint::backsolve(), Batching::PerRow);
    assert_near(&rows, &of(Adjoint::backsolve(), Batching::Groups(1)), 1e-12, "groups of one");
    assert_near(&rows, &of(Adjoint::Direct, Batching::PerRow), 1e-3, "direct");
}
