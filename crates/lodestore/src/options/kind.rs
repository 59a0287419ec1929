//! How an option is written: as a size, a count, a time, a codec, ...

use std::str::FromStr;
use std::time::Duration;

use crate::key::KeyOrder;
use crate::merge_operator::{self, SharedMergeOperator};
use crate::prefix::PrefixExtractor;
use crate::table::Compression;

/// What users are told of a kind.
pub(super) trait Unit {
    const UNIT: &'static str;
}

/// A kind of option as text. What cannot be text prints as `None`.
pub(super) trait Text<T>: Unit {
    fn parse(text: &str) -> Result<T, String>;
    fn print(value: &T) -> Option<String>;
}

/// `yes` or `no`.
pub(super) struct Switch;
/// A number of things.
pub(super) struct Count;
/// Bytes: `4096`, `64KiB`.
pub(super) struct Size;
/// Seconds: `90`, `10s`, `2min`, `3h`, `7d`.
pub(super) struct Seconds;
/// A time that may be short: `100ms`, `1s`, `2min`.
pub(super) struct Interval;
/// What is written as it is everywhere else.
pub(super) struct Name;
/// Names with commas between; may be none.
pub(super) struct List;
/// `default`, or as `K` says.
pub(super) struct Maybe<K>(K);

macro_rules! units {
    ($($kind:ty => $unit:literal,)+) => {
        $(impl Unit for $kind { const UNIT: &'static str = $unit; })+
    };
}

units! {
    Switch => "yes, no",
    Count => "",
    Size => "bytes",
    Seconds => "seconds",
    Interval => "time",
    Name => "name",
    List => "names",
}

impl<K: Unit> Unit for Maybe<K> {
    const UNIT: &'static str = K::UNIT;
}

const DEFAULT: &str = "default";

impl<T, K: Text<T>> Text<Option<T>> for Maybe<K> {
    fn parse(text: &str) -> Result<Option<T>, String> {
        if text == DEFAULT { Ok(None) } else { K::parse(text).map(Some) }
    }

    fn print(value: &Option<T>) -> Option<String> {
        match value {
            None => Some(DEFAULT.to_string()),
            Some(value) => K::print(value),
        }
    }
}

impl Text<bool> for Switch {
    fn parse(text: &str) -> Result<bool, String> {
        match text {
            "yes" | "true" => Ok(true),
            "no" | "false" => Ok(false),
            _ => Err(format!("{text:?} is neither yes nor no")),
        }
    }

    fn print(&value: &bool) -> Option<String> {
        Some(if value { "yes" } else { "no" }.to_string())
    }
}

/// The number that `text` is, in the unit that follows it.
fn scaled<T: TryFrom<u64>>(text: &str, units: &[(&str, u64)], what: &str) -> Result<T, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = (&text[..end], text[end..].trim_start());
    let wrong = || format!("{text:?} is not {what}");
    let factor = units.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1;
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let number = number.checked_mul(factor).and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| format!("{text:?} is too large"))
}

/// `number` in the largest unit that divides it.
fn in_units(number: u64, units: &[(&str, u64)]) -> String {
    let mut largest_first = units.iter().rev();
    let fits = largest_first.find(|(_, factor)| number > 0 && number.is_multiple_of(*factor));
    fits.map_or_else(|| number.to_string(), |(unit, factor)| format!("{}{unit}", number / factor))
}

