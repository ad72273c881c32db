//! Agreement between ranks: common errors and common values.

use super::{World, WorldError};

/// The largest number of characters of a value in a message, and how many of them precede the first difference.
const SHOWN: usize = 60;
const BEFORE: usize = 20;

/// The part of a long value around the first character that differs from the other value.
fn around(value: &str, other: &str) -> String {
    if value.chars().count() <= SHOWN {
        return value.to_owned();
    }
    let same = value.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let start = same.saturating_sub(BEFORE);
    let text: String = value.chars().skip(start).take(SHOWN).collect();
    let [before, after] = [start > 0, value.chars().nth(start + SHOWN).is_some()];
    format!("{}{text}{}", if before { "..." } else { "" }, if after { "..." } else { "" })
}

impl World {
    /// The name of the machine on which a rank runs; "this process" for threads.
    pub fn host(&self, rank: usize) -> String {
        self.collective.borrow().host(rank)
    }

    /// The result of this rank if every rank succeeded; otherwise all ranks return the error of the first
    /// rank that failed.
    ///
    /// # Errors
    /// The first rank that failed returns its own error. The other ranks return [`WorldError::Rank`] with the
    /// message of that error. Also the errors of [`World::all_gather`].
    pub fn agree<T, E>(&self, mine: Result<T, E>) -> Result<T, E>
    where
        E: std::fmt::Display + From<WorldError>,
    {
        if self.size() == 1 {
            return mine;
        }
        let message = mine.as_ref().err().map(|e| format!("!{e}")).unwrap_or_default();
        let all = self.all_gather(message.as_bytes())?;
        let Some((rank, message)) = all.iter().enumerate().find(|(_, text)| !text.is_empty()) else {
            return mine;
        };
        if rank == self.rank() {
            return mine;
        }
        let message = String::from_utf8_lossy(&message[1..]).into_owned();
        Err(WorldError::Rank { rank, host: self.host(rank), message }.into())
    }

    /// Compares named values that must be equal on all ranks.
    ///
    /// # Errors
    /// [`WorldError::Differs`] on all ranks. It names the first rank with a different value, and the first
    /// such value. Also the errors of [`World::all_gather`].
    pub(crate) fn compare(&self, values: &[(&str, String)]) -> Result<(), WorldError> {
        let mine = values.iter().map(|(_, value)| value.replace('\0', " ")).collect::<Vec<_>>().join("\0");
        let all = self.all_gather(mine.as_bytes())?;
        let text = |rank: usize| String::from_utf8_lossy(all.get(rank)).into_owned();
        let ours = text(0);
        let differs = (1..all.len()).find(|&rank| all.get(rank) != all.get(0));
        let Some(rank) = differs else { return Ok(()) };
        let theirs = text(rank);
        let mut pairs = theirs.split('\0').zip(ours.split('\0')).zip(values);
        let ((theirs, ours), what) = pairs
            .find_map(|((theirs, ours), (what, _))| (theirs != ours).then_some(((theirs, ours), *what)))
            .unwrap_or(((&theirs, &ours), "program"));
        let (what, theirs, ours) = (what.to_owned(), around(theirs, ours), around(ours, theirs));
        Err(WorldError::Differs { rank, host: self.host(rank), what, theirs, ours })
    }
}
