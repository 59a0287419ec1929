/* What lodestore.h promises, as a program that a C or C++ compiler takes:
 * scripts/capi-test compiles and runs it. Usage: promises DIRECTORY (a new one). */

#include "lodestore.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);         \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

#include "memory_fs.h"

static const char* root;

static lodestore_bytes text(const char* string) {
  lodestore_bytes bytes;
  bytes.data = string;
  bytes.size = strlen(string);
  return bytes;
}

static lodestore_bytes none(void) {
  lodestore_bytes bytes;
  bytes.data = NULL;
  bytes.size = 0;
  return bytes;
}

static int equal(lodestore_bytes bytes, const char* string) {
  return bytes.data != NULL && bytes.size == strlen(string) &&
         memcmp(bytes.data, string, bytes.size) == 0;
}

/* Nothing may have failed. */
static void ok(lodestore_error* error) {
  if (error != NULL) {
    fprintf(stderr, "%s\n", lodestore_error_message(error));
    exit(1);
  }
}

/* It must have failed so. */
static void fails(lodestore_error* error, int code) {
  CHECK(error != NULL);
  CHECK(lodestore_error_code(error) == code);
  CHECK(strlen(lodestore_error_message(error)) > 0);
  lodestore_error_free(error);
}

static void path_of(char* path, size_t size, const char* name) {
  CHECK((size_t)snprintf(path, size, "%s/%s", root, name) < size);
}

static lodestore_options* creating(void) {
  lodestore_options* options = lodestore_options_create();
  ok(lodestore_options_set(options, "create_if_missing", "true"));
  return options;
}

static lodestore_db* open_with(const char* name, const lodestore_options* options) {
  char path[512];
  lodestore_db* db = NULL;
  path_of(path, sizeof path, name);
  ok(lodestore_open(path, options, &db));
  CHECK(db != NULL);
  return db;
}

static void has(const lodestore_family* family, const lodestore_read_options* options,
                const char* key, const char* expected) {
  lodestore_value* value = NULL;
  ok(lodestore_get(family, options, text(key), &value));
  if (expected == NULL) {
    CHECK(value == NULL);
  } else {
    CHECK(value != NULL && equal(lodestore_value_bytes(value), expected));
  }
  lodestore_value_free(value);
}

static void what_is_put_is_got(void) {
  lodestore_options* options = creating();
  lodestore_db* db = open_with("plain", options);
  const lodestore_family* family = lodestore_default_family(db);
  lodestore_write_options synced = {1, 0, 0};
  char buffer[4] = "xyz";
  size_t size = 7;
  uint8_t found = 7;
  lodestore_value* values[3];
  lodestore_bytes keys[3];
  int i;

  ok(lodestore_put(family, NULL, text("apple"), text("red")));
  ok(lodestore_put(family, &synced, text("banana"), text("yellow")));
  ok(lodestore_put(family, NULL, none(), text("the empty key")));
  ok(lodestore_put(family, NULL, text("empty"), none()));
  has(family, NULL, "apple", "red");
  has(family, NULL, "", "the empty key");
  has(family, NULL, "empty", "");
  has(family, NULL, "cherry", NULL);
  ok(lodestore_delete(family, NULL, text("apple")));
  ok(lodestore_delete(family, NULL, text("never there")));
  has(family, NULL, "apple", NULL);

  ok(lodestore_get_into(family, NULL, text("banana"), buffer, 3, &size, &found));
  CHECK(found == 1 && size == 6 && memcmp(buffer, "yel", 4) == 0);
  ok(lodestore_get_into(family, NULL, text("banana"), NULL, 0, &size, &found));
  CHECK(found == 1 && size == 6);
  ok(lodestore_get_into(family, NULL, text("cherry"), buffer, 3, &size, &found));
  CHECK(found == 0 && size == 0);

  keys[0] = text("banana");
  keys[1] = text("cherry");
  keys[2] = text("empty");
  ok(lodestore_multi_get(family, NULL, keys, 3, values, NULL));
  CHECK(equal(lodestore_value_bytes(values[0]), "yellow"));
  CHECK(values[1] == NULL && lodestore_value_bytes(values[1]).data == NULL);
  CHECK(lodestore_value_bytes(values[2]).size == 0);
  for (i = 0; i < 3; i++) lodestore_value_free(values[i]);
  ok(lodestore_multi_get(family, NULL, NULL, 0, NULL, NULL));

  lodestore_close(db);
  /* All of it is there when it is opened again. */
  db = open_with("plain", NULL);
  has(lodestore_default_family(db), NULL, "banana", "yellow");
  lodestore_close(db);
  lodestore_options_free(options);
}

