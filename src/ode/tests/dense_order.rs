//! Dense output: its ends, its measured order, and problems that detect a wrong time or weight.

use crate::ode::{ButcherTableau, ConfigError, Interpolant, Method, Tableau};

type Field = fn(f64, [f64; 2]) -> [f64; 2];

fn combine(y: [f64; 2], h: f64, weights: &[f64], k: &[[f64; 2]]) -> [f64; 2] {
    let sum = |n: usize| weights.iter().zip(k).map(|(w, k)| w * k[n]).sum::<f64>();
    [y[0] + h * sum(0), y[1] + h * sum(1)]
}

/// All stages of a step, extra stages of dense output included.
fn stages(
    tableau: &ButcherTableau,
    interpolant: &Interpolant,
    f: Field,
    t: f64,
    h: f64,
    y: [f64; 2],
) -> Vec<[f64; 2]> {
    let own = (0..tableau.num_stages()).map(|i| (tableau.c[i], tableau.row(i)));
    own.chain(interpolant.extra()).fold(Vec::new(), |mut k, (c, a)| {
        k.push(f(t + c * h, combine(y, h, a, &k)));
        k
    })
}

#[derive(Clone, Copy)]
struct Problem {
    name: &'static str,
    f: Field,
    exact: fn(f64) -> [f64; 2],
}

const SPIRAL: Problem = Problem {
    name: "a rotation as fast as |y|^2, with a radius that grows",
    f: |_t, y| {
        let s = y[0] * y[0] + y[1] * y[1];
        [0.5 * y[0] / s - y[1] * s, 0.5 * y[1] / s + y[0] * s]
    },
    exact: |t| {
        // r' = 1/(2r), so r^2 = 1 + t; the angle's speed is r^2.
        let (r, angle) = ((1.0 + t).sqrt(), t + 0.5 * t * t);
        [r * angle.cos(), r * angle.sin()]
    },
};
const TOP: Problem = Problem {
    name: "y0' = y0 y1, y1' = -y0^2",
    f: |_t, y| [y[0] * y[1], -y[0] * y[0]],
    exact: |t| [1.0 / t.cosh(), -t.tanh()],
};
const BELLS: Problem = Problem {
    name: "y0' = y0 cos t, y1' = -2 t y1^2",
    f: |t, y| [y[0] * t.cos(), -2.0 * t * y[1] * y[1]],
    exact: |t| [t.sin().exp(), 1.0 / (1.0 + t * t)],
};
const WAVES: Problem =
    Problem { name: "y' = y cos t", f: |t, y| y.map(|y| y * t.cos()), exact: |t| [t.sin().exp(); 2] };
const GROWTH: Problem =
    Problem { name: "y' = t y", f: |t, y| y.map(|y| t * y), exact: |t| [(0.5 * t * t).exp(); 2] };

/// The largest error inside a step of size h from the exact state at t.
fn error_inside(method: Method, problem: &Problem, t: f64, h: f64) -> f64 {
    let (tableau, interpolant) = (method.tableau(), Interpolant::of(method.tableau()));
    let y = (problem.exact)(t);
    let k = stages(tableau, &interpolant, problem.f, t, h, y);
    let mut weights = vec![0.0; k.len()];
    let errors = [0.2, 0.35, 0.5, 0.65, 0.8].map(|theta| {
        interpolant.weights(theta, &mut weights);
        let (ours, exact) = (combine(y, h, &weights, &k), (problem.exact)(t + theta * h));
        (ours[0] - exact[0]).hypot(ours[1] - exact[1])
    });
    errors.into_iter().fold(0.0, f64::max)
}

/// For a nonlinear and a non-autonomous problem, with t and h for which the leading error term dominates and
/// is above rounding. For orders above 5 few step sizes and few problems are suitable.
#[test]
fn the_error_inside_a_step_has_one_power_of_h_more_than_the_dense_order() {
    for method in Method::EXPLICIT {
        let order = Interpolant::of(method.tableau()).order();
        let cases = match method {
            Method::Vern7 => [(SPIRAL, 0.3, 0.1), (BELLS, 0.3, 0.1)],
            Method::Dop853 => [(TOP, 0.0, 0.3), (WAVES, 0.3, 0.3)],
            Method::Vern9 => [(TOP, 0.3, 0.5), (GROWTH, 0.0, 0.8)],
            _ if order == 4 => [(SPIRAL, 0.3, 0.05), (BELLS, 0.3, 0.05)],
            _ => [(SPIRAL, 0.3, 0.02), (BELLS, 0.3, 0.02)],
        };
        for (problem, t, h) in cases {
            let (coarse, fine) =
                (error_inside(method, &problem, t, h), error_inside(method, &problem, t, h / 2.0));
            let off = ((coarse / fine).log2() - f64::from(order + 1)).abs();
            assert!(off < 0.2, "{method} on {}: {off:.3} off, {coarse:e} then {fine:e}", problem.name);
        }
    }
}

