//! Traces: running a closure on tracers records a function.
//!
//! The call of [`trace`] that made a trace owns it. A *tracer* is a traced tensor; it has a weak reference to
//! its trace. An operation with operands of several traces belongs to the innermost trace (the youngest,
//! because an inner trace always begins later), and operands of the other traces become its captures. A value
//! computed only from outer tracers is recorded in the outer trace, so computations that do not depend on a
//! loop's state are hoisted automatically.

use super::exec;
use super::handle::{Repr, Tensor};
use super::tree::Tree;
use crate::array::Array;
use crate::error::Error;
use crate::graph::{Builder, Func, GraphError, Literal, NodeId, Op, Type};
use crate::ode::{Outcome, SolveError, status};
use crate::transform::{candidates, depends_on};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Orders traces by age; its values do not affect results.
static SERIAL: AtomicU64 = AtomicU64::new(1);

/// A program under construction.
pub(super) struct Trace {
    serial: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    builder: Builder,
    /// Values of enclosing traces, in the order of their inputs.
    captures: Vec<Tensor>,
    /// Maps (serial of an outer trace, node in that trace) to the node in this trace with the same value. The
    /// map is only looked up, never iterated.
    captured: HashMap<(u64, NodeId), NodeId>,
    /// Values to check after a run; see [`Check`].
    checks: Vec<Check>,
}

/// The number of columns of a [`Check`] that describe how a solve ended.
pub(super) const VERDICT: usize = 6;

/// Values `[rows, 6]` (f64) that show whether a solve failed: status, t, dt, step, component, dt_min. An
/// optional seventh column identifies the solve by the first row of its group. The values are outputs of the
/// program, which its caller checks.
#[derive(Clone)]
pub(crate) struct Check {
    pub values: Tensor,
}

impl Check {
    /// A check that passes.
    pub fn passed() -> Check {
        let row = [status::COMPLETED, 0.0, 0.0, 0.0, -1.0, 0.0];
        Check { values: Tensor::from(&row[..]).reshape([1, VERDICT]) }
    }

    /// The error that these values describe, if any.
    pub fn failure(values: &Array) -> Option<Error> {
        let width = values.shape()[1];
        (0..values.shape()[0]).find_map(|row| {
            let at = |k: usize| values.data().get_f64(row * width + k);
            let outcome = Outcome::decode(at(0), at(1), at(2), at(3), at(4), at(5));
            let row = (width > VERDICT).then(|| at(VERDICT) as usize);
            let early = outcome.filter(|o| !o.reached_t1());
            early.map(|outcome| Error::Solve(SolveError::in_program(outcome, row)))
        })
    }

    /// Whether the check passes, as a bool tensor of rank 0, for use in programs.
    pub fn is_passed(&self) -> Tensor {
        let worst = self.values.column(0).max();
        worst.le(status::COMPLETED)
    }

    /// Checks concrete values now; traced values are checked after the program has run.
    pub fn settle(self) -> Result<(), Error> {
        if self.values.is_traced() {
            register_check(self);
            return Ok(());
        }
        Self::failure(self.values.array()).map_or(Ok(()), Err)
    }
}

impl Trace {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while the lock is held (an operand of an ended trace, shapes that do not fit) leaves at most
        // unused nodes, so a caller that catches the panic can continue.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tensor(self: &Arc<Self>, state: &State, id: NodeId) -> Tensor {
        Tensor(Repr::Traced { trace: Arc::downgrade(self), id, ty: Arc::new(state.builder.ty(id).clone()) })
    }

    /// If the node is a broadcast, its operand and its operation.
    fn repeated(self: &Arc<Self>, id: NodeId) -> Option<(Tensor, Op)> {
        let state = self.lock();
        let node = state.builder.node(id);
        matches!(node.op, Op::Broadcast { .. }).then(|| (self.tensor(&state, node.args[0]), node.op.clone()))
    }

    /// The node of `x` in this trace.
    ///
    /// If `x` is a broadcast in an outer trace, only its operand is captured, and the broadcast is repeated
    /// in this trace. A row of biases, and its cotangent, therefore remains a row for the kernels that add
    /// it.
    fn lift(&self, state: &mut State, x: &Tensor) -> NodeId {
        match &x.0 {
            // Uniform arrays such as zeros become splat constants, because equal splats are merged and equal
            // arrays are not.
            Repr::Concrete(a) => {
                let array = || Literal::Array(a.clone());
                let literal = a.uniform().map_or_else(array, |number| Literal::splat(a.dtype(), number));
                state.builder.push(Op::Const(literal), &[], Some(&x.ty()))
            }
            Repr::Traced { trace, id, ty } => {
                let owner = upgrade(trace, ty);
                if owner.serial == self.serial {
                    return *id;
                }
                assert!(
                    owner.serial < self.serial,
                    "a traced tensor ({ty}) left the function that traced it: return it from that function instead"
                );
                let key = (owner.serial, *id);
                if let Some(&input) = state.captured.get(&key) {
                    return input;
                }
                let node = if let Some((source, op)) = owner.repeated(*id) {
                    let source = self.lift(state, &source);
                    state.builder.push(op, &[source], Some(ty))
                } else {
                    state.captures.push(x.clone());
                    state.builder.input(ty.as_ref().clone())
                };
                state.captured.insert(key, node);
                node
            }
        }
    }
}

