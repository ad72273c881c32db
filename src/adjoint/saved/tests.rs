//! Saved times on tensors: the values of plain states, gradients on a frozen grid, and times outside the interval.

use crate::adjoint::{Adjoint, TensorSolution};
use crate::array::DType;
use crate::ode::{ConfigError, ConstantStepSize, Method, Ode, Outcome, SaveAt, SolveError, StepTo};
use crate::tensor::{Tensor, Tree, jit, jvp, map_rows, value_and_grad};
use crate::tree;

fn f64s(x: &[f64]) -> Tensor {
    Tensor::from(x)
}

fn close(got: &[f64], want: &[f64], bound: f64) {
    assert_eq!(got.len(), want.len());
    for (i, (a, b)) in got.iter().zip(want).enumerate() {
        assert!((a - b).abs() <= bound * b.abs().max(1e-3), "[{i}]: {a} against {b}");
    }
}

/// The van der Pol oscillator, driven.
fn pushed(t: f64, y: [f64; 2]) -> [f64; 2] {
    [y[1], (1.0 - y[0] * y[0]) * y[1] - y[0] + (1.7 * t).sin()]
}

fn pushed_tensor(mu: &Tensor, t: &Tensor, y: &Tensor) -> Tensor {
    let (a, b) = (y.column(0), y.column(1));
    let rate = (1.0 - a.square()) * &b * mu - &a + (1.7 * t).sin();
    let columns = [b.expand_dims(b.rank()), rate.expand_dims(rate.rank())];
    Tensor::concat(&[&columns[0], &columns[1]], y.rank() - 1)
}

#[test]
fn saved_states_equal_those_of_plain_states_in_both_directions() {
    use Method::*;
    let one = Tensor::from(1.0);
    // The ends, a repeated time, several times in a step.
    let ts = [0.0, 0.01, 0.02, 0.02, 1.3, 2.2, 2.25, 4.0, 4.0];
    let once = [0.0, 0.01, 0.02, 1.3, 2.2, 2.25, 4.0];
    for method in [Tsit5, Dopri5, Bosh3, Dop853, Vern7, Vern9, CashKarp, Fehlberg45] {
        for sign in [1.0, -1.0] {
            let ts: Vec<f64> = ts.iter().map(|t| t * sign).collect();
            let plain = Ode::new(|t, y: &[f64; 2]| pushed(t, *y)).method(method).save_at(&ts);
            let plain = plain.solve(0.0, 4.0 * sign, [1.0, 0.5]).unwrap();
            let ode =
                Ode::new(|t: Tensor, y: &Tensor| pushed_tensor(&one, &t, y)).method(method).save_at(&ts);
            let got = ode.solve(0.0, 4.0 * sign, f64s(&[1.0, 0.5])).unwrap();
            assert_eq!(got.stats.num_accepted.item() as u64, plain.stats.num_accepted);
            assert_eq!(
                (got.ys.shape().to_vec(), got.ts.to_vec()),
                (vec![once.len(), 2], once.map(|t| t * sign).to_vec())
            );
            close(&got.ys.to_vec(), &plain.ys.concat(), 1e-12);
        }
    }
}

#[test]
fn methods_without_an_interpolant_save_by_the_cubic_of_plain_states() {
    let one = Tensor::from(1.0);
    for method in [Method::Rk4, Method::Euler, Method::Ssprk3, Method::Dopri5] {
        let constant = ConstantStepSize { dt0: 0.15 };
        let plain = Ode::new(|t, y: &[f64; 2]| pushed(t, *y)).method(method).controller(constant.clone());
        let plain = plain.save_at(SaveAt::ts(&[0.3, 0.33, 0.9]).and_t0().and_t1());
        let plain = plain.solve(0.0, 1.0, [1.0, 0.5]).unwrap();
        let ode = Ode::new(|t: Tensor, y: &Tensor| pushed_tensor(&one, &t, y)).method(method);
        let ode = ode.controller(constant).save_at(SaveAt::ts(&[0.3, 0.33, 0.9]).and_t0().and_t1());
        let got = ode.solve(0.0, 1.0, f64s(&[1.0, 0.5])).unwrap();
        assert_eq!(got.ts.to_vec(), plain.ts);
        close(&got.ys.to_vec(), &plain.ys.concat(), 1e-12);
    }
}

