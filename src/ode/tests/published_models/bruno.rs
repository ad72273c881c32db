//! Cleavage of carotenoids: Bruno et al., J. Exp. Bot. 67(21):5993-6005 (2016).
//!
//! The reactions are those of the collection's SBML file in Bruno_JExpBio2016. The times and the simulated values are
//! those of its simulatedData_Bruno_JExpBot2016.tsv. The estimated parameters and the table of the six experiments are
//! figures of its parameter and condition tables, read from a published transcription; with them the simulated
//! values are found again.

use super::Model;
use crate::ode::*;
use crate::vector_field;

vector_field! {
    /// The states are beta-carotene, beta-cryptoxanthin, beta-10, beta-ionone, OH-beta-10, OH-beta-ionone and
    /// zeaxanthin. In each experiment one of them is given.
    struct Bruno<R> {
        /// b10, bcar of experiment 2, bcar of experiment 3, bcry, ohb10, zea.
        initial: [R; 6],
        k5: R, kb1: R, kb2: R, kc1: R, kc2: R, kc4: R,
        /// A factor of all rates of experiments 3 and 6.
        szea: R,
        experiment: usize,
    }
    fn eval(&self, _t, y: &[R; 7]) -> [R; 7] {
        let [bcar, bcry, b10, _, ohb10, _, zea] = *y;
        let Experiment { on, is_scaled, .. } = EXPERIMENTS[self.experiment];
        let factor = if is_scaled { self.szea } else { R::from(1.0) };
        let [k5, kb1, kb2, kc1, kc2, kc4] = on.map(|on| factor * on);
        let v1 = kb1 * self.kb1 * bcar;
        let v2 = kb2 * self.kb2 * b10;
        let v3 = kc1 * self.kc1 * bcry;
        let v4 = kc2 * self.kc2 * bcry;
        let v5 = kc4 * self.kc4 * ohb10;
        let v6 = k5 * self.k5 * zea;
        [-v1, -v3 - v4, v1 - v2 + v3, v1 + v2 + v4, v4 - v5 + v6, v3 + v5 + v6, -v6]
    }
    fn start(&self, _t, y: &[R; 7]) -> [R; 7] {
        let mut start = *y;
        start[EXPERIMENTS[self.experiment].given] = self.initial[self.experiment];
        start
    }
    fn bcar(&self, _t, y: &[R; 7]) -> R { y[0] }
    fn bcry(&self, _t, y: &[R; 7]) -> R { y[1] }
    fn b10(&self, _t, y: &[R; 7]) -> R { y[2] }
    fn bio(&self, _t, y: &[R; 7]) -> R { y[3] }
    fn ohb10(&self, _t, y: &[R; 7]) -> R { y[4] }
    fn zea(&self, _t, y: &[R; 7]) -> R { y[6] }
}

struct Experiment {
    /// The state that is given.
    given: usize,
    /// 1 for the enzymes that are present, in the order k5, kb1, kb2, kc1, kc2, kc4.
    on: [f64; 6],
    is_scaled: bool,
    /// A state and its simulated values at the times of the data.
    simulated: &'static [(usize, [f64; 7])],
}

