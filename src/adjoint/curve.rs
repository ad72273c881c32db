//! The data that a step of a traced solve stores, and its dense output.
//!
//! A step stores its ends and, if the solution inside it is needed, the stages of its polynomial ([`Rows`]). The
//! method's interpolant evaluates y from these data by ordinary operations outside the loop. So gradients with
//! respect to the times, the state and the field's captures need no special rule. This module must not depend on
//! which steps store data.

use super::algorithm::{LeafField, Scheme};
use super::leaves::Leaves;
use crate::array::DType;
use crate::ode::{self, FieldFailure, Interpolant, Span, State};
use crate::tensor::{Leaf, Tensor, Tree, TreePath};
use crate::tree;

tree! {
/// The data of one step. For several steps, every tensor has a leading axis of rows.
pub(super) struct Rows {
    /// The start time of the step.
    pub(super) t: Tensor,
    /// The end time of the step.
    pub(super) t_next: Tensor,
    /// The state at its end, if steps are saved.
    pub(super) y1: Option<Leaves>,
    /// The state at its start, if dense output is needed.
    pub(super) y: Option<Leaves>,
    /// The stages that dense output uses.
    pub(super) stages: Vec<Leaves>,
}
}

impl Rows {
    /// The rows with the indices `index`.
    pub(super) fn take(&self, index: &Tensor) -> Self {
        self.map_leaves(|x| x.take(index))
    }

    /// The rows of a range.
    pub(super) fn slice(&self, range: std::ops::Range<usize>) -> Self {
        self.map_leaves(|x| x.slice(0, range.clone()))
    }

    /// Bytes of one row.
    pub(super) fn bytes(&self) -> usize {
        self.leaves().iter().map(|x| x.ty().bytes()).sum()
    }
}

/// The dense output of a method, on tensors.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    interpolant: Interpolant,
    /// The indices of the stages that the interpolant uses.
    used: Vec<usize>,
}

/// A constant of the program: a leaf that is not a tensor.
impl Tree for Curve {
    fn each<'a>(&'a self, path: &mut TreePath, f: &mut dyn FnMut(&TreePath, Leaf<'a>)) {
        f(path, Leaf::Static(self));
    }
    fn each_mut(&mut self, _: &mut dyn FnMut(&mut Tensor)) {}
    fn map(&self, _: &mut TreePath, _: &mut dyn FnMut(&TreePath, &Tensor) -> Tensor) -> Self {
        self.clone()
    }
}

/// The input of [`Trail::of`].
pub(super) struct Step<'a> {
    pub(super) t: &'a Tensor,
    pub(super) t_next: &'a Tensor,
    pub(super) y: &'a Leaves,
    pub(super) y1: &'a Leaves,
    /// The method's stages.
    pub(super) k: Vec<Leaves>,
    /// Whether the last stage of an FSAL method has been computed.
    pub(super) has_last: bool,
}

/// Which data each step stores.
pub(super) struct Trail {
    /// Whether to store the state at the end of the step.
    pub(super) has_ends: bool,
    /// The dense output whose data are stored, if any.
    pub(super) curve: Option<Curve>,
}

impl Trail {
    /// Extra function evaluations per step for dense output.
    pub(super) fn num_extra(&self) -> usize {
        self.curve.as_ref().map_or(0, |curve| curve.interpolant.extra().count())
    }

    /// The data that `step` stores.
    ///
    /// # Errors
    /// The field's error at an extra stage.
    pub(super) fn of(
        &self,
        field: &LeafField<'_>,
        scheme: &Scheme<'_>,
        span: &Span<Tensor>,
        step: Step<'_>,
    ) -> Result<Rows, FieldFailure<Tensor>> {
        let Step { t, t_next, y, y1, mut k, has_last } = step;
        let y_end = self.has_ends.then(|| y1.clone());
        let mut rows = Rows { t: t.clone(), t_next: t_next.clone(), y1: y_end, y: None, stages: vec![] };
        if let Some(Curve { interpolant, used }) = &self.curve {
            k.resize(interpolant.num_stages(), y.clone());
            ode::complete(&field, scheme, interpolant, span, (t, t_next), (y, y1), has_last, &mut k)?;
            rows.stages = used.iter().map(|&i| k[i].clone()).collect();
            rows.y = Some(y.clone());
        }
        Ok(rows)
    }

    /// Rows with the shapes of one step's data; the values are arbitrary.
    pub(super) fn like(&self, t: &Tensor, y: &Leaves) -> Rows {
        let stages = self.curve.as_ref().map_or(0, |curve| curve.used.len());
        Rows {
            t: t.clone(),
            t_next: t.clone(),
            y1: self.has_ends.then(|| y.clone()),
            y: self.curve.is_some().then(|| y.clone()),
            stages: vec![y.clone(); stages],
        }
    }
}

impl Curve {
    pub(super) fn of(scheme: &Scheme<'_>) -> Curve {
        let interpolant = Interpolant::of(&scheme.tableau);
        let is_used = |i: &usize| interpolant.coefficients(*i).iter().any(|c| *c != 0.0);
        let used = (0..interpolant.num_stages()).filter(is_used).collect();
        Curve { interpolant, used }
    }

    /// The state at a constant fraction `theta` of one step.
    pub(super) fn at_part(&self, theta: f64, step: &Rows) -> Leaves {
        let mut all = vec![0.0; self.interpolant.num_stages()];
        self.interpolant.weights(theta, &mut all);
        let weights: Vec<f64> = self.used.iter().map(|&i| all[i]).collect();
        let y = start(step);
        let mut out = y.clone();
        out.lincomb(y, &(&step.t_next - &step.t), &weights, &step.stages);
        out
    }

