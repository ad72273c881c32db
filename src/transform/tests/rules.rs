//! The rules of simplification, one by one.

use super::passes::count;
use super::*;
use crate::graph::{BinaryOp, CompareOp, Literal, Node, Op, ReduceOp, UnaryOp};
use crate::transform::simplify;

/// Asserts that `rule(x, y)` simplifies to the operations `names`, in this order.
#[track_caller]
fn becomes(rule: impl FnOnce(&mut Builder, NodeId, NodeId) -> NodeId, names: &[&str]) -> Func {
    let f = func(&[f64s([3, 2]), f64s([3, 2])], |b, x| vec![rule(b, x[0], x[1])]);
    let s = simplify(&f);
    let got: Vec<&str> = s.nodes().iter().map(|n| n.op.name()).filter(|n| *n != "input").collect();
    assert_eq!(got, names);
    let mut draws = Draws::new(5);
    let x: Vec<Array> = f.input_types().iter().map(|t| draws.array(t)).collect();
    assert_eq!(eval(&s, &x), eval(&f, &x));
    s
}

#[test]
fn arithmetic_that_changes_nothing_goes() {
    use BinaryOp::{Add, Div, Mul, Sub};
    let number_last = [
        (Add, 0.0, &[][..]),
        (Sub, 0.0, &[]),
        (Mul, 1.0, &[]),
        (Mul, -1.0, &["neg"]),
        (Div, 1.0, &[]),
        (Div, -4.0, &["const", "mul"]),
        (Div, 3.0, &["const", "div"]),
        // Not simplified: x may be infinite.
        (Mul, 0.0, &["const", "mul"]),
    ];
    for (op, c, names) in number_last {
        let apply = |b: &mut Builder, x| {
            let c = b.splat_like(x, c);
            b.binary(op, x, c)
        };
        becomes(|b, x, _| apply(b, x), names);
    }
    for (op, c, names) in [(Add, 0.0, &[][..]), (Sub, 0.0, &["neg"]), (Mul, 1.0, &[])] {
        let apply = |b: &mut Builder, x| {
            let c = b.splat_like(x, c);
            b.binary(op, c, x)
        };
        becomes(|b, x, _| apply(b, x), names);
    }
}

#[test]
fn negations_merge_with_their_neighbors() {
    use BinaryOp::{Add, Mul, Sub};
    let cases = [
        (Add, [false, true], "sub"),
        (Add, [true, false], "sub"),
        (Sub, [false, true], "add"),
        (Mul, [true, true], "mul"),
    ];
    for (op, negated, name) in cases {
        let apply = |b: &mut Builder, x, y| {
            let [x, y] = [(x, negated[0]), (y, negated[1])].map(|(v, n)| if n { b.neg(v) } else { v });
            b.binary(op, x, y)
        };
        becomes(apply, &[name]);
    }
    let twice = |b: &mut Builder, x, _| {
        let n = b.neg(x);
        b.neg(n)
    };
    becomes(twice, &[]);
    let scaled = |b: &mut Builder, x, _| {
        let d = b.scale(x, 3.0);
        b.neg(d)
    };
    becomes(scaled, &["const", "mul"]);
}

#[test]
fn nothing_is_reassociated() {
    let scaled = |b: &mut Builder, x, _| {
        let d = b.scale(x, 0.1);
        b.scale(d, 0.3)
    };
    becomes(scaled, &["const", "mul", "const", "mul"]);
    let canceled = |b: &mut Builder, x, _| {
        let d = b.sub(x, x);
        b.add(x, d)
    };
    becomes(canceled, &["sub", "add"]);
}

#[test]
fn choices_that_are_made_go() {
    becomes(
        |b, x, y| {
            let p = b.splat(DType::Bool, [3, 2], 1.0);
            b.select(p, x, y)
        },
        &[],
    );
    becomes(
        |b, x, y| {
            let p = b.compare(CompareOp::Lt, x, y);
            b.select(p, x, x)
        },
        &[],
    );
    let s = |b: &mut Builder, x, y| {
        let p = b.compare(CompareOp::Lt, x, y);
        let inner = b.select(p, x, y);
        let not = b.unary(UnaryOp::Not, p);
        b.select(not, y, inner)
    };
    becomes(s, &["lt", "select"]);
    becomes(|b, x, _| b.binary(BinaryOp::Max, x, x), &[]);
}

#[test]
fn numbers_fold_as_the_machine_rounds_them() {
    let f = func(&[Type::array(DType::F32, [2])], |b, x| {
        let (p, q) = (b.splat(DType::F32, [2], 0.1), b.splat(DType::F32, [2], 0.2));
        let sum = b.add(p, q);
        let (i, j) = (b.splat(DType::I32, [], f64::from(i32::MAX)), b.splat(DType::I32, [], 2.0));
        vec![b.mul(x[0], sum), b.mul(i, j)]
    });
    let s = simplify(&f);
    let number = |n: &Node| {
        if let Op::Const(Literal::Splat { bits, .. }) = n.op { Some(f64::from_bits(bits)) } else { None }
    };
    let found: Vec<f64> = s.nodes().iter().filter_map(number).collect();
    assert_eq!(found, [f64::from(0.1f32 + 0.2f32), -2.0]);
}