const EXPERIMENTS: [Experiment; 6] = [
    Experiment {
        given: 2,
        on: [0.0, 0.0, 1.0, 1.0, 0.0, 1.0],
        is_scaled: false,
        simulated: &[(
            2,
            [
                4.1007031178,
                3.8679329271,
                3.5433149898,
                2.9735232618,
                2.4953573709,
                2.0940845066,
                1.4747455535,
            ],
        )],
    },
    Experiment {
        given: 0,
        on: [1.0, 1.0, 1.0, 0.0, 0.0, 0.0],
        is_scaled: false,
        simulated: &[
            (
                0,
                [
                    3.4600905706,
                    2.6962673892,
                    2.101058656,
                    1.6372455102,
                    0.9941803929,
                    0.6036938738,
                    0.2225972322,
                ],
            ),
            (
                2,
                [
                    0.9367650884,
                    1.5881195746,
                    2.0236676635,
                    2.2970886058,
                    2.513277279,
                    2.4647021073,
                    2.048059315,
                ],
            ),
        ],
    },
    Experiment {
        given: 0,
        on: [1.0; 6],
        is_scaled: true,
        simulated: &[
            (
                0,
                [
                    2.902383118,
                    2.5513452752,
                    2.2427647857,
                    1.9715063376,
                    1.5234468824,
                    1.1772168464,
                    0.702934202,
                ],
            ),
            (
                2,
                [
                    0.3902359533,
                    0.7159890441,
                    0.9858237042,
                    1.20723512,
                    1.5301859784,
                    1.7279982289,
                    1.8720253587,
                ],
            ),
        ],
    },
    Experiment {
        given: 1,
        on: [1.0, 0.0, 1.0, 1.0, 1.0, 1.0],
        is_scaled: false,
        simulated: &[
            (
                1,
                [
                    4.5817845289,
                    4.0239593714,
                    3.5340485114,
                    3.1037836189,
                    2.3940285173,
                    1.8465760752,
                    1.0986085538,
                ],
            ),
            (
                2,
                [
                    0.1178472599,
                    0.2114564431,
                    0.2846085455,
                    0.340554526,
                    0.4115954133,
                    0.4424441561,
                    0.4321306396,
                ],
            ),
            (
                4,
                [
                    0.4888059758,
                    0.875475892,
                    1.1761615875,
                    1.4047241297,
                    1.6912750943,
                    1.8109226563,
                    1.754396846,
                ],
            ),
        ],
    },
    Experiment {
        given: 4,
        on: [0.0, 0.0, 1.0, 0.0, 0.0, 1.0],
        is_scaled: false,
        simulated: &[(
            4,
            [1.6852063215, 1.585755596, 1.4474746941, 1.2060364715, 1.0048699385, 0.8372581166, 0.5812447356],
        )],
    },
    Experiment {
        given: 6,
        on: [1.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        is_scaled: true,
        simulated: &[
            (
                4,
                [
                    0.0683157977,
                    0.1318695126,
                    0.1909186993,
                    0.2457081252,
                    0.3434266675,
                    0.4267504807,
                    0.556290391,
                ],
            ),
            (
                6,
                [
                    2.8881772361,
                    2.8198853489,
                    2.7532082457,
                    2.6881077461,
                    2.5624883101,
                    2.4427392609,
                    2.2197678138,
                ],
            ),
        ],
    },
];

fn model(experiment: usize) -> Model<Bruno, 7> {
    let field = Bruno {
        initial: [
            4.22228991356159,
            4.44029572277168,
            3.30171980495163,
            5.21693865661801,
            1.73724675926262,
            2.95812301577671,
        ],
        k5: 0.003086673219173,
        kb1: 0.016628409992721,
        kb2: 0.005843831819271,
        kc1: 0.001678825242274,
        kc2: 0.006975989070463,
        kc4: 0.006082700899195,
        szea: 0.516831766210391,
        experiment,
    };
    let times = match experiment {
        0 | 4 => vec![5.0, 15.0, 30.0, 60.0, 90.0, 120.0, 180.0],
        _ => vec![15.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0],
    };
    Model {
        field,
        start: Bruno::start,
        observables: vec![Bruno::bcar, Bruno::bcry, Bruno::b10, Bruno::bio, Bruno::ohb10, Bruno::zea],
        times,
        methods: [Method::Tsit5, Method::Vern9],
        size: 1e-1,
        rtol: 1e-12,
        group: 1,
        change: 4e-3,
        zero: 0.0,
        switches: None,
    }
}

#[test]
fn sensitivities() {
    for experiment in 0..6 {
        model(experiment).assert_sensitivities(&format!("Bruno, experiment {}", experiment + 1));
    }
}

#[test]
fn values_are_as_published() {
    for (i, experiment) in EXPERIMENTS.iter().enumerate() {
        let model = model(i);
        let ys = model.states(&model.field, Method::Tsit5, 1e-10);
        for (state, simulated) in experiment.simulated {
            for (y, simulated) in ys.iter().zip(simulated) {
                assert!((y[*state] / simulated - 1.0).abs() < 1e-5, "{} for {simulated}", y[*state]);
            }
        }
        // A carotene has two rings and each of its products has one. The reactions keep all rings.
        let rings = |y: &[f64; 7]| 2.0 * (y[0] + y[1] + y[6]) + y[2] + y[3] + y[4] + y[5];
        let all = rings(&model.start.eval(&model.field, 0.0, &[0.0; 7], 0.0));
        for y in &ys {
            assert!((rings(y) / all - 1.0).abs() < 1e-12, "{} for {all}", rings(y));
        }
    }
}
