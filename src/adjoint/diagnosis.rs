//! Why the steps of a stiff solve were not finite, found after the solve has ended.
//!
//! Plain states keep the Jacobian of the last step. A loop on tensors would have to carry it, and every program would
//! search it. So the Jacobian of the step that failed is computed again, once per solve that failed: for the first group
//! of rows that ended early, which is the one that an error names. This needs known values. A solve inside a compiled
//! program or a gradient keeps its outcome, and there `debug_nans` finds the operation.

use super::TensorSolution;
use super::evaluations::Evaluations;
use super::leaves::Leaves;
use super::problem::Problem;
use super::rosenbrock::{Rosenbrock, components, jacobian_of};
use super::rows::Groups;
use crate::ode::{Clock, Diagnosis, MethodKind, Outcome, Span};
use crate::tensor::Tensor;
use crate::tensor::linalg::lu;

impl Problem<'_> {
    /// The same solution, whose outcome names the cause of numbers that are not finite if it is known.
    pub(super) fn diagnosed(
        &self,
        (t0, t1): (&Tensor, &Tensor),
        groups: Option<Groups>,
        mut solution: TensorSolution<Leaves>,
    ) -> TensorSolution<Leaves> {
        if self.scheme.tableau.is_explicit() || solution.verdict.is_traced() {
            return solution;
        }
        let outcomes = solution.outcomes();
        let Some(group) = outcomes.iter().position(|outcome| !outcome.is_success()) else { return solution };
        let outcome = outcomes[group];
        if let Outcome::NonFinite { t, dt, step, .. } = outcome
            && step > 0
        {
            let y = groups.map_or_else(|| solution.y1.clone(), |groups| groups.rows_of(group, &solution.y1));
            let span = Span::new(t0.like(t0.item()), t0.like(t1.item()));
            let t = self.scheme.after(&span, &t0.like(t));
            let named = outcome.diagnosed(self.diagnosis((&t, &t0.like(dt)), &y), false);
            let mut numbers = solution.verdict.to_vec();
            numbers[6 * group..][..6].copy_from_slice(&named.encode());
            solution.verdict = Tensor::from_vec(solution.verdict.shape().clone(), numbers);
        }
        solution
    }

    /// Why the step of size h from (t, y) is not finite; `None` if the reason is unknown.
    fn diagnosis(&self, (t, h): (&Tensor, &Tensor), y: &Leaves) -> Option<Diagnosis> {
        let MethodKind::Rosenbrock(numbers) = &self.scheme.tableau.kind else { return None };
        let field = Evaluations::of(self.field);
        let rate = field.traced(t, y).ok()?;
        let j = jacobian_of(rate, t, y);
        let (n, entries) = (j.shape()[0], j.to_vec());
        // As on plain states: an infinite entry before one that is NaN, because of products of 0 and infinity.
        let places = || (0..n).flat_map(|column| (0..n).map(move |row| (row, column)));
        let entry = |(row, column): &(usize, usize)| entries[row * n + column];
        let infinite = places().find(|place| entry(place).is_infinite());
        if let Some((row, column)) = infinite.or_else(|| places().find(|place| entry(place).is_nan())) {
            let y = components(y).index(column).item();
            return Some(Diagnosis::Jacobian { row, column, y });
        }
        let mass = self.mass.as_ref().map(|mass| mass.entries.clone());
        let pivots = lu(&Rosenbrock::of(&field, mass).matrix(h, &j, numbers.gamma)).upper.to_vec();
        let component = (0..n).find(|k| pivots[k * n + k] == 0.0)?;
        Some(Diagnosis::Singular { component })
    }
}
