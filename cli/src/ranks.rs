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
    {
        let world = World::mpi().map_err(flowline::Error::from)?;
        check_found(launched().0, world.size())?;
        Ok(world)
    }
    #[cfg(not(feature = "mpi"))]
    Err(CliError::NoMpi { processes: launched().0 })
}

/// Refuses processes that a launcher started together if MPI connects fewer of them: each group would train alone, in
/// the same run folder.
///
/// # Errors
/// [`CliError::Apart`].
#[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "only builds with MPI have several ranks"))]
fn check_found(processes: usize, ranks: usize) -> Result<()> {
    if ranks == processes { Ok(()) } else { Err(CliError::Apart { processes, ranks }) }
}

/// A hint if the ranks on this machine use only a part of its cores: launchers bind a rank to one core or one socket.
pub fn unused_cores(world: &World, threads: usize) -> Option<String> {
    let here = world.host(world.rank());
    let ranks = (0..world.size()).filter(|&rank| world.host(rank) == here).count();
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    hint(world.size(), ranks, threads, cores(online.trim())?)
}

/// The number of cores in a list of Linux, for example `0-3,6`.
fn cores(list: &str) -> Option<usize> {
    let number = |text: &str| text.parse::<usize>().ok();
    let count = |range: &str| match range.split_once('-') {
        Some((from, to)) => Some(number(to)?.checked_sub(number(from)?)? + 1),
        None => number(range).map(|_| 1),
    };
    list.split(',').map(count).sum()
}

fn hint(ranks: usize, ranks_here: usize, threads: usize, cores: usize) -> Option<String> {
    let threads_noun = if threads == 1 { "thread" } else { "threads" };
    let is_partly_used = ranks > 1 && ranks_here * threads < cores;
    is_partly_used.then(|| {
        format!(
            "{ranks} ranks of {threads} {threads_noun}; this machine has {cores} cores: mpirun --bind-to none"
        )
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_did_not_find_each_other_are_refused_with_both_numbers() {
        for processes in 2..9 {
            for ranks in 1..=processes {
                match check_found(processes, ranks) {
                    Ok(()) => assert_eq!(ranks, processes),
                    Err(e) => {
                        let message = e.to_string();
                        let starts = format!("{processes} processes were launched, but MPI connects {ranks}");
                        assert!(
                            ranks != processes && e.is_usage() && message.starts_with(&starts),
                            "{message}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn cores_without_a_thread_are_named_once_per_run() {
        let lists = ["0", "0-31", "0-3,6", "0-1,4-5,9", "", "3-1", "a"];
        assert_eq!(lists.map(cores), [Some(1), Some(32), Some(5), Some(5), None, None, None]);
        let words = "4 ranks of 1 thread; this machine has 32 cores: mpirun --bind-to none";
        assert_eq!(hint(4, 4, 1, 32).as_deref(), Some(words));
        assert!(hint(4, 2, 2, 32).is_some_and(|text| text.starts_with("4 ranks of 2 threads;")));
        assert_eq!([hint(4, 4, 8, 32), hint(1, 1, 1, 32), hint(4, 4, 16, 32)], [None, None, None]);
        assert_eq!(unused_cores(&World::alone(), 1), None);
    }
}
