//! The matrix of gradients: every adjoint, every saved output, every batching; against central differences on a
//! frozen grid, against each other, and with unsupported combinations refused.

use crate::adjoint::{Adjoint, Batching, EventRecords, TensorSolution};
use crate::ode::{ConfigError, Event, Method, Ode, SaveAt, StepTo};
use crate::tensor::{Tensor, Tree, grad, jit, jvp};
use crate::tree;

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    End,
    Times,
    Steps,
    Dense,
    Event,
    /// Events that do not change the state.
    Noted,
    /// Events that change the state, and every saved output around them.
    Jump,
}

const ALL: [What; 7] =
    [What::End, What::Times, What::Steps, What::Dense, What::Event, What::Noted, What::Jump];
impl What {
    fn has_events(self) -> bool {
        matches!(self, What::Event | What::Noted | What::Jump)
    }
}

const BATCHINGS: [Batching; 3] = [Batching::Joint, Batching::PerRow, Batching::Groups(2)];

// The inputs of a solve.
tree! { struct Point { mu: Tensor, y0: Tensor } }

fn point() -> Point {
    Point { mu: Tensor::from(0.8), y0: Tensor::from([[1.0, 0.5], [-0.3, 0.8], [0.6, -0.9]]) }
}

/// A batch of driven pendulums.
fn rate(mu: &Tensor, t: &Tensor, y: &Tensor) -> Tensor {
    let (a, b) = (y.slice(1, 0..1), y.slice(1, 1..2));
    Tensor::concat(&[&b, &(-(mu * a.sin()) - &b * 0.2 + (1.7 * t).sin())], 1)
}

fn solve(
    p: &Point,
    what: What,
    batching: Batching,
    adjoint: Adjoint,
) -> crate::Result<TensorSolution<Tensor>> {
    let grid = StepTo { ts: (0..=12).map(|i| f64::from(i) / 10.0).collect() };
    let ode = Ode::new(|t: Tensor, y: &Tensor| rate(&p.mu, &t, y)).method(Method::Tsit5).controller(grid);
    let ode = ode.adjoint(adjoint).batching(batching);
    let ode = match what {
        What::End => ode,
        What::Times => ode.save_at([0.05, 0.13, 0.5, 0.52, 1.2]),
        What::Steps => ode.save_at(SaveAt::every_nth_step(5)),
        What::Dense => ode.save_at(SaveAt::dense()),
        What::Event => ode.event(Event::falling().terminal(), front),
        What::Noted => ode.event(Event::falling(), front).max_events(4),
        What::Jump => {
            let ode = ode.save_at(SaveAt::ts(&[0.05, 0.5, 1.1]).and_steps().and_dense()).max_events(4);
            let mu = p.mu.clone();
            ode.on_event(Event::falling(), front, move |t, y| *y = &*y * (1.0 + 0.3 * &mu) + t * 0.1)
        }
    };
    Ok(ode.solve(0.0, 1.2, &p.y0)?)
}

/// An event function that falls through 0 within the interval, at a different time for each row.
fn front(t: Tensor, y: &Tensor) -> Tensor {
    1.1 - t - y.square().sum() * 0.3
}

/// A sum in which every saved state has a different weight.
fn loss(p: &Point, what: What, batching: Batching, adjoint: Adjoint) -> Tensor {
    let solution = solve(p, what, batching, adjoint).unwrap();
    let TensorSolution { t1, y1, ys, .. } = &solution;
    let weighed = |y: &Tensor| {
        let weights = Tensor::iota(y.dtype(), [y.size()], 0).cos();
        (y.sin().reshape([y.size()]) * weights).sum()
    };
    let known = |y: &Tensor| y.is_finite().select(y, &Tensor::from(0.0));
    let occurrences = || {
        let EventRecords { t, y, num_events: count, .. } = solution.events().unwrap();
        assert!(count.is_traced() || count.to_vec().iter().all(|n| *n > 0.0), "{count:?}");
        weighed(&known(t)) + weighed(&known(y))
    };
    let curve = || {
        let (y, dy) = solution.dense().unwrap().eval_with_derivative(&Tensor::from(&[0.07, 0.6, 1.11][..]));
        weighed(&y) + weighed(&dy) * 0.1
    };
    match what {
        What::End => weighed(y1),
        What::Times | What::Steps => weighed(ys),
        What::Event => weighed(y1) + t1.square().sum(),
        What::Dense => curve(),
        What::Noted => weighed(y1) + occurrences(),
        What::Jump => weighed(y1) + occurrences() + weighed(&known(ys)) + curve(),
    }
}

