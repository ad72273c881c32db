//! Prints functions as text.

use super::MAX_ELEMENTS;
use crate::array::{Array, DType, Data};
use crate::graph::{Checkpoints, Func, Literal, Node, NodeId, Op, Policy, Taps, TileOut, Type, UnaryOp};
use std::fmt::{self, Display, Formatter};

impl Display for Func {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_func(f, self, 0)
    }
}

/// Items joined by commas.
fn joined<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|x| x.to_string()).collect::<Vec<_>>().join(", ")
}

fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    format!("[{}]", joined(items))
}

/// Prints a function from the current position. The closing brace has the indentation `indent` and no
/// newline.
fn write_func(f: &mut Formatter<'_>, func: &Func, indent: usize) -> fmt::Result {
    let input = |&id: &NodeId| match func.nodes().get(id.index()) {
        Some(node) => format!("{id}: {}", node.ty),
        None => format!("{id}: ?"),
    };
    writeln!(f, "func({}) {{", joined(func.inputs().iter().map(input)))?;
    for (i, node) in func.nodes().iter().enumerate() {
        if !matches!(node.op, Op::Input(_)) {
            write_node(f, i, node, indent + 2)?;
        }
    }
    let outputs = joined(func.outputs());
    writeln!(f, "{:indent$}  return{}{outputs}", "", if outputs.is_empty() { "" } else { " " })?;
    write!(f, "{:indent$}}}", "")
}

fn write_node(f: &mut Formatter<'_>, i: usize, node: &Node, indent: usize) -> fmt::Result {
    let attributes = attributes(&node.op, &node.ty);
    write!(f, "{:indent$}%{i} = {}", "", node.op.name())?;
    if !attributes.is_empty() {
        write!(f, "{{{attributes}}}")?;
    }
    if !node.args.is_empty() {
        write!(f, " {}", joined(&node.args))?;
    }
    write!(f, " : {}", node.ty)?;
    let bodies = node.op.bodies();
    if !bodies.is_empty() {
        writeln!(f, " {{")?;
        for (name, body) in bodies {
            write!(f, "{:indent$}  {name}: ", "")?;
            write_func(f, body, indent + 2)?;
            writeln!(f)?;
        }
        write!(f, "{:indent$}}}", "")?;
    }
    writeln!(f)
}

fn attributes(op: &Op, ty: &Type) -> String {
    match op {
        Op::Const(literal) => constant(literal, ty),
        Op::Iota { axis } | Op::Concat { axis } => format!("axis={axis}"),
        Op::Unary(UnaryOp::Powf(p)) => format!("p={}", double(*p)),
        Op::Lincomb { coeffs } => format!("coeffs={}", list(coeffs.iter().map(|&c| double(c)))),
        Op::Broadcast { dims } => format!("dims={}", list(dims)),
        Op::Transpose { perm } => format!("perm={}", list(perm)),
        Op::Slice { start, limit } => format!("start={}, limit={}", list(start), list(limit)),
        Op::Pad { lo, hi } => format!("lo={}, hi={}", list(lo), list(hi)),
        Op::Reduce { axes, .. } => format!("axes={}", list(axes)),
        Op::Dot { ta, tb } => joined([(ta, "ta"), (tb, "tb")].iter().filter(|f| *f.0).map(|f| f.1)),
        Op::Conv { margins: m, turned } => {
            let turned = if *turned { ", turned" } else { "" };
            format!("lo={}, hi={}{turned}", list(m.lo), list(m.hi))
        }
        Op::ConvKernel { margins: m } => format!("lo={}, hi={}", list(m.lo), list(m.hi)),
        Op::LuSolve { transposed: true } => "transposed".into(),
        Op::LuSolve { transposed: false } => String::new(),
        Op::TriangularSolve(triangle) => joined(triangle.flags()),
        Op::RandomBits { stream } => format!("stream={stream}"),
        Op::Proj(k) => format!("k={k}"),
        Op::Solve(s) => {
            let (taps, policy) = (taps(s.taps), policy(s.policy));
            let residuals = [("num_own", s.num_own), ("num_first", s.num_first)];
            let residuals = residuals.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!(", {name}={n}"));
            let residuals: String = residuals.collect();
            format!("num_carry={}, num_ext={}{residuals}{taps}, policy={policy}", s.num_carry, s.num_ext)
        }
        Op::Replay(l) => {
            let counts = [
                ("num_carry", l.num_carry),
                ("num_states", l.num_states),
                ("num_xs", l.num_xs),
                ("num_ys", l.num_ys),
                ("num_sums", l.num_sums),
                ("num_rows", l.num_rows),
                ("num_tap_rows", l.num_tap_rows),
                ("num_residuals", l.num_residuals),
            ];
            let counts = counts.into_iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name}={n}, "));
            let (way, counts) = (if l.is_reversed { "reversed, " } else { "" }, counts.collect::<String>());
            format!("{way}{counts}policy={}", policy(l.policy))
        }
        Op::Tiles(t) => {
            let out = |o: &TileOut| match o {
                TileOut::Rows => "rows",
                TileOut::Sum => "sum",
            };
            let outs = list(t.outs.iter().map(out));
            format!("rows={}, tile={}, num_rowed={}, outs={outs}", t.rows, t.tile, t.num_rowed)
        }
        Op::Custom(c) => format!("num_outs={}", c.num_outs),
        Op::Input(_)
        | Op::Cond(_)
        | Op::Unary(_)
        | Op::Binary(_)
        | Op::Compare(_)
        | Op::Scalar(_)
        | Op::Lines(_)
        | Op::Select
        | Op::Cast
        | Op::StopGradient
        | Op::Observe(_)
        | Op::Reshape
        | Op::Gather
        | Op::Scatter(_)
        | Op::Factor(_) => String::new(),
    }
}

