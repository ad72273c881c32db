//! The divergence of a vector field: exact, or estimated with random probes.

use crate::array::{Array, DType};
use crate::nn::VelocityField;
use crate::tensor::{Key, Tensor, jvp};

/// The distribution of the elements of random probes, which are independent with mean 0 and variance 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProbeDistribution {
    /// -1 or 1: the estimate has the least variance among such distributions, and none for a diagonal Jacobian.
    Rademacher,
    /// Standard normal.
    Gaussian,
}

/// How the divergence `div f = tr(df/dy)` is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "trace_estimator")]
pub enum Divergence {
    /// The sum of the Jacobian's diagonal, from `dim` Jacobian-vector products.
    Exact,
    /// The mean of `e^T (df/dy) e` over probes e: unbiased, one Jacobian-vector product per probe. Probes are
    /// sampled once per solve, so the integrand is a smooth function of t.
    ///
    /// # References
    /// Hutchinson (1989); Grathwohl et al. (2019), FFJORD, eq. 7 and 8.
    Hutchinson {
        /// The distribution of the probes.
        probe: ProbeDistribution,
        /// The number of probes in the mean.
        num_probes: usize,
    },
}

impl Divergence {
    /// [`Divergence::Hutchinson`] with one probe.
    pub fn hutchinson(probe: ProbeDistribution) -> Divergence {
        Divergence::Hutchinson { probe, num_probes: 1 }
    }

    /// Probes per row; 0 for the exact divergence.
    pub(super) fn num_probes(self) -> usize {
        match self {
            Divergence::Exact => 0,
            Divergence::Hutchinson { num_probes, .. } => num_probes,
        }
    }

    /// The probes of n rows, of shape `[n, num_probes dim]`, or `None` for the exact divergence. They are
    /// sampled for all rows at once, so a row's probes do not depend on the tiling.
    pub(super) fn draw(self, n: usize, dim: usize, dtype: DType, key: &Key) -> Option<Tensor> {
        let Divergence::Hutchinson { probe, num_probes } = self else { return None };
        assert!(num_probes > 0, "num_probes is 0, but an estimated divergence needs at least one probe");
        let shape = [n, num_probes * dim];
        let probes = match probe {
            ProbeDistribution::Rademacher => key.rademacher(shape),
            ProbeDistribution::Gaussian => key.normal(shape),
        };
        Some(probes.cast(dtype))
    }
}

/// The directions of the derivatives, created once per solve. Equal constants in a graph are merged only if
/// they are the same array. Sharing the arrays lets the stages share the values computed from them.
pub(super) enum Directions {
    /// The unit vector of each axis, in each row.
    Axes(Vec<Tensor>),
    /// Random vectors: one tensor per probe, with a row for each row of y.
    Probes(Vec<Tensor>),
}

impl Directions {
    /// The axes for the rows of y, or the probes from [`Divergence::draw`].
    pub fn new(y: &Tensor, probes: Option<&Tensor>) -> Directions {
        let (rows, dim) = (y.shape()[0], y.shape()[1]);
        match probes {
            None => Directions::Axes((0..dim).map(|i| axis(y.dtype(), rows, dim, i)).collect()),
            Some(e) => {
                let count = e.shape()[1] / dim;
                Directions::Probes((0..count).map(|k| e.slice(1, k * dim..(k + 1) * dim)).collect())
            }
        }
    }
}

/// The field at a point: velocity `[rows, dim]`, divergence `[rows]` and, on request, the squared Frobenius
/// norm of the Jacobian `[rows]`. The norm is exact or estimated like the divergence: `E |J e|^2 = |J|_F^2`
/// for probes of unit variance.
pub(super) struct Local {
    pub velocity: Tensor,
    pub divergence: Tensor,
    pub jacobian: Option<Tensor>,
}

/// Evaluates a field with the derivatives that its density and regularizers need.
///
/// Each direction is a forward-mode derivative of the whole field. The derivatives share one evaluation of the
/// field and the derivatives of its activations, because equal graph nodes are merged.
pub(super) fn local<D: VelocityField>(
    (field, labels): (&D, Option<&Tensor>),
    t: &Tensor,
    y: &Tensor,
    directions: &Directions,
    with_jacobian: bool,
) -> Local {
    let along = |e: &Tensor| jvp(|y: &Tensor| field.eval_conditional(t, y, labels), y, e);
    let (all, mean) = match directions {
        Directions::Axes(axes) => (axes, 1.0),
        Directions::Probes(probes) => (probes, 1.0 / probes.len() as f64),
    };
    let (mut velocities, derivatives): (Vec<Tensor>, Vec<Tensor>) = all.iter().map(along).unzip();
    let sum = |terms: Vec<Tensor>| {
        let sum = terms.into_iter().reduce(|a, b| a + b).expect("invariant: at least one direction");
        if mean == 1.0 { sum } else { sum * mean }
    };
    let traces = derivatives.iter().enumerate().map(|(i, derivative)| match directions {
        Directions::Axes(_) => derivative.column(i),
        Directions::Probes(probes) => (derivative * &probes[i]).sum_last(),
    });
    Local {
        divergence: sum(traces.collect()),
        jacobian: with_jacobian.then(|| sum(derivatives.iter().map(|s| s.square().sum_last()).collect())),
        velocity: velocities.swap_remove(0),
    }
}

/// The unit vector of axis i in each row.
fn axis(dtype: DType, rows: usize, dim: usize, i: usize) -> Tensor {
    let mut a = Array::zeros(dtype, [rows, dim]);
    (0..rows).for_each(|r| a.data_mut().set_f64(r * dim + i, 1.0));
    Tensor::from_array(a)
}
