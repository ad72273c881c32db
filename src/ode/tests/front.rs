//! The builder `Ode`: settings that it accepts and rejects, and its messages.

use crate::ode::*;
use std::ops::ControlFlow;
use std::sync::Arc;

#[test]
fn every_kind_of_state_and_closure_solves() {
    let exact = (-1.0_f64).exp();
    let close = |y: f64, tol: f64| assert!((y - exact).abs() < tol, "{y}");
    close(Ode::new(|_t, y: &f64| -y).solve(0.0, 1.0, 1.0).unwrap().y1, 1e-6);
    close(f64::from(Ode::new(|_t, y: &f32| -y).solve(0.0, 1.0, 1.0f32).unwrap().y1), 1e-4);
    close(Ode::new(|_t, y: &[f64; 2]| y.map(|y| -y)).solve(0.0, 1.0, [1.0; 2]).unwrap().y1[1], 1e-6);
    close(
        f64::from(Ode::new(|_t, y: &[f32; 2]| y.map(|y| -y)).solve(0.0, 1.0, [1.0; 2]).unwrap().y1[1]),
        1e-4,
    );
    let vec = Ode::new(|_t, y: &Vec<f64>| y.iter().map(|y| -y).collect::<Vec<f64>>());
    close(vec.solve(0.0, 1.0, vec![1.0; 2]).unwrap().y1[1], 1e-6);
    let single = Ode::in_place(|_t, y: &[f32], dy: &mut [f32]| dy[0] = -y[0]);
    close(f64::from(single.solve(0.0, 1.0, vec![1.0]).unwrap().y1[0]), 1e-4);
    let slices =
        Ode::in_place(|_t, y: &[f64], dy: &mut [f64]| dy.iter_mut().zip(y).for_each(|(dy, y)| *dy = -y));
    close(slices.solve(0.0, 1.0, vec![1.0; 40]).unwrap().y1[39], 1e-6);

    struct Decay(f64);
    impl VectorField<[f64; 1]> for Decay {
        fn eval(&self, _t: &f64, y: &[f64; 1], dy: &mut [f64; 1]) -> Result<(), FieldError> {
            dy[0] = -self.0 * y[0];
            Ok(())
        }
    }
    close(Ode::from_field(Decay(1.0)).solve(0.0, 1.0, [1.0]).unwrap().y1[0], 1e-6);
    close(Ode::from_field(&Decay(0.5)).solve(0.0, 2.0, [1.0]).unwrap().y1[0], 1e-6);
}

#[test]
fn default_tolerances_follow_the_precision() {
    let double = Ode::new(|_t, y: &f64| -y).solve(0.0, 1.0, 1.0).unwrap();
    assert_eq!((double.rtol, double.atol), (Tol::All(1e-6), Tol::All(1e-9)));
    let single = Ode::new(|_t, y: &[f32; 1]| [-y[0]]).rtol(1e-3).solve(0.0, 1.0, [1.0]).unwrap();
    assert_eq!((single.rtol, single.atol), (Tol::All(1e-3), Tol::All(1e-6)));
}

#[test]
fn a_failing_field_returns_its_error_with_time_and_step() {
    let table = Ode::new(|t, y: &[f64; 1]| if t > 3.0 { Err("the table ends at t=3") } else { Ok([-y[0]]) });
    let error = table.solve(0.0, 4.0, [1.0]).unwrap_err();
    let SolveError::Field { t, step, ref source, .. } = error else { panic!("{error}") };
    assert!(t > 3.0 && t <= 4.0 && step > 0);
    assert_eq!(source.to_string(), "the table ends at t=3");
    assert_eq!(
        error.to_string(),
        format!("the vector field failed at t={t} (step {step}): the table ends at t=3")
    );
    let slices = Ode::in_place(|_t, _y: &[f64], _dy: &mut [f64]| Err::<(), _>("no"));
    assert!(matches!(slices.solve(0.0, 1.0, vec![0.0]), Err(SolveError::Field { t: 0.0, step: 0, .. })));
    let short = Ode::new(|_t, _y: &Vec<f64>| vec![1.0]).solve(0.0, 1.0, vec![0.0; 3]).unwrap_err();
    assert!(
        short.to_string().contains("the vector field returned a derivative of size 1 for a state of size 3"),
        "{short}"
    );
}

