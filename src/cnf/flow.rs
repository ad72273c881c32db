//! `Cnf`: blocks, base and settings; densities and samples.

use super::solve::SolveStats;
use super::{Divergence, ErrorNorm, PathCost, Settings, StandardNormal, Stepping, Streamed};
use crate::array::DType;
use crate::error::Result;
use crate::nn::{Drift, DriftNet, FourierMlp, golden_frequencies};
use crate::ode::Method;
use crate::odeint::Adjoint;
use crate::tensor::{Key, Tensor, Tree, try_map_rows};
use crate::tree;

/// Rows of one program where more come at once on concrete tensors.
const CHUNK: usize = 4096;

tree! {
    /// A continuous normalizing flow: `x = flow(z)`, z standard normal.
    ///
    /// The blocks are followed one after the other, each over t in `[0, t1]`, from the base end (t = 0 of the
    /// first) to the data end (t = t1 of the last). Along each, `d log p / dt = -div f`, so
    /// `log p(x) = log N(z; 0, I) - sum over blocks of the integral of div f dt`.
    ///
    /// # References
    /// Chen et al. (2018), Neural ordinary differential equations, eq. 8; Grathwohl et al. (2019), FFJORD.
    ///
    /// # Examples
    /// ```
    /// use flowline::{cnf::*, nn::*, prelude::*};
    /// let key = Key::new(0);
    /// let flow = Cnf::new(ConcatSquash::new(2, [16, 16], &key), StandardNormal::new(2));
    /// let (x, log_prob) = flow.sample_with_log_prob(10, &key)?;
    /// let again = flow.log_prob(&x, &key)?;
    /// assert!((log_prob - again).abs().max().item() < 1e-3);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub struct Cnf<D: Drift> {
        /// The fields, from the base end to the data end.
        pub blocks: Vec<D>,
        /// The density at the base end.
        pub base: StandardNormal,
        /// How the flow is solved.
        pub settings: Settings,
        /// The class of each row that the flow is asked about, `[n, 1]`; see [`Cnf::given`].
        pub labels: Option<Tensor>,
    }
}

impl Cnf<DriftNet> {
    /// The flow that the command line learns a density of the plane with unless told otherwise: one
    /// [`FourierMlp`] with 24 features up to frequency `e^2.6` and three hidden layers of 80, 17,842 weights
    /// beside its fixed frequencies, over t in [0, 1], exact divergence.
    pub fn plane(key: &Key) -> Self {
        let net = FourierMlp::new(golden_frequencies(24, 2.6), [80, 80, 80], key);
        Cnf::new(net.into(), StandardNormal::new(2))
    }
}

/// How it is solved; each as the field of [`Settings`] of the same name.
impl<D: Drift> Cnf<D> {
    /// A flow of one block.
    pub fn new(drift: D, base: StandardNormal) -> Self {
        Cnf::with_blocks(vec![drift], base)
    }

    /// A flow of several blocks, from the base end to the data end.
    ///
    /// # Panics
    /// When there is none, or one is of another dimension than the base.
    #[track_caller]
    pub fn with_blocks(blocks: Vec<D>, base: StandardNormal) -> Self {
        assert!(!blocks.is_empty(), "a flow has at least one block");
        for (i, block) in blocks.iter().enumerate() {
            let (dim, base) = (block.dim(), base.dim);
            assert!(dim == base, "block {i} has {dim} dimensions and the base {base}");
        }
        Cnf { blocks, base, settings: Settings::default(), labels: None }
    }

    /// The flow of rows that each have a class, `p(x | label)`: what is asked of it next is of as many rows.
    ///
    /// # Shapes and units
    /// labels `[n, 1]`, whole numbers below the fields' number of classes, of any type.
    ///
    /// # Panics
    /// For labels of another shape. Fields that have no classes panic when they are evaluated.
    ///
    /// # Examples
    /// ```
    /// use flowline::{cnf::*, nn::*, prelude::*};
    /// // y, t and one of three classes in, a velocity out.
    /// let field = Mlp::new([2 + 1 + 3, 16, 2], Activation::Tanh, &Key::new(0));
    /// let flow = Cnf::new(field, StandardNormal::new(2));
    /// let of_each_class = flow.given(&Tensor::from([[0.0], [1.0], [2.0]]));
    /// assert_eq!(of_each_class.sample(3, &Key::new(1))?.shape()[..], [3, 2]);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[track_caller]
    pub fn given(&self, labels: &Tensor) -> Self {
        let is_column = labels.rank() == 2 && labels.shape()[1] == 1;
        assert!(is_column, "labels are [n, 1], their shape is {}", labels.shape());
        Cnf { labels: Some(labels.cast(self.dtype())), ..self.clone() }
    }

