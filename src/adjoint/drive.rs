//! [`Ode`] on tensor states.

use super::algorithm::LeafField;
use super::event::{Events, Watch};
use super::leaves::Leaves;
use super::mass::MassMatrix;
use super::problem::Problem;
use super::rows::Groups;
use super::saved::{BYTES_MAX, Saved};
use super::state::TensorState;
use super::{Adjoint, Batching, ExpectedSteps, Options, PartNorm, TensorSolution, backsolve, reversible};
use crate::array::DType;
use crate::ode::{
    self, ConfigError, DriveOn, FieldError, IntoSaveAt, IntoState, Ode, OdeState, Resolved, SaveAt, Settings,
    SolveError, State, Tolerance, VectorField,
};
use crate::tensor::{LoneTree, Tensor, Tree};
use std::borrow::Cow;

/// Implements the driver of a tree, or of a tuple of trees; a tuple has one driver per clock ([`DriveOn`]).
macro_rules! drive {
    ($($item:tt)*) => {
        $($item)* {
            /// Does not depend on `O`: on tensors there is no `save_fn`, and only states are saved.
            type Solution<O> = TensorSolution<Self>;
            type Options = Options;

            fn default_tolerance(&self) -> Tolerance<'static> {
                default_tolerance(&self.leaves())
            }
            fn check<F, O>(
                ode: &Ode<'_, Self, F, O>,
                t0: &Tensor,
                t1: &Tensor,
                y0: &Self,
            ) -> Result<(), ConfigError> {
                let norm = ode.options.part_norm;
                let watches = watches(&ode.watches, y0, norm);
                Request::of(ode, &watches).prepare((t0, t1), &Leaves::measured_by(y0, norm)).map(|_| ())
            }
            fn drive<F: VectorField<Self>, O>(
                ode: &Ode<'_, Self, F, O>,
                t0: Tensor,
                t1: Tensor,
                y0: Self,
            ) -> Result<TensorSolution<Self>, SolveError<TensorSolution<Self>>> {
                drive(ode, &t0, &t1, &y0)
            }
        }
    };
}
drive!(impl<Y: LoneTree> OdeState for Y);
drive!(impl<A: TensorState> DriveOn<Tensor> for (A,));
drive!(impl<A: TensorState, B: TensorState> DriveOn<Tensor> for (A, B));
drive!(impl<A: TensorState, B: TensorState, C: TensorState> DriveOn<Tensor> for (A, B, C));
drive!(impl<A: TensorState, B: TensorState, C: TensorState, D: TensorState> DriveOn<Tensor> for (A, B, C, D));
drive!(impl<A: TensorState, B: TensorState, C: TensorState, D: TensorState, E: TensorState> DriveOn<Tensor> for (A, B, C, D, E));
drive!(impl<A: TensorState, B: TensorState, C: TensorState, D: TensorState, E: TensorState, G: TensorState> DriveOn<Tensor> for (A, B, C, D, E, G));

fn default_tolerance(y: &[Tensor]) -> Tolerance<'static> {
    match y.iter().all(|x| x.dtype() == DType::F64) {
        true => Tolerance::new(1e-6, 1e-9),
        false => Tolerance::new(1e-4, 1e-6),
    }
}

/// The distance from 1 to the next larger number, in the finest precision of the leaves.
fn epsilon(y: &[Tensor]) -> f64 {
    match y.iter().all(|x| x.dtype() == DType::F32) {
        true => f64::from(f32::EPSILON),
        false => f64::EPSILON,
    }
}

/// Solves on leaves and converts the result to trees: the only code that is compiled per state and field.
fn drive<Y: TensorState + OdeState<Options = Options>, F: VectorField<Y>, O>(
    ode: &Ode<'_, Y, F, O>,
    t0: &Tensor,
    t1: &Tensor,
    y0: &Y,
) -> Result<TensorSolution<Y>, SolveError<TensorSolution<Y>>> {
    let norm = ode.options.part_norm;
    let watches = watches(&ode.watches, y0, norm);
    let field = TreeField { field: &ode.field, like: y0 };
    let solved = Request::of(ode, &watches).solve(&field, (t0, t1), &Leaves::measured_by(y0, norm));
    solved.map(|solution| solution.of(y0)).map_err(|error| error.map(|solution| solution.of(y0)))
}

/// Events on leaves, from events on trees like `y0`.
fn watches<'a, Y: TensorState>(of: &'a [ode::Watch<'_, Y>], y0: &'a Y, norm: PartNorm) -> Vec<Watch<'a>> {
    let tree = |y: &Leaves| y0.with_leaves(y.leaves());
    let watches = of.iter().map(|ode::Watch { event, when, then, .. }| Watch {
        event: *event,
        when: Box::new(move |t, y| when(t.clone(), &tree(y))),
        then: then.as_ref().map(|then| -> Box<dyn Fn(&Tensor, &Leaves) -> Leaves> {
            Box::new(move |t, y| {
                let mut y = tree(y);
                ode::locked(then)(t.clone(), &mut y);
                Leaves::measured_by(&y, norm)
            })
        }),
    });
    watches.collect()
}