#[test]
fn weights_are_0_at_the_start_and_b_at_the_end() {
    for method in Method::EXPLICIT {
        let (tableau, interpolant) = (method.tableau(), Interpolant::of(method.tableau()));
        let (s, n) = (tableau.num_stages(), interpolant.num_stages());
        let mut weights = vec![f64::NAN; n + 1];
        interpolant.weights(0.0, &mut weights);
        assert!(weights[..n].iter().all(|w| *w == 0.0), "{method}");
        interpolant.weights(1.0, &mut weights);
        assert_eq!(&weights[..s], tableau.b, "{method}");
        assert!(weights[s..n].iter().all(|w| *w == 0.0) && weights[n].is_nan(), "{method}");
    }
}

#[test]
fn derivatives_at_the_ends_equal_the_vector_field() {
    for method in Method::EXPLICIT {
        let (tableau, interpolant) = (method.tableau(), Interpolant::of(method.tableau()));
        let (s, n) = (tableau.num_stages(), interpolant.num_stages());
        // f(t + h, y1): the last stage, or the first extra one.
        let f1 = if tableau.is_fsal() { s - 1 } else { s };
        assert_eq!(
            (interpolant.f1(), interpolant.starts_with_f1()),
            (Some(f1), !tableau.is_fsal()),
            "{method}"
        );
        let unit = |at: usize| (0..n).map(|i| if i == at { 1.0 } else { 0.0 }).collect::<Vec<f64>>();
        let mut derivatives = vec![0.0; n];
        interpolant.derivative_weights(0.0, &mut derivatives);
        assert!(near(&derivatives, &unit(0), 1e-15), "{method}: {derivatives:?}");
        interpolant.derivative_weights(1.0, &mut derivatives);
        assert!(near(&derivatives, &unit(f1), 1e-15), "{method}: {derivatives:?}");
    }
}

#[test]
fn derivative_weights_are_the_derivatives_of_the_weights() {
    for method in Method::EXPLICIT {
        let interpolant = Interpolant::of(method.tableau());
        let n = interpolant.num_stages();
        let (mut derivatives, mut after, mut before) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        for theta in [0.1, 0.45, 0.9] {
            let dtheta = 1e-5;
            interpolant.derivative_weights(theta, &mut derivatives);
            interpolant.weights(theta + dtheta, &mut after);
            interpolant.weights(theta - dtheta, &mut before);
            let differences: Vec<f64> =
                after.iter().zip(&before).map(|(after, before)| (after - before) / (2.0 * dtheta)).collect();
            assert!(near(&derivatives, &differences, 1e-7), "{method} at {theta}");
        }
    }
}

fn near(ours: &[f64], others: &[f64], tol: f64) -> bool {
    ours.len() == others.len() && ours.iter().zip(others).all(|(a, b)| (a - b).abs() <= tol)
}

/// Published coefficients of the powers of theta, for some stages of four methods.
const POWERS: &[(Method, usize, &[f64])] = &[
    (Method::Tsit5, 0, &[1.0, -2.763706197274826, 2.9132554618219126, -1.0530884977290216]),
    (Method::Tsit5, 3, &[0.0, -12.411077166933676, 30.33818863028232, -16.548102889244902]),
    (
        Method::Dopri5,
        0,
        &[1.0, -8048581381.0 / 2820520608.0, 8663915743.0 / 2820520608.0, -12715105075.0 / 11282082432.0],
    ),
    (
        Method::Vern7,
        8,
        &[
            0.0,
            2.764708833638599,
            -27.934602637390462,
            109.54779186137893,
            -198.7128113064482,
            167.26633571640318,
            -52.85010499525706,
        ],
    ),
    (
        Method::Vern9,
        25,
        &[
            0.0,
            1.7194275817987157,
            -62.89867309250732,
            580.333550787398,
            -2348.110620506761,
            4921.119298612906,
            -5597.912448707917,
            3288.5977751496216,
            -782.8483098245397,
        ],
    ),
];

/// The magnitudes of the terms of a weight, which determine its rounding, stay small at every theta.
#[test]
fn the_nested_form_keeps_its_terms_small() {
    let largest = |method: Method| {
        let dense = method.tableau().dense?;
        let sizes = (0..=100).map(|n| f64::from(n) / 100.0).flat_map(move |theta| {
            let factor = move |j: usize| if j.is_multiple_of(2) { theta } else { 1.0 - theta };
            dense.weights.chunks(dense.degree).map(move |coefficients| {
                let terms = coefficients.iter().enumerate().scan(1.0, |term, (j, c)| {
                    *term *= factor(j);
                    Some((c * *term).abs())
                });
                terms.sum::<f64>()
            })
        });
        Some(sizes.fold(0.0, f64::max))
    };
    for (method, bound) in [
        (Method::Tsit5, 6.5),
        (Method::Dopri5, 1.1),
        (Method::Vern7, 8.0),
        (Method::Dop853, 31.0),
        (Method::Vern9, 13.1),
    ] {
        let largest = largest(method).unwrap();
        assert!(largest < bound && largest > 0.9 * bound, "{method}: {largest}");
    }
}

