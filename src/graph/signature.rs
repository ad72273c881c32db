//! The values of loops by name: operands and results of a node, inputs and outputs of its bodies.
//!
//! Only this file defines the order of these values. `split` names the values in a list of them (nodes, types,
//! flags, indices), and `join` returns them in their order. No other file computes a position.

use super::{Func, Replay, Solve, Taps, Type};

/// Defines a list of values in named groups.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$what:meta])* $field:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name<T> {
            $($(#[$what])* pub $field: Vec<T>,)+
        }

        impl<T> Default for $name<T> {
            fn default() -> Self {
                $name { $($field: vec![]),+ }
            }
        }

        impl<T> $name<T> {
            /// All values, in their order.
            pub fn join(self) -> Vec<T> {
                let mut all = vec![];
                $(all.extend(self.$field);)+
                all
            }

            /// The same groups of other values.
            pub fn map<U>(self, mut f: impl FnMut(T) -> U) -> $name<U> {
                $name { $($field: self.$field.into_iter().map(&mut f).collect()),+ }
            }

            /// The values of another list with groups of these lengths.
            ///
            /// # Panics
            /// If the list has another length.
            #[track_caller]
            pub fn like<U: Clone>(&self, all: &[U]) -> $name<U> {
                let mut rest = all;
                let mut take = |n: usize| {
                    let (group, behind) = rest.split_at(n);
                    rest = behind;
                    group.to_vec()
                };
                let found = $name { $($field: take(self.$field.len())),+ };
                assert!(rest.is_empty(), "invariant: {} values in groups of fewer", all.len());
                found
            }
        }
    };
}

named! {
    /// The operands of a [`Solve`].
    SearchOperands {
        /// The expected number of trips: u32.
        expected,
        /// The first step time.
        step_time,
        /// The times of tap rows, if there are any.
        times,
        /// The state at the start.
        carry,
        /// The values that only the search carries.
        ext,
        /// Captured values.
        captures,
    }
}

named! {
    /// The results of a [`Solve`].
    SearchValues {
        /// The state at the end.
        carry,
        /// The values that only the search carries, at its end.
        ext,
        /// The accepted step times.
        schedule,
        /// The stored states.
        tape,
        /// Each tap over all tap rows.
        tapped,
    }
}

named! {
    /// The inputs of an attempt.
    AttemptInputs {
        /// The step time.
        step_time,
        /// In lockstep: which rows are running.
        live,
        /// The state before the attempt.
        carry,
        /// The values that only the search carries.
        ext,
        /// Captured values.
        captures,
    }
}

named! {
    /// The outputs of an attempt.
    AttemptOutputs {
        /// Whether the attempt is accepted, whether the search goes on, and whether the step time is the target.
        verdict,
        /// The next step time.
        step_time,
        /// The state after the attempt.
        carry,
        /// The values that only the search carries.
        ext,
        /// The taps of the trip.
        taps,
    }
}

named! {
    /// The operands of a [`Replay`].
    ReplayOperands {
        /// The step times of the trips.
        schedule,
        /// The states of the trips, if the loop reads states.
        tape,
        /// The first state, if the loop reads states.
        states,
        /// The carried values before the first trip.
        carry,
        /// Sequences: each trip reads its entry.
        xs,
        /// Captured values.
        captures,
        /// Each trip reads the sum of the tap rows that it holds.
        rows,
    }
}

named! {
    /// The results of a [`Replay`].
    ReplayValues {
        /// The carried values after the last trip.
        carry,
        /// The carried values before each trip, on a tape.
        tape,
        /// The carried values before each trip, as sequences; none in lockstep.
        states,
        /// The values that each trip stores, as sequences.
        ys,
        /// The sums of the trips' terms.
        sums,
        /// Each tap over all tap rows.
        tapped,
    }
}

