//! Partial derivatives of elementwise functions: one table for both directions.
//!
//! A partial derivative multiplies a tangent in forward mode and a cotangent in reverse mode. It is an enum,
//! not a node, so that `1`, `-1` and division need no product. The derivative of a maximum uses a select, not
//! a product, so that a value that is not the maximum never leads to `0 * inf`.

use crate::graph::{BinaryOp, Builder, CompareOp, NodeId, Op, ScalarFn, UnaryOp};

/// The partial derivative of an elementwise function.
#[derive(Clone, Copy, Debug)]
pub(super) enum Partial {
    Zero,
    One,
    MinusOne,
    Times(NodeId),
    Over(NodeId),
    /// 1 where `wins`, 1/2 where `ties`, else 0.
    Share {
        wins: NodeId,
        ties: NodeId,
    },
}

impl Partial {
    /// The partial times `d`; `None` if it is 0.
    pub(super) fn apply(self, b: &mut Builder, d: NodeId) -> Option<NodeId> {
        Some(match self {
            Partial::Zero => return None,
            Partial::One => d,
            Partial::MinusOne => b.neg(d),
            Partial::Times(p) => b.mul(d, p),
            Partial::Over(p) => b.div(d, p),
            Partial::Share { wins, ties } => {
                let (half, zero) = (b.scale(d, 0.5), b.splat_like(d, 0.0));
                let shared = b.select(ties, half, zero);
                b.select(wins, d, shared)
            }
        })
    }
}

/// The derivative of `y = op(x)`.
pub(super) fn unary(b: &mut Builder, op: UnaryOp, x: NodeId, y: NodeId) -> Partial {
    match op {
        UnaryOp::Neg => Partial::MinusOne,
        UnaryOp::Abs => Partial::Times(b.unary(UnaryOp::Sign, x)),
        UnaryOp::Sign | UnaryOp::Floor | UnaryOp::Not | UnaryOp::IsFinite => Partial::Zero,
        UnaryOp::Exp => Partial::Times(y),
        UnaryOp::Expm1 => {
            let one = b.splat_like(y, 1.0);
            Partial::Times(b.add(y, one))
        }
        UnaryOp::Ln => Partial::Over(x),
        UnaryOp::Log1p => {
            let one = b.splat_like(x, 1.0);
            Partial::Over(b.add(x, one))
        }
        UnaryOp::Sqrt => Partial::Over(b.add(y, y)),
        UnaryOp::Sin => Partial::Times(b.unary(UnaryOp::Cos, x)),
        UnaryOp::Cos => {
            let sin = b.unary(UnaryOp::Sin, x);
            Partial::Times(b.neg(sin))
        }
        UnaryOp::Atan => {
            let (one, square) = (b.splat_like(x, 1.0), b.mul(x, x));
            Partial::Over(b.add(one, square))
        }
        UnaryOp::Tanh => {
            let (one, square) = (b.splat_like(y, 1.0), b.mul(y, y));
            Partial::Times(b.sub(one, square))
        }
        UnaryOp::Sigmoid => {
            let one = b.splat_like(y, 1.0);
            let rest = b.sub(one, y);
            Partial::Times(b.mul(y, rest))
        }
        UnaryOp::Softplus => Partial::Times(b.unary(UnaryOp::Sigmoid, x)),
        UnaryOp::Erf => {
            // e^(-x^2) is a separate node, so that all derivatives, and a density in the same function, share
            // one exp.
            let square = b.mul(x, x);
            let falling = b.neg(square);
            let bell = b.unary(UnaryOp::Exp, falling);
            Partial::Times(b.scale(bell, std::f64::consts::FRAC_2_SQRT_PI))
        }
        UnaryOp::Powf(bits) => power(b, f64::from_bits(bits), x),
    }
}

/// p x^(p-1), without a power if the exponent is 0 or 1.
fn power(b: &mut Builder, p: f64, x: NodeId) -> Partial {
    if p == 0.0 {
        return Partial::Zero;
    }
    if p == 1.0 {
        return Partial::One;
    }
    let raised = match p {
        2.0 => x,
        3.0 => b.mul(x, x),
        _ => b.unary(UnaryOp::Powf((p - 1.0).to_bits()), x),
    };
    Partial::Times(b.scale(raised, p))
}

/// The derivative of `y = op(x0, x1)` with respect to operand `k`.
pub(super) fn binary(b: &mut Builder, op: BinaryOp, x: [NodeId; 2], y: NodeId, k: usize) -> Partial {
    match (op, k) {
        (BinaryOp::Add, _) | (BinaryOp::Sub, 0) => Partial::One,
        (BinaryOp::Sub, _) => Partial::MinusOne,
        (BinaryOp::Mul, _) => Partial::Times(x[1 - k]),
        (BinaryOp::Div, 0) => Partial::Over(x[1]),
        (BinaryOp::Div, _) => {
            let quotient = b.div(y, x[1]);
            Partial::Times(b.neg(quotient))
        }
        (BinaryOp::Max, _) => share(b, x[1 - k], x[k], x),
        (BinaryOp::Min, _) => share(b, x[k], x[1 - k], x),
        (BinaryOp::And | BinaryOp::Or, _) => Partial::Zero,
    }
}

fn share(b: &mut Builder, less: NodeId, more: NodeId, x: [NodeId; 2]) -> Partial {
    let wins = b.compare(CompareOp::Lt, less, more);
    Partial::Share { wins, ties: b.compare(CompareOp::Eq, x[0], x[1]) }
}

