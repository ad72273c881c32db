//! How flows are solved: steps, tiles, norms, trajectories, counters, and sharing within one field
//! evaluation.

use super::*;
use crate::adjoint::{Adjoint, Checkpoints};
use crate::graph::{Op, Type, UnaryOp};
use crate::nn::{FourierMlp, golden_frequencies};
use crate::ode::tests::draw::{Draw, num_cases};
use crate::tensor::{jit, trace};

#[test]
fn a_first_step_is_tried_and_one_too_long_is_a_whole_block() {
    let slow = Logistic { rate: Tensor::from(0.1) };
    let flow = Cnf::new(slow).rtol(1e-3).atol(1e-3);
    let evals = |flow: &Cnf<Logistic>| {
        let stats = jit(|flow: Cnf<Logistic>, x: Tensor| Ok(flow.log_prob_with_stats(&x, &key())?.1));
        stats
            .call(flow.clone(), points(8).column(0).expand_dims(1) * 0.1)
            .map(|s: FlowStats| s.num_fn_evals.item())
    };
    let found = evals(&flow).unwrap();
    let [short, whole, beyond] = [0.05, 1.0, 7.0].map(|dt0| evals(&flow.clone().dt0(dt0)).unwrap());
    // Tsit5: one evaluation for the start and six per step; none to choose the step size.
    assert_eq!((whole, beyond), (7.0, 7.0));
    assert!(found > whole && short > whole, "{found} {short}");
    for dt0 in [0.0, f64::NAN] {
        let error = evals(&flow.clone().dt0(dt0)).expect_err(&dt0.to_string()).to_string();
        assert!(error.contains("dt0"), "{error}");
    }
}

#[test]
fn tiles_do_not_change_fixed_steps() {
    let x = points(11);
    for divergence in [Divergence::Exact, Divergence::hutchinson(ProbeDistribution::Rademacher)] {
        let flow = small().divergence(divergence);
        let whole = flow.clone().rows_per_tile(100).log_prob(&x).unwrap().to_vec();
        assert_eq!(flow.rows_per_tile(3).log_prob(&x).unwrap().to_vec(), whole);
    }
}

#[test]
fn a_path_leads_from_the_base_to_the_data() {
    let flow = small();
    let path = flow.sample_trajectories(6, &key(), 5).unwrap();
    assert_eq!(**path.shape(), [5, 6, 2]);
    assert_eq!(path.index(0).to_vec(), flow.base.sample(6, DType::F64, &key()).to_vec());
    assert!(largest(&(path.index(4) - flow.sample(6, &key()).unwrap())) < 1e-5);
    // The middle of the time span is the end of the first of two blocks.
    let first = Cnf { blocks: vec![flow.blocks[0].clone()], ..flow };
    assert!(largest(&(path.index(2) - first.sample(6, &key()).unwrap())) < 1e-5);
}

/// 2 to 12 times, blocks of three lengths, every adjoint, rows with common and with their own steps.
#[test]
fn a_time_within_a_block_is_where_a_solve_to_it_ends() {
    let (mut draw, mut drawn) = (Draw(46), [0; 4]);
    let auto = Adjoint::RecursiveCheckpoint { checkpoints: Checkpoints::Auto };
    let adjoints = [auto, Adjoint::Direct, Adjoint::ForwardMode, Adjoint::Reversible { coupling: 0.999 }];
    let backsolve = Adjoint::Backsolve { rtol: None, atol: None };
    for case in 0..num_cases(30) {
        let (times, t1, adjoint) = (2 + draw.below(11), draw.one(&[0.5, 1.0, 2.0]), draw.below(5));
        let flow =
            small().t1(t1).rtol(1e-8).atol(1e-8).adjoint(adjoints.get(adjoint).copied().unwrap_or(backsolve));
        let flow = flow.per_row(draw.coin());
        let path = flow.sample_trajectories(5, &key(), times);
        let path = path.unwrap_or_else(|e| panic!("case {case}: {times} times, {:?}: {e}", flow.settings));
        let same = flow.clone().adjoint(auto);
        for k in 1..times {
            let (at, mut y) = (2.0 * k as f64 / (times - 1) as f64, flow.base.sample(5, DType::F64, &key()));
            for (i, block) in same.blocks.iter().enumerate() {
                let end = (at - i as f64).clamp(0.0, 1.0) * t1;
                if end > 0.0 {
                    y = same.settings.flow((block, None), (0.0, end), &y).unwrap().0;
                }
            }
            let off = largest(&(path.index(k) - y));
            assert!(
                off < 1e-6,
                "case {case}: {times} times, time {at}, {:?}: off by {off:.1e}",
                flow.settings
            );
            drawn[usize::from(at.fract() == 0.0) + 2 * usize::from(flow.settings.per_row)] += 1;
        }
    }
    assert!(
        drawn.iter().all(|&count| count > 3),
        "within and at the end of a block, common and own steps: {drawn:?}"
    );
}

