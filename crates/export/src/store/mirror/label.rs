//! The label of a mirror's side, as text.

use std::ops::Range;

/// The label of a side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Label {
    /// The name of the mirror that the side belongs to.
    pub(super) mirror: String,
    /// How often the mirror's labels have been written. If the number in one side's label is lower than in
    /// the labels of the other sides, that label was not written the last time.
    pub(super) events: u64,
    /// The length of a region, in bytes.
    pub(super) region_size: u64,
    /// The indices of the regions in which the sides may differ, in order.
    pub(super) regions: Vec<u32>,
}

impl Label {
    pub(super) fn write(&self) -> String {
        let mut bits = Vec::new();
        for region in &self.regions {
            let byte = *region as usize / 8;
            bits.resize(bits.len().max(byte + 1), 0_u8);
            bits[byte] |= 1 << (region % 8);
        }
        let dirty: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
        format!(
            "{VERSION} mirror={} events={} region={} dirty={dirty}",
            self.mirror, self.events, self.region_size
        )
    }

    /// Parses a label. `None` if the text is not a label.
    pub(super) fn parse(text: &str) -> Option<Label> {
        let mut words = text.split(' ');
        let mut value = |name: &str| words.next()?.strip_prefix(name);
        value(VERSION)?;
        let mirror = value("mirror=")?.to_owned();
        let events = value("events=")?.parse().ok()?;
        let region_size = value("region=")?.parse().ok()?;
        let dirty = value("dirty=")?;
        if !dirty.is_ascii() || region_size == 0 || mirror.is_empty() {
            return None;
        }
        let mut regions = Vec::new();
        for (at, byte) in (0..).zip(dirty.as_bytes().chunks(2)) {
            let byte = u8::from_str_radix(str::from_utf8(byte).ok()?, 16).ok()?;
            regions.extend(
                (0..8)
                    .filter(|bit| byte >> bit & 1 == 1)
                    .map(|bit| at * 8 + bit),
            );
        }
        Some(Label {
            mirror,
            events,
            region_size,
            regions,
        })
    }

    /// The ranges, in bytes, in which sides of this size may differ.
    pub(super) fn ranges(&self, size: u64) -> Vec<Range<u64>> {
        let range = |region: &u32| {
            let start = u64::from(*region).saturating_mul(self.region_size);
            start.min(size)..start.saturating_add(self.region_size).min(size)
        };
        let ranges = self.regions.iter().map(range);
        ranges.filter(|range| range.start < range.end).collect()
    }
}

const VERSION: &str = "1";

#[cfg(test)]
mod tests {
    use super::Label;

    #[test]
    fn a_label_is_what_was_written() {
        for regions in [vec![], vec![0], vec![7, 8, 8191]] {
            let label = Label {
                mirror: "a-b".to_owned(),
                events: u64::MAX,
                region_size: 1 << 20,
                regions,
            };
            let text = label.write();
            assert!(text.len() < 3_000, "it fits into an attribute");
            assert_eq!(Label::parse(&text), Some(label));
        }
    }

    #[test]
    fn other_text_is_no_label() {
        let good = "1 mirror=m events=1 region=8 dirty=01";
        assert!(Label::parse(good).is_some());
        for bad in [
            "",
            "1",
            "2 mirror=m",
            "1 mirror=m events=-1 region=8 dirty=",
        ] {
            assert_eq!(Label::parse(bad), None, "{bad}");
        }
        for (from, to) in [("=01", "=0ä"), ("=01", "=0g"), ("=8", "=0"), ("=m", "=")] {
            assert_eq!(Label::parse(&good.replace(from, to)), None, "{to}");
        }
    }

    #[test]
    fn ranges_end_with_the_sides() {
        let label = Label {
            region_size: 8,
            regions: vec![0, 2, 9],
            ..Label::default()
        };
        assert_eq!(label.ranges(20), [0..8, 16..20]);
    }
}
