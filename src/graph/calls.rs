//! Operations made of functions that run at most once where they stand.
//!
//! A [`Custom`] means its body and is differentiated by rules of its own; it exists for derivatives
//! alone and is replaced by its body before anything is compiled. A [`Cond`] runs one of two bodies.
//! Like a loop's, their functions are closed: what they use are inputs.

use super::{Func, Type};

/// A function with derivatives of its own.
///
/// | function | inputs | outputs |
/// | --- | --- | --- |
/// | `body` | x.. | y.., further values |
/// | `jvp` | x.., y.., dx of each float x.. | dy of each float y.. |
/// | `vjp` | x.., y.., g of each float y.. | cotangent of each float x.. |
/// | the node | x.. | y.., further values |
///
/// `jvp` is linear in dx. Where it is absent the tangents are those of the body; where `vjp` is
/// absent it is the transpose of `jvp`. Values behind the first `num_outs` are data: no derivative.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Custom {
    /// What it computes.
    pub body: Func,
    /// Its forward derivative.
    pub jvp: Option<Func>,
    /// Its reverse derivative.
    pub vjp: Option<Func>,
    /// How many values of the body are results.
    pub num_outs: usize,
}

fn floats(types: &[Type]) -> Vec<usize> {
    (0..types.len()).filter(|&k| types[k].is_float()).collect()
}

impl Custom {
    /// The inputs that have tangents and cotangents.
    pub fn float_inputs(&self) -> Vec<usize> {
        floats(&self.body.input_types())
    }

    /// The results that have tangents and cotangents.
    pub fn float_outs(&self) -> Vec<usize> {
        floats(&self.body.output_types()[..self.num_outs])
    }

    /// Types of x.., y.., what both rules take first.
    pub fn primal_types(&self) -> Vec<Type> {
        [&self.body.input_types()[..], &self.body.output_types()[..self.num_outs]].concat()
    }
}

/// Runs one of two functions.
///
/// The node takes pred: bool, x.. and gives y..; both branches take x.. and give y... What a branch does that is not
/// chosen is not done: its loops do not run, and its NaNs are nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cond {
    /// Where pred holds.
    pub then: Func,
    /// Where it does not.
    pub otherwise: Func,
}
