//! Debugging: finds the operation that first made a loss or its gradient non-finite.
//!
//! The reference interpreter evaluates the program of the gradient, and `graph::locate` walks backward from a
//! non-finite value to its origin. This is slow and stores every value: use it for one call after a failure,
//! not for every update.

use super::grad::{opened, types};
use super::output::{Loss, Output};
use super::trace::trace_tree;
use super::tree::Tree;
use super::{Check, Tensor, Traced};
use crate::array::{Array, Shape};
use crate::error::{Error, Result};
use crate::graph::{self, Builder, Func, NodeId, Op, Source, Trip, Value};
use crate::ode::{Outcome, SolveError};
use crate::transform;
use std::fmt;

/// A pass of differentiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffPass {
    /// From the arguments to the loss.
    Forward,
    /// From the loss to the gradient.
    Backward,
}

/// An operand or the result of the reported operation.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueSummary {
    /// The type, such as `f64[3]`.
    pub ty: String,
    /// The element at the reported index, or the only element. `None` if the value has another shape than the
    /// result.
    pub number: Option<f64>,
    /// The smallest and the largest element of the value.
    pub range: (f64, f64),
}

/// The first operation with finite operands and a non-finite result on the path to a loss or its gradient.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NanReport {
    /// The value that became non-finite: `the loss`, `the gradient with respect to layers.0.weight`, or `the
    /// last step of a solve` if a solve ended early.
    pub reaches: String,
    /// The operation; `argument` if an argument is not finite itself; `solve` for a solve in lockstep.
    pub op: String,
    /// If `op` is `argument`: the path of its leaf, `the argument` if it is a single tensor, or `a capture of
    /// the loss`; else `None`.
    pub leaf: Option<String>,
    /// The operands of the operation.
    pub operands: Vec<ValueSummary>,
    /// The result of the operation, at the first element that is not finite.
    pub result: ValueSummary,
    /// The index of this element.
    pub index: Vec<usize>,
    /// Whether the operation belongs to the loss or to its derivative.
    pub pass: DiffPass,
    /// The step of the innermost solve around the operation: the number of accepted steps before it, and the
    /// time at which it starts.
    pub step: Option<(usize, f64)>,
    /// The index of the first row of the outermost tile around the operation.
    pub row: Option<usize>,
}

/// Finds the first operation because of which a loss, or its gradient with respect to a float leaf of `at`, is
/// NaN or infinite, or because of which a solve in the loss ended early. Returns `None` if loss and gradient
/// are finite and no solve ended early.
///
/// A solve that ends early returns its last finite state, so the loss may be finite although `value_and_grad`
/// returns an error. The report then names the operation that failed in the last attempt of the solve. If rows
/// run in lockstep ([`Batching::PerRow`](crate::adjoint::Batching)), the report names the solve, with the row
/// and the time.
///
/// Values that do not reach the loss or the gradient are ignored, such as the unselected side of a `select`
/// and rejected steps. The reference interpreter runs the program, so this function is slow, and sums may
/// differ from those of a compiled program in the last digits.
///
/// # Errors
/// The error of the loss, or a missing reverse derivative.
///
/// # Panics
/// If a leaf of `at` or a capture of `f` is traced: call `debug_nans` outside `jit`.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::debug_nans;
/// let norm = |x: &Tensor| x.square().sum().sqrt();
/// let found = debug_nans(norm, &Tensor::from([0.0, 0.0]))?.expect("the derivative of sqrt at 0");
/// assert_eq!(
///     found.to_string(),
///     "the gradient with respect to the argument is not finite: `div` in the backward pass gives inf from 1 \
///      (f64[]) and 0 (f64[]): a divisor of 0, or the derivative of sqrt, ln or a power at 0: bound the argument \
///      away from 0 before the operation"
/// );
/// assert_eq!(debug_nans(norm, &Tensor::from([3.0, 4.0]))?, None);
/// # Ok::<(), flowline::Error>(())
/// ```
pub fn debug_nans<M: Tree, L: Output<Tree: Loss>>(
    f: impl FnOnce(&M) -> L,
    at: &M,
) -> Result<Option<NanReport>> {
    let leaves = at.leaves();
    let (traced, ()) = trace_tree(&types(&leaves), at, |x| {
        let (mut out, _) = opened(f(&x))?;
        out.truncate(1);
        Ok::<_, Error>((out, ()))
    })?;
    let names: Vec<String> = at.named_leaves().into_iter().map(|(path, _)| path).collect();
    located(&traced, &leaves, &names)
}

