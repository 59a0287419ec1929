// The interface for C, over the one for C++.

#include "leveldb/c.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "leveldb/cache.h"
#include "leveldb/comparator.h"
#include "leveldb/db.h"
#include "leveldb/env.h"
#include "leveldb/filter_policy.h"
#include "leveldb/iterator.h"
#include "leveldb/options.h"
#include "leveldb/status.h"
#include "leveldb/write_batch.h"

using leveldb::Slice;
using leveldb::Status;

struct leveldb_t {
  leveldb::DB* rep;
};
struct leveldb_iterator_t {
  leveldb::Iterator* rep;
};
struct leveldb_writebatch_t {
  leveldb::WriteBatch rep;
};
struct leveldb_snapshot_t {
  const leveldb::Snapshot* rep;
};
struct leveldb_readoptions_t {
  leveldb::ReadOptions rep;
};
struct leveldb_writeoptions_t {
  leveldb::WriteOptions rep;
};
struct leveldb_options_t {
  leveldb::Options rep;
};
struct leveldb_cache_t {
  leveldb::Cache* rep;
};
struct leveldb_logger_t {
  leveldb::Logger* rep;
};
struct leveldb_env_t {
  leveldb::Env* rep;
  bool is_default;
};

struct leveldb_comparator_t : public leveldb::Comparator {
  ~leveldb_comparator_t() override { (*destructor)(state); }
  int Compare(const Slice& a, const Slice& b) const override {
    return (*compare)(state, a.data(), a.size(), b.data(), b.size());
  }
  const char* Name() const override { return (*name)(state); }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}

  void* state;
  void (*destructor)(void*);
  int (*compare)(void*, const char*, size_t, const char*, size_t);
  const char* (*name)(void*);
};

struct leveldb_filterpolicy_t : public leveldb::FilterPolicy {
  ~leveldb_filterpolicy_t() override { (*destructor)(state); }
  const char* Name() const override { return (*name)(state); }

  void CreateFilter(const Slice* keys, int n, std::string* dst) const override {
    std::vector<const char*> pointers;
    std::vector<size_t> lengths;
    for (int i = 0; i < n; i++) {
      pointers.push_back(keys[i].data());
      lengths.push_back(keys[i].size());
    }
    size_t length = 0;
    char* filter = (*create)(state, pointers.data(), lengths.data(), n, &length);
    dst->append(filter, length);
    std::free(filter);
  }

  bool KeyMayMatch(const Slice& key, const Slice& filter) const override {
    return (*key_match)(state, key.data(), key.size(), filter.data(), filter.size()) != 0;
  }

  void* state;
  void (*destructor)(void*);
  const char* (*name)(void*);
  char* (*create)(void*, const char* const*, const size_t*, int, size_t*);
  uint8_t (*key_match)(void*, const char*, size_t, const char*, size_t);
};

namespace {

// A policy of the library's own, handed on: databases are given the one within.
struct Bloom : public leveldb_filterpolicy_t {
  explicit Bloom(int bits) : inner(leveldb::NewBloomFilterPolicy(bits)) {
    state = nullptr;
    destructor = [](void*) {};
    name = nullptr;
    create = nullptr;
    key_match = nullptr;
  }
  ~Bloom() override { delete inner; }
  const char* Name() const override { return inner->Name(); }
  void CreateFilter(const Slice* keys, int n, std::string* dst) const override {
    inner->CreateFilter(keys, n, dst);
  }
  bool KeyMayMatch(const Slice& key, const Slice& filter) const override {
    return inner->KeyMayMatch(key, filter);
  }

  const leveldb::FilterPolicy* const inner;
};

// True if it failed: then the text is the caller's.
bool SaveError(char** errptr, const Status& status) {
  if (status.ok()) return false;
  std::free(*errptr);
  *errptr = strdup(status.ToString().c_str());
  return true;
}

char* Copy(const std::string& bytes) {
  char* copy = static_cast<char*>(std::malloc(bytes.empty() ? 1 : bytes.size()));
  if (copy != nullptr) std::memcpy(copy, bytes.data(), bytes.size());
  return copy;
}

}  // namespace

