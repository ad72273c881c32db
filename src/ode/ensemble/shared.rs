//! The attempts shared by all vector fields: over [`Components`], with the vector field behind a pointer.
//!
//! Those with the coefficients of Tsit5 inlined take long to compile. In f64 and in f32 they have their own
//! module, so that rustc compiles them in parallel (see [`Call`]).

use super::components::Components;
use super::drive::{NumRunning, Packs, SpanOf, attempt_in_lanes};
use super::inlined::OneMethod;
use super::problems::DynField;
#[cfg(feature = "ensemble-f32")]
use crate::ode::SINGLE_LANES;
use crate::ode::{Carry, FieldError, LANES, LaneClock, Lanes, Scheme, State, VectorField, inline};
use crate::simd::{Bound, Call};
use std::marker::PhantomData;

/// An attempt with the method of the scheme.
pub(super) struct AnyMethod<'a, S, F>(PhantomData<(&'a S, F)>);

impl<'a, S: State<Clock: LaneClock> + 'a, F: VectorField<S>> Call for AnyMethod<'a, S, F> {
    type Of = F;
    type At = Scheme<'a, S>;
    type On = SpanOf<S>;
    type Out = Carry<S>;
    type Output = NumRunning;

    #[inline(always)]
    fn call(f: &F, scheme: &Scheme<'a, S>, span: &SpanOf<S>, carry: &mut Carry<S>) -> Self::Output {
        attempt_in_lanes::<false, S, F>(f, scheme, span, carry)
    }
}

macro_rules! tsit5 {
    ($module:ident, $real:ty, $lanes:expr, $doc:literal) => {
        #[doc = $doc]
        pub(super) mod $module {
            use super::*;

            type R = Lanes<$real, $lanes>;
            type S = Components<R>;
            struct Tsit5<'a>(PhantomData<&'a ()>);

            impl<'a> Call for Tsit5<'a> {
                type Of = DynField<'a, R>;
                type At = Scheme<'a, S>;
                type On = SpanOf<S>;
                type Out = Carry<S>;
                type Output = NumRunning;

                #[inline(always)]
                fn call(
                    f: &Self::Of,
                    scheme: &Scheme<'a, S>,
                    span: &SpanOf<S>,
                    carry: &mut Carry<S>,
                ) -> Self::Output {
                    OneMethod::<'a, S, Self::Of, inline::Tsit5>::call(f, scheme, span, carry)
                }
            }

            /// Runs packs whose method is Tsit5.
            pub fn run_tsit5(packs: &mut Packs<'_, $real>) -> Result<(), FieldError> {
                let level = packs.level;
                packs.drive_shared(&|f| Bound::at::<Tsit5<'_>>(f, level))
            }
        }
    };
}
tsit5!(double, f64, LANES, "Attempts by Tsit5 in f64.");
#[cfg(feature = "ensemble-f32")]
tsit5!(single, f32, SINGLE_LANES, "Attempts by Tsit5 in f32.");
