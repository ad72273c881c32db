//! Tensors and parts of a model that are saved with it and never trained.
//!
//! The tree of a model is what gradients, optimizers and files see alike, so a constant of the model
//! (the frequencies of a Fourier layer) must be in it to be saved, and must be marked to stay what
//! it is: no derivative is taken by it, and optimizers know it by the names in its path. A static
//! leaf would do for both, but its numbers would then be part of every signature and of no weights file.
//!
//! [`Buffer`] and [`Frozen`] are decided where a model is defined; [`freeze`] is decided by path, where it
//! is trained.

use super::VelocityField;
use crate::tensor::{Tensor, Tree, TreePath, num_elements};
use crate::tree;

/// The last name of the path of every fixed tensor.
const NAME: &str = "fixed";

/// The name of the level of a path below which all is frozen.
const LEVEL: &str = "frozen";

tree! {
    /// A tensor that is part of a model and is not trained. Its path ends in `.fixed`.
    pub struct Buffer { fixed: Tensor }
}

impl Buffer {
    /// Fixes a tensor.
    pub fn new(x: impl Into<Tensor>) -> Buffer {
        Buffer { fixed: x.into() }
    }

    /// The tensor, of which no derivative is taken.
    pub fn get(&self) -> Tensor {
        self.fixed.stop_gradient()
    }
}

tree! {
    /// A part of a model that is not trained: a pretrained encoder, say. The paths of its leaves have a level
    /// `freeze`: `encoder.freeze.layers.0.weight`.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::*;
    /// use flowline::nn::prelude::*;
    /// use flowline::tensor::extra::num_elements;
    /// let encoder = Frozen::new(Linear::new(3, 2, &Key::new(0)));
    /// let loss = |part: &Frozen<Linear>| part.get().forward(&Tensor::ones([1, 3])).sum();
    /// assert_eq!(grad(loss, &encoder).thaw().weight.to_vec(), [0.0; 6]);
    /// assert_eq!((num_elements(&encoder), num_params(&encoder)), (8, 0));
    /// ```
    pub struct Frozen<T: Tree> { frozen: T }
}

impl<T: Tree> Frozen<T> {
    /// Freezes a part.
    pub fn new(part: T) -> Frozen<T> {
        Frozen { frozen: part }
    }

    /// The part, of which no derivative is taken.
    pub fn get(&self) -> T {
        self.frozen.map_leaves(Tensor::stop_gradient)
    }

    /// The part, to be trained.
    pub fn thaw(self) -> T {
        self.frozen
    }
}

/// The field, of which no derivative is taken but by t and y.
impl<D: VelocityField> VelocityField for Frozen<D> {
    #[track_caller]
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor {
        self.get().eval(t, y)
    }

    #[track_caller]
    fn eval_conditional(&self, t: &Tensor, y: &Tensor, labels: Option<&Tensor>) -> Tensor {
        self.get().eval_conditional(t, y, labels)
    }

    fn num_classes(&self) -> usize {
        self.frozen.num_classes()
    }

    fn dim(&self) -> usize {
        self.frozen.dim()
    }

    fn rows_per_tile(&self) -> usize {
        self.frozen.rows_per_tile()
    }
}

/// Whether the leaf at `path` is [`Buffer`] or [`Frozen`]: optimizers and averages leave it as it is.
pub fn is_fixed(path: &str) -> bool {
    path.rsplit('.').next() == Some(NAME) || path.split('.').any(|level| level == LEVEL)
}

/// The tree with no derivative taken by the leaves whose paths `which` picks: their gradients are zero, and
/// what only they need is not computed.
///
/// A gradient of zero holds a leaf still under every optimizer without weight decay; with it, freeze the same
/// paths in the optimizer too.
///
/// # Examples
/// ```
/// use flowline::nn::*;
/// use flowline::nn::prelude::*;
/// use flowline::optim::extra::{partition, set_to_zero};
/// let old = |path: &str| path.starts_with("layers.0.");
/// let net = Mlp::new([2, 3, 1], Activation::Tanh, &Key::new(0));
/// let grads = grad(|net: &Mlp| freeze(net, old).forward(&Tensor::ones([1, 2])).sum(), &net);
/// let optimizer = partition(move |path| usize::from(old(path)), (AdamW::new(1e-3), set_to_zero()));
/// let (after, _) = optimizer.update(&net, grads, optimizer.init(&net));
/// assert_eq!(after.layers[0].weight.to_vec(), net.layers[0].weight.to_vec());
/// assert_ne!(after.layers[1].weight.to_vec(), net.layers[1].weight.to_vec());
/// ```
pub fn freeze<T: Tree>(tree: &T, which: impl Fn(&str) -> bool) -> T {
    tree.map(&mut TreePath::default(), &mut |path, leaf| {
        if which(&path.to_string()) { leaf.stop_gradient() } else { leaf.clone() }
    })
}

/// Number of elements that are trained: those of float leaves that are neither [`Buffer`] nor [`Frozen`].
/// Of all there are [`num_elements`].
///
/// # Examples
/// ```
/// use flowline::nn::*;
/// use flowline::nn::extra::golden_frequencies;
/// use flowline::nn::prelude::*;
/// use flowline::tensor::extra::num_elements;
/// let net = FourierMlp::new(golden_frequencies(24, 2.6), [80, 80, 80], &Key::new(0));
/// assert_eq!(num_elements(&net) - num_params(&net), 2 * 24);
/// ```
pub fn num_params(tree: &impl Tree) -> usize {
    num_params_where(tree, |_| true)
}

/// [`num_params`] of the leaves whose paths `which` picks: one layer's, or those that [`freeze`] leaves.
pub fn num_params_where(tree: &impl Tree, which: impl Fn(&str) -> bool) -> usize {
    let trained = tree.named_leaves().into_iter().filter(|(path, x)| x.dtype().is_float() && !is_fixed(path));
    trained.filter(|(path, _)| which(path)).map(|(_, x)| num_elements(&x)).sum()
}
