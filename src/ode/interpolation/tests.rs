//! Interpolated inputs against other formulas, and solves that they drive.
//!
//! Rows are drawn: 1 to 40 of them (2 for lines and cubics), distances of 1e-3 to 1e3, times around 0 and around 1e9, and
//! values from -2 to 2. `FLOWLINE_CASES=<n>` sets another number of cases.

use super::{Between, Interpolation, InterpolationError, fill_missing};
use crate::ode::tests::draw::{Draw, num_cases};
use crate::ode::{ConfigError, ConstantStepSize, Dual, F64Lanes, Method, Ode, SolveError, ensemble};

type Make = fn(&[f64], &[[f64; 2]]) -> Result<Interpolation<2>, InterpolationError>;
const KINDS: [(Between, Make); 3] = [
    (Between::Constant, Interpolation::constant),
    (Between::Linear, Interpolation::linear),
    (Between::Hermite, Interpolation::hermite),
];

fn times(draw: &mut Draw, n: usize) -> Vec<f64> {
    let start = draw.one(&[0.0, -3.0, 1e9]);
    times_from(start, draw, n)
}

fn times_from(start: f64, draw: &mut Draw, n: usize) -> Vec<f64> {
    let mut t = start;
    let step = draw.decade(-3.0, 3.0);
    let mut next = || {
        t += step * draw.uniform(0.5, 1.5);
        t
    };
    (0..n).map(|_| next()).collect()
}

fn values(draw: &mut Draw, n: usize) -> Vec<[f64; 2]> {
    (0..n).map(|_| [0; 2].map(|_| draw.uniform(-2.0, 2.0))).collect()
}

/// One component by the definitions, for t between the first and the last row.
fn reference(kind: Between, ts: &[f64], u: &[f64], t: f64) -> f64 {
    let i = (0..ts.len()).rev().find(|&i| ts[i] <= t).expect("t is not before the first row");
    if kind == Between::Constant || i + 1 == ts.len() {
        return u[i];
    }
    let h = ts[i + 1] - ts[i];
    let x = (t - ts[i]) / h;
    let slope = |i: usize| (u[i] - u[i - 1]) / (ts[i] - ts[i - 1]);
    if kind == Between::Linear {
        return (1.0 - x) * u[i] + x * u[i + 1];
    }
    // The cubic Hermite basis.
    let [a, b] = [(1.0 + 2.0 * x) * (1.0 - x) * (1.0 - x), x * (1.0 - x) * (1.0 - x)];
    let [c, d] = [x * x * (3.0 - 2.0 * x), x * x * (x - 1.0)];
    a * u[i] + b * h * slope(i.max(1)) + c * u[i + 1] + d * h * slope(i + 1)
}

