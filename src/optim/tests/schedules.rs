//! Schedules at their ends and boundaries.

use crate::optim::*;
use crate::tensor::{Tensor, jit};

fn rates<const N: usize>(schedule: &Schedule, at: [u32; N]) -> [f64; N] {
    at.map(|n| schedule.at(&n.into()).item())
}

#[track_caller]
fn assert_close<const N: usize>(got: [f64; N], want: [f64; N]) {
    for (a, b) in got.iter().zip(want) {
        assert!((a - b).abs() <= 1e-15 * b.abs().max(1.0), "{got:?} {want:?}");
    }
}

#[test]
fn a_line_holds_its_ends() {
    assert_eq!(rates(&Schedule::linear(1.0, 0.5, 4), [0, 1, 4, 5, 1000]), [1.0, 0.875, 0.5, 0.5, 0.5]);
    assert_eq!(rates(&Schedule::linear(1.0, 0.5, 0), [0, 1]), [1.0, 0.5]);
}

#[test]
fn a_cosine_holds_its_ends() {
    assert_close(rates(&Schedule::cosine_decay(2.0, 8), [0, 4, 8, 9]), [2.0, 1.0, 0.0, 0.0]);
    assert_close(rates(&Schedule::cosine_decay(2.0, 8).end(1.0), [0, 4, 8, 9]), [2.0, 1.5, 1.0, 1.0]);
}

#[test]
fn an_exponential_is_bounded_on_the_side_it_goes_to() {
    assert_close(
        rates(&Schedule::exponential_decay(8.0, 0.5, 10), [0, 5, 10, 30]),
        [8.0, 8.0 * 0.5f64.sqrt(), 4.0, 1.0],
    );
    assert_close(rates(&Schedule::exponential_decay(8.0, 0.5, 10).end(3.0), [10, 30]), [4.0, 3.0]);
    assert_close(rates(&Schedule::exponential_decay(1.0, 2.0, 1).end(6.0), [0, 2, 3]), [1.0, 4.0, 6.0]);
}

#[test]
fn a_piecewise_rate_changes_at_its_boundaries_and_not_before() {
    let schedule = Schedule::piecewise_constant(1.0, [(3, 0.5), (7, 0.25)]);
    assert_eq!(rates(&schedule, [0, 2, 3, 6, 7, 100]), [1.0, 1.0, 0.5, 0.5, 0.125, 0.125]);
}

#[test]
fn one_cycle_rises_for_three_tenths_and_ends_at_a_small_part() {
    let top = 0.3;
    let schedule = Schedule::one_cycle(top, 1000);
    assert_close(
        rates(&schedule, [0, 150, 300, 650, 1000, 1001]),
        [
            top / 25.0,
            f64::midpoint(top, top / 25.0),
            top,
            f64::midpoint(top, top / 250_000.0),
            1.2e-6,
            1.2e-6,
        ],
    );
    assert_close(rates(&schedule.end(0.1), [1000]), [0.1]);
}

#[test]
fn joined_schedules_count_from_their_boundaries() {
    let schedule = Schedule::join(
        [Schedule::linear(0.0, 1.0, 4), Schedule::constant(0.25), Schedule::exponential_decay(1.0, 0.5, 1)],
        [4, 6],
    );
    assert_eq!(rates(&schedule, [0, 3, 4, 5]), [0.0, 0.75, 0.25, 0.25]);
    assert_close(rates(&schedule, [6, 7, 8]), [1.0, 0.5, 0.25]);
    assert_close(rates(&schedule.end(0.3), [7, 8]), [0.5, 0.3]);
}

#[test]
#[should_panic(expected = "2 schedules need 1 boundaries, got 2")]
fn schedules_without_a_boundary_between_them_are_refused() {
    let _ = Schedule::join([Schedule::constant(1.0), Schedule::constant(2.0)], [3, 4]);
}

#[test]
#[should_panic(expected = "a constant or piecewise constant schedule has no end")]
fn an_end_of_a_constant_schedule_is_refused() {
    let _ = Schedule::constant(1.0).warmup(10).end(0.1);
}

#[test]
fn a_schedule_takes_its_length_from_a_tensor() {
    let rate =
        jit(|n: Tensor, total: Tensor| Schedule::cosine_decay(0.2, total).warmup(10).at(&n)).max_traces(1);
    let at = |n: u32, total: f64| rate.call(n, total).unwrap().item();
    assert_eq!((at(0, 100.0), at(5, 100.0)), (0.0, 0.1));
    assert!((at(60, 100.0) - 0.1).abs() < 1e-15 && (at(35, 50.0) - 0.1).abs() < 1e-15);
    assert!(at(110, 100.0).abs() < 1e-15 && at(500, 100.0).abs() < 1e-15);
    assert_eq!(Schedule::constant(0.3).warmup(4).at(&Tensor::from(9u32)).item(), 0.3);
}

#[test]
fn every_kind_of_schedule_takes_its_numbers_from_tensors() {
    let all = |n: Tensor, x: Tensor| {
        let schedules = [
            Schedule::constant(&x),
            Schedule::linear(&x, 0.0, &x),
            Schedule::cosine_decay(&x, &x).end(&x * 0.5),
            Schedule::exponential_decay(&x, &x, &x).end(&x),
            Schedule::one_cycle(&x, &x),
            Schedule::piecewise_constant(&x, [(&x, &x)]),
            Schedule::join([Schedule::constant(&x), Schedule::constant(&x * 2.0)], [&x]),
        ];
        Tensor::stack(&schedules.map(|s| s.at(&n)).each_ref())
    };
    let traced = jit(all).max_traces(1);
    for (n, x) in [(0u32, 4.0), (1, 4.0), (4, 4.0), (9, 8.0)] {
        let got = traced.call(n, x).unwrap().to_vec();
        assert_eq!(got, all(n.into(), x.into()).to_vec(), "at {n} of {x}");
    }
}
