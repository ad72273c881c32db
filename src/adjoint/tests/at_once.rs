//! Two or three events at once, drawn at random: solves on tensors have the records of plain solves.

use crate::ode::tests::draw::{Draw, num_cases};
use crate::ode::tests::event_records::{Case, Function, Motion, Reset, Watched, zero_at_the_start};
use crate::ode::{Event, Ode, Outcome};
use crate::tensor::Tensor;

fn value(of: Function, t: &Tensor, y: &Tensor) -> Tensor {
    let Function { a, b, s, k, c, scale } = of;
    scale * (a * y.index(0) + b * y.index(1) + s * (k * t).sin() - c)
}

fn field(motion: Motion, y: &Tensor) -> Tensor {
    let (x, v) = (y.index(0), y.index(1));
    let a = match motion {
        Motion::Rotation { w } => -w * w * x,
        Motion::Fall { g } => Tensor::from(-g),
        Motion::Drag { d, c } => c - d * &v,
    };
    Tensor::stack(&[&v, &a])
}

fn reset(how: Reset, y: &Tensor) -> Tensor {
    let (x, v) = (y.index(0), y.index(1));
    let (x, v) = match how {
        Reset::Nothing => (x, v),
        Reset::Reflect(by) => (x, -by * v),
        Reset::Kick(by) => (x, v + by),
        Reset::Jump(by) => (x + by, v),
        Reset::Put([x, v]) => (Tensor::from(x), Tensor::from(v)),
    };
    Tensor::stack(&[&x, &v])
}

/// The index and the time of each event, and whether an event ended the solve.
fn on_tensors(case: &Case) -> (Vec<(usize, f64)>, bool) {
    let motion = case.motion;
    let mut ode = Ode::new(move |_t, y: &Tensor| field(motion, y)).method(case.method);
    for watched in &case.watched {
        let Watched { function, is_condition, event, reset: how, .. } = *watched;
        let when = move |t: Tensor, y: &Tensor| {
            let value = value(function, &t, y);
            if is_condition { value.gt(0.0) } else { value }
        };
        ode = match how {
            Reset::Nothing => ode.event(event, when),
            how => ode.on_event(event, when, move |_t, y| *y = reset(how, y)),
        };
    }
    let ode = ode.rtol(1e-10).atol(1e-10).dt_max(0.02).allow_incomplete().max_events(60);
    let solution = ode.solve(case.t0, case.t1, Tensor::from(case.y0)).unwrap();
    let events = solution.events().unwrap();
    let n = events.num_events.item() as usize;
    let [index, ts] = [&events.index, &events.t].map(Tensor::to_vec);
    let records = (0..n).map(|k| (index[k] as usize, ts[k])).collect();
    (records, matches!(solution.outcome(), Outcome::Event { .. }))
}

#[test]
fn events_at_once_have_the_records_of_plain_solves() {
    let mut draw = Draw(20261124);
    let (mut num_records, mut num_groups) = (0, 0);
    let n = num_cases(20);
    for number in 0..n {
        let (case, _, records, is_last) = Case::clear(&mut draw);
        if records.len() > 50 {
            continue;
        }
        num_records += records.len();
        num_groups += records.windows(2).filter(|pair| pair[0].1 == pair[1].1).count();
        let (mut found, is_ended) = on_tensors(&case);
        // Events at once that do not act may differ by rounding in their times, and so in their order.
        for pair in (1..found.len()).flat_map(|_| 1..found.len()).collect::<Vec<_>>() {
            let [a, b] = [found[pair - 1], found[pair]];
            if (a.1 - b.1).abs() < 1e-8 && a.0 > b.0 {
                found.swap(pair - 1, pair);
            }
        }
        let is_near =
            |(a, b): (&(usize, f64), &(usize, f64, [f64; 2]))| a.0 == b.0 && (a.1 - b.1).abs() < 1e-6;
        let same = found.len() == records.len() && found.iter().zip(&records).all(is_near);
        assert!(same && is_ended == is_last, "{number}: {case:?}\n found {found:?}\n expected {records:?}");
    }
    assert!(num_records > 4 * n && num_groups > n / 2, "{num_records} {num_groups}");
}

/// With an event that ends the solve and with one that does not, which are recorded by different loops.
#[test]
fn a_function_of_zero_at_the_start_does_not_change_its_sign_there() {
    let mut draw = Draw(7);
    for number in 0..num_cases(60) {
        let (motion, function, y0, t1) = zero_at_the_start(&mut draw);
        let ode = Ode::new(move |_t, y: &Tensor| field(motion, y)).dt_max(0.01).allow_incomplete();
        let event = if draw.coin() { Event::crossing().terminal() } else { Event::crossing() };
        let ode = ode.event(event, move |t, y| value(function, &t, y));
        let solution = ode.solve(0.0, t1, Tensor::from(y0)).unwrap();
        let first = solution.events().unwrap().t.to_vec().first().copied();
        let is_early = first.is_some_and(|t| t.abs() < 1e-9);
        assert!(!is_early, "{number}: {function:?} from {y0:?}, {event:?}: {first:?}");
    }
}
