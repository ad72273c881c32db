//! Solves on tensors have the values of plain states, and the gradients of the accepted steps.

mod adjoints;
mod apart;
mod as_numbers;
mod at_once;
mod backsolve;
mod bounces;
mod complex;
mod event_records;
mod events;
mod failures;
mod floors;
mod forward;
mod input;
mod instants;
mod kept;
mod leaves;
mod matrix;
mod reports;
mod reversible;
mod rows;
mod second;
mod settings;
mod small;
mod steps;
mod stiff_complex;
mod stiff_constraints;
mod stiff_failures;
mod stiff_mass;
mod stiff_methods;
mod stiff_neural;
mod stiff_reference;
mod stiffness;
mod union;

use crate::adjoint::{Adjoint, Checkpoints, TensorSolution};
use crate::array::DType;
use crate::ode::{ConstantStepSize, Method, Ode, Outcome, PidController, SaveAt, SolveError, StepTo};
use crate::tensor::{Tensor, grad, jit, map_rows, value_and_grad};
use crate::tree;

fn f64s(x: &[f64]) -> Tensor {
    Tensor::from(x)
}

/// A reported case in which another library's gradient is NaN: trial steps reach y < 1/2, are not finite, and
/// are rejected.
fn root(a: &Tensor, y: &Tensor) -> Tensor {
    a * -20 * (y - 0.5).sqrt() * (y - 0.5)
}

fn solve_root(a: &Tensor, adjoint: Adjoint) -> TensorSolution<Tensor> {
    let pid = PidController { dt0: Some(0.01), ..PidController::default() };
    let ode = Ode::new(|_t, y: &Tensor| root(a, y)).controller(pid).rtol(1e-3).atol(1e-6).adjoint(adjoint);
    ode.solve(0.0, 1.5, Tensor::from(1.5)).unwrap()
}

fn relative(a: f64, b: f64) -> f64 {
    (a - b).abs() / b.abs().max(1e-300)
}

#[test]
fn an_eager_solve_gives_the_bits_and_counters_of_plain_states() {
    let lotka = |y: [f64; 2]| [1.5 * y[0] - y[0] * y[1], y[0] * y[1] - 3.0 * y[1]];
    let plain = Ode::new(|_t, y: &[f64; 2]| lotka(*y)).solve(0.0, 10.0, [1.0, 1.0]).unwrap();
    let traced = Ode::new(|_t, y: &Tensor| {
        let (a, b) = (y.index(0), y.index(1));
        Tensor::stack(&[&(&a * 1.5 - &a * &b), &(&a * &b - &b * 3)])
    });
    let traced = traced.solve(0.0, 10.0, f64s(&[1.0, 1.0])).unwrap();
    assert_eq!(traced.outcome(), Outcome::Completed);
    assert_eq!(traced.stats.num_accepted.item() as u64, plain.stats.num_accepted);
    assert_eq!(traced.stats.num_fn_evals.item() as u64, plain.stats.num_fn_evals);
    for (a, b) in traced.y1.to_vec().iter().zip(plain.y1) {
        assert!(relative(*a, b) < 1e-12, "{a} {b}");
    }
}

#[test]
fn rejected_nan_trials_leave_the_gradient_finite_and_equal_to_the_grids() {
    let a = Tensor::from(1.0);
    let grid = Ode::new(|_t, y: &f64| -20.0 * (y - 0.5).sqrt() * (y - 0.5));
    let pid = PidController { dt0: Some(0.01), ..PidController::default() };
    let grid = grid.controller(pid).rtol(1e-3).atol(1e-6).solve(0.0, 1.5, 1.5).unwrap();
    assert!(grid.stats.num_rejected > 0);
    let frozen = |a: &Tensor| {
        let ode = Ode::new(|_t, y: &Tensor| root(a, y)).controller(StepTo { ts: grid.step_times.clone() });
        ode.solve(0.0, 1.5, Tensor::from(1.5)).unwrap().y1
    };
    let (value, gradient) = value_and_grad(frozen, &a);
    for adjoint in [Adjoint::Direct, Adjoint::default(), Adjoint::recursive_checkpoint(2)] {
        let (v, s) = value_and_grad(|a: &Tensor| solve_root(a, adjoint).y1, &a);
        let close = relative(v.item(), value.item()) < 1e-10 && relative(s.item(), gradient.item()) < 1e-10;
        assert!(
            close,
            "{adjoint:?}: {} {} on the grid of the plain: {} {}",
            v.item(),
            s.item(),
            value.item(),
            gradient.item()
        );
    }
    assert!((value.item() - 0.50390625).abs() < 1e-3 && (gradient.item() + 0.00732421875).abs() < 1e-3);
}

tree! { struct Oscillator { omega: Tensor, drive: Tensor } }

