//! Second derivatives through solves that store every state: forward over reverse, reverse over reverse, finite
//! differences.

use crate::adjoint::Adjoint;
use crate::ode::{Ode, StepTo};
use crate::tensor::{Tensor, grad, jit, jvp, map_rows, value_and_grad};

fn rate(p: &Tensor, y: &Tensor) -> Tensor {
    let (a, b) = (y.index(0), y.index(1));
    let both = &a * &b;
    Tensor::stack(&[&(p.index(0) * &a - p.index(1) * &both), &(both - p.index(2) * b.sin())])
}

/// The accepted step times of an adaptive solve by Tsit5.
fn grid() -> Vec<f64> {
    let p = [1.5, 1.0, 3.0];
    let field = |_t: f64, y: &[f64; 2]| [p[0] * y[0] - p[1] * y[0] * y[1], y[0] * y[1] - p[2] * y[1].sin()];
    Ode::new(field).rtol(1e-6).atol(1e-6).solve(0.0, 2.0, [1.0, 0.5]).unwrap().step_times
}

/// The sum of y1 and of the squares of the saved states, some of them inside steps; steps follow `grid` unless it is
/// empty.
fn loss(p: &Tensor, grid: &[f64], adjoint: Adjoint) -> Tensor {
    let ode = Ode::new(|_t, y: &Tensor| rate(p, y)).adjoint(adjoint).save_at([0.3, 0.31, 1.234, 2.0]);
    let ode = match grid {
        [] => ode.rtol(1e-6).atol(1e-6),
        grid => ode.controller(StepTo { ts: grid.to_vec() }),
    };
    let solution = ode.solve(0.0, 2.0, Tensor::from(&[1.0, 0.5][..])).unwrap();
    solution.ys.square().sum() + solution.y1.sum()
}

fn at() -> (Tensor, Tensor) {
    (Tensor::from(&[1.5, 1.0, 3.0][..]), Tensor::from(&[0.3, -1.0, 0.5][..]))
}

fn largest(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs() / b.abs().max(1.0)).fold(0.0, f64::max)
}

fn forward_over_reverse(grid: &[f64], adjoint: Adjoint) -> Vec<f64> {
    let (p, v) = at();
    jvp(|p: &Tensor| grad(|p: &Tensor| loss(p, grid, adjoint), p), &p, &v).1.to_vec()
}

fn reverse_over_reverse(grid: &[f64]) -> Vec<f64> {
    let (p, v) = at();
    let gradient = |p: &Tensor| (grad(|p: &Tensor| loss(p, grid, Adjoint::Direct), p) * &v).sum();
    grad(gradient, &p).to_vec()
}

#[test]
fn a_hessian_times_a_vector_is_the_same_three_ways_with_saved_times() {
    let (grid, (p, v)) = (grid(), at());
    assert!(grid.len() > 5);
    let gradients = jit({
        let grid = grid.clone();
        move |p: Tensor| grad(|p: &Tensor| loss(p, &grid, Adjoint::Direct), &p)
    });
    let gradients = |h: f64| gradients.call(&p + &v * h).unwrap().to_vec();
    let difference = |h: f64| -> Vec<f64> {
        gradients(h).iter().zip(gradients(-h)).map(|(a, b)| (a - b) / (2.0 * h)).collect()
    };
    let (fine, coarse) = (difference(1e-3), difference(2e-3));
    let differences: Vec<f64> = fine.iter().zip(coarse).map(|(f, c)| (4.0 * f - c) / 3.0).collect();
    let (forward, reverse) = (forward_over_reverse(&grid, Adjoint::Direct), reverse_over_reverse(&grid));
    assert!(largest(&reverse, &forward) < 1e-12, "{reverse:?} {forward:?}");
    assert!(largest(&forward, &differences) < 1e-8, "{forward:?} {differences:?}");
    assert_eq!(forward_over_reverse(&grid, Adjoint::recursive_checkpoint(2)), forward);
}

#[test]
fn reverse_over_reverse_follows_the_accepted_steps_of_an_adaptive_solve() {
    let (forward, reverse) = (forward_over_reverse(&[], Adjoint::Direct), reverse_over_reverse(&[]));
    assert!(largest(&reverse, &forward) < 1e-12, "{reverse:?} {forward:?}");
}

#[test]
fn a_third_derivative_is_the_same_in_every_mix() {
    let f = |p: &Tensor| {
        let ode = Ode::new(|_t, y: &Tensor| -(p * y).sin()).adjoint(Adjoint::Direct);
        let ts = StepTo { ts: vec![0.0, 0.3, 0.5, 1.0] };
        ode.controller(ts).solve(0.0, 1.0, Tensor::from(1.2)).unwrap().y1
    };
    let (p, one) = (Tensor::from(0.7), Tensor::from(1.0));
    let first = |p: &Tensor| grad(f, p);
    let second = |p: &Tensor| grad(first, p);
    let reverse = grad(second, &p).item();
    let mixed = jvp(second, &p, &one).1.item();
    let forward = jvp(|p: &Tensor| jvp(|p: &Tensor| jvp(f, p, &one).1, p, &one).1, &p, &one).1.item();
    assert!(
        (reverse - forward).abs() < 1e-12 && (mixed - forward).abs() < 1e-12,
        "{reverse} {mixed} {forward}"
    );
    assert!(forward.abs() > 1e-3);
}

#[test]
fn reverse_over_reverse_runs_in_tiles_and_is_refused_by_name_where_states_are_bounded() {
    let rows = Tensor::from_vec([4, 2], vec![0.5, 1.0, -0.3, 0.2, 0.9, 0.1, 0.4, -0.6]);
    let energy = |w: &Tensor, adjoint: Adjoint| {
        let (_, sums) = map_rows(std::slice::from_ref(&rows), 2, |x| {
            let ode = Ode::new(|_t, y: &Tensor| y.matmul(w).tanh()).adjoint(adjoint);
            (vec![], vec![ode.solve(0.0, 1.0, &x[0]).unwrap().y1.square().sum()])
        });
        sums[0].clone()
    };
    let w = Tensor::from_vec([2, 2], vec![0.3, -0.2, 0.8, 0.1]);
    let gradient = |w: &Tensor| grad(|w: &Tensor| energy(w, Adjoint::Direct), w).square().sum();
    let (forward, reverse) = (jvp(gradient, &w, &w).1.item(), (grad(gradient, &w) * &w).sum().item());
    assert!((forward - reverse).abs() < 1e-11 * forward.abs(), "{forward} {reverse}");
    for (adjoint, name) in
        [(Adjoint::default(), "RecursiveCheckpoint"), (Adjoint::reversible(), "Reversible")]
    {
        let gradient =
            |w: &Tensor| crate::Result::Ok(grad(|w: &Tensor| energy(w, adjoint), w).square().sum());
        let e = value_and_grad(gradient, &w).map(|_| ()).unwrap_err().to_string();
        assert!(e.contains(&format!("`{name}`")) && e.contains("use the adjoint `Direct`"), "{e}");
    }
}
