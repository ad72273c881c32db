//! Events on tensors that do not end a solve, or that change its state: they equal those of plain states, and so
//! do all saved values around them.

use super::f64s;
use super::steps::{close, pushed_tensor};
use crate::adjoint::{Batching, EventRecords};
use crate::array::DType;
use crate::ode::{ConfigError, ConstantStepSize, Event, Method, Ode, Outcome, PidController, SaveAt, StepTo};
use crate::tensor::{Tensor, jit};

pub(super) fn flipped(y: &Tensor, factor: &Tensor) -> Tensor {
    Tensor::stack(&[&y.index(0), &-(factor * y.index(1))])
}

/// Asserts equality up to 1e-12: relative, or absolute for numbers below 1.
fn near(got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (i, (a, b)) in got.iter().zip(want).enumerate() {
        assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "[{i}]: {a} against {b}");
    }
}

#[test]
fn zeros_of_an_oscillator_are_counted_where_they_are_without_a_step_being_changed() {
    let field = |_t: Tensor, y: &Tensor| Tensor::stack(&[&y.index(1), &-y.index(0)]);
    let y0 = f64s(&[0.0, 1.0]);
    let plain = Ode::new(field).method(Method::Vern7).rtol(1e-12).atol(1e-13);
    let count = jit(move |y0: Tensor| {
        let ode = Ode::new(field).method(Method::Vern7).rtol(1e-12).atol(1e-13);
        let ode = ode.event(Event::crossing(), |_t, y: &Tensor| y.index(0)).max_events(10);
        let solution = ode.solve(0.0, 20.0, &y0)?;
        let EventRecords { t, index, num_events: count, .. } = solution.events()?.clone();
        Ok((t, index, count, solution.y1, solution.stats.num_steps))
    });
    let (t, index, count, y1, steps) = count.call(y0.clone()).unwrap();
    let want: Vec<f64> = (1..=6).map(|k| std::f64::consts::PI * f64::from(k)).collect();
    close(&t.to_vec()[..6], &want, 1e-10);
    assert_eq!((count.item(), &index.to_vec()[..6]), (6.0, &[0.0; 6][..]));
    assert!(t.to_vec()[6..].iter().all(|t| t.is_nan()));
    let plain = plain.solve(0.0, 20.0, &y0).unwrap();
    assert_eq!(steps.item(), plain.stats.num_steps.item());
    close(&y1.to_vec(), &plain.y1.to_vec(), 1e-12);
}

/// The same four events on plain states and on tensors: one is recorded, two change the state, one ends the solve.
macro_rules! watched {
    ($ode:expr, $y:ident, $at:expr, $kick:expr) => {
        $ode.event(Event::crossing(), |_t, $y| $at)
            .on_event(Event::rising(), |t, _y| (t * 0.9).sin() - 0.3, $kick)
            .on_event(Event::falling(), |_t, $y| $at + 0.35, $kick)
            .event(Event::rising().terminal(), |t, _y| t.abs() - 9.75)
    };
}

