//! Linear systems: shape inference.

use super::Type;
use super::factor::{FactorOp, factors, square};

/// The triangle of a matrix that a system consists of. The rest of the matrix is not read.
///
/// # Examples
/// ```
/// use flowline::tensor::linalg::Triangle;
/// let of_transpose = Triangle::LOWER.transposed(); // the system L^T x = b
/// assert_eq!(of_transpose.transposed(), Triangle::LOWER);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Triangle {
    /// The entries on and above the diagonal, else those on and below it.
    pub(crate) upper: bool,
    /// The matrix of the system is the transpose of the triangle.
    pub(crate) transposed: bool,
    /// The entries on the diagonal count as 1 and are not read.
    pub(crate) unit_diagonal: bool,
}

impl Triangle {
    /// The entries on and below the diagonal.
    pub const LOWER: Triangle = Triangle { upper: false, transposed: false, unit_diagonal: false };
    /// The entries on and above the diagonal.
    pub const UPPER: Triangle = Triangle { upper: true, ..Triangle::LOWER };

    /// The transpose: of a lower triangle L, the system is `L^T x = b`.
    #[must_use]
    pub const fn transposed(self) -> Triangle {
        Triangle { transposed: !self.transposed, ..self }
    }

    /// The same triangle with ones on the diagonal.
    #[must_use]
    pub const fn unit_diagonal(self) -> Triangle {
        Triangle { unit_diagonal: true, ..self }
    }

    /// The words of the text form that hold.
    pub(crate) fn flags(self) -> Vec<&'static str> {
        let all =
            [(self.upper, "upper"), (self.transposed, "transposed"), (self.unit_diagonal, "unit_diagonal")];
        all.into_iter().filter_map(|(holds, name)| holds.then_some(name)).collect()
    }
}

/// The type of the solutions for matrices a.
fn solutions(a: &Type, (lead, n): (&[usize], usize), b: &Type) -> Result<Type, String> {
    match b.shape().split_last_chunk::<2>() {
        Some((of_b, [rows, _])) if b.dtype() == a.dtype() && of_b == lead && *rows == n => Ok(b.clone()),
        _ => Err(format!("the right-hand sides of {a} are {}{lead:?} x {n} x m", a.dtype())),
    }
}

/// The type of `lu_solve`.
pub(super) fn lu_solve([found, a, b]: [&Type; 3]) -> Result<Type, String> {
    let sides = square("the second operand", a)?;
    let of_a = factors(FactorOp::Lu, a)?;
    if *found != of_a {
        return Err(format!("the factors of {a} are {of_a}"));
    }
    solutions(a, sides, b)
}

/// The type of `triangular_solve`.
pub(super) fn triangular_solve([a, b]: [&Type; 2]) -> Result<Type, String> {
    solutions(a, square("the first operand", a)?, b)
}

#[cfg(test)]
mod tests {
    use crate::array::DType;
    use crate::graph::infer::infer;
    use crate::graph::{Op, Triangle, Type};

    fn of(dims: &[usize]) -> Type {
        Type::array(DType::F64, dims)
    }

    fn why(found: Result<Type, crate::graph::GraphError>) -> String {
        found.unwrap_err().to_string()
    }

    #[test]
    fn solutions_from_factors_are_like_right_hand_sides() {
        let solve = |factors: &[usize], a: &[usize], b: &[usize]| {
            infer(&Op::LuSolve { transposed: true }, &[&of(factors), &of(a), &of(b)], None)
        };
        assert_eq!(solve(&[5, 4, 3], &[5, 3, 3], &[5, 3, 2]), Ok(of(&[5, 3, 2])));
        assert_eq!(solve(&[1, 0], &[0, 0], &[0, 2]), Ok(of(&[0, 2])));
        assert!(why(solve(&[3, 3], &[3, 3], &[3, 1])).ends_with("the factors of f64[3,3] are f64[4,3]"));
        assert!(why(solve(&[4, 3], &[3, 3], &[3])).ends_with("are f64[] x 3 x m"));
        assert!(why(solve(&[2, 4, 3], &[2, 3, 3], &[3, 1])).ends_with("are f64[2] x 3 x m"));
    }

    #[test]
    fn solutions_of_triangular_systems_are_like_right_hand_sides() {
        let solve =
            |a: &[usize], b: &[usize]| infer(&Op::TriangularSolve(Triangle::UPPER), &[&of(a), &of(b)], None);
        assert_eq!(solve(&[5, 3, 3], &[5, 3, 2]), Ok(of(&[5, 3, 2])));
        assert_eq!(solve(&[0, 0], &[0, 2]), Ok(of(&[0, 2])));
        assert!(why(solve(&[3, 2], &[3, 1])).ends_with("a square matrix or a batch of them, not f64[3,2]"));
        assert!(why(solve(&[3, 3], &[2, 1])).ends_with("are f64[] x 3 x m"));
    }
}
