//! Saved times of a traced solve: what a step taps, and the curve through it.
//!
//! A step that holds a saved time leaves t, t_next, y and the stages of its curve behind; the method's interpolant
//! makes y at that time of them, as ordinary operations outside the loop, so that gradients by the times, the state
//! and whatever the field holds need no rule of their own.

use super::state::TreeState;
use crate::array::DType;
use crate::ode::{self, Field, FieldFailure, Interpolant, OdeError, SaveAt, Scheme, Span};
use crate::tensor::{Tensor, Tree};

/// What a solve on tensors is to save.
#[derive(Clone, Debug)]
pub(super) struct Saved {
    t0: bool,
    t1: bool,
    /// f64 of rank 1, not empty.
    pub(super) ts: Option<Tensor>,
}

impl Saved {
    /// What was asked for, `ts` being times given as a tensor.
    ///
    /// # Errors
    /// What is there for host states alone; nothing to save; times out of order or outside the interval, if it is
    /// known.
    pub(super) fn new(
        save_at: &SaveAt,
        ts: Option<&Tensor>,
        span: Option<(f64, f64)>,
    ) -> Result<Saved, OdeError> {
        let SaveAt { t0, t1, ts: times, every, dense } = save_at;
        let refused = |what| Err(OdeError::SaveOnTensors { what });
        match (*every > 0, *dense, *t0 || *t1 || ts.is_some() || !times.is_empty()) {
            (true, ..) => return refused("steps"),
            (_, true, _) => return refused("the dense curve"),
            (.., false) => return refused("nothing"),
            (false, false, true) => {}
        }
        match (ts, span) {
            (Some(ts), Some((t0, t1))) if !ts.is_traced() => SaveAt::from(ts.to_vec()).check(t0, t1)?,
            (None, Some((t0, t1))) => save_at.check(t0, t1)?,
            _ => {}
        }
        if let Some(&value) = times.iter().find(|t| !t.is_finite()) {
            return Err(OdeError::Time { name: "save_at ts", value });
        }
        let given = (!times.is_empty()).then(|| Tensor::from(&times[..]));
        Ok(Saved { t0: *t0, t1: *t1, ts: ts.cloned().or(given) })
    }

    /// The end alone.
    pub(super) const END: Saved = Saved { t0: false, t1: true, ts: None };

    /// These times alone.
    pub(super) fn at(ts: &Tensor) -> Saved {
        Saved { t0: false, t1: false, ts: Some(ts.clone()) }
    }

    /// How many times lie inside of steps.
    pub(super) fn num_times(&self) -> usize {
        self.ts.as_ref().map_or(0, Tensor::size)
    }

    /// The times alone, as far as they were asked for.
    pub(super) fn times(&self, t0: &Tensor, t1: &Tensor) -> Tensor {
        let mut parts: Vec<Tensor> = Vec::new();
        parts.extend(self.t0.then(|| t0.reshape([1])));
        parts.extend(self.ts.clone());
        parts.extend(self.t1.then(|| t1.reshape([1])));
        Tensor::concat(&parts.iter().collect::<Vec<_>>(), 0)
    }

    /// Times and states in one: the start, the given times, the end, as far as they were asked for.
    pub(super) fn join<Y: TreeState>(
        &self,
        (t0, y0): (&Tensor, &Y),
        inner: Option<(&Tensor, &Y)>,
        (t1, y1): (&Tensor, &Y),
    ) -> (Tensor, Y) {
        let axis = time_axis(y0);
        let one = |t: &Tensor, y: &Y| (t.reshape([1]), y.map_leaves(|y| y.expand(axis)));
        let mut parts: Vec<(Tensor, Y)> = Vec::new();
        parts.extend(self.t0.then(|| one(t0, y0)));
        parts.extend(inner.map(|(ts, ys)| (ts.clone(), ys.clone())));
        parts.extend(self.t1.then(|| one(t1, y1)));
        let leaves: Vec<Vec<Tensor>> = parts.iter().map(|(_, y)| y.leaves()).collect();
        let all = |i: usize| Tensor::concat(&leaves.iter().map(|l| &l[i]).collect::<Vec<_>>(), axis);
        let ts = Tensor::concat(&parts.iter().map(|(t, _)| t).collect::<Vec<_>>(), 0);
        (ts, y0.with_leaves((0..y0.leaves().len()).map(all)))
    }
}

/// Where the axis of saved times goes: behind the rows where there are rows, else first. There are rows where the first
/// axes of all leaves have one length and some leaf has a further axis.
pub(super) fn time_axis(y: &impl Tree) -> usize {
    let leaves = y.leaves();
    let rows = leaves.first().and_then(|leaf| leaf.shape().first().copied());
    let same = rows.is_some() && leaves.iter().all(|leaf| leaf.shape().first().copied() == rows);
    usize::from(same && leaves.iter().any(|leaf| leaf.rank() > 1))
}

