//! Tensor states behind the one builder, [`Ode`].

use super::{Adjoint, Batching, Options, Solution, solve};
use crate::array::DType;
use crate::ode::{Drive, Field, IntoState, Ode, OdeError, Tolerance};
use crate::tensor::{Tensor, TensorTree};

impl<Y: TensorTree> Drive for Y {
    type Solution = Solution<Y>;
    type Options = Options;

    fn default_tolerance(&self) -> Tolerance {
        match self.leaves().iter().all(|x| x.dtype() == DType::F64) {
            true => Tolerance { rtol: 1e-6, atol: 1e-9 },
            false => Tolerance { rtol: 1e-4, atol: 1e-6 },
        }
    }

    fn drive<F: Field<Self>>(
        ode: &Ode<Self, F>,
        t0: Tensor,
        t1: Tensor,
        y0: Self,
    ) -> Result<Solution<Y>, OdeError> {
        let controller = ode.resolved_controller()?;
        let scheme = ode.scheme(&controller, y0.default_tolerance())?;
        if t0.is_traced() || t1.is_traced() {
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

impl<Y: Drive<Options = Options>, F> Ode<Y, F> {
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
