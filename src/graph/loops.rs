//! Loops and row tiles: operations whose bodies are functions of their own.
//!
//! Captured values are explicit inputs of a body, so nothing here refers to the graph around it.
//! The search ([`Solve`]) and its derivative are kept apart: the search may try, reject and estimate
//! errors; the *step* is what an accepted trip means, and only it is differentiated. None of this
//! knows what is searched for; `adjoint` builds an adaptive ODE solve from it.

use super::{Func, Taps, Type};

/// The rows of a loop in lockstep, told from its step; none where it runs along one schedule.
fn rows(step: &Func) -> Option<usize> {
    match &step.node(*step.inputs().first()?).ty {
        Type::Array { shape, .. } => shape.first().copied(),
        _ => None,
    }
}

/// How many states of a forward pass are kept for the backward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checkpoints {
    /// This many states, the first included.
    Count(usize),
    /// As many as fit into this many bytes, at least one.
    Bytes(usize),
    /// As many as fit into 32 MiB.
    Auto,
}

/// Where the states that a backward pass needs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// A bounded number is kept, the others are recomputed.
    Checkpoint(Checkpoints),
    /// Every state is kept.
    Direct,
    /// No state is kept: there is a forward derivative and no reverse one.
    Forward,
    /// No state is kept but the last: the others are found again by the inverse of the step.
    Reversible,
}

/// Runs `attempt` until it stops; remembers which attempts were accepted.
///
/// | function | inputs | outputs |
/// | --- | --- | --- |
/// | `attempt` | step time: f64, carry.., ext.., captures.. | accept: bool, running: bool, reached: bool, step time', carry'.., ext'.., tap.. |
/// | `step` | first: bool, last: bool, t: f64, t_next: f64, carry.., captures.. | carry'.., tap.. |
/// | `inverse` | first: bool, last: bool, t: f64, t_next: f64, carry'.., captures.. | carry.. |
/// | the node | expected count: u32, knot0: f64, [times: f64\[n\]], carry.., ext.., captures.. | carry.., ext.., schedule, tape, tapped.. |
///
/// After each attempt the step time, the carry and the ext become the primed ones (the body itself leaves
/// them as they were where it rejects). An accepted attempt appends step time' to the schedule. The loop
/// ends when `running` is false. `reached` of the last attempt says whether the final step time is the
/// one that was aimed at: the value that the step time then chose, which a step may take for it. `step` from (t, t_next) = (step time, step time') must give carry' to the bit.
/// `expected_steps` is the number of accepted attempts if it is known before (0: unknown); it decides where
/// checkpoints are placed, never a value.
///
/// Where `taps` has rows the loop is tapped: an accepted attempt leaves what it tapped in the rows of `tapped` that it
/// holds ([`Taps`]). The times stand in the order of the step times; one at the very first step time belongs to the first trip.
/// Rows that no trip holds, those of times out of order among them, are zeros. The schedule remembers which trip
/// holds which row.
///
/// # Lockstep
/// Where `first` is bool\[rows\] the loop is that of so many independent rows, each with a schedule of its own: all
/// that is said to be bool or f64 above is bool\[rows\] or f64\[rows\], every carried, further and tapped value has
/// `rows` for its first axis, the times are f64\[rows, n\] and what is tapped has a place for each row and tap, \[rows,
/// n, ..\]. A body takes one more input, live: bool\[rows\], ahead of what is carried, and leaves the rows that are not
/// live as they were. The loop ends when no row runs.
///
/// Steps are counted by each row for itself: trip i of a replay is the i-th accepted attempt of every row. A row that
/// has fewer is not live in the trips that remain, in which it is given its last accepted attempt once more: flags,
/// step times, and in a reverse loop the state at its start. So whatever a body computes for such a row was computed
/// before, and its cotangent, which is zero, meets no 0/0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Solve {
    /// One attempted trip.
    pub attempt: Func,
    /// One accepted trip, the meaning of the loop for its derivatives.
    pub step: Func,
    /// The carry before a trip from that behind it, where the policy is [`Policy::Reversible`]; derivatives alone
    /// use it.
    pub inverse: Option<Func>,
    /// Values that the step carries.
    pub num_carry: usize,
    /// Further values that only the search carries.
    pub num_ext: usize,
    /// Rows of taps.
    pub taps: Taps,
    /// What the tape keeps.
    pub policy: Policy,
}

