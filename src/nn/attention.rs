//! Multi-head attention over sequences, sets and graphs.
//!
//! Everything that acts on the scores besides queries and keys (mask, bias, edge features) is passed in one
//! value, [`AttentionOptions`], with optional parts: a graph transformer, a causal decoder and plain
//! self-attention are the same layer. Edge features are first mapped to one number per head, so no larger
//! intermediate exists.

use super::softmax::{masked_softmax, softmax};
use super::{Init, Linear, dropout};
use crate::array::DType;
use crate::tensor::{Key, Tensor};
use crate::tree;

tree! {
    /// `y = [head_1, .., head_h] W_o + b_o`, with `head_i = A_i (c W_v + b_v)_i` and weights
    /// `A_i = softmax((x W_q + b_q)_i (c W_k + b_k)_i^T / sqrt(dim / h) + bias_i + (edges W_e)_i)`,
    /// where i indexes h equal parts of the columns; the softmax is over the rows of c.
    ///
    /// # Shapes and units
    /// x `[.., n, dim]`, the context c `[.., m, context]` (x itself in self-attention), y `[.., n, dim]`; W_q and
    /// W_o `[dim, dim]`, W_k and W_v `[context, dim]`, W_e `[edge features, h]`.
    ///
    /// # References
    /// Vaswani et al. (2017), Attention is all you need, section 3.2.2; biases from edges as in Ying et al. (2021),
    /// Do transformers really perform bad for graph representation?, eq. 6.
    pub struct MultiHeadAttention {
        /// W_q and b_q.
        pub query: Linear,
        /// W_k and b_k.
        pub key: Linear,
        /// W_v and b_v.
        pub value: Linear,
        /// W_o and b_o.
        pub output: Linear,
        /// W_e, if edges have features.
        pub edge: Option<Linear>,
        /// h.
        pub heads: usize,
    }
}

/// Optional inputs of an attention besides x and its context.
///
/// # Examples
/// ```
/// use flowline::nn::*;
/// use flowline::nn::extra::{AttentionOptions, causal_mask};
/// use flowline::nn::prelude::*;
/// let attention = MultiHeadAttention::new(16, 4, &Key::new(0));
/// let (x, mask) = (Tensor::ones([3, 5, 16]), causal_mask(5));
/// let y = attention.forward(&x, AttentionOptions { mask: Some(&mask), ..AttentionOptions::default() });
/// assert_eq!(**y.shape(), [3, 5, 16]);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct AttentionOptions<'a> {
    /// Bool, true where a row of x attends to a row of the context; broadcasts to `[.., n, m]`, shared by all
    /// heads. A fully masked row has weights of 0.
    pub mask: Option<&'a Tensor>,
    /// Added to the scores; broadcasts to `[.., heads, n, m]`.
    pub bias: Option<&'a Tensor>,
    /// Features of the edge from each row of x to each row of the context, `[.., n, m, edge features]`.
    pub edges: Option<&'a Tensor>,
    /// Rate and key of [`dropout`] applied to the weights.
    pub dropout: Option<(f64, &'a Key)>,
}

impl MultiHeadAttention {
    /// Self-attention over rows of length `dim`. Each weight matrix is [`Init::GlorotUniform`]; biases are 0.
    ///
    /// # Panics
    /// When the heads do not divide `dim`.
    #[track_caller]
    pub fn new(dim: usize, heads: usize, key: &Key) -> MultiHeadAttention {
        MultiHeadAttention::to_context(dim, dim, heads, key)
    }

    /// Attention from rows of length `dim` to context rows of length `context`.
    ///
    /// # Panics
    /// When the heads do not divide `dim`.
    #[track_caller]
    pub fn to_context(dim: usize, context: usize, heads: usize, key: &Key) -> MultiHeadAttention {
        assert!(heads > 0 && dim.is_multiple_of(heads), "{heads} heads do not divide rows of length {dim}");
        let keys: [Key; 4] = key.split();
        let part = |inputs: usize, i: usize| {
            Linear::from_init(inputs, dim, Init::GlorotUniform, Some(Init::Zeros), &keys[i])
        };
        let (query, key, value, output) = (part(dim, 0), part(context, 1), part(context, 2), part(dim, 3));
        MultiHeadAttention { query, key, value, output, edge: None, heads }
    }

