//! Rosenbrock methods on tensors: values of plain states, exact gradients, bits that no setting changes, refusals.
//!
//! Ranges: a drawn problem of three components with one rate in `1..1e4`, with and without t in the field; both
//! directions of time; Rodas5P and Rosenbrock23; rtol in `1e-8..1e-4`; up to 3 saved times, in f64 and f32 leaves.

use crate::adjoint::rosenbrock::COLUMNS_MAX;
use crate::adjoint::{Adjoint, Batching, TensorSolution};
use crate::array::DType;
use crate::ode::tests::draw::{Draw, num_cases};
use crate::ode::{Event, Mass, Method, Ode, SaveAt, StepTo};
use crate::tensor::{Tensor, grad, hvp, jit, jvp};
use crate::vector_field;

vector_field! {
    /// `sign` is the direction of time, in which the fast component decays.
    struct Fast<R> { rate: R, force: R, sign: f64, drive: f64 }
    fn eval(&self, t, y: &[R; 3]) -> [R; 3] {
        [
            y[1] - 0.2 * self.sign * y[0],
            -2.0 * y[0] + self.drive * (1.3 * t).sin() + 0.1 * y[2] * y[0],
            -self.sign * self.rate * (y[2] - (y[0] * 0.5).cos() - self.force * self.drive * t),
        ]
    }
}

/// The same field, of rows `[.., 3]`, with the parameters rate and force.
fn rates(of: &Fast, p: &Tensor, t: &Tensor, y: &Tensor) -> Tensor {
    let axis = y.rank() - 1;
    let [a, b, c] = [0, 1, 2].map(|i: usize| y.slice(axis, i..i + 1));
    let third = (&c - (&a * 0.5).cos() - p.index(1) * (t * of.drive)) * (p.index(0) * -of.sign);
    Tensor::concat(
        &[&(&b - &a * (0.2 * of.sign)), &(&a * -2.0 + (t * 1.3).sin() * of.drive + &c * &a * 0.1), &third],
        axis,
    )
}

struct Case {
    field: Fast,
    method: Method,
    t1: f64,
    rtol: f64,
    saved: Vec<f64>,
    y0: [f64; 3],
}

impl Case {
    fn draw(draw: &mut Draw) -> Case {
        let sign = if draw.below(3) == 0 { -1.0 } else { 1.0 };
        let drive = if draw.below(3) == 0 { 0.0 } else { 1.0 };
        let field = Fast { rate: draw.decade(0.0, 4.0), force: draw.uniform(-1.0, 1.0), sign, drive };
        let method = draw.one(&[Method::Rodas5P, Method::Rodas5P, Method::Rosenbrock23]);
        let t1 = sign * draw.uniform(0.3, 2.0);
        let mut saved: Vec<f64> = (0..draw.below(4)).map(|_| t1 * draw.uniform(0.0, 1.0)).collect();
        saved.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let least = if method == Method::Rodas5P { -8.0 } else { -6.0 };
        let y0 = std::array::from_fn(|_| draw.uniform(-1.0, 1.0));
        Case { field, method, t1, rtol: draw.decade(least, -4.0), saved, y0 }
    }

    fn parameters(&self) -> Tensor {
        Tensor::from([self.field.rate, self.field.force])
    }

    /// The solve by the steps `ts`, or by adaptive ones.
    fn solve(&self, p: &Tensor, y0: &Tensor, ts: &[f64], adjoint: Adjoint) -> TensorSolution<Tensor> {
        let ode = Ode::new(|t: Tensor, y: &Tensor| rates(&self.field, p, &t, y)).method(self.method);
        let ode = ode.adjoint(adjoint).save_at(SaveAt::ts(&self.saved).and_t1());
        let ode = match ts {
            [] => ode.rtol(self.rtol).atol(self.rtol),
            ts => ode.controller(StepTo { ts: ts.to_vec() }),
        };
        ode.solve(0.0, self.t1, y0).unwrap()
    }

