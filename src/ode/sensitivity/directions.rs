//! The directions in which a sensitivity solve differentiates, and what each saved time is.

use super::Start;
use super::moving::D;
use super::replay::{Row, RowKind};
use crate::ode::{DIRECTIONS, Dual, GenericField, SaveAt, Solution};

/// The directions of a solve: the selected parameters in the order of declaration, then the components of y0.
#[derive(Clone, Debug)]
pub(super) struct Directions {
    /// The direction of each parameter.
    params: Vec<Option<usize>>,
    /// The direction of the first component of y0.
    y0: Option<usize>,
    pub count: usize,
}

impl Directions {
    /// All parameters and y0, or the `selected` parameters. An initial state that is a function has no directions
    /// of its own.
    pub fn new<G: GenericField<N>, const N: usize>(
        field: &G,
        selected: Option<&[bool]>,
        start: &Start<G, N>,
    ) -> Self {
        let (mut params, mut count) = (vec![], 0);
        field.map_params(|_| {
            let is_selected = selected.is_none_or(|selected| selected[params.len()]);
            params.push(is_selected.then_some(count));
            count += usize::from(is_selected);
        });
        let has_y0 = selected.is_none() && matches!(start, Start::Numbers(_));
        Directions { params, y0: has_y0.then_some(count), count: count + if has_y0 { N } else { 0 } }
    }

    /// The number of passes.
    pub fn num_passes(&self) -> usize {
        self.count.div_ceil(DIRECTIONS)
    }

    /// The direction of a parameter.
    pub fn of_param(&self, i: usize) -> Option<usize> {
        self.params[i]
    }

    /// The direction of a component of y0.
    pub fn of_y0(&self, j: usize) -> Option<usize> {
        self.y0.map(|first| first + j)
    }
}

/// A number with derivative 1 in this direction, if the direction is one of the pass.
pub(super) fn variable(x: f64, direction: Option<usize>, pass: usize) -> D {
    // The index of a direction of another pass is out of range, so its tangent is 0.
    direction.map_or(x.into(), |direction| Dual::variable(x, direction.wrapping_sub(pass * DIRECTIONS)))
}

/// What is saved at each saved time.
pub(super) fn rows_of<Y>(save_at: &SaveAt, (t0, t1): (f64, f64), solution: &Solution<Y>) -> Vec<Row> {
    let (given, steps) = (save_at.in_order(t0, t1), &solution.step_times);
    let sign = if t1 < t0 { -1.0 } else { 1.0 };
    let (mut next, mut step) = (0, 0);
    let mut kind = |t: f64| {
        while given.ts.get(next).is_some_and(|at| at * sign < t * sign) {
            next += 1;
        }
        if given.ts.get(next) == Some(&t) {
            return RowKind::Given;
        }
        while steps.get(step).is_some_and(|at| *at != t) {
            step += 1;
        }
        let is_due = save_at.every > 0 && step > 0 && step.is_multiple_of(save_at.every);
        let is_start = step == 0 && save_at.t0;
        if (is_due || is_start) && step < steps.len() { RowKind::Step } else { RowKind::End }
    };
    solution.ts.iter().map(|&t| Row { t, kind: kind(t) }).collect()
}
