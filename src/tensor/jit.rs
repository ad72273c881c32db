//! Functions traced once, compiled once, and called many times.
//!
//! What a call's arguments look like - the type of every tensor leaf, the value of every static one -
//! is its signature; a program is compiled for each. Nothing else is looked at, so a counter that is
//! a tensor never retraces, and a retrace names the leaf that changed.

use super::caches::{Held, MAX_PROGRAMS, evicted};
use super::exec::{Compiled, RunReport, Space};
use super::trace::Check;
use super::tree::{Leaf, Path, Tree};
use super::{Tensor, trace};
use crate::array::Array;
use crate::backend::PlanReport;
use crate::error::{Error, Result};
use crate::graph::Type;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a traced closure may return: a tree, or a `flowline::Result` of one.
#[diagnostic::on_unimplemented(
    message = "a traced function cannot return `{Self}`",
    label = "return a tree of tensors, or a flowline::Result of one"
)]
pub trait Output {
    /// The tree.
    type Tree: Tree;
    #[doc(hidden)]
    fn output(self) -> Result<Self::Tree>;
}
impl<T: Tree> Output for T {
    type Tree = T;
    fn output(self) -> Result<T> {
        Ok(self)
    }
}
impl<T: Tree> Output for Result<T, Error> {
    type Tree = T;
    fn output(self) -> Result<T> {
        self
    }
}

/// A closure of one to four trees.
#[diagnostic::on_unimplemented(
    message = "jit cannot trace this",
    label = "a closure of one to four trees, by value, types written out: |state: TrainState, batch: Batch|"
)]
pub trait Traceable<Args> {
    /// What the closure returns.
    type Out;
    #[doc(hidden)]
    fn run(&self, args: Args) -> Self::Out;
}

/// What a leaf contributes to a signature.
#[derive(Clone, PartialEq)]
enum LeafSig {
    Tensor(Type),
    Static(String),
}

impl fmt::Display for LeafSig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeafSig::Tensor(ty) => write!(f, "{ty}"),
            LeafSig::Static(s) => write!(f, "static {s}"),
        }
    }
}

type Signature = Vec<(String, LeafSig)>;

fn signature(args: &impl Tree) -> Signature {
    let mut out = Vec::new();
    args.each(&mut Path::default(), &mut |path, leaf| {
        let sig = match leaf {
            Leaf::Tensor(t) => LeafSig::Tensor(t.ty()),
            Leaf::Static(s) => LeafSig::Static(format!("{s:?}")),
        };
        out.push((path.to_string(), sig));
    });
    out
}

/// What changed between two signatures, for people.
fn difference(old: &Signature, new: &Signature) -> String {
    let changed = old.iter().zip(new).find(|(a, b)| a != b);
    match changed {
        Some(((p, a), (q, b))) if p == q => format!("leaf {p}: {a} -> {b}"),
        Some(((p, _), (q, _))) => format!("leaf {p} -> leaf {q}"),
        None => format!("{} leaves -> {} leaves", old.len(), new.len()),
    }
}

/// A program for one signature.
struct Program<T> {
    signature: Signature,
    held: Arc<Held>,
    /// The result with the trace's tensors as leaves.
    template: T,
    num_outputs: usize,
    /// The first part of the result has the leaves of the first argument and its static values: see
    /// [`Jit::step`].
    keeps_state: bool,
}

/// A lock that outlives a panic of the function being traced: what it guards changes only once that
/// function has returned.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the first parts of two signatures differ in types of tensors alone.
fn same_state(a: &Signature, b: &Signature) -> bool {
    let first = |s: &Signature| {
        let of_first = s.iter().filter(|(path, _)| path == "0" || path.starts_with("0."));
        let shape = of_first.map(|(path, leaf)| match leaf {
            LeafSig::Tensor(_) => (path.clone(), None),
            LeafSig::Static(s) => (path.clone(), Some(s.clone())),
        });
        shape.collect::<Vec<_>>()
    };
    first(a) == first(b)
}

/// A function that is traced once for each signature of its arguments; its type can be named:
/// `Jit<'f, (TrainState, Batch), (TrainState, Tensor)>`.
///
/// Concrete tensors that the closure captures are constants of its programs, which keep them: what changes,
/// and what is large and not needed for long, is better an argument.
pub struct Jit<'f, Args, T> {
    f: Box<dyn Fn(Args) -> Result<T> + Send + Sync + 'f>,
    programs: Mutex<Vec<Arc<Program<T>>>>,
    traces: AtomicUsize,
    /// Traces of arguments for which there was no program: all but those after [`clear_caches`].
    ///
    /// [`clear_caches`]: crate::memory::clear_caches
    news: AtomicUsize,
    max_traces: usize,
    last: Mutex<RunReport>,
}

