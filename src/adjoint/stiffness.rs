//! Whether a recorded solve is stiff: what its search carries to notice it.
//!
//! The test is `ode`'s: [`Look`] and [`Suspicion`]. When the next look is due is a carried number too, so a step without a
//! look costs a comparison and a branch. Rows in lockstep have one program for all of them and no branch each: there the
//! look is computed at each attempt and kept where it is due. A program that does not ask when stiffness was noticed
//! carries nothing of it: `transform::simplify` leaves out what nobody reads. Two kinds of solves have no look: backward
//! ones, since it is reported to nobody, and reversible ones, whose map is unstable at shorter steps than the method's,
//! so that a stiff one ends before it can be reported ([`apart`](super::apart)). Nothing here may change a solve.

use super::algorithm::{Carry, Scheme};
use super::leaves::Leaves;
use super::{Batching, Options};
use crate::array::DType;
use crate::ode::{Clock, EVERY, Look, Suspicion};
use crate::tensor::{Tensor, cond};
use crate::tree;

/// The looks at a recorded solve.
pub(super) struct Stiffness {
    /// What a look needs; none where the method cannot detect stiffness.
    look: Option<Look>,
    is_lockstep: bool,
}

tree! {
/// An accepted step that is looked at.
struct Seen {
    t: Tensor,
    h: Tensor,
    num_accepted: Tensor,
    y: Leaves,
    k: Vec<Leaves>,
    /// What was carried.
    clocks: Vec<Tensor>,
}
}

/// A time that nothing was noticed at.
pub(super) fn never() -> Tensor {
    Tensor::scalar(DType::F64, f64::NAN)
}

impl Stiffness {
    /// None.
    pub(super) const NONE: Stiffness = Stiffness { look: None, is_lockstep: false };

    pub(super) fn of(scheme: &Scheme<'_>, options: &Options) -> Self {
        Stiffness { look: Look::of(scheme, None), is_lockstep: options.batching == Batching::PerRow }
    }

    /// What a search carries before its first step: the accepted step to look at next, then the suspicion.
    pub(super) fn clocks(&self) -> Vec<Tensor> {
        match self.look {
            None => vec![],
            Some(_) => after(&Tensor::scalar(DType::F64, 0.0), &Suspicion::none(&never())),
        }
    }

    /// When stiffness was noticed, NaN if it was not.
    pub(super) fn noticed(clocks: &[Tensor]) -> Tensor {
        clocks.last().map_or_else(never, Tensor::stop_gradient)
    }

    /// What is carried behind an attempt.
    pub(super) fn see(
        &self,
        scheme: &Scheme<'_>,
        clocks: &[Tensor],
        (before, attempted): (&Carry, &Carry),
    ) -> Vec<Tensor> {
        let Some(look) = &self.look else { return vec![] };
        let is_due = attempted.accepted.and(&clocks[0].le(&attempted.num_accepted));
        let mut k = attempted.k[..scheme.tableau.num_stages()].to_vec();
        // By now it is the next step's.
        k[0] = before.k[0].clone();
        let step = Seen {
            t: attempted.t.clone(),
            h: attempted.h.clone(),
            num_accepted: attempted.num_accepted.clone(),
            y: before.y.clone(),
            k,
            clocks: clocks.to_vec(),
        };
        let looked = |step: &Seen| {
            let mut scratch = step.y.clone();
            let is_suspicious =
                look.is_suspicious((&step.y, &step.h, &step.k), &scheme.tolerance, &mut scratch);
            let [suspicions, good, noticed] = [1, 2, 3].map(|i: usize| step.clocks[i].clone());
            let suspicion = Suspicion::of([suspicions, good, noticed]).see(&is_suspicious, &step.t);
            after(&step.num_accepted, &suspicion)
        };
        if self.is_lockstep {
            let both = looked(&step).into_iter().zip(clocks);
            return both.map(|(new, old)| is_due.select(&new, old)).collect();
        }
        cond(&is_due, &step, looked, |step| step.clocks.clone())
    }
}

/// What is carried behind step number `n`.
fn after(n: &Tensor, suspicion: &Suspicion<Tensor>) -> Vec<Tensor> {
    let regular = ((n / EVERY as f64).floor() + 1.0) * EVERY as f64;
    let next = suspicion.is_raised().select(&(n + 1.0), &regular);
    let due = suspicion.has_noticed().select(&n.like(f64::INFINITY), &next);
    [&[due][..], &suspicion.clocks()].concat()
}
