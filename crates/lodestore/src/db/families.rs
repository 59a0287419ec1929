//! Creating and dropping families of an open database.

use std::collections::BTreeMap;

use crate::batch::FamilyId;
use crate::error::{Error, Result};
use crate::memtable::Memtable;
use crate::options::FamilyOptions;
use crate::prefix::PrefixExtractor;
use crate::sync::Arc;
use crate::version::{FamilyDescriptor, VersionEdit};

use super::commit::ActiveMemtable;
use super::engine::Engine;
use super::family::{self, DEFAULT_NAME, Families, FamilyCore};
use super::logs::ActiveLog;
use super::view::{View, Views};

/// What the manifest knows of a new family.
pub(crate) fn descriptor(id: FamilyId, name: &str, options: &FamilyOptions) -> FamilyDescriptor {
    FamilyDescriptor {
        id: id.0,
        name: name.to_string(),
        comparator: options.order.name().to_string(),
        merge_operator: options.merge_operator.as_ref().map(|m| m.name().to_string()),
        prefix_extractor: prefix_extractor_name(options),
        ..FamilyDescriptor::default()
    }
}

/// The extractor's name, if there is one.
pub(crate) fn prefix_extractor_name(options: &FamilyOptions) -> Option<String> {
    let extractor = options.prefix_extractor.unwrap_or_default();
    (extractor != PrefixExtractor::None).then(|| extractor.to_string())
}

impl Engine {
    pub(crate) fn create_family(
        self: &Arc<Self>,
        name: &str,
        mut options: FamilyOptions,
    ) -> Result<Arc<FamilyCore>> {
        family::check_name(name)?;
        options.validate()?;
        options.prefix_extractor.get_or_insert_default();
        let mut commit = self.commit.lock();
        self.prepare(&mut commit)?;
        if self.families.load().named(name).is_some() {
            return Err(Error::invalid(format!("there is a family named {name:?} already")));
        }
        let id = FamilyId(self.versions.new_family_id());
        let mut edit = VersionEdit {
            families_created: vec![descriptor(id, name, &options)],
            ..VersionEdit::default()
        };
        // Nothing in older segments is this family's; nor where there is no log now, but
        // one was before.
        let log = commit.log.as_ref().map(ActiveLog::number);
        edit.log_numbers.push((id.0, log.unwrap_or_else(|| self.versions.new_file_number())));
        let (table, writer) = Memtable::new(options.order.clone(), &self.shared.memory);
        let mut created = None;
        let orders = BTreeMap::from([(id.0, options.order.clone())]);
        self.versions
            .apply_at_once(edit, orders, |versions| {
                let (_, version) = &versions[0];
                let view = View {
                    active: Arc::clone(&table),
                    sealed: Vec::new(),
                    version: Arc::clone(version),
                };
                created = Some(FamilyCore::new(
                    id,
                    name,
                    options.clone(),
                    Views::new(view),
                    &self.shared,
                ));
            })
            .inspect_err(|error| self.health.take(error))?;
        let family = created.expect("the edit's family was installed");
        commit.put_memtable(ActiveMemtable::new(&family, table, writer));
        self.change_families(|families| families.insert(Arc::clone(&family)));
        drop(commit);
        self.keep_options();
        Ok(family)
    }

    pub(crate) fn drop_family(self: &Arc<Self>, name: &str) -> Result<()> {
        if name == DEFAULT_NAME {
            return Err(Error::invalid("the default family cannot be dropped"));
        }
        let mut commit = self.commit.lock();
        self.prepare(&mut commit)?;
        let Some(family) = self.families.load().named(name).cloned() else {
            return Err(Error::missing(format!("family {name:?}")));
        };
        let edit = VersionEdit { families_dropped: vec![family.id.0], ..VersionEdit::default() };
        self.versions.apply(edit, |_, _| {}).inspect_err(|error| self.health.take(error))?;
        self.change_families(|families| families.remove(family.id));
        commit.remove_memtable(family.id);
        // The family's last view stays as it is, for readers with handles: its
        // files go with the last handle.
        drop(commit);
        self.logs.retire(self.versions.log_number_min());
        self.update_pressure();
        Ok(())
    }

    /// Only under the commit lock: families change one at a time.
    fn change_families(&self, change: impl FnOnce(&mut Families)) {
        let mut families = Families::clone(&self.families.load());
        change(&mut families);
        self.families.store(Arc::new(families));
    }
}
