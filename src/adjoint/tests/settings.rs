//! Every setting of every driver is read, or refused by name: the table of `ode/settings.md`.

use crate::adjoint::{Adjoint, Batching, TensorSolution};
use crate::ode::{
    Closure, ConfigError, ConstantStepSize, EnsembleBuilder, Event, HairerController, Interpolation, Mass,
    Method, Ode, SaveAt, SolveError, Sparsity, StepTo, Tableau, ensemble,
};
use crate::tensor::{Tensor, Tree, jit};
use crate::vector_field;
use std::fmt::Debug;
use std::ops::ControlFlow;

vector_field! {
    struct Pushed<R> { k: R }
    fn eval(&self, t, y: &[R; 2]) -> [R; 2] {
        let kick = (t - 0.5).select_positive(t * 0.0 + 1.0, t * 0.0);
        [y[1], kick + t - self.k * y[0]]
    }
    fn height(&self, _t, y: &[R; 2]) -> R { y[0] - 1.05 }
    fn stop(&self, _t, y: &[R; 2]) -> [R; 2] { [y[0], 0.0 * self.k] }
}

fn pushed(t: Tensor, y: &Tensor) -> Tensor {
    let (x, v) = (y.column(0).expand_dims(1), y.column(1).expand_dims(1));
    let kick = t.gt(0.5).select(&Tensor::from(1.0), &Tensor::from(0.0));
    Tensor::concat(&[&v, &(kick + t - x * 2.0)], 1)
}

fn member(k: &f64) -> (Pushed, [f64; 2]) {
    (Pushed { k: *k }, Y0)
}

const Y0: [f64; 2] = [1.0, 0.5];

type Plain = Ode<'static, [f64; 2], Pushed>;
type OnTensors = Ode<'static, Tensor, Closure<fn(Tensor, &Tensor) -> Tensor>>;
type Ensemble = EnsembleBuilder<'static, f64, fn(&f64) -> (Pushed, [f64; 2]), f64, 2>;

/// The results of a driver as text, or the message of an error before the solve started.
type Found = Result<String, String>;

fn found<S: Debug>(result: Result<impl Debug, SolveError<S>>) -> Found {
    match result {
        Ok(all) => Ok(format!("{all:?}")),
        Err(SolveError::Config(error)) => Err(error.to_string()),
        Err(error) => Ok(format!("{error:?}, {:?}", error.partial())),
    }
}

fn by_hand(ode: &Plain) -> Found {
    let mut steps = match ode.stepper(0.0, 1.0, Y0) {
        Ok(steps) => steps,
        Err(error) => return found(Err::<(), _>(error)),
    };
    let mut seen = Vec::new();
    loop {
        match steps.step() {
            Ok(Some(step)) => seen.push((step.t, *step.y)),
            ended => return Ok(format!("{seen:?}, {:?}, {:?}", ended.is_ok(), steps.stats())),
        }
    }
}

fn y0() -> Tensor {
    Tensor::from([[1.0, 0.5], [-0.3, 4.0]])
}

fn leaves(solution: &TensorSolution<Tensor>) -> String {
    let events = solution.events().map(Tree::leaves).unwrap_or_default();
    let all = solution.leaves().into_iter().chain(events);
    all.map(|x| format!("{} {:?}; ", x.shape(), x.to_vec())).collect()
}

fn eager(ode: &OnTensors) -> Found {
    match ode.solve(0.0, 1.0, y0()) {
        Ok(solution) => Ok(leaves(&solution)),
        Err(SolveError::Config(error)) => Err(error.to_string()),
        Err(error) => Ok(error.to_string() + &leaves(error.partial().unwrap())),
    }
}

fn jitted(ode: &OnTensors) -> Found {
    let ode = ode.clone();
    match jit(move |y: Tensor| Ok(ode.solve(0.0, 1.0, &y)?)).call(y0()) {
        Ok(solution) => Ok(leaves(&solution)),
        Err(crate::Error::Config(
            error @ (ConfigError::UnusedSetting { .. }
            | ConfigError::FirstStepTwice { .. }
            | ConfigError::MethodPlace { .. }),
        )) => Err(error.to_string()),
        Err(error) => Ok(error.to_string()),
    }
}