/// The derivative of `y = f(x..)` with respect to operand `k`.
pub(super) fn scalar(b: &mut Builder, f: ScalarFn, x: &[NodeId], y: NodeId, k: usize) -> Partial {
    if let &[x] = x { of_one(b, f, x, y) } else { of_two(b, f, x, (y, k)) }
}

fn push(b: &mut Builder, f: ScalarFn, x: &[NodeId]) -> NodeId {
    b.push(Op::Scalar(f), x, None)
}

fn of_one(b: &mut Builder, f: ScalarFn, x: NodeId, y: NodeId) -> Partial {
    let number = |b: &mut Builder, c: f64| b.splat_like(x, c);
    match f {
        ScalarFn::Tan => {
            let (one, square) = (number(b, 1.0), b.mul(y, y));
            Partial::Times(b.add(one, square))
        }
        ScalarFn::Asin | ScalarFn::Acos => {
            let squares = between(b, x);
            let root = b.unary(UnaryOp::Sqrt, squares);
            Partial::Over(if f == ScalarFn::Asin { root } else { b.neg(root) })
        }
        ScalarFn::Sinh => Partial::Times(push(b, ScalarFn::Cosh, &[x])),
        ScalarFn::Cosh => Partial::Times(push(b, ScalarFn::Sinh, &[x])),
        ScalarFn::Asinh => {
            let one = number(b, 1.0);
            Partial::Over(push(b, ScalarFn::Hypot, &[x, one]))
        }
        ScalarFn::Acosh => {
            let one = number(b, 1.0);
            let roots = [b.sub(x, one), b.add(x, one)].map(|x| b.unary(UnaryOp::Sqrt, x));
            Partial::Over(b.mul(roots[0], roots[1]))
        }
        ScalarFn::Atanh => Partial::Over(between(b, x)),
        ScalarFn::Log2 => Partial::Over(b.scale(x, std::f64::consts::LN_2)),
        ScalarFn::Log10 => Partial::Over(b.scale(x, std::f64::consts::LN_10)),
        ScalarFn::Round => Partial::Zero,
        ScalarFn::ErfInv => {
            let square = b.mul(y, y);
            let growing = b.unary(UnaryOp::Exp, square);
            Partial::Times(b.scale(growing, 1.0 / std::f64::consts::FRAC_2_SQRT_PI))
        }
        ScalarFn::LnGamma => {
            let order = number(b, 0.0);
            Partial::Times(push(b, ScalarFn::Polygamma, &[order, x]))
        }
        _ => unreachable!("invariant: {} has two operands", f.name()),
    }
}

fn of_two(b: &mut Builder, f: ScalarFn, x: &[NodeId], (y, k): (NodeId, usize)) -> Partial {
    let like = x[0];
    let number = |b: &mut Builder, c: f64| b.splat_like(like, c);
    match (f, k) {
        (ScalarFn::Polygamma, 0) => Partial::Zero,
        (ScalarFn::Polygamma, _) => {
            let one = number(b, 1.0);
            let order = b.add(x[0], one);
            Partial::Times(push(b, ScalarFn::Polygamma, &[order, x[1]]))
        }
        (ScalarFn::Pow, 0) => {
            // At b = 0 the derivative is 0, also where a^(b - 1) is infinite.
            let (zero, one) = (number(b, 0.0), number(b, 1.0));
            let is_constant = b.compare(CompareOp::Eq, x[1], zero);
            let lower = b.sub(x[1], one);
            let exponent = b.select(is_constant, one, lower);
            let power = push(b, ScalarFn::Pow, &[x[0], exponent]);
            Partial::Times(b.mul(x[1], power))
        }
        (ScalarFn::Pow, _) => {
            // 0^b is constant for b > 0.
            let (zero, one) = (number(b, 0.0), number(b, 1.0));
            let is_zero = b.compare(CompareOp::Eq, x[0], zero);
            let base = b.select(is_zero, one, x[0]);
            let log = b.unary(UnaryOp::Ln, base);
            Partial::Times(b.mul(y, log))
        }
        (ScalarFn::Rem, 0) => Partial::One,
        (ScalarFn::Rem, _) => {
            // a - y is a multiple of b: rounding removes the error of the quotient.
            let multiple = b.sub(x[0], y);
            let quotient = b.div(multiple, x[1]);
            let whole = push(b, ScalarFn::Round, &[quotient]);
            Partial::Times(b.neg(whole))
        }
        (ScalarFn::Atan2, k) => {
            // With r = hypot(y, x): x / r^2 and -y / r^2, without overflow of r^2.
            let r = push(b, ScalarFn::Hypot, x);
            let other = b.div(x[1 - k], r);
            let rate = b.div(other, r);
            Partial::Times(if k == 0 { rate } else { b.neg(rate) })
        }
        (ScalarFn::Hypot, k) => {
            // 0 at the origin.
            let (zero, one) = (number(b, 0.0), number(b, 1.0));
            let is_origin = b.compare(CompareOp::Eq, y, zero);
            let r = b.select(is_origin, one, y);
            Partial::Times(b.div(x[k], r))
        }
        _ => unreachable!("invariant: {} has one operand", f.name()),
    }
}

/// `1 - x^2` as `(1 - x) (1 + x)`, accurate near 1 and -1.
fn between(b: &mut Builder, x: NodeId) -> NodeId {
    let one = b.splat_like(x, 1.0);
    let (below, above) = (b.sub(one, x), b.add(one, x));
    b.mul(below, above)
}
