//! The random number generator Philox4x32-10 for one block: a function of a key and a counter.

/// The four words of the block with the given counter.
///
/// # References
/// J. Salmon, M. Moraes, R. Dror and D. Shaw, Parallel random numbers: as easy as 1, 2, 3, SC 2011,
/// section 4.3.
pub fn philox_block(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
    let (mut k, mut c) = (key, counter);
    for _ in 0..10 {
        let a = u64::from(c[0]) * 0xD251_1F53;
        let b = u64::from(c[2]) * 0xCD9E_8D57;
        c = [(b >> 32) as u32 ^ c[1] ^ k[0], b as u32, (a >> 32) as u32 ^ c[3] ^ k[1], a as u32];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

/// Word `i` of a stream: word `i mod 4` of the block with the counter
/// `(lo32(i / 4), hi32(i / 4), stream, 0)`.
pub fn philox_word(key: [u32; 2], stream: u32, i: u64) -> u32 {
    let block = i / 4;
    philox_block(key, [block as u32, (block >> 32) as u32, stream, 0])[(i % 4) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_answers_are_reproduced() {
        // From the file `kat_vectors` of Random123, the library of the authors.
        let answers = [
            ([0; 4], [0; 2], [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]),
            ([u32::MAX; 4], [u32::MAX; 2], [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]),
            (
                [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
                [0xa4093822, 0x299f31d0],
                [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
            ),
        ];
        for (counter, key, want) in answers {
            assert_eq!(philox_block(key, counter), want);
        }
    }

    #[test]
    fn a_stream_counts_through_words_and_blocks() {
        let key = [7, 9];
        assert_eq!(philox_word(key, 3, 6), philox_block(key, [1, 0, 3, 0])[2]);
        assert_eq!(philox_word(key, 3, 1 << 34), philox_block(key, [0, 1, 3, 0])[0]);
    }
}
