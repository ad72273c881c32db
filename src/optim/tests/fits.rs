//! `Fit` against loops written by hand, bit by bit.
//!
//! The cases are drawn: 1 to 40 rows, batches of 1 to all rows and none, 0 to 12 updates or 0 to 3 epochs, any key, six
//! optimizers, one leaf or two per row, a loss that uses random numbers and the index of the update. `FLOWLINE_CASES=<n>`
//! draws n cases.

use super::*;
use crate::error::Error;
use crate::nn::{Activation, Mlp};
use crate::ode::tests::draw::{Draw, num_cases};
use crate::tensor::{Dataset, Key, Tree, value_and_grad};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

type Rows = (Tensor, Tensor);

/// A loss with random numbers, which changes with the index of the update.
fn loss(net: &Mlp, (x, y): &Rows, key: &Key, index: &Tensor) -> Tensor {
    let noise = 0.1 * key.normal(x.shape().clone());
    let pace = 1.0 + 0.1 * index.cast(DType::F32);
    ((net.forward(&(x + noise)) - y) * pace).square().mean()
}

/// What a loop that one would write returns: model, losses, held-out losses.
struct ByHand {
    model: Mlp,
    losses: Vec<f64>,
    held_out: Vec<(usize, f64)>,
}

struct Case {
    rows: Rows,
    unseen: Rows,
    batch: Option<usize>,
    updates: usize,
    every: usize,
    optimizer: Optimizer,
    key: Key,
    net: Mlp,
}

fn optimizers() -> [Optimizer; 6] {
    [
        Adam::new(1e-2).into(),
        AdamW::new(Schedule::cosine_decay(1e-2, 7)).into(),
        Sgd::new(0.1).momentum(0.9).into(),
        chain((clip_by_global_norm(0.5), Adam::new(3e-3))),
        chain((Sgd::new(0.1), reduce_on_plateau(0.5, 1))),
        accumulate_gradients(2, Adam::new(1e-2)),
    ]
}

impl Case {
    fn drawn(draw: &mut Draw) -> Case {
        let n = 1 + draw.below(40);
        let [x, y, net] = Key::new(draw.bits()).split();
        let rows = |n: usize, from: u32| {
            let of = |key: &Key, width| key.fold_in(from).normal([n, width]);
            (of(&x, 2), of(&y, 1))
        };
        Case {
            rows: rows(n, 0),
            unseen: rows(1 + draw.below(9), 1),
            batch: (draw.below(4) > 0).then(|| 1 + draw.below(n)),
            updates: draw.below(13),
            every: 1 + draw.below(6),
            optimizer: draw.one(&optimizers()),
            key: Key::new(draw.bits()),
            net: Mlp::new([2, 4, 1], Activation::Tanh, &net),
        }
    }

    fn by_hand(&self) -> ByHand {
        let [order, noise, fixed] = self.key.split();
        let data = Dataset::new(self.rows.clone()).unwrap();
        let step = jit(|(net, state): (Mlp, OptState), (rows, key, index): (Rows, Key, Tensor)| {
            let (value, grads) = value_and_grad(|net: &Mlp| loss(net, &rows, &key, &index), &net);
            (self.optimizer.update_with_value(&net, grads, state, &value), value)
        });
        let held_out = jit(|net: Mlp, rows: Rows, key: Key, index: Tensor| loss(&net, &rows, &key, &index));
        let mut state = (self.net.clone(), self.optimizer.init(&self.net));
        let (mut losses, mut history) = (Vec::new(), Vec::new());
        let mut batches = data.batches(self.batch.unwrap_or(data.num_rows()), &order);
        for i in 0..self.updates as u32 {
            let rows = match self.batch {
                Some(_) => batches.next().unwrap(),
                None => self.rows.clone(),
            };
            let value = step.step(&mut state, (rows, noise.fold_in(i), i.into())).unwrap();
            losses.push(value.item());
            let done = i as usize + 1;
            if done.is_multiple_of(self.every) || done == self.updates {
                let found =
                    held_out.call(state.0.clone(), self.unseen.clone(), fixed.clone(), i + 1).unwrap();
                history.push((done, found.item()));
            }
        }
        ByHand { model: state.0, losses, held_out: history }
    }

