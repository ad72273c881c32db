//! The GRU against its formula.

use super::*;

/// The formula for one row in plain Rust.
fn step(cell: &GruCell, x: &[f64], h: &[f64]) -> Vec<f64> {
    let (a, b, n) = (affine(&cell.input, x), affine(&cell.state, h), h.len());
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let unit = |i: usize| {
        let (r, z) = (sigmoid(a[i] + b[i]), sigmoid(a[n + i] + b[n + i]));
        let new = (a[2 * n + i] + r * b[2 * n + i]).tanh();
        (1.0 - z) * new + z * h[i]
    };
    (0..n).map(unit).collect()
}

#[test]
fn a_gated_unit_is_its_formula() {
    let cell = double(&GruCell::new(3, 4, &Key::new(1)));
    let (x, h) = (draws([2, 3], 2), draws([2, 4], 3));
    let (v, s) = (x.to_vec(), h.to_vec());
    let want = [step(&cell, &v[..3], &s[..4]), step(&cell, &v[3..], &s[4..])].concat();
    close(&cell.forward(&x, &h), &want);
    assert_eq!((cell.inputs(), cell.hidden(), num_elements(&cell)), (3, 4, 3 * 4 * (3 + 4 + 2)));
}

#[test]
fn an_unrolled_sequence_is_one_step_after_the_other() {
    let cell = double(&GruCell::new(3, 4, &Key::new(1)));
    let x = draws([2, 5, 3], 4);
    let states = cell.unroll(&x, &cell.zeros(2, DType::F64));
    let v = x.to_vec();
    let mut want = Vec::new();
    for row in v.chunks(15) {
        let mut h = vec![0.0; 4];
        for x in row.chunks(3) {
            h = step(&cell, x, &h);
            want.extend_from_slice(&h);
        }
    }
    assert_eq!(**states.shape(), [2, 5, 4]);
    close(&states, &want);
}

#[test]
fn gradients_of_an_unrolled_sequence_are_those_of_differences() {
    let cell = GruCell::new(3, 4, &Key::new(1));
    assert_gradients(&cell, &draws([2, 4, 3], 5), |cell, x| cell.unroll(x, &draws([2, 4], 6)));
}
