//! Programs over one element, such as a loop's clock.
//!
//! Operands are loaded into a register file, instructions work from register to register, and results are
//! stored at the end. A strip program would load and store the operands of every instruction.

use crate::backend::cpu::address::{Address, Env};
use crate::backend::cpu::kernels::OneInstr;
use std::mem::MaybeUninit;

/// Size of the register file.
pub const REGISTERS: usize = 256;

/// A register and its address in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    pub loc: Address,
    pub register: u16,
    /// Whether the element has 8 bytes instead of 4.
    pub wide: bool,
}

/// A fused kernel over one element.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ones {
    /// Registers that hold constants.
    pub numbers: Box<[(u16, u64)]>,
    /// Registers that are loaded, then registers that are stored.
    pub ports: Box<[Port]>,
    pub num_read: usize,
    pub instrs: Box<[OneInstr]>,
}

impl Ones {
    /// # Safety
    /// The locations are valid for their elements, registers are below [`REGISTERS`] and are written before they
    /// are read, and the level of the kernels is available.
    pub unsafe fn run(&self, env: Env) {
        let mut file = [const { MaybeUninit::<u64>::uninit() }; REGISTERS];
        let registers = file.as_mut_ptr().cast::<u64>();
        let (read, written) = self.ports.split_at(self.num_read);
        // SAFETY: ports have the locations of the streams, whose bytes `Program::each_span` gives. `Gen::ones` has
        // checked that registers are below `REGISTERS`, and a register is written before it is read. All loads
        // come before all stores, because a load and a store may use the same location.
        unsafe {
            for &(register, bits) in &self.numbers {
                registers.add(register as usize).write(bits);
            }
            for port in read {
                let (at, to) = (env.at(port.loc), registers.add(port.register as usize));
                match port.wide {
                    true => to.write(at.cast::<u64>().read_unaligned()),
                    false => to.cast::<u32>().write(at.cast::<u32>().read_unaligned()),
                }
            }
            for instr in &self.instrs {
                (instr.run)(registers, instr);
            }
            for port in written {
                let (at, from) = (env.at(port.loc), registers.add(port.register as usize));
                match port.wide {
                    true => at.cast::<u64>().write_unaligned(from.read()),
                    false => at.cast::<u32>().write_unaligned(from.cast::<u32>().read()),
                }
            }
        }
    }
}
