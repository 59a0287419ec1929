//! Where values are on an axis, and which are written beside it. Pure.

/// An axis from `low` to `high`, drawn from `start` to `end`.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    low: f64,
    high: f64,
    start: f64,
    end: f64,
    logarithmic: bool,
}

impl Axis {
    /// An even axis from 0 to the first round number not below `high`.
    pub fn even(high: f64, start: f64, end: f64) -> Axis {
        let high = if high > 0.0 { ceiling(high) } else { 1.0 };
        Axis { low: 0.0, high, start, end, logarithmic: false }
    }

    /// An even axis from 0 to `high` exactly, which is above 0.
    pub fn exact(high: f64, start: f64, end: f64) -> Axis {
        Axis { low: 0.0, high, start, end, logarithmic: false }
    }

    /// A logarithmic axis over whole powers of ten around `low` and `high`,
    /// both above 0.
    pub fn powers(low: f64, high: f64, start: f64, end: f64) -> Axis {
        let low = 10f64.powf(low.log10().floor());
        let high = 10f64.powf(high.log10().ceil()).max(low * 10.0);
        Axis { low, high, start, end, logarithmic: true }
    }

    /// Where `value` is drawn; what is beyond the axis is at its end.
    pub fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let part = match self.logarithmic {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.start + part * (self.end - self.start)
    }

    /// Values to be written beside it, in order.
    pub fn marks(&self) -> Vec<f64> {
        if self.logarithmic {
            let decades = (self.high / self.low).log10().round() as i32;
            // More than five would run into each other on a phone.
            let step = (decades / 6 + 1) as usize;
            return (0..=decades).step_by(step).map(|n| self.low * 10f64.powi(n)).collect();
        }
        let step = step(self.high);
        let count = (self.high / step + 1e-9).floor() as u32;
        (0..=count).map(|n| f64::from(n) * step).collect()
    }
}

/// The first of 1, 1.5, 2, 3, 4, 5, 6, 8, 10 times a power of ten not below
/// `value`.
fn ceiling(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let factors = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let fits = |factor: &&f64| **factor * power >= value * (1.0 - 1e-9);
    factors.iter().find(fits).unwrap_or(&10.0) * power
}

/// A round step that divides an axis up to `high` into two to five parts.
fn step(high: f64) -> f64 {
    let power = 10f64.powf(high.log10().floor());
    let step = match high / power {
        part if part < 1.9 => 0.5,
        part if part < 4.9 => 1.0,
        _ => 2.0,
    };
    step * power
}

/// `1234567` as `1.2M`: a number that fits beside an axis.
pub fn short(number: f64) -> String {
    let (amount, unit) = match number {
        n if n >= 1e12 => (n / 1e12, "T"),
        n if n >= 1e9 => (n / 1e9, "G"),
        n if n >= 1e6 => (n / 1e6, "M"),
        n if n >= 1e3 => (n / 1e3, "k"),
        n => (n, ""),
    };
    let digits = match amount {
        a if a == 0.0 || (a - a.round()).abs() < 1e-9 => 0,
        a if a < 0.1 => 3,
        a if a < 1.0 => 2,
        _ => 1,
    };
    format!("{amount:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values are in proportion, and never outside.
    #[test]
    fn values_are_in_proportion() {
        let axis = Axis::even(90.0, 0.0, 200.0);
        assert_eq!((axis.at(0.0), axis.at(50.0), axis.at(1e9)), (0.0, 100.0, 200.0));
        let axis = Axis::powers(0.5, 90.0, 0.0, 300.0);
        let places = [0.1, 1.0, 10.0, 100.0].map(|value| axis.at(value).round());
        assert_eq!(places, [0.0, 100.0, 200.0, 300.0]);
    }

    /// Marks are round numbers, few, and within the axis.
    #[test]
    fn marks_are_round_and_few() {
        assert_eq!(Axis::even(90.0, 0.0, 1.0).marks(), [0.0, 50.0, 100.0]);
        assert_eq!(Axis::even(1_234.0, 0.0, 1.0).marks(), [0.0, 500.0, 1_000.0, 1_500.0]);
        assert_eq!(Axis::exact(0.7, 0.0, 1.0).marks().len(), 4);
        assert_eq!(Axis::powers(3.0, 900.0, 0.0, 1.0).marks(), [1.0, 10.0, 100.0, 1_000.0]);
        for high in [1e-9, 0.3, 1.0, 7.0, 19.0, 4.95e6, 1e15] {
            let marks = Axis::even(high, 0.0, 1.0).marks();
            assert!((3..=6).contains(&marks.len()), "{high}: {marks:?}");
        }
        assert!(Axis::powers(1e-3, 1e9, 0.0, 1.0).marks().len() <= 6);
        assert_eq!(Axis::even(0.0, 0.0, 1.0).at(0.0), 0.0);
    }

    /// Numbers beside an axis are short.
    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 0.05, 0.25, 1.0, 999.0, 1_500.0, 2e6, 1_234_567.0, 3e9].map(short);
        assert_eq!(texts, ["0", "0.050", "0.25", "1", "999", "1.5k", "2M", "1.2M", "3G"]);
    }
}
