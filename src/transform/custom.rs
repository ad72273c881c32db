//! Derivatives of functions with custom rules, and the pass that replaces these functions by their bodies.
//!
//! A rule is inserted as ordinary nodes, which read the function's operands and results. A derivative of a
//! derivative therefore differentiates the rule's nodes. Where the rule reads a result, the derivative
//! applies the function's rules again. Without a reverse rule, the reverse derivative is the transpose of the
//! forward rule, which is linear in its tangents. Without a forward rule, the forward derivative is that of
//! the body, because a reverse rule need not be linear (gradient clipping is not) and then has no transpose.

use super::TransformError;
use super::jvp::{JvpRule, jvp_into, or_zero};
use super::vjp::{VjpRule, vjp_into};
use super::{Cotangents, Tangents};
use crate::graph::{Builder, Custom, Func, NodeId, Op};

/// The operands and the results of the function: the first inputs of both rules.
fn primals(b: &mut Builder, c: &Custom, x: &[NodeId], y: NodeId) -> Vec<NodeId> {
    let mut args = x.to_vec();
    args.extend((0..c.num_outs).map(|k| b.proj(y, k)));
    args
}

pub(super) fn jvp_custom(b: &mut Builder, c: &Custom, rule: &JvpRule) -> Tangents {
    let Some(given) = &c.jvp else {
        let (_, mut d) = jvp_into(b, &c.body, rule.x, rule.dx);
        d.iter_mut().zip(rule.active).filter(|(_, on)| !**on).for_each(|(d, _)| *d = None);
        return d;
    };
    let mut args = primals(b, c, rule.x, rule.y);
    args.extend(c.float_inputs().into_iter().map(|k| or_zero(b, rule.dx[k], rule.x[k])));
    let tangents = b.inline(given, &args);
    let mut out = vec![None; rule.active.len()];
    for (k, d) in c.float_outs().into_iter().zip(tangents).filter(|(k, _)| rule.active[*k]) {
        out[k] = Some(d);
    }
    out
}

pub(super) fn vjp_custom(b: &mut Builder, c: &Custom, rule: &VjpRule) -> Result<Cotangents, TransformError> {
    if c.jvp.is_none() && c.vjp.is_none() {
        return Ok(vjp_into(b, &c.body, rule.x, rule.on, rule.g)?.1);
    }
    let args = primals(b, c, rule.x, rule.y);
    let cotangents = match (&c.vjp, &c.jvp) {
        (None, Some(forward)) => transpose(b, c, forward, &args, rule)?,
        (given, _) => {
            let given = given.as_ref().expect("invariant: there is a rule");
            let at = rule.x.len();
            let g = c.float_outs().into_iter().map(|k| or_zero(b, rule.g[k], args[at + k]));
            let g: Vec<NodeId> = g.collect();
            b.inline(given, &[args, g].concat()).into_iter().map(Some).collect()
        }
    };
    let mut out = vec![None; rule.x.len()];
    for (k, g) in c.float_inputs().into_iter().zip(cotangents).filter(|(k, _)| rule.on[*k]) {
        out[k] = g;
    }
    Ok(out)
}

/// The transpose of a forward rule: its reverse derivative with respect to the tangents. The rule is linear in
/// the tangents, so the derivative may be taken at 0.
fn transpose(
    b: &mut Builder,
    c: &Custom,
    forward: &Func,
    primals: &[NodeId],
    rule: &VjpRule,
) -> Result<Cotangents, TransformError> {
    let mut args = primals.to_vec();
    args.extend(c.float_inputs().into_iter().map(|k| b.splat_like(rule.x[k], 0.0)));
    let wrt: Vec<bool> = (0..args.len()).map(|k| k >= primals.len()).collect();
    let g: Cotangents = c.float_outs().into_iter().map(|k| rule.g[k]).collect();
    let (_, mut found) = vjp_into(b, forward, &args, &wrt, &g)?;
    Ok(found.split_off(primals.len()))
}

/// The same function with custom functions replaced by their bodies, also inside other bodies. To be called
/// after differentiation.
pub fn inline_custom(f: &Func) -> Func {
    let (mut b, ids) = Builder::with_inputs(&f.input_types());
    // Each node's replacement: itself, or the values of a custom function.
    let mut map: Vec<Vec<NodeId>> = Vec::with_capacity(f.nodes().len());
    let is_custom = |id: NodeId| matches!(f.node(id).op, Op::Custom(_));
    for node in f.nodes() {
        if let Op::Proj(k) = node.op
            && is_custom(node.args[0])
        {
            map.push(vec![map[node.args[0].index()][k]]);
            continue;
        }
        let x: Vec<NodeId> = node.args.iter().map(|a| map[a.index()][0]).collect();
        map.push(match &node.op {
            Op::Input(k) => vec![ids[*k]],
            Op::Custom(c) => b.inline(&inline_custom(&c.body), &x),
            op => vec![b.push(op.map_bodies(inline_custom), &x, Some(&node.ty))],
        });
    }
    let outputs: Vec<NodeId> = f.outputs().iter().map(|o| map[o.index()][0]).collect();
    b.finish(&outputs)
}
