//! Diagonals and triangles of matrices, which are the last two axes.

use crate::array::DType;
use crate::tensor::Tensor;

impl Tensor {
    /// The matrix with these numbers on its diagonal and zeros beside it: `y[.., i, i] = x[.., i]`.
    ///
    /// # Shapes and units
    /// x `[.., n]`; y `[.., n, n]`.
    ///
    /// # Panics
    /// For a tensor of rank 0.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// assert_eq!(Tensor::from([1.0, 2.0]).diag().to_vec(), [1.0, 0.0, 0.0, 2.0]);
    /// ```
    #[track_caller]
    #[doc(alias = "diag_embed")]
    #[doc(alias = "diagflat")]
    pub fn diag(&self) -> Tensor {
        let last = self.last_axis("diag");
        let n = self.shape()[last];
        let lead = &self.shape()[..last];
        let shape = [lead, &[n, n]].concat();
        if n == 0 {
            return self.reshape(shape);
        }
        // Element (i, i) has flat index i (n + 1): each element is followed by n zeros.
        let mut hi = vec![0; self.rank() + 1];
        hi[last + 1] = n;
        let spaced = self.expand_dims(last + 1).pad(&vec![0; self.rank() + 1], &hi);
        spaced.reshape([lead, &[n * (n + 1)]].concat()).slice(last, 0..n * n).reshape(shape)
    }

    /// The diagonal of a matrix, which need not be square: `y[.., i] = x[.., i, i]`.
    ///
    /// # Shapes and units
    /// x `[.., m, n]`; y `[.., min(m, n)]`.
    ///
    /// # Panics
    /// For a tensor of rank 0 or 1.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// assert_eq!(x.diagonal().to_vec(), [1.0, 5.0]);
    /// ```
    #[track_caller]
    pub fn diagonal(&self) -> Tensor {
        let (lead, [m, n]) = self.matrix("diagonal");
        let (k, axis) = (m.min(n), lead.len());
        let dims = |of: &[usize]| [&lead, of].concat();
        if k == 0 {
            return self.slice(axis, 0..k).reshape(dims(&[0]));
        }
        // Element (i, i) has flat index i (n + 1), so all elements but the last are the first column of a matrix of rows of
        // n + 1 elements. Only the diagonal itself is copied.
        let flat = self.reshape(dims(&[m * n]));
        let before = (k - 1) * (n + 1);
        let end = flat.slice(axis, before..before + 1);
        if k == 1 {
            return end;
        }
        let table = flat.slice(axis, 0..before).reshape(dims(&[k - 1, n + 1]));
        let head = table.slice(axis + 1, 0..1).reshape(dims(&[k - 1]));
        Tensor::concat(&[&head, &end], axis)
    }

    /// The lower triangle of a matrix, with zeros above diagonal k: `y[.., i, j] = x[.., i, j]` if `j <= i + k`, else 0.
    ///
    /// # Shapes and units
    /// x and y `[.., m, n]`. Diagonal 0 is the main one, 1 is above it, -1 below it.
    ///
    /// # Panics
    /// For a tensor of rank 0 or 1.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.tril(0).to_vec(), [1.0, 0.0, 3.0, 4.0]);
    /// assert_eq!(x.tril(-1).to_vec(), [0.0, 0.0, 3.0, 0.0]);
    /// ```
    #[track_caller]
    pub fn tril(&self, k: i32) -> Tensor {
        self.triangle("tril", |i, j| j <= i + i64::from(k))
    }

    /// The upper triangle of a matrix, with zeros below diagonal k: `y[.., i, j] = x[.., i, j]` if `j >= i + k`, else 0.
    ///
    /// # Shapes and units
    /// As for [`tril`](Tensor::tril).
    ///
    /// # Panics
    /// For a tensor of rank 0 or 1.
    ///
    /// # Examples
    /// ```
    /// use flowline::tensor::Tensor;
    /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.triu(0).to_vec(), [1.0, 2.0, 0.0, 4.0]);
    /// ```
    #[track_caller]
    pub fn triu(&self, k: i32) -> Tensor {
        self.triangle("triu", |i, j| j >= i + i64::from(k))
    }

    #[track_caller]
    fn triangle(&self, name: &str, is_kept: impl Fn(i64, i64) -> bool) -> Tensor {
        let (_, [m, n]) = self.matrix(name);
        let kept = (0..m as i64).flat_map(|i| (0..n as i64).map(move |j| (i, j)));
        let kept: Vec<u32> = kept.map(|(i, j)| u32::from(is_kept(i, j))).collect();
        Tensor::from_vec([m, n], kept).cast(DType::Bool).select(self, &Tensor::scalar(self.dtype(), 0.0))
    }

    /// The leading axes, and the lengths of the last two.
    #[track_caller]
    fn matrix(&self, name: &str) -> (Vec<usize>, [usize; 2]) {
        let Some((lead, sides)) = self.shape().split_last_chunk::<2>() else {
            panic!("{name}: {} is not a matrix", self.ty())
        };
        (lead.to_vec(), *sides)
    }
}

