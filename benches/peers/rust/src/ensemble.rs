//! Ten thousand Lorenz trajectories, rho from 0 to 28, over one unit of time: the end states alone.
//!
//! Each trajectory takes its own steps. The crates that solve one problem at a time share the trajectories among
//! threads by rayon. The error is the largest over all trajectories, against ode_solvers' Dop853 at 1e-12.

use crate::measure::{End, Run};
use crate::peers::ode_solvers::with_defaults;
use crate::peers::{MAX_STEPS, flowline::methods};
use differential_equations::ode::ODE;
use differential_equations::prelude::{ExplicitRungeKutta, IVP};
use flowline::ode::{Method, Ode};
use nalgebra::SVector;
use ode_solvers::dop_shared::OutputType;
use ode_solvers::{Dop853, Dopri5};
use rayon::prelude::*;

const TRAJECTORIES: usize = 10_000;
pub const NAME: &str = "lorenz-ensemble";

/// The end state of one trajectory, with its steps and evaluations.
type One = ([f64; 3], u64, u64);

/// The Lorenz equations of one rho.
#[derive(Clone, Copy)]
struct Lorenz<R>(R);

macro_rules! lorenz {
    ($r:ty) => {
        impl Lorenz<$r> {
            #[inline(always)]
            fn f(&self, y: &[$r], dy: &mut [$r]) {
                let (y, dy) = (&y[..3], &mut dy[..3]);
                dy[0] = 10.0 * (y[1] - y[0]);
                dy[1] = y[0] * (self.0 - y[2]) - y[1];
                dy[2] = y[0] * y[1] - 8.0 / 3.0 * y[2];
            }
        }
        impl ode_solvers::System<$r, SVector<$r, 3>> for Lorenz<$r> {
            fn system(&self, _t: $r, y: &SVector<$r, 3>, dy: &mut SVector<$r, 3>) {
                self.f(y.as_slice(), dy.as_mut_slice());
            }
        }
        impl ODE<$r, [$r; 3]> for Lorenz<$r> {
            fn diff(&self, _t: $r, y: &[$r; 3], dy: &mut [$r; 3]) {
                self.f(y, dy);
            }
        }
    };
}
lorenz!(f64);
lorenz!(f32);

fn rhos() -> Vec<f64> {
    (0..TRAJECTORIES).map(|i| 28.0 * i as f64 / (TRAJECTORIES - 1) as f64).collect()
}

/// All trajectories, one after the other, or shared among the threads of the pool.
fn each(
    pool: &rayon::ThreadPool,
    rhos: &[f64],
    one: impl Fn(f64) -> Result<One, String> + Sync,
) -> Result<End, String> {
    let ends: Vec<One> = if pool.current_num_threads() == 1 {
        rhos.iter().map(|rho| one(*rho)).collect::<Result<_, _>>()?
    } else {
        pool.install(|| rhos.par_iter().map(|rho| one(*rho)).collect::<Result<_, _>>())?
    };
    Ok(End {
        y: ends.iter().flat_map(|(y, _, _)| *y).collect(),
        num_steps: ends.iter().map(|(_, steps, _)| steps).sum(),
        num_field_evals: ends.iter().map(|(_, _, evals)| evals).sum(),
    })
}

macro_rules! ode_solvers_run {
    ($solver:ident, $r:ty, $rho:expr, $tol:expr) => {{
        let (rho, tol) = ($rho as $r, $tol as $r);
        let y0 = SVector::<$r, 3>::new(1.0, 1.0, 1.0);
        let mut solver = with_defaults!($solver, Lorenz::<$r>(rho), 0.0, 1.0, 1.0, y0, tol, tol; 1.0);
        let stats = solver.integrate().map_err(|e| format!("{e:?}"))?;
        let y = solver.y_out().last().ok_or("no output")?;
        let num_steps = stats.accepted_steps + stats.rejected_steps;
        Ok(([0, 1, 2].map(|i| f64::from(y[i])), u64::from(num_steps), u64::from(stats.num_eval)))
    }};
}

