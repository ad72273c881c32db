//! Lanes as the components of a state and as the numbers of a `vector_field!`.

use super::{LANES, LaneMask, LaneNumber, Lanes, SINGLE_LANES, SingleClock};
use crate::ode::{Clock, FieldNumber, GenericField, Number, Real, Single, Tolerance};
use crate::simd::{each, math};

/// `error / (atol + rtol max(|y0|, |y1|))` of one lane. The callers add `y1 * 0`, which is NaN if y1 is not finite.
macro_rules! ratio {
    ($i:ident: $error:ident, $y0:ident, $y1:ident, $rtol:ident, $atol:ident) => {{
        let (y0, y1) = ($y0.0[$i].abs(), $y1.0[$i].abs());
        $error.0[$i] / (if y0 < y1 { y1 } else { y0 } * $rtol + $atol)
    }};
}

/// The parts of [`Real`] that are the same in both precisions.
macro_rules! real_of {
    ($t:ident) => {
        type Wide = Self;
        const LOCKSTEP: bool = true;
        const EPSILON: f64 = $t::EPSILON as f64;

        #[inline(always)]
        fn widen(self) -> Self {
            self
        }
        #[inline(always)]
        fn narrow(wide: Self) -> Self {
            wide
        }
        #[inline(always)]
        fn constant(x: f64) -> Self {
            Self::from(x)
        }
        #[inline(always)]
        fn exceeds(self, other: Self) -> LaneMask<W> {
            LaneMask(each!(i => self.0[i].abs() > other.0[i].abs()))
        }
        #[inline(always)]
        fn is_same(self, _other: Self) -> bool {
            false
        }
        const TOLERANCE: Tolerance<'static> = <$t as Real>::TOLERANCE;

        #[inline(always)]
        fn scale(self, x: f64) -> Self {
            self * x
        }
        #[inline(always)]
        fn scale_add(self, _fused: bool, x: f64, sum: Self) -> Self {
            let x = x as $t;
            Lanes(each!(i => self.0[i].mul_add(x, sum.0[i])))
        }
        #[inline(always)]
        fn ratio(self, y0: Self, y1: Self, rtol: f64, atol: f64) -> Self {
            let (rtol, atol) = (rtol as $t, atol.max(f64::from($t::MIN_POSITIVE)) as $t);
            Lanes(each!(i => ratio!(i: self, y0, y1, rtol, atol) + y1.0[i] * 0.0))
        }
        #[inline(always)]
        fn value(self) -> f64 {
            f64::from(self.0[0])
        }
        #[inline(always)]
        fn is_finite(self) -> LaneMask<W> {
            LaneMask(each!(i => self.0[i].abs() < $t::INFINITY))
        }
        #[inline(always)]
        fn select(m: &LaneMask<W>, a: Self, b: Self) -> Self {
            Lanes::choose(m, &a, &b)
        }
    };
}

impl<const W: usize> Real for Lanes<f64, W> {
    type Clock = Self;
    real_of!(f64);

    #[inline(always)]
    fn scale_by(self, dt: &Self) -> Self {
        Clock::mul(&self, dt)
    }
    #[inline(always)]
    fn scale_by_add(self, _fused: bool, dt: &Self, sum: Self) -> Self {
        Lanes(each!(i => self.0[i].mul_add(dt.0[i], sum.0[i])))
    }
    #[inline(always)]
    fn squared_ratio(self, y0: Self, y1: Self, rtol: f64, atol: f64) -> Self {
        Lanes(each!(i => {
            let ratio = ratio!(i: self, y0, y1, rtol, atol);
            ratio * ratio + y1.0[i] * 0.0
        }))
    }
}

impl<const W: usize> Real for Lanes<f32, W> {
    type Clock = SingleClock<W>;
    real_of!(f32);

    #[inline(always)]
    fn scale_by(self, dt: &SingleClock<W>) -> Self {
        self * dt.0.map(|x| x as f32)
    }
    #[inline(always)]
    fn scale_by_add(self, _fused: bool, dt: &SingleClock<W>, sum: Self) -> Self {
        let dt = dt.0.map(|x| x as f32);
        Lanes(each!(i => self.0[i].mul_add(dt.0[i], sum.0[i])))
    }
    #[inline(always)]
    fn squared_ratio(self, y0: Self, y1: Self, rtol: f64, atol: f64) -> SingleClock<W> {
        let (rtol, atol) = (rtol as f32, atol.max(f64::from(f32::MIN_POSITIVE)) as f32);
        SingleClock(Lanes(each!(i => {
            let ratio = f64::from(ratio!(i: self, y0, y1, rtol, atol));
            ratio * ratio + f64::from(y1.0[i]) * 0.0
        })))
    }
}

macro_rules! lane_functions {
    ($($f:ident)*) => { $(
        #[inline(always)]
        fn $f(self) -> Self {
            math::$f(self)
        }
    )* };
}

