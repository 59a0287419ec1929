//! What the engine does on its own, as lines on standard error.

use std::time::Instant;

use lodestore::{Event, Listener};

/// Prints each event with the seconds since it was made.
#[derive(Debug)]
pub struct EventPrinter {
    begin: Instant,
}

impl EventPrinter {
    pub fn new() -> EventPrinter {
        EventPrinter { begin: Instant::now() }
    }
}

impl Listener for EventPrinter {
    fn tell(&self, event: &Event<'_>) {
        eprintln!("{:>10.3} s  {event}", self.begin.elapsed().as_secs_f64());
    }
}
