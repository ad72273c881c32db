//! Checks the results that the example states.

use super::run;

#[test]
fn eight_by_eight_points_end_where_radau_does() {
    let (y1, words) = run(8, 11.5, 1e-7).unwrap();
    // Radau IIA of order 13: u and v at (0, 0) and at (1/2, 1/2).
    let exact = [
        (0, 0.622511479040012472),
        (36, 0.907407419910358892),
        (64, 4.85261655323567709),
        (100, 4.62527137499708374),
    ];
    for (i, exact) in exact {
        assert!((y1[i] - exact).abs() < 1e-4, "{i}: {}, not {exact}; {words}", y1[i]);
    }
}
