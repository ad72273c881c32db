//! The reference interpreter: evaluates a graph node by node.
//!
//! The interpreter is the reference for compiled plans and transforms: simple and slow. Elementwise
//! operations are computed in their element type with the functions of `std` (softplus in f64), except erf, which has its own
//! file. Sums, and the inner sums of matrix products and convolutions, are accumulated in f64 and rounded
//! once, so the interpreter is at least as accurate as the code that is tested against it. `Scatter`,
//! `Lincomb` and the sums over tiles and trips have a specified order and are computed in the element type in
//! that order. If both operands of `max` or `min` are zeros, the sign of the result is not specified.
//!
//! The interpreter does not depend on kernels, fusion, buffers or checkpoints: a tape stores every state under
//! every policy, and a loop's body is interpreted for each trip.

mod conv;
mod elementwise;
mod ended;
mod erf;
mod factor;
mod lines;
mod locate;
mod lockstep;
mod loops;
mod movement;
mod philox;
mod replay;
mod systems;

#[cfg(test)]
pub(crate) use elementwise::softplus;
pub use ended::locate_ended;
#[cfg(test)]
pub(crate) use erf::erf;
pub use locate::{Origin, Source, Trip, locate};
pub use loops::{Schedule, Tape};
pub use philox::{philox_block, philox_word};

use super::{Cond, Func, GraphError, Literal, Node, Op, Type};
use crate::array::{Array, Data};
use std::cell::Cell;
use std::sync::Arc;

/// The value of a node.
#[derive(Clone, Debug)]
pub enum Value {
    /// An array.
    Array(Arc<Array>),
    /// The accepted step times of a search.
    Schedule(Arc<Schedule>),
    /// The states of one forward pass.
    Tape(Arc<Tape>),
    /// One array per trip of a schedule.
    Sequence(Arc<Vec<Value>>),
    /// Several values.
    Tuple(Vec<Value>),
}

impl Value {
    /// The array.
    ///
    /// # Panics
    /// If the value is not an array.
    #[track_caller]
    pub fn array(&self) -> &Array {
        match self {
            Value::Array(a) => a,
            other => panic!("invariant: expected an array, found {other:?}"),
        }
    }

    /// Whether the value has the type `ty`.
    fn is(&self, ty: &Type) -> bool {
        match (self, ty) {
            (Value::Array(a), Type::Array { dtype, shape }) => a.dtype() == *dtype && a.shape() == shape,
            (Value::Schedule(_), Type::Schedule) | (Value::Tape(_), Type::Tape) => true,
            (Value::Sequence(v), Type::Sequence { dtype, shape }) => {
                v.iter().all(|a| a.array().dtype() == *dtype && a.array().shape() == shape)
            }
            (Value::Tuple(v), Type::Tuple(t)) => v.len() == t.len() && v.iter().zip(t).all(|(v, t)| v.is(t)),
            _ => false,
        }
    }

    /// The kind and the shape of the value, for messages.
    fn describe(&self) -> String {
        match self {
            Value::Array(a) => format!("{}{}", a.dtype(), a.shape()),
            Value::Schedule(_) => "schedule".into(),
            Value::Tape(_) => "tape".into(),
            Value::Sequence(v) => format!("sequence of {}", v.len()),
            Value::Tuple(v) => format!("({})", describe(v)),
        }
    }
}

impl From<Array> for Value {
    fn from(a: Array) -> Value {
        Value::Array(Arc::new(a))
    }
}

fn describe(values: &[Value]) -> String {
    values.iter().map(Value::describe).collect::<Vec<_>>().join(", ")
}

/// Steps of the searches in an evaluation, including those in bodies. In lockstep, each row counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchCounts {
    /// Attempted steps.
    pub attempts: u64,
    /// Accepted steps.
    pub accepted: u64,
}

/// The counts of an evaluation that is running.
#[derive(Default)]
struct Counting(Cell<SearchCounts>);

impl Counting {
    /// Counts an attempted step.
    fn attempt(&self, is_accepted: bool) {
        let SearchCounts { attempts, accepted } = self.0.get();
        self.0.set(SearchCounts { attempts: attempts + 1, accepted: accepted + u64::from(is_accepted) });
    }
}

