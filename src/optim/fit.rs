//! The training loop of a user's own model: batches, keys, updates, held-out rows.
//!
//! [`Fit`] and [`minimize`](super::minimize) share one loop, `descend`: one program, traced at the first update and called
//! for every later one. What changes between updates (model, optimizer state, rows, key, index) is an argument of
//! this program. The batch and the key of an update are functions of (data, key, index of the update), so a
//! continued fit is bitwise equal to an uninterrupted one.

use super::{Adam, OptState, Optimizer};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::tensor::{Dataset, Key, Output, Tensor, Tree, jit, value_and_grad};
use crate::tree;
use std::fmt;

tree! {
    /// What a loss may use besides the model and the rows.
    pub struct Update {
        /// A random key, another one for every update; the same one whenever the held-out rows are evaluated.
        pub key: Key,
        /// The number of updates made before this one: u32, of rank 0.
        pub index: Tensor,
    }
}

tree! {
    /// All that a [`Fit`] changes. [`io::save`](crate::io::save) stores it, [`io::load`](crate::io::load) reads it into
    /// a state of the same structure, [`Fit::resume`] continues from it.
    pub struct FitState<M> {
        /// The model.
        pub model: M,
        /// The state of the optimizer.
        pub opt_state: OptState,
        /// The number of updates made: u32, of rank 0.
        pub num_updates: Tensor,
    }
}

impl<M: Tree> FitState<M> {
    /// The state before the first update.
    pub fn new(model: M, optimizer: impl Into<Optimizer>) -> FitState<M> {
        let opt_state = optimizer.into().init(&model);
        FitState { model, opt_state, num_updates: Tensor::scalar(DType::U32, 0.0) }
    }
}

/// A report during a fit; see [`Fit::on_progress`]. It is printed as `update  400/2000  loss 1.234`.
#[derive(Debug)]
#[non_exhaustive]
pub struct FitProgress<'s, M: Tree> {
    /// Updates made.
    pub update: usize,
    /// All updates of the fit.
    pub updates: usize,
    /// The loss before the last update, over its batch.
    pub loss: f64,
    /// The loss of the held-out rows after the last update; `None` without [`Fit::held_out`].
    pub held_out: Option<f64>,
    /// The state after the last update.
    pub state: &'s FitState<M>,
}

impl<M: Tree> fmt::Display for FitProgress<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FitProgress { update, updates, loss, .. } = self;
        let width = updates.to_string().len();
        write!(f, "update {update:width$}/{updates}  loss {}", in_digits(*loss))?;
        self.held_out.map_or(Ok(()), |loss| write!(f, "  held-out {}", in_digits(loss)))
    }
}

/// A number in four digits.
fn in_digits(x: f64) -> String {
    let magnitude = x.abs().log10().floor();
    match (-4.0..4.0).contains(&magnitude) {
        true => format!("{x:.*}", (3.0 - magnitude) as usize),
        false => format!("{x:.3e}"),
    }
}

/// The result of a fit.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FitResult<M> {
    /// The model after the last update.
    pub model: M,
    /// The state of the optimizer after the last update.
    pub opt_state: OptState,
    /// All updates made, those before [`Fit::resume`] included.
    #[doc(alias = "iteration")]
    pub num_updates: usize,
    /// The loss before each update of this call, over the batch of the update.
    pub losses: Vec<f64>,
    /// After how many updates the held-out rows were evaluated, and their loss; empty without [`Fit::held_out`].
    pub held_out: Vec<(usize, f64)>,
}

impl<M: Tree> FitResult<M> {
    /// The state, from which [`Fit::resume`] continues.
    pub fn state(&self) -> FitState<M> {
        let num_updates = Tensor::scalar(DType::U32, self.num_updates as f64);
        FitState { model: self.model.clone(), opt_state: self.opt_state.clone(), num_updates }
    }
}

/// Where a fit starts.
enum Start<M: Tree> {
    Model(M),
    State(FitState<M>),
}

/// How long a fit lasts.
enum Length {
    Updates(usize),
    Epochs(usize),
}