#[test]
fn values_follow_the_definitions_for_numbers_lanes_and_duals() {
    let mut draw = Draw(1);
    let (mut outside, mut at_rows) = (0, 0);
    for case in 0..num_cases(300) {
        let (kind, make) = KINDS[case % 3];
        let n = 1 + draw.below(40) + usize::from(kind != Between::Constant);
        let (ts, rows) = (times(&mut draw, n), values(&mut draw, n));
        let u = make(&ts, &rows).unwrap();
        let u = if draw.coin() { u.hold() } else { u };
        let span = ts[n - 1] - ts[0] + 1.0;
        let lanes: Vec<f64> = (0..8)
            .map(|_| if draw.coin() { draw.one(&ts) } else { ts[0] + span * draw.uniform(-0.2, 1.2) })
            .collect();
        let mut packed = F64Lanes::from(0.0);
        lanes.iter().enumerate().take(packed.0.len()).for_each(|(lane, &t)| packed.0[lane] = t);
        let of_lanes = u.at(packed);
        for (lane, &t) in lanes.iter().enumerate() {
            let (found, [first, last]) = (u.at(t), [ts[0], ts[n - 1]]);
            let inside = t.clamp(first, last);
            let is_outside = inside != t && (inside - t).abs() > 1e-12 * t.abs();
            at_rows += usize::from(ts.contains(&t));
            outside += usize::from(is_outside);
            for m in 0..2 {
                let column: Vec<f64> = rows.iter().map(|row| row[m]).collect();
                let want = reference(kind, &ts, &column, inside);
                let fits = if is_outside && !u.times.holds {
                    found[m].is_nan()
                } else {
                    (found[m] - want).abs() < 1e-6 * (1.0 + want.abs())
                };
                assert!(fits, "case {case}: u({t}) is {}, not {want}; rows from {first} to {last}", found[m]);
                if ts.contains(&t) {
                    let row = ts.iter().position(|&row| row == t).unwrap();
                    assert_eq!(found[m], rows[row][m], "case {case}: at row {row}");
                }
                if lane < packed.0.len() {
                    assert_eq!(of_lanes[m].0[lane].to_bits(), found[m].to_bits(), "case {case}, lane {lane}");
                }
                let dual = u.at(Dual::<f64, 1>::variable(t, 0))[m];
                assert_eq!(dual.value.to_bits(), found[m].to_bits(), "case {case}");
            }
        }
    }
    assert!(outside > 50 && at_rows > 200, "{outside} outside, {at_rows} at rows");
}

/// y' = u(t)_0 cos(y) + u(t)_1, with constant steps of which a number fits between two rows.
fn end(u: &Interpolation<2>, stops: bool, (t0, t1): (f64, f64), steps: usize) -> f64 {
    let f = |t: f64, y: &f64| {
        let u = u.at(t);
        u[0] * y.cos() + u[1]
    };
    let ode = Ode::new(f).controller(ConstantStepSize { dt0: (t1 - t0).abs() / steps as f64 });
    let ode = if stops { ode.stop_at_rows(u) } else { ode };
    ode.solve(t0, t1, 0.3).unwrap().y1
}

#[test]
fn tsit5_keeps_its_order_across_rows_in_both_directions() {
    let (mut draw, mut orders) = (Draw(2), vec![]);
    for case in 0..num_cases(60) {
        let (_, make) = KINDS[case % 3];
        let n = 3 + draw.below(6);
        let (ts, rows) = ((0..n).map(|i| i as f64).collect::<Vec<_>>(), values(&mut draw, n));
        let u = make(&ts, &rows).unwrap();
        let span = if case % 2 == 0 { (0.0, ts[n - 1]) } else { (ts[n - 1], 0.0) };
        let exact = {
            let f = |t: f64, y: &f64| {
                let u = u.at(t);
                u[0] * y.cos() + u[1]
            };
            let ode = Ode::new(f).method(Method::Vern9).rtol(1e-14).atol(1e-15).stop_at_rows(&u);
            ode.solve(span.0, span.1, 0.3).unwrap().y1
        };
        let error = |per_row: usize| (end(&u, true, span, per_row * (n - 1)) - exact).abs();
        let [coarse, fine] = [error(16), error(64)];
        // A smaller error is rounding.
        if fine > 1e-13 {
            orders.push((coarse / fine).log2() / 2.0);
        }
    }
    // Errors of several steps may cancel. Tsit5's terms of order 5 are small beside those of order 6, so that the mean is above
    // 5 at these steps.
    let mean = orders.iter().sum::<f64>() / orders.len() as f64;
    assert!((4.8..5.2).contains(&mean) && 3 * orders.len() > num_cases(60), "order {mean}: {orders:?}");
}

crate::vector_field! {
    struct Driven<R> { rate: R, input: Interpolation<2> }
    fn eval(&self, t, y: &[R; 1]) -> [R; 1] {
        let [a, b] = self.input.at(t);
        [self.rate * (a - y[0] + 0.1 * b * y[0].sin())]
    }
}

