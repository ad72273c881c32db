//! Functions that are traced once, compiled once, and called many times.
//!
//! The signature of a call consists of the type of every tensor leaf and the value of every static leaf of
//! its arguments. One program is compiled per signature. The numbers in a tensor are not part of the
//! signature, so a counter that is a tensor never causes a retrace. A retrace error names the leaf that
//! changed.

mod programs;
#[cfg(test)]
mod tests;

use super::caches::MAX_PROGRAMS;
use super::exec::{Compiled, RunReport, Space, Taken};
use super::grad::types;
use super::output::Output;
use super::trace::{Check, trace_tree};
use super::tree::Tree;
use super::{Tensor, Traced, apply};
use crate::backend::PlanReport;
use crate::error::Result;
use programs::{Counts, Program, Programs, is_of_state, lock, signature};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

/// A closure of one to four trees.
#[diagnostic::on_unimplemented(
    message = "jit cannot trace this",
    label = "a closure of one to four trees, by value, types written out: |state: TrainState, batch: Batch|"
)]
pub trait Traceable<Args> {
    /// The return type of the closure.
    type Out;
    #[doc(hidden)]
    fn run(&self, args: Args) -> Self::Out;
}

/// The programs, and a template for each: the result of its trace, whose leaves are traced tensors.
struct Compilations<T> {
    programs: Programs,
    templates: Vec<Arc<T>>,
}

/// A program that can run, and its template.
struct Ready<T> {
    program: Arc<Program>,
    compiled: Arc<Compiled>,
    template: Arc<T>,
}

/// What a call finds.
enum Call<T> {
    Ready(Ready<T>),
    /// The result of a call that was recorded in an enclosing trace.
    Recorded(T),
}

/// The results of a traced function at `leaves`, in the enclosing trace.
fn recorded_call(traced: &Traced, leaves: &[Tensor]) -> Result<Vec<Tensor>> {
    let args: Vec<Tensor> = leaves.iter().chain(&traced.captures).cloned().collect();
    let mut out = apply(&traced.func, &args);
    for values in out.split_off(traced.num_outputs) {
        Check { values }.settle()?;
    }
    Ok(out)
}

/// A function that is traced once per signature of its arguments. Its type can be written out: `Jit<'f,
/// (TrainState, Batch), (TrainState, Tensor)>`.
///
/// A call with traced arguments, or of a closure that captures traced tensors, is recorded in the enclosing trace.
/// It has the same result as a direct call: all arguments are traced, also those that the caller passes as concrete
/// tensors.
///
/// Concrete tensors that the closure captures become constants of its programs, which keep them alive. Pass
/// data that changes, or that is large and needed only for a short time, as arguments. A `Jit` stores the
/// programs of the 16 most recently used signatures ([`Jit::max_programs`]). A call with an older signature
/// traces and compiles again.
pub struct Jit<'f, Args, T> {
    f: Box<dyn Fn(Args) -> Result<T> + Send + Sync + 'f>,
    kept: Mutex<Compilations<T>>,
    counts: Counts,
    max_traces: usize,
    needs_finite: bool,
    has_cached_plans: bool,
}

/// Compiles `f` when it is first called; see [`Jit`].
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// let rotate = jit(|x: Tensor, angle: Tensor| &x * angle.cos() + x.transpose() * angle.sin());
/// let z = rotate.call(Tensor::ones([2, 2]), 0.0)?;
/// assert_eq!((z.to_vec(), rotate.num_traces()), (vec![1.0; 4], 1));
/// # Ok::<(), flowline::Error>(())
/// ```
#[doc(alias = "compile")]
pub fn jit<'f, Args: Tree, F>(f: F) -> Jit<'f, Args, <F::Out as Output>::Tree>
where
    F: Traceable<Args> + Send + Sync + 'f,
    F::Out: Output,
{
    Jit {
        f: Box::new(move |args| f.run(args).into_result()),
        kept: Mutex::new(Compilations { programs: Programs::new(MAX_PROGRAMS), templates: Vec::new() }),
        counts: Counts::default(),
        max_traces: usize::MAX,
        needs_finite: false,
        has_cached_plans: false,
    }
}

