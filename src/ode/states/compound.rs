//! States made of states: tuples of up to six, and structs by [`state!`](crate::state!).
//!
//! Components are numbered part by part. The error norm is the RMS over all of them, so the weight of a part
//! is its number of components. Each part has its own sum, and these sums are added in the order of the
//! parts. A compound depends neither on the types nor on the clock of its parts: a pair of tensors is a
//! compound too.

use crate::ode::plain;
use crate::ode::{
    Clock, ConfigError, Ode, OdeState, PlainState, Solution, SolveError, Stages, State, Tolerance,
    VectorField,
};
use std::fmt;
use std::marker::PhantomData;

/// The stages of one part of a compound.
#[derive(Debug)]
pub struct Part<'a, Y, K: ?Sized, F> {
    stages: &'a K,
    pick: F,
    compound: PhantomData<fn(&Y)>,
}

impl<'a, Y, K: Stages<Y> + ?Sized, F> Part<'a, Y, K, F> {
    /// The part that `pick` selects from each of `stages`.
    #[inline(always)]
    pub fn new<P>(stages: &'a K, pick: F) -> Self
    where
        F: Fn(&Y) -> &P,
    {
        Part { stages, pick, compound: PhantomData }
    }
}

impl<Y, P, K: Stages<Y> + ?Sized, F: Fn(&Y) -> &P> Stages<P> for Part<'_, Y, K, F> {
    const FUSED: bool = K::FUSED;
    const KNOWN: bool = K::KNOWN;
    #[inline(always)]
    fn stage(&self, i: usize) -> &P {
        (self.pick)(self.stages.stage(i))
    }
    #[inline(always)]
    fn count(&self) -> usize {
        self.stages.count()
    }
}

/// The body of `State` for a compound of the named parts.
#[doc(hidden)]
#[macro_export]
macro_rules! __state_of_parts {
    ($clock:ty, $($part:tt)+) => {
        type Clock = $clock;

        #[inline(always)]
        fn lincomb<K: $crate::ode::Stages<Self> + ?Sized>(&mut self, y: &Self, dt: &$clock, a: &[f64], k: &K) {
            $({
                let k = $crate::ode::Part::new(k, |y: &Self| &y.$part);
                $crate::ode::State::lincomb(&mut self.$part, &y.$part, dt, a, &k);
            })+
        }
        #[inline(always)]
        fn error_sum<K: $crate::ode::Stages<Self> + ?Sized>(
            &mut self,
            dt: &$clock,
            b: &[f64],
            k: &K,
            y0: &Self,
            y1: &Self,
            tol: &$crate::ode::Tolerance,
        ) -> $clock {
            let mut rest = *tol;
            let sums = [$({
                let (tol, after) = rest.split($crate::ode::State::num_components(&y0.$part));
                rest = after;
                let k = $crate::ode::Part::new(k, |y: &Self| &y.$part);
                $crate::ode::State::error_sum(&mut self.$part, dt, b, &k, &y0.$part, &y1.$part, &tol)
            }),+];
            let _ = rest;
            let mut total = ::core::clone::Clone::clone(&sums[0]);
            for sum in &sums[1..] {
                total = $crate::ode::Clock::add(&total, sum);
            }
            total
        }
        fn scaled_error<K: $crate::ode::Stages<Self> + ?Sized>(
            &mut self,
            dt: &$clock,
            b: &[f64],
            k: &K,
            y0: &Self,
            y1: &Self,
            tol: &$crate::ode::Tolerance,
        ) {
            let mut rest = *tol;
            $({
                let (tol, after) = rest.split($crate::ode::State::num_components(&y0.$part));
                rest = after;
                let k = $crate::ode::Part::new(k, |y: &Self| &y.$part);
                $crate::ode::State::scaled_error(&mut self.$part, dt, b, &k, &y0.$part, &y1.$part, &tol);
            })+
            let _ = rest;
        }
        #[inline(always)]
        fn num_components(&self) -> usize {
            0 $(+ $crate::ode::State::num_components(&self.$part))+
        }
        #[inline(always)]
        fn copy_of(&mut self, other: &Self) {
            $($crate::ode::State::copy_of(&mut self.$part, &other.$part);)+
        }
        fn parts(&self) -> Vec<usize> {
            let mut parts = Vec::new();
            $(parts.extend($crate::ode::State::parts(&self.$part));)+
            parts
        }
        #[inline(always)]
        fn keep(&mut self, m: &<$clock as $crate::ode::Clock>::Mask, new: &mut Self) {
            $($crate::ode::State::keep(&mut self.$part, m, &mut new.$part);)+
        }
        #[inline(always)]
        fn first_non_finite(&self, like: &$clock) -> $clock {
            let zero = $crate::ode::Clock::like(like, 0.0);
            let (mut first, mut before) = ($crate::ode::Clock::like(like, -1.0), 0);
            $({
                let found = $crate::ode::State::first_non_finite(&self.$part, like);
                let index = $crate::ode::Clock::like(like, before as f64);
                let index = $crate::ode::Clock::add(&found, &index);
                let none = $crate::ode::Clock::lt(&found, &zero);
                let found = <$clock as $crate::ode::Clock>::select(&none, &found, &index);
                let none = $crate::ode::Clock::lt(&first, &zero);
                first = <$clock as $crate::ode::Clock>::select(&none, &found, &first);
                before += $crate::ode::State::num_components(&self.$part);
            })+
            let _ = before;
            first
        }
        #[inline(always)]
        fn conforms(&self, y: &Self) -> Result<(), $crate::ode::ShapeMismatch> {
            $($crate::ode::State::conforms(&self.$part, &y.$part)
                .map_err(|mismatch| mismatch.within(stringify!($part)))?;)+
            Ok(())
        }
    };
}