#[test]
fn ensembles_and_sensitivities_read_the_input_as_plain_solves_do() {
    let mut draw = Draw(3);
    for case in 0..num_cases(9) {
        let (_, make) = KINDS[case % 3];
        let n = 2 + draw.below(20);
        // Around 1e9 no step is short enough for these tolerances.
        let (ts, rows) = (times_from(-3.0, &mut draw, n), values(&mut draw, n));
        let (t0, t1) = (ts[0], ts[n - 1]);
        let u = make(&ts, &rows).unwrap();
        let rates: Vec<f64> = (0..19).map(|_| draw.uniform(0.5, 2.0) / (t1 - t0)).collect();
        let of = |rate: f64| Driven { rate, input: u.clone() };
        let tight = |rate| Ode::from_generic(of(rate)).rtol(1e-10).atol(1e-10).stop_at_rows(&u);
        let many = ensemble(&rates, |&rate| (of(rate), [0.5])).rtol(1e-10).atol(1e-10).stop_at_rows(&u);
        let many = many.solve(t0, t1).unwrap();
        for (rate, y1) in rates.iter().zip(&many.y1) {
            let one = tight(*rate).solve(t0, t1, [0.5]).unwrap().y1[0];
            assert!((one - y1[0]).abs() < 1e-9 * (1.0 + one.abs()), "case {case}: {one} and {}", y1[0]);
        }
        let sensitivity = tight(rates[0]).forward_sensitivity().solve(t0, t1, [0.5]).unwrap();
        let h = 1e-3 * rates[0];
        let [above, below] = [h, -h].map(|h| tight(rates[0] + h).solve(t0, t1, [0.5]).unwrap().y1[0]);
        // By the logarithm of the rate.
        let (found, want) = (rates[0] * sensitivity.dy1_dp.rate[0], (above - below) / 2e-3);
        assert!((found - want).abs() < 1e-4 * (1.0 + want.abs()), "case {case}: {found} is not {want}");
    }
}

#[test]
fn a_solve_beyond_the_rows_is_refused_unless_they_are_held() {
    let u = Interpolation::linear(&[0.0, 2.0], &[[1.0], [3.0]]).unwrap();
    let solve = |u: &Interpolation<1>, t0, t1| {
        let u = u.clone();
        let read = u.clone();
        Ode::new(move |t: f64, _y: &f64| read.at(t)[0]).stop_at_rows(&u).solve(t0, t1, 0.0)
    };
    for (t0, t1) in [(0.0, 2.5), (-0.1, 1.0), (2.5, 1.0), (1.0, -1.0)] {
        let error = solve(&u, t0, t1).unwrap_err();
        let want = InterpolationError::OutsideOfRows { t0, t1, first: 0.0, last: 2.0 };
        match error {
            SolveError::Config(ConfigError::Input(InterpolationError::OutsideOfRows {
                first, last, ..
            })) => {
                assert_eq!([first, last], [0.0, 2.0]);
            }
            other => panic!("{other:?} is not {want:?}"),
        }
        assert!(solve(&u.clone().hold(), t0, t1).is_ok());
    }
    assert!((solve(&u.clone().hold(), 0.0, 4.0).unwrap().y1 - 10.0).abs() < 1e-9);
    assert!((solve(&u, 2.0, 0.0).unwrap().y1 + 4.0).abs() < 1e-9);
}