fn flat(p: &Point) -> Vec<f64> {
    p.leaves().iter().flat_map(Tensor::to_vec).collect()
}

fn gradient(what: What, batching: Batching, adjoint: Adjoint) -> Vec<f64> {
    flat(&grad(|p: &Point| loss(p, what, batching, adjoint), &point()))
}

fn differences(what: What, batching: Batching, adjoint: Adjoint) -> Vec<f64> {
    let (p, h) = (point(), 1e-5);
    let mut out = vec![];
    for (i, leaf) in p.leaves().iter().enumerate() {
        for j in 0..leaf.size() {
            let shifted = |h: f64| {
                let (mut leaves, mut v) = (p.leaves(), leaf.to_vec());
                v[j] += h;
                leaves[i] = Tensor::from_vec(leaf.shape().clone(), v);
                loss(&p.with_leaves(leaves), what, batching, adjoint).item()
            };
            out.push((shifted(h) - shifted(-h)) / (2.0 * h));
        }
    }
    out
}

fn assert_close(got: &[f64], want: &[f64], bound: f64, of: &dyn std::fmt::Debug) {
    assert_eq!(got.len(), want.len(), "{of:?}");
    for (i, (a, b)) in got.iter().zip(want).enumerate() {
        assert!((a - b).abs() <= bound * b.abs().max(1.0), "{of:?}, {i}: {a} against {b}");
    }
}

#[test]
fn gradients_with_checkpoints_are_central_differences_and_the_bits_of_direct() {
    for what in ALL {
        for batching in BATCHINGS {
            let all = gradient(what, batching, Adjoint::Direct);
            assert!(all.iter().all(|g| g.is_finite() && *g != 0.0), "{what:?} {batching:?}: {all:?}");
            assert_close(&all, &differences(what, batching, Adjoint::Direct), 1e-7, &(what, batching));
            for n in [1, 2, 5, 50] {
                let some = gradient(what, batching, Adjoint::recursive_checkpoint(n));
                assert_eq!(some, all, "{what:?} {batching:?}, {n} checkpoints");
            }
        }
    }
}

#[test]
fn rows_on_one_grid_have_the_gradients_of_all_rows_however_they_are_batched() {
    for what in [What::End, What::Times, What::Steps, What::Dense] {
        let joint = gradient(what, Batching::Joint, Adjoint::Direct);
        for batching in [Batching::PerRow, Batching::Groups(2)] {
            assert_close(&gradient(what, batching, Adjoint::Direct), &joint, 1e-13, &(what, batching));
        }
    }
}

#[test]
fn reversible_gradients_are_central_differences_of_the_reversible_map() {
    for what in ALL {
        for batching in BATCHINGS {
            if what.has_events() {
                let refused = solve(&point(), what, batching, Adjoint::reversible()).unwrap_err();
                assert!(
                    matches!(
                        refused,
                        crate::Error::Config(ConfigError::Adjoint { adjoint: "Reversible", .. })
                    ),
                    "{refused}"
                );
                continue;
            }
            let got = gradient(what, batching, Adjoint::reversible());
            let want = differences(what, batching, Adjoint::reversible());
            assert_close(&got, &want, 1e-7, &(what, batching));
        }
    }
}

