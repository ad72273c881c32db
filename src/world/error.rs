//! What can go wrong between ranks.

/// Ranks that cannot work together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// Ranks that did not take part in a call in time.
    #[error(
        "{} did not answer within {seconds} s: the last checkpoint can be resumed on other machines",
        names(ranks)
    )]
    Silent {
        /// Number and host of each.
        ranks: Vec<(usize, String)>,
        /// The deadline.
        seconds: u64,
    },
    /// A rank that ended while others wait for it.
    #[error("rank {rank} ({host}) has ended while other ranks wait for it")]
    Ended {
        /// Its number.
        rank: usize,
        /// Where it runs.
        host: String,
    },
    /// A rank that makes another call than this one.
    #[error(
        "rank {rank} ({host}) calls {theirs} where this rank calls {ours}: the ranks run different programs"
    )]
    OtherCall {
        /// Its number.
        rank: usize,
        /// Where it runs.
        host: String,
        /// Its call.
        theirs: &'static str,
        /// The call of this rank.
        ours: &'static str,
    },
    /// Something that all ranks must have in common, and do not.
    #[error("rank {rank} ({host}) has another {what}: {theirs} where rank 0 has {ours}")]
    Differs {
        /// Number of the first rank that differs.
        rank: usize,
        /// Where it runs.
        host: String,
        /// What differs.
        what: String,
        /// Its value.
        theirs: String,
        /// The value of rank 0.
        ours: String,
    },
    /// An error of another rank.
    #[error("rank {rank} ({host}): {message}")]
    Rank {
        /// Its number.
        rank: usize,
        /// Where it runs.
        host: String,
        /// Its message.
        message: String,
    },
    /// MPI did not start.
    #[error("MPI cannot be used: {reason}")]
    Mpi {
        /// Why.
        reason: String,
    },
}

fn names(ranks: &[(usize, String)]) -> String {
    let name = |(rank, host): &(usize, String)| format!("rank {rank} ({host})");
    ranks.iter().map(name).collect::<Vec<_>>().join(", ")
}
