//! The compiled programs of a jitted function, told from each other by signatures.
//!
//! Nothing here is generic over what the function takes or gives: that is compiled for each jitted function.

use crate::array::Array;
use crate::error::{Error, Result};
use crate::graph::Type;
use crate::tensor::caches::{Held, MAX_PROGRAMS, evicted};
use crate::tensor::exec::{Compiled, RunReport, Space};
use crate::tensor::handle::Repr;
use crate::tensor::trace::Check;
use crate::tensor::{Leaf, Path, Tensor, Traced, Tree};
use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a leaf contributes to a signature.
#[derive(Clone, PartialEq)]
pub(super) enum LeafSig {
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

pub(super) type Signature = Vec<(String, LeafSig)>;

pub(super) fn signature(args: &impl Tree) -> Signature {
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
pub(super) struct Program {
    signature: Signature,
    held: Arc<Held>,
    pub num_outputs: usize,
    /// The first part of the result has the leaves of the first argument and its static values: see
    /// [`Jit::step`](super::Jit::step).
    pub keeps_state: bool,
    /// Where its template is kept.
    pub place: usize,
}

/// A lock that outlives a panic of the function being traced: what it guards changes only once that
/// function has returned.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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

/// The programs of a function, the most recently used last; which results they have is not their business.
#[derive(Default)]
pub(super) struct Programs(Vec<Arc<Program>>);

impl Programs {
    /// The program of this signature, the most recently used from now on; none where it was given back.
    pub fn find(&mut self, signature: &Signature) -> Option<(Arc<Program>, Arc<Compiled>)> {
        let i = self.0.iter().position(|p| p.signature == *signature)?;
        self.0[i..].rotate_left(1);
        let program = self.0.last()?;
        Some((program.clone(), program.held.get()?))
    }

    /// Whether the last one used is of this signature, and was given back then.
    pub fn is_again(&self, signature: &Signature) -> bool {
        self.0.last().is_some_and(|p| p.signature == *signature)
    }

    /// The error of a further trace than `max_traces`: what changed since the last call.
    pub fn retrace(&self, max_traces: usize, new: &Signature) -> Error {
        let change = self.0.last().map_or_else(String::new, |p| difference(&p.signature, new));
        Error::Retrace { max_traces, change }
    }

    /// Compiles what was traced for a signature, whose result has the signature `result`.
    pub fn add(
        &mut self,
        signature: Signature,
        traced: &Traced,
        result: &Signature,
    ) -> (Arc<Program>, Arc<Compiled>) {
        assert!(
            traced.captures.is_empty(),
            "a jitted function used a tensor of another trace that is not an argument: pass it as one"
        );
        let compiled = Arc::new(Compiled::new(&traced.func));
        let held = Held::new(compiled.clone());
        let keeps_state = same_state(&signature, result);
        let place = match self.is_again(&signature) {
            true => self.0.pop().map(|p| p.place),
            false if self.0.len() == MAX_PROGRAMS => {
                evicted();
                Some(self.0.remove(0).place)
            }
            false => None,
        };
        let place = place.unwrap_or(self.0.len());
        let num_outputs = traced.num_outputs;
        let program = Arc::new(Program { signature, held, num_outputs, keeps_state, place });
        self.0.push(program.clone());
        (program, compiled)
    }
}

/// What is counted of a jitted function's calls.
#[derive(Default)]
pub(super) struct Counts {
    pub traces: AtomicUsize,
    /// Traces of arguments for which there was no program: all but those after [`clear_caches`].
    ///
    /// [`clear_caches`]: crate::memory::clear_caches
    pub news: AtomicUsize,
    pub last: Mutex<RunReport>,
}

impl Counts {
    /// Runs a program; the checks of a run that is handed over were passed.
    pub fn run(&self, num_outputs: usize, compiled: &Compiled, inputs: &[Tensor]) -> Result<Space> {
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
}

impl Compiled {
    /// The first results of a run, in the buffers of `leaves` where nobody else holds them and they fit.
    pub fn hand_over(&self, space: Space, num_outputs: usize, leaves: Vec<Tensor>) -> Vec<Tensor> {
        let mut donors: Vec<Array> =
            leaves.into_iter().filter_map(|t| Arc::try_unwrap(t.into_concrete()?).ok()).collect();
        let results = space.outputs[..num_outputs].iter().map(|out| {
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
        let results = results.collect();
        self.give_back(space);
        results
    }
}

impl Tensor {
    /// Takes the numbers of `a`, into its own buffer where nobody else holds it.
    pub(super) fn store(&mut self, a: &Array) {
        if let Repr::Concrete(mine) = &mut self.0
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
