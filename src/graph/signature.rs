//! The values of loops by name: operands and results of a node, inputs and outputs of its bodies.
//!
//! Only this file defines the order of these values. `split` names the values in a list of them (nodes, types,
//! flags, indices), and `join` returns them in their order. Other files ask for the positions that they need.

use super::infer::need;
use super::{Func, Replay, Solve, Taps, Type};
use crate::array::Shape;

/// Defines a list of values in named groups.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident[$n:literal] { $($field:ident: $what:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name<T> {
            $(#[doc = $what] pub $field: Vec<T>,)+
        }

        impl<T> Default for $name<T> {
            fn default() -> Self {
                $name { $($field: vec![]),+ }
            }
        }

        impl<T> $name<T> {
            /// Groups of these lengths.
            #[track_caller]
            fn split(all: &[T], lengths: [usize; $n]) -> Self
            where
                T: Clone,
            {
                let (mut rest, mut lengths) = (all, lengths.into_iter());
                let mut take = || {
                    let (group, behind) = rest.split_at(lengths.next().unwrap_or(0));
                    rest = behind;
                    group.to_vec()
                };
                let found = $name { $($field: take()),+ };
                assert!(rest.is_empty(), "invariant: {} values in groups of fewer", all.len());
                found
            }

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

            /// Groups of the same lengths from another list.
            pub fn like<U: Clone>(&self, all: &[U]) -> $name<U> {
                $name::split(all, [$(self.$field.len()),+])
            }

            /// Combines each group with the group of the same name.
            pub fn with<U, V>(&self, other: &$name<U>, mut f: impl FnMut(&[T], &[U]) -> Vec<V>) -> $name<V> {
                $name { $($field: f(&self.$field, &other.$field)),+ }
            }
        }
    };
}

named! {
    /// The operands of a [`Solve`].
    SearchOperands[7] {
        expected: "The expected number of trips: u32.",
        step_time: "The first step time.",
        times: "The times of tap rows, if there are any.",
        carry: "The state at the start.",
        ext: "The values that only the search carries.",
        first: "The residuals of the first trip that a trip takes from the one before it.",
        captures: "Captured values.",
    }
}

named! {
    /// The results of a [`Solve`].
    SearchValues[5] {
        carry: "The state at the end.",
        ext: "The values that only the search carries, at its end.",
        schedule: "The accepted step times.",
        tape: "The stored states.",
        tapped: "Each tap over all tap rows.",
    }
}

named! {
    /// The inputs of an attempt.
    AttemptInputs[5] {
        step_time: "The step time.",
        live: "In lockstep: which rows are running.",
        carry: "The state before the attempt.",
        ext: "The values that only the search carries.",
        captures: "Captured values.",
    }
}

named! {
    /// The outputs of an attempt.
    AttemptOutputs[7] {
        verdict: "Whether the attempt is accepted, whether the search goes on, and whether the step time is the target.",
        step_time: "The next step time.",
        carry: "The state after the attempt.",
        ext: "The values that only the search carries.",
        taps: "The taps of the trip.",
        own: "The residuals of the step that it itself computes.",
        last: "The residuals of the next step that it computes.",
    }
}

named! {
    /// The operands of a [`Replay`].
    ReplayOperands[7] {
        schedule: "The step times of the trips.",
        tape: "The states of the trips, if the loop reads states.",
        states: "The first state, if the loop reads states.",
        carry: "The carried values before the first trip.",
        xs: "Sequences: each trip reads its entry.",
        captures: "Captured values.",
        rows: "Each trip reads the sum of the tap rows that it holds.",
    }
}

named! {
    /// The results of a [`Replay`].
    ReplayValues[6] {
        carry: "The carried values after the last trip.",
        tape: "The carried values before each trip, on a tape.",
        states: "The carried values before each trip, as sequences; none in lockstep.",
        ys: "The values that each trip stores, as sequences.",
        sums: "The sums of the trips' terms.",
        tapped: "Each tap over all tap rows.",
    }
}

named! {
    /// The inputs of a trip. A step that is differentiated has only trip, live, carry and captures.
    TripInputs[7] {
        trip: "first: bool, last: bool, t: f64, t_next: f64.",
        live: "In lockstep: which rows take part.",
        carry: "The carried values before the trip.",
        states: "The state before the trip, if the loop reads states.",
        xs: "The trip's entries of the sequences.",
        captures: "Captured values.",
        rows: "The sums of the tap rows that the trip holds.",
    }
}

named! {
    /// The outputs of a trip.
    TripOutputs[5] {
        carry: "The carried values after the trip.",
        ys: "The values that are stored in sequences.",
        sums: "The terms of the sums.",
        taps: "The taps.",
        residuals: "The residuals: those that the step itself computes, then those that the step before it computes.",
    }
}

/// The indices `0..n`, for the positions of named values.
pub fn indices(n: usize) -> Vec<usize> {
    (0..n).collect()
}