#[test]
fn movements_that_cancel_go() {
    becomes(
        |b, x, _| {
            let t = b.transpose(x, vec![1, 0]);
            b.transpose(t, vec![1, 0])
        },
        &[],
    );
    becomes(
        |b, x, _| {
            let r = b.reshape(x, [6]);
            b.reshape(r, [3, 2])
        },
        &[],
    );
    becomes(
        |b, x, y| {
            let t = b.transpose(y, vec![1, 0]);
            b.dot(x, t, false, false)
        },
        &["dot"],
    );
}

#[test]
fn a_row_without_its_axis_is_repeated_as_it_is() {
    let row = |b: &mut Builder, x| {
        let r = b.push(Op::Slice { start: vec![0, 0], limit: vec![1, 2] }, &[x], None);
        let r = b.reshape(r, [2]);
        b.broadcast(r, &Shape::from([3, 2]), vec![1])
    };
    becomes(|b, x, _| row(b, x), &["slice", "reshape", "broadcast"]);
}

#[test]
fn products_read_a_turned_operand_as_it_is() {
    let dot = |op: &Op| matches!(op, Op::Dot { .. });
    let with = |perm: [usize; 3], a: [usize; 3], c: [usize; 3]| {
        let f = func(&[f64s(a), f64s(c)], |b, x| {
            let t = b.transpose(x[0], perm.to_vec());
            vec![b.dot(x[1], t, false, false)]
        });
        let s = simplify(&f);
        (s.nodes().len(), s.nodes().iter().find(|n| dot(&n.op)).map(|n| n.op.clone()))
    };
    let turned = with([0, 2, 1], [2, 4, 3], [2, 5, 3]);
    assert_eq!(turned, (3, Some(Op::Dot { ta: false, tb: true })));
    // A permutation that also moves the batch axis cannot become a flag of the product.
    let moved = with([2, 0, 1], [3, 4, 2], [2, 5, 3]);
    assert_eq!(moved, (4, Some(Op::Dot { ta: false, tb: false })));
}

fn cut(b: &mut Builder, x: NodeId, from: usize, to: usize) -> NodeId {
    b.push(Op::Slice { start: vec![from, 0], limit: vec![to, 2] }, &[x], None)
}

fn pad(b: &mut Builder, x: NodeId, lo: usize, hi: usize) -> NodeId {
    b.push(Op::Pad { lo: vec![lo, 0], hi: vec![hi, 0] }, &[x], None)
}

#[test]
fn an_array_taken_apart_and_put_together_is_whole() {
    becomes(
        |b, x, _| {
            let p = pad(b, x, 1, 2);
            cut(b, p, 1, 4)
        },
        &[],
    );
    becomes(
        |b, x, _| {
            let p = pad(b, x, 1, 2);
            cut(b, p, 4, 6)
        },
        &["const"],
    );
    becomes(
        |b, x, y| {
            let c = b.push(Op::Concat { axis: 0 }, &[x, y], None);
            cut(b, c, 3, 6)
        },
        &[],
    );
    becomes(
        |b, x, _| {
            let (p, q, r) = (cut(b, x, 0, 1), cut(b, x, 1, 2), cut(b, x, 2, 3));
            b.push(Op::Concat { axis: 0 }, &[p, q, r], None)
        },
        &[],
    );
    becomes(
        |b, x, y| {
            let (p, q) = (pad(b, x, 0, 3), pad(b, y, 3, 0));
            b.add(p, q)
        },
        &["concat"],
    );
    becomes(
        |b, x, _| {
            let (p, q, r) = (cut(b, x, 0, 1), cut(b, x, 1, 2), cut(b, x, 2, 3));
            let (p, q, r) = (pad(b, p, 0, 2), pad(b, q, 1, 1), pad(b, r, 2, 0));
            let s = b.add(r, q);
            b.add(s, p)
        },
        &[],
    );
}

#[test]
fn repetition_comes_last() {
    let row = |b: &mut Builder, x| {
        let r = b.push(Op::Slice { start: vec![0, 0], limit: vec![1, 2] }, &[x], None);
        b.broadcast(r, &Shape::from([3, 2]), vec![0, 1])
    };
    let f = becomes(
        |b, x, y| {
            let (p, q) = (row(b, x), row(b, y));
            let s = b.mul(p, q);
            b.unary(UnaryOp::Tanh, s)
        },
        &["slice", "slice", "mul", "tanh", "broadcast"],
    );
    assert_eq!(**f.nodes()[4].ty.shape(), [1, 2]);
    becomes(
        |b, x, _| {
            let r = row(b, x);
            b.reduce(ReduceOp::Max, r, vec![0])
        },
        &["slice", "reshape"],
    );
    let f = func(&[f64s([2])], |b, x| {
        let wide = b.broadcast(x[0], &Shape::from([4, 2]), vec![1]);
        let ones = b.splat(DType::F64, [4, 2], 1.0);
        vec![b.reduce(ReduceOp::Sum, wide, vec![0]), b.reduce(ReduceOp::Sum, ones, vec![0, 1])]
    });
    let s = simplify(&f);
    assert_eq!(
        eval(&s, &[Array::from_vec([2], vec![0.5, 3.0])]),
        eval(&f, &[Array::from_vec([2], vec![0.5, 3.0])])
    );
    assert_eq!(count(&s, |op| matches!(op, Op::Reduce { .. } | Op::Broadcast { .. })), 0);
}