named! {
    /// The inputs of a trip. A step that is differentiated has only trip, live, carry and captures.
    TripInputs {
        /// first: bool, last: bool, t: f64, t_next: f64.
        trip,
        /// In lockstep: which rows take part.
        live,
        /// The carried values before the trip.
        carry,
        /// The state before the trip, if the loop reads states.
        states,
        /// The trip's entries of the sequences.
        xs,
        /// Captured values.
        captures,
        /// The sums of the tap rows that the trip holds.
        rows,
    }
}

named! {
    /// The outputs of a trip.
    TripOutputs {
        /// The carried values after the trip.
        carry,
        /// The values that are stored in sequences.
        ys,
        /// The terms of the sums.
        sums,
        /// The taps.
        taps,
    }
}

/// The indices `0..n`, for the positions of named values.
pub fn indices(n: usize) -> Vec<usize> {
    (0..n).collect()
}

fn units(n: usize) -> Vec<()> {
    vec![(); n]
}

/// The number of rows of a loop in lockstep, from its step; `None` if it has a single schedule.
fn rows(step: &Func) -> Option<usize> {
    match &step.node(*step.inputs().first()?).ty {
        Type::Array { shape, .. } => shape.first().copied(),
        _ => None,
    }
}

fn need(ok: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if ok { Ok(()) } else { Err(why()) }
}

/// The number of values in a list, less those in the groups before and after.
fn rest(all: usize, others: usize) -> usize {
    all.saturating_sub(others)
}

impl Solve {
    /// The number of rows in lockstep; `None` if the search has a single schedule.
    pub fn rows(&self) -> Option<usize> {
        rows(&self.step)
    }

    fn num_live(&self) -> usize {
        usize::from(self.rows().is_some())
    }

    /// Number of captured inputs.
    pub fn num_captures(&self) -> usize {
        rest(self.step.num_inputs(), 4 + self.num_live() + self.num_carry)
    }

    /// The number of values that a trip taps.
    pub fn num_taps(&self) -> usize {
        rest(self.step.num_outputs(), self.num_carry)
    }

    /// Checks that the bodies have as many inputs and outputs as the named groups.
    pub(super) fn fits(&self) -> Result<(), String> {
        let (f, moving) = (&self.attempt, self.num_carry + self.num_ext);
        let fixed = 1 + self.num_live() + moving;
        need(f.num_inputs() >= fixed, || {
            format!("its attempt has {} inputs, fewer than {fixed}", f.num_inputs())
        })?;
        let (captures, of_step) = (f.num_inputs() - fixed, self.num_captures());
        need(captures == of_step, || format!("its attempt has {captures} captures, its step {of_step}"))?;
        let outputs = 4 + moving + self.num_taps();
        need(f.num_outputs() == outputs, || {
            format!("its attempt has {} outputs, not {outputs}", f.num_outputs())
        })?;
        has_fixed("step", &self.step, (4 + self.num_live() + self.num_carry, self.num_carry))
    }

    /// The operands by name.
    pub fn operands<T: Clone>(&self, all: &[T]) -> SearchOperands<T> {
        let groups = SearchOperands {
            expected: units(1),
            step_time: units(1),
            times: units(usize::from(self.taps.times > 0)),
            carry: units(self.num_carry),
            ext: units(self.num_ext),
            captures: units(self.num_captures()),
        };
        groups.like(all)
    }

    /// The results by name.
    pub fn values<T: Clone>(&self, all: &[T]) -> SearchValues<T> {
        let groups = SearchValues {
            carry: units(self.num_carry),
            ext: units(self.num_ext),
            schedule: units(1),
            tape: units(1),
            tapped: units(self.num_taps()),
        };
        groups.like(all)
    }

    /// The positions of the results.
    pub fn places(&self) -> SearchValues<usize> {
        self.values(&indices(self.num_carry + self.num_ext + 2 + self.num_taps()))
    }