impl<Args: Tree, T: Tree> Jit<'_, Args, T> {
    /// Makes it an error to trace more than `n` times. The error names the leaf that changed. A trace after
    /// [`clear_caches`](crate::memory::clear_caches) does not count.
    pub fn max_traces(mut self, n: usize) -> Self {
        self.max_traces = n;
        self
    }

    /// Stores at most `n` programs, at least 1; the default is 16. A new program then evicts the least
    /// recently used program.
    ///
    /// A function that alternates between more than `n` signatures traces and compiles at every call;
    /// [`Jit::num_evicted`] then grows.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let sum = jit(|x: Tensor| x.sum()).max_programs(2);
    /// for rows in [1, 2, 3, 1] {
    ///     sum.call(Tensor::ones([rows]))?;
    /// }
    /// assert_eq!((sum.num_traces(), sum.num_evicted()), (4, 2));
    /// # Ok::<(), flowline::Error>(())
    /// ```
    pub fn max_programs(self, n: usize) -> Self {
        lock(&self.kept).programs.most = n.max(1);
        self
    }

    /// Makes it an error to return non-finite numbers: a call whose result has a NaN or an infinity in a
    /// float leaf returns [`Error::NonFinite`](crate::Error::NonFinite), which names the leaf. [`Jit::step`] checks only the values
    /// that it returns besides the state, such as a loss or a norm. It does not check the new state, which
    /// may contain intended infinities. On an error, the state is unchanged.
    ///
    /// An update with a finite loss and a non-finite gradient therefore passes. To check the gradient, return
    /// its norm with the loss. Inside another traced function, this setting has no effect: set it on the
    /// outer `Jit`.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let step = jit(|w: Tensor, x: Tensor| (&w - &x, (w * x).ln())).refuse_non_finite();
    /// let mut w = Tensor::from(1.0);
    /// let refused = step.step(&mut w, Tensor::from(-2.0)).unwrap_err();
    /// assert!(refused.to_string().starts_with("leaf 1 of the result is NaN"));
    /// assert_eq!(w.item(), 1.0);
    /// ```
    pub fn refuse_non_finite(mut self) -> Self {
        self.needs_finite = true;
        self
    }

    /// Takes plans from the cache for work outside `jit`, and stores them there: for a `Jit` that exists for one call.
    pub(crate) fn with_cached_plans(mut self) -> Self {
        self.has_cached_plans = true;
        self
    }

    /// The number of programs evicted so far; see [`Jit::max_programs`].
    pub fn num_evicted(&self) -> usize {
        lock(&self.kept).programs.num_evicted
    }

    /// The number of successful traces so far.
    pub fn num_traces(&self) -> usize {
        self.counts.traces.load(Relaxed)
    }

    /// Counters of the loops in the last run.
    pub fn last_run(&self) -> RunReport {
        *lock(&self.counts.last)
    }

    /// The cost and memory of the program for these arguments, and how its loops stored their states in the
    /// last run of the program. Traces and compiles the program if it is new.
    ///
    /// # Errors
    /// The errors of a call.
    ///
    /// # Panics
    /// If the function captures traced tensors. While tracing, if shapes do not fit.
    pub fn plan(&self, args: &Args) -> Result<PlanReport> {
        match self.program(args)? {
            Call::Ready(ready) => Ok(ready.compiled.report()),
            Call::Recorded(_) => {
                panic!("plan: the function captures traced tensors, so it has no program of its own")
            }
        }
    }

    /// The function traced on arguments like `args`, whose leaves are all traced, and its result.
    fn traced(&self, args: &Args) -> Result<(Traced, T)> {
        trace_tree(&types(&args.leaves()), args, |args| {
            let result = (self.f)(args)?;
            Ok((result.leaves(), result))
        })
    }

    /// Records a call in the enclosing trace. All arguments are traced, as in a call that runs a program, so both
    /// calls have the same result.
    fn inlined(&self, args: &Args) -> Result<T> {
        let (traced, result) = self.traced(args)?;
        recorded_call(&traced, &args.leaves()).map(|out| result.with_leaves(out))
    }

    /// The program for these arguments, which becomes the most recently used one. If the function captures traced
    /// tensors, it has no program of its own: its call is recorded in the enclosing trace.
    fn program(&self, args: &Args) -> Result<Call<T>> {
        let sig = signature(args);
        let mut kept = lock(&self.kept);
        if let Some((program, compiled)) = kept.programs.find(&sig) {
            let template = kept.templates[program.place].clone();
            return Ok(Call::Ready(Ready { program, compiled, template }));
        }
        let is_new = !kept.programs.is_again(&sig);
        if is_new && self.counts.news.load(Relaxed) >= self.max_traces {
            return Err(kept.programs.retrace(self.max_traces, &sig));
        }
        let (traced, result) = self.traced(args)?;
        if !traced.captures.is_empty() {
            drop(kept);
            let out = recorded_call(&traced, &args.leaves())?;
            return Ok(Call::Recorded(result.with_leaves(out)));
        }
        let compiled = Arc::new(match self.has_cached_plans {
            true => Compiled::with_cached_plan(&traced.func),
            false => Compiled::new(&traced.func),
        });
        let program = kept.programs.add((sig, signature(&result)), traced.num_outputs, &compiled);
        self.counts.traces.fetch_add(1, Relaxed);
        self.counts.news.fetch_add(usize::from(is_new), Relaxed);
        let template = Arc::new(result);
        match kept.templates.get_mut(program.place) {
            Some(place) => *place = template.clone(),
            None => kept.templates.push(template.clone()),
        }
        Ok(Call::Ready(Ready { program, compiled, template }))
    }

    /// Runs a program; returns an error if a solve ended early or a checked result is not finite.
    fn run(&self, ready: &Ready<T>, leaves: &[Tensor], is_checked: fn(&str) -> bool) -> Result<Space> {
        let Ready { program, compiled, .. } = ready;
        let space = self.counts.run(program.num_outputs, compiled, leaves)?;
        if !self.needs_finite {
            return Ok(space);
        }
        let failure = program.non_finite(&space.outputs[..program.num_outputs], is_checked);
        compiled.unless(failure, space)
    }

    /// Runs with owned arguments. A result keeps the buffer that it was computed in. In exchange, the program keeps the
    /// buffer of an argument that has the same type and is not shared.
    fn call_tree(&self, args: Args) -> Result<T> {
        let leaves = args.leaves();
        if leaves.iter().any(Tensor::is_traced) {
            return self.inlined(&args);
        }
        let ready = match self.program(&args)? {
            Call::Ready(ready) => ready,
            Call::Recorded(result) => return Ok(result),
        };
        let space = self.run(&ready, &leaves, |_| true)?;
        let Ready { program, compiled, template } = ready;
        drop(args);
        Ok(template.with_leaves(compiled.hand_over(space, program.num_outputs, leaves)))
    }
}