#[cfg(test)]
mod tests {
    use crate::array::{DType, refusal};
    use crate::ode::tests::draw::{Draw, num_cases};
    use crate::tensor::{Tensor, grad, jit, jvp, vmap};

    /// Ranges: matrices of 0 to 5 rows and columns with up to two leading axes of lengths 0 to 2; diagonals from -6 to 6; NaN
    /// among the elements that are left out.
    #[test]
    fn drawn_diagonals_and_triangles_are_those_of_loops() {
        let (mut draw, mut seen) = (Draw(414), [0; 4]);
        for case in 0..num_cases(60) {
            let lead: Vec<usize> = (0..draw.below(3)).map(|_| draw.below(3)).collect();
            let (m, n) = (draw.below(6), draw.below(6));
            let shape = [&lead[..], &[m, n]].concat();
            let count: usize = shape.iter().product();
            let x = Tensor::iota(DType::F64, [count], 0).reshape(shape.clone());
            let k = draw.below(13) as i32 - 6;
            let below = |i: usize, j: usize| j as i64 <= i as i64 + i64::from(k);
            let above = |i: usize, j: usize| j as i64 >= i as i64 + i64::from(k);
            let is_diagonal = |i: usize, j: usize| i == j;
            type Function = Box<dyn Fn(&Tensor) -> Tensor + Send + Sync>;
            let ways: [(Function, &dyn Fn(usize, usize) -> bool, bool); 3] = [
                (Box::new(move |x| x.tril(k)), &below, true),
                (Box::new(move |x| x.triu(k)), &above, true),
                (Box::new(|x| x.diagonal()), &is_diagonal, false),
            ];
            for (f, is_kept, fills) in ways {
                let place = |e: usize| (e / n.max(1) % m.max(1), e % n.max(1));
                let kept = |e: usize| is_kept(place(e).0, place(e).1);
                let of = |g: &dyn Fn(usize) -> f64| -> Vec<f64> {
                    let all = (0..count).filter(|&e| fills || kept(e));
                    all.map(|e| if kept(e) { g(e) } else { 0.0 }).collect()
                };
                let want = of(&|e| e as f64);
                assert_eq!(f(&x).to_vec(), want, "case {case}: {shape:?} {k}");
                assert_eq!(f(&x.cast(DType::F32)).to_vec(), want);
                assert_eq!(jvp(&f, &x, &x).1.to_vec(), want);
                let loss = |x: &Tensor| f(x).square().sum();
                let twice: Vec<f64> =
                    (0..count).map(|e| if kept(e) { 2.0 * e as f64 } else { 0.0 }).collect();
                assert_eq!(grad(loss, &x).to_vec(), twice, "case {case}: {shape:?} {k}");
                assert_eq!(vmap(&f, &Tensor::stack(&[&x, &x])).index(1).to_vec(), want);
                let numbers: Vec<f64> =
                    (0..count).map(|e| if kept(e) { e as f64 } else { f64::NAN }).collect();
                assert_eq!(f(&Tensor::from_vec(shape.clone(), numbers)).to_vec(), want);
                assert_eq!(jit(move |x: Tensor| f(&x)).call(&x).unwrap().to_vec(), want);
            }
            let is = [count == 0, m < n, m > n, m.min(n) == 1];
            seen.iter_mut().zip(is).for_each(|(seen, is)| *seen += usize::from(is));
        }
        assert!(seen.iter().all(|&n| n > 0), "empty, wide, tall, one element: {seen:?}");
    }

    /// Ranges: 0 to 5 numbers with up to two leading axes of lengths 0 to 2, every element type.
    #[test]
    fn the_diagonal_of_a_diagonal_matrix_is_the_vector() {
        let mut draw = Draw(415);
        for _ in 0..num_cases(30) {
            let n = draw.below(6);
            let shape: Vec<usize> = (0..draw.below(3)).map(|_| draw.below(3)).chain([n]).collect();
            let x = Tensor::iota(DType::F64, [shape.iter().product()], 0).reshape(shape.clone()) + 1.0;
            let matrix = x.diag();
            assert_eq!(matrix.shape().to_vec(), [&shape[..], &[n]].concat());
            assert_eq!(matrix.diagonal().to_vec(), x.to_vec());
            assert_eq!(matrix.sum().item(), x.sum().item());
            for dtype in [DType::F32, DType::I32, DType::U32, DType::Bool] {
                assert_eq!(x.cast(dtype).diag().to_vec(), matrix.cast(dtype).to_vec());
            }
            assert_eq!(grad(|x: &Tensor| x.diag().square().sum(), &x).to_vec(), (&x * 2.0).to_vec());
            assert_eq!(
                vmap(|x: &Tensor| x.diag(), &Tensor::stack(&[&x, &x])).index(1).to_vec(),
                matrix.to_vec()
            );
        }
        assert_eq!(refusal(|| Tensor::from(1.0).diag()), "diag: a tensor of rank 0 has no last axis");
        assert_eq!(refusal(|| Tensor::from([1.0]).diagonal()), "diagonal: f64[1] is not a matrix");
        assert_eq!(refusal(|| Tensor::from([1.0]).tril(0)), "tril: f64[1] is not a matrix");
    }
}
