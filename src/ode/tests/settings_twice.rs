//! Settings that are given twice, which add up, and values that a solve refuses.

use super::draw::Draw;
use crate::ode::*;
use std::cell::Cell;
use std::ops::ControlFlow;

#[test]
fn intervals_and_states_that_are_not_finite_are_refused_by_name() {
    for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for (t0, t1, y0, name) in [(x, 1.0, 0.0, "t0="), (0.0, x, 0.0, "t1="), (0.0, 1.0, x, "y0")] {
            let ode = Ode::new(|_t, y: &[f64; 2]| [y[1], -y[0]]);
            let solve = ode.solve(t0, t1, [0.0, y0]).unwrap_err().to_string();
            assert!(solve.contains(name), "{solve}");
            match ode.stepper(t0, t1, [0.0, y0]) {
                Err(error) => assert!(error.to_string().contains(name), "{error}"),
                // The caller of a stepper decides where it ends.
                Ok(_) => assert!(name == "t1=" && x.is_infinite()),
            }
        }
    }
}

#[test]
fn all_callbacks_after_a_step_are_called_and_each_can_end_the_solve() {
    for ending in 0..3 {
        let calls = [const { Cell::new(0) }; 3];
        let calls: [_; 3] = calls.map(std::sync::Mutex::new);
        let count = |i: usize| calls[i].lock().unwrap().get();
        let mut ode = Ode::new(|_t, y: &f64| -y).method(Method::Rk4).dt0(0.1);
        for (i, cell) in calls.iter().enumerate() {
            ode = ode.on_step(move |_t, _y| {
                let cell = cell.lock().unwrap();
                cell.set(cell.get() + 1);
                if i == ending && cell.get() == 4 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
        }
        let solution = ode.solve(0.0, 1.0, 1.0).unwrap();
        assert_eq!((0..3).map(count).collect::<Vec<_>>(), [4; 3]);
        assert!(matches!(solution.outcome, Outcome::StoppedByOnStep { t } if (t - 0.4).abs() < 1e-12));
    }
}

#[test]
fn selections_of_saved_times_add_up() {
    let mut draw = Draw(5);
    let mut several = 0;
    for sign in [1.0, -1.0] {
        for _ in 0..100 {
            let mut lists: Vec<Vec<f64>> = vec![];
            for _ in 0..draw.below(4) {
                let mut list: Vec<f64> = (0..draw.below(4)).map(|_| draw.below(11) as f64 / 10.0).collect();
                list.sort_by(f64::total_cmp);
                list.iter_mut().for_each(|t| *t *= sign);
                lists.push(list);
            }
            several += usize::from(lists.len() > 1);
            let ode = || Ode::new(|_t, y: &f64| -y);
            let mut expected = lists.concat();
            expected.sort_by(|a, b| (a * sign).total_cmp(&(b * sign)));
            expected.dedup();
            if lists.is_empty() {
                continue;
            }
            let by_calls = lists.iter().fold(ode(), |ode, list| ode.save_at(list));
            let one = lists[1..].iter().fold(SaveAt::ts(&lists[0]), |all, list| all.and_ts(list));
            let dense = draw.below(2) == 0;
            let (by_calls, one) = match dense {
                true => (by_calls.save_at(SaveAt::dense()), ode().save_at(SaveAt::dense()).save_at(one)),
                false => (by_calls, ode().save_at(one)),
            };
            for ode in [by_calls, one] {
                let solution = ode.solve(0.0, sign, 1.0).unwrap();
                assert_eq!(solution.ts, expected, "{lists:?}");
                assert_eq!(solution.dense().is_ok(), dense);
                assert!(solution.ts.iter().zip(&solution.ys).all(|(t, y)| (y - (-t).exp()).abs() < 1e-5));
            }
        }
    }
    assert!(several > 80);
}

#[test]
fn selections_of_steps_add_up_or_are_refused() {
    let solve = |save_at: SaveAt| {
        Ode::new(|_t, y: &f64| -y).method(Method::Rk4).dt0(0.05).save_at(save_at).solve(0.0, 1.0, 1.0)
    };
    for (a, b) in (0..7).flat_map(|a| (0..7).map(move |b| (a, b))) {
        let both = solve(SaveAt::every_nth_step(a).and_every_nth_step(b));
        if a > 0 && b > 0 && a % b > 0 && b % a > 0 {
            let message = format!("save_at: every {}th and every {}th accepted step", a.min(b), a.max(b));
            assert!(both.unwrap_err().to_string().starts_with(&message));
            assert!(solve(SaveAt::every_nth_step(a).and_every_nth_step(b).and_steps()).is_ok());
            continue;
        }
        let n = if a == 0 || b == 0 { a.max(b) } else { a.min(b) };
        assert_eq!(both.unwrap().ts, solve(SaveAt::every_nth_step(n)).unwrap().ts, "{a}, {b}");
    }
}

#[test]
fn a_list_out_of_order_is_refused_beside_others() {
    let error =
        Ode::new(|_t, y: &f64| -y).save_at([0.5]).save_at([0.4, 0.2]).solve(0.0, 1.0, 1.0).unwrap_err();
    assert!(
        error.to_string().starts_with("save_at ts[1]=0.4, ts[2]=0.2: the times must be in order"),
        "{error}"
    );
}

#[test]
fn save_fn_without_a_time_to_save_at_is_refused() {
    let error =
        Ode::new(|_t, y: &f64| -y).save_at(SaveAt::dense()).save_fn(|_t, y| 2.0 * y).solve(0.0, 1.0, 1.0);
    let message =
        "`save_fn` has no effect if `save_at` selects no times (dense output is of y): leave it out";
    assert_eq!(error.unwrap_err().to_string(), message);
}

#[test]
fn a_state_reset_that_makes_the_state_infinite_is_an_error_wherever_it_occurs() {
    for bad in [f64::NAN, f64::INFINITY] {
        for (event, t) in [(Event::rising(), 0.5), (Event::rising().terminal(), 0.5), (Event::rising(), 1.0)]
        {
            let ode = Ode::new(|_t, y: &[f64; 2]| [y[1], -y[0]]);
            let ode = ode.on_event(event, move |at, _y| at - t, move |_t, y| y[1] = bad);
            let error = ode.solve(0.0, 1.0, [1.0, 0.0]).unwrap_err().to_string();
            let message = format!(
                "the state reset of event 0 at t={t} made component 1 NaN or infinite; a state reset must keep y finite"
            );
            assert_eq!(error, message);
        }
    }
}
