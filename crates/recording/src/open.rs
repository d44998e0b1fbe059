//! The file of I/Os that is being made.

use parquet::errors::ParquetError;

use crate::batch::Batch;
use crate::evict::Segment;
use crate::ios::{IOS, column};
use crate::seal::Label;
use crate::write::Draft;

/// The file of I/Os that is being made, in memory.
#[derive(Default)]
pub(crate) struct OpenFile {
    draft: Option<Draft>,
    rows: usize,
    /// When the first and the last of the file's I/Os ended.
    period: Option<(u64, u64)>,
}

impl OpenFile {
    /// How many rows the file has.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Adds a row group.
    pub(crate) fn add(&mut self, batch: &Batch) -> Result<(), ParquetError> {
        if batch.rows() == 0 {
            return Ok(());
        }
        let mut draft = match self.draft.take() {
            Some(draft) => draft,
            None => Draft::new(&IOS)?,
        };
        draft.add(batch)?;
        self.draft = Some(draft);
        self.rows += batch.rows();
        for at_ns in &batch.columns[column::AT].ints {
            let at_ns = *at_ns as u64;
            let (first, last) = self.period.unwrap_or((at_ns, at_ns));
            self.period = Some((first.min(at_ns), last.max(at_ns)));
        }
        Ok(())
    }

    /// Ends the file, gives it this number, and begins a new file. Returns `None` if the file had no rows.
    pub(crate) fn seal(
        &mut self,
        label: &Label,
        number: u64,
        is_slow: bool,
    ) -> Result<Option<(Segment, Vec<u8>)>, ParquetError> {
        let ended = std::mem::take(self);
        let (Some(draft), Some((from_ns, to_ns))) = (ended.draft, ended.period) else {
            return Ok(None);
        };
        let bytes = draft.seal(label)?;
        let segment = Segment {
            number,
            from_ns,
            to_ns,
            is_slow,
            bytes: bytes.len() as u64,
        };
        Ok(Some((segment, bytes)))
    }
}
