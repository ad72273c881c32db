//! The table of elementwise functions of one float.
//!
//! A row is a function's variant of [`UnaryOp`](super::UnaryOp), its name in text and as a method of `Tensor`, the
//! numbers for which tests evaluate it, and its documentation. The variant, the text form, the method, the entry of
//! the kernel table, and the tests of derivatives, plans and batches come from the row. Three things stand beside, each in
//! an exhaustive match or in a list of types that the kernel table names: the kernel (`backend/cpu/kernels/ops.rs`), the
//! derivative (`transform/partials.rs`) and the reference value (`graph/interp/elementwise.rs`). In the tests, rustc reports
//! a missing row in `kernels/strip_tests.rs`. It does not report missing rows in the tests that state an accuracy
//! (`simd/math/tests.rs`) or values (`graph/interp/tests.rs`, `tensor/ops/tests.rs`), nor the function in NumPy
//! (`tests/reference/check.py`).

/// Calls a macro with the rows of the table: documentation, variant, name, domain.
macro_rules! float_functions {
    ($with:ident) => {
        $with! {
            /// The largest integer not above x.
            Floor floor All;
            /// Square root.
            Sqrt sqrt Positive;
            /// `e^x`
            Exp exp Bounded;
            /// `e^x - 1`, accurate near 0.
            Expm1 expm1 Bounded;
            /// Natural logarithm.
            Ln ln Positive;
            /// `ln(1 + x)`, accurate near 0.
            Log1p log1p Positive;
            /// Sine of x in radians.
            Sin sin All;
            /// Cosine of x in radians.
            Cos cos All;
            /// Arc tangent: the angle in radians, from -pi/2 to pi/2, whose tangent is x.
            #[doc(alias = "arctan")]
            Atan atan All;
            /// Hyperbolic tangent.
            Tanh tanh All;
            /// `1 / (1 + e^-x)`
            Sigmoid sigmoid All;
            /// `ln(1 + e^x)`, computed as `max(x, 0) + ln(1 + e^-|x|)`. The derivative is computed as the sigmoid.
            Softplus softplus All;
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
            Erf erf All;
        }
    };
}
pub(crate) use float_functions;

/// The numbers for which a function is tested.
#[cfg(any(test, fuzzing))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// All numbers.
    All,
    /// Numbers in [-1, 1]: the function grows fast, or is defined only there.
    Bounded,
    /// Numbers above 0.
    Positive,
    /// Numbers above 1.
    AboveOne,
    /// 0, 1 or 2.
    Whole,
}

#[cfg(any(test, fuzzing))]
impl Domain {
    /// A function of `x` with values in the domain.
    pub fn of(self, b: &mut super::Builder, x: super::NodeId) -> super::NodeId {
        use super::UnaryOp::Tanh;
        match self {
            Domain::All => x,
            Domain::Bounded => b.unary(Tanh, x),
            Domain::Positive => {
                let bounded = b.unary(Tanh, x);
                let (square, least) = (b.mul(bounded, bounded), b.splat_like(x, 0.25));
                b.add(square, least)
            }
            Domain::AboveOne => {
                let (above, one) = (Domain::Positive.of(b, x), b.splat_like(x, 1.0));
                b.add(above, one)
            }
            Domain::Whole => {
                let bounded = b.unary(Tanh, x);
                let (size, most) = (b.unary(super::UnaryOp::Abs, bounded), b.splat_like(x, 2.0));
                let scaled = b.scale(size, 3.0);
                let whole = b.unary(super::UnaryOp::Floor, scaled);
                b.binary(super::BinaryOp::Min, whole, most)
            }
        }
    }
}