    /// Time spent in each block.
    pub fn t1(mut self, t1: f64) -> Self {
        self.settings.t1 = t1;
        self
    }

    /// How the divergence is computed.
    pub fn divergence(mut self, divergence: Divergence) -> Self {
        self.settings.divergence = divergence;
        self
    }

    /// The method of the solves.
    pub fn method(mut self, method: Method) -> Self {
        self.settings.method = method;
        self
    }

    /// Steps of equal length, so many a block.
    pub fn fixed_steps(mut self, steps: usize) -> Self {
        self.settings.stepping = Stepping::Fixed { steps };
        self
    }

    /// Adaptive steps with these tolerances.
    pub fn tolerances(mut self, rtol: f64, atol: f64) -> Self {
        self.settings.stepping = Stepping::Adaptive { rtol, atol };
        self
    }

    /// The length of the first adaptive step tried in a block; one too long is rejected as any other.
    ///
    /// A smooth flow is solved in a step or two, of which the cautious first step that is otherwise found is one, after
    /// two evaluations of the field.
    pub fn first_step(mut self, dt0: f64) -> Self {
        self.settings.first_step = Some(dt0);
        self
    }

    /// What the error of an adaptive step is measured on.
    pub fn error_norm(mut self, error_norm: ErrorNorm) -> Self {
        self.settings.error_norm = error_norm;
        self
    }

    /// What paths cost in training by maximum likelihood.
    pub fn path_cost(mut self, path_cost: PathCost) -> Self {
        self.settings.path_cost = path_cost;
        self
    }

    /// How gradients through the solves are taken.
    pub fn adjoint(mut self, adjoint: Adjoint) -> Self {
        self.settings.adjoint = adjoint;
        self
    }

    /// The most steps of one solve.
    pub fn max_steps(mut self, max_steps: u64) -> Self {
        self.settings.max_steps = max_steps;
        self
    }

    /// Rows that are solved together.
    pub fn tile(mut self, rows: usize) -> Self {
        self.settings.tile = rows;
        self
    }
}

/// Densities.
impl<D: Drift> Cnf<D> {
    /// The element type of the weights.
    pub fn dtype(&self) -> DType {
        let floats = self.blocks.leaves().into_iter().map(|x| x.dtype()).find(|d| d.is_float());
        floats.unwrap_or(DType::F32)
    }

    /// The log-density of each row of x in nats. The key draws the probes of an estimated divergence; an
    /// exact one does not look at it.
    ///
    /// On concrete tensors this is one compiled program, used again for each 4,096 rows; keep a
    /// [`Streamed`] to use it for many calls.
    ///
    /// # Shapes and units
    /// x `[n, dim]`, the result `[n]`, in the element type of the weights.
    ///
    /// # Errors
    /// Settings out of range, a solve that ended early.
    pub fn log_prob(&self, x: &Tensor, key: &Key) -> Result<Tensor> {
        self.on_rows(x, key, |flow, x, key| Ok(flow.log_prob_with_stats(x, key)?.0))
    }

    /// [`Cnf::log_prob`] and what its solves took; for losses inside a jitted function.
    ///
    /// # Errors
    /// As [`Cnf::log_prob`].
    pub fn log_prob_with_stats(&self, x: &Tensor, key: &Key) -> Result<(Tensor, SolveStats)> {
        self.density_with_stats(x, &self.draw_probes(x.shape()[0], key))
    }

    /// [`Cnf::log_prob`] along probes of the caller's own, in place of ones drawn from a key.
    ///
    /// # Shapes and units
    /// x `[n, dim]`; a tensor of probes `[n, num_probes dim]` for each block, from the base end on. An exact divergence
    /// looks at none.
    ///
    /// # Errors
    /// As [`Cnf::log_prob`].
    ///
    /// # Panics
    /// When a random divergence is not given one tensor of that shape for each block.
    ///
    /// # Examples
    /// ```
    /// use flowline::{cnf::*, nn::*, prelude::*};
    /// let key = Key::new(0);
    /// let flow = Cnf::new(ConcatSquash::new(1, [8], &key), StandardNormal::new(1));
    /// let x = Tensor::from([[0.5], [-1.0]]);
    /// let exact = flow.log_prob(&x, &key)?;
    /// // In one dimension a probe of length 1 is exact.
    /// let along = flow.divergence(Divergence::hutchinson(Probe::Rademacher));
    /// let along = along.log_prob_with_probes(&x, &[Tensor::from([[1.0], [-1.0]])])?;
    /// assert!((along - exact).abs().max().item() < 1e-5);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[track_caller]
    pub fn log_prob_with_probes(&self, x: &Tensor, probes: &[Tensor]) -> Result<Tensor> {
        if !self.settings.is_random() {
            return Ok(self.density_with_stats(x, &[])?.0);
        }
        let (n, blocks) = (x.shape()[0], self.blocks.len());
        let wanted = self.settings.divergence.num_probes() * self.base.dim;
        assert!(
            probes.len() == blocks && probes.iter().all(|e| e.shape()[..] == [n, wanted]),
            "{blocks} blocks want as many tensors of probes [{n}, {wanted}], not {probes:?}"
        );
        let probes: Vec<Tensor> = probes.iter().map(|e| e.cast(self.dtype())).collect();
        Ok(self.density_with_stats(x, &probes)?.0)
    }