#[test]
fn the_continuous_adjoint_is_close_and_refuses_unsupported_cotangents() {
    for what in ALL {
        for batching in BATCHINGS {
            if what.has_events() || matches!(what, What::Steps | What::Dense) {
                let refused = solve(&point(), what, batching, Adjoint::backsolve()).unwrap_err();
                assert!(
                    matches!(
                        refused,
                        crate::Error::Config(ConfigError::Adjoint { adjoint: "Backsolve", .. })
                    ),
                    "{refused}"
                );
                continue;
            }
            let (got, want) =
                (gradient(what, batching, Adjoint::backsolve()), gradient(what, batching, Adjoint::Direct));
            assert_close(&got, &want, 1e-4, &(what, batching));
        }
    }
}

#[test]
fn forward_derivatives_are_those_of_the_gradient_along_a_direction() {
    let along = point().with_leaves(point().leaves().iter().map(|x| (x + 1.0).cos()));
    for what in ALL {
        for batching in BATCHINGS {
            let (_, tangent) =
                jvp(|p: &Point| loss(p, what, batching, Adjoint::ForwardMode), &point(), &along);
            let want: f64 =
                gradient(what, batching, Adjoint::Direct).iter().zip(flat(&along)).map(|(g, v)| g * v).sum();
            assert_close(&[tangent.item()], &[want], 1e-12, &(what, batching));
        }
    }
}

#[test]
fn events_steps_and_curves_are_each_row_s_own() {
    let rates = [0.5, 1.0, 2.0];
    let solve = |y0: &Tensor, batching: Batching| {
        let ode = Ode::new(|_t, y: &Tensor| -(y * y)).rtol(1e-8).atol(1e-8).max_steps(60).batching(batching);
        let ode = ode.save_at(SaveAt::steps().and_dense());
        ode.event(Event::falling().terminal(), |_t, y: &Tensor| y.sum() - 0.25).solve(0.0, 20.0, y0).unwrap()
    };
    let ts = Tensor::from(&[0.1, 0.9][..]);
    for batching in [Batching::PerRow, Batching::Groups(1)] {
        let call = jit(move |y0: Tensor| {
            let all = solve(&y0, batching);
            let curve = all.dense().unwrap();
            let ts = Tensor::from(&[0.1, 0.9][..]);
            Ok((
                all.t1.clone(),
                all.ts.clone(),
                all.ys.clone(),
                curve.eval(&ts),
                curve.eval(&Tensor::from(0.3)),
            ))
        });
        // An event is not an error in a jit, nor are events of rows.
        let (t1, all_ts, all_ys, at, once) = call.call(Tensor::from(&rates[..])).unwrap();
        assert_eq!((at.shape().to_vec(), once.shape().to_vec()), (vec![2, 3], vec![3]));
        for (r, y0) in rates.iter().enumerate() {
            let one = solve(&Tensor::from(&[*y0][..]), Batching::Joint);
            let bits = |x: &Tensor| x.to_vec().iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
            assert_eq!(t1.to_vec()[r].to_bits(), one.t1.item().to_bits());
            // Between step times, dense output has order 4.
            assert!((one.t1.item() - (4.0 - 1.0 / y0)).abs() < 1e-4);
            assert_eq!(bits(&all_ts.column(r)), bits(&one.ts));
            assert_eq!(bits(&all_ys.column(r)), bits(&one.ys));
            assert_eq!(bits(&at.column(r)), bits(&one.dense().unwrap().eval(&ts)));
            assert_eq!(once.to_vec()[r], one.dense().unwrap().eval(&Tensor::from(0.3)).to_vec()[0]);
        }
    }
}

#[test]
fn a_second_reverse_derivative_of_rows_in_lockstep_names_the_remedy() {
    let types = [crate::graph::Type::array(crate::array::DType::F64, [3, 2])];
    let traced = crate::tensor::trace(&types, &mut |x| {
        let p = Point { y0: x[0].clone(), ..point() };
        let gradient =
            |p: &Point| grad(|p: &Point| loss(p, What::End, Batching::PerRow, Adjoint::Direct), p).y0;
        vec![gradient(&p).square().sum()]
    });
    let refused = crate::transform::vjp(&traced.func, &[0], &[0]).unwrap_err().to_string();
    assert!(refused.contains("PerRow") && refused.contains("Groups(1)"), "{refused}");
}