    /// A sum in which every saved number has a different weight.
    fn loss(&self, p: &Tensor, y0: &Tensor, ts: &[f64], adjoint: Adjoint) -> Tensor {
        let ys = self.solve(p, y0, ts, adjoint).ys;
        (&ys * weights(ys.size()).reshape(ys.shape().clone())).sum()
    }
}

pub(super) fn weights(n: usize) -> Tensor {
    (Tensor::iota(DType::F64, [n], 0) + 1.0).cos()
}

/// The largest difference relative to the size of all numbers.
pub(super) fn off(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let size = b.iter().fold(1e-3_f64, |size, x| size.max(x.abs()));
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / size
}

#[test]
fn solves_have_the_values_and_counters_of_plain_states() {
    let (mut draw, mut seen, mut same) = (Draw(381), [0; 4], 0);
    let num = num_cases(12);
    for case in 0..num {
        let c = Case::draw(&mut draw);
        let plain = Ode::from_generic(c.field.clone()).method(c.method).rtol(c.rtol).atol(c.rtol);
        let plain = plain.save_at(SaveAt::ts(&c.saved).and_t1()).solve(0.0, c.t1, c.y0).unwrap();
        let traced = c.solve(&c.parameters(), &Tensor::from(c.y0), &[], Adjoint::default());
        // A step at the edge of its tolerance may be accepted by one of the two.
        let (steps, want) = (traced.stats.num_accepted.item() as u64, plain.stats.num_accepted);
        assert!(steps.abs_diff(want) <= 1 + want / 50, "case {case}: {steps} steps for {want}");
        let at = |i: usize| traced.ys.to_vec()[i * 3..][..3].to_vec();
        let allowed = if steps == want { 1e-9 } else { 10.0 * c.rtol };
        for (i, y) in plain.ys.iter().enumerate() {
            assert!(off(&at(i), y) < allowed, "case {case}, {}: {:?} for {y:?}", c.method, at(i));
        }
        same += usize::from(steps == want);
        let stats = &traced.stats;
        assert_eq!(stats.num_jac_evals.item(), stats.num_steps.item());
        assert_eq!(stats.num_factorizations.item(), stats.num_steps.item());
        let found =
            [c.field.drive == 0.0, c.t1 < 0.0, c.method == Method::Rosenbrock23, c.field.rate > 100.0];
        seen.iter_mut().zip(found).for_each(|(seen, found)| *seen += usize::from(found));
    }
    assert!(seen.iter().all(|&n| n > 0) && same * 10 >= num * 8, "{seen:?}, {same} of {num}");
}

#[test]
fn gradients_are_those_of_forward_sensitivities_on_the_same_steps() {
    let mut draw = Draw(382);
    let mut worst = 0.0_f64;
    for case in 0..num_cases(8) {
        let c = Case::draw(&mut draw);
        let plain = Ode::from_generic(c.field.clone()).method(c.method).rtol(c.rtol).atol(c.rtol);
        let ts = plain.solve(0.0, c.t1, c.y0).unwrap().step_times;
        let on_steps =
            Ode::from_generic(c.field.clone()).method(c.method).controller(StepTo { ts: ts.clone() });
        let s = on_steps
            .save_at(SaveAt::ts(&c.saved).and_t1())
            .forward_sensitivity()
            .solve(0.0, c.t1, c.y0)
            .unwrap();
        let weights = weights(s.ys.len() * 3).to_vec();
        let weighed = |of: &dyn Fn(usize) -> [f64; 3]| -> f64 {
            (0..s.ys.len()).map(|i| (0..3).map(|j| weights[i * 3 + j] * of(i)[j]).sum::<f64>()).sum()
        };
        let mut want = vec![weighed(&|i| s.dys_dp[i].rate), weighed(&|i| s.dys_dp[i].force)];
        want.extend((0..3).map(|k| weighed(&|i| s.dys_dy0[i].map(|row| row[k]))));
        let at = (c.parameters(), Tensor::from(c.y0));
        let loss = |x: &(Tensor, Tensor)| c.loss(&x.0, &x.1, &ts, Adjoint::default());
        let (by_p, by_y0) = grad(loss, &at);
        // The rates differ by four orders of magnitude, so the derivative is by their logarithm.
        let scaled = |mut g: Vec<f64>| {
            g[0] *= c.field.rate;
            g
        };
        let got = scaled([by_p.to_vec(), by_y0.to_vec()].concat());
        let want = scaled(want);
        worst = worst.max(off(&got, &want));
        assert!(off(&got, &want) < 1e-11, "case {case}, {}: {got:?} for {want:?}", c.method);
        let v = (Tensor::from([0.7 * c.field.rate, 0.4]), Tensor::from([1.0, -0.3, 0.2]));
        let along = jvp(loss, &at, &v).1.item();
        let directions = [0.7, 0.4, 1.0, -0.3, 0.2];
        let sum: f64 = want.iter().zip(directions).map(|(g, v)| g * v).sum();
        assert!(
            (along - sum).abs() < 1e-11 * want.iter().fold(1.0, |s: f64, x| s.max(x.abs())),
            "case {case}: {along} for {sum}"
        );
    }
    assert!(worst > 0.0);
}

