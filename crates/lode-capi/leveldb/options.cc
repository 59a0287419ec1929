// LevelDB's options as the engine's.

#include "leveldb/options.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "internal.h"
#include "leveldb/comparator.h"
#include "leveldb/env.h"

namespace leveldb {

Options::Options() : comparator(BytewiseComparator()), env(Env::Default()) {}

namespace {

int Compare(void* context, lodestore_bytes a, lodestore_bytes b) {
  return static_cast<const Comparator*>(context)->Compare(SliceOf(a), SliceOf(b));
}

void Tell(void* context, int, lodestore_bytes line) {
  Log(static_cast<Logger*>(context), "%.*s", static_cast<int>(line.size),
      static_cast<const char*>(line.data));
}

// LevelDB maps so many files of a process, and reads the others.
constexpr uint64_t kMappedTables = 1000;

uint64_t Clip(uint64_t value, uint64_t low, uint64_t high) {
  return std::min(std::max(value, low), high);
}

const char* Switch(bool is_on) { return is_on ? "yes" : "no"; }

// The engine's filters in place of the caller's: they deny keys as well, and are
// asked about whole tables. It gets the bits of a policy that the library made.
// There are filters also where the caller has none: the engine lets more tables
// gather in level 0 than LevelDB does, and a lookup would read a block of each.
uint64_t FilterBits(const FilterPolicy* policy) {
  const int bits = policy == nullptr ? -1 : BloomBitsOf(policy);
  return bits < 0 ? 10 : Clip(static_cast<uint64_t>(bits), 1, 30);
}

}  // namespace

bool IsCallers(Env* env) { return env != nullptr && env != Env::Default(); }

EngineOptions::EngineOptions(const Options& options) : options_(lodestore_options_create()) {
  const uint64_t files = options.max_open_files < 0 ? 0 : static_cast<uint64_t>(options.max_open_files);
  const uint64_t table_bytes = Clip(options.max_file_size, 1 << 20, 1 << 30);
  Set("create_if_missing", Switch(options.create_if_missing));
  Set("error_if_exists", Switch(options.error_if_exists));
  Set("open_files_max", Clip(files, 64, 50000));
  // As many tables as LevelDB maps.
  Set("mapped_bytes_max", kMappedTables * table_bytes);
  SetFamily("memtable_bytes", Clip(options.write_buffer_size, 64 << 10, 1 << 30));
  SetFamily("table_bytes", table_bytes);
  SetFamily("block_bytes", Clip(options.block_size, 1 << 10, 4 << 20));
  SetFamily("compression", options.compression == kNoCompression ? "none" : "snappy");
  SetFamily("filter_bits_per_key", FilterBits(options.filter_policy));
  if (const lodestore_cache* cache = EngineCacheOf(options.block_cache)) {
    Keep(lodestore_options_set_cache(options_, cache));
  } else {
    Set("cache_bytes", 8 << 20);
  }
  if (options.info_log != nullptr) {
    lodestore_listener listener;
    std::memset(&listener, 0, sizeof listener);
    listener.context = options.info_log;
    listener.tell = Tell;
    Keep(lodestore_options_set_listener(options_, &listener));
  }
  if (IsCallers(options.env)) {
    const lodestore_file_system files = FileSystemOf(options.env);
    Keep(lodestore_options_set_file_system(options_, &files));
  }
  if (options.comparator != nullptr && options.comparator != BytewiseComparator()) {
    lodestore_comparator comparator;
    std::memset(&comparator, 0, sizeof comparator);
    comparator.context = const_cast<Comparator*>(options.comparator);
    comparator.name = options.comparator->Name();
    comparator.compare = Compare;
    Keep(lodestore_options_set_comparator(options_, nullptr, &comparator));
  }
}

void EngineOptions::Set(const char* name, const std::string& value) {
  Keep(lodestore_options_set(options_, name, value.c_str()));
}

void EngineOptions::Set(const char* name, uint64_t value) { Set(name, std::to_string(value)); }

void EngineOptions::SetFamily(const char* name, uint64_t value) {
  SetFamily(name, std::to_string(value));
}

void EngineOptions::SetFamily(const char* name, const std::string& value) {
  Keep(lodestore_options_set_family(options_, nullptr, name, value.c_str()));
}

void EngineOptions::Keep(lodestore_error* error) {
  const Status status = StatusOf(error);
  if (status_.ok()) status_ = status;
}

}  // namespace leveldb
