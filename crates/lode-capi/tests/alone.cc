// What LevelDB aborts on, or loses files by, and the drop-in library does not: says what
// is wrong. usage: alone

#include "tables.h"

#include <leveldb/dumpfile.h>
#include <leveldb/helpers/memenv.h>

#include <memory>

namespace {

bool all_fine = true;

void Check(bool is_fine, const char* what) {
  if (is_fine) return;
  all_fine = false;
  Say("wrong", what);
}

Options Plain() {
  Options options;
  options.compression = leveldb::kNoCompression;
  return options;
}

void WrongCalls() {
  Options options = Plain();
  const Entries entries = Some(300, 50, options.comparator);
  options.block_restart_interval = 1;
  const std::string bytes = Built(options, entries);
  options.block_restart_interval = -3;
  Check(Built(options, entries) == bytes, "an interval below 1 counts as 1");
  for (const char* next : {"b", "a", ""}) {
    Sink sink;
    TableBuilder builder(options, &sink);
    builder.Add("b", "1");
    builder.Add(next, "2");
    builder.Add("c", "3");
    Check(builder.status().IsInvalidArgument(), "a key that is not behind the last one");
    Check(builder.NumEntries() == 1 && !builder.Finish().ok(), "nothing is added behind it");
  }
  {
    Sink sink;
    TableBuilder builder(options, &sink);
    builder.Add("a", "1");
    builder.Add("b", "2");
    Check(builder.Finish().ok() && builder.Finish().ok(), "a table is finished once");
    const size_t size = sink.bytes.size();
    builder.Add("c", "3");
    Check(builder.status().IsInvalidArgument() && sink.bytes.size() == size,
          "nothing is added to a finished table");
  }
  {
    Sink sink;
    TableBuilder builder(options, &sink);
    builder.Add("a", "1");
  }  // neither finished nor abandoned
}

// No byte of a table can be changed so that reading it does more than fail. Whoever
// compares checksums sees the entries of the blocks that are sound, and no others.
void ChangedBytes() {
  Options options = Plain();
  options.block_size = 1000;
  const Entries entries = Some(60, 100, options.comparator);
  const std::string sound = Built(options, entries);
  for (size_t at = 0; at < sound.size(); at++) {
    std::string changed = sound;
    changed[at] = static_cast<char>(changed[at] ^ (at % 2 == 0 ? 0x80 : 0x01));
    Source source(changed);
    for (const bool verify : {false, true}) {
      options.paranoid_checks = verify;
      Table* opened = nullptr;
      if (!Table::Open(options, &source, source.size(), &opened).ok()) continue;
      const std::unique_ptr<Table> table(opened);
      ReadOptions reading;
      reading.verify_checksums = verify;
      const std::unique_ptr<Iterator> iterator(table->NewIterator(reading));
      size_t count = 0;
      bool is_true = true;
      for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) count++;
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), count++) {
        const std::string key = iterator->key().ToString(), value = iterator->value().ToString();
        const auto found = std::find(entries.begin(), entries.end(), std::make_pair(key, value));
        is_true = is_true && found != entries.end();
      }
      for (const auto& entry : entries) iterator->Seek(entry.first);
      if (!verify) continue;
      Check(is_true, "an entry that nobody wrote");
      Check(iterator->status().ok() ? count == 2 * entries.size() : count < 2 * entries.size(),
            "a block that is left out without a word");
      Check(count > entries.size(), "more than a block is left out");
    }
  }
}

void Files() {
  const std::unique_ptr<leveldb::Env> env(leveldb::NewMemEnv(leveldb::Env::Default()));
  leveldb::WritableFile* file = nullptr;
  Check(env->NewAppendableFile("/new", &file).ok() && file->Append("text").ok(), "a new file");
  delete file;
  std::string text;
  Check(leveldb::ReadFileToString(env.get(), "/new", &text).ok() && text == "text",
        "what was appended to a new file");
  Dump full;
  full.calls_max = 2;
  const Entries entries = Some(300, 50, leveldb::BytewiseComparator());
  leveldb::WriteStringToFile(env.get(), Built(Plain(), entries), "/000001.ldb");
  Check(leveldb::DumpFile(env.get(), "/000001.ldb", &full).IsIOError() && full.calls == 3,
        "a dump ends where its file fails");
}

}  // namespace

int main() {
  WrongCalls();
  ChangedBytes();
  Files();
  return all_fine ? 0 : 1;
}
