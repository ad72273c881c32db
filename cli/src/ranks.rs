//! Processes that a launcher started together: `mpirun`, or `srun` of SLURM.
//!
//! The launcher sets environment variables with the number of processes and the rank of this process, which can be read
//! before MPI is initialized. Ranks other than 0 print only errors. A build without MPI refuses to train in several
//! processes, because each would write to the same run folder.

use super::error::{CliError, Result};
use flowline::world::World;

/// Environment variables of launchers: the number of processes, and the rank of this process.
const LAUNCHERS: [(&str, &str); 3] = [
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("PMI_SIZE", "PMI_RANK"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
];

/// The number of processes that were started together, and the rank of this process.
pub fn launched() -> (usize, usize) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<usize>().ok());
    let found = |(size, rank): &(&str, &str)| Some((number(size)?, number(rank).unwrap_or(0)));
    LAUNCHERS.iter().filter_map(found).find(|(size, _)| *size > 1).unwrap_or((1, 0))
}

/// Whether this process prints more than errors: true if it runs alone or is rank 0.
pub fn is_root() -> bool {
    launched().1 == 0
}

/// The ranks that train together.
///
/// # Errors
/// MPI cannot be initialized, or this build has no MPI.
pub fn world() -> Result<World> {
    if launched().0 == 1 {
        return Ok(World::alone());
    }
    #[cfg(feature = "mpi")]
    return Ok(World::mpi().map_err(flowline::Error::from)?);
    #[cfg(not(feature = "mpi"))]
    Err(CliError::NoMpi { processes: launched().0 })
}

/// Refuses to run a command in several processes, each of which would do the whole work.
///
/// # Errors
/// [`CliError::Parallel`].
pub fn check_alone(command: &'static str) -> Result<()> {
    match launched().0 {
        1 => Ok(()),
        processes => Err(CliError::Parallel { command, processes }),
    }
}
