//! The primitive operations: a small set, closed under differentiation and nesting.
//!
//! To add an operation, extend each `match` that the compiler reports, in inference, jvp, vjp, interpreter,
//! lowering and text form (ARCHITECTURE.md, "How to add"). Broadcasting is explicit: elementwise ops take
//! operands of equal shape. There is no op for a function that can be composed of these ops without losing
//! accuracy or speed (mean, silu, norms, normal samples).

use super::{
    Cond, Custom, FactorOp, Func, LineOp, Literal, Margins, Observer, Replay, ScalarFn, ScatterOp, Solve,
    Tiles, Triangle, indices,
};
use std::sync::Arc;

/// Defines the elementwise functions of one operand: those with rules of their own, and the rows of the
/// [table](super::functions).
macro_rules! unary_ops {
    ($($(#[$doc:meta])* $op:ident $name:ident $domain:ident;)*) => {
        /// Elementwise functions of one float. `Neg`, `Abs` and `Sign` also take i32; `Not` takes bool.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum UnaryOp {
            /// -x
            Neg,
            /// |x|
            Abs,
            /// -1, 0 or 1; the sign of NaN is NaN
            Sign,
            /// x^p; p is stored as the bits of an `f64`
            Powf(u64),
            /// logical not of a bool
            Not,
            /// whether x is neither infinite nor NaN; the result is bool
            IsFinite,
            $($(#[$doc])* $op,)*
        }

        /// The functions of the [table](super::functions).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum FloatFn {
            $($(#[$doc])* $op,)*
        }

        impl FloatFn {
            /// All of them.
            pub const ALL: &[FloatFn] = &[$(FloatFn::$op),*];

            /// The operation.
            pub fn op(self) -> UnaryOp {
                match self { $(FloatFn::$op => UnaryOp::$op),* }
            }

            /// The numbers for which it is tested.
            #[cfg(any(test, fuzzing))]
            pub fn domain(self) -> super::functions::Domain {
                match self { $(FloatFn::$op => super::functions::Domain::$domain),* }
            }
        }

        impl UnaryOp {
            /// The function of the table, unless the operation has a rule of its own.
            pub fn float_fn(self) -> Option<FloatFn> {
                match self {
                    $(UnaryOp::$op => Some(FloatFn::$op),)*
                    UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sign | UnaryOp::Powf(_) | UnaryOp::Not
                    | UnaryOp::IsFinite => None,
                }
            }

            /// The name used in printed graphs.
            pub fn name(self) -> &'static str {
                match self {
                    UnaryOp::Neg => "neg",
                    UnaryOp::Abs => "abs",
                    UnaryOp::Sign => "sign",
                    UnaryOp::Powf(_) => "powf",
                    UnaryOp::Not => "not",
                    UnaryOp::IsFinite => "is_finite",
                    $(UnaryOp::$op => stringify!($name),)*
                }
            }

            /// The operation of this name; a power needs its exponent.
            pub(super) fn named(name: &str) -> Option<UnaryOp> {
                let own = [UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Sign, UnaryOp::Not, UnaryOp::IsFinite];
                let all = own.into_iter().chain(FloatFn::ALL.iter().map(|f| f.op()));
                all.into_iter().find(|op| op.name() == name)
            }
        }
    };
}
super::functions::float_functions!(unary_ops);

/// Defines operations of two operands, with their names in printed graphs.
macro_rules! two_operand_ops {
    ($(#[$of:meta])* $kind:ident { $($(#[$doc:meta])* $op:ident $name:literal,)* }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $kind {
            $($(#[$doc])* $op,)*
        }

        impl $kind {
            /// The name used in printed graphs.
            pub fn name(self) -> &'static str {
                match self {
                    $($kind::$op => $name,)*
                }
            }

            /// The operation of this name.
            pub(super) fn named(name: &str) -> Option<$kind> {
                [$($kind::$op),*].into_iter().find(|op| op.name() == name)
            }
        }
    };
}

two_operand_ops! {
    /// Elementwise functions of two operands of equal type.
    BinaryOp {
        /// a + b (integers wrap)
        Add "add",
        /// a - b (integers wrap)
        Sub "sub",
        /// a b (integers wrap)
        Mul "mul",
        /// a / b for floats
        Div "div",
        /// the larger operand; NaN if either operand is NaN
        Max "max",
        /// the smaller operand; NaN if either operand is NaN
        Min "min",
        /// logical and of bools
        And "and",
        /// logical or of bools
        Or "or",
    }
}

two_operand_ops! {
    /// Elementwise comparisons of two operands of equal type. The result is bool; comparisons with NaN are false,
    /// except `Ne`.
    CompareOp {
        /// a = b
        Eq "eq",
        /// a != b
        Ne "ne",
        /// a < b
        Lt "lt",
        /// a <= b
        Le "le",
    }
}

/// Reductions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// Sum.
    Sum,
    /// The largest element; NaN if any element is NaN.
    Max,
    /// The smallest element; NaN if any element is NaN.
    Min,
}

/// An operation. Its operands are the node's `args`, its result type is the node's `ty`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Input k of the function, counted from 0.
    Input(usize),
    /// A constant; a splat may have any shape.
    Const(Literal),
    /// 0, 1, 2, ... along an axis, repeated along the other axes.
    Iota {
        /// The axis to count along.
        axis: usize,
    },
    /// `f(x)`
    Unary(UnaryOp),
    /// `f(a, b)`
    Binary(BinaryOp),
    /// A function of the [table](super::scalar) of functions computed one number after another.
    Scalar(ScalarFn),
    /// `a < b` and the other comparisons.
    Compare(CompareOp),
    /// `(p, a, b)`: a where p, else b. NaNs in unselected elements have no effect.
    Select,
    /// `(x_1, ..., x_n)`: the sum of c_i x_i, as a chain of multiply-adds in this order. The multiply-adds
    /// are fused on machines with FMA. The portable level of x86-64 has no FMA, so its last bits differ.
    /// `Lincomb` is a primitive for two reasons: of all cheap kernels, stage combinations of Runge-Kutta
    /// methods take the most time, and their rounding must not depend on fusion in the backend.
    Lincomb {
        /// `f64::to_bits` of the coefficients.
        coeffs: Vec<u64>,
    },
    /// Converts the element type; float to integer truncates and saturates; bool becomes 0 or 1.
    Cast,
    /// The identity, with derivative 0.
    StopGradient,
    /// The identity, which also calls a Rust function with the value. See [`Observer`].
    Observe(Observer),
    /// Repeats elements: axis `i` of the operand becomes axis `dims[i]` of the result (ascending). An operand
    /// axis of length 1 may be stretched.
    Broadcast {
        /// The result axis of each operand axis.
        dims: Vec<usize>,
    },
    /// The same elements in row-major order under another shape.
    Reshape,
    /// Axis `i` of the result is axis `perm[i]` of the operand.
    Transpose {
        /// The permutation.
        perm: Vec<usize>,
    },
    /// Elements `start[i] .. limit[i]` of each axis.
    Slice {
        /// The first element of the slice, for each axis.
        start: Vec<usize>,
        /// The first element after the slice, for each axis.
        limit: Vec<usize>,
    },
    /// Pads with zeros: `lo[i]` before and `hi[i]` after on each axis.
    Pad {
        /// The number of zeros added before the elements, for each axis.
        lo: Vec<usize>,
        /// The number of zeros added after the elements, for each axis.
        hi: Vec<usize>,
    },
    /// Concatenates along an axis.
    Concat {
        /// The axis.
        axis: usize,
    },
    /// Reduces over axes, which are removed.
    Reduce {
        /// The reduction.
        op: ReduceOp,
        /// The axes, ascending.
        axes: Vec<usize>,
    },
    /// An operation on each line of the last axis. See [`LineOp`].
    Lines(LineOp),
    /// `(x, index)`: rows `x[index[..]]` along axis 0; `index` is i32 of any shape, clamped to the axis. The
    /// result has the axes of `index`, followed by the other axes of x.
    Gather,
    /// `(x, index, updates)`: x with `updates` combined with rows `index` (clamped) of axis 0, in order. See
    /// [`ScatterOp`].
    Scatter(ScatterOp),
    /// `(a, b)`: matrix product `[.., m, k] x [.., k, n] -> [.., m, n]`; a flag transposes the last two axes of
    /// an operand first. The leading axes are batch axes, equal on both sides.
    Dot {
        /// Use a^T.
        ta: bool,
        /// Use b^T.
        tb: bool,
    },
    /// `(x, w)`: cross-correlation of images with a kernel, `[.., n, h, w, c] x [.., kh, kw, c, o] -> [.., n,
    /// h', w', o]`: `y[n, p, o]` is the sum of `x[n, p + i - lo, c] w[i, c, o]` over taps i and channels c,
    /// with zeros around x. With `turned`, `w[k - 1 - i, o, c]` replaces `w[i, c, o]`: the transpose. A side
    /// of length n becomes `n + lo + hi - k + 1`. The leading axes are batch axes, equal on both sides.
    Conv {
        /// Zero padding of the images.
        margins: Margins,
        /// Reverse the order of the taps and swap the kernel's last two axes.
        turned: bool,
    },
    /// `(x, y)`: the kernel `[.., kh, kw, c, o]` whose element is the sum of `x[n, p + i - lo, c] y[n, p, o]`
    /// over images and positions, with zeros around x: the derivative of `Conv` with respect to its kernel.
    ConvKernel {
        /// Zero padding of the images x.
        margins: Margins,
    },
    /// A factorization of each matrix. See [`FactorOp`]. Only [`FactorOp::Lu`] has a derivative here; those of the others
    /// are rules of `tensor::linalg`.
    Factor(FactorOp),
    /// `(factors, a, b [.., n, m])`: x with `a x = b`, or `a^T x = b` if transposed, from the LU factors of a. The
    /// kernel does not read a; derivatives are with respect to a and b, not to the factors.
    LuSolve {
        /// Use a^T.
        transposed: bool,
    },
    /// `(a, b [.., n, m])`: x with `t x = b` for a triangle t of a. See [`Triangle`].
    TriangularSolve(Triangle),
    /// `(key: u32[2], start: u32)`: words `start ..` of stream `stream` of Philox4x32-10 under `key`.
    RandomBits {
        /// Separates the samples, splits and folds of one key.
        stream: u32,
    },
    /// Runs a body until an output of the body ends the loop. See [`Solve`].
    Solve(Arc<Solve>),
    /// Runs a body along a schedule. See [`Replay`].
    Replay(Arc<Replay>),
    /// Runs a body for each tile of rows, in parallel. See [`Tiles`].
    Tiles(Arc<Tiles>),
    /// A function with custom derivatives. See [`Custom`].
    Custom(Arc<Custom>),
    /// Runs one of two bodies. See [`Cond`].
    Cond(Arc<Cond>),
    /// Value k of a tuple, counted from 0.
    Proj(usize),
}

/// What a loop leaves on a tape: the outputs of its body that are states and residuals.
pub struct States<'a> {
    /// One attempt, or one trip.
    pub body: &'a Func,
    /// The outputs of the body that are the next state.
    pub carry: Vec<usize>,
    /// The outputs of the body that are residuals.
    pub residuals: Vec<usize>,
    /// The number of residuals that a step itself computes.
    pub num_own: usize,
    /// The values of the node that are the last state.
    pub values: Vec<usize>,
}

impl Op {
    /// Whether each element of the result depends only on the operands' elements at the same index. False for
    /// `Observe`, which has a side effect.
    pub fn is_elementwise(&self) -> bool {
        matches!(
            self,
            Op::Unary(_)
                | Op::Binary(_)
                | Op::Scalar(_)
                | Op::Compare(_)
                | Op::Select
                | Op::Lincomb { .. }
                | Op::Cast
                | Op::StopGradient
        )
    }

    /// The functions inside the operation, with the names that printed graphs have for them.
    pub fn bodies(&self) -> Vec<(&'static str, &Func)> {
        let all = match self {
            Op::Solve(s) => {
                [("attempt", Some(&s.attempt)), ("step", Some(&s.step)), ("inverse", s.inverse.as_ref())]
            }
            Op::Replay(l) => {
                [("body", Some(&l.body)), ("step", l.step.as_ref()), ("inverse", l.inverse.as_ref())]
            }
            Op::Tiles(t) => [("body", Some(&t.body)), ("tail", t.tail.as_ref()), ("", None)],
            Op::Custom(c) => [("body", Some(&c.body)), ("jvp", c.jvp.as_ref()), ("vjp", c.vjp.as_ref())],
            Op::Cond(c) => [("then", Some(&c.then)), ("otherwise", Some(&c.otherwise)), ("", None)],
            _ => return vec![],
        };
        all.into_iter().filter_map(|(name, f)| Some((name, f?))).collect()
    }

    /// The same operation with `g` applied to the functions inside.
    #[must_use]
    pub fn map_bodies(&self, mut g: impl FnMut(&Func) -> Func) -> Op {
        let mut op = self.clone();
        let all = match &mut op {
            Op::Solve(s) => {
                let Solve { attempt, step, inverse, .. } = Arc::make_mut(s);
                [Some(attempt), Some(step), inverse.as_mut()]
            }
            Op::Replay(l) => {
                let Replay { body, step, inverse, .. } = Arc::make_mut(l);
                [Some(body), step.as_mut(), inverse.as_mut()]
            }
            Op::Tiles(t) => {
                let Tiles { body, tail, .. } = Arc::make_mut(t);
                [Some(body), tail.as_mut(), None]
            }
            Op::Custom(c) => {
                let Custom { body, jvp, vjp, .. } = Arc::make_mut(c);
                [Some(body), jvp.as_mut(), vjp.as_mut()]
            }
            Op::Cond(c) => {
                let Cond { then, otherwise } = Arc::make_mut(c);
                [Some(then), Some(otherwise), None]
            }
            _ => [None, None, None],
        };
        all.into_iter().flatten().for_each(|f| *f = g(f));
        op
    }

    /// What a loop leaves on a tape; `None` for other operations.
    pub fn states(&self) -> Option<States<'_>> {
        match self {
            Op::Solve(s) => {
                let of = s.attempt_outputs(&indices(s.attempt.num_outputs()));
                let residuals = [of.own, of.last].concat();
                let (carry, values) = (of.carry, s.places().carry);
                Some(States { body: &s.attempt, carry, residuals, num_own: s.num_own, values })
            }
            Op::Replay(l) => {
                let of = l.outputs(&indices(l.body.num_outputs()));
                let (carry, residuals, values) = (of.carry, of.residuals, l.places().carry);
                Some(States { body: &l.body, carry, residuals, num_own: l.num_residuals, values })
            }
            _ => None,
        }
    }

    /// The name used in printed graphs, without attributes.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Input(_) => "input",
            Op::Const(_) => "const",
            Op::Iota { .. } => "iota",
            Op::Unary(op) => op.name(),
            Op::Binary(op) => op.name(),
            Op::Compare(op) => op.name(),
            Op::Select => "select",
            Op::Scalar(f) => f.name(),
            Op::Lines(op) => op.name(),
            Op::Lincomb { .. } => "lincomb",
            Op::Cast => "cast",
            Op::StopGradient => "stop_gradient",
            Op::Observe(_) => "observe",
            Op::Broadcast { .. } => "broadcast",
            Op::Reshape => "reshape",
            Op::Transpose { .. } => "transpose",
            Op::Slice { .. } => "slice",
            Op::Pad { .. } => "pad",
            Op::Concat { .. } => "concat",
            Op::Reduce { op: ReduceOp::Sum, .. } => "reduce_sum",
            Op::Reduce { op: ReduceOp::Max, .. } => "reduce_max",
            Op::Reduce { op: ReduceOp::Min, .. } => "reduce_min",
            Op::Gather => "gather",
            Op::Scatter(op) => op.name(),
            Op::Dot { .. } => "dot",
            Op::Conv { .. } => "conv",
            Op::ConvKernel { .. } => "conv_kernel",
            Op::Factor(op) => op.name(),
            Op::LuSolve { .. } => "lu_solve",
            Op::TriangularSolve(_) => "triangular_solve",
            Op::RandomBits { .. } => "random_bits",
            Op::Solve(_) => "solve",
            Op::Replay(_) => "replay",
            Op::Tiles(_) => "tiles",
            Op::Custom(_) => "custom",
            Op::Cond(_) => "cond",
            Op::Proj(_) => "proj",
        }
    }
}
