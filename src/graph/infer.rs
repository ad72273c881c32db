//! Type inference. This file, with `conv`, `factor`, `systems`, `lines`, `scatter` and `signature`, defines which operands an
//! op takes.

use super::{BinaryOp, Literal, MAX_ROWS, Op, SearchValues, Type, UnaryOp, conv, factor, systems};
use crate::array::{DType, Shape};

/// Operands that do not fit an operation, or a malformed graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// Operand types that do not fit.
    #[error("{op} does not take ({operands}): {why}")]
    Operands {
        /// Name of the operation.
        op: &'static str,
        /// The operands' types.
        operands: String,
        /// The reason.
        why: String,
    },
    /// A node that breaks an invariant of functions.
    #[error("node %{node} ({op}) is not well formed: {why}")]
    Malformed {
        /// Index of the node.
        node: usize,
        /// Name of the operation.
        op: &'static str,
        /// The reason.
        why: String,
    },
    /// A line of the text form that does not parse.
    #[error("line {line} of the graph does not parse: {why}")]
    Parse {
        /// Line number, from 1.
        line: usize,
        /// The reason.
        why: String,
    },
}

type Inferred = Result<Type, String>;

/// The type of `op` applied to operands of the given types; `hint` is the result type where the operands do
/// not determine it.
///
/// # Errors
/// [`GraphError::Operands`] with the operands' types and the reason.
pub fn infer(op: &Op, args: &[&Type], hint: Option<&Type>) -> Result<Type, GraphError> {
    check(op, args, hint).map_err(|why| GraphError::Operands {
        op: op.name(),
        operands: args.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        why,
    })
}

fn check(op: &Op, args: &[&Type], hint: Option<&Type>) -> Inferred {
    count(op, args)?;
    match op {
        Op::Input(_) => hinted(hint),
        Op::Const(literal) => constant(literal, hint),
        Op::Iota { axis } => {
            let ty = hinted(hint)?;
            need(*axis < ty.shape().rank(), || format!("{ty} has no axis {axis}"))?;
            Ok(ty)
        }
        Op::Unary(u) => unary(*u, args[0]),
        Op::Binary(b) => binary(*b, args[0], args[1]),
        Op::Scalar(_) => {
            float(args[0])?;
            same(args)
        }
        Op::Compare(_) => same(args).map(|t| Type::array(DType::Bool, t.shape().clone())),
        Op::Select => select(args),
        Op::Lincomb { coeffs } => {
            need(coeffs.len() == args.len() && !args.is_empty(), || {
                format!("it has {} coefficients", coeffs.len())
            })?;
            float(args[0])?;
            same(args)
        }
        Op::Cast => {
            let ty = hinted(hint)?;
            need(ty.shape() == args[0].shape(), || {
                format!("a cast must keep the shape, but the result is {ty}")
            })?;
            Ok(ty)
        }
        Op::StopGradient => Ok(args[0].clone()),
        Op::Observe(_) => {
            need(matches!(args[0], Type::Array { .. }), || "only an array can be observed".into())?;
            Ok(args[0].clone())
        }
        Op::Broadcast { .. }
        | Op::Reshape
        | Op::Transpose { .. }
        | Op::Slice { .. }
        | Op::Pad { .. }
        | Op::Concat { .. } => movement(op, args, hint),
        Op::Reduce { axes, .. } => {
            need(axes.windows(2).all(|w| w[0] < w[1]), || format!("axes {axes:?} must be ascending"))?;
            need(axes.last().is_none_or(|&a| a < args[0].shape().rank()), || format!("no axes {axes:?}"))?;
            Ok(args[0].with_shape(args[0].shape().without_axes(axes)))
        }
        Op::Lines(op) => super::lines::lines(*op, args[0]),
        Op::Gather => gather(args[0], args[1]),
        Op::Scatter(op) => super::scatter::scatter(*op, [args[0], args[1], args[2]]),
        Op::Dot { ta, tb } => dot(*ta, *tb, args[0], args[1]),
        Op::Conv { margins, turned } => conv::conv(*margins, *turned, args[0], args[1]),
        Op::ConvKernel { margins } => conv::conv_kernel(*margins, args[0], args[1]),
        Op::Factor(op) => factor::factors(*op, args[0]),
        Op::LuSolve { .. } => systems::lu_solve([args[0], args[1], args[2]]),
        Op::TriangularSolve(_) => systems::triangular_solve([args[0], args[1]]),
        Op::RandomBits { .. } => {
            let ty = hinted(hint)?;
            need(ty.dtype() == DType::U32, || format!("random bits must be u32, not {ty}"))?;
            need(args[0] == &Type::array(DType::U32, [2]), || "the key must be u32[2]".into())?;
            need(args[1] == &Type::scalar(DType::U32), || "the start must be u32[]".into())?;
            Ok(ty)
        }
        Op::Solve(_) | Op::Replay(_) | Op::Tiles(_) => loops(op, args),
        Op::Custom(_) | Op::Cond(_) => calls(op, args),
        Op::Proj(k) => match args[0] {
            Type::Tuple(types) => types.get(*k).cloned().ok_or_else(|| format!("the tuple has no value {k}")),
            _ => Err("the operand is not a tuple".into()),
        },
    }
}

