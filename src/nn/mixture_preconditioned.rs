//! A vector field that adds a network to the velocity of a mixture of normal densities.

use super::velocity_field::{VelocityField, time_column};
use super::{Buffer, softmax};
use crate::array::DType;
use crate::tensor::Tensor;
use crate::tree;

tree! {
    /// A field G on points scaled as those of [`Preconditioned`](super::Preconditioned), added to the velocity of a
    /// mixture of K normal densities on a straight path:
    ///
    /// `v(t, x) = u(t, x) + G(t, x / r) / r`, `r^2 = (1 - t)^2 + t^2`.
    ///
    /// Component k has weight w_k, mean m_k and covariance `U_k diag(lambda_k) U_k^T`. Given k, the point
    /// `x = (1 - t) x0 + t x1` with x0 standard normal has mean `t m_k` and, along the columns of U_k, variances
    /// `s_k = (1 - t)^2 + t^2 lambda_k`. So
    ///
    /// `u(t, x) = sum_k p_k (m_k + U_k diag((t lambda_k - (1 - t)) / s_k) U_k^T (x - t m_k))`,
    ///
    /// where `p_k`, the probability of k given x, is proportional to
    /// `w_k exp(-|z_k|^2 / 2) / sqrt(prod s_k)`, `z_k = diag(s_k)^(-1/2) U_k^T (x - t m_k)`. A field G that returns 0
    /// gives the exact flow to the mixture. One component with mean 0 and variances 1 gives `Preconditioned`. It is meant
    /// for one block and integration time 1, where t is in [0, 1].
    ///
    /// # Shapes and units
    /// Log weights `[K]`, centers `[K, dim]`, rotations `[dim, K dim]`, variances `[K, dim]`, all above 0. These tensors
    /// are not trained.
    ///
    /// # Numerics
    /// The probabilities are computed from logarithms. A derivative of u is at most about `1 / (2 sqrt(lambda))` for the
    /// least variance lambda: an adaptive solver takes short steps near t = 1 if it is small.
    ///
    /// # References
    /// Lipman et al. (2023), Flow matching for generative modeling, eq. 8: the mean of the velocities given k, each that
    /// of a normal density (eq. 22).
    ///
    /// # Examples
    /// ```
    /// use flowline::nn::*;
    /// use flowline::nn::extra::{MixturePreconditioned, golden_frequencies};
    /// use flowline::nn::prelude::*;
    /// let net = FourierMlp::new(golden_frequencies(16, 2.6), [56, 56], &Key::new(0));
    /// let field = MixturePreconditioned::standard(3, net);
    /// assert_eq!((field.dim(), field.num_normals()), (2, 3));
    /// ```
    pub struct MixturePreconditioned<D: VelocityField> {
        /// The logarithms of the weights w_k.
        pub log_weights: Buffer,
        /// The means, in the coordinates of the rotations: row k is `U_k^T m_k`.
        pub centers: Buffer,
        /// The rotations `[U_1, U_2, ..]`, side by side.
        pub rotations: Buffer,
        /// The variances lambda_k along the columns of U_k.
        pub variances: Buffer,
        /// G.
        pub field: D,
    }
}

impl<D: VelocityField> MixturePreconditioned<D> {
    /// Adds a field to the velocity of a mixture, which is given by log weights, centers, rotations and variances.
    ///
    /// # Panics
    /// When the shapes do not fit.
    #[track_caller]
    pub fn new([log_weights, centers, rotations, variances]: [Tensor; 4], field: D) -> Self {
        let (count, d) = (log_weights.size(), field.dim());
        let fits = count > 0
            && **log_weights.shape() == [count]
            && **centers.shape() == [count, d]
            && **rotations.shape() == [d, count * d]
            && **variances.shape() == [count, d];
        assert!(
            fits,
            "a mixture of K normals in {d} dimensions needs log weights [K], centers [K, {d}], rotations [{d}, K {d}] and variances [K, {d}], got {}, {}, {} and {}",
            log_weights.shape(),
            centers.shape(),
            rotations.shape(),
            variances.shape()
        );
        let [log_weights, centers, rotations, variances] =
            [log_weights, centers, rotations, variances].map(Buffer::new);
        MixturePreconditioned { log_weights, centers, rotations, variances, field }
    }

    /// Adds a field to the velocity of `count` equal standard normal densities, f32: the same as
    /// [`Preconditioned`](super::Preconditioned), with tensors that a file can overwrite.
    ///
    /// # Panics
    /// When `count` is 0.
    #[track_caller]
    pub fn standard(count: usize, field: D) -> Self {
        let d = field.dim();
        let rotation: Vec<f32> =
            (0..d * count * d).map(|i| f32::from(u8::from(i % d == i / (count * d)))).collect();
        let log_weights = Tensor::full(DType::F32, [count], -(count as f64).ln());
        let centers = Tensor::full(DType::F32, [count, d], 0.0);
        let variances = Tensor::full(DType::F32, [count, d], 1.0);
        Self::new([log_weights, centers, Tensor::from_vec([d, count * d], rotation), variances], field)
    }

    /// K, the number of normal densities.
    pub fn num_normals(&self) -> usize {
        self.log_weights.get().size()
    }

    /// u at times `[1, 1]` or `[rows, 1]`.
    fn velocity_of_mixture(&self, t: &Tensor, x: &Tensor) -> Tensor {
        let of = |buffer: &Buffer| buffer.get().cast(x.dtype());
        let [log_weights, centers] = [&self.log_weights, &self.centers].map(of);
        let [rotations, variances] = [&self.rotations, &self.variances].map(of);
        let (n, count, d) = (x.shape()[0], log_weights.size(), x.shape()[1]);
        // Rows, components, coordinates.
        let t = t.reshape([t.shape()[0], 1, 1]);
        let [centers, variances] = [centers, variances].map(|x| x.reshape([1, count, d]));
        let left = 1.0 - &t;
        let spread = left.square() + t.square() * &variances;
        let off = x.matmul(&rotations).reshape([n, count, d]) - &t * &centers;
        let exponent = (off.square() / &spread + spread.ln()).sum_last() * -0.5;
        let share = softmax(&(exponent + log_weights.reshape([1, count])));
        let each = centers + off * ((&t * &variances - left) / spread);
        (share.expand_dims(2) * each).reshape([n, count * d]).matmul(&rotations.transpose())
    }
}

impl<D: VelocityField> VelocityField for MixturePreconditioned<D> {
    #[track_caller]
    fn eval(&self, t: &Tensor, y: &Tensor) -> Tensor {
        self.eval_conditional(t, y, None)
    }

    #[track_caller]
    fn eval_conditional(&self, t: &Tensor, y: &Tensor, labels: Option<&Tensor>) -> Tensor {
        let t = time_column(t, y);
        let r = ((1.0 - &t).square() + t.square()).sqrt();
        let added = self.field.eval_conditional(&t, &(y / &r), labels);
        self.velocity_of_mixture(&t, y) + added / r
    }

    fn num_classes(&self) -> usize {
        self.field.num_classes()
    }

    fn is_preconditioned(&self) -> bool {
        true
    }

    fn dim(&self) -> usize {
        self.field.dim()
    }

    fn rows_per_tile(&self) -> usize {
        self.field.rows_per_tile()
    }
}
