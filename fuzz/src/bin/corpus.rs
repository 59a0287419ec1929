//! Makes the corpora anew: `cargo run -p lodestore-fuzz --bin corpus`. To be
//! run when a format has changed; what the fuzzer found is in `regressions/`
//! and stays.

use std::path::Path;

use lodestore_fuzz::corpus;

fn main() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut bytes = 0;
    let made = corpus::make();
    for (target, files) in &made {
        let directory = root.join(target);
        if directory.exists() {
            std::fs::remove_dir_all(&directory)?;
        }
        std::fs::create_dir_all(&directory)?;
        for (name, input) in files {
            std::fs::write(directory.join(name), input)?;
            bytes += input.len();
        }
        println!("{target}: {} files", files.len());
    }
    println!("{bytes} bytes in {}", root.display());
    Ok(())
}
