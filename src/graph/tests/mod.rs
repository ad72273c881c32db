//! What the tests of passes and backends share.

pub(crate) mod arbitrary;