/// Whether the setting `name` of a solve made by `ode` is read, refused by name, or ignored.
fn cell<A>(name: &str, ode: &dyn Fn() -> A, set: &dyn Fn(A) -> A, run: &dyn Fn(&A) -> Found) -> &'static str {
    let plain = run(&ode()).expect("the solve without the setting runs");
    match run(&set(ode())) {
        Ok(other) if other == plain => "ignored",
        Ok(_) => "read",
        Err(message) if name.split([' ', ',']).next().is_some_and(|word| message.contains(word)) => "refused",
        Err(message) => panic!("{name} is not named: {message}"),
    }
}

fn kutta() -> Tableau {
    let third = [1.0 / 6.0, 2.0 / 3.0, 1.0 / 6.0];
    let kutta = Tableau::new("kutta3", &[&[0.5], &[-1.0, 2.0]], &third, &[0.0, 0.5, 1.0]).unwrap();
    kutta.with_embedded(&[0.0, 1.0, 0.0], 3).unwrap()
}

/// An input that jumps where the vector field does.
fn input() -> Interpolation<1> {
    Interpolation::constant(&[0.0, 0.5, 1.0], &[[1.0], [2.0], [3.0]]).unwrap()
}

/// A setting: the settings that it needs, and the setting itself.
type Given<A> = (fn(A) -> A, fn(A) -> A);

/// The settings that every builder has.
macro_rules! common {
    ($name:expr) => {
        Some(match $name {
            "method" => (|o| o, |o| o.method(Method::Vern7)),
            "controller" => (|o| o, |o| o.controller(HairerController::default())),
            "rtol" => (|o| o, |o| o.rtol(1e-3)),
            "atol" => (|o| o, |o| o.atol(1e-3)),
            "dt0" => (|o| o, |o| o.dt0(0.01)),
            "dt_min" => (|o| o, |o| o.dt_min(0.5)),
            "dt_max" => (|o| o, |o| o.dt_max(0.02)),
            "max_steps" => (|o| o, |o| o.max_steps(2)),
            "allow_incomplete" => (|o| o.max_steps(2), |o| o.allow_incomplete()),
            "tstops" => (|o| o, |o| o.tstops(&[0.53])),
            "discontinuities" => (|o| o, |o| o.discontinuities(&[0.5])),
            "stop_at_rows" => (|o| o, |o| o.stop_at_rows(&input())),
            _ => return None,
        })
    };
}

fn of_ensembles(name: &str) -> Option<Given<Ensemble>> {
    common!(name)
}

fn of_plain(name: &str) -> Option<Given<Plain>> {
    Some(match name {
        "tableau" => (|o| o, |o| o.tableau(kutta())),
        "norm" => (|o| o, |o| o.norm(|e| 100.0 * e[0].abs().max(e[1].abs()))),
        "save_at" => (|o| o, |o| o.save_at([0.5])),
        "save_fn" => (|o| o, |o| o.save_fn(|t, y| [t, y[0]])),
        "event" => (|o| o, |o| o.event(Event::crossing(), |_t, y| y[0] - 1.05)),
        "event, terminal" => (|o| o, |o| o.event(Event::crossing().terminal(), |_t, y| y[0] - 1.05)),
        "on_event" => (|o| o, |o| o.on_event(Event::rising(), |_t, y| y[0] - 1.05, |_t, y| y[1] = 0.0)),
        "on_times" => (|o| o, |o| o.on_times(&[0.5], |_t, y, _x| y[1] = 0.0)),
        "field_event" => (|o| o, |o| o.field_event(Event::crossing(), Pushed::height)),
        "on_field_event" => (|o| o, |o| o.on_field_event(Event::rising(), Pushed::height, Pushed::stop)),
        "on_field_times" => (|o| o, |o| o.on_field_times(&[0.5], Pushed::stop)),
        "field_discontinuities" => (|o| o, |o| o.field_discontinuities(&[0.5])),
        "on_step" => (|o| o, |o| o.on_step(|_t, _y| ControlFlow::Break(()))),
        "max_events" => (|o| o, |o| o.max_events(3)),
        "max_events with an event" => (two_events, |o| o.max_events(1).allow_incomplete()),
        "jacobian" => (|o| o, jacobian),
        "jacobian by Rodas5P" => (rodas5p, jacobian),
        "time_derivative" => (|o| o, time_derivative),
        "time_derivative by Rodas5P" => (rodas5p, time_derivative),
        "jacobian_sparsity" => (|o| o, sparsity),
        "jacobian_sparsity by Rodas5P" => (rodas5p, sparsity),
        "mass_matrix" => (|o| o, mass),
        "mass_matrix by Rodas5P" => (rodas5p, mass),
        "spectral_radius" => (|o| o, |o| o.spectral_radius(|_t, _y| 50.0)),
        "spectral_radius by Rkc2" => (|o| o.method(Method::Rkc2), |o| o.spectral_radius(|_t, _y| 50.0)),
        _ => return common!(name),
    })
}

