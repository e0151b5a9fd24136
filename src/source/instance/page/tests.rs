//! Pages as the kernel writes them, and invalid bytes.

use super::*;
use proptest::prelude::*;

/// A writer of a page of records.
#[derive(Clone, Debug)]
pub struct PageWriter {
    time: u64,
    last: u64,
    data: Vec<u8>,
}

impl PageWriter {
    pub fn new(time: u64) -> PageWriter {
        PageWriter { time, last: time, data: Vec::new() }
    }

    /// Adds a record with this time, which is not before that of the last record. A large delta takes a time-extend
    /// record.
    pub fn record(&mut self, time: u64, raw: &[u8]) -> &mut Self {
        let delta = time - self.last;
        if delta >> DELTA_BITS != 0 {
            self.words(&[head(kind::TIME_EXTEND, delta & ((1 << DELTA_BITS) - 1)), (delta >> DELTA_BITS) as u32]);
        }
        self.last = time;
        self.with_delta(if delta >> DELTA_BITS == 0 { delta } else { 0 }, raw)
    }

    /// Adds a record after an absolute time stamp.
    pub fn stamped(&mut self, time: u64, raw: &[u8]) -> &mut Self {
        self.words(&[head(kind::TIME_STAMP, time & ((1 << DELTA_BITS) - 1)), (time >> DELTA_BITS) as u32]);
        self.last = time;
        self.with_delta(0, raw)
    }

    /// Adds a record that a filter discarded when other records already followed it.
    pub fn discarded(&mut self, time: u64, bytes: usize) -> &mut Self {
        self.words(&[head(kind::PADDING, (time - self.last).max(1)), bytes as u32 + 4]);
        self.last = time;
        self.data.resize(self.data.len() + bytes, 0xaa);
        self
    }

    /// Marks the rest of the page as empty.
    pub fn end(&mut self) -> &mut Self {
        self.words(&[head(kind::PADDING, 0)]);
        self.data.extend([0xee; 24]);
        self
    }

    /// Returns the page, cut to its used part.
    pub fn page(&self, missed: Option<Missed>) -> Vec<u8> {
        let flags = missed.map_or(0, |Missed(count)| MISSED | if count.is_some() { STORED } else { 0 });
        let mut page = self.time.to_le_bytes().to_vec();
        page.extend((self.data.len() as u64 | flags).to_le_bytes());
        page.extend(&self.data);
        page.extend(missed.and_then(|missed| missed.0).into_iter().flat_map(u64::to_le_bytes));
        page
    }

    fn with_delta(&mut self, delta: u64, raw: &[u8]) -> &mut Self {
        let size = raw.len().next_multiple_of(4);
        match size / 4 {
            words @ 1..=28 => self.words(&[head(words as u32, delta)]),
            _ => self.words(&[head(kind::LONG, delta), size as u32 + 4]),
        }
        let end = self.data.len() + size;
        self.data.extend(raw);
        self.data.resize(end, 0);
        self
    }

