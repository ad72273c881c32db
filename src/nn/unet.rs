//! A vector field on images: a U-Net whose blocks are scaled and shifted by time.
//!
//! Images enter and leave as rows, the form that solves and losses use. Squares of pixels become channels
//! before the first convolution and at each level below ("squeezing"), so no convolution has a stride: images
//! with few channels are cheap, and squeezing loses no information. There is no normalization layer:
//! statistics over an image would make the Jacobian dense for little benefit. Instead, blocks start as the
//! identity. Nothing here has its own derivative rule.

use super::velocity_field::{VelocityField, one_hot, time_column};
use super::{Conv2d, Linear, Padding};
use crate::array::DType;
use crate::tensor::{Key, Tensor, Tree};
use crate::tree;
use std::f64::consts::PI;

/// Images per tile in flow matching. The activations of one level of 8 images fit into a 2 MiB cache. Each tile adds
/// gradients as large as the field's parameters, which takes little time compared with its other computation.
const TILE: usize = 8;

/// Time frequencies, in half cycles over t in [0, 1].
const TIME_FREQUENCIES: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];

/// The sizes of a [`UNet`], without its weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UNetConfig {
    /// Height, width and channels of an image; a row has their product of elements.
    pub image_shape: [usize; 3],
    /// Side of the pixel squares that become one position of the first level.
    pub patch: usize,
    /// Channels of each level, finest first; each level halves the side of the previous one.
    pub channels: Vec<usize>,
    /// Residual blocks on the way down, in each level except the coarsest.
    pub blocks_down: usize,
    /// Residual blocks of the coarsest level.
    pub blocks_middle: usize,
    /// Residual blocks on the way up, in each level except the coarsest.
    pub blocks_up: usize,
    /// Width of the embedding of time and class that enters the blocks.
    pub time_dim: usize,
    /// Number of classes; 0 for an unconditional field.
    pub num_classes: usize,
}

impl UNetConfig {
    /// Squares of 2 x 2 pixels, one block per level on the way down and up, two in the coarsest, a time
    /// embedding of width 128, no classes.
    pub fn new(image_shape: [usize; 3], channels: impl AsRef<[usize]>) -> UNetConfig {
        let channels = channels.as_ref().to_vec();
        UNetConfig {
            image_shape,
            patch: 2,
            channels,
            blocks_down: 1,
            blocks_middle: 2,
            blocks_up: 1,
            time_dim: 128,
            num_classes: 0,
        }
    }

    /// Sides of the image, zero-padded at the end to whole squares of the coarsest level.
    fn padded(&self) -> [usize; 2] {
        let whole = self.patch << (self.channels.len() - 1);
        [self.image_shape[0], self.image_shape[1]].map(|side| side.next_multiple_of(whole))
    }
}

tree! {
    /// `x + conv2(silu(conv1(silu(x)) * (1 + scale) + shift))`, where `[scale, shift] = e W + b` for the time
    /// embedding e, one number per channel.
    ///
    /// conv2 starts at zero, so the block starts as the identity.
    ///
    /// # References
    /// He et al. (2016), Identity mappings in deep residual networks, figure 4e, without its normalization;
    /// Perez et al. (2018), FiLM, eq. 2.
    pub struct FilmBlock {
        /// The first convolution, 3 x 3.
        pub conv1: Conv2d,
        /// scale and shift, from the time embedding.
        pub film: Linear,
        /// The second convolution, 3 x 3.
        pub conv2: Conv2d,
    }
}

impl FilmBlock {
    /// A block with the given numbers of channels and of elements of the time embedding.
    pub fn new(channels: usize, time: usize, key: &Key) -> FilmBlock {
        let [first, film, second] = key.split();
        FilmBlock {
            conv1: conv(channels, channels, &first),
            film: Linear::new(time, 2 * channels, &film),
            conv2: zeroed(conv(channels, channels, &second)),
        }
    }

    /// Applies the block to each image of x, for a time embedding with one row or one row per image.
    ///
    /// # Panics
    /// When the shapes do not fit.
    #[track_caller]
    pub fn forward(&self, time: &Tensor, x: &Tensor) -> Tensor {
        let film = self.film.forward(time);
        let (rows, channels) = (film.shape()[0], film.shape()[1] / 2);
        let part = |k: usize| film.slice(1, k * channels..(k + 1) * channels).reshape([rows, 1, 1, channels]);
        let hidden = self.conv1.forward(&x.silu()) * (part(0) + 1.0) + part(1);
        x + self.conv2.forward(&hidden.silu())
    }
}

tree! {
    /// A level above the coarsest: blocks on the way down, maps to the level below and back, blocks on the
    /// way up.
    pub struct UNetLevel {
        /// Blocks on the way down.
        pub down: Vec<FilmBlock>,
        /// From squares of 2 x 2 positions to one position of the level below.
        pub to_below: Linear,
        /// From one position of the level below to a square of 2 x 2 positions.
        pub from_below: Linear,
        /// Blocks on the way up.
        pub up: Vec<FilmBlock>,
    }
}

