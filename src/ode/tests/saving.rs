//! Saved values are consistent in both directions of time, also with rejections and events.

use crate::ode::*;

/// The first component is sin t. A pulse near t = 5 in the second component causes rejections.
fn pulse(t: f64, _y: &[f64; 2]) -> [f64; 2] {
    [t.cos(), (-100.0 * (t - 5.0).powi(2)).exp()]
}

#[test]
fn end_value_dense_value_and_saved_value_agree_at_t1() {
    for method in Method::EXPLICIT {
        for (t0, t1) in [(-1.0, 1.0), (1.0, 0.0)] {
            let ode = Ode::new(|t: f64, y: &[f64; 2]| [y[1] * t.cos(), -y[0]]).method(method);
            let ode = if method.tableau().b_err.is_some() { ode } else { ode.dt0(0.07) };
            let save = SaveAt::ts(&[t0, 0.5 * (t0 + t1), t1]).and_dense();
            let solution = ode.save_at(save).solve(t0, t1, [1.0, 0.5]).unwrap();
            let dense = solution.dense().unwrap();
            assert_eq!(solution.ys.len(), 3);
            assert_eq!(solution.ys[0], [1.0, 0.5]);
            assert_eq!((solution.ys[2], dense.eval(t1).unwrap()), (solution.y1, solution.y1), "{method}");
            assert_eq!(solution.ys[1], dense.eval(0.5 * (t0 + t1)).unwrap());
            for (t, outside) in [(t0, t0 - (t1 - t0)), (t1, t1 + 0.1 * (t1 - t0)), (t0, f64::NAN)] {
                assert!(dense.eval(t).is_ok());
                assert!(matches!(dense.eval(outside), Err(ConfigError::OutsideInterval { .. })));
            }
        }
    }
}

#[test]
fn times_right_behind_a_rejected_step_are_saved_where_they_are() {
    let ts: Vec<f64> = (0..=1000).map(|i| 0.01 * f64::from(i)).collect();
    let ode = Ode::new(pulse).rtol(1e-9).atol(1e-9).save_at(&ts);
    let solution = ode.solve(0.0, 10.0, [0.0, 0.0]).unwrap();
    assert!(solution.stats.num_rejected > 0, "the pulse must cause rejections");
    assert_eq!(solution.ts, ts);
    for (t, y) in ts.iter().zip(&solution.ys) {
        assert!((y[0] - t.sin()).abs() < 1e-5, "t={t}: {} against {}", y[0], t.sin());
    }
}

#[test]
fn any_mix_is_saved_in_the_order_of_the_solve_without_repeats() {
    let ode = Ode::new(|_t, y: &f64| -y).method(Method::Rk4).dt0(0.25);
    let save = |save_at: SaveAt| ode.clone().save_at(save_at).solve(0.0, 1.0, 1.0).unwrap().ts;
    assert_eq!(save(SaveAt::t1()), [1.0]);
    assert_eq!(save(SaveAt::t0().and_t1()), [0.0, 1.0]);
    assert_eq!(save(SaveAt::steps()), [0.0, 0.25, 0.5, 0.75, 1.0]);
    assert_eq!(save(SaveAt::every_nth_step(2)), [0.0, 0.5, 1.0]);
    assert_eq!(save(SaveAt::every_nth_step(3)), [0.0, 0.75, 1.0]);
    assert_eq!(save(SaveAt::ts(&[0.1, 0.25, 0.3]).and_steps()), [0.0, 0.1, 0.25, 0.3, 0.5, 0.75, 1.0]);
    assert_eq!(save(SaveAt::ts(&[0.3, 0.3, 1.0, 1.0])), [0.3, 1.0]);
    assert_eq!(save(SaveAt::dense()), [0.0; 0]);
}

#[test]
fn a_function_of_t_and_y_is_saved_instead_of_y() {
    let ode = Ode::new(|_t, y: &[f64; 2]| [y[1], -y[0]]).rtol(1e-9).atol(1e-9);
    let ode = ode.save_at([1.0, 2.0]).save_fn(|t, y| (t, 0.5 * (y[0] * y[0] + y[1] * y[1])));
    let solution = ode.solve(0.0, 2.0, [1.0, 0.0]).unwrap();
    for (t, (saved, energy)) in solution.ts.iter().zip(&solution.ys) {
        assert!(saved == t && (energy - 0.5).abs() < 1e-5, "{energy}");
    }
}

#[test]
fn the_derivative_of_dense_output_is_the_vector_field_on_it() {
    let ode = Ode::new(|_t, y: &[f64; 2]| [y[1], -y[0]]).rtol(1e-10).atol(1e-10).save_at(SaveAt::dense());
    let solution = ode.solve(0.0, 3.0, [1.0, 0.0]).unwrap();
    let dense = solution.dense().unwrap();
    for i in 0..=300 {
        let t = 0.01 * f64::from(i);
        let (y, dy) = dense.eval_with_derivative(t).unwrap();
        assert!((dy[0] - y[1]).abs() < 1e-3 && (dy[1] + y[0]).abs() < 1e-3, "t={t}: {dy:?} at {y:?}");
    }
}

#[test]
fn an_empty_interval_saves_y0_for_every_selection() {
    let ode = Ode::new(|_t, y: &f64| -y).save_at(SaveAt::ts(&[2.0, 2.0]).and_dense());
    let solution = ode.solve(2.0, 2.0, 7.0).unwrap();
    assert_eq!((solution.ts.clone(), solution.ys.clone(), solution.y1), (vec![2.0], vec![7.0], 7.0));
    assert_eq!(solution.dense().unwrap().eval(2.0).unwrap(), 7.0);
    assert!(solution.dense().unwrap().eval(2.1).is_err());
}

#[test]
fn a_selection_of_steps_adds_to_the_start_and_the_end() {
    assert_eq!(SaveAt::ts(&[0.5]).and_t0().and_every_nth_step(0), SaveAt::ts(&[0.5]).and_t0());
    assert_eq!(SaveAt::every_nth_step(2), SaveAt::every_nth_step(2).and_t0().and_t1());
}

#[test]
fn unsorted_and_outlying_times_are_refused() {
    let refuse = |ts: &[f64]| Ode::new(|_t, y: &f64| -y).save_at(ts).check(&0.0, &1.0, &1.0).unwrap_err();
    assert!(matches!(refuse(&[0.5, 0.2]), ConfigError::TimesNotMonotone { index: 0, .. }));
    assert!(matches!(refuse(&[0.5, 1.2]), ConfigError::SavedTime { index: 1, .. }));
    assert!(matches!(refuse(&[f64::NAN]), ConfigError::SavedTime { index: 0, .. }));
    let plain = Ode::new(|_t, y: &f64| -y).solve(0.0, 1.0, 1.0).unwrap();
    assert!(matches!(plain.dense(), Err(ConfigError::NotSaved { .. })));
}

#[test]
fn saving_changes_no_step() {
    let plain = Ode::new(pulse).solve(0.0, 10.0, [0.0, 0.0]).unwrap();
    let saved = Ode::new(pulse).save_at(SaveAt::ts(&[1.0, 5.0]).and_steps().and_dense());
    let saved = saved.event(Event::crossing(), |_t, y| y[0] - 0.5).solve(0.0, 10.0, [0.0, 0.0]).unwrap();
    assert_eq!((plain.step_times, plain.y1), (saved.step_times, saved.y1));
}