    fn words(&mut self, words: &[u32]) {
        self.data.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
}

fn head(kind: u32, delta: u64) -> u32 {
    kind | (delta as u32) << 5
}

/// The time and the bytes of a record.
type Read = (u64, Vec<u8>);

/// Returns all records, and the fault that ends them.
fn read(page: &[u8]) -> (Vec<Read>, Option<(usize, Fault)>) {
    let mut records = Vec::new();
    for record in Page::at(page, 0).unwrap().records() {
        match record {
            Ok(record) => {
                assert_eq!(super::record(page, record.offset), Some(record.raw), "the record at an offset is the same");
                records.push((record.time.0, record.raw.to_vec()));
            }
            Err(fault) => return (records, Some(fault)),
        }
    }
    (records, None)
}

/// Two pages of a running kernel (6.18, x86-64): sys_enter of getppid(2). The second read began where the first had
/// ended.
#[test]
fn a_page_of_a_running_kernel_is_decoded() {
    let page: Vec<u8> = [
        &45_751_961_299_462u64.to_le_bytes()[..],
        &0x44u64.to_le_bytes(),
        &[0x50, 0x78, 0x1c, 0x00, 0xbb, 0x01, 0x00, 0x00, 0x7f, 0x0c, 0, 0, 3, 0, 0, 0],
        &[0; 52],
    ]
    .concat();
    let (records, fault) = read(&page);
    assert_eq!((records.len(), fault), (1, None));
    assert_eq!((records[0].0, records[0].1.len()), (45_751_961_299_462 + (0x1c_7850 >> 5), 64));
    assert_eq!(records[0].1[..8], [0xbb, 1, 0, 0, 0x7f, 0x0c, 0, 0]);
}

#[test]
fn every_kind_of_time_and_size_is_decoded() {
    let long = [7u8; 200];
    let mut page = PageWriter::new(1_000);
    page.record(1_000, b"abcd").record(1_005, &long).discarded(1_010, 40).record(1_030, b"after discarded").record(1 << 40, b"much later");
    page.stamped((1 << 40) + 3, b"in full").record((1 << 40) + 9, &[1; 112]).record((1 << 40) + 9, &[2; 113]).end();
    let (records, fault) = read(&page.page(None));
    let times: Vec<u64> = records.iter().map(|record| record.0).collect();
    assert_eq!(times, [1_000, 1_005, 1_030, 1 << 40, (1 << 40) + 3, (1 << 40) + 9, (1 << 40) + 9]);
    let sizes: Vec<usize> = records.iter().map(|record| record.1.len()).collect();
    assert_eq!(sizes, [4, 200, 16, 12, 8, 112, 116]);
    assert_eq!(fault, None);
}

#[test]
fn an_absolute_time_keeps_the_upper_bits_of_the_page_s_time() {
    let high = 0x28 << 56;
    let mut page = PageWriter::new(high);
    page.stamped(99, b"abcd");
    assert_eq!(read(&page.page(None)).0[0].0, high | 99);
}

#[test]
fn missed_records_before_a_page_are_reported() {
    let mut page = PageWriter::new(5);
    page.record(5, b"abcd");
    let missed = |missed| {
        let page = page.page(missed);
        let read = Page::at(&page, 0).unwrap();
        assert_eq!((read.size(), used(&page), read.records().count()), (page.len(), page.len(), 1));
        read.missed
    };
    assert_eq!(missed(None), None);
    assert_eq!(missed(Some(Missed(None))), Some(Missed(None)));
    assert_eq!(missed(Some(Missed(Some(77)))), Some(Missed(Some(77))));
}

#[test]
fn consecutive_pages_are_cut_to_their_used_part() {
    let first = PageWriter::new(5).record(6, b"abcd").page(Some(Missed(Some(1))));
    let mut as_read = first.clone();
    as_read.resize(4096, 0);
    assert_eq!(used(&as_read), first.len());
    assert_eq!(used(&as_read[..20]), 20);
    assert_eq!(used(&as_read[..15]), 0);
    let both = [first.clone(), PageWriter::new(8).page(None)].concat();
    assert_eq!(Page::at(&both, first.len()).unwrap(), Page { time: Time(8), missed: None, data: &[], size: 16 });
    assert_eq!(Page::at(&both, both.len()), Err(Fault::Size { size: 16, left: 0 }));
}

#[test]
fn truncated_pages_and_records_are_reported() {
    let page = PageWriter::new(5).record(6, b"abcd").record(7, &[1; 200]).page(None);
    assert_eq!(Page::at(&page[..100], 0), Err(Fault::Size { size: page.len(), left: 100 }));
    let mut shorter = page[..100].to_vec();
    shorter[8] = 100 - 16;
    assert_eq!(read(&shorter), (vec![(6, b"abcd".to_vec())], Some((24, Fault::Size { size: 208, left: 76 }))));
    shorter[8] = 10;
    assert_eq!(read(&shorter[..26]).1, Some((24, Fault::Size { size: 8, left: 2 })));
}

proptest! {
    #[test]
    fn written_records_are_read(steps in prop::collection::vec((0u64..1 << 30, prop::collection::vec(any::<u8>(), 1..300), 0..4), 0..20)) {
        let mut page = PageWriter::new(1 << 41);
        let mut time = 1u64 << 41;
        let mut wanted = Vec::new();
        for (step, raw, how) in steps {
            time += step;
            match how {
                0 => { page.stamped(time, &raw); }
                1 => {
                    time = page.last + step % (1 << DELTA_BITS) + 1;
                    page.discarded(time, raw.len());
                    continue;
                }
                _ => { page.record(time, &raw); }
            }
            let mut padded = raw;
            padded.resize(padded.len().next_multiple_of(4), 0);
            wanted.push((time, padded));
        }
        prop_assert_eq!(read(&page.page(None)), (wanted, None));
    }

    #[test]
    fn any_bytes_are_decoded_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), commit in 0u64..300, offset in 0usize..210) {
        let _ = (record(&bytes, offset), used(&bytes), Page::at(&bytes, offset));
        let mut page = bytes.clone();
        if let Some(place) = page.get_mut(8..16) {
            place.copy_from_slice(&commit.to_le_bytes());
        }
        if let Ok(page) = Page::at(&page, 0) {
            prop_assert!(page.records().count() <= bytes.len() / 4);
        }
    }
}
