//! A fit without rows: the parameters of a function of them alone.

use super::Optimizer;
use super::fit::{FitState, Update, descend, without_nan};
use crate::error::Result;
use crate::tensor::{Key, Output, Tensor, Tree};

/// Minimizes `loss` with `updates` updates from `start`. Returns the parameters after the last update, and
/// the loss before each update.
///
/// One update (loss, gradient and optimizer) is traced and compiled once. The loss is the same function at
/// every update; it captures any data it needs. All optimizers are first-order: they use the gradient alone, and there is
/// no Gauss-Newton or Levenberg-Marquardt method. [`covariance`](super::covariance) gives the standard errors of a
/// least-squares fit. [`Fit`](super::Fit) trains by batches, with random numbers and held-out rows.
///
/// # Errors
/// Errors of the loss, and [`Error::NonFiniteLoss`](crate::Error::NonFiniteLoss), which names the first update whose loss is infinite or
/// NaN. [`debug_nans`](crate::tensor::debug_nans) finds the operation that produced it.
/// [`Error::NonFinite`](crate::Error::NonFinite) if a parameter is NaN at the end: a gradient can be NaN although the loss is finite.
///
/// # Panics
/// When the loss is not a single number.
///
/// # Examples
/// Fits the growth rate and capacity of a population to 12 counts; logarithms keep both positive:
/// ```
/// use flowline::nn::prelude::*;
/// let ts = Tensor::from((0..12).map(f64::from).collect::<Vec<_>>());
/// let n = 50.0 / (1.0 + 24.0 * (&ts * -0.8).exp());
/// let loss = |log_p: &Tensor| {
///     let p = log_p.exp();
///     let growth = Ode::new(|_t, y: &Tensor| p.index(0) * y * (1.0 - y / p.index(1))).save_at(&ts);
///     Ok((growth.solve(ts.first(), ts.last(), n.first())?.ys - &n).square().mean())
/// };
/// let (log_p, losses) = minimize(loss, Tensor::from([0.0, 3.0]), Adam::new(0.05), 500)?;
/// let p = log_p.exp();
/// assert!((p.index(0).item() - 0.8).abs() < 1e-3 && (p.index(1).item() - 50.0).abs() < 1e-2);
/// assert!(losses.len() == 500 && losses[499] < 1e-6 * losses[0]);
/// # Ok::<(), flowline::Error>(())
/// ```
#[doc(alias = "least_squares")]
#[doc(alias = "curve_fit")]
pub fn minimize<M: Tree, L: Output<Tree = Tensor>>(
    loss: impl Fn(&M) -> L + Send + Sync,
    start: M,
    optimizer: impl Into<Optimizer>,
    updates: usize,
) -> Result<(M, Vec<f64>)> {
    let optimizer = optimizer.into();
    let (mut state, mut losses) = (FitState::new(start, &optimizer), Vec::with_capacity(updates));
    let loss = |model: &M, (): &(), _: &Update| loss(model);
    let program = (&optimizer, &Key::new(0), &loss);
    descend(&mut state, program, std::iter::repeat_n((), updates), |_, loss| {
        losses.push(loss);
        Ok(())
    })?;
    without_nan(&state.model)?;
    Ok((state.model, losses))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::ode::Ode;
    use crate::optim::{Adam, OptState, Schedule, Sgd, chain, reduce_on_plateau};
    use crate::tensor::{jit, value_and_grad};

    #[test]
    fn a_fit_is_the_loop_that_one_would_write() {
        let loss = |x: &Tensor| (x.square() * Tensor::from([1.0, 10.0])).sum();
        let start = Tensor::from([1.0, -2.0]);
        let optimizer = Adam::new(Schedule::cosine_decay(0.1, 30)).build();
        let (found, losses) = minimize(loss, start.clone(), optimizer.clone(), 30).unwrap();
        let step = jit(|x: Tensor, state: OptState| {
            let (value, grad) = value_and_grad(loss, &x);
            (optimizer.update(&x, grad, state), value)
        });
        let (mut x, mut state, mut want) = (start.clone(), optimizer.init(&start), Vec::new());
        for _ in 0..30 {
            let value;
            ((x, state), value) = step.call(x, state).unwrap();
            want.push(value.item());
        }
        assert_eq!((found.to_vec(), losses), (x.to_vec(), want));
    }

    #[test]
    fn a_gradient_that_is_nan_is_an_error_although_the_loss_is_finite() {
        let refused = minimize(|x: &Tensor| x.square().sqrt(), Tensor::from(0.0), Sgd::new(1.0), 1);
        assert!(matches!(refused, Err(Error::NonFinite { .. })), "{refused:?}");
    }

    #[test]
    fn a_loss_that_is_not_finite_is_an_error_that_names_the_update() {
        // x is 3, then 3 - 2 * 3 = -3, whose square root is NaN.
        let loss = |x: &Tensor| x.sqrt() * 0.0 + x.square();
        let refused = minimize(loss, Tensor::from(3.0), Sgd::new(1.0), 5).unwrap_err();
        assert!(matches!(refused, Error::NonFiniteLoss { update: 1, value } if value.is_nan()), "{refused}");
        assert!(refused.to_string().starts_with("the loss before update 1 is NaN"));
    }

    #[test]
    fn no_updates_return_the_start_and_no_losses() {
        let (x, losses) = minimize(Tensor::square, Tensor::from(3.0), Sgd::new(1.0), 0).unwrap();
        assert_eq!((x.item(), losses.len()), (3.0, 0));
    }

    #[test]
    fn a_solve_that_fails_at_a_later_update_is_an_error() {
        // y(1) = 1 / (1 / x - 1) is finite for x < 1. The gradient of -x moves x from 0.5 to 1.5.
        let loss = |x: &Tensor| {
            let end = Ode::new(|_t, y: &Tensor| y.square()).solve(0.0, 1.0, x)?.y1;
            Ok(end * 0.0 - x)
        };
        let refused = minimize(loss, Tensor::from(0.5), Sgd::new(1.0), 3).unwrap_err();
        assert!(matches!(refused, Error::Solve { .. }), "{refused}");
    }

    #[test]
    fn an_error_of_the_loss_is_returned() {
        let loss = |_: &Tensor| crate::Result::<Tensor>::Err(Error::NonFiniteLoss { update: 7, value: 0.0 });
        let refused = minimize(loss, Tensor::from(3.0), Sgd::new(1.0), 5).unwrap_err();
        assert!(matches!(refused, Error::NonFiniteLoss { update: 7, .. }));
    }

    #[test]
    fn an_optimizer_that_reads_the_loss_receives_it() {
        // x goes from 1 to -1, where the loss is not lower. So the next update is half as long and leads to 0.
        let optimizer = chain((Sgd::new(2.0), reduce_on_plateau(0.5, 1)));
        let (x, losses) = minimize(Tensor::abs, Tensor::from(1.0), optimizer, 2).unwrap();
        assert_eq!((x.item(), losses), (0.0, vec![1.0; 2]));
    }
}
