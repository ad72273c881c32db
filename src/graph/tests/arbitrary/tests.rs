//! Random functions: what they draw.

use super::*;
use crate::graph::{FactorOp, FloatFn, LineOp, ScalarFn};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn one_seed_gives_one_function() {
    let recipe = Recipe { ops: 40, float: DType::F32, loops: true, short: true, singular: false };
    for seed in 0..20 {
        // The texts are compared, because equal constant arrays of two functions do not compare equal.
        assert_eq!(function(seed, recipe).0.to_string(), function(seed, recipe).0.to_string());
    }
}

/// The axes of a node by name, with their lengths: those that a kernel treats differently, else all axes of the
/// result.
fn axes(func: &Func, node: &Node) -> Vec<(String, usize)> {
    let shape = |k: usize| &func.node(node.args[k]).ty.shape()[..];
    let named = |names: &[&str], lengths: &[usize]| {
        names.iter().zip(lengths).map(|(name, &len)| ((*name).to_owned(), len)).collect::<Vec<_>>()
    };
    let last = |dims: &[usize], num: usize| dims[dims.len() - num..].to_vec();
    let all = |what: &str, dims: &[usize]| -> Vec<(String, usize)> {
        dims.iter().enumerate().map(|(axis, &len)| (format!("{what} {axis}"), len)).collect()
    };
    match &node.op {
        Op::Dot { ta, .. } => {
            let ([rows, columns], a) = (last(node.ty.shape(), 2)[..].try_into().unwrap(), last(shape(0), 2));
            let lead = all("batch", &shape(0)[..shape(0).len() - 2]);
            [named(&["m", "n", "k"], &[rows, columns, a[usize::from(!ta)]]), lead].concat()
        }
        Op::Conv { .. } => {
            let (x, y) = (last(shape(0), 4), last(node.ty.shape(), 4));
            let lead = all("batch", &shape(0)[..shape(0).len() - 4]);
            let own = named(&["n", "height", "width", "channels"], &x);
            [own, named(&["outputs"], &y[3..]), lead].concat()
        }
        Op::ConvKernel { .. } => {
            let (x, y) = (last(shape(0), 4), last(shape(1), 4));
            let lead = all("batch", &shape(0)[..shape(0).len() - 4]);
            let own = named(&["n", "height", "width", "channels"], &x);
            [own, named(&["outputs"], &y[3..]), lead].concat()
        }
        Op::Reduce { axes, .. } => {
            let name = |axis| if axes.contains(&axis) { "reduced" } else { "kept" };
            let place = |axis| if axis + 1 == shape(0).len() { "last" } else { "before the last" };
            let label = |axis| format!("{}, {}", name(axis), place(axis));
            shape(0).iter().enumerate().map(|(axis, &len)| (label(axis), len)).collect()
        }
        Op::Gather | Op::Scatter(_) => {
            let columns = &shape(0)[1..];
            [named(&["rows"], shape(0)), all("column", columns), all("index", shape(1))].concat()
        }
        Op::Factor(op) => {
            let (lead, sides) = shape(0).split_at(shape(0).len() - 2);
            let names: &[&str] = if *op == FactorOp::Qr { &["m", "n"] } else { &["n"] };
            [named(names, sides), all("batch", lead)].concat()
        }
        Op::LuSolve { transposed } => {
            let (lead, sides) = shape(2).split_at(shape(2).len() - 2);
            let names = if *transposed { ["n, transposed", "m, transposed"] } else { ["n", "m"] };
            [named(&names, sides), all("batch", lead)].concat()
        }
        Op::TriangularSolve(triangle) => {
            let (lead, sides) = shape(1).split_at(shape(1).len() - 2);
            let names = if triangle.transposed { ["n, transposed", "m, transposed"] } else { ["n", "m"] };
            [named(&names, sides), all("batch", lead)].concat()
        }
        Op::Concat { axis } => {
            let parts: Vec<usize> = (0..node.args.len()).map(|k| shape(k)[*axis]).collect();
            let parts = parts.into_iter().map(|len| ("part".to_owned(), len));
            all("axis", node.ty.shape()).into_iter().chain(parts).collect()
        }
        Op::Slice { .. } | Op::Pad { .. } | Op::Broadcast { .. } | Op::Transpose { .. } => {
            [all("from", shape(0)), all("to", node.ty.shape())].concat()
        }
        Op::Tiles(t) => named(&["rows"], &[t.rows]),
        // The state follows the number of trips, the start time and, if there are any, the tapped times.
        Op::Solve(s) => {
            named(&["rows"], &shape(s.operands(&crate::graph::indices(node.args.len())).carry[0])[..1])
        }
        // The kernel treats the axes as one.
        _ if matches!(node.ty, Type::Array { .. }) => {
            node.ty.shape().iter().map(|&len| ("an axis".to_owned(), len)).collect()
        }
        _ => vec![],
    }
}

/// The nodes of a function that its outputs depend on.
fn live(func: &Func) -> Vec<&Node> {
    let mut is_live = vec![false; func.nodes().len()];
    func.outputs().iter().for_each(|id| is_live[id.index()] = true);
    for (id, node) in func.nodes().iter().enumerate().rev() {
        if is_live[id] {
            node.args.iter().for_each(|arg| is_live[arg.index()] = true);
        }
    }
    func.nodes().iter().enumerate().filter(|(id, _)| is_live[*id]).map(|(_, node)| node).collect()
}

/// The operations that are drawn, without the functions of a float.
const OTHERS: [&str; 46] = [
    "abs",
    "add",
    "broadcast",
    "cast",
    "cholesky",
    "concat",
    "const",
    "conv",
    "conv_kernel",
    "div",
    "dot",
    "eigh",
    "eq",
    "gather",
    "iota",
    "is_finite",
    "le",
    "lincomb",
    "lt",
    "lu",
    "lu_solve",
    "max",
    "min",
    "mul",
    "ne",
    "neg",
    "not",
    "pad",
    "powf",
    "qr",
    "random_bits",
    "reduce_max",
    "reduce_min",
    "reduce_sum",
    "reshape",
    "scatter_add",
    "scatter_max",
    "scatter_set",
    "select",
    "sign",
    "slice",
    "solve",
    "stop_gradient",
    "sub",
    "tiles",
    "triangular_solve",
];

#[test]
fn each_axis_of_each_operation_has_no_one_and_more_elements() {
    let mut drawn: BTreeMap<&str, BTreeMap<String, BTreeSet<usize>>> = BTreeMap::new();
    for seed in 0..2000 {
        let recipe =
            Recipe { ops: 20, float: DType::F64, loops: seed % 4 == 0, short: true, singular: false };
        let (func, _) = function(seed, recipe);
        for node in live(&func) {
            let of_op = drawn.entry(node.op.name()).or_default();
            for (axis, len) in axes(&func, node) {
                of_op.entry(axis).or_default().insert(len.min(2));
            }
        }
    }
    for op in OTHERS
        .into_iter()
        .chain(FloatFn::ALL.iter().map(|f| f.op().name()))
        .chain(ScalarFn::ALL.iter().map(|f| f.name()))
        .chain(LineOp::ALL.map(LineOp::name))
    {
        let of_op = drawn.get(op).unwrap_or_else(|| panic!("{op} is not drawn"));
        assert!(!of_op.is_empty(), "{op} has no axes");
        for (axis, lengths) in of_op {
            let least = usize::from(["height", "width"].contains(&&axis[..]));
            assert_eq!(lengths.iter().copied().collect::<Vec<_>>(), [0, 1, 2][least..], "{axis} of {op}");
        }
    }
}
