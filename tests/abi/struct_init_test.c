/* SPDX-License-Identifier: Apache-2.0 */
/* sg_struct_init gives each struct of the headers the bytes of its INIT macro, whatever version of it the program has.
 */
#include <stddef.h>
#include <string.h>

#include "support/check.h"

enum { ROOM = 4096, LONGER = 72 };

static int structs, shorter;

static void is_refused(const char *name, size_t size, const char *text) {
  unsigned char out[ROOM];
  size_t i;
  memset(out, 0xc3, sizeof out);
  CHECK_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_struct_init(name, out, size));
  CHECK(strstr(sg_last_error_message(), text) != NULL);
  for (i = 0; i < sizeof out; ++i) CHECK(out[i] == 0xc3);
}

/* Of `size` bytes the first are the macro's, but for the size, those behind its struct are 0, and no more are written.
 */
static void is_set(const char *name, const unsigned char *initial, size_t known, int sized, size_t size) {
  unsigned char out[ROOM];
  size_t i, start = sized ? sizeof(size_t) : 0;
  memset(out, 0xc3, sizeof out);
  CHECK_STATUS(SG_STATUS_OK, sg_struct_init(name, out, size));
  if (sized) CHECK(memcmp(out, &size, sizeof size) == 0);
  for (i = start; i < sizeof out; ++i) {
    if (out[i] != (i < size ? i < known ? initial[i] : 0 : 0xc3)) break;
  }
  if (i < sizeof out)
    fprintf(stderr, "%s of %lu bytes: byte %lu is %u\n", name, (unsigned long)size, (unsigned long)i, out[i]);
  CHECK(i == sizeof out);
}

/* `begins`: a member begins there, which is where the struct of an older header may end. */
static void check_struct(const char *name, const void *initial, size_t known, int sized, const unsigned char *begins) {
  size_t size;
  for (size = 0; size <= known; ++size) {
    if (size == known || (size > 0 && size % 8 == 0 && begins[size])) {
      is_set(name, (const unsigned char *)initial, known, sized, size);
      shorter += size < known;
    } else {
      is_refused(name, size, "size is ");
    }
  }
  is_set(name, (const unsigned char *)initial, known, sized, known + LONGER);
  is_refused(name, known + 4, "size is ");
  ++structs;
}

static const char *current;
static const void *current_initial;
static size_t current_size;
static int current_sized;
static unsigned char current_begins[ROOM];

static void finish(void) {
  if (current) check_struct(current, current_initial, current_size, current_sized, current_begins);
  memset(current_begins, 0, sizeof current_begins);
}

#define STRUCT(type, init, is_sized)  \
  finish();                           \
  {                                   \
    static const type initial = init; \
    current = #type;                  \
    current_initial = &initial;       \
    current_size = sizeof initial;    \
    current_sized = is_sized;         \
  }
#define MEMBER(type, member) current_begins[offsetof(type, member)] = 1;

int main(void) {
  sg_gemm_desc desc;
#include "initial_structs.h"
  finish();
  CHECK(structs >= 60 && shorter >= 300);
  is_refused("sg_gem_desc", sizeof desc, "name is sg_gem_desc, which is no struct");
  is_refused("", sizeof desc, "name is ");
  is_refused(NULL, sizeof desc, "name is NULL");
  is_refused("sg_gemm_desc", 65544, "size is 65544; of sg_gemm_desc, which has ");
  CHECK_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_struct_init("sg_gemm_desc", NULL, sizeof desc));
  CHECK(strstr(sg_last_error_message(), "out_struct is NULL") != NULL);
  return check_result();
}
