//! Programs that factor large matrices and solve systems with them, as arguments of the program.
//!
//! A program computes `a + s da` and `b + r db` for numbers s and r, which are 0, so that a matrix without an inverse stays
//! one. It has derivatives by s and r only: NumPy would compute a derivative along each of the elements otherwise.
//!
//! Ranges: orders 0 to 64, up to 8 in batches; no batch axes, or one of 0, 1 or 17 matrices; 0, 1 or 3 right-hand sides; f32
//! and f64; transposed or not; matrices of uniform entries, permuted ones, and ones with two equal rows, a column of zeros
//! or a NaN.

use super::super::Rng;
use super::super::systems::{Kind, array, matrix};
use super::{EXAMPLES, Program};
use crate::array::{Array, DType};
use crate::graph::{Builder, FactorOp, Func, NodeId, Op, Type};
use crate::ode::tests::draw::Draw;

const LEAD: [&[usize]; 7] = [&[], &[], &[], &[0], &[1], &[17], &[17]];
const RIGHT_SIDES: [usize; 5] = [0, 1, 1, 3, 3];
/// The kinds of matrices; the regular ones come first.
const KINDS: [Kind; 8] = [
    Kind::Uniform,
    Kind::Uniform,
    Kind::Uniform,
    Kind::Permuted,
    Kind::Permuted,
    Kind::EqualRows,
    Kind::ZeroColumn,
    Kind::NaN,
];
const NUM_REGULAR: usize = 5;

/// The shapes of a program, and what its matrices are.
struct Case {
    dtype: DType,
    lead: &'static [usize],
    n: usize,
    m: usize,
    transposed: bool,
    /// Whether all matrices are regular.
    regular: bool,
}

impl Case {
    fn new(draw: &mut Draw) -> Case {
        let lead = draw.one(&LEAD);
        let n = if lead.contains(&17) { draw.below(9) } else { draw.below(65) };
        Case {
            dtype: draw.one(&[DType::F32, DType::F64]),
            lead,
            n,
            m: draw.one(&RIGHT_SIDES),
            transposed: draw.coin(),
            regular: draw.coin(),
        }
    }

    fn kind(&self, draw: &mut Draw) -> Kind {
        draw.one(if self.regular { &KINDS[..NUM_REGULAR] } else { &KINDS })
    }

    fn types(&self) -> [Type; 3] {
        let of = |last: &[usize]| Type::array(self.dtype, [self.lead, last].concat());
        [of(&[self.n, self.n]), of(&[self.n, self.m]), Type::scalar(self.dtype)]
    }

    /// `a, da, b, db, s, r` to the factors of `a + s da` and the solution for `b + r db`.
    fn func(&self) -> Func {
        let [a, b, s] = self.types();
        let (mut build, x) = Builder::with_inputs(&[&a, &a, &b, &b, &s, &s].map(Type::clone));
        let mut sum = |x: NodeId, dx: NodeId, s: NodeId| {
            let shape = build.ty(x).shape().clone();
            let s = build.broadcast(s, &shape, vec![]);
            let moved = build.mul(s, dx);
            build.add(x, moved)
        };
        let (a, b) = (sum(x[0], x[1], x[4]), sum(x[2], x[3], x[5]));
        let factors = build.push(Op::Factor(FactorOp::Lu), &[a], None);
        let y = build.push(Op::LuSolve { transposed: self.transposed }, &[factors, a, b], None);
        build.finish(&[factors, y])
    }

    fn matrices(&self, draw: &mut Draw, count: usize) -> Vec<f64> {
        let all = count * self.lead.iter().product::<usize>();
        (0..all)
            .flat_map(|_| {
                let kind = self.kind(draw);
                matrix(draw, kind, self.n, self.dtype)
            })
            .collect()
    }
}

/// A drawn program. All inputs are mapped, or only the matrices.
pub(super) fn program(seed: u64) -> Program {
    let mut draw = Draw(seed);
    let case = Case::new(&mut draw);
    let [of_a, of_b, of_s] = case.types();
    let mut rng = Rng(seed + 1);
    let mut inputs = |draw: &mut Draw, count: usize| {
        let many = |ty: &Type| match count {
            1 => ty.clone(),
            _ => Type::array(case.dtype, [&[count][..], ty.shape()].concat()),
        };
        let a = array(case.dtype, many(&of_a).shape().to_vec(), &case.matrices(draw, count));
        let [da, b, db] = [&of_a, &of_b, &of_b].map(|ty| rng.array(&many(ty)));
        let [s, r] = [0; 2].map(|_| Array::zeros(case.dtype, many(&of_s).shape().clone()));
        vec![a, da, b, db, s, r]
    };
    let x = inputs(&mut draw, 1);
    let mut xs = inputs(&mut draw, EXAMPLES);
    let is_all = draw.coin();
    let mapped: Vec<bool> = (0..x.len()).map(|k| k == 0 || is_all).collect();
    for (k, x) in x.iter().enumerate().filter(|(k, _)| !mapped[*k]) {
        xs[k] = x.clone();
    }
    let func = case.func();
    let u = func.output_types().iter().map(|ty| rng.array(ty)).collect();
    let dx = vec![rng.array(&of_s), rng.array(&of_s)];
    Program { func, x, wrt: vec![4, 5], outs: vec![0, 1], dx, u, mapped, xs }
}

#[test]
fn every_kind_of_system_is_drawn() {
    let mut seen = std::collections::BTreeSet::new();
    let mut largest = [0; 2];
    for seed in 0..300 {
        let mut draw = Draw(seed);
        let case = Case::new(&mut draw);
        let kind = case.kind(&mut draw);
        seen.insert(format!("{kind:?}, {}", case.dtype));
        seen.insert(format!("{:?}, transposed {}, {}", case.lead, case.transposed, case.m));
        let of = usize::from(case.lead.contains(&17));
        largest[of] = largest[of].max(case.n);
    }
    // Five kinds and two types; four batches, two directions, and three numbers of right-hand sides.
    assert_eq!((seen.len(), largest), (5 * 2 + 4 * 2 * 3, [64, 8]), "{seen:?}");
}
