//! Drawn densities, of which every cell is known: the refined grid beside them.

use super::*;
use crate::ode::tests::draw::{Draw, num_cases};
use std::collections::HashSet;
use std::convert::Infallible;

/// A mixture of normals on a grid, in cells. The narrowest has a standard deviation of 0.8 cells.
struct Case {
    shape: [usize; 2],
    /// Weight, center, the axes of the covariance divided by their variances.
    parts: Vec<(f64, [f64; 2], [[f64; 2]; 2])>,
    /// Beyond this distance from the middle the log-density is -inf.
    reach: f64,
}

impl Case {
    fn draw(draw: &mut Draw) -> Case {
        let shape = [0, 1].map(|_| 1 + draw.below(260));
        let mut part = || {
            let wide = draw.log_uniform(0.8, 40.0);
            let narrow = (wide * draw.log_uniform(0.1, 1.0)).max(0.8);
            let (sin, cos) = draw.uniform(0.0, std::f64::consts::PI).sin_cos();
            let center = shape.map(|n| n as f64 * draw.unit());
            (draw.uniform(0.05, 1.0), center, [[cos / wide, sin / wide], [-sin / narrow, cos / narrow]])
        };
        let parts: Vec<_> = (0..5).map(|_| part()).collect();
        let parts = parts[..=draw.below(5)].to_vec();
        let reach = if draw.below(3) == 0 { draw.uniform(0.0, 150.0) } else { f64::INFINITY };
        Case { shape, parts, reach }
    }

    fn log_density(&self, place: Place) -> f32 {
        let at = place.map(|x| x as f64 + 0.5);
        let middle = self.shape.map(|n| 0.5 * n as f64);
        if (at[0] - middle[0]).hypot(at[1] - middle[1]) > self.reach {
            return f32::NEG_INFINITY;
        }
        let term = |(weight, center, axes): &(f64, [f64; 2], [[f64; 2]; 2])| {
            let off = [at[0] - center[0], at[1] - center[1]];
            let along = axes.map(|axis| axis[0] * off[0] + axis[1] * off[1]);
            let area = (axes[0][0] * axes[1][1] - axes[0][1] * axes[1][0]).abs();
            (weight * area).ln() - 0.5 * (along[0].powi(2) + along[1].powi(2))
        };
        let terms: Vec<f64> = self.parts.iter().map(term).collect();
        let most = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (most + terms.iter().map(|x| (x - most).exp()).sum::<f64>().ln()) as f32
    }

    /// The center of each part: a sample of a flow lies in each.
    fn seeds(&self) -> Vec<Place> {
        let inside = |place: &Place| (0..2).all(|a| place[a] < self.shape[a]);
        self.parts.iter().map(|(_, center, _)| center.map(|x| x as usize)).filter(inside).collect()
    }

    /// The refined grid, and its share of solved cells. No cell is solved twice.
    fn refined(&self, accuracy: Accuracy) -> (Vec<f32>, f64) {
        let mut seen = HashSet::new();
        let mut progress = 0.0;
        let grid = Refined { seeds: self.seeds(), ..Refined::new(self.shape, accuracy) };
        let found = grid.eval(&mut |places: &[Place], [from, to]: [f64; 2]| {
            assert!(progress <= from && from <= to && to <= 1.0 + 1e-9, "{progress} {from} {to}");
            progress = to;
            assert!(places.iter().all(|&place| seen.insert(place)));
            Ok::<_, Infallible>(Some(places.iter().map(|&place| self.log_density(place)).collect()))
        });
        let (values, solved) = found.unwrap().unwrap();
        assert_eq!(solved, seen.len());
        (values, solved as f64 / (self.shape[0] * self.shape[1]) as f64)
    }
}

#[test]
fn a_cell_is_as_far_from_its_solved_value_as_the_accuracy_says() {
    let (cases, mut draw) = (num_cases(60), Draw(0x9e11));
    let [mut small, mut cut, mut few, mut worst, mut worst_nats] = [0.0; 5];
    for i in 0..cases {
        let case = Case::draw(&mut draw);
        let [rows, cols] = case.shape;
        let solved: Vec<f32> = (0..rows * cols).map(|i| case.log_density([i / cols, i % cols])).collect();
        let peak = solved.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        assert_eq!(case.refined(Accuracy::EVERY_CELL), (solved.clone(), 1.0), "case {i}");
        small += f64::from(rows * cols <= SMALL);
        cut += f64::from(solved.contains(&f32::NEG_INFINITY));
        if peak == f32::NEG_INFINITY {
            continue;
        }
        for accuracy in [Accuracy::FIGURE, Accuracy::NUMBERS] {
            let (found, share) = case.refined(accuracy);
            few += f64::from(share < 0.3);
            let [mut mass, mut expected] = [0.0; 2];
            for (&found, &solved) in found.iter().zip(&solved) {
                let [p, q] = [found, solved].map(|x| f64::from(x - peak).exp());
                (mass, expected, worst) = (mass + p, expected + q, (p - q).abs().max(worst));
                if solved - peak > accuracy.floor && accuracy.floor == Accuracy::NUMBERS.floor {
                    worst_nats = f64::from((found - solved).abs()).max(worst_nats);
                }
                assert!((p - q).abs() < 1e-3, "case {i}, {accuracy:?}: {p} instead of {q} of the peak");
            }
            assert!((mass / expected - 1.0).abs() < 1e-3, "case {i}, {accuracy:?}: {mass} of {expected}");
        }
    }
    let counts = [small, cut, few].map(|n| n / cases as f64);
    assert!(counts[0] > 0.02 && counts[1] > 0.05 && counts[2] > 0.2, "small, cut, few: {counts:?}");
    assert!(worst > 0.0 && worst_nats < 0.2, "{worst} of the peak, {worst_nats} nats");
}

#[test]
fn without_time_there_are_no_values() {
    let mut draw = Draw(3);
    let case =
        std::iter::repeat_with(|| Case::draw(&mut draw)).find(|case| case.shape[0] * case.shape[1] > SMALL);
    let case = case.unwrap();
    let mut num_calls = [0, 0];
    let grid = Refined::new(case.shape, Accuracy::FIGURE);
    for most in 0..12 {
        let mut calls = 0;
        let found = grid.eval(&mut |places: &[Place], _| {
            calls += 1;
            let values = || places.iter().map(|&place| case.log_density(place)).collect();
            Ok::<_, Infallible>((calls <= most).then(values))
        });
        let found = found.unwrap();
        assert_eq!(found.is_some(), calls <= most);
        num_calls[usize::from(found.is_some())] += 1;
    }
    assert!(num_calls[0] > 2, "{num_calls:?}");
}