    /// Adds a linear map from edge features to one bias per head; the map itself has no bias.
    pub fn with_edges(self, features: usize, key: &Key) -> MultiHeadAttention {
        let edge = Linear::from_init(features, self.heads, Init::GlorotUniform, None, key);
        MultiHeadAttention { edge: Some(edge), ..self }
    }

    /// Self-attention of x `[.., n, dim]`.
    ///
    /// # Panics
    /// When the shapes do not fit, or edges are passed to a layer without [`with_edges`](Self::with_edges).
    #[track_caller]
    pub fn forward(&self, x: &Tensor, with: AttentionOptions) -> Tensor {
        self.cross_attend(x, x, with)
    }

    /// Attention of x `[.., n, dim]` to a context `[.., m, context]`.
    ///
    /// # Panics
    /// As [`MultiHeadAttention::forward`].
    #[track_caller]
    pub fn cross_attend(&self, x: &Tensor, context: &Tensor, with: AttentionOptions) -> Tensor {
        let mut weights = self.weights(x, context, with);
        if let Some((rate, key)) = with.dropout {
            weights = dropout(&weights, rate, key);
        }
        let heads = weights.matmul(&self.split(&self.value.forward(context)));
        let joined = swap(&heads, heads.rank() - 3);
        self.output.forward(&joined.reshape(x.shape().with_axis(x.rank() - 1, self.query.outputs())))
    }

    /// The attention weights `[.., heads, n, m]`, before dropout; each row sums to 1, or to 0 if it is fully
    /// masked.
    ///
    /// # Panics
    /// As [`MultiHeadAttention::forward`].
    #[track_caller]
    pub fn weights(&self, x: &Tensor, context: &Tensor, with: AttentionOptions) -> Tensor {
        let fits = |x: &Tensor, inputs: usize| x.rank() >= 2 && x.shape()[x.rank() - 1] == inputs;
        assert!(
            fits(x, self.query.inputs()) && fits(context, self.key.inputs()),
            "attention takes x [.., n, {}] and a context [.., m, {}], got {} and {}",
            self.query.inputs(),
            self.key.inputs(),
            x.shape(),
            context.shape()
        );
        let scale = 1.0 / ((self.query.outputs() / self.heads) as f64).sqrt();
        let (query, key) = (self.query.forward(x) * scale, self.key.forward(context));
        let key = self.split(&key);
        let mut scores = self.split(&query).matmul(&swap(&key, key.rank() - 2));
        if let Some(bias) = with.bias {
            scores = scores + bias;
        }
        if let Some(edges) = with.edges {
            scores = scores + self.edge_bias(edges);
        }
        match with.mask {
            Some(mask) if mask.rank() > 2 => masked_softmax(&scores, &mask.expand_dims(mask.rank() - 2)),
            Some(mask) => masked_softmax(&scores, mask),
            None => softmax(&scores),
        }
    }

    /// Features `[.., n, m, features]` as a bias `[.., heads, n, m]`.
    #[track_caller]
    fn edge_bias(&self, edges: &Tensor) -> Tensor {
        let Some(map) = &self.edge else {
            panic!(
                "attention got edges {} but has no map for edge features: call `with_edges`",
                edges.shape()
            )
        };
        let bias = map.forward(edges);
        let heads = bias.rank() - 1;
        let mut order: Vec<usize> = (0..heads).collect();
        order.insert(heads - 2, heads);
        bias.permute(&order)
    }

    /// Rows `[.., n, dim]` as heads `[.., heads, n, dim / heads]`.
    #[track_caller]
    fn split(&self, x: &Tensor) -> Tensor {
        let last = x.rank() - 1;
        let mut shape = x.shape().to_vec();
        shape.splice(last.., [self.heads, x.shape()[last] / self.heads]);
        swap(&x.reshape(shape), last - 1)
    }
}

/// Swaps an axis with the next one.
#[track_caller]
fn swap(x: &Tensor, axis: usize) -> Tensor {
    let mut order: Vec<usize> = (0..x.rank()).collect();
    order.swap(axis, axis + 1);
    x.permute(&order)
}

/// A mask `[n, n]` in which row i attends to rows 0 to i.
pub fn causal_mask(n: usize) -> Tensor {
    Tensor::iota(DType::I32, [n, n], 1).le(Tensor::iota(DType::I32, [n, n], 0))
}
