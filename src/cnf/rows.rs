//! Rows of a flow, split into tiles inside a program and into chunks for one compiled program.
//!
//! Rows are independent; the labels and probes of a row are split along with it. The caller passes the function
//! to apply to the rows.

use super::solve::FlowStats;
use super::{Chunked, Cnf, CnfOptions};
use crate::error::Result;
use crate::nn::VelocityField;
use crate::tensor::{Key, Tensor, Tree, map_rows, vmap_in_lockstep};

/// The maximum number of concrete rows that one call of a compiled program processes.
const CHUNK: usize = 4096;

impl<D: VelocityField> Cnf<D> {
    /// Runs `f` on tiles of rows. A tile holds its rows of `x`, of the labels and of the probes of each block; the
    /// blocks are in order from the base end to the data end. Returns the row results, and the counters averaged
    /// over the rows.
    pub(super) fn each_tile(
        &self,
        x: &Tensor,
        probes: &[Tensor],
        f: impl Fn(&Self, &Tensor, Option<&Tensor>, &[Option<&Tensor>]) -> Result<(Vec<Tensor>, Tensor)>,
    ) -> Result<(Vec<Tensor>, FlowStats)> {
        let (x, n) = (x.cast(self.dtype()), x.shape()[0]);
        let rows = [&[x], self.labels_of(n), probes].concat();
        let given = self.context.iter().len();
        let (out, counts) = self.in_tiles(&rows, |tile| {
            let (labels, probes) = tile[1..].split_at(given);
            let probes: Vec<Option<&Tensor>> = (0..self.blocks.len()).map(|i| probes.get(i)).collect();
            let (out, counts) = f(self, &tile[0], labels.first(), &probes)?;
            Ok((out, vec![counts * tile[0].shape()[0] as f64]))
        })?;
        Ok((out, FlowStats::unpack(&(&counts[0] * (1.0 / n as f64)))))
    }

    /// Runs `f` on tiles of rows and returns the row results and the sums over rows. With `per_row`, `f` runs
    /// on each row of a tile.
    pub(super) fn in_tiles(
        &self,
        rows: &[Tensor],
        f: impl Fn(&[Tensor]) -> Result<(Vec<Tensor>, Vec<Tensor>)>,
    ) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
        let CnfOptions { rows_per_tile: tile, per_row, .. } = self.settings;
        if !per_row {
            return map_rows(rows, tile, f);
        }
        let one = |row: &Vec<Tensor>| {
            let row: Vec<Tensor> = row.iter().map(|x| x.expand_dims(0)).collect();
            let (out, sums) = f(&row)?;
            Ok((out.iter().map(|x| x.index(0)).collect::<Vec<_>>(), sums))
        };
        map_rows(rows, tile, |tile| {
            let (out, sums) = vmap_in_lockstep(one, &tile.to_vec())?;
            Ok((out, sums.iter().map(|each| each.sum_axes(&[0])).collect()))
        })
    }

    /// Runs a function of rows. If a tensor is traced, the function is recorded. Otherwise it is traced, run
    /// with a cached plan and streamed, and a solve that ends early is an error.
    pub(super) fn on_rows<T: Tree>(
        &self,
        rows: &Tensor,
        key: &Key,
        f: impl Fn(&Self, &Tensor, &Key) -> Result<T> + Send + Sync,
    ) -> Result<T> {
        let leaves = [self.leaves(), key.leaves(), vec![rows.clone()]].concat();
        if leaves.iter().any(Tensor::is_traced) {
            return f(self, rows, key);
        }
        let on = |flow: &Self, rows: &Tensor, key: &Key| {
            let (flow, rows) = flow.part(rows);
            f(&flow, &rows, key)
        };
        let (flow, rows) = self.join(&rows.cast(self.dtype()));
        Chunked::once(rows.shape()[0].clamp(1, CHUNK), on).call(&flow, &rows, key)
    }

    /// The same for a function of several columns `[n, width]`, such as times, points and labels, in tiles. The flow that
    /// the function gets has no labels.
    pub(super) fn on_columns(
        &self,
        columns: &[Tensor],
        f: impl Fn(&Self, &[Tensor]) -> Tensor + Send + Sync,
    ) -> Result<Tensor> {
        let flow = Cnf { context: None, ..self.clone() };
        let in_tiles = |flow: &Self, columns: &[Tensor]| -> Result<Tensor> {
            let tile = |columns: &[Tensor]| Ok((vec![f(flow, columns)], vec![]));
            Ok(map_rows(columns, flow.blocks[0].rows_per_tile(), tile)?.0.swap_remove(0))
        };
        if [&flow.leaves(), columns].concat().iter().any(Tensor::is_traced) {
            return in_tiles(&flow, columns);
        }
        let widths: Vec<usize> = columns.iter().map(|column| column.shape()[1]).collect();
        let rows = Tensor::concat(&columns.iter().collect::<Vec<_>>(), 1);
        let split = |flow: &Self, rows: &Tensor, _: &Key| {
            let ends = widths.iter().scan(0, |end, width| {
                *end += width;
                Some(*end)
            });
            let columns: Vec<Tensor> =
                ends.zip(&widths).map(|(end, width)| rows.slice(1, end - width..end)).collect();
            in_tiles(flow, &columns)
        };
        Chunked::once(rows.shape()[0].clamp(1, CHUNK), split).call(&flow, &rows, &Key::new(0))
    }

    /// The labels of n rows; none for an unconditional flow.
    #[track_caller]
    pub(super) fn labels_of(&self, n: usize) -> &[Tensor] {
        let labels = self.context.as_slice();
        let given = labels.first().map_or(n, |labels| labels.shape()[0]);
        assert!(given == n, "the flow is conditioned on {given} labels, but got {n} rows");
        labels
    }

    /// Appends the labels to the rows as a column, for programs that split a single tensor of rows into chunks.
    /// The returned flow has no labels.
    #[track_caller]
    pub(crate) fn join(&self, rows: &Tensor) -> (Self, Tensor) {
        let flow = Cnf { context: None, ..self.clone() };
        match self.labels_of(rows.shape()[0]) {
            [labels] => (flow, Tensor::concat(&[rows, labels], 1)),
            _ => (flow, rows.clone()),
        }
    }

    /// The inverse of [`Cnf::join`].
    pub(crate) fn part(&self, rows: &Tensor) -> (Self, Tensor) {
        let (d, all) = (self.base.dim, rows.shape()[1]);
        if all == d {
            return (self.clone(), rows.clone());
        }
        (Cnf { context: Some(rows.slice(1, d..all)), ..self.clone() }, rows.slice(1, 0..d))
    }
}
