//! Loops and row tiles: operations that contain functions.
//!
//! Captured values are explicit inputs of a body, so a body does not refer to the surrounding graph. A *trip*
//! is one run of a loop's body; in a search, it is an accepted attempt. A *search* ([`Solve`]) makes
//! attempts, estimates errors, and accepts or rejects each attempt. Its *step* defines what an accepted
//! attempt computes, and only the step is differentiated. A *schedule* is the list of accepted step times;
//! a [replay](super::Replay) runs the step, or its derivative, along it. The graph does not define the purpose of a
//! search: `adjoint` builds an adaptive ODE solve from this operation.

use super::{Func, Replay, Taps, Type};

/// The number of states of a forward pass that are stored for the backward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checkpoints {
    /// This many states, including the first state.
    Count(usize),
    /// As many states as fit into this many bytes, at least one.
    Bytes(usize),
    /// As many states as fit into 32 MiB, at least one.
    Auto,
}

/// How a backward pass obtains the states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// A bounded number of states is stored; the others are recomputed.
    Checkpoint(Checkpoints),
    /// Every state is stored.
    Direct,
    /// No state is stored. There is a forward derivative but no reverse derivative.
    Forward,
    /// Only the last state is available. The inverse of the step recovers the others.
    Reversible,
}

/// Runs `attempt` until it stops and records which attempts were accepted.
///
/// | function | inputs | outputs |
/// | --- | --- | --- |
/// | `attempt` | step time: f64, carry.., ext.., captures.. | accept: bool, running: bool, reached: bool, step time', carry'.., ext'.., tap.., own.., last.. |
/// | `step` | first: bool, last: bool, t: f64, t_next: f64, carry.., captures.. | carry'.., tap.., own.., first.. |
/// | `inverse` | first: bool, last: bool, t: f64, t_next: f64, carry'.., captures.. | carry.. |
/// | the node | expected count: u32, step time: f64, [times: f64\[n\]], carry.., ext.., first.., captures.. | carry.., ext.., schedule, tape, tapped.. |
///
/// After each attempt the step time, the carry and the ext are replaced by the primed values (if the attempt
/// is rejected, the body returns the old step time and carry). An accepted attempt appends step time' to the
/// schedule. The loop ends when `running` is false. `reached` of the last attempt is true if the final step
/// time equals the target exactly. `first` is true in the first trip of a schedule. `last` is true in its
/// last trip if `reached`; a step may then use the target instead of t_next. `step` from (t, t_next) = (step
/// time, step time') must return carry' bit for bit. The expected count is the number of accepted attempts if
/// this number is known in advance, else 0. The expected count decides where checkpoints are placed and never
/// changes a value.
///
/// If `taps` has rows, the loop is tapped: an accepted attempt stores its taps in the rows of `tapped` that
/// the attempt holds ([`Taps`]). The times are sorted in the direction of the step times; a time equal to the
/// first step time belongs to the first trip. Rows that no trip holds, including rows of times out of order,
/// are zeros. The schedule records which trip holds which row.
///
/// # Residuals
/// A *residual* is a value of a step that its derivative may read. Bit for bit, own of an accepted attempt is own of
/// the step; last of an accepted attempt is first of the next step; and the operand first is first of the first step.
/// For example, the first stage of a step is often the last stage of the step before it. A backward pass has the same
/// residuals ([`Replay`](super::Replay)). A residual is therefore either stored on the tape or recomputed.
///
/// # Lockstep
/// If `first` is bool\[rows\], the loop runs this many independent rows, each with its own schedule. Every bool
/// and f64 above is then bool\[rows\] or f64\[rows\]; every carried, ext and tapped value has `rows` as its
/// first axis; the times are f64\[rows, n\]; and tapped values have one entry per row and tap, \[rows, n, ..\].
/// A body takes one more input, live: bool\[rows\], before the carry, and leaves rows that are not live
/// unchanged. The loop ends when no row is running.
///
/// Steps are counted per row: trip i of a replay is the i-th accepted attempt of every row. A row with fewer
/// steps is not live in the remaining trips. Its inputs are those of its last accepted attempt: flags, step
/// times, and in a reverse loop the state at the start of this attempt. A body therefore computes only values
/// for such a row that it has computed before. With other inputs, a derivative could be 0/0, and its product
/// with the row's zero cotangent would be NaN. For the same reason, a row without any step has the inputs of
/// the first trip of the row with the most steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Solve {
    /// One attempt.
    pub attempt: Func,
    /// The function of an accepted attempt, which defines the loop's derivatives.
    pub step: Func,
    /// The inverse of a trip, from the carry after it to the carry before it, if the policy is
    /// [`Policy::Reversible`]; only derivatives use it.
    pub inverse: Option<Func>,
    /// The number of values that the step carries.
    pub num_carry: usize,
    /// The number of values that only the search carries (ext).
    pub num_ext: usize,
    /// The number of residuals that an attempt computes for its own step.
    pub num_own: usize,
    /// The number of residuals that an attempt computes for the next step.
    pub num_first: usize,
    /// The rows of taps.
    pub taps: Taps,
    /// What the tape stores.
    pub policy: Policy,
}

impl Solve {
    /// The loop that repeats the step along the schedule of the search.
    pub fn replay(&self) -> Replay {
        Replay {
            inverse: self.inverse.clone(),
            num_carry: self.num_carry,
            num_tap_rows: self.taps.num_rows(),
            num_residuals: self.num_residuals(),
            policy: self.policy,
            ..Replay::new(self.step.clone())
        }
    }
}

/// How the outputs of all tiles are combined into one output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TileOut {
    /// Concatenated rows, in tile order.
    Rows,
    /// The sum over the tiles, in tile order.
    Sum,
}

/// Runs a body for each tile of rows. Tiles may run in parallel; each runs on one thread from start to end.
///
/// The body takes `row0: u32` (the index of the tile's first row), `rowed..` (the tile's rows of each array
/// that is split) and `shared..` (whole arrays), and returns `outs`. The node takes `rowed..` and `shared..`.
/// The tile size is part of the program, so results do not depend on the number of threads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tiles {
    /// The total number of rows.
    pub rows: usize,
    /// Rows per tile; the last tile may have fewer.
    pub tile: usize,
    /// The body for `tile` rows.
    pub body: Func,
    /// The body for the last `rows % tile` rows, if this number is not 0.
    pub tail: Option<Func>,
    /// The number of inputs that are split into rows.
    pub num_rowed: usize,
    /// How each output is combined over the tiles.
    pub outs: Vec<TileOut>,
}

/// The maximum number of rows of [`Tiles`]: the body receives the index of its first row as a u32.
pub(crate) const MAX_ROWS: usize = 1 << 32;

impl Tiles {
    /// Number of tiles.
    pub fn num_tiles(&self) -> usize {
        self.rows.div_ceil(self.tile)
    }

    /// Type of output `k` of the node.
    pub fn out_type(&self, k: usize) -> Type {
        let ty = self.body.output_type(k);
        match self.outs[k] {
            TileOut::Sum => ty.clone(),
            TileOut::Rows => ty.with_shape(ty.shape().with_axis(0, self.rows)),
        }
    }
}
