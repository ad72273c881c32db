//! Lowers a convolution: determines image, kernel, result and scratch.

use super::lower::Lower;
use crate::array::DType;
use crate::backend::cpu::run::batch::{Axis, Batch};
use crate::backend::cpu::run::conv::{Conv, ConvShape, Form};
use crate::backend::cpu::run::step::Step;
use crate::graph::{Margins, Op, Type};

impl Lower<'_> {
    pub fn conv(&mut self, id: usize) {
        let (func, units) = (self.func, self.units);
        let node = &func.nodes()[id];
        let (form, Margins { lo, hi }) = match node.op {
            Op::Conv { margins, turned: false } => (Form::Result, margins),
            Op::Conv { margins, turned: true } => (Form::Turned, margins),
            Op::ConvKernel { margins } => (Form::Kernel, margins),
            ref other => panic!("invariant: {} is not a convolution", other.name()),
        };
        let types = [0, 1].map(|k| &func.node(node.args[k]).ty);
        let [first, second] = [0, 1].map(|k| self.held(&units.operands[id][k], types[k]));
        let own = self.buffers.at(id);
        let (image, kernel, result) = match form {
            Form::Kernel => ((first, types[0]), (own, &node.ty), (second, types[1])),
            _ => ((first, types[0]), (second, types[1]), (own, &node.ty)),
        };
        let ([num, h, w, c], [_, oh, ow, o]) = (four(image.1), four(result.1));
        let [kh, kw, ..] = four(kernel.1);
        let shape = ConvShape { num, sides: [h, w], c, o, kernel: [kh, kw], out: [oh, ow], lo, hi };
        let double = node.ty.dtype() == DType::F64;
        let scratch = self.buffers.arena(shape.scratch_bytes(form, node.ty.dtype().size()));
        let strides = [image.1, kernel.1, result.1].map(|ty| four(ty).iter().product());
        let lead = node.ty.shape().rank() - 4;
        let len = node.ty.shape()[..lead].iter().product();
        let batch = Batch::new(std::iter::once(Axis { len, strides }));
        let (image, kernel, result) = (image.0, kernel.0, result.0);
        self.push(Step::Conv(Conv { form, image, kernel, result, scratch, double, shape, batch }), vec![]);
    }
}

/// The lengths of the last four axes.
fn four(ty: &Type) -> [usize; 4] {
    *ty.shape().last_chunk().expect("invariant: images and kernels have four axes")
}
