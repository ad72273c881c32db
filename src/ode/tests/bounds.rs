//! Limits on steps, tstops, discontinuities, tolerances per component, norms, controllers, stiffness
//! warnings, and the stepper.

use crate::ode::*;

fn oscillator(_t: f64, y: &[f64; 2]) -> [f64; 2] {
    [y[1], -y[0]]
}

#[test]
fn every_controller_ends_steps_on_tstops_in_either_direction() {
    let controllers: [Controller; 7] = [
        PidController::default().into(),
        PidController::pi(0.4, 0.3).into(),
        PidController::h211pi().into(),
        PidController::h211b(4.0).into(),
        PidController::h312pid().into(),
        HairerController::dopri5().into(),
        ConstantStepSize { dt0: 0.3 }.into(),
    ];
    for controller in controllers {
        for (t0, t1) in [(0.0, 10.0), (10.0, 0.0)] {
            let ode =
                Ode::new(oscillator).controller(controller.clone()).tstops(&[7.25, 1.5, 42.0, 1.5 + 1e-3]);
            let solution = ode.solve(t0, t1, [f64::cos(t0), -f64::sin(t0)]).unwrap();
            assert!(solution.outcome.reached_t1());
            for stop in [1.5, 1.5 + 1e-3, 7.25] {
                assert!(solution.step_times.contains(&stop), "{controller:?} passes {stop}");
            }
            assert!((solution.y1[0] - f64::cos(t1)).abs() < 0.02, "{controller:?}: {:?}", solution.y1);
        }
    }
}

#[test]
fn constant_steps_keep_their_grid_across_a_stop() {
    let ode = Ode::new(oscillator).controller(ConstantStepSize { dt0: 0.25 }).tstops(&[0.5, 0.6]);
    assert_eq!(ode.solve(0.0, 1.0, [1.0, 0.0]).unwrap().step_times, [0.0, 0.25, 0.5, 0.6, 0.75, 1.0]);
}

#[test]
fn a_discontinuity_at_one_of_the_given_times_is_one_of_their_steps() {
    let grid = || Ode::new(oscillator).controller(StepTo { ts: vec![0.0, 0.25, 0.5, 1.0] });
    let plain = grid().solve(0.0, 1.0, [1.0, 0.0]).unwrap();
    assert_eq!(
        grid().discontinuities(&[0.5]).solve(0.0, 1.0, [1.0, 0.0]).unwrap().step_times,
        plain.step_times
    );
}

#[test]
fn a_stop_keeps_the_proposed_step_size() {
    let plain = Ode::new(oscillator).solve(0.0, 20.0, [1.0, 0.0]).unwrap();
    // Ten stops in the middle, 1e-9 apart: each costs one step. The step size need not grow from 1e-9 after
    // them.
    let stops: Vec<f64> = (0..10).map(|i| 10.0 + 1e-9 * f64::from(i)).collect();
    let landed = Ode::new(oscillator).tstops(&stops).solve(0.0, 20.0, [1.0, 0.0]).unwrap();
    assert!(landed.stats.num_steps <= plain.stats.num_steps + 11, "{} against {}", landed.stats, plain.stats);
}

#[test]
fn stops_change_only_steps_that_end_on_them() {
    // Steps that do not end at a stop have the sizes that the controller chooses, even if it shrinks them
    // after an accepted step, as Hairer's rule does. (The end t + dt of a step is rounded. An earlier version
    // mistook such a step for one that a stop had shortened.)
    let solve = |stops: &[f64]| {
        let ode = Ode::new(|t: f64, y: &[f64; 2]| [y[1], -y[0] * (1.0 + 50.0 * t)]).tstops(stops);
        let ode = ode.controller(HairerController::dopri5()).rtol(1e-5);
        ode.solve(0.0, 10.0, [1.0, 0.0]).unwrap().step_times
    };
    let (plain, late) = (solve(&[]), solve(&[9.0]));
    let before = plain.iter().filter(|t| **t < 8.9).count();
    assert!(before > 100);
    assert_eq!(plain[..before], late[..before]);
}