static void wrong_calls_are_errors(void) {
  lodestore_options* options = creating();
  lodestore_db* db = open_with("wrong", options);
  lodestore_db* again = (lodestore_db*)options;
  const lodestore_family* family = lodestore_default_family(db);
  lodestore_bytes nowhere;
  lodestore_value* value = NULL;
  lodestore_cursor* cursor = NULL;
  char path[512];

  nowhere.data = NULL;
  nowhere.size = 5;
  path_of(path, sizeof path, "wrong");
  fails(lodestore_open(path, options, &again), LODESTORE_BUSY);
  CHECK(again == NULL);
  path_of(path, sizeof path, "nothing here");
  fails(lodestore_open(path, NULL, &again), LODESTORE_MISSING);
  fails(lodestore_open(NULL, NULL, &again), LODESTORE_INVALID_ARGUMENT);
  fails(lodestore_open(path, NULL, NULL), LODESTORE_INVALID_ARGUMENT);
  fails(lodestore_put(NULL, NULL, text("k"), text("v")), LODESTORE_INVALID_ARGUMENT);
  fails(lodestore_put(family, NULL, nowhere, text("v")), LODESTORE_INVALID_ARGUMENT);
  fails(lodestore_get(family, NULL, nowhere, &value), LODESTORE_INVALID_ARGUMENT);
  fails(lodestore_get(family, NULL, text("k"), NULL), LODESTORE_INVALID_ARGUMENT);
  fails(lodestore_merge(family, NULL, text("k"), text("v")), LODESTORE_INVALID_ARGUMENT);
  fails(lodestore_options_set(options, "no_such_option", "1"), LODESTORE_INVALID_ARGUMENT);
  fails(lodestore_options_set(options, NULL, "1"), LODESTORE_INVALID_ARGUMENT);
  fails(lodestore_options_set_family(options, NULL, "block_bytes", "x"),
        LODESTORE_INVALID_ARGUMENT);
  fails(lodestore_options_set_comparator(options, NULL, NULL), LODESTORE_INVALID_ARGUMENT);
  fails(lodestore_cursor_create(NULL, NULL, &cursor), LODESTORE_INVALID_ARGUMENT);
  fails(lodestore_cursor_status(NULL), LODESTORE_INVALID_ARGUMENT);
  fails(lodestore_write(db, NULL, NULL, NULL), LODESTORE_INVALID_ARGUMENT);
  CHECK(lodestore_property(family, "no such property") == NULL);
  CHECK(lodestore_property(family, NULL) == NULL);
  CHECK(lodestore_error_code(NULL) == LODESTORE_OK);

  /* A cursor that was never placed, or has left, is nowhere. */
  ok(lodestore_cursor_create(family, NULL, &cursor));
  CHECK(!lodestore_cursor_valid(cursor) && !lodestore_cursor_next(cursor));
  CHECK(!lodestore_cursor_prev(cursor) && lodestore_cursor_key(cursor).data == NULL);
  CHECK(!lodestore_cursor_first(cursor) && lodestore_cursor_value(cursor).data == NULL);
  CHECK(!lodestore_cursor_first(NULL) && !lodestore_cursor_valid(NULL));
  ok(lodestore_cursor_status(cursor));

  /* So is one that was sent to a key that is no bytes, and it says why. */
  ok(lodestore_put(family, NULL, text("k"), text("v")));
  lodestore_cursor_free(cursor);
  ok(lodestore_cursor_create(family, NULL, &cursor));
  CHECK(lodestore_cursor_first(cursor) && !lodestore_cursor_seek(cursor, nowhere));
  CHECK(!lodestore_cursor_valid(cursor) && lodestore_cursor_key(cursor).data == NULL);
  CHECK(!lodestore_cursor_next(cursor) && !lodestore_cursor_prev(cursor));
  CHECK(lodestore_cursor_value(cursor).data == NULL);
  fails(lodestore_cursor_status(cursor), LODESTORE_INVALID_ARGUMENT);
  CHECK(lodestore_cursor_seek(cursor, text("k")) && lodestore_cursor_valid(cursor));
  ok(lodestore_cursor_status(cursor));
  CHECK(!lodestore_cursor_seek_for_prev(cursor, nowhere));
  fails(lodestore_cursor_status(cursor), LODESTORE_INVALID_ARGUMENT);
  CHECK(!lodestore_cursor_seek(NULL, nowhere));
  CHECK(lodestore_cursor_last(cursor));
  ok(lodestore_cursor_status(cursor));
  lodestore_cursor_free(cursor);

  lodestore_error_free(NULL);
  lodestore_value_free(NULL);
  lodestore_options_free(NULL);
  lodestore_batch_free(NULL);
  lodestore_cursor_free(NULL);
  lodestore_snapshot_free(NULL);
  lodestore_close(NULL);
  lodestore_close(db);
  lodestore_options_free(options);
}

