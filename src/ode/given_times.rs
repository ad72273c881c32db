//! State resets at given times, and times that depend on parameters.
//!
//! Steps end at these times. A list of times belongs to one call of [`Ode::on_times`](super::Ode::on_times) or
//! of its forms for functions of a `vector_field!`. Times in `[t0, t1)` act, so two solves in a row apply
//! each reset once. Saved values, event records and dense output at such a time are those before the reset; dense
//! output at t0 is the state after it.

use super::builder::locked;
use super::{GenericField, PlainState, SolveError, TimeFn};
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex};

/// A time and the number that belongs to it, such as the amount of a dose; without a number it is 0.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeEntry {
    pub(super) t: f64,
    pub(super) x: f64,
}

impl From<f64> for TimeEntry {
    fn from(t: f64) -> Self {
        TimeEntry { t, x: 0.0 }
    }
}
impl From<(f64, f64)> for TimeEntry {
    fn from((t, x): (f64, f64)) -> Self {
        TimeEntry { t, x }
    }
}

/// The entries of a list of times, or of times with a number each.
pub(super) fn entries_of<E: Copy + Into<TimeEntry>>(times: &[E]) -> Vec<TimeEntry> {
    times.iter().map(|&entry| entry.into()).collect()
}

/// Times for a [`vector_field!`](crate::vector_field), which may depend on its parameters.
///
/// # Examples
/// A dose of 100 that enters the blood after a lag:
/// ```
/// use flowline::ode::{Ode, Times};
/// flowline::vector_field! {
///     struct Bolus<R> { rate: R, lag: R }
///     fn eval(&self, _t, y: &[R; 1]) -> [R; 1] { [-self.rate * y[0]] }
///     fn dose(&self, _t, y: &[R; 1], amount) -> [R; 1] { [y[0] + amount] }
///     fn late(&self, t) -> R { t + self.lag }
/// }
/// let ode = Ode::from_generic(Bolus { rate: 0.5, lag: 0.25 }).rtol(1e-9);
/// let ode = ode.on_field_times(Times::at(&[(1.0, 100.0)]).moved_to(Bolus::late), Bolus::dose);
/// let s = ode.forward_sensitivity().solve(0.0, 2.0, [0.0])?;
/// let y1 = 100.0 * (-0.5_f64 * 0.75).exp();
/// assert!((s.y1[0] - y1).abs() < 1e-6);
/// assert!((s.dy1_dp.lag[0] - 0.5 * y1).abs() < 1e-6);
/// # Ok::<(), flowline::Error>(())
/// ```
#[doc(alias("dosing", "PresetTimeCallback"))]
pub struct Times<G: GenericField<N>, const N: usize> {
    pub(super) entries: Vec<TimeEntry>,
    pub(super) moved_to: Option<TimeFn<G, N>>,
}

impl<G: GenericField<N>, const N: usize> Times<G, N> {
    /// A list of times, or of pairs of a time and a number such as an amount.
    pub fn at<E: Copy + Into<TimeEntry>>(times: &[E]) -> Self {
        Times { entries: entries_of(times), moved_to: None }
    }
    /// Replaces each time t by `time(t)`, a function of the vector field. It receives t and returns the new
    /// time, not the difference.
    #[must_use]
    pub fn moved_to(self, time: TimeFn<G, N>) -> Self {
        Times { moved_to: Some(time), ..self }
    }

    /// The entries at their times for the parameters of `field`.
    pub(super) fn resolved(&self, field: &G) -> Vec<TimeEntry> {
        let at = |t: f64| self.moved_to.map_or(t, |time| time.eval(field, t));
        self.entries.iter().map(|entry| TimeEntry { t: at(entry.t), ..*entry }).collect()
    }
}

impl<G: GenericField<N>, const N: usize> Clone for Times<G, N> {
    fn clone(&self) -> Self {
        Times { entries: self.entries.clone(), moved_to: self.moved_to }
    }
}
impl<G: GenericField<N>, const N: usize> fmt::Debug for Times<G, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Times").field("entries", &self.entries).field("moved_to", &self.moved_to).finish()
    }
}
impl<G: GenericField<N>, E: Copy + Into<TimeEntry>, const N: usize> From<&[E]> for Times<G, N> {
    fn from(times: &[E]) -> Self {
        Times::at(times)
    }
}
impl<G: GenericField<N>, E: Copy + Into<TimeEntry>, const N: usize> From<&Vec<E>> for Times<G, N> {
    fn from(times: &Vec<E>) -> Self {
        Times::at(times)
    }
}
impl<G: GenericField<N>, E: Copy + Into<TimeEntry>, const N: usize, const K: usize> From<&[E; K]>
    for Times<G, N>
{
    fn from(times: &[E; K]) -> Self {
        Times::at(times)
    }
}