#[test]
fn events_states_and_all_saved_values_equal_those_of_plain_states() {
    let field = |t: f64, y: &[f64; 2]| [y[1], -1.3 * y[0].sin() - 0.2 * y[1] + (1.7 * t).sin()];
    let mu = Tensor::from(1.3);
    let kick = |y: &mut [f64; 2]| y[1] = -0.7 * y[1] + 0.2;
    let kick_tensor = |y: &mut Tensor| *y = Tensor::stack(&[&y.index(0), &(-0.7 * y.index(1) + 0.2)]);
    for method in [Method::Tsit5, Method::Dopri5, Method::Bosh3, Method::Vern7, Method::CashKarp] {
        for (sign, every) in [(1.0, 1), (-1.0, 1), (1.0, 3)] {
            let end = 10.0 * sign;
            let grid = Ode::new(field).method(method).solve(0.0, end, [1.0, 0.5]).unwrap().step_times;
            let times: Vec<f64> = (1..40).map(|i| 0.25 * sign * f64::from(i)).collect();
            let mut save_at = SaveAt::every_nth_step(every).and_dense();
            save_at.t0 = true;
            save_at.ts = times.clone();
            let ode = Ode::new(field).method(method).controller(StepTo { ts: grid.clone() });
            let plain = watched!(ode.save_at(save_at.clone()), y, y[0], move |_t, y| kick(y));
            let plain = plain.solve(0.0, end, [1.0, 0.5]).unwrap();
            let ode = Ode::new(|t: Tensor, y: &Tensor| pushed_tensor(&mu, &t, y)).method(method);
            let ode = ode.controller(StepTo { ts: grid }).save_at(save_at).max_events(30);
            let ode = watched!(ode, y, y.index(0), move |_t, y| kick_tensor(y));
            let got = ode.solve(0.0, end, f64s(&[1.0, 0.5])).unwrap();

            let n = plain.events.len();
            assert!(n > 7 && plain.events.iter().any(|e| e.index == 2), "{:?}", plain.events);
            assert!(matches!(got.outcome(), Outcome::Event { index: 3, .. }), "{:?}", got.outcome());
            let occurrences = got.events().unwrap();
            assert_eq!(occurrences.num_events.item() as usize, n);
            let index: Vec<f64> = plain.events.iter().map(|e| e.index as f64).collect();
            assert_eq!(occurrences.index.to_vec()[..n], index);
            near(&occurrences.t.to_vec()[..n], &plain.events.iter().map(|e| e.t).collect::<Vec<_>>());
            let ys: Vec<f64> = plain.events.iter().flat_map(|e| e.y).collect();
            near(&occurrences.y.to_vec()[..2 * n], &ys);
            near(&[got.t1.item()], &[plain.t1]);
            near(&got.y1.to_vec(), &plain.y1);
            assert_eq!(got.stats.num_accepted.item() as u64, plain.stats.num_accepted);

            let (ts, ys) = (got.ts.to_vec(), got.ys.to_vec());
            let saved = got.num_saved.item() as usize;
            assert_eq!(saved, plain.ts.len());
            near(&ts[..saved], &plain.ts);
            near(&ys[..2 * saved], &plain.ys.concat());
            assert!(ts[saved..].iter().chain(&ys[2 * saved..]).all(|x| x.is_nan()));
            let curve = got.dense().unwrap();
            for i in 0..200 {
                let t = plain.t1 * (f64::from(i) + 0.37) / 200.0;
                near(&curve.eval(&Tensor::from(t)).to_vec(), &plain.dense().unwrap().eval(t).unwrap());
            }
        }
    }
}

#[test]
fn a_solve_with_adaptive_steps_continues_after_an_event_as_plain_states_do() {
    let field = |t: f64, y: &[f64; 2]| [y[1], -1.3 * y[0].sin() - 0.2 * y[1] + (1.7 * t).sin()];
    let mu = Tensor::from(1.3);
    let controllers: [crate::ode::Controller; 3] = [
        PidController::default().into(),
        crate::ode::HairerController::default().into(),
        ConstantStepSize { dt0: 0.11 }.into(),
    ];
    for controller in controllers {
        for stops in [&[][..], &[2.0, 3.3, 5.1]] {
            let ode = Ode::new(field).controller(controller.clone()).tstops(stops);
            let ode = if controller.is_adaptive() { ode.rtol(1e-7).atol(1e-9) } else { ode };
            let plain = ode.on_event(Event::crossing(), |_t, y| y[0], |_t, y| y[1] *= 0.7);
            let plain = plain.solve(0.0, 7.0, [1.0, 0.5]).unwrap();
            let ode =
                Ode::new(|t: Tensor, y: &Tensor| pushed_tensor(&mu, &t, y)).controller(controller.clone());
            let ode = ode.tstops(stops);
            let ode = if controller.is_adaptive() { ode.rtol(1e-7).atol(1e-9) } else { ode };
            let ode = ode.on_event(
                Event::crossing(),
                |_t, y| y.index(0),
                |_t, y| *y = flipped(y, &Tensor::from(-0.7)),
            );
            let got = ode.solve(0.0, 7.0, f64s(&[1.0, 0.5])).unwrap();
            assert_eq!(got.events().unwrap().num_events.item() as usize, plain.events.len());
            let steps = [&got.stats.num_steps, &got.stats.num_accepted].map(|x| x.item() as u64);
            assert_eq!(steps, [plain.stats.num_steps, plain.stats.num_accepted], "{controller:?} {stops:?}");
            assert_eq!(got.stats.num_fn_evals.item() as u64, plain.stats.num_fn_evals);
            close(&got.y1.to_vec(), &plain.y1, 1e-9);
        }
    }
    // Every third step is saved, counted over all pieces.
    let plain = Ode::new(field).controller(ConstantStepSize { dt0: 0.11 });
    let plain = plain.on_event(Event::crossing(), |_t, y| y[0], |_t, y| y[1] *= 0.7);
    let plain = plain.save_at(SaveAt::steps()).solve(0.0, 7.0, [1.0, 0.5]).unwrap();
    let ode = Ode::new(|t: Tensor, y: &Tensor| pushed_tensor(&mu, &t, y)).save_at(SaveAt::every_nth_step(3));
    let ode = ode.controller(ConstantStepSize { dt0: 0.11 });
    let ode =
        ode.on_event(Event::crossing(), |_t, y| y.index(0), |_t, y| *y = flipped(y, &Tensor::from(-0.7)));
    let got = ode.max_steps(300).solve(0.0, 7.0, f64s(&[1.0, 0.5])).unwrap();
    // The first row is t0.
    let (n, num_saved) = (plain.ts.len(), got.num_saved.item() as usize);
    assert_eq!(num_saved, 1 + (n - 1).div_ceil(3));
    for (k, y) in got.ys.to_vec().chunks(2).take(num_saved).enumerate() {
        close(y, &plain.ys[(3 * k).min(n - 1)], 1e-9);
    }
    // Steps are counted over all pieces.
    let plain = Ode::new(field).max_steps(20).on_event(Event::crossing(), |_t, y| y[0], |_t, y| y[1] *= 0.7);
    let plain = plain.allow_incomplete().solve(0.0, 7.0, [1.0, 0.5]).unwrap();
    let ode = Ode::new(|t: Tensor, y: &Tensor| pushed_tensor(&mu, &t, y)).max_steps(20);
    let ode =
        ode.on_event(Event::crossing(), |_t, y| y.index(0), |_t, y| *y = flipped(y, &Tensor::from(-0.7)));
    let got = ode.solve(0.0, 7.0, f64s(&[1.0, 0.5])).unwrap_err().into_partial().unwrap();
    assert!(matches!(got.outcome(), Outcome::MaxSteps { step: 20, .. }) && !plain.events.is_empty());
    assert_eq!(got.events().unwrap().num_events.item() as usize, plain.events.len());
    close(&got.y1.to_vec(), &plain.y1, 1e-9);
}

