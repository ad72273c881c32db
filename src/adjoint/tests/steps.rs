//! Saved steps and dense output on tensors: the values of plain states, and gradients on a frozen grid.

use super::f64s;
use crate::adjoint::Adjoint;
use crate::array::{DType, Shape};
use crate::ode::{ConfigError, ConstantStepSize, Method, Ode, Outcome, SaveAt, StepTo};
use crate::tensor::{Tensor, Tree, jit, jvp, map_rows, value_and_grad};
use crate::tree;

pub(super) fn close(got: &[f64], want: &[f64], bound: f64) {
    assert_eq!(got.len(), want.len());
    for (i, (a, b)) in got.iter().zip(want).enumerate() {
        assert!((a - b).abs() <= bound * b.abs().max(1e-3), "[{i}]: {a} against {b}");
    }
}

fn ones(shape: Shape) -> Tensor {
    Tensor::full(DType::F64, shape, 1.0)
}

/// A driven pendulum.
fn pushed(t: f64, y: [f64; 2]) -> [f64; 2] {
    [y[1], -1.3 * y[0].sin() - 0.2 * y[1] + (1.7 * t).sin()]
}

pub(super) fn pushed_tensor(mu: &Tensor, t: &Tensor, y: &Tensor) -> Tensor {
    let (a, b) = (y.index(0), y.index(1));
    Tensor::stack(&[&b, &(-(mu * a.sin()) - &b * 0.2 + (1.7 * t).sin())])
}

#[test]
fn saved_steps_equal_those_of_plain_states_in_both_directions_and_nan_after() {
    let mu = Tensor::from(1.3);
    for method in [Method::Tsit5, Method::Dopri5, Method::Bosh3, Method::Vern7] {
        for (sign, every) in [(1.0, 1), (-1.0, 1), (1.0, 3), (-1.0, 4)] {
            let plain = Ode::new(|t, y: &[f64; 2]| pushed(t, *y)).method(method);
            let plain =
                plain.save_at(SaveAt::every_nth_step(every)).solve(0.0, 4.0 * sign, [1.0, 0.5]).unwrap();
            let ode = Ode::new(|t: Tensor, y: &Tensor| pushed_tensor(&mu, &t, y)).method(method);
            let ode = ode.max_steps(400).save_at(SaveAt::every_nth_step(every));
            let got = ode.solve(0.0, 4.0 * sign, f64s(&[1.0, 0.5])).unwrap();
            let (rows, n) = (1 + 400_usize.div_ceil(every), plain.ts.len());
            assert_eq!((got.ys.shape().to_vec(), got.num_saved.item() as usize), (vec![rows, 2], n));
            let (ts, ys) = (got.ts.to_vec(), got.ys.to_vec());
            // Step sizes depend on error estimates, which are differences of much larger numbers. The error of
            // a first step with Vern7 is 1e-13, which leaves three digits.
            let bound = if method == Method::Vern7 { 1e-3 } else { 1e-5 };
            close(&ts[..n], &plain.ts, bound);
            close(&ys[..2 * n], &plain.ys.concat(), bound);
            assert!(ts[n..].iter().chain(&ys[2 * n..]).all(|x| x.is_nan()));
        }
    }
}

#[test]
fn saved_steps_of_a_grid_equal_those_of_plain_states() {
    let mu = Tensor::from(1.3);
    let grid = StepTo { ts: vec![0.0, 0.2, 0.5, 0.6, 0.9, 1.3, 1.4, 1.8] };
    for method in [Method::Tsit5, Method::Rk4, Method::Bosh3, Method::Vern7] {
        for every in [1, 3, 7] {
            let plain = Ode::new(|t, y: &[f64; 2]| pushed(t, *y)).method(method).controller(grid.clone());
            let plain = plain.save_at(SaveAt::every_nth_step(every)).solve(0.0, 1.8, [1.0, 0.5]).unwrap();
            let ode = Ode::new(|t: Tensor, y: &Tensor| pushed_tensor(&mu, &t, y)).method(method);
            let ode = ode.controller(grid.clone()).save_at(SaveAt::every_nth_step(every));
            let got = ode.solve(0.0, 1.8, f64s(&[1.0, 0.5])).unwrap();
            assert_eq!((got.ts.to_vec(), got.num_saved.item() as usize), (plain.ts.clone(), plain.ts.len()));
            close(&got.ys.to_vec(), &plain.ys.concat(), 1e-12);
        }
    }
}

