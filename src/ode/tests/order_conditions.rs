//! Every tableau satisfies its order conditions up to the rounding of its coefficients.

use crate::ode::order::{Conditions, Double, ORDER_MAX, Residual, Trees};
use crate::ode::tableau::row;
use crate::ode::{ButcherTableau, DEGREE_MAX, Interpolant, Method};

/// The rows of the method's stages, and of the extra stages of its dense output.
fn rows<'a>(tableau: &'a ButcherTableau<'a>, interpolant: &'a Interpolant) -> Vec<&'a [f64]> {
    let own = (0..tableau.num_stages()).map(|i| tableau.row(i));
    own.chain(interpolant.extra().map(|(_, a)| a)).collect()
}

/// Asserts that `weights` satisfy the order conditions of trees with up to `nodes` nodes, to `eps` machine
/// epsilons times the size of the terms.
fn assert_hold(name: &str, conditions: &Conditions, nodes: u32, weights: &[f64], scale: f64, eps: f64) {
    let failure = conditions.failure(nodes, weights, scale, eps * f64::EPSILON);
    assert!(failure.is_none(), "{name} at {scale}: {failure:?}");
}

/// Asserts that an order condition of a tree with `nodes` nodes fails by more than 1e-6.
fn assert_fail(name: &str, conditions: &Conditions, nodes: u32, weights: &[f64], scale: f64) {
    let worst = worst(conditions, nodes, weights, scale);
    assert!(worst > 1e-6, "{name} meets the conditions of order {nodes}: {worst:e}");
}

fn worst(conditions: &Conditions, nodes: u32, weights: &[f64], scale: f64) -> f64 {
    let of = |index| conditions.residual(index, weights, scale).residual;
    conditions.of_nodes(nodes).map(of).fold(0.0, f64::max)
}

#[test]
fn rooted_trees_are_counted_as_in_the_literature() {
    let trees = Trees::up_to(10);
    let counts: Vec<usize> = (1..=10).map(|n| trees.count(n)).collect();
    assert_eq!(counts, [1, 1, 2, 4, 9, 20, 48, 115, 286, 719]); // Hairer, Norsett, Wanner I, table II.2.1
    let names: Vec<String> = (0..8).map(|i| trees.name(i)).collect();
    assert_eq!(names, ["•", "[•]", "[[•]]", "[•,•]", "[[[•]]]", "[[•,•]]", "[[•],•]", "[•,•,•]"]);
}

#[test]
fn every_solution_has_its_order_and_no_more() {
    for tableau in Method::EXPLICIT.map(Method::tableau) {
        let rows: Vec<&[f64]> = (0..tableau.num_stages()).map(|i| tableau.row(i)).collect();
        let conditions = Conditions::new(&rows, tableau.order + 1);
        assert_hold(tableau.name, &conditions, tableau.order, tableau.b, 1.0, 2.0);
        assert_fail(tableau.name, &conditions, tableau.order + 1, tableau.b, 1.0);
    }
}

#[test]
fn every_error_estimate_has_its_order_and_no_more() {
    for tableau in Method::EXPLICIT.map(Method::tableau) {
        let Some(b_err) = tableau.b_err else { continue };
        let rows: Vec<&[f64]> = (0..tableau.num_stages()).map(|i| tableau.row(i)).collect();
        let conditions = Conditions::new(&rows, ORDER_MAX);
        let goes_with = |weights: &[f64], k: u32| {
            assert_hold(tableau.name, &conditions, k - 1, weights, 0.0, 2.0);
            assert_fail(tableau.name, &conditions, k, weights, 0.0);
        };
        match tableau.b_err_low {
            None => goes_with(b_err, tableau.error_order),
            Some(low) => {
                // DOP853: e^2 / sqrt(e^2 + 0.01 e_low^2) is O(h^(2 * 6 - 4)).
                goes_with(b_err, 6);
                goes_with(low, 4);
                assert_eq!(tableau.error_order, 2 * 6 - 4);
            }
        }
    }
}

