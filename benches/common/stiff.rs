//! Stiff problems with their Jacobians and end values: Hairer, Wanner II, and the CWI test set for initial value problems.
//!
//! Unless a problem says otherwise, end values were computed by Radau IIA of order 13 in 80-bit numbers. Order 9 agrees
//! in 14 digits or more, the published values in all of their digits.

use flowline::ode::{GenericField, VectorField};
use flowline::vector_field;

/// An initial value problem from t = 0 to `T1`.
pub trait Problem<const N: usize>: 'static {
    type Field: GenericField<N> + VectorField<[f64; N]>;
    const NAME: &'static str;
    const FIELD: Self::Field;
    const T1: f64;
    const Y0: [f64; N];
    /// The absolute tolerances at a relative tolerance of 1; at `rtol` they are `rtol` times these.
    const SCALE: [f64; N];
    /// y(T1).
    const END: [f64; N];
    /// Calls `entry(i, j, df_i/dy_j)` at (t, y) for each entry that is not always 0.
    fn jacobian(t: f64, y: &[f64; N], entry: impl FnMut(usize, usize, f64));
    fn atol(rtol: f64) -> [f64; N] {
        Self::SCALE.map(|scale| scale * rtol)
    }
    /// The largest relative error of a component; infinite where the numbers are not finite.
    fn error(y: &[f64]) -> f64 {
        let errors = y.iter().zip(Self::END).map(|(y, end)| (y / end - 1.0).abs());
        errors.fold(0.0, |a, b| if b.is_finite() { f64::max(a, b) } else { f64::INFINITY })
    }
}

/// Calls `$entry(i, j, a)` for each `j => a` of each row i.
macro_rules! entries {
    ($entry:ident, $($i:literal: $($j:literal => $a:expr),+;)+) => { $($($entry($i, $j, $a);)+)+ };
}

pub mod ring_modulator;

vector_field! {
    /// Robertson (1966).
    pub struct RoberField<R> { pub k: [R; 3] }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        let (a, b, c) = (self.k[0] * y[0], self.k[1] * y[1] * y[1], self.k[2] * y[1] * y[2]);
        [-a + c, a - b - c, b]
    }
}

impl RoberField {
    pub const PUBLISHED: RoberField = RoberField { k: [0.04, 3e7, 1e4] };

    #[inline(always)]
    fn jacobian(y: &[f64; 3], mut entry: impl FnMut(usize, usize, f64)) {
        let [a, b, c] = Self::PUBLISHED.k;
        let b = 2.0 * b * y[1];
        entries! { entry,
            0: 0 => -a, 1 => c * y[2], 2 => c * y[1];
            1: 0 => a, 1 => -b - c * y[2], 2 => -c * y[1];
            2: 1 => b;
        }
    }
}

/// Robertson's problem to t = 40.
pub struct Rober40;
impl Problem<3> for Rober40 {
    type Field = RoberField;
    const NAME: &'static str = "rober-40";
    const FIELD: RoberField = RoberField::PUBLISHED;
    const T1: f64 = 40.0;
    const Y0: [f64; 3] = [1.0, 0.0, 0.0];
    const SCALE: [f64; 3] = [1e-2, 1e-6, 1e-2];
    const END: [f64; 3] = [7.15827068719405046e-01, 9.18553476455776429e-06, 2.84163745745830365e-01];
    #[inline(always)]
    fn jacobian(_t: f64, y: &[f64; 3], entry: impl FnMut(usize, usize, f64)) {
        RoberField::jacobian(y, entry);
    }
}

/// Robertson's problem to t = 1e11.
pub struct Rober1e11;
impl Problem<3> for Rober1e11 {
    type Field = RoberField;
    const NAME: &'static str = "rober-1e11";
    const FIELD: RoberField = RoberField::PUBLISHED;
    const T1: f64 = 1e11;
    const Y0: [f64; 3] = [1.0, 0.0, 0.0];
    const SCALE: [f64; 3] = [1e-8, 1e-14, 1e-8];
    const END: [f64; 3] = [2.08334014970129409e-08, 8.33336077033478378e-14, 9.99999979166515174e-01];
    #[inline(always)]
    fn jacobian(_t: f64, y: &[f64; 3], entry: impl FnMut(usize, usize, f64)) {
        RoberField::jacobian(y, entry);
    }
}