static void cursors_walk_both_ways(void) {
  lodestore_options* options = creating();
  lodestore_db* db = open_with("cursor", options);
  const lodestore_family* family = lodestore_default_family(db);
  lodestore_read_options* bounded = lodestore_read_options_create();
  lodestore_cursor* cursor = NULL;
  lodestore_snapshot* before;
  char key[16];
  int i;

  for (i = 0; i < 1000; i++) {
    snprintf(key, sizeof key, "key%04d", i);
    ok(lodestore_put(family, NULL, text(key), text(key + 3)));
  }
  before = lodestore_snapshot_create(db);
  CHECK(lodestore_snapshot_sequence(before) == 1000);
  ok(lodestore_delete_range(family, NULL, text("key0100"), text("key0900")));

  ok(lodestore_cursor_create(family, NULL, &cursor));
  for (i = 0; i < 200; i++) {
    CHECK(i == 0 ? lodestore_cursor_first(cursor) : lodestore_cursor_next(cursor));
    snprintf(key, sizeof key, "key%04d", i < 100 ? i : i + 800);
    CHECK(equal(lodestore_cursor_key(cursor), key));
    CHECK(equal(lodestore_cursor_value(cursor), key + 3));
  }
  CHECK(!lodestore_cursor_next(cursor));
  CHECK(lodestore_cursor_seek(cursor, text("key0100")));
  CHECK(equal(lodestore_cursor_key(cursor), "key0900"));
  CHECK(lodestore_cursor_seek_for_prev(cursor, text("key0500")));
  CHECK(equal(lodestore_cursor_key(cursor), "key0099"));
  CHECK(lodestore_cursor_last(cursor) && lodestore_cursor_prev(cursor));
  CHECK(equal(lodestore_cursor_key(cursor), "key0998"));

  ok(lodestore_read_options_set_snapshot(bounded, before));
  ok(lodestore_read_options_set_bounds(bounded, text("key0200"), text("key0203")));
  ok(lodestore_read_options_set_fill_cache(bounded, 0));
  lodestore_snapshot_free(before);
  has(family, bounded, "key0500", "0500");
  has(family, NULL, "key0500", NULL);
  lodestore_cursor_free(cursor);
  ok(lodestore_cursor_create(family, bounded, &cursor));
  for (i = 0; lodestore_cursor_valid(cursor) || i == 0; i++) {
    CHECK(i == 0 ? lodestore_cursor_first(cursor) : 1);
    if (!lodestore_cursor_next(cursor)) break;
  }
  CHECK(i == 2);
  ok(lodestore_read_options_set_bounds(bounded, none(), none()));
  ok(lodestore_read_options_set_prefix(bounded, text("key030")));
  lodestore_cursor_free(cursor);
  ok(lodestore_cursor_create(family, bounded, &cursor));
  CHECK(lodestore_cursor_last(cursor) && equal(lodestore_cursor_key(cursor), "key0309"));
  /* The cursor keeps the database open, whoever goes first. */
  lodestore_close(db);
  CHECK(lodestore_cursor_first(cursor) && equal(lodestore_cursor_key(cursor), "key0300"));
  lodestore_cursor_free(cursor);
  lodestore_read_options_free(bounded);
  lodestore_options_free(options);
}

struct counts {
  int kinds[8];
  size_t bytes;
};

static void count(void* context, const lodestore_record* record) {
  struct counts* counts = (struct counts*)context;
  CHECK(record->kind < 8);
  counts->kinds[record->kind]++;
  counts->bytes += record->key.size + record->value.size;
}