/// The curve of a method on tensors.
pub(super) struct Curve {
    interpolant: Interpolant,
    /// The stages that it is made of.
    used: Vec<usize>,
}

/// A step as [`Curve::taps`] wants it.
pub(super) struct Step<'a, Y> {
    pub(super) t: &'a Tensor,
    pub(super) t_next: &'a Tensor,
    pub(super) y: &'a Y,
    pub(super) y1: &'a Y,
    /// The method's stages.
    pub(super) k: Vec<Y>,
    /// Whether the last stage of a method that is first same as last is there.
    pub(super) has_last: bool,
}

impl Curve {
    pub(super) fn of<Y: TreeState>(scheme: &Scheme<'_, Y>) -> Curve {
        let interpolant = Interpolant::of(&scheme.tableau);
        let is_used = |i: &usize| interpolant.coefficients(*i).iter().any(|c| *c != 0.0);
        let used = (0..interpolant.num_stages()).filter(is_used).collect();
        Curve { interpolant, used }
    }

    /// Evaluations of the field that the curve of a step costs.
    pub(super) fn num_extra(&self) -> usize {
        self.interpolant.extra().count()
    }

    /// What a step leaves behind for its curve: t, t_next, y, the stages.
    pub(super) fn taps<Y: TreeState, F: Field<Y>>(
        &self,
        field: &F,
        scheme: &Scheme<'_, Y>,
        span: &Span<Tensor>,
        step: Step<'_, Y>,
    ) -> Result<Vec<Tensor>, FieldFailure<Tensor>> {
        let Step { t, t_next, y, y1, mut k, has_last } = step;
        k.resize(self.interpolant.num_stages(), y.clone());
        ode::complete(field, scheme, &self.interpolant, span, (t, t_next), (y, y1), has_last, &mut k)?;
        let mut taps = vec![t.clone(), t_next.clone()];
        taps.extend(y.leaves());
        self.used.iter().for_each(|&i| taps.extend(k[i].leaves()));
        Ok(taps)
    }

    /// The states at `ts` from what the steps that hold them left behind. A time that no step holds is y1's if it is
    /// the time reached, else NaN.
    pub(super) fn eval<Y: TreeState>(&self, ts: &Tensor, tapped: &[Tensor], (t1, y1): (&Tensor, &Y)) -> Y {
        let (t, t_next) = (&tapped[0], &tapped[1]);
        let nowhere = t.eq(t_next);
        let h = nowhere.select(&Tensor::scalar(DType::F64, 1.0), &(t_next - t));
        let weights = self.weights(&((ts - t) / &h));
        let reached = ts.eq(t1);
        let (ends, num_leaves, axis) = (y1.leaves(), y1.leaves().len(), time_axis(y1));
        let at = |i: usize| {
            let (end, y) = (&ends[i], &tapped[2 + i]);
            let along = |x: &Tensor| x.reshape([&[ts.size()], &vec![1; end.rank()][..]].concat());
            let number = |x: &Tensor| along(&x.cast(end.dtype()));
            let stage = |j: usize| &tapped[2 + (j + 1) * num_leaves + i];
            let slopes = weights.iter().enumerate().map(|(j, w)| number(w) * stage(j));
            let slope = slopes.reduce(|a, b| a + b).expect("invariant: a curve has stages");
            let nan = Tensor::scalar(end.dtype(), f64::NAN);
            let outside = along(&reached).select(&end.expand(0), &nan);
            let y = along(&nowhere).select(&outside, &(y + number(&h) * slope));
            match axis {
                0 => y,
                _ => y.permute(&[&[1, 0], &(2..y.rank()).collect::<Vec<_>>()[..]].concat()),
            }
        };
        y1.with_leaves((0..num_leaves).map(at).collect::<Vec<_>>())
    }

    /// The weights of the used stages at each theta.
    fn weights(&self, theta: &Tensor) -> Vec<Tensor> {
        let mut terms = vec![theta.clone()];
        let rest = 1.0 - theta;
        for j in 1..self.interpolant.degree() {
            terms.push(&terms[j - 1] * if j % 2 == 0 { theta } else { &rest });
        }
        let weight = |&i: &usize| {
            let each = self.interpolant.coefficients(i).iter().zip(&terms);
            let (coeffs, terms): (Vec<f64>, Vec<&Tensor>) = each.filter(|(c, _)| **c != 0.0).unzip();
            Tensor::lincomb(&coeffs, &terms)
        };
        self.used.iter().map(weight).collect()
    }
}

#[cfg(test)]
mod tests;
