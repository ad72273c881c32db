//! Derivatives of a `cond`: a `cond` of the derivatives of the branches.
//!
//! The branches of a derivative recompute the primal values that they need, as tiles do. The predicate is not a
//! float and has no derivative.

use super::jvp::{JvpRule, jvp_into, or_zero};
use super::vjp::{VjpRule, vjp_into};
use super::{Cotangents, Tangents, TransformError, marked, placed, present};
use crate::graph::{Builder, Cond, Func, NodeId, Op, Type};
use std::sync::Arc;

/// A builder with the inputs of a branch and `more` inputs, and the nodes of both.
fn with_more(branch: &Func, more: impl IntoIterator<Item = Type>) -> (Builder, Vec<NodeId>, Vec<NodeId>) {
    let mut types = branch.input_types();
    types.extend(more);
    let (b, mut ids) = Builder::with_inputs(&types);
    let more = ids.split_off(branch.num_inputs());
    (b, ids, more)
}

pub(super) fn jvp_cond(b: &mut Builder, c: &Cond, rule: &JvpRule) -> Tangents {
    let moving: Vec<usize> = (1..rule.x.len()).filter(|&k| rule.dx[k].is_some()).collect();
    let outs = marked(rule.active);
    let derive = |branch: &Func| {
        let (mut b, x, dx) = with_more(branch, moving.iter().map(|&k| branch.input_type(k - 1).clone()));
        let d = placed(1 + x.len(), &moving, dx).split_off(1);
        let (values, tangents) = jvp_into(&mut b, branch, &x, &d);
        let outputs: Vec<NodeId> = outs.iter().map(|&k| or_zero(&mut b, tangents[k], values[k])).collect();
        b.finish(&outputs)
    };
    let op = Cond { then: derive(&c.then), otherwise: derive(&c.otherwise) };
    let mut x = rule.x.to_vec();
    x.extend(moving.iter().filter_map(|&k| rule.dx[k]));
    let all = b.push(Op::Cond(Arc::new(op)), &x, None);
    placed(rule.active.len(), &outs, (0..).map(|i| b.proj(all, i)))
}

pub(super) fn vjp_cond(b: &mut Builder, c: &Cond, rule: &VjpRule) -> Result<Cotangents, TransformError> {
    let (wrt, outs) = (rule.wanted(), present(rule.g));
    let derive = |branch: &Func| {
        let (mut b, x, cts) = with_more(branch, outs.iter().map(|&o| branch.output_type(o).clone()));
        let g = placed(branch.num_outputs(), &outs, cts);
        let active: Vec<bool> = (0..x.len()).map(|k| wrt.contains(&(k + 1))).collect();
        let (_, found) = vjp_into(&mut b, branch, &x, &active, &g)?;
        let outputs: Vec<NodeId> = wrt.iter().map(|&k| or_zero(&mut b, found[k - 1], x[k - 1])).collect();
        Ok(b.finish(&outputs))
    };
    let op = Cond { then: derive(&c.then)?, otherwise: derive(&c.otherwise)? };
    let mut x = rule.x.to_vec();
    x.extend(outs.iter().filter_map(|&o| rule.g[o]));
    let all = b.push(Op::Cond(Arc::new(op)), &x, None);
    Ok(placed(rule.x.len(), &wrt, (0..).map(|i| b.proj(all, i))))
}
