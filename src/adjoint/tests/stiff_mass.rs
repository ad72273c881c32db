//! Mass matrices on tensors: values of plain states, gradients of forward sensitivities, states that resets make
//! consistent again, and inconsistent ones refused.
//!
//! Ranges: a drawn problem of three components whose third equation is algebraic, differential, or a combination with the
//! first two; dense and diagonal M; both directions of time; Rodas5P and Rosenbrock23; up to 3 saved times.

use super::stiff_methods::{off, weights};
use crate::adjoint::{Adjoint, Batching};
use crate::array::DType;
use crate::ode::tests::draw::{Draw, num_cases};
use crate::ode::{Event, Mass, Method, Ode, Outcome, SaveAt, StepTo};
use crate::tensor::{Tensor, grad, jit, jvp};
use crate::vector_field;

vector_field! {
    /// `M y' = A f(y)` for an invertible A: the third row of f is 0 where it is algebraic.
    struct Mixed<R> { rate: R, pull: R, sign: f64, mix: [f64; 9] }
    fn eval(&self, t, y: &[R; 3]) -> [R; 3] {
        let f = [
            self.sign * (y[2] - self.rate * y[0]),
            self.sign * (self.pull * y[0] - y[1]) + 0.1 * t.sin(),
            y[2] + 0.2 * y[2] * y[2] * y[2] - y[0] * y[1],
        ];
        std::array::from_fn(|i| self.mix[3 * i] * f[0] + self.mix[3 * i + 1] * f[1] + self.mix[3 * i + 2] * f[2])
    }
}

fn rates(of: &Mixed, p: &Tensor, t: &Tensor, y: &Tensor) -> Tensor {
    let [a, b, c] = [0, 1, 2].map(|i: usize| y.index(i));
    let f = Tensor::stack(&[
        &((&c - p.index(0) * &a) * of.sign),
        &((p.index(1) * &a - &b) * of.sign + t.sin() * 0.1),
        &(&c + c.powi(3) * 0.2 - &a * &b),
    ]);
    Tensor::from(of.mix).reshape([3, 3]).matmul(&f)
}

/// The z for which the third equation holds.
fn consistent(a: f64, b: f64) -> f64 {
    let mut z = a * b;
    (0..50).for_each(|_| z -= (z + 0.2 * z.powi(3) - a * b) / (1.0 + 0.6 * z * z));
    z
}

struct Case {
    field: Mixed,
    mass: Vec<[f64; 3]>,
    method: Method,
    t1: f64,
    saved: Vec<f64>,
    y0: [f64; 3],
}

impl Case {
    fn draw(draw: &mut Draw) -> Case {
        let sign = if draw.below(3) == 0 { -1.0 } else { 1.0 };
        let is_dense = draw.coin();
        // Near the identity, so A is invertible.
        let mix: [f64; 9] = std::array::from_fn(|k| {
            let of_diagonal = if k % 4 == 0 { 1.0 } else { 0.0 };
            if is_dense { of_diagonal + draw.uniform(-0.3, 0.3) } else { of_diagonal }
        });
        // M = A diag(1, 1, 0): its rows depend on each other, and no row is 0.
        let mass = (0..3).map(|i| [mix[3 * i], mix[3 * i + 1], 0.0]).collect();
        let field = Mixed { rate: draw.uniform(0.5, 3.0), pull: draw.uniform(-1.0, 1.0), sign, mix };
        let t1 = sign * draw.uniform(0.3, 1.5);
        let mut saved: Vec<f64> = (0..draw.below(4)).map(|_| t1 * draw.unit()).collect();
        saved.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let (a, b) = (draw.uniform(0.3, 1.0), draw.uniform(-1.0, 1.0));
        let method = draw.one(&[Method::Rodas5P, Method::Rodas5P, Method::Rosenbrock23]);
        Case { field, mass, method, t1, saved, y0: [a, b, consistent(a, b)] }
    }

    fn mass(&self) -> Mass {
        Mass::dense(self.mass.clone())
    }

    fn loss(&self, p: &Tensor, y0: &Tensor, ts: &[f64]) -> Tensor {
        let ode = Ode::new(|t: Tensor, y: &Tensor| rates(&self.field, p, &t, y)).method(self.method);
        let ode = ode.mass_matrix(self.mass()).save_at(SaveAt::ts(&self.saved).and_t1());
        let ode = match ts {
            [] => ode.rtol(1e-6).atol(1e-8),
            ts => ode.controller(StepTo { ts: ts.to_vec() }),
        };
        let ys = ode.solve(0.0, self.t1, y0).unwrap().ys;
        (&ys * weights(ys.size()).reshape(ys.shape().clone())).sum()
    }
}

