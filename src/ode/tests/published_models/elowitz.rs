//! The repressilator with a reporter: Elowitz and Leibler, Nature 403:335-338 (2000).
//!
//! The reactions, the parameters and the initial state are those of the collection's SBML file in Elowitz_Nature2000.
//! The times, the simulated values, the background and the scale are those of its simulatedData_Elowitz_Nature2000.tsv,
//! and the order of background and scale is that of its measurement table.

use super::{Model, is_thorough};
use crate::ode::*;
use crate::vector_field;
use std::f64::consts::LN_2;

vector_field! {
    /// The states are the proteins X (LacI), Y (TetR), Z (cI) and GFP, and their mRNA. The SBML file lets X repress
    /// GFP itself, not its mRNA.
    struct Elowitz<R> {
        km: R, n_hill: R, tps_active: R, tps_repressed: R,
        efficiency: R, efficiency_gfp: R,
        tau_mrna: R, tau_mrna_gfp: R, tau_protein: R, tau_protein_gfp: R,
        background: R, scale: R,
        initial: [R; 8],
    }
    fn eval(&self, _t, y: &[R; 8]) -> [R; 8] {
        let [x, y_protein, z, gfp, x_mrna, y_mrna, z_mrna, gfp_mrna] = *y;
        let km = self.km.powf(self.n_hill);
        let transcribed = |repressor: R| {
            let free = km / (km + repressor.powf(self.n_hill));
            60.0 * (self.tps_repressed + (self.tps_active - self.tps_repressed) * free)
        };
        let protein = |mrna: R, protein: R| {
            mrna * self.efficiency / self.tau_mrna - protein * LN_2 / self.tau_protein
        };
        let mrna = |mrna: R, repressor: R| transcribed(repressor) - mrna * LN_2 / self.tau_mrna;
        [
            protein(x_mrna, x),
            protein(y_mrna, y_protein),
            protein(z_mrna, z),
            gfp_mrna * self.efficiency_gfp / self.tau_mrna_gfp - gfp * LN_2 / self.tau_protein_gfp
                + transcribed(x),
            mrna(x_mrna, z),
            mrna(y_mrna, x),
            mrna(z_mrna, y_protein),
            -gfp_mrna * LN_2 / self.tau_mrna_gfp,
        ]
    }
    fn start(&self, _t, _y: &[R; 8]) -> [R; 8] { self.initial }
    fn fluorescence(&self, _t, y: &[R; 8]) -> R { self.background + y[3] * self.scale }
}

/// The simulated values at 10, 30, 50, 60, 70 ... 600 minutes.
const SIMULATED: [f64; 58] = [
    0.17985510790355,
    0.154075279670803,
    0.133013932596571,
    0.124925789264688,
    0.122632345769039,
    0.142076536313219,
    0.22571784377453,
    0.422552020849143,
    0.638934172948195,
    0.705442006015758,
    0.678865646865378,
    0.629642448692058,
    0.578382618178207,
    0.529904079110556,
    0.485268063041401,
    0.444605834141005,
    0.407850969182924,
    0.375011441079161,
    0.346400452422061,
    0.323019680159136,
    0.307310461471631,
    0.304561528498656,
    0.32510630269404,
    0.386079259819538,
    0.506672634246589,
    0.684492235128793,
    0.86349032353222,
    0.966959295137,
    0.979513413065619,
    0.937231593393036,
    0.873762669083635,
    0.806076767379687,
    0.740910025110161,
    0.680736718104848,
    0.626649929168137,
    0.579685495230938,
    0.541718211840635,
    0.516481709692013,
    0.51077776250127,
    0.534781218996727,
    0.597546424405912,
    0.692548257864917,
    0.784486202451419,
    0.832154585809515,
    0.827677097863683,
    0.790100780475779,
    0.738778423636671,
    0.684653952059187,
    0.632730631462356,
    0.585328976920798,
    0.544014432995524,
    0.510746501720169,
    0.488833432013139,
    0.483791447278071,
    0.50319917222794,
    0.552755027484643,
    0.625869019664127,
    0.69596759290456,
];

/// The model with the data of up to `hours` hours.
fn model(hours: i32) -> Model<Elowitz, 8> {
    let field = Elowitz {
        km: 1.00013184764194e-05,
        n_hill: 1.52254567553984,
        tps_active: 0.612278991244992,
        tps_repressed: 1.00000000000883e-05,
        efficiency: 0.0301592803622868,
        efficiency_gfp: 0.00195212197096568,
        tau_mrna: 12.624824570772,
        tau_mrna_gfp: 0.000404064377463447,
        tau_protein: 5.35926527470063,
        tau_protein_gfp: 71.9312640934983,
        background: 10.0_f64.powf(-4.98107438218408),
        scale: 10.0_f64.powf(-0.279017032524776),
        initial: [
            30.8087735629587,
            0.000818268062900602,
            994.381959318238,
            3.38716998236181e-05,
            2.55665758135759,
            999.999945990876,
            19.3670294497271,
            131.435737789559,
        ],
    };
    let times = [10.0, 30.0].into_iter().chain((5..=6 * hours).map(|i| 10.0 * f64::from(i)));
    Model {
        field,
        start: Elowitz::start,
        observables: vec![Elowitz::fluorescence],
        times: times.collect(),
        methods: [Method::Rodas5P; 2],
        size: 1e-4,
        rtol: 1e-10,
        group: 5,
        change: 5e-4,
        zero: 0.0,
        switches: None,
    }
}

#[test]
fn sensitivities() {
    model(if is_thorough() { 10 } else { 1 }).assert_sensitivities("Elowitz");
}

#[test]
fn values_are_as_published() {
    let model = model(10);
    let values = model.values(&model.field, Method::Rodas5P, 1e-8);
    let worst = values.iter().zip(SIMULATED).map(|(value, simulated)| (value / simulated - 1.0).abs());
    let worst = worst.fold(0.0, f64::max);
    assert!(worst < 2e-5, "{worst:e}");
}
