//! Simultaneous events on tensors act together, as on plain states, and their derivatives equal finite differences.

use super::f64s;
use super::steps::close;
use crate::adjoint::{Adjoint, Batching, TensorSolution};
use crate::ode::{Event, Method, Ode, Outcome};
use crate::tensor::{Tensor, jit, value_and_grad};

/// y with component i multiplied by `-factor`.
fn turned(y: &Tensor, i: usize, factor: &Tensor) -> Tensor {
    let n = y.size();
    let is_own = Tensor::iota(crate::array::DType::F64, [n], 0).eq(i as f64);
    is_own.select(&-(y * factor), y)
}

/// Free flight of n points with n velocities. An event multiplies the velocity of its point by `-factor`.
fn flight(
    n: usize,
    events: &[(usize, Event, f64)],
    factor: &Tensor,
) -> Ode<'static, Tensor, impl crate::ode::VectorField<Tensor> + use<>> {
    let field =
        move |_t: Tensor, y: &Tensor| Tensor::concat(&[&y.slice(0, n..2 * n), &(y.slice(0, 0..n) * 0.0)], 0);
    let mut ode = Ode::new(field);
    for &(i, event, wall) in events {
        let factor = factor.clone();
        ode = ode.on_event(
            event,
            move |_t, y: &Tensor| y.index(i) - wall,
            move |_t, y| *y = turned(y, n + i, &factor),
        );
    }
    ode
}

/// Asserts that the gradients of `f` with respect to y0 and the factor equal central differences.
fn gradients_equal_finite_differences(f: impl Fn(&Tensor, &Tensor) -> Tensor, y0: &[f64], factor: f64) {
    let (_, (dy, df)) =
        value_and_grad(|(y, factor): &(Tensor, Tensor)| f(y, factor), &(f64s(y0), Tensor::from(factor)));
    let h = 1e-6;
    let at = |j: usize, d: f64| {
        let mut y = y0.to_vec();
        let mut factor = factor;
        *y.get_mut(j).unwrap_or(&mut factor) += d;
        f(&f64s(&y), &Tensor::from(factor)).item()
    };
    let expected: Vec<f64> = (0..=y0.len()).map(|j| (at(j, h) - at(j, -h)) / (2.0 * h)).collect();
    close(&[dy.to_vec(), vec![df.item()]].concat(), &expected, 1e-7);
}

fn weighed(s: &TensorSolution<Tensor>) -> Tensor {
    (&s.y1 * (Tensor::iota(crate::array::DType::F64, [s.y1.size()], 0) + 1.0).cos()).sum()
}

#[test]
fn a_corner_and_three_walls_turn_every_component_once_in_both_directions_with_gradients() {
    for sign in [1.0, -1.0] {
        for n in [2, 3] {
            let walls: Vec<_> = (0..n).map(|i| (i, Event::falling(), 0.0)).collect();
            let places: Vec<f64> = [0.3, 0.7, 1.1][..n].to_vec();
            let speeds = places.iter().map(|y| -y * sign);
            let y0: Vec<f64> = places.iter().copied().chain(speeds).collect();
            let solve =
                |y: &Tensor, factor: &Tensor| flight(n, &walls, factor).solve(0.0, 1.5 * sign, y).unwrap();
            let solution = solve(&f64s(&y0), &Tensor::from(1.0));
            assert_eq!(solution.events().unwrap().num_events.item(), n as f64);
            let expected: Vec<f64> =
                places.iter().map(|y| 0.5 * y).chain(places.iter().map(|y| y * sign)).collect();
            close(&solution.y1.to_vec(), &expected, 1e-12);
            gradients_equal_finite_differences(|y, factor| weighed(&solve(y, factor)), &y0, 0.9);
        }
    }
}

