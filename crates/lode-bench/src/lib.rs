//! Workloads that measure Lodestore: db_bench's benchmarks, histograms, reports.