#[test]
fn drawn_algebraic_equations_have_the_values_and_gradients_of_plain_states() {
    let (mut draw, mut seen) = (Draw(391), [0; 3]);
    for case in 0..num_cases(8) {
        let c = Case::draw(&mut draw);
        let plain = || Ode::from_generic(c.field.clone()).method(c.method).mass_matrix(c.mass());
        let adaptive = plain().rtol(1e-6).atol(1e-8).save_at(SaveAt::ts(&c.saved).and_t1());
        let solved = adaptive.solve(0.0, c.t1, c.y0).unwrap();
        let (p, y0) = (Tensor::from([c.field.rate, c.field.pull]), Tensor::from(c.y0));
        let numbers = weights(3 * solved.ys.len()).to_vec();
        let want: f64 = solved.ys.iter().flatten().zip(&numbers).map(|(y, w)| y * w).sum();
        let got = c.loss(&p, &y0, &[]).item();
        assert!((got - want).abs() < 1e-6, "case {case}, {}: {got} for {want}", c.method);

        let ts = solved.step_times;
        let on_steps = plain().controller(StepTo { ts: ts.clone() }).save_at(SaveAt::ts(&c.saved).and_t1());
        let s = on_steps.forward_sensitivity().solve(0.0, c.t1, c.y0).unwrap();
        let weighed = |of: &dyn Fn(usize) -> [f64; 3]| -> f64 {
            (0..s.ys.len()).map(|i| (0..3).map(|j| numbers[i * 3 + j] * of(i)[j]).sum::<f64>()).sum()
        };
        let want = [weighed(&|i| s.dys_dp[i].rate), weighed(&|i| s.dys_dp[i].pull)];
        let got = grad(|p: &Tensor| c.loss(p, &y0, &ts), &p).to_vec();
        // The algebraic component at t0 does not depend on the parameters: on tensors y0 is a constant.
        assert!(off(&got, &want) < 1e-10, "case {case}, {}: {got:?} for {want:?}", c.method);
        let found = [c.t1 < 0.0, c.method == Method::Rosenbrock23, c.field.mix[1] != 0.0];
        seen.iter_mut().zip(found).for_each(|(seen, found)| *seen += usize::from(found));
    }
    assert!(seen.iter().all(|&n| n > 0), "{seen:?}");
}

/// A charge q that decays through a current i with 0 = i - k q, and is halved whenever it falls to `low`.
fn halved(k: &Tensor, low: f64) -> crate::Result<Tensor> {
    let field = |_t: Tensor, y: &Tensor| Tensor::stack(&[&-y.index(1), &(y.index(1) - k * y.index(0))]);
    let ode = Ode::new(field)
        .method(Method::Rodas5P)
        .mass_matrix(Mass::diagonal([1.0, 0.0]))
        .rtol(1e-9)
        .atol(1e-11);
    let doubled = |_t, y: &mut Tensor| *y = Tensor::stack(&[&(y.index(0) * 2.0), &y.index(1)]);
    let ode = ode.on_event(Event::falling(), move |_t, y: &Tensor| y.index(0) - low, doubled).max_events(8);
    Ok(ode.solve(0.0, 2.0, Tensor::stack(&[&(k * 0.0 + 1.0), k]))?.y1)
}

#[test]
fn a_reset_that_breaks_the_equations_is_made_consistent_with_its_derivative() {
    for k in [0.9, 1.3] {
        // q1 = 2^n exp(-2 k), i1 = k q1
        let n = (2.0 * k / 2.0_f64.ln()).floor();
        let q1 = 2.0_f64.powf(n) * (-2.0 * k).exp();
        let y1 = halved(&Tensor::from(k), 0.5).unwrap().to_vec();
        assert!(off(&y1, &[q1, k * q1]) < 1e-7, "{y1:?}");
        let weighed = |k: &Tensor| Ok((halved(k, 0.5)? * Tensor::from([1.0, 0.3])).sum());
        let want = -2.0 * q1 + 0.3 * (q1 - 2.0 * k * q1);
        let forward =
            jit(move |k: Tensor| jvp(weighed, &k, &Tensor::from(1.0)).map(|(_, d)| d)).call(k).unwrap();
        let reverse = grad(weighed, &Tensor::from(k)).unwrap().item();
        assert!(
            (forward.item() - want).abs() < 1e-6 && (reverse - want).abs() < 1e-6,
            "{reverse} for {want}"
        );
    }
}

