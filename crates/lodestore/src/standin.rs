use crate::*;
use crate::fs::*;
use std::collections::*;
use std::sync::*;
use std::path::*;
use std::ops::*;
use std::io;

#[derive(Debug, Clone, Default)] pub struct MemFs(Arc<()>);
#[derive(Debug, Clone, Default)] pub struct OsFs;
impl MemFs { pub fn new() -> Arc<MemFs> { Arc::new(MemFs::default()) } pub fn power_loss(&self, _: u64) {} }
impl OsFs { pub fn new() -> OsFs { OsFs } }
macro_rules! dummy { ($t:ty) => { impl Fs for $t {
 fn capabilities(&self) -> Capabilities { Capabilities::default() }
 fn create(&self, _: &Path) -> io::Result<Box<dyn WritableFile>> { Err(io::ErrorKind::Other.into()) }
 fn overwrite(&self, _: &Path) -> io::Result<Box<dyn WritableFile>> { Err(io::ErrorKind::Other.into()) }
 fn open(&self, _: &Path) -> io::Result<Arc<dyn ReadableFile>> { Err(io::ErrorKind::Other.into()) }
 fn list(&self, _: &Path) -> io::Result<Vec<String>> { Ok(vec![]) }
 fn length(&self, _: &Path) -> io::Result<u64> { Ok(0) }
 fn remove(&self, _: &Path) -> io::Result<()> { Ok(()) }
 fn rename(&self, _: &Path, _: &Path) -> io::Result<()> { Ok(()) }
 fn hard_link(&self, _: &Path, _: &Path) -> io::Result<()> { Ok(()) }
 fn create_directory(&self, _: &Path) -> io::Result<()> { Ok(()) }
 fn remove_directory(&self, _: &Path) -> io::Result<()> { Ok(()) }
 fn sync_directory(&self, _: &Path) -> io::Result<()> { Ok(()) }
 fn lock(&self, _: &Path) -> std::result::Result<Box<dyn FileLock>, LockError> { Err(LockError::Held{holder_pid: None}) }
}}}
dummy!(MemFs); dummy!(OsFs);