static void batches_are_written_together(void) {
  lodestore_options* options = creating();
  lodestore_db* db;
  const lodestore_family* family;
  lodestore_family* other = NULL;
  lodestore_batch* batch = lodestore_batch_create();
  lodestore_batch* more = lodestore_batch_create();
  struct counts counts;
  uint64_t sequence = 0;
  lodestore_value* names;

  memset(&counts, 0, sizeof counts);
  ok(lodestore_options_use_merge_operator(options, "counts", "add_u64", none()));
  db = open_with("batch", options);
  family = lodestore_default_family(db);
  ok(lodestore_family_open(db, "counts", &other));
  CHECK(other == NULL);
  ok(lodestore_family_open_or_create(db, "counts", &other));
  CHECK(other != NULL && lodestore_family_id(other) != 0);

  ok(lodestore_batch_put(batch, NULL, text("a"), text("1")));
  ok(lodestore_batch_put(batch, family, text("b"), text("2")));
  ok(lodestore_batch_delete(batch, family, text("a")));
  ok(lodestore_batch_merge(more, other, text("n"), text("\1\0\0\0\0\0\0\0")));
  fails(lodestore_batch_put(NULL, family, text("a"), text("1")), LODESTORE_INVALID_ARGUMENT);
  lodestore_batch_clear(more);
  {
    uint64_t one = 1;
    lodestore_bytes operand;
    operand.data = &one;
    operand.size = sizeof one;
    ok(lodestore_batch_merge(more, other, text("n"), operand));
    ok(lodestore_batch_merge(more, other, text("n"), operand));
  }
  ok(lodestore_batch_append(batch, more));
  ok(lodestore_batch_delete_range(batch, NULL, text("x"), text("y")));
  ok(lodestore_batch_single_delete(batch, NULL, text("b")));
  ok(lodestore_batch_log_only(batch, text("a note")));
  CHECK(lodestore_batch_count(batch) == 8 && lodestore_batch_size(batch) > 30);
  ok(lodestore_batch_iterate(batch, &counts, count));
  CHECK(counts.kinds[LODESTORE_PUT] == 2 && counts.kinds[LODESTORE_DELETE] == 1);
  CHECK(counts.kinds[LODESTORE_MERGE] == 2 && counts.kinds[LODESTORE_DELETE_RANGE] == 1);
  CHECK(counts.kinds[LODESTORE_SINGLE_DELETE] == 1 && counts.kinds[LODESTORE_LOG_ONLY] == 1);
  ok(lodestore_write(db, NULL, batch, &sequence));
  CHECK(sequence == 7 && lodestore_latest_sequence(db) == 7);
  has(family, NULL, "a", NULL);
  has(family, NULL, "b", NULL);
  {
    uint64_t sum = 0;
    size_t size = 0;
    uint8_t found = 0;
    ok(lodestore_get_into(other, NULL, text("n"), &sum, sizeof sum, &size, &found));
    CHECK(found && size == sizeof sum && sum == 2);
  }
  names = lodestore_family_names(db);
  CHECK(equal(lodestore_value_bytes(names), "default\ncounts"));
  lodestore_value_free(names);
  lodestore_family_free(other);
  ok(lodestore_family_drop(db, "counts"));
  fails(lodestore_family_drop(db, "counts"), LODESTORE_MISSING);
  ok(lodestore_family_create(db, "counts", options, &other));
  lodestore_family_free(other);
  lodestore_batch_free(batch);
  lodestore_batch_free(more);
  lodestore_close(db);
  lodestore_options_free(options);
}

struct callbacks {
  int calls;
  int destroyed;
};

static int backwards(void* context, lodestore_bytes a, lodestore_bytes b) {
  const size_t shared = a.size < b.size ? a.size : b.size;
  int order = shared == 0 ? 0 : memcmp(b.data, a.data, shared);
  ((struct callbacks*)context)->calls++;
  if (order != 0) return order;
  return a.size == b.size ? 0 : a.size < b.size ? 1 : -1;
}

static void longest(void* context, lodestore_bytes key, lodestore_bytes existing,
                    const lodestore_bytes* operands, size_t count, lodestore_result* result) {
  lodestore_bytes best = existing;
  size_t i;
  ((struct callbacks*)context)->calls++;
  if (equal(key, "hopeless")) {
    /* What is no bytes is no result, whatever was given before. */
    lodestore_result_set(result, operands[0]);
    best.data = NULL;
    best.size = 3;
    lodestore_result_set(result, best);
    return;
  }
  for (i = 0; i < count; i++) {
    if (best.data == NULL || operands[i].size > best.size) best = operands[i];
  }
  lodestore_result_set(result, best);
}

static void destroyed(void* context) { ((struct callbacks*)context)->destroyed++; }