fn values<'a>(x: impl Iterator<Item = &'a Tensor>) -> Vec<Value> {
    x.map(|x| Value::from(x.array().clone())).collect()
}

/// The non-finite number that ended a solve of the loss early, if there is one.
fn ended(traced: &Traced, leaves: &[Tensor], by: &dyn Fn(usize) -> String) -> Result<Option<NanReport>> {
    let inputs = values(leaves.iter().chain(&traced.captures));
    let outputs = graph::interpret_values(&traced.func, &inputs)?;
    let failed = outputs[traced.num_outputs..].iter().find_map(|check| Check::failure(check.array()));
    let (row, (step, t)) = match failed {
        Some(Error::Solve(SolveError::Incomplete {
            row,
            outcome: Outcome::NonFinite { t, step, .. },
            ..
        })) => (row, (step, t)),
        _ => return Ok(None),
    };
    let reaches = "the last step of a solve".to_owned();
    Ok(Some(match graph::locate_ended(&traced.func, &inputs)? {
        Some(Source::Input(i)) => NanReport::argument(reaches, by(i), inputs[i].array()),
        Some(Source::Origin(origin)) => NanReport::of(reaches, &origin, true),
        None => NanReport::solve(reaches, row, (step as usize, t)),
    }))
}

/// [`debug_nans`] for a traced loss, at leaves with these names.
fn located(traced: &Traced, leaves: &[Tensor], names: &[String]) -> Result<Option<NanReport>> {
    let by = |i: usize| match names.get(i).map(String::as_str) {
        None => "a capture of the loss".to_owned(),
        Some("") => "the argument".to_owned(),
        Some(path) => path.to_owned(),
    };
    if let Some(found) = ended(traced, leaves, &by)? {
        return Ok(Some(found));
    }
    let wrt: Vec<usize> = (0..leaves.len()).filter(|&i| leaves[i].dtype().is_float()).collect();
    let func = transform::vjp(&traced.func, &[0], &wrt)?;
    let one = Tensor::scalar(traced.func.output_type(0).dtype(), 1.0);
    let inputs = values(leaves.iter().chain(&traced.captures).chain([&one]));
    let first = traced.func.num_outputs();
    let outputs: Vec<usize> = std::iter::once(0).chain(first..first + wrt.len()).collect();
    let found = graph::locate(&func, &inputs, &outputs)?;
    Ok(found.map(|(k, source)| {
        let reaches = match k.checked_sub(first) {
            None => "the loss".to_owned(),
            Some(i) => format!("the gradient with respect to {}", by(wrt[i])),
        };
        match source {
            Source::Input(i) => NanReport::argument(reaches, by(i), inputs[i].array()),
            Source::Origin(origin) => {
                NanReport::of(reaches, &origin, is_forward(&traced.func, &func, origin.node))
            }
        }
    }))
}

/// Whether a node of the derivative belongs to the function itself.
fn is_forward(f: &Func, derivative: &Func, at: NodeId) -> bool {
    let (mut b, ids) = Builder::with_inputs(&derivative.input_types());
    b.inline(f, &ids[..f.num_inputs()]);
    let own = b.nodes().len();
    let mut map: Vec<NodeId> = vec![];
    for node in &derivative.nodes()[..=at.index()] {
        let x: Vec<NodeId> = node.args.iter().map(|a| map[a.index()]).collect();
        map.push(match node.op {
            Op::Input(k) => ids[k],
            _ => b.push(node.op.clone(), &x, Some(&node.ty)),
        });
    }
    map[at.index()].index() < own
}

impl ValueSummary {
    fn of(x: &Array, shape: &Shape, at: usize) -> ValueSummary {
        let all = x.to_f64();
        let number = match (all.len() == 1, x.shape() == shape) {
            (true, _) => all.first(),
            (false, true) => all.get(at),
            (false, false) => None,
        };
        let range = all.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(*x), h.max(*x)));
        ValueSummary { ty: format!("{}{}", x.dtype(), x.shape()), number: number.copied(), range }
    }
}

fn first_bad(x: &Array) -> usize {
    x.to_f64().iter().position(|x| !x.is_finite()).unwrap_or_default()
}

