//! The loop of attempts of host values, compiled for the machine's instructions and for a method's numbers.
//!
//! Only the attempts ([`Driven`]) are compiled for each field, with the field inlined. All else asks the field through a
//! pointer, a call or two a solve, and is compiled once a kind of state. It knows instructions, methods and when a loop is
//! worth being compiled; what becomes of a step that was accepted it must never know.

use super::attempt::attempt_with;
use super::{Carry, Field, FieldFailure, HostState, Method, Native, Scheme, Span, status};
use crate::simd::{Work, is_fused, run_narrow};

/// Whether optimised loops are built for each method: not in builds for debugging, where compiling counts more
/// and the plain loop gives the same bits.
pub(super) const UNROLL: bool = !cfg!(debug_assertions);

/// A field with its loop of attempts.
pub(super) trait Driven<Y: HostState>: Field<Y> {
    /// Attempts until as many steps are accepted as `run` says.
    fn attempts(&self, native: Native, run: Run<'_, Y>) -> Result<u64, FieldFailure<f64>>;
}

impl<Y: HostState, F: Field<Y>> Driven<Y> for F {
    /// In builds for debugging the loop too asks the field through a pointer, so that there is one loop a kind of state
    /// and not one a field: the same bits, and tests are compiled in half the time.
    fn attempts(&self, native: Native, run: Run<'_, Y>) -> Result<u64, FieldFailure<f64>> {
        #[cfg(not(debug_assertions))]
        let f = self;
        #[cfg(debug_assertions)]
        let f = &(self as &dyn Field<Y>);
        attempts(native, Attempts { f, run })
    }
}

/// Attempts until `most` steps are accepted: compiled for the machine's instructions, and for the method's numbers
/// where the state is small. Never for AVX-512: few components gain nothing from wider registers, and all of them lose
/// from code that is compiled twice (Vern9 on Lorenz: 205 ns a step against 182, 400 components on the heap alike).
fn attempts<Y: HostState, F: Field<Y>>(
    Native { method, level }: Native,
    all: Attempts<'_, Y, F>,
) -> Result<u64, FieldFailure<f64>> {
    if !is_fused(level) {
        return all.run_plainly();
    }
    macro_rules! by {
        ($($small:ident)* ; $($large:ident)*) => {
            match method {
                $( Some(Method::$small) if Y::UNROLLED && UNROLL => {
                    run_narrow(level, Known::<{ Method::$small as usize }, true, Y, F>(all))
                } )*
                $( Some(Method::$large) if Y::UNROLLED && UNROLL => {
                    all.each_by(|one| run_narrow(level, Known::<{ Method::$large as usize }, false, Y, F>(one)))
                } )*
                _ => run_narrow(level, all),
            }
        };
    }
    by!(Rk4 Bosh3 Dopri5 Tsit5; Vern7 Dop853 Vern9)
}

/// Attempts of one solve, until `most` steps are accepted; their ends are added to `knots`.
pub(super) struct Run<'a, Y: HostState> {
    pub scheme: &'a Scheme<'a, Y>,
    pub span: &'a Span<f64>,
    pub carry: &'a mut Carry<Y>,
    pub most: u64,
    pub knots: &'a mut Vec<f64>,
}

/// [`Run`] by a field.
struct Attempts<'a, Y: HostState, F> {
    f: &'a F,
    run: Run<'a, Y>,
}

impl<Y: HostState, F: Field<Y>> Attempts<'_, Y, F> {
    /// Not by [`each_by`](Self::each_by): a closure of these instructions is not inlined, and calls the C library.
    #[inline(always)]
    fn run_by<const UNROLLED: bool, const FUSED: bool>(self) -> Result<u64, FieldFailure<f64>> {
        let Attempts { f, run: Run { scheme, span, carry, most, knots } } = self;
        let mut accepted = 0;
        while accepted < most && carry.status == status::RUNNING {
            let run = Run { scheme, span, carry, most, knots };
            accepted += Attempts { f, run }.once::<UNROLLED, FUSED>()?;
        }
        Ok(accepted)
    }

    /// Without instructions that every processor of the last ten years has: behind a pointer, so that what hardly anyone
    /// runs is not compiled for each field.
    #[cfg(target_arch = "x86_64")]
    fn run_plainly(self) -> Result<u64, FieldFailure<f64>> {
        let f: &dyn Field<Y> = self.f;
        Attempts { f: &f, run: self.run }.run_by::<false, false>()
    }
    #[cfg(not(target_arch = "x86_64"))]
    fn run_plainly(self) -> Result<u64, FieldFailure<f64>> {
        self.run_by::<false, false>()
    }

    /// One attempt.
    #[inline(always)]
    fn once<const UNROLLED: bool, const FUSED: bool>(self) -> Result<u64, FieldFailure<f64>> {
        let Run { scheme, span, carry, knots, .. } = self.run;
        attempt_with::<UNROLLED, FUSED, Y, F>(self.f, scheme, span, carry)?;
        if carry.accepted {
            knots.push(carry.t);
        }
        Ok(u64::from(carry.accepted))
    }

    /// One attempt after the other by `once`.
    ///
    /// For methods of many numbers: in a loop compiled with them, the optimiser would hoist a hundred coefficients out
    /// into spilled registers (Dop853 on Lorenz: 317 ns a step against 190, Vern9 458 against 183).
    #[inline(always)]
    fn each_by(
        self,
        once: impl Fn(Attempts<'_, Y, F>) -> Result<u64, FieldFailure<f64>>,
    ) -> Result<u64, FieldFailure<f64>> {
        let Attempts { f, run: Run { scheme, span, carry, most, knots } } = self;
        let mut accepted = 0;
        while accepted < most && carry.status == status::RUNNING {
            accepted += once(Attempts { f, run: Run { scheme, span, carry, most, knots } })?;
        }
        Ok(accepted)
    }
}

impl<Y: HostState, F: Field<Y>> Work for Attempts<'_, Y, F> {
    type Output = Result<u64, FieldFailure<f64>>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        self.run_by::<false, true>()
    }
}

/// [`Attempts`] by a method whose numbers are known where this is compiled, stages written out: all of them, or one
/// attempt where not `LOOP`.
struct Known<'a, const METHOD: usize, const LOOP: bool, Y: HostState, F>(Attempts<'a, Y, F>);

impl<const METHOD: usize, const LOOP: bool, Y: HostState, F: Field<Y>> Work
    for Known<'_, METHOD, LOOP, Y, F>
{
    type Output = Result<u64, FieldFailure<f64>>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        let Attempts { f, run } = self.0;
        let scheme = run.scheme.with_known::<METHOD>();
        let all = Attempts { f, run: Run { scheme: &scheme, ..run } };
        if LOOP { all.run_by::<true, true>() } else { all.once::<true, true>() }
    }
}
