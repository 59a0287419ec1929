// Opens a database and prints what is in it, or why it cannot be opened, for
// scripts/dropin-test. usage: moving DIRECTORY

#include <leveldb/db.h>

#include <cstdio>
#include <memory>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  leveldb::DB* opened = nullptr;
  const leveldb::Status status = leveldb::DB::Open(leveldb::Options(), argv[1], &opened);
  if (!status.ok()) {
    std::printf("%s\n", status.ToString().c_str());
    return 1;
  }
  const std::unique_ptr<leveldb::DB> db(opened);
  const std::unique_ptr<leveldb::Iterator> iterator(db->NewIterator(leveldb::ReadOptions()));
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    std::printf("%s = %s\n", iterator->key().ToString().c_str(),
                iterator->value().ToString().c_str());
  }
  // LevelDB does not know the name.
  std::string tables;
  if (db->GetProperty("lodestore.foreign-tables", &tables)) {
    std::fprintf(stderr, "tables of LevelDB's: %s\n", tables.c_str());
  }
  return iterator->status().ok() ? 0 : 1;
}
