//! A loop that runs while a condition holds.

use super::{Stored, Trip, bytes, repeat, same_state, types};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::graph::{Checkpoints, Type};
use crate::tensor::output::Output;
use crate::tensor::rows::worst_check;
use crate::tensor::trace::{Check, trace_tree};
use crate::tensor::tree::Tree;
use crate::tensor::{Tensor, Traced, apply, trace};

/// Applies `f` while `goes_on` holds: `x = init; while goes_on(x) { x = f(x) }`.
///
/// The number of trips is not known before the program runs. The state x is a tree of tensors whose shapes and element
/// types do not change. The condition is one bool. The loop does not end if the condition never becomes false: count
/// the trips in the state, and bound them in the condition.
///
/// The derivative is that of the trips that ran, in forward and in reverse mode. [`WhileLoop`] chooses how many states
/// are stored for the reverse mode. A reverse derivative of a reverse derivative needs [`WhileLoop::store_all`].
/// In [`vmap`](crate::tensor::vmap), each example has its own trips.
///
/// # Errors
/// If `f` returns a `Result`: its error, or, on concrete tensors, a solve in `f` that ended early.
///
/// # Panics
/// If `f` returns a state of other types, or the condition is not one bool. If `f` does not return a `Result`, the cases
/// under "Errors" panic.
///
/// # Examples
/// Newton's method for the square root, with its derivative:
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::while_loop;
/// let root = |a: &Tensor| {
///     let far = |x: &Tensor| (x * x - a).abs().gt(1e-12);
///     while_loop(far, |x: &Tensor| 0.5 * (x + a / x), &Tensor::from(1.0))
/// };
/// let (y, dy) = value_and_grad(root, &Tensor::from(2.0));
/// assert!((y.item() - 2.0_f64.sqrt()).abs() < 1e-12);
/// assert!((dy.item() - 0.5 / 2.0_f64.sqrt()).abs() < 1e-6);
/// ```
#[track_caller]
pub fn while_loop<C: Tree, R: Output<Tree = C>>(
    goes_on: impl Fn(&C) -> Tensor,
    f: impl Fn(&C) -> R,
    init: &C,
) -> R::Of<C> {
    WhileLoop::new(goes_on, f).call(init)
}

/// A [`while_loop`] with a choice of the states that are stored.
pub struct WhileLoop<P, F> {
    goes_on: P,
    f: F,
    pub(super) stored: Stored,
}

impl<P, F> WhileLoop<P, F> {
    /// The loop that applies `f` while `goes_on` holds. It stores as many states as fit into 32 MiB.
    pub fn new(goes_on: P, f: F) -> WhileLoop<P, F> {
        WhileLoop { goes_on, f, stored: Stored::default() }
    }

    /// Stores fewer states; a backward pass computes the others again. Derivatives are bitwise equal for every choice.
    #[must_use]
    pub fn checkpoints(self, checkpoints: Checkpoints) -> Self {
        WhileLoop { stored: Stored::Few(checkpoints), ..self }
    }

    /// Stores every state, however many. A reverse derivative of a reverse derivative needs them all.
    #[must_use]
    pub fn store_all(self) -> Self {
        WhileLoop { stored: Stored::All, ..self }
    }

    /// Runs the loop from `init`; see [`while_loop`].
    #[track_caller]
    pub fn call<C: Tree, R: Output<Tree = C>>(&self, init: &C) -> R::Of<C>
    where
        P: Fn(&C) -> Tensor,
        F: Fn(&C) -> R,
    {
        R::answer(self.run(init))
    }

    #[track_caller]
    fn run<C: Tree, R: Output<Tree = C>>(&self, init: &C) -> Result<C>
    where
        P: Fn(&C) -> Tensor,
        F: Fn(&C) -> R,
    {
        let holds = |x: &C| {
            let p = (self.goes_on)(x);
            let one = p.dtype() == DType::Bool && p.rank() == 0;
            assert!(one, "while_loop: the condition is {}, expected one bool, bool[]", p.ty());
            p
        };
        let start = init.leaves();
        let (body, next) = trace_tree(&types(&start), init, |x| {
            let next = (self.f)(&x).into_result()?;
            same_state("while_loop", init, &next);
            Ok::<_, Error>(([vec![holds(&next)], next.leaves()].concat(), next))
        })?;
        let end = repeated(&body, &start, holds(init), self.stored)?;
        Ok(next.with_leaves(end))
    }
}

/// The state after the loop. `body` computes from the state whether the loop goes on, and the next state.
fn repeated(body: &Traced, start: &[Tensor], is_first: Tensor, stored: Stored) -> Result<Vec<Tensor>> {
    let has_checks = body.func.num_outputs() > body.num_outputs;
    // The state, the worst check so far, and whether there is a first trip.
    let mut state = start.to_vec();
    state.extend(has_checks.then(|| Check::passed().values));
    let num_carry = state.len();
    state.push(is_first);
    let number = Type::scalar(DType::F64);
    let traced = trace(&[vec![number], types(&state)].concat(), &mut |x| {
        let mut out = apply(&body.func, &[&x[1..=start.len()], &body.captures].concat());
        let checks = out.split_off(body.num_outputs);
        let worst = has_checks.then(|| worst_check(x[num_carry].clone(), &checks));
        out.extend(worst);
        out.push(Tensor::scalar(DType::Bool, 1.0));
        out
    });
    let policy = stored.policy(bytes(&state), None);
    let mut end = repeat(&Trip { traced: &traced, num_carry, guard: Some(num_carry) }, &state, (0, policy));
    if has_checks {
        Check { values: end.swap_remove(num_carry - 1) }.settle()?;
    }
    end.truncate(start.len());
    Ok(end)
}
