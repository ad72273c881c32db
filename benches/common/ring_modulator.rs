//! The ring modulator of the CWI test set with larger parasitic capacitances, driven by t.

use super::{Problem, vector_field};
use std::f64::consts::PI;

#[path = "../../src/ode/tests/stiff_problems/ring_field.rs"]
mod ring_field;

pub use ring_field::RingModulatorField;
use ring_field::{DIODE, SCALE};

/// The capacitance in F. The test set has 2e-12, with which the oscillations are faster.
const CAPACITANCE: f64 = 1e-10;
/// The ring modulator to t = 2e-4.
///
/// The end values were computed by extrapolated midpoint rules of order 16 in 80-bit numbers. 2e5 and 4e5 steps agree in 12
/// digits.
pub struct RingModulator;
impl Problem<15> for RingModulator {
    type Field = RingModulatorField;
    const NAME: &'static str = "ringmod";
    const FIELD: RingModulatorField = RingModulatorField { capacitance: CAPACITANCE };
    const T1: f64 = 2e-4;
    const Y0: [f64; 15] = [0.0; 15];
    const SCALE: [f64; 15] = SCALE;
    #[rustfmt::skip]
    const END: [f64; 15] = [
        4.57792778795794e-01, 3.26418004541655e-01, 5.60245011222073e-01, -8.17868671713502e-02,
        -1.39459854615188e-01, 5.02572023778246e-01, 1.11895684570984e-01, -1.05758841300288e-05,
        -1.54663903871273e-06, 1.37826736000670e-03, 1.76211254122353e-04, -1.38801630245480e-03,
        -1.66462311674257e-04, 5.73228348819328e-04, -5.21070161150201e-04,
    ];
    #[inline(always)]
    fn jacobian(t: f64, y: &[f64; 15], mut entry: impl FnMut(usize, usize, f64)) {
        let fast = 2.0 * (2e4 * PI * t).sin();
        let slope = |u: f64| DIODE.0 * DIODE.1 * (DIODE.1 * u).exp();
        let q = [
            slope(y[2] - y[4] - y[6] - fast),
            slope(-y[3] + y[5] - y[6] - fast),
            slope(y[3] + y[4] + y[6] + fast),
            slope(-y[2] - y[5] + y[6] + fast),
        ];
        let (per_slow, per_fast) = (1.0 / 1.6e-8, 1.0 / 5e-4);
        let c = 1.0 / CAPACITANCE;
        entries! { entry,
            0: 0 => -per_slow / 25e3, 7 => per_slow, 9 => -0.5 * per_slow, 10 => 0.5 * per_slow, 13 => per_slow;
            1: 1 => -per_slow / 25e3, 8 => per_slow, 11 => -0.5 * per_slow, 12 => 0.5 * per_slow, 14 => per_slow;
            2: 2 => -c * (q[0] + q[3]), 4 => c * q[0], 5 => -c * q[3], 6 => c * (q[0] + q[3]), 9 => c;
            3: 3 => -c * (q[1] + q[2]), 4 => -c * q[2], 5 => c * q[1], 6 => -c * (q[1] + q[2]), 10 => -c;
            4: 2 => c * q[0], 3 => -c * q[2], 4 => -c * (q[0] + q[2]), 6 => -c * (q[0] + q[2]), 11 => c;
            5: 2 => -c * q[3], 3 => c * q[1], 5 => -c * (q[1] + q[3]), 6 => c * (q[1] + q[3]), 12 => -c;
            6: 2 => 1e8 * (q[0] + q[3]), 3 => -1e8 * (q[1] + q[2]), 4 => -1e8 * (q[0] + q[2]),
                5 => 1e8 * (q[1] + q[3]), 6 => -1e8 * (0.02 + q[0] + q[1] + q[2] + q[3]);
            7: 0 => -1.0 / 4.45;
            8: 1 => -1.0 / 4.45;
            9: 0 => 0.5 * per_fast, 2 => -per_fast, 9 => -17.3 * per_fast;
            10: 0 => -0.5 * per_fast, 3 => per_fast, 10 => -17.3 * per_fast;
            11: 1 => 0.5 * per_fast, 4 => -per_fast, 11 => -17.3 * per_fast;
            12: 1 => -0.5 * per_fast, 5 => per_fast, 12 => -17.3 * per_fast;
            13: 0 => -1.0 / 2e-3, 13 => -86.3 / 2e-3;
            14: 1 => -1.0 / 2e-3, 14 => -636.3 / 2e-3;
        }
    }
}
