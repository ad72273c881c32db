//! Safe code compiled for a level, so that a whole loop over lanes uses the machine's widest instructions in
//! a build without compiler flags. This file depends on names of CPU features only, not on the code that it
//! runs.
//!
//! In contrast to `dispatch::enter`, whose tasks are kernels over the level's own types, this work uses plain
//! arrays, has no level in its types, and is safe to call.

use super::Level;
use std::marker::PhantomData;

/// Work for [`run_narrow`].
///
/// `run`, and everything that it calls on its hot path, must be `#[inline(always)]`: a function that is not
/// inlined is compiled for the level of the whole crate, SSE2 on x86-64, and is silently several times
/// slower.
pub(crate) trait Work {
    /// The result.
    type Output;
    /// Does the work.
    fn run(self) -> Self::Output;
}

/// Whether lanes have fused multiply-add at this level. Without it, each multiply-add is a call into the C
/// library, so work over lanes is not compiled for such a level.
pub(crate) fn is_fused(level: Level) -> bool {
    level > Level::Portable || cfg!(any(target_arch = "aarch64", target_feature = "fma"))
}

/// A function of three values and a mutable argument, compiled once per level.
///
/// In contrast to [`Work`], the level is determined once instead of at each call, and the mutable data is a
/// separate argument, so the optimizer knows that the data does not alias (a pack of Lorenz systems: 3.5 ms,
/// compared with 5.4 ms for a field of a `Work`).
pub(crate) trait Call {
    type Of;
    type At;
    type On: ?Sized;
    type Out: ?Sized;
    type Output;
    /// Runs the function. Like [`Work::run`], it and all functions that it calls must be `#[inline(always)]`.
    fn call(of: &Self::Of, at: &Self::At, on: &Self::On, out: &mut Self::Out) -> Self::Output;

    /// [`call`](Call::call) with the address of its first argument, compiled for the target of the crate.
    ///
    /// # Safety
    /// `of` is the address of a `Self::Of`, which lives as long as the call.
    unsafe fn plain(of: *const (), at: &Self::At, on: &Self::On, out: &mut Self::Out) -> Self::Output {
        // SAFETY: by the caller.
        Self::call(unsafe { &*of.cast() }, at, on, out)
    }

    /// [`plain`](Call::plain) with AVX2 and FMA. It is a method, not a function of this module: rustc puts a
    /// method into the codegen unit of its type's module, so calls of several modules are optimized in
    /// parallel.
    ///
    /// # Safety
    /// As [`plain`](Call::plain); the machine has AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2(of: *const (), at: &Self::At, on: &Self::On, out: &mut Self::Out) -> Self::Output {
        // SAFETY: by the caller.
        Self::call(unsafe { &*of.cast() }, at, on, out)
    }

    /// [`plain`](Call::plain) with AVX-512.
    ///
    /// # Safety
    /// As [`plain`](Call::plain); the machine has AVX2, FMA, and AVX-512 F, DQ, BW and VL.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,avx512f,avx512dq,avx512bw,avx512vl")]
    unsafe fn avx512(of: *const (), at: &Self::At, on: &Self::On, out: &mut Self::Out) -> Self::Output {
        // SAFETY: by the caller.
        Self::call(unsafe { &*of.cast() }, at, on, out)
    }
}

/// A [`Call`] whose first argument is an address without its type.
type Erased<At, On, Out, Output> = unsafe fn(*const (), &At, &On, &mut Out) -> Output;

/// [`Call::call`] compiled for a level that this machine has.
pub(crate) struct Entry<C: Call>(Erased<C::At, C::On, C::Out, C::Output>);

impl<C: Call> Entry<C> {
    /// The call compiled for `level`.
    ///
    /// # Panics
    /// If the level is above the one in use, or is not [fused](is_fused).
    pub fn at(level: Level) -> Self {
        assert!(level <= Level::detect(), "invariant: level {level:?} on a machine without it");
        Self::of(level)
    }

    /// The call compiled for the level in use.
    #[inline(always)]
    pub fn best() -> Self {
        Self::of(Level::detect())
    }

