//! A step of a [replay](super::replay): its stages, and the solution within it.

use super::moving::{D, FIXED, Moving, Y};
use crate::ode::dense::Segment;
use crate::ode::stages::{First, Times, stages};
use crate::ode::stiff::{make_memory, stiff_stages};
use crate::ode::{Carry, Interpolant, Resolved, Scheme, Span, State, complete};
use crate::simd::{Level, Work, run_narrow};
use std::sync::Arc;

/// The memory of one method.
pub(super) struct Method<'a> {
    pub scheme: Scheme<'a, Y>,
    pub interpolant: Arc<Interpolant>,
    pub carry: Carry<Y>,
    weights: Vec<f64>,
}

impl<'a> Method<'a> {
    pub fn new(scheme: Scheme<'a, Y>, resolved: &Resolved, y: &Y) -> Self {
        let mut carry = Carry::new(0.0, y.clone(), scheme.tableau.num_stages());
        make_memory(&scheme, resolved, &mut carry);
        let interpolant = Arc::new(Interpolant::of(&scheme.tableau));
        let num_stages = interpolant.num_stages();
        carry.k.resize(carry.k.len().max(num_stages), y.clone());
        Method { scheme, interpolant, carry, weights: vec![0.0; num_stages] }
    }

    /// Makes the memory of a stiff method new: a Jacobian at the same values may have other derivatives.
    pub fn forget(&mut self, resolved: &Resolved, y: &Y) {
        self.carry.y.copy_of(y);
        make_memory(&self.scheme, resolved, &mut self.carry);
    }

    /// Computes the stages and y1 of the step of `field` to `end`, from the state y.
    pub fn advance(
        &mut self,
        field: &Moving<'_>,
        span: &Span<f64>,
        (y, end): (&Y, f64),
        level: Option<Level>,
    ) {
        let Method { scheme, carry, .. } = self;
        carry.y.copy_of(y);
        let times = &Times::of(scheme, span, &field.t, &end);
        if scheme.tableau.is_explicit() {
            let all = Explicit { field, scheme, times, carry };
            match level {
                Some(level) => run_narrow(level, all),
                None => all.run_by::<false>(),
            }
        } else {
            stiff_stages(field, scheme, First::Evaluate, times, &field.h, carry)
                .expect("invariant: a `vector_field!` does not fail");
        }
    }

    /// The step that was computed last.
    pub fn step<'s>(&'s mut self, field: &'s Moving<'s>, span: &'s Span<f64>, end: f64) -> Step<'s> {
        let Method { scheme, interpolant, carry, weights } = self;
        let Carry { y, y1, k, .. } = carry;
        let k = &mut k[..interpolant.num_stages()];
        Step { field, scheme, span, interpolant, end, y0: y, y1, k, weights, is_complete: false }
    }
}

/// The stages of an explicit step, compiled for a CPU level.
struct Explicit<'w, 'a> {
    field: &'w Moving<'w>,
    scheme: &'w Scheme<'a, Y>,
    times: &'w Times<f64>,
    carry: &'w mut Carry<Y>,
}

impl Explicit<'_, '_> {
    #[inline(always)]
    fn run_by<const FUSED: bool>(self) {
        let Explicit { field, scheme, times, carry } = self;
        let Carry { y, k, y1, .. } = carry;
        stages::<false, FUSED, Y, _>(field, scheme, First::Evaluate, times, &field.h, y, k, y1)
            .expect("invariant: a `vector_field!` does not fail");
    }
}

impl Work for Explicit<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.run_by::<true>();
    }
}

/// A step and its stages, in dual numbers.
pub(super) struct Step<'s> {
    pub field: &'s Moving<'s>,
    scheme: &'s Scheme<'s, Y>,
    span: &'s Span<f64>,
    interpolant: &'s Arc<Interpolant>,
    /// The end for which the stages were computed.
    end: f64,
    y0: &'s Y,
    pub y1: &'s Y,
    /// The stages, then those of the curve; the latter are valid if `is_complete`.
    k: &'s mut [Y],
    /// Scratch.
    weights: &'s mut [f64],
    is_complete: bool,
}

impl Step<'_> {
    /// Computes the stages of the curve that are missing.
    fn complete(&mut self) {
        let Step { field, scheme, span, interpolant, end, y0, y1, .. } = *self;
        if !self.is_complete {
            let times = (&field.t, &end);
            complete(field, scheme, interpolant, span, times, (y0, y1), false, self.k)
                .expect("invariant: a `vector_field!` does not fail");
            self.is_complete = true;
        }
    }

    /// The step as a segment of dense output, with its stages.
    pub fn segment(&mut self) -> (&Arc<Interpolant>, Segment<'_, Y>) {
        self.complete();
        let segment = Segment { t: self.field.t, h: self.field.h, y: self.y0, k: &*self.k };
        (self.interpolant, segment)
    }

    /// The state at the time s within the step.
    fn state_at(&mut self, s: f64) -> Y {
        let mut y = self.y1.clone();
        if s != self.end {
            self.complete();
            let segment = Segment { t: self.field.t, h: self.field.h, y: self.y0, k: &*self.k };
            segment.eval(self.interpolant, s, self.weights, &mut y);
        }
        y
    }

    /// The state at the time s within the step, and its derivative by s.
    pub fn at(&mut self, s: f64) -> (Y, Y) {
        self.complete();
        let y = self.state_at(s);
        let zero = vec![D::from(0.0); y.len()];
        let mut slope = zero.clone();
        let segment = Segment { t: self.field.t, h: self.field.h, y: self.y0, k: &*self.k };
        segment.derivative(self.interpolant, s, self.weights, &zero, &mut slope);
        (y, slope)
    }

    /// The state at the time s, as a time without derivatives.
    pub fn at_fixed(&mut self, s: f64) -> Y {
        let delta = self.field.tangent_at(s);
        if delta == FIXED {
            return self.state_at(s);
        }
        let (mut y, slope) = self.at(s);
        for (y, slope) in y.iter_mut().zip(&slope) {
            y.tangent.iter_mut().zip(&delta).for_each(|(y, delta)| *y -= delta * slope.value);
        }
        y
    }
}
