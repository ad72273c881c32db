//! Dimers of STAT5A and STAT5B that are phosphorylated and imported into the nucleus: Boehm et al., J. Proteome Res.
//! 13(12):5685-5694 (2014).
//!
//! The parameters, the data and the formulas of the observables are those of the collection's folder
//! Boehm_JProteomeRes2014. The reactions are the nine of its SBML file, read from two published transcriptions of
//! this file, which agree. At these parameters the negative log-likelihood of the data is 138.22 (Hass et al. 2019).

use super::Model;
use crate::ode::*;
use crate::vector_field;
use std::f64::consts::TAU;

/// The volumes of cytoplasm and nucleus.
const VOLUMES: [f64; 2] = [1.4, 0.45];

vector_field! {
    /// The states are STAT5A, STAT5B, pApA, pApB, pBpB, and the three dimers in the nucleus.
    struct Boehm<R> {
        epo_degradation: R, k_exp_hetero: R, k_exp_homo: R, k_imp_hetero: R, k_imp_homo: R, k_phos: R,
        ratio: R, spec_c17: R,
    }
    fn eval(&self, t, y: &[R; 8]) -> [R; 8] {
        let [a, b, aa, ab, bb, nuc_aa, nuc_ab, nuc_bb] = *y;
        let rate = 1.25e-7 * (-self.epo_degradation * t).exp() * self.k_phos;
        let (phos_aa, phos_ab, phos_bb) = (rate * a * a, rate * a * b, rate * b * b);
        let (imp_aa, imp_ab, imp_bb) = (self.k_imp_homo * aa, self.k_imp_hetero * ab, self.k_imp_homo * bb);
        let (exp_aa, exp_ab, exp_bb) =
            (self.k_exp_homo * nuc_aa, self.k_exp_hetero * nuc_ab, self.k_exp_homo * nuc_bb);
        let per_nucleus = VOLUMES[0] / VOLUMES[1];
        let per_cytoplasm = VOLUMES[1] / VOLUMES[0];
        [
            per_cytoplasm * (2.0 * exp_aa + exp_ab) - 2.0 * phos_aa - phos_ab,
            per_cytoplasm * (2.0 * exp_bb + exp_ab) - 2.0 * phos_bb - phos_ab,
            phos_aa - imp_aa,
            phos_ab - imp_ab,
            phos_bb - imp_bb,
            per_nucleus * imp_aa - exp_aa,
            per_nucleus * imp_ab - exp_ab,
            per_nucleus * imp_bb - exp_bb,
        ]
    }
    fn start(&self, _t, y: &[R; 8]) -> [R; 8] {
        let mut start = *y;
        (start[0], start[1]) = (207.6 * self.ratio, 207.6 - 207.6 * self.ratio);
        start
    }
    /// The percentage of phosphorylated STAT5A.
    fn p_a(&self, _t, y: &[R; 8]) -> R {
        let [a, _, aa, ab, ..] = *y;
        let c = self.spec_c17;
        (100.0 * ab + 200.0 * aa * c) / (ab + a * c + 2.0 * aa * c)
    }
    /// The percentage of phosphorylated STAT5B.
    fn p_b(&self, _t, y: &[R; 8]) -> R {
        let [_, b, _, ab, bb, ..] = *y;
        let c = self.spec_c17 - 1.0;
        -(100.0 * ab - 200.0 * bb * c) / (b * c - ab + 2.0 * bb * c)
    }
    /// The percentage of STAT5A in all STAT5.
    fn r_a(&self, _t, y: &[R; 8]) -> R {
        let [a, b, aa, ab, bb, ..] = *y;
        let c = self.spec_c17;
        (100.0 * ab + 100.0 * a * c + 200.0 * aa * c)
            / (2.0 * ab + a * c + 2.0 * aa * c - b * (c - 1.0) - 2.0 * bb * (c - 1.0))
    }
}

const TIMES: [f64; 16] =
    [0.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 80.0, 100.0, 120.0, 160.0, 200.0, 240.0];

/// pSTAT5A_rel, pSTAT5B_rel and rSTAT5A_rel at these times.
const DATA: [[f64; 16]; 3] = [
    [
        7.90107299873911,
        66.3634939682528,
        81.1713239165337,
        94.7303080627876,
        95.1164830493244,
        91.44171655392,
        91.2570992263545,
        93.672297840992,
        88.754232823019,
        85.2697032178279,
        81.1323953369608,
        76.135928475796,
        65.2480591250229,
        42.5996587097166,
        25.1577975445976,
        15.4301823994994,
    ],
    [
        4.59653334288927,
        29.6345459874189,
        46.0438064695701,
        81.9747336191685,
        80.5716092952489,
        79.0357196371442,
        75.6723803658298,
        71.6247198618303,
        69.0628632755742,
        67.1473843168934,
        60.8994762938824,
        54.8092577721492,
        43.9812899778025,
        29.7714581636675,
        20.089016562771,
        10.961845166698,
    ],
    [
        14.7231682180584,
        33.762342293107,
        36.7998512942493,
        49.7176022859654,
        46.9281200952955,
        47.8365745550135,
        46.9287272497385,
        40.5977529351181,
        43.783663885071,
        44.4573876523855,
        41.3271592618297,
        41.0627332148332,
        39.2358300289377,
        36.6194605442418,
        34.8937144010561,
        32.2110771608676,
    ],
];
const SD: [f64; 3] = [3.85261197844677, 6.59147818673419, 3.15271275648527];

fn model() -> Model<Boehm, 8> {
    let field = Boehm {
        epo_degradation: 0.026982514033029,
        k_exp_hetero: 1.00067973851508e-05,
        k_exp_homo: 0.006170228086381,
        k_imp_hetero: 0.0163679184468,
        k_imp_homo: 97749.3794024716,
        k_phos: 15766.5070195731,
        ratio: 0.693,
        spec_c17: 0.107,
    };
    Model {
        field,
        start: Boehm::start,
        observables: vec![Boehm::p_a, Boehm::p_b, Boehm::r_a],
        times: TIMES.to_vec(),
        methods: [Method::Rodas5P; 2],
        size: 1e-2,
        rtol: 1e-10,
        group: 2,
        change: 2e-3,
        zero: 0.0,
        switches: None,
    }
}

#[test]
fn sensitivities() {
    model().assert_sensitivities("Boehm");
}

#[test]
fn likelihood_is_as_published() {
    let model = model();
    let values = model.values(&model.field, Method::Rodas5P, 1e-8);
    let mut sum = 0.0;
    for (k, values) in values.chunks(3).enumerate() {
        for ((value, data), sd) in values.iter().zip(DATA.map(|data| data[k])).zip(SD) {
            sum += 0.5 * (TAU * sd * sd).ln() + 0.5 * ((value - data) / sd).powi(2);
        }
    }
    assert!((sum - 138.22).abs() < 5e-3, "{sum}");
}

#[test]
fn total_protein_is_conserved() {
    let model = model();
    for y in model.states(&model.field, Method::Rodas5P, 1e-10) {
        let total =
            VOLUMES[0] * (y[0] + y[1] + 2.0 * (y[2] + y[3] + y[4])) + 2.0 * VOLUMES[1] * (y[5] + y[6] + y[7]);
        assert!((total / (VOLUMES[0] * 207.6) - 1.0).abs() < 1e-12, "{total}");
    }
}