/// Evaluates a verified function of arrays.
///
/// # Errors
/// [`GraphError::Operands`] if the inputs differ from the function's types; [`GraphError::Malformed`] if an
/// output is opaque (use [`interpret_values`]), and in the cases of [`interpret_values`].
///
/// # Panics
/// If the function does not pass `verify`.
///
/// # Examples
/// ```
/// use flowline::__internal::array::{Array, DType};
/// use flowline::__internal::graph::{Builder, Type, interpret};
/// let (mut b, x) = Builder::with_inputs(&[Type::array(DType::F32, [2])]);
/// let y = b.mul(x[0], x[0]);
/// let out = interpret(&b.finish(&[y]), &[Array::from_vec([2], vec![1.0f32, 3.0])]).unwrap();
/// assert_eq!(out[0].to_f64(), [1.0, 9.0]);
/// ```
pub fn interpret(f: &Func, inputs: &[Array]) -> Result<Vec<Array>, GraphError> {
    let inputs: Vec<Value> = inputs.iter().map(|a| a.clone().into()).collect();
    let array = |(k, value): (usize, Value)| match value {
        Value::Array(a) => Ok(Arc::unwrap_or_clone(a)),
        other => {
            let node = f.outputs()[k].index();
            let why = format!("output {k} is a {}, not an array", other.describe());
            Err(GraphError::Malformed { node, op: f.nodes()[node].op.name(), why })
        }
    };
    interpret_values(f, &inputs)?.into_iter().enumerate().map(array).collect()
}

/// Evaluates a verified function of any values.
///
/// # Errors
/// [`GraphError::Operands`] if the inputs differ from the function's types. [`GraphError::Malformed`] if a
/// tape or a sequence does not fit the schedule of its loop, or if the step of a replay does not lead from one
/// state of its tape to the next, bit for bit: a gradient would then depend on the number of checkpoints.
///
/// # Panics
/// If the function does not pass `verify`.
pub fn interpret_values(f: &Func, inputs: &[Value]) -> Result<Vec<Value>, GraphError> {
    interpret_counted(f, inputs).map(|(values, _)| values)
}

/// [`interpret_values`], and the steps of its searches. The interpreter also reruns the steps of a replay to check its
/// tape; searches in these reruns do not count.
///
/// # Errors
/// The errors of [`interpret_values`].
///
/// # Panics
/// If the function does not pass `verify`.
pub fn interpret_counted(f: &Func, inputs: &[Value]) -> Result<(Vec<Value>, SearchCounts), GraphError> {
    let counting = Counting::default();
    let types = f.input_types();
    let wrong = types.iter().zip(inputs).position(|(t, v)| !v.is(t));
    let why = match wrong {
        _ if types.len() != inputs.len() => format!("it takes {} inputs, not {}", types.len(), inputs.len()),
        Some(k) => format!("input {k} must be {}", types[k]),
        None => return Ok((run(f, inputs, &counting)?, counting.0.get())),
    };
    Err(GraphError::Operands { op: "func", operands: describe(inputs), why })
}

/// Evaluates a function on inputs of its types.
fn run(f: &Func, inputs: &[Value], counting: &Counting) -> Result<Vec<Value>, GraphError> {
    let values = values_counted(f, inputs, counting)?;
    Ok(f.outputs().iter().map(|o| values[o.index()].clone()).collect())
}

/// The value of every node of a function on inputs of its types.
fn values_of(f: &Func, inputs: &[Value]) -> Result<Vec<Value>, GraphError> {
    values_counted(f, inputs, &Counting::default())
}

fn values_counted(f: &Func, inputs: &[Value], counting: &Counting) -> Result<Vec<Value>, GraphError> {
    let mut values: Vec<Value> = Vec::with_capacity(f.nodes().len());
    for (i, node) in f.nodes().iter().enumerate() {
        let args: Vec<&Value> = node.args.iter().map(|a| &values[a.index()]).collect();
        let malformed = |why| GraphError::Malformed { node: i, op: node.op.name(), why };
        let value = match &node.op {
            Op::Input(k) => inputs[*k].clone(),
            Op::Proj(k) => match args[0] {
                Value::Tuple(v) => v[*k].clone(),
                other => panic!("invariant: %{i} projects {other:?}"),
            },
            Op::Solve(s) => loops::solve(s, &owned(&args), counting)?,
            Op::Replay(l) => replay::replay(l, &owned(&args), &malformed, counting)?,
            Op::Tiles(t) => loops::tiles(t, &owned(&args), counting)?,
            Op::Custom(c) => Value::Tuple(run(&c.body, &owned(&args), counting)?),
            Op::Cond(c) => Value::Tuple(run(chosen(c, args[0]), &owned(&args[1..]), counting)?),
            _ => {
                let args: Vec<&Array> = args.into_iter().map(Value::array).collect();
                array(node, &args).into()
            }
        };
        assert!(value.is(&node.ty), "invariant: %{i} ({}) is not {}", node.op.name(), node.ty);
        values.push(value);
    }
    Ok(values)
}

