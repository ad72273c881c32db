//! Elementwise functions, comparisons and `select`.

use super::Tensor;
use super::trace::record;
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
        if n < 0 {
            return 1.0 / self.power(n.unsigned_abs());
        }
        self.power(n.unsigned_abs())
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

    /// `ln(1 + e^x)`, computed as `max(x, 0) + ln(1 + e^-|x|)`.
    #[track_caller]
    pub fn softplus(&self) -> Tensor {
        // Not `relu`: the derivative of |x| at 0 is 0, so the derivative of the maximum at 0 must be 1/2.
        self.maximum(&self.number(0.0)) + (-self.abs()).exp().log1p()
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
    ($($(#[$doc:meta])* $f:ident $op:ident;)*) => { impl Tensor { $(
        $(#[$doc])*
        #[track_caller]
        pub fn $f(&self) -> Tensor { self.unary(UnaryOp::$op) }
    )* } };
}
unary! {
    /// `|x|`
    abs Abs;
    /// -1, 0 or 1.
    sign Sign;
    /// The largest integer not above x.
    floor Floor;
    /// `e^x`
    exp Exp;
    /// `e^x - 1`, accurate near 0.
    expm1 Expm1;
    /// Natural logarithm.
    ln Ln;
    /// `ln(1 + x)`, accurate near 0.
    log1p Log1p;
    /// Square root.
    sqrt Sqrt;
    /// Sine of x in radians.
    sin Sin;
    /// Cosine of x in radians.
    cos Cos;
    /// Hyperbolic tangent.
    tanh Tanh;
    /// `1 / (1 + e^-x)`
    sigmoid Sigmoid;
    /// Error function, `2 / sqrt(pi)` times the integral of `e^(-t^2)` from 0 to x.
    ///
    /// # Examples
    /// The activation GELU, `x / 2 (1 + erf(x / sqrt 2))`:
    /// ```
    /// use flowline::tensor::Tensor;
    /// let x = Tensor::from([-1.0, 0.0, 1.0]);
    /// let gelu = &x * 0.5 * (1.0 + (&x * 0.5f64.sqrt()).erf());
    /// assert!((gelu.to_vec()[2] - 0.841_344_746_068_542_9).abs() < 1e-15);
    /// ```
    erf Erf;
    /// Logical not of a bool tensor.
    not Not;
    /// Whether x is neither infinite nor NaN; a bool tensor.
    is_finite IsFinite;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::Activation;
    use crate::tensor::{grad, jit, jvp, vmap};

    #[test]
    fn the_derivative_of_relu_at_0_is_0_eager_fused_and_mapped() {
        for dtype in [DType::F32, DType::F64] {
            let x = Tensor::from([-1.0, -0.0, 0.0, 1e-30, 2.0]).cast(dtype);
            let (gradient, ones) = ([0.0, 0.0, 0.0, 1.0, 1.0], Tensor::full(dtype, [5], 1.0));
            let relus: [fn(&Tensor) -> Tensor; 2] = [Tensor::relu, |x| Activation::Relu.apply(x)];
            for relu in relus {
                let sum = move |x: &Tensor| relu(x).sum();
                assert_eq!(grad(sum, &x).to_vec(), gradient);
                assert_eq!(jvp(relu, &x, &ones).1.to_vec(), gradient);
                assert_eq!(jit(move |x: Tensor| grad(sum, &x)).call(&x).unwrap().to_vec(), gradient);
                assert_eq!(vmap(|x: &Tensor| grad(sum, x), &x).to_vec(), gradient);
                // Fused with its surroundings: d/dx tanh(relu(x)^2 + relu(x)), and the derivative of that.
                let chain = move |x: &Tensor| (relu(x).square() + relu(x)).tanh().sum();
                let first = jit(move |x: Tensor| grad(chain, &x)).call(&x).unwrap().to_vec();
                let second = jvp(move |x: &Tensor| grad(chain, x), &x, &ones).1.to_vec();
                assert_eq!((&first[..3], &second[..3]), (&[0.0; 3][..], &[0.0; 3][..]));
                assert!(
                    (first[3] - 1.0).abs() < 1e-6 && (second[3] - 2.0).abs() < 1e-6,
                    "{first:?} {second:?}"
                );
            }
            let half = grad(|x: &Tensor| x.softplus().sum(), &Tensor::scalar(dtype, 0.0));
            assert_eq!(half.item(), 0.5);
        }
    }

    #[test]
    fn whole_powers_of_any_exponent() {
        let x = Tensor::from([-2.0, 1.0, 0.5]);
        assert_eq!(x.powi(0).to_vec(), [1.0; 3]);
        assert_eq!(x.powi(5).to_vec(), [-32.0, 1.0, 0.03125]);
        assert_eq!(x.powi(-3).to_vec(), [-0.125, 1.0, 8.0]);
        assert_eq!(x.powi(i32::MIN).to_vec(), [0.0, 1.0, f64::INFINITY]);
    }

    #[test]
    fn relu_keeps_nan_and_integers() {
        let y = Tensor::from([f64::NAN, f64::NEG_INFINITY, f64::INFINITY]).relu().to_vec();
        assert!(y[0].is_nan() && y[1] == 0.0 && y[2] == f64::INFINITY, "{y:?}");
        let n = Tensor::from([-2, 3]).relu();
        assert_eq!((n.dtype(), n.to_vec()), (DType::I32, vec![0.0, 3.0]));
    }
}