/// Two events at one time.
fn two_events(ode: Plain) -> Plain {
    ode.field_event(Event::crossing(), Pushed::height).field_event(Event::crossing(), Pushed::height)
}

fn rodas5p(ode: Plain) -> Plain {
    ode.method(Method::Rodas5P)
}

/// A Jacobian that is not exact, so that its use shows in the result.
fn jacobian(ode: Plain) -> Plain {
    ode.jacobian(|_t, _y, jacobian| (jacobian[(0, 1)], jacobian[(1, 0)]) = (1.0, -2.001))
}

fn time_derivative(ode: Plain) -> Plain {
    ode.time_derivative(|_t, _y, f_t| *f_t = [0.0, 1.001])
}

/// A pattern that lacks a nonzero entry of the Jacobian, so that its use shows in the result.
fn sparsity(ode: Plain) -> Plain {
    ode.jacobian_sparsity(Sparsity::pattern([(0, 1), (1, 0)]))
}

fn mass(ode: Plain) -> Plain {
    ode.mass_matrix(Mass::diagonal([1.0, 2.0]))
}

fn of_tensors(name: &str) -> Option<Given<OnTensors>> {
    fn height(_t: Tensor, y: &Tensor) -> Tensor {
        y.sum() - 5.4
    }
    Some(match name {
        "tableau" => (|o| o, |o| o.tableau(kutta())),
        "save_at" => (|o| o, |o| o.save_at([0.5])),
        "event" => (|o| o, |o| o.event(Event::crossing(), height)),
        "event, terminal" => (|o| o, |o| o.event(Event::crossing().terminal(), height)),
        "on_event" => (|o| o, |o| o.on_event(Event::rising(), height, |_t, y| *y = &*y * 0.5)),
        "save_at with a tensor" => (|o| o, |o| o.save_at(&Tensor::from([0.25, 0.5]))),
        "save_at with both kinds" => (|o| o.save_at(&Tensor::from([0.25])), |o| o.save_at(SaveAt::t0())),
        "save_at with times twice" => (|o| o.save_at(&Tensor::from([0.25])), |o| o.save_at([0.5])),
        "adjoint" => (|o| o, |o| o.adjoint(Adjoint::reversible())),
        "batching" => (|o| o, |o| o.batching(Batching::PerRow)),
        "max_events" => (|o| o, |o| o.max_events(3)),
        "max_events with an event" => (|o| o.event(Event::crossing(), height), |o| o.max_events(3)),
        "mass_matrix" => (|o| o, |o| o.mass_matrix(Mass::diagonal([1.0, 2.0, 1.0, 2.0]))),
        "mass_matrix by Rodas5P" => {
            (|o| o.method(Method::Rodas5P), |o| o.mass_matrix(Mass::diagonal([1.0, 2.0, 1.0, 2.0])))
        }
        _ => return common!(name),
    })
}

