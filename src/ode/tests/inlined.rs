//! Loops compiled for a method and a vector field give the same bits as the shared loop.

use crate::ode::inline::{Bosh3, InlineMethod, Tsit5, Vern9};
use crate::ode::*;
use crate::simd::Level;
use crate::vector_field;

vector_field! {
    struct Lorenz<R> { rho: R }
    fn eval(&self, _t, y: &[R; 3]) -> [R; 3] {
        [10.0 * (y[1] - y[0]), y[0] * (self.rho - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]]
    }
}

fn agrees_on_arrays<M: InlineMethod>(method: M) {
    for level in Level::available() {
        let ode = || Ode::from_generic(Lorenz { rho: 28.0 }).rtol(1e-7).method(M::METHOD).level(level);
        let (shared, inlined) = (
            ode().solve(0.0, 1.0, [1.0; 3]).unwrap(),
            ode().inlined(method).solve(0.0, 1.0, [1.0; 3]).unwrap(),
        );
        assert_eq!(inlined.y1.map(f64::to_bits), shared.y1.map(f64::to_bits), "{level:?}, {}", M::METHOD);
        assert_eq!((inlined.stats, inlined.step_times), (shared.stats, shared.step_times));
    }
}

#[test]
fn an_inlined_solve_has_the_bits_of_the_shared_loop() {
    agrees_on_arrays(Bosh3);
    agrees_on_arrays(Tsit5);
    agrees_on_arrays(Vern9);
}

#[test]
fn an_inlined_method_is_the_method_and_another_one_may_follow() {
    let ode = || Ode::new(|_t, y: &[f64; 1]| [-y[0]]);
    assert_eq!(ode().inlined(Vern9).solve(0.0, 1.0, [1.0]).unwrap().method, "vern9");
    let other = ode().inlined(Vern9).method(Method::Rk4).dt0(0.1).solve(0.0, 1.0, [1.0]).unwrap();
    let shared = ode().method(Method::Rk4).dt0(0.1).solve(0.0, 1.0, [1.0]).unwrap();
    assert_eq!((other.y1, &*other.method), (shared.y1, "rk4"));
}

#[test]
fn an_inlined_ensemble_has_the_bits_of_the_shared_loop() {
    let rhos: Vec<f64> = (0..300).map(|i| 0.1 * f64::from(i)).collect();
    for level in Level::available() {
        let ode = || ensemble(&rhos, |&rho| (Lorenz { rho }, [1.0; 3])).rtol(1e-7).level(level);
        let (shared, inlined) =
            (ode().solve(0.0, 1.0).unwrap(), ode().inlined(Tsit5).solve(0.0, 1.0).unwrap());
        let bits = |ensemble: &EnsembleSolution<[f64; 3]>| -> Vec<[u64; 3]> {
            ensemble.y1.iter().map(|y| y.map(f64::to_bits)).collect()
        };
        assert_eq!((bits(&inlined), inlined.stats), (bits(&shared), shared.stats), "{level:?}");
    }
}
