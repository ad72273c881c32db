//! Tensor states behind the one builder, [`Ode`].

use super::algorithm::LeafField;
use super::event::{Events, Watch};
use super::leaves::Leaves;
use super::rows::Groups;
use super::saved::{BYTES_MAX, Saved};
use super::solve::Problem;
use super::state::TreeState;
use super::{Adjoint, Batching, Forecast, Options, PartNorm, Solution};
use crate::array::DType;
use crate::ode::{
    self, Drive, DriveOn, Field, FieldError, IntoState, Ode, OdeError, SaveAt, Settings, State, Tolerance,
};
use crate::tensor::{LoneTree, Tensor, Tree};

/// A tree and a tuple of trees are driven alike; tuples get there by their clock.
macro_rules! drive {
    ($($item:tt)*) => {
        $($item)* {
            /// y alone is saved.
            type Solution<O> = Solution<Self>;
            type Options = Options;

            fn default_tolerance(&self) -> Tolerance<'static> {
                default_tolerance(&self.leaves())
            }
            fn drive<F: Field<Self>, O>(
                ode: &Ode<'_, Self, F, O>,
                t0: Tensor,
                t1: Tensor,
                y0: Self,
            ) -> Result<Solution<Self>, OdeError> {
                drive(ode, &t0, &t1, &y0)
            }
        }
    };
}
drive!(impl<Y: LoneTree> Drive for Y);
drive!(impl<A: TreeState> DriveOn<Tensor> for (A,));
drive!(impl<A: TreeState, B: TreeState> DriveOn<Tensor> for (A, B));
drive!(impl<A: TreeState, B: TreeState, C: TreeState> DriveOn<Tensor> for (A, B, C));
drive!(impl<A: TreeState, B: TreeState, C: TreeState, D: TreeState> DriveOn<Tensor> for (A, B, C, D));
drive!(impl<A: TreeState, B: TreeState, C: TreeState, D: TreeState, E: TreeState> DriveOn<Tensor> for (A, B, C, D, E));
drive!(impl<A: TreeState, B: TreeState, C: TreeState, D: TreeState, E: TreeState, G: TreeState> DriveOn<Tensor> for (A, B, C, D, E, G));

fn default_tolerance(y: &[Tensor]) -> Tolerance<'static> {
    match y.iter().all(|x| x.dtype() == DType::F64) {
        true => Tolerance::new(1e-6, 1e-9),
        false => Tolerance::new(1e-4, 1e-6),
    }
}

/// Solves for leaves and gives back trees: all that is compiled for each state and field is here.
fn drive<Y: TreeState + Drive<Options = Options>, F: Field<Y>, O>(
    ode: &Ode<'_, Y, F, O>,
    t0: &Tensor,
    t1: &Tensor,
    y0: &Y,
) -> Result<Solution<Y>, OdeError> {
    let tree = |y: &Leaves| y0.with_leaves(y.leaves());
    let norm = ode.options.part_norm;
    let watches = ode.watches.iter().map(|ode::Watch { event, when, then }| Watch {
        event: *event,
        when: Box::new(move |t, y| when(t.clone(), &tree(y))),
        then: then.as_ref().map(|then| -> Box<dyn Fn(&Tensor, &Leaves) -> Leaves> {
            Box::new(move |t, y| {
                let mut y = tree(y);
                then(t.clone(), &mut y);
                Leaves::measured_by(&y, norm)
            })
        }),
    });
    let watches: Vec<Watch<'_>> = watches.collect();
    let asked =
        Asked { settings: &ode.settings, save_at: &ode.save_at, options: &ode.options, watches: &watches };
    let field = TreeField { field: &ode.field, like: y0 };
    Ok(asked.solve(&field, (t0, t1), &Leaves::measured_by(y0, norm))?.of(y0))
}

/// A field of trees as one of leaves.
struct TreeField<'a, Y, F> {
    field: &'a F,
    like: &'a Y,
}

impl<Y: TreeState, F: Field<Y>> Field<Leaves> for TreeField<'_, Y, F> {
    fn eval(&self, t: &Tensor, y: &Leaves, dy: &mut Leaves) -> Result<(), FieldError> {
        let tree = self.like.with_leaves(y.leaves());
        let mut slope = self.like.with_leaves(dy.leaves());
        self.field.eval(t, &tree, &mut slope)?;
        *dy = y.with(slope.leaves());
        Ok(())
    }
}