#[test]
fn invalid_settings_are_rejected_with_their_numbers() {
    let ode = || Ode::new(|_t, y: &[f64; 2]| [y[1], -y[0]]);
    let refuse = |ode: Ode<'_, [f64; 2], _>| ode.solve(0.0, 1.0, [1.0, 0.0]).unwrap_err().to_string();
    for (rtol, atol) in [(-1e-6, 1e-6), (1e-6, -1e-6), (f64::NAN, 1e-6), (1e-6, f64::INFINITY), (0.0, 0.0)] {
        let message = refuse(ode().rtol(rtol).atol(atol));
        assert!(message.starts_with(&format!("`rtol`={rtol:e}, `atol`={atol:e}")), "{message}");
    }
    assert!(ode().rtol(0.0).solve(0.0, 1.0, [1.0, 0.0]).is_ok());
    assert!(refuse(ode().method(Method::Rk4)).starts_with("rk4 has no error estimate"));
    assert!(
        refuse(ode().method(Method::Rk4).controller(PidController::default()))
            .starts_with("rk4 has no error")
    );
    assert!(
        refuse(ode().controller(PidController { safety: 1.0, ..PidController::default() }))
            .starts_with("safety=1: must be above 0")
    );
    assert!(
        refuse(ode().controller(PidController { factor_min: 0.95, ..PidController::default() }))
            .contains("at most safety")
    );
    assert!(
        refuse(ode().controller(PidController { factor_max: 0.5, ..PidController::default() }))
            .contains("at least 1")
    );
    assert!(
        refuse(ode().controller(PidController { icoeff: f64::NAN, ..PidController::default() }))
            .starts_with("icoeff=NaN")
    );
    let listed = |ts: &[f64]| refuse(ode().controller(StepTo { ts: ts.to_vec() }));
    assert!(listed(&[0.0, 0.5, 0.5, 1.0]).starts_with("StepTo ts[1]=0.5, ts[2]=0.5"));
    assert!(listed(&[0.0, 0.7, f64::NAN, 1.0]).starts_with("StepTo ts[1]=0.7, ts[2]=NaN"));
    assert!(listed(&[0.0, 0.5]).contains("from 0 to 0.5, but the solve runs from t0=0 to t1=1"));
    assert!(listed(&[]).contains("`StepTo` are empty"));
    assert!(refuse(ode().controller(StepTo { ts: vec![0.0, 1.0] }).dt0(0.1)).contains("remove one"));
    assert!(matches!(ode().check(&f64::NAN, &1.0, &[0.0; 2]), Err(ConfigError::Time { name: "t0", .. })));
    assert!(matches!(
        ode().check(&0.0, &f64::INFINITY, &[0.0; 2]),
        Err(ConfigError::Time { name: "t1", .. })
    ));
    assert!(matches!(
        ode().check(&0.0, &1.0, &[0.0, f64::NAN]),
        Err(ConfigError::InitialState { component: 1 })
    ));
}

#[test]
fn outcomes_and_solutions_print_what_happened() {
    let describe = |outcome: Outcome| outcome.to_string();
    assert_eq!(describe(Outcome::Completed), "completed");
    let small = Outcome::StepSizeTooSmall { t: 0.5, dt: -1e-16, dt_min: 0.0, step: 42 };
    assert_eq!(describe(small), "step size 1e-16 fell below 16 ulp of t at t=0.5 (step 42)");
    let nan = Outcome::NonFinite { t: 0.5, dt: 0.1, step: 3, component: Some(2) };
    assert_eq!(describe(nan), "non-finite numbers in component 2 from t=0.5 with step size 1e-1 (step 3)");
    let start = Outcome::NonFinite { t: 0.0, dt: 0.0, step: 0, component: None };
    assert_eq!(describe(start), "the vector field is not finite at the start, t=0");
    assert!(describe(Outcome::MaxSteps { t: 0.25, step: 10 }).starts_with("max_steps=10 reached at t=0.25"));
    let solution = Ode::new(|_t, y: &f64| -y).method(Method::Rk4).dt0(0.1).solve(0.0, 1.0, 1.0).unwrap();
    let expected =
        "completed at t=1: rk4, rtol=1e-6, atol=1e-9, 10 steps (0 rejected), 40 function evaluations";
    assert_eq!(solution.to_string(), expected);
    let early = Ode::new(|_t, y: &f64| -y).method(Method::Rk4).dt0(0.125).max_steps(2);
    let early = early.event(Event::falling(), |t, _y| 0.1 - t).allow_incomplete();
    let early = early.solve(0.0, 1.0, 1.0).unwrap().to_string();
    let expected = "max_steps=2 reached at t=0.25; allow more with `max_steps`: rk4, ";
    assert!(early.starts_with(expected) && early.ends_with(" function evaluations, 1 event"), "{early}");
}

