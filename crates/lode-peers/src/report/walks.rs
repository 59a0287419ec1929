//! What memory took beside the engines: where that differed, they did not have the
//! same machine.

use std::collections::BTreeMap;

use lode_bench::bytes_text;

use super::Told;
use crate::gauge::GAUGE_BYTES;
use crate::results::Walk;
use crate::statistics::median;

/// One sentence without its point; `None` of a document from before there were walks.
pub fn text(told: &Told) -> Option<String> {
    let (block, times) = furthest_apart(&told.walks)?;
    let beside = told.head.engines.iter().filter_map(|head| {
        let walks = told.walks.iter().filter(|walk| walk.engine == head.engine);
        let nanos = median(&walks.map(|walk| walk.nanos).collect::<Vec<f64>>())?;
        Some(format!("{} {nanos:.0} ns", head.engine.name()))
    });
    Some(format!(
        "a step of a walk through {} of memory took beside {} by medians; engines differed most in \
         {block}, {times:.2} times",
        bytes_text(GAUGE_BYTES as u64),
        beside.collect::<Vec<String>>().join(", "),
    ))
}

/// Engines that are compared with each other run one after the other: among which of
/// them memory was least alike, and the slowest step as a multiple of the fastest.
fn furthest_apart(walks: &[Walk]) -> Option<(String, f64)> {
    let mut blocks = BTreeMap::<String, (f64, f64)>::new();
    for walk in walks {
        let Walk { round, group, shape, nanos, .. } = *walk;
        let block = format!("{} {} of round {}", group.name(), shape.name(), round + 1);
        let (least, most) = blocks.entry(block).or_insert((nanos, nanos));
        (*least, *most) = (least.min(nanos), most.max(nanos));
    }
    let times = blocks.into_iter().map(|(block, (least, most))| (block, most / least));
    times.max_by(|a, b| a.1.total_cmp(&b.1))
}
