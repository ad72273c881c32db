//! Matrix products `C (+)= A B` on one thread: the split into blocks and tiles.
//!
//! This file defines the order of a sum: `k` ascends in blocks of [`K_BLOCK`], each block is one chain of
//! multiply-adds, and the blocks are added one after another. The order is the same in every tile and in the
//! thin kernels, so an element does not depend on `m`, on `n`, on strides, or on the position of its tile. The
//! register tiles are in `gemm_tile`, products with at most 4 columns and more rows (or a transposed A) in
//! `gemm_thin`.
//!
//! The `gemm` and `matrixmultiply` crates are not used. The products of a network's layers are small and run
//! millions of times, so a call must not allocate, and in most cases its tiles must read both operands in
//! place. The summation order of a crate depends on its tiles and may change with its version.

use std::mem::MaybeUninit;

use super::gemm_layer::{self, Epilogue, FinishFn, Written};
use super::gemm_pack::panel;
use super::gemm_thin::{self, Thin};
use super::gemm_tile::{self, Panel};
use super::transpose::Word;
use crate::simd::Level;
use crate::simd::math::Math;

/// Terms of a sum that are added in one chain: a panel of B with this depth takes at most 32 KiB, which fits
/// into the L1 of current machines.
pub(in super::super) const K_BLOCK: usize = 128;

/// Minimum number of rows for which copying a panel of B with scattered rows saves time.
const PACK_MIN_ROWS: usize = 24;

/// Bytes of the copied panel: `K_BLOCK` rows of four 64-byte vectors.
const PACK_BYTES: usize = K_BLOCK * 256;

/// The shape of `C[m, n] (+)= A[m, k] B[k, n]`; strides count elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gemm {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A and rows of B.
    pub k: usize,
    /// Distance between rows of A.
    pub rsa: usize,
    /// Distance between columns of A.
    pub csa: usize,
    /// Distance between rows of B; its columns are adjacent.
    pub ldb: usize,
    /// Distance between rows of C; its columns are adjacent.
    pub ldc: usize,
    /// Whether the product is added to C or replaces it.
    pub accumulate: bool,
    /// Whether B is packed for the level ([`pack`](super::pack)); if so, `ldb` is ignored.
    pub packed: bool,
}

