//! Calls from code that is generic over a level into code compiled for that level. This module depends on
//! names of CPU features only, not on the wrapped code.
//!
//! There are two forms. [`enter`] runs a [`Task`] at once (matrix products, transposes). For kernels that are
//! called many times through a table, the macro [`entry_points`] defines functions that return a function
//! pointer for a level.

use super::Level;
use super::lanes::Simd;
use super::portable::Portable;

/// A task that is written once for all levels.
pub(crate) trait Task {
    /// # Safety
    /// The level `S` is available, and the task's own conditions on its pointers hold.
    unsafe fn run<S: Simd>(self);
}

/// Runs a task with the instructions of `level`.
///
/// # Safety
/// `level` is available on this machine, and the task's own conditions on its pointers hold.
#[inline]
pub(crate) unsafe fn enter<T: Task>(level: Level, task: T) {
    #[cfg(target_arch = "x86_64")]
    {
        use super::{avx2::Avx2, avx512::Avx512};
        #[target_feature(enable = "avx2,fma")]
        unsafe fn avx2<T: Task>(task: T) {
            // SAFETY: the caller promises that the level is available and that the task's own conditions hold.
            unsafe { task.run::<Avx2>() }
        }
        #[target_feature(enable = "avx2,fma,avx512f,avx512dq,avx512bw,avx512vl")]
        unsafe fn avx512<T: Task>(task: T) {
            // SAFETY: as above.
            unsafe { task.run::<Avx512>() }
        }
        match level {
            Level::Portable => {}
            // SAFETY: as above.
            Level::Avx2 => return unsafe { avx2(task) },
            // SAFETY: as above.
            Level::Avx512 => return unsafe { avx512(task) },
        }
    }
    assert!(level == Level::Portable, "invariant: level {level:?} on a target without it");
    // SAFETY: the portable level is always available; the caller promises the task's own conditions.
    unsafe { task.run::<Portable>() }
}

/// Defines `fn $name<K: $kernel>(level) -> $ptr`, which returns the entry point of `K::run` for the level; a
/// kernel with a parameter `T: $bound` makes it `fn $name<T: $bound, K: $kernel<T>>(level)`.
///
/// `mod $name` defines only the entry points, as functions of that module: a kernel that only one level needs
/// is then compiled only for this level.
macro_rules! entry_points {
    (mod $name:ident, $kernel:ident<$t:ident: $bound:ident>, $args:tt) => {
        $crate::simd::dispatch::entry_points!(@points $name, [$t: $bound, K: $kernel<$t>], $args);
    };
    ($vis:vis $name:ident, $kernel:ident, $ptr:ty, $args:tt) => {
        $crate::simd::dispatch::entry_points!(@points $name, [K: $kernel], $args);
        $crate::simd::dispatch::entry_points!(@choice $vis $name, [K: $kernel], [K], $ptr);
    };
    ($vis:vis $name:ident, $kernel:ident<$t:ident: $bound:ident>, $ptr:ty, $args:tt) => {
        $crate::simd::dispatch::entry_points!(@points $name, [$t: $bound, K: $kernel<$t>], $args);
        $crate::simd::dispatch::entry_points!(@choice $vis $name, [$t: $bound, K: $kernel<$t>], [$t, K], $ptr);
    };
    (@points $name:ident, [$($params:tt)*], ($($arg:ident: $t:ty),*)) => {
        mod $name {
            use super::*;

            pub(super) unsafe fn portable<$($params)*>($($arg: $t),*) {
                // SAFETY: the portable level is always available; the caller keeps the kernel's conditions.
                unsafe { K::run::<$crate::simd::portable::Portable>($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            pub(super) unsafe fn avx2<$($params)*>($($arg: $t),*) {
                // SAFETY: the caller promises that the level is available and keeps the kernel's conditions.
                unsafe { K::run::<$crate::simd::avx2::Avx2>($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,avx512f,avx512dq,avx512bw,avx512vl")]
            pub(super) unsafe fn avx512<$($params)*>($($arg: $t),*) {
                // SAFETY: as above.
                unsafe { K::run::<$crate::simd::avx512::Avx512>($($arg),*) }
            }
        }
    };
    (@choice $vis:vis $name:ident, [$($params:tt)*], [$($names:tt)*], $ptr:ty) => {
        /// The entry point of a kernel at a level.
        $vis fn $name<$($params)*>(level: $crate::simd::Level) -> $ptr {
            use $crate::simd::Level;
            match level {
                Level::Portable => $name::portable::<$($names)*>,
                #[cfg(target_arch = "x86_64")]
                Level::Avx2 => $name::avx2::<$($names)*>,
                #[cfg(target_arch = "x86_64")]
                Level::Avx512 => $name::avx512::<$($names)*>,
                #[cfg(not(target_arch = "x86_64"))]
                _ => panic!("invariant: level {level:?} on a target without it"),
            }
        }
    };
}
pub(crate) use entry_points;
