//! The backward solve of the continuous adjoint through the saved times.
//!
//! The inputs are the times T = (t0, ts.., t1), the states Y at all of these times except t0, and the
//! cotangents G of Y. Y(i) is the state at T(i+1). Piece i goes from T(i+1) to T(i):
//!
//! ```text
//! y = Y(i)    a += G(i)    dL/dT(i+1) = G(i)^T f(T(i+1), Y(i))    solve (y, a, q') from T(i+1) to T(i)    q += q'
//! ```
//!
//! y is set to the state that the forward solve saved, so that no piece starts with the errors of the others
//! (as in diffrax). The pieces are the iterations of one loop, whose body is one solve. So the program has the
//! same size for one saved time and for a thousand. Each piece chooses its first step anew, which costs two
//! evaluations. One solve with tstops at the saved times would not have this cost, but it would integrate y
//! through all pieces. This module does not depend on how its reverse rule is used.

use super::algorithm::Scheme;
use super::backsolve::{Closed, refused};
use super::leaves::{Layout, Leaves};
use super::problem::Problem;
use super::{Adjoint, Options};
use crate::array::DType;
use crate::graph::{Checkpoints, Func, Policy, Type};
use crate::ode::{FieldError, SolveError, VectorField};
use crate::tensor::{Tensor, Trip, apply, poisoned, repeat, reverse, trace, try_trace};

/// The field of the augmented state.
struct Backward<'a> {
    field: Closed<'a>,
    pull: &'a Pullback,
    num_y: usize,
}

impl VectorField<Leaves> for Backward<'_> {
    fn eval(&self, t: &Tensor, s: &Leaves, ds: &mut Leaves) -> Result<(), FieldError> {
        let (y, a) = s.tensors()[..2 * self.num_y].split_at(self.num_y);
        let args = std::iter::once(t).chain(y).chain(self.field.params).chain(a);
        let mut all = apply(&self.pull.func, &args.cloned().collect::<Vec<_>>());
        let rest = all.split_off(y.len()).into_iter().map(|g| -g);
        *ds = s.with(all.into_iter().chain(rest).collect());
        Ok(())
    }
}

/// The function from t, y.., p.., a.. to f.., a^T df/dy.., a^T df/dp.. with p.. in `params`: the parameters whose
/// derivative is not always 0.
pub(super) struct Pullback {
    func: Func,
    params: Vec<usize>,
}

impl Pullback {
    pub(super) fn new(field: &Func, num_y: usize) -> Result<Pullback, SolveError> {
        let params = 1 + num_y..field.num_inputs();
        let floats: Vec<usize> = params.filter(|&k| field.input_type(k).is_float()).collect();
        let outs: Vec<usize> = (0..num_y).collect();
        let wrt = |params: &[usize]| (1..=num_y).chain(params.iter().copied()).collect::<Vec<_>>();
        let all = reverse(field, &outs, &wrt(&floats)).map_err(|e| refused(&e))?;
        let is_zero = |k: usize| all.node(all.outputs()[k]).splat() == Some(0.0);
        let kept = floats.iter().enumerate().filter(|(i, _)| !is_zero(2 * num_y + i));
        let kept: Vec<usize> = kept.map(|(_, &k)| k).collect();
        let func = reverse(field, &outs, &wrt(&kept)).map_err(|e| refused(&e))?;
        Ok(Pullback { func, params: kept.iter().map(|k| k - 1 - num_y).collect() })
    }
}

/// The inputs shared by all pieces, for n saved times: T `[n + 2]`, Y and G with a leading axis of n + 1, and p...
struct Shared<'a> {
    times: &'a Tensor,
    ys: &'a [Tensor],
    gs: &'a [Tensor],
    params: &'a [Tensor],
}