#[test]
fn as_many_rows_are_kept_as_there_are_steps_where_their_number_is_known() {
    let decay = || Ode::new(|_t, y: &Tensor| -y).save_at(SaveAt::every_nth_step(3));
    let rows = |ode: Ode<'_, Tensor, _>| ode.solve(0.0, 1.0, Tensor::from(1.0)).unwrap().ts.to_vec();
    close(&rows(decay().controller(ConstantStepSize { dt0: 0.1 })), &[0.0, 0.3, 0.6, 0.9, 1.0], 1e-12);
    let grid = StepTo { ts: vec![0.0, 0.1, 0.3, 0.4, 0.8, 0.9, 1.0] };
    close(&rows(decay().controller(grid)), &[0.0, 0.4, 1.0], 1e-12);
}

#[test]
fn a_solve_without_steps_or_with_too_few_saves_what_there_is() {
    let ode = Ode::new(|_t, y: &Tensor| -y).max_steps(3).save_at(SaveAt::steps().and_dense());
    let point = ode.solve(1.0, 1.0, f64s(&[2.0])).unwrap();
    assert_eq!((point.num_saved.item(), point.ts.to_vec()[0], point.ys.to_vec()[0]), (1.0, 1.0, 2.0));
    assert!(point.ts.to_vec()[1..].iter().all(|t| t.is_nan()));
    let at = |t: f64| point.dense().unwrap().eval_with_derivative(&Tensor::from(t));
    assert_eq!(at(1.0).0.to_vec(), [2.0]);
    assert!(at(1.0).1.item().is_nan() && at(1.1).0.item().is_nan());
    let short = ode.dt0(0.01).allow_incomplete().solve(0.0, 5.0, f64s(&[2.0])).unwrap();
    assert!(matches!(short.outcome(), Outcome::MaxSteps { .. }));
    assert_eq!(short.num_saved.item(), 1.0 + short.stats.num_accepted.item());
    let n = short.num_saved.item() as usize;
    assert_eq!(short.ts.to_vec()[n - 1], short.t1.item());
}

#[test]
fn a_mix_is_saved_in_the_order_of_the_solve() {
    let ode = Ode::new(|_t, y: &Tensor| -y)
        .max_steps(50)
        .save_at(SaveAt::ts(&[0.25, 0.5]).and_every_nth_step(2).and_dense());
    let got = ode.solve(0.0, 1.0, ones([3, 2].into())).unwrap();
    let n = got.num_saved.item() as usize;
    let steps = ((got.stats.num_accepted.item() - 1.0) / 2.0).floor() as usize + 1;
    assert_eq!((got.ys.shape().to_vec(), n), (vec![3 + 25, 3, 2], 3 + steps));
    let ts = got.ts.to_vec();
    assert!(ts[0] == 0.0 && ts[n - 1] == 1.0 && [0.25, 0.5].iter().all(|t| ts.contains(t)));
    assert!(ts[..n].windows(2).all(|pair| pair[0] < pair[1]) && ts[n..].iter().all(|t| t.is_nan()));
    let ys: Vec<f64> = (0..n).map(|i| got.ys.to_vec()[6 * i]).collect();
    close(&ys, &ts[..n].iter().map(|t| (-t).exp()).collect::<Vec<_>>(), 1e-5);
    // Saved steps tap their ends only, not their stages.
    let ode = Ode::new(|_t, y: &Tensor| -y).max_steps(50).save_at(SaveAt::every_nth_step(2));
    let alone = ode.solve(0.0, 1.0, ones([3, 2].into())).unwrap();
    let of_steps: Vec<f64> = ts[..n].iter().copied().filter(|t| ![0.25, 0.5].contains(t)).collect();
    close(&alone.ts.to_vec()[..=steps], &of_steps, 1e-12);
}

#[test]
fn more_steps_than_memory_should_hold_are_refused_with_the_remedy() {
    let ode = || Ode::new(|_t, y: &Tensor| -y).save_at(SaveAt::steps());
    let e = crate::Error::from(ode().solve(0.0, 1.0, ones([1000].into())).unwrap_err());
    assert!(matches!(
        e,
        crate::Error::Config(ConfigError::SavedSteps {
            steps: 100_000,
            rows: 100_000,
            bytes: 801_600_000,
            ..
        })
    ));
    assert!(e.to_string().contains("lower `max_steps`"), "{e}");
    assert!(ode().max_steps(100).solve(0.0, 1.0, ones([1000].into())).is_ok());
}

