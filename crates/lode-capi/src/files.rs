//! Directories that are not open.

use std::path::Path;

use engine::repair::Repair;
use engine::{Db, Options, adopt};

use crate::failure::{Outcome, guarded};
use crate::options::Given;
use crate::pass::{Out, Text, given};
use crate::value::Held;

/// Does something with a directory, under options that may be missing.
fn with_directory(
    path: Text<'_>,
    options: Option<&Given>,
    work: impl FnOnce(&Path, &Options) -> engine::Result<()>,
) -> Outcome {
    guarded(|| {
        let options = options.map(|of| of.0.clone()).unwrap_or_default();
        work(path.path("the path")?, &options)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_destroy(path: Text<'_>, options: Option<&Given>) -> Outcome {
    with_directory(path, options, |path, options| Db::destroy(path, options))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_list_families(
    path: Text<'_>,
    options: Option<&Given>,
    names: Out<'_, Option<Box<Held>>>,
) -> Outcome {
    with_directory(path, options, |path, options| {
        let place = given(names, "the place for the names")?.write(None);
        *place = Some(Held::text(Db::list_families(path, options)?.join("\n")));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_repair(
    path: Text<'_>,
    target: Text<'_>,
    options: Option<&Given>,
    losses: Out<'_, Option<Box<Held>>>,
) -> Outcome {
    with_directory(path, options, |path, options| {
        let place = losses.map(|place| place.write(None));
        let repair = Repair::read(path, options)?;
        repair.write_to(target.path("the target")?)?;
        if let Some(place) = place {
            let losses = repair.report().losses;
            let lines: Vec<String> =
                losses.iter().map(|loss| format!("{}: {}", loss.file, loss.what)).collect();
            *place = Some(Held::text(lines.join("\n")));
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_adopt(path: Text<'_>, options: Option<&Given>) -> Outcome {
    with_directory(path, options, |path, options| adopt::adopt(path, options).map(drop))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_adopt_commit(path: Text<'_>, options: Option<&Given>) -> Outcome {
    with_directory(path, options, |path, options| adopt::commit(path, options))
}

#[unsafe(no_mangle)]
pub extern "C" fn lodestore_adopt_roll_back(path: Text<'_>, options: Option<&Given>) -> Outcome {
    with_directory(path, options, |path, options| adopt::roll_back(path, options))
}
