//! Rosenbrock tableaux meet the conditions of their order, with the Jacobian and with any matrix in its
//! place.
//!
//! The conditions use the untransformed triangles alpha and Gamma: `Gamma^-1 = I / gamma - C`, `alpha = A
//! Gamma`, `b = m Gamma`. A vertex of a tree with several children contributes alpha, a vertex with a single
//! child contributes `alpha + Gamma`. In a W-method (with any matrix in place of the Jacobian) the edge to a
//! single child stands for the derivative of the field, which contributes alpha, or for the matrix, which
//! contributes Gamma. The sums of trees with an edge of the matrix must be 0.
//!
//! # References
//! Hairer, Wanner (1996), Solving Ordinary Differential Equations II, section IV.7, theorems 7.4 and 7.7.

use crate::ode::order::Double;
use crate::ode::tableau::Kind;
use crate::ode::{ButcherTableau, Interpolant, Method};

type Rows = Vec<Vec<Double>>;

/// A rooted tree, given by its subtrees. `by_matrix` is true if the edge to its single child stands for the
/// matrix.
#[derive(Clone)]
struct Tree {
    children: Vec<Tree>,
    by_matrix: bool,
}

impl Tree {
    fn nodes(&self) -> u32 {
        1 + self.children.iter().map(Tree::nodes).sum::<u32>()
    }
    fn density(&self) -> f64 {
        f64::from(self.nodes()) * self.children.iter().map(Tree::density).product::<f64>()
    }
    fn has_matrix(&self) -> bool {
        self.by_matrix || self.children.iter().any(Tree::has_matrix)
    }
    /// All trees with n nodes; if `marked`, also those with edges that stand for the matrix.
    fn all(n: u32, marked: bool) -> Vec<Tree> {
        if n == 1 {
            return vec![Tree { children: vec![], by_matrix: false }];
        }
        let mut out = Vec::new();
        for children in forests(n - 1, (n - 1, 0), marked) {
            if marked && children.len() == 1 {
                out.push(Tree { children: children.clone(), by_matrix: true });
            }
            out.push(Tree { children, by_matrix: false });
        }
        out
    }
}

/// All multisets of trees with n nodes in total. Larger trees come first. No tree comes before tree `from` of
/// size `most`.
fn forests(n: u32, (most, from): (u32, usize), marked: bool) -> Vec<Vec<Tree>> {
    if n == 0 {
        return vec![vec![]];
    }
    let mut out = Vec::new();
    for size in (1..=most.min(n)).rev() {
        let skipped = if size == most { from } else { 0 };
        for (index, first) in Tree::all(size, marked).into_iter().enumerate().skip(skipped) {
            for rest in forests(n - size, (size, index), marked) {
                let mut all = vec![first.clone()];
                all.extend(rest);
                out.push(all);
            }
        }
    }
    out
}

/// A method by its untransformed triangles; `both` is their sum.
struct Plain {
    alpha: Rows,
    gamma: Rows,
    both: Rows,
}

fn times(weights: &[f64], rows: &Rows) -> Vec<Double> {
    let column = |j: usize| {
        weights.iter().zip(rows).fold(Double::ZERO, |sum, (&w, row)| sum.add(Double(w, 0.0).mul(row[j])))
    };
    (0..rows.len()).map(column).collect()
}

fn dot(weights: &[Double], phi: &[Double]) -> Double {
    weights.iter().zip(phi).fold(Double::ZERO, |sum, (&w, &phi)| sum.add(w.mul(phi)))
}

impl Plain {
    fn of(tableau: &ButcherTableau) -> Plain {
        let Kind::Rosenbrock(numbers) = tableau.kind else { panic!("{}", tableau.name) };
        let (s, diagonal) = (tableau.num_stages(), Double(numbers.gamma, 0.0));
        // Gamma = gamma (I - gamma C)^-1, row after row.
        let mut gamma: Rows = Vec::new();
        for i in 0..s {
            let mut row = vec![Double::ZERO; s];
            row[i] = diagonal;
            for (j, &c) in numbers.row(i).iter().enumerate() {
                for k in 0..s {
                    row[k] = row[k].add(diagonal.mul(Double(c, 0.0)).mul(gamma[j][k]));
                }
            }
            gamma.push(row);
        }
        let padded = |i: usize| {
            let mut row = tableau.row(i).to_vec();
            row.resize(s, 0.0);
            row
        };
        let alpha: Rows = (0..s).map(|i| times(&padded(i), &gamma)).collect();
        let sum = |(a, g): (&Vec<Double>, &Vec<Double>)| (0..s).map(|j| a[j].add(g[j])).collect();
        let both = alpha.iter().zip(&gamma).map(sum).collect();
        Plain { alpha, gamma, both }
    }