#[test]
fn the_default_saves_the_end() {
    let solution = Ode::new(|_t, y: &Tensor| -y).solve(0.0, 1.0, Tensor::ones([3, 2])).unwrap();
    assert_eq!((solution.ts.to_vec(), solution.ys.shape().to_vec()), (vec![1.0], vec![1, 3, 2]));
    assert_eq!(solution.ys.to_vec(), solution.y1.to_vec());
}

#[test]
fn a_solve_that_saves_its_ends_alone_taps_nothing() {
    let program = |save_at: SaveAt| {
        let traced = crate::tensor::trace(&[crate::graph::Type::array(DType::F64, [2])], &mut |y0| {
            let ode = Ode::new(|_t, y: &Tensor| -y).save_at(save_at.clone());
            vec![ode.solve(0.0, 1.0, &y0[0]).unwrap().y1]
        });
        traced.func.to_string()
    };
    assert_eq!(program(SaveAt::t0().and_t1()), program(SaveAt::t1()));
    assert!(!program(SaveAt::t1()).contains("num_times"));
    assert!(program(SaveAt::ts(&[0.5])).contains("num_times=1"));
}

#[test]
fn the_axis_of_times_is_the_first_whatever_the_shape_of_the_state() {
    let shapes = |y0: (Tensor, Tensor)| {
        let ode = Ode::new(|_t: Tensor, y: &(Tensor, Tensor)| (-&y.0, -&y.1)).save_at([0.5, 0.6, 0.7]);
        let ys = ode.solve(0.0, 1.0, y0).unwrap().ys;
        (ys.0.shape().to_vec(), ys.1.shape().to_vec())
    };
    assert_eq!(shapes((Tensor::ones([5, 2]), Tensor::ones([5]))), (vec![3, 5, 2], vec![3, 5]));
    assert_eq!(shapes((Tensor::ones([5]), Tensor::ones([5]))), (vec![3, 5], vec![3, 5]));
    assert_eq!(shapes((Tensor::ones([5, 2]), Tensor::ones([]))), (vec![3, 5, 2], vec![3]));
    // A rotation matrix is not a batch of three rows.
    assert_eq!(shapes((Tensor::ones([3, 3]), Tensor::ones([3, 1]))), (vec![3, 3, 3], vec![3, 3, 1]));
}

#[test]
fn states_of_f32_are_saved_in_f32_at_times_of_f64() {
    let ode = Ode::new(|_t, y: &Tensor| -y).save_at([0.25, 1.0]);
    let ys = ode.solve(0.0, 1.0, Tensor::full(DType::F32, [1], 1.0)).unwrap().ys;
    assert_eq!(ys.dtype(), DType::F32);
    close(&ys.to_vec(), &[(-0.25f64).exp(), (-1.0f64).exp()], 1e-4);
}

#[test]
fn an_empty_interval_saves_y0_once() {
    let ode = Ode::new(|_t, y: &Tensor| -y).save_at(SaveAt::ts(&[1.0, 1.0]).and_t0());
    assert_eq!(ode.solve(1.0, 1.0, f64s(&[3.0])).unwrap().ts.to_vec(), [1.0]);
    let (ys, dy0) = value_and_grad(|y: &Tensor| ode.solve(1.0, 1.0, y).unwrap().ys.sum(), &f64s(&[3.0]));
    assert_eq!((ys.item(), dy0.to_vec()), (3.0, vec![1.0]));
}

#[test]
fn times_that_a_failed_solve_did_not_reach_are_nan() {
    let solve =
        |y0: &Tensor| Ode::new(|_t, y: &Tensor| y.square()).save_at([0.5, 0.9, 1.5]).solve(0.0, 2.0, y0);
    let solution = solve(&f64s(&[1.0])).unwrap_err().into_partial().unwrap();
    assert!(matches!(solution.outcome(), Outcome::StepSizeTooSmall { .. }));
    let ys = solution.ys.to_vec();
    assert!((ys[0] - 2.0).abs() < 1e-4 && (ys[1] - 10.0).abs() < 1e-2 && ys[2].is_nan(), "{ys:?}");
    let jitted = jit(move |y0: Tensor| Ok(solve(&y0)?.ys));
    assert!(jitted.call(f64s(&[1.0])).unwrap_err().to_string().contains("the solve ended early"));
    close(&jitted.call(f64s(&[0.1])).unwrap().to_vec(), &[1.0 / 9.5, 1.0 / 9.1, 1.0 / 8.5], 1e-5);
}