impl<A: Tree, B: Tree, T: Tree> Jit<'_, (A, B), (A, T)> {
    /// One update of a training loop: replaces `state` by the new state. A leaf of `state` that is not shared exchanges
    /// its buffer for the one that the new state was computed in, so nothing is copied. On an error, `state` is unchanged.
    ///
    /// A new state with other leaves or static values (such as optimizer moments created in the first update)
    /// replaces the old state without reusing its buffers.
    ///
    /// # Errors
    /// The function's own error, a solve that ended early, a retrace beyond [`Jit::max_traces`], or a result
    /// that [`Jit::refuse_non_finite`] refuses.
    ///
    /// # Panics
    /// While tracing, if shapes do not fit.
    pub fn step(&self, state: &mut A, batch: B) -> Result<T> {
        let args = (state.clone(), batch);
        let leaves = args.leaves();
        let found = match leaves.iter().any(Tensor::is_traced) {
            true => Call::Recorded(self.inlined(&args)?),
            false => self.program(&args)?,
        };
        let ready = match found {
            Call::Ready(ready) => ready,
            Call::Recorded((new, result)) => {
                *state = new;
                return Ok(result);
            }
        };
        let mut space = self.run(&ready, &leaves, |path| !is_of_state(path))?;
        let Ready { program, compiled, template } = ready;
        drop((args, leaves));
        let mut results = space.results(program.num_outputs);
        if program.keeps_state {
            state.each_mut(&mut |leaf| {
                let result = results.next().expect("invariant: a result for each leaf of the state");
                result.replace(leaf);
            });
        } else {
            let new = &template.0;
            let own = results.by_ref().take(new.leaves().len());
            *state = new.with_leaves(own.map(Taken::into_tensor).collect::<Vec<_>>());
        }
        let rest: Vec<Tensor> = results.map(Taken::into_tensor).collect();
        let result = template.1.with_leaves(rest);
        compiled.give_back(space);
        Ok(result)
    }
}

macro_rules! arity {
    ($(($($a:ident $A:ident),+))*) => { $(
        impl<Fun, R, $($A),+> Traceable<($($A,)+)> for Fun where Fun: Fn($($A),+) -> R {
            type Out = R;
            fn run(&self, ($($a,)+): ($($A,)+)) -> R { self($($a),+) }
        }
        impl<T: Tree, $($A: Tree),+> Jit<'_, ($($A,)+), T> {
            /// Runs the program for these arguments; traces and compiles it if it is new. The program keeps the
            /// buffer of an argument that is not shared, in exchange for the buffer of a result of the same type.
            ///
            /// # Errors
            /// The function's own error, a solve that ended early, a retrace beyond [`Jit::max_traces`], or a
            /// result that [`Jit::refuse_non_finite`] refuses.
            ///
            /// # Panics
            /// While tracing, if shapes do not fit.
            pub fn call(&self, $($a: impl Into<$A>),+) -> Result<T> { self.call_tree(($($a.into(),)+)) }
        }
    )* };
}
arity!((a A) (a A, b B) (a A, b B, c C) (a A, b B, c C, d D));
