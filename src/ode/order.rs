//! Order conditions: the equations that the coefficients of a Runge-Kutta method of some order satisfy.
//!
//! A method has order p exactly when `sum_i b_i Phi_i(t) = 1 / gamma(t)` for each rooted tree t of at most p
//! nodes (Hairer, Norsett, Wanner I, theorem II.2.13). An interpolant has order q when its weights at theta
//! give `theta^n / gamma(t)`, where n is the number of nodes of t. An estimate is O(h^k) when its weights give
//! 0 for all trees of fewer than k nodes. Trees, weights and densities are generated here, and sums run in
//! twice the precision, so the residuals show only the rounding of the coefficients. This module uses only
//! numbers, no vector field and no solve.

/// The maximum number of nodes of a tree, which is the highest order that can be checked.
pub(super) const ORDER_MAX: u32 = 10;

/// An unevaluated sum of two f64.
#[derive(Clone, Copy, Debug)]
pub(super) struct Double(pub f64, pub f64);

impl Double {
    pub const ZERO: Double = Double(0.0, 0.0);
    pub const ONE: Double = Double(1.0, 0.0);
    pub fn add(self, other: Double) -> Double {
        let sum = self.0 + other.0;
        let part = sum - self.0;
        let error = (self.0 - (sum - part)) + (other.0 - part);
        Double::normal(sum, error + self.1 + other.1)
    }
    pub fn mul(self, other: Double) -> Double {
        let product = self.0 * other.0;
        let error = self.0.mul_add(other.0, -product);
        Double::normal(product, error + self.0 * other.1 + self.1 * other.0)
    }
    fn normal(high: f64, low: f64) -> Double {
        let sum = high + low;
        Double(sum, low - (sum - high))
    }
}

/// A rooted tree, made of two smaller trees: the root of the second is attached to the root of the first.
///
/// The second tree is the last of the root's children in the order of [`Trees`], so each tree is generated
/// once.
struct Tree {
    nodes: u32,
    density: f64,
    parts: Option<(usize, usize)>,
}

/// The rooted trees of up to a given number of nodes, sorted by their number of nodes.
pub(super) struct Trees(Vec<Tree>);

impl Trees {
    pub fn up_to(nodes: u32) -> Trees {
        let mut trees = vec![Tree { nodes: 1, density: 1.0, parts: None }];
        for n in 2..=nodes {
            let mut grown = Vec::new();
            for (first, trunk) in trees.iter().enumerate() {
                for (last, branch) in trees.iter().enumerate().filter(|(_, t)| trunk.nodes + t.nodes == n) {
                    if trunk.parts.is_none_or(|(_, before)| before <= last) {
                        // gamma(t) is n times the product of the children's densities.
                        let others = trunk.density / f64::from(trunk.nodes);
                        let density = f64::from(n) * others * branch.density;
                        grown.push(Tree { nodes: n, density, parts: Some((first, last)) });
                    }
                }
            }
            trees.extend(grown);
        }
        Trees(trees)
    }

    /// The number of trees with n nodes.
    #[cfg(test)]
    pub fn count(&self, n: u32) -> usize {
        self.0.iter().filter(|tree| tree.nodes == n).count()
    }

    /// The name in the literature's notation: a dot for the single node, else the children in brackets.
    pub fn name(&self, index: usize) -> String {
        let mut children = Vec::new();
        let mut rest = index;
        while let Some((first, last)) = self.0[rest].parts {
            children.push(self.name(last));
            rest = first;
        }
        if children.is_empty() { "•".into() } else { format!("[{}]", children.join(",")) }
    }
}

/// The residual of a condition, and the size of its terms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Residual {
    pub residual: f64,
    pub terms: f64,
}

/// A condition that does not hold: its tree, the number of nodes of the tree, and the residual.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub tree: String,
    pub nodes: u32,
    pub residual: f64,
}

/// The trees, and for each tree its weight `Phi_i` at each stage i.
pub(super) struct Conditions {
    trees: Trees,
    phi: Vec<Vec<Double>>,
    /// The same weights, computed with the absolute value of every coefficient.
    size: Vec<Vec<f64>>,
}

impl Conditions {
    /// The conditions of all trees of at most `nodes` nodes. `rows[i]` holds the i coefficients of stage i.
    pub fn new(rows: &[&[f64]], nodes: u32) -> Conditions {
        let trees = Trees::up_to(nodes);
        let (mut phi, mut size) = (Vec::<Vec<Double>>::new(), Vec::<Vec<f64>>::new());
        for tree in &trees.0 {
            let Some((first, last)) = tree.parts else {
                phi.push(vec![Double::ONE; rows.len()]);
                size.push(vec![1.0; rows.len()]);
                continue;
            };
            phi.push((0..rows.len()).map(|i| phi[first][i].mul(sum(rows[i], &phi[last]))).collect());
            size.push((0..rows.len()).map(|i| size[first][i] * sum_of_sizes(rows[i], &size[last])).collect());
        }
        Conditions { trees, phi, size }
    }

    /// The absolute difference of `sum_i w_i Phi_i` and `scale^n / gamma`, for the tree of n nodes at
    /// `index`.
    pub fn residual(&self, index: usize, weights: &[f64], scale: f64) -> Residual {
        let tree = &self.trees.0[index];
        let target = (0..tree.nodes).fold(Double::ONE, |power, _| power.mul(Double(scale, 0.0)));
        let gamma = Double(tree.density, 0.0);
        let excess = sum(weights, &self.phi[index]).mul(gamma).add(Double(-target.0, -target.1));
        let terms = sum_of_sizes(weights, &self.size[index]);
        Residual { residual: (excess.0 / tree.density).abs(), terms }
    }

    /// The indices of the trees of n nodes.
    pub fn of_nodes(&self, n: u32) -> impl Iterator<Item = usize> + '_ {
        let of_n = move |&(_, tree): &(usize, &Tree)| tree.nodes == n;
        self.trees.0.iter().enumerate().filter(of_n).map(|(index, _)| index)
    }

    /// The first condition of at most p nodes that fails by more than `tolerance` times the size of its terms.
    pub fn failure(&self, p: u32, weights: &[f64], scale: f64, tolerance: f64) -> Option<Failure> {
        (1..=p).flat_map(|n| self.of_nodes(n)).find_map(|index| {
            let Residual { residual, terms } = self.residual(index, weights, scale);
            let tree =
                || Failure { tree: self.trees.name(index), nodes: self.trees.0[index].nodes, residual };
            let holds = residual <= tolerance * terms.max(f64::MIN_POSITIVE);
            (!holds).then(tree)
        })
    }

    /// The largest p for which the conditions of all trees of at most p nodes hold.
    pub fn order(&self, weights: &[f64], scale: f64, tolerance: f64) -> u32 {
        let nodes = self.trees.0.last().map_or(0, |tree| tree.nodes);
        self.failure(nodes, weights, scale, tolerance).map_or(nodes, |failure| failure.nodes - 1)
    }
}

fn sum(weights: &[f64], phi: &[Double]) -> Double {
    let terms = weights.iter().zip(phi).filter(|(w, _)| **w != 0.0);
    terms.fold(Double::ZERO, |sum, (&w, &phi)| sum.add(Double(w, 0.0).mul(phi)))
}

fn sum_of_sizes(weights: &[f64], size: &[f64]) -> f64 {
    weights.iter().zip(size).map(|(w, size)| w.abs() * size).sum()
}
