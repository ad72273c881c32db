//! Covariances against their formula, for matrices whose singular values are known.
//!
//! A derivative `J = U S V^T D` is drawn by its factors: orthogonal U and V as products of reflections, singular values of 1
//! to 1e-6, lengths D of 1e-8 to 1e8; 1 to 8 parameters and 1 to 30 more residuals. `FLOWLINE_CASES=<n>` draws n cases.

use super::*;
use crate::nn::Frozen;
use crate::ode::Ode;
use crate::ode::tests::draw::{Draw, num_cases};
use crate::optim::{Adam, minimize};
use crate::tensor::Key;
use crate::tree;

/// The first n columns of a product of three reflections of m dimensions, row-major.
fn orthogonal(draw: &mut Draw, m: usize, n: usize) -> Vec<f64> {
    let mut q: Vec<f64> = (0..m * n).map(|at| f64::from(at / n == at % n)).collect();
    for _ in 0..3 {
        let w: Vec<f64> = (0..m).map(|_| draw.uniform(-1.0, 1.0)).collect();
        let square: f64 = w.iter().map(|w| w * w).sum();
        for k in 0..n {
            let factor = 2.0 * (0..m).map(|i| w[i] * q[i * n + k]).sum::<f64>() / square;
            (0..m).for_each(|i| q[i * n + k] -= factor * w[i]);
        }
    }
    q
}

struct Drawn {
    m: usize,
    n: usize,
    /// Row-major.
    j: Vec<f64>,
    /// `(J^T J)^-1` if no singular value is 0.
    inverse: Vec<f64>,
    is_deficient: bool,
}

impl Drawn {
    fn new(draw: &mut Draw, singular: &[f64]) -> Drawn {
        let n = singular.len();
        let m = n + 1 + draw.below(30);
        let (u, v) = (orthogonal(draw, m, n), orthogonal(draw, n, n));
        // A length before and behind V would change the singular values of the scaled matrix.
        let lengths: Vec<f64> = (0..n).map(|_| draw.decade(-8.0, 8.0)).collect();
        let sum = |f: &dyn Fn(usize) -> f64| (0..n).map(f).sum::<f64>();
        let j = (0..m * n).map(|at| {
            let (i, k) = (at / n, at % n);
            sum(&|l| u[i * n + l] * singular[l] * v[k * n + l]) * lengths[k]
        });
        let inverse = (0..n * n).map(|at| {
            let (i, k) = (at / n, at % n);
            sum(&|l| v[i * n + l] * v[k * n + l] / singular[l].powi(2)) / (lengths[i] * lengths[k])
        });
        let is_deficient = singular.contains(&0.0);
        Drawn { m, n, j: j.collect(), inverse: inverse.collect(), is_deficient }
    }

    /// Singular values of 1 to 1e-6; some are 0 in a third of the cases.
    fn any(draw: &mut Draw) -> Drawn {
        let n = 1 + draw.below(8);
        let mut singular: Vec<f64> = (0..n).map(|_| draw.decade(-6.0, 0.0)).collect();
        if draw.below(3) == 0 {
            let zeros = 1 + draw.below(n);
            singular[..zeros].fill(0.0);
        }
        Drawn::new(draw, &singular)
    }
}

#[test]
fn a_covariance_is_the_formula_for_parameters_of_any_scale() {
    let mut draw = Draw(1);
    let (mut deficient, mut steep, cases) = (0, 0, num_cases(200));
    for case in 0..cases {
        let Drawn { m, n, j, inverse, is_deficient } = Drawn::any(&mut draw);
        let (slopes, data) = (Tensor::from_vec([m, n], j.clone()), Key::new(draw.bits()).normal([m]));
        let data = data.cast(DType::F64);
        let p = Tensor::from((0..n).map(|_| draw.uniform(-1.0, 1.0)).collect::<Vec<_>>());
        let at = p.reshape([1, n]);
        let shape = if draw.coin() { vec![m] } else { vec![1, m, 1] };
        let residuals = |p: &Tensor| (slopes.matmul(&p.reshape([n])) - &data).reshape(shape.clone());
        let found = covariance(residuals, &at);
        if is_deficient {
            deficient += 1;
            assert!(matches!(found, Err(Error::Undetermined { .. })), "case {case}: {found:?}");
            continue;
        }
        let found = found.unwrap_or_else(|e| panic!("case {case}: {e}"));
        let s2 = residuals(&at).to_vec().iter().map(|r| r * r).sum::<f64>() / (m - n) as f64;
        assert!((found.variance / s2 - 1.0).abs() < 1e-12 && found.degrees_of_freedom == m - n);
        let (matrix, errors) = (found.matrix.to_vec(), found.standard_errors());
        let (correlation, known) = (found.correlation().to_vec(), found.with_variance(4.0).matrix.to_vec());
        assert_eq!(errors.shape().to_vec(), [1, n]);
        for (at, expected) in inverse.iter().enumerate() {
            let (i, k) = (at / n, at % n);
            let unit = (inverse[i * n + i] * inverse[k * n + k]).sqrt();
            let off = |found: f64, scale: f64| (found / scale - expected / unit).abs();
            let all = [(matrix[at], s2 * unit), (known[at], 4.0 * unit), (correlation[at], 1.0)];
            let worst = all.iter().map(|(found, scale)| off(*found, *scale)).fold(0.0, f64::max);
            assert!(worst < 1e-7, "case {case}: {worst:e} at {i}, {k} of {n}");
            assert_eq!(matrix[at], matrix[k * n + i]);
        }
        for (i, error) in errors.to_vec().iter().enumerate() {
            assert_eq!(*error, matrix[i * n + i].sqrt());
        }
        steep += usize::from(inverse.iter().any(|x| x.abs() > 1e12));
    }
    assert!(deficient > cases / 5 && deficient < cases / 2 && steep > cases / 5, "{deficient} {steep}");
}