fn constant(literal: &Literal, hint: Option<&Type>) -> Inferred {
    let ty = hinted(hint)?;
    need(ty.dtype() == literal.dtype(), || format!("the literal is {}", literal.dtype()))?;
    if let Literal::Array(a) = literal {
        need(ty.shape() == a.shape(), || format!("the literal is {}{}", a.dtype(), a.shape()))?;
    }
    Ok(ty)
}

pub(super) fn need(ok: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if ok { Ok(()) } else { Err(why()) }
}

fn hinted(hint: Option<&Type>) -> Inferred {
    hint.cloned().ok_or_else(|| "the result's type must be given".into())
}

fn count(op: &Op, args: &[&Type]) -> Result<(), String> {
    let n = match op {
        Op::Input(_) | Op::Const(_) | Op::Iota { .. } => 0,
        Op::Unary(_)
        | Op::Cast
        | Op::StopGradient
        | Op::Observe(_)
        | Op::Broadcast { .. }
        | Op::Reshape
        | Op::Transpose { .. }
        | Op::Slice { .. }
        | Op::Pad { .. }
        | Op::Reduce { .. }
        | Op::Lines(_)
        | Op::Factor(_)
        | Op::Proj(_) => 1,
        Op::Binary(_) | Op::Compare(_) | Op::Gather | Op::RandomBits { .. } => 2,
        Op::Dot { .. } | Op::Conv { .. } | Op::ConvKernel { .. } | Op::TriangularSolve(_) => 2,
        Op::Scalar(f) => f.arity(),
        Op::Select | Op::Scatter(_) | Op::LuSolve { .. } => 3,
        _ => return Ok(()),
    };
    need(args.len() == n, || format!("it takes {n} operands"))
}

/// An array type with the element type of `x` and these dimensions, if its size fits into memory.
pub(super) fn sized(x: &Type, dims: Vec<usize>) -> Inferred {
    Shape::try_new(dims).map(|shape| x.with_shape(shape)).map_err(|error| error.to_string())
}

fn same(args: &[&Type]) -> Inferred {
    need(args.iter().all(|t| *t == args[0]), || "the operands must have equal types".into())?;
    Ok(args[0].clone())
}

fn float(ty: &Type) -> Result<(), String> {
    need(ty.is_float(), || format!("{ty} is not a float array"))
}

fn unary(op: UnaryOp, x: &Type) -> Inferred {
    match op {
        UnaryOp::Not => need(x.dtype() == DType::Bool, || "the operand must be bool".into())?,
        UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sign if x.dtype() == DType::I32 => {}
        _ => float(x)?,
    }
    Ok(if op == UnaryOp::IsFinite { Type::array(DType::Bool, x.shape().clone()) } else { x.clone() })
}

fn binary(op: BinaryOp, a: &Type, b: &Type) -> Inferred {
    let ty = same(&[a, b])?;
    let bool_operand = ty.dtype() == DType::Bool;
    match op {
        BinaryOp::And | BinaryOp::Or => need(bool_operand, || "the operands must be bool".into())?,
        BinaryOp::Div => float(&ty)?,
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Max | BinaryOp::Min => {
            need(!bool_operand, || "arithmetic is not defined for bool".into())?;
        }
    }
    Ok(ty)
}

fn select(args: &[&Type]) -> Inferred {
    need(args[0].dtype() == DType::Bool && args[0].shape() == args[1].shape(), || {
        format!("the condition must be bool{}", args[1].shape())
    })?;
    same(&args[1..])
}

