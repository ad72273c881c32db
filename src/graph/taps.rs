//! Taps: the values that a loop stores besides its result, and which trips fill which rows.
//!
//! Before a run, [`Taps`] describes the rows. After a run, [`TapRows`] lists pairs (trip, row) for one schedule.
//! Rows of times, of groups of trips and of the last trip are all represented by such pairs, so code that
//! runs a loop forward or backward handles only pairs. This module must not depend on the tapped values.

use super::Type;

/// The rows of a tapped loop: one per time, then one per group of trips, then one for the last trip.
///
/// A trip *holds* a row if its taps are stored in this row. A row that no trip holds is zero. The backward
/// pass reads the cotangents of a trip's taps from the rows that the trip holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Taps {
    /// The number of times; the times are an operand of the search. The row of a time is held by the trip
    /// whose interval contains the time. The interval includes its end.
    pub times: usize,
    /// Trips per group: row k of the groups is held by the last accepted trip of `every * k .. every * (k +
    /// 1)`.
    pub every: usize,
    /// The number of groups; trips after the last group hold no row.
    pub groups: usize,
    /// Whether the last accepted trip has a row.
    pub last: bool,
}

impl Taps {
    /// One row for each of `times` times, and no other rows.
    pub fn at(times: usize) -> Taps {
        Taps { times, ..Taps::default() }
    }

    /// The total number of rows; 0 if nothing is tapped.
    pub fn num_rows(&self) -> usize {
        self.times.saturating_add(self.groups).saturating_add(usize::from(self.last))
    }

    /// The row of a trip's group.
    fn group_of(&self, trip: usize) -> Option<usize> {
        let group = trip.checked_div(self.every)?;
        (group < self.groups).then_some(self.times + group)
    }

    fn last_row(&self) -> Option<usize> {
        self.last.then_some(self.times + self.groups)
    }

    /// The type of a tap over all rows. The axis of rows comes first, or after the axis of `lanes` in a loop in
    /// lockstep.
    pub(crate) fn tapped(&self, ty: &Type, lanes: Option<usize>) -> Type {
        let (lanes, rest) = ty.shape().split_at(usize::from(lanes.is_some()));
        ty.with_shape([lanes, &[self.num_rows()], rest].concat())
    }
}

/// The rows that the trips of one schedule hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TapRows {
    /// (trip, row), ascending by trip; each row occurs at most once.
    pairs: Vec<(usize, usize)>,
    /// The number of times that the trips have passed so far, with or without a trip that holds their rows.
    passed: usize,
}

impl TapRows {
    /// Removes all trips, but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.pairs.clear();
        self.passed = 0;
    }

    /// Adds the rows of the next accepted trip, which goes from step time `from` to step time `to`. The row
    /// of an unfinished group and the row of the last trip pass from the previous trip to this trip.
    pub fn note(&mut self, taps: &Taps, times: &[f64], trip: usize, (from, to): (f64, f64)) {
        let (group, last) = (taps.group_of(trip), taps.last_row());
        for row in last.iter().chain(&group) {
            // If the previous trip holds these rows, they are its last pairs: the group, then the last trip.
            // They are popped in reverse order.
            self.pairs.pop_if(|pair| pair.1 == *row);
        }
        let sign = if to < from { -1.0 } else { 1.0 };
        while let Some(&t) = times.get(self.passed)
            && t * sign <= to * sign
        {
            // A time equal to the first step time belongs to the first trip. A NaN ends the search for times,
            // so no trip holds the row of a NaN or of a later time.
            if t * sign > from * sign || trip == 0 && t == from {
                self.pairs.push((trip, self.passed));
            }
            self.passed += 1;
        }
        self.pairs.extend(group.into_iter().chain(last).map(|row| (trip, row)));
    }

    /// The rows that a trip holds.
    pub fn rows_of(&self, trip: usize) -> impl Iterator<Item = usize> + '_ {
        let from = self.pairs.partition_point(|pair| pair.0 < trip);
        self.pairs[from..].iter().take_while(move |pair| pair.0 == trip).map(|pair| pair.1)
    }

    /// All (trip, row).
    pub fn pairs(&self) -> &[(usize, usize)] {
        &self.pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(taps: &Taps, times: &[f64], step_times: &[f64]) -> Vec<(usize, usize)> {
        let mut held = TapRows::default();
        for (trip, ends) in step_times.windows(2).enumerate() {
            held.note(taps, times, trip, (ends[0], ends[1]));
            let rows: Vec<usize> = held.rows_of(trip).collect();
            assert!(held.pairs.ends_with(&rows.iter().map(|row| (trip, *row)).collect::<Vec<_>>()));
        }
        held.pairs
    }

    #[test]
    fn a_time_is_held_by_the_trip_whose_span_has_it_in_both_directions() {
        let times = [0.0, 0.5, 1.0, 1.5, f64::NAN, 2.0];
        let want = [(0, 0), (0, 1), (0, 2), (1, 3)];
        assert_eq!(held(&Taps::at(6), &times, &[0.0, 1.0, 2.0]), want);
        let turned = times.map(|t| -t);
        assert_eq!(held(&Taps::at(6), &turned, &[0.0, -1.0, -2.0]), want);
        assert_eq!(held(&Taps::at(2), &[0.7, 0.2], &[0.0, 0.5, 1.0]), [(1, 0)]);
    }

    #[test]
    fn a_group_is_held_by_its_last_trip_and_trips_behind_the_groups_hold_none() {
        let step_times = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        let steps = |every, groups| Taps { every, groups, ..Taps::default() };
        assert_eq!(held(&steps(1, 9), &[], &step_times[..4]), [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(held(&steps(2, 3), &[], &step_times), [(1, 0), (3, 1), (4, 2)]);
        assert_eq!(held(&steps(2, 3), &[], &step_times[..5]), [(1, 0), (3, 1)]);
        assert_eq!(held(&steps(2, 2), &[], &step_times), [(1, 0), (3, 1)]);
    }

    #[test]
    fn rows_of_every_kind_pass_from_trip_to_trip_side_by_side() {
        let taps = Taps { times: 2, every: 2, groups: 2, last: true };
        let step_times = [0.0, 1.0, 2.0, 3.0];
        assert_eq!(held(&taps, &[0.5, 2.5], &step_times), [(0, 0), (1, 2), (2, 1), (2, 3), (2, 4)]);
        assert_eq!(held(&taps, &[0.5, 2.5], &step_times[..2]), [(0, 0), (0, 2), (0, 4)]);
        assert_eq!(held(&taps, &[0.5, 2.5], &step_times[..1]), []);
        assert_eq!(taps.num_rows(), 5);
    }
}
