//! The general loop along a schedule: it reads and stores one value a trip, so its derivatives are such loops.
//!
//! A sequence is the values that a loop stored, one for each trip of the schedule, in the order of the step times however
//! the loop ran; it is opaque, and only loops along the same schedule read it. [`super::Rev`] is this loop with
//! bounded memory and is kept apart for it: it recomputes what a bounded tape does not hold, and has no place to
//! store anything of its own. Like the other loops this one knows nothing of what it computes.

use super::{Func, Policy, Type};
use crate::array::DType;

/// Runs `body` along a schedule, from its start or from its end.
///
/// | function | inputs | outputs |
/// | --- | --- | --- |
/// | `body` | first: bool, last: bool, t: f64, t_next: f64, carry.., x.., captures.., row.. | carry'.., y.., term.., tap.. |
/// | the node | schedule, carry.., xs.., captures.., rows.. | carry.., states.., ys.., sums.., tapped.. |
///
/// xs, states and ys are sequences: a trip reads its own x of each of the xs and stores its own y in each of the ys.
/// The states are the carry as each trip found it. A sum is the sum of the trips' terms, in the order in which they
/// ran, zero where there was none. Where there are places a trip's tap is left in those that it holds, as in
/// [`super::Solve`], and its row is the sum of those of `rows`.
///
/// The transpose of such a loop is one that runs the other way: states and xs are its xs, cotangents of what was read
/// are what it stores, cotangents of captures are sums, and taps and rows change places.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Loop {
    /// One trip.
    pub body: Func,
    /// Whether the last trip of the schedule runs first.
    pub is_reversed: bool,
    /// Values that a trip takes from the one that ran before it.
    pub num_carry: usize,
    /// Sequences that are read.
    pub num_xs: usize,
    /// Sequences that are stored, beside the states.
    pub num_ys: usize,
    /// Values that are added up over the trips.
    pub num_sums: usize,
    /// Rows that are read at the times a trip holds.
    pub num_rows: usize,
    /// Rows of what is tapped and of what is read so: those of [`super::Taps`] in the search.
    pub num_places: usize,
    /// [`Policy::Direct`] where a reverse derivative may keep every state; it is refused under any other.
    pub policy: Policy,
}

impl Loop {
    /// The input of the body that is the first capture.
    pub fn first_capture(&self) -> usize {
        4 + self.num_carry + self.num_xs
    }

    /// Number of captured inputs.
    pub fn num_captures(&self) -> usize {
        self.body.num_inputs() - self.first_capture() - self.num_rows
    }

    /// The input of the body that is the first row.
    pub fn first_row(&self) -> usize {
        self.body.num_inputs() - self.num_rows
    }

    /// Number of values that a trip taps.
    pub fn num_taps(&self) -> usize {
        self.body.num_outputs() - self.num_carry - self.num_ys - self.num_sums
    }

    /// The value of the node that is the first state.
    pub fn first_state(&self) -> usize {
        self.num_carry
    }

    /// The value of the node that is the first stored sequence; output k of the body behind the carry is value
    /// `num_carry + k` of the node.
    pub fn first_y(&self) -> usize {
        2 * self.num_carry
    }

    /// The value of the node that is the first sum.
    pub fn first_sum(&self) -> usize {
        2 * self.num_carry + self.num_ys
    }

    /// The value of the node that is the first tapped one.
    pub fn first_tapped(&self) -> usize {
        self.first_sum() + self.num_sums
    }
}

/// The type of a tap in all places.
pub(crate) fn tapped(ty: &Type, num_places: usize) -> Type {
    ty.with_shape([&[num_places], &ty.shape()[..]].concat())
}

/// Types of the operands that a loop takes.
pub(super) fn operands(l: &Loop) -> Vec<Type> {
    let mut types = l.body.input_types().split_off(3);
    types[0] = Type::Schedule;
    let (xs, rows) = (1 + l.num_carry..l.first_capture() - 3, l.first_row() - 3..);
    types[xs].iter_mut().for_each(|ty| *ty = ty.sequence());
    types[rows].iter_mut().for_each(|ty| *ty = tapped(ty, l.num_places));
    types
}

/// Types of the values that a loop gives.
pub(super) fn values(l: &Loop) -> Vec<Type> {
    let out = l.body.output_types();
    let (carry, rest) = out.split_at(l.num_carry);
    let (ys, rest) = rest.split_at(l.num_ys);
    let (sums, taps) = rest.split_at(l.num_sums);
    let mut types = carry.to_vec();
    types.extend(carry.iter().chain(ys).map(Type::sequence));
    types.extend(sums.iter().cloned());
    types.extend(taps.iter().map(|ty| tapped(ty, l.num_places)));
    types
}

/// Checks that the body has the documented signature; its nodes are checked elsewhere.
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
    need(inexact.is_none(), &|| format!("it adds up a {}", inexact.unwrap_or(&Type::Tape)))?;
    let at_times = l.num_taps() + l.num_rows;
    need(at_times == 0 || l.num_places > 0, &|| format!("it taps and reads {at_times} values at no times"))
}
