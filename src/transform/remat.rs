//! Rematerialization: decides which residuals a backward pass reads from the tape, and which it computes again.
//!
//! The body of a backward pass starts by repeating the step. Its residuals are values that the forward trip has
//! computed, too, bit for bit ([`crate::graph::Replay`]). [`residuals`] chooses those that are worth their memory
//! traffic and makes them inputs of the backward body. The executor decides for each trip whether to store them or to
//! recompute them, so no result depends on the choice.
//!
//! This is the last pass: the bodies have been simplified, so the cost of each value is known. Until then residuals are
//! outputs of the bodies, which every transform keeps. Alternative considered: inputs of the backward body from the
//! start. Passes could then not simplify a product of the step together with its cotangent, and removing a residual
//! would change two loops at once.

use super::bodies::{depending, replay_with_residuals, search_with_residuals, with_outputs};
use crate::graph::{
    Builder, Func, NodeId, NodeIds, Op, Replay, SearchOperands, States, TripInputs, TripOutputs, Type,
    indices,
};

/// The bodies of a loop and of its backward pass, and the residuals between them.
#[derive(Clone, Debug)]
pub struct Residuals {
    /// The attempt or the trip of the loop. After its outputs: the residuals of its step, then those of the next step.
    pub forward: Func,
    /// Computes the residuals of a step from its inputs.
    pub recompute: Func,
    /// The body of the backward pass, with the residuals after its inputs.
    pub backward: Func,
    /// The number of residuals that the step itself computes. The step before it computes the others.
    pub num_own: usize,
}

/// `f` with only those residuals that are worth their memory traffic. A search is given no others of its first trip.
pub fn with_worthy_residuals(f: &Func) -> Func {
    let kept = worthy(f);
    if kept.iter().all(Option::is_none) {
        return f.clone();
    }
    let (mut b, ids) = Builder::with_inputs(&f.input_types());
    let mut map: Vec<NodeId> = Vec::with_capacity(f.nodes().len());
    for (node, kept) in f.nodes().iter().zip(&kept) {
        let args: NodeIds = node.args.iter().map(|a| map[a.index()]).collect();
        map.push(match (&node.op, kept) {
            (Op::Input(k), _) => ids[*k],
            (Op::Solve(s), Some(kept)) => {
                let of = s.operands(&args);
                let first =
                    kept.iter().filter_map(|k| k.checked_sub(s.num_own)).map(|k| of.first[k]).collect();
                b.search(search_with_residuals(s, kept), SearchOperands { first, ..of })
            }
            (Op::Replay(l), Some(kept)) => b.replay(replay_with_residuals(l, kept), l.operands(&args)),
            (op, _) => b.push(op.clone(), &args, Some(&node.ty)),
        });
    }
    let outputs: Vec<NodeId> = f.outputs().iter().map(|o| map[o.index()]).collect();
    b.finish(&outputs)
}

/// For each loop with residuals, the indices of those that are worth storing; for other nodes `None`. None is worth
/// storing if not exactly one backward pass reads the tape, since each pass would need different residuals.
fn worthy(f: &Func) -> Vec<Option<Vec<usize>>> {
    let mut kept = vec![None; f.nodes().len()];
    for (i, node) in f.nodes().iter().enumerate() {
        let (tape, num_own) = match &node.op {
            Op::Solve(s) if s.num_residuals() > 0 => (s.places().tape, s.num_own),
            Op::Replay(l) if l.num_residuals > 0 && !l.reads_states() => (l.places().tape, l.num_residuals),
            _ => continue,
        };
        let readers = readers(f, i, &tape);
        let mut of_tape = match (&readers[..], readers.first().map(|r| &f.nodes()[*r].op)) {
            ([_], Some(Op::Replay(l))) => stored(l),
            _ => vec![],
        };
        of_tape.sort_by_key(|&k| k >= num_own);
        readers.iter().chain([&i]).for_each(|&r| kept[r] = Some(of_tape.clone()));
    }
    kept
}

/// The nodes that read the values `places` of node `of`.
fn readers(f: &Func, of: usize, places: &[usize]) -> Vec<usize> {
    let is_read = |a: &NodeId| {
        let proj = f.node(*a);
        matches!(proj.op, Op::Proj(k) if places.contains(&k)) && proj.args[0].index() == of
    };
    (0..f.nodes().len()).filter(|&r| f.nodes()[r].args.iter().any(is_read)).collect()
}

/// The residuals that the backward pass `back` reads; `None` if there are none.
pub fn residuals(f: &Func, back: NodeId) -> Option<Residuals> {
    let Op::Replay(l) = &f.node(back).op else { return None };
    let tape = *l.operands(&f.node(back).args).tape.first()?;
    let maker = *f.node(tape).args.first()?;
    let States { body, residuals, num_own, .. } = f.node(maker).op.states()?;
    if residuals.is_empty() {
        return None;
    }
    let others = (0..body.num_outputs()).filter(|k| !residuals.contains(k));
    let step = l.step.as_ref()?;
    Some(Residuals {
        forward: with_outputs(body, &others.chain(residuals.clone()).collect::<Vec<_>>()),
        recompute: with_outputs(step, &l.step_outputs(&indices(step.num_outputs())).residuals),
        backward: taking(l, &l.outputs(l.body.outputs()).residuals),
        num_own,
    })
}