#[test]
fn an_inconsistent_start_ends_the_solve_and_names_its_equation() {
    let solve = |z: f64| {
        let field = |_t: Tensor, y: &Tensor| {
            let [a, b, c] = [0, 1, 2].map(|i: usize| y.index(i));
            Tensor::stack(&[&-&a, &(&b - &a * 2.0), &(c.powi(3) + &c - &a)])
        };
        let ode = Ode::new(field).method(Method::Rodas5P).mass_matrix(Mass::diagonal([1.0, 0.0, 0.0]));
        ode.rtol(1e-6)
            .atol(1e-8)
            .allow_incomplete()
            .solve(0.0, 1.0, Tensor::from([2.0, 4.0, z]))
            .unwrap()
            .outcome()
    };
    assert_eq!(solve(1.0), Outcome::Completed);
    assert_eq!(solve(1.0 + 1e-6), Outcome::Completed);
    assert!(matches!(solve(1.5), Outcome::Inconsistent { equation: 2, t: 0.0, .. }), "{:?}", solve(1.5));
    assert!(!solve(f64::NAN).is_success());
    assert!(solve(1.5).to_string().starts_with("y0 violates algebraic equation 2 at t0=0"), "{}", solve(1.5));
}

#[test]
fn equations_that_do_not_determine_a_component_are_named() {
    // y0' = -y1, 0 = y0 - 1: index 2
    let field = |_t: Tensor, y: &Tensor| Tensor::stack(&[&-y.index(1), &(y.index(0) - 1.0)]);
    let ode = Ode::new(field).method(Method::Rodas5P).mass_matrix(Mass::diagonal([1.0, 0.0])).dt0(0.1);
    let outcome = ode.allow_incomplete().solve(0.0, 1.0, Tensor::from([1.0, 0.0])).unwrap().outcome();
    assert!(matches!(outcome, Outcome::SingularMatrix { component: 1, t: 0.0, .. }), "{outcome:?}");
    let text = "the algebraic equations do not determine y[1] at t0=0";
    assert!(outcome.to_string().starts_with(text), "{outcome}");
}

#[test]
fn newton_steps_are_shortened_and_stop_at_rounding_errors() {
    // A diode behind a resistor: whole steps would lower v by 0.025 each. V jumps from 0 to 5 at t = 1/2.
    let current = |y: &Tensor| ((y.index(1) / 0.025).exp() - 1.0) * 1e-14;
    let field = move |_t: Tensor, y: &Tensor| {
        let through = (y.index(0) - y.index(1)) / 1e3;
        Tensor::stack(&[&(y.index(0) * 0.0), &(through - current(y)), &(y.index(2) * 0.0 + 1.0)])
    };
    let ode = Ode::new(field).method(Method::Rodas5P).mass_matrix(Mass::diagonal([1.0, 0.0, 1.0]));
    let jump = |_t, y: &mut Tensor| *y = Tensor::stack(&[&(y.index(0) + 5.0), &y.index(1), &y.index(2)]);
    let ode = ode.on_event(Event::rising(), |_t, y: &Tensor| y.index(2) - 0.5, jump).max_events(2);
    let y1 = ode.solve(0.0, 1.0, Tensor::from([0.0, 0.0, 0.0])).unwrap().y1;
    let off = (5.0 - y1.index(1).item()) / 1e3 - current(&y1).item();
    assert!(off.abs() < 1e-8 && y1.index(1).item() > 0.5, "{y1:?}");

    // In f32, one unit in the last place of 22 is above a thousandth of the tolerance.
    let k = 22.2_f64;
    let field = move |_t: Tensor, y: &Tensor| Tensor::stack(&[&-y.index(0), &((y.index(1) + 3.0).exp() - k)]);
    let ode = Ode::new(field).method(Method::Rodas5P).mass_matrix(Mass::diagonal([1.0, 0.0]));
    let y0 = Tensor::from([1.0, k.ln() - 3.0]).cast(DType::F32);
    assert_eq!(ode.solve(0.0, 1.0, y0).unwrap().outcome(), Outcome::Completed);
}

