//! Replays of the accepted steps, other types of state and unrolled loops give the same bits.

use crate::ode::attempt::attempt_with;
use crate::ode::*;
use crate::simd::{Level, is_fused};

fn lorenz(_t: f64, y: &[f64; 3]) -> [f64; 3] {
    [10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]]
}

/// Runs to the end and calls `each` with the carry before and after every attempt.
fn drive<S: State<Clock = f64>>(
    f: &impl VectorField<S>,
    scheme: &Scheme<S>,
    span: &Span<f64>,
    y0: S,
    mut each: impl FnMut(&Carry<S>, &Carry<S>),
) -> Carry<S> {
    let mut carry = start(f, scheme, span, y0).unwrap();
    while carry.status == status::RUNNING {
        let before = carry.clone();
        attempt(f, scheme, span, &mut carry).unwrap();
        each(&before, &carry);
    }
    carry
}

fn controllers() -> [Controller; 3] {
    let ts = (0..=100).map(|i| 2.0 * (f64::from(i) / 100.0).powi(2)).collect();
    [PidController::default().into(), ConstantStepSize { dt0: 0.013 }.into(), StepTo { ts }.into()]
}

#[test]
fn a_step_between_two_step_times_is_what_the_attempt_accepted() {
    let f = Closure(|t: f64, y: &[f64; 3]| lorenz(t, y).map(|x| x * (1.0 + 0.1 * t.sin())));
    for method in Method::EXPLICIT {
        for controller in controllers() {
            if controller.is_adaptive() && method.tableau().b_err.is_none() {
                continue;
            }
            let tolerance = Tolerance::new(1e-6, 1e-6);
            let scheme = Scheme::new(method.tableau(), &controller, tolerance, 100_000).unwrap();
            let mut accepted = 0;
            let end = drive(&f, &scheme, &Span::new(0.0, 2.0), [1.0; 3], |before, after| {
                if after.accepted {
                    let mut k = [[0.0; 3]; 16];
                    let mut y1 = [0.0; 3];
                    let step_times = (&before.t, &after.t);
                    step(&f, &scheme, &Span::new(0.0, 2.0), step_times, (&before.y, &mut y1), &mut k, None)
                        .unwrap();
                    assert_eq!(y1.map(f64::to_bits), after.y.map(f64::to_bits));
                    accepted += 1;
                } else {
                    assert_eq!((before.t, before.y), (after.t, after.y));
                }
            });
            assert_eq!((end.status, end.num_accepted), (status::COMPLETED, f64::from(accepted)));
        }
    }
}

#[test]
fn an_attempt_after_the_end_changes_nothing_reported() {
    let f = Closure(lorenz);
    for controller in controllers() {
        let tolerance = Tolerance::new(1e-6, 1e-6);
        let scheme = Scheme::new(Method::Tsit5.tableau(), &controller, tolerance, 10_000).unwrap();
        let span = Span::new(0.0, 2.0);
        let mut carry = drive(&f, &scheme, &span, [1.0; 3], |_, _| ());
        let mut before = carry.clone();
        attempt(&f, &scheme, &span, &mut carry).unwrap();
        assert_eq!(before.clocks_mut(&scheme), carry.clocks_mut(&scheme));
        assert_eq!((before.y, carry.accepted), (carry.y, false));
    }
}

#[test]
fn a_number_an_array_and_a_vec_give_the_same_bits() {
    let f = |t: f64, y: f64| y * t.cos() - 0.1 * y * y;
    for method in Method::EXPLICIT {
        let solve = |dt0: f64| {
            let number =
                Ode::new(|t, y: &f64| f(t, *y)).method(method).dt0(dt0).solve(0.0, 5.0, 1.0).unwrap();
            let array = Ode::new(|t, y: &[f64; 1]| [f(t, y[0])]).method(method).dt0(dt0);
            let array = array.solve(0.0, 5.0, [1.0]).unwrap();
            let vec = Ode::new(|t, y: &Vec<f64>| vec![f(t, y[0])]).method(method).dt0(dt0);
            let vec = vec.solve(0.0, 5.0, vec![1.0]).unwrap();
            assert_eq!((number.y1, number.y1), (array.y1[0], vec.y1[0]));
            assert_eq!((&number.step_times, number.stats), (&array.step_times, array.stats));
            assert_eq!((&number.step_times, number.stats), (&vec.step_times, vec.stats));
        };
        solve(0.01);
        solve(0.07);
    }
}

