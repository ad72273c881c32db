//! Convolutions as matrix products that read a padded image in place.
//!
//! An image is copied once, with zero padding, into a scratch buffer that stays in the L2 cache. There, the
//! windows of one row of taps are overlapping rows of a matrix: consecutive positions are `channels` elements
//! apart, and the taps of a row are contiguous. A convolution is therefore one product per row of taps over
//! all positions of an image, and its derivative with respect to the kernel is one product per row of taps
//! with the transpose of the same matrix. The im2col matrix, nine times the image for a 3 x 3 kernel, is
//! never written.
//!
//! Adjacent rows of the padded image share the zeros between them, and results at those positions are
//! discarded: with a 3 x 3 kernel, 6 % of all results at 14 x 14, 11 % at 7 x 7. Images are convolved one by
//! one, so results do not depend on the number of images. A sum adds the products with the rows of taps one
//! after the other; each product has the order of a matrix product.

use super::batch::Batch;
use crate::backend::cpu::address::{Address, Cost, Env};
use crate::backend::cpu::kernels::{Elem, Gemm, gemm_f32, gemm_f64, transpose_4, transpose_8};
use crate::backend::cpu::memory::aligned;
use crate::simd::Level;
use std::ptr::{copy_nonoverlapping, write_bytes};

/// Which of image, kernel and result is computed from the other two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The result, from an image and a kernel.
    Result,
    /// The result, from an image and a kernel whose taps are reversed and whose channels are exchanged.
    Turned,
    /// The kernel, from an image and a result.
    Kernel,
}

/// A convolution of `num` images `[height, width, c]` to `num` results `[out[0], out[1], o]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConvShape {
    pub num: usize,
    pub sides: [usize; 2],
    pub c: usize,
    pub o: usize,
    pub kernel: [usize; 2],
    pub out: [usize; 2],
    /// Zeros above and left.
    pub lo: [usize; 2],
    /// Zeros below and right.
    pub hi: [usize; 2],
}

/// One convolution per entry of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Conv {
    pub form: Form,
    pub image: Address,
    pub kernel: Address,
    pub result: Address,
    pub scratch: Address,
    pub double: bool,
    pub shape: ConvShape,
    /// The offsets of the entries of images, kernels and results.
    pub batch: Batch<3>,
}

impl ConvShape {
    /// The distance between rows of the padded image, in positions.
    fn pitch(&self) -> usize {
        self.sides[1] + self.lo[1].max(self.hi[1])
    }

    /// Positions computed per image: `pitch` for each row of the result except the last, and `out[1]` for the
    /// last row.
    fn positions(&self) -> usize {
        (self.out[0] - 1) * self.pitch() + self.out[1]
    }

    /// Elements of a kernel.
    fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1] * self.c * self.o
    }

    /// Bytes of the padded image, of the results at all computed positions of an image, and of a kernel.
    fn parts(&self, elem: usize) -> [usize; 3] {
        let padded = self.lo[1] + (self.lo[0] + self.sides[0] + self.hi[0]) * self.pitch();
        [padded * self.c, self.positions() * self.o, self.taps()].map(|len| aligned(len * elem))
    }

    /// Bytes of the scratch buffer.
    pub fn scratch_bytes(&self, form: Form, elem: usize) -> usize {
        let [padded, positions, kernel] = self.parts(elem);
        padded + positions + if form == Form::Turned { kernel } else { 0 }
    }
}

impl Conv {
    fn elem(&self) -> usize {
        if self.double { Elem::F64 } else { Elem::F32 }.size()
    }

    pub fn cost(&self) -> Cost {
        let s = &self.shape;
        let (positions, count) = (s.num * s.out[0] * s.out[1], self.batch.count());
        let (from, to) = (s.num * s.sides[0] * s.sides[1] * s.c, positions * s.o);
        let flops = 2 * positions * s.taps();
        Cost { flops: count * flops, bytes: count * (from + s.taps() + to) * self.elem() }
    }

    /// # Safety
    /// The locations are valid for the shapes, the written ones overlap no other, and the level is available.
    ///
    /// # Panics
    /// If a kernel or a result has no rows or no columns. There may be no images and no channels.
    pub unsafe fn run(&self, env: Env, level: Level) {
        let (s, elem) = (&self.shape, self.elem());
        assert!(
            !s.kernel.contains(&0) && !s.out.contains(&0),
            "invariant: a convolution has no window: {s:?}"
        );
        let [padded, positions, _] = s.parts(elem);
        // SAFETY: `Conv::each_span` gives the bytes of all entries and of the scratch, whose parts follow one
        // another.
        unsafe {
            let scratch = env.at(self.scratch);
            let run = Run { conv: self, level, elem, padded: scratch, positions: scratch.add(padded) };
            write_bytes(scratch, 0, padded + positions);
            self.batch.each(|at| {
                let [image, kernel, result] =
                    [(self.image, at[0]), (self.kernel, at[1]), (self.result, at[2])]
                        .map(|(loc, i)| env.at(loc).add(i * elem));
                match self.form {
                    Form::Result => run.results(image, kernel, result),
                    Form::Turned => {
                        let turned = scratch.add(padded + positions);
                        run.turn(kernel, turned);
                        run.results(image, turned, result);
                    }
                    Form::Kernel => run.kernel(image, kernel, result),
                }
            });
        }
    }
}

