//! The message of a panicking call, for tests of messages.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `f`, which must panic, and returns the panic's message.
///
/// # Panics
/// If `f` returns.
#[track_caller]
pub(crate) fn refusal<R>(f: impl FnOnce() -> R) -> String {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(f()))) else { panic!("the call did not panic") };
    match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => panic.downcast::<&str>().map(|message| message.to_string()).unwrap_or_default(),
    }
}
