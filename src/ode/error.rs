//! `ConfigError`: what is wrong with a problem, found before work starts where that is possible.

/// Why a solve could not run, or could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A tolerance is negative, NaN or infinite, or both are zero.
    #[error(
        "tolerances rtol={rtol:e}, atol={atol:e}: both must be finite and at least 0, and one of them above 0"
    )]
    Tolerance {
        /// The relative tolerance asked for.
        rtol: f64,
        /// The absolute tolerance asked for.
        atol: f64,
    },
    /// A tolerance has the wrong number of entries.
    #[error(
        "{name} has {len} numbers for a state of {components} components in {parts} parts: give one number, one a component or one a part"
    )]
    ToleranceLength {
        /// rtol or atol.
        name: &'static str,
        /// How many numbers were given.
        len: usize,
        /// Components of the state.
        components: usize,
        /// Parts that it is made of.
        parts: usize,
    },
    /// A time to land on that the times of `StepTo` leave out.
    #[error("a step is to end at t={t}, which is not among the times of `StepTo`: put it there")]
    StopBesideTimes {
        /// The time.
        t: f64,
    },
    /// A time in `tstops` or `discontinuities` that is not finite.
    #[error("{name}={value}: must be finite")]
    Stop {
        /// `tstops` or `discontinuities`.
        name: &'static str,
        /// What it was.
        value: f64,
    },
    /// Times to land on were given to a solve whose interval is a value of the trace.
    #[error("{name}: t0 and t1 must be numbers, not traced values, for steps to end on given times")]
    StopsOfUnknownInterval {
        /// `tstops` or `discontinuities`.
        name: &'static str,
    },
    /// Steps that a solve on tensors may accept would fill more memory than is sane.
    #[error(
        "save_at: a solve on tensors keeps room for all the steps it may accept, here {steps}: {rows} rows of {bytes} bytes together, more than {most}; set `max_steps` to as many as the solve needs, or save times"
    )]
    SavedSteps {
        /// The most steps that it may accept.
        steps: usize,
        /// Rows for those that are kept.
        rows: usize,
        /// Bytes of these rows.
        bytes: usize,
        /// The most there may be.
        most: usize,
    },
    /// The rows that record the events of a solve on tensors would be too large.
    #[error(
        "events: the records of {rows} events take {bytes} bytes of states, over the limit of {most}; lower `max_events`"
    )]
    EventRecordsTooLarge {
        /// Rows for events.
        rows: usize,
        /// Bytes of these rows.
        bytes: usize,
        /// The most there may be.
        most: usize,
    },
    /// A batch of rows that share no steps was asked for of a state without rows.
    #[error(
        "batching: rows are the first axis of every leaf of the state, of one length, but the leaves have shapes {shapes}"
    )]
    NoRows {
        /// The shape of each leaf.
        shapes: String,
    },
    /// Groups of no rows.
    #[error("batching: a group has at least one row")]
    EmptyGroups,
    /// Tolerances by component for groups of different sizes.
    #[error(
        "batching: {rows} rows in groups of {size} leave a smaller one, for which there are no tolerances by component"
    )]
    UnevenGroups {
        /// Rows in all.
        rows: usize,
        /// Rows of a group.
        size: usize,
    },
    /// A time to save at lies outside the interval.
    #[error("save_at ts[{index}]={t} lies outside of the interval from t0={t0} to t1={t1}")]
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
    /// A dense solution was asked for a time it does not cover.
    #[error("t={t} lies outside of the solution, which runs from t={t0} to t={t1}")]
    OutsideInterval {
        /// The time.
        t: f64,
        /// Where the solution starts.
        t0: f64,
        /// Where it ends.
        t1: f64,
    },
    /// Something was asked of a solution that it did not keep.
    #[error("the solution has no {what}: ask for it by `save_at`")]
    NotSaved {
        /// What.
        what: &'static str,
    },
    /// An end of the interval is NaN, or infinite with nothing else to end the solve.
    #[error(
        "{name}={value}: the ends of the interval must be finite; t1 may be infinite where an event or `on_step` can end the solve"
    )]
    Time {
        /// t0 or t1.
        name: &'static str,
        /// What it was.
        value: f64,
    },
    /// A component of y0 is NaN or infinite.
    #[error("component {component} of y0 is not finite")]
    InitialState {
        /// Its index.
        component: usize,
    },
    /// dt0 is zero, NaN, infinite, or leads away from t1.
    #[error("dt0={dt0:e}: must be finite, not 0, and positive or of the sign of t1 - t0 = {span:e}")]
    FirstStep {
        /// The first step size asked for.
        dt0: f64,
        /// t1 - t0.
        span: f64,
    },
    /// A first step size was given to a controller that takes its steps from a list.
    #[error("dt0={dt0:e} was given beside `StepTo`, whose times say how long each step is: leave out one")]
    FirstStepBesideTimes {
        /// The first step size asked for.
        dt0: f64,
    },
    /// A first step size was given twice.
    #[error("dt0={dt0:e} was given beside `{controller}`, which has a dt0 already: leave out one")]
    FirstStepTwice {
        /// The one given to the builder.
        dt0: f64,
        /// The controller that has one.
        controller: &'static str,
    },
    /// A setting was given to a solve that does not read it.
    #[error("`{setting}` has no effect {place}: leave it out")]
    UnusedSetting {
        /// The setting.
        setting: &'static str,
        /// Where it is not read.
        place: &'static str,
    },
    /// A matrix or pattern of another size than the state's.
    #[error("`{setting}` is of {found} equations, the state has {components} components")]
    LinearShape {
        /// The setting.
        setting: &'static str,
        /// Its equations.
        found: usize,
        /// Components of the state.
        components: usize,
    },
    /// A mass matrix with an entry that is not finite.
    #[error("`mass_matrix` has the entry {value}: entries must be finite")]
    MassEntry {
        /// The entry.
        value: f64,
    },
    /// A sparsity pattern with an entry that the Jacobian does not have.
    #[error(
        "`jacobian_sparsity` has the entry ({row}, {column}), the Jacobian of {components} components has not"
    )]
    SparsityEntry {
        /// Its row.
        row: usize,
        /// Its column.
        column: usize,
        /// Components of the state.
        components: usize,
    },
    /// A y0 that does not fulfill the constraints of a mass matrix.
    #[error(
        "y0 violates algebraic equation {equation} by {residual:e}: choose y0 with f[{equation}](t0, y0) = 0"
    )]
    InconsistentStart {
        /// The equation, counted from 0 among all of them.
        equation: usize,
        /// `f[equation](t0, y0)`.
        residual: f64,
    },
    /// A method that the way of running does not have.
    #[error("{method} does not run {place}: {remedy}")]
    MethodPlace {
        /// The method.
        method: String,
        /// Where it does not run.
        place: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },
    /// The times are not monotone.
    #[error("ts[{index}]={previous}, ts[{}]={next}: the times must run strictly from t0 to t1", index + 1)]
    TimesNotMonotone {
        /// Where the order breaks.
        index: usize,
        /// The time there.
        previous: f64,
        /// The one after it.
        next: f64,
    },
    /// The times do not start at t0 and end at t1.
    #[error(
        "the times of `StepTo` run from {first} to {last}, the solve from t0={t0} to t1={t1}: they must agree"
    )]
    TimesEnds {
        /// The first time, NaN where there is none.
        first: f64,
        /// The last time, NaN where there is none.
        last: f64,
        /// The start of the solve.
        t0: f64,
        /// Its end.
        t1: f64,
    },
    /// Adaptive steps were asked of a method that estimates no error.
    #[error(
        "{method} has no error estimate to adapt its steps by: give a dt0 for constant steps, or take one with an estimate such as tsit5"
    )]
    NoErrorEstimate {
        /// The method.
        method: String,
    },
    /// Parts of a custom table do not fit together.
    #[error("tableau \"{tableau}\": {part}: {found} where {expected} belong")]
    TableauShape {
        /// The table's name.
        tableau: String,
        /// Which part of it.
        part: String,
        /// How many numbers or rows it has.
        found: usize,
        /// How many belong there.
        expected: usize,
    },
    /// A custom table holds a number that is not finite.
    #[error("tableau \"{tableau}\": {part} has {value} at {index}: its numbers must be finite")]
    TableauNumber {
        /// The table's name.
        tableau: String,
        /// Which part of it.
        part: String,
        /// Where in that part.
        index: usize,
        /// What stands there.
        value: f64,
    },
    /// A row of a custom table does not sum to the stage's time.
    #[error("tableau \"{tableau}\": the row of stage {stage} sums to {sum}, but c[{stage}]={c}")]
    TableauRowSum {
        /// The table's name.
        tableau: String,
        /// The stage, counted from 0.
        stage: usize,
        /// The sum of its row.
        sum: f64,
        /// Its time.
        c: f64,
    },
    /// An order condition does not hold for a custom table.
    #[error(
        "tableau \"{tableau}\": {weights} miss the condition of order {nodes} of the tree {tree} by {residual:e}"
    )]
    TableauOrder {
        /// The table's name.
        tableau: String,
        /// Which weights: those of the solution, of the estimate, of the dense output.
        weights: &'static str,
        /// The rooted tree: a dot for the single node, else its children in brackets.
        tree: String,
        /// Its nodes, the order that the condition belongs to.
        nodes: u32,
        /// What is left of the condition.
        residual: f64,
    },
    /// An order was asked for that nobody can check.
    #[error("tableau \"{tableau}\": order {order} was asked for, conditions are generated up to order {max}")]
    TableauOrderAsked {
        /// The table's name.
        tableau: String,
        /// The order asked for.
        order: u32,
        /// The highest there is.
        max: u32,
    },
    /// The error estimate of a custom table estimates nothing.
    #[error(
        "tableau \"{tableau}\": b_embedded must differ from b, and error_order={error_order} must be at least 1"
    )]
    TableauEstimate {
        /// The table's name.
        tableau: String,
        /// The power of h asked for.
        error_order: u32,
    },
    /// The dense output of a custom table does not end at the solution.
    #[error(
        "tableau \"{tableau}\": the dense weight of stage {stage} is {at_end} at the end of the step, where b={b}"
    )]
    TableauDenseEnd {
        /// The table's name.
        tableau: String,
        /// The stage, counted from 0.
        stage: usize,
        /// The weight at theta = 1.
        at_end: f64,
        /// The weight of the solution.
        b: f64,
    },
    /// A controller's number lies outside its range.
    #[error("{parameter}={value}: must be {range}")]
    Controller {
        /// Which number.
        parameter: &'static str,
        /// What it was.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
    /// No method has this name.
    #[error("unknown method \"{name}\": take one of {known}")]
    UnknownMethod {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A gradient that the chosen adjoint does not have.
    #[error("{adjoint} has no gradient of this solve: {why}")]
    Adjoint {
        /// Its name.
        adjoint: &'static str,
        /// What is in the way.
        why: String,
    },
}