#[test]
fn dense_output_equals_that_of_plain_states_with_its_derivative() {
    let mu = Tensor::from(1.3);
    let ts = [0.0, 0.013, 0.5, 1.7, 2.9, 3.999, 4.0];
    for method in [Method::Tsit5, Method::Dopri5, Method::Bosh3, Method::Vern7, Method::CashKarp] {
        for sign in [1.0, -1.0] {
            let plain = Ode::new(|t, y: &[f64; 2]| pushed(t, *y)).method(method).save_at(SaveAt::dense());
            let plain = plain.solve(0.0, 4.0 * sign, [1.0, 0.5]).unwrap();
            let ode = Ode::new(|t: Tensor, y: &Tensor| pushed_tensor(&mu, &t, y)).method(method);
            let ode = ode.max_steps(2000).save_at(SaveAt::dense());
            let got = ode.solve(0.0, 4.0 * sign, f64s(&[1.0, 0.5])).unwrap();
            assert_eq!((got.ts.to_vec(), got.ys.shape().to_vec()), (vec![], vec![0, 2]));
            assert_eq!(got.num_saved.item(), 0.0);
            let at: Vec<f64> = ts.iter().map(|t| t * sign).collect();
            let (y, dy) = got.dense().unwrap().eval_with_derivative(&f64s(&at));
            let want: Vec<_> =
                at.iter().map(|t| plain.dense().unwrap().eval_with_derivative(*t).unwrap()).collect();
            close(&y.to_vec(), &want.iter().flat_map(|w| w.0).collect::<Vec<_>>(), 1e-10);
            close(&dy.to_vec(), &want.iter().flat_map(|w| w.1).collect::<Vec<_>>(), 1e-9);
            let one = got.dense().unwrap().eval(&Tensor::from(at[3]));
            close(&one.to_vec(), &y.index(3).to_vec(), 1e-15);
            let outside = got.dense().unwrap().eval(&f64s(&[-1e-9 * sign, 4.1 * sign, f64::NAN]));
            assert!(outside.to_vec().iter().all(|x| x.is_nan()));
        }
    }
    let plain = Ode::new(|_t, y: &Tensor| -y).solve(0.0, 1.0, Tensor::from(1.0)).unwrap();
    assert!(matches!(plain.dense(), Err(ConfigError::NotSaved { .. })));
}

tree! { struct Problem { mu: Tensor, y0: Tensor, t0: Tensor, t1: Tensor, ts: Tensor } }

fn problem() -> (Problem, Vec<f64>) {
    let ts = f64s(&[0.13, 0.2, 0.7, 1.3, 1.55]);
    let y0 = f64s(&[1.0, 0.5]);
    let p = Problem { mu: Tensor::from(0.8), y0, t0: Tensor::from(0.1), t1: Tensor::from(1.6), ts };
    (p, vec![0.1, 0.4, 0.55, 0.9, 1.2, 1.6])
}

fn weighed(y: &Tensor) -> Tensor {
    let weights = (1.0 + Tensor::iota(DType::F64, y.shape().clone(), 0)).cos();
    (y.is_finite().select(y, &Tensor::from(0.0)).sin() * weights).sum()
}

/// Every second step, given times, and dense output with its derivative.
fn loss(p: &Problem, method: Method, grid: &[f64], adjoint: Adjoint) -> Tensor {
    let ode = Ode::new(|t: Tensor, y: &Tensor| pushed_tensor(&p.mu, &t, y)).method(method);
    let ode = ode.controller(StepTo { ts: grid.to_vec() }).adjoint(adjoint);
    let all = ode.save_at(SaveAt::ts(&[0.3, 1.0]).and_every_nth_step(2).and_dense());
    let got = all.solve(&p.t0, &p.t1, &p.y0).unwrap();
    let (y, dy) = got.dense().unwrap().eval_with_derivative(&p.ts);
    weighed(&got.ys) + weighed(&got.ts) + weighed(&y) + weighed(&dy) * 0.7
}

fn flat(p: &Problem) -> Vec<f64> {
    p.leaves().iter().flat_map(Tensor::to_vec).collect()
}

