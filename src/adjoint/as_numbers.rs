//! Solutions of tensors as numbers, for files and figures: the components of a state are the elements of its leaves, in
//! order, each leaf row-major.

use super::{TensorDenseOutput, TensorSolution, TensorState};
use crate::ode::{AsNumbers, AtTime, Stats};
use crate::tensor::{Tensor, Tree};

/// How many times the dense output evaluates in one call. All calls have this number, so that they run one program.
const AT_ONCE: usize = 256;

/// The elements of each entry along the first axis, for all leaves.
fn entries<Y: Tree>(ys: &Y, n: usize) -> Vec<Vec<f64>> {
    let mut rows = vec![Vec::new(); n];
    for leaf in ys.leaves().iter().filter(|leaf| leaf.size() > 0) {
        let values = leaf.to_vec();
        rows.iter_mut().zip(values.chunks(values.len() / n)).for_each(|(row, own)| row.extend(own));
    }
    rows
}

/// The columns of times: the times of one solve, or of each group of rows.
fn columns(ts: &Tensor) -> Vec<Vec<f64>> {
    let groups = if ts.rank() == 2 { ts.shape()[1] } else { 1 };
    let all = ts.to_vec();
    (0..groups).map(|g| all.iter().skip(g).step_by(groups).copied().collect()).collect()
}

/// # Panics
/// If the solution is traced.
impl<Y: TensorState> AsNumbers for TensorSolution<Y> {
    /// Rows after the last saved time are NaN and left out. A group of rows that ended before the others has NaN only in
    /// its own components.
    fn saved(&self) -> Option<Vec<AtTime>> {
        let (n, groups) = (self.ts.shape()[0], columns(&self.ts));
        let mut saved = Vec::new();
        for (i, y) in entries(&self.ys, n).into_iter().enumerate() {
            let mut times = groups.iter().map(|ts| ts[i]).filter(|t| !t.is_nan());
            let Some(t) = times.next() else { continue };
            if times.any(|other| other != t) {
                return None;
            }
            saved.push((t, y));
        }
        Some(saved)
    }

    fn step_times(&self) -> Vec<f64> {
        self.dense().map(TensorDenseOutput::step_times).unwrap_or_default()
    }

    fn on_curve(&self, ts: &[f64]) -> Option<Vec<Vec<f64>>> {
        let curve = self.dense().ok()?;
        let states = ts.chunks(AT_ONCE).flat_map(|own| {
            let mut padded = own.to_vec();
            padded.resize(AT_ONCE, own[0]);
            let mut states = entries(&curve.eval(&Tensor::from(padded)), AT_ONCE);
            states.truncate(own.len());
            states
        });
        Some(states.collect())
    }

    /// The same polynomials give both, up to rounding.
    fn has_saved_on_curve(&self) -> bool {
        self.dense().is_ok()
    }

    fn events(&self) -> Vec<(usize, AtTime)> {
        let Ok(records) = self.events() else { return Vec::new() };
        let n = records.t.shape()[0];
        let (times, indices) = (columns(&records.t), columns(&records.index));
        let states = match times.len() {
            1 => entries(&records.y, n),
            _ => vec![Vec::new(); n],
        };
        let of = |(ts, indices): (Vec<f64>, Vec<f64>)| {
            let states = states.clone();
            (0..n).map(move |i| (indices[i] as usize, (ts[i], states[i].clone())))
        };
        times.into_iter().zip(indices).flat_map(of).filter(|(_, (t, _))| !t.is_nan()).collect()
    }

    fn stats(&self) -> Stats {
        let sum = |x: &Tensor| x.to_vec().iter().sum::<f64>() as u64;
        Stats {
            num_steps: sum(&self.stats.num_steps),
            num_accepted: sum(&self.stats.num_accepted),
            num_rejected: sum(&self.stats.num_rejected),
            num_fn_evals: sum(&self.stats.num_fn_evals),
            num_jac_evals: sum(&self.stats.num_jac_evals),
            num_factorizations: sum(&self.stats.num_factorizations),
        }
    }

    fn about(&self) -> String {
        self.stats().to_string()
    }
}
