//! `--threads`: the number of threads of a command.

use super::error::Result;
use flowline::train::TrainError;

/// Maximum number of threads.
const MOST: usize = 1024;

/// The option that every command with numerical work has.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Threads {
    /// Number of threads, 1 to 1024; the results do not depend on it [default: RAYON_NUM_THREADS, or one per
    /// core]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<usize>,
}

impl Threads {
    /// Runs a command on this number of threads. All parallelism is rayon's, so a pool around the command sets it.
    ///
    /// # Errors
    /// A number out of range, a pool that cannot be started; those of the command.
    pub fn run(self, command: impl FnOnce() -> Result<()> + Send) -> Result<()> {
        if let Some(threads) = self.threads.filter(|threads| !(1..=MOST).contains(threads)) {
            let (option, value, range) = ("threads", threads.to_string(), "a whole number from 1 to 1024");
            return Err(TrainError::Option { option, value, range }.into());
        }
        let threads = self.threads.unwrap_or(0);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|e| TrainError::Threads { threads, reason: e.to_string() })?;
        pool.install(command)
    }
}