#[test]
fn several_events_in_one_step_are_recorded_in_time_order_up_to_the_first_that_cuts() {
    let run = |events: &[(Event, f64, bool)], t1: f64| {
        let mut ode = Ode::new(|_t, y: &Tensor| y * 0.0 + 1.0).controller(ConstantStepSize { dt0: 1.0 });
        for &(event, at, is_jump) in events {
            let when = move |_t: Tensor, y: &Tensor| (y - at) * (y - at - 0.05);
            ode = match is_jump {
                false => ode.event(event.interp_points(40), when),
                true => ode.on_event(event.interp_points(40), when, |_t, y: &mut Tensor| *y = &*y + 10.0),
            };
        }
        let got = ode.max_events(8).solve(0.0, t1, Tensor::from(0.0)).unwrap();
        assert_eq!(got.outcome(), Outcome::Completed);
        let occurrences = got.events().unwrap().clone();
        let n = occurrences.num_events.item() as usize;
        let steps = got.stats.num_steps.item();
        (occurrences.index.to_vec()[..n].to_vec(), occurrences.t.to_vec()[..n].to_vec(), got.y1.item(), steps)
    };
    let note = Event::crossing();
    for t1 in [1.0, 2.0] {
        let (index, t, y1, steps) = run(&[(note, 0.6, false), (note, 0.3, false)], t1);
        assert_eq!((index, steps), (vec![1.0, 1.0, 0.0, 0.0], t1));
        close(&[&t[..], &[y1]].concat(), &[0.3, 0.35, 0.6, 0.65, t1], 1e-13);
    }
    let jump = (Event::rising(), 0.3, true);
    let (index, t, y1, _) = run(&[(note, 0.6, false), jump, (note, 0.2, false)], 2.0);
    assert_eq!(index, [2.0, 2.0, 1.0]);
    close(&[&t[..], &[y1]].concat(), &[0.2, 0.25, 0.35, 12.0], 1e-13);
}

