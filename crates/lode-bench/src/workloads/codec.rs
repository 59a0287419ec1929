//! Benchmarks of single functions on one block, without a database: checksum,
//! compression, decompression. The libraries are those that the engine reads with; for
//! writing Snappy it has an encoder of its own.

use std::hint::black_box;

use lodestore::Result;

use crate::worker::Worker;

/// LevelDB's block.
const BLOCK_BYTES: usize = 4096;
/// LevelDB checksums 500 MiB of blocks.
pub const CHECKSUMS: u64 = (500 << 20) / BLOCK_BYTES as u64;
/// LevelDB compresses and decompresses a gibibyte of blocks.
pub const COMPRESSIONS: u64 = (1 << 30) / BLOCK_BYTES as u64;

/// What a codec may say.
type Coded = std::result::Result<usize, Box<dyn std::error::Error>>;

/// CRC-32C of blocks.
pub fn crc32c(worker: &mut Worker<'_>) -> Result<()> {
    let block = [b'x'; BLOCK_BYTES];
    while worker.meter.more() {
        black_box(crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, black_box(&block)));
        worker.meter.finished(1, BLOCK_BYTES);
    }
    worker.meter.set_remark("(4K per op)".to_string());
    Ok(())
}

/// Compresses a block with Snappy.
pub fn snappy_compress(worker: &mut Worker<'_>) -> Result<()> {
    let mut encoder = snap::raw::Encoder::new();
    let mut out = vec![0; snap::raw::max_compress_len(BLOCK_BYTES)];
    compress(worker, "snappy", |block| Ok(encoder.compress(block, &mut out)?));
    Ok(())
}

/// Decompresses a block with Snappy.
pub fn snappy_decompress(worker: &mut Worker<'_>) -> Result<()> {
    let mut decoder = snap::raw::Decoder::new();
    let mut out = vec![0; BLOCK_BYTES];
    let compressed = snap::raw::Encoder::new().compress_vec(&block(worker));
    decompress(worker, "snappy", compressed.map_err(Into::into), |compressed| {
        Ok(decoder.decompress(compressed, &mut out)?)
    });
    Ok(())
}

/// Compresses a block with Zstandard, at `--compression_level`.
pub fn zstd_compress(worker: &mut Worker<'_>) -> Result<()> {
    let mut out = vec![0; zstd::zstd_safe::compress_bound(BLOCK_BYTES)];
    let compressor = zstd::bulk::Compressor::new(worker.plan.shapes.zstd_level);
    match compressor {
        Ok(mut compressor) => {
            compress(
                worker,
                "zstd",
                |block| Ok(compressor.compress_to_buffer(block, &mut out[..])?),
            )
        }
        Err(_) => failed(worker, "zstd"),
    }
    Ok(())
}

/// Decompresses a block with Zstandard.
pub fn zstd_decompress(worker: &mut Worker<'_>) -> Result<()> {
    let mut out = vec![0; BLOCK_BYTES];
    let compressed = zstd::bulk::compress(&block(worker), worker.plan.shapes.zstd_level);
    match zstd::bulk::Decompressor::new() {
        Ok(mut decompressor) => {
            decompress(worker, "zstd", compressed.map_err(Into::into), |compressed| {
                Ok(decompressor.decompress_to_buffer(compressed, &mut out[..])?)
            });
        }
        Err(_) => failed(worker, "zstd"),
    }
    Ok(())
}

/// The block that is compressed: as compressible as values are.
fn block(worker: &Worker<'_>) -> Vec<u8> {
    worker.plan.values.source().next(BLOCK_BYTES).to_vec()
}

fn compress(worker: &mut Worker<'_>, name: &str, mut run: impl FnMut(&[u8]) -> Coded) {
    let block = block(worker);
    let mut produced = 0;
    while worker.meter.more() {
        match run(black_box(&block)) {
            Ok(bytes) => produced += bytes as u64,
            Err(_) => return failed(worker, name),
        }
        worker.meter.finished(1, BLOCK_BYTES);
    }
    let consumed = (worker.meter.done() * BLOCK_BYTES as u64).max(1);
    let percent = produced as f64 * 100.0 / consumed as f64;
    worker.meter.set_remark(format!("(output: {percent:.1}%)"));
}

fn decompress(
    worker: &mut Worker<'_>,
    name: &str,
    compressed: std::result::Result<Vec<u8>, Box<dyn std::error::Error>>,
    mut run: impl FnMut(&[u8]) -> Coded,
) {
    let Ok(compressed) = compressed else {
        return failed(worker, name);
    };
    while worker.meter.more() {
        if !matches!(run(black_box(&compressed)), Ok(BLOCK_BYTES)) {
            return failed(worker, name);
        }
        worker.meter.finished(1, BLOCK_BYTES);
    }
}

/// As in LevelDB, a codec that fails ends its benchmark, and the line says so.
fn failed(worker: &mut Worker<'_>, name: &str) {
    worker.meter.set_remark(format!("({name} failure)"));
}