    /// The inputs of the attempt by name.
    pub fn attempt_inputs<T: Clone>(&self, all: &[T]) -> AttemptInputs<T> {
        let groups = AttemptInputs {
            step_time: units(1),
            live: units(self.num_live()),
            carry: units(self.num_carry),
            ext: units(self.num_ext),
            captures: units(self.num_captures()),
        };
        groups.like(all)
    }

    /// The outputs of the attempt by name.
    pub fn attempt_outputs<T: Clone>(&self, all: &[T]) -> AttemptOutputs<T> {
        let groups = AttemptOutputs {
            verdict: units(3),
            step_time: units(1),
            carry: units(self.num_carry),
            ext: units(self.num_ext),
            taps: units(self.num_taps()),
        };
        groups.like(all)
    }

    /// The inputs of the step, and of its inverse, by name.
    pub fn step_inputs<T: Clone>(&self, all: &[T]) -> TripInputs<T> {
        step_inputs((self.num_live(), self.num_carry, self.num_captures()), all)
    }

    /// The index of the first captured input of the attempt.
    pub fn first_attempt_capture(&self) -> usize {
        self.attempt.num_inputs() - self.num_captures()
    }

    /// The index of the first captured input of the step.
    pub fn first_step_capture(&self) -> usize {
        self.step.num_inputs() - self.num_captures()
    }

    /// The loop that repeats the step along the schedule of the search.
    pub fn replay(&self) -> Replay {
        Replay {
            inverse: self.inverse.clone(),
            num_carry: self.num_carry,
            num_tap_rows: self.taps.num_rows(),
            policy: self.policy,
            ..Replay::new(self.step.clone())
        }
    }
}

/// Checks the number of inputs and outputs of a body.
fn has_fixed(what: &str, f: &Func, (inputs, outputs): (usize, usize)) -> Result<(), String> {
    let (takes, gives) = (f.num_inputs(), f.num_outputs());
    need(takes >= inputs, || format!("its {what} has {takes} inputs, fewer than {inputs}"))?;
    need(gives >= outputs, || format!("its {what} has {gives} outputs, fewer than {outputs}"))
}

fn step_inputs<T: Clone>(
    (num_live, num_carry, num_captures): (usize, usize, usize),
    all: &[T],
) -> TripInputs<T> {
    let groups = TripInputs {
        trip: units(4),
        live: units(num_live),
        carry: units(num_carry),
        captures: units(num_captures),
        ..TripInputs::default()
    };
    groups.like(all)
}

impl Replay {
    /// See [`Solve::rows`].
    pub fn lockstep(&self) -> Option<usize> {
        rows(&self.body)
    }

    fn num_live(&self) -> usize {
        usize::from(self.lockstep().is_some())
    }

    /// Checks that the bodies have as many inputs and outputs as the named groups.
    pub(super) fn fits(&self) -> Result<(), String> {
        has_fixed("body", &self.body, (self.num_fixed_inputs(), self.num_fixed_outputs()))?;
        let Some(step) = &self.step else {
            return need(self.num_states == 0, || {
                format!("it reads {} states without a step", self.num_states)
            });
        };
        let (takes, wanted) =
            (step.num_inputs(), 4 + self.num_live() + self.num_states + self.num_captures());
        need(takes == wanted, || format!("its step has {takes} inputs, not {wanted}"))
    }

    /// The number of inputs of the body that are no captures.
    fn num_fixed_inputs(&self) -> usize {
        4 + self.num_live() + self.num_carry + self.num_states + self.num_xs + self.num_rows
    }

    /// The number of outputs of the body that are no taps.
    fn num_fixed_outputs(&self) -> usize {
        self.num_carry + self.num_ys + self.num_sums
    }

    /// Number of captured inputs.
    pub fn num_captures(&self) -> usize {
        rest(self.body.num_inputs(), self.num_fixed_inputs())
    }

    /// The number of values that a trip taps.
    pub fn num_taps(&self) -> usize {
        rest(self.body.num_outputs(), self.num_fixed_outputs())
    }