const SETTINGS: [&str; 42] = [
    "method",
    "tableau",
    "controller",
    "rtol",
    "atol",
    "norm",
    "dt0",
    "dt_min",
    "dt_max",
    "max_steps",
    "allow_incomplete",
    "tstops",
    "discontinuities",
    "stop_at_rows",
    "save_at",
    "save_fn",
    "save_at with a tensor",
    "save_at with both kinds",
    "save_at with times twice",
    "event",
    "event, terminal",
    "on_event",
    "on_times",
    "field_event",
    "on_field_event",
    "on_field_times",
    "field_discontinuities",
    "on_step",
    "max_events",
    "max_events with an event",
    "batching",
    "adjoint",
    "jacobian",
    "jacobian by Rodas5P",
    "time_derivative",
    "time_derivative by Rodas5P",
    "jacobian_sparsity",
    "jacobian_sparsity by Rodas5P",
    "mass_matrix",
    "mass_matrix by Rodas5P",
    "spectral_radius",
    "spectral_radius by Rkc2",
];

fn line(name: &str) -> String {
    static PARAMS: [f64; 2] = [2.0, 3.0];
    let plain = |base: fn(Plain) -> Plain, run: &dyn Fn(&Plain) -> Found| {
        of_plain(name).map_or("", |(beside, set)| {
            let ode = || base(beside(Ode::from_generic(Pushed { k: 2.0 })));
            cell(name, &ode, &set, run)
        })
    };
    let prescribed = |base: fn(Plain) -> Plain| match name {
        "controller" => "",
        _ => plain(base, &|o| found(o.solve(0.0, 1.0, Y0))),
    };
    let on_tensors = |run: fn(&OnTensors) -> Found| {
        of_tensors(name).map_or("", |(beside, set)| {
            let ode = || beside(Ode::new(pushed as fn(Tensor, &Tensor) -> Tensor));
            cell(name, &ode, &set, &run)
        })
    };
    let ensemble = of_ensembles(name).map_or("", |(beside, set)| {
        let ode = || beside(ensemble(&PARAMS, member as fn(&f64) -> (Pushed, [f64; 2])));
        cell(name, &ode, &set, &|o: &Ensemble| found(o.solve(0.0, 1.0)))
    });
    let cells = [
        plain(|o| o, &|o| found(o.solve(0.0, 1.0, Y0))),
        prescribed(|o| o.controller(ConstantStepSize { dt0: 0.1 })),
        prescribed(|o| o.controller(StepTo { ts: (0..=10).map(|i| f64::from(i) / 10.0).collect() })),
        if name == "max_events with an event" { "" } else { plain(|o| o, &by_hand) },
        plain(|o| o, &|o| found(o.clone().forward_sensitivity().solve(0.0, 1.0, Y0))),
        ensemble,
        on_tensors(eager),
        on_tensors(jitted),
    ];
    format!("| {name} | {} |\n", cells.join(" | "))
}

/// If another setting is read or refused on purpose, copy the printed table into `settings.md` and into
/// `docs/reference/solve-options.md`.
#[test]
fn every_setting_is_read_or_refused_by_its_name_wherever_it_can_be_given() {
    let head = "| setting | `solve` | constant steps | `StepTo` | `stepper` | `forward_sensitivity` | ensemble | tensors | in `jit` |\n\
        | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
    let table = SETTINGS.iter().fold(head.to_owned(), |table, name| table + &line(name));
    assert!(!table.contains("ignored"), "\n{table}");
    assert_eq!(include_str!("../../ode/settings.md"), table, "\n{table}");
    let page = include_str!("../../../docs/reference/solve-options.md");
    assert!(page.contains(&table), "docs/reference/solve-options.md has another table:\n{table}");
}

#[test]
fn tolerances_of_backsolve_are_refused_under_constant_steps() {
    for (rtol, atol, named) in [(Some(1e-6), None, "rtol"), (None, Some(1e-6), "atol")] {
        let adjoint = Adjoint::Backsolve { rtol, atol };
        let ode = Ode::new(pushed as fn(Tensor, &Tensor) -> Tensor).adjoint(adjoint);
        assert!(ode.solve(0.0, 1.0, y0()).is_ok());
        let error = ode.method(Method::Rk4).dt0(0.1).solve(0.0, 1.0, y0()).unwrap_err().to_string();
        assert!(error.contains(&format!("`{named} of Adjoint::Backsolve`")), "{error}");
    }
}
