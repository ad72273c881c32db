//! `Tape`: what a replay needs of a plain solve, beside its step times.

/// The data of a solve from which its accepted steps can be computed again.
#[derive(Clone, Debug, Default)]
pub(in crate::ode) struct Tape {
    /// The number of each step that an event cut short, and the end that its stages were computed for.
    pub cuts: Vec<(usize, f64)>,
    /// The numbers of the steps before which the method changed.
    pub switches: Vec<usize>,
    /// The number of stages of each step, for [`Method::Rkc2`](crate::ode::Method::Rkc2). Its spectral radius depends on
    /// rejected attempts, too.
    pub num_stages: Vec<usize>,
    /// The number of the step of each recorded event.
    pub event_steps: Vec<usize>,
    /// The number of state resets at given times.
    pub num_resets: usize,
}
