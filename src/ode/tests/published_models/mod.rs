//! Forward sensitivities of published models against central differences.
//!
//! The models are those of the PEtab benchmark collection (Hass et al., Bioinformatics 35(17):3073-3082, 2019;
//! repository Benchmarking-Initiative/Benchmark-Models-PEtab) of which the equations and all figures could be had:
//! Boehm, Bruno, Elowitz, Giordano and Rahman. Each file says what it takes from where. Each model also has a value
//! that is published, or that follows from its equations.
//!
//! The derivatives of all observables at the times of the data are compared for all parameters, and for the
//! initial values that are parameters. The differences are of solves with rtol 1e-12. To keep the tests short, the two
//! stiff models have rtol 1e-10 instead, two parameters of Boehm and five of Elowitz change together, and the times of
//! Elowitz end at one hour. With the environment variable `FLOWLINE_CASES` there are no exceptions.

mod boehm;
mod bruno;
mod elowitz;
mod giordano;
mod rahman;

use super::draw::num_cases;
use crate::ode::*;
use std::ops::Range;

/// Whether the environment variable asks for more cases.
fn is_thorough() -> bool {
    num_cases(0) > 0
}

/// A model with the times of its data.
struct Model<G: GenericField<N>, const N: usize> {
    field: G,
    start: StateFn<G, N>,
    observables: Vec<NumberFn<G, N>>,
    times: Vec<f64>,
    /// The methods of the sensitivities and of the differences.
    methods: [Method; 2],
    /// atol / rtol.
    size: f64,
    /// The rtol of the differences, and the number of parameters that change together, unless the test is thorough.
    rtol: f64,
    group: usize,
    /// The smallest change of a parameter, relative to the parameter.
    change: f64,
    /// The size of parameters whose value is 0.
    zero: f64,
    switches: Option<Switches<G, N>>,
}

/// Times at which the vector field jumps.
struct Switches<G: GenericField<N>, const N: usize> {
    times: &'static [f64],
    moved_to: TimeFn<G, N>,
    /// The index of the parameter that moves the times. An observable at one of these times is not differentiable
    /// with respect to it.
    parameter: usize,
}

impl<G: GenericField<N, Of<f64> = G> + VectorField<[f64; N]>, const N: usize> Model<G, N> {
    fn ode(&self, field: G, method: Method, rtol: f64) -> Ode<'static, [f64; N], G> {
        let ode = Ode::from_generic(field).method(method).rtol(rtol).atol(self.size * rtol);
        let ode = ode.max_steps(1_000_000).save_at(&self.times);
        match &self.switches {
            Some(Switches { times, moved_to, .. }) => {
                ode.field_discontinuities(Times::at(times).moved_to(*moved_to))
            }
            None => ode,
        }
    }

    fn t1(&self) -> f64 {
        self.times[self.times.len() - 1]
    }

    /// The states at the times of the data.
    fn states(&self, field: &G, method: Method, rtol: f64) -> Vec<[f64; N]> {
        let y0 = self.start.eval(field, 0.0, &[0.0; N], 0.0);
        // Steps end at the times of the data, so these are not interpolated.
        let ode = self.ode(field.clone(), method, rtol).tstops(&self.times);
        ode.solve(0.0, self.t1(), y0).unwrap().ys
    }

    /// All observables at each time in turn.
    fn values(&self, field: &G, method: Method, rtol: f64) -> Vec<f64> {
        let ys = self.states(field, method, rtol);
        let at = self.times.iter().zip(&ys);
        at.flat_map(|(t, y)| self.observables.iter().map(|f| f.eval(field, *t, y))).collect()
    }

    /// The field with each parameter of `group` changed by `by` times its size.
    fn changed(&self, group: &Range<usize>, by: f64) -> G {
        let mut i = 0;
        self.field.map_params(|x| {
            i += 1;
            if group.contains(&(i - 1)) { x + by * self.unit(x) } else { x }
        })
    }

    /// The size of a parameter.
    fn unit(&self, x: f64) -> f64 {
        if x == 0.0 { self.zero } else { x.abs() }
    }

    /// Central differences with three errors: of a small change, of twice this change, and extrapolated from both.
    fn differences(&self, group: &Range<usize>) -> Vec<[f64; 3]> {
        let (h, rtol) = (self.change, if is_thorough() { 1e-12 } else { self.rtol });
        let at = |by| self.values(&self.changed(group, by), self.methods[1], rtol);
        let [up, down, far_up, far_down] = [h, -h, 2.0 * h, -2.0 * h].map(at);
        let each = (0..up.len()).map(|i| {
            let (near, far) = ((up[i] - down[i]) / (2.0 * h), (far_up[i] - far_down[i]) / (4.0 * h));
            [near, far, near + (near - far) / 3.0]
        });
        each.collect()
    }

    /// Asserts that the derivatives agree with the best of the differences within 1e-6. The derivatives are with
    /// respect to the relative change of a parameter, p dg/dp for an observable g. The scale, for each parameter and
    /// each observable, is the largest of them at all times, but at least 1e-3 of the largest g.
    fn assert_sensitivities(&self, name: &str) {
        let ode = self.ode(self.field.clone(), self.methods[0], 1e-10);
        let builder = ode.forward_sensitivity().observe(self.observables.iter().copied());
        let s = builder.solve(0.0, self.t1(), self.start).unwrap();
        let num = self.observables.len();
        let rows: Vec<Vec<f64>> = (s.dobserved_dp.iter().cloned())
            .map(|mut by_p| {
                let mut row = vec![];
                self.field.zip_params(&mut by_p, |d: &mut f64, p| row.push(*d * self.unit(p)));
                row
            })
            .collect();
        assert_eq!((rows.len(), s.observed.len()), (num * self.times.len(), num * self.times.len()));
        let (num_parameters, size) = (rows[0].len(), if is_thorough() { 1 } else { self.group });
        for first in (0..num_parameters).step_by(size) {
            let group = first..(first + size).min(num_parameters);
            let differences = self.differences(&group);
            let is_smooth = |i: usize| match &self.switches {
                Some(all) => !group.contains(&all.parameter) || !all.times.contains(&self.times[i / num]),
                None => true,
            };
            for m in 0..num {
                let of: Vec<usize> = (m..rows.len()).step_by(num).filter(|i| is_smooth(*i)).collect();
                let largest =
                    |f: &dyn Fn(usize) -> f64| of.iter().fold(0.0, |max, i| f64::max(max, f(*i).abs()));
                let scale = largest(&|i| differences[i][2]).max(1e-3 * largest(&|i| s.observed[i]));
                for &i in &of {
                    let got: f64 = rows[i][group.clone()].iter().sum();
                    let best =
                        differences[i].iter().fold(f64::INFINITY, |min, d| f64::min(min, (got - d).abs()));
                    // An observable may be 0 at all times for all parameters.
                    let off = if scale == 0.0 { got.abs() } else { best / scale };
                    assert!(off < 1e-6, "{name}: value {i} by parameters {group:?}: {off:e} of {scale:e}");
                }
            }
        }
    }
}
