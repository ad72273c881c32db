//! The clocks of lanes: t, dt, error ratios and counters of each trajectory.

use super::{LaneClock, LaneMask, Lanes};
use crate::ode::Clock;
use crate::simd::lanes::Float;
use crate::simd::{Call, Entry, Level, each, is_fused, math};
use std::marker::PhantomData;

/// `x^exponent`. It is compiled once per type of lanes and called by the controllers, because its code is
/// longer than the rest of a controller, and a controller needs up to five powers. A call takes a hundredth
/// of the time of an attempt on Lorenz.
///
/// All levels give the same bits, so the machine's level is used. On a level without fused multiply-add, each
/// `mul_add` calls the C library.
#[inline(always)]
fn power_by_call<T: math::Math, const W: usize>(x: Lanes<T, W>, exponent: T) -> Lanes<T, W>
where
    Lanes<T, W>: Float<Elem = T>,
{
    let mut power = x;
    if is_fused(Level::detect()) {
        Entry::<Power<T, W>>::best().call(&exponent, &(), &x, &mut power);
    } else {
        Power::call(&exponent, &(), &x, &mut power);
    }
    power
}

struct Power<T, const W: usize>(PhantomData<T>);

impl<T: math::Math, const W: usize> Call for Power<T, W>
where
    Lanes<T, W>: Float<Elem = T>,
{
    type Of = T;
    type At = ();
    type On = Lanes<T, W>;
    type Out = Lanes<T, W>;
    type Output = ();

    #[inline(always)]
    fn call(exponent: &T, (): &(), x: &Lanes<T, W>, power: &mut Lanes<T, W>) {
        *power = math::power(*x, *exponent);
    }
}

impl<const W: usize> Clock for Lanes<f64, W> {
    type Mask = LaneMask<W>;

    #[inline(always)]
    fn like(&self, x: f64) -> Self {
        Lanes::splat(x)
    }
    #[inline(always)]
    fn add(&self, other: &Self) -> Self {
        Lanes(each!(i => self.0[i] + other.0[i]))
    }
    #[inline(always)]
    fn sub(&self, other: &Self) -> Self {
        Lanes(each!(i => self.0[i] - other.0[i]))
    }
    #[inline(always)]
    fn mul(&self, other: &Self) -> Self {
        Lanes(each!(i => self.0[i] * other.0[i]))
    }
    #[inline(always)]
    fn div(&self, other: &Self) -> Self {
        Lanes(each!(i => self.0[i] / other.0[i]))
    }
    #[inline(always)]
    fn abs(&self) -> Self {
        Lanes(each!(i => self.0[i].abs()))
    }
    #[inline(always)]
    fn sqrt(&self) -> Self {
        Lanes(each!(i => self.0[i].sqrt()))
    }
    #[inline(always)]
    fn powf(&self, exponent: f64) -> Self {
        power_by_call(*self, exponent)
    }
    #[inline(always)]
    fn lt(&self, other: &Self) -> LaneMask<W> {
        LaneMask(each!(i => self.0[i] < other.0[i]))
    }
    #[inline(always)]
    fn le(&self, other: &Self) -> LaneMask<W> {
        LaneMask(each!(i => self.0[i] <= other.0[i]))
    }
    #[inline(always)]
    fn and(a: &LaneMask<W>, b: &LaneMask<W>) -> LaneMask<W> {
        LaneMask(each!(i => a.0[i] & b.0[i]))
    }
    #[inline(always)]
    fn or(a: &LaneMask<W>, b: &LaneMask<W>) -> LaneMask<W> {
        LaneMask(each!(i => a.0[i] | b.0[i]))
    }
    #[inline(always)]
    fn not(m: &LaneMask<W>) -> LaneMask<W> {
        LaneMask(each!(i => !m.0[i]))
    }
    #[inline(always)]
    fn select(m: &LaneMask<W>, a: &Self, b: &Self) -> Self {
        Lanes::choose(m, a, b)
    }
    #[inline(always)]
    fn known(m: &LaneMask<W>) -> Option<bool> {
        match m.count() as usize {
            0 => Some(false),
            count if count == W => Some(true),
            _ => None,
        }
    }
    #[inline(always)]
    fn lookup(&self, table: &[f64]) -> Self {
        self.map(|index| index.lookup(table))
    }
    #[inline(always)]
    fn count_up_to(&self, table: &[f64]) -> Self {
        self.map(|t| t.count_up_to(table))
    }
    #[inline(always)]
    fn count_down_to(&self, table: &[f64]) -> Self {
        self.map(|t| t.count_down_to(table))
    }
}

