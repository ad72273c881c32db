//! Which sign an event's function has behind an instant, on plain states.

use super::signs::{NUM_PATTERNS, ROUNDING, pattern};
use crate::ode::step_end::ulps;
use crate::ode::{PlainState, Real};

/// The errors of the time and the state at an instant, as displacements of both.
pub(super) struct Displacements<Y: PlainState> {
    /// The resolution of the time, with the sign of the direction of the solve.
    dt: f64,
    /// The rounding error of the time.
    ulp: f64,
    /// The change of each component over this time, by the solution before the instant.
    moved: Vec<f64>,
    /// The bound of each component's rounding error.
    rounding: Vec<f64>,
    /// The displacements of the state.
    dy: Vec<Y>,
    displaced: Y,
    /// Scratch, for the components of two states.
    components: [Vec<Y::Number>; 2],
}

impl<Y: PlainState> Displacements<Y> {
    /// No errors, for states like `y`; without room for errors if there are no events.
    pub fn none(y: &Y, has_events: bool) -> Self {
        let n = if has_events { y.num_components() } else { 0 };
        Displacements {
            dt: 0.0,
            ulp: 0.0,
            moved: vec![0.0; n],
            rounding: vec![0.0; n],
            dy: vec![],
            displaced: y.clone(),
            components: [(); 2].map(|()| vec![Y::Number::constant(0.0); n]),
        }
    }

    /// Measures the errors of the state `y` at an instant whose time has the resolution `dt`. The solution came
    /// from the state `earlier`, which is `1 / part` times as far from the instant as `dt`. The state is a sum of
    /// terms with these sizes. If `keeps_larger`, no error becomes smaller.
    pub fn measure(&mut self, dt: f64, (earlier, part): (&Y, f64), y: &Y, sizes: &[f64], keeps_larger: bool) {
        if !keeps_larger {
            self.dt = 0.0;
            self.moved.fill(0.0);
            self.rounding.fill(0.0);
        }
        self.dt = self.dt.abs().max(dt.abs()).copysign(dt);
        let [before, now] = &mut self.components;
        earlier.read(before);
        y.read(now);
        for i in 0..now.len() {
            let moved = (now[i].value() - before[i].value()) * part;
            self.moved[i] = moved.abs().max(self.moved[i].abs()).copysign(moved);
            self.rounding[i] = (ROUNDING * Y::EPSILON * sizes[i]).max(self.rounding[i]);
        }
    }

    /// Sets the displacements at `t`, where the state is `y`, from the measured errors and the rounding of `y`.
    pub fn set(&mut self, t: f64, y: &Y) {
        let [numbers, _] = &mut self.components;
        y.read(numbers);
        for (rounding, y) in self.rounding.iter_mut().zip(numbers.iter()) {
            *rounding = (ROUNDING * Y::EPSILON * y.value().abs()).max(*rounding);
        }
        self.dy.resize_with(1 + NUM_PATTERNS, || y.clone());
        for (index, dy) in self.dy.iter_mut().enumerate() {
            for (i, to) in numbers.iter_mut().enumerate() {
                let (moved, rounding) = (self.moved[i], self.rounding[i]);
                *to = Y::Number::constant(match index.checked_sub(1) {
                    None => moved + rounding.copysign(moved),
                    Some(index) => {
                        if pattern(index, i) {
                            -rounding
                        } else {
                            rounding
                        }
                    }
                });
            }
            dy.write(numbers);
        }
        self.ulp = ulps(1.0, &t).copysign(self.dt);
    }

    /// The value of `g` at (t, y) if its sign is certain: if it is not 0, and neither changes nor becomes 0 at a
    /// displaced point. Behind an event that has changed its sign to `side`, the other sign is certain up to
    /// rounding: the error of the event's time lies on `side`.
    pub fn certain(&mut self, g: &dyn Fn(f64, &Y) -> f64, (t, y): (f64, &Y), side: f64) -> Option<f64> {
        let value = g(t, y);
        if value == 0.0 || value.is_nan() {
            return None;
        }
        let has_returned = value * side < 0.0;
        for (index, dy) in self.dy.iter().enumerate().skip(usize::from(has_returned)) {
            let dt = if index == 0 { self.dt } else { self.ulp };
            for sign in [1.0, -1.0] {
                self.displaced.lincomb(y, &sign, &[1.0], std::slice::from_ref(dy));
                let displaced = g(t + sign * dt, &self.displaced);
                let is_same = if value < 0.0 { displaced < 0.0 } else { displaced > 0.0 };
                if !is_same {
                    return None;
                }
            }
        }
        Some(value)
    }
}
