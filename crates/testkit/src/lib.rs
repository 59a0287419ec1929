//! Oracle, generators and script runner for tests of Lodestore.
