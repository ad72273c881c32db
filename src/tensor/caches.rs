//! Compiled plans that are kept between calls: what there is, and how to give it back.
//!
//! Two kinds. The programs of a [`Jit`](super::Jit) belong to it and go with it; this module holds them weakly,
//! so that one call can empty them all. Plans of what runs on concrete tensors outside `jit` - an operation, a
//! gradient - have no owner, so they lie here, by the function they compute: without them ten thousand updates
//! by an optimizer that is not jitted would compile each operation ten thousand times.
//!
//! Both kinds are bounded by number, and the one unused for longest goes first. No result depends on what is
//! kept: a plan is a function of its program and of the processor. Arrays are no part of a kept plan - constants
//! of a function that is run once become inputs of it - so a cache never holds data on.

use super::exec::Compiled;
use crate::array::Slab;
use crate::backend::Plan;
use crate::graph::Func;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Programs that one jitted function keeps by default.
pub(super) const MAX_PROGRAMS: usize = 16;

/// Plans kept for work outside `jit`. An update of an optimizer has some 50 operations, a plan of one operation
/// takes 2 to 4 kB.
pub(super) const MAX_PLANS: usize = 512;

static PLANS: Mutex<Vec<Kept>> = Mutex::new(Vec::new());
static PROGRAMS: Mutex<Slab<Weak<Held>>> = Mutex::new(Slab::new());
static COMPILES: AtomicUsize = AtomicUsize::new(0);
static EVICTIONS: AtomicUsize = AtomicUsize::new(0);

/// Compiled plans of the process, those of bodies of loops not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caches {
    /// Programs that jitted functions hold now, at most [`Jit::max_programs`](super::Jit::max_programs) each.
    pub programs: usize,
    /// Plans kept now for work outside `jit`, at most 512.
    pub plans: usize,
    /// Plans compiled since the process started.
    pub compiles: usize,
    /// Plans given up since then for want of room.
    pub evictions: usize,
}

/// What is kept, and what was compiled and given up so far.
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
    let programs: Vec<Arc<Held>> = lock(&PROGRAMS).iter().filter_map(Weak::upgrade).collect();
    Caches {
        programs: programs.iter().filter(|p| p.get().is_some()).count(),
        plans: lock(&PLANS).len(),
        compiles: COMPILES.load(Relaxed),
        evictions: EVICTIONS.load(Relaxed),
    }
}

/// Gives all compiled plans and their scratch back, those of jitted functions too.
///
/// The next call of a jitted function traces and compiles once more; that counts as a trace, not against
/// [`Jit::max_traces`](super::Jit::max_traces), since nothing has changed. A call that runs meanwhile ends on
/// the plan it has.
pub fn clear_caches() {
    let plans = std::mem::take(&mut *lock(&PLANS));
    // Outside the lock: the last reference to a program takes its place in the list away.
    let programs: Vec<Arc<Held>> = lock(&PROGRAMS).iter().filter_map(Weak::upgrade).collect();
    let compiled: Vec<Arc<Compiled>> = programs.iter().filter_map(|p| lock(&p.compiled).take()).collect();
    drop((plans, compiled));
}

/// What these guard changes only where nothing can panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program of a jitted function, until it is given back.
pub(super) struct Held {
    compiled: Mutex<Option<Arc<Compiled>>>,
    place: usize,
}

impl Held {
    /// Keeps a program that has just been compiled.
    pub fn new(compiled: Arc<Compiled>) -> Arc<Held> {
        COMPILES.fetch_add(1, Relaxed);
        Arc::new_cyclic(|me| Held {
            compiled: Mutex::new(Some(compiled)),
            place: lock(&PROGRAMS).insert(me.clone()),
        })
    }

    /// The program, if it has not been given back.
    pub fn get(&self) -> Option<Arc<Compiled>> {
        lock(&self.compiled).clone()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        lock(&PROGRAMS).remove(self.place);
    }
}

/// Counts a program or plan that went for want of room.
pub(super) fn evicted() {
    EVICTIONS.fetch_add(1, Relaxed);
}

/// A plan and what it computes; functions are compared by fingerprint first.
struct Kept {
    fingerprint: u64,
    func: Func,
    plan: Plan,
}

/// The plan of a function, kept if it holds no array.
pub(super) fn plan_of(func: &Func, compile: impl FnOnce() -> Plan) -> Plan {
    let fingerprint = func.fingerprint();
    let find = |plans: &[Kept]| plans.iter().rposition(|k| k.fingerprint == fingerprint && k.func == *func);
    let mut plans = lock(&PLANS);
    if let Some(i) = find(&plans) {
        plans[i..].rotate_left(1);
        return plans.last().expect("invariant: just found").plan.clone();
    }
    drop(plans);
    COMPILES.fetch_add(1, Relaxed);
    let plan = compile();
    if func.holds_data() {
        return plan;
    }
    let mut plans = lock(&PLANS);
    if find(&plans).is_none() {
        let oldest = (plans.len() == MAX_PLANS).then(|| plans.remove(0));
        plans.push(Kept { fingerprint, func: func.clone(), plan: plan.clone() });
        drop(plans);
        oldest.into_iter().for_each(|_| evicted());
    }
    plan
}