tree! {
    /// A vector field on images, `dy/dt = f(t, y)`, where y is a row of `height width channels` numbers
    /// (channels last).
    ///
    /// Squares of `patch x patch` pixels become the channels of one position. A 3 x 3 convolution and a
    /// learned number per position and channel follow. Each level then applies its down blocks, turns squares
    /// of 2 x 2 positions into channels and maps them to the level below. After the blocks of the coarsest
    /// level the path goes up again: each level adds the result from below to its own activations. Finally
    /// `conv(silu(..))` maps back to squares of pixels. The last convolution starts at zero, so a flow starts
    /// as the identity. Time enters as `e = silu([sin(pi t w), cos(pi t w)] W + b)` with w = 1, 2, 4, .. 32;
    /// each block computes its scale and shift from e. If rows have a class, its one-hot row is appended to
    /// the sines and cosines.
    ///
    /// Sides that are not a multiple of `patch 2^(levels - 1)` are zero-padded at the end and cropped in the
    /// result.
    ///
    /// # References
    /// Ronneberger et al. (2015), U-Net: convolutional networks for biomedical image segmentation, with sums
    /// instead of concatenations; Perez et al. (2018), FiLM: visual reasoning with a general conditioning
    /// layer; Dinh et al. (2017), Density estimation using Real NVP, section 3.6 (squeezing).
    pub struct UNet {
        /// Height, width and channels of an image.
        pub image_shape: [usize; 3],
        /// Side of the pixel squares that become one position.
        pub patch: usize,
        /// From sines and cosines of time to its embedding.
        pub time: Linear,
        /// From squares of pixels to the finest level, 3 x 3.
        pub stem: Conv2d,
        /// Added at each position of the finest level, `[height, width, channels]`; zero at first.
        pub position: Tensor,
        /// All levels but the coarsest, finest first.
        pub levels: Vec<UNetLevel>,
        /// Blocks of the coarsest level.
        pub middle: Vec<FilmBlock>,
        /// From the finest level back to squares of pixels, 3 x 3; zero at first.
        pub head: Conv2d,
    }
}

impl UNet {
    /// Convolutions as in [`Conv2d::new`]; the last of each block and of the field are zero.
    ///
    /// # Panics
    /// When there are no levels, or `patch` is 0.
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::*;
    /// use flowline::nn::extra::UNetConfig;
    /// use flowline::nn::prelude::*;
    /// let net = UNet::new(&UNetConfig::new([28, 28, 1], [32, 64]), &Key::new(0));
    /// let y = net.eval(&Tensor::from(0.5), &Tensor::ones([3, 784]));
    /// assert_eq!((net.dim(), y.to_vec()), (784, vec![0.0; 3 * 784]));
    /// ```
    #[track_caller]
    pub fn new(config: &UNetConfig, key: &Key) -> UNet {
        let &UNetConfig { image_shape, patch, ref channels, time_dim: time, num_classes: classes, .. } =
            config;
        assert!(patch > 0, "`patch` must be at least 1");
        let (Some(&finest), Some(&coarsest)) = (channels.first(), channels.last()) else {
            panic!("`channels` must have at least one level")
        };
        let [for_time, stem, levels, middle, head] = key.split();
        let (pixels, sides) = (patch * patch * image_shape[2], config.padded().map(|side| side / patch));
        let level = |(c, i): (&[usize], u32)| {
            let [down, to, from, up] = levels.fold_in(i).split();
            UNetLevel {
                down: blocks(config.blocks_down, c[0], time, &down),
                to_below: Linear::new(4 * c[0], c[1], &to),
                from_below: Linear::new(c[1], 4 * c[0], &from),
                up: blocks(config.blocks_up, c[0], time, &up),
            }
        };
        UNet {
            image_shape,
            patch,
            time: Linear::new(2 * TIME_FREQUENCIES.len() + classes, time, &for_time),
            stem: conv(pixels, finest, &stem),
            position: Tensor::zeros([sides[0], sides[1], finest]),
            levels: channels.windows(2).zip(0u32..).map(level).collect(),
            middle: blocks(config.blocks_middle, coarsest, time, &middle),
            head: zeroed(conv(finest, pixels, &head)),
        }
    }

    /// The sizes of the network. With a single level, `blocks_down` and `blocks_up` are 0.
    pub fn config(&self) -> UNetConfig {
        let below = self.levels.iter().map(|level| level.to_below.outputs());
        let (down, up) = self.levels.first().map_or((0, 0), |level| (level.down.len(), level.up.len()));
        UNetConfig {
            image_shape: self.image_shape,
            patch: self.patch,
            channels: std::iter::once(self.position.shape()[2]).chain(below).collect(),
            blocks_down: down,
            blocks_middle: self.middle.len(),
            blocks_up: up,
            time_dim: self.time.outputs(),
            num_classes: self.num_classes(),
        }
    }