#[test]
fn a_discontinuity_is_never_evaluated_and_costs_no_rejection() {
    // y' = 1 before t = 1 and 100 after it; `at` selects the value at t = 1 itself.
    for method in Method::EXPLICIT {
        for at in [false, true] {
            let field = move |t: f64, _y: &f64| if t < 1.0 || at && t == 1.0 { 1.0 } else { 100.0 };
            let called_at_it = std::cell::Cell::new(false);
            let ode = Ode::new(|t, y: &f64| {
                called_at_it.set(called_at_it.get() || t == 1.0);
                field(t, y)
            });
            let ode = if method.tableau().b_err.is_some() { ode } else { ode.dt0(0.3) };
            for (t0, t1, rise) in [(0.0, 2.0, 101.0), (2.0, 0.0, -101.0)] {
                let solution = ode.clone().method(method).discontinuities(&[1.0]).solve(t0, t1, 0.0).unwrap();
                assert!((solution.y1 - rise).abs() < 1e-9, "{method}: {}", solution.y1);
                assert_eq!((solution.stats.num_rejected, called_at_it.get()), (0, false), "{method}");
            }
        }
    }
}

#[test]
fn steps_stay_within_dt_max_and_a_shorter_one_than_dt_min_ends_the_solve() {
    let ode = Ode::new(oscillator).dt_max(0.1);
    let step_times = ode.solve(0.0, 5.0, [1.0, 0.0]).unwrap().step_times;
    assert!(step_times.windows(2).all(|k| k[1] - k[0] <= 0.1 + 1e-12) && step_times.len() > 50);
    let wall = Ode::new(|t: f64, _y: &f64| 1.0 / (1.0 - t).abs().max(1e-12)).dt_min(1e-3);
    let solution = wall.allow_incomplete().solve(0.0, 2.0, 0.0).unwrap();
    let Outcome::StepSizeTooSmall { dt, dt_min, t, .. } = solution.outcome else { panic!("{solution}") };
    assert!(dt < 1e-3 && dt_min == 1e-3 && t < 1.0 && t == solution.t1);
    assert!(solution.to_string().contains("fell below dt_min=1e-3"), "{solution}");
}

#[test]
fn contradictory_limits_are_rejected() {
    let ode = || Ode::new(oscillator);
    let refuse = |ode: Ode<'_, [f64; 2], _>| ode.solve(0.0, 1.0, [1.0, 0.0]).unwrap_err().to_string();
    assert!(refuse(ode().dt_min(-1.0)).starts_with("dt_min=-1"));
    assert!(refuse(ode().dt_max(0.0)).starts_with("dt_max=0"));
    assert!(refuse(ode().dt_min(0.2).dt_max(0.1)).contains("at least dt_min"));
    assert!(
        refuse(ode().controller(ConstantStepSize { dt0: 0.5 }).dt_max(0.1))
            .starts_with("`dt_max` has no effect")
    );
    assert!(refuse(ode().tstops(&[f64::NAN])).starts_with("tstops=NaN"));
    assert!(
        refuse(ode().controller(StepTo { ts: vec![0.0, 1.0] }).discontinuities(&[0.5])).contains("t=0.5")
    );
    assert!(
        refuse(ode().controller(HairerController { beta: 0.5, ..HairerController::default() }))
            .starts_with("beta=0.5")
    );
    assert!(refuse(ode().rtol([1e-6; 3])).starts_with("rtol has 3 values, but the state has 2 components"));
    assert!(refuse(ode().atol([1e-6, -1.0])).starts_with("`rtol`=1e-6, `atol`=-1e0"));
}