static void the_callers_functions_are_called(void) {
  struct callbacks order = {0, 0}, merge = {0, 0};
  lodestore_comparator comparator;
  lodestore_merge_operator merge_operator;
  lodestore_options* options = creating();
  lodestore_db* db;
  const lodestore_family* family;
  lodestore_cursor* cursor = NULL;
  lodestore_value* value = NULL;
  char path[512];

  memset(&comparator, 0, sizeof comparator);
  comparator.context = &order;
  comparator.destroy = destroyed;
  comparator.compare = backwards;
  fails(lodestore_options_set_comparator(options, NULL, &comparator), LODESTORE_INVALID_ARGUMENT);
  comparator.name = "test.backwards";
  comparator.equal_means_identical = 1;
  memset(&merge_operator, 0, sizeof merge_operator);
  merge_operator.context = &merge;
  merge_operator.destroy = destroyed;
  merge_operator.name = "test.longest";
  merge_operator.full_merge = longest;
  ok(lodestore_options_set_comparator(options, NULL, &comparator));
  ok(lodestore_options_set_merge_operator(options, NULL, &merge_operator));
  db = open_with("callbacks", options);
  family = lodestore_default_family(db);
  ok(lodestore_put(family, NULL, text("a"), text("1")));
  ok(lodestore_put(family, NULL, text("c"), text("3")));
  ok(lodestore_merge(family, NULL, text("b"), text("22")));
  ok(lodestore_merge(family, NULL, text("b"), text("4444")));
  ok(lodestore_merge(family, NULL, text("b"), text("333")));
  ok(lodestore_merge(family, NULL, text("hopeless"), text("x")));
  ok(lodestore_flush(family));
  has(family, NULL, "b", "4444");
  fails(lodestore_get(family, NULL, text("hopeless"), &value), LODESTORE_MERGE_FAILED);
  ok(lodestore_cursor_create(family, NULL, &cursor));
  CHECK(lodestore_cursor_seek(cursor, text("c")) && equal(lodestore_cursor_key(cursor), "c"));
  CHECK(lodestore_cursor_next(cursor) && equal(lodestore_cursor_key(cursor), "b"));
  CHECK(equal(lodestore_cursor_value(cursor), "4444"));
  CHECK(lodestore_cursor_next(cursor) && equal(lodestore_cursor_key(cursor), "a"));
  lodestore_cursor_free(cursor);
  CHECK(order.calls > 0 && merge.calls > 0);
  lodestore_close(db);
  path_of(path, sizeof path, "callbacks");
  fails(lodestore_open(path, NULL, &db), LODESTORE_INVALID_ARGUMENT);
  CHECK(order.destroyed == 0 && merge.destroyed == 0);
  lodestore_options_free(options);
  CHECK(order.destroyed == 1 && merge.destroyed == 1);
}

struct told {
  int opened, flushed, closed, others, destroyed;
};

static void note(void* context, int event, lodestore_bytes line) {
  struct told* told = (struct told*)context;
  CHECK(line.size > 0 && memchr(line.data, '\n', line.size) == NULL);
  if (event == LODESTORE_EVENT_OPENED) {
    told->opened++;
  } else if (event == LODESTORE_EVENT_FLUSHED) {
    told->flushed++;
  } else if (event == LODESTORE_EVENT_CLOSED) {
    told->closed++;
  } else {
    told->others++;
  }
}

static void told_no_more(void* context) { ((struct told*)context)->destroyed++; }

static void a_listener_is_told_what_happens(void) {
  struct told told = {0, 0, 0, 0, 0};
  lodestore_listener listener = {&told, told_no_more, NULL};
  lodestore_options* options = creating();
  lodestore_db* db;

  fails(lodestore_options_set_listener(options, &listener), LODESTORE_INVALID_ARGUMENT);
  listener.tell = note;
  ok(lodestore_options_set_listener(options, &listener));
  db = open_with("listener", options);
  ok(lodestore_put(lodestore_default_family(db), NULL, text("a"), text("1")));
  ok(lodestore_flush(lodestore_default_family(db)));
  lodestore_close(db);
  CHECK(told.opened == 1 && told.flushed == 1 && told.closed == 1 && told.others == 0);
  CHECK(told.destroyed == 0);
  lodestore_options_free(options);
  CHECK(told.destroyed == 1);
}

