//! A vector field that is traced once, and the residuals of its evaluations.
//!
//! Each evaluation in a step, in an attempt or at the start of a solve inserts the same function. Evaluation i of an
//! attempt and evaluation i of its step thus have the same residuals, bit for bit, without a search for equal values.
//! The residuals of an evaluation are the state at which it is made and all values inside it. This module must not
//! depend on which evaluations a method makes.

use super::algorithm::LeafField;
use super::leaves::Leaves;
use crate::graph::Func;
use crate::ode::{FieldError, VectorField};
use crate::tensor::{Tensor, apply, try_trace};
use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

/// A vector field that records the residuals of its evaluations.
pub(super) struct Evaluations<'a> {
    field: &'a LeafField<'a>,
    rate: Arc<OnceLock<Rate>>,
    /// The residuals of each evaluation since the last [`Evaluations::take`].
    made: RefCell<Vec<Vec<Tensor>>>,
}

/// The traced field: from t, y.., captures.. to dy.., then the values inside it.
pub(super) struct Rate {
    func: Func,
    captures: Vec<Tensor>,
    /// The layout of dy.
    like: Leaves,
    num_outputs: usize,
    /// Whether dy depends on t.
    pub(super) depends_on_time: bool,
}

impl Rate {
    /// f(t, y), and the values inside it.
    fn apply(&self, t: &Tensor, y: &Leaves) -> (Leaves, Vec<Tensor>) {
        let args: Vec<Tensor> = [t].into_iter().chain(y.tensors()).chain(&self.captures).cloned().collect();
        let mut outputs = apply(&self.func, &args);
        let inside = outputs.split_off(self.num_outputs);
        (self.like.with(outputs), inside)
    }

    /// f(t, y), which is not recorded as an evaluation.
    pub(super) fn at(&self, t: &Tensor, y: &Leaves) -> Leaves {
        self.apply(t, y).0
    }
}

impl<'a> Evaluations<'a> {
    pub(super) fn of(field: &'a LeafField<'a>) -> Self {
        Evaluations { field, rate: Arc::default(), made: RefCell::default() }
    }

    /// The traced field, once it has been evaluated.
    pub(super) fn rate(&self) -> &Arc<OnceLock<Rate>> {
        &self.rate
    }

    /// The residuals of each evaluation since the last call.
    pub(super) fn take(&self) -> Vec<Vec<Tensor>> {
        self.made.take()
    }

    /// The field, traced for the types of t and y.
    ///
    /// # Errors
    /// The field's error, if it has not been traced before.
    pub(super) fn traced(&self, t: &Tensor, y: &Leaves) -> Result<&Rate, FieldError> {
        if self.rate.get().is_none() {
            _ = self.rate.set(self.trace(t, y)?);
        }
        Ok(self.rate.get().expect("invariant: the field has been traced"))
    }

    fn trace(&self, t: &Tensor, y: &Leaves) -> Result<Rate, FieldError> {
        let types: Vec<_> = [t].into_iter().chain(y.tensors()).map(Tensor::ty).collect();
        let mut like = None;
        let traced = try_trace(&types, &mut |x| {
            let y = y.with(x[1..].to_vec());
            let mut dy = y.clone();
            self.field.eval(&x[0], &y, &mut dy)?;
            Ok::<_, FieldError>(like.insert(dy).tensors().to_vec())
        })?;
        let like = like.expect("invariant: a field that did not fail has returned");
        let func = traced.with_residuals();
        let depends_on_time = traced.depends_on(0);
        let (captures, num_outputs) = (traced.captures, traced.num_outputs);
        Ok(Rate { func, captures, like, num_outputs, depends_on_time })
    }
}

impl VectorField<Leaves> for Evaluations<'_> {
    fn eval(&self, t: &Tensor, y: &Leaves, dy: &mut Leaves) -> Result<(), FieldError> {
        let (rate, inside) = self.traced(t, y)?.apply(t, y);
        *dy = rate;
        let argument = if inside.is_empty() { vec![] } else { y.tensors().to_vec() };
        self.made.borrow_mut().push([argument, inside].concat());
        Ok(())
    }
}