vector_field! {
    pub struct HiresField<R> { pub rate: R }
    fn eval(&self, _t, y: &[R; 8]) -> [R; 8] {
        let bound = self.rate * y[5] * y[7];
        [
            -1.71 * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007,
            1.71 * y[0] - 8.75 * y[1],
            -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4],
            8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3],
            -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6],
            -bound + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + 0.69 * y[6],
            bound - 1.81 * y[6],
            -bound + 1.81 * y[6],
        ]
    }
}

/// HIRES: a plant's response to light.
pub struct Hires;
impl Problem<8> for Hires {
    type Field = HiresField;
    const NAME: &'static str = "hires";
    const FIELD: HiresField = HiresField { rate: 280.0 };
    const T1: f64 = 321.8122;
    const Y0: [f64; 8] = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057];
    const SCALE: [f64; 8] = [1e-4; 8];
    const END: [f64; 8] = [
        7.37131257332566741e-04,
        1.44248572631618479e-04,
        5.88872974096757516e-05,
        1.17565134328314908e-03,
        2.38635619883133037e-03,
        6.23896825274279556e-03,
        2.84999839518576895e-03,
        2.85000160481423126e-03,
    ];
    #[inline(always)]
    fn jacobian(_t: f64, y: &[f64; 8], mut entry: impl FnMut(usize, usize, f64)) {
        let (a, b) = (280.0 * y[7], 280.0 * y[5]);
        entries! { entry,
            0: 0 => -1.71, 1 => 0.43, 2 => 8.32;
            1: 0 => 1.71, 1 => -8.75;
            2: 2 => -10.03, 3 => 0.43, 4 => 0.035;
            3: 1 => 8.32, 2 => 1.71, 3 => -1.12;
            4: 4 => -1.745, 5 => 0.43, 6 => 0.43;
            5: 3 => 0.69, 4 => 1.71, 5 => -0.43 - a, 6 => 0.69, 7 => -b;
            6: 5 => a, 6 => -1.81, 7 => b;
            7: 5 => -a, 6 => 1.81, 7 => -b;
        }
    }
}

vector_field! {
    pub struct OregoField<R> { pub s: R }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        [
            self.s * (y[1] + y[0] * (1.0 - 8.375e-6 * y[0] - y[1])),
            (y[2] - (1.0 + y[0]) * y[1]) / self.s,
            0.161 * (y[0] - y[2]),
        ]
    }
}

/// The Oregonator.
pub struct Orego;
impl Problem<3> for Orego {
    type Field = OregoField;
    const NAME: &'static str = "orego";
    const FIELD: OregoField = OregoField { s: 77.27 };
    const T1: f64 = 360.0;
    const Y0: [f64; 3] = [1.0, 2.0, 3.0];
    const SCALE: [f64; 3] = [1e-2; 3];
    const END: [f64; 3] = [1.00081487031852268e+00, 1.22817852154988805e+03, 1.32055494284650820e+02];
    #[inline(always)]
    fn jacobian(_t: f64, y: &[f64; 3], mut entry: impl FnMut(usize, usize, f64)) {
        let s = Self::FIELD.s;
        entries! { entry,
            0: 0 => s * (1.0 - 2.0 * 8.375e-6 * y[0] - y[1]), 1 => s * (1.0 - y[0]);
            1: 0 => -y[1] / s, 1 => -(1.0 + y[0]) / s, 2 => 1.0 / s;
            2: 0 => 0.161, 2 => -0.161;
        }
    }
}

vector_field! {
    pub struct VanDerPolField<R> { pub rate: R }
    fn eval(&self, _t, y: &[R; 2]) -> [R; 2] {
        [y[1], ((1.0 - y[0] * y[0]) * y[1] - y[0]) * self.rate]
    }
}

