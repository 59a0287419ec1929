/* A program for LevelDB's C interface that prints what it gets: scripts/dropin-test
 * compares that with what LevelDB itself gives. Usage: dropin DIRECTORY (a new one). */

#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char* err = NULL;

static void said(const char* what) {
  printf("%s: %s\n", what, err == NULL ? "fine" : "an error");
  leveldb_free(err);
  err = NULL;
}

static void show(const char* what, const char* bytes, size_t size) {
  printf("%s: ", what);
  if (bytes == NULL) printf("nothing\n");
  else printf("%zu bytes %.*s\n", size, (int)size, bytes);
}

static void get(leveldb_t* db, const leveldb_readoptions_t* options, const char* key) {
  size_t size = 99;
  char* value = leveldb_get(db, options, key, strlen(key), &size, &err);
  show(key, value, size);
  leveldb_free(value);
  said("get");
}

static void walk(leveldb_t* db, const leveldb_readoptions_t* options, int backwards) {
  leveldb_iterator_t* iter = leveldb_create_iterator(db, options);
  printf("valid before: %d\n", leveldb_iter_valid(iter));
  if (backwards) leveldb_iter_seek_to_last(iter);
  else leveldb_iter_seek_to_first(iter);
  while (leveldb_iter_valid(iter)) {
    size_t size;
    const char* bytes = leveldb_iter_key(iter, &size);
    show("key", bytes, size);
    bytes = leveldb_iter_value(iter, &size);
    show("value", bytes, size);
    if (backwards) leveldb_iter_prev(iter);
    else leveldb_iter_next(iter);
  }
  leveldb_iter_seek(iter, "b", 1);
  printf("at b: %d\n", leveldb_iter_valid(iter));
  leveldb_iter_get_error(iter, &err);
  said("walk");
  leveldb_iter_destroy(iter);
}

static void on_put(void* state, const char* k, size_t klen, const char* v, size_t vlen) {
  ++*(int*)state;
  show("put", k, klen);
  show("of", v, vlen);
}

static void on_delete(void* state, const char* k, size_t klen) {
  ++*(int*)state;
  show("delete", k, klen);
}

static int reversed(void* state, const char* a, size_t alen, const char* b, size_t blen) {
  const size_t shared = alen < blen ? alen : blen;
  const int order = memcmp(b, a, shared);
  (void)state;
  return order != 0 ? order : alen < blen ? 1 : alen > blen ? -1 : 0;
}

static const char* name(void* state) { return (const char*)state; }
static void nothing(void* state) { (void)state; }

static char* make_filter(void* state, const char* const* keys, const size_t* lengths, int count,
                         size_t* length) {
  (void)state, (void)keys, (void)lengths, (void)count;
  *length = 4;
  return strdup("fake");
}

static uint8_t may_match(void* state, const char* key, size_t length, const char* filter,
                         size_t filter_length) {
  (void)state, (void)key, (void)length, (void)filter, (void)filter_length;
  return 1;
}

