/* SPDX-License-Identifier: Apache-2.0 */
/* Which digit is it? All-pairs nearest neighbours over the 1797 handwritten digits of data/digits.csv.
 *
 * |x - y|^2 = |x|^2 + |y|^2 - 2 x.y, and all the x.y are one matrix product, X * X^T. It is submitted in blocks of
 * rows, a job each; as soon as a block is complete its digits are classified on the host, while the next blocks are
 * multiplied and copied. The accuracies must be the known ones (data/README.md). Usage: 07_nearest_neighbour
 * data/digits.csv [device ...] */
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <time.h>

#include "check.h"

enum { samples = 1797, pixels = 64, classes = 10, learned = 1617, block = 128, blocks = (samples + block - 1) / block };

struct digits {
  float pixel[samples][pixels];
  int label[samples];
  float norm[samples]; /* squared length; exact, as all distances here are: integers below 2^24 */
};

struct score {
  int right, all;
};

static struct digits digits;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void load(const char *path) {
  FILE *file = fopen(path, "r");
  int i, j;
  expect(file != NULL, "the file of digits cannot be opened");
  for (i = 0; i < samples; ++i) {
    for (j = 0; j < pixels; ++j) expect(fscanf(file, "%f,", &digits.pixel[i][j]) == 1, "a line has 64 pixels");
    expect(fscanf(file, "%d", &digits.label[i]) == 1 && digits.label[i] >= 0 && digits.label[i] < classes,
           "a line ends with its digit");
    for (j = 0; j < pixels; ++j) digits.norm[i] += digits.pixel[i][j] * digits.pixel[i][j];
  }
  fclose(file);
}

/* The commonest label among the k <= 5 nearest of the first `count` samples to sample i, itself excepted; the lowest
 * label when several are commonest. `products` are sample i's dot products with all samples. */
static int classify(int i, const float *products, int count, int k) {
  float nearest[5];
  int who[5] = {0}, votes[classes] = {0}, found = 0, j, p, best = 0;
  for (j = 0; j < count; ++j) {
    const float distance = digits.norm[i] + digits.norm[j] - 2 * products[j];
    if (j == i || (found == k && distance >= nearest[k - 1])) continue;
    if (found < k) ++found;
    for (p = found - 1; p > 0 && nearest[p - 1] > distance; --p) nearest[p] = nearest[p - 1], who[p] = who[p - 1];
    nearest[p] = distance;
    who[p] = j;
  }
  for (p = 0; p < found; ++p) ++votes[digits.label[who[p]]];
  for (p = 1; p < classes; ++p)
    if (votes[p] > votes[best]) best = p;
  return best;
}

static void count(struct score *score, int i, int answer) {
  ++score->all;
  score->right += answer == digits.label[i];
}

static int report(const char *name, struct score score, const char *known) {
  char accuracy[16];
  snprintf(accuracy, sizeof accuracy, "%.6f", (double)score.right / score.all);
  printf("%-42s %s (%d of %d), known %s\n", name, accuracy, score.right, score.all, known);
  return strcmp(accuracy, known) == 0;
}

static sg_matrix rows_of(float *data, int rows, int cols) {
  sg_matrix matrix = {NULL, 0, 0, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
  matrix.data = data;
  matrix.rows = rows;
  matrix.cols = cols;
  return matrix;
}

static int rows_in(int b) { return b + 1 < blocks ? block : samples - b * block; }

/* Submits one job a block and returns; the queue delivers the completed ones. */
static void submit_all(sg_context *context, float *x, float *products, sg_queue *queue, sg_job **jobs) {
  int b;
  for (b = 0; b < blocks; ++b) {
    sg_gemm_desc desc = SG_GEMM_DESC_INIT;
    sg_submit submit = SG_SUBMIT_INIT;
    desc.a = rows_of(x + (size_t)b * block * pixels, rows_in(b), pixels);
    desc.b = rows_of(x, samples, pixels);
    desc.op_b = SG_TRANSPOSE_T;
    desc.c = rows_of(products + (size_t)b * block * samples, rows_in(b), samples);
    submit.queue = queue;
    submit.tag = (uint64_t)b;
    check(sg_gemm_async(context, &desc, &submit, &jobs[b]), "sg_gemm_async");
  }
}

static void classify_block(int b, const float *products, struct score *leave_one_out, struct score *split) {
  int i;
  for (i = b * block; i < b * block + rows_in(b); ++i) {
    const float *row = products + (size_t)i * samples;
    count(leave_one_out, i, classify(i, row, samples, 1));
    if (i >= learned) count(split, i, classify(i, row, learned, 5));
  }
}

static void report_overlap(sg_job **jobs, const char *device) {
  int64_t start = INT64_MAX, end = 0;
  double busy = 0;
  int b;
  for (b = 0; b < blocks; ++b) {
    sg_job_statistics did = SG_JOB_STATISTICS_INIT;
    check(sg_job_get_statistics(jobs[b], &did), "sg_job_get_statistics");
    busy += did.busy_seconds;
    if (did.start_ns < start) start = did.start_ns;
    if (did.end_ns > end) end = did.end_ns;
    sg_job_release(jobs[b]);
  }
  printf("%d jobs on %s: commands of %.3f ms in %.3f ms of the device's clock, overlap %.2f\n", blocks, device,
         busy * 1e3, 1e-6 * (double)(end - start), busy * 1e9 / (double)(end - start));
}

/* Returns whether the accuracies are the known ones. */
static int classify_on(int argc, char **argv) {
  sg_device_info info = SG_DEVICE_INFO_INIT;
  struct score leave_one_out = {0, 0}, split = {0, 0};
  sg_context *context;
  sg_queue *queue;
  sg_buffer *buffer;
  sg_job *jobs[blocks];
  void *x, *products;
  int done, right;
  double started;

  context = open_context(argc, argv);
  check(sg_context_get_device_info(context, 0, &info), "sg_context_device");
  check(sg_queue_create(context, &queue), "sg_queue_create");
  check(sg_buffer_create(context, sizeof digits.pixel, &buffer), "sg_buffer_create");
  check(sg_buffer_data(buffer, &x), "sg_buffer_data");
  check(sg_host_alloc(context, sizeof(float) * samples * samples, &products), "sg_host_alloc");

  started = now();
  check(sg_copy(context, x, digits.pixel, sizeof digits.pixel, NULL), "sg_copy");
  submit_all(context, x, products, queue, jobs);
  for (done = 0; done < blocks;) {
    sg_completion ready[blocks];
    int32_t got, i;
    check(sg_queue_next_batch(queue, ready, blocks, SG_FOREVER, &got), "sg_queue_next_batch");
    for (i = 0; i < got; ++i) {
      check(ready[i].status, ready[i].message);
      classify_block((int)ready[i].tag, products, &leave_one_out, &split);
    }
    done += got;
  }
  printf("%d digits, all pairs: %.1f ms\n", samples, (now() - started) * 1e3);
  report_overlap(jobs, info.name);
  right = report("5 neighbours, first 90% against last 10%", split, "0.961111") &
          report("1 neighbour, leave one out", leave_one_out, "0.988314");

  check(sg_host_free(context, products), "sg_host_free");
  sg_buffer_release(buffer);
  sg_queue_release(queue);
  sg_context_release(context);
  return right;
}

int main(int argc, char **argv) {
  int right = 1, i = 2;
  expect(argc > 1, "usage: 07_nearest_neighbour data/digits.csv [device ...]");
  load(argv[1]);
  do { /* open_context() takes the device from argv[1] */
    right &= classify_on(argc > i ? 2 : 1, argv + i - 1);
  } while (++i < argc);
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