#[test]
fn an_undetermined_combination_changes_no_residual() {
    let mut draw = Draw(2);
    for case in 0..num_cases(200) {
        let n = 1 + draw.below(8);
        let zeros = 1 + draw.below(n);
        let singular: Vec<f64> =
            (0..n).map(|k| if k < zeros { 0.0 } else { draw.decade(-4.0, 0.0) }).collect();
        let Drawn { m, j, .. } = Drawn::new(&mut draw, &singular);
        let factors = Factors::of(&j, m, n);
        assert_eq!(factors.rank(1e-11), n - zeros, "case {case}: {:?}", factors.singular);
        let change = factors.undetermined();
        assert!(change.contains(&1.0), "case {case}: {change:?}");
        for row in j.chunks(n) {
            let terms: Vec<f64> = row.iter().zip(&change).map(|(j, c)| j * c).collect();
            let scale: f64 = change.iter().zip(&factors.lengths).map(|(c, length)| (c * length).abs()).sum();
            // Parts below a millionth are left out.
            assert!(terms.iter().sum::<f64>().abs() <= 1e-5 * scale, "case {case}: {change:?}");
        }
    }
}

tree! {
    /// Parameters of several shapes, of which some are constants.
    struct Mixed { rate: Tensor, weights: Tensor, known: Frozen<Tensor>, count: Tensor }
}

#[test]
fn parameters_are_the_leaves_that_optimizers_change() {
    let at = Mixed {
        rate: Tensor::from(2.0),
        weights: Tensor::from([[1.0_f32, 2.0, 3.0]]),
        known: Frozen::new(Tensor::from([5.0])),
        count: Tensor::from([3]),
    };
    let x = Key::new(1).normal([20, 4]).cast(DType::F64);
    let residuals = |p: &Mixed| {
        let weights = p.weights.reshape([3]).cast(DType::F64);
        let all = Tensor::concat(&[p.rate.reshape([1]), weights], 0);
        x.matmul(&all) * p.known.get().index(0) - x.index(0).sum()
    };
    let found = covariance(residuals, &at).unwrap();
    assert_eq!(found.names, ["rate", "weights[0,0]", "weights[0,1]", "weights[0,2]"]);
    // The same by one tensor.
    let flat = Tensor::from([2.0, 1.0, 2.0, 3.0]);
    let same = covariance(|p: &Tensor| x.matmul(p) * 5.0 - x.index(0).sum(), &flat).unwrap();
    let pairs = found.matrix.to_vec().into_iter().zip(same.matrix.to_vec());
    assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-5 * b.abs().max(same.variance * 1e-3)));
    let errors = found.standard_errors();
    assert_eq!((errors.rate.dtype(), errors.weights.ty()), (DType::F64, at.weights.ty()));
    assert!(errors.rate.item() > 0.0 && errors.weights.to_vec().iter().all(|e| *e > 0.0));
    assert_eq!((errors.known.get().to_vec(), errors.count.to_vec()), (vec![0.0], vec![0.0]));
}

/// y' = a b y - c at ten times from y(0) = 1, minus data.
fn growth(p: &Tensor, c: bool) -> crate::Result<Tensor> {
    let ts = Tensor::linspace(0.1, 1.0, 10);
    let constant = if c { p.index(2) } else { Tensor::from(0.0) };
    let ode = Ode::new(|_t, y: &Tensor| p.index(0) * p.index(1) * y - &constant).save_at(&ts);
    Ok(ode.solve(0.0, 1.0, Tensor::from(1.0))?.ys - &ts)
}

