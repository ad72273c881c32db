//! Faults that tests ask for: a kill or a full disk at a write of their choice.
//!
//! `FLOWLINE_FAULT=kill:7` ends the process at its seventh step of writing, at once and without destructors, as `kill -9`
//! does; `full:7` lets each step from the seventh on fail as on a full disk. It is for the tests of this crate: a build
//! without debug assertions, as one that ships is, does not know the variable.

use std::io;

/// A step of writing: of a file before it is created, before it is synced, before it is in place.
#[cfg(not(debug_assertions))]
#[inline]
#[allow(clippy::unnecessary_wraps, reason = "with debug assertions it fails")]
pub(crate) fn step() -> io::Result<()> {
    Ok(())
}

/// A step of writing: of a file before it is created, before it is synced, before it is in place.
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