    fn density_with_stats(&self, x: &Tensor, probes: &[Tensor]) -> Result<(Tensor, SolveStats)> {
        let settings = Settings { path_cost: PathCost::default(), ..self.settings.clone() };
        let (log_prob, _, counts) = Cnf { settings, ..self.clone() }.density_and_cost(x, probes)?;
        Ok((log_prob, counts))
    }

    /// The log-density of each row, what its path cost (see [`PathCost`]) where that is asked for, and what it took.
    pub(super) fn density_and_cost(
        &self,
        x: &Tensor,
        probes: &[Tensor],
    ) -> Result<(Tensor, Option<Tensor>, SolveStats)> {
        let (mut rows, counts) = self.each_tile(x, probes, |flow, x, labels, probes| {
            let (mut x, mut change, mut costs, mut counts) = (x.clone(), None, None, None);
            for (block, probes) in flow.blocks.iter().zip(probes).rev() {
                let span = (flow.settings.t1, 0.0);
                let way = flow.settings.flow_with_density((block, labels), span, &x, *probes)?;
                x = way.y1;
                change = Some(sum(change, way.change));
                costs = way.cost.map(|cost| sum(costs, cost));
                counts = Some(sum(counts, way.counts));
            }
            let (change, counts) = change.zip(counts).expect("invariant: at least one block");
            let log_prob = flow.base.log_prob(&x) - change;
            Ok((std::iter::once(log_prob).chain(costs).collect(), counts))
        })?;
        let cost = (rows.len() > 1).then(|| rows.remove(1));
        Ok((rows.remove(0), cost, counts))
    }

    /// `x = flow(z)` and log p(x) for z at the base end.
    fn push_with_density(&self, z: &Tensor, key: &Key) -> Result<(Tensor, Tensor)> {
        let probes = self.draw_probes(z.shape()[0], key);
        let (rows, _) = self.each_tile(z, &probes, |flow, z, labels, probes| {
            let (mut x, mut log_prob, mut counts) = (z.clone(), flow.base.log_prob(z), None);
            for (block, probes) in flow.blocks.iter().zip(probes) {
                let span = (0.0, flow.settings.t1);
                let way = flow.settings.flow_with_density((block, labels), span, &x, *probes)?;
                x = way.y1;
                log_prob = log_prob + way.change;
                counts = Some(sum(counts, way.counts));
            }
            Ok((vec![x, log_prob], counts.expect("invariant: at least one block")))
        })?;
        let [x, log_prob] = rows.try_into().expect("invariant: two results a row");
        Ok((x, log_prob))
    }

    /// The probes of each block for n rows, from the base end on; none for an exact divergence.
    pub(super) fn draw_probes(&self, n: usize, key: &Key) -> Vec<Tensor> {
        let draw = |i: u32| {
            let key = if self.settings.is_random() { key.fold_in(i) } else { key.clone() };
            self.settings.divergence.draw(n, self.base.dim, self.dtype(), &key)
        };
        (0..self.blocks.len() as u32).filter_map(draw).collect()
    }

    /// Runs `f` on tiles of rows and of the probes of each block (from the base end on): row results, and
    /// counters averaged over the rows.
    fn each_tile(
        &self,
        x: &Tensor,
        probes: &[Tensor],
        f: impl Fn(&Self, &Tensor, Option<&Tensor>, &[Option<&Tensor>]) -> Result<(Vec<Tensor>, Tensor)>,
    ) -> Result<(Vec<Tensor>, SolveStats)> {
        let (x, n) = (x.cast(self.dtype()), x.shape()[0]);
        let rows = [&[x], self.labels_of(n), probes].concat();
        let given = self.labels.iter().len();
        let (out, counts) = try_map_rows(&rows, self.settings.tile, |tile| {
            let (labels, probes) = tile[1..].split_at(given);
            let probes: Vec<Option<&Tensor>> = (0..self.blocks.len()).map(|i| probes.get(i)).collect();
            let (out, counts) = f(self, &tile[0], labels.first(), &probes)?;
            Ok((out, vec![counts * tile[0].shape()[0] as f64]))
        })?;
        Ok((out, SolveStats::unpack(&(&counts[0] * (1.0 / n as f64)))))
    }