/// Defines the products of an element type.
macro_rules! products {
    ($($(#[$doc:meta])* $name:ident($($epilogue:ident: $of:ty)?), $t:ty => $end:expr;)*) => {$(
        $(#[$doc])*
        pub unsafe fn $name(
            level: Level,
            shape: &Gemm,
            $($epilogue: $of,)?
            a: *const $t,
            b: *const $t,
            c: *mut $t,
        ) {
            // SAFETY: the extents of the matrices follow from `shape`. For steps, `check_plan` has compared them
            // with the buffers.
            unsafe { gemm(level, shape, $end, a, b, c) }
        }
    )*};
}

products! {
    /// A product in f32.
    ///
    /// # Numerics
    /// An element is the sum of `fma` chains over at most 128 terms each, in ascending order, with the same bits
    /// for any `m`, `n` and strides. A sum without terms is 0. If `m` or `n` is 0, nothing is read or written.
    ///
    /// # Safety
    /// A and B are readable and C is writable at the addresses that `shape` describes, C is disjoint from both, and
    /// `level` is available.
    gemm_f32(), f32 => None;
    /// A product in f64, like [`gemm_f32`].
    ///
    /// # Safety
    /// As for [`gemm_f32`].
    gemm_f64(), f64 => None;
    /// A product in f32 with the epilogue of a layer: `C = activation(((C +) A B + bias) gate + shift)`.
    ///
    /// # Numerics
    /// The result is bitwise equal to that of [`gemm_f32`] followed by the strip kernels for the sums, the gate
    /// and the activation.
    ///
    /// # Safety
    /// As for [`gemm_f32`]; the rows of the epilogue are null or valid for `n` elements, and disjoint from C.
    gemm_layer_f32(epilogue: &Epilogue<f32>), f32 => Some(epilogue);
    /// A product in f64 with an epilogue, like [`gemm_layer_f32`].
    ///
    /// # Safety
    /// As for [`gemm_layer_f32`].
    gemm_layer_f64(epilogue: &Epilogue<f64>), f64 => Some(epilogue);
}

unsafe fn gemm<T: Math<Word: Word>>(
    level: Level,
    shape: &Gemm,
    epilogue: Option<&Epilogue<T>>,
    a: *const T,
    b: *const T,
    c: *mut T,
) {
    let &Gemm { m, n, k, rsa, csa, ldb, ldc, accumulate, packed } = shape;
    // C has no elements, and A or B may have none. Every kernel below has at least one row and one column.
    if m == 0 || n == 0 {
        return;
    }
    if m == 1 && packed && (1..=K_BLOCK).contains(&k) {
        // SAFETY: there is one row, and B is packed and has one block.
        return unsafe { row(level, shape, epilogue, a, b, c) };
    }
    let finish = epilogue.map(|e| {
        let whole = Written { rows: m, cols: n, c, ldc, ends: e.rows };
        (gemm_layer::finish::<T>(level, e.activation), whole)
    });
    // The thin kernel has its lanes over rows. With at most as many rows as columns, it fills no more lanes
    // than the tiles, and it must transpose A (4 x 4 x 4 on AVX2: 49 ns, with tiles 24 ns). If `rsa` is 1, A
    // is already stored transposed.
    let thin = n <= gemm_thin::MAX_COLS && (m > n || rsa == 1);
    let is_small = m * n * size_of::<T>() <= FINISH_BYTES;
    // SAFETY: rows stay below `m`, columns below `n` and terms below `k`, within the matrices that `shape` describes.
    unsafe {
        if k == 0 && !accumulate {
            for i in 0..m {
                for j in 0..n {
                    c.add(i * ldc + j).write_unaligned(T::ZERO);
                }
            }
        }
        for k0 in (0..k).step_by(K_BLOCK) {
            let block = Gemm { k: (k - k0).min(K_BLOCK), accumulate: accumulate || k0 > 0, ..*shape };
            let a = a.add(k0 * csa);
            if thin {
                gemm_thin::run(level, Thin { shape: block, a, b: b.add(k0 * ldb), c });
            } else {
                let b = if packed { Factor::Packed { b, k, k0 } } else { Factor::Plain(b.add(k0 * ldb)) };
                k_block(level, &block, finish.filter(|_| k0 + block.k == k && !is_small), a, b, c);
            }
        }
        match finish {
            Some((finish, rows)) if thin => gemm_layer::finish_thin(finish, &rows),
            Some((finish, rows)) if k == 0 || is_small => finish(&rows),
            _ => {}
        }
    }
}

/// One row times a packed operand of one block. For a small product, the choice of blocks, panels and tiles
/// on the general path would take as long as the product.
unsafe fn row<T: Math>(
    level: Level,
    shape: &Gemm,
    epilogue: Option<&Epilogue<T>>,
    a: *const T,
    b: *const T,
    c: *mut T,
) {
    let &Gemm { n, k, csa, accumulate, .. } = shape;
    let lanes = gemm_tile::lanes::<T>(level);
    let mut all = Panel { tiles: 1, k, a, rsa: 0, csa, b, ldb: 0, c, ldc: 0, rest: 0, add: accumulate };
    let mut j = 0;
    if let Some((panels, tile)) = gemm_tile::abreast::<T>(level) {
        let (_, whole, _) = panel::<T>(level, n);
        all.ldb = whole;
        while j + panels * whole <= n {
            // SAFETY: the panels lie within B and C, and are as wide as the first one.
            unsafe {
                tile(&all);
                (all.b, all.c) = (all.b.add(panels * k * whole), all.c.add(panels * whole));
            }
            j += panels * whole;
        }
    }
    while j < n {
        let (cols, whole, vectors) = panel::<T>(level, n - j);
        (all.ldb, all.rest) = (whole, cols - (vectors - 1) * lanes);
        let tiles = gemm_tile::tiles::<T>(level, vectors, all.rest == lanes);
        let (_, tile) = tiles[tiles.len() - 1];
        // SAFETY: the panel lies within B and C.
        unsafe {
            tile(&all);
            (all.b, all.c) = (all.b.add(k * whole), all.c.add(cols));
        }
        j += cols;
    }
    if let Some(e) = epilogue {
        let whole = Written { rows: 1, cols: n, c, ldc: n, ends: e.rows };
        // SAFETY: the row was just written.
        unsafe { gemm_layer::finish::<T>(level, e.activation)(&whole) };
    }
}

/// The epilogue of the rows of a panel, run after their last block of `k`.
type Finish<T> = Option<(FinishFn<T>, Written<T>)>;

/// A product of at most this many bytes is still in L2 when its epilogue starts. One call for all rows then takes less
/// time than one per panel and 24 rows, which fills the pipeline of the processor again each time.
const FINISH_BYTES: usize = 64 << 10;

/// In larger products, the number of rows that are computed before the epilogue runs on them: few enough to stay in L1.
const FINISH_ROWS: usize = 24;

/// One block of `k` of a right operand.
#[derive(Clone, Copy)]
enum Factor<T> {
    /// The first row of the block; rows are `ldb` apart.
    Plain(*const T),
    /// Rows from `k0` on of a packed operand with `k` rows.
    Packed { b: *const T, k: usize, k0: usize },
}

/// One block of `k` of a product that is not thin: panels of columns, each over all rows.
unsafe fn k_block<T: Math>(
    level: Level,
    shape: &Gemm,
    finish: Finish<T>,
    a: *const T,
    mut factor: Factor<T>,
    c: *mut T,
) {
    let &Gemm { m, n, k, rsa, csa, ldb, ldc, accumulate, .. } = shape;
    let lanes = gemm_tile::lanes::<T>(level);
    let mut j = 0;
    while j < n {
        let (cols, whole, vectors) = panel::<T>(level, n - j);
        let rest = cols - (vectors - 1) * lanes;
        let scattered = size_of::<T>() * ldb >= 1024 && ldb > cols;
        // SAFETY: the panel lies within B and C; the copy holds `k <= K_BLOCK` rows of at most 256 bytes.
        unsafe {
            let (b, ldb, is_copied) = match &mut factor {
                Factor::Packed { b, k, k0 } => {
                    let at = b.add(*k0 * whole);
                    *b = b.add(*k * whole);
                    (at, whole, false)
                }
                Factor::Plain(b) => (b.add(j), ldb, scattered && m >= PACK_MIN_ROWS),
            };
            let panel = Panel { tiles: 0, k, a, rsa, csa, b, ldb, c: c.add(j), ldc, rest, add: accumulate };
            let finish = finish.map(|(finish, of)| (finish, of.part(0, m, j, cols)));
            match is_copied {
                true => copied_panel(level, (vectors, cols, whole), m, panel, finish),
                false => whole_panel(level, vectors, m, panel, finish),
            }
        }
        j += cols;
    }
}

/// A panel whose part of B, `cols` wide, is first copied to contiguous memory. It is a separate function
/// because a call of a function with 32 KiB of local variables touches each of their pages.
#[allow(
    clippy::large_stack_arrays,
    reason = "the scratch of a panel; allocating here would cost more than it saves"
)]
#[inline(never)]
unsafe fn copied_panel<T: Math>(
    level: Level,
    (vectors, cols, whole): (usize, usize, usize),
    m: usize,
    panel: Panel<T>,
    finish: Finish<T>,
) {
    let bytes = panel.k * whole * size_of::<T>();
    assert!(bytes <= PACK_BYTES && cols <= whole, "invariant: a panel of {bytes} bytes is copied");
    let mut scratch = Scratch([const { MaybeUninit::uninit() }; PACK_BYTES]);
    let packed = scratch.0.as_mut_ptr().cast::<T>();
    // SAFETY: the copy holds `k <= K_BLOCK` rows of at most 256 bytes.
    unsafe {
        for p in 0..panel.k {
            std::ptr::copy_nonoverlapping(panel.b.add(p * panel.ldb), packed.add(p * whole), cols);
        }
        whole_panel(level, vectors, m, Panel { b: packed, ldb: whole, ..panel }, finish);
    }
}