#[test]
fn no_number_of_checkpoints_changes_a_bit() {
    let mut draw = Draw(383);
    for _ in 0..num_cases(3) {
        let mut c = Case::draw(&mut draw);
        c.rtol = c.rtol.max(1e-5);
        let gradient = |adjoint: Adjoint| {
            let at = (c.parameters(), Tensor::from(c.y0));
            let (p, y0) = grad(|x: &(Tensor, Tensor)| c.loss(&x.0, &x.1, &[], adjoint), &at);
            [p.to_vec(), y0.to_vec()].concat()
        };
        let want = gradient(Adjoint::Direct);
        for checkpoints in [1, 2, 3, 7, 1000] {
            assert_eq!(
                gradient(Adjoint::recursive_checkpoint(checkpoints)),
                want,
                "{checkpoints} checkpoints"
            );
        }
        assert_eq!(gradient(Adjoint::default()), want);
    }
}

#[test]
fn rows_in_lockstep_have_the_bits_of_rows_alone() {
    let mut draw = Draw(384);
    for _ in 0..num_cases(2) {
        let mut c = Case::draw(&mut draw);
        c.rtol = c.rtol.max(1e-6);
        let y0: Vec<f64> = (0..12).map(|_| draw.uniform(-2.0, 2.0)).collect();
        let y0 = Tensor::from_vec([4, 3], y0);
        let solve = |p: &Tensor, y0: &Tensor, batching: Batching| {
            let ode = Ode::new(|t: Tensor, y: &Tensor| rates(&c.field, p, &t, y)).method(c.method);
            ode.rtol(c.rtol).atol(c.rtol).batching(batching).solve(0.0, c.t1, y0).unwrap()
        };
        let all = solve(&c.parameters(), &y0, Batching::PerRow);
        let by_y0 = |y0: &Tensor, batching| {
            grad(|y0: &Tensor| (solve(&c.parameters(), y0, batching).y1 * weights(3)).sum(), y0)
        };
        let gradient = by_y0(&y0, Batching::PerRow);
        assert_eq!(by_y0(&y0, Batching::Groups(1)).to_vec(), gradient.to_vec());
        for r in 0..4 {
            let alone = solve(&c.parameters(), &y0.slice(0, r..r + 1), Batching::Joint);
            assert_eq!(alone.y1.to_vec(), all.y1.index(r).to_vec());
            assert_eq!(alone.stats.num_steps.item(), all.stats.num_steps.to_vec()[r]);
            assert_eq!(by_y0(&y0.slice(0, r..r + 1), Batching::Joint).to_vec(), gradient.index(r).to_vec());
        }
    }
}