/// The number of rows of a loop in lockstep, from its step; `None` if it has a single schedule.
fn rows(step: &Func) -> Option<usize> {
    match &step.node(*step.inputs().first()?).ty {
        Type::Array { shape, .. } => shape.first().copied(),
        _ => None,
    }
}

/// The number of values in a list, less those in the groups before and after.
fn rest(all: usize, others: usize) -> usize {
    all.saturating_sub(others)
}

/// The sum of counts, which a program may give as any numbers.
fn total(counts: &[usize]) -> usize {
    counts.iter().fold(0, |sum, n| sum.saturating_add(*n))
}

/// Checks that inputs and outputs of a body are arrays.
fn are_arrays(what: &str, f: &Func) -> Result<(), String> {
    let all = f.input_types().into_iter().chain(f.output_types());
    let opaque = all.into_iter().find(|ty| !matches!(ty, Type::Array { .. }));
    need(opaque.is_none(), || format!("its {what} has a {}", opaque.unwrap_or(Type::Tape)))
}

/// Checks that an array with this shape behind an axis of `num` rows, and behind `lanes` in lockstep, can exist.
fn fit_rows(types: &[Type], num: usize, lanes: Option<usize>) -> Result<(), String> {
    let one = |ty: &Type| {
        let shape = ty.shape();
        need(lanes.is_none() || shape.rank() > 0, || format!("its {ty} in lockstep has no axis of rows"))?;
        let dims = [&[num], &shape[..]].concat();
        Shape::try_new(dims).map(|_| ()).map_err(|_| format!("{num} rows of {ty} are too many elements"))
    };
    types.iter().try_for_each(one)
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
        rest(self.step.num_inputs(), total(&[4, self.num_live(), self.num_carry]))
    }

    /// The number of values that a trip taps.
    pub fn num_taps(&self) -> usize {
        rest(self.step.num_outputs(), total(&[self.num_carry, self.num_residuals()]))
    }

    /// The number of residuals of a step.
    pub fn num_residuals(&self) -> usize {
        total(&[self.num_own, self.num_first])
    }

    /// The number of operands.
    pub fn num_operands(&self) -> usize {
        let times = usize::from(self.taps.times > 0);
        total(&[2, times, self.num_carry, self.num_ext, self.num_first, self.num_captures()])
    }

    /// Checks that the bodies have as many inputs and outputs as the named groups.
    pub(super) fn fits(&self) -> Result<(), String> {
        let f = &self.attempt;
        let fixed = total(&[1, self.num_live(), self.num_carry, self.num_ext]);
        need(f.num_inputs() >= fixed, || {
            format!("its attempt has {} inputs, fewer than {fixed}", f.num_inputs())
        })?;
        let (captures, of_step) = (f.num_inputs() - fixed, self.num_captures());
        need(captures == of_step, || format!("its attempt has {captures} captures, its step {of_step}"))?;
        let outputs = total(&[4, self.num_carry, self.num_ext, self.num_taps(), self.num_residuals()]);
        need(f.num_outputs() == outputs, || {
            format!("its attempt has {} outputs, not {outputs}", f.num_outputs())
        })?;
        let of_step = total(&[4, self.num_live(), self.num_carry]);
        has_fixed("step", &self.step, (of_step, total(&[self.num_carry, self.num_residuals()])))?;
        are_arrays("attempt", f).and(are_arrays("step", &self.step))?;
        let times = Type::scalar(crate::array::DType::F64);
        fit_rows(&[times], self.taps.times, None)?;
        fit_rows(&self.step_outputs(&self.step.output_types()).taps, self.taps.num_rows(), self.rows())
    }

    /// The operands by name.
    pub fn operands<T: Clone>(&self, all: &[T]) -> SearchOperands<T> {
        let times = usize::from(self.taps.times > 0);
        let lengths = [1, 1, times, self.num_carry, self.num_ext, self.num_first, self.num_captures()];
        SearchOperands::split(all, lengths)
    }

    /// The results by name.
    pub fn values<T: Clone>(&self, all: &[T]) -> SearchValues<T> {
        SearchValues::split(all, [self.num_carry, self.num_ext, 1, 1, self.num_taps()])
    }

    /// The positions of the results.
    pub fn places(&self) -> SearchValues<usize> {
        self.values(&indices(self.num_carry + self.num_ext + 2 + self.num_taps()))
    }

    /// The inputs of the attempt by name.
    pub fn attempt_inputs<T: Clone>(&self, all: &[T]) -> AttemptInputs<T> {
        let lengths = [1, self.num_live(), self.num_carry, self.num_ext, self.num_captures()];
        AttemptInputs::split(all, lengths)
    }

    /// The outputs of the attempt by name.
    pub fn attempt_outputs<T: Clone>(&self, all: &[T]) -> AttemptOutputs<T> {
        let lengths = [3, 1, self.num_carry, self.num_ext, self.num_taps(), self.num_own, self.num_first];
        AttemptOutputs::split(all, lengths)
    }

    /// The inputs of the step, and of its inverse, by name.
    pub fn step_inputs<T: Clone>(&self, all: &[T]) -> TripInputs<T> {
        TripInputs::split(all, [4, self.num_live(), self.num_carry, 0, 0, self.num_captures(), 0])
    }

    /// The outputs of the step by name.
    pub fn step_outputs<T: Clone>(&self, all: &[T]) -> TripOutputs<T> {
        TripOutputs::split(all, [self.num_carry, 0, 0, self.num_taps(), self.num_residuals()])
    }

    /// The index of the first captured input of the attempt.
    pub fn first_attempt_capture(&self) -> usize {
        self.attempt.num_inputs() - self.num_captures()
    }

    /// The index of the first captured input of the step.
    pub fn first_step_capture(&self) -> usize {
        self.step.num_inputs() - self.num_captures()
    }
}

