//! How long to test: numbers from the environment.

/// The number in variable `name`, or `default`.
///
/// # Panics
/// If the variable holds something else: a soak that tests less than was asked
/// for would be a lie.
pub fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Err(_) => default,
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")),
    }
}