fn final_energy(p: &Oscillator, y0: &Tensor, t: [&Tensor; 2], adjoint: Adjoint, ts: &[f64]) -> Tensor {
    let ode = Ode::new(|t: Tensor, y: &Tensor| {
        let force = (&t * &p.drive).sin() - p.omega.square() * y.index(0) - y.index(1).tanh() * 0.1;
        Tensor::stack(&[&y.index(1), &force])
    });
    let ode = match ts {
        [] => ode.controller(ConstantStepSize { dt0: 0.17 }),
        ts => ode.controller(StepTo { ts: ts.to_vec() }),
    };
    ode.method(Method::Dopri5).adjoint(adjoint).solve(t[0], t[1], y0).unwrap().y1.square().sum()
}

#[test]
fn gradients_of_state_parameters_and_times_equal_central_differences() {
    let at = (
        Oscillator { omega: Tensor::from(1.3), drive: Tensor::from(0.7) },
        f64s(&[1.0, -0.4]),
        (Tensor::from(0.1), Tensor::from(2.0)),
    );
    let energy = |x: &(Oscillator, Tensor, (Tensor, Tensor))| {
        final_energy(&x.0, &x.1, [&x.2.0, &x.2.1], Adjoint::default(), &[])
    };
    let (_, grads) = value_and_grad(energy, &at);
    use crate::tensor::Tree;
    let (leaves, grads) = (at.leaves(), grads.leaves());
    for (i, leaf) in leaves.iter().enumerate() {
        for j in 0..leaf.size() {
            let shifted = |h: f64| {
                let mut v = leaf.to_vec();
                v[j] += h;
                let mut leaves = leaves.clone();
                leaves[i] = Tensor::from_vec(leaf.shape().clone(), v);
                energy(&at.with_leaves(leaves)).item()
            };
            let h = 1e-5;
            // t0 shifts the inner step times of constant steps, but the gradient treats these as fixed. So this
            // test compares only t1, and the next test compares t0 on a fixed grid.
            if i == 3 {
                continue;
            }
            let difference = (shifted(h) - shifted(-h)) / (2.0 * h);
            let got = grads[i].to_vec()[j];
            assert!(relative(got, difference) < 1e-6, "leaf {i}[{j}]: {got} against {difference}");
        }
    }
}

#[test]
fn gradients_of_both_times_on_a_fixed_grid_equal_central_differences() {
    let p = Oscillator { omega: Tensor::from(1.3), drive: Tensor::from(0.7) };
    let (y0, ts) = (f64s(&[1.0, -0.4]), [0.1, 0.4, 0.55, 1.1, 1.6, 2.0]);
    let energy = |t: &(Tensor, Tensor)| final_energy(&p, &y0, [&t.0, &t.1], Adjoint::default(), &ts);
    let value = jit(|t0: Tensor, t1: Tensor| energy(&(t0, t1)));
    let at = |t0: f64, t1: f64| value.call(t0, t1).unwrap().item();
    let (_, (d0, d1)) = value_and_grad(energy, &(Tensor::from(0.1), Tensor::from(2.0)));
    let h = 1e-5;
    let by0 = (at(0.1 + h, 2.0) - at(0.1 - h, 2.0)) / (2.0 * h);
    let by1 = (at(0.1, 2.0 + h) - at(0.1, 2.0 - h)) / (2.0 * h);
    assert!(relative(d0.item(), by0) < 1e-6 && relative(d1.item(), by1) < 1e-6, "{d0} {by0}, {d1} {by1}");
}

#[test]
fn a_first_step_of_zero_is_refused_while_times_are_traced() {
    let f = jit(|t1: Tensor| {
        let ode = Ode::new(|_t, y: &Tensor| -y).controller(ConstantStepSize { dt0: 0.0 });
        Ok(ode.solve(0.0, t1, Tensor::from(1.0))?.y1)
    });
    assert!(f.call(1.0).unwrap_err().to_string().starts_with("dt0=0e0: must be finite and not 0"));
}

#[test]
#[should_panic(expected = "y0 is i32[1]: a state must be f32 or f64")]
fn a_state_of_integers_is_refused() {
    let _ = Ode::new(|_t, y: &Tensor| y * 2).solve(0.0, 1.0, Tensor::from([1]));
}

#[test]
fn gradients_are_bit_identical_for_every_number_of_checkpoints() {
    let p = Oscillator { omega: Tensor::from(1.3), drive: Tensor::from(0.7) };
    let (y0, t0, t1) = (f64s(&[1.0, -0.4]), Tensor::from(0.0), Tensor::from(2.0));
    let gradient = |adjoint| {
        let (v, g) = value_and_grad(|p: &Oscillator| final_energy(p, &y0, [&t0, &t1], adjoint, &[]), &p);
        [v.item(), g.omega.item(), g.drive.item()]
    };
    let all = gradient(Adjoint::Direct);
    for n in [1, 2, 3, 5, 50] {
        assert_eq!(gradient(Adjoint::recursive_checkpoint(n)), all, "{n} checkpoints");
    }
    assert_eq!(gradient(Adjoint::RecursiveCheckpoint { checkpoints: Checkpoints::Bytes(100) }), all);
}