/// Runs `step` along a schedule: inputs schedule, carry.., captures..; outputs carry.., tape, tapped.. (the taps of
/// the trips that hold rows of the search).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scan {
    /// As in [`Solve`].
    pub step: Func,
    /// As in [`Solve`].
    pub inverse: Option<Func>,
    /// Values that the step carries.
    pub num_carry: usize,
    /// As in [`Solve`].
    pub taps: Taps,
    /// What the tape keeps.
    pub policy: Policy,
}

/// Runs along a schedule from its end, recomputing states that the tape does not hold.
///
/// `step` taps nothing. `bwd` takes first, last, t, t_next, carry.., captures.., ct_carry.., ct_tap.. and gives
/// ct_carry'.., ct_captures.. (of the captures in `wrt`). The node takes schedule, tape, carry0.., captures..,
/// ct_carry.., ct_tapped.. and gives ct_carry0.., ct_captures.., the latter added up over the trips. A trip's ct_tap
/// is the sum of the rows of ct_tapped that it holds, zero where there are none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rev {
    /// As in [`Solve`]; recomputes states.
    pub step: Func,
    /// The vjp of the step.
    pub bwd: Func,
    /// Values that the step carries.
    pub num_carry: usize,
    /// Carried cotangents.
    pub num_ct: usize,
    /// Cotangents of taps.
    pub num_ct_taps: usize,
    /// As in [`Solve`].
    pub taps: Taps,
    /// Which captures have a cotangent, in the order of those outputs; one capture may have several.
    pub wrt: Vec<usize>,
}

/// How an output of a tile's body becomes an output of all tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TileOut {
    /// The tiles' rows, one below the other.
    Rows,
    /// The sum over the tiles, in tile order.
    Sum,
}

/// Runs a body for each tile of rows; tiles may run in parallel, one on one thread from start to end.
///
/// The body takes row0: u32 (the first row of the tile), rowed.. (their rows), shared.. (whole) and
/// gives `outs`. The node takes rowed.., shared.. The cut into tiles is part of the program, so no
/// result depends on the number of threads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tiles {
    /// Rows in all.
    pub rows: usize,
    /// Rows of a tile; the last tile may have fewer.
    pub tile: usize,
    /// The body at `tile` rows.
    pub body: Func,
    /// The body at `rows % tile` rows, if that is not 0.
    pub tail: Option<Func>,
    /// How many inputs are cut into rows.
    pub num_rowed: usize,
    /// What the outputs are.
    pub outs: Vec<TileOut>,
}

impl Solve {
    /// Rows in lockstep, if it is that of rows.
    pub fn rows(&self) -> Option<usize> {
        rows(&self.step)
    }

    /// Inputs of the attempt ahead of what is carried.
    pub fn attempt_head(&self) -> usize {
        1 + usize::from(self.rows().is_some())
    }

    /// Inputs of the step ahead of what is carried.
    pub fn head(&self) -> usize {
        4 + usize::from(self.rows().is_some())
    }

    /// The operand that is the first carried value.
    pub fn first_carry(&self) -> usize {
        2 + usize::from(self.taps.times > 0)
    }

    /// Number of values that a trip taps.
    pub fn num_taps(&self) -> usize {
        self.step.num_outputs() - self.num_carry
    }

    /// The output that is the first tapped value.
    pub fn first_tapped(&self) -> usize {
        self.num_carry + self.num_ext + 2
    }

    /// Number of captured inputs.
    pub fn num_captures(&self) -> usize {
        self.step.num_inputs() - self.head() - self.num_carry
    }
}

impl Scan {
    /// As of [`Solve`].
    pub fn rows(&self) -> Option<usize> {
        rows(&self.step)
    }

    /// As of [`Solve`].
    pub fn head(&self) -> usize {
        4 + usize::from(self.rows().is_some())
    }

    /// Number of values that a trip taps.
    pub fn num_taps(&self) -> usize {
        self.step.num_outputs() - self.num_carry
    }

    /// The output that is the first tapped value.
    pub fn first_tapped(&self) -> usize {
        self.num_carry + 1
    }

    /// Number of captured inputs.
    pub fn num_captures(&self) -> usize {
        self.step.num_inputs() - self.head() - self.num_carry
    }
}

impl Rev {
    /// As of [`Solve`].
    pub fn rows(&self) -> Option<usize> {
        rows(&self.step)
    }

    /// As of [`Solve`].
    pub fn head(&self) -> usize {
        4 + usize::from(self.rows().is_some())
    }

    /// Number of captured inputs.
    pub fn num_captures(&self) -> usize {
        self.step.num_inputs() - self.head() - self.num_carry
    }
}

/// The most rows that [`Tiles`] cut: a tile's first row is told to its body as a u32.
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
