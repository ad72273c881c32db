//! The traced program: typed nodes in an arena, closed functions, shape inference, verifier, text
//! form and reference interpreter.
//!
//! A [`Func`] is a closed function: what it uses it takes as inputs, captured values included. That
//! makes every transform a function from `Func` to `Func`, every loop body an ordinary `Func`, and
//! "the argument of this derivative" simply an input, so no marker nodes are needed to keep nested
//! derivatives apart. A [`Builder`] grows a function node by node; equal nodes are merged as they
//! are inserted (hash-consing), so common subexpressions never exist twice.
//!
//! It knows loops and row tiles, and knows no ODE, no tensor handle and no machine.

#[cfg(any(test, fuzzing))]
pub(crate) mod arbitrary;
mod arrays;
mod builder;
mod calls;
mod conv;
mod func;
mod infer;
mod interp;
mod literal;
mod loops;
mod observer;
mod op;
mod sequence;
mod taps;
pub mod text;
mod types;
mod verify;

pub use builder::Builder;
pub(crate) use builder::turned;
pub use calls::{Cond, Custom};
pub use conv::Margins;
pub use func::{Func, Node, NodeId};
pub use infer::{GraphError, infer};
#[cfg(test)]
pub(crate) use interp::erf;
pub use interp::{
    Origin, Place, Schedule, Source, Tape, Value, interpret, interpret_values, locate, locate_ended,
    philox_block, philox_word,
};
pub use literal::Literal;
pub(crate) use loops::MAX_ROWS;
pub use loops::{Checkpoints, Policy, Rev, Scan, Solve, TileOut, Tiles};
pub use observer::{CallbackValue, Observer};
pub use op::{BinaryOp, CompareOp, Op, ReduceOp, UnaryOp};
pub use sequence::Loop;
pub(crate) use taps::Held;
pub use taps::Taps;
pub use types::Type;
pub use verify::verify;