/// Trains a model (a tree of tensors) on data (a tree of tensors with one row per first index) by batches.
///
/// The loss is an argument of [`Fit::run`]. The other settings have these defaults:
///
/// | setting | default |
/// | --- | --- |
/// | `batch` | all rows, in their order |
/// | `updates` or `epochs` | 1,000 updates |
/// | `optimizer` | `Adam::new(1e-3)` |
/// | `key` | `Key::new(0)` |
/// | `held_out` | no rows |
/// | `report_every` | a tenth of the updates |
///
/// An update (loss, gradient, optimizer) is one program, which is traced and compiled once; a second trace is an error.
/// [`minimize`](super::minimize) is the short form for a loss without rows and random numbers. For anything else, such
/// as averaged weights or two losses in turn, write the loop with [`jit`], [`value_and_grad`] and [`Optimizer::update`].
///
/// # Numerics
/// Each epoch takes the rows in a new random order. All batches are full: a batch may end one epoch and begin the
/// next. `[order, noise, held_out] = key.split()`: the rows are those of [`Dataset::batches`] with the key `order`, and
/// update i has the key `noise.fold_in(i)`. So the same key gives the same bits, for any number of threads.
///
/// # Examples
/// Fits a line with noisy ordinates; 50 of the 200 points are held out:
/// ```
/// use flowline::nn::prelude::*;
/// let [points, noise, training] = Key::new(0).split();
/// let x = points.uniform([200, 1]);
/// let y = 3.0 * &x - 1.0 + 0.1 * noise.normal([200, 1]);
/// let part = |from, to| (x.slice(0, from..to), y.slice(0, from..to));
/// let fit = Fit::new(Linear::new(1, 1, &Key::new(1)), part(0, 150))
///     .batch(32)
///     .updates(400)
///     .optimizer(Adam::new(Schedule::cosine_decay(0.1, 400)))
///     .key(&training)
///     .held_out(part(150, 200))
///     .on_progress(|progress| println!("{progress}"))
///     .run(|line, (x, y), _| (line.forward(x) - y).square().mean())?;
/// assert!((fit.model.weight.item() - 3.0).abs() < 0.1 && fit.losses.len() == 400);
/// assert!(fit.held_out.len() == 10 && fit.held_out[9].1 < 0.02);
/// # Ok::<(), flowline::Error>(())
/// ```
pub struct Fit<'a, M: Tree, T: Tree> {
    start: Start<M>,
    data: T,
    batch: Option<usize>,
    length: Length,
    optimizer: Optimizer,
    key: Key,
    held_out: Option<T>,
    report_every: Option<usize>,
    on_progress: Box<dyn FnMut(&FitProgress<'_, M>) + 'a>,
}

impl<'a, M: Tree, T: Tree> Fit<'a, M, T> {
    /// A fit that starts from `model`.
    pub fn new(model: M, data: T) -> Fit<'a, M, T> {
        Fit::of(Start::Model(model), data)
    }

    /// Continues a fit: with the settings of that fit, the result is bitwise that of an uninterrupted fit.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let (xs, adam) = (Key::new(0).normal([30, 2]), Adam::new(0.1).build());
    /// let fit = |updates, state: &FitState<Tensor>| {
    ///     let fit = Fit::resume(state.clone(), xs.clone()).batch(8).optimizer(&adam).updates(updates);
    ///     fit.run(|mean, xs, _| (xs - mean).square().mean())
    /// };
    /// let start = FitState::new(Tensor::zeros([2]), &adam);
    /// let half = fit(20, &start)?.state();
    /// assert_eq!(fit(50, &half)?.model.to_vec(), fit(50, &start)?.model.to_vec());
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn resume(state: FitState<M>, data: T) -> Fit<'a, M, T> {
        Fit::of(Start::State(state), data)
    }

    fn of(start: Start<M>, data: T) -> Fit<'a, M, T> {
        Fit {
            start,
            data,
            batch: None,
            length: Length::Updates(1_000),
            optimizer: Adam::new(1e-3).into(),
            key: Key::new(0),
            held_out: None,
            report_every: None,
            on_progress: Box::new(|_| {}),
        }
    }

    /// Sets the number of rows per update, at most all of them.
    pub fn batch(mut self, rows: usize) -> Self {
        self.batch = Some(rows);
        self
    }

    /// Sets the number of all updates, those of a continued fit included.
    pub fn updates(mut self, updates: usize) -> Self {
        self.length = Length::Updates(updates);
        self
    }

    /// Sets the number of passes over the data in place of the number of updates. The last update completes the last
    /// pass.
    pub fn epochs(mut self, epochs: usize) -> Self {
        self.length = Length::Epochs(epochs);
        self
    }

    /// Sets the optimizer, with its learning rate or [`Schedule`](super::Schedule).
    pub fn optimizer(mut self, optimizer: impl Into<Optimizer>) -> Self {
        self.optimizer = optimizer.into();
        self
    }

    /// Sets the key of the order of the rows and of the random numbers of the loss.
    pub fn key(mut self, key: &Key) -> Self {
        self.key = key.clone();
        self
    }

    /// Sets rows that are not used for updates. Their loss is computed, for all of them at once, with each report.
    pub fn held_out(mut self, rows: T) -> Self {
        self.held_out = Some(rows);
        self
    }

    /// Sets after how many updates a report is made. There is also one after the last update.
    pub fn report_every(mut self, updates: usize) -> Self {
        self.report_every = Some(updates);
        self
    }

    /// Sets a function that receives the reports, for example to print them or to save the state.
    pub fn on_progress(mut self, f: impl FnMut(&FitProgress<'_, M>) + 'a) -> Self {
        self.on_progress = Box::new(f);
        self
    }

    /// Makes the updates. `loss(model, rows, update)` returns one number, or a `flowline::Result` of one.
    ///
    /// # Errors
    /// Errors of the loss; [`Error::NonFiniteLoss`]; [`Error::NonFinite`] if a parameter is NaN at a report;
    /// [`Error::Rows`] for leaves of the data that differ in their number of rows or have none; [`Error::Batch`]. To keep
    /// the model after an error, save [`FitProgress::state`] in [`Fit::on_progress`].
    ///
    /// # Panics
    /// When the loss is not a single number; when the model or the data are traced; when a resumed state is that of
    /// another optimizer.
    #[track_caller]
    pub fn run<L: Output<Tree = Tensor>>(
        self,
        loss: impl Fn(&M, &T, &Update) -> L + Send + Sync,
    ) -> Result<FitResult<M>> {
        let Fit { optimizer, mut on_progress, .. } = self;
        let (data, held_out) = (Dataset::new(self.data)?, self.held_out.map(Dataset::new).transpose()?);
        let rows = data.num_rows();
        if let Some(batch) = self.batch.filter(|batch| !(1..=rows).contains(batch)) {
            return Err(Error::Batch { batch, rows });
        }
        let updates = match self.length {
            Length::Updates(updates) => updates,
            Length::Epochs(epochs) => epochs.saturating_mul(rows).div_ceil(self.batch.unwrap_or(rows)),
        };
        let mut state = match self.start {
            Start::Model(model) => FitState::new(model, &optimizer),
            Start::State(state) => state,
        };
        let first = state.num_updates.item() as usize;
        let [order, noise, fixed] = self.key.split();
        let evaluate =
            jit(|model: M, (rows, update): (T, Update)| loss(&model, &rows, &update).into_result());
        let evaluate = evaluate.max_traces(1);
        let every = self.report_every.unwrap_or(updates / 10).max(1);
        let (mut losses, mut history, mut update) = (Vec::new(), Vec::new(), first);
        let after = |state: &FitState<M>, loss: f64| {
            losses.push(loss);
            update += 1;
            if update % every != 0 && update != updates {
                return Ok(());
            }
            without_nan(&state.model)?;
            let held_out = held_out.as_ref().map(|rows| {
                let args =
                    (rows.tree().clone(), Update { key: fixed.clone(), index: state.num_updates.clone() });
                Ok::<_, Error>(evaluate.call(state.model.clone(), args)?.item())
            });
            let held_out = held_out.transpose()?;
            history.extend(held_out.map(|loss| (update, loss)));
            on_progress(&FitProgress { update, updates, loss, held_out, state });
            Ok(())
        };
        let left = updates.saturating_sub(first);
        let program = (&optimizer, &noise, &loss);
        match self.batch {
            None => {
                descend(&mut state, program, std::iter::repeat_n(data.tree().clone(), left), after)?;
            }
            Some(n) => {
                descend(&mut state, program, data.batches(n, &order).skip(first).take(left), after)?;
            }
        }
        let FitState { model, opt_state, num_updates } = state;
        let num_updates = num_updates.item() as usize;
        Ok(FitResult { model, opt_state, num_updates, losses, held_out: history })
    }
}