fn upgrade(trace: &Weak<Trace>, ty: &Type) -> Arc<Trace> {
    trace.upgrade().unwrap_or_else(|| {
        panic!(
            "a traced tensor ({ty}) was used after its trace had ended: return it from the traced function"
        )
    })
}

/// The innermost trace among the operands, if any is traced.
fn innermost<'a>(args: impl IntoIterator<Item = &'a Tensor>) -> Option<Arc<Trace>> {
    let traces = args.into_iter().filter_map(|x| match &x.0 {
        Repr::Traced { trace, ty, .. } => Some(upgrade(trace, ty)),
        Repr::Concrete(_) => None,
    });
    traces.max_by_key(|t| t.serial)
}

/// Applies an operation: runs it on concrete tensors, else adds a node to the innermost trace.
pub(super) fn record(op: Op, args: &[&Tensor], hint: Option<&Type>) -> Result<Tensor, GraphError> {
    let Some(trace) = innermost(args.iter().copied()) else {
        return exec::eager(op, args, hint);
    };
    let mut state = trace.lock();
    let ids: Vec<NodeId> = args.iter().map(|x| trace.lift(&mut state, x)).collect();
    let id = state.builder.try_push(op, &ids, hint)?;
    Ok(trace.tensor(&state, id))
}

/// A closure recorded as a function.
pub(crate) struct Traced {
    /// Inputs: the arguments, then the captures. Outputs: those of the closure, then one output per check.
    pub func: Func,
    /// Values of enclosing traces, for the inputs after the arguments.
    pub captures: Vec<Tensor>,
    /// The number of the closure's own outputs.
    pub num_outputs: usize,
}

/// Runs `f` once on tracers of the given types and returns the recorded function.
///
/// `f` is called through a pointer, because it runs only once, and generic code would be compiled for every
/// closure.
pub(crate) fn trace(types: &[Type], f: &mut dyn FnMut(&[Tensor]) -> Vec<Tensor>) -> Traced {
    let trace = Arc::new(Trace { serial: SERIAL.fetch_add(1, Relaxed), state: Mutex::default() });
    let inputs: Vec<Tensor> = {
        let mut state = trace.lock();
        let ids: Vec<NodeId> = types.iter().map(|t| state.builder.input(t.clone())).collect();
        ids.into_iter().map(|id| trace.tensor(&state, id)).collect()
    };
    let outputs = f(&inputs);
    let mut state = trace.lock();
    let num_outputs = outputs.len();
    let checks: Vec<Tensor> = state.checks.iter().map(|c| c.values.clone()).collect();
    let ids: Vec<NodeId> = outputs.iter().chain(&checks).map(|x| trace.lift(&mut state, x)).collect();
    let State { builder, captures, .. } = std::mem::take(&mut *state);
    Traced { func: builder.finish(&ids), captures, num_outputs }
}

/// [`trace`] for an `f` that may fail.
pub(crate) fn try_trace<E>(
    types: &[Type],
    f: &mut dyn FnMut(&[Tensor]) -> Result<Vec<Tensor>, E>,
) -> Result<Traced, E> {
    let mut failure = None;
    let traced = trace(types, &mut |x| match f(x) {
        Ok(outputs) => outputs,
        Err(e) => {
            failure = Some(e);
            vec![]
        }
    });
    failure.map_or(Ok(traced), Err)
}

