// DumpFile: what the files of LevelDB's databases say, in LevelDB's words.

#include "leveldb/dumpfile.h"

#include <memory>
#include <string>

#include "format.h"
#include "internal.h"
#include "leveldb/iterator.h"
#include "leveldb/table.h"
#include "leveldb/write_batch.h"

namespace leveldb {

namespace {

std::string TextOf(lodestore_value* value) {
  const std::string text = SliceOf(lodestore_value_bytes(value)).ToString();
  lodestore_value_free(value);
  return text;
}

std::string Quoted(const Slice& bytes) {
  return "'" + TextOf(lodestore_leveldb_escaped(BytesOf(bytes))) + "'";
}

// Appends until that fails.
class Output {
 public:
  explicit Output(WritableFile* file) : file_(file) {}
  void Put(const std::string& text) {
    if (status_.ok()) status_ = file_->Append(text);
  }
  const Status& status() const { return status_; }

 private:
  WritableFile* const file_;
  Status status_;
};

class BatchPrinter : public WriteBatch::Handler {
 public:
  explicit BatchPrinter(Output* out) : out_(out) {}
  void Put(const Slice& key, const Slice& value) override {
    out_->Put("  put " + Quoted(key) + " " + Quoted(value) + "\n");
  }
  void Delete(const Slice& key) override { out_->Put("  del " + Quoted(key) + "\n"); }

 private:
  Output* const out_;
};

void PrintBatch(const std::string& place, const Slice& record, Output* out) {
  if (record.size() < WriteBatchInternal::kHeaderBytes) {
    const std::string size = std::to_string(record.size());
    out->Put(place + "log record length " + size + " is too small\n");
    return;
  }
  const WriteBatch batch = WriteBatchInternal::Of(record);
  out->Put(place + "sequence " + std::to_string(WriteBatchInternal::Sequence(record)) + "\n");
  BatchPrinter printer(out);
  const Status status = batch.Iterate(&printer);
  if (!status.ok()) out->Put("  error: " + status.ToString() + "\n");
}

void PrintEdit(const std::string& place, const Slice& record, Output* out) {
  lodestore_value* text = nullptr;
  const Status status = StatusOf(lodestore_leveldb_edit_text(BytesOf(record), &text));
  out->Put(place + (status.ok() ? TextOf(text) : status.ToString() + "\n"));
}

std::string FlawText(const lodestore_leveldb_record& record) {
  // LevelDB numbers the places where it notices: by the type of the fragment.
  const char* number = record.fragment % 2 == 1 ? "(1)" : "(2)";
  switch (record.flaw) {
    case 1: return "checksum mismatch";
    case 2: return "bad record length";
    case 3: return std::string("partial record without end") + number;
    case 4: return std::string("missing start of fragmented record") + number;
    case 5: return "error in middle of record";
    default: return "unknown record type " + std::to_string(record.fragment);
  }
}

using PrintRecord = void (*)(const std::string& place, const Slice& record, Output* out);

Status DumpLog(Env* env, const std::string& fname, PrintRecord print, Output* out) {
  std::string file;
  const Status status = ReadFileToString(env, fname, &file);
  if (!status.ok()) return status;
  const std::unique_ptr<lodestore_leveldb_log, void (*)(lodestore_leveldb_log*)> log(
      lodestore_leveldb_log_open(BytesOf(file)), lodestore_leveldb_log_free);
  lodestore_leveldb_record record;
  while (lodestore_leveldb_log_next(log.get(), &record)) {
    if (record.flaw == 0) {
      print("--- offset " + std::to_string(record.offset) + "; ", SliceOf(record.bytes), out);
    } else {
      const Status flaw = Status::Corruption(FlawText(record));
      out->Put("corruption: " + std::to_string(record.dropped) + " bytes; " + flaw.ToString() +
               "\n");
    }
  }
  return out->status();
}

void PrintEntry(const Slice& key, const Slice& value, Output* out) {
  lodestore_leveldb_key parsed;
  if (!lodestore_leveldb_key_parse(BytesOf(key), &parsed)) {
    out->Put("badkey " + Quoted(key) + " => " + Quoted(value) + "\n");
    return;
  }
  out->Put(Quoted(SliceOf(parsed.user_key)) + " @ " + std::to_string(parsed.sequence) + " : " +
           (parsed.is_put ? "val" : "del") + " => " + Quoted(value) + "\n");
}

Status DumpTable(Env* env, const std::string& fname, Output* out) {
  uint64_t size = 0;
  RandomAccessFile* opened = nullptr;
  Status status = env->GetFileSize(fname, &size);
  if (status.ok()) status = env->NewRandomAccessFile(fname, &opened);
  if (!status.ok()) return status;
  const std::unique_ptr<RandomAccessFile> file(opened);
  Table* found = nullptr;
  // Any order of keys will do to walk over all of them.
  status = Table::Open(Options(), file.get(), size, &found);
  if (!status.ok()) return status;
  const std::unique_ptr<Table> table(found);
  const std::unique_ptr<Iterator> iterator(table->NewIterator(ReadOptions()));
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    PrintEntry(iterator->key(), iterator->value(), out);
  }
  if (!iterator->status().ok()) {
    out->Put("iterator error: " + iterator->status().ToString() + "\n");
  }
  return out->status();
}

}  // namespace

Status DumpFile(Env* env, const std::string& fname, WritableFile* dst) {
  Output out(dst);
  const std::string name = fname.substr(fname.rfind('/') + 1);
  switch (lodestore_leveldb_file_kind(name.c_str())) {
    case 0: return Status::InvalidArgument(fname + ": unknown file type");
    case 2: return DumpLog(env, fname, PrintBatch, &out);
    case 3: return DumpLog(env, fname, PrintEdit, &out);
    case 4: return DumpTable(env, fname, &out);
    default: return Status::InvalidArgument(fname + ": not a dump-able file type");
  }
}

}  // namespace leveldb
