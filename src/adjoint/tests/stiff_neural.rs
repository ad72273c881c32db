//! A neural ODE of reaction kinetics on which Newton's method diverges trains by a Rosenbrock method.
//!
//! The problem is that of [diffrax issue 319](https://github.com/patrick-kidger/diffrax/issues/319): two networks of the
//! state give rates of a stiff system, and the implicit solver diverges where derivatives are very large. Here the state is
//! f64, the networks are f32, the forcing has narrow spikes, and the first trial step is not finite.

use crate::array::DType;
use crate::nn::{Activation, Mlp};
use crate::ode::{ConstantStepSize, Method, Ode, Outcome, SaveAt, VectorField};
use crate::optim::{Adam, minimize};
use crate::tensor::{Key, Tensor, Tree, grad};
use crate::tree;

tree! {
    /// The networks of two rates.
    struct Networks { first: Mlp, second: Mlp }
}

/// The centers of the spikes, and their width.
const SPIKES: [f64; 3] = [0.5, 2.0, 6.0];
const WIDTH: f64 = 1e-3;
const T1: f64 = 10.0;
/// The size of the first trial step.
const DT0: f64 = 1.0;

/// Feeds a fifth of a unit per spike.
fn forcing(t: &Tensor) -> Tensor {
    let spike = |center: &f64| {
        (-((t - *center) / WIDTH).square()).exp() * (0.2 / WIDTH / std::f64::consts::PI.sqrt())
    };
    SPIKES.iter().map(spike).fold(t * 0.0, |sum, spike| sum + spike)
}

/// Robertson's reactions with an inflow into the first species and an outflow of the third one. `factors` gives the factors
/// of two rates from the logarithms of the concentrations, which are NaN below 0.
fn rates(factors: &dyn Fn(&Tensor) -> [Tensor; 2], t: &Tensor, y: &Tensor) -> Tensor {
    let [a, b, c] = [0, 1, 2].map(|i: usize| y.index(i));
    let [first, second] = factors(&(y + 1e-9).ln());
    let slow = first * 0.04 * &a;
    let fast = second * 3e7 * &b * &b;
    let back = &b * &c * 1e4;
    Tensor::stack(&[&(&back - &slow + forcing(t)), &(slow - &fast - back), &(fast - c * 0.1)])
}

impl Networks {
    fn new(key: &Key) -> Self {
        let [first, second] = key.split();
        Networks {
            first: Mlp::new([3, 6, 1], Activation::Tanh, &first),
            second: Mlp::new([3, 6, 1], Activation::Tanh, &second),
        }
    }

    /// The factors of the rates.
    fn factors(&self, logs: &Tensor) -> [Tensor; 2] {
        let x = (logs * 0.1).cast(DType::F32).expand_dims(0);
        [&self.first, &self.second].map(|net| net.forward(&x).reshape([]).cast(DType::F64).exp())
    }
}

fn problem(factors: &dyn Fn(&Tensor) -> [Tensor; 2]) -> Ode<'_, Tensor, impl VectorField<Tensor>> {
    let around = SPIKES.iter().flat_map(|t| [t - 4.0 * WIDTH, *t, t + 4.0 * WIDTH]).collect::<Vec<_>>();
    let ode = Ode::new(move |t: Tensor, y: &Tensor| rates(factors, &t, y)).method(Method::Rodas5P);
    ode.rtol(1e-4).atol([1e-7, 1e-11, 1e-7]).dt0(DT0).tstops(&around)
}

#[test]
fn a_neural_ode_with_spikes_trains_although_trial_steps_are_not_finite() {
    let y0 = Tensor::from([1.0, 0.0, 0.0]);
    let saved: Vec<f64> = (1..=20).map(|i| T1 * f64::from(i) / 20.0).collect();
    let solve = |factors: &dyn Fn(&Tensor) -> [Tensor; 2]| -> crate::Result<Tensor> {
        Ok(problem(factors).save_at(SaveAt::ts(&saved)).solve(0.0, T1, &y0)?.ys)
    };
    let constants = |_: &Tensor| [Tensor::from(2.0), Tensor::from(0.4)];
    let data = solve(&constants).unwrap();
    // b is 1e4 times smaller than the others, so errors are relative.
    let scale = Tensor::from([1.0, 1e5, 1.0]);
    let loss = |model: &Networks| -> crate::Result<Tensor> {
        let found = solve(&|logs: &Tensor| model.factors(logs))?;
        Ok(((found - &data) * &scale).square().mean())
    };
    let model = Networks::new(&Key::new(3));
    let factors = |logs: &Tensor| model.factors(logs);

    let start = problem(&factors).solve(0.0, T1, &y0).unwrap();
    assert!(start.stats.num_rejected.item() > 3.0, "{:?}", start.stats);
    let y1 = start.y1.to_vec();
    assert!(y1.iter().all(|y| *y > 0.0) && y1[1] < 1e-4, "{y1:?}");
    let whole = Ode::new(|t: Tensor, y: &Tensor| rates(&factors, &t, y)).method(Method::Rodas5P);
    let whole = whole.controller(ConstantStepSize { dt0: DT0 }).allow_incomplete();
    let outcome = whole.solve(0.0, T1, &y0).unwrap().outcome();
    assert!(matches!(outcome, Outcome::NonFinite { t: 0.0, step: 1, .. }), "{outcome:?}");

    let gradient = grad(|model: &Networks| loss(model), &model).unwrap();
    let largest = gradient.leaves().iter().map(|g| g.abs().max().item()).fold(0.0, f64::max);
    assert!(largest > 0.0 && largest.is_finite());
    let (trained, losses) = minimize(loss, model.clone(), Adam::new(0.03), 40).unwrap();
    let last = loss(&trained).unwrap().item();
    assert!(losses.iter().all(|loss| loss.is_finite()) && losses.len() == 40);
    assert!(last < losses[0] / 20.0, "{last:e} after {losses:?}");
}

#[test]
fn tolerances_hold_per_component_and_per_leaf() {
    type Parts = (Tensor, Tensor);
    let field = |a: &Tensor, b: &Tensor| (-(b * 1e-3) - a, (a.sum() * 1e-4 - b) * 1e3);
    let whole = |atol: [f64; 3]| {
        let ode = Ode::new(|_t, y: &Tensor| {
            let (a, b) = field(&y.slice(0, 0..2), &y.slice(0, 2..3));
            Tensor::concat(&[&a, &b], 0)
        });
        let ode = ode.method(Method::Rodas5P).rtol(1e-6).atol(atol);
        ode.solve(0.0, 1.0, Tensor::from([1.0, 0.5, 1.0])).unwrap()
    };
    let parts = |atol: &[f64]| {
        let ode = Ode::new(|_t, y: &Parts| field(&y.0, &y.1)).method(Method::Rodas5P).rtol(1e-6).atol(atol);
        ode.solve(0.0, 1.0, &(Tensor::from([1.0, 0.5]), Tensor::from([1.0]))).unwrap()
    };
    let (loose, tight) = (whole([1e-6; 3]), whole([1e-6, 1e-6, 1e-12]));
    assert!(tight.stats.num_accepted.item() > loose.stats.num_accepted.item());
    for atol in [&[1e-6, 1e-12][..], &[1e-6, 1e-6, 1e-12]] {
        let found = parts(atol);
        assert_eq!(found.stats.num_steps.item(), tight.stats.num_steps.item());
        assert_eq!([found.y1.0.to_vec(), found.y1.1.to_vec()].concat(), tight.y1.to_vec());
    }
}