/// A field of trees as a field of leaves.
struct TreeField<'a, Y, F> {
    field: &'a F,
    like: &'a Y,
}

impl<Y: TensorState, F: VectorField<Y>> VectorField<Leaves> for TreeField<'_, Y, F> {
    fn eval(&self, t: &Tensor, y: &Leaves, dy: &mut Leaves) -> Result<(), FieldError> {
        let tree = self.like.with_leaves(y.leaves());
        let mut rate = self.like.with_leaves(dy.leaves());
        self.field.eval(t, &tree, &mut rate)?;
        rate.conforms(&tree).map_err(|mismatch| mismatch.of_derivative("the vector field"))?;
        *dy = y.with(rate.leaves());
        Ok(())
    }
}

/// The options of a solve, for any state and field.
struct Request<'a> {
    settings: &'a Settings,
    /// What to save, except times given as a tensor: these are in `options`.
    save_at: Cow<'a, SaveAt>,
    options: &'a Options,
    watches: &'a [Watch<'a>],
}

/// The settings of a solve, resolved and checked by [`Request::prepare`].
struct Prepared {
    resolved: Resolved,
    saved: Saved,
    groups: Option<Groups>,
}

impl<'a> Request<'a> {
    fn of<Y: OdeState<Options = Options>, F, O>(ode: &'a Ode<'_, Y, F, O>, watches: &'a [Watch<'a>]) -> Self {
        let Ode { settings, save_at, options, given, .. } = ode;
        // Times given as a tensor replace the default of `save_at`.
        let times_alone = options.ts.is_some() && !given.save_at;
        let save_at = if times_alone { Cow::Owned(SaveAt::ts(&[])) } else { Cow::Borrowed(save_at) };
        Request { settings, save_at, options, watches }
    }

    fn events(&self) -> Events<'a> {
        Events { watches: self.watches, max_events: self.settings.max_events }
    }

    /// Resolves the settings and checks them.
    ///
    /// # Errors
    /// A setting that has no effect in this solve, or with which it cannot run.
    fn prepare(&self, (t0, t1): (&Tensor, &Tensor), y0: &Leaves) -> Result<Prepared, ConfigError> {
        let Request { settings, save_at, options, .. } = self;
        self.check_read()?;
        for (path, leaf) in y0.named_leaves() {
            let at = if path.is_empty() { String::new() } else { format!(", leaf {path},") };
            assert!(leaf.dtype().is_float(), "y0{at} is {leaf:?}: a state must be f32 or f64; cast it");
        }
        let known = !t0.is_traced() && !t1.is_traced();
        let span = known.then(|| (t0.item(), t1.item()));
        let groups = Groups::of(options.batching, y0)?;
        let parts = groups.map_or_else(|| y0.parts(), |groups| groups.parts(y0));
        let resolved =
            settings.resolve((default_tolerance(y0.tensors()), epsilon(y0.tensors())), &parts, span)?;
        let scheme = resolved.scheme::<Leaves>(None);
        let mut saved = Saved::new(save_at, options.ts.as_ref(), span, &scheme)?;
        let is_constrained =
            || resolved.mass().is_some_and(|mass| MassMatrix::of(mass).constraints.is_some());
        if !scheme.limits.sides.is_empty() && is_constrained() {
            return Err(ConfigError::MethodPlace {
                method: format!("{:?}", settings.method),
                place: "on tensors with a singular `mass_matrix` and `discontinuities` or `stop_at_rows`",
                remedy: "solve on plain states, or up to each discontinuity",
            });
        }
        let events = self.events();
        match options.adjoint {
            Adjoint::Backsolve { .. } => backsolve::check(&saved, &events)?,
            Adjoint::Reversible { coupling } => reversible::check(coupling, &events)?,
            _ => {}
        }
        if events.go_on() {
            check_record_bytes(events.num_rows(), y0.tensors())?;
            saved = saved.in_pieces(events.num_rows(), scheme.limits.max_steps);
        }
        if let Some(Groups { rows, size, .. }) = groups
            && rows % size > 0
            && (scheme.tolerance.uniform().is_none() || resolved.mass().is_some())
        {
            return Err(ConfigError::UnevenGroups { rows, size });
        }
        match span {
            None => scheme.check_first_step(f64::NAN)?,
            Some((t0, t1)) => scheme.check_span(t0, t1, events.can_end())?,
        }
        Ok(Prepared { resolved, saved, groups })
    }

    /// Refuses settings that have no effect in this solve.
    fn check_read(&self) -> Result<(), ConfigError> {
        let Request { settings, options, .. } = *self;
        settings.check_tensors(match options.adjoint {
            Adjoint::Backsolve { .. } => Some("with Adjoint::Backsolve, which solves backward in time"),
            Adjoint::Reversible { .. } => Some("with Adjoint::Reversible, which inverts explicit steps"),
            _ => None,
        })?;
        settings.check_method([false; 3])?;
        // `Reversible` uses atol for constant steps, too: it limits the distance of its two states.
        settings.check_steps(false, matches!(options.adjoint, Adjoint::Reversible { .. }))?;
        let (rtol, atol) = match options.adjoint {
            Adjoint::Backsolve { rtol, atol } if !settings.is_adaptive() => (rtol.is_some(), atol.is_some()),
            _ => (false, false),
        };
        let constant = "with constant steps or `StepTo`";
        let unread = [
            ("rtol of Adjoint::Backsolve", rtol, constant),
            ("atol of Adjoint::Backsolve", atol, constant),
            (
                "save_at times",
                !self.save_at.ts.is_empty() && options.ts.is_some(),
                "if times are given as a tensor",
            ),
            ("save_at times", options.ts_twice, "a second time if times are given as a tensor"),
            ("max_events", settings.max_events.is_some() && self.watches.is_empty(), "without an event"),
        ];
        self.watches.iter().try_for_each(|watch| ode::check_event(&watch.event))?;
        match unread.iter().find(|(_, is_given, _)| *is_given) {
            Some(&(setting, _, place)) => Err(ConfigError::UnusedSetting { setting, place }),
            None => Ok(()),
        }
    }

    fn solve(
        &self,
        field: &LeafField<'_>,
        (t0, t1): (&Tensor, &Tensor),
        y0: &Leaves,
    ) -> Result<TensorSolution<Leaves>, SolveError<TensorSolution<Leaves>>> {
        let Prepared { resolved, saved, groups } = self.prepare((t0, t1), y0)?;
        let events = self.events();
        let mut scheme = resolved.scheme::<Leaves>(None);
        if (saved.needs_curve() || !events.is_empty()) && scheme.tableau.is_fsal() {
            // Dense output needs f(t_next, y1), which is also the next step's first stage.
            scheme = scheme.keeping_first();
        }
        let mut problem = Problem::new(field, &scheme, self.options, (&saved, events));
        problem.mass = resolved.mass().map(MassMatrix::of);
        let solution = match problem.solve(t0, t1, y0) {
            Ok(solution) => problem.diagnosed((t0, t1), groups, solution),
            Err(mut error) => {
                // A field that fails while it is recorded has no known t; report t0.
                if let SolveError::Field { t, .. } = &mut error
                    && t.is_nan()
                    && !t0.is_traced()
                {
                    *t = t0.item();
                }
                return Err(error.map(|()| TensorSolution::unstarted(t0, y0)));
            }
        };
        if self.settings.allow_incomplete {
            return Ok(solution);
        }
        let Some((outcome, group)) = solution.settle(groups.map(|groups| groups.size)) else {
            return Ok(solution);
        };
        let row = groups.map(|groups| group * groups.size);
        let Resolved { rtol, atol, .. } = resolved;
        Err(SolveError::incomplete(outcome, row, (&rtol, &atol, self.settings.is_adaptive()), solution))
    }
}

