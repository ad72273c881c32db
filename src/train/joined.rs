//! A flow of several blocks as one field over t in [0, 1], for flow matching.
//!
//! Flow matching regresses a field on straight lines over [0, 1], while a [`Cnf`](crate::cnf::Cnf) follows n blocks,
//! each over `[0, t1]`. Block i has the i-th of n equal parts of the line: at s in [0, 1] the flow moves with
//! `n t1 f_i((n s - i) t1, y)`, i = floor(n s).

use super::model::Flow;
use crate::nn::{Drift, DriftNet};
use crate::tensor::Tensor;
use crate::tree;

tree! {
/// The blocks of a flow one after the other.
pub struct Joined {
    blocks: Vec<DriftNet>,
    t1: f64,
}
}

impl Joined {
    /// Of a flow.
    pub fn of(flow: &Flow) -> Joined {
        Joined { blocks: flow.blocks.clone(), t1: flow.settings.t1 }
    }
}

impl Drift for Joined {
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor {
        self.eval_given(t, y, None)
    }

    fn eval_given(&self, t: &Tensor, y: &Tensor, labels: Option<&Tensor>) -> Tensor {
        let n = self.blocks.len() as f64;
        let place = t * n;
        let speed =
            |i: f64, block: &DriftNet| block.eval_given(&((&place - i) * self.t1), y, labels) * (n * self.t1);
        let number = |x: f64| Tensor::scalar(t.dtype(), x);
        // From the last block down: each takes the places before the next one's beginning.
        let mut blocks = (0..self.blocks.len()).rev().map(|i| (i as f64, speed(i as f64, &self.blocks[i])));
        let (mut begins, mut joined) = blocks.next().expect("invariant: a flow has at least one block");
        for (i, velocity) in blocks {
            joined = place.lt(number(begins)).select(&velocity, &joined);
            begins = i;
        }
        joined
    }

    fn classes(&self) -> usize {
        self.blocks[0].classes()
    }

    fn dim(&self) -> usize {
        self.blocks[0].dim()
    }

    fn tile(&self) -> usize {
        self.blocks[0].tile()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cnf::{Cnf, StandardNormal};
    use crate::nn::ConcatSquash;
    use crate::tensor::Key;

    #[test]
    fn each_block_has_its_part_of_the_line() {
        let blocks: Vec<DriftNet> = (0..2).map(|i| ConcatSquash::new(2, [4], &Key::new(i)).into()).collect();
        let flow = Cnf::with_blocks(blocks.clone(), StandardNormal::new(2)).t1(0.5);
        let y = Tensor::from([[0.3f32, -0.2], [0.3, -0.2]]);
        let found = Joined::of(&flow).eval(&Tensor::from([[0.25f32], [0.75]]), &y);
        let t = Tensor::from(0.25f32);
        for (i, block) in blocks.iter().enumerate() {
            assert_eq!(found.at(i).to_vec(), block.eval(&t, &y).at(i).to_vec());
        }
    }
}
