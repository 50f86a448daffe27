/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events and device memory: two streams each copy in, multiply and copy out, so that one's copies overlap
 * the other's arithmetic; events measure them on the device's clock. */
#include "check.h"

enum { size = 256, streams = 2 };
static const uint64_t bytes = (uint64_t)size * size * sizeof(float);

struct work {
  sg_stream *stream;
  sg_event *start, *end;
  sg_buffer *a, *c;
  float *host;
};

static float *address(sg_buffer *buffer) {
  void *data;
  check(sg_buffer_data(buffer, &data), "sg_buffer_data");
  return data;
}

static void prepare(sg_context *context, struct work *work) {
  void *host;
  check(sg_stream_create(context, 0, &work->stream), "sg_stream_create");
  check(sg_event_create(context, &work->start), "sg_event_create");
  check(sg_event_create(context, &work->end), "sg_event_create");
  check(sg_buffer_create(context, bytes, &work->a), "sg_buffer_create");
  check(sg_buffer_create(context, bytes, &work->c), "sg_buffer_create");
  check(sg_host_alloc(context, bytes, &host), "sg_host_alloc"); /* pinned: copies run at full speed */
  work->host = host;
}

/* Everything on one stream runs in the order of these calls, none of which waits. */
static void submit_all(sg_context *context, struct work *work) {
  sg_submit submit = SG_SUBMIT_INIT;
  float *a = address(work->a), *c = address(work->c);
  submit.stream = work->stream;
  check(sg_event_record(work->start, work->stream), "sg_event_record");
  check(sg_copy_async(context, a, work->host, bytes, &submit, NULL), "sg_copy_async");
  check(sg_sgemm_async(context, SG_LAYOUT_COLUMN_MAJOR, SG_TRANSPOSE_N, SG_TRANSPOSE_T, size, size, size, 1.0f, a, size,
                       a, size, 0.0f, c, size, &submit, NULL),
        "sg_sgemm_async");
  check(sg_copy_async(context, work->host, c, bytes, &submit, NULL), "sg_copy_async");
  check(sg_event_record(work->end, work->stream), "sg_event_record");
}

static void finish(sg_context *context, struct work *work) {
  sg_stream_release(work->stream);
  sg_event_release(work->start);
  sg_event_release(work->end);
  sg_buffer_release(work->a);
  sg_buffer_release(work->c);
  check(sg_host_free(context, work->host), "sg_host_free");
}

int main(int argc, char **argv) {
  sg_context *context = open_context(argc, argv);
  struct work work[streams];
  int i, j;
  for (i = 0; i < streams; ++i) {
    prepare(context, &work[i]);
    for (j = 0; j < size * size; ++j) work[i].host[j] = (float)(i + 1);
  }
  for (i = 0; i < streams; ++i) submit_all(context, &work[i]);
  for (i = 0; i < streams; ++i) {
    double seconds;
    check(sg_event_wait(work[i].end, SG_FOREVER), "sg_event_wait");
    check(sg_event_elapsed(work[i].start, work[i].end, &seconds), "sg_event_elapsed");
    printf("stream %d: %.1f us\n", i, seconds * 1e6);
    for (j = 0; j < size * size; ++j)
      expect(work[i].host[j] == (float)(size * (i + 1) * (i + 1)), "a matrix of equal numbers times itself");
  }
  for (i = 0; i < streams; ++i) finish(context, &work[i]);
  sg_context_release(context);
  return 0;
}
