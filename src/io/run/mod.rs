//! The folder of a run: file names, its lock, and its metrics.
//!
//! Training defines the contents of the checkpoint and of the counters.

mod folder;
pub mod metrics;

pub(crate) use folder::{BEST_FILE, COUNTERS_FILE, RunFolder, check_lost, holds_run};
pub use folder::{METRICS_FILE, MODEL_FILE, check_free, check_output, default_folder};
