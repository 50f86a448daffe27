/* SPDX-License-Identifier: Apache-2.0 */
/* Data parallel training: each device of a context has a copy of a network and a part of the samples. The gradients of
 * a step are summed over the devices by one call, and each device then makes the same step, so the copies stay equal to
 * the bit. No thread and no stream for each device: one thread submits all steps, and the memory orders them.
 *
 * The network, of two layers, learns the digits of data/digits.csv. The same training on one device must come to the
 * same parameters, up to rounding. Usage: 12_data_parallel data/digits.csv [devices], such as cuda:0,1 or cuda:all */
#include <math.h>
#include <string.h>

#include "check.h"

enum { learned = 1296, tested = 501, pixels = 64, inner = 32, classes = 10, steps = 50, most_devices = 8 };
enum { w1 = 0, b1 = w1 + pixels * inner, w2 = b1 + inner, b2 = w2 + inner * classes, parameter_count = b2 + classes };

static float pixel[learned + tested][pixels], initial[parameter_count];
static int32_t label[learned + tested];

/* A device's copy of the network, and its samples. */
typedef struct replica {
  sg_buffer *memory;
  float *parameters, *gradients, *momentum, *x, *hidden, *scores, *dscores, *dhidden;
  int32_t *labels;
  int rows;
} replica;

static void load(const char *path) {
  FILE *file = fopen(path, "r");
  int i, j;
  expect(file != NULL, "the file of digits cannot be opened");
  for (i = 0; i < learned + tested; ++i) {
    const int at = i * 7 % (learned + tested); /* in the file one writer's digits follow another's */
    for (j = 0; j < pixels; ++j) {
      expect(fscanf(file, "%f,", &pixel[at][j]) == 1, "a line has 64 pixels");
      pixel[at][j] /= 16;
    }
    expect(fscanf(file, "%d", &label[at]) == 1, "a line ends with its digit");
  }
  fclose(file);
}

