//! flowline: each method with an error estimate, called as a user would.
//!
//! On arrays, the suffix `-shared` means that one loop over steps serves all methods. Without it, the loop is
//! compiled for the method (`Ode::inlined`). By default, Tsit5 has its own loop, and the others share one.

use super::MAX_STEPS;
use crate::measure::{End, Run};
use crate::problems::Problem;
use flowline::ode::extra::inline;
use flowline::ode::{Controller, HairerController, Method, Ode, PidController, Solution, SolveError};

/// The methods that are run at a tolerance: methods of low order only at loose tolerances.
pub fn methods(tol: f64) -> impl Iterator<Item = Method> {
    let worth = move |m: &Method| {
        m.is_explicit() && m.tableau().b_err.is_some() && (m.tableau().order >= 5 || tol > 3e-7)
    };
    Method::ALL.into_iter().filter(worth)
}

fn end<Y: AsRef<[f64]>>(solution: Result<Solution<Y>, SolveError<Solution<Y>>>) -> Result<End, String> {
    let solution = solution.map_err(|e| e.to_string())?;
    let (num_steps, num_field_evals) = (solution.stats.num_steps, solution.stats.num_fn_evals);
    Ok(End { y: solution.y1.as_ref().to_vec(), num_steps, num_field_evals, ..End::default() })
}

fn name(method: Method) -> String {
    method.to_string().to_lowercase()
}

/// Hairer's rule may shorten the step after an accepted one, so fewer steps are rejected than with the default.
fn controllers(method: Method) -> Vec<(String, Controller)> {
    let default = (name(method), PidController::default().into());
    match method.tableau().order {
        ..5 => vec![default],
        _ => vec![default, (format!("{}-hairer", name(method)), HairerController::dopri5().into())],
    }
}

/// On arrays.
pub fn fixed<P: Problem, const N: usize>(tol: f64) -> Vec<Run<'static>> {
    let y0: [f64; N] = P::y0().try_into().expect("the problem has N unknowns");
    macro_rules! run {
        ($name:expr, $controller:expr, |$ode:ident| $by:expr) => {{
            let $ode = Ode::in_place(|_t, y: &[f64; N], dy: &mut [f64; N]| P::f(y, dy))
                .controller($controller)
                .rtol(tol)
                .atol(tol)
                .max_steps(MAX_STEPS.into());
            let ode = $by;
            Run::new("flowline", $name, tol, move || end(ode.solve(0.0, P::T1, y0)))
        }};
    }
    macro_rules! inlined {
        ($method:ident, $name:expr, $controller:expr; $($known:ident)*) => {
            match $method {
                $(Method::$known => run!($name, $controller, |ode| ode.inlined(inline::$known)),)*
                _ => run!($name, $controller, |ode| ode.method($method)),
            }
        };
    }
    let mut runs = vec![];
    for method in methods(tol) {
        for (name, controller) in controllers(method) {
            runs.push(
                inlined!(method, name, controller; Bosh3 Fehlberg45 CashKarp Dopri5 Tsit5 Vern7 Dop853 Vern9),
            );
        }
        if method != Method::default() {
            let shared = format!("{}-shared", name(method));
            runs.push(run!(shared, PidController::default(), |ode| ode.method(method)));
        }
    }
    runs
}

/// On vectors on the heap.
pub fn heap<P: Problem>(tol: f64) -> Vec<Run<'static>> {
    let run = |(method, (name, controller))| {
        let ode = Ode::in_place(|_t, y: &[f64], dy: &mut [f64]| P::f(y, dy));
        let ode = ode.method(method).controller(controller);
        let ode = ode.rtol(tol).atol(tol).max_steps(MAX_STEPS.into());
        let y0 = P::y0();
        Run::new("flowline", name, tol, move || end(ode.solve(0.0, P::T1, y0.clone())))
    };
    methods(tol).flat_map(|m| controllers(m).into_iter().map(move |c| (m, c))).map(run).collect()
}
