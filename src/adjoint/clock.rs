//! The clock of a traced solve: an f64 tensor of rank 0.

use crate::array::DType;
use crate::ode::Clock;
use crate::tensor::Tensor;

fn number(x: f64) -> Tensor {
    Tensor::scalar(DType::F64, x)
}

/// `known` is `None` on tracers, so no condition of one step becomes a constant of all steps.
impl Clock for Tensor {
    type Mask = Tensor;

    fn like(&self, x: f64) -> Tensor {
        number(x)
    }
    fn add(&self, other: &Tensor) -> Tensor {
        self + other
    }
    fn sub(&self, other: &Tensor) -> Tensor {
        self - other
    }
    fn mul(&self, other: &Tensor) -> Tensor {
        self * other
    }
    fn div(&self, other: &Tensor) -> Tensor {
        self / other
    }
    fn abs(&self) -> Tensor {
        Tensor::abs(self)
    }
    fn sqrt(&self) -> Tensor {
        Tensor::sqrt(self)
    }
    fn powf(&self, exponent: f64) -> Tensor {
        Tensor::powf(self, exponent)
    }
    fn lt(&self, other: &Tensor) -> Tensor {
        Tensor::lt(self, other)
    }
    fn le(&self, other: &Tensor) -> Tensor {
        Tensor::le(self, other)
    }
    fn and(a: &Tensor, b: &Tensor) -> Tensor {
        Tensor::and(a, b)
    }
    fn or(a: &Tensor, b: &Tensor) -> Tensor {
        Tensor::or(a, b)
    }
    fn not(m: &Tensor) -> Tensor {
        Tensor::not(m)
    }
    fn select(m: &Tensor, a: &Tensor, b: &Tensor) -> Tensor {
        Tensor::select(m, a, b)
    }
    fn known(m: &Tensor) -> Option<bool> {
        (!m.is_traced()).then(|| m.item() != 0.0)
    }
    fn lookup(&self, table: &[f64]) -> Tensor {
        Tensor::from(table).take_clamped(self)
    }
    fn count_up_to(&self, table: &[f64]) -> Tensor {
        Tensor::from(table).le(self).cast(DType::F64).sum()
    }
    fn count_down_to(&self, table: &[f64]) -> Tensor {
        Tensor::from(table).ge(self).cast(DType::F64).sum()
    }
    fn is_finite(&self) -> Tensor {
        Tensor::is_finite(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_takes_the_entry_of_its_index() {
        let table = [0.5, 1.5, 2.5];
        assert_eq!(Clock::lookup(&number(1.0), &table).item(), 1.5);
        assert_eq!(Clock::lookup(&number(7.0), &table).item(), 2.5);
    }
}