/// Compiles `f` when it is first called; see [`Jit`].
///
/// # Examples
/// ```
/// use flowline::prelude::*;
/// let rotate = jit(|x: Tensor, angle: Tensor| &x * angle.cos() + x.transpose() * angle.sin());
/// let z = rotate.call(Tensor::ones([2, 2]), 0.0)?;
/// assert_eq!((z.to_vec(), rotate.traces()), (vec![1.0; 4], 1));
/// # Ok::<(), flowline::Error>(())
/// ```
pub fn jit<'f, Args: Tree, F>(f: F) -> Jit<'f, Args, <F::Out as Output>::Tree>
where
    F: Traceable<Args> + Send + Sync + 'f,
    F::Out: Output,
{
    Jit {
        f: Box::new(move |args| f.run(args).output()),
        programs: Mutex::default(),
        traces: AtomicUsize::new(0),
        news: AtomicUsize::new(0),
        max_traces: usize::MAX,
        last: Mutex::default(),
    }
}

impl<Args: Tree, T: Tree> Jit<'_, Args, T> {
    /// A further trace than `n` is an error that names what changed.
    pub fn max_traces(mut self, n: usize) -> Self {
        self.max_traces = n;
        self
    }

    /// How often the function was traced to its end.
    pub fn traces(&self) -> usize {
        self.traces.load(Relaxed)
    }

    /// Counters of the last run's loops.
    pub fn last_run(&self) -> RunReport {
        *lock(&self.last)
    }

    /// What the program for these arguments does and needs, and how its loops kept their states in its last run; traces
    /// and compiles it if it is new.
    ///
    /// # Errors
    /// As a call.
    pub fn plan(&self, args: &Args) -> Result<PlanReport> {
        Ok(self.program(args)?.1.report())
    }

    /// The program for these arguments, the most recently used from now on, and what it compiled to.
    fn program(&self, args: &Args) -> Result<(Arc<Program<T>>, Arc<Compiled>)> {
        let sig = signature(args);
        let mut programs = lock(&self.programs);
        let known = programs.iter().position(|p| p.signature == sig);
        if let Some(i) = known {
            programs[i..].rotate_left(1);
            let program = &programs[programs.len() - 1];
            if let Some(compiled) = program.held.get() {
                return Ok((program.clone(), compiled));
            }
        } else if self.news.load(Relaxed) >= self.max_traces {
            let change = programs.last().map_or_else(String::new, |p| difference(&p.signature, &sig));
            return Err(Error::Retrace { max_traces: self.max_traces, change });
        }
        let (program, compiled) = self.build(args, sig)?;
        self.traces.fetch_add(1, Relaxed);
        if known.is_some() {
            programs.pop();
        } else {
            self.news.fetch_add(1, Relaxed);
            if programs.len() == MAX_PROGRAMS {
                programs.remove(0);
                evicted();
            }
        }
        programs.push(program.clone());
        Ok((program, compiled))
    }

    fn build(&self, args: &Args, signature: Signature) -> Result<(Arc<Program<T>>, Arc<Compiled>)> {
        let types: Vec<Type> = args.leaves().iter().map(Tensor::ty).collect();
        let mut failure = None;
        let traced = trace(&types, |x| match (self.f)(args.with_leaves(x.to_vec())) {
            Ok(out) => (out.leaves(), Some(out)),
            Err(e) => {
                failure = Some(e);
                (vec![], None)
            }
        });
        if let Some(e) = failure {
            return Err(e);
        }
        assert!(
            traced.captures.is_empty(),
            "a jitted function used a tensor of another trace that is not an argument: pass it as one"
        );
        let compiled = Arc::new(Compiled::new(&traced.func));
        let held = Held::new(compiled.clone());
        let template = traced.aux.expect("invariant: a result where there is no failure");
        let keeps_state = same_state(&signature, &self::signature(&template));
        let num_outputs = traced.num_outputs;
        Ok((Arc::new(Program { signature, held, template, num_outputs, keeps_state }), compiled))
    }

    fn run(&self, num_outputs: usize, compiled: &Compiled, inputs: &[Tensor]) -> Result<Space> {
        let space = compiled.run(inputs);
        *lock(&self.last) = space.counts();
        let failed = space.outputs[num_outputs..].iter().find_map(Check::failure);
        match failed {
            None => Ok(space),
            Some(e) => {
                compiled.give_back(space);
                Err(e)
            }
        }
    }

    /// Runs with arguments given up: their buffers become the results' where they fit.
    fn call_tree(&self, args: Args) -> Result<T> {
        let mut leaves = args.leaves();
        if leaves.iter().any(Tensor::is_traced) {
            return (self.f)(args);
        }
        let (program, compiled) = self.program(&args)?;
        let space = self.run(program.num_outputs, &compiled, &leaves)?;
        drop(args);
        let mut donors: Vec<Array> =
            leaves.drain(..).filter_map(|t| Arc::try_unwrap(t.into_concrete()?).ok()).collect();
        let results = space.outputs[..program.num_outputs].iter().map(|out| {
            let fits = donors.iter().position(|d| d.dtype() == out.dtype() && d.shape() == out.shape());
            Tensor::from_array(match fits {
                Some(i) => {
                    let mut donor = donors.swap_remove(i);
                    donor.forget_name();
                    copy(out, &mut donor);
                    donor
                }
                None => out.clone(),
            })
        });
        let tree = program.template.with_leaves(results.collect::<Vec<_>>());
        compiled.give_back(space);
        Ok(tree)
    }
}