#[test]
fn two_equal_balls_stay_equal_with_gradients() {
    let solve = |y: &Tensor, factor: &Tensor| {
        let g = f64s(&[0.0, 0.0, -9.81, -9.81]);
        let field = move |_t: Tensor, y: &Tensor| {
            Tensor::concat(&[&y.slice(0, 2..4), &(y.slice(0, 0..2) * 0.0)], 0) + &g
        };
        let (a, b) = (factor.clone(), factor.clone());
        let ode = Ode::new(field)
            .on_event(Event::falling(), |_t, y: &Tensor| y.index(0), move |_t, y| *y = turned(y, 2, &a))
            .on_event(Event::falling(), |_t, y: &Tensor| y.index(1), move |_t, y| *y = turned(y, 3, &b));
        ode.solve(0.0, 3.0, y).unwrap()
    };
    let y0 = [10.0, 10.0, 0.0, 0.0];
    let y1 = solve(&f64s(&y0), &Tensor::from(1.0)).y1.to_vec();
    assert_eq!((y1[0], y1[2]), (y1[1], y1[3]));
    assert!(y1[0] > 0.0);
    gradients_equal_finite_differences(|y, factor| weighed(&solve(y, factor)), &y0, 0.8);
}

#[test]
fn events_on_one_root_all_happen_in_whatever_order_they_are_declared() {
    for sign in [1.0, -1.0] {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut ode = Ode::new(|_t, y: &Tensor| {
                Tensor::stack(&[&y.index(1), &Tensor::from(0.0), &Tensor::from(0.0)])
            });
            for kind in order {
                let root = |_t: Tensor, y: &Tensor| y.index(0);
                ode = match kind {
                    0 => ode.event(Event::crossing(), root),
                    1 => ode.on_event(Event::falling(), root, |_t, y| *y = turned(y, 1, &Tensor::from(1.0))),
                    _ => ode.on_event(Event::falling(), root, |_t, y| *y = &*y + f64s(&[0.0, 0.0, 1.0])),
                };
            }
            let solution = ode.solve(0.0, 3.0 * sign, f64s(&[1.0, -sign, 0.0])).unwrap();
            let occurrences = solution.events().unwrap();
            assert_eq!(
                (occurrences.num_events.item(), &occurrences.index.to_vec()[..3]),
                (3.0, &[0.0, 1.0, 2.0][..]),
                "{order:?}"
            );
            close(&solution.y1.to_vec(), &[2.0, sign, 1.0], 1e-12);
        }
    }
}

#[test]
fn a_ball_in_a_box_reflects_as_on_plain_states() {
    for sign in [1.0, -1.0] {
        let walls: Vec<_> =
            (0..3).flat_map(|i| [(i, Event::falling(), 0.0), (i, Event::rising(), 1.0)]).collect();
        let y0 = [0.5, 0.35, 0.45, 1.0, 0.7, 0.9];
        let ode = flight(3, &walls, &Tensor::from(1.0)).max_events(400).max_steps(10_000);
        let run = jit(move |y: Tensor| {
            let solution = ode.solve(0.0, 100.3 * sign, &y)?;
            Ok((solution.events()?.num_events.clone(), solution.y1))
        });
        let (count, y1) = run.call(f64s(&y0)).unwrap();
        let plain = Ode::new(|_t, y: &[f64; 6]| [y[3], y[4], y[5], 0.0, 0.0, 0.0]);
        let plain = (0..3).fold(plain, |ode, i| {
            let turn = move |_t: f64, y: &mut [f64; 6]| y[3 + i] = -y[3 + i];
            ode.on_event(Event::falling(), move |_t, y| y[i], turn).on_event(
                Event::rising(),
                move |_t, y| y[i] - 1.0,
                turn,
            )
        });
        let plain = plain.solve(0.0, 100.3 * sign, y0).unwrap();
        assert_eq!(count.item(), plain.events.len() as f64);
        close(&y1.to_vec(), &plain.y1, 1e-9);
    }
}

#[test]
fn a_fall_ends_where_it_does_however_far_t1_lies() {
    for t1 in [1e3, 1e9, 1e15, 1e100, f64::INFINITY] {
        let time = |height: &Tensor| {
            let ode = Ode::new(|_t, y: &Tensor| Tensor::stack(&[&y.index(1), &Tensor::from(-9.81)]));
            let ode = ode.event(Event::falling().terminal(), |_t, y: &Tensor| y.index(0));
            ode.solve(0.0, t1, Tensor::stack(&[height, &Tensor::from(0.0)])).unwrap().t1
        };
        let (t, gradient) = value_and_grad(time, &Tensor::from(44.145));
        close(&[t.item(), gradient.item()], &[3.0, 3.0 / (2.0 * 44.145)], 1e-12);
    }
    let endless = Ode::new(|_t, y: &Tensor| -y).solve(0.0, f64::INFINITY, Tensor::from(1.0));
    assert!(endless.unwrap_err().to_string().contains("t1=inf"));
}