/// What was asked of a solve, whatever its state and field are.
struct Asked<'a> {
    settings: &'a Settings,
    save_at: &'a SaveAt,
    options: &'a Options,
    watches: &'a [Watch<'a>],
}

impl Asked<'_> {
    fn solve(
        &self,
        field: &LeafField<'_>,
        (t0, t1): (&Tensor, &Tensor),
        y0: &Leaves,
    ) -> Result<Solution<Leaves>, OdeError> {
        let Asked { settings, save_at, options, watches } = *self;
        let events = Events { watches, max_events: settings.max_events };
        let known = !t0.is_traced() && !t1.is_traced();
        let span = known.then(|| (t0.item(), t1.item()));
        let groups = Groups::of(options.batching, y0)?;
        let parts = groups.map_or_else(|| y0.parts(), |groups| groups.parts(y0));
        let resolved = settings.resolve(default_tolerance(y0.tensors()), &parts, span)?;
        let mut scheme = resolved.scheme::<Leaves>(None);
        let mut saved = Saved::new(save_at, options.ts.as_ref(), span, &scheme)?;
        if events.go_on() {
            check_hits(events.num_rows(), y0.tensors())?;
            saved = saved.in_pieces(events.num_rows(), scheme.limits.max_steps);
        }
        if (saved.needs_curve() || !events.is_empty()) && scheme.tableau.is_fsal() {
            // The curve needs f(t_next, y1), which then is the next step's first stage.
            scheme = scheme.keeping_first();
        }
        if let Some(Groups { rows, size, .. }) = groups
            && rows % size > 0
            && scheme.tolerance.uniform().is_none()
        {
            return Err(OdeError::UnevenGroups { rows, size });
        }
        match span {
            None => scheme.check_first_step(f64::NAN)?,
            Some((t0, t1)) => scheme.check_span(t0, t1, events.can_end())?,
        }
        for (path, leaf) in y0.named_leaves() {
            let at = if path.is_empty() { String::new() } else { format!(", leaf {path},") };
            assert!(leaf.dtype().is_float(), "y0{at} is {leaf:?}: a state is of f32 or f64, cast it");
        }
        Problem::new(field, &scheme, options, (&saved, events)).solve(t0, t1, y0)
    }
}

/// Refuses rows for hits that would be too large.
fn check_hits(rows: usize, y: &[Tensor]) -> Result<(), OdeError> {
    let one: usize = y.iter().map(|y| y.ty().bytes()).sum();
    let (bytes, most) = (rows.saturating_mul(one), BYTES_MAX);
    if bytes > most { Err(OdeError::NotedHits { rows, bytes, most }) } else { Ok(()) }
}

impl<Y: TreeState> IntoState<Y> for &Y {
    fn into_state(self) -> Y {
        self.clone()
    }
}

impl<Y: Drive<Options = Options>, F, O> Ode<'_, Y, F, O> {
    /// How the solve's gradient is taken; [`Adjoint::RecursiveCheckpoint`] with 32 MiB if not said.
    pub fn adjoint(mut self, adjoint: Adjoint) -> Self {
        self.options.adjoint = adjoint;
        self
    }

    /// How the errors of the parts of a tuple are measured together: see [`PartNorm`].
    pub fn part_norm(mut self, norm: PartNorm) -> Self {
        self.options.part_norm = norm;
        self
    }

    /// How many steps are expected: see [`Forecast`].
    pub fn forecast(mut self, forecast: impl Into<Forecast>) -> Self {
        self.options.forecast = forecast.into();
        self
    }

    /// Saves at the times `ts`, a tensor of rank 1 that may be traced, in place of what `save_at` said. They stand in the
    /// order of the solve; the state at a time out of order, outside of the interval or behind a NaN is NaN.
    ///
    /// # Panics
    /// If `ts` is not a float tensor of rank 1, or is empty.
    #[track_caller]
    pub fn save_at_tensor(mut self, ts: &Tensor) -> Self {
        let fits = ts.rank() == 1 && ts.size() > 0 && ts.dtype().is_float();
        assert!(
            fits,
            "save_at_tensor: {ts:?} is not a list of times: it must be of rank 1, of floats and not empty"
        );
        self.options.ts = Some(ts.cast(DType::F64));
        self.save_at([0.0; 0])
    }

    /// Which rows share their steps: see [`Batching`].
    pub fn batching(mut self, batching: Batching) -> Self {
        self.options.batching = batching;
        self
    }
}
