//! The folder of a run: what is called what in it, who may write it, and its rows of metrics.
//!
//! It knows names, locks and how a file that grows is cut. What a checkpoint and the counters hold is training's own.

mod folder;
pub mod metrics;

pub(crate) use folder::{BEST_FILE, COUNTERS_FILE, RunFolder, check_lost, holds_run};
pub use folder::{METRICS_FILE, MODEL_FILE, check_free, default_folder};