static void upkeep_does_what_it_says(void) {
  lodestore_options* options = creating();
  lodestore_cache* cache = lodestore_cache_create(1 << 20);
  lodestore_db* db;
  lodestore_db* copy;
  const lodestore_family* family;
  lodestore_table_writer* writer = NULL;
  lodestore_value* value;
  lodestore_range range;
  const char* names[] = {"memtable_bytes"};
  const char* sizes[] = {"16MiB"};
  const char* wrong[] = {"no"};
  const char* paths[1];
  uint64_t number = 0;
  uint64_t size = 0;
  char path[512], key[32];
  int i;

  ok(lodestore_options_set_cache(options, cache));
  ok(lodestore_options_set_family(options, NULL, "compression", "none"));
  ok(lodestore_options_apply_text(options, "[family]\nblock_bytes = 2KiB\n"));
  value = lodestore_options_text(options);
  CHECK(strstr((const char*)lodestore_value_bytes(value).data, "block_bytes = 2KiB") != NULL);
  lodestore_value_free(value);
  db = open_with("upkeep", options);
  family = lodestore_default_family(db);
  for (i = 0; i < 5000; i++) {
    snprintf(key, sizeof key, "key%06d", i);
    ok(lodestore_put(family, NULL, text(key), text("a value of some length")));
  }
  ok(lodestore_sync_log(db));
  ok(lodestore_flush_all(db));
  ok(lodestore_compact_range(family, none(), none()));
  ok(lodestore_rewrite_range(family, text("key000100"), none()));
  ok(lodestore_wait_for_background(db));
  ok(lodestore_resume(db));
  range.begin = text("key");
  range.end = text("key003000");
  ok(lodestore_approximate_sizes(family, &range, 1, &size));
  CHECK(size > 50000 && size < 200000);
  has(family, NULL, "key000100", "a value of some length");
  CHECK(lodestore_cache_used_bytes(cache) > 0);
  ok(lodestore_counter(db, "read.gets", &number));
  CHECK(number == 1);
  fails(lodestore_counter(db, "no.such", &number), LODESTORE_INVALID_ARGUMENT);
  value = lodestore_property_names();
  CHECK(lodestore_value_bytes(value).size > 100);
  lodestore_value_free(value);
  value = lodestore_property(family, "lodestore.levels");
  CHECK(value != NULL && lodestore_value_bytes(value).size > 10);
  lodestore_value_free(value);
  ok(lodestore_set_family_options(family, names, sizes, 1));
  fails(lodestore_set_family_options(family, names, wrong, 1), LODESTORE_INVALID_ARGUMENT);
  fails(lodestore_set_options(db, names, sizes, 1), LODESTORE_INVALID_ARGUMENT);
  ok(lodestore_verify(db));

  path_of(path, sizeof path, "copy");
  ok(lodestore_checkpoint(db, path));
  fails(lodestore_checkpoint(db, path), LODESTORE_INVALID_ARGUMENT);
  ok(lodestore_open_read_only(path, NULL, &copy));
  has(lodestore_default_family(copy), NULL, "key004999", "a value of some length");
  lodestore_close(copy);
  value = NULL;
  ok(lodestore_list_families(path, NULL, &value));
  CHECK(equal(lodestore_value_bytes(value), "default"));
  lodestore_value_free(value);
  {
    char target[512];
    path_of(target, sizeof target, "repaired");
    ok(lodestore_repair(path, target, NULL, &value));
    CHECK(lodestore_value_bytes(value).size == 0);
    lodestore_value_free(value);
    ok(lodestore_open_or_adopt(target, NULL, &copy));
    has(lodestore_default_family(copy), NULL, "key004999", "a value of some length");
    lodestore_close(copy);
  }
  ok(lodestore_destroy(path, NULL));
  fails(lodestore_open(path, NULL, &copy), LODESTORE_MISSING);

  ok(lodestore_delete_files_in_range(family, none(), none(), &number));
  CHECK(number > 0);
  path_of(path, sizeof path, "new.table");
  paths[0] = path;
  ok(lodestore_table_writer_create(path, options, NULL, &writer));
  ok(lodestore_table_writer_put(writer, text("k1"), text("v1")));
  fails(lodestore_table_writer_put(writer, text("k0"), text("v0")), LODESTORE_INVALID_ARGUMENT);
  ok(lodestore_table_writer_delete(writer, text("k2")));
  ok(lodestore_table_writer_delete_range(writer, text("l"), text("m")));
  fails(lodestore_table_writer_merge(writer, text("k3"), text("v")), LODESTORE_INVALID_ARGUMENT);
  ok(lodestore_table_writer_finish(writer));
  fails(lodestore_table_writer_finish(writer), LODESTORE_INVALID_ARGUMENT);
  lodestore_table_writer_free(writer);
  ok(lodestore_ingest(family, paths, 1, NULL));
  has(family, NULL, "k1", "v1");
  lodestore_close(db);
  lodestore_cache_free(cache);
  lodestore_options_free(options);
}

