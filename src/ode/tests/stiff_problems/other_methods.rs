//! Published problems, solved by `Rosenbrock23` and `AutoTsit5Rodas5P`.

use super::chemistry::{POLLU, pollu};
use super::small::*;
use super::{ALL, ROBER_40, assert_falls, relative, rober};
use crate::ode::{Method, Ode};

/// For order 2 the number of steps is proportional to rtol^(-1/3), and so is the error in units of rtol.
#[test]
fn rosenbrock23_at_loose_tolerances() {
    let (method, loose) = (Method::Rosenbrock23, || 3..=6);
    assert_falls("ROBER by Rosenbrock23", loose(), 10.0, |rtol| {
        let ode = Ode::new(rober).method(method).rtol(rtol).atol(ROBER_40.map(|y| 1e-2 * rtol * y));
        relative(&ode.solve(0.0, 40.0, [1.0, 0.0, 0.0]).unwrap().y1, &ROBER_40)
    });
    let of_hires = |rtol| hires(Ode::from_generic(HIRES).method(method), rtol);
    assert_falls("HIRES by Rosenbrock23", loose(), 100.0, of_hires);
    let of_orego = |rtol| orego(Ode::from_generic(OREGO).method(method), OREGO_ENDS[0], rtol);
    assert_falls("OREGO by Rosenbrock23", loose(), 100.0, of_orego);
    let of_vdpol = |rtol| vdpol(Ode::from_generic(VDPOL).method(method), VDPOL_ENDS[2], rtol);
    assert_falls("VDPOL by Rosenbrock23", loose(), 100.0, of_vdpol);
    assert_falls("POLLU by Rosenbrock23", loose(), 100.0, |rtol| {
        pollu(Ode::from_generic(POLLU).method(method), rtol)
    });
}

#[test]
fn a_method_that_switches() {
    let method = Method::AutoTsit5Rodas5P;
    let of_hires = |rtol| hires(Ode::from_generic(HIRES).method(method), rtol);
    assert_falls("HIRES by AutoTsit5Rodas5P", ALL, 10.0, of_hires);
    for end in OREGO_ENDS {
        let error = |rtol| orego(Ode::from_generic(OREGO).method(method), end, rtol);
        assert_falls(&format!("OREGO to {} by AutoTsit5Rodas5P", end.0), ALL, 10.0, error);
    }
    for end in VDPOL_ENDS {
        let error = |rtol| vdpol(Ode::from_generic(VDPOL).method(method), end, rtol);
        assert_falls(&format!("VDPOL to {} by AutoTsit5Rodas5P", end.0), ALL, 10.0, error);
    }
}