/// A state reset at given times, `then(t, y, x)`.
type ThenAt<'f, Y> = Arc<Mutex<dyn FnMut(f64, &mut Y, f64) + Send + 'f>>;

/// Times at which steps end, of one call of the builder.
pub(crate) struct TimeList<'f, Y> {
    pub(super) entries: Vec<TimeEntry>,
    /// The state reset; `None` for discontinuities.
    pub(super) then: Option<ThenAt<'f, Y>>,
    /// For functions of a `vector_field!`: its `FieldTimes`.
    pub(super) of_field: Option<Arc<dyn Any + Send + Sync>>,
}

impl<Y> Clone for TimeList<'_, Y> {
    fn clone(&self) -> Self {
        TimeList { entries: self.entries.clone(), then: self.then.clone(), of_field: self.of_field.clone() }
    }
}

/// An entry of a list in the order of the solve.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    pub t: f64,
    pub x: f64,
    /// The indices of the list and of the entry in it.
    pub list: usize,
    pub entry: usize,
    /// Whether it resets the state.
    pub acts: bool,
}

/// The entries of all lists in `[t0, t1)`, in the order of the solve. Of equal times, discontinuities come
/// first, then resets in the order of declaration.
pub(super) fn planned<Y>(lists: &[TimeList<'_, Y>], span: (f64, f64)) -> Vec<Planned> {
    let mut all: Vec<Planned> = vec![];
    for (list, TimeList { entries, then, .. }) in lists.iter().enumerate() {
        let acts = then.is_some();
        all.extend(entries.iter().enumerate().map(|(i, e)| Planned { t: e.t, x: e.x, list, entry: i, acts }));
    }
    in_order(all, span)
}

/// The entries in `[t0, t1)`, in the order of [`planned`]. It is not generic, so that it is compiled with this crate.
fn in_order(mut all: Vec<Planned>, (t0, t1): (f64, f64)) -> Vec<Planned> {
    let sign = if t1 < t0 { -1.0 } else { 1.0 };
    all.retain(|one| one.t * sign >= t0 * sign && one.t * sign < t1 * sign);
    // 0 and -0 are the same time.
    let key = |one: &Planned| one.t * sign + 0.0;
    all.sort_by(|a, b| key(a).total_cmp(&key(b)).then(a.acts.cmp(&b.acts)));
    all
}

/// The resets of a solve that are still to come.
pub(super) struct Resets<'o, 'f, Y> {
    lists: &'o [TimeList<'f, Y>],
    planned: Vec<Planned>,
    /// The number of resets that have run.
    pub num_done: usize,
}

impl<'o, 'f, Y: PlainState> Resets<'o, 'f, Y> {
    pub fn new(lists: &'o [TimeList<'f, Y>], span: (f64, f64)) -> Self {
        let mut planned = if lists.is_empty() { vec![] } else { planned(lists, span) };
        planned.retain(|one| one.acts);
        Resets { lists, planned, num_done: 0 }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.planned.is_empty()
    }

    /// Whether a reset is due at t.
    #[inline]
    pub fn is_due(&self, t: f64) -> bool {
        self.planned.get(self.num_done).is_some_and(|next| next.t == t)
    }

    /// Runs the resets that are due at t.
    ///
    /// # Errors
    /// A reset that changed the shape of y, or made it NaN or infinite.
    pub fn act(&mut self, t: f64, y: &mut Y) -> Result<(), SolveError> {
        while self.is_due(t) {
            let Planned { list, x, .. } = self.planned[self.num_done];
            let Some(then) = &self.lists[list].then else { unreachable!("invariant: only resets are kept") };
            let before = y.clone();
            locked(then)(t, y, x);
            let failed = |reason: String| SolveError::AtTime { t, reason, partial: Box::new(()) };
            if let Err(change) = y.conforms(&before) {
                return Err(failed(format!("changed y, {change}; a state reset must keep the shape of y")));
            }
            let broken = y.first_non_finite(&t);
            if broken >= 0.0 {
                let reason =
                    format!("made component {broken} NaN or infinite; a state reset must keep y finite");
                return Err(failed(reason));
            }
            self.num_done += 1;
        }
        Ok(())
    }
}