#[derive(Clone, Copy, Debug, PartialEq)] pub enum Compression { None, Snappy, Lz4, Zstd { level: i32 } }
#[derive(Debug)] pub struct Cache; impl Cache { pub fn new(_: usize) -> Arc<Cache> { Arc::new(Cache) } }
#[derive(Clone, Debug)] pub struct Options { pub create_if_missing: bool, pub error_if_exists: bool, pub fs: Arc<dyn Fs>, pub scheduler: Option<Arc<Scheduler>>, pub background_threads: usize, pub cache: Option<Arc<Cache>>, pub cache_bytes: usize, pub statistics: Option<Arc<Statistics>>, pub logging: bool, pub log_bytes_max: u64, pub family: FamilyOptions, pub families: BTreeMap<String, FamilyOptions> }
impl Default for Options { fn default() -> Options { Options { create_if_missing: false, error_if_exists: false, fs: Arc::new(OsFs), scheduler: None, background_threads: 2, cache: None, cache_bytes: 1, statistics: None, logging: true, log_bytes_max: 1<<30, family: Default::default(), families: Default::default() } } }
#[derive(Clone, Debug)] pub struct FamilyOptions { pub order: KeyOrder, pub merge_operator: Option<SharedMergeOperator>, pub memtable_bytes: usize, pub sealed_memtables_max: usize, pub block_bytes: usize, pub compression: Compression, pub filter_bits_per_key: u8, pub table_bytes: u64, pub level0_compaction_files: usize, pub level0_slowdown_files: usize, pub level0_stop_files: usize, pub level1_bytes: u64, pub level_multiplier: u32 }
impl Default for FamilyOptions { fn default() -> Self { FamilyOptions { order: KeyOrder::Bytewise, merge_operator: None, memtable_bytes: 64<<20, sealed_memtables_max: 2, block_bytes: 4096, compression: Compression::Lz4, filter_bits_per_key: 10, table_bytes: 64<<20, level0_compaction_files: 4, level0_slowdown_files: 20, level0_stop_files: 36, level1_bytes: 256<<20, level_multiplier: 10 } } }
#[derive(Clone, Copy, Debug, Default)] pub struct WriteOptions { pub sync: bool }
#[derive(Clone, Default)] pub struct ReadOptions { pub snapshot: Option<Snapshot>, pub fill_cache: bool, pub lower_bound: Option<Vec<u8>>, pub upper_bound: Option<Vec<u8>>, pub prefix: Option<Vec<u8>> }
#[derive(Clone, Debug)] pub struct Snapshot(u64);
impl Snapshot { pub fn sequence(&self) -> u64 { self.0 } }
#[derive(Clone, Debug)] enum Ch { Put(Vec<u8>), Delete, Merge(Vec<u8>) }
#[derive(Clone, Copy, Debug, PartialEq, Eq)] pub struct FamilyId(pub u32);
impl From<&Family> for FamilyId { fn from(f: &Family) -> FamilyId { FamilyId(f.id) } }
#[derive(Clone, Debug, Default)] pub struct WriteBatch(Vec<(u32, Vec<u8>, Ch)>);
impl WriteBatch { pub fn new() -> Self { Self::default() } pub fn with_capacity(_: usize) -> Self { Self::default() }
 pub fn put(&mut self, k: &[u8], v: &[u8]) { self.0.push((0, k.to_vec(), Ch::Put(v.to_vec()))) }
 pub fn delete(&mut self, k: &[u8]) { self.0.push((0, k.to_vec(), Ch::Delete)) }
 pub fn merge(&mut self, k: &[u8], v: &[u8]) { self.0.push((0, k.to_vec(), Ch::Merge(v.to_vec()))) }
 pub fn put_in(&mut self, f: impl Into<FamilyId>, k: &[u8], v: &[u8]) { self.0.push((f.into().0, k.to_vec(), Ch::Put(v.to_vec()))) }
 pub fn delete_in(&mut self, f: impl Into<FamilyId>, k: &[u8]) { self.0.push((f.into().0, k.to_vec(), Ch::Delete)) }
 pub fn merge_in(&mut self, f: impl Into<FamilyId>, k: &[u8], v: &[u8]) { self.0.push((f.into().0, k.to_vec(), Ch::Merge(v.to_vec()))) }
 pub fn clear(&mut self) { self.0.clear() } pub fn len(&self) -> usize { self.0.len() } pub fn is_empty(&self) -> bool { self.0.is_empty() } pub fn bytes(&self) -> usize { 12 }
 pub fn append(&mut self, o: &WriteBatch) { self.0.extend(o.0.iter().cloned()) } pub fn opaque(&mut self, _: &[u8]) {} }
#[derive(Clone, Debug, PartialEq)] pub struct Value(Vec<u8>);
impl Deref for Value { type Target = [u8]; fn deref(&self) -> &[u8] { &self.0 } }
impl AsRef<[u8]> for Value { fn as_ref(&self) -> &[u8] { &self.0 } }
impl PartialEq<[u8]> for Value { fn eq(&self, o: &[u8]) -> bool { self.0 == o } }
#[derive(Debug, Clone)] pub struct VerifyReport { pub tables: u64, pub blocks: u64, pub entries: u64, pub bytes: u64 }

#[derive(Clone)] struct Fam { name: String, options: FamilyOptions, keys: BTreeMap<Vec<u8>, Vec<(u64, Ch)>> }
#[derive(Clone, Default)] struct Store { fams: BTreeMap<u32, Fam>, next: u32, seq: u64, busy: bool }
static ALL: Mutex<BTreeMap<PathBuf, Arc<Mutex<Store>>>> = Mutex::new(BTreeMap::new());
struct Inner { path: PathBuf, store: Arc<Mutex<Store>>, stats: Arc<Statistics>, ro: bool }
impl Drop for Inner { fn drop(&mut self) { self.store.lock().unwrap().busy = false; } }
#[derive(Clone)] pub struct Family { id: u32, name: String, db: Arc<Inner> }
#[derive(Clone)] pub struct Db(Family);
impl Deref for Db { type Target = Family; fn deref(&self) -> &Family { &self.0 } }
pub struct LogPin; pub struct Updates; impl Iterator for Updates { type Item = Result<(u64, WriteBatch)>; fn next(&mut self) -> Option<Self::Item> { None } }
#[derive(Debug, Default)] pub struct LevelStats { pub files: usize, pub bytes: u64 }
#[derive(Debug, Default)] pub struct Stats { pub levels: Vec<LevelStats>, pub memtable_bytes: usize }