#[test]
fn times_of_a_trace_that_are_no_times_of_the_solve_are_nan() {
    let at = jit(|ts: Tensor| {
        Ok(Ode::new(|_t, y: &Tensor| -y).save_at(&ts).solve(0.0, 2.0, Tensor::from(1.0))?.ys)
    });
    let state = |t: f64| (-t).exp();
    let ys = at.call(f64s(&[-0.1, 0.0, 1.5, 0.5, 2.0, 2.1])).unwrap().to_vec();
    close(&[ys[1], ys[2], ys[4]], &[1.0, state(1.5), state(2.0)], 1e-5);
    assert!([0, 3, 5].iter().all(|&i| ys[i].is_nan()), "{ys:?}");
    assert_eq!(at.num_traces(), 1);
}

#[test]
fn unsupported_saves_on_tensors_are_refused() {
    let solve =
        |save_at: SaveAt| Ode::new(|_t, y: &Tensor| -y).save_at(save_at).solve(0.0, 1.0, Tensor::from(1.0));
    assert!(matches!(
        solve(SaveAt::ts(&[0.5, 1.5])),
        Err(SolveError::Config(ConfigError::SavedTime { index: 1, .. }))
    ));
    assert!(matches!(
        solve(SaveAt::ts(&[0.5, 0.4])),
        Err(SolveError::Config(ConfigError::TimesNotMonotone { .. }))
    ));
}

#[test]
#[should_panic(expected = "is not a list of times")]
fn times_of_two_axes_are_refused() {
    let _ = Ode::new(|_t, y: &Tensor| -y).save_at(&Tensor::ones([2, 2])).solve(0.0, 2.0, Tensor::from(1.0));
}

tree! { struct Problem { mu: Tensor, y0: Tensor, t0: Tensor, t1: Tensor, ts: Tensor } }

/// Two rows, and the step times of a grid. Of the saved times, three lie in the first step (two are equal), one
/// in the third and two in the last.
fn problem() -> (Problem, Vec<f64>) {
    let y0 = Tensor::from([[1.0, 0.5], [-0.3, 0.8]]);
    let ts = f64s(&[0.13, 0.2, 0.2, 0.7, 1.3, 1.55]);
    let p = Problem { mu: Tensor::from(0.8), y0, t0: Tensor::from(0.1), t1: Tensor::from(1.6), ts };
    (p, vec![0.1, 0.4, 0.55, 0.9, 1.2, 1.6])
}

fn loss(p: &Problem, method: Method, grid: &[f64], adjoint: Adjoint) -> Tensor {
    let ode = Ode::new(|t: Tensor, y: &Tensor| pushed_tensor(&p.mu, &t, y)).method(method);
    let ode = ode.controller(StepTo { ts: grid.to_vec() }).adjoint(adjoint).save_at(&p.ts);
    let TensorSolution { y1, ys, .. } = ode.solve(&p.t0, &p.t1, &p.y0).unwrap();
    // Every saved number has its own weight.
    let weights = (1.0 + Tensor::iota(DType::F64, [ys.size()], 0)).cos().reshape(ys.shape().clone());
    (ys.sin() * weights).sum() + y1.square().sum()
}