#[test]
fn each_component_keeps_its_own_tolerance() {
    // Two copies of one oscillator: the copy with the loose tolerance would take large steps alone.
    let field = |_t: f64, y: &[f64; 4]| [y[1], -y[0], y[3], -y[2]];
    let solve =
        |atol: [f64; 4]| Ode::new(field).rtol(0.0).atol(atol).solve(0.0, 20.0, [1.0, 0.0, 1.0, 0.0]).unwrap();
    let (loose, half, tight) = (solve([1e-3; 4]), solve([1e-3, 1e-3, 1e-9, 1e-9]), solve([1e-9; 4]));
    assert!(half.stats.num_steps > 3 * loose.stats.num_steps);
    // Half of the components have the tight tolerance, so almost as many steps are needed as if all had it.
    let ratio = half.stats.num_steps as f64 / tight.stats.num_steps as f64;
    assert!((0.8..1.0).contains(&ratio), "{ratio}");
    let vector = Ode::new(|t, y: &Vec<f64>| field(t, &[y[0], y[1], y[2], y[3]]).to_vec());
    let vector =
        vector.rtol(0.0).atol([1e-3, 1e-3, 1e-9, 1e-9]).solve(0.0, 20.0, vec![1.0, 0.0, 1.0, 0.0]).unwrap();
    assert_eq!((vector.y1, vector.stats), (half.y1.to_vec(), half.stats));
}

#[test]
fn a_custom_norm_controls_the_steps() {
    let field = |t: f64, y: &[f64; 2]| [y[1], -y[0] * (1.0 + 0.1 * t.sin())];
    let rms = |e: &[f64; 2]| (0.5 * (e[0] * e[0] + e[1] * e[1])).sqrt();
    let plain = Ode::new(field).solve(0.0, 20.0, [1.0, 0.0]).unwrap();
    let same = Ode::new(field).norm(rms).solve(0.0, 20.0, [1.0, 0.0]).unwrap();
    assert_eq!(plain.stats, same.stats);
    let max = Ode::new(field).norm(|e| e[0].abs().max(e[1].abs())).solve(0.0, 20.0, [1.0, 0.0]).unwrap();
    assert!(max.stats.num_steps > plain.stats.num_steps);
    let first = Ode::new(field).norm(|e| e[0].abs()).solve(0.0, 20.0, [1.0, 0.0]).unwrap();
    assert!(first.stats.num_steps != plain.stats.num_steps && (first.y1[0] - plain.y1[0]).abs() < 1e-4);
}

#[test]
fn hairers_rule_repeats_the_published_run_on_the_arenstorf_orbit() {
    let mu = 0.012277471;
    let field = |_t: f64, y: &[f64; 4]| {
        let (d0, d1) = ((y[0] + mu).hypot(y[1]).powi(3), (y[0] - 1.0 + mu).hypot(y[1]).powi(3));
        let nu = 1.0 - mu;
        [
            y[2],
            y[3],
            y[0] + 2.0 * y[3] - nu * (y[0] + mu) / d0 - mu * (y[0] - nu) / d1,
            y[1] - 2.0 * y[2] - nu * y[1] / d0 - mu * y[1] / d1,
        ]
    };
    let ode = Ode::new(field)
        .method(Method::Dopri5)
        .controller(HairerController::dopri5())
        .dt0(1e-4)
        .rtol(1e-7)
        .atol(1e-7);
    let solution =
        ode.solve(0.0, 17.0652165601579625588917206249, [0.994, 0.0, 0.0, -2.00158510637908252240537862224]);
    let solution = solution.unwrap();
    let Stats { num_steps, num_accepted, num_rejected, num_fn_evals, .. } = solution.stats;
    assert_eq!((num_steps, num_accepted, num_rejected), (238, 217, 21));
    assert!((1429..=1430).contains(&num_fn_evals), "{num_fn_evals}");
    // The output of the Fortran code. Its rounding errors differ, and this orbit magnifies them about 1e6
    // times.
    let printed = [0.9940021704030663, 9.040891036151961e-6, 1.459758305600828e-3, -2.001245515834718];
    for (ours, theirs) in solution.y1.iter().zip(printed) {
        assert!((ours - theirs).abs() < 1e-8, "{:?}", solution.y1);
    }
}

#[test]
fn hairers_rule_repeats_the_published_run_of_dop853_on_van_der_pol() {
    let van_der_pol = |_t: f64, y: &[f64; 2]| [y[1], ((1.0 - y[0] * y[0]) * y[1] - y[0]) / 1e-3];
    let ode = Ode::new(van_der_pol).method(Method::Dop853).controller(HairerController::dop853());
    let solution = ode.dt0(1e-6).rtol(1e-9).atol(1e-9).solve(0.0, 2.0, [2.0, 0.0]).unwrap();
    let Stats { num_steps, num_accepted, num_rejected, .. } = solution.stats;
    assert_eq!((num_steps, num_accepted, num_rejected), (1469, 1348, 121));
    for (ours, theirs) in solution.y1.iter().zip([1.763234540172087, -0.8356886819301910]) {
        assert!((ours - theirs).abs() < 1e-9, "{:?}", solution.y1);
    }
}

