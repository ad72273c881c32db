//! x
use flowline::ode::Ode;
#[path = "/work/wt/stiffness/benches/peers/rust/src/problems.rs"]
#[allow(dead_code)]
mod problems;
use problems::{Arenstorf, Brusselator, Lorenz20, Lotka, Pleiades, Problem};
fn on<P: Problem, const N: usize>(t1: f64) {
    let y0: [f64; N] = P::y0().try_into().unwrap();
    let ode = Ode::in_place(|_t, y: &[f64; N], dy: &mut [f64; N]| P::f(y, dy)).rtol(1e-8).atol(1e-8);
    let mut s = ode.solve(0.0, t1, y0).unwrap();
    for _ in 0..9 { s = ode.solve(0.0, t1, y0).unwrap(); }
    println!("{} {:?} {:?}", s.stats, s.warnings, s.y1[0].to_bits());
}
fn main() {
    match std::env::args().nth(1).unwrap().as_str() {
        "lorenz20" => on::<Lorenz20, 3>(Lorenz20::T1),
        "lorenz100" => on::<Lorenz20, 3>(100.0),
        "lotka" => on::<Lotka, 2>(Lotka::T1),
        "pleiades" => on::<Pleiades, 28>(Pleiades::T1),
        "arenstorf" => on::<Arenstorf, 4>(Arenstorf::T1),
        _ => {
            let (y0, ode) = (Brusselator::<200>::y0(), Ode::in_place(|_t, y: &[f64], dy: &mut [f64]| Brusselator::<200>::f(y, dy)));
            let s = ode.rtol(1e-8).atol(1e-8).solve(0.0, Brusselator::<200>::T1, y0).unwrap();
            println!("{} {:?} {:?}", s.stats, s.warnings, s.y1[0].to_bits());
        }
    }
}