/// Van der Pol's oscillator, stiffness 1e6.
pub struct VanDerPol;
impl Problem<2> for VanDerPol {
    type Field = VanDerPolField;
    const NAME: &'static str = "vdpol";
    const FIELD: VanDerPolField = VanDerPolField { rate: 1e6 };
    const T1: f64 = 2.0;
    const Y0: [f64; 2] = [2.0, 0.0];
    const SCALE: [f64; 2] = [1.0; 2];
    const END: [f64; 2] = [1.70616773217046491e+00, -8.92809701024816604e-01];
    #[inline(always)]
    fn jacobian(_t: f64, y: &[f64; 2], mut entry: impl FnMut(usize, usize, f64)) {
        let rate = Self::FIELD.rate;
        entries! { entry,
            0: 1 => 1.0;
            1: 0 => -(1.0 + 2.0 * y[0] * y[1]) * rate, 1 => (1.0 - y[0] * y[0]) * rate;
        }
    }
}

vector_field! {
    pub struct PolluField<R> { pub k: [R; 25] }
    fn eval(&self, _t, y: &[R; 20]) -> [R; 20] {
        let k = &self.k;
        // Written out: a product of each rate with its one or two reactants.
        let r1 = k[0] * y[0];
        let r2 = k[1] * y[1] * y[3];
        let r3 = k[2] * y[4] * y[1];
        let (r4, r5, r6) = (k[3] * y[6], k[4] * y[6], k[5] * y[6] * y[5]);
        let (r7, r8) = (k[6] * y[8], k[7] * y[8] * y[5]);
        let (r9, r10) = (k[8] * y[10] * y[1], k[9] * y[10] * y[0]);
        let (r11, r12, r13) = (k[10] * y[12], k[11] * y[9] * y[1], k[12] * y[13]);
        let (r14, r15) = (k[13] * y[0] * y[5], k[14] * y[2]);
        let (r16, r17, r18, r19) = (k[15] * y[3], k[16] * y[3], k[17] * y[15], k[18] * y[15]);
        let (r20, r21, r22) = (k[19] * y[16] * y[5], k[20] * y[18], k[21] * y[18]);
        let (r23, r24, r25) = (k[22] * y[0] * y[3], k[23] * y[18] * y[0], k[24] * y[19]);
        [
            r2 + r3 + r9 + r11 + r12 + r22 + r25 - r1 - r10 - r14 - r23 - r24,
            r1 + r21 - r2 - r3 - r9 - r12,
            r1 + r17 + r19 + r22 - r15,
            r15 - r2 - r16 - r17 - r23,
            2.0 * r4 + r6 + r7 + r13 + r20 - r3,
            r3 + 2.0 * r18 - r6 - r8 - r14 - r20,
            r13 - r4 - r5 - r6,
            r4 + r5 + r6 + r7,
            -r7 - r8,
            r7 + r9 - r12,
            r8 + r11 - r9 - r10,
            r9,
            r10 - r11,
            r12 - r13,
            r14,
            r16 - r18 - r19,
            -r20,
            r20,
            r23 + r25 - r21 - r22 - r24,
            r24 - r25,
        ]
    }
}

