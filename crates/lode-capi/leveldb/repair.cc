// RepairDB: a new database of what can be read, in the place of the damaged one,
// which is kept beside it. One of LevelDB's stays LevelDB's.

#include <string>
#include <vector>

#include "internal.h"
#include "leveldb/db.h"
#include "leveldb/env.h"

namespace leveldb {

namespace {

const char kCurrent[] = "CURRENT";

// Whether anything is at `path`, also where directories are only parts of names.
bool IsThere(Env* env, const std::string& path) {
  std::vector<std::string> children;
  return env->FileExists(path) || (env->GetChildren(path, &children).ok() && !children.empty());
}

// Moves all but the file that makes it a database.
Status MoveFiles(Env* env, const std::string& from, const std::string& to) {
  std::vector<std::string> children;
  Status status = env->GetChildren(from, &children);
  for (size_t i = 0; status.ok() && i < children.size(); i++) {
    const std::string& name = children[i];
    if (name == "." || name == ".." || name == kCurrent) continue;
    status = env->RenameFile(from + "/" + name, to + "/" + name);
  }
  return status;
}

Status MoveCurrent(Env* env, const std::string& from, const std::string& to) {
  const std::string name = std::string("/") + kCurrent;
  return env->FileExists(from + name) ? env->RenameFile(from + name, to + name) : Status::OK();
}

// Environments rename files, but not always directories. At no time a directory is
// taken for a database that has only some of its files.
Status Exchange(Env* env, const std::string& dbname, const std::string& repaired,
                const std::string& kept) {
  // What is wrong with it shows when the first file is moved.
  env->CreateDir(kept);
  Status status = MoveCurrent(env, dbname, kept);
  if (status.ok()) status = MoveFiles(env, dbname, kept);
  if (status.ok()) status = MoveFiles(env, repaired, dbname);
  if (status.ok()) status = MoveCurrent(env, repaired, dbname);
  if (status.ok()) env->RemoveDir(repaired);
  return status;
}

// LevelDB's repair begins a new database where there is a directory without one.
Status Begin(Env* env, const std::string& dbname, const Options& options) {
  std::vector<std::string> children;
  const Status there = env->GetChildren(dbname, &children);
  if (!there.ok()) return there;
  Options creating = options;
  creating.create_if_missing = true;
  const EngineOptions engine(creating);
  if (!engine.status().ok()) return engine.status();
  lodestore_db* db = nullptr;
  const Status status = StatusOf(lodestore_open(dbname.c_str(), engine.get(), &db));
  lodestore_close(db);
  return status;
}

}  // namespace

Status RepairDB(const std::string& dbname, const Options& options) {
  const EngineOptions engine(options);
  if (!engine.status().ok()) return engine.status();
  Env* const env = IsCallers(options.env) ? options.env : Env::Default();
  const EngineLock lock(dbname, options.env);
  if (!lock.status().ok()) return lock.status();
  const std::string repaired = dbname + ".repaired";
  std::string kept = dbname + ".damaged";
  for (int i = 2; IsThere(env, kept); i++) kept = dbname + ".damaged-" + std::to_string(i);
  lodestore_error* error =
      lodestore_repair(dbname.c_str(), repaired.c_str(), engine.get(), nullptr);
  if (lodestore_error_code(error) == LODESTORE_MISSING) {
    lodestore_error_free(error);
    return Begin(env, dbname, options);
  }
  Status status = StatusOf(error);
  if (!status.ok()) return status;
  if (env != Env::Default()) {
    status = Exchange(env, dbname, repaired, kept);
  } else {
    status = env->RenameFile(dbname, kept);
    if (status.ok()) status = env->RenameFile(repaired, dbname);
  }
  if (status.ok()) return status;
  return Status::IOError(status.ToString(), "what was saved is in " + repaired + ", the rest in " +
                                                dbname + " and " + kept);
}

}  // namespace leveldb