#[test]
fn arrays_and_vecs_of_any_length_give_the_same_bits() {
    fn check<const N: usize>() {
        let rate = |t: f64, y: &[f64], dy: &mut [f64]| {
            for i in 0..y.len() {
                dy[i] = (y[i] + t).sin() - 0.3 * y[(i + 1) % y.len()];
            }
        };
        let y0: [f64; N] = std::array::from_fn(|i| (i as f64 * 0.7).cos());
        for level in Level::available() {
            let array = Ode::in_place(|t, y: &[f64; N], dy: &mut [f64; N]| rate(t, y, dy)).level(level);
            let array = array.solve(0.0, 5.0, y0).unwrap();
            let vec = Ode::in_place(|t, y: &[f64], dy: &mut [f64]| rate(t, y, dy)).level(level);
            let vec = vec.solve(0.0, 5.0, y0.to_vec()).unwrap();
            assert_eq!(
                (array.y1.to_vec(), array.step_times, array.stats),
                (vec.y1, vec.step_times, vec.stats),
                "{level:?}"
            );
        }
    }
    check::<1>();
    check::<3>();
    check::<8>();
    check::<9>();
    check::<21>();
}

#[test]
fn the_unrolled_loop_is_the_plain_one() {
    let controller = PidController::default().into();
    let tolerance = Tolerance::new(1e-8, 1e-8);
    for method in [Method::Bosh3, Method::Dopri5, Method::Tsit5, Method::Vern7, Method::Dop853, Method::Vern9]
    {
        let scheme = Scheme::new(method.tableau(), &controller, tolerance, 100_000).unwrap();
        let plain = drive(&Closure(lorenz), &scheme, &Span::new(0.0, 5.0), [1.0; 3], |_, _| ());
        let mut unrolled = start(&Closure(lorenz), &scheme, &Span::new(0.0, 5.0), [1.0; 3]).unwrap();
        while unrolled.status == status::RUNNING {
            attempt_with::<true, false, _, _>(&Closure(lorenz), &scheme, &Span::new(0.0, 5.0), &mut unrolled)
                .unwrap();
        }
        assert_eq!((plain.y, plain.num_steps), (unrolled.y, unrolled.num_steps));

        // On a machine with fused multiply-add, `Ode::solve` must have the bits of fused sums.
        let mut fused = start(&Closure(lorenz), &scheme, &Span::new(0.0, 5.0), [1.0; 3]).unwrap();
        while fused.status == status::RUNNING {
            attempt_with::<true, true, _, _>(&Closure(lorenz), &scheme, &Span::new(0.0, 5.0), &mut fused)
                .unwrap();
        }
        let native = Ode::new(lorenz).method(method).rtol(1e-8).atol(1e-8).solve(0.0, 5.0, [1.0; 3]).unwrap();
        let ours = if is_fused(Level::detect()) { fused } else { unrolled };
        assert_eq!((native.y1, native.stats.num_steps as f64), (ours.y, ours.num_steps), "{method}");
        assert!(!is_fused(Level::detect()) || native.y1 != plain.y, "{method}: nothing was fused");
    }
}

#[test]
fn zero_weights_hide_a_nan_and_many_terms_are_summed_alike() {
    let nan = vec![f64::NAN; 2];
    let mut y = vec![0.0; 2];
    y.lincomb(&vec![1.0, 2.0], &0.5, &[0.0, 2.0], &[nan.clone(), vec![3.0, 4.0]]);
    assert_eq!(y, [4.0, 6.0]);
    y.lincomb(&vec![1.0, 2.0], &0.5, &[0.0], &[nan]);
    assert_eq!(y, [1.0, 2.0]);
    let a: Vec<f64> = (1..=12).map(|i| 1.0 / f64::from(i)).collect();
    let k: Vec<f64> = (1..=12).map(|i| f64::from(i).sqrt()).collect();
    let (mut number, mut vec) = (0.0, vec![0.0]);
    number.lincomb(&0.3, &0.1, &a, &k);
    vec.lincomb(&vec![0.3], &0.1, &a, &k.iter().map(|&k| vec![k]).collect::<Vec<_>>());
    assert_eq!(number, vec[0]);
}