static sg_matrix matrix(float *data, int rows, int cols) {
  sg_matrix made = {NULL, 0, 0, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
  made.data = data;
  made.rows = rows;
  made.cols = cols;
  return made;
}

/* Memory on a device for that many of the samples, from the first one on. */
static void open_replica(sg_context *context, replica *r, int device, int first, int rows) {
  const size_t floats = 3 * (size_t)parameter_count + (size_t)rows * (pixels + 2 * inner + 2 * classes + 1);
  static const float zeros[parameter_count];
  sg_buffer_options options = SG_BUFFER_OPTIONS_INIT;
  void *data;
  options.device = device;
  check(sg_buffer_create(context, floats * sizeof(float), &options, &r->memory), "sg_buffer_create");
  check(sg_buffer_data(r->memory, &data), "sg_buffer_data");
  r->parameters = data;
  r->gradients = r->parameters + parameter_count;
  r->momentum = r->gradients + parameter_count;
  r->x = r->momentum + parameter_count;
  r->hidden = r->x + rows * pixels;
  r->dhidden = r->hidden + rows * inner;
  r->scores = r->dhidden + rows * inner;
  r->dscores = r->scores + rows * classes;
  r->labels = (int32_t *)(void *)(r->dscores + rows * classes);
  r->rows = rows;
  check(sg_copy(context, r->parameters, initial, sizeof initial, NULL), "sg_copy");
  check(sg_copy(context, r->momentum, zeros, sizeof zeros, NULL), "sg_copy");
  check(sg_copy(context, r->x, pixel[first], (size_t)rows * sizeof pixel[0], NULL), "sg_copy");
  check(sg_copy(context, r->labels, label + first, (size_t)rows * sizeof label[0], NULL), "sg_copy");
}

static void forward(sg_context *context, const replica *r) {
  sg_linear_desc layer = SG_LINEAR_DESC_INIT;
  layer.x = matrix(r->x, r->rows, pixels);
  layer.w = matrix(r->parameters + w1, pixels, inner);
  layer.bias = r->parameters + b1;
  layer.y = matrix(r->hidden, r->rows, inner);
  layer.activation = SG_ACTIVATION_RELU;
  check(sg_linear_async(context, &layer, NULL, NULL), "sg_linear_async");
  layer.x = layer.y;
  layer.w = matrix(r->parameters + w2, inner, classes);
  layer.bias = r->parameters + b2;
  layer.y = matrix(r->scores, r->rows, classes);
  layer.activation = SG_ACTIVATION_NONE;
  check(sg_linear_async(context, &layer, NULL, NULL), "sg_linear_async");
}

/* The gradients of the mean loss of all samples, of this replica's part of them. */
static void backward(sg_context *context, const replica *r) {
  sg_cross_entropy_backward_desc loss = SG_CROSS_ENTROPY_BACKWARD_DESC_INIT;
  sg_linear_backward_desc layer = SG_LINEAR_BACKWARD_DESC_INIT;
  sg_elementwise_desc relu = SG_ELEMENTWISE_DESC_INIT;
  loss.x = matrix(r->scores, r->rows, classes);
  loss.indices = r->labels;
  loss.dx = matrix(r->dscores, r->rows, classes);
  loss.scale = 1.0 / learned;
  check(sg_cross_entropy_backward_async(context, &loss, NULL, NULL), "sg_cross_entropy_backward_async");
  layer.dy = loss.dx;
  layer.x = matrix(r->hidden, r->rows, inner);
  layer.w = matrix(r->parameters + w2, inner, classes);
  layer.dx = matrix(r->dhidden, r->rows, inner);
  layer.dw = matrix(r->gradients + w2, inner, classes);
  layer.dbias = r->gradients + b2;
  check(sg_linear_backward_async(context, &layer, NULL, NULL), "sg_linear_backward_async");
  relu.function = SG_FUNCTION_RELU_GRADIENT;
  relu.a = relu.c = layer.dx;
  relu.b = layer.x;
  check(sg_elementwise_async(context, &relu, NULL, NULL), "sg_elementwise_async");
  layer.dy = relu.c;
  layer.x = matrix(r->x, r->rows, pixels);
  layer.dx.data = NULL;
  layer.dw = matrix(r->gradients + w1, pixels, inner);
  layer.dbias = r->gradients + b1;
  check(sg_linear_backward_async(context, &layer, NULL, NULL), "sg_linear_backward_async");
}

static void step(sg_context *context, const replica *all, int count) {
  sg_all_reduce_desc sum = SG_ALL_REDUCE_DESC_INIT;
  sg_sgd_desc sgd = SG_SGD_DESC_INIT;
  void *gradients[most_devices];
  int i;
  for (i = 0; i < count; ++i) {
    forward(context, &all[i]);
    backward(context, &all[i]);
    gradients[i] = all[i].gradients;
  }
  sum.operands = gradients;
  sum.operand_count = count;
  sum.elements = parameter_count;
  check(sg_all_reduce_async(context, &sum, NULL, NULL), "sg_all_reduce_async");
  for (i = 0; i < count; ++i) {
    sgd.parameters = all[i].parameters;
    sgd.gradient = all[i].gradients;
    sgd.momentum_buffer = all[i].momentum;
    sgd.elements = parameter_count;
    sgd.rate = 0.3;
    sgd.momentum = 0.9;
    check(sg_sgd_async(context, &sgd, NULL, NULL), "sg_sgd_async");
  }
}

/* Trains on that many devices, and fetches the parameters. */
static void train(sg_context *context, int devices, float *parameters) {
  replica all[most_devices];
  float other[parameter_count];
  int i;
  for (i = 0; i < devices; ++i) {
    const int first = learned * i / devices;
    open_replica(context, &all[i], i, first, learned * (i + 1) / devices - first);
  }
  for (i = 0; i < steps; ++i) step(context, all, devices);
  check(sg_copy(context, parameters, all[0].parameters, sizeof other, NULL), "sg_copy");
  for (i = 1; i < devices; ++i) {
    check(sg_copy(context, other, all[i].parameters, sizeof other, NULL), "sg_copy");
    expect(memcmp(other, parameters, sizeof other) == 0, "the copies of the network differ");
  }
  for (i = 0; i < devices; ++i) check(sg_buffer_release(all[i].memory), "sg_buffer_release");
}

/* Which share of the other digits a network reads. */
static double accuracy(sg_context *context, const float *parameters) {
  static float scores[tested][classes];
  replica r;
  int i, j, right = 0;
  open_replica(context, &r, 0, learned, tested);
  check(sg_copy(context, r.parameters, parameters, sizeof initial, NULL), "sg_copy");
  forward(context, &r);
  check(sg_copy(context, scores, r.scores, sizeof scores, NULL), "sg_copy");
  for (i = 0; i < tested; ++i) {
    int best = 0;
    for (j = 1; j < classes; ++j)
      if (scores[i][j] > scores[i][best]) best = j;
    right += best == label[learned + i];
  }
  check(sg_buffer_release(r.memory), "sg_buffer_release");
  return (double)right / tested;
}

int main(int argc, char **argv) {
  static float by_all[parameter_count], by_one[parameter_count];
  sg_context *context;
  int32_t devices;
  uint32_t random = 1;
  double difference = 0;
  int i;
  expect(argc > 1, "usage: 12_data_parallel data/digits.csv [devices]");
  load(argv[1]);
  for (i = 0; i < parameter_count; ++i) {
    random = random * 1664525u + 1013904223u;
    if (i < b1 || (i >= w2 && i < b2))
      initial[i] = ((float)(random >> 8) / 16777216.0f - 0.5f) * (i < b1 ? 0.4f : 0.6f);
  }
  context = open_context(argc - 1, argv + 1);
  check(sg_context_device_count(context, &devices), "sg_context_device_count");
  if (devices > most_devices) devices = most_devices;
  train(context, devices, by_all);
  train(context, 1, by_one);
  for (i = 0; i < parameter_count; ++i) {
    const double apart = fabs((double)by_all[i] - by_one[i]);
    if (!(apart <= difference)) difference = apart;
  }
  printf("%d devices: %.3f of %d other digits are read; one device: %.3f; parameters differ by %.1e at most\n",
         (int)devices, accuracy(context, by_all), tested, accuracy(context, by_one), difference);
  expect(accuracy(context, by_all) > 0.9, "the network does not learn");
  expect(difference < 1e-3, "the sum over devices is another one");
  sg_context_release(context);
  return 0;
}
