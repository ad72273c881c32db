//! A tree of tensors as the state of a differential equation.
//!
//! The arithmetic is that of [`Leaves`], written and compiled once; a user's tree is converted to
//! leaves.

use super::PartNorm;
use super::leaves::{Layout, Leaves, Role};
use crate::array::{DType, Shape};
use crate::ode::{ShapeMismatch, Stages, State, Tolerance};
use crate::tensor::{LoneTree, Tensor, TensorTree, Tree};

/// Trees of tensors, and tuples of them, that are states.
pub trait TensorState: TensorTree + State<Clock = Tensor> {
    /// The structure of the state.
    #[doc(hidden)]
    fn layout(&self) -> Layout;
}

impl<T: LoneTree> TensorState for T {
    fn layout(&self) -> Layout {
        Layout::of(self)
    }
}

macro_rules! tuples {
    ($(($($T:ident $i:tt)*))*) => { $(
        impl<$($T: TensorState),*> TensorState for ($($T,)*) {
            fn layout(&self) -> Layout {
                Layout::Tuple(vec![$(self.$i.layout()),*], PartNorm::Joint)
            }
        }
    )* };
}
tuples!((A 0) (A 0 B 1) (A 0 B 1 C 2) (A 0 B 1 C 2 D 3) (A 0 B 1 C 2 D 3 E 4) (A 0 B 1 C 2 D 3 E 4 G 5));

impl<T: LoneTree> State for T {
    type Clock = Tensor;

    fn lincomb<K: Stages<Self> + ?Sized>(&mut self, y: &Self, dt: &Tensor, a: &[f64], k: &K) {
        *self = y.with_leaves(Leaves::of(y).advanced(dt, &Terms::new(a, k)));
    }

    // The default squares `error_ratio`. Its square root has no derivative for a part whose error is 0.
    fn error_sum<K: Stages<Self> + ?Sized>(
        &mut self,
        dt: &Tensor,
        b: &[f64],
        k: &K,
        y0: &Self,
        y1: &Self,
        tol: &Tolerance,
    ) -> Tensor {
        Leaves::of(y0).squared_error(dt, &Terms::new(b, k), &y1.leaves(), tol)
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
        *self = y0.with_leaves(Leaves::of(y0).errors(dt, &Terms::new(b, k), &y1.leaves(), tol));
    }

    fn num_components(&self) -> usize {
        Leaves::of(self).num_components()
    }

    fn parts(&self) -> Vec<usize> {
        Leaves::of(self).parts()
    }

    fn keep(&mut self, m: &Tensor, new: &mut Self) {
        *self = self.with_leaves(kept(m, &new.leaves(), &self.leaves()));
    }

    fn first_non_finite(&self, like: &Tensor) -> Tensor {
        Leaves::of(self).first_non_finite(like)
    }

    fn conforms(&self, y: &Self) -> Result<(), ShapeMismatch> {
        Leaves::of(self).conforms(&Leaves::of(y))
    }
}

impl State for Leaves {
    type Clock = Tensor;

    fn lincomb<K: Stages<Self> + ?Sized>(&mut self, y: &Self, dt: &Tensor, a: &[f64], k: &K) {
        *self = y.with(y.advanced(dt, &Terms::new(a, k)));
    }

    fn error_ratio<K: Stages<Self> + ?Sized>(
        &mut self,
        dt: &Tensor,
        b: &[f64],
        k: &K,
        y0: &Self,
        y1: &Self,
        tol: &Tolerance,
    ) -> Tensor {
        y0.error_norm(dt, &Terms::new(b, k), y1.tensors(), tol)
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
        *self = y0.with(y0.errors(dt, &Terms::new(b, k), y1.tensors(), tol));
    }

    fn num_components(&self) -> usize {
        self.parts().iter().sum()
    }

    fn parts(&self) -> Vec<usize> {
        self.measured().map(Tensor::size).collect()
    }

    fn keep(&mut self, m: &Tensor, new: &mut Self) {
        *self = self.with(kept(m, new.tensors(), self.tensors()));
    }

    fn first_non_finite(&self, _like: &Tensor) -> Tensor {
        let none = Tensor::scalar(DType::F64, f64::INFINITY);
        let mut offset = 0.0;
        let mut first = none.clone();
        for leaf in self.measured().filter(|leaf| leaf.size() > 0) {
            let flat = leaf.reshape([leaf.size()]);
            // Every attempt runs this search, and f32 is faster. It holds each index of a leaf of up to 2^24 numbers.
            let few = leaf.dtype() == DType::F32 && leaf.size() <= 1 << f32::MANTISSA_DIGITS;
            let dtype = if few { DType::F32 } else { DType::F64 };
            let bad = flat.is_finite().select(&none.cast(dtype), &flat.iota_like(dtype));
            first = first.minimum(&(bad.min_axes(&[0]).cast(DType::F64) + offset));
            offset += leaf.size() as f64;
        }
        first.is_finite().select(&first, &Tensor::scalar(DType::F64, -1.0))
    }

