// RepairDB where our repair and LevelDB's differ: repair DIRECTORY prints what it
// says, and how many entries the database has then.
#include <leveldb/db.h>

#include <cstdio>
#include <memory>

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const leveldb::Options options;
  const leveldb::Status status = leveldb::RepairDB(arguments[1], options);
  std::printf("%s\n", status.ToString().c_str());
  if (!status.ok()) return 0;
  leveldb::DB* opened = nullptr;
  if (!leveldb::DB::Open(options, arguments[1], &opened).ok()) return 1;
  const std::unique_ptr<leveldb::DB> db(opened);
  const std::unique_ptr<leveldb::Iterator> entries(db->NewIterator(leveldb::ReadOptions()));
  int found = 0;
  for (entries->SeekToFirst(); entries->Valid(); entries->Next()) found++;
  std::printf("%d entries\n", found);
  return entries->status().ok() ? 0 : 1;
}