    /// The states at `ts`, each from the step in the same row. A step of length 0 marks a time that no step contains;
    /// callers do not use its result.
    pub(super) fn eval(&self, ts: &Tensor, rows: &Rows) -> Leaves {
        let h = length(rows);
        let rate = sum(&self.weights(&((ts - &rows.t) / &h)), rows);
        let advanced = |(y, rate): (&Tensor, &Tensor)| y + along(&h, y) * rate;
        rate.with(start(rows).tensors().iter().zip(rate.tensors()).map(advanced).collect())
    }

    /// The sizes of the terms whose sum is the state at t, `|y| + |h| sum_i |w_i k_i|`, where each weight w_i is the
    /// sum of the sizes of its terms.
    pub(super) fn sizes(&self, t: &Tensor, rows: &Rows) -> Leaves {
        let h = length(rows);
        let theta = (t - &rows.t) / &h;
        let (rest, mut terms) = ((1.0 - &theta).abs(), vec![theta.abs()]);
        for j in 1..self.interpolant.degree() {
            terms.push(&terms[j - 1] * if j % 2 == 0 { &terms[0] } else { &rest });
        }
        let sizes = self.used.iter().map(|&i| {
            let coefficients: Vec<f64> = self.interpolant.coefficients(i).iter().map(|c| c.abs()).collect();
            Tensor::lincomb(&coefficients, &terms.iter().collect::<Vec<_>>())
        });
        let weights: Vec<Tensor> = sizes.map(|size| size * h.abs()).collect();
        let absolute =
            Rows { stages: rows.stages.iter().map(|k| k.map_leaves(Tensor::abs)).collect(), ..rows.clone() };
        let advance = sum(&weights, &absolute);
        let both = start(rows).tensors().iter().zip(advance.tensors()).map(|(y, advance)| y.abs() + advance);
        advance.with(both.collect())
    }

    /// The derivatives of the states at `ts` with respect to t.
    pub(super) fn derivative(&self, ts: &Tensor, rows: &Rows) -> Leaves {
        let theta = (ts - &rows.t) / length(rows);
        let rest = 1.0 - &theta;
        let (mut term, mut derivative) = (Tensor::scalar(DType::F64, 1.0), Tensor::scalar(DType::F64, 0.0));
        let mut derivatives = Vec::new();
        for j in 0..self.interpolant.degree() {
            let (factor, sign) = if j % 2 == 0 { (&theta, 1.0) } else { (&rest, -1.0) };
            derivative = &derivative * factor + &term * sign;
            term = &term * factor;
            derivatives.push(derivative.broadcast_to(theta.shape().clone()));
        }
        sum(&self.of_terms(&derivatives), rows)
    }

    /// The weights of the used stages at each theta.
    fn weights(&self, theta: &Tensor) -> Vec<Tensor> {
        let mut terms = vec![theta.clone()];
        let rest = 1.0 - theta;
        for j in 1..self.interpolant.degree() {
            terms.push(&terms[j - 1] * if j % 2 == 0 { theta } else { &rest });
        }
        self.of_terms(&terms)
    }

    /// For each used stage, the sum of its coefficients times `terms`.
    fn of_terms(&self, terms: &[Tensor]) -> Vec<Tensor> {
        let weight = |&i: &usize| {
            let each = self.interpolant.coefficients(i).iter().zip(terms);
            let (coeffs, terms): (Vec<f64>, Vec<&Tensor>) = each.filter(|(c, _)| **c != 0.0).unzip();
            Tensor::lincomb(&coeffs, &terms)
        };
        self.used.iter().map(weight).collect()
    }
}

fn start(rows: &Rows) -> &Leaves {
    rows.y.as_ref().expect("invariant: a step with a curve has its start")
}

/// t_next - t, or 1 where it is 0.
fn length(rows: &Rows) -> Tensor {
    let nowhere = rows.t.eq(&rows.t_next);
    nowhere.select(&Tensor::scalar(DType::F64, 1.0), &(&rows.t_next - &rows.t))
}

/// The weighted sum of the stages, row by row.
fn sum(weights: &[Tensor], rows: &Rows) -> Leaves {
    let stages = &rows.stages;
    let of = |i: usize| {
        let terms = weights.iter().zip(stages).map(|(w, stage)| {
            let x = &stage.tensors()[i];
            along(w, x) * x
        });
        terms.reduce(|a, b| a + b).expect("invariant: a curve has stages")
    };
    start(rows).with((0..stages[0].tensors().len()).map(of).collect())
}

/// `x` (one number per row, or a single number) cast to the dtype of `leaf` and reshaped to broadcast against `leaf`.
fn along(x: &Tensor, leaf: &Tensor) -> Tensor {
    flags_along(&x.cast(leaf.dtype()), leaf)
}

/// [`along`] without the cast.
pub(super) fn flags_along(x: &Tensor, leaf: &Tensor) -> Tensor {
    x.reshape([&x.shape()[..], &vec![1; leaf.rank() - x.rank()]].concat())
}

/// The states where `m` holds, NaN elsewhere; `m` and `y` have a leading axis of rows.
pub(super) fn or_nan(m: &Tensor, y: &Leaves) -> Leaves {
    y.map_leaves(|y| flags_along(m, y).select(y, &Tensor::scalar(y.dtype(), f64::NAN)))
}

/// `a` where `m` holds, else `b`. Both are trees of one structure. The axes of `m` are the first axes of their
/// leaves; if two leaves differ in rank, of the one with more axes.
pub(super) fn choose<T: Tree>(m: &Tensor, a: &T, b: &T) -> T {
    let mut others = b.leaves().into_iter();
    a.map_leaves(|a| {
        let b = others.next().expect("invariant: trees of one structure");
        flags_along(m, if a.rank() < b.rank() { &b } else { a }).select(a, &b)
    })
}
