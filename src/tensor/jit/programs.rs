//! The compiled programs of a jitted function, distinguished by their signatures.
//!
//! The code in this file is not generic over argument and result types, because generic code is compiled for
//! each jitted function.

use crate::array::Array;
use crate::error::{Error, Result};
use crate::graph::Type;
use crate::tensor::caches::{CachedProgram, evicted};
use crate::tensor::exec::{Compiled, RunReport, Space};
use crate::tensor::trace::Check;
use crate::tensor::{Leaf, Tensor, Tree, TreePath};
use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The part of a signature that describes one leaf.
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
    args.each(&mut TreePath::default(), &mut |path, leaf| {
        let sig = match leaf {
            Leaf::Tensor(t) => LeafSig::Tensor(t.ty()),
            Leaf::Static(s) => LeafSig::Static(format!("{s:?}")),
        };
        out.push((path.to_string(), sig));
    });
    out
}

/// The change between two signatures, for error messages.
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
    held: Arc<CachedProgram>,
    pub num_outputs: usize,
    /// Whether the first part of the result has the same leaves and static values as the first argument: see
    /// [`Jit::step`](super::Jit::step).
    pub keeps_state: bool,
    /// The index of the program's template.
    pub place: usize,
    /// The path of each output in the function's result.
    paths: Vec<String>,
}

impl Program {
    /// The error for the first non-finite number among the results; `is_checked` selects leaves by their
    /// path.
    pub fn non_finite(&self, outputs: &[Array], is_checked: fn(&str) -> bool) -> Option<Error> {
        let leaves = self.paths.iter().zip(outputs).filter(|(path, _)| is_checked(path));
        leaves.filter(|(_, leaf)| leaf.dtype().is_float()).find_map(|(path, leaf)| {
            let all = leaf.to_f64();
            let at = all.iter().position(|x| !x.is_finite())?;
            let leaf_name = if path.is_empty() { "(the only one)" } else { path };
            Some(Error::NonFinite { leaf: leaf_name.into(), index: leaf.shape().unravel(at), value: all[at] })
        })
    }
}

/// Locks `mutex`, also after a panic of a function that was being traced: the guarded data change only after
/// that function has returned.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the leaf at this path belongs to the first part of a tuple, which is the state in [`Jit::step`].
///
/// [`Jit::step`]: super::Jit::step
pub(super) fn is_of_state(path: &str) -> bool {
    path == "0" || path.starts_with("0.")
}

/// Whether the first parts of two signatures differ only in types of tensors.
fn same_state(a: &Signature, b: &Signature) -> bool {
    let first = |s: &Signature| {
        let of_first = s.iter().filter(|(path, _)| is_of_state(path));
        let shape = of_first.map(|(path, leaf)| match leaf {
            LeafSig::Tensor(_) => (path.clone(), None),
            LeafSig::Static(s) => (path.clone(), Some(s.clone())),
        });
        shape.collect::<Vec<_>>()
    };
    first(a) == first(b)
}

/// The programs of a function, independent of their result types.
pub(super) struct Programs {
    /// The programs in order of use, the most recently used last.
    all: Vec<Arc<Program>>,
    /// The maximum number of programs.
    pub most: usize,
    /// The number of evicted programs.
    pub num_evicted: usize,
}

impl Programs {
    pub fn new(most: usize) -> Programs {
        Programs { all: Vec::new(), most, num_evicted: 0 }
    }

    /// The program of this signature, which becomes the most recently used. `None` if there is no such
    /// program, or if it was cleared.
    pub fn find(&mut self, signature: &Signature) -> Option<(Arc<Program>, Arc<Compiled>)> {
        let i = self.all.iter().position(|p| p.signature == *signature)?;
        self.all[i..].rotate_left(1);
        let program = self.all.last()?;
        Some((program.clone(), program.held.get()?))
    }

    /// After [`Programs::find`] has returned `None`: whether the program of this signature was cleared.
    /// `find` has then made it the most recently used.
    pub fn is_again(&self, signature: &Signature) -> bool {
        self.all.last().is_some_and(|p| p.signature == *signature)
    }

    /// The error of a trace beyond `max_traces`, with the change since the last call.
    pub fn retrace(&self, max_traces: usize, new: &Signature) -> Error {
        let change = self.all.last().map_or_else(String::new, |p| difference(&p.signature, new));
        Error::Retrace { max_traces, change, num_evicted: self.num_evicted }
    }

    /// Adds the program of a signature, whose result has another signature. The program has `num_outputs` outputs
    /// before its checks.
    pub fn add(
        &mut self,
        (signature, result): (Signature, Signature),
        num_outputs: usize,
        compiled: &Arc<Compiled>,
    ) -> Arc<Program> {
        let held = CachedProgram::new(compiled.clone());
        let keeps_state = same_state(&signature, &result);
        let place = match self.is_again(&signature) {
            true => self.all.pop().map(|p| p.place),
            // Only one program is evicted, even if `most` was lowered by more, so that the indices of
            // templates have no gaps.
            false if self.all.len() >= self.most => {
                self.num_evicted += 1;
                evicted();
                Some(self.all.remove(0).place)
            }
            false => None,
        };
        let place = place.unwrap_or(self.all.len());
        let tensors = result.iter().filter(|(_, leaf)| matches!(leaf, LeafSig::Tensor(_)));
        let paths = tensors.map(|(path, _)| path.clone()).collect();
        let program = Arc::new(Program { signature, held, num_outputs, keeps_state, place, paths });
        self.all.push(program.clone());
        program
    }
}

/// Counters of a jitted function.
#[derive(Default)]
pub(super) struct Counts {
    pub traces: AtomicUsize,
    /// Traces for new signatures: all except those after [`clear_caches`].
    ///
    /// [`clear_caches`]: crate::memory::clear_caches
    pub news: AtomicUsize,
    pub last: Mutex<RunReport>,
}

impl Counts {
    /// Runs a program; returns an error if a check failed.
    pub fn run(&self, num_outputs: usize, compiled: &Compiled, inputs: &[Tensor]) -> Result<Space> {
        let space = compiled.run(inputs);
        *lock(&self.last) = space.counts();
        let failed = space.outputs[num_outputs..].iter().find_map(Check::failure);
        compiled.unless(failed, space)
    }
}

impl Compiled {
    /// The results of a run, unless it failed.
    pub fn unless(&self, failure: Option<Error>, space: Space) -> Result<Space> {
        match failure {
            None => Ok(space),
            Some(e) => {
                self.give_back(space);
                Err(e)
            }
        }
    }

    /// The first `num_outputs` results of a run. A result takes the array of a leaf that is not shared and has the same
    /// type, in exchange for its buffer.
    pub fn hand_over(&self, mut space: Space, num_outputs: usize, leaves: Vec<Tensor>) -> Vec<Tensor> {
        let mut donors: Vec<Array> =
            leaves.into_iter().filter_map(|t| Arc::try_unwrap(t.into_concrete()?).ok()).collect();
        let results = space.results(num_outputs).map(|result| result.into_one_of(&mut donors)).collect();
        self.give_back(space);
        results
    }
}
