//! Factorizations of matrices.

use super::Type;

/// A factorization of each matrix of a batch: of the last two axes, for each index of the leading ones. The result is one
/// array, not a tuple, so loops can store it like any array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FactorOp {
    /// `a [.., n, n]`: its LU factors with partial pivoting, `[.., n + 1, n]`. The first n rows hold U, and below its
    /// diagonal L without its ones. The last row holds the permutation: row i of L U is row `last[i]` of a. A pivot of 0
    /// stays 0.
    Lu,
    /// `a [.., n, n]`: L with `L L^T = (a + a^T) / 2`, with zeros above the diagonal; NaN on and below it if the
    /// symmetric part is not positive definite.
    Cholesky,
    /// `a [.., m, n]`: `[.., m + k, n]` with k = min(m, n). The first m rows hold Q in their first k columns, and zeros
    /// behind it; the others hold R.
    Qr,
    /// `a [.., n, n]`: `[.., n + 1, n]`. The first n rows hold the eigenvectors of `(a + a^T) / 2` as columns, the last row
    /// the eigenvalues, ascending. All are NaN if an entry is not finite. The first entry of a vector with at least
    /// nine tenths of the largest magnitude is positive.
    Eigh,
}

impl FactorOp {
    /// All of them.
    pub const ALL: [FactorOp; 4] = [FactorOp::Lu, FactorOp::Cholesky, FactorOp::Qr, FactorOp::Eigh];

    /// The name used in printed graphs.
    pub fn name(self) -> &'static str {
        match self {
            FactorOp::Lu => "lu",
            FactorOp::Cholesky => "cholesky",
            FactorOp::Qr => "qr",
            FactorOp::Eigh => "eigh",
        }
    }

    pub(super) fn named(name: &str) -> Option<FactorOp> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }

    /// The rows of the result for a matrix of these rows and columns.
    pub fn rows(self, [rows, columns]: [usize; 2]) -> usize {
        match self {
            FactorOp::Lu | FactorOp::Eigh => rows + 1,
            FactorOp::Cholesky => rows,
            FactorOp::Qr => rows + rows.min(columns),
        }
    }
}

/// The leading axes and the sides of a batch of matrices.
pub(super) fn matrices<'a>(what: &str, a: &'a Type) -> Result<(&'a [usize], [usize; 2]), String> {
    if !a.is_float() {
        return Err(format!("{a} is not a float array"));
    }
    match a.shape().split_last_chunk::<2>() {
        Some((lead, &sides)) => Ok((lead, sides)),
        _ => Err(format!("{what} must be a matrix or a batch of them, not {a}")),
    }
}

/// The leading axes and the order n of a batch of square matrices.
pub(super) fn square<'a>(what: &str, a: &'a Type) -> Result<(&'a [usize], usize), String> {
    match matrices(what, a)? {
        (lead, [rows, columns]) if rows == columns => Ok((lead, rows)),
        _ => Err(format!("{what} must be a square matrix or a batch of them, not {a}")),
    }
}

/// The type of the factors.
pub(super) fn factors(op: FactorOp, a: &Type) -> Result<Type, String> {
    let (lead, sides) = match op {
        FactorOp::Qr => matrices("the operand", a)?,
        _ => square("the operand", a).map(|(lead, n)| (lead, [n, n]))?,
    };
    super::infer::sized(a, [lead, &[op.rows(sides), sides[1]]].concat())
}

#[cfg(test)]
mod tests {
    use super::FactorOp;
    use crate::array::DType;
    use crate::graph::infer::infer;
    use crate::graph::{Op, Type};

    #[test]
    fn factors_have_rows_for_all_parts() {
        let of = |dims: &[usize]| Type::array(DType::F64, dims);
        let factors = |op: FactorOp, dims: &[usize]| infer(&Op::Factor(op), &[&of(dims)], None);
        assert_eq!(factors(FactorOp::Lu, &[5, 3, 3]), Ok(of(&[5, 4, 3])));
        assert_eq!(factors(FactorOp::Cholesky, &[0, 0]), Ok(of(&[0, 0])));
        assert_eq!(factors(FactorOp::Eigh, &[2, 1, 1]), Ok(of(&[2, 2, 1])));
        assert_eq!(factors(FactorOp::Qr, &[5, 2]), Ok(of(&[7, 2])));
        assert_eq!(factors(FactorOp::Qr, &[4, 2, 5]), Ok(of(&[4, 4, 5])));
        assert_eq!(factors(FactorOp::Qr, &[0, 5]), Ok(of(&[0, 5])));
        let why = |found: Result<Type, crate::graph::GraphError>| found.unwrap_err().to_string();
        for op in [FactorOp::Lu, FactorOp::Cholesky, FactorOp::Eigh] {
            assert!(why(factors(op, &[2, 3])).ends_with("of them, not f64[2,3]"));
        }
        assert!(why(factors(FactorOp::Qr, &[2])).ends_with("a matrix or a batch of them, not f64[2]"));
        let integers = Type::array(DType::I32, [2, 2]);
        assert!(why(infer(&Op::Factor(FactorOp::Qr), &[&integers], None)).ends_with("not a float array"));
    }
}