/// The body of `PlainState` for a compound of the named parts with the given types.
#[doc(hidden)]
#[macro_export]
macro_rules! __plain_state_of_parts {
    ($($part:tt: $t:ty),+) => {
        const UNROLLED: bool = true $(&& <$t as $crate::ode::PlainState>::UNROLLED)+;

        fn each_component(&self, f: &mut dyn FnMut(f64)) {
            $($crate::ode::PlainState::each_component(&self.$part, f);)+
        }
        type Number = f64;
        const EPSILON: f64 = {
            let (mut all, mut i) = ([$(<$t as $crate::ode::PlainState>::EPSILON),+], 1);
            while i < all.len() {
                if all[0] < all[i] {
                    all[0] = all[i];
                }
                i += 1;
            }
            all[0]
        };
        const EPSILON_MIN: f64 = {
            let (mut all, mut i) = ([$(<$t as $crate::ode::PlainState>::EPSILON_MIN),+], 1);
            while i < all.len() {
                if all[i] < all[0] {
                    all[0] = all[i];
                }
                i += 1;
            }
            all[0]
        };
        fn read(&self, out: &mut [f64]) {
            let rest = out;
            $(let (out, rest) = rest.split_at_mut($crate::ode::State::num_components(&self.$part));
            $crate::ode::PlainState::read(&self.$part, out);)+
            let _ = rest;
        }
        fn write(&mut self, from: &[f64]) {
            let rest = from;
            $(let (from, rest) = rest.split_at($crate::ode::State::num_components(&self.$part));
            $crate::ode::PlainState::write(&mut self.$part, from);)+
            let _ = rest;
        }
    };
}

/// How tuples are solved on a clock of type `C`. Tuples are states on every clock, but solves of plain values
/// and of tensors differ.
#[doc(hidden)]
pub trait DriveOn<C: Clock>: State<Clock = C> {
    /// As [`OdeState::Solution`].
    type Solution<O>;
    /// As [`OdeState::Options`].
    type Options: Clone + Default + fmt::Debug;
    /// As [`OdeState::default_tolerance`].
    fn default_tolerance(&self) -> Tolerance<'static>;
    /// As [`OdeState::check`].
    fn check<F, O>(ode: &Ode<'_, Self, F, O>, t0: &C, t1: &C, y0: &Self) -> Result<(), ConfigError>
    where
        Self: OdeState;
    /// As [`OdeState::drive`].
    fn drive<F: VectorField<Self>, O>(
        ode: &Ode<'_, Self, F, O>,
        t0: C,
        t1: C,
        y0: Self,
    ) -> Result<<Self as DriveOn<C>>::Solution<O>, SolveError<<Self as DriveOn<C>>::Solution<O>>>
    where
        Self: OdeState;
}

macro_rules! tuples {
    ($(($A:ident 0 $($T:ident $i:tt)*))*) => { $(
        impl<$A: State, $($T: State<Clock = $A::Clock>),*> State for ($A, $($T,)*) {
            $crate::__state_of_parts!($A::Clock, 0 $($i)*);
        }
        impl<$A: State, $($T: State<Clock = $A::Clock>),*> OdeState for ($A, $($T,)*)
        where
            Self: DriveOn<$A::Clock>,
        {
            type Solution<O> = <Self as DriveOn<$A::Clock>>::Solution<O>;
            type Options = <Self as DriveOn<$A::Clock>>::Options;

            fn default_tolerance(&self) -> Tolerance<'static> {
                DriveOn::default_tolerance(self)
            }
            fn check<F, O>(
                ode: &Ode<'_, Self, F, O>,
                t0: &$A::Clock,
                t1: &$A::Clock,
                y0: &Self,
            ) -> Result<(), ConfigError> {
                DriveOn::check(ode, t0, t1, y0)
            }
            fn drive<F: VectorField<Self>, O>(
                ode: &Ode<'_, Self, F, O>,
                t0: $A::Clock,
                t1: $A::Clock,
                y0: Self,
            ) -> Result<<Self as DriveOn<$A::Clock>>::Solution<O>, SolveError<<Self as DriveOn<$A::Clock>>::Solution<O>>> {
                DriveOn::drive(ode, t0, t1, y0)
            }
        }
        impl<$A: PlainState<Number = f64>, $($T: PlainState<Number = f64>),*> DriveOn<f64> for ($A, $($T,)*) {
            type Solution<O> = Solution<Self, O>;
            type Options = ();

            fn default_tolerance(&self) -> Tolerance<'static> {
                OdeState::default_tolerance(&self.0) $(.looser(OdeState::default_tolerance(&self.$i)))*
            }
            fn check<F, O>(ode: &Ode<'_, Self, F, O>, t0: &f64, t1: &f64, y0: &Self) -> Result<(), ConfigError> {
                plain::check(ode, (*t0, *t1), y0)
            }
            fn drive<F: VectorField<Self>, O>(
                ode: &Ode<'_, Self, F, O>,
                t0: f64,
                t1: f64,
                y0: Self,
            ) -> Result<Solution<Self, O>, SolveError<Solution<Self, O>>> {
                plain::solve(ode, t0, t1, y0)
            }
        }
        impl<$A: PlainState<Number = f64>, $($T: PlainState<Number = f64>),*> PlainState for ($A, $($T,)*) {
            $crate::__plain_state_of_parts!(0: $A $(, $i: $T)*);
        }
    )* };
}
tuples!((A 0) (A 0 B 1) (A 0 B 1 C 2) (A 0 B 1 C 2 D 3) (A 0 B 1 C 2 D 3 E 4) (A 0 B 1 C 2 D 3 E 4 G 5));

