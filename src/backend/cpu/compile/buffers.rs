//! The buffers of a plan under construction: their sizes and locations.
//!
//! This file stores only sizes and locations. The memory plan assigns offsets.

use crate::array::{Array, DType};
use crate::backend::cpu::address::Address;
use crate::graph::{Func, Literal, Op};
use std::sync::Arc;

/// The location of a buffer.
#[derive(Clone, Debug)]
pub(crate) enum Home {
    /// In the workspace.
    Arena,
    /// In the workspace; the contents are preserved between runs.
    Kept,
    /// The caller's input `k`.
    Input(usize),
    /// The caller's output `k`.
    Output(usize),
    /// A constant array of the graph.
    Const(Arc<Array>),
    /// A number, repeated, in the pool of constants.
    Splat { dtype: DType, bits: u64 },
    /// 0, 1, 2, ... in the pool of constants.
    Iota { dtype: DType },
}

/// The size and the location of a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    pub bytes: usize,
    pub home: Home,
}

/// All buffers of a plan, and the location of each node that has one.
#[derive(Default)]
pub(crate) struct Buffers {
    pub list: Vec<Buffer>,
    of: Vec<Option<Address>>,
}

impl Buffers {
    /// Buffers for inputs, constant arrays and iotas.
    pub fn new(func: &Func) -> Buffers {
        let mut b = Buffers { list: Vec::new(), of: vec![None; func.nodes().len()] };
        for (id, node) in func.nodes().iter().enumerate() {
            let (bytes, home) = match &node.op {
                Op::Input(k) => (node.ty.bytes(), Home::Input(*k)),
                Op::Const(Literal::Array(a)) => (node.ty.bytes(), Home::Const(a.clone())),
                Op::Iota { .. } => {
                    assert!(
                        node.ty.shape().rank() == 1,
                        "invariant: `prepare` leaves only iotas of one axis"
                    );
                    (node.ty.bytes(), Home::Iota { dtype: node.ty.dtype() })
                }
                _ => continue,
            };
            b.of[id] = Some(b.make(bytes, home));
        }
        b
    }

    /// A new buffer.
    pub fn make(&mut self, bytes: usize, home: Home) -> Address {
        self.list.push(Buffer { bytes, home });
        Address { base: (self.list.len() - 1) as u32, offset: 0 }
    }

    /// A new buffer in the workspace.
    pub fn arena(&mut self, bytes: usize) -> Address {
        self.make(bytes, Home::Arena)
    }

    /// A number, repeated `len` times; equal numbers share a buffer.
    pub fn splat(&mut self, dtype: DType, bits: u64, len: usize) -> Address {
        let bytes = len * dtype.size();
        let same =
            |b: &Buffer| matches!(b.home, Home::Splat { dtype: d, bits: x } if d == dtype && x == bits);
        match self.list.iter().position(same) {
            Some(i) => {
                self.list[i].bytes = self.list[i].bytes.max(bytes);
                Address { base: i as u32, offset: 0 }
            }
            None => self.make(bytes, Home::Splat { dtype, bits }),
        }
    }

    /// The location of a root's elements, if it has a buffer.
    pub fn get(&self, root: usize) -> Option<Address> {
        self.of[root]
    }

    /// Sets the location of a root.
    pub fn set(&mut self, root: usize, loc: Address) {
        self.of[root] = Some(loc);
    }

    /// The location of a root's elements.
    pub fn at(&self, root: usize) -> Address {
        self.of[root].unwrap_or_else(|| panic!("invariant: root %{root} has a buffer before it is used"))
    }
}
