//! The result of a trajectory in lanes is the same with and without neighbors.

use crate::ode::*;
use crate::simd::{Level, is_fused};
use crate::vector_field;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

vector_field! {
    /// Lorenz 1963; `mirrored` flips the sign of the third component.
    struct Lorenz<R> { sigma: R, rest: [R; 2], mirrored: bool }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        let [rho, beta] = self.rest;
        let sign = if self.mirrored { -1.0 } else { 1.0 };
        [self.sigma * (y[1] - y[0]), y[0] * (rho - sign * y[2]) - y[1], sign * y[0] * y[1] - beta * y[2]]
    }
}

fn lorenz(rho: f64) -> Lorenz {
    Lorenz { sigma: 10.0, rest: [rho, 8.0 / 3.0], mirrored: false }
}

fn rhos(n: usize) -> Vec<f64> {
    (0..n).map(|i| 28.0 * i as f64 / (n - 1) as f64).collect()
}

fn bits<const N: usize>(ys: &[[f64; N]]) -> Vec<[u64; N]> {
    ys.iter().map(|y| y.map(f64::to_bits)).collect()
}

#[test]
fn an_ensemble_takes_the_same_steps_as_single_solves() {
    let rhos = rhos(203);
    for (t0, t1) in [(0.0, 1.0), (0.3, -0.1)] {
        let alone =
            |rho| Ode::from_generic(lorenz(rho)).rtol(1e-8).atol(1e-8).solve(t0, t1, [1.0; 3]).unwrap();
        let alone: Vec<_> = rhos.iter().map(|&rho| alone(rho)).collect();
        for level in Level::available() {
            let ode = ensemble(&rhos, |&rho| (lorenz(rho), [1.0; 3])).rtol(1e-8).atol(1e-8).level(level);
            let ensemble = ode.solve(t0, t1).unwrap();
            for (i, solution) in alone.iter().enumerate() {
                assert_eq!(ensemble.stats[i], solution.stats, "{level:?}, trajectory {i}");
                assert_eq!(ensemble.outcomes[i], Outcome::Completed);
                for j in 0..3 {
                    let off = (ensemble.y1[i][j] - solution.y1[j]).abs() / (1.0 + solution.y1[j].abs());
                    assert!(off < 1e-11, "{level:?}, trajectory {i}: off by {off:e}");
                }
            }
        }
    }
}

#[test]
fn every_method_and_controller_agrees_with_one_by_one() {
    let rhos = rhos(40);
    let controllers: [Controller; 4] = [
        PidController::pi(0.4, 0.3).into(),
        PidController::h211b(4.0).into(),
        HairerController::dopri5().into(),
        ConstantStepSize { dt0: 0.013 }.into(),
    ];
    for method in Method::EXPLICIT {
        for controller in &controllers {
            if controller.is_adaptive() && method.tableau().b_err.is_none() {
                continue;
            }
            let on = |level| {
                let ode = ensemble(&rhos, |&rho| (lorenz(rho), [1.0; 3])).level(level).method(method);
                let ode = ode.controller(controller.clone());
                let ode = if controller.is_adaptive() { ode.rtol(1e-5).dt_max(0.2) } else { ode };
                ode.tstops(&[0.11]).discontinuities(&[0.2]).solve(0.0, 0.5).unwrap()
            };
            let (one, ensemble) = (on(Level::Portable), on(Level::detect()));
            for (i, &rho) in rhos.iter().enumerate() {
                let on = |level| {
                    let ode = Ode::from_generic(lorenz(rho))
                        .level(level)
                        .method(method)
                        .controller(controller.clone());
                    let ode = ode.tstops(&[0.11]).discontinuities(&[0.2]);
                    let ode = if controller.is_adaptive() { ode.rtol(1e-5).dt_max(0.2) } else { ode };
                    ode.solve(0.0, 0.5, [1.0; 3]).unwrap()
                };
                // Without fused multiply-add, an ensemble has one lane and does the same arithmetic as a single solve.
                let solution = on(Level::Portable);
                assert!(
                    is_fused(Level::Portable)
                        || (one.stats[i], bits(&[one.y1[i]])) == (solution.stats, bits(&[solution.y1])),
                    "{method} {controller:?} {rho}"
                );
                let solution = on(Level::detect());
                assert_eq!(ensemble.stats[i], solution.stats, "{method} {controller:?} {rho}");
                // The last step before a stop may be a few ulp long, with a large relative rounding error.
                // A controller that uses the last step size, or stretches steps, propagates this error.
                let most = match controller {
                    Controller::Pid(pid) if pid.ratio_coeff == 0.0 => 1e-11,
                    Controller::Constant(_) => 1e-11,
                    _ => 1e-6,
                };
                let off = (ensemble.y1[i][0] - solution.y1[0]).abs();
                assert!(off < most, "{method} {controller:?} {rho}: off by {off:e}");
            }
        }
    }
}

