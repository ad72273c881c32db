//! Samples of a flow: base samples mapped to the data end, with their densities or trajectories.
//!
//! Time is counted in blocks here, so that a trajectory through several blocks has one time axis. `solve`
//! integrates one block at a time.

use super::Cnf;
use crate::error::Result;
use crate::nn::VelocityField;
use crate::tensor::{Key, Tensor};

/// Samples.
impl<D: VelocityField> Cnf<D> {
    /// `x = flow(z)`: maps points from the base end to the data end.
    ///
    /// # Shapes and units
    /// z and the result `[n, dim]`.
    ///
    /// # Errors
    /// Invalid settings, or a solve that ended early.
    pub fn push_forward(&self, z: &Tensor) -> Result<Tensor> {
        let ends = [0.0, self.blocks.len() as f64];
        let path = self.on_rows(z, &Key::new(0), move |flow, z, _| flow.path(z, &ends))?;
        let [_, x] = path.try_into().expect("invariant: one tensor per time");
        Ok(x)
    }

    /// `z = flow^-1(x)`: maps points from the data end to the base end.
    ///
    /// # Shapes and units
    /// x and the result `[n, dim]`.
    ///
    /// # Errors
    /// As [`Cnf::push_forward`].
    ///
    /// # Examples
    /// ```
    /// use flowline::cnf::*;
    /// use flowline::cnf::prelude::*;
    /// use flowline::nn::*;
    /// let key = Key::new(0);
    /// let flow = Cnf::new(ConcatSquash::new(2, [8], &key));
    /// let z = key.normal([5, 2]);
    /// let again = flow.pull_back(&flow.push_forward(&z)?)?;
    /// assert!((again - z).abs().max().item() < 1e-3);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn pull_back(&self, x: &Tensor) -> Result<Tensor> {
        self.on_rows(x, &Key::new(0), |flow, x, _| {
            let rows = [&[x.cast(flow.dtype())], flow.labels_of(x.shape()[0])].concat();
            let (mut found, _) = flow.in_tiles(&rows, |tile| {
                let back = |x: Tensor, block: &D| {
                    Ok(flow.settings.flow((block, tile.get(1)), (flow.settings.t1, 0.0), &x)?.0)
                };
                let z = flow.blocks.iter().rev().try_fold(tile[0].clone(), back);
                z.map(|z| (vec![z], vec![]))
            })?;
            Ok(found.remove(0))
        })
    }

    /// n samples `[n, dim]`.
    ///
    /// # Errors
    /// As [`Cnf::push_forward`].
    pub fn sample(&self, n: usize, key: &Key) -> Result<Tensor> {
        self.push_forward(&self.base.sample(n, self.dtype(), key))
    }

    /// n samples `[n, dim]` and their log-densities `[n]` in nats, from one solve.
    ///
    /// # Errors
    /// As [`Cnf::push_forward`].
    pub fn sample_with_log_prob(&self, n: usize, key: &Key) -> Result<(Tensor, Tensor)> {
        let [base, probes] = key.split();
        let z = self.base.sample(n, self.dtype(), &base);
        self.on_rows(&z, &probes, Cnf::push_with_density)
    }

    /// n sample trajectories at `num_times` evenly spaced times, from the base end to the data end. Each block is one
    /// solve; the positions within a block are interpolated between its steps, by the dense output of the method.
    ///
    /// # Shapes and units
    /// The result is `[num_times, n, dim]`; row i belongs to sample i at every time.
    ///
    /// # Errors
    /// As [`Cnf::push_forward`].
    ///
    /// # Panics
    /// When there are fewer than two times.
    #[track_caller]
    pub fn sample_trajectories(&self, n: usize, key: &Key, num_times: usize) -> Result<Tensor> {
        assert!(num_times >= 2, "a trajectory needs at least two times, got {num_times}");
        let z = self.base.sample(n, self.dtype(), key);
        let end = self.blocks.len() as f64;
        let times: Vec<f64> = (0..num_times).map(|k| end * k as f64 / (num_times - 1) as f64).collect();
        let path = self.on_rows(&z, key, move |flow, z, _| flow.path(z, &times))?;
        Ok(Tensor::stack(&path.iter().collect::<Vec<_>>()))
    }

    /// The positions at `times` of points that are at z at the first time, 0; time is counted in blocks. A block is one
    /// solve, and the states within it are from its dense output.
    fn path(&self, z: &Tensor, times: &[f64]) -> Result<Vec<Tensor>> {
        let rows = [&[z.cast(self.dtype())], self.labels_of(z.shape()[0])].concat();
        let (path, _) = self.in_tiles(&rows, |tile| {
            let (mut y, mut path) = (tile[0].clone(), vec![tile[0].clone()]);
            for (start, block) in (0..).map(f64::from).zip(&self.blocks) {
                let share =
                    |t: &f64| (0.0 < t - start && t - start < 1.0).then(|| (t - start) * self.settings.t1);
                let inside: Vec<f64> = times.iter().filter_map(share).collect();
                let (states, end) = self.settings.flow_at((block, tile.get(1)), &inside, &y)?;
                path.extend(states);
                if times.contains(&(start + 1.0)) {
                    path.push(end.clone());
                }
                y = end;
            }
            Ok((path, vec![]))
        })?;
        Ok(path)
    }
}
