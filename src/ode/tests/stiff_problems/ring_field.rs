//! The vector field of the ring modulator of the CWI test set. Benches include this file, too.

use super::vector_field;
use std::f64::consts::PI;

/// Current in A and exponent in 1/V of a diode.
pub const DIODE: (f64, f64) = (40.67286402e-9, 17.7493332);
/// The absolute tolerances at a relative tolerance of 1: voltages are up to 0.4 V, currents up to 1e-6 A in two coils and up to
/// 1e-3 A in the others.
#[rustfmt::skip]
pub const SCALE: [f64; 15] = [
    1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-9, 1e-9, 1e-7, 1e-7, 1e-7, 1e-7, 1e-7, 1e-7,
];

vector_field! {
    /// Seven voltages in V, then eight currents in A.
    pub struct RingModulatorField<R> { pub capacitance: R }
    fn eval(&self, t, y: &[R; 15]) -> [R; 15] {
        let (slow, fast) = (0.5 * (2e3 * PI * t).sin(), 2.0 * (2e4 * PI * t).sin());
        let diode = |u: R| DIODE.0 * ((DIODE.1 * u).exp() - 1.0);
        let q = [
            diode(y[2] - y[4] - y[6] - fast),
            diode(-y[3] + y[5] - y[6] - fast),
            diode(y[3] + y[4] + y[6] + fast),
            diode(-y[2] - y[5] + y[6] + fast),
        ];
        [
            (y[7] - 0.5 * y[9] + 0.5 * y[10] + y[13] - y[0] / 25e3) / 1.6e-8,
            (y[8] - 0.5 * y[11] + 0.5 * y[12] + y[14] - y[1] / 25e3) / 1.6e-8,
            (y[9] - q[0] + q[3]) / self.capacitance,
            (-y[10] + q[1] - q[2]) / self.capacitance,
            (y[11] + q[0] - q[2]) / self.capacitance,
            (-y[12] - q[1] + q[3]) / self.capacitance,
            (-y[6] / 50.0 + q[0] + q[1] - q[2] - q[3]) / 1e-8,
            -y[0] / 4.45,
            -y[1] / 4.45,
            (0.5 * y[0] - y[2] - 17.3 * y[9]) / 5e-4,
            (-0.5 * y[0] + y[3] - 17.3 * y[10]) / 5e-4,
            (0.5 * y[1] - y[4] - 17.3 * y[11]) / 5e-4,
            (-0.5 * y[1] + y[5] - 17.3 * y[12]) / 5e-4,
            (-y[0] + slow - 86.3 * y[13]) / 2e-3,
            (-y[1] - 636.3 * y[14]) / 2e-3,
        ]
    }
}