vector_field! {
    /// y[1] relaxes to t - t^2 / 10; the problem is stiff if `rate` is large. A cosine would be inlined into each stage of
    /// the loop below, which would then take a minute to compile.
    struct Relaxing<R> { rate: R }
    fn eval(&self, t, y: &[R; 2]) -> [R; 2] {
        [y[1] - y[0], -self.rate * (y[1] - t + 0.1 * t * t)]
    }
}

#[test]
fn stiffness_is_detected_in_lanes_whatever_the_neighbors() {
    let rates: Vec<f64> =
        (0..40).map(|i| if i % 3 == 0 { 2000.0 + f64::from(i) } else { f64::from(i) }).collect();
    let solve = |rates: &[f64], level| {
        let ode = ensemble(rates, |&rate| (Relaxing { rate }, [0.0; 2])).level(level);
        ode.solve(0.0, 5.0).unwrap()
    };
    for level in Level::available() {
        let together = solve(&rates, level);
        let stiff: Vec<usize> = together.warnings.iter().map(|(index, _)| *index).collect();
        assert_eq!(stiff, (0..40).step_by(3).collect::<Vec<_>>(), "{level:?}: {together}");
        for &(index, warning) in &together.warnings {
            let Warning::Stiff { t } = warning else { panic!("{warning}") };
            assert!(t > 0.1 && t < 2.5, "{level:?} {index}: {warning}");
            assert_eq!(solve(&rates[index..=index], level).warnings, [(0, warning)], "{level:?} {index}");
        }
        assert!(together.to_string().contains("14 with a warning (the first is trajectory 0"), "{together}");
        #[cfg(feature = "ensemble-f32")]
        {
            let single = ensemble(&rates, |&rate| (Relaxing { rate }, [0.0; 2])).single_precision();
            assert_eq!(single.level(level).solve(0.0, 5.0).unwrap().warnings.len(), 14);
        }
        let inlined = ensemble(&rates, |&rate| (Relaxing { rate }, [0.0; 2])).inlined(inline::Tsit5);
        assert_eq!(inlined.level(level).solve(0.0, 5.0).unwrap().warnings, together.warnings);
    }
    // A mild problem gives no warning, even with many steps.
    let mild = ensemble(&[1.0, 28.0], |&rho| (lorenz(rho), [1.0; 3])).rtol(1e-9).atol(1e-9);
    let mild = mild.solve(0.0, 60.0).unwrap();
    assert!(mild.warnings.is_empty() && mild.stats[1].num_steps > 5000, "{mild}");
}