#[test]
fn methods_have_names() {
    for method in Method::ALL {
        assert_eq!(method.to_string().parse::<Method>().unwrap(), method);
    }
    assert_eq!("Tsit5".parse::<Method>().unwrap(), Method::Tsit5);
    let message = "rk5".parse::<Method>().unwrap_err().to_string();
    assert!(message.starts_with("unknown method \"rk5\": choose one of euler, "), "{message}");
    assert!(Method::ALL.iter().all(|method| message.contains(method.tableau().name)), "{message}");
}

#[test]
fn odeint_gives_y_at_each_time() {
    let oscillator = |_t: f64, y: &[f64; 2]| [y[1], -y[0]];
    for ts in [[0.0, 0.1, 1.0, 1.0, 7.0], [7.0, 1.0, 1.0, 0.1, 0.0]] {
        let y = |t: f64| [t.cos(), -t.sin()];
        let ys = odeint(oscillator, y(ts[0]), &ts).unwrap();
        assert_eq!(ys.len(), 5);
        for (t, ours) in ts.iter().zip(&ys) {
            assert!((ours[0] - y(*t)[0]).hypot(ours[1] - y(*t)[1]) < 1e-5, "t={t}: {ours:?}");
        }
        let twice = ts.iter().position(|t| *t == 1.0).unwrap();
        assert_eq!(ys[twice], ys[twice + 1]);
    }
    assert_eq!(odeint(oscillator, [1.0, 0.0], &[]).unwrap(), Vec::<[f64; 2]>::new());
    assert_eq!(odeint(oscillator, [1.0, 0.0], &[3.0]).unwrap(), [[1.0, 0.0]]);
    assert!(matches!(
        odeint(oscillator, [1.0, 0.0], &[0.0, 2.0, 1.0]),
        Err(SolveError::Config(ConfigError::TimesNotMonotone { index: 1, .. }))
    ));
    let nan = odeint(oscillator, [1.0, 0.0], &[0.0, f64::NAN]);
    assert!(matches!(nan, Err(SolveError::Config(ConfigError::Time { .. }))));
    let early = odeint(|_t, y: &f64| y * y, 1.0, &[0.0, 0.5, 2.0]).unwrap_err();
    let SolveError::Incomplete { partial, .. } = early else { panic!("{early}") };
    assert_eq!(partial.ts, [0.0, 0.5]);
}

#[test]
fn closures_that_collect_need_no_lock() {
    let (mut seen, mut bounces, mut saves) = (vec![], vec![], 0);
    let ball = Ode::new(|_t, y: &[f64; 2]| [y[1], -9.81])
        .on_event(
            Event::falling(),
            |_t, y| y[0],
            |t, y| {
                bounces.push(t);
                y[1] *= -0.5;
            },
        )
        .save_at(SaveAt::linspace(0.0, 1.0, 5))
        .save_fn(|_t, y| {
            saves += 1;
            y[0]
        })
        .on_step(|t, _y| {
            seen.push(t);
            ControlFlow::Continue(())
        });
    let solution = ball.solve(0.0, 1.0, [1.0, 0.0]).unwrap();
    drop(ball);
    assert_eq!(bounces, solution.events.iter().map(|event| event.t).collect::<Vec<_>>());
    assert_eq!((bounces.len(), saves, seen.last()), (2, solution.ys.len(), Some(&1.0)));
}

#[test]
fn boxed_and_shared_fields_solve_as_their_own() {
    struct Decay(f64);
    impl VectorField<[f64; 1]> for Decay {
        fn eval(&self, _t: &f64, y: &[f64; 1], dy: &mut [f64; 1]) -> Result<(), FieldError> {
            dy[0] = -self.0 * y[0];
            Ok(())
        }
    }
    let own = Ode::from_field(Decay(2.0)).solve(0.0, 1.0, [1.0]).unwrap();
    let boxed: Box<dyn VectorField<[f64; 1]>> = Box::new(Decay(2.0));
    let shared: Arc<dyn VectorField<[f64; 1]>> = Arc::new(Decay(2.0));
    assert_eq!(Ode::from_field(boxed).solve(0.0, 1.0, [1.0]).unwrap().y1, own.y1);
    assert_eq!(Ode::from_field(shared.clone()).solve(0.0, 1.0, [1.0]).unwrap().y1, own.y1);
    assert_eq!(Ode::from_field(&shared).solve(0.0, 1.0, [1.0]).unwrap().y1, own.y1);
}