impl<const W: usize> LaneClock for Lanes<f64, W> {
    const WIDTH: usize = W;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        Lanes::splat(x)
    }
    #[inline(always)]
    fn lane(&self, lane: usize) -> f64 {
        Lanes::lane(self, lane)
    }
    #[inline(always)]
    fn set_lane(&mut self, lane: usize, x: f64) {
        Lanes::set_lane(self, lane, x);
    }
    #[inline(always)]
    fn count(m: &LaneMask<W>) -> u32 {
        m.count()
    }
    #[inline(always)]
    fn bits(m: &LaneMask<W>) -> u32 {
        m.bits()
    }
}

impl LaneClock for f64 {
    const WIDTH: usize = 1;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        x
    }
    #[inline(always)]
    fn lane(&self, _lane: usize) -> f64 {
        *self
    }
    #[inline(always)]
    fn set_lane(&mut self, _lane: usize, x: f64) {
        *self = x;
    }
    #[inline(always)]
    fn count(m: &bool) -> u32 {
        u32::from(*m)
    }
    #[inline(always)]
    fn bits(m: &bool) -> u32 {
        u32::from(*m)
    }
}

/// The clock of lanes of f32: f64 except in its powers.
///
/// A solve with t in f32 would stall: neighboring f32 numbers near 1e6 differ by 0.06. A power only proposes
/// the next step size, so seven digits are enough. In f64 it would be the most expensive part of a step of
/// f32 lanes. Its argument is clamped to [1e-37, 1e38]; no step size factor depends on values outside this
/// range.
#[derive(Clone, Copy, Debug)]
pub struct SingleClock<const W: usize>(pub(super) Lanes<f64, W>);

macro_rules! forward {
    ($($f:ident($($x:ident),*);)*) => { $(
        #[inline(always)]
        fn $f(&self $(, $x: &Self)*) -> Self {
            SingleClock(Clock::$f(&self.0 $(, &$x.0)*))
        }
    )* };
}

impl<const W: usize> Clock for SingleClock<W> {
    type Mask = LaneMask<W>;

    forward! { add(other); sub(other); mul(other); div(other); abs(); sqrt(); }
    #[inline(always)]
    fn like(&self, x: f64) -> Self {
        SingleClock(self.0.like(x))
    }
    #[inline(always)]
    fn powf(&self, exponent: f64) -> Self {
        SingleClock(power_by_call(self.0.map(|x| x as f32), exponent as f32).map(f64::from))
    }
    #[inline(always)]
    fn lt(&self, other: &Self) -> LaneMask<W> {
        Clock::lt(&self.0, &other.0)
    }
    #[inline(always)]
    fn le(&self, other: &Self) -> LaneMask<W> {
        Clock::le(&self.0, &other.0)
    }
    #[inline(always)]
    fn and(a: &LaneMask<W>, b: &LaneMask<W>) -> LaneMask<W> {
        Lanes::<f64, W>::and(a, b)
    }
    #[inline(always)]
    fn or(a: &LaneMask<W>, b: &LaneMask<W>) -> LaneMask<W> {
        Lanes::<f64, W>::or(a, b)
    }
    #[inline(always)]
    fn not(m: &LaneMask<W>) -> LaneMask<W> {
        <Lanes<f64, W> as Clock>::not(m)
    }
    #[inline(always)]
    fn select(m: &LaneMask<W>, a: &Self, b: &Self) -> Self {
        SingleClock(Lanes::choose(m, &a.0, &b.0))
    }
    #[inline(always)]
    fn known(m: &LaneMask<W>) -> Option<bool> {
        Lanes::<f64, W>::known(m)
    }
    #[inline(always)]
    fn lookup(&self, table: &[f64]) -> Self {
        SingleClock(self.0.lookup(table))
    }
    #[inline(always)]
    fn count_up_to(&self, table: &[f64]) -> Self {
        SingleClock(self.0.count_up_to(table))
    }
    #[inline(always)]
    fn count_down_to(&self, table: &[f64]) -> Self {
        SingleClock(self.0.count_down_to(table))
    }
}

impl<const W: usize> LaneClock for SingleClock<W> {
    const WIDTH: usize = W;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        SingleClock(Lanes::splat(x))
    }
    #[inline(always)]
    fn lane(&self, lane: usize) -> f64 {
        self.0.lane(lane)
    }
    #[inline(always)]
    fn set_lane(&mut self, lane: usize, x: f64) {
        self.0.set_lane(lane, x);
    }
    #[inline(always)]
    fn count(m: &LaneMask<W>) -> u32 {
        m.count()
    }
    #[inline(always)]
    fn bits(m: &LaneMask<W>) -> u32 {
        m.bits()
    }
}
