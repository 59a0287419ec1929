// Files in memory, and dumps of LevelDB's files: prints what it gets, and
// scripts/dropin-test compares that with what LevelDB itself gives.
// usage: dumps make NEW-DIRECTORY     makes a database
//        dumps run NEW-DIRECTORY MADE dumps that one, and what damage makes of it

#include "tables.h"

#include <leveldb/db.h>
#include <leveldb/dumpfile.h>
#include <leveldb/helpers/memenv.h>
#include <leveldb/write_batch.h>

#include <memory>

namespace {

// ---- Files in memory

std::string Children(leveldb::Env* env, const std::string& dir) {
  std::vector<std::string> names = {"old"};
  std::string text = Kind(env->GetChildren(dir, &names));
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) text += " " + name;
  return text;
}

void ReadAgain(leveldb::Env* env, const std::string& name) {
  leveldb::SequentialFile* opened = nullptr;
  Say("open " + name, env->NewSequentialFile(name, &opened).ToString());
  const std::unique_ptr<leveldb::SequentialFile> file(opened);
  if (file == nullptr) return;
  char scratch[16];
  Slice part;
  for (int i = 0; i < 3; i++) {
    const Status status = file->Read(5, &part, scratch);
    Say("read", status.ToString() + " " + part.ToString());
  }
  Say("skip", file->Skip(2).ToString());
  const Status status = file->Read(5, &part, scratch);
  Say("read", status.ToString() + " " + part.ToString());
  Say("skip", file->Skip(1000).ToString());
  Say("at the end", file->Read(5, &part, scratch).ToString());
  Say("there", part.size());
}

void Wakes(void* arg) { *static_cast<int*>(arg) += 1; }

void Memory() {
  leveldb::Env* base = leveldb::Env::Default();
  const std::unique_ptr<leveldb::Env> env(leveldb::NewMemEnv(base));
  Say("nothing", Children(env.get(), "/dir"));
  Say("exists", env->FileExists("/dir/f"));
  uint64_t size = 77;
  Say("size", env->GetFileSize("/dir/f", &size).ToString());
  Say("remove", env->RemoveFile("/dir/f").ToString());
  Say("rename", env->RenameFile("/dir/f", "/dir/g").ToString());
  Say("create directory", env->CreateDir("/dir").ToString());
  Say("remove directory", env->RemoveDir("/nowhere").ToString());
  ReadAgain(env.get(), "/dir/f");
  leveldb::RandomAccessFile* random = nullptr;
  Say("random", env->NewRandomAccessFile("/dir/f", &random).ToString());
  leveldb::WritableFile* writable = nullptr;
  Say("write", env->NewWritableFile("/dir/f", &writable).ToString());
  Say("append", writable->Append("hello ").ToString());
  Say("append", writable->Append("world, ").ToString());
  Say("flush", writable->Flush().ToString());
  Say("sync", writable->Sync().ToString());
  // What is not closed is seen, and can grow.
  ReadAgain(env.get(), "/dir/f");
  Say("append", writable->Append("and more").ToString());
  Say("close", writable->Close().ToString());
  delete writable;
  env->GetFileSize("/dir/f", &size);
  Say("size", size);
  ReadAgain(env.get(), "/dir/f");
  Say("appendable", env->NewAppendableFile("/dir/f", &writable).ToString());
  writable->Append(" at the end");
  delete writable;
  // LevelDB's loses a file that NewAppendableFile has made.
  Say("another", leveldb::WriteStringToFile(env.get(), "n", "/dir/sub/n").ToString());
  Say("children", Children(env.get(), "/dir"));
  Say("children", Children(env.get(), "/di"));
  Say("children", Children(env.get(), "/dir/sub"));
  Say("open", env->NewRandomAccessFile("/dir/f", &random).ToString());
  // A file that is open keeps what it has, whatever becomes of its name.
  Say("rename", env->RenameFile("/dir/f", "/dir/sub/n").ToString());
  Say("children", Children(env.get(), "/dir"));
  Say("remove", env->RemoveFile("/dir/sub/n").ToString());
  Say("exists", env->FileExists("/dir/sub/n"));
  char scratch[100];
  Slice part;
  for (const uint64_t offset : {0, 6, 31, 32, 33, 1000}) {
    part = Slice("unchanged");
    const Status status = random->Read(offset, 10, &part, scratch);
    const std::string read = status.ok() ? part.ToString() : "";
    Say("at " + std::to_string(offset), status.ToString() + " " + read);
  }
  delete random;
  // Writing anew cuts what others have open.
  leveldb::WriteStringToFile(env.get(), "first contents", "/f");
  env->NewRandomAccessFile("/f", &random);
  env->NewWritableFile("/f", &writable);
  writable->Append("new");
  random->Read(0, 10, &part, scratch);
  Say("cut", part.ToString());
  delete random;
  delete writable;
  std::string text;
  Say("whole", leveldb::ReadFileToString(env.get(), "/f", &text).ToString());
  Say("text", text);
  std::string large(3 << 20, 'l');
  leveldb::WriteStringToFile(env.get(), large, "/large");
  leveldb::ReadFileToString(env.get(), "/large", &text);
  Say("large", text == large ? "same" : "other");
  leveldb::FileLock* lock = nullptr;
  leveldb::FileLock* second = nullptr;
  Say("lock", env->LockFile("/lock", &lock).ToString());
  Say("lock", env->LockFile("/lock", &second).ToString());
  Say("unlock", env->UnlockFile(lock).ToString());
  Say("unlock", env->UnlockFile(second).ToString());
  Say("test directory", env->GetTestDirectory(&text).ToString());
  Say("test directory", text);
  leveldb::Logger* logger = nullptr;
  Say("logger", env->NewLogger("/log", &logger).ToString());
  delete logger;
  Say("no file of it", env->FileExists("/log"));
  int woken = 0;
  env->StartThread(Wakes, &woken);
  for (int i = 0; i < 1000 && woken == 0; i++) env->SleepForMicroseconds(1000);
  Say("woken", static_cast<uint64_t>(woken));
  const uint64_t now = env->NowMicros();
  Say("clock", base->NowMicros() - now < 60000000 ? "base's" : "another");
  Say("not on disk", base->FileExists("/dir/sub/n") || base->FileExists("/large"));
}

