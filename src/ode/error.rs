//! `ConfigError`: errors in a problem or its settings, detected before work starts if possible.

use super::shown::{ends, per_part, rounded, shown, with_span};

/// An error in a problem or its settings, or in a request for data that a solution does not have.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The ranks of an ensemble cannot work together.
    #[cfg(feature = "rayon")]
    #[error(transparent)]
    World(#[from] crate::world::WorldError),
    /// A tolerance is negative, NaN or infinite, rtol is at least 1, or both are zero.
    #[error(
        "`rtol`={rtol:e}, `atol`={atol:e}: both must be finite and at least 0, one of them above 0, and `rtol` below 1"
    )]
    Tolerance {
        /// The relative tolerance given.
        rtol: f64,
        /// The absolute tolerance given.
        atol: f64,
    },
    /// A relative tolerance below the precision of the numbers of the state.
    #[error("rtol={rtol:e}: must be 0 or at least {least:e}, the precision of the state's numbers")]
    TolerancePrecision {
        /// The relative tolerance given.
        rtol: f64,
        /// The distance from 1 to the next larger number.
        least: f64,
    },
    /// Two selections of every n-th step of which neither contains the other.
    #[error("save_at: every {first}th and every {second}th accepted step: select one of them")]
    SavedStrides {
        /// n of the first selection.
        first: usize,
        /// n of the second selection.
        second: usize,
    },
    /// The number of values of a tolerance matches neither the components nor the parts of the state.
    #[error(
        "{name} has {len} values, but the state has {components} components: give one value or {components} values{}", per_part(*parts)
    )]
    ToleranceLength {
        /// rtol or atol.
        name: &'static str,
        /// Number of values given.
        len: usize,
        /// Components of the state.
        components: usize,
        /// Parts of the state: the members of a tuple or struct, counted inside nested ones; on tensors the
        /// leaves; else 1.
        parts: usize,
    },
    /// A discontinuity, a time of `on_times` or a row of an input that is not among the times of `StepTo`.
    #[error("a step must end at t={}, but the times of `StepTo` do not contain it: add it", shown(*t))]
    StopBesideTimes {
        /// The time.
        t: f64,
    },
    /// A time in `tstops`, `discontinuities` or `on_times` that is not finite.
    #[error("{name}={}: must be finite", shown(*value))]
    Stop {
        /// The setting.
        name: &'static str,
        /// The value.
        value: f64,
    },
    /// The interval of a solve exceeds the rows of an input.
    #[error(transparent)]
    Input(#[from] super::InterpolationError),
    /// `tstops` or `discontinuities` were given to a solve whose interval is traced.
    #[error("`{name}` needs t0 and t1 as numbers, but they are traced: pass numbers, or leave `{name}` out")]
    StopsOfUnknownInterval {
        /// The setting.
        name: &'static str,
    },
    /// The rows for accepted steps of a solve on tensors would use too much memory.
    #[error(
        "save_at: a solve on tensors allocates rows for up to {steps} accepted steps: {rows} rows take {bytes} bytes, over the limit of {most}; lower `max_steps` or save at given times"
    )]
    SavedSteps {
        /// The maximum number of accepted steps.
        steps: usize,
        /// The number of rows for the saved steps.
        rows: usize,
        /// Bytes of these rows.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// The rows that record the events of a solve on tensors would be too large.
    #[error(
        "events: the records of {rows} events take {bytes} bytes, over the limit of {most}; lower `max_events`"
    )]
    EventRecordsTooLarge {
        /// The number of rows for events.
        rows: usize,
        /// Bytes of these rows.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// Independent steps per row were requested, but the state has no rows.
    #[error(
        "batching: the first axes of all leaves of the state must have the same length, the number of rows, but the leaves have shapes {shapes}; use `Batching::Joint`"
    )]
    NoRows {
        /// The shape of each leaf.
        shapes: String,
    },
    /// Groups of 0 rows.
    #[error("batching: the group size is 0; it must be at least 1")]
    EmptyGroups,
    /// Per-component tolerances, or a mass matrix, for groups of different sizes.
    #[error(
        "batching: {rows} rows in groups of {size} leave a smaller last group, which per-component tolerances and a mass matrix do not fit; choose a group size that divides {rows}"
    )]
    UnevenGroups {
        /// The number of rows.
        rows: usize,
        /// Rows per group.
        size: usize,
    },
    /// A time to save at lies outside the interval.
    #[error("save_at ts[{index}]={} lies outside the interval from t0={} to t1={}", shown(*t), shown(*t0), shown(*t1))]
    SavedTime {
        /// Its index.
        index: usize,
        /// The time.
        t: f64,
        /// The start of the solve.
        t0: f64,
        /// Its end.
        t1: f64,
    },
    /// A solution was evaluated outside its interval, or a `Stepper` outside its last step.
    #[error("t={} lies outside the interval from t={} to t={}, in which the solution can be evaluated", shown(*t), shown(*t0), shown(*t1))]
    OutsideInterval {
        /// The time.
        t: f64,
        /// The start of the interval.
        t0: f64,
        /// The end of the interval.
        t1: f64,
    },
    /// A solution does not contain the requested data.
    #[error("the solution holds no {what}; `save_at` requests dense output, and `event` requests events")]
    NotSaved {
        /// The missing data.
        what: &'static str,
    },
    /// t0, t1 or a given time is NaN or infinite; t1 may be infinite if something else can end the solve.
    #[error("{name}={}: must be finite; t1 may be infinite if an event or `on_step` can end the solve", shown(*value))]
    Time {
        /// `t0` or `t1`; `ts` for the times of `odeint`; `save_at ts` for saved times on tensors.
        name: &'static str,
        /// The value.
        value: f64,
    },
    /// A component of y0 is NaN or infinite.
    #[error("component {component} of y0 is not finite")]
    InitialState {
        /// Its index.
        component: usize,
    },
    /// dt0 is zero, NaN, infinite, or points away from t1.
    #[error("dt0={dt0:e}: must be finite and not 0; a negative dt0 needs t1 < t0{}", with_span(*span))]
    FirstStep {
        /// The first step size given.
        dt0: f64,
        /// t1 - t0.
        span: f64,
    },
    /// A first step size was given with `StepTo`, whose times set all step sizes.
    #[error("dt0={dt0:e} was given with `StepTo`, whose times set all step sizes: remove one of the two")]
    FirstStepBesideTimes {
        /// The first step size given.
        dt0: f64,
    },
    /// A first step size was given twice.
    #[error("dt0={dt0:e} was given with `{controller}`, which already has a dt0: remove one of the two")]
    FirstStepTwice {
        /// The step size given to the builder.
        dt0: f64,
        /// The controller that already has a first step size.
        controller: &'static str,
    },
    /// `y_mut` of a stepper changed the shape of the state.
    #[error("`y_mut` changed y, {change}: y must keep its shape; start a new stepper for another shape")]
    StateShape {
        /// The part of the state, and its shapes before and after.
        change: String,
    },
    /// A setting was given to a solve that does not read it.
    #[error("`{setting}` has no effect {place}: leave it out")]
    UnusedSetting {
        /// The setting.
        setting: &'static str,
        /// The place where the setting has no effect.
        place: &'static str,
    },
    /// A closure in a sensitivity solve.
    #[error("`{setting}` is a closure, without a derivative: in `forward_sensitivity` use `{instead}`")]
    NoDerivative {
        /// The setting.
        setting: &'static str,
        /// The setting for functions of a `vector_field!`.
        instead: &'static str,
    },
    /// A mass matrix whose size differs from the state's.
    #[error("`{setting}` has size {found}, but the state has {components} components")]
    LinearShape {
        /// The setting.
        setting: &'static str,
        /// Its size.
        found: usize,
        /// Components of the state.
        components: usize,
    },
    /// A mass matrix with an entry that is not finite.
    #[error("`mass_matrix` has the entry {}: entries must be finite", shown(*value))]
    MatrixEntry {
        /// The entry.
        value: f64,
    },
    /// A sparsity pattern with an entry outside the Jacobian.
    #[error(
        "`jacobian_sparsity` has the entry ({row}, {column}), which is outside the {components} x {components} Jacobian"
    )]
    SparsityEntry {
        /// Its row.
        row: usize,
        /// Its column.
        column: usize,
        /// Components of the state.
        components: usize,
    },
    /// A y0 that does not satisfy the algebraic equations: those without a derivative, or combinations of
    /// equations in which the derivatives cancel.
    #[error(
        "y0 violates algebraic equation {equation}: y[{component}]={given:?} would have to be about {}, {tolerances:.1e} tolerances away; choose y0 such that the algebraic equations hold",
        rounded(*needed, *given)
    )]
    InconsistentStart {
        /// The equation with the largest residual relative to its terms, counted from 0 among all equations.
        equation: usize,
        /// The component that differs by the most tolerances from a state that satisfies the equations.
        component: usize,
        /// Its value in y0.
        given: f64,
        /// Its value in that state.
        needed: f64,
        /// The difference in tolerances.
        tolerances: f64,
    },
    /// Algebraic equations whose index is above 1.
    #[error(
        "the algebraic equations do not determine y[{component}] at t0={t0}, so their index is above 1: replace them by their derivatives with respect to t until they do"
    )]
    HigherIndex {
        /// The component.
        component: usize,
        /// The start of the solve.
        t0: f64,
    },
    /// A Jacobian given by the user that differs from finite differences by more than 10 %.
    #[error(
        "`jacobian` gives df[{row}]/dy[{column}] = {given:?} at t={t}, but finite differences give {difference:?}: correct the function, or leave it out"
    )]
    WrongJacobian {
        /// The row of the entry.
        row: usize,
        /// The column of the entry.
        column: usize,
        /// The time of the comparison.
        t: f64,
        /// The given entry.
        given: f64,
        /// The entry by finite differences.
        difference: f64,
    },
    /// A sparsity pattern that leaves out an entry of the Jacobian.
    #[error(
        "`jacobian_sparsity` leaves out entry ({row}, {column}), but df[{row}]/dy[{column}] = {difference:?} at t={t}: add the entry, or widen the band"
    )]
    SparsityTooNarrow {
        /// The row of the entry.
        row: usize,
        /// The column of the entry.
        column: usize,
        /// The time of the comparison.
        t: f64,
        /// The entry by finite differences.
        difference: f64,
    },
    /// A method that cannot run in this way.
    #[error("{method} does not run {place}: {remedy}")]
    MethodPlace {
        /// The method.
        method: String,
        /// The place where the method does not run.
        place: &'static str,
        /// The alternative.
        remedy: &'static str,
    },
    /// The times of `save_at` or of `StepTo` are out of order.
    #[error(
        "{name} ts[{index}]={}, ts[{}]={}: the times must be in order from t0 to t1, and the times of `StepTo` must differ",
        shown(*previous), index + 1, shown(*next)
    )]
    TimesNotMonotone {
        /// `save_at` or `StepTo`.
        name: &'static str,
        /// The index of the first time that is out of order with the next one.
        index: usize,
        /// The time at this index.
        previous: f64,
        /// The next time.
        next: f64,
    },
    /// The times do not start at t0 and end at t1.
    #[error(
        "the times of `StepTo` {}, but the solve runs from t0={} to t1={}: they must agree", ends(*first, *last), shown(*t0), shown(*t1)
    )]
    TimesEnds {
        /// The first time, NaN if there is none.
        first: f64,
        /// The last time, NaN if there is none.
        last: f64,
        /// The start of the solve.
        t0: f64,
        /// Its end.
        t1: f64,
    },
    /// Adaptive steps with a method that has no error estimate.
    #[error(
        "{method} has no error estimate: for constant steps, set dt0 and leave out the controller; for adaptive steps, choose a method with an estimate, such as tsit5"
    )]
    NoErrorEstimate {
        /// The method.
        method: String,
    },
    /// A part of a custom tableau has the wrong length.
    #[error("tableau \"{tableau}\": {part}: expected {expected}, found {found}")]
    TableauShape {
        /// The tableau's name.
        tableau: String,
        /// Which part of it.
        part: String,
        /// The numbers or rows found.
        found: usize,
        /// The numbers or rows expected.
        expected: usize,
    },
    /// A custom tableau holds a number that is not finite.
    #[error("tableau \"{tableau}\": {part} has {} at index {index}: all numbers must be finite", shown(*value))]
    TableauNumber {
        /// The tableau's name.
        tableau: String,
        /// Which part of it.
        part: String,
        /// Where in that part.
        index: usize,
        /// The number.
        value: f64,
    },
    /// A row of a custom tableau does not sum to the stage's c.
    #[error(
        "tableau \"{tableau}\": the row of stage {stage} sums to {}, but c[{stage}]={}: they must agree", shown(*sum), shown(*c)
    )]
    TableauRowSum {
        /// The tableau's name.
        tableau: String,
        /// The stage, counted from 0.
        stage: usize,
        /// The sum of its row.
        sum: f64,
        /// Its time.
        c: f64,
    },
    /// A custom tableau violates an order condition.
    #[error(
        "tableau \"{tableau}\": {weights}: the order {nodes} condition of the tree {tree} is off by {residual:e}; check the coefficients"
    )]
    TableauOrder {
        /// The tableau's name.
        tableau: String,
        /// Which weights: those of the solution, of the estimate or of the dense output.
        weights: &'static str,
        /// The rooted tree: a dot for the single node, else its children in brackets.
        tree: String,
        /// The number of its nodes, which is the order of the condition.
        nodes: u32,
        /// The residual of the condition.
        residual: f64,
    },
    /// The given order cannot be checked.
    #[error(
        "tableau \"{tableau}\": order {order} cannot be checked; order conditions are generated up to order {max}"
    )]
    TableauOrderAsked {
        /// The tableau's name.
        tableau: String,
        /// The order given.
        order: u32,
        /// The highest order that can be checked.
        max: u32,
    },
    /// The error estimate of a custom tableau is always 0, or its order is 0.
    #[error(
        "tableau \"{tableau}\": b_embedded must differ from b, and error_order={error_order} must be at least 1"
    )]
    TableauEstimate {
        /// The tableau's name.
        tableau: String,
        /// The error order given.
        error_order: u32,
    },
    /// The dense output of a custom tableau does not end at y1.
    #[error(
        "tableau \"{tableau}\": the dense weight of stage {stage} is {} at the end of the step, but b={}: they must agree", shown(*at_end), shown(*b)
    )]
    TableauDenseEnd {
        /// The tableau's name.
        tableau: String,
        /// The stage, counted from 0.
        stage: usize,
        /// The weight at theta = 1.
        at_end: f64,
        /// The weight of y1.
        b: f64,
    },
    /// A controller parameter, `max_steps`, `dt_min` or `dt_max` is out of range.
    #[error("{parameter}={}: must be {range}", shown(*value))]
    Controller {
        /// The parameter or setting.
        parameter: &'static str,
        /// The value.
        value: f64,
        /// The allowed range.
        range: &'static str,
    },
    /// No method has this name.
    #[error("unknown method \"{name}\": choose one of {known}")]
    UnknownMethod {
        /// The name given.
        name: String,
        /// The known names.
        known: String,
    },
    /// The chosen adjoint cannot differentiate this solve.
    #[error("{adjoint} has no gradient of this solve: {why}")]
    Adjoint {
        /// Its name.
        adjoint: &'static str,
        /// The reason.
        why: String,
    },
}