    fn conforms(&self, y: &Self) -> Result<(), ShapeMismatch> {
        let (mine, theirs) = (self.tensors(), y.tensors());
        let mut names = self.layout().names();
        for (dy, y) in mine.iter().zip(theirs) {
            let (part, path) = names.next().expect("invariant: a name for each tensor");
            if dy.shape() != y.shape() || dy.dtype() != y.dtype() {
                let ty = |x: &Tensor| format!("type {}{}", x.dtype(), x.shape());
                return Err(ShapeMismatch::new(ty(dy), ty(y)).at(&format!("{part}{path}")));
            }
        }
        if mine.len() == theirs.len() {
            return Ok(());
        }
        let count = |leaves: &[Tensor]| format!("{} tensors", leaves.len());
        Err(ShapeMismatch::new(count(mine), count(theirs)))
    }
}

impl Leaves {
    /// The tensors whose errors are measured.
    fn measured(&self) -> impl Iterator<Item = &Tensor> {
        let roles = self.layout().roles();
        self.tensors().iter().zip(roles).filter(|(_, role)| *role == Role::State).map(|(x, _)| x)
    }

    /// `y + dt * sum of terms`
    fn advanced(&self, dt: &Tensor, terms: &Terms) -> Vec<Tensor> {
        let leaves = self.tensors().iter().zip(self.layout().roles()).enumerate();
        let advanced = leaves.map(|(i, (y, role))| match role {
            Role::Carried => y.clone(),
            Role::State | Role::Quadrature => y + dt.cast(y.dtype()) * terms.leaf(i),
        });
        advanced.collect()
    }

    /// The norm of [`Leaves::errors`]: the largest RMS of the groups that are measured separately. `self` is y0.
    ///
    /// The square root follows the maximum, because it has no derivative for a group whose error is 0.
    fn error_norm(&self, dt: &Tensor, terms: &Terms, y1: &[Tensor], tol: &Tolerance) -> Tensor {
        let square = |i: usize| self.error(i, dt, terms, y1, tol).square().sum().cast(DType::F64);
        // 0 if y1 and its error are finite, else NaN.
        let finite = |i: usize| {
            let end = &y1[i] + dt.cast(y1[i].dtype()) * terms.leaf(i);
            (end * 0.0).sum().cast(DType::F64)
        };
        let mean_square = |(first, group, counts): (usize, &Layout, bool)| {
            let of: &dyn Fn(usize) -> Tensor = if counts { &square } else { &finite };
            let sum = group.sum(&mut first.clone(), of)?;
            let of_group = self.tensors()[first..].iter().zip(group.roles());
            let sizes = of_group.filter(|(_, role)| *role == Role::State).map(|(x, _)| x.size());
            Some(sum * (1.0 / sizes.sum::<usize>().max(1) as f64))
        };
        let means = self.layout().groups().into_iter().filter_map(mean_square);
        let largest = means.reduce(|a, b| a.maximum(&b));
        largest.unwrap_or_else(|| Tensor::scalar(DType::F64, 0.0)).sqrt()
    }

    /// The sum of the squares of [`Leaves::errors`], added leaf by leaf, and in a tuple part by part. `self` is y0.
    fn squared_error(&self, dt: &Tensor, terms: &Terms, y1: &[Tensor], tol: &Tolerance) -> Tensor {
        let square = |i: usize| self.error(i, dt, terms, y1, tol).square().sum().cast(DType::F64);
        let sum = self.layout().sum(&mut 0, &square);
        sum.unwrap_or_else(|| Tensor::scalar(DType::F64, 0.0))
    }

    /// The scaled error of each tensor; 0 for tensors whose error is not measured.
    fn errors(&self, dt: &Tensor, terms: &Terms, y1: &[Tensor], tol: &Tolerance) -> Vec<Tensor> {
        let error = |(i, role): (usize, Role)| match role {
            Role::State => self.error(i, dt, terms, y1, tol),
            Role::Quadrature | Role::Carried => {
                let x = &self.tensors()[i];
                Tensor::full(x.dtype(), x.shape().clone(), 0.0)
            }
        };
        self.layout().roles().into_iter().enumerate().map(error).collect()
    }

