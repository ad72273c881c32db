//! The crate's error type. Most variants wrap the error of one module.

#[cfg(feature = "autodiff")]
use crate::graph::GraphError;
#[cfg(feature = "autodiff")]
use crate::transform::TransformError;
use std::fmt;

/// The errors of the library.
///
/// `Debug` writes the message too, and the sources that the message does not contain, because a `main` that returns an
/// error prints it with `Debug`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An invalid `FLOWLINE_LEVEL`.
    #[error(transparent)]
    Level(#[from] crate::simd::LevelError),
    /// Operands that do not fit together, such as tensors whose shapes differ.
    #[cfg(feature = "autodiff")]
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A derivative that does not exist.
    #[cfg(feature = "autodiff")]
    #[error(transparent)]
    Transform(#[from] TransformError),
    /// A jitted function would be traced more often than allowed.
    #[cfg(feature = "autodiff")]
    #[error(
        "a jitted function would be traced more than {max_traces} time(s): {change}; pass values that change as tensors, or allow more traces{}",
        given_up(*num_evicted)
    )]
    Retrace {
        /// The limit.
        max_traces: usize,
        /// The first leaf in which the arguments differ from those of the previous call, and how.
        change: String,
        /// Programs evicted so far; a jitted function stores a limited number of programs.
        num_evicted: usize,
    },
    /// A jitted function that checks its results returned a number that is not finite.
    #[cfg(feature = "autodiff")]
    #[error(
        "leaf {leaf} of the result is {value} at {index:?}: nothing was returned; `debug_nans` finds the operation that produced it"
    )]
    NonFinite {
        /// Path of the leaf in the function's result.
        leaf: String,
        /// Index of the number in the leaf.
        index: Vec<usize>,
        /// The number.
        value: f64,
    },
    /// A loss that is not finite, so that no update is possible.
    #[cfg(feature = "autodiff")]
    #[error(
        "the loss before update {update} is {value}: use other initial parameters, lower the learning rate or clip gradients; `debug_nans` finds the operation that produced it"
    )]
    NonFiniteLoss {
        /// The number of updates made before this loss.
        update: usize,
        /// The loss.
        value: f64,
    },
    /// A data set whose leaves differ in their number of rows, or have none.
    #[cfg(feature = "autodiff")]
    #[error("leaf {leaf} of a data set has shape {shape}, but must have {wanted} rows along the first axis")]
    Rows {
        /// Path of the leaf.
        leaf: String,
        /// Its shape.
        shape: crate::array::Shape,
        /// Rows of the first leaf, or the minimum.
        wanted: String,
    },
    /// A batch size that does not fit the data.
    #[cfg(feature = "autodiff")]
    #[error(
        "batch={batch} must be at least 1 and at most {rows}, the number of rows; without `batch`, every update uses all rows"
    )]
    Batch {
        /// The batch size.
        batch: usize,
        /// The rows of the data.
        rows: usize,
    },
    /// Too few residuals for the covariance of a fit; see [`covariance`](crate::optim::covariance).
    #[cfg(feature = "autodiff")]
    #[error(
        "{residuals} residuals cannot determine {parameters} parameters and the variance of the residuals: at least {} are needed",
        parameters + 1
    )]
    TooFewResiduals {
        /// The number of residuals.
        residuals: usize,
        /// The number of parameters.
        parameters: usize,
    },
    /// Parameters that the residuals of a fit do not determine; see [`covariance`](crate::optim::covariance).
    #[cfg(feature = "autodiff")]
    #[error(
        "the residuals determine {rank} of {parameters} parameters: to first order, none changes if {combination}; keep one of these parameters constant, fit their combination, or add data that depend on it"
    )]
    Undetermined {
        /// The rank of the derivative of the residuals.
        rank: usize,
        /// The number of parameters.
        parameters: usize,
        /// A change of the parameters that changes no residual, such as `p[0] changes by 1 and p[1] by -2`.
        combination: String,
    },
    /// Too few of the proposals of missing coordinates count; see [`Cnf::sample_given`](crate::cnf::Cnf::sample_given).
    #[cfg(feature = "autodiff")]
    #[error(
        "the effective sample size is {effective:.1} of {num_proposals} proposals, but at least 100 are needed: with {given} given and {missing} missing coordinates, the given values are improbable, or too many coordinates are missing; give values nearer to the data, or more of them"
    )]
    EffectiveSampleSize {
        /// The effective sample size.
        effective: f64,
        /// The number of proposals.
        num_proposals: usize,
        /// The number of given coordinates.
        given: usize,
        /// The number of missing coordinates.
        missing: usize,
    },
    /// Invalid settings of a solve.
    #[error(transparent)]
    Config(#[from] crate::ode::ConfigError),
    /// Rows that cannot be interpolated.
    #[error(transparent)]
    Interpolation(#[from] crate::ode::InterpolationError),
    /// A solve that failed or ended early, without its partial solution.
    #[error(transparent)]
    Solve(crate::ode::SolveError),
    /// Ranks of a job that cannot work together.
    #[cfg(feature = "rayon")]
    #[error(transparent)]
    World(#[from] crate::world::WorldError),
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] crate::io::IoError),
    /// A flow with an invalid size, time or option.
    #[cfg(feature = "train")]
    #[error("invalid flow: {reason}")]
    Model {
        /// The reason.
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
    /// An evaluation of a learned density that is not possible.
    #[cfg(feature = "train")]
    #[error(transparent)]
    Eval(#[from] crate::eval::EvalError),
    /// A run that cannot start or continue.
    #[cfg(feature = "train")]
    #[error(transparent)]
    Train(#[from] crate::train::TrainError),
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut written = self.to_string();
        f.write_str(&written)?;
        let mut next = std::error::Error::source(self);
        while let Some(source) = next {
            let text = source.to_string();
            if !written.contains(&text) {
                write!(f, "\n  caused by: {text}")?;
                written.push_str(&text);
            }
            next = source.source();
        }
        Ok(())
    }
}

/// A result with the crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The part of the retrace message about evicted programs.
#[cfg(feature = "autodiff")]
fn given_up(num_evicted: usize) -> String {
    match num_evicted {
        0 => String::new(),
        n => format!("; {n} program(s) were evicted, raise `Jit::max_programs` to keep them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::IoError;
    use crate::ode::{Ode, SolveError};

    #[test]
    fn main_prints_the_message_of_an_error() {
        let refused = Ode::new(|_t, y: &f64| -y).rtol(-1.0).solve(0.0, 1.0, 1.0).unwrap_err();
        let message = refused.to_string();
        assert_eq!(format!("{:?}", Error::from(refused)), message);
    }

    #[test]
    fn a_source_that_the_message_lacks_follows_it_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("the table ends at t = 3")]
        struct Ended(#[source] std::num::ParseIntError);
        let cause = "x".parse::<u8>().unwrap_err();
        let field =
            SolveError::Field { t: 3.0, step: 7, source: Box::new(Ended(cause)), partial: Box::new(()) };
        let text = format!("{:?}", Error::Solve(field));
        assert_eq!(text.matches("the table ends at t = 3").count(), 1, "{text}");
        assert!(text.ends_with("\n  caused by: invalid digit found in string"), "{text}");
        let missing = IoError::Read { path: "a.csv".into(), source: std::io::ErrorKind::NotFound.into() };
        let text = format!("{:?}", Error::Io(missing));
        assert!(text.contains("a.csv") && !text.contains("caused by"), "{text}");
    }
}