/// A panel over `m` rows, with their epilogue.
unsafe fn whole_panel<T: Math>(level: Level, vectors: usize, m: usize, panel: Panel<T>, finish: Finish<T>) {
    // SAFETY: rows stay below `m`, and `k_block` passes all rows of the product.
    unsafe {
        let Some((finish, of)) = finish else { return rows_of_tiles(level, vectors, m, panel) };
        let mut i = 0;
        while i < m {
            let rows = (m - i).min(FINISH_ROWS);
            let (a, c) = (panel.a.add(i * panel.rsa), panel.c.add(i * panel.ldc));
            rows_of_tiles(level, vectors, rows, Panel { a, c, ..panel });
            finish(&of.part(i, rows, 0, of.cols));
            i += rows;
        }
    }
}

/// The tiles of a panel over `m` rows, tallest first.
unsafe fn rows_of_tiles<T: Math>(level: Level, vectors: usize, m: usize, mut panel: Panel<T>) {
    let mut left = m;
    for &(rows, tile) in gemm_tile::tiles::<T>(level, vectors, panel.rest == gemm_tile::lanes::<T>(level)) {
        if rows > left {
            continue;
        }
        // Skips the division if it is not needed: it costs a fifth of a product of one row.
        panel.tiles = if rows == left { 1 } else { left / rows };
        let done = panel.tiles * rows;
        // SAFETY: the panel has `left` more rows of A and C, and the tiles have at most as many.
        unsafe { tile(&panel) };
        panel.a = panel.a.wrapping_add(done * panel.rsa);
        panel.c = panel.c.wrapping_add(done * panel.ldc);
        left -= done;
    }
}

#[repr(align(64))]
struct Scratch([MaybeUninit<u8>; PACK_BYTES]);
