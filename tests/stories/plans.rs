//! Work outside `jit`, repeated with other weights and other numbers of the same shapes: no call compiles again.
//!
//! A call outside `jit` is traced again each time. Its plan comes from a cache, which finds it only if no body of a
//! loop, a branch or a tile contains an array. Each explicit method is drawn with each kind of steps, and each way to
//! evaluate or to differentiate a solve, each setting that adds tables to a loop, and each call of a flow are drawn.

use super::watch::{Report, Watch, on_threads};
use flowline::adjoint::Batching;
use flowline::cnf::extra::ProbeDistribution;
use flowline::cnf::prelude::*;
use flowline::memory;
use flowline::ode::{self, ConstantStepSize};
use flowline::tensor::{custom_derivatives, map_rows};

/// The numbers of one call: the same shapes for each seed.
struct Given {
    model: Mlp,
    flow: Cnf<ConcatSquash>,
    x: Tensor,
    t1: Tensor,
    key: Key,
}

impl Given {
    fn new(seed: u64) -> Given {
        let [weights, biases, of_flow, rows, key] = Key::new(seed).split();
        let model = Mlp::new([2, 4, 2], Activation::Tanh, &weights);
        let model = model.map_leaves(|w| (w + biases.normal(w.shape().clone()) * 0.1).cast(DType::F64));
        let flow = Cnf::new(ConcatSquash::new(2, [4], &of_flow)).rtol(1e-2).atol(1e-2);
        let x = rows.normal([3, 2]).cast(DType::F64);
        Given { model, flow, x, t1: Tensor::from(0.5 + 0.01 * seed as f64), key }
    }
}

/// What is added to a solve.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Setting {
    Plain,
    Constant,
    StepTo,
    Tstops,
    Discontinuities,
    TolerancePerComponent,
    SavedTimes,
    AllSteps,
    Terminal,
    Continuing,
    Direct,
    Reversible,
    Backsolve,
    BacksolveTables,
    PerRow,
    Groups,
}

use Setting::*;

const SETTINGS: [Setting; 14] = [
    StepTo,
    Tstops,
    Discontinuities,
    TolerancePerComponent,
    SavedTimes,
    AllSteps,
    Terminal,
    Continuing,
    Direct,
    Reversible,
    Backsolve,
    BacksolveTables,
    PerRow,
    Groups,
];

fn solve(method: Method, setting: Setting, model: &Mlp, x: &Tensor, t1: &Tensor) -> flowline::Result<Tensor> {
    let scale = Tensor::from([1.0, 1.5]);
    let ode = Ode::new(|_t, y: &Tensor| model.forward(y) * &scale).method(method);
    let ode = if [Constant, StepTo].contains(&setting) { ode } else { ode.rtol(1e-3).atol(1e-3) };
    let end = Tensor::from(0.5);
    let (ode, t1) = match setting {
        Plain => (ode, t1),
        Constant => (ode.controller(ConstantStepSize { dt0: 0.125 }), t1),
        StepTo => (ode.controller(ode::StepTo { ts: vec![0.0, 0.125, 0.2, 0.5] }), &end),
        Tstops => (ode.tstops(&[0.1, 0.2, 0.3]), t1),
        Discontinuities => (ode.discontinuities(&[0.1, 0.25]), t1),
        TolerancePerComponent => {
            (ode.atol((0..x.size()).map(|i| 1e-3 + 1e-4 * i as f64).collect::<Vec<_>>()), t1)
        }
        SavedTimes => (ode.save_at(&Tensor::from([0.1, 0.2, 0.4])), t1),
        AllSteps => (ode.max_steps(20).save_at(SaveAt::steps()), t1),
        Terminal => (ode.event(Event::rising().terminal(), |_t, y| y.max() - 9.0), t1),
        Continuing => (ode.max_events(3).event(Event::rising(), |_t, y| y.sum() - 0.1), t1),
        Direct => (ode.adjoint(Adjoint::Direct), t1),
        Reversible => (ode.adjoint(Adjoint::reversible()), t1),
        Backsolve => (ode.adjoint(Adjoint::backsolve()), t1),
        BacksolveTables => {
            (ode.adjoint(Adjoint::backsolve()).tstops(&[0.1, 0.2]).save_at(&Tensor::from([0.15, 0.3])), t1)
        }
        PerRow => (ode.batching(Batching::PerRow), t1),
        Groups => (ode.batching(Batching::Groups(2)), t1),
    };
    let solution = ode.solve(0.0, t1, x)?;
    Ok(solution.y1.sum() + solution.ys.index(0).sum())
}

/// A way to evaluate or to differentiate a solve.
const WAYS: [&str; 6] =
    ["solve", "gradient to y0", "gradient to the model", "jvp", "vmap", "gradient in jvp"];

