//! The program `lode`.
fn main() {}