const PLAIN: &[(&str, u64)] = &[("", 1)];
const SIZES: &[(&str, u64)] =
    &[("", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];
const TIMES: &[(&str, u64)] = &[("", 1), ("s", 1), ("min", 60), ("h", 3600), ("d", 86_400)];

const INTERVALS: &[(&str, u64)] = &[("ms", 1), ("s", 1000), ("min", 60_000)];

impl<T: TryFrom<u64> + ToString> Text<T> for Count {
    fn parse(text: &str) -> Result<T, String> {
        scaled(text, PLAIN, "a number")
    }

    fn print(value: &T) -> Option<String> {
        Some(value.to_string())
    }
}

impl<T: TryFrom<u64> + TryInto<u64> + Copy> Text<T> for Size {
    fn parse(text: &str) -> Result<T, String> {
        scaled(text, SIZES, "a size, as in 4096 or 64KiB, 64MiB, 64GiB, 64TiB")
    }

    fn print(&value: &T) -> Option<String> {
        Some(in_units(value.try_into().ok()?, SIZES))
    }
}

impl Text<u64> for Seconds {
    fn parse(text: &str) -> Result<u64, String> {
        scaled(text, TIMES, "a time, as in 90, 90s, 90min, 90h, 90d")
    }

    fn print(&value: &u64) -> Option<String> {
        Some(in_units(value, TIMES))
    }
}

impl Text<Duration> for Interval {
    fn parse(text: &str) -> Result<Duration, String> {
        let what = "a time with its unit, as in 100ms, 10s, 10min";
        scaled(text, INTERVALS, what).map(Duration::from_millis)
    }

    fn print(value: &Duration) -> Option<String> {
        let millis = u64::try_from(value.as_millis()).ok()?;
        Some(if millis == 0 { "0ms".to_string() } else { in_units(millis, INTERVALS) })
    }
}

impl Text<Compression> for Name {
    fn parse(text: &str) -> Result<Compression, String> {
        Compression::from_str(text)
    }

    fn print(value: &Compression) -> Option<String> {
        Some(value.to_string())
    }
}

impl Text<Vec<Compression>> for List {
    fn parse(text: &str) -> Result<Vec<Compression>, String> {
        let names = text.split(',').map(str::trim);
        names.filter(|_| !text.is_empty()).map(Compression::from_str).collect()
    }

    fn print(value: &Vec<Compression>) -> Option<String> {
        let names: Vec<String> = value.iter().map(Compression::to_string).collect();
        Some(names.join(", "))
    }
}

impl Text<PrefixExtractor> for Name {
    fn parse(text: &str) -> Result<PrefixExtractor, String> {
        PrefixExtractor::from_str(text)
    }

    fn print(value: &PrefixExtractor) -> Option<String> {
        Some(value.to_string())
    }
}

impl Text<SharedMergeOperator> for Name {
    fn parse(text: &str) -> Result<SharedMergeOperator, String> {
        let built_in = merge_operator::built_in(text);
        built_in.ok_or_else(|| format!("{text:?} is no built-in merge operator"))
    }

    fn print(value: &SharedMergeOperator) -> Option<String> {
        merge_operator::built_in(value.name()).map(|operator| operator.name().to_string())
    }
}

impl Text<KeyOrder> for Name {
    fn parse(text: &str) -> Result<KeyOrder, String> {
        KeyOrder::built_in(text).ok_or_else(|| format!("{text:?} is no built-in order"))
    }

    fn print(value: &KeyOrder) -> Option<String> {
        KeyOrder::built_in(value.name()).map(|order| order.name().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes and times are printed in the largest unit that loses nothing, and
    /// read back; what is no size is refused, never cut to fit.
    #[test]
    fn numbers_with_units_read_back() {
        for bytes in [0, 1, 1000, 1024, 1536, 64 << 20, 3 << 40, u64::MAX] {
            let text = <Size as Text<u64>>::print(&bytes).unwrap();
            assert_eq!(<Size as Text<u64>>::parse(&text), Ok(bytes), "{text}");
        }
        assert_eq!(<Size as Text<u64>>::print(&(64 << 20)).unwrap(), "64MiB");
        assert_eq!(Seconds::print(&600).unwrap(), "10min");
        assert_eq!(Seconds::parse("7d"), Ok(7 * 86_400));
        assert_eq!(<Size as Text<u64>>::parse("64 KiB"), Ok(64 << 10));
        for wrong in ["", "-1", "64MB", "64mib", "1.5MiB", "MiB", "99999999TiB", "1 2"] {
            assert!(<Size as Text<u64>>::parse(wrong).is_err(), "{wrong}");
        }
        assert!(<Count as Text<u8>>::parse("256").unwrap_err().contains("too large"));
        assert!(<Count as Text<u8>>::parse("1KiB").is_err());
    }
}