impl NanReport {
    fn argument(reaches: String, leaf: String, x: &Array) -> NanReport {
        let at = first_bad(x);
        NanReport {
            reaches,
            op: "argument".to_owned(),
            leaf: Some(leaf),
            operands: vec![],
            result: ValueSummary::of(x, x.shape(), at),
            index: x.shape().unravel(at),
            pass: DiffPass::Forward,
            step: None,
            row: None,
        }
    }

    fn of(reaches: String, origin: &graph::Origin, is_forward: bool) -> NanReport {
        let (shape, at) = (origin.result.shape(), first_bad(&origin.result));
        let steps = origin.places.iter().rev().find_map(|place| match place {
            Trip::Step { step, t, is_backward } => Some((*step, *t, *is_backward)),
            Trip::Tile { .. } => None,
        });
        let row = origin.places.iter().find_map(|place| match place {
            Trip::Tile { row } => Some(*row),
            Trip::Step { .. } => None,
        });
        let backward = steps.map_or(!is_forward, |(_, _, is_backward)| is_backward);
        NanReport {
            reaches,
            op: origin.op.clone(),
            leaf: None,
            operands: origin.operands.iter().map(|x| ValueSummary::of(x, shape, at)).collect(),
            result: ValueSummary::of(&origin.result, shape, at),
            index: shape.unravel(at),
            pass: if backward { DiffPass::Backward } else { DiffPass::Forward },
            step: steps.map(|(step, t, _)| (step, t)),
            row,
        }
    }

    /// The report of a solve in lockstep. Its attempts are not examined; the step is that of its outcome.
    fn solve(reaches: String, row: Option<usize>, step: (usize, f64)) -> NanReport {
        NanReport {
            reaches,
            op: "solve".to_owned(),
            leaf: None,
            operands: vec![],
            result: ValueSummary { ty: "f64[]".to_owned(), number: None, range: (f64::NAN, f64::NAN) },
            index: vec![],
            pass: DiffPass::Forward,
            step: Some(step),
            row,
        }
    }

    /// The suggested remedy.
    fn remedy(&self) -> &'static str {
        match self.op.as_str() {
            "argument" => "check how it was computed",
            "solve" => "its rows run in lockstep: solve that row alone to find the operation",
            "div" => {
                "a divisor of 0, or the derivative of sqrt, ln or a power at 0: bound the argument away from 0 before the \
                 operation"
            }
            "sqrt" | "ln" | "log1p" | "powf" => {
                "its argument is outside its domain: clamp the argument before the operation, not the result after it"
            }
            "select" => {
                "it selected a constant of the program, or the NaN that a backward solve returns on failure; for the \
                 NaN, use an adjoint that stores states"
            }
            "exp" | "expm1" => "it overflows: subtract the largest argument first, or bound the argument",
            _ => "it overflows or combines infinities: scale its operands down, or compute in f64",
        }
    }
}

impl fmt::Display for ValueSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(x) => write!(f, "{x} ({})", self.ty),
            None => write!(f, "{} from {} to {}", self.ty, self.range.0, self.range.1),
        }
    }
}

impl fmt::Display for NanReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not finite: ", self.reaches)?;
        let value = self.result.number.unwrap_or(f64::NAN);
        if let Some(leaf) = &self.leaf {
            return write!(f, "{leaf} is {value} at {:?}: {}", self.index, self.remedy());
        }
        let pass = if self.pass == DiffPass::Forward { "forward" } else { "backward" };
        write!(f, "`{}` in the {pass} pass", self.op)?;
        if let Some((step, t)) = self.step {
            // The step times of a loop are the numbers of its trips.
            let trip =
                if t == step as f64 { format!(" or in trip {step} of a loop,") } else { String::new() };
            write!(f, ", in step {step} of a solve, which starts at t={},{trip}", crate::ode::shown(t))?;
        }
        if let Some(row) = self.row {
            write!(f, " in the tile that starts at row {row}")?;
        }
        write!(f, " gives {value}")?;
        if !self.index.is_empty() {
            write!(f, " at {:?}", self.index)?;
        }
        for (i, operand) in self.operands.iter().enumerate() {
            write!(f, "{}{operand}", if i == 0 { " from " } else { " and " })?;
        }
        write!(f, ": {}", self.remedy())
    }
}

#[cfg(test)]
mod tests;