/// Checks that a gradient that is NaN, beside a finite loss, has not reached the model.
pub(super) fn without_nan<M: Tree>(model: &M) -> Result<()> {
    for (leaf, x) in model.named_leaves().into_iter().filter(|(_, x)| x.dtype().is_float()) {
        let values = x.to_vec();
        if let Some(at) = values.iter().position(|x| x.is_nan()) {
            return Err(Error::NonFinite { leaf, index: x.shape().unravel(at), value: values[at] });
        }
    }
    Ok(())
}

/// Makes one update per batch. `after` receives the state after each update, and the loss before it.
pub(super) fn descend<M: Tree, T: Tree, L: Output<Tree = Tensor>>(
    state: &mut FitState<M>,
    (optimizer, key, loss): (&Optimizer, &Key, &(impl Fn(&M, &T, &Update) -> L + Send + Sync)),
    batches: impl Iterator<Item = T>,
    mut after: impl FnMut(&FitState<M>, f64) -> Result<()>,
) -> Result<()> {
    let step = jit(|FitState { model, opt_state, num_updates }: FitState<M>, (rows, key): (T, Key)| {
        let update = Update { key: key.fold_in(&num_updates), index: num_updates };
        let (value, grads) = value_and_grad(|model: &M| loss(model, &rows, &update).into_result(), &model)?;
        let (model, opt_state) = optimizer.update_with_value(&model, grads, opt_state, &value);
        Ok((FitState { model, opt_state, num_updates: update.index + 1 }, value))
    });
    let step = step.max_traces(1);
    for rows in batches {
        let value = step.step(state, (rows, key.clone()))?.item();
        if !value.is_finite() {
            let update = state.num_updates.item() as usize - 1;
            return Err(Error::NonFiniteLoss { update, value });
        }
        after(state, value)?;
    }
    Ok(())
}
