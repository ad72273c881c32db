//! Custom tableaux: their orders are derived, and invalid tableaux are errors.

use crate::ode::{ButcherTableau, ConfigError, Interpolant, Method, Tableau};

const KUTTA3: (&[&[f64]], [f64; 3], [f64; 3]) =
    (&[&[0.5], &[-1.0, 2.0]], [1.0 / 6.0, 2.0 / 3.0, 1.0 / 6.0], [0.0, 0.5, 1.0]);

fn kutta3() -> Tableau {
    Tableau::new("kutta3", KUTTA3.0, &KUTTA3.1, &KUTTA3.2).unwrap()
}

/// A built-in tableau, constructed as a custom one.
fn again(tableau: &ButcherTableau) -> Tableau {
    let rows: Vec<&[f64]> = (1..tableau.num_stages()).map(|i| tableau.row(i)).collect();
    Tableau::new(tableau.name, &rows, tableau.b, tableau.c).unwrap()
}

fn message<T: std::fmt::Debug>(result: Result<T, ConfigError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn orders_are_found_from_the_numbers() {
    for method in Method::EXPLICIT {
        let tableau = method.tableau();
        let own = again(tableau);
        assert_eq!((own.order(), own.view().is_fsal()), (tableau.order, tableau.is_fsal()), "{method}");
        assert_eq!((own.view().a, own.view().b, own.view().c), (tableau.a, tableau.b, tableau.c));
        let interpolant = Interpolant::of(&own.view());
        assert_eq!(
            (interpolant.order(), interpolant.starts_with_f1()),
            (tableau.order.min(3), !tableau.is_fsal())
        );
    }
    assert_eq!(kutta3().check_order(3).unwrap().order(), 3);
}

#[test]
fn a_failing_order_condition_is_named_by_its_tree() {
    let error = kutta3().check_order(4);
    assert!(matches!(&error, Err(ConfigError::TableauOrder { nodes: 4, weights: "b", .. })), "{error:?}");
    let message = message(error);
    assert_eq!(
        message,
        "tableau \"kutta3\": b: the order 4 condition of the tree [[[•]]] is off by 4.1666666666666664e-2; check the coefficients"
    );
    assert!(matches!(
        kutta3().check_order(11),
        Err(ConfigError::TableauOrderAsked { order: 11, max: 10, .. })
    ));
    // The classical method of order 4 with another row of the same sum.
    let rk4 = Tableau::new(
        "swapped",
        &[&[0.5], &[0.05, 0.45], &[0.0, 0.0, 1.0]],
        &[1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0],
        &[0.0, 0.5, 0.5, 1.0],
    );
    assert_eq!(rk4.unwrap().order(), 2);
}

#[test]
fn an_estimate_is_the_difference_of_two_solutions() {
    let own = kutta3().with_embedded(&[0.0, 1.0, 0.0], 3).unwrap();
    let near =
        |ours: &[f64], expected: [f64; 3]| ours.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-16);
    assert!(near(own.view().b_err.unwrap(), [1.0 / 6.0, -1.0 / 3.0, 1.0 / 6.0]));
    assert_eq!((own.view().error_order, own.view().b_err_low), (3, None));
    assert_eq!(kutta3().view().b_err, None);
    let claimed = kutta3().with_embedded(&[0.0, 1.0, 0.0], 4);
    assert!(matches!(claimed, Err(ConfigError::TableauOrder { nodes: 3, weights: "b - b_embedded", .. })));
    assert!(message(kutta3().with_embedded(&KUTTA3.1, 3)).contains("must differ from b"));
    assert!(message(kutta3().with_embedded(&[1.0, 0.0, 0.0], 0)).contains("error_order=0"));
    assert!(message(kutta3().with_embedded(&[1.0, 0.0], 2)).contains("b_embedded: expected 3, found 2"));
    assert!(message(kutta3().with_embedded(&[0.9, 0.0, 0.0], 2)).contains(": the order 1 condition"));
}