#[test]
fn rows_sum_to_their_times_and_shapes_agree() {
    for tableau in Method::EXPLICIT.map(Method::tableau) {
        let (s, interpolant) = (tableau.num_stages(), Interpolant::of(tableau));
        assert_eq!((tableau.a.len(), tableau.c.len(), tableau.c[0]), (s * (s - 1) / 2, s, 0.0));
        for weights in [tableau.b_err, tableau.b_err_low].into_iter().flatten() {
            assert_eq!(weights.len(), s, "{}", tableau.name);
        }
        if let Some(dense) = tableau.dense {
            let extra = dense.extra_c.len();
            assert_eq!(dense.extra_a.len(), extra * s + extra * extra.saturating_sub(1) / 2);
            assert_eq!(dense.weights.len(), (s + extra) * dense.degree, "{}", tableau.name);
            assert!(dense.degree <= DEGREE_MAX);
        }
        let times = tableau.c.iter().copied().chain(interpolant.extra().map(|(c, _)| c));
        for (i, (row, c)) in rows(tableau, &interpolant).into_iter().zip(times).enumerate() {
            assert_eq!(row.len(), i, "{} row {i}", tableau.name);
            let sum = row.iter().fold(Double::ZERO, |sum, &a| sum.add(Double(a, 0.0)));
            let size: f64 = row.iter().map(|a| a.abs()).sum();
            let residual = sum.add(Double(-c, 0.0)).0.abs();
            assert!(residual <= 2.0 * f64::EPSILON * size, "{} row {i}: {residual:e}", tableau.name);
        }
    }
}

#[test]
fn fsal_is_derived_from_the_numbers() {
    let fsal: Vec<Method> =
        Method::EXPLICIT.into_iter().filter(|method| method.tableau().is_fsal()).collect();
    assert_eq!(fsal, [Method::Bosh3, Method::Dopri5, Method::Tsit5]);
    let mut other = *Method::Tsit5.tableau();
    other.c = &[0.0, 0.161, 0.327, 0.9, 0.98, 1.0, 0.99];
    assert!(!other.is_fsal());
}

#[test]
fn every_dense_output_has_its_order_and_no_more() {
    for method in Method::EXPLICIT {
        let (tableau, interpolant) = (method.tableau(), Interpolant::of(method.tableau()));
        let rows = rows(tableau, &interpolant);
        let (order, mut weights) = (interpolant.order(), vec![0.0; rows.len()]);
        let conditions = Conditions::new(&rows, order + 1);
        for theta in [0.0625, 0.3125, 0.5, 0.8125, 0.9375] {
            interpolant.weights(theta, &mut weights);
            // Vern7's published interpolant satisfies its conditions only to 3e-7: see `tableaux/vern7.rs`.
            let exact = if method == Method::Vern7 { order - 1 } else { order };
            assert_hold(tableau.name, &conditions, exact, &weights, theta, 16.0);
            assert!(worst(&conditions, order, &weights, theta) < 3e-7, "{method}");
        }
        interpolant.weights(0.3125, &mut weights);
        let next = worst(&conditions, order + 1, &weights, 0.3125);
        assert!(next > 5e-7, "{method}'s dense output is of order {}: {next:e}", order + 1);
    }
}

#[test]
fn conditions_detect_a_wrong_digit() {
    let tableau = Method::Rk4.tableau();
    // The row sums are unchanged. The order falls from 4 to 2, which only the conditions of the trees reveal.
    let a = [0.5, 0.01, 0.49, 0.0, 0.0, 1.0];
    let rows: Vec<&[f64]> = (0..4).map(|i| row(&a, 0, i)).collect();
    let conditions = Conditions::new(&rows, 4);
    assert_eq!(conditions.order(tableau.b, 1.0, 1e-12), 2);
    let failure = conditions.failure(4, tableau.b, 1.0, 1e-12).unwrap();
    assert_eq!((failure.tree.as_str(), failure.nodes), ("[[•]]", 3));
    let Residual { residual, terms } = conditions.residual(2, tableau.b, 1.0);
    assert!((residual - 0.01 / 6.0).abs() < 1e-15 && terms < 0.2, "{residual} {terms}");
}