#[test]
fn a_trajectory_has_the_same_bits_alone_and_among_others() {
    let rhos = rhos(700);
    let solve = |rhos: &[f64]| ensemble(rhos, |&rho| (lorenz(rho), [1.0; 3])).solve(0.0, 0.5).unwrap();
    let together = solve(&rhos);
    let mut reversed = rhos.clone();
    reversed.reverse();
    let mut others = solve(&reversed);
    others.y1.reverse();
    others.stats.reverse();
    assert_eq!((bits(&together.y1), &together.stats), (bits(&others.y1), &others.stats));
    for i in [0, 1, 17, 699] {
        let alone = solve(&rhos[i..=i]);
        assert_eq!((bits(&alone.y1), alone.stats[0]), (bits(&together.y1[i..=i]), together.stats[i]));
    }
}

#[cfg(feature = "rayon")]
#[test]
fn the_number_of_threads_changes_no_bit() {
    let rhos = rhos(3000);
    let solve = || ensemble(&rhos, |&rho| (lorenz(rho), [1.0; 3])).solve(0.0, 0.2).unwrap();
    let on = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(solve);
    let (one, three) = (on(1), on(3));
    assert_eq!((one.num_threads, three.num_threads), (1, 3));
    assert_eq!((bits(&one.y1), one.stats), (bits(&three.y1), three.stats));
}

