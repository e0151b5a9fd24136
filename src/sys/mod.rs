//! The only unsafe code: the kernel's interfaces, wrapped so that the rest is safe.
#![allow(unsafe_code)]
