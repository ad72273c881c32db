//! Tables whose coordinates are decorrelated.

use super::*;

/// The rows p and A p + b with a lower triangular A have the same decorrelated coordinates, up to rounding, so the flows
/// are the same, and the log-densities differ by ln det A.
#[test]
fn a_table_and_its_lower_triangular_map_are_learned_alike() {
    let z = Key::new(12).normal([400, 3]).to_vec();
    let rows: Vec<[f64; 3]> =
        z.chunks(3).map(|z| [z[0], z[1] + 1.5 * z[0], (z[2] + z[1]).exp() - z[0]]).collect();
    let map = |[x, y, z]: [f64; 3]| [100.0 * x - 7.0, 0.3 * x + 0.2 * y, 5.0 * x - 2.0 * y + 3.0 * z + 1e3];
    let options = TrainOptions {
        updates: Some(5),
        batch: Some(64),
        width: Some(8),
        depth: Some(1),
        plots: Some(PlotsKind::None),
        ..TrainOptions::default()
    };
    let run = |rows: Vec<[f64; 3]>| {
        let learned = Trainer::new(Points::from_rows(rows.clone()).unwrap()).options(&options).run().unwrap();
        assert!(
            learned.header.config.decorrelate
                && learned.header.frames.points.as_ref().unwrap().factor.len() == 9
        );
        let log_probs = learned.log_prob(&rows[..50]).unwrap();
        let key = Key::new(2);
        let drawn = learned.sample(20, &key).unwrap();
        (log_probs, drawn, learned.report.unwrap().nll_nats)
    };
    let (plain, drawn, nll) = run(rows.clone());
    let (mapped, mapped_drawn, mapped_nll) = run(rows.into_iter().map(map).collect());
    let log_det = (100.0 * 0.2 * 3.0_f64).ln();
    assert!((mapped_nll - nll - log_det).abs() < 1e-3, "{nll} {mapped_nll}");
    for (a, b) in plain.iter().zip(&mapped) {
        assert!((a - b - log_det).abs() < 5e-3, "{a} {b}");
    }
    for (p, q) in drawn.iter().zip(&mapped_drawn) {
        let scales = [100.0, 1.0, 30.0];
        assert!((0..3).all(|a| (map([p[0], p[1], p[2]])[a] - q[a]).abs() < 1e-2 * scales[a]), "{p:?} {q:?}");
    }
    // A flow of the caller works in standardized columns.
    let flow = Cnf::new(ConcatSquash::new(3, [4], &Key::new(0)));
    let points = Points::from_rows([[0.0, 1.0, 2.0], [1.0, 3.0, 2.5], [2.0, 0.0, 7.0]].repeat(20)).unwrap();
    let given =
        Trainer::from_flow(flow, points).options(&TrainOptions { width: None, depth: None, ..options });
    assert!(given.run().unwrap().header.frames.points.as_ref().unwrap().factor.is_empty());
}
