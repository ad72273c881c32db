//! Caches of compiled plans: their contents, and how to clear them.
//!
//! There are two kinds of caches. A [`Jit`](super::Jit) owns its programs, which are dropped with it. This
//! module has weak references to these programs, so that one call can clear them all. Plans for operations
//! and gradients on concrete tensors outside `jit` have no owner, so this module caches them by function.
//! Without this cache, ten thousand updates by an optimizer that is not jitted would compile each operation
//! ten thousand times.
//!
//! Caches of both kinds have a maximum number of entries and evict the least recently used entry. No result
//! depends on the caches: a plan is a function of its program, the processor and the backend, which a process
//! never changes. The cache of this module
//! keeps no data alive: constant arrays of a function outside `jit` become inputs of its plan. Arrays that the body
//! of a loop, a branch or a tile captures are operands of it (`trace::align`), so they are constants of the
//! function, too. A function with an observer is not cached, because the observer may hold data.
//!
//! Numbers are a part of a function: a gradient whose closure captures another f64, or another tensor with equal
//! elements, is another function and is compiled.

use super::exec::Compiled;
use crate::array::Slab;
use crate::backend::Executable;
use crate::graph::Func;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The default maximum number of programs of a jitted function.
pub(super) const MAX_PROGRAMS: usize = 16;

/// The maximum number of plans for work outside `jit`. An update of an optimizer has about 50 operations, and a
/// plan of one operation takes 2 to 4 kB.
pub(super) const MAX_PLANS: usize = 512;

static PLANS: Mutex<Vec<CachedPlan>> = Mutex::new(Vec::new());
static PROGRAMS: Mutex<Slab<Weak<CachedProgram>>> = Mutex::new(Slab::new());
static COMPILES: AtomicUsize = AtomicUsize::new(0);
static EVICTIONS: AtomicUsize = AtomicUsize::new(0);

/// Counters of the compiled plans of this process. Plans of loop bodies do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caches {
    /// Programs that jitted functions hold now, at most [`Jit::max_programs`](super::Jit::max_programs) each.
    pub programs: usize,
    /// Plans cached now for work outside `jit`, at most 512.
    pub plans: usize,
    /// Plans compiled since the process started.
    pub compiles: usize,
    /// Plans evicted since the process started.
    pub evictions: usize,
}

/// The current cache sizes, and the numbers of compiled and evicted plans so far.
///
/// # Examples
/// ```
/// use flowline::memory;
/// use flowline::nn::prelude::*;
/// let double = jit(|x: Tensor| x * 2);
/// for _ in 0..3 {
///     double.call(1.0)?;
/// }
/// assert_eq!((memory::caches().programs, memory::caches().compiles), (1, 1));
/// memory::clear_caches();
/// assert_eq!(memory::caches().programs, 0);
/// double.call(1.0)?;
/// assert_eq!((memory::caches().programs, memory::caches().compiles), (1, 2));
/// # Ok::<(), flowline::Error>(())
/// ```
pub fn caches() -> Caches {
    let programs: Vec<Arc<CachedProgram>> = lock(&PROGRAMS).iter().filter_map(Weak::upgrade).collect();
    Caches {
        programs: programs.iter().filter(|p| p.get().is_some()).count(),
        plans: lock(&PLANS).len(),
        compiles: COMPILES.load(Relaxed),
        evictions: EVICTIONS.load(Relaxed),
    }
}

/// Drops all compiled plans and their scratch memory, including those of jitted functions.
///
/// The next call of a jitted function traces and compiles again; this counts as a trace, but not towards the
/// limit of [`Jit::max_traces`](super::Jit::max_traces), since the arguments have not changed. A call that is
/// running completes with its current plan.
pub fn clear_caches() {
    let plans = std::mem::take(&mut *lock(&PLANS));
    // These references are dropped after the lock is released, because dropping the last reference to a
    // program locks `PROGRAMS` to remove its entry.
    let programs: Vec<Arc<CachedProgram>> = lock(&PROGRAMS).iter().filter_map(Weak::upgrade).collect();
    let compiled: Vec<Arc<Compiled>> = programs.iter().filter_map(|p| lock(&p.compiled).take()).collect();
    drop((plans, compiled));
}

/// Locks `mutex`. The code under these locks cannot panic, so the data are consistent even if a lock is
/// poisoned.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program of a jitted function, until the caches are cleared.
pub(super) struct CachedProgram {
    compiled: Mutex<Option<Arc<Compiled>>>,
    place: usize,
}

impl CachedProgram {
    /// Stores a program that has just been compiled.
    pub fn new(compiled: Arc<Compiled>) -> Arc<CachedProgram> {
        Arc::new_cyclic(|me| CachedProgram {
            compiled: Mutex::new(Some(compiled)),
            place: lock(&PROGRAMS).insert(me.clone()),
        })
    }

    /// The program; `None` after the caches were cleared.
    pub fn get(&self) -> Option<Arc<Compiled>> {
        lock(&self.compiled).clone()
    }
}

impl Drop for CachedProgram {
    fn drop(&mut self) {
        lock(&PROGRAMS).remove(self.place);
    }
}

/// Counts a compiled plan.
pub(super) fn count_compile() {
    COMPILES.fetch_add(1, Relaxed);
}

/// Counts an evicted program or plan.
pub(super) fn evicted() {
    EVICTIONS.fetch_add(1, Relaxed);
}

/// A plan and its function. The fingerprints of two functions are compared before the functions.
struct CachedPlan {
    fingerprint: u64,
    func: Func,
    plan: Arc<dyn Executable>,
}

/// The plan of a function without constant arrays. It is cached if the function contains no observers.
pub(super) fn plan_of(func: &Func, compile: impl FnOnce() -> Arc<dyn Executable>) -> Arc<dyn Executable> {
    let fingerprint = func.fingerprint();
    let find =
        |plans: &[CachedPlan]| plans.iter().rposition(|k| k.fingerprint == fingerprint && k.func == *func);
    let mut plans = lock(&PLANS);
    if let Some(i) = find(&plans) {
        plans[i..].rotate_left(1);
        return plans.last().expect("invariant: just found").plan.clone();
    }
    drop(plans);
    count_compile();
    let plan = compile();
    if func.holds_data() {
        return plan;
    }
    let mut plans = lock(&PLANS);
    if find(&plans).is_none() {
        let oldest = (plans.len() == MAX_PLANS).then(|| plans.remove(0));
        plans.push(CachedPlan { fingerprint, func: func.clone(), plan: plan.clone() });
        drop(plans);
        oldest.into_iter().for_each(|_| evicted());
    }
    plan
}
