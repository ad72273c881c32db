//! Elementwise functions, comparisons and `select`.

mod scalar;
#[cfg(test)]
mod tests;

use super::trace::record;
use super::{Tensor, custom_derivatives};
use crate::array::DType;
use crate::graph::{BinaryOp, CallbackValue, CompareOp, Observer, Op, Type, UnaryOp};

impl Tensor {
    #[track_caller]
    pub(super) fn op(op: Op, args: &[&Tensor], hint: Option<&Type>) -> Tensor {
        match record(op, args, hint) {
            Ok(t) => t,
            Err(e) => panic!("{e}"),
        }
    }

    #[track_caller]
    fn unary(&self, op: UnaryOp) -> Tensor {
        Tensor::op(Op::Unary(op), &[self], None)
    }

    /// The operands with a common element type and shape (see [`Tensor`]).
    #[track_caller]
    fn matched(name: &str, a: &Tensor, b: &Tensor) -> (Tensor, Tensor) {
        let dtype = promote(a, b);
        let shape = a.shape().broadcast(b.shape()).unwrap_or_else(|| {
            panic!("{name}: shapes {} and {} do not broadcast to each other", a.shape(), b.shape())
        });
        (a.cast(dtype).broadcast_to(shape.clone()), b.cast(dtype).broadcast_to(shape))
    }

    #[track_caller]
    pub(super) fn binary(op: BinaryOp, a: &Tensor, b: &Tensor) -> Tensor {
        let (a, b) = Tensor::matched(op.name(), a, b);
        Tensor::op(Op::Binary(op), &[&a, &b], None)
    }

    #[track_caller]
    fn compare(op: CompareOp, a: &Tensor, b: &Tensor) -> Tensor {
        let (a, b) = Tensor::matched(op.name(), a, b);
        Tensor::op(Op::Compare(op), &[&a, &b], None)
    }

    /// A plain number as a tensor. Its element type is that of `self` if this type is a float or represents
    /// the number exactly, else f64. If `self` is bool, an integer becomes i32.
    pub(super) fn number(&self, x: f64) -> Tensor {
        let dtype = match self.dtype() {
            float @ (DType::F32 | DType::F64) => float,
            DType::U32 if f64::from(x as u32) == x => DType::U32,
            DType::I32 | DType::Bool if f64::from(x as i32) == x => DType::I32,
            DType::I32 | DType::U32 | DType::Bool => DType::F64,
        };
        Tensor::scalar(dtype, x)
    }

    /// Converts the element type as Rust's `as`: a float becomes an integer by truncation and saturation, and
    /// NaN becomes 0. A bool becomes 0 or 1; to bool, nonzero is true.
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Tensor {
        if self.dtype() == dtype {
            return self.clone();
        }
        // Fast path for plain numbers in operations with tensors: the conversion needs no plan.
        if !self.is_traced() && self.size() == 1 && self.dtype().is_float() && dtype.is_float() {
            return Tensor::full(dtype, self.shape().clone(), self.item());
        }
        Tensor::op(Op::Cast, &[self], Some(&Type::array(dtype, self.shape().clone())))
    }

    /// The same value; derivatives treat it as a constant.
    #[doc(alias = "detach")]
    pub fn stop_gradient(&self) -> Tensor {
        if self.is_traced() { Tensor::op(Op::StopGradient, &[self], None) } else { self.clone() }
    }

