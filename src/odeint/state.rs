//! A tree of tensors as the state of a differential equation.

use crate::array::{DType, Shape};
use crate::ode::{FieldError, Stages, State, Tolerance};
use crate::tensor::{LoneTree, Tensor, TensorTree, Tree};

/// Trees of tensors that are states, tuples of them too.
pub trait TreeState: TensorTree + State<Clock = Tensor> {}
impl<T: TensorTree + State<Clock = Tensor>> TreeState for T {}

impl<T: LoneTree> State for T {
    type Clock = Tensor;

    fn lincomb<K: Stages<Self> + ?Sized>(&mut self, y: &Self, dt: &Tensor, a: &[f64], k: &K) {
        let terms = Terms::new(a, k);
        let mut i = 0;
        *self = y.map_leaves(|y| {
            i += 1;
            y + dt.cast(y.dtype()) * terms.leaf(i - 1)
        });
    }

    // Not by way of `error_ratio`: the root of a part without an error has no derivative.
    fn error_sum<K: Stages<Self> + ?Sized>(
        &mut self,
        dt: &Tensor,
        b: &[f64],
        k: &K,
        y0: &Self,
        y1: &Self,
        tol: &Tolerance,
    ) -> Tensor {
        let terms = Terms::new(b, k);
        let (y0, y1) = (y0.leaves(), y1.leaves());
        let squares = (0..y0.len()).map(|i| {
            let error = dt.cast(y0[i].dtype()) * terms.leaf(i);
            (error / scale(&y0, &y1, i, tol)).square().sum().cast(DType::F64)
        });
        squares.reduce(|a, b| a + b).unwrap_or_else(|| Tensor::scalar(DType::F64, 0.0))
    }

    fn scaled_error<K: Stages<Self> + ?Sized>(
        &mut self,
        dt: &Tensor,
        b: &[f64],
        k: &K,
        y0: &Self,
        y1: &Self,
        tol: &Tolerance,
    ) {
        let terms = Terms::new(b, k);
        let (y0, y1) = (y0.leaves(), y1.leaves());
        let error = |i: usize| dt.cast(y0[i].dtype()) * terms.leaf(i) / scale(&y0, &y1, i, tol);
        *self = self.with_leaves((0..y0.len()).map(error).collect::<Vec<_>>());
    }

    fn num_components(&self) -> usize {
        self.leaves().iter().map(Tensor::size).sum()
    }

    fn parts(&self) -> Vec<usize> {
        self.leaves().iter().map(Tensor::size).collect()
    }

    fn keep(&mut self, m: &Tensor, new: &mut Self) {
        let news = new.leaves();
        let mut i = 0;
        *self = self.map_leaves(|old| {
            i += 1;
            m.select(&news[i - 1], old)
        });
    }

    fn first_non_finite(&self, _like: &Tensor) -> Tensor {
        let none = Tensor::scalar(DType::F64, f64::INFINITY);
        let mut offset = 0.0;
        let mut first = none.clone();
        for leaf in self.leaves() {
            let flat = leaf.reshape([leaf.size()]);
            // Places are numbers of the leaf's own type where that has them all: a search looks at each attempt.
            let few = leaf.dtype() == DType::F32 && leaf.size() <= 1 << f32::MANTISSA_DIGITS;
            let dtype = if few { DType::F32 } else { DType::F64 };
            let bad = flat.is_finite().select(&none.cast(dtype), &flat.iota_like(dtype));
            first = first.minimum(&(bad.min_axes(&[0]).cast(DType::F64) + offset));
            offset += leaf.size() as f64;
        }
        first.is_finite().select(&first, &Tensor::scalar(DType::F64, -1.0))
    }

    fn conforms(&self, y: &Self) -> Result<(), FieldError> {
        let (mine, theirs) = (self.named_leaves(), y.named_leaves());
        for ((path, dy), (_, y)) in mine.iter().zip(&theirs) {
            if dy.shape() != y.shape() || dy.dtype() != y.dtype() {
                let at = if path.is_empty() { String::new() } else { format!(" in {path}") };
                return Err(format!(
                    "dy/dt is {}{}{at} but y is {}{}",
                    dy.dtype(),
                    dy.shape(),
                    y.dtype(),
                    y.shape()
                )
                .into());
            }
        }
        if mine.len() == theirs.len() {
            return Ok(());
        }
        Err(format!("dy/dt has {} tensors but y has {}", mine.len(), theirs.len()).into())
    }
}

/// `atol + rtol max(|y0|, |y1|)` of leaf `i`.
fn scale(y0: &[Tensor], y1: &[Tensor], i: usize, tol: &Tolerance) -> Tensor {
    let size = y0[i].abs().maximum(&y1[i].abs());
    if let Some((rtol, atol)) = tol.uniform() {
        return size * rtol + atol;
    }
    let before: usize = y0[..i].iter().map(Tensor::size).sum();
    let each = (before..before + y0[i].size()).map(|j| tol.at(j));
    let (rtol, atol): (Vec<f64>, Vec<f64>) = each.unzip();
    let like = |xs: Vec<f64>| Tensor::from(&xs[..]).cast(size.dtype()).reshape(y0[i].shape().clone());
    &size * like(rtol) + like(atol)
}

/// The terms of a linear combination whose coefficients are not 0, leaf by leaf.
struct Terms {
    coeffs: Vec<f64>,
    leaves: Vec<Vec<Tensor>>,
}

impl Terms {
    fn new<T: Tree, K: Stages<T> + ?Sized>(coeffs: &[f64], k: &K) -> Terms {
        let kept = coeffs.iter().enumerate().filter(|(_, c)| **c != 0.0);
        let (coeffs, leaves) = kept.map(|(i, c)| (*c, k.stage(i).leaves())).unzip();
        Terms { coeffs, leaves }
    }

    fn leaf(&self, i: usize) -> Tensor {
        let xs: Vec<&Tensor> = self.leaves.iter().map(|l| &l[i]).collect();
        match xs.first() {
            None => panic!("invariant: a row of a tableau has a coefficient that is not 0"),
            Some(_) => Tensor::lincomb(&self.coeffs, &xs),
        }
    }
}

impl Tensor {
    /// 0, 1, 2, ... over the elements of a vector's shape, in its own trace if it is traced.
    fn iota_like(&self, dtype: DType) -> Tensor {
        let ty = crate::graph::Type::array(dtype, Shape::from([self.size()]));
        let (mut b, _) = crate::graph::Builder::with_inputs(&[self.ty()]);
        let iota = b.push(crate::graph::Op::Iota { axis: 0 }, &[], Some(&ty));
        crate::tensor::apply(&b.finish(&[iota]), std::slice::from_ref(self)).remove(0)
    }
}