impl<'a> Shared<'a> {
    fn of(x: &'a [Tensor], num_y: usize) -> Shared<'a> {
        let (ys, rest) = x[1..].split_at(num_y);
        let (gs, params) = rest.split_at(num_y);
        Shared { times: &x[0], ys, gs, params }
    }
}

/// A backward solve through saved times.
pub(super) struct Sweep<'a> {
    pub(super) field: &'a Func,
    pub(super) pull: &'a Pullback,
    pub(super) scheme: &'a Scheme<'a>,
    /// A state, for its layout.
    pub(super) like: &'a Leaves,
    /// The number of saved times ts.
    pub(super) num_times: usize,
}

impl Sweep<'_> {
    /// From T, (Y, G) leaf by leaf and the parameters, computes one list: the cotangents of T without t0, a(t0)..
    /// and the cotangents of the pullback's parameters.
    ///
    /// # Errors
    /// The field's error while it was recorded.
    fn run(
        &self,
        times: &Tensor,
        (ys, gs): (&[Tensor], &[Tensor]),
        params: &[Tensor],
    ) -> Result<Vec<Tensor>, SolveError> {
        let zero = |x: &Tensor| Tensor::full(x.dtype(), x.shape().clone(), 0.0);
        let mut carry = vec![Tensor::full(DType::F64, [self.num_times + 1], 0.0)];
        carry.extend(self.like.tensors().iter().map(zero));
        carry.extend(self.pull.params.iter().map(|&k| zero(&params[k])));
        let mut shared = vec![times.clone()];
        shared.extend(ys.iter().chain(gs).chain(params).cloned());
        let from = Tensor::scalar(DType::F64, 0.0);
        let args: Vec<Tensor> = std::iter::once(&from).chain(&carry).chain(&shared).cloned().collect();
        let types: Vec<Type> = args.iter().map(Tensor::ty).collect();
        let piece = self.piece(&types, carry.len())?;
        if self.num_times == 0 {
            return Ok(apply(&piece, &args));
        }
        let num_pieces = self.num_times + 1;
        let trip = trace(&types[..=carry.len()], &mut |x| {
            let goes_on = (&x[0] + 1.0).lt(num_pieces as f64);
            [vec![goes_on], apply(&piece, &[x, &shared].concat())].concat()
        });
        let policy = Policy::Checkpoint(Checkpoints::Auto);
        let trip = Trip { traced: &trip, num_carry: carry.len(), guard: None };
        Ok(repeat(&trip, &carry, (num_pieces, policy)))
    }

    /// The program of one piece: from its number, counted from t1, the carry.. and the shared inputs.. to the
    /// new carry...
    fn piece(&self, types: &[Type], num_carry: usize) -> Result<Func, SolveError> {
        let piece = try_trace(types, &mut |x| self.record(&x[0], &x[1..=num_carry], &x[1 + num_carry..]))?;
        Ok(poisoned(piece))
    }

    fn record(&self, trip: &Tensor, carry: &[Tensor], shared: &[Tensor]) -> Result<Vec<Tensor>, SolveError> {
        let num_y = self.like.tensors().len();
        let all = Shared::of(shared, num_y);
        let i = (self.num_times as f64 - trip).reshape([1]);
        let time = |i: &Tensor| all.times.take_clamped(i).reshape([0; 0]);
        let row = |x: &Tensor| x.take_clamped(&i).reshape(x.shape().without_axes(&[0]));
        let (from, to) = (time(&(&i + 1.0)), time(&i));
        let (y, g): (Vec<Tensor>, Vec<Tensor>) =
            (all.ys.iter().map(row).collect(), all.gs.iter().map(row).collect());
        let (by_times, sums) = carry.split_at(1);
        let (a, q) = sums.split_at(num_y);
        let a: Vec<Tensor> = a.iter().zip(&g).map(|(a, g)| a + g).collect();

        let field = Closed { func: self.field, params: all.params };
        let by_time = dot(&g, &field.rate(&from, &y));
        let mut out = vec![by_times[0].scatter_add(&i, &by_time.reshape([1]))];
        // The sums of this piece start from 0, not from the carry. A sum that the caller does not use then enters
        // no other value, and `transform::simplify` removes it.
        let zeros = q.iter().map(|q| Tensor::full(q.dtype(), q.shape().clone(), 0.0)).collect();
        let back = Backward { field, pull: self.pull, num_y };
        let options = Options { adjoint: Adjoint::default(), ..Options::default() };
        let state = self.augmented(y, a, zeros);
        let end = Problem::piece(&back, self.scheme, &options).record(&from, &to, &state)?;
        end.register(None);
        let (a, gained) = end.y1.tensors()[num_y..].split_at(num_y);
        out.extend(a.iter().cloned());
        out.extend(q.iter().zip(gained).map(|(q, gained)| q + gained));
        Ok(out)
    }

    /// The state of a backward solve: the state, its adjoint, and the gradients with respect to parameters.
    ///
    /// The gradients are a quadrature: they do not enter the equations, so they are left out of the error norm
    /// and do not shorten steps. The adjoint has the same norm and tolerances as the state.
    fn augmented(&self, y: Vec<Tensor>, a: Vec<Tensor>, q: Vec<Tensor>) -> Leaves {
        let state = self.like.layout();
        Leaves::join([(state.clone(), y), (state.clone(), a), (Layout::Quadrature(q.len()), q)])
    }

    /// The reverse rule: the function from t0, t1, ts, y0.., p.., y1.., ys.., dL/dy1.., dL/dys.. to the
    /// cotangents of t0, t1, ts, y0.. and of all p.. of a float type. If no times are saved, ts, ys.. and
    /// dL/dys.. are missing. The first axis of ys is time.
    pub(super) fn rule(&self, types: &[Type]) -> Result<Func, SolveError> {
        let (num_y, has_times) = (self.like.tensors().len(), self.num_times > 0);
        let num_outs = if has_times { 2 * num_y } else { num_y };
        let rule = try_trace(types, &mut |x| {
            let (t, rest) = x.split_at(2 + usize::from(has_times));
            let (start, rest) = rest.split_at(num_y);
            let (params, ends) = rest.split_at(rest.len() - 2 * num_outs);
            let (y, g) = ends.split_at(num_outs);
            let rows = |x: &[Tensor]| -> Vec<Tensor> {
                let (ends, inner) = x.split_at(num_y);
                let all = |(i, end): (usize, &Tensor)| match inner.get(i) {
                    Some(inner) => Tensor::concat(&[inner, &end.expand_dims(0)], 0),
                    None => end.expand_dims(0),
                };
                ends.iter().enumerate().map(all).collect()
            };
            let one = |t: &Tensor| t.reshape([1]);
            let times = [&[one(&t[0])], &t[2..], &[one(&t[1])]].concat();
            let times = Tensor::concat(&times.iter().collect::<Vec<_>>(), 0);
            let mut sums = self.run(&times, (&rows(y), &rows(g)), params)?;
            let q = sums.split_off(1 + num_y);
            let (by_times, a) = sums.split_at(1);
            let field = Closed { func: self.field, params };
            let mut out = vec![-dot(a, &field.rate(&t[0], start)), by_times[0].index(self.num_times)];
            out.extend(has_times.then(|| by_times[0].slice(0, 0..self.num_times)));
            out.extend(a.iter().cloned());
            let zero = |k: usize| Tensor::full(params[k].dtype(), params[k].shape().clone(), 0.0);
            out.extend((0..params.len()).filter(|&k| params[k].dtype().is_float()).map(|k| {
                let at = self.pull.params.iter().position(|&p| p == k);
                at.map_or_else(|| zero(k), |i| q[i].clone())
            }));
            Ok::<_, SolveError>(out)
        })?;
        Ok(poisoned(rule))
    }
}

/// The inner product of two lists of tensors, in f64.
fn dot(x: &[Tensor], y: &[Tensor]) -> Tensor {
    let terms = x.iter().zip(y).map(|(x, y)| (x * y).sum().cast(DType::F64));
    terms.reduce(|a, b| a + b).unwrap_or_else(|| Tensor::scalar(DType::F64, 0.0))
}
