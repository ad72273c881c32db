//! Odd values of every setting, in every kind of solve: NaN, infinity, negative, zero, tiny, huge. Each is refused
//! with an error that names the setting, or has the effect that its documentation states.

use super::draw::Draw;
use crate::ode::*;
use crate::vector_field;
use std::collections::BTreeMap;

vector_field! {
    struct Swing<R> { k: R }
    fn eval(&self, t, y: &[R; 2]) -> [R; 2] {
        [y[1], (t * 3.0).cos() - self.k * y[0]]
    }
}

type Swinging = Ode<'static, [f64; 2], Swing>;

const Y0: [f64; 2] = [1.0, 0.5];
const K: f64 = 2.0;

/// The kinds of solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Solve,
    Stiff,
    Diffusion,
    Constant,
    Listed,
    Stepper,
    Sensitivity,
    Ensemble,
}
use Kind::*;

const KINDS: [Kind; 8] = [Solve, Stiff, Diffusion, Constant, Listed, Stepper, Sensitivity, Ensemble];

/// A setting of one number: its name, the words that an error may name it by, and the kinds of solve that have it.
struct Setting {
    name: &'static str,
    words: &'static [&'static str],
    kinds: &'static [Kind],
    set: fn(Swinging, f64) -> Swinging,
}

const ALONE: &[Kind] = &[Solve, Stiff, Diffusion, Constant, Listed, Stepper, Sensitivity];
const ADAPTIVE: &[Kind] = &[Solve, Stiff, Diffusion, Stepper, Sensitivity, Ensemble];
const SAVING: &[Kind] = &[Solve, Stiff, Diffusion, Constant, Listed];

fn pid(change: impl FnOnce(&mut PidController)) -> PidController {
    let mut pid = PidController::default();
    change(&mut pid);
    pid
}

fn hairer(change: impl FnOnce(&mut HairerController)) -> HairerController {
    let mut hairer = HairerController::default();
    change(&mut hairer);
    hairer
}

macro_rules! settings {
    ($($name:literal, $words:expr, $kinds:expr, |$ode:ident, $x:ident| $set:expr;)*) => {
        &[$(Setting { name: $name, words: &$words, kinds: $kinds, set: |$ode, $x| $set }),*]
    };
}

const SETTINGS: &[Setting] = settings! {
    "rtol", ["rtol"], &KINDS, |ode, x| ode.rtol(x);
    "atol", ["atol"], &KINDS, |ode, x| ode.atol(x);
    "rtol of a component", ["rtol"], &KINDS, |ode, x| ode.rtol([1e-6, x]);
    "dt0", ["dt0"], ADAPTIVE, |ode, x| ode.dt0(x);
    "dt_min", ["dt_min"], &KINDS, |ode, x| ode.dt_min(x);
    "dt_max", ["dt_max"], &KINDS, |ode, x| ode.dt_max(x);
    "norm", ["norm"], ALONE, |ode, x| ode.norm(move |e| if x == 0.5 { e[0].abs().max(e[1].abs()) } else { x });
    "tstops", ["tstops"], &KINDS, |ode, x| ode.tstops(&[x]);
    "discontinuities", ["discontinuities", "StepTo"], &KINDS, |ode, x| ode.discontinuities(&[x]);
    "save_at", ["save_at"], SAVING, |ode, x| ode.save_at([x]);
    "linspace", ["save_at"], SAVING, |ode, x| ode.save_at(SaveAt::linspace(0.0, x, 5));
    "Event::tolerance", ["Event::tolerance"], SAVING, |ode, x| ode.event(Event::crossing().tolerance(x), |t, _y| t - 0.4);
    "pcoeff", ["pcoeff"], ADAPTIVE, |ode, x| ode.controller(pid(|pid| pid.pcoeff = x));
    "icoeff", ["icoeff"], ADAPTIVE, |ode, x| ode.controller(pid(|pid| pid.icoeff = x));
    "dcoeff", ["dcoeff"], ADAPTIVE, |ode, x| ode.controller(pid(|pid| pid.dcoeff = x));
    "ratio_coeff", ["ratio_coeff"], ADAPTIVE, |ode, x| ode.controller(pid(|pid| pid.ratio_coeff = x));
    "safety", ["safety"], ADAPTIVE, |ode, x| ode.controller(pid(|pid| pid.safety = x));
    "factor_min", ["factor_min"], ADAPTIVE, |ode, x| ode.controller(pid(|pid| pid.factor_min = x));
    "factor_max", ["factor_max"], ADAPTIVE, |ode, x| ode.controller(pid(|pid| pid.factor_max = x));
    "dt0 of a controller", ["dt0"], ADAPTIVE, |ode, x| ode.controller(pid(|pid| pid.dt0 = Some(x)));
    "beta", ["beta"], ADAPTIVE, |ode, x| ode.controller(hairer(|hairer| hairer.beta = x));
    "safety of Hairer", ["safety", "factor_min"], ADAPTIVE, |ode, x| ode.controller(hairer(|hairer| hairer.safety = x));
    "factor_max of Hairer", ["factor_max"], ADAPTIVE, |ode, x| ode.controller(hairer(|hairer| hairer.factor_max = x));
    "ConstantStepSize", ["dt0"], &[Constant], |ode, x| ode.controller(ConstantStepSize { dt0: x });
    "StepTo", ["StepTo"], &[Listed], |ode, x| ode.controller(StepTo { ts: vec![0.0, x, 1.0] });
    "spectral_radius", ["spectral_radius"], &[Diffusion], |ode, x| ode.spectral_radius(move |_t, _y| x);
    "mass_matrix", ["mass_matrix", "singular", "algebraic"], &[Stiff], |ode, x| ode.mass_matrix(Mass::diagonal([1.0, x]));
};