static void the_log_can_be_followed(void) {
  lodestore_options* options = creating();
  lodestore_db* db = open_with("leader", options);
  lodestore_db* follower = open_with("follower", options);
  const lodestore_family* family = lodestore_default_family(db);
  lodestore_log_pin* pin = lodestore_log_pin_create(db, 1);
  lodestore_updates* updates = NULL;
  lodestore_batch* batch = NULL;
  uint64_t first = 0;
  int batches = 0;

  ok(lodestore_put(family, NULL, text("a"), text("1")));
  ok(lodestore_put(family, NULL, text("b"), text("2")));
  ok(lodestore_delete(family, NULL, text("a")));
  ok(lodestore_updates_since(db, 1, &updates));
  for (;;) {
    ok(lodestore_updates_next(updates, &first, &batch));
    if (batch == NULL) break;
    ok(lodestore_apply_at(follower, first, batch));
    lodestore_batch_free(batch);
    batches++;
  }
  CHECK(batches == 3 && lodestore_latest_sequence(follower) == 3);
  has(lodestore_default_family(follower), NULL, "a", NULL);
  has(lodestore_default_family(follower), NULL, "b", "2");
  lodestore_updates_free(updates);
  lodestore_log_pin_free(pin);
  lodestore_close(follower);
  lodestore_close(db);
  lodestore_options_free(options);
}

/* A life on a file system of the caller's: everything is there, the system's own files
 * are left alone, and all that was opened is closed. */
static void live_in_memory(int can_do_more) {
  memory_fs fs;
  lodestore_file_system functions;
  lodestore_options* options = creating();
  lodestore_options* of_table = lodestore_options_create();
  lodestore_write_options synced = {1, 0, 0};
  lodestore_db* db = NULL;
  lodestore_db* copy = NULL;
  const lodestore_family* family;
  lodestore_family* other = NULL;
  lodestore_table_writer* writer = NULL;
  lodestore_cursor* cursor = NULL;
  lodestore_value* value = NULL;
  const char* paths[] = {"shelf/new.table"};
  char key[32];
  int i, round;

  memory_begin(&fs);
  functions = memory_functions(&fs);
  if (can_do_more) memory_more_functions(&functions);
  ok(lodestore_options_set_file_system(options, &functions));
  functions.destroy = NULL;
  ok(lodestore_options_set_file_system(of_table, &functions));
  ok(lodestore_options_set_family(options, NULL, "memtable_bytes", "64KiB"));
  for (round = 0; round < 3; round++) {
    ok(lodestore_open("shelf/db", options, &db));
    fails(lodestore_open("shelf/db", options, &copy), LODESTORE_BUSY);
    family = lodestore_default_family(db);
    ok(lodestore_family_open_or_create(db, "other", &other));
    for (i = 0; i < 2000; i++) {
      snprintf(key, sizeof key, "key%06d", i * 7 % 2000);
      ok(lodestore_put(family, NULL, text(key), text("a value of some length")));
      if (i % 10 == 0) ok(lodestore_put(other, &synced, text(key), text(key)));
    }
    if (round == 1) ok(lodestore_flush_all(db));
    ok(lodestore_compact_range(family, none(), none()));
    ok(lodestore_delete(family, &synced, text("key000000")));
    lodestore_family_free(other);
    lodestore_close(db);
    CHECK(fs.open == 0 && fs.destroyed == 0);
  }
  /* The last that goes closes everything, also what was compacted away meanwhile. */
  ok(lodestore_open("shelf/db", options, &db));
  family = lodestore_default_family(db);
  ok(lodestore_cursor_create(family, NULL, &cursor));
  CHECK(lodestore_cursor_first(cursor));
  ok(lodestore_rewrite_range(family, none(), none()));
  CHECK(lodestore_cursor_next(cursor));
  lodestore_close(db);
  CHECK(lodestore_cursor_next(cursor));
  lodestore_cursor_free(cursor);
  CHECK(fs.open == 0);
  ok(lodestore_open_or_adopt("shelf/db", options, &db));
  family = lodestore_default_family(db);
  ok(lodestore_family_open(db, "other", &other));
  has(family, NULL, "key000000", NULL);
  has(family, NULL, "key001999", "a value of some length");
  has(other, NULL, "key000070", "key000070");
  ok(lodestore_table_writer_create(paths[0], of_table, NULL, &writer));
  ok(lodestore_table_writer_put(writer, text("taken in"), text("yes")));
  ok(lodestore_table_writer_finish(writer));
  lodestore_table_writer_free(writer);
  ok(lodestore_ingest(family, paths, 1, NULL));
  ok(lodestore_verify(db));
  ok(lodestore_checkpoint(db, "copies/of/shelf"));
  lodestore_family_free(other);
  lodestore_close(db);

  ok(lodestore_open_read_only("copies/of/shelf", options, &copy));
  has(lodestore_default_family(copy), NULL, "taken in", "yes");
  lodestore_close(copy);
  ok(lodestore_list_families("copies/of/shelf", options, &value));
  CHECK(equal(lodestore_value_bytes(value), "default\nother"));
  lodestore_value_free(value);
  ok(lodestore_repair("copies/of/shelf", "repaired", options, NULL));
  ok(lodestore_open("repaired", options, &db));
  has(lodestore_default_family(db), NULL, "taken in", "yes");
  lodestore_close(db);

  ok(lodestore_destroy("repaired", options));
  ok(lodestore_destroy("copies/of/shelf", options));
  ok(lodestore_destroy("shelf/db", options));
  fails(lodestore_open_read_only("shelf/db", options, &db), LODESTORE_MISSING);
  CHECK(fopen("shelf/new.table", "r") == NULL && fopen("repaired/LOCK", "r") == NULL);
  CHECK(fs.open == 0 && fs.destroyed == 0);
  lodestore_options_free(options);
  lodestore_options_free(of_table);
  CHECK(fs.destroyed == 1);
  CHECK(memory_end(&fs) == 1); /* the table that was taken in */
}

