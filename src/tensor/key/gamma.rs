//! The gamma distribution, by rejection.

use super::Key;
use crate::array::{DType, Shape};
use crate::tensor::{Tensor, custom_derivatives, while_loop};

impl Key {
    /// Samples of the gamma distribution with density `x^(a - 1) e^-x / Gamma(a)` for the concentration a, f32.
    /// [`Key::gamma_of`] draws in f64, too.
    ///
    /// # Shapes and units
    /// a: a positive number, or a tensor that broadcasts to the shape. For a rate r divide by r, for a scale s multiply by s.
    ///
    /// # Numerics
    /// The derivative with respect to a is NaN. For a below about 0.02 a sample may underflow to 0. If a is 0, negative,
    /// infinite or NaN, the sample is NaN.
    ///
    /// # Panics
    /// If a does not broadcast to the shape.
    ///
    /// # References
    /// Marsaglia, Tsang (2000), A simple method for generating gamma variables, ACM TOMS 26, 363-372.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let x = Key::new(0).gamma(3.0, [1000]);
    /// assert!((x.mean().item() - 3.0).abs() < 0.3);
    /// ```
    #[track_caller]
    pub fn gamma(&self, concentration: impl Into<Tensor>, shape: impl Into<Shape>) -> Tensor {
        self.gamma_like("gamma", DType::F32, &concentration.into(), shape.into())
    }

    /// [`Key::gamma`] in f32 or f64.
    ///
    /// # Panics
    /// As for [`Key::gamma`]; also if the type is not a float.
    #[track_caller]
    pub fn gamma_of(
        &self,
        dtype: DType,
        concentration: impl Into<Tensor>,
        shape: impl Into<Shape>,
    ) -> Tensor {
        self.gamma_like("gamma_of", dtype, &concentration.into(), shape.into())
    }

    #[track_caller]
    fn gamma_like(&self, name: &str, dtype: DType, a: &Tensor, shape: Shape) -> Tensor {
        assert!(dtype.is_float(), "{name}: {dtype} is not a float type");
        assert!(
            a.shape().broadcast(&shape).as_ref() == Some(&shape),
            "{name}: the concentrations {} do not broadcast to {shape}",
            a.ty()
        );
        let a = a.cast(dtype).broadcast_to(shape);
        // The value of a sample is no smooth function of a along one key, since a draw may be rejected.
        let draw =
            custom_derivatives(|(a, key): &(Tensor, Key)| sample(key, a)).jvp(|_, _, d| &d.0 * f64::NAN);
        draw.call(&(a, self.clone()))
    }
}

/// A sample for each concentration. If it is less than 1, that of a + 1, times `u^(1 / a)`.
fn sample(key: &Key, a: &Tensor) -> Tensor {
    let (dtype, shape) = (a.dtype(), a.shape().clone());
    let [rounds, boosts] = key.split();
    let is_small = a.lt(1.0);
    let shifted = is_small.select(&(a + 1.0), a);
    let d = shifted - 1.0 / 3.0;
    let c = 1.0 / (&d * 9.0).sqrt();
    // A round draws for every element; the first draw that is accepted counts.
    let round = |(i, is_done, x): &(Tensor, Tensor, Tensor)| {
        let [for_z, for_u] = rounds.fold_in(i.clone()).split();
        let z = for_z.normal_of(dtype, shape.clone());
        let u = for_u.uniform_of(dtype, shape.clone());
        let v = (&c * &z + 1.0).powi(3);
        let bound = z.square() * 0.5 + &d - &d * &v + &d * v.ln();
        let is_accepted = v.gt(0.0).and(&(1.0 - u).ln().lt(&bound));
        let next = is_done.not().and(&is_accepted).select(&(&d * v), x);
        (i + 1, is_done.or(&is_accepted), next)
    };
    let none = Tensor::full(dtype, shape.clone(), f64::NAN);
    // Nothing is accepted for a concentration that is not positive, or is infinite.
    let is_void = a.gt(0.0).and(&a.is_finite()).not();
    let (_, _, x) =
        while_loop(|(_, is_done, _): &_| is_done.all().not(), round, &(Tensor::from(0), is_void, none));
    let boost = (1.0 - boosts.uniform_of(dtype, shape)).ln() / a;
    is_small.select(&(&x * boost.exp()), &x)
}