    /// The time embedding: silu of an affine map of sines, cosines and the class. It has one row per row of t, or per
    /// row of `class`.
    fn time_vector(&self, t: &Tensor, class: Option<Tensor>) -> Tensor {
        // One scalar per frequency, not one array: a derivative records this function again, and equal scalars are
        // merged.
        let turns = TIME_FREQUENCIES.map(|f| t * (PI * f));
        let turns = Tensor::concat(&turns.each_ref(), 1);
        let waves = Tensor::concat(&[&turns.sin(), &turns.cos()], 1);
        let Some(class) = class else { return self.time.forward(&waves).silu() };
        let waves = waves.broadcast_to([class.shape()[0], waves.shape()[1]]);
        self.time.forward(&Tensor::concat(&[&waves, &class], 1)).silu()
    }
}

impl VelocityField for UNet {
    #[track_caller]
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor {
        self.eval_conditional(t, y, None)
    }

    fn num_classes(&self) -> usize {
        self.time.inputs() - 2 * TIME_FREQUENCIES.len()
    }

    #[track_caller]
    fn eval_conditional(&self, t: &Tensor, y: &Tensor, labels: Option<&Tensor>) -> Tensor {
        let classes = self.num_classes();
        let labeled = labels.is_some();
        assert!(
            labeled == (classes > 0),
            "this field has {classes} classes, but {} labels were passed",
            if labeled { "some" } else { "no" }
        );
        let time = self.time_vector(&time_column(t, y), labels.map(|labels| one_hot(labels, classes, y)));
        let (n, [h, w, c]) = (y.shape()[0], self.image_shape);
        assert!(y.shape()[1] == h * w * c, "rows must have {} pixels, got {}", h * w * c, y.shape()[1]);
        let [tall, wide] = [0, 1].map(|a| self.position.shape()[a] * self.patch);
        let (x, whole) = (y.reshape([n, h, w, c]), tall == h && wide == w);
        let x = if whole { x } else { x.pad(&[0; 4], &[0, tall - h, wide - w, 0]) };
        let mut x = self.stem.forward(&squeeze(&x, self.patch)) + &self.position;
        let mut skips = Vec::with_capacity(self.levels.len());
        for level in &self.levels {
            x = through(&level.down, &time, x);
            let below = affine(&level.to_below, &squeeze(&x, 2));
            skips.push(std::mem::replace(&mut x, below));
        }
        x = through(&self.middle, &time, x);
        for (level, skip) in self.levels.iter().zip(skips).rev() {
            x = through(&level.up, &time, skip + spread(&affine(&level.from_below, &x), 2));
        }
        let y = spread(&self.head.forward(&x.silu()), self.patch);
        let y = if whole { y } else { y.slice(1, 0..h).slice(2, 0..w) };
        y.reshape([n, h * w * c])
    }

    fn rows_per_tile(&self) -> usize {
        TILE
    }

    fn dim(&self) -> usize {
        self.image_shape.iter().product()
    }
}

/// A 3 x 3 convolution that keeps height and width.
fn conv(inputs: usize, outputs: usize, key: &Key) -> Conv2d {
    Conv2d::new(inputs, outputs, [3, 3], key).padding(Padding::Same)
}

/// Sets weights and bias to zero.
fn zeroed(conv: Conv2d) -> Conv2d {
    conv.map_leaves(|x| Tensor::full(DType::F32, x.shape().clone(), 0.0))
}

fn blocks(count: usize, channels: usize, time: usize, key: &Key) -> Vec<FilmBlock> {
    (0..count as u32).map(|i| FilmBlock::new(channels, time, &key.fold_in(i))).collect()
}

/// Applies the blocks in order.
#[track_caller]
fn through(blocks: &[FilmBlock], time: &Tensor, x: Tensor) -> Tensor {
    blocks.iter().fold(x, |x, block| block.forward(time, &x))
}

/// Applies an affine map at each position.
fn affine(linear: &Linear, x: &Tensor) -> Tensor {
    let &[n, h, w, c] = &**x.shape() else { unreachable!("invariant: images have four axes") };
    linear.forward(&x.reshape([n * h * w, c])).reshape([n, h, w, linear.outputs()])
}

/// Squares of `side x side` positions as channels: `[n, h, w, c]` to `[n, h / side, w / side, side^2 c]`.
fn squeeze(x: &Tensor, side: usize) -> Tensor {
    let &[n, h, w, c] = &**x.shape() else { unreachable!("invariant: images have four axes") };
    let [h, w] = [h / side, w / side];
    let squares = x.reshape([n, h, side, w, side, c]).permute(&[0, 1, 3, 2, 4, 5]);
    squares.reshape([n, h, w, side * side * c])
}

/// Channels as squares of `side x side` positions: the inverse of [`squeeze`].
fn spread(x: &Tensor, side: usize) -> Tensor {
    let &[n, h, w, c] = &**x.shape() else { unreachable!("invariant: images have four axes") };
    let c = c / (side * side);
    let rows = x.reshape([n, h, w, side, side, c]).permute(&[0, 1, 3, 2, 4, 5]);
    rows.reshape([n, h * side, w * side, c])
}