fn pk(o: &Options, p: &Path) -> PathBuf { PathBuf::from(format!("{:p}{}", Arc::as_ptr(&o.fs), p.display())) }
fn ro() -> Error { Error::ReadOnly { cause: Box::new(Error::InvalidArgument { what: "opened read-only".into() }) } }
fn inv() -> Error { Error::InvalidArgument { what: "x".into() } }
fn missing() -> Error { Error::Missing { what: "x".into() } }
impl Db {
 fn open_(path: &Path, o: Options, ro: bool) -> Result<Db> {
 let keyed = pk(&o, path); let path = &*keyed;
  let mut all = ALL.lock().unwrap();
  let store = match all.get(path) {
   None => { if !o.create_if_missing || ro { return Err(missing()) }
     let mut s = Store { next: 1, ..Default::default() };
     s.fams.insert(0, Fam { name: "default".into(), options: o.families.get("default").unwrap_or(&o.family).clone(), keys: Default::default() });
     let s = Arc::new(Mutex::new(s)); all.insert(path.to_path_buf(), s.clone()); s }
   Some(s) => { if o.error_if_exists { return Err(inv()) } s.clone() } };
  drop(all);
  { let mut s = store.lock().unwrap(); if s.busy { return Err(Error::Busy { path: path.to_path_buf(), holder_pid: None }) }
    for f in s.fams.values_mut() { let n = o.families.get(&f.name).unwrap_or(&o.family).clone(); if n.order.name() != f.options.order.name() { return Err(inv()) } f.options = n; }
    s.busy = true; }
  let stats = o.statistics.clone().unwrap_or_default();
  Ok(Db(Family { id: 0, name: "default".into(), db: Arc::new(Inner { path: path.to_path_buf(), store, stats, ro }) }))
 }
 pub fn open(p: impl AsRef<Path>, o: Options) -> Result<Db> { Db::open_(p.as_ref(), o, false) }
 pub fn open_read_only(p: impl AsRef<Path>, o: Options) -> Result<Db> { Db::open_(p.as_ref(), o, true) }
 pub fn destroy(p: impl AsRef<Path>, o: &Options) -> Result<()> { ALL.lock().unwrap().remove(&pk(o, p.as_ref())); Ok(()) }
 pub fn path(&self) -> &Path { &self.0.db.path }
 fn st(&self) -> MutexGuard<'_, Store> { self.0.db.store.lock().unwrap() }
 pub fn write(&self, mut b: WriteBatch) -> Result<()> { self.write_with(&WriteOptions::default(), &mut b).map(|_| ()) }
 pub fn apply_at(&self, _: u64, b: &mut WriteBatch) -> Result<()> { self.write(b.clone()) }
 pub fn write_with(&self, _: &WriteOptions, b: &mut WriteBatch) -> Result<u64> {
  if self.0.db.ro { return Err(ro()) }
  let mut s = self.st();
  for (f, _, c) in &b.0 { let fam = s.fams.get(f).ok_or_else(missing)?; if matches!(c, Ch::Merge(_)) && fam.options.merge_operator.is_none() { return Err(inv()) } }
  for (f, k, c) in &b.0 { s.seq += 1; let q = s.seq; s.fams.get_mut(f).unwrap().keys.entry(k.clone()).or_default().push((q, c.clone())); }
  Ok(s.seq) }
 pub fn snapshot(&self) -> Snapshot { Snapshot(self.st().seq) }
 pub fn latest_sequence(&self) -> u64 { self.st().seq }
 pub fn create_family(&self, n: &str, o: FamilyOptions) -> Result<Family> { if self.0.db.ro { return Err(ro()) } let mut s = self.st(); if s.fams.values().any(|f| f.name == n) { return Err(inv()) } let id = s.next; s.next += 1; s.fams.insert(id, Fam { name: n.into(), options: o, keys: Default::default() }); Ok(Family { id, name: n.into(), db: self.0.db.clone() }) }
 pub fn drop_family(&self, n: &str) -> Result<()> { if self.0.db.ro { return Err(ro()) } if n == "default" { return Err(inv()) } let mut s = self.st(); let id = *s.fams.iter().find(|f| f.1.name == n).ok_or_else(missing)?.0; s.fams.remove(&id); Ok(()) }
 pub fn family(&self, n: &str) -> Option<Family> { let s = self.st(); let id = *s.fams.iter().find(|f| f.1.name == n)?.0; Some(Family { id, name: n.into(), db: self.0.db.clone() }) }
 pub fn family_names(&self) -> Vec<String> { let s = self.st(); let mut v: Vec<String> = s.fams.values().skip(1).map(|f| f.name.clone()).collect(); v.sort(); v.insert(0, "default".into()); v }
 pub fn list_families(p: impl AsRef<Path>, o: &Options) -> Result<Vec<String>> { let all = ALL.lock().unwrap(); let s = all.get(&pk(o, p.as_ref())).ok_or_else(missing)?.lock().unwrap(); let mut v: Vec<String> = s.fams.values().skip(1).map(|f| f.name.clone()).collect(); v.sort(); v.insert(0, "default".into()); Ok(v) }
 pub fn flush_all(&self) -> Result<()> { if self.0.db.ro { return Err(ro()) } Ok(()) }
 pub fn sync_log(&self) -> Result<()> { if self.0.db.ro { return Err(ro()) } Ok(()) }
 pub fn checkpoint(&self, p: impl AsRef<Path>) -> Result<()> { let mut c = self.st().clone(); c.busy = false; let me = self.path().to_str().unwrap(); let p = PathBuf::from(format!("{}{}", &me[..me.find('/').unwrap()], p.as_ref().display())); let mut all = ALL.lock().unwrap(); if all.contains_key(&p) { return Err(inv()) } all.insert(p, Arc::new(Mutex::new(c))); Ok(()) }
 pub fn verify(&self) -> Result<VerifyReport> { Ok(VerifyReport { tables: 0, blocks: 0, entries: 0, bytes: 0 }) }
 pub fn resume(&self) -> Result<()> { Ok(()) }
 pub fn updates_since(&self, s: u64) -> Result<Updates> { Ok(Updates) }
 pub fn pin_log(&self, s: u64) -> LogPin { LogPin }
 pub fn wait_for_background(&self) -> Result<()> { Ok(()) }
 pub fn statistics(&self) -> Arc<Statistics> { self.0.db.stats.clone() }
}
impl Family {
 pub fn name(&self) -> &str { &self.name } pub fn id(&self) -> FamilyId { FamilyId(self.id) }
 fn w(&self, c: Ch, k: &[u8]) -> Result<()> { Db(self.clone()).write(WriteBatch(vec![(self.id, k.to_vec(), c)])) }
 pub fn put(&self, k: &[u8], v: &[u8]) -> Result<()> { self.w(Ch::Put(v.to_vec()), k) }
 pub fn delete(&self, k: &[u8]) -> Result<()> { self.w(Ch::Delete, k) }
 pub fn merge(&self, k: &[u8], v: &[u8]) -> Result<()> { self.w(Ch::Merge(v.to_vec()), k) }
 pub fn put_with(&self, _: &WriteOptions, k: &[u8], v: &[u8]) -> Result<()> { self.put(k, v) }
 pub fn delete_with(&self, _: &WriteOptions, k: &[u8]) -> Result<()> { self.delete(k) }
 pub fn merge_with(&self, _: &WriteOptions, k: &[u8], v: &[u8]) -> Result<()> { self.merge(k, v) }
 pub fn get(&self, k: &[u8]) -> Result<Option<Value>> { self.get_with(&ReadOptions::default(), k) }
 pub fn get_with(&self, o: &ReadOptions, k: &[u8]) -> Result<Option<Value>> {
  let s = self.db.store.lock().unwrap(); let seq = o.snapshot.as_ref().map_or(s.seq, |s| s.0);
  let f = s.fams.get(&self.id).ok_or_else(missing)?; let Some(v) = f.keys.get(k) else { return Ok(None) };
  let mut ops: Vec<&[u8]> = vec![]; let mut base = None;
  for (q, c) in v.iter().rev() { if *q > seq { continue } match c { Ch::Put(v) => { base = Some(&v[..]); break } Ch::Delete => break, Ch::Merge(m) => ops.push(m) } }
  if ops.is_empty() { return Ok(base.map(|b| Value(b.to_vec()))) }
  ops.reverse();
  f.options.merge_operator.as_ref().unwrap().full_merge(k, base, &ops).map(|v| Some(Value(v))).ok_or_else(|| Error::Corruption { path: "x".into(), offset: 0, what: "merge".into() }) }
 pub fn multi_get<K: AsRef<[u8]>>(&self, ks: &[K]) -> Vec<Result<Option<Value>>> { ks.iter().map(|k| self.get(k.as_ref())).collect() }
 pub fn multi_get_with<K: AsRef<[u8]>>(&self, o: &ReadOptions, ks: &[K]) -> Vec<Result<Option<Value>>> { ks.iter().map(|k| self.get_with(o, k.as_ref())).collect() }
 pub fn cursor(&self) -> DbCursor { self.cursor_with(ReadOptions::default()) }
 pub fn cursor_with(&self, o: ReadOptions) -> DbCursor {
  let (keys, order) = { let s = self.db.store.lock().unwrap(); let f = match s.fams.get(&self.id) { Some(f) => f, None => return DbCursor { e: vec![], at: None, order: KeyOrder::Bytewise } }; (f.keys.keys().cloned().collect::<Vec<_>>(), f.options.order.clone()) };
  let mut e = vec![];
  for k in keys { if o.lower_bound.as_ref().is_some_and(|l| order.compare(&k, l).is_lt()) || o.upper_bound.as_ref().is_some_and(|l| order.compare(&k, l).is_ge()) || !k.starts_with(o.prefix.as_deref().unwrap_or(b"")) { continue } if let Ok(Some(v)) = self.get_with(&o, &k) { e.push((k, v.0)) } }
  e.sort_by(|a, b| order.compare(&a.0, &b.0)); DbCursor { e, at: None, order } }
 pub fn range<R: RangeBounds<Vec<u8>>>(&self, r: R) -> Range { let c = self.cursor(); let o = c.order.clone(); let e: VecDeque<_> = c.e.into_iter().filter(|(k, _)| match r.start_bound() { Bound::Included(b) => o.compare(k, b).is_ge(), Bound::Excluded(b) => o.compare(k, b).is_gt(), _ => true } && match r.end_bound() { Bound::Included(b) => o.compare(k, b).is_le(), Bound::Excluded(b) => o.compare(k, b).is_lt(), _ => true }).collect(); Range(e) }
 pub fn flush(&self) -> Result<()> { Db(self.clone()).flush_all() }
 pub fn compact_range(&self, _: Option<&[u8]>, _: Option<&[u8]>) -> Result<()> { Db(self.clone()).flush_all() }
 pub fn approximate_sizes(&self, r: &[(&[u8], &[u8])]) -> Result<Vec<u64>> { Ok(vec![0; r.len()]) }
 pub fn property(&self, n: &str) -> Option<String> { None }
 pub fn stats(&self) -> Stats { Stats::default() }
}
pub struct Range(VecDeque<(Vec<u8>, Vec<u8>)>);
impl Iterator for Range { type Item = Result<(Vec<u8>, Vec<u8>)>; fn next(&mut self) -> Option<Self::Item> { self.0.pop_front().map(Ok) } }
impl DoubleEndedIterator for Range { fn next_back(&mut self) -> Option<Self::Item> { self.0.pop_back().map(Ok) } }
pub struct DbCursor { e: Vec<(Vec<u8>, Vec<u8>)>, at: Option<usize>, order: KeyOrder }
impl DbCursor {
 pub fn valid(&self) -> bool { self.at.is_some() }
 fn set(&mut self, i: Option<usize>) { self.at = i.filter(|i| *i < self.e.len()) }
 pub fn first(&mut self) { self.set(Some(0)) } pub fn last(&mut self) { self.set(self.e.len().checked_sub(1)) }
 pub fn next(&mut self) { self.set(self.at.map(|i| i + 1)) } pub fn prev(&mut self) { self.set(self.at.and_then(|i| i.checked_sub(1))) }
 pub fn seek(&mut self, k: &[u8]) { let i = self.e.iter().position(|e| self.order.compare(&e.0, k).is_ge()); self.set(i) }
 pub fn seek_for_prev(&mut self, k: &[u8]) { let i = self.e.iter().rposition(|e| self.order.compare(&e.0, k).is_le()); self.set(i) }
 pub fn key(&self) -> &[u8] { &self.e[self.at.unwrap()].0 } pub fn value(&self) -> &[u8] { &self.e[self.at.unwrap()].1 }
 pub fn status(&self) -> Result<()> { Ok(()) }
}
