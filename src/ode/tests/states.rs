//! Plain states of all types: vectors have the bits of arrays, a compound has one error norm, wrong sizes are
//! errors.

use crate::ode::*;
use crate::state;

/// An oscillator with a forcing that no method integrates exactly.
fn oscillator(t: f64, y: [f64; 2]) -> [f64; 2] {
    [y[1], (3.0 * t).sin() - y[0] * y[0] * y[0]]
}

fn bits(ys: &[f64]) -> Vec<u64> {
    ys.iter().map(|y| y.to_bits()).collect()
}

/// Settings for which a solve uses every kind of sum: tolerances per component, saved times, several methods.
fn configured<Y: PlainState, F>(ode: Ode<'_, Y, F>, method: Method) -> Ode<'_, Y, F> {
    ode.method(method).rtol([1e-7, 1e-6]).save_at([0.3, 1.0, 5.0])
}

fn table<Y: PlainState, O: PlainState>(solution: &Solution<Y, O>) -> Vec<u64> {
    bits(&solution.table().2)
}

state! {
    /// The state of the oscillator as a struct.
    struct Named { x: f64, v: f64 }
}

const METHODS: [Method; 4] = [Method::Tsit5, Method::Dop853, Method::Bosh3, Method::Dopri5];

/// The bits of the saved values if the state is an array.
fn by_array(method: Method) -> Vec<u64> {
    let array = Ode::new(|t, y: &[f64; 2]| oscillator(t, *y));
    table(&configured(array, method).solve(0.0, 5.0, [1.0, 0.2]).unwrap())
}

#[test]
fn vectors_give_the_bits_that_arrays_give() {
    for method in METHODS {
        let vec = Ode::new(|t, y: &Vec<f64>| oscillator(t, [y[0], y[1]]).to_vec());
        let vec = configured(vec, method).solve(0.0, 5.0, vec![1.0, 0.2]).unwrap();
        assert_eq!(table(&vec), by_array(method), "{method}");
    }
}

#[cfg(feature = "nalgebra")]
mod nalgebra_states {
    use super::*;
    use ::nalgebra::{DMatrix, DVector, Matrix2xX, SVector, Vector2, Vector3};

    #[test]
    fn they_give_the_bits_that_arrays_give() {
        for method in METHODS {
            let array = by_array(method);
            let fixed = Ode::new(|t, y: &Vector2<f64>| Vector2::from(oscillator(t, (*y).into())));
            let fixed = configured(fixed, method).solve(0.0, 5.0, Vector2::new(1.0, 0.2)).unwrap();
            assert_eq!(table(&fixed), array, "{method}");
            let heap = Ode::new(|t, y: &DVector<f64>| DVector::from_row_slice(&oscillator(t, [y[0], y[1]])));
            let heap = configured(heap, method).solve(0.0, 5.0, DVector::from_vec(vec![1.0, 0.2])).unwrap();
            assert_eq!(table(&heap), array, "{method}");
            let matrix = Ode::in_place(|t, y: &DMatrix<f64>, dy: &mut DMatrix<f64>| {
                dy.copy_from_slice(&oscillator(t, [y[0], y[1]]));
            });
            let matrix = configured(matrix, method)
                .solve(0.0, 5.0, DMatrix::from_row_slice(1, 2, &[1.0, 0.2]))
                .unwrap();
            assert_eq!(table(&matrix), array, "{method}");
        }
    }

    #[test]
    fn a_precession_turns_the_moment() {
        let z = Vector3::new(0.0, 0.0, 1.0);
        let precession = Ode::new(|_t, m: &Vector3<f64>| m.cross(&z));
        let m = precession.solve(0.0, 1.0, Vector3::new(1.0, 0.1, 0.0)).unwrap().y1;
        let (sin, cos) = 1.0_f64.sin_cos();
        assert!((m - Vector3::new(cos + 0.1 * sin, 0.1 * cos - sin, 0.0)).norm() < 1e-6, "{m}");
    }

    #[test]
    fn wrong_shapes_are_refused_with_their_numbers() {
        let short = Ode::new(|_t, _y: &DVector<f64>| DVector::zeros(2)).solve(0.0, 1.0, DVector::zeros(3));
        let message = "the vector field returned a derivative of size 2 for a state of size 3";
        assert!(short.unwrap_err().to_string().ends_with(message));
        let turned = Ode::new(|_t, y: &DMatrix<f64>| y.transpose()).solve(0.0, 1.0, DMatrix::zeros(2, 3));
        let message = "the vector field returned a derivative of size 3 x 2 for a state of size 2 x 3";
        assert!(turned.unwrap_err().to_string().ends_with(message));
        let longer = Ode::new(|_t, _y: &Matrix2xX<f64>| Err::<Matrix2xX<f64>, _>("no gravity here"));
        let message = "the vector field failed at t=0 (step 0): no gravity here";
        assert_eq!(longer.solve(0.0, 1.0, Matrix2xX::zeros(3)).unwrap_err().to_string(), message);
    }

    #[test]
    fn single_precision_does_not_stall_at_late_times() {
        let ode = Ode::new(|_t, y: &SVector<f32, 1>| -y);
        let fixed = ode.solve(1e6, 1e6 + 1.0, SVector::from([1.0_f32])).unwrap();
        let ode = Ode::new(|_t, y: &DVector<f32>| -y);
        let heap = ode.solve(1e6, 1e6 + 1.0, DVector::from_element(1, 1.0_f32)).unwrap();
        for (y, solution) in [(fixed.y1[0], fixed.outcome), (heap.y1[0], heap.outcome)] {
            assert!(solution.reached_t1() && (f64::from(y) - (-1.0_f64).exp()).abs() < 1e-4, "{y}");
        }
        assert_eq!((fixed.rtol, heap.atol), (Tol::All(1e-4), Tol::All(1e-6)));
    }

    #[test]
    fn a_matrix_counts_its_components_column_by_column() {
        let y = ::nalgebra::Matrix2::new(1.0, 2.0, 3.0, f64::NAN);
        assert_eq!(y.components()[..3], [1.0, 3.0, 2.0]);
        assert_eq!((y.first_non_finite(&0.0), y.num_components()), (3.0, 4));
    }
}

#[cfg(feature = "ndarray")]
mod ndarray_states {
    use super::*;
    use ::ndarray::{Array0, Array1, Array2, ArrayD, ArrayRef1, IxDyn, ShapeBuilder, arr0, array};

    #[test]
    fn they_give_the_bits_that_arrays_give() {
        for method in METHODS {
            let expected = by_array(method);
            let one = Ode::new(|t, y: &Array1<f64>| Array1::from_iter(oscillator(t, [y[0], y[1]])));
            let one = configured(one, method).solve(0.0, 5.0, array![1.0, 0.2]).unwrap();
            assert_eq!(table(&one), expected, "{method}");
            let view = Ode::in_place(|t, y: &ArrayRef1<f64>, dy: &mut ArrayRef1<f64>| {
                [dy[0], dy[1]] = oscillator(t, [y[0], y[1]]);
            });
            let view = configured(view, method).solve(0.0, 5.0, array![1.0, 0.2]).unwrap();
            assert_eq!(table(&view), expected, "{method}");
            let any = Ode::in_place(|t, y: &ArrayD<f64>, dy: &mut ArrayD<f64>| {
                let rate = oscillator(t, [y[[0, 0, 0]], y[[0, 1, 0]]]);
                dy.iter_mut().zip(rate).for_each(|(dy, rate)| *dy = rate);
            });
            let y0 = ArrayD::from_shape_vec(IxDyn(&[1, 2, 1]), vec![1.0, 0.2]).unwrap();
            assert_eq!(table(&configured(any, method).solve(0.0, 5.0, y0).unwrap()), expected, "{method}");
        }
    }

    #[test]
    fn the_order_in_memory_changes_no_bit() {
        let rate =
            |y: &Array2<f64>| Array2::from_shape_fn((2, 3), |(i, j)| (y[[i, j]] - y[[1 - i, 2 - j]]).sin());
        let y0 = Array2::from_shape_fn((2, 3), |(i, j)| 0.3 * i as f64 - 0.7 * j as f64);
        let mut by_columns = Array2::zeros((2, 3).f());
        by_columns.assign(&y0);
        assert!(!by_columns.is_standard_layout());
        let solve = |y0: &Array2<f64>, columns: bool| {
            let field = |_t: f64, y: &Array2<f64>| {
                if columns {
                    rate(y).reversed_axes().as_standard_layout().into_owned().reversed_axes()
                } else {
                    rate(y)
                }
            };
            let rms = |e: &Array2<f64>| e.iter().fold(0.0_f64, |most, e| most.max(e.abs()));
            let listed = Ode::new(field).rtol((1..7).map(|j| 1e-7 * j as f64).collect::<Vec<_>>());
            let all = listed.clone().solve(0.0, 3.0, y0.clone()).unwrap().y1.components();
            [all, listed.norm(rms).solve(0.0, 3.0, y0.clone()).unwrap().y1.components()].map(|y| bits(&y))
        };
        let expected = solve(&y0, false);
        assert_eq!(solve(&y0, true), expected, "stages by columns");
        assert_eq!(solve(&by_columns, false), expected, "y0 by columns");
        assert_eq!(solve(&by_columns, true), expected, "both by columns");
    }

    #[test]
    fn wrong_shapes_are_refused_with_their_numbers() {
        let short = Ode::new(|_t, _y: &Array1<f64>| Array1::zeros(2)).solve(0.0, 1.0, Array1::zeros(3));
        let message = "the vector field returned a derivative of size 2 for a state of size 3";
        assert!(short.unwrap_err().to_string().ends_with(message));
        let turned = Ode::new(|_t, y: &Array2<f64>| y.t().to_owned()).solve(0.0, 1.0, Array2::zeros((2, 3)));
        let message = "the vector field returned a derivative of size 3 x 2 for a state of size 2 x 3";
        assert!(turned.unwrap_err().to_string().ends_with(message));
    }

    #[test]
    fn single_precision_does_not_stall_at_late_times() {
        let ode = Ode::new(|_t, y: &Array0<f32>| -y);
        let solution = ode.save_at([1e6 + 0.5, 1e6 + 1.0]).solve(1e6, 1e6 + 1.0, arr0(1.0_f32)).unwrap();
        let ys = solution.to_ndarray();
        assert!(solution.outcome.reached_t1() && ys.dim() == (2, 1));
        assert!((ys[[0, 0]] - (-0.5_f64).exp()).abs() < 1e-4 && (ys[[1, 0]] - (-1.0_f64).exp()).abs() < 1e-4);
        assert_eq!(solution.rtol, Tol::All(1e-4));
    }

    #[test]
    fn what_save_fn_made_becomes_a_table_too() {
        let ode = Ode::new(|_t, y: &f64| -y).save_at([0.0, 1.0]).save_fn(|t, y| [t, 2.0 * y]);
        let ys = ode.solve(0.0, 1.0, 1.0).unwrap().to_ndarray();
        assert_eq!(ys.row(0).to_vec(), [0.0, 2.0]);
        assert!((ys[[1, 1]] - 2.0 * (-1.0_f64).exp()).abs() < 1e-5);
    }
}

/// Two oscillators, the second one slower.
fn two(y: [f64; 4]) -> [f64; 4] {
    [y[1], -y[0], 0.5 * y[3], -0.5 * y[2]]
}

#[test]
fn compounds_step_as_one_array_of_all_their_components() {
    let flat = Ode::new(|_t, y: &[f64; 4]| two(*y)).save_at([1.0, 7.0]);
    let flat = flat.solve(0.0, 7.0, [1.0, 0.0, 2.0, 0.1]).unwrap();
    let pair = Ode::new(|_t, (a, b): &(f64, Vec<f64>)| {
        let [da, rest @ ..] = two([*a, b[0], b[1], b[2]]);
        (da, rest.to_vec())
    });
    let pair = pair.save_at([1.0, 7.0]).solve(0.0, 7.0, (1.0, vec![0.0, 2.0, 0.1])).unwrap();
    let nested = Ode::new(|_t, (a, (b, c)): &([f64; 2], (f64, [f64; 1]))| {
        let [a0, a1, b, c] = two([a[0], a[1], *b, c[0]]);
        ([a0, a1], (b, [c]))
    });
    let nested = nested.save_at([1.0, 7.0]).solve(0.0, 7.0, ([1.0, 0.0], (2.0, [0.1]))).unwrap();
    // The error norm is summed part by part, so the last bits of error ratios and step sizes differ.
    for (stats, (_, _, numbers)) in [(pair.stats, pair.table()), (nested.stats, nested.table())] {
        assert_eq!(stats, flat.stats);
        for (ours, flat) in numbers.iter().zip(flat.table().2) {
            assert!((ours - flat).abs() < 1e-12, "{ours} {flat}");
        }
    }
}

#[test]
fn the_error_norm_of_a_compound_is_the_rms_over_all_components() {
    let mut y = (0.0_f64, vec![0.0_f64; 3]);
    let k = [(3.0, vec![1.0, 2.0, 2.0])];
    let mut norm = |tol: &Tolerance| {
        let at = y.clone();
        y.error_ratio(&1.0, &[1.0], &k, &at.clone(), &(0.0, vec![0.0; 3]), tol)
    };
    y_is(norm(&Tolerance::new(0.0, 1.0)), (18.0_f64 / 4.0).sqrt());
    let (rtol, atol) = (Tol::All(0.0), Tol::Each(vec![3.0, 1.0, 2.0, 2.0]));
    y_is(norm(&Tolerance::of(&rtol, &atol)), 1.0);

    let mut e = (0.0, vec![0.0; 3]);
    e.scaled_error(&1.0, &[1.0], &k, &e.clone(), &(0.0, vec![0.0; 3]), &Tolerance::of(&rtol, &atol));
    assert_eq!(e, (1.0, vec![1.0; 3]));

    let mut scratch = (0.0, vec![0.0; 3]);
    for bad in [f64::NAN, f64::INFINITY] {
        for (part, index) in [((bad, vec![0.0; 3]), 0.0), ((0.0, vec![0.0, 0.0, bad]), 3.0)] {
            let zero = (0.0, vec![0.0; 3]);
            let k = [part.clone()];
            let ratio = scratch.error_ratio(&1.0, &[1.0], &k, &zero, &zero, &Tolerance::new(0.0, 1.0));
            assert!(!ratio.is_finite() && part.first_non_finite(&0.0) == index, "{part:?}");
        }
    }
    assert_eq!((1.0, vec![1.0]).first_non_finite(&0.0), -1.0);
}

fn y_is(ours: f64, exact: f64) {
    assert!((ours - exact).abs() < 1e-14, "{ours} {exact}");
}

#[test]
fn tolerances_of_a_compound_are_a_scalar_one_per_part_or_one_per_component() {
    let ode = || Ode::in_place(|_t, y: &(f64, Vec<f64>), dy: &mut (f64, Vec<f64>)| dy.0 = -y.0);
    let atol = |bound: Tol| ode().atol(bound).solve(0.0, 1.0, (1.0, vec![1.0; 3]));
    assert_eq!(atol(1e-7.into()).unwrap().atol, Tol::All(1e-7));
    let each = Tol::Each(vec![1e-7, 1e-5, 1e-5, 1e-5]);
    assert_eq!(atol([1e-7, 1e-5].into()).unwrap().atol, each);
    assert_eq!(atol(each.clone()).unwrap().atol, each);
    let message = "atol has 3 values, but the state has 4 components: give one value or 4 values, or one value per part of the state (2)";
    assert_eq!(atol([1e-7; 3].into()).unwrap_err().to_string(), message);
    let mixed = Ode::new(|_t, (a, b): &(f64, Vec<f32>)| (-a, b.clone()));
    let mixed = mixed.solve(0.0, 1.0, (1.0, vec![1.0_f32])).unwrap();
    assert_eq!((mixed.rtol, mixed.atol), (Tol::All(1e-4), Tol::All(1e-6)));
}

#[test]
fn compounds_of_six_parts_and_fields_that_fail() {
    type Six = (f64, f32, [f64; 1], Vec<f64>, (f64, f64), Named);
    let y0: Six = (1.0, 1.0, [1.0], vec![1.0; 2], (1.0, 1.0), Named { x: 1.0, v: 0.0 });
    let ode = Ode::in_place(|t, y: &Six, dy: &mut Six| {
        if t > 0.5 {
            return Err("the table ends at t=0.5");
        }
        (dy.0, dy.1, dy.2[0], dy.4) = (-y.0, -y.1, -y.2[0], (-y.4.0, -y.4.1));
        dy.3.iter_mut().zip(&y.3).for_each(|(dy, y)| *dy = -y);
        (dy.5.x, dy.5.v) = (y.5.v, -y.5.x);
        Ok(())
    });
    assert_eq!(y0.parts(), [1, 1, 1, 2, 1, 1, 1, 1]);
    let solution = ode.solve(0.0, 0.5, y0.clone()).unwrap();
    let ys = solution.y1.components();
    assert!(
        ys[..7].iter().all(|y| (y - (-0.5_f64).exp()).abs() < 1e-4) && (ys[7] - 0.5_f64.cos()).abs() < 1e-4
    );
    let error = ode.solve(0.0, 1.0, y0).unwrap_err();
    assert!(matches!(error, SolveError::Field { t, .. } if t > 0.5), "{error}");
}

#[test]
fn a_part_of_the_wrong_size_is_named() {
    let ode = Ode::new(|_t, y: &(f64, Vec<f64>)| (-y.0, vec![0.0; 2]));
    let error = ode.solve(0.0, 1.0, (1.0, vec![1.0; 3])).unwrap_err().to_string();
    assert!(
        error.ends_with("part 1: the vector field returned a derivative of size 2 for a state of size 3"),
        "{error}"
    );
    let grown = Ode::in_place(|_t, _y: &Vec<f64>, dy: &mut Vec<f64>| dy.push(0.0));
    let error = grown.solve(0.0, 1.0, vec![1.0; 3]).unwrap_err().to_string();
    assert!(
        error.ends_with("the vector field returned a derivative of size 4 for a state of size 3"),
        "{error}"
    );
}

#[test]
fn a_struct_of_states_has_events_dense_output_and_steps_by_hand() {
    let ode = Ode::new(|_t, y: &Named| Named { x: y.v, v: -y.x });
    let solution = ode
        .save_at(SaveAt::dense())
        .on_event(Event::falling(), |_t, y| y.x, |_t, y| y.v = -y.v)
        .solve(0.0, 2.0, Named { x: 1.0, v: 0.0 })
        .unwrap();
    // x falls to 0 in a quarter of a period and rises again: x = |cos t|.
    assert!((solution.events[0].t - std::f64::consts::FRAC_PI_2).abs() < 1e-6);
    assert!((solution.y1.x - 2.0_f64.cos().abs()).abs() < 1e-5);
    let (y, dy) = solution.dense().unwrap().eval_with_derivative(1.0).unwrap();
    assert!((y.x - 1.0_f64.cos()).abs() < 1e-5 && (dy.x + 1.0_f64.sin()).abs() < 1e-3);
}