/// The branch that runs under this predicate.
fn chosen<'a>(c: &'a Cond, predicate: &Value) -> &'a Func {
    if predicate.array().data().get_f64(0) == 0.0 { &c.otherwise } else { &c.then }
}

fn owned(values: &[&Value]) -> Vec<Value> {
    values.iter().map(|&v| v.clone()).collect()
}

/// Evaluates an operation that takes arrays and returns an array.
fn array(node: &Node, x: &[&Array]) -> Array {
    let (shape, dtype) = (node.ty.shape().clone(), node.ty.dtype());
    let data: Vec<&Data> = x.iter().map(|a| a.data()).collect();
    let result = match &node.op {
        Op::Const(literal) => constant(literal, &node.ty),
        Op::Iota { axis } => movement::iota(dtype, &shape, *axis),
        Op::Unary(op) => elementwise::unary(*op, data[0]),
        Op::Binary(op) => elementwise::binary(*op, data[0], data[1]),
        Op::Compare(op) => elementwise::compare(*op, data[0], data[1]),
        Op::Select => elementwise::select(data[0], data[1], data[2]),
        Op::Scalar(f) => elementwise::scalar(*f, &data),
        Op::Lincomb { coeffs } => elementwise::lincomb(coeffs, &data),
        Op::Cast => elementwise::cast(data[0], dtype),
        Op::StopGradient | Op::Reshape => data[0].clone(),
        Op::Observe(observer) => {
            observer.see(&shape, data[0]);
            data[0].clone()
        }
        Op::Broadcast { dims } => movement::broadcast(x[0], &shape, dims),
        Op::Transpose { perm } => movement::transpose(x[0], &shape, perm),
        Op::Slice { start, .. } => movement::slice(x[0], &shape, start),
        Op::Pad { lo, .. } => movement::pad(x[0], &shape, lo),
        Op::Concat { axis } => movement::concat(x, &shape, *axis),
        Op::Reduce { op, axes } => movement::reduce(*op, x[0], &shape, axes),
        Op::Gather => movement::gather(x[0], x[1]),
        Op::Scatter(op) => movement::scatter(*op, x[0], x[1], x[2]),
        Op::Dot { ta, tb } => movement::dot(x[0], x[1], *ta, *tb),
        Op::Conv { margins, turned } => conv::conv(*margins, *turned, x[0], x[1], &shape),
        Op::ConvKernel { margins } => conv::conv_kernel(*margins, x[0], x[1], &shape),
        Op::Lines(op) => lines::lines(*op, x[0]),
        Op::Factor(op) => factor::factors(*op, x[0]),
        Op::LuSolve { transposed } => systems::lu_solve(x[0], x[2], *transposed),
        Op::TriangularSolve(triangle) => systems::triangular_solve(*triangle, x[0], x[1]),
        Op::RandomBits { stream } => {
            let key = [movement::word(x[0], 0), movement::word(x[0], 1)];
            let start = u64::from(movement::word(x[1], 0));
            Data::U32((0..shape.size() as u64).map(|i| philox_word(key, *stream, start + i)).collect())
        }
        Op::Input(_)
        | Op::Proj(_)
        | Op::Solve(_)
        | Op::Replay(_)
        | Op::Tiles(_)
        | Op::Custom(_)
        | Op::Cond(_) => {
            panic!("invariant: {} is evaluated elsewhere", node.op.name())
        }
    };
    Array::new(shape, result)
}

fn constant(literal: &Literal, ty: &Type) -> Data {
    match literal {
        Literal::Array(a) => a.data().clone(),
        Literal::Splat { dtype, bits } => {
            let mut data = Data::zeros(*dtype, ty.shape().size());
            (0..data.len()).for_each(|i| data.set_f64(i, f64::from_bits(*bits)));
            data
        }
    }
}

#[cfg(test)]
mod tests;