/// POLLU: 25 reactions of polluted air.
pub struct Pollu;
impl Problem<20> for Pollu {
    type Field = PolluField;
    const NAME: &'static str = "pollu";
    #[rustfmt::skip]
    const FIELD: PolluField = PolluField { k: [
        0.35, 26.6, 1.23e4, 8.6e-4, 8.2e-4, 1.5e4, 1.3e-4, 2.4e4, 1.65e4, 9e3, 0.022, 1.2e4, 1.88, 1.63e4, 4.8e6,
        3.5e-4, 0.0175, 1e8, 4.44e11, 1.24e3, 2.1, 5.78, 0.0474, 1.78e3, 3.12,
    ] };
    const T1: f64 = 60.0;
    #[rustfmt::skip]
    const Y0: [f64; 20] = [
        0.0, 0.2, 0.0, 0.04, 0.0, 0.0, 0.1, 0.3, 0.01, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.007, 0.0, 0.0, 0.0,
    ];
    const SCALE: [f64; 20] = [1e-7; 20];
    #[rustfmt::skip]
    const END: [f64; 20] = [
        5.64625548002276947e-02, 1.34248413042233838e-01, 4.13973433109942663e-09, 5.52314020748435972e-03,
        2.01897726230219596e-07, 1.46454186349396573e-07, 7.78424911899796429e-02, 3.24507535339601805e-01,
        7.49401338388040565e-03, 1.62229315730156053e-08, 1.13586383325707477e-08, 2.23050597572135986e-03,
        2.08716288279862992e-04, 1.39692101684015771e-05, 8.96488485689829473e-03, 4.35284636933010379e-18,
        6.89921969626340528e-03, 1.00780303736594599e-04, 1.77214651396998444e-06, 5.68294329231639324e-05,
    ];
    #[inline(always)]
    fn jacobian(_t: f64, y: &[f64; 20], mut entry: impl FnMut(usize, usize, f64)) {
        let k = Self::FIELD.k;
        entries! { entry,
            0: 0 => -k[0] - k[9] * y[10] - k[13] * y[5] - k[22] * y[3] - k[23] * y[18],
                1 => k[1] * y[3] + k[2] * y[4] + k[8] * y[10] + k[11] * y[9], 3 => k[1] * y[1] - k[22] * y[0],
                4 => k[2] * y[1], 5 => -k[13] * y[0], 9 => k[11] * y[1], 10 => k[8] * y[1] - k[9] * y[0],
                12 => k[10], 18 => k[21] - k[23] * y[0], 19 => k[24];
            1: 0 => k[0], 1 => -k[1] * y[3] - k[2] * y[4] - k[8] * y[10] - k[11] * y[9], 3 => -k[1] * y[1],
                4 => -k[2] * y[1], 9 => -k[11] * y[1], 10 => -k[8] * y[1], 18 => k[20];
            2: 0 => k[0], 2 => -k[14], 3 => k[16], 15 => k[18], 18 => k[21];
            3: 0 => -k[22] * y[3], 1 => -k[1] * y[3], 2 => k[14],
                3 => -k[1] * y[1] - k[15] - k[16] - k[22] * y[0];
            4: 1 => -k[2] * y[4], 4 => -k[2] * y[1], 5 => k[5] * y[6] + k[19] * y[16],
                6 => 2.0 * k[3] + k[5] * y[5], 8 => k[6], 13 => k[12], 16 => k[19] * y[5];
            5: 0 => -k[13] * y[5], 1 => k[2] * y[4], 4 => k[2] * y[1],
                5 => -k[5] * y[6] - k[7] * y[8] - k[13] * y[0] - k[19] * y[16], 6 => -k[5] * y[5],
                8 => -k[7] * y[5], 15 => 2.0 * k[17], 16 => -k[19] * y[5];
            6: 5 => -k[5] * y[6], 6 => -k[3] - k[4] - k[5] * y[5], 13 => k[12];
            7: 5 => k[5] * y[6], 6 => k[3] + k[4] + k[5] * y[5], 8 => k[6];
            8: 5 => -k[7] * y[8], 8 => -k[6] - k[7] * y[5];
            9: 1 => k[8] * y[10] - k[11] * y[9], 8 => k[6], 9 => -k[11] * y[1], 10 => k[8] * y[1];
            10: 0 => -k[9] * y[10], 1 => -k[8] * y[10], 5 => k[7] * y[8], 8 => k[7] * y[5],
                10 => -k[8] * y[1] - k[9] * y[0], 12 => k[10];
            11: 1 => k[8] * y[10], 10 => k[8] * y[1];
            12: 0 => k[9] * y[10], 10 => k[9] * y[0], 12 => -k[10];
            13: 1 => k[11] * y[9], 9 => k[11] * y[1], 13 => -k[12];
            14: 0 => k[13] * y[5], 5 => k[13] * y[0];
            15: 3 => k[15], 15 => -k[17] - k[18];
            16: 5 => -k[19] * y[16], 16 => -k[19] * y[5];
            17: 5 => k[19] * y[16], 16 => k[19] * y[5];
            18: 0 => k[22] * y[3] - k[23] * y[18], 3 => k[22] * y[0], 18 => -k[20] - k[21] - k[23] * y[0],
                19 => k[24];
            19: 0 => k[23] * y[18], 18 => k[23] * y[0], 19 => -k[24];
        }
    }
}
