//! Every table meets every order condition, to what rounding its coefficients allows.
//!
//! A method has order p exactly when `sum_i b_i Phi_i(tree) = 1 / gamma(tree)` for each rooted tree of at most p
//! nodes (Hairer, Norsett, Wanner I, theorem II.2.13). Trees, weights and densities are generated here; sums run
//! in twice the precision, so what is left is the rounding of the coefficients alone.

use crate::ode::{ButcherTableau, Method};
use std::collections::BTreeSet;

/// A rooted tree: the sub-trees under its root, sorted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Tree(Vec<Tree>);

impl Tree {
    fn nodes(&self) -> u32 {
        1 + self.0.iter().map(Tree::nodes).sum::<u32>()
    }
    fn density(&self) -> u32 {
        self.nodes() * self.0.iter().map(Tree::density).product::<u32>()
    }
    /// Every tree with one leaf more.
    fn grown(&self) -> BTreeSet<Tree> {
        let with = |mut children: Vec<Tree>, child| {
            children.push(child);
            children.sort();
            Tree(children)
        };
        let mut trees = BTreeSet::from([with(self.0.clone(), Tree(vec![]))]);
        for i in 0..self.0.len() {
            let mut others = self.0.clone();
            let child = others.remove(i);
            trees.extend(child.grown().into_iter().map(|child| with(others.clone(), child)));
        }
        trees
    }
}

/// The rooted trees of n nodes.
fn trees(n: u32) -> BTreeSet<Tree> {
    let leaf = BTreeSet::from([Tree(vec![])]);
    (1..n).fold(leaf, |trees, _| trees.iter().flat_map(Tree::grown).collect())
}

/// An unevaluated sum of two f64.
#[derive(Clone, Copy)]
struct Double(f64, f64);

impl Double {
    const ONE: Double = Double(1.0, 0.0);
    const ZERO: Double = Double(0.0, 0.0);
    fn add(self, other: Double) -> Double {
        let sum = self.0 + other.0;
        let part = sum - self.0;
        let error = (self.0 - (sum - part)) + (other.0 - part);
        Double::normal(sum, error + self.1 + other.1)
    }
    fn mul(self, other: Double) -> Double {
        let product = self.0 * other.0;
        let error = self.0.mul_add(other.0, -product);
        Double::normal(product, error + self.0 * other.1 + self.1 * other.0)
    }
    fn normal(high: f64, low: f64) -> Double {
        let sum = high + low;
        Double(sum, low - (sum - high))
    }
}

/// `sum_i b_i Phi_i(tree)`, the coefficients passed through `f` (the identity, or the absolute value).
fn weight(tableau: &ButcherTableau, b: &[f64], tree: &Tree, f: fn(f64) -> f64) -> Double {
    let sum = |weights: &[f64], children: &Tree| {
        weights.iter().enumerate().fold(Double::ZERO, |sum, (j, &w)| {
            sum.add(Double(f(w), 0.0).mul(stage_weight(tableau, j, children, f)))
        })
    };
    sum(b, tree)
}

fn stage_weight(tableau: &ButcherTableau, i: usize, tree: &Tree, f: fn(f64) -> f64) -> Double {
    let row: &[f64] = if i == 0 { &[] } else { tableau.a[i - 1] };
    tree.0.iter().fold(Double::ONE, |product, child| product.mul(weight(tableau, row, child, f)))
}

/// How far `sum b Phi` lies from `target / gamma`, and 2 eps times the sum of its terms' sizes.
fn residual(tableau: &ButcherTableau, b: &[f64], tree: &Tree, target: f64) -> (f64, f64) {
    let gamma = f64::from(tree.density());
    let sum = weight(tableau, b, tree, |x| x).mul(Double(gamma, 0.0)).add(Double(-target, 0.0));
    let size = weight(tableau, b, tree, f64::abs);
    ((sum.0 / gamma).abs(), 2.0 * f64::EPSILON * size.0)
}

#[test]
fn rooted_trees_are_counted_as_in_the_literature() {
    let counts: Vec<usize> = (1..=7).map(|n| trees(n).len()).collect();
    assert_eq!(counts, [1, 1, 2, 4, 9, 20, 48]); // Hairer, Norsett, Wanner I, table II.2.1
}

#[test]
fn every_solution_has_its_order_and_no_more() {
    for tableau in Method::ALL.map(Method::tableau) {
        for tree in (1..=tableau.order).flat_map(trees) {
            let (residual, bound) = residual(tableau, tableau.b, &tree, 1.0);
            assert!(residual <= bound, "{} {tree:?}: {residual:e} > {bound:e}", tableau.name);
        }
        let fails = |tree: &Tree| residual(tableau, tableau.b, tree, 1.0).0 > 1e-6;
        assert!(trees(tableau.order + 1).iter().any(fails), "{} is of higher order", tableau.name);
    }
}

#[test]
fn every_error_estimate_has_its_order_and_no_more() {
    for tableau in Method::ALL.map(Method::tableau) {
        let Some(b_err) = tableau.b_err else { continue };
        for tree in (1..tableau.error_order).flat_map(trees) {
            let (residual, bound) = residual(tableau, b_err, &tree, 0.0);
            assert!(residual <= bound, "{} {tree:?}: {residual:e} > {bound:e}", tableau.name);
        }
        let fails = |tree: &Tree| residual(tableau, b_err, tree, 0.0).0 > 1e-6;
        assert!(
            trees(tableau.error_order).iter().any(fails),
            "{}'s estimate is of higher order",
            tableau.name
        );
    }
}

#[test]
fn rows_sum_to_their_times_and_shapes_agree() {
    for tableau in Method::ALL.map(Method::tableau) {
        let s = tableau.num_stages();
        assert_eq!((tableau.a.len(), tableau.c.len(), tableau.c[0]), (s - 1, s, 0.0), "{}", tableau.name);
        assert!(tableau.b_err.is_none_or(|b_err| b_err.len() == s));
        for (i, row) in tableau.a.iter().enumerate() {
            assert_eq!(row.len(), i + 1, "{} row {i}", tableau.name);
            let sum = row.iter().fold(Double::ZERO, |sum, &a| sum.add(Double(a, 0.0)));
            let size: f64 = row.iter().map(|a| a.abs()).sum();
            let residual = sum.add(Double(-tableau.c[i + 1], 0.0)).0.abs();
            assert!(residual <= 2.0 * f64::EPSILON * size, "{} row {i}: {residual:e}", tableau.name);
        }
    }
}

#[test]
fn first_same_as_last_is_read_off_the_numbers() {
    let fsal = Method::ALL.map(|method| method.tableau().is_fsal());
    assert_eq!(fsal, [false, false, true, true]);
    let mut other = *Method::Tsit5.tableau();
    other.c = &[0.0, 0.161, 0.327, 0.9, 0.98, 1.0, 0.99];
    assert!(!other.is_fsal());
}
