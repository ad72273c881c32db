//! The state of a backward solve: the state itself, its adjoint, and the parameters' gradients.
//!
//! The gradients by parameters are a quadrature: nothing in the equations reads them, so they weigh nothing in the
//! error norm and no step is shorter for them. What is measured is the state and its adjoint, each by the state's
//! own norm and bounds.

use super::state::TreeState;
use crate::ode::{FieldError, Part, Stages, State, Tolerance};
use crate::tensor::{Leaf, Path, Tensor, TensorTree, Tree};
use crate::tree;

tree! {
/// Integrals that the error norm does not see.
pub(super) struct Quadrature {
    pub(super) sums: Vec<Tensor>,
}
}

/// (y, a, q)
#[derive(Clone, Debug)]
pub(super) struct Augmented<Y: TreeState>(pub(super) Y, pub(super) Y, pub(super) Quadrature);

impl<Y: TreeState> Tree for Augmented<Y> {
    fn each<'a>(&'a self, path: &mut Path, f: &mut dyn FnMut(&Path, Leaf<'a>)) {
        path.within("y", |p| self.0.each(p, f));
        path.within("a", |p| self.1.each(p, f));
        path.within("q", |p| self.2.each(p, f));
    }
    fn each_mut(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        self.0.each_mut(f);
        self.1.each_mut(f);
        self.2.each_mut(f);
    }
    fn map(&self, path: &mut Path, f: &mut dyn FnMut(&Path, &Tensor) -> Tensor) -> Self {
        let y = path.within("y", |p| self.0.map(p, f));
        let a = path.within("a", |p| self.1.map(p, f));
        Augmented(y, a, path.within("q", |p| self.2.map(p, f)))
    }
}
impl<Y: TreeState> TensorTree for Augmented<Y> {}

impl<Y: TreeState> State for Augmented<Y> {
    type Clock = Tensor;

    fn lincomb<K: Stages<Self> + ?Sized>(&mut self, y: &Self, dt: &Tensor, a: &[f64], k: &K) {
        self.0.lincomb(&y.0, dt, a, &Part::new(k, |s: &Self| &s.0));
        self.1.lincomb(&y.1, dt, a, &Part::new(k, |s: &Self| &s.1));
        self.2.lincomb(&y.2, dt, a, &Part::new(k, |s: &Self| &s.2));
    }

    fn error_sum<K: Stages<Self> + ?Sized>(
        &mut self,
        dt: &Tensor,
        b: &[f64],
        k: &K,
        y0: &Self,
        y1: &Self,
        tol: &Tolerance,
    ) -> Tensor {
        let y = self.0.error_sum(dt, b, &Part::new(k, |s: &Self| &s.0), &y0.0, &y1.0, tol);
        let a = self.1.error_sum(dt, b, &Part::new(k, |s: &Self| &s.1), &y0.1, &y1.1, tol);
        y + a
    }

    fn scaled_error<K: Stages<Self> + ?Sized>(
        &mut self,
        dt: &Tensor,
        b: &[f64],
        k: &K,
        y0: &Self,
        y1: &Self,
        tol: &Tolerance,
    ) {
        self.0.scaled_error(dt, b, &Part::new(k, |s: &Self| &s.0), &y0.0, &y1.0, tol);
        self.1.scaled_error(dt, b, &Part::new(k, |s: &Self| &s.1), &y0.1, &y1.1, tol);
        self.2 = self.2.map_leaves(|q| Tensor::full(q.dtype(), q.shape().clone(), 0.0));
    }

    fn num_components(&self) -> usize {
        self.0.num_components() + self.1.num_components()
    }

    fn parts(&self) -> Vec<usize> {
        [self.0.parts(), self.1.parts()].concat()
    }

    fn keep(&mut self, m: &Tensor, new: &mut Self) {
        self.0.keep(m, &mut new.0);
        self.1.keep(m, &mut new.1);
        self.2.keep(m, &mut new.2);
    }

    fn first_non_finite(&self, like: &Tensor) -> Tensor {
        let (y, a) = (self.0.first_non_finite(like), self.1.first_non_finite(like));
        let behind = a.lt(0.0).select(&a, &(&a + self.0.num_components() as f64));
        y.lt(0.0).select(&behind, &y)
    }

    fn conforms(&self, y: &Self) -> Result<(), FieldError> {
        self.0.conforms(&y.0)
    }
}