#[test]
fn a_combination_that_a_solve_does_not_determine_is_named() {
    let at = Tensor::from([0.5, 2.0, 0.3]);
    let refused = covariance(|p: &Tensor| growth(p, true), &at).unwrap_err();
    let text = refused.to_string();
    assert!(matches!(refused, Error::Undetermined { rank: 2, parameters: 3, .. }), "{text}");
    // d(a b) = 2 da + 0.5 db
    let either = ["if p[0] changes by -0.25 and p[1] by 1;", "if p[0] changes by 1 and p[1] by -4;"];
    assert!(either.iter().any(|part| text.contains(part)), "{text}");
    // c is not used.
    let at = Tensor::from([0.5, 2.0, 0.3]);
    let refused = covariance(|p: &Tensor| Ok(growth(&p.slice(0, 0..2), false)? * p.index(0)), &at);
    let text = refused.unwrap_err().to_string();
    assert!(
        text.starts_with("the residuals determine 2 of 3 parameters")
            && text.contains("if p[2] changes by 1;")
    );
}

#[test]
fn the_true_parameters_lie_within_a_few_standard_errors_as_often_as_they_should() {
    // y' = -k y, y(0) = a, with noise of standard deviation 0.05 at twelve times.
    let ts = Tensor::linspace(0.0, 3.0, 12);
    let curve = |p: &Tensor| {
        let ode = Ode::new(|_t, y: &Tensor| -(p.index(0) * y)).save_at(&ts).rtol(1e-8).atol(1e-10);
        Ok::<_, Error>(ode.solve(0.0, 3.0, p.index(1))?.ys)
    };
    let truth = Tensor::from([0.7, 2.0]);
    let (mut inside, cases) = (0, num_cases(40));
    for case in 0..cases {
        let noise = 0.05 * Key::new(case as u64).normal([12]).cast(DType::F64);
        let data = curve(&truth).unwrap() + noise;
        let residuals = |p: &Tensor| Ok::<_, Error>(curve(p)? - &data);
        let loss = |p: &Tensor| Ok(residuals(p)?.square().sum());
        let found = minimize(loss, truth.clone(), Adam::new(0.02).beta2(0.9), 80).unwrap().0;
        let covariance = covariance(residuals, &found).unwrap();
        assert!((0.01..0.12).contains(&covariance.variance.sqrt()));
        let errors = covariance.standard_errors().to_vec();
        let off = (&found - &truth).to_vec().into_iter().zip(errors).map(|(off, e)| (off / e).abs());
        inside += off.filter(|off| *off < 1.0).count();
    }
    // 0.66 of Student's t with ten degrees of freedom lie within one standard error.
    let share = inside as f64 / (2 * cases) as f64;
    assert!((share - 0.66).abs() < 0.16, "{share}");
}

#[test]
fn what_a_covariance_refuses() {
    let x = Tensor::from([1.0, 2.0, 4.0]);
    let few = covariance(|p: &Tensor| p * &x, &Tensor::from([1.0, 2.0, 3.0])).unwrap_err();
    assert!(matches!(few, Error::TooFewResiduals { residuals: 3, parameters: 3 }), "{few}");
    assert!(few.to_string().ends_with("at least 4 are needed"), "{few}");
    let nan = covariance(|p: &Tensor| (p * (&x - 2.0)).sqrt(), &Tensor::from(1.0)).unwrap_err();
    assert!(
        matches!(&nan, Error::NonFinite { leaf, index, .. } if leaf == "residuals" && index == &[0]),
        "{nan}"
    );
    // The square root has no derivative at 0.
    let steep = covariance(|p: &Tensor| (p * &x).sqrt(), &Tensor::from(0.0)).unwrap_err();
    assert!(matches!(&steep, Error::NonFinite { leaf, .. } if leaf == "jacobian"), "{steep}");
    let blow_up = |y: &Tensor| Ok(Ode::new(|_t, y: &Tensor| y.square()).solve(0.0, 2.0, y)?.y1);
    assert!(matches!(covariance(blow_up, &Tensor::from([1.0])), Err(Error::Solve { .. })));
    // Without parameters there is nothing to determine.
    let none = covariance(|_: &Tensor| x.clone(), &Tensor::from([1])).unwrap();
    assert_eq!((none.matrix.shape().to_vec(), none.degrees_of_freedom, none.variance), (vec![0, 0], 3, 7.0));
}