#[test]
fn every_unfit_row_is_named() {
    let mut draw = Draw(4);
    let mut seen = [0; 6];
    for case in 0..num_cases(600) {
        let (kind, make) = KINDS[case % 3];
        let n = 2 + draw.below(20);
        let (mut ts, mut rows) = (times(&mut draw, n), values(&mut draw, n));
        let (row, column) = (1 + draw.below(n - 1), draw.below(2));
        let defect = draw.below(6);
        let before = ts[row - 1];
        let want = match defect {
            0 => {
                (ts, rows) = (ts[..1].to_vec(), rows[..1].to_vec());
                let least = if kind == Between::Constant { 1 } else { 2 };
                (least > 1).then_some(InterpolationError::TooFewRows { rows: 1, least })
            }
            1 => {
                ts.pop();
                Some(InterpolationError::Lengths { times: n - 1, rows: n })
            }
            2 => {
                ts[row] = f64::INFINITY;
                Some(InterpolationError::Time { row, t: f64::INFINITY })
            }
            3 => {
                ts[row] = if draw.coin() { before } else { before - 1.0 };
                Some(InterpolationError::Order { row, t: ts[row], before })
            }
            4 => {
                rows[row][column] = f64::NAN;
                Some(InterpolationError::Missing { row, column })
            }
            _ => {
                rows[row][column] = f64::NEG_INFINITY;
                Some(InterpolationError::Infinite { row, column, value: f64::NEG_INFINITY })
            }
        };
        seen[defect] += 1;
        assert_eq!(make(&ts, &rows).err(), want, "case {case}");
    }
    assert!(seen.iter().all(|&n| n > 50), "{seen:?}");
}

#[test]
fn filled_values_lie_on_the_lines_of_their_column() {
    let mut draw = Draw(5);
    let mut empty = 0;
    for case in 0..num_cases(300) {
        let n = 1 + draw.below(30);
        let share = draw.unit();
        let (ts, mut rows) = (times(&mut draw, n), values(&mut draw, n));
        rows.iter_mut().flatten().for_each(|x| *x = if draw.unit() < share { f64::NAN } else { *x });
        let filled = fill_missing(&ts, &rows);
        for m in 0..2 {
            let known: Vec<usize> = (0..n).filter(|&i| !rows[i][m].is_nan()).collect();
            if known.is_empty() {
                empty += 1;
                assert!(matches!(filled, Err(InterpolationError::EmptyColumn { .. })), "case {case}");
                continue;
            }
            let Ok(filled) = &filled else { continue };
            // The same column without the missing rows.
            let (known_ts, known_u): (Vec<f64>, Vec<[f64; 1]>) =
                known.iter().map(|&i| (ts[i], [rows[i][m]])).unzip();
            for i in 0..n {
                let want = match known.len() {
                    1 => known_u[0][0],
                    _ => Interpolation::linear(&known_ts, &known_u).unwrap().hold().at(ts[i])[0],
                };
                assert!((filled[i][m] - want).abs() < 1e-9, "case {case}, row {i}");
            }
        }
    }
    assert!(empty > 5, "{empty} columns without a value");
}

#[test]
fn slopes_beyond_the_range_of_numbers_are_refused() {
    for (ts, rows) in [
        ([0.0, 1.0, 2.0], [[1e308], [-1e308], [0.0]]),
        ([0.0, 1e-320, 1.0], [[0.0], [1.0], [2.0]]),
        ([-1e308, 1e308, 1.1e308], [[0.0], [1.0], [2.0]]),
    ] {
        let error = Interpolation::hermite(&ts, &rows).unwrap_err();
        assert_eq!(error, InterpolationError::TooSteep { row: 0, column: 0 }, "{ts:?}");
    }
}

/// Rows at distances of 1e-3 to 10 from a start of 1 to 1e7.
#[cfg(feature = "ensemble-f32")]
#[test]
fn ensembles_in_single_precision_refuse_rows_that_f32_does_not_tell_apart() {
    let (mut draw, mut refused) = (Draw(7), [0; 2]);
    for case in 0..num_cases(200) {
        let (start, step) = (draw.decade(0.0, 7.0), draw.decade(-3.0, 1.0));
        let rates = [1.0 / step];
        let ts: Vec<f64> = (0..6).map(|i| start + step * f64::from(i)).collect();
        let rows = values(&mut draw, 6);
        let u = KINDS[case % 3].1(&ts, &rows).unwrap();
        let many = ensemble(&rates, |&rate| (Driven { rate, input: u.clone() }, [0.5]));
        let double = many.stop_at_rows(&u).solve(ts[0], ts[5]).unwrap().y1[0][0];
        let many = ensemble(&rates, |&rate| (Driven { rate, input: u.clone() }, [0.5]));
        let single = many.single_precision().stop_at_rows(&u).solve(ts[0], ts[5]);
        refused[usize::from(single.is_err())] += 1;
        match single {
            Ok(single) => {
                let off = (f64::from(single.y1[0][0]) - double).abs();
                assert!(off < 2e-3 * (1.0 + double.abs()), "case {case}: off by {off} at {start} + {step} i");
                assert!(single.stats[0].num_steps < 200, "case {case}: {:?}", single.stats[0]);
            }
            Err(SolveError::Config(ConfigError::Input(InterpolationError::CloseInSingle { .. }))) => {}
            Err(other) => panic!("case {case}: {other}"),
        }
    }
    assert!(refused.iter().all(|&n| n > 20), "{refused:?}");
}

