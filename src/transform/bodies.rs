//! Helpers for the functions inside a node, and for functions with changed inputs or outputs.

use crate::graph::{
    AttemptOutputs, Builder, Func, NodeId, NodeIds, Op, Replay, Solve, TripOutputs, Type, indices,
};

/// The same function with each node other than inputs through `push`, which receives the new operands and the type of
/// the node.
pub(super) fn rebuild(f: &Func, mut push: impl FnMut(&mut Builder, &Op, &[NodeId], &Type) -> NodeId) -> Func {
    let (mut b, ids) = Builder::with_inputs(&f.input_types());
    let mut map: Vec<NodeId> = Vec::with_capacity(f.nodes().len());
    for node in f.nodes() {
        let x: NodeIds = node.args.iter().map(|a| map[a.index()]).collect();
        map.push(if let Op::Input(k) = node.op { ids[k] } else { push(&mut b, &node.op, &x, &node.ty) });
    }
    let outputs: Vec<NodeId> = f.outputs().iter().map(|o| map[o.index()]).collect();
    b.finish(&outputs)
}

/// The replacement of an input of a function when its signature changes.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// The new input of this index.
    Input(usize),
    /// A constant.
    Splat(f64),
    /// The new input of this index, broadcast.
    Spread(usize, Vec<usize>),
}

/// `f` with inputs of the given types and only the outputs `outputs`. `sources` has the replacement of each
/// input of `f`.
pub(super) fn resign(f: &Func, types: &[Type], sources: &[Source], outputs: &[usize]) -> Func {
    let (mut b, ids) = Builder::with_inputs(types);
    let mut args = Vec::with_capacity(sources.len());
    for (k, source) in sources.iter().enumerate() {
        let ty = f.input_type(k);
        args.push(match source {
            Source::Input(j) => ids[*j],
            Source::Splat(x) => b.splat(ty.dtype(), ty.shape().clone(), *x),
            Source::Spread(j, dims) => b.broadcast(ids[*j], ty.shape(), dims.clone()),
        });
    }
    let all = b.inline(f, &args);
    let kept: Vec<NodeId> = outputs.iter().map(|&o| all[o]).collect();
    b.finish(&kept)
}

/// `f` with its inputs `kept`, in this order, then inputs of the types `further`, and only the outputs `outputs`.
/// `other` replaces each of the other inputs.
pub(super) fn with_inputs(
    f: &Func,
    kept: &[usize],
    further: &[Type],
    other: impl Fn(usize) -> Source,
    outputs: &[usize],
) -> Func {
    let types: Vec<Type> = kept.iter().map(|&k| f.input_type(k).clone()).chain(further.to_vec()).collect();
    let source = |k: usize| kept.iter().position(|&of| of == k).map_or_else(|| other(k), Source::Input);
    let sources: Vec<Source> = (0..f.num_inputs()).map(source).collect();
    resign(f, &types, &sources, outputs)
}

/// `f` with only the outputs `outputs`.
pub(super) fn with_outputs(f: &Func, outputs: &[usize]) -> Func {
    with_inputs(f, &indices(f.num_inputs()), &[], |_| unreachable!("invariant: all inputs stay"), outputs)
}

/// The search without residuals; its operands have no group `first`.
pub fn plain_search(s: &Solve) -> Solve {
    search_with_residuals(s, &[])
}

/// The search with only its residuals `kept`: those that the step itself computes, then those of the step before.
pub(super) fn search_with_residuals(s: &Solve, kept: &[usize]) -> Solve {
    let attempt = s.attempt_outputs(&indices(s.attempt.num_outputs()));
    let step = s.step_outputs(&indices(s.step.num_outputs()));
    let num_own = kept.iter().filter(|&&k| k < s.num_own).count();
    let all = [&attempt.own[..], &attempt.last].concat();
    let all: Vec<usize> = kept.iter().map(|&k| all[k]).collect();
    let (own, last) = all.split_at(num_own);
    let attempt = AttemptOutputs { own: own.to_vec(), last: last.to_vec(), ..attempt };
    let residuals = kept.iter().map(|&k| step.residuals[k]).collect();
    Solve {
        attempt: with_outputs(&s.attempt, &attempt.join()),
        step: with_outputs(&s.step, &TripOutputs { residuals, ..step }.join()),
        num_own,
        num_first: kept.len() - num_own,
        ..s.clone()
    }
}

/// The replay without residuals.
pub fn plain_replay(l: &Replay) -> Replay {
    replay_with_residuals(l, &[])
}

/// The replay with only its residuals `kept`.
pub(super) fn replay_with_residuals(l: &Replay, kept: &[usize]) -> Replay {
    let only = |f: &Func, of: TripOutputs<usize>| {
        let residuals = kept.iter().map(|&k| of.residuals[k]).collect();
        with_outputs(f, &TripOutputs { residuals, ..of }.join())
    };
    let step = |f: &Func| only(f, l.step_outputs(&indices(f.num_outputs())));
    Replay {
        body: only(&l.body, l.outputs(&indices(l.body.num_outputs()))),
        step: l.step.as_ref().map(step),
        num_residuals: kept.len(),
        ..l.clone()
    }
}

/// The values of `all` at which `kept` is set.
pub(super) fn only<T: Clone>(all: &[T], kept: &[bool]) -> Vec<T> {
    all.iter().zip(kept).filter(|(_, kept)| **kept).map(|(x, _)| x.clone()).collect()
}

/// Which nodes of a function depend on the inputs that `wanted` chooses.
pub(super) fn depending(f: &Func, wanted: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut found: Vec<bool> = Vec::with_capacity(f.nodes().len());
    for node in f.nodes() {
        found.push(match node.op {
            Op::Input(k) => wanted(k),
            _ => node.args.iter().any(|a| found[a.index()]),
        });
    }
    found
}

/// Which inputs of a function a node or an output reads.
pub fn used_inputs(f: &Func) -> Vec<bool> {
    let mut used = vec![false; f.nodes().len()];
    f.outputs().iter().chain(f.nodes().iter().flat_map(|n| &n.args)).for_each(|id| used[id.index()] = true);
    f.inputs().iter().map(|id| used[id.index()]).collect()
}
