//! Ten thousand Lorenz trajectories, rho from 0 to 28, over one unit of time: only the end states.
//!
//! Each trajectory takes its own steps. For crates that solve one problem at a time, rayon distributes the
//! trajectories over threads, as for flowline's `tsit5-each`; flowline's other rows are ensembles in SIMD lanes.
//! The suffix `-shared` of Tsit5, Vern7 and Vern9 means that one loop serves all methods; without it, the loop is
//! compiled for the field and the method. The error is the largest over all trajectories, against ode_solvers'
//! Dop853 at 1e-12.

use crate::measure::{End, Run};
use crate::peers::MAX_STEPS;
use crate::peers::ode_solvers::with_defaults;
use differential_equations::ode::ODE;
use differential_equations::prelude::{ExplicitRungeKutta, IVP};
use flowline::ode::extra::inline;
use flowline::ode::{Method, Ode, ensemble};
use nalgebra::SVector;
use ode_solvers::dop_shared::OutputType;
use ode_solvers::{Dop853, Dopri5};
use rayon::prelude::*;

const TRAJECTORIES: usize = 10_000;
pub const NAME: &str = "lorenz-ensemble";

/// The end state of one trajectory, with its steps and evaluations.
type One = ([f64; 3], u64, u64);

/// The Lorenz equations for one rho.
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

/// All trajectories, sequentially or distributed over the threads of the pool.
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
        ..End::default()
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

flowline::vector_field! {
    /// The same equations, generic over the number type.
    struct LorenzField<R> { rho: R }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        [10.0 * (y[1] - y[0]), y[0] * (self.rho - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]]
    }
}

/// flowline's ensemble: the machine's lanes, the pool's threads.
macro_rules! flowline_ensemble {
    ($pool:expr, |$e:ident| $by:expr, $rhos:expr, $tol:expr $(, $precision:ident)?) => {{
        let problem = |rho: &f64| (LorenzField { rho: *rho }, [1.0; 3]);
        let ensemble = $pool.install(|| {
            let $e = ensemble($rhos, problem)$(.$precision())?.rtol($tol).atol($tol);
            $by.solve(0.0, 1.0).map_err(|e| e.to_string())
        })?;
        let total = ensemble.total_stats();
        Ok(End {
            y: ensemble.y1.iter().flat_map(|y| y.map(f64::from)).collect(),
            num_steps: total.num_steps,
            num_field_evals: total.num_fn_evals,
            ..End::default()
        })
    }};
}

/// flowline with one trajectory at a time.
macro_rules! flowline_run {
    ($method:expr, $r:ty, $rho:expr, $tol:expr) => {{
        let field = Lorenz::<$r>($rho as $r);
        let ode = Ode::in_place(move |_t, y: &[$r; 3], dy: &mut [$r; 3]| field.f(y, dy));
        let solution = ode.method($method).rtol($tol).atol($tol).solve(0.0, 1.0, [1.0 as $r; 3]);
        let solution = solution.map_err(|e| e.to_string())?;
        Ok((solution.y1.map(f64::from), solution.stats.num_steps, solution.stats.num_fn_evals))
    }};
}

/// The reference end states.
pub fn end() -> Vec<f64> {
    let pool = pool(1);
    let run = each(&pool, &rhos(), |rho| ode_solvers_run!(Dop853, f64, rho, 1e-12));
    run.expect("the ensemble is solved").y
}

/// A pool with this number of threads.
pub fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start")
}

/// The methods of order 5 and above; at the tolerances used in f64, methods of lower order are too slow.
fn methods() -> impl Iterator<Item = Method> {
    Method::ALL
        .into_iter()
        .filter(|m| m.is_explicit() && m.tableau().b_err.is_some() && m.tableau().order >= 5)
}

macro_rules! runs {
    ($d:tt $(#[$doc:meta])* $name:ident, $r:ident $(, $precision:ident)?) => {
        $(#[$doc])*
        pub fn $name(pool: &rayon::ThreadPool, tol: f64) -> Vec<Run<'_>> {
            let mut runs = Vec::new();
            let mut each = |peer: &'static str, method: &str, one: fn(f64, f64) -> Result<One, String>| {
                let rhos = rhos();
                runs.push(Run::new(peer, method, tol, move || each(pool, &rhos, |rho| one(rho, tol))));
            };
            each("ode_solvers", "dopri5", |rho, tol| ode_solvers_run!(Dopri5, $r, rho, tol));
            each("ode_solvers", "dop853", |rho, tol| ode_solvers_run!(Dop853, $r, rho, tol));
            each("differential-equations", "dopri5", |rho, tol| differential_equations_run!(dopri5, $r, rho, tol));
            each("differential-equations", "dop853", |rho, tol| differential_equations_run!(dop853, $r, rho, tol));
            each("differential-equations", "rkv877e", |rho, tol| differential_equations_run!(rkv877e, $r, rho, tol));
            each("flowline", "tsit5-each", |rho, tol| flowline_run!(Method::Tsit5, $r, rho, tol));
            each("flowline", "dop853-each", |rho, tol| flowline_run!(Method::Dop853, $r, rho, tol));
            for method in methods() {
                let rhos = rhos();
                let shared = [Method::Tsit5, Method::Vern7, Method::Vern9].contains(&method);
                let name = format!("{method}{}", if shared { "-shared" } else { "" });
                let ensemble = move || flowline_ensemble!(pool, |e| e.method(method), &rhos, tol $(, $precision)?);
                runs.push(Run::new("flowline", name, tol, ensemble));
            }
            macro_rules! inlined {
                ($d($method:ident)*) => { $d({
                    let rhos = rhos();
                    let ensemble =
                        move || flowline_ensemble!(pool, |e| e.inlined(inline::$method), &rhos, tol $(, $precision)?);
                    runs.push(Run::new("flowline", Method::$method.to_string(), tol, ensemble));
                })* };
            }
            inlined!(Tsit5 Vern7 Vern9);
            runs
        }
    };
}
runs!(
    $
    /// Every crate at one tolerance, in f64.
    f64_runs,
    f64
);
runs!(
    $
    /// Every crate at one tolerance, in f32.
    f32_runs,
    f32,
    single_precision
);