#[test]
fn an_event_without_a_row_ends_the_solve_with_max_events() {
    let zeros = |max_events: usize, jumps: bool| {
        let ode =
            Ode::new(|_t, y: &Tensor| Tensor::stack(&[&y.index(1), &-y.index(0)])).rtol(1e-10).atol(1e-10);
        let ode = ode.max_events(max_events);
        match jumps {
            false => ode.event(Event::crossing(), |_t, y| y.index(0)),
            true => ode.on_event(
                Event::crossing(),
                |_t, y| y.index(0),
                |_t, y| *y = flipped(y, &Tensor::from(-1.0)),
            ),
        }
    };
    for jumps in [false, true] {
        let y0 = f64s(&[0.0, 1.0]);
        let full = zeros(2, jumps).allow_incomplete().solve(0.0, 20.0, &y0).unwrap();
        let third = 3.0 * std::f64::consts::PI;
        let Outcome::MaxEvents { t, max_events: 2 } = full.outcome() else { panic!("{:?}", full.outcome()) };
        assert!((t - third).abs() < 1e-7 && full.t1.item() == t, "{t}");
        close(&full.y1.to_vec()[1..], &[-1.0], 1e-7);
        let occurrences = full.events().unwrap();
        assert_eq!((occurrences.num_events.item(), occurrences.t.shape().to_vec()), (2.0, vec![2]));
        let failed = jit(move |y0: Tensor| Ok(zeros(2, jumps).solve(0.0, 20.0, &y0)?.y1)).call(y0.clone());
        let why = failed.unwrap_err().to_string();
        assert!(why.contains("max_events=2") && why.contains("allow more"), "{why}");
        // As many rows as events are enough.
        let fits = zeros(6, jumps).solve(0.0, 20.0, &y0).unwrap();
        assert_eq!((fits.outcome(), fits.events().unwrap().num_events.item()), (Outcome::Completed, 6.0));
    }
    let much = Tensor::full(DType::F64, [1 << 20], 0.0);
    let e = Ode::new(|_t, y: &Tensor| -y).event(Event::rising(), |_t, y: &Tensor| y.sum());
    let e = crate::Error::from(e.solve(0.0, 1.0, much).unwrap_err());
    assert!(
        matches!(e, crate::Error::Config(ConfigError::EventRecordsTooLarge { rows: 64, .. }))
            && e.to_string().contains("max_events"),
        "{e}"
    );
}

#[test]
fn a_terminal_reset_records_the_state_before_it_and_ends_with_the_state_after() {
    let ode =
        Ode::new(|_t, y: &Tensor| y * 0.0 + 1.0).save_at(SaveAt::ts(&[0.25, 0.75]).and_steps()).dt0(1.0);
    let ode = ode.max_steps(50).on_event(Event::rising().terminal(), |_t, y| y - 0.5, |_t, y| *y = &*y * 4.0);
    let got = ode.solve(0.0, 1.0, Tensor::from(0.0)).unwrap();
    assert!(matches!(got.outcome(), Outcome::Event { index: 0, .. }));
    close(&[got.y1.item(), got.events().unwrap().y.to_vec()[0]], &[2.0, 0.5], 1e-14);
    // One step would contain both saved times, and one of its samples is the root itself.
    let ys = got.ys.to_vec();
    close(&ys[..3], &[0.0, 0.25, 0.5], 1e-14);
    assert!(got.num_saved.item() == 3.0 && ys[3..].iter().all(|y| y.is_nan()));
    // A terminal event without a reset has one row.
    let ode = Ode::new(|_t, y: &Tensor| y * 0.0 + 1.0).event(Event::rising().terminal(), |_t, y| y - 0.5);
    let got = ode.clone().solve(0.0, 1.0, Tensor::from(0.0)).unwrap();
    let occurrences = got.events().unwrap();
    assert_eq!(
        (occurrences.num_events.item(), occurrences.t.to_vec(), occurrences.index.to_vec()),
        (1.0, vec![got.t1.item()], vec![0.0])
    );
    let none = ode.solve(0.0, 0.25, Tensor::from(0.0)).unwrap();
    assert!(none.events().unwrap().t.to_vec()[0].is_nan() && none.events().unwrap().num_events.item() == 0.0);
    let no_events = Ode::new(|_t, y: &Tensor| -y).solve(0.0, 1.0, Tensor::from(0.0)).unwrap();
    assert!(matches!(no_events.events(), Err(ConfigError::NotSaved { what: "events" })));
}