/// Defines a struct that is a plain state, and derives `Clone` and `Debug` for it. Every field is itself a
/// state: a number, an array, a `Vec`, a vector of nalgebra or ndarray, a tuple, another such struct.
///
/// The error norm is the RMS over all components. A tolerance is a scalar, one value per field, or one value
/// per component. If a field is itself a tuple or such a struct, it takes one value per field inside.
///
/// # Examples
/// ```
/// use flowline::state;
/// use flowline::ode::Ode;
/// state! {
///     /// A damped pendulum that heats the air.
///     pub struct Pendulum { pub angle: f64, pub speed: f64, pub heat: Vec<f64> }
/// }
/// let ode = Ode::in_place(|_t, y: &Pendulum, dy: &mut Pendulum| {
///     (dy.angle, dy.speed) = (y.speed, -y.angle - 0.1 * y.speed);
///     dy.heat[0] = 0.1 * y.speed * y.speed;
/// });
/// let y0 = Pendulum { angle: 1.0, speed: 0.0, heat: vec![0.0] };
/// let end = ode.atol([1e-9, 1e-9, 1e-6]).solve(0.0, 10.0, y0)?.y1;
/// let energy = 0.5 * (end.angle * end.angle + end.speed * end.speed) + end.heat[0];
/// assert!((energy - 0.5).abs() < 1e-5);
/// # Ok::<(), flowline::Error>(())
/// ```
#[macro_export]
macro_rules! state {
    ($(#[$m:meta])* $v:vis struct $name:ident { $($(#[$fm:meta])* $fv:vis $f:ident: $t:ty),+ $(,)? }) => {
        $(#[$m])*
        #[derive(Clone, Debug)]
        $v struct $name { $($(#[$fm])* $fv $f: $t),+ }
        impl $crate::ode::State for $name {
            $crate::__state_of_parts!(f64, $($f)+);
        }
        impl $crate::ode::OdeState for $name {
            type Solution<O> = $crate::ode::Solution<Self, O>;
            type Options = ();

            fn default_tolerance(&self) -> $crate::ode::Tolerance<'static> {
                // 0 is tighter than any tolerance.
                $crate::ode::Tolerance::new(0.0, 0.0) $(.looser($crate::ode::OdeState::default_tolerance(&self.$f)))+
            }
            fn check<F, O>(
                ode: &$crate::ode::Ode<'_, Self, F, O>,
                t0: &f64,
                t1: &f64,
                y0: &Self,
            ) -> Result<(), $crate::ode::ConfigError> {
                $crate::ode::check_plain(ode, (*t0, *t1), y0)
            }
            fn drive<F: $crate::ode::VectorField<Self>, O>(
                ode: &$crate::ode::Ode<'_, Self, F, O>,
                t0: f64,
                t1: f64,
                y0: Self,
            ) -> Result<$crate::ode::Solution<Self, O>, $crate::ode::SolveError<$crate::ode::Solution<Self, O>>>
            {
                $crate::ode::solve_plain(ode, t0, t1, y0)
            }
        }
        impl $crate::ode::PlainState for $name {
            $crate::__plain_state_of_parts!($($f: $t),+);
        }
    };
}
