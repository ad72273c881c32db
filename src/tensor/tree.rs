//! Trees of tensors: the arguments of jit, gradients, optimizers and files.
//!
//! A tree has tensor leaves, which are traced, differentiated and saved, and static leaves, which are part of
//! the program: a changed static leaf causes a retrace. Every leaf has a path (`layers.0.weight`). The
//! [`tree!`](crate::tree!) macro defines trees; a derive macro would need a second crate, and would generate
//! the same three methods.

use super::Tensor;
use crate::array::DType;
use std::fmt::{self, Write};

/// The path of a leaf: `layers.0.weight`.
#[derive(Default, Clone, Debug)]
pub struct TreePath(Vec<String>);

impl TreePath {
    /// Runs `f` one level down.
    pub fn within<T>(&mut self, name: &str, f: impl FnOnce(&mut TreePath) -> T) -> T {
        self.enter(name);
        let result = f(self);
        self.leave();
        result
    }

    /// Goes one level down. With [`TreePath::leave`], this is equivalent to [`TreePath::within`], which would be
    /// compiled for each field.
    #[doc(hidden)]
    pub fn enter(&mut self, name: &str) {
        self.0.push(name.to_owned());
    }

    /// Goes back up one level.
    #[doc(hidden)]
    pub fn leave(&mut self) {
        self.0.pop();
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.join("."))
    }
}

/// A leaf of a tree.
pub enum Leaf<'a> {
    /// An array: traced, differentiated, saved.
    Tensor(&'a Tensor),
    /// A value that is part of the program.
    Static(&'a dyn fmt::Debug),
}

/// A struct, enum or collection of tensors and static values.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tree of tensors",
    label = "not a `Tree`",
    note = "wrap the definition of your struct or enum in `tree! {{ ... }}`, and let it own its data: a reference is not a tree"
)]
pub trait Tree: Clone + 'static {
    /// Visits the leaves in order with their paths.
    fn each<'a>(&'a self, path: &mut TreePath, f: &mut dyn FnMut(&TreePath, Leaf<'a>));
    /// Visits the tensor leaves in the order of [`Tree::each`], to change them in place.
    fn each_mut(&mut self, f: &mut dyn FnMut(&mut Tensor));
    /// The same tree with other tensors.
    fn map(&self, path: &mut TreePath, f: &mut dyn FnMut(&TreePath, &Tensor) -> Tensor) -> Self;

    /// The tensor leaves in order.
    fn leaves(&self) -> Vec<Tensor> {
        let mut out = Vec::new();
        self.each(&mut TreePath::default(), &mut |_, leaf| {
            if let Leaf::Tensor(t) = leaf {
                out.push(t.clone());
            }
        });
        out
    }

    /// The tensor leaves with their paths, in order.
    fn named_leaves(&self) -> Vec<(String, Tensor)> {
        let mut out = Vec::new();
        self.each(&mut TreePath::default(), &mut |path, leaf| {
            if let Leaf::Tensor(t) = leaf {
                out.push((path.to_string(), t.clone()));
            }
        });
        out
    }

    /// The same tree with the given tensors as leaves.
    ///
    /// # Panics
    /// If there are fewer tensors than leaves.
    fn with_leaves(&self, leaves: impl IntoIterator<Item = Tensor>) -> Self
    where
        Self: Sized,
    {
        let mut leaves = leaves.into_iter();
        self.map(&mut TreePath::default(), &mut |path, _| {
            leaves.next().unwrap_or_else(|| panic!("with_leaves: no tensor for leaf {path}"))
        })
    }

    /// Maps `f` over the tensor leaves.
    fn map_leaves(&self, mut f: impl FnMut(&Tensor) -> Tensor) -> Self
    where
        Self: Sized,
    {
        self.map(&mut TreePath::default(), &mut |_, t| f(t))
    }

    /// The tree with its float leaves in another element type, f32 or f64: for example a network in double precision.
    /// Leaves of integers and bools, and static leaves, stay.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::prelude::*;
    /// let net = Mlp::new([2, 8, 2], Activation::Tanh, &Key::new(0)).cast_floats(DType::F64);
    /// assert_eq!(net.forward(&Tensor::from([[1.0, 2.0]])).dtype(), DType::F64);
    /// ```
    #[must_use]
    fn cast_floats(&self, dtype: DType) -> Self
    where
        Self: Sized,
    {
        self.map_leaves(|x| if x.dtype().is_float() { x.cast(dtype) } else { x.clone() })
    }
}