fn call(way: usize, method: Method, setting: Setting, given: &Given) -> Tensor {
    let Given { model, x, t1, .. } = given;
    // A single number that a derivative captures is a constant of its program; in a solve it is an operand.
    let captured = Tensor::from(0.5);
    let t1 = if way == 0 { t1 } else { &captured };
    let at = |model: &Mlp, x: &Tensor| solve(method, setting, model, x, t1);
    match way {
        0 => at(model, x).unwrap(),
        1 => grad(|x: &Tensor| at(model, x), x).unwrap(),
        2 => grad(|model: &Mlp| at(model, x), model).unwrap().layers[0].weight.clone(),
        3 => jvp(|x: &Tensor| at(model, x), x, x).unwrap().1,
        4 => vmap(|x: &Tensor| at(model, &x.expand_dims(0)), x).unwrap(),
        _ => hvp(|x: &Tensor| at(model, x), x, x).unwrap().1,
    }
}

type Other = (&'static str, fn(&Given) -> Tensor);

/// Calls without a solve of their own, and the calls of a flow.
const OTHERS: [Other; 9] = [
    ("cond", |given| {
        let table = Tensor::from([0.5, 1.5]);
        let loss = |x: &Tensor| {
            cond(
                &x.sum().gt(0.0),
                x,
                |x| given.model.forward(x).sum(),
                |x| (x * &table).sum().cast(DType::F64),
            )
        };
        grad(loss, &given.x)
    }),
    ("map_rows", |given| {
        let rows = std::slice::from_ref(&given.x);
        map_rows(rows, 2, |x| (vec![given.model.forward(&x[0])], vec![])).0[0].clone()
    }),
    ("custom derivatives", |given| {
        let (up, down) = (given.key.normal([2]).cast(DType::F64), Tensor::from([0.5, 2.0]));
        let custom = custom_derivatives(|x: &Tensor| x * &up).vjp(|_x, _y, g| g * &down);
        let field = Ode::new(|_t, y: &Tensor| custom.call(y).sin()).rtol(1e-3);
        let loss = |x: &Tensor| Ok(field.solve(0.0, 1.0, x)?.y1.sum());
        grad(loss, &given.x).unwrap()
    }),
    ("log_prob", |given| given.flow.log_prob(&given.x).unwrap()),
    ("log_prob_estimate", |given| {
        let estimated = given.flow.clone().divergence(Divergence::hutchinson(ProbeDistribution::Gaussian));
        estimated.log_prob_estimate(&given.x, &given.key).unwrap()
    }),
    ("sample", |given| given.flow.sample(5, &given.key).unwrap()),
    ("sample_with_log_prob", |given| given.flow.sample_with_log_prob(5, &given.key).unwrap().1),
    ("sample_trajectories", |given| given.flow.sample_trajectories(5, &given.key, 3).unwrap()),
    ("gradient of log_prob", |given| {
        let loss = |flow: &Cnf<ConcatSquash>| flow.log_prob(&given.x).map(|l| -l.mean());
        grad(loss, &given.flow).unwrap().leaves()[0].clone()
    }),
];

/// Calls twice with other numbers; then returns the number of plans that a third call compiles.
fn compiles_again(name: &str, call: impl Fn(&Given) -> Tensor) -> usize {
    let results = [1, 2].map(|seed| call(&Given::new(seed)).to_vec());
    assert!(results[0] != results[1] && results[0].iter().all(|x| x.is_finite()), "{name}: {results:?}");
    let given = Given::new(3);
    let before = memory::caches().compiles;
    call(&given);
    let compiled = memory::caches().compiles - before;
    if compiled > 0 {
        println!("{name}: {compiled} plans compiled again");
    }
    compiled
}

pub fn run(rounds: usize) -> Report {
    on_threads(1, || all(rounds))
}

fn all(rounds: usize) -> Report {
    let mut watch = Watch::begin();
    let explicit = Method::ALL.into_iter().filter(|m| m.is_explicit());
    let adaptive = |m: &Method| Ode::new(|_t, y: &f64| -y).method(*m).rtol(1e-3).solve(0.0, 1.0, 1.0).is_ok();
    let (mut compiled, mut drawn) = (0, [0; WAYS.len()]);
    for round in 0..rounds {
        for (i, method) in explicit.clone().enumerate() {
            let steps = [Constant, Plain];
            for (j, &setting) in steps.iter().enumerate().filter(|(j, _)| *j == 0 || adaptive(&method)) {
                let way = (round + i + 3 * j) % WAYS.len();
                drawn[way] += 1;
                let name = format!("{} with {method:?}, {setting:?}", WAYS[way]);
                compiled += compiles_again(&name, |given| call(way, method, setting, given));
            }
        }
        for (i, setting) in SETTINGS.into_iter().enumerate() {
            let way = if setting == Backsolve { 2 } else { [0, 1, 2][(round + i) % 3] };
            let name = format!("{} with {setting:?}", WAYS[way]);
            compiled += compiles_again(&name, |given| call(way, Method::Tsit5, setting, given));
        }
        for (name, call) in OTHERS {
            compiled += compiles_again(name, call);
        }
        watch.tick();
    }
    watch
        .end(0)
        .with("compiled_again", compiled as f64)
        .with("fewest_draws", f64::from(*drawn.iter().min().unwrap()))
}

pub fn hold(report: &Report) {
    report.at_most("compiled_again", 0.0);
    assert!(report.get("fewest_draws") >= 1.0, "a way to call was not drawn");
}
