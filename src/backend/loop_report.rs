//! How loops store the states for their backward passes: the policy, its slots and the result.
//!
//! The policy and its slots are known when a program is compiled and are in its report. The result is added
//! after a run.

use super::checkpoint::cost::fewest_extra;
use super::checkpoint::{AUTO_BYTES, TapeShape};
use crate::graph::{Checkpoints, Policy};
use std::fmt;

/// How a loop stores the states for its backward pass.
///
/// Its `Display` text describes it:
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::ode::ConstantStepSize;
/// let gradient = jit(|rate: Tensor| {
///     let decayed = |rate: &Tensor| {
///         let ode = Ode::new(|_t, y: &Tensor| -(rate * y)).controller(ConstantStepSize { dt0: 0.01 });
///         ode.solve(0.0, 1.0, Tensor::ones([8])).unwrap().y1.sum()
///     };
///     grad(decayed, &rate)
/// });
/// gradient.call(1.0)?;
/// let plan = gradient.plan(&(Tensor::from(1.0),))?;
/// assert_eq!(
///     plan.loops[0].to_string(),
///     "64 bytes per state, `Auto` has 32 MiB: 524288 slots; 100 steps: every state fits: nothing is recomputed"
/// );
/// # Ok::<(), flowline::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopReport {
    /// Bytes of a state, which one step passes to the next.
    pub state_bytes: usize,
    /// Bytes of residuals that a step stores for its derivative, if there is room; 0 if there are none.
    pub residual_bytes: usize,
    /// The requested policy.
    pub policy: Policy,
    /// The maximum number of stored states; `None` for one per step.
    pub slots: Option<usize>,
    /// The result of the last run; `None` before the first run.
    pub last: Option<LoopRun>,
    shape: TapeShape,
}

/// The result of a loop's policy in a run. A loop in tiles runs once per tile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopRun {
    /// Number of times the loop ran.
    pub runs: usize,
    /// Number of steps of its longest run.
    pub steps: usize,
    /// The maximum number of states that a run stored.
    pub kept: usize,
    /// Steps that backward passes recomputed, in all runs.
    pub recomputed: u64,
    /// Steps whose stages were recomputed because there was no room to store them.
    pub recomputed_residuals: u64,
}

impl LoopReport {
    /// The report of a loop that stores its states on a tape of this shape.
    pub(super) fn new(shape: TapeShape, policy: Policy) -> LoopReport {
        let TapeShape { state_bytes, residual_bytes, num, .. } = shape;
        let slots = Some(num).filter(|&n| n != usize::MAX);
        LoopReport { state_bytes, residual_bytes, policy, slots, last: None, shape }
    }

    /// The memory budget of the states, if the policy is in bytes.
    pub fn budget_bytes(&self) -> Option<usize> {
        match self.policy {
            Policy::Checkpoint(Checkpoints::Bytes(bytes)) => Some(bytes),
            Policy::Checkpoint(Checkpoints::Auto) => Some(AUTO_BYTES),
            Policy::Checkpoint(Checkpoints::Count(_))
            | Policy::Direct
            | Policy::Reversible
            | Policy::Forward => None,
        }
    }

    /// The report after a run of this many steps.
    pub fn after(&self, steps: usize) -> LoopReport {
        LoopReport { last: Some(self.with_steps(steps)), ..self.clone() }
    }

    /// The predicted result of one run of this many steps with one backward pass.
    pub fn with_steps(&self, steps: usize) -> LoopRun {
        let kept = self.slots.unwrap_or(usize::MAX).min(steps);
        let recomputed_residuals =
            if self.residual_bytes > 0 { steps - self.shape.with_residuals(steps) } else { 0 };
        let recomputed = fewest_extra(steps, kept.max(1));
        LoopRun { runs: 1, steps, kept, recomputed, recomputed_residuals: recomputed_residuals as u64 }
    }
}

impl LoopRun {
    /// Whether every state was stored, so that no step was recomputed.
    pub fn fits(&self) -> bool {
        self.kept == self.steps && self.recomputed == 0
    }

    /// Adds the result of another run of the loop.
    pub(super) fn join(&mut self, other: LoopRun) {
        self.runs += other.runs;
        self.steps = self.steps.max(other.steps);
        self.kept = self.kept.max(other.kept);
        self.recomputed += other.recomputed;
        self.recomputed_residuals += other.recomputed_residuals;
    }
}

impl fmt::Display for LoopReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes per state", self.state_bytes)?;
        if self.residual_bytes > 0 {
            write!(f, " and {} for its stages", self.residual_bytes)?;
        }
        write!(f, ", ")?;
        let slots = self.slots.unwrap_or_default();
        match self.policy {
            Policy::Direct => write!(f, "all stored (`Direct`)")?,
            Policy::Reversible => write!(f, "the last one stored (`Reversible`)")?,
            Policy::Forward => write!(f, "none stored (`Forward`)")?,
            Policy::Checkpoint(Checkpoints::Count(_)) => write!(f, "{slots} slots (set by the caller)")?,
            Policy::Checkpoint(Checkpoints::Bytes(bytes)) => write!(f, "{bytes} bytes: {slots} slots")?,
            Policy::Checkpoint(Checkpoints::Auto) => {
                write!(f, "`Auto` has {} MiB: {slots} slots", AUTO_BYTES >> 20)?;
            }
        }
        match &self.last {
            None => Ok(()),
            Some(run) => write!(f, "; {run}"),
        }
    }
}

impl fmt::Display for LoopRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LoopRun { runs, steps, kept, recomputed, recomputed_residuals } = self;
        match runs {
            1 => write!(f, "{steps} steps: ")?,
            _ => write!(f, "{runs} runs of at most {steps} steps: ")?,
        }
        match self.fits() {
            true if *recomputed_residuals == 0 => write!(f, "every state fits: nothing is recomputed"),
            true => write!(f, "every state fits: the stages of {recomputed_residuals} steps are recomputed"),
            false => write!(f, "{kept} states stored, {recomputed} steps recomputed"),
        }
    }
}