macro_rules! number {
    ($t:ident) => {
        impl<const W: usize> Number for Lanes<$t, W> {
            lane_functions!(sin cos exp ln tanh);
            #[inline(always)]
            fn values(self, mut f: impl FnMut(usize, f64)) {
                self.0.iter().enumerate().for_each(|(lane, &x)| f(lane, f64::from(x)));
            }
            #[inline(always)]
            fn set_value(&mut self, lane: usize, x: f64) {
                self.0[lane] = x as $t;
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                Lanes(each!(i => self.0[i].sqrt()))
            }
            #[inline(always)]
            fn abs(self) -> Self {
                Lanes(each!(i => self.0[i].abs()))
            }
            #[inline(always)]
            fn powi(self, n: i32) -> Self {
                let (mut power, mut square, mut rest) = (Self::from(1.0), self, n.unsigned_abs());
                while rest > 0 {
                    if rest & 1 == 1 {
                        power *= square;
                    }
                    square *= square;
                    rest >>= 1;
                }
                if n < 0 { power.recip() } else { power }
            }
            #[inline(always)]
            fn powf(self, exponent: impl Into<Self>) -> Self {
                let exponent = exponent.into();
                let power = math::exp(math::ln(self.abs()) * exponent);
                Lanes(each!(i => {
                    let (x, n, power) = (self.0[i], exponent.0[i], power.0[i]);
                    let whole = n == n.floor();
                    let even = n * 0.5 == (n * 0.5).floor();
                    let signed = if even { power } else { -power };
                    let of_negative = if whole { signed } else { $t::NAN };
                    let value = if x < 0.0 { of_negative } else { power };
                    if n == 0.0 { 1.0 } else { value }
                }))
            }
            #[inline(always)]
            fn max(self, other: impl Into<Self>) -> Self {
                self.zip(other.into(), $t::max)
            }
            #[inline(always)]
            fn min(self, other: impl Into<Self>) -> Self {
                self.zip(other.into(), $t::min)
            }
            /// Scaled by the larger of the two, so that squares neither overflow nor underflow.
            #[inline(always)]
            fn hypot(self, other: impl Into<Self>) -> Self {
                let (a, b) = (self.abs(), other.into().abs());
                Lanes(each!(i => {
                    let (a, b) = (a.0[i], b.0[i]);
                    let (large, small) = if a < b { (b, a) } else { (a, b) };
                    let ratio = small / large;
                    let value = large * (ratio * ratio + 1.0).sqrt();
                    let flat = if large == 0.0 || large == $t::INFINITY { large } else { value };
                    if a.is_nan() || b.is_nan() { a + b } else { flat }
                }))
            }
            #[inline(always)]
            fn select_positive(self, a: impl Into<Self>, b: impl Into<Self>) -> Self {
                Lanes::choose(&self.test(Self::from(0.0), |x, zero| x > zero), &a.into(), &b.into())
            }
        }

        impl<const W: usize> LaneNumber<$t> for Lanes<$t, W>
        where
            Self: FieldNumber<Clock: super::LaneClock>,
        {
            #[inline(always)]
            fn lane(&self, lane: usize) -> $t {
                Lanes::lane(self, lane)
            }
            #[inline(always)]
            fn set_lane(&mut self, lane: usize, x: $t) {
                Lanes::set_lane(self, lane, x);
            }
        }
    };
}
number!(f64);
number!(f32);

impl FieldNumber for Lanes<f64, LANES> {
    #[inline(always)]
    fn time(t: &Self) -> Self {
        *t
    }
    #[inline(always)]
    fn eval<G: GenericField<N>, const N: usize>(field: &G::Of<Self>, t: Self, y: &[Self; N]) -> [Self; N] {
        G::eval_lanes(field, t, y)
    }
}

impl FieldNumber for Lanes<f32, SINGLE_LANES> {
    #[inline(always)]
    fn time(t: &Self::Clock) -> Self {
        t.0.map(|x| x as f32)
    }
    #[inline(always)]
    fn eval<G: GenericField<N>, const N: usize>(field: &G::Of<Self>, t: Self, y: &[Self; N]) -> [Self; N] {
        G::eval_single_lanes(field, t, y)
    }
}

impl LaneNumber<f64> for f64 {
    #[inline(always)]
    fn lane(&self, _lane: usize) -> f64 {
        *self
    }
    #[inline(always)]
    fn set_lane(&mut self, _lane: usize, x: f64) {
        *self = x;
    }
}

impl LaneNumber<f32> for Single {
    #[inline(always)]
    fn lane(&self, _lane: usize) -> f32 {
        self.0
    }
    #[inline(always)]
    fn set_lane(&mut self, _lane: usize, x: f32) {
        self.0 = x;
    }
}