    fn fit(&self) -> Fit<'static, Mlp, Rows> {
        self.set(Fit::new(self.net.clone(), self.rows.clone())).updates(self.updates)
    }

    /// The settings but for the number of updates.
    fn set<'a>(&self, fit: Fit<'a, Mlp, Rows>) -> Fit<'a, Mlp, Rows> {
        let fit = fit.optimizer(&self.optimizer).key(&self.key);
        let fit = fit.held_out(self.unseen.clone()).report_every(self.every);
        match self.batch {
            Some(batch) => fit.batch(batch),
            None => fit,
        }
    }
}

fn of_update(net: &Mlp, rows: &Rows, update: &Update) -> Tensor {
    loss(net, rows, &update.key, &update.index)
}

fn bits(tree: &impl Tree) -> Vec<u64> {
    tree.leaves().iter().flat_map(Tensor::to_vec).map(f64::to_bits).collect()
}

#[test]
fn a_fit_is_the_loop_by_hand_bit_by_bit_and_is_traced_once() {
    let mut draw = Draw(1);
    let (mut whole, mut uneven, mut wraps, mut none) = (0, 0, 0, 0);
    let cases = num_cases(60);
    for case in 0..cases {
        let case_of = Case::drawn(&mut draw);
        let (calls, mut reports) = (AtomicUsize::new(0), Vec::new());
        let fit = case_of.fit().on_progress(|p| {
            assert_eq!(p.state.num_updates.item() as usize, p.update);
            reports.push((p.update, p.held_out.unwrap()));
        });
        let found = fit.run(|net, rows, update| {
            calls.fetch_add(1, Relaxed);
            of_update(net, rows, update)
        });
        let (found, by_hand) = (found.unwrap(), case_of.by_hand());
        assert_eq!(bits(&found.model), bits(&by_hand.model), "case {case}");
        assert_eq!((&found.losses, &found.held_out), (&by_hand.losses, &by_hand.held_out), "case {case}");
        assert_eq!((&reports, found.num_updates), (&by_hand.held_out, case_of.updates), "case {case}");
        // One trace for the updates, one for the held-out rows.
        assert_eq!(calls.load(Relaxed), if case_of.updates == 0 { 0 } else { 2 }, "case {case}");
        let (n, updates) = (case_of.rows.0.shape()[0], case_of.updates);
        whole += usize::from(case_of.batch.is_none());
        none += usize::from(updates == 0);
        uneven += usize::from(case_of.batch.is_some_and(|batch| n % batch != 0));
        wraps += usize::from(case_of.batch.is_some_and(|batch| n % batch != 0 && batch * updates > n));
    }
    let least = [whole, uneven, wraps, none].into_iter().min();
    assert!(least >= Some(cases / 30), "{whole} {uneven} {wraps} {none} of {cases}");
}

#[test]
fn a_fit_that_is_saved_and_continued_is_the_uninterrupted_one() {
    let (mut draw, folder, mut broken_epochs) = (Draw(2), crate::io::scratch(), 0);
    let path = folder.path().join("state.safetensors");
    for case in 0..num_cases(30) {
        let case_of = Case::drawn(&mut draw);
        let first = draw.below(case_of.updates + 1);
        let half = case_of.fit().updates(first).run(of_update).unwrap();
        crate::io::save(&path, &half.state()).unwrap();
        let like = FitState::new(case_of.net.clone(), &case_of.optimizer);
        let state = crate::io::load(&path, &like).unwrap();
        let rest = case_of.set(Fit::resume(state, case_of.rows.clone())).updates(case_of.updates);
        let (rest, whole) = (rest.run(of_update).unwrap(), case_of.fit().run(of_update).unwrap());
        assert_eq!(bits(&rest.state()), bits(&whole.state()), "case {case}");
        assert_eq!([half.losses, rest.losses].concat(), whole.losses, "case {case}");
        let n = case_of.rows.0.shape()[0];
        broken_epochs += usize::from(case_of.batch.is_some_and(|batch| (first * batch) % n != 0));
    }
    assert!(broken_epochs >= 3, "{broken_epochs}");
}