/// A ball that keeps a fraction of its speed.
fn ball(restitution: f64, max_events: usize) -> Ode<'static, Tensor, impl crate::ode::VectorField<Tensor>> {
    let ode = Ode::new(|_t, y: &Tensor| Tensor::stack(&[&y.index(1), &Tensor::from(-9.81)]));
    ode.max_events(max_events).on_event(
        Event::falling(),
        |_t, y: &Tensor| y.index(0),
        move |_t, y| *y = turned(y, 1, &Tensor::from(restitution)),
    )
}

#[test]
fn bounces_that_accumulate_end_the_solve_as_on_plain_states() {
    let fall = (2.0_f64 / 9.81).sqrt();
    for restitution in [0.1, 0.5] {
        let solution =
            ball(restitution, 100).allow_incomplete().solve(0.0, 100.0, f64s(&[1.0, 0.0])).unwrap();
        let Outcome::Zeno { index: 0, t } = solution.outcome() else { panic!("{:?}", solution.outcome()) };
        let end = fall * (1.0 + 2.0 * restitution / (1.0 - restitution));
        assert!((t - end).abs() < 1e-8, "{t} is not {end}");
    }
    for t1 in [1e3, 1e9] {
        let ode = ball(1.0, 200).event(Event::falling().terminal_after(100), |_t, y: &Tensor| y.index(0));
        let solution = ode.solve(0.0, t1, f64s(&[1.0, 0.0])).unwrap();
        assert_eq!(solution.outcome(), Outcome::Event { index: 1, t: solution.t1.item() });
        close(&[solution.t1.item()], &[199.0 * fall], 1e-10);
    }
}

#[test]
fn an_event_that_is_nan_shortens_the_step() {
    let ode = || Ode::new(|_t, y: &Tensor| y * 0.0 - 1.0);
    let stops = ode().event(Event::falling().terminal(), |_t, y: &Tensor| y.sqrt() - 0.1);
    close(&[stops.solve(0.0, 5.0, Tensor::from(1.0)).unwrap().t1.item()], &[0.99], 1e-12);
    let starts = ode().event(Event::falling(), |_t, y: &Tensor| y.sqrt());
    let outcome = starts.allow_incomplete().solve(0.0, 5.0, Tensor::from(-1.0)).unwrap().outcome();
    assert!(matches!(outcome, Outcome::NonFiniteEvent { index: 0, t: 0.0, step: 0, .. }), "{outcome:?}");
}

#[test]
fn the_nth_occurrence_ends_the_solve_also_if_a_step_holds_several() {
    for n in 1..=4 {
        let ode = Ode::new(|_t, y: &Tensor| y * 0.0 + 1.0).method(Method::Rk4).dt0(10.0);
        let event = Event::rising().terminal_after(n).interp_points(40);
        let ode = ode.event(event, |_t, y: &Tensor| (2.0 * std::f64::consts::PI * y).sin());
        let solution = ode.solve(0.0, 10.0, Tensor::from(-0.25)).unwrap();
        assert_eq!(solution.events().unwrap().num_events.item(), n as f64);
        close(&[solution.t1.item()], &[n as f64 - 0.75], 1e-12);
    }
}

#[test]
fn events_that_end_the_solve_together_are_both_recorded_also_row_by_row() {
    let both = || {
        Ode::new(|_t, y: &Tensor| y * 0.0 - 1.0)
            .event(Event::falling().terminal(), |_t, y: &Tensor| y.sum())
            .event(Event::falling().terminal(), |_t, y: &Tensor| 2.0 * y.sum())
    };
    let solution = both().solve(0.0, 5.0, f64s(&[1.0])).unwrap();
    let occurrences = solution.events().unwrap();
    assert_eq!((occurrences.num_events.item(), occurrences.index.to_vec()), (2.0, vec![0.0, 1.0]));
    assert!(matches!(solution.outcome(), Outcome::Event { index: 0, .. }));
    let rows = f64s(&[1.0, 2.0]).reshape([2, 1]);
    let solution = both().batching(Batching::PerRow).adjoint(Adjoint::Direct).solve(0.0, 5.0, &rows).unwrap();
    close(&solution.t1.to_vec(), &[1.0, 2.0], 1e-12);
    assert_eq!(solution.events().unwrap().num_events.to_vec(), [2.0, 2.0]);
}
