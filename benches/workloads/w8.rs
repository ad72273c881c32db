//! W8: the gradient through 10,000 constant steps of a 64-dimensional MLP with respect to its weights. A variant is METHOD ROWS
//! CHECKPOINTS; `default` stores as many states as fit into 32 MiB, `forward` computes no gradient. The value is the
//! gradient's norm, for `forward` the loss.

use crate::measure::{Measured, Options, Result, time};
use crate::splitmix::{SplitMix, matrix};
use flowline::nn::prelude::*;
use flowline::ode::ConstantStepSize;
use flowline::tensor::map_rows;

pub const VARIANTS: &[&str] = &[
    "euler 1 forward",
    "euler 1 default",
    "euler 1 128",
    "euler 1 32",
    "euler 1 8",
    "euler 1 2",
    "tsit5 1 forward",
    "tsit5 1 default",
    "tsit5 1 128",
    "tsit5 1 32",
    "tsit5 1 8",
    "euler 256 forward",
    "euler 256 default",
];

const STEPS: f64 = 10_000.0;
const DIM: usize = 64;
/// Rows solved together.
const TILE: usize = 64;

/// The sum of the squares of y(1).
fn loss(net: &Mlp, y0: &Tensor, method: Method, adjoint: Adjoint) -> flowline::Result<Tensor> {
    let (_, sums) = map_rows(std::slice::from_ref(y0), TILE, |rows| {
        let ode = Ode::new(|_t, y: &Tensor| net.forward(y)).method(method).adjoint(adjoint);
        let ode = ode.controller(ConstantStepSize { dt0: 1.0 / STEPS });
        Ok((vec![], vec![ode.solve(0.0, 1.0, &rows[0])?.y1.square().sum()]))
    })?;
    Ok(sums[0].clone())
}

pub fn measure(variant: &str, options: &Options) -> Result<Measured> {
    let [method, rows, checkpoints] = variant.split(' ').collect::<Vec<_>>()[..] else {
        return Err(format!(
            "variant {variant:?}: expected METHOD ROWS CHECKPOINTS, for example \"euler 1 default\""
        )
        .into());
    };
    let method = if method == "euler" { Method::Euler } else { Method::Tsit5 };
    let rows: usize = rows.parse()?;
    let adjoint = match checkpoints {
        "default" | "forward" => Adjoint::default(),
        count => Adjoint::recursive_checkpoint(count.parse()?),
    };
    let net = SplitMix::new(8).mlp(&[DIM; 4], Activation::Tanh);
    let y0 = matrix(&SplitMix::new(9).normals(rows * DIM), [rows, DIM]);
    if checkpoints == "forward" {
        let end = jit(|net: Mlp, y0: Tensor| loss(&net, &y0, method, adjoint));
        let mut value = 0.0;
        let times = time(options, || {
            value = end.call(net.clone(), &y0)?.item();
            Ok(())
        })?;
        return Ok(Measured::new(times, [value]));
    }
    let gradient =
        jit(|net: Mlp, y0: Tensor| Ok(value_and_grad(|net| loss(net, &y0, method, adjoint), &net)?.1));
    let mut squares = 0.0;
    let times = time(options, || {
        let leaves = gradient.call(net.clone(), &y0)?.leaves();
        squares = leaves.iter().flat_map(Tensor::to_vec).map(|g| g * g).sum::<f64>();
        Ok(())
    })?;
    Ok(Measured::new(times, [squares.sqrt()]))
}
