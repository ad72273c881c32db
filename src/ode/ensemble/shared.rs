//! The loops shared by all vector fields: attempts over [`Components`] with the vector field behind a
//! pointer.
//!
//! The two loops with the coefficients of Tsit5 inlined are the slowest part of the solver to compile. Each
//! has its own module, so that rustc compiles them in parallel (see [`Call`]).

use super::components::Components;
use super::drive::{Packs, Until, attempts};
use super::inlined::OneMethod;
use super::problems::DynField;
#[cfg(feature = "ensemble-f32")]
use crate::ode::SINGLE_LANES;
use crate::ode::{Carry, FieldError, LANES, LaneClock, Lanes, Scheme, State, VectorField, inline};
use crate::simd::{Call, Entry};
use std::marker::PhantomData;

/// Attempts with the method of the scheme.
pub(super) struct AnyMethod<'a, S, F>(PhantomData<(&'a S, F)>);

impl<'a, S: State<Clock: LaneClock> + 'a, F: VectorField<S>> Call for AnyMethod<'a, S, F> {
    type Of = F;
    type At = Scheme<'a, S>;
    type On = Until<S>;
    type Out = Carry<S>;
    type Output = Result<(), FieldError>;

    #[inline(always)]
    fn call(f: &F, scheme: &Scheme<'a, S>, until: &Until<S>, carry: &mut Carry<S>) -> Self::Output {
        attempts::<false, S, F>(f, scheme, until, carry)
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
                type On = Until<S>;
                type Out = Carry<S>;
                type Output = Result<(), FieldError>;

                #[inline(always)]
                fn call(
                    f: &Self::Of,
                    scheme: &Scheme<'a, S>,
                    until: &Until<S>,
                    carry: &mut Carry<S>,
                ) -> Self::Output {
                    OneMethod::<'a, S, Self::Of, inline::Tsit5>::call(f, scheme, until, carry)
                }
            }

            /// Runs packs whose method is Tsit5.
            pub fn run_tsit5(packs: &mut Packs<'_, $real>) -> Result<(), FieldError> {
                let attempts = Entry::<Tsit5<'_>>::at(packs.level);
                packs.drive_shared(&|f, scheme, until, carry| attempts.call(f, scheme, until, carry))
            }
        }
    };
}
tsit5!(double, f64, LANES, "Attempts by Tsit5 in f64.");
#[cfg(feature = "ensemble-f32")]
tsit5!(single, f32, SINGLE_LANES, "Attempts by Tsit5 in f32.");