/// What a solve gave.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Everything that can be observed, or the message of an error.
    text: String,
    is_error: bool,
    /// The sizes of the accepted steps, if they are known.
    steps: Vec<f64>,
    event: Option<f64>,
}

impl Seen {
    /// The times at which steps end, up to rounding.
    fn ends(&self) -> Vec<f64> {
        let mut t = 0.0;
        let end = |h: &f64| {
            t += h;
            t
        };
        self.steps.iter().map(end).collect()
    }

    fn failed<S: std::fmt::Debug>(error: &SolveError<S>) -> Seen {
        Seen { text: error.to_string(), is_error: true, ..Seen::default() }
    }
}

fn base(kind: Kind) -> Swinging {
    let ode = Ode::from_generic(Swing { k: K }).max_steps(3000);
    match kind {
        Stiff => ode.method(Method::Rodas5P),
        Diffusion => ode.method(Method::Rkc2),
        Constant => ode.controller(ConstantStepSize { dt0: 0.125 }),
        Listed => ode.controller(StepTo { ts: vec![0.0, 0.25, 0.5, 0.75, 1.0] }),
        _ => ode,
    }
}

fn run(kind: Kind, ode: Swinging) -> Seen {
    match kind {
        Stepper => {
            let mut stepper = match ode.stepper(0.0, 1.0, Y0) {
                Ok(stepper) => stepper,
                Err(error) => return Seen::failed(&error),
            };
            let (mut steps, mut seen) = (vec![], vec![]);
            loop {
                match stepper.step() {
                    Ok(Some(step)) => {
                        steps.push(step.dt);
                        seen.push((step.t, *step.y));
                    }
                    Ok(None) => {
                        break Seen {
                            text: format!("{seen:?} {:?}", stepper.stats()),
                            steps,
                            ..Seen::default()
                        };
                    }
                    Err(error) => break Seen::failed(&error),
                }
            }
        }
        Sensitivity => match ode.forward_sensitivity().solve(0.0, 1.0, Y0) {
            Ok(found) => Seen {
                text: format!("{:?} {:?} {:?}", found.y1, found.dy1_dy0, found.stats),
                ..Seen::default()
            },
            Err(error) => Seen::failed(&error),
        },
        Ensemble => unreachable!("an ensemble has its own builder"),
        _ => match ode.solve(0.0, 1.0, Y0) {
            Ok(solution) => Seen {
                text: format!(
                    "{:?} {:?} {:?} {:?} {:?} {:?}",
                    solution.y1,
                    solution.ts,
                    solution.ys,
                    solution.step_times,
                    solution.stats,
                    solution.events
                ),
                is_error: false,
                steps: solution.step_times.windows(2).map(|t| t[1] - t[0]).collect(),
                event: solution.events.first().map(|event| event.t),
            },
            Err(error) => Seen::failed(&error),
        },
    }
}