/// Rodas5P and Rosenbrock23 with derivatives by dual numbers, both directions, 3 to 6 rows: no step reads a slope behind
/// its end.
#[test]
fn stiff_methods_keep_their_order_across_rows_in_both_directions() {
    let mut draw = Draw(8);
    let mut orders = [[vec![], vec![]], [vec![], vec![]]];
    for case in 0..num_cases(24) {
        let (_, make) = KINDS[case % 3];
        let (n, m, is_backward) = (3 + draw.below(4), case / 3 % 2, draw.coin());
        let ts: Vec<f64> = (0..n).map(|i| i as f64).collect();
        let u = make(&ts, &values(&mut draw, n)).unwrap();
        let (t0, t1) = if is_backward { (ts[n - 1], 0.0) } else { (0.0, ts[n - 1]) };
        let field = Driven { rate: if is_backward { -1.0 } else { 1.0 }, input: u.clone() };
        let ode = || Ode::from_generic(field.clone()).stop_at_rows(&u);
        let exact = ode().method(Method::Vern9).rtol(1e-14).atol(1e-15).solve(t0, t1, [0.3]).unwrap().y1[0];
        let error = |per_row: f64| {
            let ode = ode().method([Method::Rodas5P, Method::Rosenbrock23][m]);
            let constant = ode.controller(ConstantStepSize { dt0: 1.0 / per_row });
            (constant.solve(t0, t1, [0.3]).unwrap().y1[0] - exact).abs()
        };
        let [coarse, fine] = [error(8.0), error(32.0)];
        orders[m][usize::from(is_backward)].push((coarse / fine).log2() / 2.0);
    }
    for (m, least) in [(0, 4.5), (1, 1.7)] {
        for orders in &mut orders[m] {
            orders.sort_by(f64::total_cmp);
            assert!(orders.len() > 2 && orders[orders.len() / 2] > least, "method {m}: {orders:?}");
        }
    }
}

/// 1 row to 200, given to `StepTo` or with one row missing.
#[test]
fn listed_steps_must_contain_the_rows() {
    let mut draw = Draw(9);
    for case in 0..num_cases(60) {
        let (_, make) = KINDS[case % 3];
        let n = 2 + draw.below(20);
        let (ts, rows) = (times_from(0.0, &mut draw, n), values(&mut draw, n));
        let u = make(&ts, &rows).unwrap();
        let left_out = (n > 2 && draw.coin()).then(|| 1 + draw.below(n - 2));
        let listed: Vec<f64> = (0..n).filter(|i| Some(*i) != left_out).map(|i| ts[i]).collect();
        let ode = Ode::new(|t: f64, _y: &f64| u.at(t)[0]).controller(crate::ode::StepTo { ts: listed });
        match (left_out, ode.stop_at_rows(&u).solve(ts[0], ts[n - 1], 0.0)) {
            (None, solved) => assert_eq!(solved.unwrap().stats.num_accepted as usize, n - 1, "case {case}"),
            (Some(row), solved) => {
                let message = solved.unwrap_err().to_string();
                assert!(
                    message.contains("must end at t=") && message.contains("`StepTo`"),
                    "{row}: {message}"
                );
            }
        }
    }
}