#[test]
fn weights_equal_the_published_polynomials() {
    for &(method, stage, powers) in POWERS {
        let interpolant = Interpolant::of(method.tableau());
        let mut weights = vec![0.0; interpolant.num_stages()];
        for theta in [0.1, 0.3, 0.6, 0.9] {
            interpolant.weights(theta, &mut weights);
            let published = powers.iter().rev().fold(0.0, |sum, x| (sum + x) * theta);
            let size: f64 = powers.iter().map(|x| x.abs()).sum();
            let off = (weights[stage] - published).abs();
            assert!(off < 4.0 * f64::EPSILON * size, "{method} stage {stage} at {theta}: {off:e}");
        }
    }
}

/// y0' = 7 t^6 is a quadrature, y1' = y1 + t uses both arguments. A wrong time or weight changes y0 or y1.
#[test]
fn a_quadrature_and_a_linear_problem_are_solved_to_each_method_s_order() {
    let exact = |t: f64| [t.powi(7), 2.0 * t.exp() - t - 1.0];
    for method in Method::EXPLICIT {
        let (tableau, interpolant) = (method.tableau(), Interpolant::of(method.tableau()));
        let error = |steps: i32| {
            let h = 1.0 / f64::from(steps);
            let mut y = exact(0.0);
            let mut weights = vec![0.0; interpolant.num_stages()];
            let mut worst = [0.0_f64; 2];
            for step in 0..steps {
                let t = h * f64::from(step);
                let k = stages(tableau, &interpolant, |t, y| [7.0 * t.powi(6), y[1] + t], t, h, y);
                for theta in [0.3, 0.7, 1.0] {
                    interpolant.weights(theta, &mut weights);
                    let (ours, exact) = (combine(y, h, &weights, &k), exact(t + theta * h));
                    worst = [0, 1].map(|i| worst[i].max((ours[i] - exact[i]).abs()));
                }
                y = combine(y, h, tableau.b, &k[..tableau.num_stages()]);
            }
            worst
        };
        let (coarse, fine) = (error(8), error(16));
        for (coarse, fine) in coarse.into_iter().zip(fine) {
            // The global error is O(h^p) at the step times and O(h^(q+1)) between them.
            let power = tableau.order.min(interpolant.order() + 1);
            let expected = coarse * 0.5_f64.powi(power as i32) * 1.7 + 2e-14;
            assert!(fine <= expected, "{method}: {coarse:e} then {fine:e}");
        }
    }
}

/// Interpolants given by powers of theta equal the built-in ones in nested form.
#[test]
fn a_custom_tableau_interpolates_as_the_built_in_one() {
    let own = as_own(Method::Tsit5.tableau(), 4).unwrap();
    let (ours, theirs) = (Interpolant::of(&own.view()), Interpolant::of(Method::Tsit5.tableau()));
    assert_eq!((ours.order(), ours.num_stages()), (4, 7));
    let (mut a, mut b) = ([0.0; 7], [0.0; 7]);
    for theta in [0.0, 0.2, 0.5, 0.99, 1.0] {
        ours.weights(theta, &mut a);
        theirs.weights(theta, &mut b);
        assert!(near(&a, &b, 1e-14), "{a:?} {b:?}");
    }
}

/// A built-in method as a custom tableau. The powers of theta of its interpolant are computed from its values
/// at nodes.
fn as_own(tableau: &ButcherTableau, degree: usize) -> Result<Tableau, ConfigError> {
    let s = tableau.num_stages();
    let rows: Vec<&[f64]> = (1..s).map(|i| tableau.row(i)).collect();
    let interpolant = Interpolant::of(tableau);
    // w(theta) = theta p(theta). p is computed by divided differences at `degree` nodes, then expanded.
    let nodes: Vec<f64> = (1..=degree).map(|i| i as f64 / degree as f64).collect();
    let values: Vec<Vec<f64>> = nodes
        .iter()
        .map(|&theta| {
            let mut weights = vec![0.0; s];
            interpolant.weights(theta, &mut weights);
            weights.iter().map(|w| w / theta).collect()
        })
        .collect();
    let powers: Vec<Vec<f64>> = (0..s)
        .map(|i| {
            let mut table: Vec<f64> = values.iter().map(|at| at[i]).collect();
            for level in 1..degree {
                for j in (level..degree).rev() {
                    table[j] = (table[j] - table[j - 1]) / (nodes[j] - nodes[j - level]);
                }
            }
            (0..degree).rev().fold(vec![0.0; degree], |sum, j| {
                (0..degree)
                    .map(|n| if n == 0 { 0.0 } else { sum[n - 1] } - nodes[j] * sum[n] + f64::from(n == 0) * table[j])
                    .collect()
            })
        })
        .collect();
    let powers: Vec<&[f64]> = powers.iter().map(Vec::as_slice).collect();
    Tableau::new("own", &rows, tableau.b, tableau.c)?.with_dense(&[], &powers)
}
