//! Tensor states behind the one builder, [`Ode`].

use super::{Adjoint, Batching, Options, Solution, solve};
use crate::array::DType;
use crate::ode::{Drive, Field, IntoState, Ode, OdeError, State, Tolerance};
use crate::tensor::{Tensor, TensorTree};

impl<Y: TensorTree> Drive for Y {
    /// y alone is saved, at t1.
    type Solution<O> = Solution<Y>;
    type Options = Options;

    fn default_tolerance(&self) -> Tolerance<'static> {
        match self.leaves().iter().all(|x| x.dtype() == DType::F64) {
            true => Tolerance::new(1e-6, 1e-9),
            false => Tolerance::new(1e-4, 1e-6),
        }
    }

    fn drive<F: Field<Self>, O>(
        ode: &Ode<'_, Self, F, O>,
        t0: Tensor,
        t1: Tensor,
        y0: Self,
    ) -> Result<Solution<Y>, OdeError> {
        let known = !t0.is_traced() && !t1.is_traced();
        let span = known.then(|| (t0.item(), t1.item()));
        let resolved = ode.settings.resolve(y0.default_tolerance(), &State::parts(&y0), span)?;
        let scheme = resolved.scheme::<Y>(None);
        if !known {
            scheme.check_first_step(f64::NAN)?;
        } else {
            scheme.check_span(t0.item(), t1.item())?;
        }
        for (path, leaf) in y0.named_leaves() {
            let at = if path.is_empty() { String::new() } else { format!(", leaf {path},") };
            assert!(leaf.dtype().is_float(), "y0{at} is {leaf:?}: a state is of f32 or f64, cast it");
        }
        solve(&ode.field, &scheme, *ode.options(), (&t0, &t1), &y0)
    }
}

impl<Y: TensorTree> IntoState<Y> for &Y {
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

    /// Which rows share their steps.
    pub fn batching(mut self, batching: Batching) -> Self {
        self.options.batching = batching;
        self
    }
}