#[test]
fn gradients_of_all_inputs_equal_central_differences() {
    let (p, grid) = problem();
    for method in [Method::Tsit5, Method::Rk4, Method::Vern7] {
        // Inside a jit, t0 and t1 may differ from the grid's ends.
        let at = grid.clone();
        let value = jit(move |p: Problem| loss(&p, method, &at, Adjoint::default()));
        let (_, grads) =
            value_and_grad(|p: &Problem| loss(p, method, &grid, Adjoint::recursive_checkpoint(2)), &p);
        let (leaves, grads) = (p.leaves(), grads.leaves());
        for (i, leaf) in leaves.iter().enumerate() {
            for j in 0..leaf.size() {
                let shifted = |h: f64| {
                    let mut v = leaf.to_vec();
                    v[j] += h;
                    let mut leaves = leaves.clone();
                    leaves[i] = Tensor::from_vec(leaf.shape().clone(), v);
                    value.call(p.with_leaves(leaves)).unwrap().item()
                };
                let h = 1e-5;
                let difference = (shifted(h) - shifted(-h)) / (2.0 * h);
                let got = grads[i].to_vec()[j];
                assert!(
                    (got - difference).abs() <= 1e-6 * difference.abs().max(1e-3),
                    "{method:?} {i}[{j}]: {got}, {difference}"
                );
            }
        }
    }
}

#[test]
fn gradients_through_saved_times_are_bit_identical_for_every_number_of_checkpoints() {
    let (p, grid) = problem();
    let gradient = |adjoint| {
        let (_, g) = value_and_grad(|p: &Problem| loss(p, Method::Tsit5, &grid, adjoint), &p);
        g.leaves().iter().flat_map(Tensor::to_vec).collect::<Vec<f64>>()
    };
    let adaptive = |adjoint: Adjoint| {
        let solve = |p: &Problem| {
            let ode = Ode::new(|t: Tensor, y: &Tensor| pushed_tensor(&p.mu, &t, y)).adjoint(adjoint);
            ode.save_at(&p.ts).solve(&p.t0, &p.t1, &p.y0).unwrap().ys.square().sum()
        };
        value_and_grad(solve, &p).1.leaves().iter().flat_map(Tensor::to_vec).collect::<Vec<f64>>()
    };
    let all = (gradient(Adjoint::Direct), adaptive(Adjoint::Direct));
    assert!(all.1.iter().all(|g| g.is_finite()));
    for n in [1, 2, 3, 5, 50] {
        let adjoint = Adjoint::recursive_checkpoint(n);
        assert_eq!((gradient(adjoint), adaptive(adjoint)), all, "{n} checkpoints");
    }
}

#[test]
fn tangents_of_saved_states_and_of_their_gradients_equal_differences() {
    let (p, grid) = problem();
    let value = |p: &Problem| loss(p, Method::Tsit5, &grid, Adjoint::recursive_checkpoint(2));
    let gradient = |p: &Problem| value_and_grad(value, p).1;
    let along = p.with_leaves(p.leaves().iter().enumerate().map(|(i, x)| match i {
        2 | 3 => Tensor::full(DType::F64, x.shape().clone(), 0.0),
        _ => (1.0 + x).sin(),
    }));
    let step = |h: f64| p.with_leaves(p.leaves().iter().zip(along.leaves()).map(|(x, d)| x + d * h));
    let h = 1e-5;
    let (_, tangent) = jvp(value, &p, &along);
    let difference = (value(&step(h)).item() - value(&step(-h)).item()) / (2.0 * h);
    close(&[tangent.item()], &[difference], 1e-7);
    let flat = |p: Problem| p.leaves().iter().flat_map(Tensor::to_vec).collect::<Vec<f64>>();
    let (_, curvature) = jvp(gradient, &p, &along);
    let (up, down) = (flat(gradient(&step(h))), flat(gradient(&step(-h))));
    let differences: Vec<f64> = up.iter().zip(&down).map(|(a, b)| (a - b) / (2.0 * h)).collect();
    close(&flat(curvature), &differences, 1e-6);
}