/// The body of `l` without residuals, with the values of `given` as additional inputs.
fn taking(l: &Replay, given: &[NodeId]) -> Func {
    let f = &l.body;
    let own = f.input_types();
    let types: Vec<Type> = given.iter().map(|&id| f.node(id).ty.clone()).collect();
    let (mut b, ids) = Builder::with_inputs(&[&own[..], &types].concat());
    let mut map: Vec<NodeId> = Vec::with_capacity(f.nodes().len());
    for (i, node) in f.nodes().iter().enumerate() {
        let args: NodeIds = node.args.iter().map(|a| map[a.index()]).collect();
        let given = given.iter().position(|id| id.index() == i);
        map.push(match (given, &node.op) {
            (Some(k), _) => ids[own.len() + k],
            // The observer was called in the forward trip.
            (None, Op::Observe(_)) => args[0],
            (None, Op::Input(k)) => ids[*k],
            (None, op) => b.push(op.clone(), &args, Some(&node.ty)),
        });
    }
    let outputs = TripOutputs { residuals: vec![], ..l.outputs(f.outputs()) };
    let outputs: Vec<NodeId> = outputs.join().iter().map(|o| map[o.index()]).collect();
    b.finish(&outputs)
}

/// Which nodes of the body depend on what a derivative receives, and not only on the step.
fn cotangents(l: &Replay) -> Vec<bool> {
    let of = l.inputs(&indices(l.body.num_inputs()));
    let received = TripInputs { trip: vec![], live: vec![], states: vec![], captures: vec![], ..of }.join();
    depending(&l.body, |k| received.contains(&k))
}

/// The residuals that are worth storing, by their index among those of `l`, in the order of their nodes.
///
/// Walks from the operands of cotangent nodes towards the inputs. A residual that costs a matrix product or more is
/// stored, since the forward body writes it to memory in any case. Cheaper values are computed from stored values.
fn stored(l: &Replay) -> Vec<usize> {
    let of = l.outputs(l.body.outputs());
    let (marks, outputs) = (of.residuals.clone(), TripOutputs { residuals: vec![], ..of }.join());
    let (nodes, is_cotangent) = (l.body.nodes(), cotangents(l));
    let mark = |i: usize| marks.iter().position(|id| id.index() == i);
    let mut is_hard = vec![false; nodes.len()];
    for (i, node) in nodes.iter().enumerate() {
        is_hard[i] = is_hard_op(&node.op) || node.args.iter().any(|a| is_hard[a.index()]);
    }
    let (mut wanted, mut found) = (vec![false; nodes.len()], vec![false; nodes.len()]);
    outputs.iter().for_each(|id| wanted[id.index()] = true);
    for (i, node) in nodes.iter().enumerate().rev() {
        found[i] = !is_cotangent[i] && wanted[i] && is_hard[i] && mark(i).is_some();
        if is_cotangent[i] || wanted[i] && !found[i] {
            // A solution is computed from the factors alone; the matrix is there for derivatives.
            let is_read = |k: usize| !(matches!(node.op, Op::LuSolve { .. }) && k == 1);
            node.args
                .iter()
                .enumerate()
                .filter(|(k, _)| is_read(*k))
                .for_each(|(_, a)| wanted[a.index()] = true);
        }
    }
    // A value that is cheap to compute from stored values is not stored.
    let mut easy = found.clone();
    for (i, node) in nodes.iter().enumerate() {
        let is_made = !is_cotangent[i] && !is_hard_op(&node.op) && node.args.iter().all(|a| easy[a.index()]);
        found[i] &= !is_made;
        easy[i] |= is_made;
    }
    (0..nodes.len()).filter(|&i| found[i]).filter_map(mark).collect()
}

/// The values inside a function that a derivative with respect to its first `num` inputs may read: all that depend on
/// these inputs, or none if every operation is cheap.
pub fn candidates(f: &Func, num: usize) -> Vec<NodeId> {
    let moves = depending(f, |k| k < num);
    let is_inside = |i: usize| {
        let node = &f.nodes()[i];
        moves[i] && matches!(node.ty, Type::Array { .. }) && !matches!(node.op, Op::Input(_))
    };
    let is_hard = f.nodes().iter().any(|node| is_hard_op(&node.op));
    (0..f.nodes().len()).filter(|&i| is_hard && is_inside(i)).map(|i| NodeId(i as u32)).collect()
}

/// Whether an operation costs so much more than the memory traffic of its result that the result should be stored.
fn is_hard_op(op: &Op) -> bool {
    matches!(
        op,
        Op::Dot { .. }
            | Op::Conv { .. }
            | Op::ConvKernel { .. }
            | Op::Lines(_)
            | Op::Factor(_)
            | Op::LuSolve { .. }
            | Op::TriangularSolve(_)
            | Op::RandomBits { .. }
            | Op::Scatter(_)
    ) || !op.bodies().is_empty()
}
