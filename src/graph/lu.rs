//! LU factorizations and linear systems: shape inference.

use super::Type;

/// The leading axes and the order n of a batch of square matrices.
fn square<'a>(what: &str, a: &'a Type) -> Result<(&'a [usize], usize), String> {
    if !a.is_float() {
        return Err(format!("{a} is not a float array"));
    }
    match a.shape().split_last_chunk::<2>() {
        Some((lead, [rows, columns])) if rows == columns => Ok((lead, *rows)),
        _ => Err(format!("{what} must be a square matrix or a batch of them, not {a}")),
    }
}

/// The type of `lu`.
pub(super) fn lu(a: &Type) -> Result<Type, String> {
    let (lead, n) = square("the operand", a)?;
    super::infer::sized(a, [lead, &[n + 1, n]].concat())
}

/// The type of `lu_solve`.
pub(super) fn lu_solve([factors, a, b]: [&Type; 3]) -> Result<Type, String> {
    let (lead, n) = square("the second operand", a)?;
    if *factors != lu(a)? {
        return Err(format!("the factors of {a} are {}", lu(a)?));
    }
    match b.shape().split_last_chunk::<2>() {
        Some((of_b, [rows, _])) if b.dtype() == a.dtype() && of_b == lead && *rows == n => Ok(b.clone()),
        _ => Err(format!("the right-hand sides of {a} are {}{lead:?} x {n} x m", a.dtype())),
    }
}

#[cfg(test)]
mod tests {
    use crate::array::DType;
    use crate::graph::infer::infer;
    use crate::graph::{Op, Type};

    #[test]
    fn factors_have_a_row_for_the_permutation() {
        let of = |dims: &[usize]| Type::array(DType::F64, dims);
        assert_eq!(infer(&Op::Lu, &[&of(&[5, 3, 3])], None), Ok(of(&[5, 4, 3])));
        let solve = |factors: &[usize], a: &[usize], b: &[usize]| {
            infer(&Op::LuSolve { transposed: true }, &[&of(factors), &of(a), &of(b)], None)
        };
        assert_eq!(solve(&[5, 4, 3], &[5, 3, 3], &[5, 3, 2]), Ok(of(&[5, 3, 2])));
        assert_eq!(solve(&[1, 0], &[0, 0], &[0, 2]), Ok(of(&[0, 2])));
        let why = |found: Result<Type, crate::graph::GraphError>| found.unwrap_err().to_string();
        assert!(why(infer(&Op::Lu, &[&of(&[2, 3])], None)).ends_with("of them, not f64[2,3]"));
        assert!(why(solve(&[3, 3], &[3, 3], &[3, 1])).ends_with("the factors of f64[3,3] are f64[4,3]"));
        assert!(why(solve(&[4, 3], &[3, 3], &[3])).ends_with("are f64[] x 3 x m"));
        assert!(why(solve(&[2, 4, 3], &[2, 3, 3], &[3, 1])).ends_with("are f64[2] x 3 x m"));
    }
}