fn movement(op: &Op, args: &[&Type], hint: Option<&Type>) -> Inferred {
    let x = args.first().ok_or("it takes an operand")?;
    let (s, rank) = (x.shape(), x.shape().rank());
    match op {
        Op::Broadcast { dims } => {
            let ty = hinted(hint)?;
            let to = ty.shape();
            need(ty.dtype() == x.dtype(), || "a broadcast must keep the element type".into())?;
            need(dims.len() == rank && dims.windows(2).all(|w| w[0] < w[1]), || {
                format!("dims {dims:?} must be ascending, one per axis of the operand")
            })?;
            let fits = |i: usize| dims[i] < to.rank() && (s[i] == 1 || s[i] == to[dims[i]]);
            need((0..rank).all(fits), || format!("it cannot be broadcast to {to} with dims {dims:?}"))?;
            Ok(ty)
        }
        Op::Reshape => {
            let ty = hinted(hint)?;
            need(ty.dtype() == x.dtype() && ty.shape().size() == s.size(), || {
                format!("{ty} has a different number or type of elements")
            })?;
            Ok(ty)
        }
        Op::Transpose { perm } => {
            let mut seen = vec![false; rank];
            perm.iter().filter(|&&p| p < rank).for_each(|&p| seen[p] = true);
            need(perm.len() == rank && seen.iter().all(|&b| b), || format!("{perm:?} is not a permutation"))?;
            Ok(x.with_shape(perm.iter().map(|&p| s[p]).collect::<Vec<_>>()))
        }
        Op::Slice { start, limit } => {
            let ok = start.len() == rank && limit.len() == rank;
            let within = |i: usize| start[i] <= limit[i] && limit[i] <= s[i];
            need(ok && (0..rank).all(within), || format!("{start:?}..{limit:?} is out of range"))?;
            Ok(x.with_shape((0..rank).map(|i| limit[i] - start[i]).collect::<Vec<_>>()))
        }
        Op::Pad { lo, hi } => {
            need(lo.len() == rank && hi.len() == rank, || {
                format!("{lo:?} and {hi:?} must have one number per axis")
            })?;
            let padded = |i: usize| lo[i].checked_add(s[i])?.checked_add(hi[i]);
            let dims = (0..rank).map(padded).collect::<Option<Vec<_>>>();
            sized(
                x,
                dims.ok_or_else(|| {
                    format!("{lo:?} and {hi:?} pad to more elements than memory can address")
                })?,
            )
        }
        Op::Concat { axis } => {
            need(*axis < rank, || format!("the operands have no axis {axis}"))?;
            let rest = |t: &Type| t.with_shape(t.shape().with_axis(*axis, 0));
            let fits = args.iter().all(|t| t.shape().rank() == rank && rest(t) == rest(x));
            need(args.iter().all(|t| t.dtype() == x.dtype()), || {
                "the operands differ in element type".into()
            })?;
            need(fits, || format!("the operands differ in axes other than {axis}"))?;
            let mut dims = s.to_vec();
            let lengths = args.iter().map(|t| t.shape()[*axis]);
            dims[*axis] = lengths.fold(0, usize::saturating_add);
            sized(x, dims)
        }
        other => Err(format!("invariant: {} is not a movement op", other.name())),
    }
}

pub(super) fn gather(x: &Type, index: &Type) -> Inferred {
    need(x.shape().rank() >= 1, || "the operand has no axis of rows".into())?;
    need(x.shape()[0] > 0 || index.shape().size() == 0, || {
        format!("the operand has no rows, but the index has shape {}", index.shape())
    })?;
    need(index.dtype() == DType::I32, || "the index must be i32".into())?;
    sized(x, index.shape().iter().chain(&x.shape()[1..]).copied().collect())
}

fn dot(ta: bool, tb: bool, a: &Type, b: &Type) -> Inferred {
    float(a)?;
    need(a.dtype() == b.dtype(), || "the operands differ in element type".into())?;
    let (Some((batch, p)), Some((batch2, q))) =
        (a.shape().split_last_chunk::<2>(), b.shape().split_last_chunk::<2>())
    else {
        return Err("the operands must be matrices or batches of them".into());
    };
    need(batch == batch2, || format!("the leading axes {batch:?} and {batch2:?} differ"))?;
    let turned = |s: &[usize; 2], t: bool| if t { (s[1], s[0]) } else { (s[0], s[1]) };
    let ((m, k), (k2, n)) = (turned(p, ta), turned(q, tb));
    need(k == k2, || format!("the inner lengths {k} and {k2} differ"))?;
    sized(a, [batch, &[m, n]].concat())
}

fn is(args: &[&Type], at: usize, want: &[Type], what: &str) -> Result<(), String> {
    for (i, w) in want.iter().enumerate() {
        let got = args.get(at + i).ok_or_else(|| format!("{what} {i} is missing"))?;
        need(*got == w, || format!("{what} {i} is {got} but the body takes {w}"))?;
    }
    Ok(())
}

