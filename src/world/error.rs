//! Errors between ranks.

/// Why a call between ranks failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// Ranks did not answer a call in time.
    #[error(
        "{} did not answer within {seconds} s; a training run can be resumed from its last checkpoint, on any machines",
        names(ranks)
    )]
    Silent {
        /// Index and host of each rank that did not answer.
        ranks: Vec<(usize, String)>,
        /// The deadline, in seconds.
        seconds: u64,
    },
    /// A rank ended while others wait for it.
    #[error("rank {rank} ({host}) has ended while other ranks wait for it")]
    Ended {
        /// Its index.
        rank: usize,
        /// Its host.
        host: String,
    },
    /// Another rank makes a different call than this rank.
    #[error(
        "rank {rank} ({host}) calls {theirs} where this rank calls {ours}: all ranks must make the same calls in the same order"
    )]
    OtherCall {
        /// Its index.
        rank: usize,
        /// Its host.
        host: String,
        /// Its call.
        theirs: &'static str,
        /// The call of this rank.
        ours: &'static str,
    },
    /// A value that must be equal on all ranks differs.
    #[error("{what} differs on rank {rank} ({host}): {theirs}, but rank 0 has {ours}")]
    Differs {
        /// The index of the first rank whose value differs.
        rank: usize,
        /// Its host.
        host: String,
        /// The name of the value.
        what: String,
        /// The value on that rank.
        theirs: String,
        /// The value on rank 0.
        ours: String,
    },
    /// Two ranks solve different ensembles.
    #[error(
        "rank {} ({}) and rank {} ({}) have different parameters or y0 for the same trajectories: give every rank the same ensemble, from the same file or seed",
        ranks[0].0, ranks[0].1, ranks[1].0, ranks[1].1
    )]
    OtherProblems {
        /// Index and host of both ranks.
        ranks: [(usize, String); 2],
    },
    /// Another rank failed.
    #[error("rank {rank} ({host}): {message}")]
    Rank {
        /// Its index.
        rank: usize,
        /// Its host.
        host: String,
        /// Its message.
        message: String,
    },
    /// MPI did not start, has been initialized before, or does not support processes with threads.
    #[error("MPI cannot be used: {reason}")]
    Mpi {
        /// The reason.
        reason: String,
    },
}

fn names(ranks: &[(usize, String)]) -> String {
    let name = |(rank, host): &(usize, String)| format!("rank {rank} ({host})");
    ranks.iter().map(name).collect::<Vec<_>>().join(", ")
}
