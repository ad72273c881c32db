//! Tensors and parts of a model that are saved with it but not trained.
//!
//! Gradients, optimizers and files all see the tree of a model. A constant of the model (the frequencies of a
//! Fourier layer) must be in that tree to be saved, and must be marked as constant: it gets no derivative,
//! and optimizers recognize it by its path. A static leaf is also constant, but its numbers would be part of
//! every jit signature and missing from the weights file.
//!
//! [`Buffer`] and [`Frozen`] are chosen where a model is defined, [`freeze`] where it is trained, by path.

use super::VelocityField;
use crate::tensor::{Tensor, Tree, TreePath, num_elements};
use crate::tree;

/// The last name in the path of every [`Buffer`].
const NAME: &str = "fixed";

/// The path component below which all leaves are frozen.
const LEVEL: &str = "frozen";

tree! {
    /// A tensor that is part of a model and is not trained. Its path ends in `.fixed`.
    pub struct Buffer { fixed: Tensor }
}

impl Buffer {
    /// Wraps a tensor.
    pub fn new(x: impl Into<Tensor>) -> Buffer {
        Buffer { fixed: x.into() }
    }

    /// The tensor, with gradients stopped.
    pub fn get(&self) -> Tensor {
        self.fixed.stop_gradient()
    }
}

tree! {
    /// A part of a model that is not trained, such as a pretrained encoder. The paths of its leaves contain
    /// `frozen`: `encoder.frozen.layers.0.weight`.
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
    /// Wraps a part.
    pub fn new(part: T) -> Frozen<T> {
        Frozen { frozen: part }
    }

    /// The part, with gradients stopped.
    pub fn get(&self) -> T {
        self.frozen.map_leaves(Tensor::stop_gradient)
    }

    /// Unwraps the part for training.
    pub fn thaw(self) -> T {
        self.frozen
    }
}

/// The vector field with gradients stopped in its parameters, not in t and y.
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

/// Whether the leaf at `path` is a [`Buffer`] or in a [`Frozen`] part: optimizers leave it unchanged, and
/// averages copy it from the model. The path alone decides, so a leaf of your own whose last name is `fixed`,
/// or whose path contains the name `frozen`, is not trained either.
pub fn is_fixed(path: &str) -> bool {
    path.rsplit('.').next() == Some(NAME) || path.split('.').any(|level| level == LEVEL)
}

/// Stops gradients at the leaves whose paths `which` selects. Their gradients are zero, and computation
/// needed only for them is skipped.
///
/// If the gradient of a leaf is zero from the first update on, every optimizer without weight decay keeps it
/// unchanged. With weight decay, or with momentum from earlier updates, freeze the same paths in the
/// optimizer too.
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

/// The number of trained elements: those of float leaves that are neither [`Buffer`] nor [`Frozen`].
/// [`num_elements`] counts all.
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

/// [`num_params`] of the leaves whose paths `which` selects, for example one layer, or the leaves not frozen.
pub fn num_params_where(tree: &impl Tree, which: impl Fn(&str) -> bool) -> usize {
    let trained = tree.named_leaves().into_iter().filter(|(path, x)| x.dtype().is_float() && !is_fixed(path));
    trained.filter(|(path, _)| which(path)).map(|(_, x)| num_elements(&x)).sum()
}
