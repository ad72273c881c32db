//! Saved rows are the same on tensors as on plain states, for every combination of saved outputs.

use super::f64s;
use super::steps::close;
use crate::adjoint::Batching;
use crate::ode::{Event, Ode, Outcome, SaveAt, Solution, StepTo};
use crate::tensor::{Tensor, grad, jit};

/// t0, times inside steps (one of them twice), the end of a step, t1.
const TS: [f64; 7] = [0.0, 0.1, 0.1, 0.45, 0.6, 1.8, 2.0];

/// Each bit selects one saved output.
fn save_at(bits: u32, sign: f64) -> SaveAt {
    let has = |bit: u32| bits & (1 << bit) != 0;
    let mut save_at = SaveAt::ts(&if has(0) { TS.map(|t| t * sign).to_vec() } else { vec![] });
    for (bit, add) in [
        (1, SaveAt::and_t0 as fn(SaveAt) -> SaveAt),
        (2, SaveAt::and_t1),
        (3, |save_at| save_at.and_every_nth_step(2)),
        (4, SaveAt::and_dense),
    ] {
        save_at = if has(bit) { add(save_at) } else { save_at };
    }
    save_at
}

/// Solves a rotation on given steps, for plain states and for tensors. `$events` selects which events are recorded
/// and which are terminal.
macro_rules! round {
    ($field:expr, $y0:expr, $x:expr, ($save_at:expr, $sign:expr, $events:expr)) => {{
        let (sign, events): (f64, &str) = ($sign, $events);
        let grid = [0.0, 0.3, 0.6, 1.0, 1.3, 1.7, 2.0].map(|t| t * sign).to_vec();
        let mut ode = Ode::new($field).controller(StepTo { ts: grid }).save_at($save_at);
        if events == "recorded, then one ends" {
            ode = ode.event(Event::crossing(), |_t, y| $x(y) - 0.5);
        }
        if events != "none" {
            ode = ode.event(Event::crossing().terminal(), |_t, y| $x(y));
        }
        ode.solve(0.0, 2.0 * sign, $y0).unwrap()
    }};
}

fn on_plain(save_at: SaveAt, sign: f64, events: &str) -> Solution<[f64; 2]> {
    round!(|_t, y: &[f64; 2]| [y[1], -y[0]], [1.0, 0.0], |y: &[f64; 2]| y[0], (save_at, sign, events))
}

fn on_tensors(save_at: SaveAt, sign: f64, events: &str) -> crate::adjoint::TensorSolution<Tensor> {
    let field = |_t, y: &Tensor| Tensor::stack(&[&y.index(1), &-y.index(0)]);
    round!(field, f64s(&[1.0, 0.0]), |y: &Tensor| y.index(0), (save_at, sign, events))
}

#[test]
fn every_mix_is_saved_on_tensors_as_on_plain_states() {
    for bits in 0..32 {
        for sign in [1.0, -1.0] {
            for events in ["none", "one ends", "recorded, then one ends"] {
                let what = format!("{:?}, {events}", save_at(bits, sign));
                let (plain, got) = (
                    on_plain(save_at(bits, sign), sign, events),
                    on_tensors(save_at(bits, sign), sign, events),
                );
                let (n, rows) = (got.num_saved.item() as usize, got.ts.size());
                assert_eq!((n, got.ys.shape().to_vec()), (plain.ts.len(), vec![rows, 2]), "{what}");
                let (ts, ys) = (got.ts.to_vec(), got.ys.to_vec());
                close(&ts[..n], &plain.ts, 1e-12);
                close(&ys[..2 * n], &plain.ys.concat(), 1e-11);
                assert!(plain.ts.windows(2).all(|pair| pair[0] * sign < pair[1] * sign), "{what}");
                assert!(ts[n..].iter().chain(&ys[2 * n..]).all(|x| x.is_nan()), "{what}");
                if events == "none" && bits & 8 == 0 {
                    assert_eq!(rows, n, "{what}: more rows than saved times");
                }
                assert_eq!(got.dense().is_ok(), plain.dense().is_ok());
                if let (Ok(a), Ok(b)) = (got.dense(), plain.dense()) {
                    close(&a.eval(&Tensor::from(0.7 * sign)).to_vec(), &b.eval(0.7 * sign).unwrap(), 1e-11);
                }
            }
        }
    }
}

#[test]
fn times_known_only_when_it_runs_are_merged_all_the_same() {
    let merged = |t0: &Tensor, ts: &Tensor| {
        let ode = Ode::new(|_t, y: &Tensor| -y).save_at(ts).save_at(SaveAt::t0().and_t1());
        let s = ode.rtol(1e-9).atol(1e-9).solve(t0, 2.0, Tensor::from(1.0)).unwrap();
        (s.ts, s.ys, s.num_saved)
    };
    let call = jit(move |(t0, ts): (Tensor, Tensor)| Ok(merged(&t0, &ts)));
    let nan = f64::NAN;
    for (t0, ts, want) in [
        (0.0, [0.5, 1.0], [0.0, 0.5, 1.0, 2.0]),
        (0.5, [0.5, 1.0], [0.5, 1.0, 2.0, nan]),
        (0.5, [0.5, 2.0], [0.5, 2.0, nan, nan]),
    ] {
        let (at, ys, count) = call.call((Tensor::from(t0), f64s(&ts))).unwrap();
        let n = want.iter().filter(|t| !t.is_nan()).count();
        assert_eq!(count.item() as usize, n);
        assert_eq!(&at.to_vec()[..n], &want[..n]);
        close(&ys.to_vec()[..n], &want[..n].iter().map(|t| (t0 - t).exp()).collect::<Vec<_>>(), 1e-7);
        assert!(at.to_vec()[n..].iter().chain(&ys.to_vec()[n..]).all(|x| x.is_nan()));
    }
    assert_eq!(call.num_traces(), 1);
    // The cotangent of a merged row belongs to the state that the row contains.
    let gradient = grad(|ts: &Tensor| merged(&Tensor::from(0.0), ts).1.sum(), &f64s(&[0.5, 1.0]));
    close(&gradient.to_vec(), &[-(-0.5_f64).exp(), -(-1.0_f64).exp()], 1e-6);
}

#[test]
fn nothing_is_saved_where_the_curve_alone_is_kept_for_rows_too() {
    for (batching, groups) in [(Batching::PerRow, 5), (Batching::Groups(2), 3)] {
        let ode = Ode::new(|_t, y: &Tensor| -y).max_steps(30).batching(batching).save_at(SaveAt::dense());
        let s = ode.solve(0.0, 1.0, Tensor::ones([5, 2])).unwrap();
        assert_eq!((s.ts.shape().to_vec(), s.ys.shape().to_vec()), (vec![0, groups], vec![0, 5, 2]));
        assert_eq!(s.num_saved.to_vec(), vec![0.0; groups]);
        let at = s.dense().unwrap().eval(&f64s(&[0.2, 0.4, 0.6]));
        assert_eq!(at.shape().to_vec(), [3, 5, 2]);
        assert_eq!(s.outcome(), Outcome::Completed);
    }
}
