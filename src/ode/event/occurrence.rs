//! `Occurrence`: a sign change of an event's function within a step.
//!
//! The functions of this file are not generic, so that they are compiled with this crate and not for each kind
//! of state.

/// A sign change within a step.
pub(super) struct Occurrence {
    pub index: usize,
    /// The time and the value of the sample before.
    pub before: [f64; 2],
    pub t: f64,
    pub is_recorded: bool,
}

/// Puts occurrences in the order of the solve; at one time, in the order of declaration.
pub(super) fn put_in_order(occurrences: &mut [Occurrence], sign: f64) {
    occurrences.sort_by(|a, b| (a.t * sign).total_cmp(&(b.t * sign)).then(a.index.cmp(&b.index)));
}

/// Puts events, each with a value, in the order of declaration, and keeps the first entry of each.
pub(super) fn keep_first_of_each(group: &mut Vec<(usize, f64)>) {
    group.sort_by_key(|(index, _)| *index);
    group.dedup_by_key(|(index, _)| *index);
}
