//! HIV with treatment of those with a weak immune system: Rahman et al., Math. Biosci. (2016).
//!
//! The reactions, parameters and initial state are those of the SBML file in the collection's folder Rahman_MBS2016.
//! The observables and the times are those of its tables. The collection's simulated values belong to other parameters,
//! which were fitted to the data and were not at hand. Only the first of these values is compared, because it depends
//! on the initial state alone.

use super::Model;
use crate::ode::*;
use crate::vector_field;

vector_field! {
    /// The states are the susceptible people, the infected and the treated ones, each with normal, moderate and weak
    /// immunity.
    struct Rahman<R> {
        recruitment: R,
        /// The rate of moderate immunity, and those of normal and weak immunity relative to it.
        transmission: R, relative_normal: R, relative_weak: R,
        treatment: [R; 3],
        /// From normal to moderate, and from moderate to weak.
        worsen: [R; 2],
        /// From moderate to normal, and from weak to moderate.
        improve: [R; 2],
        death: R,
        infected_death: [R; 3],
        treated_death: [R; 3],
        behavioural_change: R,
        /// The susceptible and the infected people.
        initial: [R; 4],
    }
    fn eval(&self, _t, y: &[R; 7]) -> [R; 7] {
        let [s, normal, moderate, weak, t_normal, t_moderate, t_weak] = *y;
        let infected = normal + moderate + weak + t_normal + t_moderate + t_weak;
        let relative = self.relative_normal * normal + moderate + self.relative_weak * weak
            + 0.04 * (t_normal + t_moderate + t_weak);
        let force = self.transmission * relative / (s + infected) * (-self.behavioural_change * infected).exp();
        let worse = [self.worsen[0] * normal, self.worsen[1] * moderate];
        let better = [self.improve[0] * t_moderate, self.improve[1] * t_weak];
        let (treated, dead) = (self.treatment, self.infected_death);
        [
            self.recruitment - force * s - self.death * s,
            force * s - worse[0] - (treated[0] + dead[0]) * normal,
            worse[0] - worse[1] - (treated[1] + dead[1]) * moderate,
            worse[1] - (treated[2] + dead[2]) * weak,
            better[0] + treated[0] * normal - self.treated_death[0] * t_normal,
            better[1] - better[0] + treated[1] * moderate - self.treated_death[1] * t_moderate,
            treated[2] * weak - better[1] - self.treated_death[2] * t_weak,
        ]
    }
    fn start(&self, _t, y: &[R; 7]) -> [R; 7] {
        let mut start = *y;
        start[..4].copy_from_slice(&self.initial);
        start
    }
    /// The percentage of infected people.
    fn prevalence(&self, _t, y: &[R; 7]) -> R {
        let infected = y[1] + y[2] + y[3] + y[4] + y[5] + y[6];
        100.0 * infected / (y[0] + infected)
    }
    fn normal(&self, _t, y: &[R; 7]) -> R { y[1] + y[4] }
    fn moderate(&self, _t, y: &[R; 7]) -> R { y[2] + y[5] }
    fn weak(&self, _t, y: &[R; 7]) -> R { y[3] + y[6] }
}

fn model() -> Model<Rahman, 7> {
    let field = Rahman {
        recruitment: 1032672.0,
        transmission: 0.082,
        relative_normal: 12.57,
        relative_weak: 4.54,
        treatment: [0.0, 0.0, 0.11],
        worsen: [0.33, 0.34],
        improve: [0.57, 0.82],
        death: 0.0288,
        infected_death: [0.0888, 0.1368, 0.3108],
        treated_death: [0.0408, 0.0528, 0.1752],
        behavioural_change: 0.00000024744,
        initial: [17940000.0, 16300.0, 9000.0, 11000.0],
    };
    Model {
        field,
        start: Rahman::start,
        observables: vec![Rahman::prevalence, Rahman::normal, Rahman::moderate, Rahman::weak],
        times: (0..=22).map(f64::from).collect(),
        methods: [Method::Tsit5, Method::Vern9],
        size: 1.0,
        rtol: 1e-12,
        group: 1,
        change: 4e-3,
        zero: 0.1,
        switches: None,
    }
}

#[test]
fn sensitivities() {
    model().assert_sensitivities("Rahman");
}

#[test]
fn prevalence_is_as_published_at_first_and_as_by_another_program() {
    let model = model();
    let values = model.values(&model.field, Method::Tsit5, 1e-10);
    // The second value is from a Python program: the classical method of order 4 with steps of 0.01 years.
    for (k, want) in [(0, 0.20193254451694997), (22, 18.74415299239661)] {
        assert!((values[4 * k] / want - 1.0).abs() < 1e-8, "year {k}: {} for {want}", values[4 * k]);
    }
}
