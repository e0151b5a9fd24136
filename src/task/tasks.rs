//! Threads and processes.
/// All tasks that were seen.
#[derive(Debug, Default)]
pub struct Tasks;