fn loops(op: &Op, args: &[&Type]) -> Inferred {
    match op {
        Op::Solve(s) => {
            let f64s = |dims: &[usize]| Type::array(DType::F64, [s.rows().as_slice(), dims].concat());
            is(args, 0, &[Type::scalar(DType::U32), f64s(&[])], "operand")?;
            if s.taps.times > 0 {
                is(args, 2, &[f64s(&[s.taps.times])], "operand")?;
            }
            s.fits()?;
            let takes = s.attempt_inputs(&s.attempt.input_types());
            let first = s.step_outputs(&s.step.output_types()).residuals.split_off(s.num_own);
            let wanted = [takes.carry, takes.ext, first, takes.captures].concat();
            let at = 2 + usize::from(s.taps.times > 0);
            is(args, at, &wanted, "operand of the attempt")?;
            need(args.len() == at + wanted.len(), || format!("it takes {} operands", at + wanted.len()))?;
            let gives = s.attempt_outputs(&s.attempt.output_types());
            let values = SearchValues {
                carry: gives.carry,
                ext: gives.ext,
                schedule: vec![Type::Schedule],
                tape: vec![Type::Tape],
                tapped: gives.taps.iter().map(|ty| s.taps.tapped(ty, s.rows())).collect(),
            };
            Ok(Type::Tuple(values.join()))
        }
        Op::Replay(l) => {
            l.fits()?;
            let wanted = l.operand_types();
            is(args, 0, &wanted, "operand")?;
            need(args.len() == wanted.len(), || format!("it takes {} operands", wanted.len()))?;
            Ok(Type::Tuple(l.value_types()))
        }
        Op::Tiles(t) => {
            need(t.rows <= MAX_ROWS, || format!("{} rows exceed the limit of {MAX_ROWS}", t.rows))?;
            let body = t.body.input_types();
            let rowed = &body[1..=t.num_rowed];
            let rows: Vec<Type> =
                rowed.iter().map(|ty| ty.with_shape(ty.shape().with_axis(0, t.rows))).collect();
            is(args, 0, &rows, "rows")?;
            is(args, t.num_rowed, &body[1 + t.num_rowed..], "shared operand")?;
            need(args.len() == body.len() - 1, || format!("it takes {} operands", body.len() - 1))?;
            Ok(Type::Tuple((0..t.outs.len()).map(|k| t.out_type(k)).collect()))
        }
        other => Err(format!("invariant: {} is not a loop", other.name())),
    }
}

fn calls(op: &Op, args: &[&Type]) -> Inferred {
    let (first, body, what) = match op {
        Op::Custom(c) => (0, &c.body, "operand"),
        Op::Cond(c) => (1, &c.then, "operand of the branches"),
        other => return Err(format!("invariant: {} is not a call", other.name())),
    };
    is(args, 0, &[Type::scalar(DType::Bool)][..first], "predicate")?;
    is(args, first, &body.input_types(), what)?;
    let n = first + body.num_inputs();
    need(args.len() == n, || format!("it takes {n} operands"))?;
    Ok(Type::Tuple(body.output_types()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misfit_names_the_operation_and_both_shapes() {
        let (a, b) = (Type::array(DType::F32, [2, 3]), Type::array(DType::F32, [4, 5]));
        let e = infer(&Op::Dot { ta: false, tb: false }, &[&a, &b], None).unwrap_err();
        assert_eq!(e.to_string(), "dot does not take (f32[2,3], f32[4,5]): the inner lengths 3 and 4 differ");
    }

    #[test]
    fn a_batch_of_products_has_equal_leading_axes() {
        let of = |dims: &[usize]| Type::array(DType::F32, dims);
        let dot = |a: &[usize], b: &[usize], ta, tb| infer(&Op::Dot { ta, tb }, &[&of(a), &of(b)], None);
        assert_eq!(dot(&[5, 2, 3], &[5, 3, 4], false, false), Ok(of(&[5, 2, 4])));
        assert_eq!(dot(&[6, 5, 3, 2], &[6, 5, 4, 3], true, true), Ok(of(&[6, 5, 2, 4])));
        let why = |a: &[usize], b: &[usize]| dot(a, b, false, false).unwrap_err().to_string();
        assert!(why(&[5, 2, 3], &[1, 3, 4]).ends_with("the leading axes [5] and [1] differ"));
        assert!(why(&[5, 2, 3], &[3, 4]).ends_with("the leading axes [5] and [] differ"));
        assert!(why(&[3], &[3, 4]).ends_with("the operands must be matrices or batches of them"));
    }

    #[test]
    fn only_an_empty_index_fits_an_operand_without_rows() {
        let (none, index) = (Type::array(DType::F32, [0, 3]), |len| Type::array(DType::I32, [len]));
        assert_eq!(infer(&Op::Gather, &[&none, &index(0)], None), Ok(none.clone()));
        let e = infer(&Op::Gather, &[&none, &index(2)], None).unwrap_err().to_string();
        assert!(e.ends_with("the operand has no rows, but the index has shape [2]"), "{e}");
    }

    #[test]
    fn a_broadcast_keeps_its_promise() {
        let x = Type::array(DType::F32, [3]);
        let to = Type::array(DType::F32, [2, 3]);
        assert_eq!(infer(&Op::Broadcast { dims: vec![1] }, &[&x], Some(&to)), Ok(to.clone()));
        assert!(infer(&Op::Broadcast { dims: vec![0] }, &[&x], Some(&to)).is_err());
    }
}
