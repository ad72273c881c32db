//! FNV-1a of 64 bits (G. Fowler, L. C. Noll, K.-P. Vo): a number that identifies data and finds damage.
//!
//! Each byte is xored in and multiplied by an odd number, which is undone by one division: two texts that differ in one
//! byte never have the same number. It must never be held against somebody who wants to deceive: it is no signature.

/// A number of bytes that come one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fnv(u64);

impl Fnv {
    /// Of no byte.
    pub const fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    /// Of these bytes.
    pub fn of(bytes: impl IntoIterator<Item = u8>) -> Fnv {
        let mut hash = Fnv::new();
        hash.add(bytes);
        hash
    }

    /// Goes on with more bytes.
    pub fn add(&mut self, bytes: impl IntoIterator<Item = u8>) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// The number.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The number as 16 hexadecimal digits.
    pub fn text(self) -> String {
        format!("{:016x}", self.0)
    }
}
