//! The general loop along a schedule. It reads and stores values in each trip, so its derivatives are also
//! general loops.
//!
//! A sequence holds the values that a loop stored, one per trip of the schedule, in the order of the step
//! times regardless of the loop's direction. It is opaque, and only loops along the same schedule read it.
//! [`super::Rev`] is a variant with bounded memory: it recomputes states that a bounded tape does not store,
//! and does not store values in sequences. Like the other loops, the general loop does not depend on the
//! operations in its body.

use super::{Func, Policy, Type};
use crate::array::DType;

/// Runs `body` along a schedule, from its start or from its end.
///
/// | function | inputs | outputs |
/// | --- | --- | --- |
/// | `body` | first: bool, last: bool, t: f64, t_next: f64, carry.., x.., captures.., row.. | carry'.., y.., term.., tap.. |
/// | the node | schedule, carry.., xs.., captures.., rows.. | carry.., states.., ys.., sums.., tapped.. |
///
/// xs, states and ys are sequences. A trip reads its entry of each of the xs and stores each of its y in the
/// corresponding sequence of the ys. The states are the carry before each trip. A sum is the sum of the
/// trips' terms, in the order of the trips. Without trips, it is zero. If there are tap rows, a trip's tap is
/// stored in the rows that it holds, as in [`super::Solve`], and `row` is the sum of the rows of `rows` that
/// the trip holds.
///
/// The transpose of such a loop is a general loop in the opposite direction. It reads states and xs as its xs,
/// stores the cotangents of the values that the loop reads, sums the cotangents of captures, and swaps taps
/// and rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Loop {
    /// One trip.
    pub body: Func,
    /// Whether the last trip of the schedule runs first.
    pub is_reversed: bool,
    /// The number of values carried from trip to trip.
    pub num_carry: usize,
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
    /// [`Policy::Direct`] if a reverse derivative may store every state. With any other policy, taking the
    /// reverse derivative is an error.
    pub policy: Policy,
}

impl Loop {
    /// The index of the body's first captured input.
    pub fn first_capture(&self) -> usize {
        4 + self.num_carry + self.num_xs
    }

    /// Number of captured inputs.
    pub fn num_captures(&self) -> usize {
        self.body.num_inputs() - self.first_capture() - self.num_rows
    }

    /// The index of the body's first row input.
    pub fn first_row(&self) -> usize {
        self.body.num_inputs() - self.num_rows
    }

    /// The number of values that a trip taps.
    pub fn num_taps(&self) -> usize {
        self.body.num_outputs() - self.num_carry - self.num_ys - self.num_sums
    }

    /// The index of the node's first state.
    pub fn first_state(&self) -> usize {
        self.num_carry
    }

    /// The index of the node's first stored sequence; output k of the body after the carry is value `num_carry
    /// + k` of the node.
    pub fn first_y(&self) -> usize {
        2 * self.num_carry
    }

    /// The index of the node's first sum.
    pub fn first_sum(&self) -> usize {
        2 * self.num_carry + self.num_ys
    }

    /// The index of the node's first tapped value.
    pub fn first_tapped(&self) -> usize {
        self.first_sum() + self.num_sums
    }
}

/// The type of a tap over all tap rows.
pub(crate) fn tapped(ty: &Type, num_tap_rows: usize) -> Type {
    ty.with_shape([&[num_tap_rows], &ty.shape()[..]].concat())
}

/// The operand types of a loop.
pub(super) fn operands(l: &Loop) -> Vec<Type> {
    let mut types = l.body.input_types().split_off(3);
    types[0] = Type::Schedule;
    let (xs, rows) = (1 + l.num_carry..l.first_capture() - 3, l.first_row() - 3..);
    types[xs].iter_mut().for_each(|ty| *ty = ty.sequence());
    types[rows].iter_mut().for_each(|ty| *ty = tapped(ty, l.num_tap_rows));
    types
}

/// The types of a loop's results.
pub(super) fn values(l: &Loop) -> Vec<Type> {
    let out = l.body.output_types();
    let (carry, rest) = out.split_at(l.num_carry);
    let (ys, rest) = rest.split_at(l.num_ys);
    let (sums, taps) = rest.split_at(l.num_sums);
    let mut types = carry.to_vec();
    types.extend(carry.iter().chain(ys).map(Type::sequence));
    types.extend(sums.iter().cloned());
    types.extend(taps.iter().map(|ty| tapped(ty, l.num_tap_rows)));
    types
}

/// Checks the body's signature. The verifier checks the nodes of the body.
pub(super) fn check(l: &Loop) -> Result<(), String> {
    let need = |ok: bool, why: &dyn Fn() -> String| if ok { Ok(()) } else { Err(why()) };
    let (takes, gives) = (l.body.input_types(), l.body.output_types());
    let fixed = l.first_capture() + l.num_rows;
    need(takes.len() >= fixed, &|| format!("its body has {} inputs, fewer than {fixed}", takes.len()))?;
    let fixed = l.num_carry + l.num_ys + l.num_sums;
    need(gives.len() >= fixed, &|| format!("its body has {} outputs, fewer than {fixed}", gives.len()))?;
    let trip = [DType::Bool, DType::Bool, DType::F64, DType::F64].map(Type::scalar);
    for (k, want) in trip.iter().enumerate() {
        need(takes[k] == *want, &|| format!("its body's input {k} is {}, not {want}", takes[k]))?;
    }
    for (k, (got, want)) in gives.iter().zip(&takes[4..4 + l.num_carry]).enumerate() {
        need(got == want, &|| format!("its body's output {k} is {got}, not {want}"))?;
    }
    let opaque = gives.iter().find(|ty| !matches!(ty, Type::Array { .. }));
    need(opaque.is_none(), &|| format!("its body returns a {}", opaque.unwrap_or(&Type::Tape)))?;
    let sums = &gives[l.num_carry + l.num_ys..fixed];
    let inexact = sums.iter().chain(&takes[l.first_row()..]).find(|ty| !ty.is_float());
    need(inexact.is_none(), &|| format!("it sums a {}", inexact.unwrap_or(&Type::Tape)))?;
    let at_times = l.num_taps() + l.num_rows;
    need(at_times == 0 || l.num_tap_rows > 0, &|| {
        format!("it taps and reads {at_times} values but has no tap rows")
    })
}
