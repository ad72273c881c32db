//! What a step of a traced solve leaves behind, and the curve through it.
//!
//! A step leaves its ends, and where its inside is asked for the stages of its curve ([`Rows`]). The method's
//! interpolant makes y at any time of them, as ordinary operations outside the loop, so that gradients by the times,
//! the state and whatever the field holds need no rule of their own. Which steps leave something it must never know.

use super::algorithm::{LeafField, Scheme};
use super::leaves::Leaves;
use crate::array::DType;
use crate::ode::{self, FieldFailure, Interpolant, Span, State};
use crate::tensor::{Leaf, Tensor, Tree, TreePath};
use crate::tree;

tree! {
/// What one step left, or what several did: then every tensor has an axis of rows in front.
pub(super) struct Rows {
    /// Where the step starts.
    pub(super) t: Tensor,
    /// Where it ends.
    pub(super) t_next: Tensor,
    /// The state at its end, where steps are saved.
    pub(super) y1: Option<Leaves>,
    /// The state at its start, where there is a curve.
    pub(super) y: Option<Leaves>,
    /// The stages that the curve is made of.
    pub(super) stages: Vec<Leaves>,
}
}

impl Rows {
    /// The rows `index[..]`.
    pub(super) fn take(&self, index: &Tensor) -> Self {
        self.map_leaves(|x| x.take(index))
    }

    /// Rows of a range.
    pub(super) fn slice(&self, range: std::ops::Range<usize>) -> Self {
        self.map_leaves(|x| x.slice(0, range.clone()))
    }

    /// Bytes of a row, of one step's leaves.
    pub(super) fn bytes(&self) -> usize {
        self.leaves().iter().map(|x| x.ty().bytes()).sum()
    }
}

/// The curve of a method on tensors.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    interpolant: Interpolant,
    /// The stages that it is made of.
    used: Vec<usize>,
}

/// Numbers alone: part of the program.
impl Tree for Curve {
    fn each<'a>(&'a self, path: &mut TreePath, f: &mut dyn FnMut(&TreePath, Leaf<'a>)) {
        f(path, Leaf::Static(self));
    }
    fn each_mut(&mut self, _: &mut dyn FnMut(&mut Tensor)) {}
    fn map(&self, _: &mut TreePath, _: &mut dyn FnMut(&TreePath, &Tensor) -> Tensor) -> Self {
        self.clone()
    }
}

/// A step as [`Trail::of`] wants it.
pub(super) struct Step<'a> {
    pub(super) t: &'a Tensor,
    pub(super) t_next: &'a Tensor,
    pub(super) y: &'a Leaves,
    pub(super) y1: &'a Leaves,
    /// The method's stages.
    pub(super) k: Vec<Leaves>,
    /// Whether the last stage of a method that is first same as last is there.
    pub(super) has_last: bool,
}

/// What each step leaves.
pub(super) struct Trail {
    /// Its end's state.
    pub(super) has_ends: bool,
    /// What its curve is made of.
    pub(super) curve: Option<Curve>,
}

impl Trail {
    /// Evaluations of the field that the curve of a step costs.
    pub(super) fn num_extra(&self) -> usize {
        self.curve.as_ref().map_or(0, |curve| curve.interpolant.extra().count())
    }

    /// What a step leaves.
    ///
    /// # Errors
    /// What the field said of a stage of the curve.
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

    /// A step's, of the shapes of `y`; its numbers mean nothing.
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

    /// The state of one step at the part `theta` of it, a number that is known.
    pub(super) fn at_part(&self, theta: f64, step: &Rows) -> Leaves {
        let mut all = vec![0.0; self.interpolant.num_stages()];
        self.interpolant.weights(theta, &mut all);
        let weights: Vec<f64> = self.used.iter().map(|&i| all[i]).collect();
        let y = start(step);
        let mut out = y.clone();
        out.lincomb(y, &(&step.t_next - &step.t), &weights, &step.stages);
        out
    }

    /// The states at `ts`, each time on the step of its own row. A step of length 0, that of a row which no step
    /// holds, gives its start.
    pub(super) fn eval(&self, ts: &Tensor, rows: &Rows) -> Leaves {
        let h = length(rows);
        let slope = sum(&self.weights(&((ts - &rows.t) / &h)), rows);
        let advanced = |(y, slope): (&Tensor, &Tensor)| y + along(&h, y) * slope;
        slope.with(start(rows).tensors().iter().zip(slope.tensors()).map(advanced).collect())
    }

    /// Their derivatives by t.
    pub(super) fn slope(&self, ts: &Tensor, rows: &Rows) -> Leaves {
        let theta = (ts - &rows.t) / length(rows);
        let rest = 1.0 - &theta;
        let (mut term, mut slope) = (Tensor::scalar(DType::F64, 1.0), Tensor::scalar(DType::F64, 0.0));
        let mut slopes = Vec::new();
        for j in 0..self.interpolant.degree() {
            let (factor, sign) = if j % 2 == 0 { (&theta, 1.0) } else { (&rest, -1.0) };
            slope = &slope * factor + &term * sign;
            term = &term * factor;
            slopes.push(slope.broadcast_to(theta.shape().clone()));
        }
        sum(&self.of_terms(&slopes), rows)
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

    /// Each used stage's sum of its coefficients times `terms`.
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

/// t_next - t, 1 where that is 0.
fn length(rows: &Rows) -> Tensor {
    let nowhere = rows.t.eq(&rows.t_next);
    nowhere.select(&Tensor::scalar(DType::F64, 1.0), &(&rows.t_next - &rows.t))
}

/// The stages' sum by weights, row by row.
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

/// Numbers of rows, or that of one step, in the dtype of `leaf` and with axes of length 1 for those that it has besides.
fn along(x: &Tensor, leaf: &Tensor) -> Tensor {
    flags_along(&x.cast(leaf.dtype()), leaf)
}

/// The same without a cast.
pub(super) fn flags_along(x: &Tensor, leaf: &Tensor) -> Tensor {
    x.reshape([&x.shape()[..], &vec![1; leaf.rank() - x.rank()]].concat())
}

/// The states where `m` holds, NaN elsewhere; `m` and the states have an axis of rows in front.
pub(super) fn or_nan(m: &Tensor, y: &Leaves) -> Leaves {
    y.map_leaves(|y| flags_along(m, y).select(y, &Tensor::scalar(y.dtype(), f64::NAN)))
}

/// `a` where `m` holds, else `b`: trees of one structure, `m` as many leading axes as either has more.
pub(super) fn choose<T: Tree>(m: &Tensor, a: &T, b: &T) -> T {
    let mut others = b.leaves().into_iter();
    a.map_leaves(|a| {
        let b = others.next().expect("invariant: trees of one structure");
        flags_along(m, if a.rank() < b.rank() { &b } else { a }).select(a, &b)
    })
}
