//! `mixgraph`: lookups, puts and scans as in a social graph's store; see
//! [`MixShape`] for the source. Key, kind of operation and sizes are drawn
//! independently of each other.

use lodestore::{Result, WriteBatch};

use crate::distributions::HotKeys;
use crate::keys::KeyBuffer;
use crate::random::SplitMix;
use crate::shapes::{MixShape, Sine};
use crate::values::ValueSource;
use crate::worker::{Parts, Plan, Worker};

/// Shorter values get this length.
const VALUE_BYTES_MIN: u64 = 10;
/// A rate of zero would hold a thread for ever.
const RATE_MIN: f64 = 1.0;

/// What a thread needs beside its worker.
struct Mix<'a> {
    shape: &'a MixShape,
    keys: HotKeys,
    key: KeyBuffer,
    random: SplitMix,
    values: ValueSource,
    batch: WriteBatch,
    parts: Parts,
    wave: Option<Wave>,
}

/// Does one operation after the other.
pub fn run(worker: &mut Worker<'_>) -> Result<()> {
    let plan = worker.plan;
    let shape = &plan.shapes.mix;
    let mut mix = Mix {
        shape,
        keys: HotKeys::new(plan.num, shape),
        key: plan.keys.buffer(),
        random: SplitMix::new(worker.random.step()),
        values: plan.values.source(),
        batch: WriteBatch::new(),
        parts: Parts::default(),
        wave: shape.sine.filter(|_| worker.index == 0).map(|sine| Wave { sine, next: 0.0 }),
    };
    while worker.meter.more() {
        mix.set_rates(worker);
        let number = mix.keys.draw(&mut mix.random);
        mix.key.set(number);
        let kind = mix.random.fraction();
        if kind < shape.shares[0] {
            mix.look_up(worker)?;
        } else if kind < shape.shares[0] + shape.shares[1] {
            mix.put(worker)?;
        } else {
            mix.scan(worker)?;
        }
    }
    worker.meter.set_parts(mix.parts);
    Ok(())
}

impl Mix<'_> {
    fn look_up(&mut self, worker: &mut Worker<'_>) -> Result<()> {
        let key = self.key.as_ref();
        let mut bytes = 0;
        self.parts.reads += 1;
        if let Some(value) = worker.plan.db.get(key)? {
            self.parts.found += 1;
            bytes = key.len() + value.len();
        }
        worker.meter.finished(1, bytes);
        worker.meter.hold_reads(1);
        Ok(())
    }

    fn put(&mut self, worker: &mut Worker<'_>) -> Result<()> {
        let Worker { plan, meter, .. } = worker;
        let bytes = value_bytes(self.shape, self.shape.value.draw(&mut self.random));
        let value = self.values.next(bytes as usize);
        self.batch.clear();
        self.batch.put(self.key.as_ref(), value);
        plan.db.write_with(&plan.write_options, &mut self.batch)?;
        self.parts.writes += 1;
        self.parts.value_bytes += bytes;
        meter.finished(1, 0);
        // A wave is of operations, a limit of its own of bytes.
        meter.hold_writes(match self.shape.sine {
            Some(_) => 1,
            None => plan.keys.key_bytes() + bytes as usize,
        });
        Ok(())
    }

    fn scan(&mut self, worker: &mut Worker<'_>) -> Result<()> {
        let key = self.key.as_ref();
        let mut cursor = worker.plan.db.cursor();
        cursor.seek(key);
        self.parts.seeks += 1;
        self.parts.found += u64::from(cursor.valid() && cursor.key() == key);
        let mut bytes = 0;
        let length = self.shape.scan.draw(&mut self.random) % self.shape.scan_max;
        for _ in 0..length {
            if !cursor.valid() {
                break;
            }
            bytes += cursor.key().len() + cursor.value().len();
            self.parts.scanned += 1;
            cursor.next();
        }
        cursor.status()?;
        worker.meter.finished(1, bytes);
        worker.meter.hold_reads(1);
        Ok(())
    }

    /// Sets the rates of all threads anew, where that is this thread's task and
    /// due.
    fn set_rates(&mut self, worker: &Worker<'_>) {
        let Some(wave) = &mut self.wave else {
            return;
        };
        let seconds = worker.meter.elapsed().as_secs_f64();
        if seconds >= wave.next {
            wave.next = seconds + wave.sine.interval.as_secs_f64();
            let rate = wave.sine.rate(seconds, self.random.fraction());
            apply(rate, self.shape, worker.plan);
        }
    }
}

/// The wave of the first thread.
struct Wave {
    sine: Sine,
    /// When the rate is set again, in seconds.
    next: f64,
}

impl Sine {
    /// Operations a second at `seconds`; `part` of 0 to 1 places the noise.
    fn rate(&self, seconds: f64, part: f64) -> f64 {
        let [a, b, c, d] = self.factors;
        let rate = a * (b * seconds + c).sin() + d;
        rate + a.abs() * (part - 0.5) * self.noise
    }
}

fn apply(rate: f64, shape: &MixShape, plan: &Plan<'_>) {
    let share = |share: f64| (rate * share).max(RATE_MIN);
    if let Some(pace) = &plan.read_pace {
        pace.set_rate(share(shape.shares[0] + shape.shares[2]));
    }
    if let Some(pace) = &plan.write_pace {
        pace.set_rate(share(shape.shares[1]));
    }
}

/// The length that a drawn one becomes.
fn value_bytes(shape: &MixShape, drawn: u64) -> u64 {
    match drawn {
        0..VALUE_BYTES_MIN => VALUE_BYTES_MIN.min(shape.value_bytes_max),
        _ if drawn > shape.value_bytes_max => drawn % shape.value_bytes_max,
        _ => drawn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The rate swings around `d`, and noise moves it by half of its part of `a`
    /// at most.
    #[test]
    fn rate_follows_the_sine() {
        let sine = Sine {
            factors: [100.0, 1.0, 0.0, 500.0],
            interval: Duration::from_secs(10),
            noise: 0.0,
        };
        assert_eq!(sine.rate(0.0, 0.9), 500.0);
        assert!((sine.rate(std::f64::consts::FRAC_PI_2, 0.1) - 600.0).abs() < 1e-9);
        let noisy = Sine { noise: 0.5, ..sine };
        assert_eq!((noisy.rate(0.0, 0.0), noisy.rate(0.0, 1.0)), (475.0, 525.0));
    }
}
