//! Makes lseek(-1, TAG, 9) from generic functions and trait methods, and prints them, innermost first, as a trace names
//! them.

use std::hint::black_box;

unsafe extern "C" {
    fn lseek(fd: i32, offset: i64, whence: i32) -> i64;
}

struct Seeker(i64);

trait Seeks {
    fn seek(&self) -> i64;
}

impl Seeks for Seeker {
    #[inline(never)]
    fn seek(&self) -> i64 {
        // SAFETY: it fails, because there is no descriptor -1.
        black_box(unsafe { lseek(-1, self.0, 9) }) + 1
    }
}

#[inline(never)]
fn generic<S: Seeks + ?Sized>(seeker: &S) -> i64 {
    black_box(seeker.seek()) + 1
}

#[inline(never)]
fn outer(tag: i64) -> i64 {
    let seeker: Box<dyn Seeks> = black_box(Box::new(Seeker(tag)));
    black_box(generic(&*seeker)) + 1
}

fn main() {
    println!("<generic::Seeker as generic::Seeks>::seek\ngeneric::generic\ngeneric::outer\ngeneric::main");
    let tag = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    black_box(outer(tag));
}
