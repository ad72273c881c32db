//! The settings of plain states that are functions: the error norm, the saved function, the function of each
//! step, and state resets at given times.

use super::builder::locked;
use super::check::Given;
use super::given_times::{TimeEntry, TimeList, entries_of};
use super::{Ode, PlainState};
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

impl<'f, Y: PlainState, F, O> Ode<'f, Y, F, O> {
    /// The error norm: `norm` receives the scaled errors `e_j / (atol_j + rtol_j max(|y0_j|, |y1_j|))` as a
    /// state. A step is accepted if the norm is less than 1. The default is the RMS. The norm also determines
    /// the first step size, if `dt0` is not given. It must be finite and at least 0; a step for which it is
    /// not is rejected, and if shorter steps do not help, the solve ends with
    /// [`Outcome::NonFiniteNorm`](super::Outcome::NonFiniteNorm).
    pub fn norm(mut self, norm: impl Fn(&Y) -> f64 + Send + Sync + 'f) -> Self {
        // A negative norm would accept every step. A NaN rejects the step, and its outcome names the norm.
        self.norm = Some(Arc::new(move |errors: &Y| {
            let norm = norm(errors);
            if norm < 0.0 { f64::NAN } else { norm }
        }));
        self
    }
    /// Saves `f(t, y)` instead of y, at the times that [`save_at`](Ode::save_at) selects. Dense output is always of
    /// y, so `save_fn` is an error if no time is selected. A second call replaces the first.
    ///
    /// `f` may change its captured variables. It must not solve with this same `Ode`, which would deadlock.
    pub fn save_fn<P>(self, f: impl FnMut(f64, &Y) -> P + Send + 'f) -> Ode<'f, Y, F, P> {
        Ode {
            save_fn: Arc::new(Mutex::new(f)),
            given: Given { save_fn: true, ..self.given },
            field: self.field,
            settings: self.settings,
            norm: self.norm,
            functions: self.functions,
            save_at: self.save_at,
            watches: self.watches,
            on_step: self.on_step,
            times: self.times,
            options: self.options,
            state: PhantomData,
        }
    }
    /// Calls `watch(t, y)` after each accepted step, unless an event ends the solve. `ControlFlow::Break(())`
    /// ends the solve with [`Outcome::StoppedByOnStep`](super::Outcome::StoppedByOnStep), which is not an error.
    ///
    /// `watch` may change its captured variables. It must not solve with this `Ode`, which would deadlock.
    /// If several callbacks are given, all of them are called after each step, in this order.
    pub fn on_step(mut self, mut watch: impl FnMut(f64, &Y) -> ControlFlow<()> + Send + 'f) -> Self {
        self.on_step = Some(match self.on_step.take() {
            None => Arc::new(Mutex::new(watch)),
            Some(earlier) => Arc::new(Mutex::new(move |t: f64, y: &Y| {
                let (first, second) = (locked(&earlier)(t, y), watch(t, y));
                if first.is_break() { first } else { second }
            })),
        });
        self
    }
    /// Resets the state at given times: steps end at these times, and `then(t, y, x)` changes y. `times` is a list
    /// of times, or of pairs `(t, x)` of a time and a number such as an amount; without a number, x is 0.
    ///
    /// Times in `[t0, t1)` act, in the direction of the solve, so two solves in a row apply each reset once. Entries
    /// with equal times act in the order given. Events at such a time act first. Saved values, event records and
    /// dense output at such a time are those before the reset; only dense output at t0 is the state after it. A
    /// change of sign of an event's function by a reset is no event. A [`StepTo`](super::StepTo) must include
    /// the times inside the interval. For derivatives, see [`on_field_times`](Ode::on_field_times).
    ///
    /// # Examples
    /// Two doses:
    /// ```
    /// use flowline::ode::Ode;
    /// let ode = Ode::new(|_t, y: &[f64; 1]| [-0.5 * y[0]]).rtol(1e-9);
    /// let doses = [(0.0, 100.0), (1.0, 50.0)];
    /// let solution = ode.on_times(&doses, |_t, y, amount| y[0] += amount).solve(0.0, 2.0, [0.0])?;
    /// assert!((solution.y1[0] - (100.0 * (-1.0_f64).exp() + 50.0 * (-0.5_f64).exp())).abs() < 1e-6);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[doc(alias("dose", "PresetTimeCallback"))]
    pub fn on_times<E: Copy + Into<TimeEntry>>(
        mut self,
        times: &[E],
        then: impl FnMut(f64, &mut Y, f64) + Send + 'f,
    ) -> Self {
        let entries = entries_of(times);
        self.settings.reset_times.extend(entries.iter().map(|entry| entry.t));
        self.times.push(TimeList { entries, then: Some(Arc::new(Mutex::new(then))), of_field: None });
        self
    }
}