/// Checks the number of inputs and outputs of a body.
fn has_fixed(what: &str, f: &Func, (inputs, outputs): (usize, usize)) -> Result<(), String> {
    let (takes, gives) = (f.num_inputs(), f.num_outputs());
    need(takes >= inputs, || format!("its {what} has {takes} inputs, fewer than {inputs}"))?;
    need(gives >= outputs, || format!("its {what} has {gives} outputs, fewer than {outputs}"))
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
        are_arrays("body", &self.body)?;
        let (takes, gives) = (self.inputs(&self.body.input_types()), self.outputs(&self.body.output_types()));
        fit_rows(&[takes.rows, gives.taps].concat(), self.num_tap_rows, self.lockstep())?;
        let Some(step) = &self.step else {
            return need(self.num_states == 0, || {
                format!("it reads {} states without a step", self.num_states)
            });
        };
        need(self.is_reversed, || "it reads states but runs forward".into())?;
        let wanted = total(&[4, self.num_live(), self.num_states, self.num_captures(), self.num_rows]);
        let takes = step.num_inputs();
        need(takes == wanted, || format!("its step has {takes} inputs, not {wanted}"))?;
        let (gives, wanted) = (step.num_outputs(), total(&[self.num_states, self.num_residuals]));
        need(gives == wanted, || format!("its step has {gives} outputs, not {wanted}"))
    }

    /// The number of inputs of the body that are no captures.
    fn num_fixed_inputs(&self) -> usize {
        total(&[4, self.num_live(), self.num_carry, self.num_states, self.num_xs, self.num_rows])
    }

    /// The number of outputs of the body that are no taps.
    fn num_fixed_outputs(&self) -> usize {
        total(&[self.num_carry, self.num_ys, self.num_sums, self.num_residuals])
    }

    /// Number of captured inputs.
    pub fn num_captures(&self) -> usize {
        rest(self.body.num_inputs(), self.num_fixed_inputs())
    }

    /// The number of values that a trip taps.
    pub fn num_taps(&self) -> usize {
        rest(self.body.num_outputs(), self.num_fixed_outputs())
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
        let (tape, captures) = (usize::from(self.reads_states()), self.num_captures());
        let lengths = [1, tape, self.num_states, self.num_carry, self.num_xs, captures, self.num_rows];
        ReplayOperands::split(all, lengths)
    }

    /// The results by name.
    pub fn values<T: Clone>(&self, all: &[T]) -> ReplayValues<T> {
        ReplayValues::split(all, self.value_lengths())
    }

    /// The positions of the results.
    pub fn places(&self) -> ReplayValues<usize> {
        self.values(&indices(self.value_lengths().iter().sum()))
    }

    fn value_lengths(&self) -> [usize; 6] {
        let states = if self.lockstep().is_some() { 0 } else { self.num_carry };
        [self.num_carry, 1, states, self.num_ys, self.num_sums, self.num_taps()]
    }

    /// The inputs of the body by name.
    pub fn inputs<T: Clone>(&self, all: &[T]) -> TripInputs<T> {
        let (live, captures) = (self.num_live(), self.num_captures());
        let lengths = [4, live, self.num_carry, self.num_states, self.num_xs, captures, self.num_rows];
        TripInputs::split(all, lengths)
    }

    /// The inputs of the step that recomputes states, by name: the states are its carry.
    pub fn step_inputs<T: Clone>(&self, all: &[T]) -> TripInputs<T> {
        let (live, captures) = (self.num_live(), self.num_captures());
        TripInputs::split(all, [4, live, self.num_states, 0, 0, captures, self.num_rows])
    }

    /// The outputs of the body by name.
    pub fn outputs<T: Clone>(&self, all: &[T]) -> TripOutputs<T> {
        let lengths = [self.num_carry, self.num_ys, self.num_sums, self.num_taps(), self.num_residuals];
        TripOutputs::split(all, lengths)
    }

    /// The outputs of the step that recomputes states, by name: the states are its carry.
    pub fn step_outputs<T: Clone>(&self, all: &[T]) -> TripOutputs<T> {
        TripOutputs::split(all, [self.num_states, 0, 0, 0, self.num_residuals])
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