    /// `dt sum of terms / (atol + rtol max(|y0|, |y1|))` of tensor `i`.
    fn error(&self, i: usize, dt: &Tensor, terms: &Terms, y1: &[Tensor], tol: &Tolerance) -> Tensor {
        let y0 = self.tensors();
        let error = dt.cast(y0[i].dtype()) * terms.leaf(i);
        let size = y0[i].abs().maximum(&y1[i].abs());
        // A very small positive atol would round to 0 in f32.
        let is_single = y0[i].dtype() == DType::F32;
        let above_zero = |atol: f64| if is_single { atol.max(f64::from(f32::MIN_POSITIVE)) } else { atol };
        if let Some((rtol, atol)) = tol.uniform() {
            return error / (size * rtol + above_zero(atol));
        }
        let before: usize = self.with(y0[..i].to_vec()).measured().map(Tensor::size).sum();
        let each =
            (before..before + y0[i].size()).map(|j| tol.at(j)).map(|(rtol, atol)| (rtol, above_zero(atol)));
        let (rtol, atol): (Vec<f64>, Vec<f64>) = each.unzip();
        let like = |xs: Vec<f64>| Tensor::from(&xs[..]).cast(size.dtype()).reshape(y0[i].shape().clone());
        error / (&size * like(rtol) + like(atol))
    }
}

impl Layout {
    /// The sum of `of(i)` over the tensors whose error is measured; `None` if there are none. `next` is the index of
    /// the first tensor of this layout, and then of the tensor after it.
    fn sum(&self, next: &mut usize, of: &dyn Fn(usize) -> Tensor) -> Option<Tensor> {
        let add = |a: Tensor, b: Tensor| a + b;
        match self {
            Layout::Tree(_) => {
                let first = *next;
                *next += self.count();
                let sum = (first..*next).map(of).reduce(add);
                Some(sum.unwrap_or_else(|| Tensor::scalar(DType::F64, 0.0)))
            }
            Layout::Tuple(parts, _) => {
                let sums: Vec<Tensor> = parts.iter().filter_map(|part| part.sum(next, of)).collect();
                sums.into_iter().reduce(add)
            }
            Layout::Quadrature(n) | Layout::Carried(n) => {
                *next += n;
                None
            }
        }
    }

    /// For each tensor, the part that contains it, as in error messages, and its path in that part.
    fn names(&self) -> std::vec::IntoIter<(String, String)> {
        let names: Vec<(String, String)> = match self {
            Layout::Tree(slots) => {
                let tensors = slots.iter().filter(|slot| slot.is_tensor());
                tensors.map(|slot| (String::new(), slot.path.clone())).collect()
            }
            Layout::Tuple(parts, _) => {
                let of = |(i, part): (usize, &Layout)| {
                    part.names().map(move |(within, path)| (format!("part {i}: {within}"), path))
                };
                parts.iter().enumerate().flat_map(of).collect()
            }
            Layout::Quadrature(n) | Layout::Carried(n) => vec![Default::default(); *n],
        };
        names.into_iter()
    }
}

/// The tensors `new` where `m` holds, else `old`.
fn kept(m: &Tensor, new: &[Tensor], old: &[Tensor]) -> Vec<Tensor> {
    new.iter().zip(old).map(|(new, old)| m.select(new, old)).collect()
}

/// The terms of a linear combination, leaf by leaf, without those whose coefficient is 0.
struct Terms {
    coeffs: Vec<f64>,
    leaves: Vec<Vec<Tensor>>,
}

impl Terms {
    fn new<T: Tree, K: Stages<T> + ?Sized>(coeffs: &[f64], k: &K) -> Terms {
        Terms::of(coeffs, &|i| k.stage(i).leaves())
    }

    fn of(coeffs: &[f64], stage: &dyn Fn(usize) -> Vec<Tensor>) -> Terms {
        let kept = coeffs.iter().enumerate().filter(|(_, c)| **c != 0.0);
        let (coeffs, leaves) = kept.map(|(i, c)| (*c, stage(i))).unzip();
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
    /// The vector 0, 1, 2, ... with as many elements as this vector. If this vector is traced, the result belongs
    /// to the same trace.
    fn iota_like(&self, dtype: DType) -> Tensor {
        let ty = crate::graph::Type::array(dtype, Shape::from([self.size()]));
        let (mut b, _) = crate::graph::Builder::with_inputs(&[self.ty()]);
        let iota = b.push(crate::graph::Op::Iota { axis: 0 }, &[], Some(&ty));
        crate::tensor::apply(&b.finish(&[iota]), std::slice::from_ref(self)).remove(0)
    }
}
