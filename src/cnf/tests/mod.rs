//! Flows against closed forms and each other, and their gradients against finite differences.

mod anomaly;
mod densities;
mod estimates;
mod inpaint;
mod matching;
mod mixture;
mod objectives;
mod solves;
mod steps;
mod tolerances;

use super::*;
use crate::array::DType;
use crate::nn::{ConcatSquash, VelocityField};
use crate::tensor::{Key, Tensor, Tree};
use crate::tree;

tree! {
    /// `z' = rate z (1 - z)` in one dimension.
    struct Logistic { rate: Tensor }
}

impl VelocityField for Logistic {
    fn eval(&self, _t: &Tensor, y: &Tensor) -> Tensor {
        y * (1.0 - y) * &self.rate
    }
    fn dim(&self) -> usize {
        1
    }
}

tree! {
    /// `z' = A z`; `a` is A transposed.
    struct Linear { a: Tensor }
}

impl VelocityField for Linear {
    fn eval(&self, _t: &Tensor, y: &Tensor) -> Tensor {
        y.matmul(&self.a)
    }
    fn dim(&self) -> usize {
        2
    }
}

fn logistic() -> Cnf<Logistic> {
    Cnf::new(Logistic { rate: Tensor::from(1.0) }).rtol(1e-10).atol(1e-10)
}

fn linear(a: [[f64; 2]; 2]) -> Cnf<Linear> {
    Cnf::new(Linear { a: Tensor::from(a).transpose() }).rtol(1e-10).atol(1e-10)
}

/// z' = A z with known exp(A) and trace 0.2.
fn dense() -> Cnf<Linear> {
    linear([[0.3, -1.2], [0.7, -0.1]])
}

fn key() -> Key {
    Key::new(11)
}

fn double<T: Tree>(tree: &T) -> T {
    tree.cast_floats(DType::F64)
}

/// Two small time-dependent blocks, in f64.
fn small() -> Cnf<ConcatSquash> {
    let blocks = [1, 2].map(|seed| double(&ConcatSquash::new(2, [5], &Key::new(seed))));
    Cnf::from_blocks(blocks.into()).t1(0.5).fixed_steps(3).rows_per_tile(4)
}

fn points(n: usize) -> Tensor {
    Key::new(5).normal([n, 2]).cast(DType::F64)
}

fn largest(x: &Tensor) -> f64 {
    x.abs().max().item()
}