#[test]
fn a_failed_solve_inside_a_jitted_call_is_its_error() {
    let blow_up = jit(|y0: Tensor| {
        let ode = Ode::new(|_t, y: &Tensor| y.square());
        Ok(ode.solve(0.0, 2.0, &y0)?.y1)
    });
    let e = blow_up.call(Tensor::from(1.0)).unwrap_err().to_string();
    assert!(e.contains("the solve ended early") && e.contains("t="), "{e}");
    assert!(blow_up.call(Tensor::from(0.1)).is_ok());
    assert_eq!(blow_up.num_traces(), 1);
}

/// 1 / (1/y0 - t), which diverges at t = 1 / y0.
fn blow_up(y0: &Tensor) -> crate::Result<Tensor> {
    Ok(Ode::new(|_t, y: &Tensor| y.square()).solve(0.0, 2.0, y0)?.y1)
}

#[test]
fn a_failed_solve_in_a_tile_is_an_error_on_concrete_rows_too() {
    let rows = |last: f64| f64s(&[0.1, 0.2, 0.1, 0.3, last]);
    let tiles = |y0: &Tensor| map_rows(std::slice::from_ref(y0), 2, |y| Ok((vec![blow_up(&y[0])?], vec![])));
    let (y1, _) = tiles(&rows(0.25)).unwrap();
    assert!((y1[0].to_vec()[4] - 0.5).abs() < 1e-5);
    let Err(crate::Error::Solve(SolveError::Incomplete { outcome, .. })) = tiles(&rows(1.0)) else {
        panic!("the solve must end with an error")
    };
    assert!(matches!(outcome, Outcome::StepSizeTooSmall { t, .. } if (t - 1.0).abs() < 1e-3), "{outcome}");
    let e = value_and_grad(|y0: &Tensor| crate::Result::Ok(tiles(y0)?.0[0].sum()), &rows(1.0)).unwrap_err();
    assert!(e.to_string().contains("the solve ended early"), "{e}");
}

#[test]
#[should_panic(expected = "the solve ended early: step size")]
fn a_failed_solve_in_a_tile_that_cannot_say_so_panics() {
    let _ = map_rows(&[f64s(&[1.0, 0.1])], 2, |y| (vec![blow_up(&y[0]).unwrap()], vec![]));
}

#[test]
fn a_failure_in_nested_tiles_is_reported_as_by_its_own_solve() {
    let outer = |y0: &Tensor| {
        map_rows(std::slice::from_ref(y0), 4, |y| map_rows(y, 2, |y| Ok((vec![blow_up(&y[0])?], vec![]))))
    };
    assert!(outer(&f64s(&[0.1; 10])).is_ok());
    let alone = blow_up_outcome(&f64s(&[0.9, 0.1]));
    let Err(crate::Error::Solve(SolveError::Incomplete { outcome, .. })) =
        outer(&f64s(&[0.1, 0.1, 0.9, 0.1, 0.2, 0.2, 0.2, 0.2]))
    else {
        panic!("the solve must end with an error")
    };
    assert_eq!(outcome, alone);
}

fn blow_up_outcome(y0: &Tensor) -> Outcome {
    Ode::new(|_t, y: &Tensor| y.square()).allow_incomplete().solve(0.0, 2.0, y0).unwrap().outcome()
}

#[test]
fn equal_times_return_y0() {
    let solution = Ode::new(|_t, y: &Tensor| -y).solve(1.0, 1.0, f64s(&[3.0])).unwrap();
    assert_eq!((solution.y1.to_vec(), solution.outcome()), (vec![3.0], Outcome::Completed));
    assert_eq!(solution.stats.num_accepted.item(), 0.0);
}

#[test]
fn time_stays_f64_where_the_state_is_f32() {
    let y0 = Tensor::full(DType::F32, [1], 1.0);
    let ode = Ode::new(|_t, y: &Tensor| -y).controller(ConstantStepSize { dt0: 1e-3 });
    let solution = ode.solve(1e6, 1e6 + 1.0, y0).unwrap();
    assert_eq!((solution.stats.num_accepted.item(), solution.y1.dtype()), (1000.0, DType::F32));
    assert!((solution.y1.to_vec()[0] - (-1.0f64).exp()).abs() < 1e-5);
}

#[test]
fn the_continuous_adjoint_reaches_values_saved_at_the_ends() {
    let y0 = f64s(&[0.7, -0.2]);
    let solve = |adjoint: Adjoint, y0: &Tensor, save_at: SaveAt| {
        let field = Ode::new(|_t, y: &Tensor| y.sin() - y).rtol(1e-10).atol(1e-10).adjoint(adjoint);
        field.save_at(save_at).solve(0.0, 1.0, y0)
    };
    let ends = SaveAt::t1().and_t0();
    let gradient = |adjoint: Adjoint| {
        grad(|y0: &Tensor| solve(adjoint, y0, ends.clone()).unwrap().ys.square().sum(), &y0)
    };
    let (ours, theirs) = (gradient(Adjoint::backsolve()).to_vec(), gradient(Adjoint::Direct).to_vec());
    for (a, b) in ours.iter().zip(&theirs) {
        assert!(relative(*a, *b) < 1e-8, "{a} {b}");
    }
}
