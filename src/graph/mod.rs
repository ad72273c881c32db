//! The traced program: typed nodes in an arena, closed functions, shape inference, a verifier, a text form and
//! a reference interpreter.
//!
//! A [`Func`] is closed: everything it uses is an input, captured values included. Every transform is
//! therefore a function from `Func` to `Func`, and every loop body is an ordinary `Func`. The variable of a
//! derivative is an input, so nested derivatives need no marker nodes. A [`Builder`] adds nodes one by one and
//! merges equal nodes on insertion (hash-consing), which eliminates common subexpressions.
//!
//! The graph has loops and row tiles. This module must not depend on ODEs, tensor handles or the machine.

mod arrays;
mod builder;
mod calls;
mod conv;
mod factor;
mod func;
pub(crate) mod functions;
mod infer;
mod interp;
mod lines;
mod literal;
mod loops;
mod observer;
mod op;
mod replay;
mod scalar;
mod scatter;
mod signature;
mod special;
mod systems;
mod taps;
#[cfg(any(test, fuzzing))]
pub(crate) mod tests;
pub mod text;
mod types;
mod verify;

pub use builder::Builder;
pub(crate) use builder::turned;
pub use calls::{Cond, Custom};
pub use conv::Margins;
pub use factor::FactorOp;
pub use func::{Func, Node, NodeId, NodeIds};
pub use infer::{GraphError, infer};
pub use interp::{
    Origin, Schedule, SearchCounts, Source, Tape, Trip, Value, interpret, interpret_counted,
    interpret_values, locate, locate_ended, philox_block, philox_word,
};
#[cfg(test)]
pub(crate) use interp::{erf, softplus};
pub use lines::LineOp;
pub use literal::Literal;
pub(crate) use loops::MAX_ROWS;
pub use loops::{Checkpoints, Policy, Solve, TileOut, Tiles};
pub use observer::{CallbackValue, Observer};
pub use op::{BinaryOp, CompareOp, FloatFn, Op, ReduceOp, States, UnaryOp};
pub use replay::Replay;
pub(crate) use scalar::Of;
pub use scalar::ScalarFn;
pub use scatter::ScatterOp;
pub use signature::{
    AttemptInputs, AttemptOutputs, ReplayOperands, ReplayValues, SearchOperands, SearchValues, TripInputs,
    TripOutputs, indices,
};
pub use systems::Triangle;
pub(crate) use taps::TapRows;
pub use taps::Taps;
pub use types::Type;
pub use verify::verify;
