//! Stand-in: cubic Hermite.
use super::ButcherTableau;
/// Interpolant.
#[derive(Clone, Debug)]
pub struct Interpolant {
    b: Vec<f64>,
    fsal: bool,
}
impl Interpolant {
    /// Of a tableau.
    pub fn of(t: &ButcherTableau) -> Self {
        Interpolant { b: t.b.to_vec(), fsal: t.is_fsal() }
    }
    /// Order.
    pub fn order(&self) -> u32 {
        3
    }
    /// Stages.
    pub fn num_stages(&self) -> usize {
        self.b.len() + usize::from(!self.fsal)
    }
    /// Extra.
    pub fn extra(&self) -> impl Iterator<Item = (f64, &[f64])> {
        (!self.fsal).then_some((1.0, &self.b[..])).into_iter()
    }
    /// f1.
    pub fn starts_with_f1(&self) -> bool {
        !self.fsal
    }
    /// weights.
    pub fn weights(&self, x: f64, out: &mut [f64]) {
        let w = x * x * (3.0 - 2.0 * x);
        for (o, b) in out.iter_mut().zip(&self.b) {
            *o = w * b;
        }
        let n = out.len();
        out[0] += x - 2.0 * x * x + x * x * x;
        let last = if self.fsal { 0.0 } else { 0.0 };
        out[n - 1] = last + if self.fsal { out[n - 1] } else { 0.0 } + x * x * x - x * x;
    }
    /// derivative.
    pub fn derivative_weights(&self, x: f64, out: &mut [f64]) {
        let w = 6.0 * x * (1.0 - x);
        for (o, b) in out.iter_mut().zip(&self.b) {
            *o = w * b;
        }
        let n = out.len();
        out[0] += 1.0 - 4.0 * x + 3.0 * x * x;
        out[n - 1] = if self.fsal { out[n - 1] } else { 0.0 } + 3.0 * x * x - 2.0 * x;
    }
}
