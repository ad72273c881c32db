//! What tolerances guarantee: the log-density in any dimension, the path regularization, and rows independent
//! of others.

use super::*;
use crate::tensor::jit;

tree! {
    /// `y' = size cos(60 t^2 + 3 t) y / dim`: its divergence is rougher than its velocity, more so for larger
    /// dim.
    struct Chirp { size: Tensor, dim: usize }
}

impl VelocityField for Chirp {
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor {
        y * ((t * 3.0 + t.square() * 60.0).cos() * &self.size / self.dim as f64)
    }
    fn dim(&self) -> usize {
        self.dim
    }
}

fn chirp(dim: usize) -> Cnf<Chirp> {
    // The Jacobian is diagonal, so one Rademacher probe is exact.
    let flow = Cnf::new(Chirp { size: Tensor::from(10.0), dim });
    flow.divergence(Divergence::hutchinson(ProbeDistribution::Rademacher)).rows_per_tile(8)
}

/// The largest error of log p at `tol`, in units of `atol + rtol |ln p(x) - ln p(z)|`, and the number of
/// steps.
fn errors_at(dim: usize, tol: f64) -> (f64, f64) {
    let x = Key::new(5).normal([8, dim]).cast(DType::F64) * 0.1;
    let solve = jit(|flow: Cnf<Chirp>, x: Tensor| flow.log_prob_with_stats(&x, &key()));
    let at = |tol: f64| solve.call(chirp(dim).rtol(tol).atol(tol), x.clone()).unwrap();
    let ((found, stats), (truth, _)) = (at(tol), at(1e-9));
    let change = &truth - StandardNormal::new(dim).log_prob(&x);
    (largest(&((found - truth) / (change.abs() * tol + tol))), stats.num_steps.item())
}

#[test]
fn a_tolerance_holds_the_log_density_in_any_number_of_dimensions() {
    for dim in [2, 64, 784] {
        for tol in [1e-3, 1e-4, 1e-5, 1e-6] {
            let (error, steps) = errors_at(dim, tol);
            assert!(error < 10.0, "{dim} dimensions, tolerance {tol}: {error} after {steps} steps");
        }
    }
}

tree! {
    /// `y' = size cos 40 t`, with known kinetic energy.
    struct Pulse { size: Tensor }
}

impl VelocityField for Pulse {
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor {
        y * 0.0 + (t * 40.0).cos() * &self.size
    }
    fn dim(&self) -> usize {
        64
    }
}

#[test]
fn a_tolerance_holds_what_paths_cost() {
    let flow = Cnf::new(Pulse { size: Tensor::from(0.1) });
    let flow = flow.divergence(Divergence::hutchinson(ProbeDistribution::Rademacher));
    let x = Key::new(5).normal([3, 64]).cast(DType::F64);
    let cost = |tol: f64| {
        let of = |kinetic: f64| {
            let flow = flow
                .clone()
                .rtol(tol)
                .atol(tol)
                .path_regularization(PathRegularization { kinetic, jacobian: 0.0 });
            flow.nll_loss(&x, &key()).unwrap().item()
        };
        of(50.0) - of(0.0)
    };
    // The integral of 0.64 cos(40 t)^2 over [0, 1], times 50.
    let want = 50.0 * 0.64 * (0.5 + 80.0_f64.sin() / 160.0);
    for tol in [1e-3, 1e-4, 1e-5] {
        let error = (cost(tol) - want).abs() / (tol + tol * want);
        assert!(error < 10.0, "{tol}: {error}");
    }
}

tree! {
    /// At rest for t above 0.5, else `y' = size |y|`, with |y| as a square root, whose derivative at 0 is NaN.
    struct Kink { size: Tensor }
}

impl VelocityField for Kink {
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor {
        t.gt(0.5).select(&(y * 0.0), &(y.square().sqrt() * &self.size))
    }
    fn dim(&self) -> usize {
        1
    }
}