#[test]
fn no_number_of_threads_changes_a_bit() {
    let mut draw = Draw(386);
    for batching in [Batching::Groups(1), Batching::Groups(3), Batching::PerRow, Batching::Joint] {
        let mut c = Case::draw(&mut draw);
        c.rtol = c.rtol.max(1e-5);
        let rows = if batching == Batching::Joint { 3 } else { 17 };
        let y0 = (0..3 * rows).map(|_| draw.uniform(-2.0, 2.0)).collect::<Vec<_>>();
        let y0 = Tensor::from_vec([rows, 3], y0);
        let has_mass = batching == Batching::Groups(1);
        let loss = |(p, y0): &(Tensor, Tensor)| {
            let ode = Ode::new(|t: Tensor, y: &Tensor| rates(&c.field, p, &t, y)).method(c.method);
            let ode = ode.rtol(c.rtol).atol(c.rtol).batching(batching);
            let ode = if has_mass { ode.mass_matrix(Mass::diagonal([2.0, 1.0, 0.5])) } else { ode };
            (ode.solve(0.0, c.t1, y0).unwrap().y1 * weights(3)).sum()
        };
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let (p, y0) = pool.install(|| grad(loss, &(c.parameters(), y0.clone())));
            [p.to_vec(), y0.to_vec()].concat()
        };
        let one = on(1);
        for threads in [2, 5] {
            assert_eq!(on(threads), one, "{batching:?}, {threads} threads");
        }
    }
}

#[test]
fn second_derivatives_are_those_of_differences() {
    let mut c = Case::draw(&mut Draw(385));
    (c.method, c.t1, c.field.sign, c.field.rate) = (Method::Rodas5P, 0.5, 1.0, 30.0);
    c.saved = vec![];
    let ts: Vec<f64> = (0..=5).map(|i| 0.1 * f64::from(i)).collect();
    let y0 = Tensor::from(c.y0);
    let loss = |p: &Tensor| c.loss(p, &y0, &ts, Adjoint::Direct).square();
    let (p, v) = (c.parameters(), Tensor::from([1.0, 0.3]));
    let gradient = |h: f64| grad(loss, &(&p + &v * h)).to_vec();
    let (up, down) = (gradient(1e-4), gradient(-1e-4));
    let want: Vec<f64> = up.iter().zip(&down).map(|(a, b)| (a - b) / 2e-4).collect();
    let got = hvp(loss, &p, &v).1.to_vec();
    assert!(off(&got, &want) < 1e-6, "{got:?} for {want:?}");
    let twice = grad(|p: &Tensor| (grad(loss, p) * &v).sum(), &p).to_vec();
    assert!(off(&twice, &want) < 1e-6, "{twice:?} for {want:?}");
}

/// Ranges: 17 rows of three components, as one system of 51 unknowns, whose gradient goes through products, and as rows
/// of three, whose gradient goes through columns; with and without a mass matrix; drawn steps.
#[test]
fn a_large_system_has_the_derivatives_of_its_parts() {
    let (mut draw, num) = (Draw(386), 17);
    assert!(3 * num > COLUMNS_MAX);
    for case in 0..num_cases(2) {
        let c = Case::draw(&mut draw);
        let y0: Vec<f64> = (0..num * 3).map(|_| draw.uniform(-1.0, 1.0)).collect();
        let y0 = Tensor::from(y0).reshape([num, 3]);
        let steps: Vec<f64> = (0..=4).map(|i| f64::from(i) * 0.1 * c.t1).collect();
        let m: [[f64; 3]; 3] = std::array::from_fn(|i| {
            std::array::from_fn(|j| f64::from(u8::from(i == j)) + draw.uniform(-0.2, 0.2))
        });
        let all = |i: usize, j: usize| if i / 3 == j / 3 { m[i % 3][j % 3] } else { 0.0 };
        let of_all = (0..num * 3).map(|i| (0..num * 3).map(|j| all(i, j)).collect::<Vec<_>>());
        let of_all = Mass::dense(of_all.collect::<Vec<_>>());
        let derivatives = |batching, mass: Mass| {
            let loss = |p: &Tensor| {
                let ode = Ode::new(|t: Tensor, y: &Tensor| rates(&c.field, p, &t, y)).method(c.method);
                let ode = ode.controller(StepTo { ts: steps.clone() }).batching(batching);
                let ode = if case % 2 == 0 { ode.mass_matrix(mass.clone()) } else { ode };
                let y1 = ode.solve(0.0, steps[4], &y0).unwrap().y1;
                (&y1 * weights(num * 3).reshape([num, 3])).sum().square()
            };
            let (gradient, second) = hvp(loss, &c.parameters(), &Tensor::from([0.3, 1.0]));
            [gradient.to_vec(), second.to_vec()]
        };
        let got = derivatives(Batching::Joint, of_all);
        let want = derivatives(Batching::PerRow, Mass::dense(m));
        for (got, want) in got.iter().zip(&want) {
            assert!(off(got, want) < 1e-9, "case {case}: {got:?} for {want:?}");
        }
    }
}

