//! The shape of y is fixed when a solve starts: every way in which the caller's code can change it is an error
//! that names both shapes, for every kind of state on the heap, and never a panic.

mod kinds;

use super::draw::Draw;
use crate::ode::*;
use kinds::{Changeable, Lists};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The vector field dy/dt = -y / 10. At evaluation `at`, counted from 0, it also changes the shape of dy in the
/// given way, and with `recoverable` asks for a shorter step.
struct Attacker {
    at: usize,
    way: usize,
    recoverable: bool,
    evaluations: Cell<usize>,
}

impl<Y: Changeable> VectorField<Y> for Attacker {
    fn eval(&self, _t: &f64, y: &Y, dy: &mut Y) -> Result<(), FieldError> {
        let n = self.evaluations.get();
        self.evaluations.set(n + 1);
        let mut rate = y.clone();
        rate.lincomb(y, &-1.1, &[1.0], std::slice::from_ref(y));
        *dy = rate;
        if n == self.at {
            dy.change(self.way);
            if self.recoverable {
                return Err(Recoverable("shorter".into()).into());
            }
        }
        Ok(())
    }
}

/// The places at which the caller's code can change a shape.
const PLACES: [&str; 6] =
    ["field", "recoverable field", "reset", "terminal reset", "stepper", "time_derivative"];

const METHODS: [Method; 8] = [
    Method::Tsit5,
    Method::Rk4,
    Method::Dop853,
    Method::Bosh3,
    Method::Rodas5P,
    Method::Rosenbrock23,
    Method::Rkc2,
    Method::AutoTsit5Rodas5P,
];

/// One attack: the message of the error, or `None` if the solve succeeded.
fn run<Y: Changeable>(
    draw: &mut Draw,
    place: &str,
    method: Method,
    (n, way): (usize, usize),
) -> Option<String> {
    let is_field = place.ends_with("field");
    let at = if is_field { draw.below(30) } else { usize::MAX };
    let recoverable = place.starts_with("recoverable");
    let field = Attacker { at, way, recoverable, evaluations: Cell::default() };
    let ode = Ode::from_field(field).method(method);
    let ode = if method == Method::Rk4 { ode.dt0(0.05) } else { ode };
    let y0 = Y::of_size(n);
    let dense = draw.below(2) == 0;
    match place {
        "stepper" => {
            let mut stepper = ode.stepper(0.0, 1.0, y0).unwrap();
            for _ in 0..draw.below(3) {
                stepper.step().unwrap();
            }
            let y = stepper.y().clone();
            let mid = stepper.t();
            stepper.y_mut().change(way);
            stepper.y_mut();
            if dense && mid > 0.0 {
                assert_eq!(stepper.interpolate(mid).unwrap().shape(), y.shape());
            }
            let failed = stepper.step().err().map(|error| error.to_string());
            let again = stepper.step().err().map(|error| error.to_string());
            assert!(failed.is_none() || failed == again, "{failed:?}, {again:?}");
            // The solve goes on with the state restored.
            *stepper.y_mut() = y;
            assert!(stepper.step().is_ok());
            failed
        }
        "reset" | "terminal reset" => {
            let event = Event::rising();
            let event = if place == "reset" { event } else { event.terminal() };
            let ode = ode
                .save_at(if dense { SaveAt::dense() } else { SaveAt::t1() })
                .on_event(Event::rising(), |t, _y| t - 0.4, |_t, _y| {})
                .on_event(event, |t, _y| t - 0.4, move |_t, y: &mut Y| assert!(y.change(way)));
            ode.solve(0.0, 1.0, y0).err().map(|error| error.to_string())
        }
        "time_derivative" => {
            let ode = ode.time_derivative(move |_t, _y, f_t| assert!(f_t.change(way)));
            ode.solve(0.0, 1.0, y0).err().map(|error| error.to_string())
        }
        _ => {
            let ode = if dense { ode.save_at([0.3, 0.6]) } else { ode };
            ode.solve(0.0, 1.0, y0).err().map(|error| error.to_string())
        }
    }
}