/// Trees that can be an ODE state. A solve does not change their static leaves.
pub trait TensorTree: Tree {}

/// A [`TensorTree`] that is not a tuple: a `Tensor`, or a struct of [`tree!`](crate::tree!).
///
/// Tuples are excluded because tuples of plain Rust numbers are also states.
pub trait LoneTree: TensorTree {}

impl Tree for Tensor {
    fn each<'a>(&'a self, path: &mut TreePath, f: &mut dyn FnMut(&TreePath, Leaf<'a>)) {
        f(path, Leaf::Tensor(self));
    }
    fn each_mut(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        f(self);
    }
    fn map(&self, path: &mut TreePath, f: &mut dyn FnMut(&TreePath, &Tensor) -> Tensor) -> Self {
        f(path, self)
    }
}
impl TensorTree for Tensor {}
impl LoneTree for Tensor {}

macro_rules! statics {
    ($($t:ty)*) => { $(impl Tree for $t {
        fn each<'a>(&'a self, path: &mut TreePath, f: &mut dyn FnMut(&TreePath, Leaf<'a>)) { f(path, Leaf::Static(self)); }
        fn each_mut(&mut self, _: &mut dyn FnMut(&mut Tensor)) {}
        fn map(&self, _: &mut TreePath, _: &mut dyn FnMut(&TreePath, &Tensor) -> Tensor) -> Self { self.clone() }
    })* };
}
statics!(() bool i32 i64 u32 u64 usize f32 f64 String &'static str);

macro_rules! sequences {
    ($([$($g:tt)*] $t:ty, $collect:expr;)*) => { $(impl<$($g)*> Tree for $t {
        fn each<'a>(&'a self, path: &mut TreePath, f: &mut dyn FnMut(&TreePath, Leaf<'a>)) {
            for (i, x) in self.iter().enumerate() {
                path.enter(&i.to_string());
                x.each(path, f);
                path.leave();
            }
        }
        fn each_mut(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
            for x in self.iter_mut() { x.each_mut(f); }
        }
        fn map(&self, path: &mut TreePath, f: &mut dyn FnMut(&TreePath, &Tensor) -> Tensor) -> Self {
            let mut i = 0;
            $collect(self, |x: &T| {
                path.enter(&i.to_string());
                let x = x.map(path, f);
                path.leave();
                i += 1;
                x
            })
        }
    })* };
}
sequences! {
    [T: Tree] Vec<T>, |s: &Vec<T>, g| s.iter().map(g).collect();
    [T: Tree, const N: usize] [T; N], |s: &[T; N], g| s.each_ref().map(g);
}

/// An `Option` adds no level to a path: `bias`, not `bias.0`. Whether it is `Some` is static.
impl<T: Tree> Tree for Option<T> {
    fn each<'a>(&'a self, path: &mut TreePath, f: &mut dyn FnMut(&TreePath, Leaf<'a>)) {
        match self {
            Some(x) => x.each(path, f),
            None => f(path, Leaf::Static(&"None")),
        }
    }
    fn each_mut(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        if let Some(x) = self {
            x.each_mut(f);
        }
    }
    fn map(&self, path: &mut TreePath, f: &mut dyn FnMut(&TreePath, &Tensor) -> Tensor) -> Self {
        self.as_ref().map(|x| x.map(path, f))
    }
}

impl<T: Tree> Tree for Box<T> {
    fn each<'a>(&'a self, path: &mut TreePath, f: &mut dyn FnMut(&TreePath, Leaf<'a>)) {
        (**self).each(path, f);
    }
    fn each_mut(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        (**self).each_mut(f);
    }
    fn map(&self, path: &mut TreePath, f: &mut dyn FnMut(&TreePath, &Tensor) -> Tensor) -> Self {
        Box::new((**self).map(path, f))
    }
}

impl<T: Tree> Tree for std::collections::BTreeMap<String, T> {
    fn each<'a>(&'a self, path: &mut TreePath, f: &mut dyn FnMut(&TreePath, Leaf<'a>)) {
        for (k, x) in self {
            path.enter(k);
            x.each(path, f);
            path.leave();
        }
    }
    fn each_mut(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        for x in self.values_mut() {
            x.each_mut(f);
        }
    }
    fn map(&self, path: &mut TreePath, f: &mut dyn FnMut(&TreePath, &Tensor) -> Tensor) -> Self {
        let mut mapped = |(k, x): (&String, &T)| {
            path.enter(k);
            let x = x.map(path, f);
            path.leave();
            (k.clone(), x)
        };
        self.iter().map(&mut mapped).collect()
    }
}

macro_rules! tuples {
    ($(($($T:ident $i:tt)*))*) => { $(
        impl<$($T: Tree),*> Tree for ($($T,)*) {
            fn each<'a>(&'a self, path: &mut TreePath, f: &mut dyn FnMut(&TreePath, Leaf<'a>)) {
                $(
                    path.enter(stringify!($i));
                    self.$i.each(path, f);
                    path.leave();
                )*
            }
            fn each_mut(&mut self, f: &mut dyn FnMut(&mut Tensor)) { $(self.$i.each_mut(f);)* }
            fn map(&self, path: &mut TreePath, f: &mut dyn FnMut(&TreePath, &Tensor) -> Tensor) -> Self {
                ($({
                    path.enter(stringify!($i));
                    let x = self.$i.map(path, f);
                    path.leave();
                    x
                },)*)
            }
        }
        impl<$($T: TensorTree),*> TensorTree for ($($T,)*) {}
    )* };
}
tuples!((A 0) (A 0 B 1) (A 0 B 1 C 2) (A 0 B 1 C 2 D 3) (A 0 B 1 C 2 D 3 E 4) (A 0 B 1 C 2 D 3 E 4 G 5));

/// The leaves of a tree with their types or static values.
pub(super) fn outline(tree: &impl Tree) -> Vec<String> {
    let mut out = Vec::new();
    tree.each(&mut TreePath::default(), &mut |path, leaf| {
        let path = path.to_string();
        let name = if path.is_empty() { String::new() } else { format!("leaf {path}: ") };
        out.push(match leaf {
            Leaf::Tensor(t) => format!("{name}{}", t.ty()),
            Leaf::Static(s) => format!("{name}static {s:?}"),
        });
    });
    out
}

/// The number of elements in all tensor leaves: for a model, the number of its weights.
pub fn num_elements(tree: &impl Tree) -> usize {
    tree.leaves().iter().map(Tensor::size).sum()
}

/// A table of the tensor leaves: path, element type, shape, number of elements; the last line has the total.
pub fn tree_summary(tree: &impl Tree) -> String {
    let leaves = tree.named_leaves();
    let width = leaves.iter().map(|(p, _)| p.len()).max().unwrap_or(0).max(5);
    let mut out = String::new();
    for (path, t) in &leaves {
        let shape = t.shape().to_string();
        let _ = writeln!(out, "{path:width$}  {:4} {shape:16} {:>9}", t.dtype(), t.size());
    }
    out + &format!("{:width$}  {:4} {:16} {:>9}", "total", "", "", num_elements(tree))
}

/// Defines a struct or an enum that is a [`Tree`](crate::tensor::Tree): derives `Clone` and `Debug`, and
/// implements the methods of `Tree`. Fields without tensors are static. The fields of a struct have names.
/// Variants of an enum have named fields, one field without a name, or none; an enum has no type parameters.
///
/// # Examples
/// ```
/// use flowline::nn::prelude::*;
/// use flowline::tensor::extra::num_elements;
/// tree! {
///     /// An affine map.
///     pub struct Affine { weight: Tensor, bias: Tensor, name: String }
/// }
/// let a = Affine { weight: Tensor::zeros([2, 3]), bias: Tensor::zeros([3]), name: "a".into() };
/// assert_eq!(num_elements(&a), 9);
/// ```
#[macro_export]
macro_rules! tree {
    ($(#[$m:meta])* $v:vis struct $name:ident $(<$($g:ident $(: $b:ident $(+ $bs:ident)*)?),+ $(,)?>)? { $($(#[$fm:meta])* $fv:vis $f:ident: $t:ty),* $(,)? }) => {
        $(#[$m])*
        #[derive(Clone, Debug)]
        $v struct $name $(<$($g: $crate::tensor::Tree $(+ $b $(+ $bs)*)?),+>)? { $($(#[$fm])* $fv $f: $t),* }
        impl $(<$($g: $crate::tensor::Tree $(+ $b $(+ $bs)*)?),+>)? $crate::tensor::Tree for $name $(<$($g),+>)? {
            #[allow(unused_variables, reason = "a struct may have no field")]
            fn each<'a>(&'a self, path: &mut $crate::tensor::extra::TreePath, f: &mut dyn FnMut(&$crate::tensor::extra::TreePath, $crate::tensor::Leaf<'a>)) {
                $(
                    path.enter(stringify!($f));
                    <$t as $crate::tensor::Tree>::each(&self.$f, path, f);
                    path.leave();
                )*
            }
            #[allow(unused_variables, reason = "a struct may have no field")]
            fn each_mut(&mut self, f: &mut dyn FnMut(&mut $crate::tensor::Tensor)) {
                $(<$t as $crate::tensor::Tree>::each_mut(&mut self.$f, f);)*
            }
            #[allow(unused_variables, reason = "a struct may have no field")]
            fn map(&self, path: &mut $crate::tensor::extra::TreePath, f: &mut dyn FnMut(&$crate::tensor::extra::TreePath, &$crate::tensor::Tensor) -> $crate::tensor::Tensor) -> Self {
                $name { $($f: {
                    path.enter(stringify!($f));
                    let x = <$t as $crate::tensor::Tree>::map(&self.$f, path, f);
                    path.leave();
                    x
                }),* }
            }
        }
        impl $(<$($g: $crate::tensor::Tree $(+ $b $(+ $bs)*)?),+>)? ::std::convert::From<&$name $(<$($g),+>)?> for $name $(<$($g),+>)? {
            fn from(x: &Self) -> Self { ::std::clone::Clone::clone(x) }
        }
        impl $(<$($g: $crate::tensor::TensorTree $(+ $b $(+ $bs)*)?),+>)? $crate::tensor::TensorTree for $name $(<$($g),+>)? {}
        impl $(<$($g: $crate::tensor::TensorTree $(+ $b $(+ $bs)*)?),+>)? $crate::tensor::LoneTree for $name $(<$($g),+>)? {}
    };
    ($(#[$m:meta])* $v:vis enum $name:ident { $($(#[$vm:meta])* $var:ident $(($vt:ty))? $({ $($(#[$fm:meta])* $f:ident: $t:ty),* $(,)? })?),* $(,)? }) => {
        $(#[$m])*
        #[derive(Clone, Debug)]
        $v enum $name { $($(#[$vm])* $var $(($vt))? $({ $($(#[$fm])* $f: $t),* })?),* }
        impl $crate::tensor::Tree for $name {
            #[allow(unused_variables, reason = "a variant may hold nothing")]
            fn each<'a>(&'a self, path: &mut $crate::tensor::extra::TreePath, f: &mut dyn FnMut(&$crate::tensor::extra::TreePath, $crate::tensor::Leaf<'a>)) {
                $($crate::__variant!(@each self path f $name $var $(($vt))? $({ $($f)* })?);)*
            }
            #[allow(unused_variables, reason = "a variant may hold nothing")]
            fn each_mut(&mut self, f: &mut dyn FnMut(&mut $crate::tensor::Tensor)) {
                $($crate::__variant!(@each_mut self f $name $var $(($vt))? $({ $($f)* })?);)*
            }
            #[allow(unused_variables, reason = "a variant may hold nothing")]
            fn map(&self, path: &mut $crate::tensor::extra::TreePath, f: &mut dyn FnMut(&$crate::tensor::extra::TreePath, &$crate::tensor::Tensor) -> $crate::tensor::Tensor) -> Self {
                $($crate::__variant!(@map self path f $name $var $(($vt))? $({ $($f)* })?);)*
                unreachable!("invariant: every variant returns")
            }
        }
        impl ::std::convert::From<&$name> for $name {
            fn from(x: &Self) -> Self { ::std::clone::Clone::clone(x) }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __variant {
    (@each $s:ident $p:ident $g:ident $n:ident $var:ident) => {
        if let $n::$var = $s {
            $p.enter(stringify!($var));
            $g($p, $crate::tensor::Leaf::Static(&stringify!($var)));
            $p.leave();
        }
    };
    (@each $s:ident $p:ident $g:ident $n:ident $var:ident ($vt:ty)) => {
        #[allow(irrefutable_let_patterns, reason = "an enum may have one variant")]
        if let $n::$var(x) = $s {
            $p.enter(stringify!($var));
            $crate::tensor::Tree::each(x, $p, $g);
            $p.leave();
        }
    };
    (@each $s:ident $p:ident $g:ident $n:ident $var:ident { $($f:ident)* }) => {
        #[allow(irrefutable_let_patterns, reason = "an enum may have one variant")]
        if let $n::$var { $($f),* } = $s {
            $p.enter(stringify!($var));
            $(
                $p.enter(stringify!($f));
                $crate::tensor::Tree::each($f, $p, $g);
                $p.leave();
            )*
            $p.leave();
        }
    };
    (@each_mut $s:ident $g:ident $n:ident $var:ident) => {};
    (@each_mut $s:ident $g:ident $n:ident $var:ident ($vt:ty)) => {
        #[allow(irrefutable_let_patterns, reason = "an enum may have one variant")]
        if let $n::$var(x) = $s { $crate::tensor::Tree::each_mut(x, $g) }
    };
    (@each_mut $s:ident $g:ident $n:ident $var:ident { $($f:ident)* }) => {
        #[allow(irrefutable_let_patterns, reason = "an enum may have one variant")]
        if let $n::$var { $($f),* } = $s { $($crate::tensor::Tree::each_mut($f, $g);)* }
    };
    (@map $s:ident $p:ident $g:ident $n:ident $var:ident) => { if let $n::$var = $s { return $n::$var } };
    (@map $s:ident $p:ident $g:ident $n:ident $var:ident ($vt:ty)) => {
        #[allow(irrefutable_let_patterns, reason = "an enum may have one variant")]
        if let $n::$var(x) = $s {
            $p.enter(stringify!($var));
            let x = $crate::tensor::Tree::map(x, $p, $g);
            $p.leave();
            return $n::$var(x);
        }
    };
    (@map $s:ident $p:ident $g:ident $n:ident $var:ident { $($f:ident)* }) => {
        #[allow(irrefutable_let_patterns, reason = "an enum may have one variant")]
        if let $n::$var { $($f),* } = $s {
            $p.enter(stringify!($var));
            $(
                $p.enter(stringify!($f));
                let $f = $crate::tensor::Tree::map($f, $p, $g);
                $p.leave();
            )*
            $p.leave();
            return $n::$var { $($f),* };
        }
    };
}
