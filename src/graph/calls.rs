//! Operations that contain functions and run each of these functions at most once.
//!
//! A [`Custom`] computes its body and has custom derivative rules. Before compilation, it is replaced by its
//! body. A [`Cond`] runs one of two bodies. As in loops, the functions are closed: everything they use is an
//! input.

use super::{Func, Type};

/// A function with custom derivatives.
///
/// | function | inputs | outputs |
/// | --- | --- | --- |
/// | `body` | x.. | y.., further values |
/// | `jvp` | x.., y.., dx of each float x.. | dy of each float y.. |
/// | `vjp` | x.., y.., g of each float y.. | cotangent of each float x.. |
/// | the node | x.. | y.., further values |
///
/// `jvp` is linear in dx. Without `jvp`, the tangents are those of the body. Without `vjp`, the cotangents
/// come from the transpose of `jvp`. Values after the first `num_outs` are data without derivatives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Custom {
    /// The function.
    pub body: Func,
    /// Its forward derivative.
    pub jvp: Option<Func>,
    /// Its reverse derivative.
    pub vjp: Option<Func>,
    /// The number of body outputs that are results.
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

    /// The types of x.., y.., the first inputs of both rules.
    pub fn primal_types(&self) -> Vec<Type> {
        [&self.body.input_types()[..], &self.body.output_types()[..self.num_outs]].concat()
    }
}

/// Runs one of two functions.
///
/// The node takes `pred: bool, x..` and returns `y..`. Both branches map `x..` to `y..`. The branch that is
/// not selected does not run: its loops take no time, and its NaNs have no effect.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cond {
    /// The branch if pred is true.
    pub then: Func,
    /// The branch if pred is false.
    pub otherwise: Func,
}
