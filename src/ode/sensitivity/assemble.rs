//! The result of a sensitivity solve, from the values of the plain solve and the tangents of the passes.

use super::directions::Directions;
use super::moving::D;
use super::replay::{Curve, Passed};
use super::{EventSensitivity, Sensitivity};
use crate::ode::{ConfigError, DIRECTIONS, GenericField, NumberFn, Solution, Warning};
use std::array::from_fn;

/// The dense output of all passes.
#[derive(Clone, Debug)]
pub(super) struct Curves<G> {
    pub each: Vec<Curve>,
    pub field: G,
    pub directions: Directions,
}

impl<G> Curves<G> {
    /// The derivatives of the state at t with respect to the parameters and to y0.
    ///
    /// # Errors
    /// As [`DenseOutput::eval`](crate::ode::DenseOutput::eval).
    pub fn at<const N: usize>(&self, t: f64) -> Result<(G::Of<[f64; N]>, [[f64; N]; N]), ConfigError>
    where
        G: GenericField<N>,
    {
        let states = self.each.iter().map(|curve| curve.at_fixed(t)).collect::<Result<Vec<_>, _>>()?;
        let Curves { field, directions, .. } = self;
        Ok(Derivatives { field, passes: &states, directions }.of_state(|y| y))
    }
}

/// The tangents of all passes, of which each is a `T`.
pub(super) struct Derivatives<'a, G, T> {
    pub field: &'a G,
    pub passes: &'a [T],
    pub directions: &'a Directions,
}

impl<G, T> Derivatives<'_, G, T> {
    /// The derivative of a number of each pass in a direction; NaN without a direction.
    fn along(&self, direction: Option<usize>, number: impl Fn(&T) -> D) -> f64 {
        direction.map_or(f64::NAN, |direction| {
            number(&self.passes[direction / DIRECTIONS]).tangent[direction % DIRECTIONS]
        })
    }

    /// The derivatives of a number with respect to y0.
    fn by_y0<const N: usize>(&self, number: impl Fn(&T) -> D) -> [f64; N] {
        from_fn(|j| self.along(self.directions.of_y0(j), &number))
    }

    /// The derivatives of a number with respect to the parameters.
    fn by_params<const N: usize>(&self, number: impl Fn(&T) -> D) -> G::Of<f64>
    where
        G: GenericField<N>,
    {
        let mut i = 0;
        self.field.map_params(|_| {
            i += 1;
            self.along(self.directions.of_param(i - 1), &number)
        })
    }

    /// The derivatives of a state with respect to y0 and to the parameters.
    fn of_state<const N: usize>(&self, state: impl Fn(&T) -> &[D]) -> (G::Of<[f64; N]>, [[f64; N]; N])
    where
        G: GenericField<N>,
    {
        let mut k = 0;
        let by_params = self.field.map_params(|_| {
            k += 1;
            from_fn(|i| self.along(self.directions.of_param(k - 1), |passed| state(passed)[i]))
        });
        (by_params, from_fn(|i| self.by_y0(|passed| state(passed)[i])))
    }

    /// The derivatives of a list of numbers as a matrix `[number, direction]`.
    fn matrix(&self, numbers: impl Fn(&T) -> &[D]) -> Vec<f64> {
        let rows = self.passes.first().map_or(0, |passed| numbers(passed).len());
        let mut matrix = Vec::with_capacity(rows * self.directions.count);
        for row in 0..rows {
            matrix.extend(
                (0..self.directions.count).map(|d| self.along(Some(d), |passed| numbers(passed)[row])),
            );
        }
        matrix
    }
}

impl<G: Clone> Derivatives<'_, G, Passed> {
    /// The solution with its derivatives.
    pub fn of<const N: usize>(
        &self,
        solution: Solution<[f64; N]>,
        (observed, curves): (&[NumberFn<G, N>], Vec<Curve>),
    ) -> Sensitivity<G, N>
    where
        G: GenericField<N>,
    {
        let values = |(t, y): (&f64, &[f64; N])| {
            observed.iter().map(|number| number.eval(self.field, *t, y)).collect::<Vec<f64>>()
        };
        let num_observed = observed.len();
        let observed: Vec<f64> = solution.ts.iter().zip(&solution.ys).flat_map(values).collect();
        let rows = (0..solution.ys.len()).map(|k| self.of_state(move |passed| &passed.ys[k * N..][..N]));
        let (dys_dp, dys_dy0) = rows.unzip();
        let events = solution.events.iter().enumerate().map(|(k, event)| {
            let (dy_dp, dy_dy0) = self.of_state(|passed| &passed.events[k].1);
            let t = |passed: &Passed| passed.events[k].0;
            EventSensitivity {
                index: event.index,
                t: event.t,
                y: event.y,
                dt_dp: self.by_params(t),
                dt_dy0: self.by_y0(t),
                dy_dp,
                dy_dy0,
            }
        });
        let is_grazing = |k: &usize| self.passes.iter().any(|passed| passed.grazing.contains(k));
        let grazing = (0..solution.events.len()).filter(is_grazing).map(|k| &solution.events[k]);
        let grazing = grazing.map(|event| Warning::Grazing { index: event.index, t: event.t });
        let (dy1_dp, dy1_dy0) = self.of_state(|passed| &passed.y1);
        let each_observed = 0..observed.len();
        Sensitivity {
            t1: solution.t1,
            y1: solution.y1,
            dt1_dp: self.by_params(|passed| passed.t1),
            dt1_dy0: self.by_y0(|passed| passed.t1),
            dy1_dp,
            dy1_dy0,
            dys_dp,
            dys_dy0,
            dobserved_dp: each_observed
                .clone()
                .map(|k| self.by_params(|passed| passed.observed[k]))
                .collect(),
            dobserved_dy0: each_observed.map(|k| self.by_y0(|passed| passed.observed[k])).collect(),
            sizes: [if num_observed > 0 { num_observed } else { N }, self.directions.count],
            matrix: self.matrix(|passed| if num_observed > 0 { &passed.observed } else { &passed.ys }),
            observed,
            events: events.collect(),
            warnings: solution.warnings.iter().copied().chain(grazing).collect(),
            ts: solution.ts,
            ys: solution.ys,
            step_times: solution.step_times,
            stats: solution.stats,
            num_passes: self.passes.len(),
            outcome: solution.outcome,
            method: solution.method,
            rtol: solution.rtol,
            atol: solution.atol,
            dense: solution.dense,
            curves: Curves { each: curves, field: self.field.clone(), directions: self.directions.clone() },
        }
    }
}