#[test]
fn a_stiff_problem_gets_a_warning_with_a_remedy() {
    for method in [Method::Tsit5, Method::Dopri5, Method::Vern7, Method::Vern9] {
        let stiff = Ode::new(|t: f64, y: &f64| -2000.0 * (y - t.cos())).method(method);
        let stiff = stiff.solve(0.0, 10.0, 0.0).unwrap();
        assert!(matches!(stiff.warnings[..], [Warning::Stiff { t }] if t < 2.0), "{stiff}");
        assert!(stiff.to_string().contains("Method::Rodas5P"), "{stiff}");
        assert!(stiff.to_string().contains("a looser tolerance does not help"), "{stiff}");
    }
    let mild = Ode::new(oscillator).rtol(1e-8).atol(1e-8).solve(0.0, 1000.0, [1.0, 0.0]).unwrap();
    assert!(mild.warnings.is_empty() && mild.stats.num_steps > 5000, "{mild}");
}

#[test]
fn a_stepper_detects_stiffness_like_a_solve() {
    // y[0] relaxes to cos t at the rate y[1], so y0 decides whether the problem is stiff.
    let ode = Ode::new(|t: f64, y: &[f64; 2]| [-y[1] * (y[0] - t.cos()), 0.0]);
    let (stiff, mild) = ([0.0, 2000.0], [0.0, 1.0]);
    let whole = ode.solve(0.0, 10.0, stiff).unwrap();
    let mut steps = ode.stepper(0.0, 10.0, stiff).unwrap();
    assert!(steps.warnings().is_empty());
    while steps.step().unwrap().is_some() {}
    assert_eq!(
        (steps.warnings(), steps.stats(), *steps.y()),
        (whole.warnings.clone(), whole.stats, whole.y1)
    );
    let tight = ode.clone().rtol(1e-10).atol(1e-10);
    let mut steps = tight.stepper(0.0, 100.0, mild).unwrap();
    while steps.step().unwrap().is_some() {}
    assert!(steps.warnings().is_empty() && steps.stats().num_steps > 500, "{}", steps.stats());
}

#[test]
fn a_stepper_takes_the_steps_of_a_solve_and_may_change_the_state() {
    let ode = Ode::new(oscillator);
    let whole = ode.solve(0.0, 10.0, [1.0, 0.0]).unwrap();
    let mut steps = ode.stepper(0.0, 10.0, [1.0, 0.0]).unwrap();
    let mut step_times = vec![0.0];
    while let Some(step) = steps.step().unwrap() {
        assert!(
            step.error_ratio < 1.0 && (step.t - step.dt - step_times[step_times.len() - 1]).abs() < 1e-12
        );
        step_times.push(step.t);
        let (t, dt) = (step.t, step.dt);
        let middle = steps.interpolate(t - 0.5 * dt).unwrap();
        assert!((middle[0] - (t - 0.5 * dt).cos()).abs() < 1e-3);
        assert!(steps.interpolate(t + dt).is_err());
    }
    assert_eq!(
        (step_times, *steps.y(), steps.outcome()),
        (whole.step_times, whole.y1, Some(Outcome::Completed))
    );
    // The state is doubled at t = 5, so the solution after t = 5 is doubled too.
    let kicked = Ode::new(oscillator).tstops(&[5.0]);
    let mut steps = kicked.stepper(0.0, 10.0, [1.0, 0.0]).unwrap();
    while let Some(step) = steps.step().unwrap() {
        if step.t == 5.0 {
            steps.y_mut().iter_mut().for_each(|y| *y *= 2.0);
        }
    }
    assert!((steps.y()[0] - 2.0 * 10.0_f64.cos()).abs() < 1e-4, "{:?}", steps.y());
}