/// Refuses event records that would be too large.
fn check_record_bytes(rows: usize, y: &[Tensor]) -> Result<(), ConfigError> {
    let one: usize = y.iter().map(|y| y.ty().bytes()).sum();
    let (bytes, most) = (rows.saturating_mul(one), BYTES_MAX);
    if bytes > most { Err(ConfigError::EventRecordsTooLarge { rows, bytes, most }) } else { Ok(()) }
}

impl<Y: OdeState<Options = Options>> IntoSaveAt<Y> for &Tensor {
    #[track_caller]
    fn write(self, _save_at: &mut Option<SaveAt>, options: &mut Options) {
        let fits = self.rank() == 1 && self.size() > 0 && self.dtype().is_float();
        assert!(
            fits,
            "save_at: {self:?} is not a list of times: pass a float tensor of rank 1 with at least one time"
        );
        options.ts_twice = options.ts.is_some();
        options.ts = Some(self.cast(DType::F64));
    }
}

impl<Y: TensorState> IntoState<Y> for &Y {
    fn into_state(self) -> Y {
        self.clone()
    }
}

impl<Y: OdeState<Options = Options>, F, O> Ode<'_, Y, F, O> {
    /// How the gradient of the solve is computed; the default is [`Adjoint::RecursiveCheckpoint`] with as many stored
    /// states as fit into 32 MiB, at least one.
    pub fn adjoint(mut self, adjoint: Adjoint) -> Self {
        self.options.adjoint = adjoint;
        self
    }

    /// How the errors of the parts of a tuple are combined: see [`PartNorm`].
    pub fn part_norm(mut self, norm: PartNorm) -> Self {
        self.options.part_norm = norm;
        self
    }

    /// How many steps are expected: see [`ExpectedSteps`].
    pub fn expected_steps(mut self, expected: impl Into<ExpectedSteps>) -> Self {
        self.options.expected_steps = expected.into();
        self
    }

    /// Which rows share their steps: see [`Batching`].
    pub fn batching(mut self, batching: Batching) -> Self {
        self.options.batching = batching;
        self
    }
}