#[test]
fn rows_in_tiles_save_and_differentiate_as_each_tile_alone() {
    let y0 = Tensor::iota(DType::F64, [7, 2], 0) * 0.3 - 0.8 + f64s(&[0.1, 0.6]);
    let saved = |mu: &Tensor, y: &Tensor| {
        let ode = Ode::new(|t: Tensor, y: &Tensor| pushed_tensor(mu, &t, y)).save_at([0.3, 0.31, 1.0]);
        ode.solve(0.0, 1.0, y).unwrap().ys.permute(&[1, 0, 2])
    };
    let tiles = |(mu, y): &(Tensor, Tensor)| {
        let (ys, _) = map_rows(std::slice::from_ref(y), 4, |y| (vec![saved(mu, &y[0])], vec![]));
        ys[0].clone()
    };
    let at = (Tensor::from(0.9), y0.clone());
    let all = tiles(&at);
    assert_eq!(all.shape().to_vec(), [7, 3, 2]);
    let (_, (dmu, dy0)) = value_and_grad(|x: &(Tensor, Tensor)| tiles(x).square().sum(), &at);
    let mut sum = 0.0;
    for rows in [0..4, 4..7] {
        let part = (at.0.clone(), y0.slice(0, rows.clone()));
        assert_eq!(saved(&part.0, &part.1).to_vec(), all.slice(0, rows.clone()).to_vec());
        let (_, (d, dy)) = value_and_grad(|(mu, y): &(Tensor, Tensor)| saved(mu, y).square().sum(), &part);
        close(&dy.to_vec(), &dy0.slice(0, rows).to_vec(), 1e-14);
        sum += d.item();
    }
    close(&[dmu.item()], &[sum], 1e-14);
}

#[test]
fn a_neural_ode_is_trained_on_its_trajectories_in_one_trace() {
    let key = crate::tensor::Key::new(0);
    let net = crate::nn::Mlp::new([2, 8, 2], crate::nn::Activation::Tanh, &key);
    tree! { struct Batch { y0: Tensor, ys: Tensor } }
    let ts = [0.25f64, 0.5, 0.75, 1.0];
    let y0: Tensor = Tensor::iota(DType::F32, [6, 2], 0) * 0.2 - 0.5;
    let decay: Vec<Tensor> = ts.iter().map(|t| &y0 * (-t).exp()).collect();
    let ys = Tensor::concat(
        &decay.iter().map(|y| y.expand_dims(0)).collect::<Vec<_>>().iter().collect::<Vec<_>>(),
        0,
    );
    let batch = Batch { y0, ys };
    let loss = move |net: &crate::nn::Mlp, batch: &Batch| {
        let field =
            Ode::new(|_t, y: &Tensor| net.forward(y)).save_at(ts).adjoint(Adjoint::recursive_checkpoint(16));
        Ok((field.solve(0.0, 1.0, &batch.y0)?.ys - &batch.ys).square().mean())
    };
    let step = jit(move |net: crate::nn::Mlp, batch: Batch| {
        let (value, grads) = value_and_grad(|net| loss(net, &batch), &net)?;
        let moved = net.leaves().iter().zip(grads.leaves()).map(|(w, g)| w - g * 0.3).collect::<Vec<_>>();
        Ok((net.with_leaves(moved), value))
    });
    let first = loss(&net, &batch).unwrap().item();
    let (mut net, mut last) = (net, first);
    for _ in 0..200 {
        let (next, value) = step.call(net, batch.clone()).unwrap();
        (net, last) = (next, value.item());
    }
    assert!(last < 0.02 * first, "{first} to {last}");
    assert_eq!(step.num_traces(), 1);
}

#[test]
fn the_executor_gives_what_the_reference_interpreter_gives() {
    let (p, grid) = problem();
    let types: Vec<_> = p.leaves().iter().map(Tensor::ty).collect();
    let traced = crate::tensor::trace(&types, &mut |x| {
        let p = p.with_leaves(x.to_vec());
        let (value, grads) =
            value_and_grad(|p: &Problem| loss(p, Method::Bosh3, &grid, Adjoint::recursive_checkpoint(2)), &p);
        [vec![value], grads.leaves()].concat()
    });
    assert!(traced.captures.is_empty() && traced.func.to_string().contains("num_rows"));
    let args: Vec<_> = p.leaves().iter().map(|x| x.array().clone()).collect();
    let want = crate::graph::interpret(&traced.func, &args).unwrap();
    let got = crate::tensor::apply(&traced.func, &p.leaves());
    for (got, want) in got.iter().zip(&want) {
        close(&got.to_vec(), &want.to_f64(), 1e-12);
    }
}
