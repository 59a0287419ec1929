//! Numbers as people type and read them: `10M`, `64MiB`, `1,234,567`.

/// A number that may be left to the engine or to another flag, as LevelDB's
/// flags are with -1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrDefault(pub Option<u64>);

/// Reads a count: digits, `_` between them, and K, M or G for thousands,
/// millions and billions.
pub fn parse_count(text: &str) -> Result<u64, String> {
    parse_scaled(text, 1_000).ok_or_else(|| {
        format!("{text:?} is not a count; write digits, with K, M or G for thousands, millions or billions")
    })
}

/// Reads a size in bytes: digits and K, M or G for powers of 1,024 (KiB, MiB,
/// GiB and KB, MB, GB mean the same).
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let upper = text.to_ascii_uppercase();
    let short = upper.strip_suffix("IB").or_else(|| upper.strip_suffix('B')).unwrap_or(&upper);
    parse_scaled(short, 1_024).ok_or_else(|| {
        format!("{text:?} is not a size; write bytes, or a number with K, M or G, as in 64M")
    })
}

/// [`parse_count`], or -1 for the default.
pub fn parse_count_or_default(text: &str) -> Result<OrDefault, String> {
    or_default(text, parse_count)
}

/// [`parse_bytes`], or -1 for the default.
pub fn parse_bytes_or_default(text: &str) -> Result<OrDefault, String> {
    or_default(text, parse_bytes)
}

fn or_default(text: &str, parse: fn(&str) -> Result<u64, String>) -> Result<OrDefault, String> {
    match text {
        "-1" => Ok(OrDefault(None)),
        _ => parse(text).map(|n| OrDefault(Some(n))),
    }
}

/// Reads a switch: LevelDB's flags take 0 and 1.
pub fn parse_switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(format!("{text:?} is neither 0 nor 1")),
    }
}

fn parse_scaled(text: &str, thousand: u64) -> Option<u64> {
    let (digits, factor) = match text.chars().last()?.to_ascii_uppercase() {
        'K' => (&text[..text.len() - 1], thousand),
        'M' => (&text[..text.len() - 1], thousand.pow(2)),
        'G' => (&text[..text.len() - 1], thousand.pow(3)),
        _ => (text, 1),
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    digits.replace('_', "").parse::<u64>().ok()?.checked_mul(factor)
}

/// `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in the largest unit that leaves a whole part, as in `64.0 MiB`.
pub fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut amount = bytes as f64;
    let mut unit = 0;
    while amount >= 1024.0 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{amount:.1} {}", UNITS[unit]) }
}

/// A duration as a person says it: `850 ms`, `12.3 s`, `4 min 05 s`, `3 h 10 min`.
pub fn seconds_text(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7_200.0 => format!("{} min {:02} s", s as u64 / 60, s as u64 % 60),
        s => format!("{} h {:02} min", s as u64 / 3600, s as u64 % 3600 / 60),
    }
}

/// A moment as `2026-11-21 16:22 UTC`; `seconds` are those since 1970.
pub fn date_text(seconds: u64) -> String {
    let (days, minutes) = (seconds / 86_400, seconds % 86_400 / 60);
    // Days are counted from the first of March of year 0, so that the leap day
    // is the last of its year; an era is 400 years, after which all repeats.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Five months from March on have 153 days, whichever five follow.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, year) = if month < 10 { (month + 3, year) } else { (month - 9, year + 1) };
    let (hour, minute) = (minutes / 60, minutes % 60);
    format!("{:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC", era * 400 + year)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts scale by thousands and sizes by 1,024; nonsense is refused.
    #[test]
    fn scaled_numbers_are_read() {
        assert_eq!(parse_count("1000000"), Ok(1_000_000));
        assert_eq!(parse_count("1_000_000"), Ok(1_000_000));
        assert_eq!(parse_count("10M"), Ok(10_000_000));
        assert_eq!(parse_count("1g"), Ok(1_000_000_000));
        assert_eq!(parse_bytes("64M"), Ok(64 << 20));
        assert_eq!(parse_bytes("64MiB"), Ok(64 << 20));
        assert_eq!(parse_bytes("4kb"), Ok(4096));
        for wrong in ["", "M", "-1", "1.5M", "ten", "_1", "99999999999G"] {
            assert!(parse_count(wrong).is_err(), "{wrong} was taken for a count");
            assert!(parse_bytes(wrong).is_err(), "{wrong} was taken for a size");
        }
    }

    /// LevelDB's -1 leaves the choice to the engine.
    #[test]
    fn minus_one_is_the_default() {
        assert_eq!(parse_count_or_default("-1"), Ok(OrDefault(None)));
        assert_eq!(parse_bytes_or_default("0"), Ok(OrDefault(Some(0))));
        assert!(parse_count_or_default("-2").is_err());
    }

    /// Numbers are printed in groups, sizes and times in fitting units.
    #[test]
    fn numbers_are_printed_for_people() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(bytes_text(1023), "1023 B");
        assert_eq!(bytes_text(64 << 20), "64.0 MiB");
        assert_eq!(seconds_text(0.25), "250 ms");
        assert_eq!(seconds_text(245.0), "4 min 05 s");
        assert_eq!(seconds_text(11_400.0), "3 h 10 min");
    }

    /// Dates are those of the calendar, leap days and all.
    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59 UTC"),
            (1_735_689_600, "2025-01-01 00:00 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(date_text(seconds), text);
        }
    }
}