/// Runs every change at every place with every method, for states of sizes 0 to 3.
fn attack<Y: Changeable>(kind: &str) {
    let (mut draw, mut refused, mut kept) = (Draw(7), 0, 0);
    for n in 0..4 {
        for way in 0.. {
            let mut changed = Y::of_size(n);
            let before = changed.shape();
            if !changed.change(way) {
                break;
            }
            let differing = std::iter::zip(&before, changed.shape()).find(|(a, b)| **a != *b);
            for place in PLACES {
                for method in METHODS {
                    let solves_systems = matches!(method, Method::Rodas5P | Method::Rosenbrock23);
                    if place == "time_derivative" && !solves_systems {
                        continue;
                    }
                    let what = format!("{kind} of size {n}, change {way} in {place} of {method}");
                    let ran = catch_unwind(AssertUnwindSafe(|| run::<Y>(&mut draw, place, method, (n, way))));
                    let error = ran.unwrap_or_else(|_| panic!("{what}: a panic"));
                    let axes = |axes: &[usize]| match axes {
                        [n] => n.to_string(),
                        axes => axes.iter().map(usize::to_string).collect::<Vec<_>>().join(" x "),
                    };
                    let Some(((part, from), (_, to))) = &differing else {
                        kept += 1;
                        // Constant steps and the evaluation at t0 cannot be repeated with a shorter step.
                        let asked = place == "recoverable field";
                        let failed = error.filter(|error| !(asked && error.ends_with(": shorter")));
                        assert_eq!(failed, None, "{what}");
                        continue;
                    };
                    // The change may lie beyond the last evaluation of the vector field.
                    let Some(error) = error else {
                        assert!(place.ends_with("field"), "{what}: no error");
                        continue;
                    };
                    refused += 1;
                    let (from, to) = (axes(from), axes(to));
                    let of_derivative =
                        format!(" returned a derivative of size {to} for a state of size {from}");
                    let expected = match place {
                        "time_derivative" | "field" | "recoverable field" => of_derivative,
                        _ => format!("changed y, {part}from size {from} to size {to}"),
                    };
                    assert!(error.contains(&expected) && error.contains(part.trim()), "{what}: {error}");
                }
            }
        }
    }
    assert!(refused > 100 && kept > 5, "{kind}: {refused} changes of the shape, {kept} that kept it");
}

#[test]
fn shapes_of_lists_are_kept() {
    attack::<Vec<f64>>("Vec<f64>");
    attack::<Vec<f32>>("Vec<f32>");
    attack::<Vec<FieldDual>>("Vec<Dual>");
}

#[test]
fn shapes_of_compounds_are_kept() {
    attack::<(Vec<f64>, Vec<f64>)>("pair");
    attack::<((f64, Vec<f64>), [f64; 2], Lists)>("nested");
    attack::<Lists>("struct");
}

#[test]
fn a_component_moved_between_two_parts_by_a_reset_is_refused() {
    let ode = Ode::new(|_t, y: &(Vec<f64>, Vec<f64>)| y.clone());
    let moved = ode.on_event(Event::rising(), |t, _y| t - 0.5, |_t, (a, b)| b.extend(a.pop()));
    let error = moved.solve(0.0, 1.0, (vec![1.0; 2], vec![1.0])).unwrap_err();
    let message = "the state reset of event 0 at t=0.5 changed y, part 0 from size 2 to size 1; a state reset must keep the shape of y";
    assert_eq!(error.to_string(), message);
}

#[test]
fn a_stepper_refuses_a_shorter_and_a_longer_state() {
    for method in [Method::Tsit5, Method::Rodas5P] {
        let ode = Ode::new(|_t, y: &Vec<f64>| y.clone()).method(method);
        let mut stepper = ode.stepper(0.0, 1.0, vec![1.0; 2]).unwrap();
        stepper.step().unwrap();
        stepper.y_mut().push(7.0);
        let error = stepper.step().unwrap_err();
        let message = "`y_mut` changed y, from size 2 to size 3: y must keep its shape; start a new stepper for another shape";
        assert_eq!(error.to_string(), message);
        stepper.y_mut().clear();
        assert!(
            stepper.step().unwrap_err().to_string().starts_with("`y_mut` changed y, from size 2 to size 0")
        );
        stepper.y_mut().extend([1.0, 2.0]);
        assert!(stepper.step().is_ok());
    }
}

#[test]
fn a_stepper_interpolates_the_last_step_and_not_the_change_after_it() {
    for method in Method::ALL {
        let ode = Ode::new(|_t, y: &[f64; 2]| [y[1], -y[0]]).method(method).dt0(0.05);
        let start = || {
            let mut stepper = ode.stepper(0.0, 1.0, [1.0, 0.0]).unwrap();
            stepper.step().unwrap();
            stepper
        };
        let (mut changed, mut unchanged) = (start(), start());
        changed.y_mut()[0] = 1e3;
        let mid = 0.5 * changed.t();
        assert_eq!(changed.interpolate(mid).unwrap(), unchanged.interpolate(mid).unwrap(), "{method}");
        assert_eq!(changed.y()[0], 1e3);
    }
}
