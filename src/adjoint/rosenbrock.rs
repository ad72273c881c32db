//! The stages of a Rosenbrock step on tensors.
//!
//! `(M / gamma - h J) k_i = f(t + c_i h, y + h sum_j a_ij k_j) + h d_i f_t + M sum_j C_ij k_j`, `y1 = y + h sum_i b_i k_i`,
//! with J = df/dy and f_t = df/dt at (t, y), for the components of all tensors in one vector. J is the forward-mode
//! derivative of the traced field along all unit vectors at once. It is made of differentiable operations, so the gradient
//! of a solve includes its derivative. A step is a function of (t, h, y) alone: each attempt computes J and its factors
//! anew, and the replay of a step computes them again, with the same bits.
//!
//! Linear systems are solved in f64, also for states in f32: the entries of `h J` of a stiff problem differ by more
//! orders of magnitude than f32 has digits.

use super::evaluations::{Evaluations, Rate};
use super::leaves::Leaves;
use crate::array::DType;
use crate::ode::{
    Counts, Diagnosis, FieldFailure, MethodKind, Request, State, StiffStages, VectorField, eval,
};
use crate::tensor::linalg::Factored;
use crate::tensor::{Tensor, jacobian, jvp};
use std::sync::{Arc, OnceLock};

/// The largest number of unknowns for which the gradient goes through the columns of W. Beyond it, the gradient goes
/// through products of W and the stages. Measured: with 32 unknowns columns are faster, with 50 products are.
pub(super) const COLUMNS_MAX: usize = 48;

/// Rosenbrock stages of a traced field.
#[derive(Clone)]
pub(super) struct Rosenbrock {
    rate: Arc<OnceLock<Rate>>,
    /// M, `[n, n]`; `None` for the identity.
    mass: Option<Tensor>,
    counts: Counts,
}

impl Rosenbrock {
    pub(super) fn of(field: &Evaluations<'_>, mass: Option<Tensor>) -> Self {
        Rosenbrock { rate: field.rate().clone(), mass, counts: Counts::default() }
    }

    /// The factors of `W = M / gamma - h J`, and `h f_t`, which is `None` if f does not depend on t.
    fn linearized(&self, (t, h): (&Tensor, &Tensor), y: &Leaves, gamma: f64) -> (Factored, Option<Tensor>) {
        let rate = self.rate.get().expect("invariant: the first stage has traced the field");
        let x = components(y);
        let factored = Factored::of(&self.matrix(h, &jacobian_of(rate, t, y), gamma));
        let times_w = |v: &Tensor| {
            let f = |x: &Tensor| components(&rate.at(t, &with_components(y, x)));
            let along = jvp(f, &x, &v.reshape([v.size()])).1;
            self.times_mass(v) * (1.0 / gamma) - (h * along).reshape(v.shape().clone())
        };
        let f_t = rate.depends_on_time.then(|| {
            let one = Tensor::scalar(DType::F64, 1.0);
            h * jvp(|t: &Tensor| components(&rate.at(t, y)), t, &one).1
        });
        let by_columns = x.size() <= COLUMNS_MAX;
        (if by_columns { factored } else { factored.with_product(times_w) }, f_t)
    }

    /// `M / gamma - h J`.
    pub(super) fn matrix(&self, h: &Tensor, j: &Tensor, gamma: f64) -> Tensor {
        let mass = self.mass.clone().unwrap_or_else(|| Tensor::eye(DType::F64, j.shape()[0]));
        without_infinities(&(mass * (1.0 / gamma) - h * j))
    }

    fn times_mass(&self, v: &Tensor) -> Tensor {
        self.mass.as_ref().map_or_else(|| v.clone(), |mass| mass.matmul(v))
    }
}