    /// The same value. Each time a program computes this value, it calls `f` with the numbers, even if this
    /// tensor is traced.
    ///
    /// Use a callback to inspect a jitted function, a solve or a gradient, not to compute results. `f` may be
    /// called from any thread, and from several threads at once. Repeated computations of the same value may
    /// be merged. A value that a loop does not change is computed, and passed to `f`, once before the loop.
    /// An unused value is not computed, so use the returned tensor. The derivative is that of the identity;
    /// `f` is not called with derivatives.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// use std::sync::{Arc, Mutex};
    /// let seen = Arc::new(Mutex::new(vec![]));
    /// let log = seen.clone();
    /// let double = jit(move |x: Tensor| {
    ///     let log = log.clone();
    ///     (x * 2.0).debug_callback(move |value| log.lock().unwrap().extend_from_slice(value.values)) + 1.0
    /// });
    /// double.call(&Tensor::from(3.0))?;
    /// double.call(&Tensor::from(4.0))?;
    /// assert_eq!(*seen.lock().unwrap(), [6.0, 8.0]);
    /// # Ok::<(), flowline::Error>(())
    /// ```
    #[track_caller]
    pub fn debug_callback(&self, f: impl Fn(CallbackValue<'_>) + Send + Sync + 'static) -> Tensor {
        Tensor::op(Op::Observe(Observer::new(f)), &[self], None)
    }

    #[track_caller]
    pub(super) fn negate(&self) -> Tensor {
        self.unary(UnaryOp::Neg)
    }

    /// `x^p` for a number p. For negative x the result is NaN unless p is an integer.
    #[track_caller]
    pub fn powf(&self, p: f64) -> Tensor {
        self.unary(UnaryOp::Powf(p.to_bits()))
    }

    /// `x^n` by repeated squaring; `1 / x^-n` for negative n.
    #[track_caller]
    pub fn powi(&self, n: i32) -> Tensor {
        let inverse = |x: &Tensor| 1.0 / x.power(n.unsigned_abs());
        match n {
            0.. => self.power(n.unsigned_abs()),
            // At 0, the chain rule for 1 / x^-n gives infinity times 0. The derivative n x^(n-1) is infinite.
            _ if self.dtype().is_float() => {
                let rate = move |x: &Tensor| x.powf(f64::from(n) - 1.0) * f64::from(n);
                custom_derivatives(inverse).jvp(move |x, _y, dx| dx * rate(x)).call(self)
            }
            _ => inverse(self),
        }
    }

    #[track_caller]
    fn power(&self, mut n: u32) -> Tensor {
        let (mut base, mut result) = (self.clone(), None::<Tensor>);
        while n > 0 {
            if n & 1 == 1 {
                result = Some(result.map_or_else(|| base.clone(), |r| r * &base));
            }
            n >>= 1;
            if n > 0 {
                base = base.square();
            }
        }
        result.unwrap_or_else(|| Tensor::full(self.dtype(), self.shape().clone(), 1.0))
    }

    /// `x^2`
    #[track_caller]
    pub fn square(&self) -> Tensor {
        self * self
    }

    /// `max(x, 0)`; NaN stays NaN. The derivative at 0 is 0, as in JAX and PyTorch.
    ///
    /// [`Tensor::maximum`] splits the derivative at a tie between its operands: the derivative of
    /// `x.maximum(0)` at 0 is 1/2.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let gradient = grad(|x: &Tensor| x.relu().sum(), &Tensor::from([-1.0, 0.0, 2.0]));
    /// assert_eq!(gradient.to_vec(), [0.0, 0.0, 1.0]);
    /// ```
    #[track_caller]
    pub fn relu(&self) -> Tensor {
        let zero = self.number(0.0);
        self.le(&zero).select(&zero, self)
    }

    /// `x / (1 + e^-x)`, also called swish.
    #[track_caller]
    pub fn silu(&self) -> Tensor {
        self * self.sigmoid()
    }

    /// The larger operand; NaN if either operand is NaN.
    #[track_caller]
    pub fn maximum(&self, other: &Tensor) -> Tensor {
        Tensor::binary(BinaryOp::Max, self, other)
    }

    /// The smaller operand; NaN if either operand is NaN.
    #[track_caller]
    pub fn minimum(&self, other: &Tensor) -> Tensor {
        Tensor::binary(BinaryOp::Min, self, other)
    }

    /// For a bool tensor: elements of `a` where this tensor is true, else elements of `b`. NaNs in unselected
    /// elements do not affect the result. The gradient is NaN, however, if an unselected element was computed
    /// by an operation with an infinite or NaN derivative, such as `sqrt` at 0: bound the argument of that
    /// operation.
    #[track_caller]
    #[doc(alias = "where")]
    pub fn select(&self, a: &Tensor, b: &Tensor) -> Tensor {
        let (a, b) = Tensor::matched("select", a, b);
        let shape = self.shape().broadcast(a.shape()).unwrap_or_else(|| {
            panic!("select: the condition {} does not broadcast to {}", self.shape(), a.shape())
        });
        let (p, a, b) =
            (self.broadcast_to(shape.clone()), a.broadcast_to(shape.clone()), b.broadcast_to(shape));
        Tensor::op(Op::Select, &[&p, &a, &b], None)
    }

    /// `sum of c_i x_i` over tensors of equal float type, as a chain of multiply-adds in this order. They are
    /// fused at the levels AVX2 and AVX-512, and at the portable level if the compile target has FMA
    /// (aarch64).
    #[track_caller]
    pub fn lincomb(coeffs: &[f64], xs: &[&Tensor]) -> Tensor {
        Tensor::op(Op::Lincomb { coeffs: coeffs.iter().map(|c| c.to_bits()).collect() }, xs, None)
    }
}

fn promote(a: &Tensor, b: &Tensor) -> DType {
    let (x, y) = (a.dtype(), b.dtype());
    match (x.is_float(), y.is_float()) {
        _ if x == y => x,
        (true, false) => x,
        (false, true) => y,
        (true, true) if a.rank() == 0 && b.rank() > 0 => y,
        (true, true) if b.rank() == 0 && a.rank() > 0 => x,
        (true, true) => DType::F64,
        _ if x == DType::Bool => y,
        _ if y == DType::Bool => x,
        (false, false) if a.rank() == 0 && b.rank() > 0 => y,
        (false, false) => x,
    }
}

macro_rules! unary {
    ($($(#[$doc:meta])* $op:ident $f:ident $domain:ident;)*) => { impl Tensor { $(
        $(#[$doc])*
        #[track_caller]
        pub fn $f(&self) -> Tensor { self.unary(UnaryOp::$op) }
    )* } };
}
crate::graph::functions::float_functions!(unary);
unary! {
    /// `|x|`
    Abs abs All;
    /// -1, 0 or 1.
    Sign sign All;
    /// Logical not of a bool tensor.
    Not not All;
    /// Whether x is neither infinite nor NaN; a bool tensor.
    IsFinite is_finite All;
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $f:ident $op:ident $swap:literal;)*) => { impl Tensor { $(
        $(#[$doc])*
        #[track_caller]
        pub fn $f(&self, other: impl Into<Tensor>) -> Tensor {
            let other = other.into();
            let (a, b) = if $swap { (&other, self) } else { (self, &other) };
            Tensor::compare(CompareOp::$op, a, b)
        }
    )* } };
}
comparisons! {
    /// Elementwise equality; a bool tensor.
    eq Eq false;
    /// Elementwise inequality; a bool tensor.
    ne Ne false;
    /// Elementwise less than; a bool tensor.
    lt Lt false;
    /// Elementwise less than or equal; a bool tensor.
    le Le false;
    /// Elementwise greater than; a bool tensor.
    gt Lt true;
    /// Elementwise greater than or equal; a bool tensor.
    ge Le true;
}

impl Tensor {
    /// Logical and of bool tensors.
    #[track_caller]
    pub fn and(&self, other: &Tensor) -> Tensor {
        Tensor::binary(BinaryOp::And, self, other)
    }

    /// Logical or of bool tensors.
    #[track_caller]
    pub fn or(&self, other: &Tensor) -> Tensor {
        Tensor::binary(BinaryOp::Or, self, other)
    }
}
