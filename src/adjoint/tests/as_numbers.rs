//! Solutions of tensors as numbers, against the same problem on a plain state.
//!
//! The cases are drawn: states of one or two leaves of rank 0 to 3, 0 to 9 saved times, all steps, dense output, both
//! directions, rows that share their steps or not. `FLOWLINE_CASES=<n>` draws n cases.

use crate::adjoint::{Batching, TensorSolution};
use crate::array::DType;
use crate::ode::tests::draw::{Draw, num_cases};
use crate::ode::{AsNumbers, Event, Ode, SaveAt, Solution};
use crate::tensor::{Key, LoneTree, Tensor};
use crate::tree;

tree! {
    struct Two { a: Tensor, b: Tensor }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Save {
    Times,
    TimesAndDense,
    Dense,
    Steps,
}

#[derive(Clone, Debug)]
struct Case {
    save: Save,
    ts: Vec<f64>,
    t1: f64,
    is_per_row: bool,
    /// Times at which the dense output is compared.
    between: Vec<f64>,
}

impl Case {
    fn drawn(draw: &mut Draw) -> Case {
        let t1 = draw.uniform(0.5, 4.0) * draw.one(&[-1.0, 1.0]);
        let mut ts: Vec<f64> = (0..draw.below(10)).map(|_| t1 * draw.unit()).collect();
        ts.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let save = draw.one(&[Save::Times, Save::TimesAndDense, Save::Dense, Save::Steps]);
        let between = (0..draw.one(&[0, 1, 255, 256, 257, 600])).map(|_| t1 * draw.unit()).collect();
        Case { save, ts, t1, is_per_row: draw.coin(), between }
    }

    fn save_at(&self) -> SaveAt {
        match self.save {
            Save::Times => SaveAt::ts(&self.ts),
            Save::TimesAndDense => SaveAt::ts(&self.ts).and_dense(),
            Save::Dense => SaveAt::dense(),
            Save::Steps => SaveAt::steps(),
        }
    }

    /// y' = sin t + cos 2 y for every element.
    fn on_tensors<Y: LoneTree>(&self, y0: &Y) -> TensorSolution<Y> {
        let slope = |t: &Tensor, y: &Tensor| t.sin() + (2.0 * y).cos();
        let ode = Ode::new(move |t: Tensor, y: &Y| y.map_leaves(|y| slope(&t, y)));
        let ode = ode.rtol(1e-9).atol(1e-9).max_steps(400).save_at(self.save_at());
        let batching = if self.is_per_row { Batching::PerRow } else { Batching::Joint };
        ode.batching(batching).solve(0.0, self.t1, y0.clone()).unwrap()
    }

    fn on_plain(&self, y0: Vec<f64>) -> Solution<Vec<f64>> {
        let ode = Ode::in_place(|t: f64, y: &[f64], dy: &mut [f64]| {
            (0..y.len()).for_each(|i| dy[i] = t.sin() + (2.0 * y[i]).cos());
        });
        ode.rtol(1e-9).atol(1e-9).save_at(self.save_at()).solve(0.0, self.t1, y0).unwrap()
    }
}

fn assert_near(found: &[(f64, Vec<f64>)], expected: &[(f64, Vec<f64>)], case: &Case) {
    assert_eq!(found.len(), expected.len(), "{case:?}");
    for ((t, y), (s, x)) in found.iter().zip(expected) {
        let off = y.iter().zip(x).map(|(y, x)| (y - x).abs()).fold((t - s).abs(), f64::max);
        assert!(off < 1e-6 && y.len() == x.len(), "{case:?}: {off:e} at t={t}");
    }
}

/// Compares one case; returns whether its rows have their own saved times.
fn compare<Y: LoneTree>(case: &Case, y0: &Y) -> bool {
    let found = case.on_tensors(y0);
    let flat: Vec<f64> = y0.leaves().iter().flat_map(Tensor::to_vec).collect();
    let expected = case.on_plain(flat.clone());
    let rows = y0.leaves()[0].shape().first().copied().filter(|_| case.is_per_row).unwrap_or(1);
    assert_eq!(AsNumbers::num_shown(&found) == flat.len(), found.rows().is_some_and(|rows| !rows.is_empty()));
    let at = |solution: &dyn AsNumbers| {
        let states = solution.on_curve(&case.between);
        states.map(|all| case.between.iter().copied().zip(all).collect::<Vec<_>>())
    };
    assert_eq!(at(&found).is_some(), matches!(case.save, Save::TimesAndDense | Save::Dense));
    if let (Some(found), Some(expected)) = (at(&found), at(&expected)) {
        assert_near(&found, &expected, case);
    }
    if case.save == Save::Steps && rows > 1 {
        assert!(found.saved().is_none(), "{case:?}");
        return true;
    }
    if case.save != Save::Steps || rows == 1 {
        assert_near(&found.saved().unwrap(), &expected.saved().unwrap(), case);
    }
    if rows == 1 && at(&found).is_some() {
        assert_near(&found.rows().unwrap(), &expected.rows().unwrap(), case);
        let times =
            |solution: &dyn AsNumbers| solution.step_times().into_iter().map(|t| (t, vec![])).collect();
        let (found, expected): (Vec<_>, Vec<_>) = (times(&found), times(&expected));
        assert_near(&found, &expected, case);
    }
    let (found, expected) = (AsNumbers::stats(&found), expected.stats);
    assert!(rows > 1 || found.num_accepted == expected.num_accepted, "{found} {expected}");
    false
}

#[test]
fn a_solution_of_tensors_has_the_numbers_of_a_plain_one() {
    let mut draw = Draw(1);
    let (mut own_times, mut per_row, mut backward, mut dense, cases) = (0, 0, 0, 0, num_cases(60));
    for case_number in 0..cases {
        let mut case = Case::drawn(&mut draw);
        let y0 =
            |shape: &[usize]| Key::new(draw.0 + shape.len() as u64).normal(shape.to_vec()).cast(DType::F64);
        let has_own_times = match case_number % 5 {
            0 => {
                case.is_per_row = false;
                compare(&case, &y0(&[]))
            }
            1 => compare(&case, &y0(&[3])),
            2 => compare(&case, &y0(&[2, 3])),
            3 => compare(&case, &y0(&[2, 1, 2])),
            _ => compare(&case, &Two { a: y0(&[2, 2]), b: y0(&[2]) }),
        };
        own_times += usize::from(has_own_times);
        per_row += usize::from(case.is_per_row);
        backward += usize::from(case.t1 < 0.0);
        dense += usize::from(case.save == Save::TimesAndDense && case.ts.len() > 1);
    }
    let least = [own_times, per_row, backward, dense].into_iter().min();
    assert!(least >= Some(cases / 20), "{own_times} {per_row} {backward} {dense}");
}

#[test]
fn rows_that_end_early_have_nan_in_their_own_components() {
    // y' = 1 ends where y is 1: at t = 0.75 in row 0, not before t = 2 in row 1.
    let rise = Ode::new(|_t, y: &Tensor| Tensor::ones(y.shape().clone()).cast(y.dtype()));
    let rise = rise.event(Event::rising().terminal(), |_t, y: &Tensor| y.reshape([]) - 1.0);
    let rise = rise.batching(Batching::PerRow).save_at([0.5, 1.0, 1.5]);
    let solution = rise.solve(0.0, 1.5, Tensor::from([[0.25], [-5.0]])).unwrap();
    let saved = solution.saved().unwrap();
    assert_eq!(saved.len(), 3);
    assert!(
        saved[0].1.iter().all(|y| y.is_finite())
            && saved[1].1[0].is_nan()
            && (saved[1].1[1] + 4.0).abs() < 1e-9
    );
    let events = AsNumbers::events(&solution);
    assert!(
        events.len() == 1 && (events[0].1.0 - 0.75).abs() < 1e-9 && events[0].1.1.is_empty(),
        "{events:?}"
    );
}