impl StiffStages<Leaves> for Rosenbrock {
    fn stages(
        &mut self,
        f: &dyn VectorField<Leaves>,
        request: &Request<'_, '_, Leaves>,
        y: &Leaves,
        k: &mut [Leaves],
        y1: &mut Leaves,
    ) -> Result<(), FieldFailure<Tensor>> {
        let Request { scheme, times, h, .. } = *request;
        let MethodKind::Rosenbrock(numbers) = &scheme.tableau.kind else {
            unreachable!("invariant: Rosenbrock stages of another method")
        };
        let num_stages = scheme.tableau.num_stages();
        let (mut factors, mut solved) = (None, Vec::<Tensor>::with_capacity(num_stages));
        for i in 0..num_stages {
            let mut rate_of_stage = y.clone();
            if i == 0 {
                eval(&f, &times.first, y, &mut rate_of_stage)?;
            } else {
                y1.lincomb(y, h, scheme.tableau.row(i), &k[..i]);
                eval(&f, &times.at(scheme.tableau.c[i], h), y1, &mut rate_of_stage)?;
            }
            // The field is traced by its first evaluation.
            let (factors, f_t) =
                factors.get_or_insert_with(|| self.linearized((&times.first, h), y, numbers.gamma));
            let mut terms = vec![(1.0, components(&rate_of_stage))];
            terms.extend(f_t.iter().filter(|_| numbers.d[i] != 0.0).map(|f_t| (numbers.d[i], f_t.clone())));
            let coupled = sum(numbers.row(i).iter().copied().zip(solved.iter().cloned()));
            if let Some(coupled) = coupled {
                terms.push((1.0, self.times_mass(&coupled)));
            }
            let right = sum(terms).expect("invariant: the first term has the coefficient 1");
            let stage = factors.solve(&right.expand_dims(1)).reshape([right.size()]);
            k[i] = with_components(y, &stage);
            solved.push(stage);
        }
        y1.lincomb(y, h, scheme.tableau.b, &k[..num_stages]);
        self.counts.evals += num_stages as u64;
        self.counts.jacobians += 1;
        self.counts.factorizations += 1;
        Ok(())
    }

    fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    /// Tensors may be traced: [`Problem::diagnosed`](super::problem::Problem::diagnosed) finds the cause after the solve.
    fn diagnosis(&self) -> Option<Diagnosis> {
        None
    }

    fn jacobian_norm(&self) -> f64 {
        f64::NAN
    }

    fn boxed_clone(&self) -> Box<dyn StiffStages<Leaves>> {
        Box::new(self.clone())
    }
}

/// The sum of the terms whose coefficient is not 0; `None` if there are none.
fn sum(terms: impl IntoIterator<Item = (f64, Tensor)>) -> Option<Tensor> {
    let (coefficients, terms): (Vec<f64>, Vec<Tensor>) = terms.into_iter().filter(|(c, _)| *c != 0.0).unzip();
    (!terms.is_empty()).then(|| Tensor::lincomb(&coefficients, &terms.iter().collect::<Vec<_>>()))
}

/// The matrix with NaN instead of infinity. An infinite pivot would make the solution 0, and a step be accepted.
pub(super) fn without_infinities(matrix: &Tensor) -> Tensor {
    matrix + (matrix * 0.0).stop_gradient()
}

/// df/dy at (t, y), `[n, n]`.
pub(super) fn jacobian_of(rate: &Rate, t: &Tensor, y: &Leaves) -> Tensor {
    jacobian(|x: &Tensor| components(&rate.at(t, &with_components(y, x))), &components(y))
}

/// The components of all tensors, in f64.
pub(super) fn components(y: &Leaves) -> Tensor {
    let parts: Vec<Tensor> = y.tensors().iter().map(|x| x.reshape([x.size()]).cast(DType::F64)).collect();
    match &parts[..] {
        [one] => one.clone(),
        parts => Tensor::concat(&parts.iter().collect::<Vec<_>>(), 0),
    }
}

/// The state of these components, in the shapes and element types of `like`.
pub(super) fn with_components(like: &Leaves, x: &Tensor) -> Leaves {
    let mut next = 0;
    let part = |y: &Tensor| {
        let range = next..next + y.size();
        next = range.end;
        let part = if range.len() == x.size() { x.clone() } else { x.slice(0, range) };
        part.cast(y.dtype()).reshape(y.shape().clone())
    };
    like.with(like.tensors().iter().map(part).collect())
}