extern "C" {

leveldb_t* leveldb_open(const leveldb_options_t* options, const char* name, char** errptr) {
  leveldb::DB* db = nullptr;
  if (SaveError(errptr, leveldb::DB::Open(options->rep, name, &db))) return nullptr;
  return new leveldb_t{db};
}

void leveldb_close(leveldb_t* db) {
  delete db->rep;
  delete db;
}

void leveldb_put(leveldb_t* db, const leveldb_writeoptions_t* options, const char* key,
                 size_t keylen, const char* val, size_t vallen, char** errptr) {
  SaveError(errptr, db->rep->Put(options->rep, Slice(key, keylen), Slice(val, vallen)));
}

void leveldb_delete(leveldb_t* db, const leveldb_writeoptions_t* options, const char* key,
                    size_t keylen, char** errptr) {
  SaveError(errptr, db->rep->Delete(options->rep, Slice(key, keylen)));
}

void leveldb_write(leveldb_t* db, const leveldb_writeoptions_t* options,
                   leveldb_writebatch_t* batch, char** errptr) {
  SaveError(errptr, db->rep->Write(options->rep, &batch->rep));
}

char* leveldb_get(leveldb_t* db, const leveldb_readoptions_t* options, const char* key,
                  size_t keylen, size_t* vallen, char** errptr) {
  std::string value;
  const Status status = db->rep->Get(options->rep, Slice(key, keylen), &value);
  *vallen = 0;
  if (!status.ok()) {
    if (!status.IsNotFound()) SaveError(errptr, status);
    return nullptr;
  }
  *vallen = value.size();
  return Copy(value);
}

leveldb_iterator_t* leveldb_create_iterator(leveldb_t* db, const leveldb_readoptions_t* options) {
  return new leveldb_iterator_t{db->rep->NewIterator(options->rep)};
}

const leveldb_snapshot_t* leveldb_create_snapshot(leveldb_t* db) {
  return new leveldb_snapshot_t{db->rep->GetSnapshot()};
}

void leveldb_release_snapshot(leveldb_t* db, const leveldb_snapshot_t* snapshot) {
  db->rep->ReleaseSnapshot(snapshot->rep);
  delete snapshot;
}

char* leveldb_property_value(leveldb_t* db, const char* propname) {
  std::string value;
  return db->rep->GetProperty(Slice(propname), &value) ? strdup(value.c_str()) : nullptr;
}

void leveldb_approximate_sizes(leveldb_t* db, int num_ranges, const char* const* range_start_key,
                               const size_t* range_start_key_len,
                               const char* const* range_limit_key,
                               const size_t* range_limit_key_len, uint64_t* sizes) {
  for (int i = 0; i < num_ranges; i++) {
    const leveldb::Range range(Slice(range_start_key[i], range_start_key_len[i]),
                               Slice(range_limit_key[i], range_limit_key_len[i]));
    db->rep->GetApproximateSizes(&range, 1, &sizes[i]);
  }
}

void leveldb_compact_range(leveldb_t* db, const char* start_key, size_t start_key_len,
                           const char* limit_key, size_t limit_key_len) {
  const Slice start(start_key, start_key_len), limit(limit_key, limit_key_len);
  db->rep->CompactRange(start_key == nullptr ? nullptr : &start,
                        limit_key == nullptr ? nullptr : &limit);
}

void leveldb_destroy_db(const leveldb_options_t* options, const char* name, char** errptr) {
  SaveError(errptr, leveldb::DestroyDB(name, options->rep));
}

void leveldb_repair_db(const leveldb_options_t* options, const char* name, char** errptr) {
  SaveError(errptr, leveldb::RepairDB(name, options->rep));
}

void leveldb_iter_destroy(leveldb_iterator_t* iter) {
  delete iter->rep;
  delete iter;
}
uint8_t leveldb_iter_valid(const leveldb_iterator_t* iter) { return iter->rep->Valid(); }
void leveldb_iter_seek_to_first(leveldb_iterator_t* iter) { iter->rep->SeekToFirst(); }
void leveldb_iter_seek_to_last(leveldb_iterator_t* iter) { iter->rep->SeekToLast(); }
void leveldb_iter_seek(leveldb_iterator_t* iter, const char* k, size_t klen) {
  iter->rep->Seek(Slice(k, klen));
}
void leveldb_iter_next(leveldb_iterator_t* iter) { iter->rep->Next(); }
void leveldb_iter_prev(leveldb_iterator_t* iter) { iter->rep->Prev(); }

const char* leveldb_iter_key(const leveldb_iterator_t* iter, size_t* klen) {
  const Slice key = iter->rep->key();
  *klen = key.size();
  return key.data();
}

const char* leveldb_iter_value(const leveldb_iterator_t* iter, size_t* vlen) {
  const Slice value = iter->rep->value();
  *vlen = value.size();
  return value.data();
}

void leveldb_iter_get_error(const leveldb_iterator_t* iter, char** errptr) {
  SaveError(errptr, iter->rep->status());
}

leveldb_writebatch_t* leveldb_writebatch_create() { return new leveldb_writebatch_t; }
void leveldb_writebatch_destroy(leveldb_writebatch_t* batch) { delete batch; }
void leveldb_writebatch_clear(leveldb_writebatch_t* batch) { batch->rep.Clear(); }
void leveldb_writebatch_put(leveldb_writebatch_t* batch, const char* key, size_t klen,
                            const char* val, size_t vlen) {
  batch->rep.Put(Slice(key, klen), Slice(val, vlen));
}
void leveldb_writebatch_delete(leveldb_writebatch_t* batch, const char* key, size_t klen) {
  batch->rep.Delete(Slice(key, klen));
}

void leveldb_writebatch_iterate(const leveldb_writebatch_t* batch, void* state,
                                void (*put)(void*, const char*, size_t, const char*, size_t),
                                void (*deleted)(void*, const char*, size_t)) {
  class Caller : public leveldb::WriteBatch::Handler {
   public:
    void Put(const Slice& key, const Slice& value) override {
      (*put)(state, key.data(), key.size(), value.data(), value.size());
    }
    void Delete(const Slice& key) override { (*deleted)(state, key.data(), key.size()); }

    void* state;
    void (*put)(void*, const char*, size_t, const char*, size_t);
    void (*deleted)(void*, const char*, size_t);
  };
  Caller caller;
  caller.state = state;
  caller.put = put;
  caller.deleted = deleted;
  batch->rep.Iterate(&caller);
}

void leveldb_writebatch_append(leveldb_writebatch_t* destination,
                               const leveldb_writebatch_t* source) {
  destination->rep.Append(source->rep);
}

leveldb_options_t* leveldb_options_create() { return new leveldb_options_t; }
void leveldb_options_destroy(leveldb_options_t* options) { delete options; }
void leveldb_options_set_comparator(leveldb_options_t* options, leveldb_comparator_t* comparator) {
  options->rep.comparator = comparator;
}
void leveldb_options_set_filter_policy(leveldb_options_t* options,
                                       leveldb_filterpolicy_t* policy) {
  // The library knows its own by the pointer it gave.
  const bool is_bloom = policy != nullptr && policy->create == nullptr;
  options->rep.filter_policy = is_bloom ? static_cast<Bloom*>(policy)->inner : policy;
}
void leveldb_options_set_create_if_missing(leveldb_options_t* options, uint8_t v) {
  options->rep.create_if_missing = v != 0;
}
void leveldb_options_set_error_if_exists(leveldb_options_t* options, uint8_t v) {
  options->rep.error_if_exists = v != 0;
}
void leveldb_options_set_paranoid_checks(leveldb_options_t* options, uint8_t v) {
  options->rep.paranoid_checks = v != 0;
}
void leveldb_options_set_env(leveldb_options_t* options, leveldb_env_t* env) {
  options->rep.env = env == nullptr ? nullptr : env->rep;
}
void leveldb_options_set_info_log(leveldb_options_t* options, leveldb_logger_t* logger) {
  options->rep.info_log = logger == nullptr ? nullptr : logger->rep;
}
void leveldb_options_set_write_buffer_size(leveldb_options_t* options, size_t size) {
  options->rep.write_buffer_size = size;
}
void leveldb_options_set_max_open_files(leveldb_options_t* options, int files) {
  options->rep.max_open_files = files;
}
void leveldb_options_set_cache(leveldb_options_t* options, leveldb_cache_t* cache) {
  options->rep.block_cache = cache->rep;
}
void leveldb_options_set_block_size(leveldb_options_t* options, size_t size) {
  options->rep.block_size = size;
}
void leveldb_options_set_block_restart_interval(leveldb_options_t* options, int interval) {
  options->rep.block_restart_interval = interval;
}
void leveldb_options_set_max_file_size(leveldb_options_t* options, size_t size) {
  options->rep.max_file_size = size;
}
void leveldb_options_set_compression(leveldb_options_t* options, int type) {
  options->rep.compression = static_cast<leveldb::CompressionType>(type);
}

leveldb_readoptions_t* leveldb_readoptions_create() { return new leveldb_readoptions_t; }
void leveldb_readoptions_destroy(leveldb_readoptions_t* options) { delete options; }
void leveldb_readoptions_set_verify_checksums(leveldb_readoptions_t* options, uint8_t v) {
  options->rep.verify_checksums = v != 0;
}
void leveldb_readoptions_set_fill_cache(leveldb_readoptions_t* options, uint8_t v) {
  options->rep.fill_cache = v != 0;
}
void leveldb_readoptions_set_snapshot(leveldb_readoptions_t* options,
                                      const leveldb_snapshot_t* snapshot) {
  options->rep.snapshot = snapshot == nullptr ? nullptr : snapshot->rep;
}
leveldb_writeoptions_t* leveldb_writeoptions_create() { return new leveldb_writeoptions_t; }
void leveldb_writeoptions_destroy(leveldb_writeoptions_t* options) { delete options; }
void leveldb_writeoptions_set_sync(leveldb_writeoptions_t* options, uint8_t v) {
  options->rep.sync = v != 0;
}

leveldb_comparator_t* leveldb_comparator_create(
    void* state, void (*destructor)(void*),
    int (*compare)(void*, const char*, size_t, const char*, size_t), const char* (*name)(void*)) {
  leveldb_comparator_t* comparator = new leveldb_comparator_t;
  comparator->state = state;
  comparator->destructor = destructor;
  comparator->compare = compare;
  comparator->name = name;
  return comparator;
}
void leveldb_comparator_destroy(leveldb_comparator_t* comparator) { delete comparator; }

leveldb_filterpolicy_t* leveldb_filterpolicy_create(
    void* state, void (*destructor)(void*),
    char* (*create_filter)(void*, const char* const*, const size_t*, int, size_t*),
    uint8_t (*key_may_match)(void*, const char*, size_t, const char*, size_t),
    const char* (*name)(void*)) {
  leveldb_filterpolicy_t* policy = new leveldb_filterpolicy_t;
  policy->state = state;
  policy->destructor = destructor;
  policy->create = create_filter;
  policy->key_match = key_may_match;
  policy->name = name;
  return policy;
}
void leveldb_filterpolicy_destroy(leveldb_filterpolicy_t* policy) { delete policy; }
leveldb_filterpolicy_t* leveldb_filterpolicy_create_bloom(int bits_per_key) {
  return new Bloom(bits_per_key);
}

leveldb_cache_t* leveldb_cache_create_lru(size_t capacity) {
  return new leveldb_cache_t{leveldb::NewLRUCache(capacity)};
}
void leveldb_cache_destroy(leveldb_cache_t* cache) {
  delete cache->rep;
  delete cache;
}

leveldb_env_t* leveldb_create_default_env() {
  return new leveldb_env_t{leveldb::Env::Default(), true};
}
void leveldb_env_destroy(leveldb_env_t* env) {
  if (!env->is_default) delete env->rep;
  delete env;
}
char* leveldb_env_get_test_directory(leveldb_env_t* env) {
  std::string directory;
  return env->rep->GetTestDirectory(&directory).ok() ? strdup(directory.c_str()) : nullptr;
}

void leveldb_free(void* ptr) { std::free(ptr); }
int leveldb_major_version() { return leveldb::kMajorVersion; }
int leveldb_minor_version() { return leveldb::kMinorVersion; }

}  // extern "C"
