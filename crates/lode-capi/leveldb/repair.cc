// RepairDB: a new database of what can be read, in the place of the damaged one,
// which is kept beside it.

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "internal.h"
#include "leveldb/db.h"

namespace leveldb {

Status RepairDB(const std::string& dbname, const Options& options) {
  const EngineOptions engine(options);
  if (!engine.status().ok()) return engine.status();
  const std::string repaired = dbname + ".repaired";
  std::string kept = dbname + ".damaged";
  for (int i = 2; ::access(kept.c_str(), F_OK) == 0; i++) {
    kept = dbname + ".damaged-" + std::to_string(i);
  }
  Status status =
      StatusOf(lodestore_repair(dbname.c_str(), repaired.c_str(), engine.get(), nullptr));
  if (!status.ok()) return status;
  if (std::rename(dbname.c_str(), kept.c_str()) != 0) {
    return Status::IOError(dbname, std::strerror(errno));
  }
  if (std::rename(repaired.c_str(), dbname.c_str()) != 0) {
    return Status::IOError(repaired, std::strerror(errno));
  }
  return Status::OK();
}

}  // namespace leveldb