/// The settings that an `Ode` holds, in an ensemble of three trajectories.
fn run_ensemble(name: &str, x: f64) -> Seen {
    static PARAMS: [f64; 3] = [K, 3.0, 40.0];
    let all = ensemble(&PARAMS, |&k| (Swing { k }, Y0)).max_steps(3000);
    let all = match name {
        "" => all,
        "rtol" => all.rtol(x),
        "atol" => all.atol(x),
        "rtol of a component" => all.rtol([1e-6, x]),
        "dt0" => all.dt0(x),
        "dt_min" => all.dt_min(x),
        "dt_max" => all.dt_max(x),
        "tstops" => all.tstops(&[x]),
        "discontinuities" => all.discontinuities(&[x]),
        _ => {
            let set = SETTINGS.iter().find(|setting| setting.name == name).unwrap().set;
            let ode = set(Ode::from_generic(Swing { k: K }), x);
            all.controller(ode.settings.controller.expect("a setting of a controller"))
        }
    };
    match all.solve(0.0, 1.0) {
        Ok(found) => Seen { text: format!("{:?} {:?}", found.y1, found.stats), ..Seen::default() },
        Err(error) => Seen::failed(&error),
    }
}

/// Whether a value that has no effect on a solve `plain` should have none, by the documentation of the setting.
fn is_neutral(name: &str, x: f64, plain: &Seen) -> bool {
    let (least, most) = plain.steps.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), &h| (a.min(h), b.max(h)));
    match name {
        // The steps of sensitivities and of ensembles are not known here; a step is between 1e-5 and 0.3.
        "dt_min" if plain.steps.is_empty() => x <= 1e-5,
        "dt_max" if plain.steps.is_empty() => x >= 0.3,
        "dt_min" => x <= least,
        "dt_max" => x >= most,
        // A time outside the interval, at its ends, or at which a step ends in any case.
        "tstops" | "discontinuities" => x <= 0.0 || x >= 1.0 || plain.ends().contains(&x),
        // A tolerance below the precision of a component whose error does not matter beside it.
        "rtol" | "rtol of a component" => x == 1e-6,
        "atol" => (x - 1e-9).abs() < 1e-8,
        // t1 is saved by default.
        "save_at" => x == 1.0,
        "Event::tolerance" => x < 1e-10,
        "mass_matrix" => x == 1.0,
        // The default, or a value next to it.
        "pcoeff" | "dcoeff" => x.abs() < 1e-10,
        "ratio_coeff" => x.abs() < 0.1,
        "icoeff" => x == 1.0,
        // Only a rejected step becomes shorter, by a factor that is above 0.5 here.
        "factor_min" => x <= 0.5,
        "factor_max" | "factor_max of Hairer" => x > 9.0,
        "beta" => x.abs() < 0.05,
        _ => false,
    }
}

/// The judgment of one solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Refused,
    Read,
    Neutral,
}

/// Judges a solve with a setting of the value `x`, beside the solve without it.
fn judge(setting: &Setting, kind: Kind, x: f64, plain: &Seen, seen: &Seen) -> Result<Verdict, String> {
    let wrong = |why: &str| Err(format!("{} = {x:e} in {kind:?} {why}: {}", setting.name, seen.text));
    if seen.is_error {
        let named = setting.words.iter().any(|word| seen.text.contains(word));
        // The documented ends of solves whose settings ask for steps that are too small or too many.
        let documented = ["fell below", "max_steps=3000"].iter().any(|text| seen.text.contains(text));
        if seen.text.len() > 400 || seen.text.contains("00000000000000000000") {
            return wrong("has a message that is too long");
        }
        // Steps below 1e-308 are too small for methods that divide by the step size.
        let divides = x.abs() < 1e-307 && [Stiff, Diffusion].contains(&kind);
        let documented = documented || divides && seen.text.contains("non-finite numbers");
        return match (named, documented) {
            (true, _) => Ok(Verdict::Refused),
            (false, true) => Ok(Verdict::Read),
            (false, false) => wrong("is not named"),
        };
    }
    if x.is_nan() {
        return wrong("is accepted");
    }
    if seen.text == plain.text {
        return if is_neutral(setting.name, x, plain) {
            Ok(Verdict::Neutral)
        } else {
            wrong("is without effect")
        };
    }
    let obeyed = match setting.name {
        "dt_max" => seen.steps.iter().all(|h| *h <= x * (1.0 + 1e-12)),
        "tstops" | "discontinuities" => {
            seen.steps.is_empty() || seen.ends().iter().any(|t| (t - x).abs() < 1e-12)
        }
        "Event::tolerance" => seen.event.is_some_and(|t| (t - 0.4).abs() <= x.max(1e-15)),
        _ => true,
    };
    if obeyed { Ok(Verdict::Read) } else { wrong("is not obeyed") }
}