#[test]
fn a_state_after_the_last_reset_is_not_corrected() {
    // After the reset, 0 = c^2 + 1 has no solution. If the reset ends the solve, nothing is solved, as on plain states.
    let solve = |event: Event| {
        let field =
            |_t: Tensor, y: &Tensor| Tensor::stack(&[&-y.index(0), &(y.index(1).square() - y.index(0))]);
        let ode = Ode::new(field)
            .method(Method::Rodas5P)
            .mass_matrix(Mass::diagonal([1.0, 0.0]))
            .allow_incomplete();
        let reset = |_t, y: &mut Tensor| *y = Tensor::stack(&[&(y.index(0) - 1.5), &y.index(1)]);
        let ode = ode.on_event(event, |_t, y: &Tensor| y.index(0) - 0.5, reset).max_events(3);
        ode.solve(0.0, 2.0, Tensor::from([1.0, 1.0])).unwrap()
    };
    for (event, ends) in [(Event::falling().terminal(), true), (Event::falling(), false)] {
        let solution = solve(event);
        assert!(off(&solution.y1.to_vec(), &[-1.0, 0.5_f64.sqrt()]) < 1e-5, "{:?}", solution.y1);
        let outcome = solution.outcome();
        assert_eq!(matches!(outcome, Outcome::Event { .. }), ends, "{outcome:?}");
        assert_eq!(matches!(outcome, Outcome::Inconsistent { equation: 1, .. }), !ends, "{outcome:?}");
    }
}

#[test]
fn settings_that_a_mass_matrix_excludes_are_refused() {
    let text = |method: Method, jumps: &[f64], adjoint: Adjoint| {
        let ode = Ode::new(|_t, y: &Tensor| -y).method(method).adjoint(adjoint).discontinuities(jumps);
        let ode = ode.mass_matrix(Mass::diagonal([1.0, 0.0]));
        ode.solve(0.0, 1.0, Tensor::from([1.0, 0.0])).map(|_| ()).unwrap_err().to_string()
    };
    assert!(
        text(Method::Tsit5, &[], Adjoint::default()).starts_with("Tsit5 does not run with `mass_matrix`")
    );
    let jumps = text(Method::Rodas5P, &[0.5], Adjoint::default());
    assert!(jumps.contains("a singular `mass_matrix` and `discontinuities`"), "{jumps}");
    let uneven = Ode::new(|_t, y: &Tensor| -y).method(Method::Rodas5P).batching(Batching::Groups(2));
    let uneven =
        uneven.mass_matrix(Mass::diagonal([1.0; 4])).solve(0.0, 1.0, Tensor::zeros([3, 2]).cast(DType::F64));
    assert!(uneven.map(|_| ()).unwrap_err().to_string().contains("smaller last group"));
    let ode = Ode::new(|_t, y: &Tensor| -y).method(Method::Rodas5P).mass_matrix(Mass::diagonal([1.0]));
    let size = ode.solve(0.0, 1.0, Tensor::from([1.0, 0.0])).map(|_| ()).unwrap_err().to_string();
    assert!(size.contains("mass_matrix"), "{size}");
}

#[test]
fn rows_with_algebraic_equations_have_the_bits_of_rows_alone() {
    let mut draw = Draw(392);
    for _ in 0..num_cases(2) {
        let c = Case::draw(&mut draw);
        let rows: Vec<f64> = (0..3)
            .flat_map(|_| {
                let (a, b) = (draw.uniform(0.3, 1.0), draw.uniform(-1.0, 1.0));
                [a, b, consistent(a, b)]
            })
            .collect();
        let (y0, p) = (Tensor::from_vec([3, 3], rows), Tensor::from([c.field.rate, c.field.pull]));
        let solve = |p: &Tensor, y0: &Tensor, batching: Batching| {
            let field = |t: Tensor, y: &Tensor| rates(&c.field, p, &t, &y.index(0)).expand_dims(0);
            let ode = Ode::new(field).method(c.method).mass_matrix(c.mass()).rtol(1e-5).atol(1e-7);
            ode.batching(batching).solve(0.0, c.t1, y0).unwrap().y1
        };
        let all = solve(&p, &y0, Batching::PerRow);
        assert_eq!(all.to_vec(), solve(&p, &y0, Batching::Groups(1)).to_vec());
        for r in 0..3 {
            assert_eq!(all.index(r).to_vec(), solve(&p, &y0.slice(0, r..r + 1), Batching::Joint).to_vec());
        }
        let by = |batching| grad(|p: &Tensor| solve(p, &y0, batching).sum(), &p).to_vec();
        assert!(off(&by(Batching::PerRow), &by(Batching::Groups(1))) < 1e-12);
    }
}
