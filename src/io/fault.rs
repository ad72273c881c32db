//! Fault injection for tests: a kill or a full disk at a chosen write step.
//!
//! `FLOWLINE_FAULT=kill:7` ends the process at its seventh write step, at once and without destructors, like `kill -9`.
//! `full:7` makes each write step from the seventh on fail as on a full disk. Only builds with debug assertions read the
//! variable, so release builds ignore it.

use std::io;

/// A write step: before a file is created, synced or renamed.
#[cfg(not(debug_assertions))]
#[inline]
#[allow(clippy::unnecessary_wraps, reason = "with debug assertions it fails")]
pub(crate) fn step() -> io::Result<()> {
    Ok(())
}

/// A write step: before a file is created, synced or renamed.
#[cfg(debug_assertions)]
pub(crate) fn step() -> io::Result<()> {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    static ASKED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static STEPS: AtomicU64 = AtomicU64::new(0);
    let asked = ASKED.get_or_init(|| {
        let asked = std::env::var("FLOWLINE_FAULT").ok()?;
        let (kind, step) = asked.split_once(':')?;
        Some((kind.to_owned(), step.parse().ok()?))
    });
    let Some((kind, at)) = asked else { return Ok(()) };
    let step = STEPS.fetch_add(1, Ordering::Relaxed) + 1;
    match kind.as_str() {
        "kill" if step == *at => std::process::abort(),
        "full" if step >= *at => Err(io::ErrorKind::StorageFull.into()),
        _ => Ok(()),
    }
}