macro_rules! differential_equations_run {
    ($method:ident, $r:ty, $rho:expr, $tol:expr) => {{
        let (rho, tol) = ($rho as $r, $tol as $r);
        let method = ExplicitRungeKutta::$method().rtol(tol).atol(tol).max_steps(MAX_STEPS as usize);
        let solution = IVP::ode(&Lorenz::<$r>(rho), 0.0, 1.0, [1.0 as $r; 3]).method(method).solve();
        let solution = solution.map_err(|e| format!("{e:?}"))?;
        let y = solution.y.last().ok_or("no output")?;
        Ok((y.map(f64::from), solution.steps.total() as u64, solution.evals.function as u64))
    }};
}

macro_rules! flowline_run {
    ($method:expr, $r:ty, $rho:expr, $tol:expr) => {{
        let (field, tol) = (Lorenz::<$r>($rho as $r), $tol);
        let ode = Ode::in_place(move |_t, y: &[$r; 3], dy: &mut [$r; 3]| field.f(y, dy));
        let solution = ode.method($method).rtol(tol).atol(tol).solve(0.0, 1.0, [1.0 as $r; 3]);
        let solution = solution.and_then(|s| s.into_result()).map_err(|e| e.to_string())?;
        Ok((solution.y1.map(f64::from), solution.stats.num_steps, solution.stats.num_field_evals))
    }};
}

/// The end states that all are held against.
pub fn end() -> Vec<f64> {
    let pool = pool(1);
    let run = each(&pool, &rhos(), |rho| ode_solvers_run!(Dop853, f64, rho, 1e-12));
    run.expect("the ensemble is solved").y
}

/// A pool of so many threads.
pub fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start")
}

/// Every crate at one tolerance, in f64.
pub fn f64_runs(pool: &rayon::ThreadPool, tol: f64) -> Vec<Run<'_>> {
    let mut runs = Vec::new();
    macro_rules! push {
        ($peer:literal, $method:expr, $run:expr) => {{
            let rhos = rhos();
            runs.push(Run::new($peer, $method, tol, move || each(pool, &rhos, $run)));
        }};
    }
    push!("ode_solvers", "dopri5", |rho| ode_solvers_run!(Dopri5, f64, rho, tol));
    push!("ode_solvers", "dop853", |rho| ode_solvers_run!(Dop853, f64, rho, tol));
    push!("differential-equations", "dopri5", |rho| differential_equations_run!(dopri5, f64, rho, tol));
    push!("differential-equations", "dop853", |rho| differential_equations_run!(dop853, f64, rho, tol));
    for method in methods(tol) {
        push!("flowline", name(method), |rho| flowline_run!(method, f64, rho, tol));
    }
    runs
}

/// Every crate at one tolerance, in f32.
pub fn f32_runs(pool: &rayon::ThreadPool, tol: f64) -> Vec<Run<'_>> {
    let mut runs = Vec::new();
    macro_rules! push {
        ($peer:literal, $method:expr, $run:expr) => {{
            let rhos = rhos();
            runs.push(Run::new($peer, $method, tol, move || each(pool, &rhos, $run)));
        }};
    }
    push!("ode_solvers", "dopri5", |rho| ode_solvers_run!(Dopri5, f32, rho, tol));
    push!("ode_solvers", "dop853", |rho| ode_solvers_run!(Dop853, f32, rho, tol));
    push!("differential-equations", "dopri5", |rho| differential_equations_run!(dopri5, f32, rho, tol));
    push!("differential-equations", "dop853", |rho| differential_equations_run!(dop853, f32, rho, tol));
    for method in methods(tol) {
        push!("flowline", name(method), |rho| flowline_run!(method, f32, rho, tol));
    }
    runs
}

fn name(method: Method) -> String {
    format!("{}-each", method.to_string().to_lowercase())
}