#[test]
fn a_log_density_outside_the_norm_changes_steps_and_not_the_answer() {
    let x = points(8);
    let flow = small().rtol(1e-7).atol(1e-7).rows_per_tile(8);
    let (both, stats) = flow.log_prob_with_stats(&x, &key()).unwrap();
    let flow = flow.error_norm(ErrorNorm::State);
    let (state, fewer) = flow.log_prob_with_stats(&x, &key()).unwrap();
    assert!(largest(&(both - state)) < 1e-5);
    assert!(fewer.num_steps.item() <= stats.num_steps.item());
    // The steps must be those of a solve without a density.
    let z = flow.settings.flow((&flow.blocks[1], None), (0.5, 0.0), &x).unwrap();
    let way = flow.settings.flow_with_density((&flow.blocks[1], None), (0.5, 0.0), &x, None).unwrap();
    let (y, counts) = (way.y1, way.counts);
    assert_eq!(counts.to_vec(), z.1.to_vec());
    assert_eq!(y.to_vec(), z.0.to_vec());
}

#[test]
fn counters_are_of_all_blocks() {
    let (_, stats) = small().log_prob_with_stats(&points(10), &key()).unwrap();
    assert_eq!((stats.num_steps.item(), stats.num_rejected.item()), (6.0, 0.0));
    // 2 blocks x 3 steps x 6 stages.
    assert_eq!(stats.num_fn_evals.item(), 36.0);
}

#[test]
fn many_rows_stream_through_one_program() {
    let (x, flow) = (points(23), small());
    let streamed = Chunked::new(5, |flow: &Cnf<ConcatSquash>, x: &Tensor, _: &Key| flow.log_prob(x));
    let got = streamed.call(&flow, &x, &key()).unwrap();
    assert_eq!(streamed.traces(), 1);
    assert_eq!(got.to_vec(), flow.log_prob(&x).unwrap().to_vec());
}

#[test]
fn a_solve_that_fails_is_an_error() {
    let mut flow = logistic();
    flow.blocks[0].rate = Tensor::from(f64::NAN);
    let message = flow.log_prob(&Tensor::from([[0.5]])).unwrap_err().to_string();
    assert!(message.contains("not finite"), "{message}");
    assert!(logistic().rtol(-1.0).atol(0.0).log_prob(&Tensor::from([[0.5]])).is_err());
}

/// Counts an operation in the graph of a field and its exact divergence.
fn occurrences<D: VelocityField>(net: &D, op: &Op) -> usize {
    let (t, y) = (Type::scalar(DType::F64), Type::array(DType::F32, [4, 2]));
    let types: Vec<Type> = [t, y].into_iter().chain(net.leaves().iter().map(Tensor::ty)).collect();
    let traced = trace(&types, &mut |x| {
        let net = net.with_leaves(x[2..].to_vec());
        let directions = divergence::Directions::new(&x[1], None);
        let divergence::Local { velocity: v, divergence: d, .. } =
            divergence::local((&net, None), &x[0], &x[1], &directions, false);
        vec![v, d]
    });
    traced.func.nodes().iter().filter(|n| n.op == *op).count()
}

#[test]
fn directions_share_one_evaluation_of_the_field() {
    let dot = Op::Dot { ta: false, tb: false };
    let squash = ConcatSquash::new(2, [8, 8, 8], &key());
    assert_eq!(occurrences(&squash, &Op::Unary(UnaryOp::Tanh)), 3);
    // Four layers, once for the velocity and once along each of two directions.
    assert_eq!(occurrences(&squash, &dot), 12);
    let fourier = FourierMlp::new(golden_frequencies(4, 1.0), [8, 8], &key());
    assert_eq!(occurrences(&fourier, &Op::Unary(UnaryOp::Sigmoid)), 2);
    // y B and three layers three times, and the time part of the first layer once.
    assert_eq!(occurrences(&fourier, &dot), 13);
}
