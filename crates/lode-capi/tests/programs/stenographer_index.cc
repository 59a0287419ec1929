// Prints the keys of Stenographer's indexes, and how many packets each has: where
// they begin depends on when they came.
#include <leveldb/env.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/table.h>

#include <cstdio>
#include <memory>

static bool Print(const char* path) {
  leveldb::Env* env = leveldb::Env::Default();
  leveldb::RandomAccessFile* opened = nullptr;
  leveldb::Table* table = nullptr;
  uint64_t size = 0;
  leveldb::Options options;
  leveldb::ReadOptions reading;
  reading.verify_checksums = true;
  leveldb::Status status = env->GetFileSize(path, &size);
  if (status.ok()) status = env->NewRandomAccessFile(path, &opened);
  const std::unique_ptr<leveldb::RandomAccessFile> file(opened);
  if (status.ok()) status = leveldb::Table::Open(options, file.get(), size, &table);
  const std::unique_ptr<leveldb::Table> held(table);
  if (status.ok()) {
    const std::unique_ptr<leveldb::Iterator> entries(table->NewIterator(reading));
    for (entries->SeekToFirst(); entries->Valid(); entries->Next()) {
      for (unsigned char byte : entries->key().ToString()) std::printf("%02x", byte);
      std::printf(" %zu\n", entries->value().size());
    }
    status = entries->status();
  }
  if (!status.ok()) std::printf("%s: %s\n", path, status.ToString().c_str());
  return status.ok();
}

int main(int count, char** paths) {
  bool all_well = true;
  for (int i = 1; i < count; i++) all_well = Print(paths[i]) && all_well;
  return all_well ? 0 : 1;
}
