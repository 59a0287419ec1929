// How databases are opened, read and written.

#ifndef STORAGE_LEVELDB_INCLUDE_OPTIONS_H_
#define STORAGE_LEVELDB_INCLUDE_OPTIONS_H_

#include <cstddef>

#include "leveldb/export.h"

namespace leveldb {

class Cache;
class Comparator;
class Env;
class FilterPolicy;
class Logger;
class Snapshot;

// Stored in tables.
enum CompressionType { kNoCompression = 0x0, kSnappyCompression = 0x1 };

struct LEVELDB_EXPORT Options {
  Options();

  // The order of keys, always the same one for a database.
  const Comparator* comparator;
  bool create_if_missing = false;
  bool error_if_exists = false;
  bool paranoid_checks = false;
  Env* env;
  Logger* info_log = nullptr;
  // Size of a memtable, of which there may be two.
  size_t write_buffer_size = 4 * 1024 * 1024;
  int max_open_files = 1000;
  // Null: one of 8 MB of its own.
  Cache* block_cache = nullptr;
  size_t block_size = 4 * 1024;
  // Of tables in LevelDB's format only.
  int block_restart_interval = 16;
  size_t max_file_size = 2 * 1024 * 1024;
  CompressionType compression = kSnappyCompression;
  bool reuse_logs = false;
  const FilterPolicy* filter_policy = nullptr;
};

struct LEVELDB_EXPORT ReadOptions {
  ReadOptions() = default;

  bool verify_checksums = false;
  bool fill_cache = true;
  // Null: the state at the beginning of the read.
  const Snapshot* snapshot = nullptr;
};

struct LEVELDB_EXPORT WriteOptions {
  WriteOptions() = default;

  // Return only when the write survives power loss.
  bool sync = false;
};

}  // namespace leveldb

#endif