#[test]
fn wrong_shapes_sums_and_numbers_are_rejected_with_their_place() {
    let (a, b, c) = KUTTA3;
    let refuse = |a: &[&[f64]], b: &[f64], c: &[f64]| message(Tableau::new("mine", a, b, c));
    assert_eq!(refuse(a, &b, &c[..2]), "tableau \"mine\": c: expected 3, found 2");
    assert_eq!(
        refuse(&a[..1], &b, &c),
        "tableau \"mine\": the rows of a (stage 0 has none): expected 2, found 1"
    );
    assert_eq!(
        refuse(&[&[0.5], &[1.0]], &b, &c),
        "tableau \"mine\": the row of stage 2: expected 2, found 1"
    );
    assert_eq!(refuse(&[], &[], &[]), "tableau \"mine\": b: expected 1, found 0");
    let sum = refuse(&[&[0.5], &[-1.0, 2.5]], &b, &c);
    assert_eq!(sum, "tableau \"mine\": the row of stage 2 sums to 1.5, but c[2]=1: they must agree");
    let first = refuse(a, &b, &[0.1, 0.5, 1.0]);
    assert_eq!(first, "tableau \"mine\": the row of stage 0 sums to 0, but c[0]=0.1: they must agree");
    let nan = refuse(&[&[0.5], &[-1.0, f64::NAN]], &b, &c);
    assert_eq!(nan, "tableau \"mine\": the row of stage 2 has NaN at index 1: all numbers must be finite");
    assert!(refuse(a, &[0.0, f64::INFINITY, 0.0], &c).contains("b has inf at index 1"));
    assert!(
        refuse(a, &[0.5, 0.5, 0.5], &c).contains("b: the order 1 condition of the tree • is off by 5e-1")
    );
}

#[test]
fn dense_outputs_are_checked_and_their_order_found() {
    // The interpolant of order 2 of Kutta's method of order 3, without extra stages.
    let quadratic: &[&[f64]] = &[&[1.0, -5.0 / 6.0], &[0.0, 2.0 / 3.0], &[0.0, 1.0 / 6.0]];
    let own = kutta3().with_dense(&[], quadratic).unwrap();
    let interpolant = Interpolant::of(&own.view());
    assert_eq!((interpolant.order(), interpolant.num_stages(), interpolant.starts_with_f1()), (2, 3, false));
    assert_eq!(interpolant.f1(), None);
    let mut weights = [0.0; 3];
    interpolant.weights(0.25, &mut weights);
    let expected = quadratic.iter().map(|w| w[0] * 0.25 + w[1] * 0.0625);
    assert!(weights.iter().zip(expected).all(|(w, expected)| (w - expected).abs() < 1e-16), "{weights:?}");

    let refuse = |extra: &[(f64, &[f64])], weights: &[&[f64]]| message(kutta3().with_dense(extra, weights));
    let off = refuse(&[], &[&[1.0, -0.5], &[0.0, 2.0 / 3.0], &[0.0, 1.0 / 6.0]]);
    assert!(
        off.contains("the dense weight of stage 0 is 0.5 at the end of the step, but b=0.16666666666666666")
    );
    let sum = refuse(&[], &[&[0.0, 1.0 / 6.0], &[0.0, 2.0 / 3.0], &[0.0, 1.0 / 6.0]]);
    assert!(sum.contains("the dense weights: the order 1 condition of the tree •"), "{sum}");
    assert!(refuse(&[], &quadratic[..2]).contains("the rows of the dense weights: expected 3, found 2"));
    assert!(
        refuse(&[], &[&[1.0], &[0.0, 1.0], &[0.0]])
            .contains("row 1 of the dense weights: expected 1, found 2")
    );
    assert!(refuse(&[], &[&[], &[], &[]]).contains("row 0 of the dense weights: expected 1, found 0"));
    let long = [0.0; 17];
    assert!(refuse(&[], &[&long, &long, &long]).contains("expected 16, found 17"));
    let stage: (f64, &[f64]) = (1.0, &[0.5, 0.25, 0.0]);
    assert!(refuse(&[stage], quadratic).contains("the row of stage 3 sums to 0.75, but c[3]=1"));
    assert!(refuse(&[(1.0, &[1.0, 0.0])], quadratic).contains("the row of stage 3: expected 3, found 2"));
}