    /// Whether the loop reads states from a tape.
    pub fn reads_states(&self) -> bool {
        self.step.is_some()
    }

    /// The index of the first captured input of the body.
    pub fn first_capture(&self) -> usize {
        self.body.num_inputs() - self.num_captures() - self.num_rows
    }

    /// The index of the first captured input of the step that recomputes states.
    pub fn first_step_capture(&self) -> usize {
        4 + self.num_live() + self.num_states
    }

    /// The operands by name.
    pub fn operands<T: Clone>(&self, all: &[T]) -> ReplayOperands<T> {
        let groups = ReplayOperands {
            schedule: units(1),
            tape: units(usize::from(self.reads_states())),
            states: units(self.num_states),
            carry: units(self.num_carry),
            xs: units(self.num_xs),
            captures: units(self.num_captures()),
            rows: units(self.num_rows),
        };
        groups.like(all)
    }

    /// The results by name.
    pub fn values<T: Clone>(&self, all: &[T]) -> ReplayValues<T> {
        self.groups().like(all)
    }

    /// The positions of the results.
    pub fn places(&self) -> ReplayValues<usize> {
        let groups = self.groups();
        let n = groups.clone().join().len();
        groups.like(&indices(n))
    }

    fn groups(&self) -> ReplayValues<()> {
        ReplayValues {
            carry: units(self.num_carry),
            tape: units(1),
            states: units(if self.lockstep().is_some() { 0 } else { self.num_carry }),
            ys: units(self.num_ys),
            sums: units(self.num_sums),
            tapped: units(self.num_taps()),
        }
    }

    /// The inputs of the body by name.
    pub fn inputs<T: Clone>(&self, all: &[T]) -> TripInputs<T> {
        let groups = TripInputs {
            trip: units(4),
            live: units(self.num_live()),
            carry: units(self.num_carry),
            states: units(self.num_states),
            xs: units(self.num_xs),
            captures: units(self.num_captures()),
            rows: units(self.num_rows),
        };
        groups.like(all)
    }

    /// The inputs of the step that recomputes states, by name: the states are its carry.
    pub fn step_inputs<T: Clone>(&self, all: &[T]) -> TripInputs<T> {
        step_inputs((self.num_live(), self.num_states, self.num_captures()), all)
    }

    /// The outputs of the body by name.
    pub fn outputs<T: Clone>(&self, all: &[T]) -> TripOutputs<T> {
        let groups = TripOutputs {
            carry: units(self.num_carry),
            ys: units(self.num_ys),
            sums: units(self.num_sums),
            taps: units(self.num_taps()),
        };
        groups.like(all)
    }

    /// The types of the operands.
    pub(super) fn operand_types(&self) -> Vec<Type> {
        let of = self.inputs(&self.body.input_types());
        let operands = ReplayOperands {
            schedule: vec![Type::Schedule],
            tape: vec![Type::Tape; usize::from(self.reads_states())],
            states: of.states,
            carry: of.carry,
            xs: of.xs.iter().map(Type::sequence).collect(),
            captures: of.captures,
            rows: self.tapped(&of.rows),
        };
        operands.join()
    }

    /// The types of the results.
    pub(super) fn value_types(&self) -> Vec<Type> {
        let of = self.outputs(&self.body.output_types());
        let sequences = |types: &[Type]| types.iter().map(Type::sequence).collect::<Vec<_>>();
        let values = ReplayValues {
            states: if self.lockstep().is_some() { vec![] } else { sequences(&of.carry) },
            carry: of.carry,
            tape: vec![Type::Tape],
            ys: sequences(&of.ys),
            sums: of.sums,
            tapped: self.tapped(&of.taps),
        };
        values.join()
    }

    /// The types of taps over all tap rows.
    pub fn tapped(&self, taps: &[Type]) -> Vec<Type> {
        let rows = Taps::at(self.num_tap_rows);
        taps.iter().map(|ty| rows.tapped(ty, self.lockstep())).collect()
    }
}