#[test]
fn a_jitted_solve_with_an_event_and_a_reset_is_differentiated() {
    // y' = -k y until it falls to 1/2, where it becomes 1 again; at t = 1 it is exp(-k (1 - s)), with s = ln 2 / k
    let solved = |k: &Tensor| {
        let ode = Ode::new(|_t, y: &Tensor| -(k * y)).method(Method::Rodas5P).rtol(1e-10).atol(1e-12);
        let ode = ode.on_event(Event::falling(), |_t, y: &Tensor| y.index(0) - 0.5, |_t, y| *y = &*y * 2.0);
        Ok(ode.max_events(1).solve(0.0, 1.0, Tensor::from([1.0]))?.y1.sum())
    };
    let value = jit(move |k: Tensor| {
        let (y, d) = jvp(solved, &k, &Tensor::from(1.0))?;
        Ok((y, d, grad(solved, &k)?))
    });
    let (y, forward, reverse) = value.call(1.2).unwrap();
    let want = 2.0 * (-1.2_f64).exp();
    assert!((y.item() - want).abs() < 1e-8, "{}", y.item());
    assert!((forward.item() + want).abs() < 1e-7 && (reverse.item() + want).abs() < 1e-7);
}

#[test]
fn states_in_single_precision_and_of_several_leaves_are_solved() {
    let field = |_t: Tensor, y: &(Tensor, Tensor)| {
        let fast = (y.0.cast(DType::F32).sum() - &y.1) * 1e3;
        (-&y.0, fast)
    };
    let y0 = (Tensor::from([1.0, 0.5]), Tensor::from([2.0, 0.0]).cast(DType::F32));
    let y1 = Ode::new(field).method(Method::Rodas5P).rtol(1e-5).atol(1e-6).solve(0.0, 1.0, &y0).unwrap().y1;
    let decayed = (-1.0_f64).exp();
    assert!(off(&y1.0.to_vec(), &[decayed, 0.5 * decayed]) < 1e-5, "{:?}", y1.0.to_vec());
    assert!(
        off(&y1.1.to_vec(), &[1.5 * decayed; 2]) < 1e-2 && y1.1.dtype() == DType::F32,
        "{:?}",
        y1.1.to_vec()
    );
}

#[test]
fn methods_and_adjoints_without_stiff_steps_are_refused_by_name() {
    let solve = |method: Method, adjoint: Adjoint| {
        let ode = Ode::new(|_t, y: &Tensor| -y).method(method).adjoint(adjoint);
        ode.solve(0.0, 1.0, Tensor::from(1.0)).map(|_| ()).unwrap_err().to_string()
    };
    for method in [Method::Rkc2, Method::AutoTsit5Rodas5P] {
        let text = solve(method, Adjoint::default());
        assert!(
            text.starts_with(&format!("{method:?} does not run on tensors: use Method::Rodas5P")),
            "{text}"
        );
    }
    for adjoint in [Adjoint::backsolve(), Adjoint::reversible()] {
        for method in [Method::Rodas5P, Method::Rosenbrock23] {
            let text = solve(method, adjoint);
            let name = if matches!(adjoint, Adjoint::Reversible { .. }) { "Reversible" } else { "Backsolve" };
            assert!(text.starts_with(&format!("{method:?} does not run with Adjoint::{name}")), "{text}");
        }
    }
}
