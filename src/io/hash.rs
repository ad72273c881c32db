//! 64-bit FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo): identifies data and detects damage.
//!
//! Each byte is combined with the hash by xor, and the result is multiplied by an odd number. Both operations
//! are invertible, so two inputs that differ in one byte never have the same hash. The hash does not protect
//! against deliberate changes.

/// The hash of a sequence of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fnv(u64);

impl Fnv {
    /// The hash of no bytes.
    pub const fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    /// The hash of these bytes.
    pub fn of(bytes: impl IntoIterator<Item = u8>) -> Fnv {
        let mut hash = Fnv::new();
        hash.add(bytes);
        hash
    }

    /// Appends bytes.
    pub fn add(&mut self, bytes: impl IntoIterator<Item = u8>) {
        let mut hash = self.0;
        for byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.0 = hash;
    }

    /// The hash as a number.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The hash as 16 hexadecimal digits.
    pub fn text(self) -> String {
        format!("{:016x}", self.0)
    }
}
