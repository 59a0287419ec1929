//! Gives the shared library its name for the loader: programs linked with one
//! whose interface is another one find that out when they start.

fn main() {
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if system == "linux" {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liblodestore.so.0");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
