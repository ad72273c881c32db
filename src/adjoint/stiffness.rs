//! Stiffness detection in a recorded solve, with values that its search carries.
//!
//! The test is the one of plain states: [`StiffnessCheck`] and [`Suspicion`]. The loop that searches for accepted steps also carries the number of the next
//! step to check, so a step without a check costs a comparison and a branch. Rows in lockstep share one program
//! without a branch per row: they compute the check at each attempt and use the result only where a check is due.
//! If a program does not read when stiffness was detected, `transform::simplify` removes the checks and their
//! values. Two kinds of solves have no check: backward solves, because no program reads the result, and reversible
//! solves. The map of a reversible solve is unstable at shorter steps than the method, so a stiff solve ends before
//! stiffness is detected ([`apart`](super::apart)). The checks must not change a solve.

use super::algorithm::{Carry, Scheme};
use super::leaves::Leaves;
use super::{Batching, Options};
use crate::array::DType;
use crate::ode::{Clock, EVERY, StiffnessCheck, Suspicion};
use crate::tensor::{Tensor, cond};
use crate::tree;

/// The stiffness checks of a recorded solve.
pub(super) struct Stiffness {
    /// The check; `None` if the method cannot detect stiffness.
    look: Option<StiffnessCheck>,
    is_lockstep: bool,
}

tree! {
/// An accepted step to check.
struct Seen {
    t: Tensor,
    h: Tensor,
    num_accepted: Tensor,
    y: Leaves,
    k: Vec<Leaves>,
    /// The carried values of the checks.
    clocks: Vec<Tensor>,
}
}

/// The time of detection if nothing was detected: NaN.
pub(super) fn never() -> Tensor {
    Tensor::scalar(DType::F64, f64::NAN)
}

impl Stiffness {
    /// No checks.
    pub(super) const NONE: Stiffness = Stiffness { look: None, is_lockstep: false };

    pub(super) fn of(scheme: &Scheme<'_>, options: &Options) -> Self {
        Stiffness {
            look: StiffnessCheck::of(scheme, None),
            is_lockstep: options.batching == Batching::PerRow,
        }
    }

    /// The carried values before the first step of a search: the number of the next accepted step to check,
    /// then the suspicion.
    pub(super) fn clocks(&self) -> Vec<Tensor> {
        match self.look {
            None => vec![],
            Some(_) => after(&Tensor::scalar(DType::F64, 0.0), &Suspicion::none(&never())),
        }
    }

    /// The time at which stiffness was detected, NaN if it was not.
    pub(super) fn detected(clocks: &[Tensor]) -> Tensor {
        clocks.last().map_or_else(never, Tensor::stop_gradient)
    }

    /// The carried values after an attempt.
    pub(super) fn see(
        &self,
        scheme: &Scheme<'_>,
        clocks: &[Tensor],
        (before, attempted): (&Carry, &Carry),
    ) -> Vec<Tensor> {
        let Some(look) = &self.look else { return vec![] };
        let is_due = attempted.accepted.and(&clocks[0].le(&attempted.num_accepted));
        let mut k = attempted.k[..scheme.tableau.num_stages()].to_vec();
        // At this point attempted.k[0] is already the next step's first stage.
        k[0] = before.k[0].clone();
        let step = Seen {
            t: attempted.t.clone(),
            h: attempted.h.clone(),
            num_accepted: attempted.num_accepted.clone(),
            y: before.y.clone(),
            k,
            clocks: clocks.to_vec(),
        };
        let checked = |step: &Seen| {
            let mut scratch = step.y.clone();
            let is_suspicious =
                look.is_suspicious((&step.y, &step.h, &step.k), &scheme.tolerance, &mut scratch);
            let [suspicions, good, detected] = [1, 2, 3].map(|i: usize| step.clocks[i].clone());
            let suspicion = Suspicion::of([suspicions, good, detected]).see(&is_suspicious, &step.t);
            after(&step.num_accepted, &suspicion)
        };
        if self.is_lockstep {
            let both = checked(&step).into_iter().zip(clocks);
            return both.map(|(new, old)| is_due.select(&new, old)).collect();
        }
        cond(&is_due, &step, checked, |step| step.clocks.clone())
    }
}

/// The carried values after step number `n`.
fn after(n: &Tensor, suspicion: &Suspicion<Tensor>) -> Vec<Tensor> {
    let regular = ((n / EVERY as f64).floor() + 1.0) * EVERY as f64;
    let next = suspicion.is_raised().select(&(n + 1.0), &regular);
    let due = suspicion.has_noticed().select(&n.like(f64::INFINITY), &next);
    [&[due][..], &suspicion.clocks()].concat()
}