#[test]
fn a_state_of_several_single_precision_tensors_is_changed_in_the_one_that_changes() {
    let single = |x: f64| Tensor::scalar(DType::F32, x);
    let ode = Ode::new(|_t, (_, v): &(Tensor, Tensor)| (v.clone(), v * 0.0 - 10.0)).save_at([1.5, 2.0]);
    let ode = ode.on_event(Event::falling(), |_t, (x, _)| x.clone(), |_t, (_, v)| *v = &*v * -0.5);
    let got = ode.solve(0.0, 2.0, (single(5.0), single(0.0))).unwrap();
    let occurrences = got.events().unwrap();
    assert!(
        (occurrences.t.to_vec()[0] - 1.0).abs() < 1e-5 && (occurrences.y.1.to_vec()[0] + 10.0).abs() < 1e-4
    );
    assert_eq!(
        (got.y1.0.dtype(), occurrences.y.0.dtype(), occurrences.t.dtype()),
        (DType::F32, DType::F32, DType::F64)
    );
    let (x, v) = (got.ys.0.to_vec(), got.ys.1.to_vec());
    assert!((x[0] - 1.25).abs() < 1e-4 && v[0].abs() < 1e-4 && x[1].abs() < 1e-4, "{x:?} {v:?}");
}

#[test]
fn rows_with_different_events_are_bit_equal_to_single_rows() {
    let solve = |y0: &Tensor, batching: Batching| {
        let ode = Ode::new(|_t, y: &Tensor| {
            Tensor::concat(&[&y.slice(1, 1..2), &(y.slice(1, 0..1) * 0.0 - 9.81)], 1)
        });
        let ode = ode.rtol(1e-8).atol(1e-8).max_steps(60).max_events(9).batching(batching);
        let ode = ode.save_at(SaveAt::ts(&[0.3, 1.4]).and_steps().and_dense());
        let ode = ode.event(Event::crossing(), |_t, y: &Tensor| y.slice(1, 1..2).sum());
        let then = |_t: Tensor, y: &mut Tensor| {
            *y = Tensor::concat(&[&y.slice(1, 0..1), &(-0.8 * y.slice(1, 1..2))], 1);
        };
        ode.on_event(Event::falling(), |_t, y: &Tensor| y.slice(1, 0..1).sum(), then)
            .solve(0.0, 1.5, y0)
            .unwrap()
    };
    let heights = [0.5, 1.0, 2.0];
    let y0 = Tensor::from([[0.5, 0.0], [1.0, 0.3], [2.0, -0.4]]);
    for (batching, is_jitted) in
        [(Batching::PerRow, true), (Batching::PerRow, false), (Batching::Groups(1), true)]
    {
        let all = match is_jitted {
            false => {
                let s = solve(&y0, batching);
                let curve = s.dense().unwrap().eval(&f64s(&[0.2, 1.1]));
                (s.events().unwrap().clone(), s.ts, s.ys, s.y1, curve)
            }
            true => jit(move |y0: Tensor| {
                let s = solve(&y0, batching);
                let curve = s.dense()?.eval(&f64s(&[0.2, 1.1]));
                Ok((s.events()?.clone(), s.ts, s.ys, s.y1, curve))
            })
            .call(y0.clone())
            .unwrap(),
        };
        let (occurrences, ts, ys, y1, curve) = all;
        assert_eq!(
            (occurrences.y.shape().to_vec(), occurrences.t.shape().to_vec()),
            (vec![9, 3, 2], vec![9, 3])
        );
        assert!(
            occurrences.num_events.to_vec()[0] > occurrences.num_events.to_vec()[2],
            "{:?}",
            occurrences.num_events.to_vec()
        );
        let bits = |x: &Tensor| x.to_vec().iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
        let row = |x: &Tensor, r: usize| x.slice(1, r..r + 1);
        for r in 0..heights.len() {
            let one = solve(&y0.slice(0, r..r + 1), Batching::Joint);
            let own = one.events().unwrap();
            assert_eq!(occurrences.num_events.to_vec()[r], own.num_events.item());
            assert_eq!(bits(&occurrences.t.column(r)), bits(&own.t));
            assert_eq!(bits(&occurrences.index.column(r)), bits(&own.index));
            assert_eq!(bits(&row(&occurrences.y, r)), bits(&own.y));
            assert_eq!((bits(&ts.column(r)), bits(&row(&ys, r))), (bits(&one.ts), bits(&one.ys)));
            assert_eq!(bits(&y1.index(r)), bits(&one.y1));
            assert_eq!(bits(&row(&curve, r)), bits(&one.dense().unwrap().eval(&f64s(&[0.2, 1.1]))));
        }
    }
}