static void a_file_system_of_the_callers_runs_everything(void) {
  live_in_memory(0);
  live_in_memory(1);
}

/* Writes until that fails, and gives the failure. */
static lodestore_error* write_until_it_fails(lodestore_db* db, int* written) {
  lodestore_write_options synced = {1, 0, 0};
  char key[32];
  for (*written = 0; *written < 1000; ++*written) {
    lodestore_error* error;
    snprintf(key, sizeof key, "key%06d", *written);
    error = lodestore_put(lodestore_default_family(db), &synced, text(key), text(key));
    if (error != NULL) return error;
  }
  return NULL;
}

static void failures_of_a_file_system_are_told(void) {
  memory_fs fs;
  lodestore_file_system functions, wrong;
  lodestore_options* options = creating();
  lodestore_error* error;
  lodestore_db* db = NULL;
  char key[32];
  int i, written = 0;

  memory_begin(&fs);
  functions = memory_functions(&fs);
  fails(lodestore_options_set_file_system(options, NULL), LODESTORE_INVALID_ARGUMENT);
  fails(lodestore_options_set_file_system(NULL, &functions), LODESTORE_INVALID_ARGUMENT);
  wrong = functions;
  wrong.size--;
  fails(lodestore_options_set_file_system(options, &wrong), LODESTORE_INVALID_ARGUMENT);
  wrong = functions;
  wrong.rename = NULL;
  fails(lodestore_options_set_file_system(options, &wrong), LODESTORE_INVALID_ARGUMENT);
  CHECK(fs.destroyed == 0 && lodestore_error_reason(NULL) == NULL);
  ok(lodestore_options_set_file_system(options, &functions));

  /* While it is opened. */
  fs.fail_from = 1;
  fs.fail_with = EROFS;
  error = lodestore_open("db", options, &db);
  CHECK(db == NULL && lodestore_error_reason(error) == NULL);
  CHECK(strstr(lodestore_error_message(error), "Read-only file system") != NULL);
  fails(error, LODESTORE_IO);

  /* While it is written, and again: what failed before stands in the way. */
  fs.fail_from = 0;
  ok(lodestore_open("db", options, &db));
  fs.fail_from = fs.calls + 60;
  fs.fail_with = EIO;
  fs.fail_text = "the shelf has fallen down";
  error = write_until_it_fails(db, &written);
  CHECK(written > 0 && strcmp(lodestore_error_reason(error), fs.fail_text) == 0);
  CHECK(strstr(lodestore_error_message(error), fs.fail_text) != NULL);
  fails(error, LODESTORE_IO);
  error = lodestore_put(lodestore_default_family(db), NULL, text("more"), text("more"));
  CHECK(strcmp(lodestore_error_reason(error), fs.fail_text) == 0);
  fails(error, LODESTORE_READ_ONLY);
  fails(lodestore_flush(lodestore_default_family(db)), LODESTORE_READ_ONLY);
  has(lodestore_default_family(db), NULL, "key000000", "key000000");
  lodestore_close(db);
  CHECK(fs.open == 0);

  fs.fail_from = 0;
  ok(lodestore_open("db", options, &db));
  for (i = 0; i < written; i++) {
    snprintf(key, sizeof key, "key%06d", i);
    has(lodestore_default_family(db), NULL, key, key);
  }
  lodestore_close(db);
  lodestore_options_free(options);
  CHECK(fs.open == 0 && fs.destroyed == 1);
  memory_end(&fs);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  root = argv[1];
  what_is_put_is_got();
  wrong_calls_are_errors();
  cursors_walk_both_ways();
  batches_are_written_together();
  the_callers_functions_are_called();
  a_listener_is_told_what_happens();
  upkeep_does_what_it_says();
  the_log_can_be_followed();
  a_file_system_of_the_callers_runs_everything();
  failures_of_a_file_system_are_told();
  printf("all promises are kept\n");
  return 0;
}