#[test]
fn epochs_are_the_updates_that_use_every_row_that_often() {
    let mut draw = Draw(3);
    for _ in 0..num_cases(30) {
        let case_of = Case::drawn(&mut draw);
        let (n, epochs) = (case_of.rows.0.shape()[0], draw.below(4));
        let updates = (0..=epochs * n).find(|k| k * case_of.batch.unwrap_or(n) >= epochs * n).unwrap();
        let found = case_of.fit().epochs(epochs).run(of_update).unwrap();
        assert_eq!(
            (found.num_updates, found.losses.len()),
            (updates, updates),
            "{n} rows, {:?}",
            case_of.batch
        );
    }
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let case_of = Case { updates: 12, batch: Some(7), ..Case::drawn(&mut Draw(4)) };
    let case_of = Case { rows: (Key::new(1).normal([300, 2]), Key::new(2).normal([300, 1])), ..case_of };
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| bits(&case_of.fit().run(of_update).unwrap().state()))
    };
    assert_eq!(on(1), on(5));
}

#[test]
fn without_settings_a_fit_takes_all_rows_a_thousand_times() {
    let x = Tensor::from([1.0, 2.0, 6.0]);
    let seen = |mean: &Tensor, x: &Tensor, _: &Update| (x - mean).square().mean();
    let found = Fit::new(Tensor::from(0.0), x.clone()).run(seen).unwrap();
    let of_all = |mean: &Tensor| (&x - mean).square().mean();
    let (mean, losses) = minimize(of_all, Tensor::from(0.0), Adam::new(1e-3), 1_000).unwrap();
    assert_eq!((found.model.item(), found.losses), (mean.item(), losses));
    assert!(found.held_out.is_empty());
}

#[test]
fn what_a_fit_refuses() {
    let x = Key::new(0).normal([5, 1]);
    let fit = |batch| {
        let fit = Fit::new(Tensor::from([0.0_f32]), x.clone()).batch(batch).updates(2);
        fit.run(|mean, x, _| (x - mean).square().mean())
    };
    assert!(fit(5).is_ok());
    for batch in [0, 6] {
        let refused = fit(batch).unwrap_err();
        assert!(matches!(refused, Error::Batch { rows: 5, .. }), "{refused}");
        let wanted = format!("batch={batch} must be at least 1 and at most 5, the number of rows");
        assert!(refused.to_string().starts_with(&wanted), "{refused}");
    }
    let ragged = (x.clone(), Tensor::zeros([4]));
    let refused = Fit::new(Tensor::from(0.0), ragged).run(|mean, _, _| mean.square()).unwrap_err();
    assert!(matches!(refused, Error::Rows { .. }), "{refused}");
    // x is 3, then -3, whose square root is NaN; a continued fit counts on from its own updates.
    let nan = |x: &Tensor, _: &Tensor, _: &Update| x.sqrt() * 0.0 + x.square();
    let adam = Sgd::new(1.0).build();
    for first in [0, 4] {
        let mut state = FitState::new(Tensor::from(3.0), &adam);
        state.num_updates = Tensor::scalar(DType::U32, f64::from(first));
        let refused = Fit::resume(state, x.clone()).optimizer(&adam).updates(9).run(nan).unwrap_err();
        let update = first as usize + 1;
        assert!(matches!(refused, Error::NonFiniteLoss { update: u, .. } if u == update), "{refused}");
    }
}

#[test]
fn a_report_is_a_line() {
    let state = FitState::new(Tensor::from(0.0), Sgd::new(1.0));
    let line = |loss, held_out| {
        FitProgress { update: 40, updates: 2_000, loss, held_out, state: &state }.to_string()
    };
    assert_eq!(line(1.23456, None), "update   40/2000  loss 1.235");
    assert_eq!(line(1.2e-3, Some(234.56)), "update   40/2000  loss 0.001200  held-out 234.6");
    assert_eq!(line(-9.87654e6, Some(0.0)), "update   40/2000  loss -9.877e6  held-out 0.000e0");
}