    /// The elementary weights of a tree, one per stage. With `is_w`, any matrix replaces the Jacobian.
    fn phi(&self, tree: &Tree, is_w: bool) -> Vec<Double> {
        let rows = match (tree.children.len(), is_w, tree.by_matrix) {
            (1, false, _) => &self.both,
            (1, true, true) => &self.gamma,
            _ => &self.alpha,
        };
        let mut phi = vec![Double::ONE; rows.len()];
        for child in &tree.children {
            let of_child = self.phi(child, is_w);
            for (phi, row) in phi.iter_mut().zip(rows) {
                *phi = phi.mul(dot(row, &of_child));
            }
        }
        phi
    }

    /// The largest residual of the conditions of trees with n nodes, for the weights at theta.
    fn worst(&self, n: u32, weights: &[f64], theta: f64, is_w: bool) -> f64 {
        let weights = times(weights, &self.gamma);
        let residual = |tree: &Tree| {
            let target = if tree.has_matrix() { 0.0 } else { theta.powi(n as i32) / tree.density() };
            dot(&weights, &self.phi(tree, is_w)).add(Double(-target, 0.0)).0.abs()
        };
        Tree::all(n, is_w).iter().map(residual).fold(0.0, f64::max)
    }
}

/// The order up to which all conditions hold.
fn order(plain: &Plain, weights: &[f64], theta: f64, is_w: bool) -> u32 {
    (1..=6).take_while(|&n| plain.worst(n, weights, theta, is_w) < 1e-12).last().unwrap_or(0)
}

const METHODS: [(Method, u32, u32); 2] = [(Method::Rodas5P, 2, 4), (Method::Rosenbrock23, 2, 2)];

#[test]
fn trees_are_counted_as_in_the_literature() {
    let counts = |marked| (1..=5).map(|n| Tree::all(n, marked).len()).collect::<Vec<_>>();
    assert_eq!(counts(false), [1, 1, 2, 4, 9]);
    assert_eq!(counts(true), [1, 2, 5, 13, 37]); // sums 1, 3, 8, 21, 58: Hairer, Wanner II, table IV.7.2
}

#[test]
fn solutions_estimates_and_w_solutions_have_their_orders_and_no_more() {
    for (method, w_order, _) in METHODS {
        let (tableau, plain) = (method.tableau(), Plain::of(method.tableau()));
        assert_eq!(order(&plain, tableau.b, 1.0, false), tableau.order, "{method}");
        assert_eq!(order(&plain, tableau.b, 1.0, true), w_order, "{method}");
        let b_err = tableau.b_err.unwrap();
        let zero_up_to = (1..=6).take_while(|&n| plain.worst(n, b_err, 0.0, false) < 1e-12).last();
        assert_eq!(zero_up_to, Some(tableau.error_order - 1), "{method}");
    }
}

#[test]
fn dense_outputs_have_their_orders_and_no_more() {
    for (method, _, dense) in METHODS {
        let (interpolant, plain) = (Interpolant::of(method.tableau()), Plain::of(method.tableau()));
        assert_eq!((interpolant.order(), interpolant.num_stages()), (dense, method.tableau().num_stages()));
        let mut weights = vec![0.0; interpolant.num_stages()];
        for i in 1..=9 {
            let theta = f64::from(i) / 10.0;
            interpolant.weights(theta, &mut weights);
            assert_eq!(order(&plain, &weights, theta, false), dense, "{method} at {theta}");
        }
    }
}

#[test]
fn rows_sum_to_times_and_weights_of_the_time_derivative() {
    for (method, ..) in METHODS {
        let (tableau, plain) = (method.tableau(), Plain::of(method.tableau()));
        let Kind::Rosenbrock(numbers) = tableau.kind else { unreachable!() };
        let ones = vec![Double::ONE; tableau.num_stages()];
        for i in 0..tableau.num_stages() {
            assert!((dot(&plain.alpha[i], &ones).0 - tableau.c[i]).abs() < 1e-14, "{method} c {i}");
            assert!((dot(&plain.gamma[i], &ones).0 - numbers.d[i]).abs() < 1e-14, "{method} d {i}");
        }
    }
}

/// For y' = z y the stages satisfy `(I - z B) k = z 1`. In the limit of large z this is `B k = -1`.
#[test]
fn a_step_of_infinite_stiffness_gives_zero() {
    for (method, ..) in METHODS {
        let (tableau, plain) = (method.tableau(), Plain::of(method.tableau()));
        let mut k: Vec<f64> = Vec::new();
        for i in 0..tableau.num_stages() {
            let sum: f64 = (0..i).map(|j| plain.both[i][j].0 * k[j]).sum();
            k.push((-1.0 - sum) / plain.both[i][i].0);
        }
        let r = |weights: &[f64]| -> f64 {
            times(weights, &plain.gamma).iter().zip(&k).map(|(b, k)| b.0 * k).sum()
        };
        assert!((1.0 + r(tableau.b)).abs() < 1e-10, "{method}: {:e}", 1.0 + r(tableau.b));
    }
}