    /// The call compiled for `level`, but with AVX2 instructions even if the level is AVX-512.
    ///
    /// # Panics
    /// As [`at`](Self::at).
    fn narrow(level: Level) -> Self {
        assert!(level <= Level::detect(), "invariant: level {level:?} on a machine without it");
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 | Level::Avx512 => Entry(C::avx2),
            _ => Self::portable(),
        }
    }

    /// The call for a level that the machine has.
    #[inline(always)]
    fn of(level: Level) -> Self {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Entry(C::avx2),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => Entry(C::avx512),
            _ => Self::portable(),
        }
    }

    #[cfg(any(target_arch = "aarch64", target_feature = "fma"))]
    fn portable() -> Self {
        Entry(C::plain)
    }
    #[cfg(not(any(target_arch = "aarch64", target_feature = "fma")))]
    fn portable() -> Self {
        unreachable!("invariant: lanes at a level that is not fused")
    }

    /// Calls the function.
    #[inline(always)]
    pub fn call(&self, of: &C::Of, at: &C::At, on: &C::On, out: &mut C::Out) -> C::Output {
        // SAFETY: `of` is borrowed, so its address is valid during the call. Only `at`, `narrow` and `best` create an
        // entry, for a level that the machine has.
        unsafe { (self.0)((&raw const *of).cast(), at, on, out) }
    }
}

/// A value, and a [`Call`] on this value, behind pointers. This needs one indirect call; a trait object whose
/// method makes the call would need two.
pub(crate) struct Bound<'a, At, On: ?Sized, Out: ?Sized, Output> {
    of: *const (),
    call: Erased<At, On, Out, Output>,
    value: PhantomData<&'a ()>,
}

#[allow(clippy::expl_impl_clone_on_copy, reason = "a derive would need bounds")]
impl<At, On: ?Sized, Out: ?Sized, Output> Clone for Bound<'_, At, On, Out, Output> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<At, On: ?Sized, Out: ?Sized, Output> Copy for Bound<'_, At, On, Out, Output> {}

impl<'a, At, On: ?Sized, Out: ?Sized, Output> Bound<'a, At, On, Out, Output> {
    /// Binds a value to the call compiled for the target of the crate.
    #[inline]
    pub fn plain<C>(of: &'a C::Of) -> Self
    where
        C: Call<At = At, On = On, Out = Out, Output = Output>,
    {
        Bound { of: (&raw const *of).cast(), call: C::plain, value: PhantomData }
    }

    /// Binds a value to the call compiled for `level`, but with AVX2 instructions even if the level is AVX-512. It
    /// is therefore compiled only once.
    ///
    /// # Panics
    /// As [`Entry::at`].
    #[inline]
    pub fn narrow<C>(of: &'a C::Of, level: Level) -> Self
    where
        C: Call<At = At, On = On, Out = Out, Output = Output>,
    {
        Bound { of: (&raw const *of).cast(), call: Entry::<C>::narrow(level).0, value: PhantomData }
    }

    /// Binds a value to the call compiled for `level`.
    ///
    /// # Panics
    /// As [`Entry::at`].
    #[inline]
    pub fn at<C>(of: &'a C::Of, level: Level) -> Self
    where
        C: Call<At = At, On = On, Out = Out, Output = Output>,
    {
        Bound { of: (&raw const *of).cast(), call: Entry::<C>::at(level).0, value: PhantomData }
    }

    /// Calls the function.
    #[inline(always)]
    pub fn call(&self, at: &At, on: &On, out: &mut Out) -> Output {
        // SAFETY: only the constructors above pair an address with a call: the address of a `C::Of`, borrowed for as
        // long as this lives, and the call of the same `C`, compiled for the target of the crate or for a level that
        // `Entry` has checked.
        unsafe { (self.call)(self.of, at, on, out) }
    }
}

/// Runs `work` at a [fused](is_fused) level, with AVX2 instructions even if the level is AVX-512. It is
/// therefore compiled only once.
///
/// # Panics
/// As [`Entry::at`].
pub(crate) fn run_narrow<W: Work>(level: Level, work: W) -> W::Output {
    assert!(level <= Level::detect(), "invariant: level {level:?} on a machine without it");
    #[cfg(target_arch = "x86_64")]
    if level >= Level::Avx2 {
        return run_at_avx2(work);
    }
    run_portable(work)
}

/// Runs `work` with AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
fn run_at_avx2<W: Work>(work: W) -> W::Output {
    #[target_feature(enable = "avx2,fma")]
    fn avx2<W: Work>(work: W) -> W::Output {
        work.run()
    }
    assert!(Level::detect() >= Level::Avx2, "invariant: AVX2 on a machine without it");
    // SAFETY: the machine has the level, by the assertion.
    unsafe { avx2(work) }
}

#[cfg(any(target_arch = "aarch64", target_feature = "fma"))]
fn run_portable<W: Work>(work: W) -> W::Output {
    work.run()
}
#[cfg(not(any(target_arch = "aarch64", target_feature = "fma")))]
fn run_portable<W: Work>(_work: W) -> W::Output {
    unreachable!("invariant: lanes at a level that is not fused")
}
