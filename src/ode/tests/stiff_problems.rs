//! Published stiff problems, with end values of Radau IIA of order 13 in 80-bit arithmetic.

/// Robertson (1966): a chemical reaction.
pub fn rober(_t: f64, y: &[f64; 3]) -> [f64; 3] {
    let (a, b, c) = (0.04 * y[0], 3e7 * y[1] * y[1], 1e4 * y[1] * y[2]);
    [-a + c, a - b - c, b]
}
pub const ROBER_40: [f64; 3] = [7.15827068719405046e-01, 9.18553476455776429e-06, 2.84163745745830365e-01];
pub const ROBER_1E11: [f64; 3] = [2.08334014970129409e-08, 8.33336077033478378e-14, 9.99999979166515174e-01];

/// The same with the last equation replaced by the conserved sum.
pub fn rober_dae(t: f64, y: &[f64; 3]) -> [f64; 3] {
    let dy = rober(t, y);
    [dy[0], dy[1], y[0] + y[1] + y[2] - 1.0]
}

/// HIRES of the CWI test set: the growth of a plant by light.
pub fn hires(_t: f64, y: &[f64; 8]) -> [f64; 8] {
    let bound = 280.0 * y[5] * y[7];
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
pub const HIRES_START: [f64; 8] = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057];
pub const HIRES_END: [f64; 8] = [
    7.37131257332566741e-04,
    1.44248572631618479e-04,
    5.88872974096757516e-05,
    1.17565134328314908e-03,
    2.38635619883133037e-03,
    6.23896825274279556e-03,
    2.84999839518576895e-03,
    2.85000160481423126e-03,
];

/// The Oregonator.
pub fn orego(_t: f64, y: &[f64; 3]) -> [f64; 3] {
    [
        77.27 * (y[1] + y[0] * (1.0 - 8.375e-6 * y[0] - y[1])),
        (y[2] - (1.0 + y[0]) * y[1]) / 77.27,
        0.161 * (y[0] - y[2]),
    ]
}
pub const OREGO_30: [f64; 3] = [1.00066146718049676e+00, 1.51277893734825034e+03, 1.03585431276722757e+04];

/// Van der Pol's oscillator with eps = 1e-6.
pub fn vdpol(_t: f64, y: &[f64; 2]) -> [f64; 2] {
    [y[1], ((1.0 - y[0] * y[0]) * y[1] - y[0]) / 1e-6]
}
pub const VDPOL_2: [f64; 2] = [1.70616773217046491e+00, -8.92809701024816604e-01];

/// Prothero and Robinson: the solution is sin(t + pi/4) whatever `rate`.
pub fn prothero_robinson(rate: f64) -> impl Fn(f64, &f64) -> f64 + Clone {
    move |t, y| rate * (y - (t + QUARTER).sin()) + (t + QUARTER).cos()
}
pub const QUARTER: f64 = std::f64::consts::FRAC_PI_4;

/// The largest relative difference.
pub fn relative<const N: usize>(found: &[f64; N], reference: &[f64; N]) -> f64 {
    (0..N).map(|i| (found[i] / reference[i] - 1.0).abs()).fold(0.0, f64::max)
}
