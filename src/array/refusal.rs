//! What a call that panics says, for tests of messages.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// The message of the panic that `f` ends with.
///
/// # Panics
/// When it returns.
#[track_caller]
pub(crate) fn refusal<R>(f: impl FnOnce() -> R) -> String {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(f()))) else { panic!("it is not refused") };
    match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => panic.downcast::<&str>().map(|message| message.to_string()).unwrap_or_default(),
    }
}