    /// Runs a function of rows: recorded where anything is traced, else compiled and streamed, so that a
    /// solve that ended early is seen.
    fn on_rows<T: Tree>(
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
        Streamed::new(rows.shape()[0].clamp(1, CHUNK), on).call(&flow, &rows, key)
    }

    /// The labels of n rows; none where the flow has none.
    #[track_caller]
    fn labels_of(&self, n: usize) -> &[Tensor] {
        let labels = self.labels.as_slice();
        let given = labels.first().map_or(n, |labels| labels.shape()[0]);
        assert!(given == n, "{given} labels were given for {n} rows");
        labels
    }

    /// A flow without labels and rows with theirs as one more column, for programs that cut one tensor of rows into
    /// chunks.
    #[track_caller]
    pub(crate) fn join(&self, rows: &Tensor) -> (Self, Tensor) {
        let flow = Cnf { labels: None, ..self.clone() };
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
        (Cnf { labels: Some(rows.slice(1, d..all)), ..self.clone() }, rows.slice(1, 0..d))
    }
}

fn sum(a: Option<Tensor>, b: Tensor) -> Tensor {
    match a {
        Some(a) => a + b,
        None => b,
    }
}

/// Samples.
impl<D: Drift> Cnf<D> {
    /// `x = flow(z)`: where points of the base end arrive.
    ///
    /// # Shapes and units
    /// z and the result `[n, dim]`.
    ///
    /// # Errors
    /// Settings out of range, a solve that ended early.
    pub fn push_forward(&self, z: &Tensor) -> Result<Tensor> {
        let ends = [0.0, self.blocks.len() as f64];
        let path = self.on_rows(z, &Key::new(0), move |flow, z, _| flow.path(z, &ends))?;
        let [_, x] = path.try_into().expect("invariant: a tensor for each time");
        Ok(x)
    }

    /// n draws `[n, dim]`.
    ///
    /// # Errors
    /// As [`Cnf::push_forward`].
    pub fn sample(&self, n: usize, key: &Key) -> Result<Tensor> {
        self.push_forward(&self.base.sample(n, self.dtype(), key))
    }

    /// n draws `[n, dim]` and their log-densities `[n]` in nats, from one solve.
    ///
    /// # Errors
    /// As [`Cnf::push_forward`].
    pub fn sample_with_log_prob(&self, n: usize, key: &Key) -> Result<(Tensor, Tensor)> {
        let [base, probes] = key.split();
        let z = self.base.sample(n, self.dtype(), &base);
        self.on_rows(&z, &probes, Cnf::push_with_density)
    }

    /// n draws on their way at `num_times` evenly spaced times, the base end first, the data end last; each
    /// time continues the solve to the one before.
    ///
    /// # Shapes and units
    /// The result is `[num_times, n, dim]`; a draw keeps its row.
    ///
    /// # Errors
    /// As [`Cnf::push_forward`].
    ///
    /// # Panics
    /// With fewer than two times.
    #[track_caller]
    pub fn sample_path(&self, n: usize, key: &Key, num_times: usize) -> Result<Tensor> {
        assert!(num_times >= 2, "a path has at least its two ends, not {num_times} times");
        let z = self.base.sample(n, self.dtype(), key);
        let end = self.blocks.len() as f64;
        let times: Vec<f64> = (0..num_times).map(|k| end * k as f64 / (num_times - 1) as f64).collect();
        let path = self.on_rows(&z, key, move |flow, z, _| flow.path(z, &times))?;
        Ok(Tensor::stack(&path.iter().collect::<Vec<_>>()))
    }

    /// Where points z at the first of `times` are at each; time counts blocks.
    fn path(&self, z: &Tensor, times: &[f64]) -> Result<Vec<Tensor>> {
        let rows = [&[z.cast(self.dtype())], self.labels_of(z.shape()[0])].concat();
        let (path, _) = try_map_rows(&rows, self.settings.tile, |tile| {
            let mut path = vec![tile[0].clone()];
            for w in times.windows(2) {
                path.push(self.advance(&path[path.len() - 1], tile.get(1), w[0], w[1])?);
            }
            Ok((path, vec![]))
        })?;
        Ok(path)
    }

    /// Follows the blocks between two times, counted in blocks.
    fn advance(&self, y: &Tensor, labels: Option<&Tensor>, from: f64, to: f64) -> Result<Tensor> {
        let (mut y, t1) = (y.clone(), self.settings.t1);
        let (first, last) = (from.floor() as usize, (to.ceil() as usize).min(self.blocks.len()));
        for (i, block) in self.blocks.iter().enumerate().take(last).skip(first) {
            let (start, end) = (from.max(i as f64) - i as f64, to.min(i as f64 + 1.0) - i as f64);
            y = self.settings.flow((block, labels), (start * t1, end * t1), &y)?.0;
        }
        Ok(y)
    }
}
