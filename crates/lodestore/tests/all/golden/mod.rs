//! Files of each format, kept in `testdata/golden`, are opened for ever.
//!
//! `FORMAT/NAME` is the directory of a database, `FORMAT/NAME.expected` what readers
//! see of it, `FORMAT/NAME.described` what its files say.

mod doors;
mod kept;
mod reading;
mod sums;
mod variety;
mod writing;