#[test]
fn gradients_of_steps_and_of_the_curve_equal_central_differences() {
    let (p, grid) = problem();
    for method in [Method::Tsit5, Method::Rk4] {
        let at = grid.clone();
        // Inside a jit, t0 and t1 may differ from the grid's ends.
        let value = jit(move |p: Problem| loss(&p, method, &at, Adjoint::default()));
        let (_, grads) =
            value_and_grad(|p: &Problem| loss(p, method, &grid, Adjoint::recursive_checkpoint(2)), &p);
        let numbers = flat(&p);
        let shifted = |j: usize, h: f64| {
            let mut numbers = numbers.clone();
            numbers[j] += h;
            let mut rest = &numbers[..];
            let leaves: Vec<Tensor> = p
                .leaves()
                .iter()
                .map(|x| {
                    let (mine, others) = rest.split_at(x.size());
                    rest = others;
                    Tensor::from_vec(x.shape().clone(), mine.to_vec())
                })
                .collect();
            value.call(p.with_leaves(leaves)).unwrap().item()
        };
        let h = 1e-5;
        let differences: Vec<f64> =
            (0..numbers.len()).map(|j| (shifted(j, h) - shifted(j, -h)) / (2.0 * h)).collect();
        close(&flat(&grads), &differences, 1e-6);
    }
}

#[test]
fn gradients_of_steps_and_of_the_curve_are_bit_identical_for_every_number_of_checkpoints() {
    let (p, grid) = problem();
    let gradient =
        |adjoint| flat(&value_and_grad(|p: &Problem| loss(p, Method::Tsit5, &grid, adjoint), &p).1);
    let all = gradient(Adjoint::Direct);
    assert!(all.iter().all(|g| g.is_finite()));
    for n in [1, 2, 5, 50] {
        assert_eq!(gradient(Adjoint::recursive_checkpoint(n)), all, "{n} checkpoints");
    }
}

#[test]
fn tangents_of_steps_and_of_the_curve_are_their_gradients() {
    let (p, grid) = problem();
    let value = |p: &Problem| loss(p, Method::Bosh3, &grid, Adjoint::recursive_checkpoint(2));
    let along = p.with_leaves(p.leaves().iter().map(|x| (1.0 + x).sin()).collect::<Vec<_>>());
    let (_, tangent) = jvp(value, &p, &along);
    let (_, gradient) = value_and_grad(value, &p);
    let sum: f64 = flat(&gradient).iter().zip(flat(&along)).map(|(g, d)| g * d).sum();
    close(&[tangent.item()], &[sum], 1e-12);
}

#[test]
fn the_executor_saves_steps_as_the_reference_interpreter_does() {
    let (p, grid) = problem();
    let types: Vec<_> = p.leaves().iter().map(Tensor::ty).collect();
    let traced = crate::tensor::trace(&types, &mut |x| {
        let p = p.with_leaves(x.to_vec());
        let value = |p: &Problem| loss(p, Method::Bosh3, &grid, Adjoint::recursive_checkpoint(2));
        let (value, grads) = value_and_grad(value, &p);
        [vec![value], grads.leaves()].concat()
    });
    assert!(traced.captures.is_empty() && traced.func.to_string().contains("num_groups=5"));
    let args: Vec<_> = p.leaves().iter().map(|x| x.array().clone()).collect();
    let want = crate::graph::interpret(&traced.func, &args).unwrap();
    for (got, want) in crate::tensor::apply(&traced.func, &p.leaves()).iter().zip(&want) {
        close(&got.to_vec(), &want.to_f64(), 1e-12);
    }
}

#[test]
fn rows_in_tiles_save_steps_as_each_tile_alone() {
    let y0 = Tensor::iota(DType::F64, [7, 2], 0) * 0.3 - 0.8;
    let saved = |y: &Tensor| {
        let ode = Ode::new(|t: Tensor, y: &Tensor| (y + t).sin()).max_steps(40).save_at(SaveAt::steps());
        let ys = ode.solve(0.0, 1.0, y).unwrap().ys.permute(&[1, 0, 2]);
        ys.is_finite().select(&ys, &Tensor::from(0.0))
    };
    let (tiles, _) = map_rows(std::slice::from_ref(&y0), 4, |y| (vec![saved(&y[0])], vec![]));
    assert_eq!(tiles[0].shape().to_vec(), [7, 41, 2]);
    for rows in [0..4, 4..7] {
        let alone = saved(&y0.slice(0, rows.clone()));
        assert_eq!(alone.to_vec(), tiles[0].slice(0, rows).to_vec());
    }
}

#[test]
fn the_continuous_adjoint_refuses_steps_and_dense_output_with_a_remedy() {
    for (save_at, what) in [(SaveAt::steps(), "saved steps"), (SaveAt::dense(), "dense output")] {
        let ode = Ode::new(|_t, y: &Tensor| -y).max_steps(9).adjoint(Adjoint::backsolve()).save_at(save_at);
        let e = ode.solve(0.0, 1.0, Tensor::from(1.0)).map(|_| ()).unwrap_err().to_string();
        assert!(e.contains(what) && e.contains("use RecursiveCheckpoint"), "{e}");
    }
}
