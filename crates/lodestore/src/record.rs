//! Record framing.