#[test]
fn every_odd_value_is_refused_by_name_or_has_its_documented_effect() {
    let mut draw = Draw(11);
    let odd = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -1.0,
        -0.0,
        0.0,
        5e-324,
        1e-20,
        1e-300,
        0.5,
        1.0,
        2.0,
        1e300,
    ];
    let (mut verdicts, mut wrong) = (BTreeMap::<(&str, Verdict), usize>::new(), vec![]);
    for kind in KINDS {
        let plain = if kind == Ensemble { run_ensemble("", 0.0) } else { run(kind, base(kind)) };
        assert!(!plain.is_error, "{kind:?}: {}", plain.text);
        for setting in SETTINGS.iter().filter(|setting| setting.kinds.contains(&kind)) {
            let random: Vec<f64> = (0..6)
                .map(|_| draw.one(&[1.0, 1.0, -1.0]) * 10.0_f64.powf(draw.unit() * 628.0 - 320.0))
                .collect();
            // The event alone changes the records, so the solve to compare with has one too.
            let plain = match setting.name {
                "Event::tolerance" => run(kind, (setting.set)(base(kind), 0.0)),
                _ => plain.clone(),
            };
            for &x in odd.iter().chain(&random) {
                let seen = match kind {
                    Ensemble => run_ensemble(setting.name, x),
                    _ => run(kind, (setting.set)(base(kind), x)),
                };
                match judge(setting, kind, x, &plain, &seen) {
                    Ok(verdict) => *verdicts.entry((setting.name, verdict)).or_default() += 1,
                    Err(why) => wrong.push(why),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} solves are wrong:\n{}", wrong.len(), wrong.join("\n"));
    for setting in SETTINGS {
        let count = |verdict| verdicts.get(&(setting.name, verdict)).copied().unwrap_or(0);
        assert!(
            count(Verdict::Refused) > 0 && count(Verdict::Read) + count(Verdict::Neutral) > 0,
            "{}: {verdicts:?}",
            setting.name
        );
    }
}

#[test]
fn sensitivities_refuse_a_save_fn_of_another_type() {
    let ode = Ode::from_generic(Swing { k: K }).save_fn(|t, _y| format!("{t}"));
    let error = ode.forward_sensitivity().solve(0.0, 1.0, Y0).unwrap_err().to_string();
    assert!(error.contains("`save_fn`") && error.contains("`observe`"), "{error}");
}

#[test]
fn an_early_end_of_constant_steps_names_no_tolerance() {
    let ode = || Ode::from_generic(Swing { k: K }).method(Method::Rk4).dt0(0.1).max_steps(2);
    let message = "the solve ended early: max_steps=2 reached at t=0.2; allow more with `max_steps`";
    assert_eq!(ode().solve(0.0, 1.0, Y0).unwrap_err().to_string(), message);
    assert_eq!(ode().forward_sensitivity().solve(0.0, 1.0, Y0).unwrap_err().to_string(), message);
    let ode = ode();
    let mut stepper = ode.stepper(0.0, 1.0, Y0).unwrap();
    let error = (0..3).find_map(|_| stepper.step().err()).unwrap();
    assert_eq!(error.to_string(), message);
    let all = ensemble(&[1.0], |&k| (Swing { k }, Y0)).method(Method::Rk4).dt0(0.1).max_steps(2);
    let error = all.solve(0.0, 1.0).unwrap_err().to_string();
    assert_eq!(error, message.replace("the solve ended", "the solve of row 0 ended"));
    let adaptive =
        Ode::from_generic(Swing { k: K }).max_steps(2).solve(0.0, 100.0, Y0).unwrap_err().to_string();
    assert!(adaptive.contains(" with rtol=1e-6, atol=1e-9: max_steps=2"), "{adaptive}");
    assert!(adaptive.ends_with("allow more with `max_steps`, or loosen the tolerances"), "{adaptive}");
}

#[test]
fn an_empty_list_of_step_times_is_named() {
    let error = base(Listed).controller(StepTo { ts: vec![] }).solve(0.0, 1.0, Y0).unwrap_err();
    let message = "the times of `StepTo` are empty, but the solve runs from t0=0 to t1=1: they must agree";
    assert_eq!(error.to_string(), message);
}
