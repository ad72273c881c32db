//! The folder of a run: file names, its lock, and its metrics.
//!
//! It knows names, locks and how the metrics file is truncated; training owns the contents of the checkpoint and the counters.

mod folder;
pub mod metrics;

pub(crate) use folder::{BEST_FILE, COUNTERS_FILE, RunFolder, check_lost, holds_run};
pub use folder::{METRICS_FILE, MODEL_FILE, check_free, default_folder};