static void run(const char* directory, leveldb_options_t* options) {
  leveldb_readoptions_t* reads = leveldb_readoptions_create();
  leveldb_writeoptions_t* writes = leveldb_writeoptions_create();
  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  leveldb_writebatch_t* more = leveldb_writebatch_create();
  const leveldb_snapshot_t* snapshot;
  leveldb_t* db;
  leveldb_t* second;
  char key[32], value[200];
  int i, changes = 0;

  leveldb_options_set_create_if_missing(options, 0);
  db = leveldb_open(options, directory, &err);
  printf("open of nothing: %d\n", db != NULL);
  said("open");
  leveldb_options_set_create_if_missing(options, 1);
  db = leveldb_open(options, directory, &err);
  said("open");
  second = leveldb_open(options, directory, &err);
  printf("opened twice: %d\n", second != NULL);
  said("second open");

  leveldb_put(db, writes, "a", 1, "first", 5, &err);
  leveldb_put(db, writes, "", 0, "empty key", 9, &err);
  leveldb_put(db, writes, "empty", 5, "", 0, &err);
  leveldb_writeoptions_set_sync(writes, 1);
  leveldb_put(db, writes, "c", 1, "third", 5, &err);
  said("puts");
  get(db, reads, "a");
  get(db, reads, "");
  get(db, reads, "empty");
  get(db, reads, "b");
  leveldb_writebatch_put(batch, "b", 1, "second", 6);
  leveldb_writebatch_delete(batch, "a", 1);
  leveldb_writebatch_put(more, "d", 1, "fourth", 6);
  leveldb_writebatch_append(batch, more);
  leveldb_writebatch_iterate(batch, &changes, on_put, on_delete);
  printf("changes: %d\n", changes);
  snapshot = leveldb_create_snapshot(db);
  leveldb_write(db, writes, batch, &err);
  said("write");
  leveldb_writebatch_clear(batch);
  leveldb_writebatch_iterate(batch, &changes, on_put, on_delete);
  printf("changes: %d\n", changes);
  walk(db, reads, 0);
  walk(db, reads, 1);
  leveldb_readoptions_set_snapshot(reads, snapshot);
  leveldb_readoptions_set_fill_cache(reads, 0);
  leveldb_readoptions_set_verify_checksums(reads, 1);
  walk(db, reads, 0);
  get(db, reads, "a");
  get(db, reads, "b");
  leveldb_readoptions_set_snapshot(reads, NULL);
  leveldb_release_snapshot(db, snapshot);
  leveldb_writeoptions_set_sync(writes, 0);
  for (i = 0; i < 20000; i++) {
    snprintf(key, sizeof key, "k%06d", i * 7919 % 20000);
    memset(value, 'a' + i % 26, sizeof value);
    leveldb_put(db, writes, key, strlen(key), value, sizeof value, &err);
  }
  said("20,000 puts");
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  leveldb_compact_range(db, "k", 1, "l", 1);
  {
    const char* starts[1] = {"k000000"};
    const char* limits[1] = {"k010000"};
    size_t lengths[1] = {7};
    uint64_t sizes[1] = {0};
    char* stats = leveldb_property_value(db, "leveldb.stats");
    char* unknown = leveldb_property_value(db, "leveldb.unheard-of");
    char* files = leveldb_property_value(db, "leveldb.num-files-at-level0");
    leveldb_approximate_sizes(db, 1, starts, lengths, limits, lengths, sizes);
    printf("stats: %d, unknown: %d, files: %s\n", stats != NULL, unknown != NULL, files);
    leveldb_free(stats);
    leveldb_free(unknown);
    leveldb_free(files);
  }
  leveldb_delete(db, writes, "d", 1, &err);
  leveldb_delete(db, writes, "never", 5, &err);
  said("deletes");
  leveldb_close(db);
  leveldb_options_set_error_if_exists(options, 1);
  db = leveldb_open(options, directory, &err);
  printf("exists: %d\n", db == NULL);
  said("open");
  leveldb_options_set_error_if_exists(options, 0);
  db = leveldb_open(options, directory, &err);
  said("open again");
  get(db, reads, "d");
  get(db, reads, "k012345");
  leveldb_close(db);
  leveldb_writebatch_destroy(batch);
  leveldb_writebatch_destroy(more);
  leveldb_readoptions_destroy(reads);
  leveldb_writeoptions_destroy(writes);
  leveldb_repair_db(options, directory, &err);
  said("repair");
  db = leveldb_open(options, directory, &err);
  said("open what was repaired");
  leveldb_close(db);
  leveldb_destroy_db(options, directory, &err);
  said("destroy");
}

int main(int argc, char** argv) {
  char directory[512];
  leveldb_options_t* options = leveldb_options_create();
  leveldb_cache_t* cache = leveldb_cache_create_lru(1 << 20);
  leveldb_env_t* env = leveldb_create_default_env();
  leveldb_filterpolicy_t* bloom = leveldb_filterpolicy_create_bloom(10);
  leveldb_comparator_t* order = leveldb_comparator_create((void*)"test.Reversed", nothing,
                                                          reversed, name);
  leveldb_filterpolicy_t* fake = leveldb_filterpolicy_create((void*)"test.Fake", nothing,
                                                             make_filter, may_match, name);
  if (argc != 2) return 2;
  leveldb_options_set_env(options, env);
  leveldb_options_set_info_log(options, NULL);
  leveldb_options_set_cache(options, cache);
  leveldb_options_set_write_buffer_size(options, 256 << 10);
  leveldb_options_set_paranoid_checks(options, 1);
  leveldb_options_set_max_open_files(options, 100);
  leveldb_options_set_block_size(options, 1024);
  leveldb_options_set_block_restart_interval(options, 8);
  leveldb_options_set_max_file_size(options, 1 << 20);
  leveldb_options_set_compression(options, leveldb_no_compression);
  leveldb_options_set_compression(options, leveldb_snappy_compression);
  leveldb_options_set_filter_policy(options, bloom);
  snprintf(directory, sizeof directory, "%s/plain", argv[1]);
  run(directory, options);
  leveldb_options_set_comparator(options, order);
  leveldb_options_set_filter_policy(options, fake);
  snprintf(directory, sizeof directory, "%s/reversed", argv[1]);
  run(directory, options);
  printf("version %d.%d\n", leveldb_major_version(), leveldb_minor_version());
  leveldb_options_destroy(options);
  leveldb_cache_destroy(cache);
  leveldb_filterpolicy_destroy(bloom);
  leveldb_filterpolicy_destroy(fake);
  leveldb_comparator_destroy(order);
  leveldb_env_destroy(env);
  return 0;
}
