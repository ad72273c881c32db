//! The divergence of a vector field: exact, or estimated with random probes.

use crate::array::{Array, DType};
use crate::nn::Drift;
use crate::tensor::{Key, Tensor, jvp};

/// What random probes are drawn from: mean 0, identity covariance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Probe {
    /// -1 or 1: of all such laws the one with the least variance, and none for a diagonal Jacobian.
    Rademacher,
    /// Standard normal.
    Gaussian,
}

/// How the divergence `div f = tr(df/dy)` is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Divergence {
    /// The sum of the Jacobian's diagonal, by one derivative along each axis: `dim` of them.
    Exact,
    /// The mean of `e^T (df/dy) e` over probes e: unbiased, one derivative a probe. The probes are drawn
    /// once a solve, so what is integrated is a smooth function of t.
    ///
    /// # References
    /// Hutchinson (1989); Grathwohl et al. (2019), FFJORD, eq. 7 and 8.
    Hutchinson {
        /// Their law.
        probe: Probe,
        /// How many are averaged.
        num_probes: usize,
    },
}

impl Divergence {
    /// [`Divergence::Hutchinson`] with one probe.
    pub fn hutchinson(probe: Probe) -> Divergence {
        Divergence::Hutchinson { probe, num_probes: 1 }
    }

    /// Probes a row; 0 of an exact one.
    pub(super) fn num_probes(self) -> usize {
        match self {
            Divergence::Exact => 0,
            Divergence::Hutchinson { num_probes, .. } => num_probes,
        }
    }

    /// The probes of n rows, of shape `[n, num_probes dim]`; none where none are needed. They are drawn
    /// for all rows at once, so a row's probes do not depend on how the rows are cut into tiles.
    pub(super) fn draw(self, n: usize, dim: usize, dtype: DType, key: &Key) -> Option<Tensor> {
        let Divergence::Hutchinson { probe, num_probes } = self else { return None };
        assert!(num_probes > 0, "an estimated divergence has at least one probe");
        let shape = [n, num_probes * dim];
        let probes = match probe {
            Probe::Rademacher => key.rademacher(shape),
            Probe::Gaussian => key.normal(shape),
        };
        Some(probes.cast(dtype))
    }
}

/// Along what a divergence differentiates, made once a solve: equal constants are merged in a graph only
/// where they are one array, and its stages are to share what they compute from them.
pub(super) enum Directions {
    /// The unit vector of each axis, in each row.
    Axes(Vec<Tensor>),
    /// A random vector for each row, several times.
    Probes(Vec<Tensor>),
}

impl Directions {
    /// The axes for the rows of y, or what [`Divergence::draw`] gave for them.
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

/// The velocity `[rows, dim]` and its divergence `[rows]`.
///
/// Each direction is a forward derivative of the whole field. They share one evaluation of it, and the
/// slopes of its activations, because equal nodes of a graph are merged.
pub(super) fn velocity_and_divergence<D: Drift>(
    drift: &D,
    t: &Tensor,
    y: &Tensor,
    directions: &Directions,
) -> (Tensor, Tensor) {
    let along = |e: &Tensor| jvp(|y: &Tensor| drift.eval(t, y), y, e);
    let (mut velocities, terms): (Vec<Tensor>, Vec<Tensor>) = match directions {
        Directions::Axes(axes) => {
            let slopes = axes.iter().map(along).enumerate();
            slopes.map(|(i, (velocity, slope))| (velocity, slope.column(i))).unzip()
        }
        Directions::Probes(probes) => {
            let slopes = probes.iter().zip(probes.iter().map(along));
            slopes.map(|(e, (velocity, slope))| (velocity, (slope * e).sum_last())).unzip()
        }
    };
    let sum = terms.into_iter().reduce(|a, b| a + b).expect("invariant: at least one direction");
    let divergence = match directions {
        Directions::Axes(_) => sum,
        Directions::Probes(probes) => sum * (1.0 / probes.len() as f64),
    };
    (velocities.swap_remove(0), divergence)
}

/// The unit vector of axis i in each row.
fn axis(dtype: DType, rows: usize, dim: usize, i: usize) -> Tensor {
    let mut a = Array::zeros(dtype, [rows, dim]);
    (0..rows).for_each(|r| a.data_mut().set_f64(r * dim + i, 1.0));
    Tensor::from_array(a)
}
