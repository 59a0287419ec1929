//! Orders of keys other than bytewise, for tests.

use lodestore::{Comparator, KeyOrder};
use std::cmp::Ordering;
use std::sync::Arc;

/// Which order a family has; its word in scripts is in [`Order::word`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Bytewise.
    #[default]
    Bytewise,
    /// Bytewise from the largest to the smallest.
    Reverse,
    /// Shorter keys first, bytewise among keys of one length.
    ShortFirst,
}

impl Order {
    /// Every order.
    pub const ALL: [Order; 3] = [Order::Bytewise, Order::Reverse, Order::ShortFirst];

    /// The word for it in scripts.
    pub fn word(self) -> &'static str {
        match self {
            Order::Bytewise => "bytewise",
            Order::Reverse => "reverse",
            Order::ShortFirst => "short-first",
        }
    }

    /// The order of two keys.
    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Order::Bytewise => a.cmp(b),
            Order::Reverse => b.cmp(a),
            Order::ShortFirst => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
        }
    }

    /// The order as the engine takes it.
    pub fn key_order(self) -> KeyOrder {
        match self {
            Order::Bytewise => KeyOrder::Bytewise,
            custom => KeyOrder::Custom(Arc::new(Custom(custom))),
        }
    }
}

#[derive(Debug)]
struct Custom(Order);

impl Comparator for Custom {
    fn name(&self) -> &str {
        match self.0 {
            Order::Reverse => "testkit.Reverse",
            _ => "testkit.ShortFirst",
        }
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.0.compare(a, b)
    }

    fn equal_means_identical(&self) -> bool {
        true
    }
}
