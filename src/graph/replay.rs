//! The replay of a search: a loop along a schedule, in either direction.
//!
//! A loop that repeats the step of a search, its tangents, its backward pass, and loops that read and store a
//! value in each trip are one operation. Its derivatives are again replays: the tangents of a replay run in the
//! same direction, and its transpose runs in the opposite one. Like a search, it does not depend on the
//! operations in its body.

use super::{Func, Policy};

/// Runs `body` along a schedule, from its start or from its end.
///
/// | function | inputs | outputs |
/// | --- | --- | --- |
/// | `body` | first: bool, last: bool, t: f64, t_next: f64, carry.., state.., x.., captures.., row.. | carry'.., y.., term.., tap.., residual.. |
/// | `step` | first: bool, last: bool, t: f64, t_next: f64, state.., captures.., row.. | state'.., residual.. |
/// | the node | schedule, [tape, states..], carry.., xs.., captures.., rows.. | carry.., tape, states.., ys.., sums.., tapped.. |
///
/// [`TripInputs`](super::TripInputs) and the other named lists give these values their names.
///
/// **Values of each trip.** A sequence has one value per trip of the schedule, in the order of the step times
/// whatever the direction of the loop. A trip reads its entry of each of the xs, and stores each y in its
/// sequence. A sum is the sum of the trips' terms, in the order of the trips; without trips, it is zero. Tap rows
/// are those of the search ([`super::Taps`]): a trip's tap is stored in the rows that it holds, and `row` is the
/// sum of the rows of `rows` that it holds. A tap row that no trip holds is zero.
///
/// **States.** A loop leaves the carried values before each trip as sequences; a forward loop that reads no states
/// also leaves them on a tape, under its policy. Only those that a node reads are stored. A reversed loop with a
/// `step` reads the states that another loop left: the operand `tape`, filled by a search or a replay along the
/// same schedule from the first state `states`. States that the tape does not store are recomputed by `step`, which
/// must lead from each state to the next bit for bit.
///
/// **Residuals.** These are values of the body that another loop also computes. Residual k of a loop that reads a tape
/// is, bit for bit, residual k of its step, and residual k of the trip that left the state: of the body of a replay, or
/// of own.. and first.. of a search. They are not results. `transform::remat` decides which of them the trip reads
/// from the tape instead of computing them.
///
/// **Lockstep.** As in [`super::Solve`], with the input live: bool\[rows\] behind t_next. A loop in lockstep has
/// no sequences.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Replay {
    /// One trip.
    pub body: Func,
    /// The step from one state to the next, if the loop reads states.
    pub step: Option<Func>,
    /// The inverse of a trip, from the carry after it to the carry before it, if the policy is
    /// [`Policy::Reversible`]; only derivatives use it.
    pub inverse: Option<Func>,
    /// Whether the last trip of the schedule runs first.
    pub is_reversed: bool,
    /// The number of values carried from trip to trip.
    pub num_carry: usize,
    /// The number of values of a state that a trip reads.
    pub num_states: usize,
    /// The number of sequences read.
    pub num_xs: usize,
    /// The number of sequences stored, besides the states.
    pub num_ys: usize,
    /// The number of values summed over the trips.
    pub num_sums: usize,
    /// The number of values that a trip reads from the rows that it holds.
    pub num_rows: usize,
    /// The number of tap rows, equal to [`super::Taps::num_rows`] in the search.
    pub num_tap_rows: usize,
    /// The number of residuals.
    pub num_residuals: usize,
    /// What the tape stores, and so which derivatives exist. A loop that reads states has the policy of the loop
    /// that left them.
    pub policy: Policy,
}

impl Replay {
    /// A forward loop that carries no values and reads, stores, sums and taps none. Callers set what they need.
    pub fn new(body: Func) -> Replay {
        Replay {
            body,
            step: None,
            inverse: None,
            is_reversed: false,
            num_carry: 0,
            num_states: 0,
            num_xs: 0,
            num_ys: 0,
            num_sums: 0,
            num_rows: 0,
            num_tap_rows: 0,
            num_residuals: 0,
            policy: Policy::Direct,
        }
    }

    /// Whether the loop reads states from a tape.
    pub fn reads_states(&self) -> bool {
        self.step.is_some()
    }
}