/// One run, with the parts of its scratch buffer.
struct Run<'a> {
    conv: &'a Conv,
    level: Level,
    elem: usize,
    padded: *mut u8,
    positions: *mut u8,
}

impl Run<'_> {
    /// Copies an image into the padded image; the padding stays zero.
    unsafe fn pad(&self, image: *const u8) {
        let s = &self.conv.shape;
        let row = s.sides[1] * s.c * self.elem;
        for r in 0..s.sides[0] {
            let to = (s.lo[1] + (s.lo[0] + r) * s.pitch()) * s.c * self.elem;
            // SAFETY: the row lies in both images.
            unsafe { copy_nonoverlapping(image.add(r * row), self.padded.add(to), row) };
        }
    }

    /// Bytes of a row of a result, without and with the discarded positions.
    fn rows(&self) -> (usize, usize) {
        let s = &self.conv.shape;
        (s.out[1] * s.o * self.elem, s.pitch() * s.o * self.elem)
    }

    unsafe fn gemm(&self, shape: &Gemm, a: *const u8, b: *const u8, c: *mut u8) {
        // SAFETY: `results` and `kernel` describe rows of taps by their windows in the padded image, results at its
        // positions, and rows of a kernel. These are parts of the scratch and of the entry.
        unsafe {
            match self.conv.double {
                false => gemm_f32(self.level, shape, a.cast(), b.cast(), c.cast()),
                true => gemm_f64(self.level, shape, a.cast(), b.cast(), c.cast()),
            }
        }
    }

    /// For row `i` of the taps, in bytes: the offset of its windows in the padded image, and its offset in a
    /// kernel.
    fn row_of_taps(&self, i: usize) -> (usize, usize) {
        let s = &self.conv.shape;
        (i * s.pitch() * s.c * self.elem, i * s.kernel[1] * s.c * s.o * self.elem)
    }

    unsafe fn results(&self, image: *const u8, kernel: *const u8, result: *mut u8) {
        let s = &self.conv.shape;
        let (size, (row, pitch)) = (s.sides[0] * s.sides[1] * s.c * self.elem, self.rows());
        let mut shape = Gemm {
            m: s.positions(),
            n: s.o,
            k: s.kernel[1] * s.c,
            rsa: s.c,
            csa: 1,
            ldb: s.o,
            ldc: s.o,
            accumulate: false,
            packed: false,
        };
        for n in 0..s.num {
            // SAFETY: image `n` and result `n` are below `s.num`; windows lie within the padded image.
            unsafe {
                self.pad(image.add(n * size));
                for i in 0..s.kernel[0] {
                    let (window, taps) = self.row_of_taps(i);
                    shape.accumulate = i > 0;
                    self.gemm(&shape, self.padded.add(window), kernel.add(taps), self.positions);
                }
                let to = result.add(n * s.out[0] * row);
                for p in 0..s.out[0] {
                    copy_nonoverlapping(self.positions.add(p * pitch), to.add(p * row), row);
                }
            }
        }
    }

    unsafe fn kernel(&self, image: *const u8, kernel: *mut u8, result: *const u8) {
        let s = &self.conv.shape;
        let (size, (row, pitch)) = (s.sides[0] * s.sides[1] * s.c * self.elem, self.rows());
        let mut shape = Gemm {
            m: s.kernel[1] * s.c,
            n: s.o,
            k: s.positions(),
            rsa: 1,
            csa: s.c,
            ldb: s.o,
            ldc: s.o,
            accumulate: false,
            packed: false,
        };
        // SAFETY: image `n` and result `n` are below `s.num`; the gaps between the rows of a result remain zero.
        unsafe {
            if s.num == 0 {
                write_bytes(kernel, 0, s.taps() * self.elem);
            }
            for n in 0..s.num {
                self.pad(image.add(n * size));
                for p in 0..s.out[0] {
                    let from = result.add((n * s.out[0] + p) * row);
                    copy_nonoverlapping(from, self.positions.add(p * pitch), row);
                }
                for i in 0..s.kernel[0] {
                    let (window, taps) = self.row_of_taps(i);
                    shape.accumulate = n > 0;
                    self.gemm(&shape, self.padded.add(window), self.positions, kernel.add(taps));
                }
            }
        }
    }

    /// Exchanges channels and reverses taps: `[kh, kw, o, c]` to `[kh, kw, c, o]`, the last tap first.
    unsafe fn turn(&self, kernel: *const u8, to: *mut u8) {
        let &ConvShape { c, o, kernel: [height, width], .. } = &self.conv.shape;
        let taps = height * width;
        for i in 0..taps {
            // SAFETY: taps lie within both kernels.
            unsafe {
                let (from, to) =
                    (kernel.add(i * c * o * self.elem), to.add((taps - 1 - i) * c * o * self.elem));
                if self.conv.double {
                    transpose_8(self.level, o, c, from.cast(), c, to.cast(), o);
                } else {
                    transpose_4(self.level, o, c, from.cast(), c, to.cast(), o);
                }
            }
        }
    }
}