#[test]
fn each_tolerance_is_set_by_itself() {
    let tolerances = |flow: Cnf<Kink>| match flow.settings.step_control {
        StepControl::Adaptive { rtol, atol } => [rtol, atol],
        StepControl::Fixed { .. } => panic!("the last setting is a tolerance"),
    };
    let flow = || Cnf::new(Kink { size: Tensor::from(1.0) });
    assert_eq!(tolerances(flow().rtol(1e-3)), [1e-3, 1e-5]);
    assert_eq!(tolerances(flow().atol(1e-7).rtol(1e-3)), [1e-3, 1e-7]);
    assert_eq!(tolerances(flow().fixed_steps(3).atol(1e-7)), [1e-5, 1e-7]);
}

#[test]
fn a_log_density_that_is_no_number_ends_a_solve_whatever_norm_it_has() {
    let flow = Cnf::new(Kink { size: Tensor::from(1.0) });
    for norm in [ErrorNorm::StateAndLogDensity, ErrorNorm::State] {
        let message = flow.clone().error_norm(norm).log_prob(&Tensor::from([[0.0]])).unwrap_err();
        assert!(message.to_string().contains("finite"), "{norm:?}: {message}");
    }
}

/// Rows that need different numbers of steps.
fn uneven() -> Tensor {
    Tensor::from([[0.3, -0.2], [9.0, -7.0], [0.01, 0.02], [-2.0, 4.0], [0.5, 0.5], [1.0, -3.0]])
}

#[test]
fn a_row_with_steps_of_its_own_has_the_same_bits_whatever_stands_beside_it() {
    let x = uneven();
    let reversed = x.take(&Tensor::from([5, 4, 3, 2, 1, 0]));
    let probes = [1, 2].map(|seed| Key::new(seed).rademacher([6, 2]).cast(DType::F64));
    for divergence in [Divergence::Exact, Divergence::hutchinson(ProbeDistribution::Rademacher)] {
        let flow = small().rtol(1e-8).atol(1e-8).divergence(divergence).rows_per_tile(6);
        let found = |flow: &Cnf<ConcatSquash>| {
            let log_prob = |x: &Tensor, at: &dyn Fn(&Tensor) -> Tensor| {
                let probes: Vec<Tensor> = probes.iter().map(at).collect();
                flow.log_prob_with_probes(x, &probes).unwrap().to_vec()
            };
            let together = log_prob(&x, &Tensor::clone);
            let mut back = log_prob(&reversed, &|e| e.take(&Tensor::from([5, 4, 3, 2, 1, 0])));
            back.reverse();
            let row = |i: usize| log_prob(&x.slice(0, i..i + 1), &|e| e.slice(0, i..i + 1))[0];
            (together, back, (0..6).map(row).collect::<Vec<_>>())
        };
        let (together, back, alone) = found(&flow.clone().per_row(true));
        assert_eq!((&together, &together), (&back, &alone), "{divergence:?}");
        let (shared, _, alone) = found(&flow);
        assert_ne!(shared, alone, "rows of a tile share their steps");
    }
}

#[test]
fn rows_with_steps_of_their_own_are_sampled_counted_and_differentiated() {
    let x = uneven();
    let flow = small().rtol(1e-8).atol(1e-8).rows_per_tile(6);
    let own = flow.clone().per_row(true);
    let pushed = own.push_forward(&x).unwrap();
    for i in 0..6 {
        assert_eq!(pushed.index(i).to_vec(), own.push_forward(&x.slice(0, i..i + 1)).unwrap().to_vec());
    }
    let steps = |x: &Tensor| own.log_prob_with_stats(x, &key()).unwrap().1.num_steps.item();
    let each = (0..6).map(|i| steps(&x.slice(0, i..i + 1))).collect::<Vec<f64>>();
    assert!((steps(&x) - each.iter().sum::<f64>() / 6.0).abs() < 1e-12);
    assert!(each.iter().any(|n| *n != each[0]), "{each:?}");
    let loss = |flow: &Cnf<ConcatSquash>| flow.nll_loss(&x, &key());
    let gradient = |flow: &Cnf<ConcatSquash>| {
        let (_, grads) = crate::tensor::value_and_grad(loss, flow).unwrap();
        grads.leaves()
    };
    let close = flow.rtol(1e-10).atol(1e-10);
    for (found, want) in gradient(&close.clone().per_row(true)).iter().zip(gradient(&close)) {
        assert!(largest(&(found - want)) < 1e-6);
    }
}
