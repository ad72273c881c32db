//! Ensembles over ranks: the results of one rank, and ranks that solve different ensembles.

use super::draw::Draw;
use crate::ode::{Method, Outcome, SolveError, ensemble};
use crate::vector_field;
use crate::world::World;
use std::collections::BTreeMap;

vector_field! {
    /// Lorenz 1963.
    struct Lorenz<R> { rho: R }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        [10.0 * (y[1] - y[0]), y[0] * (self.rho - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]]
    }
}

fn lorenz(rho: f64) -> Lorenz {
    Lorenz { rho }
}

fn rhos(n: usize) -> Vec<f64> {
    (0..n).map(|i| 28.0 * i as f64 / (n - 1) as f64).collect()
}

#[test]
fn ranks_have_the_results_of_one_in_order_and_name_the_same_trajectory() {
    let rhos = rhos(500);
    let sweep = |world: &World| {
        ensemble(&rhos, |&rho| (lorenz(rho), [1.0; 3])).world(world).max_steps(40).solve(0.0, 2.0)
    };
    let alone = sweep(&World::alone()).unwrap_err();
    let SolveError::Incomplete { row: Some(row), partial, .. } = &alone else { panic!("{alone}") };
    assert!(partial.outcomes.iter().any(Outcome::reached_t1));
    for ranks in [2, 3, 7] {
        for found in World::threads(ranks, sweep) {
            let found = found.unwrap_err();
            let SolveError::Incomplete { row: Some(at), partial: all, .. } = &found else {
                panic!("{found}")
            };
            assert_eq!((at, &all.y1, &all.outcomes), (row, &partial.y1, &partial.outcomes));
            assert_eq!((&all.stats, &all.warnings), (&partial.stats, &partial.warnings));
        }
    }
    let few = World::threads(3, |world| {
        ensemble(&rhos[..2], |&rho| (lorenz(rho), [1.0; 3])).world(world).solve(0.0, 1.0).unwrap().y1
    });
    assert!(few[0].len() == 2 && few.iter().all(|y1| *y1 == few[0]));
    let other = World::threads(2, |world| {
        let rhos = &rhos[..10 + world.rank()];
        let error = ensemble(rhos, |&rho| (lorenz(rho), [1.0; 3])).world(world).solve(0.0, 1.0).unwrap_err();
        error.to_string()
    });
    let want = "number of trajectories differs on rank 1 (this process): 11, but rank 0 has 10";
    assert!(other.iter().all(|message| message.contains(want)), "{other:?}");
}

/// How one rank differs.
const KINDS: [&str; 9] = ["none", "parameter", "y0", "all", "nan", "rtol", "t1", "method", "precision"];

/// Ensembles of 1 to 300 trajectories on 2 to 5 ranks, one of which has another value of one parameter, of one component
/// of y0, of all of them, or of an option. All ranks return an error, unless the other value is that of a trajectory that
/// neither this rank nor the rank before it solves: it then has no effect on any result.
#[test]
fn a_rank_with_other_parameters_initial_states_or_options_is_refused_on_all_ranks() {
    let mut draw = Draw(3);
    let mut found = BTreeMap::<(&str, bool), u32>::new();
    for _ in 0..120 {
        let (num, ranks) = (1 + draw.below(299), 2 + draw.below(4));
        let (odd, at) = (draw.below(ranks), draw.below(num));
        let kind = KINDS[draw.below(KINDS.len() - usize::from(!cfg!(feature = "ensemble-f32")))];
        let problem = |i: usize, is_odd: bool| {
            let is_here = is_odd && (i == at || kind == "all");
            let rho = 20.0 + i as f64;
            let rho = match kind {
                "parameter" | "all" if is_here => rho * (1.0 + f64::EPSILON),
                "nan" if i == at => f64::NAN,
                _ => rho,
            };
            let z = if is_here && kind == "y0" { 1.0 + f64::EPSILON } else { 1.0 };
            (lorenz(rho), [1.0, 1.0, z])
        };
        let numbers: Vec<usize> = (0..num).collect();
        let solve = |world: &World| {
            let is_odd = world.rank() == odd;
            let sweep = ensemble(&numbers, |&i| problem(i, is_odd)).world(world).allow_incomplete();
            let sweep = if is_odd && kind == "rtol" { sweep.rtol(1e-5) } else { sweep };
            let sweep = if is_odd && kind == "method" { sweep.method(Method::Vern7) } else { sweep };
            let t1 = if is_odd && kind == "t1" { 0.02 } else { 0.01 };
            #[cfg(feature = "ensemble-f32")]
            if is_odd && kind == "precision" {
                return sweep.single_precision().solve(0.0, t1).err().map(|e| e.to_string());
            }
            sweep.solve(0.0, t1).err().map(|e| e.to_string())
        };
        let errors = World::threads(ranks, solve);
        let owner = ensemble(&numbers, |&i| problem(i, false)).owner(at, ranks);
        let has_effect = match kind {
            "none" | "nan" => false,
            "parameter" | "y0" => owner == odd || owner == (odd + 1) % ranks,
            _ => true,
        };
        for error in &errors {
            assert_eq!(error.is_some(), has_effect, "{kind} {num} {ranks} {odd} {at}: {errors:?}");
            let words = match kind {
                "rtol" | "t1" | "method" => format!("{kind} differs on rank "),
                "precision" => "precision differs on rank ".to_owned(),
                _ => "have different parameters or y0 for the same trajectories".to_owned(),
            };
            assert!(error.iter().all(|text| text.contains(&words) && text.len() < 300), "{error:?}");
        }
        *found.entry((kind, has_effect)).or_default() += 1;
    }
    assert_eq!(found.len(), 11 - usize::from(!cfg!(feature = "ensemble-f32")), "{found:?}");
}
