//! Functions of any number of rows through one compiled program.

use crate::error::Result;
use crate::tensor::{Jit, Key, Tensor, Tree, jit};

/// A function of a model and rows, compiled for one number of rows and run on any number: rows are split into
/// chunks, and the last chunk is filled by repeating its last row.
///
/// It needs memory for one chunk, the rows and their results. Each chunk has its own key. In an adaptive solve
/// the rows of a tile share their steps, so a row's result depends on its neighbors within the tolerance,
/// unless each row has [its own steps](super::CnfOptions::per_row).
///
/// # Examples
/// ```
/// use flowline::cnf::extra::Chunked;
/// use flowline::nn::prelude::*;
/// let halves = Chunked::new(4, |by: &Tensor, x: &Tensor, _: &Key| Ok(x * by));
/// let x = Tensor::from(vec![2.0; 10]);
/// assert_eq!(halves.call(&Tensor::from(0.5), &x, &Key::new(0))?.to_vec(), vec![1.0; 10]);
/// assert_eq!(halves.traces(), 1);
/// # Ok::<(), flowline::Error>(())
/// ```
pub struct Chunked<'f, M: Tree, T: Tree> {
    program: Jit<'f, (M, Tensor, Key), T>,
    chunk: usize,
}

impl<'f, M: Tree, T: Tree> Chunked<'f, M, T> {
    /// Wraps `f(model, rows, key)`. The first axis of each result has one row per input row.
    ///
    /// # Panics
    /// When the chunk size is 0.
    #[track_caller]
    pub fn new(chunk: usize, f: impl Fn(&M, &Tensor, &Key) -> Result<T> + Send + Sync + 'f) -> Self {
        assert!(chunk > 0, "the chunk size is 0, but a chunk needs at least one row");
        Chunked { program: jit(move |model: M, rows: Tensor, key: Key| f(&model, &rows, &key)), chunk }
    }

    /// The same for a function that is called once: its plan comes from the cache for work outside `jit`.
    #[track_caller]
    pub(super) fn once(chunk: usize, f: impl Fn(&M, &Tensor, &Key) -> Result<T> + Send + Sync + 'f) -> Self {
        let Chunked { program, chunk } = Chunked::new(chunk, f);
        Chunked { program: program.with_cached_plans(), chunk }
    }

    /// How often the function was traced.
    pub fn traces(&self) -> usize {
        self.program.num_traces()
    }

    /// The results of all rows, in order.
    ///
    /// # Errors
    /// Errors of the function, and a solve inside it that ended early.
    ///
    /// # Panics
    /// When there are no rows.
    #[track_caller]
    pub fn call(&self, model: &M, rows: &Tensor, key: &Key) -> Result<T> {
        let n = rows.shape()[0];
        assert!(n > 0, "expected at least one row, got shape {}", rows.shape());
        let mut results = Vec::new();
        for (i, start) in (0u32..).zip((0..n).step_by(self.chunk)) {
            let part = rows.slice(0, start..n.min(start + self.chunk));
            results.push(self.program.call(model.clone(), self.fill(part), key.fold_in(i))?);
        }
        let leaves: Vec<Vec<Tensor>> = results.iter().map(T::leaves).collect();
        Ok(results[0].with_leaves((0..leaves[0].len()).map(|k| {
            let parts: Vec<&Tensor> = leaves.iter().map(|l| &l[k]).collect();
            Tensor::concat(&parts, 0).slice(0, 0..n)
        })))
    }

    fn fill(&self, part: Tensor) -> Tensor {
        let n = part.shape()[0];
        if n == self.chunk {
            return part;
        }
        let last = part.slice(0, n - 1..n).broadcast_to(part.shape().with_axis(0, self.chunk - n));
        Tensor::concat(&[&part, &last], 0)
    }
}