// ---- Dumps

bool EndsWith(const std::string& name, const std::string& end) {
  return name.size() >= end.size() && name.substr(name.size() - end.size()) == end;
}

void DumpOne(leveldb::Env* env, const std::string& name, const std::string& said) {
  Dump dump;
  const Status status = leveldb::DumpFile(env, name, &dump);
  Say("dump of " + said, Kind(status) + " " + std::to_string(dump.calls) + " " +
                             std::to_string(Digest(dump.text)));
  std::printf("%s\n", dump.text.substr(0, 1500).c_str());
}

void Dumps(const std::string& made) {
  leveldb::Env* disk = leveldb::Env::Default();
  const std::unique_ptr<leveldb::Env> env(leveldb::NewMemEnv(disk));
  for (const char* name : {"000001.sst", "000002.log", "MANIFEST-000003", "CURRENT", "LOG", "LOCK",
                           "000004.dbtmp", "000005.txt", "", "x", "000007"}) {
    DumpOne(env.get(), std::string("/d/") + name, name);
  }
  std::vector<std::string> names;
  disk->GetChildren(made, &names);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    std::string bytes;
    if (!EndsWith(name, ".log") && !EndsWith(name, ".ldb") && name.find("MANIFEST") != 0) continue;
    DumpOne(disk, made + "/" + name, name);
    leveldb::ReadFileToString(disk, made + "/" + name, &bytes);
    if (EndsWith(name, ".ldb")) continue;
    // Damage in heads, types and lengths, at the end of blocks and anywhere else; and
    // files that were cut off.
    std::vector<size_t> places = {0, 4, 5, 6, 7, 19, 30, 32760, 32767, 32768, 32772, 32773, 32774,
                                  32780, 65536, 65541, 65542, 65550, 98304, 98310, 98400};
    for (size_t i = 0; i < 60; i++) places.push_back(i * 2731 % (bytes.size() + 1));
    for (const size_t at : places) {
      if (at >= bytes.size()) continue;
      for (const char change : {'\x01', '\x03', '\x40'}) {
        std::string damaged = bytes;
        damaged[at] ^= change;
        leveldb::WriteStringToFile(env.get(), damaged, "/" + name);
        DumpOne(env.get(), "/" + name, name + " damaged at " + std::to_string(at));
      }
      leveldb::WriteStringToFile(env.get(), bytes.substr(0, at), "/" + name);
      DumpOne(env.get(), "/" + name, name + " cut at " + std::to_string(at));
    }
    // Blocks left out, and twice.
    for (size_t block = 0; (block + 2) * 32768 < bytes.size(); block++) {
      std::string other = bytes;
      other.erase(block * 32768, 32768);
      leveldb::WriteStringToFile(env.get(), other, "/" + name);
      DumpOne(env.get(), "/" + name, name + " without block " + std::to_string(block));
      other.insert(block * 32768, bytes, block * 32768, 32768);
      other.insert(block * 32768, bytes, block * 32768, 32768);
      leveldb::WriteStringToFile(env.get(), other, "/" + name);
      DumpOne(env.get(), "/" + name, name + " with two blocks " + std::to_string(block));
    }
  }
}

int Make(const std::string& directory) {
  Options options;
  options.create_if_missing = true;
  leveldb::DB* db = nullptr;
  if (!leveldb::DB::Open(options, directory, &db).ok()) return 1;
  for (const auto& entry : Some(500, 500, leveldb::BytewiseComparator())) {
    db->Put(leveldb::WriteOptions(), entry.first, entry.second);
  }
  delete db;
  if (!leveldb::DB::Open(options, directory, &db).ok()) return 1;
  // The last log has records of several blocks, of many changes, and empty ones.
  for (int i = 0; i < 30; i++) {
    leveldb::WriteBatch batch;
    for (int j = 0; j < i; j++) batch.Put("b" + std::to_string(j), std::string(i, '\n'));
    for (int j = 0; j < i / 2; j++) batch.Delete("b" + std::to_string(j));
    db->Write(leveldb::WriteOptions(), &batch);
    if (i % 5 == 0) db->Put(leveldb::WriteOptions(), "large", std::string(i * 3000, 'L'));
  }
  delete db;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "make") return Make(argv[2]);
  if (argc != 4 || std::string(argv[1]) != "run") return 2;
  Memory();
  Dumps(argv[3]);
  return 0;
}