/// The nonzero attributes of a tapped loop; an untapped loop has none.
fn taps(taps: Taps) -> String {
    let numbers = [("num_times", taps.times), ("every", taps.every), ("num_groups", taps.groups)];
    let numbers = numbers.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!(", {name}={n}"));
    numbers.chain(taps.last.then(|| ", last".to_owned())).collect()
}

fn policy(policy: Policy) -> String {
    match policy {
        Policy::Direct => "direct".into(),
        Policy::Forward => "forward".into(),
        Policy::Reversible => "reversible".into(),
        Policy::Checkpoint(Checkpoints::Auto) => "auto".into(),
        Policy::Checkpoint(Checkpoints::Count(n)) => format!("count({n})"),
        Policy::Checkpoint(Checkpoints::Bytes(n)) => format!("bytes({n})"),
    }
}

/// The shortest decimal that parses back to this number; a NaN is printed with its bits.
fn double(bits: u64) -> String {
    let x = f64::from_bits(bits);
    if x.is_nan() { format!("nan({bits:#018x})") } else { format!("{x:?}") }
}

fn single(x: &f32) -> String {
    if x.is_nan() { format!("nan({:#010x})", x.to_bits()) } else { format!("{x:?}") }
}

fn truth(x: &u32) -> &'static str {
    if *x == 0 { "false" } else { "true" }
}

fn constant(literal: &Literal, ty: &Type) -> String {
    match literal {
        Literal::Array(a) if a.data().len() > MAX_ELEMENTS => format!("digest={:#018x}", digest(a)),
        Literal::Array(a) => match a.data() {
            Data::F32(v) => list(v.iter().map(single)),
            Data::F64(v) => list(v.iter().map(|x| double(x.to_bits()))),
            Data::I32(v) => list(v),
            Data::U32(v) => list(v),
            Data::Bool(v) => list(v.iter().map(truth)),
        },
        Literal::Splat { bits, .. } => {
            let x = f64::from_bits(*bits);
            let boolean = matches!(ty, Type::Array { dtype: DType::Bool, .. });
            match x {
                _ if boolean && x.to_bits() == 0.0_f64.to_bits() => "false".into(),
                _ if boolean && x == 1.0 => "true".into(),
                _ if !boolean && !ty.is_float() && *bits == ((x as i64) as f64).to_bits() => {
                    (x as i64).to_string()
                }
                _ => double(*bits),
            }
        }
    }
}

/// The 64-bit FNV-1a hash of the elements' bytes, which is the same on every machine.
fn digest(a: &Array) -> u64 {
    let fold = |h: u64, bytes: &[u8]| {
        bytes.iter().fold(h, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
    };
    let start = 0xcbf2_9ce4_8422_2325;
    match a.data() {
        Data::F32(v) => v.iter().fold(start, |h, x| fold(h, &x.to_le_bytes())),
        Data::F64(v) => v.iter().fold(start, |h, x| fold(h, &x.to_le_bytes())),
        Data::I32(v) => v.iter().fold(start, |h, x| fold(h, &x.to_le_bytes())),
        Data::U32(v) | Data::Bool(v) => v.iter().fold(start, |h, x| fold(h, &x.to_le_bytes())),
    }
}