#[test]
fn a_nan_in_one_lane_leaves_the_bits_of_its_neighbors() {
    let rhos = rhos(50);
    let mut broken = rhos.clone();
    broken[7] = f64::NAN;
    let y0 = |&rho: &f64| (lorenz(rho), if rho == 28.0 { [1.0, f64::INFINITY, 1.0] } else { [1.0; 3] });
    let whole = ensemble(&rhos, |&rho| (lorenz(rho), [1.0; 3])).solve(0.0, 1.0).unwrap();
    let error = ensemble(&broken, y0).solve(0.0, 1.0).unwrap_err();
    let SolveError::Incomplete { outcome, row: Some(7), partial: with_nan, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(outcome, with_nan.outcomes[7]);
    let failed = |component| Outcome::NonFinite { t: 0.0, dt: 0.0, step: 0, component: Some(component) };
    for i in 0..50 {
        match i {
            7 => {
                assert!(matches!(
                    with_nan.outcomes[i],
                    Outcome::NonFinite { t: 0.0, component: Some(1), .. }
                ));
            }
            49 => assert_eq!(with_nan.outcomes[i], failed(1)),
            _ => assert_eq!(
                (bits(&with_nan.y1[i..=i]), with_nan.stats[i]),
                (bits(&whole.y1[i..=i]), whole.stats[i])
            ),
        }
    }
}

#[test]
fn each_trajectory_has_its_own_outcome() {
    let rhos = rhos(100);
    let ode = ensemble(&rhos, |&rho| (lorenz(rho), [1.0; 3])).max_steps(12);
    let ode = ode.allow_incomplete();
    let sweep = ode.solve(0.0, 1.0).unwrap();
    for (i, &rho) in rhos.iter().enumerate() {
        let solution = Ode::from_generic(lorenz(rho)).max_steps(12).allow_incomplete();
        let solution = solution.solve(0.0, 1.0, [1.0; 3]).unwrap();
        match (sweep.outcomes[i], solution.outcome) {
            (Outcome::MaxSteps { t, step }, Outcome::MaxSteps { t: t_alone, step: 12 }) => {
                assert!(step == 12 && (t - t_alone).abs() < 1e-6, "trajectory {i}: {t}, alone {t_alone}");
            }
            (ours, alone) => assert_eq!(ours, alone, "trajectory {i}"),
        }
    }
    let completed = sweep.outcomes.iter().filter(|outcome| outcome.reached_t1()).count();
    assert!(sweep.to_string().starts_with(&format!("{completed} of 100 trajectories completed")), "{sweep}");
    let empty = ensemble(&rhos, |&rho| (lorenz(rho), [rho; 3])).solve(2.0, 2.0).unwrap();
    assert!(empty.y1.iter().zip(&rhos).all(|(y, &rho)| *y == [rho; 3]) && empty.total_stats().num_steps == 0);
    let none: [f64; 0] = [];
    assert!(ensemble(&none, |&rho| (lorenz(rho), [1.0; 3])).solve(0.0, 1.0).unwrap().y1.is_empty());
    let refused = ode.rtol(-1.0).solve(0.0, 1.0);
    assert!(matches!(refused, Err(SolveError::Config(ConfigError::Tolerance { .. }))));
}

#[test]
fn static_fields_may_differ_between_trajectories() {
    let rhos = rhos(60);
    let mixed = |&rho: &f64| {
        (Lorenz { mirrored: rho > 10.0, ..lorenz(rho) }, [1.0, 1.0, if rho > 10.0 { -1.0 } else { 1.0 }])
    };
    let sweep = ensemble(&rhos, mixed).solve(0.0, 1.0).unwrap();
    let plain = ensemble(&rhos, |&rho| (lorenz(rho), [1.0; 3])).solve(0.0, 1.0).unwrap();
    for (i, &rho) in rhos.iter().enumerate() {
        let [x, y, z] = plain.y1[i];
        assert_eq!(sweep.y1[i], [x, y, if rho > 10.0 { -z } else { z }]);
    }
}

#[test]
#[cfg(feature = "ensemble-f32")]
fn lanes_of_f32_agree_with_f32_one_by_one_and_with_f64() {
    let rhos = rhos(203);
    let ode = || ensemble(&rhos, |&rho| (lorenz(rho), [1.0; 3])).rtol(1e-5).atol(1e-5);
    let reference = ode().solve(0.0, 1.0).unwrap();
    let alone = ode().single_precision().level(Level::Portable).solve(0.0, 1.0).unwrap();
    for level in Level::available() {
        let lanes = ode().single_precision().level(level).solve(0.0, 1.0).unwrap();
        let same = (0..rhos.len()).filter(|&i| lanes.stats[i] == alone.stats[i]).count();
        assert!(same * 100 >= rhos.len() * 90, "{level:?}: {same} take the same steps");
        for i in 0..rhos.len() {
            for j in 0..3 {
                let y = f64::from(lanes.y1[i][j]);
                let scale = 1.0 + y.abs();
                assert!((y - f64::from(alone.y1[i][j])).abs() < 2e-4 * scale, "{level:?}, trajectory {i}");
                assert!((y - reference.y1[i][j]).abs() < 2e-4 * scale, "{level:?}, trajectory {i}");
            }
        }
    }
    let far = ode().single_precision().solve(1e6, 1e6 + 1.0).unwrap();
    assert!(far.outcomes.iter().all(Outcome::reached_t1), "time in f32 would stall here");
}

#[test]
fn progress_ends_with_all_of_them() {
    let (most, calls) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let rhos = rhos(5000);
    let ode = ensemble(&rhos, |&rho| (lorenz(rho), [1.0; 3])).on_progress(|progress| {
        assert_eq!(progress.num_trajectories, 5000);
        most.fetch_max(progress.num_done, Ordering::Relaxed);
        calls.fetch_add(1, Ordering::Relaxed);
    });
    ode.solve(0.0, 0.01).unwrap();
    drop(ode);
    assert!(most.into_inner() == 5000 && calls.into_inner() > 1);
}

#[test]
fn powers_are_right_to_13_digits_and_saturate() {
    type L = Lanes<f64, LANES>;
    for exponent in [0.2, -0.2, 1.0 / 3.0, -0.125, 0.7, -1.0] {
        let mut x = 1e-300;
        while x < 1e300 {
            let want = x.powf(exponent);
            let power = Clock::powf(&L::from(x), exponent).lane(3);
            assert!((power / want - 1.0).abs() < 1e-13, "{x}^{exponent}: {power} for {want}");
            x *= 1.37;
        }
        let single = SingleClock::<32>::splat(3.7e8).powf(exponent).lane(31);
        assert!((single / 3.7e8_f64.powf(exponent) - 1.0).abs() < 3e-6, "3.7e8^{exponent}: {single}");
    }
    assert_eq!(Clock::powf(&L::from(1.0), 0.37).lane(0), 1.0);
    assert!(Clock::powf(&L::from(f64::NAN), 0.2).lane(0).is_nan());
    assert!(
        Clock::powf(&L::from(0.0), -0.2).lane(0) > 1e60
            && Clock::powf(&L::from(f64::INFINITY), -0.2).lane(0) < 1e-60
    );
}

#[test]
fn functions_on_lanes_agree_with_std() {
    type L = Lanes<f64, LANES>;
    let close = |lanes: L, want: [f64; LANES], name: &str| {
        for (i, (x, want)) in lanes.to_lanes().into_iter().zip(want).enumerate() {
            let same = x == want || x.is_nan() && want.is_nan() || (x - want).abs() <= 4e-15 * want.abs();
            assert!(same, "{name}, lane {i}: {x} for {want}");
        }
    };
    let xs: [f64; LANES] = std::array::from_fn(|i| {
        [0.0, -0.0, 1.0, -1.0, 2.5, -3.0, f64::INFINITY, f64::NAN][i % 8] * (1.0 + i as f64 / 8.0)
    });
    let x = L::new(xs);
    close(x.sin(), xs.map(f64::sin), "sin");
    close(x.cos(), xs.map(f64::cos), "cos");
    close(x.exp(), xs.map(f64::exp), "exp");
    close(x.ln(), xs.map(f64::ln), "ln");
    close(x.sqrt(), xs.map(f64::sqrt), "sqrt");
    close(x.tanh(), xs.map(f64::tanh), "tanh");
    close(Number::abs(x), xs.map(f64::abs), "abs");
    close(x.recip(), xs.map(f64::recip), "recip");
    close(x.square(), xs.map(|x| x * x), "square");
    for n in [-3, 0, 1, 7] {
        close(x.powi(n), xs.map(|x| x.powi(n)), "powi");
        close(Number::powf(x, f64::from(n)), xs.map(|x| x.powf(f64::from(n))), "powf of a whole number");
    }
    close(Number::powf(x, 0.3), xs.map(|x| x.powf(0.3)), "powf");
    close(Number::max(x, 0.7), xs.map(|x| x.max(0.7)), "max");
    close(Number::min(x, 0.7), xs.map(|x| x.min(0.7)), "min");
    close(x.hypot(3.0), xs.map(|x| x.hypot(3.0)), "hypot");
    close(x.select_positive(1.0, x), xs.map(|x| if x > 0.0 { 1.0 } else { x }), "select_positive");
    close(2.0 * x - x / 4.0 + -x, xs.map(|x| 2.0 * x - x / 4.0 + -x), "operators");
    let big: L = L::from(1e300);
    close(big.hypot(1e300), [1e300_f64.hypot(1e300); LANES], "hypot of large numbers");
}

/// Lanes compiled for SSE2 by mistake would be no faster than one trajectory at a time. Test builds, whose
/// stages are not unrolled, are 1.3 times (EPYC) to twice (Xeon) as fast, optimized builds six times.
#[test]
fn lanes_are_several_times_the_rate_of_one_at_a_time() {
    let level = Level::detect();
    if level == Level::Portable {
        return;
    }
    const RATIO: f64 = 1.15;
    let rhos = rhos(2000);
    let time = |level| {
        let ode = ensemble(&rhos, |&rho| (lorenz(rho), [1.0; 3])).level(level);
        let pool = Instant::now();
        ode.solve(0.0, 1.0).unwrap();
        pool.elapsed().as_secs_f64()
    };
    let (mut lanes, mut one) = (f64::INFINITY, f64::INFINITY);
    // Repeats until the difference is clear, because other processes may use the processor.
    for _ in 0..200 {
        (lanes, one) = (lanes.min(time(level)), one.min(time(Level::Portable)));
        if one > RATIO * lanes {
            return;
        }
    }
    panic!("{level:?}: lanes take {lanes:e} s, one at a time {one:e} s");
}
