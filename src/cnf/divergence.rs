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

    /// The probes of n rows, of shape `[n, num_probes dim]`; none where none are needed. They are drawn
    /// for all rows at once, so a row's probes do not depend on how the rows are cut into tiles.
    pub(super) fn draw(self, n: usize, dim: usize, dtype: DType, key: &Key) -> Option<Tensor> {
        let Divergence::Hutchinson { probe, num_probes } = self else { return None };
        let shape = [n, num_probes * dim];
        let probes = match probe {
            Probe::Rademacher => key.rademacher(shape),
            Probe::Gaussian => key.normal(shape),
        };
        Some(probes.cast(dtype))
    }
}

/// The velocity `[rows, dim]` and its divergence `[rows]`; exact where there are no probes.
///
/// Each direction is a forward derivative of the whole field. They share one evaluation of it, and the
/// slopes of its activations, because equal nodes of a graph are merged.
pub(super) fn velocity_and_divergence<D: Drift>(
    drift: &D,
    t: &Tensor,
    y: &Tensor,
    probes: Option<&Tensor>,
) -> (Tensor, Tensor) {
    let (rows, dim) = (y.shape()[0], y.shape()[1]);
    let directions: Vec<Tensor> = match probes {
        None => (0..dim).map(|i| axis(y.dtype(), rows, dim, i)).collect(),
        Some(e) => (0..e.shape()[1] / dim).map(|k| e.slice(1, k * dim..(k + 1) * dim)).collect(),
    };
    let along = |direction: &Tensor| jvp(|y: &Tensor| drift.eval(t, y), y, direction);
    let (velocities, slopes): (Vec<Tensor>, Vec<Tensor>) = directions.iter().map(along).unzip();
    let term = |k: usize| match probes {
        None => slopes[k].column(k),
        Some(_) => (&slopes[k] * &directions[k]).sum_last(),
    };
    let sum = (0..slopes.len()).map(term).reduce(|a, b| a + b).expect("invariant: at least one direction");
    let divergence = if probes.is_some() { sum * (1.0 / slopes.len() as f64) } else { sum };
    (velocities[0].clone(), divergence)
}

/// The unit vector of axis i in each row.
fn axis(dtype: DType, rows: usize, dim: usize, i: usize) -> Tensor {
    let mut a = Array::zeros(dtype, [rows, dim]);
    (0..rows).for_each(|r| a.data_mut().set_f64(r * dim + i, 1.0));
    Tensor::from_array(a)
}
