//! The crate's error: one variant a layer, each with that layer's values.

#[cfg(feature = "autodiff")]
use crate::graph::GraphError;
#[cfg(feature = "autodiff")]
use crate::transform::TransformError;

/// What can go wrong in a call of the library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A level of instructions that `FLOWLINE_LEVEL` asks for in vain.
    #[error(transparent)]
    Level(#[from] crate::simd::LevelError),
    /// Operands that do not fit.
    #[cfg(feature = "autodiff")]
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A derivative that does not exist.
    #[cfg(feature = "autodiff")]
    #[error(transparent)]
    Transform(#[from] TransformError),
    /// A jitted function was about to be traced once too often.
    #[cfg(feature = "autodiff")]
    #[error(
        "a jitted function would be traced more than {max_traces} time(s): {change}; make what changes a tensor, or allow more traces{}",
        given_up(*num_evicted)
    )]
    Retrace {
        /// The bound given.
        max_traces: usize,
        /// The first leaf that changed.
        change: String,
        /// Programs that the function gave up so far because it keeps only so many.
        num_evicted: usize,
    },
    /// A jitted function that refuses them gave a result that is not finite.
    #[cfg(feature = "autodiff")]
    #[error(
        "leaf {leaf} of the result is {value} at {index:?}: nothing was handed over; `debug_nans` names the operation that it comes from"
    )]
    NonFinite {
        /// Path of the leaf in what the function returns.
        leaf: String,
        /// Where in the leaf.
        index: Vec<usize>,
        /// What stands there.
        value: f64,
    },
    /// A loss that is not finite, so that there is nothing to descend.
    #[cfg(feature = "autodiff")]
    #[error(
        "the loss before update {update} is {value}: start elsewhere, lower the rate or clip gradients; `debug_nans` names the operation that it comes from"
    )]
    NonFiniteLoss {
        /// Updates made before.
        update: usize,
        /// The loss.
        value: f64,
    },
    /// A data set whose leaves have not the same number of rows, or none.
    #[cfg(feature = "autodiff")]
    #[error(
        "leaf {leaf} of a data set has shape {shape}, where {wanted} rows are wanted along the first axis"
    )]
    Rows {
        /// Path of the leaf.
        leaf: String,
        /// Its shape.
        shape: crate::array::Shape,
        /// Rows of the first leaf, or the fewest there can be.
        wanted: String,
    },
    /// A solve could not be set up.
    #[error(transparent)]
    Config(#[from] crate::ode::ConfigError),
    /// A solve failed or ended early, without what it had computed.
    #[error(transparent)]
    Solve(crate::ode::SolveError),
    /// Ranks of a job that cannot work together.
    #[cfg(feature = "rayon")]
    #[error(transparent)]
    World(#[from] crate::world::WorldError),
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] crate::io::IoError),
    /// A flow is described by sizes that none has.
    #[cfg(feature = "train")]
    #[error("no flow has such sizes: {reason}")]
    Model {
        /// What does not fit.
        reason: String,
    },
    /// Data that cannot be read or learned from.
    #[cfg(feature = "train")]
    #[error(transparent)]
    Data(#[from] crate::data::DataError),
    /// A figure that cannot be drawn or written.
    #[cfg(feature = "plot")]
    #[error(transparent)]
    Plot(#[from] crate::plot::PlotError),
    /// A question to a learned density that has no answer.
    #[cfg(feature = "train")]
    #[error(transparent)]
    Eval(#[from] crate::eval::EvalError),
    /// A run that cannot start or go on.
    #[cfg(feature = "train")]
    #[error(transparent)]
    Train(#[from] crate::train::TrainError),
}

/// A result with the crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a retrace has to do with programs that were given up.
#[cfg(feature = "autodiff")]
fn given_up(num_evicted: usize) -> String {
    match num_evicted {
        0 => String::new(),
        n => format!("; {n} program(s) were given up for others, which `Jit::max_programs` would have kept"),
    }
}