impl<A: Tree, B: Tree, T: Tree> Jit<'_, (A, B), (A, T)> {
    /// One step of a training loop: `state` becomes the new state, in its own buffers where nobody
    /// else holds them. When the call fails, `state` is untouched.
    ///
    /// A state that comes back with other leaves or static values (a memory made in the first step)
    /// is taken over as it is.
    ///
    /// # Errors
    /// A failed solve inside, or a retrace beyond [`Jit::max_traces`].
    ///
    /// # Panics
    /// While tracing, for shapes that do not fit.
    pub fn step(&self, state: &mut A, batch: B) -> Result<T> {
        let args = (state.clone(), batch);
        let leaves = args.leaves();
        if leaves.iter().any(Tensor::is_traced) {
            let (new, result) = (self.f)(args)?;
            *state = new;
            return Ok(result);
        }
        let (program, compiled) = self.program(&args)?;
        let space = self.run(program.num_outputs, &compiled, &leaves)?;
        drop((args, leaves));
        let mut outs = space.outputs[..program.num_outputs].iter();
        if program.keeps_state {
            state.each_mut(&mut |leaf| {
                let out = outs.next().expect("invariant: an output for each leaf of the state");
                leaf.store(out);
            });
        } else {
            let new = &program.template.0;
            let own = outs.by_ref().take(new.leaves().len());
            *state = new.with_leaves(own.map(|a| Tensor::from_array(a.clone())).collect::<Vec<_>>());
        }
        let rest: Vec<Tensor> = outs.map(|a| Tensor::from_array(a.clone())).collect();
        let result = program.template.1.with_leaves(rest);
        compiled.give_back(space);
        Ok(result)
    }
}

impl Tensor {
    /// Takes the numbers of `a`, into its own buffer where nobody else holds it.
    fn store(&mut self, a: &Array) {
        if let super::handle::Repr::Concrete(mine) = &mut self.0
            && let Some(mine) = Arc::get_mut(mine)
            && mine.dtype() == a.dtype()
            && mine.shape() == a.shape()
        {
            copy(a, mine);
        } else {
            *self = Tensor::from_array(a.clone());
        }
    }
}

fn copy(from: &Array, to: &mut Array) {
    to.data_mut().copy_from(from.data());
}

macro_rules! arity {
    ($(($($a:ident $A:ident),+))*) => { $(
        impl<Fun, R, $($A),+> Traceable<($($A,)+)> for Fun where Fun: Fn($($A),+) -> R {
            type Out = R;
            fn run(&self, ($($a,)+): ($($A,)+)) -> R { self($($a),+) }
        }
        impl<T: Tree, $($A: Tree),+> Jit<'_, ($($A,)+), T> {
            /// Runs the program for these arguments; traces and compiles it if it is new. Buffers of
            /// arguments that nobody else holds are used again for the result.
            ///
            /// # Errors
            /// A failed solve inside, or a retrace beyond [`Jit::max_traces`].
            ///
            /// # Panics
            /// While tracing, for shapes that do not fit.
            pub fn call(&self, $($a: impl Into<$A>),+) -> Result<T> { self.call_tree(($($a.into(),)+)) }
        }
    )* };
}
arity!((a A) (a A, b B) (a A, b B, c C) (a A, b B, c C, d D));