/// [`try_trace`] for a function of a tree like `at`, whose leaves have the given types. The function returns
/// tensors, which become the outputs of the trace, and another value, which is passed through.
pub(super) fn trace_tree<A: Tree, R, E>(
    types: &[Type],
    at: &A,
    f: impl FnOnce(A) -> Result<(Vec<Tensor>, R), E>,
) -> Result<(Traced, R), E> {
    let (mut f, mut beside) = (Some(f), None);
    let traced = try_trace(types, &mut |x| {
        let f = f.take().expect("invariant: a function is traced once");
        let (outputs, more) = f(at.with_leaves(x.to_vec()))?;
        beside = Some(more);
        Ok(outputs)
    })?;
    Ok((traced, beside.expect("invariant: a function that did not fail has returned")))
}

/// Applies a function: runs it on concrete tensors, else copies its nodes into the innermost trace.
pub(crate) fn apply(func: &Func, args: &[Tensor]) -> Vec<Tensor> {
    let Some(trace) = innermost(args) else {
        return exec::run_once(func, args);
    };
    let mut state = trace.lock();
    let ids: Vec<NodeId> = args.iter().map(|x| trace.lift(&mut state, x)).collect();
    let outputs = state.builder.inline(func, &ids);
    outputs.into_iter().map(|id| trace.tensor(&state, id)).collect()
}

/// Adds `check` to its trace, so that it is checked after a run. Does nothing if the values are concrete.
pub(crate) fn register_check(check: Check) {
    if let Some(trace) = innermost([&check.values]) {
        trace.lock().checks.push(check);
    }
}

impl Traced {
    /// The function without the outputs that are checks.
    pub(crate) fn without_checks(&self) -> Func {
        let (mut b, ids) = Builder::with_inputs(&self.func.input_types());
        let outputs = b.inline(&self.func, &ids);
        b.finish(&outputs[..self.num_outputs])
    }

    /// The function with further outputs, without checks: the values inside that a derivative with respect to its
    /// arguments may read.
    pub(crate) fn with_residuals(&self) -> Func {
        let f = &self.func;
        let inside = candidates(f, f.num_inputs() - self.captures.len());
        let outputs = [&f.outputs()[..self.num_outputs], &inside].concat();
        Func::new(f.nodes().to_vec(), f.inputs().to_vec(), outputs)
    }

    /// Whether a result has a derivative with respect to input k.
    pub(crate) fn depends_on(&self, k: usize) -> bool {
        depends_on(&self.func, k)
    }

    /// The same function with its constant arrays as captures.
    fn with_captured_arrays(&self) -> Traced {
        let (func, arrays) = self.func.with_arrays_as_inputs();
        let arrays = arrays.into_iter().map(|a| Tensor(Repr::Concrete(a)));
        let captures = self.captures.iter().cloned().chain(arrays).collect();
        Traced { func, captures, num_outputs: self.num_outputs }
    }
}

/// Rewrites bodies so that they have a common list of captures: each body takes its own arguments, then the
/// captures of all bodies. Outputs that are checks are removed.
///
/// Constant arrays of the bodies become captures, so no body contains data. The arrays thus become constants of
/// the enclosing function, in the end of the outermost one. Outside `jit` they are inputs there, so calls with
/// other arrays run the same plan. A loop also packs a captured matrix once, but not a constant of its body.
pub(crate) fn align(bodies: &[&Traced]) -> (Vec<Func>, Vec<Tensor>) {
    let bodies: Vec<Traced> = bodies.iter().map(|body| body.with_captured_arrays()).collect();
    let mut captures: Vec<Tensor> = Vec::new();
    for x in bodies.iter().flat_map(|b| &b.captures) {
        if !captures.iter().any(|c| c.is(x)) {
            captures.push(x.clone());
        }
    }
    let funcs = bodies.iter().map(|body| {
        let num_args = body.func.num_inputs() - body.captures.len();
        let mut types = body.func.input_types();
        types.truncate(num_args);
        types.extend(captures.iter().map(Tensor::ty));
        let (mut b, ids) = Builder::with_inputs(&types);
        let place =
            |x: &Tensor| captures.iter().position(|c| c.is(x)).expect("invariant: every capture is listed");
        let mut args = ids[..num_args].to_vec();
        args.extend(body.captures.iter().map(|x| ids[num_args + place(x)]));
        let outputs = b.inline(&body.func, &args);
        b.finish(&outputs[..body.num_outputs])
    });
    (funcs.collect(), captures)
}

impl Tensor {
    /// Whether both tensors are the same node of the same trace, or the same array.
    fn is(&self, other: &Tensor) -> bool {
        match (&self.0, &other.0) {
            (Repr::Traced { trace: a, id: x, .. }, Repr::Traced { trace: b, id: y, .. }) => {
                a.ptr_eq(b) && x == y
            }
            (Repr::Concrete(a), Repr::Concrete(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}
