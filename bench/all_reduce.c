/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of an all-reduce of f32 vectors, one on each device of a context, by their size: predicted, by the bound of
 * the links, and the best of some. Usage: all_reduce DEVICES, as cuda:0,1; nccl_all_reduce.py is NCCL's on the same
 * GPUs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <streamgemm/streamgemm.h>

enum { most_devices = 64, rounds = 20 };

static void check(sg_status status) {
  if (status == SG_STATUS_OK) return;
  fprintf(stderr, "%s\n", sg_last_error_message());
  exit(1);
}

int main(int argc, char **argv) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_context *context = NULL;
  int32_t devices = 0;
  options.device = argc > 1 ? argv[1] : "cuda:all";
  check(sg_context_create(&options, &context));
  check(sg_context_device_count(context, &devices));
  if (devices > most_devices) return fprintf(stderr, "more than %d devices\n", most_devices), 1;
  for (int64_t elements = 1 << 10; elements <= (int64_t)1 << 28; elements *= 4) {
    sg_buffer *buffers[most_devices];
    void *vectors[most_devices];
    for (int32_t i = 0; i < devices; ++i) {
      sg_buffer_options on = SG_BUFFER_OPTIONS_INIT;
      on.device = i;
      check(sg_buffer_create(context, (uint64_t)elements * 4, &on, &buffers[i]));
      check(sg_buffer_data(buffers[i], &vectors[i]));
    }
    sg_all_reduce_desc sum = SG_ALL_REDUCE_DESC_INIT;
    sum.operands = vectors;
    sum.operand_count = devices;
    sum.elements = elements;
    sg_job_statistics did = SG_JOB_STATISTICS_INIT;
    double best = 1e9;
    for (int round = 0; round < rounds; ++round) {
      sg_job *job = NULL;
      check(sg_all_reduce_async(context, &sum, NULL, &job));
      check(sg_job_wait(job, SG_FOREVER, NULL));
      check(sg_job_get_statistics(job, &did));
      sg_job_release(job);
      const double seconds = 1e-9 * (double)(did.end_ns - did.start_ns);
      if (seconds < best) best = seconds;
    }
    const double crossing = 2.0 * (devices - 1) / devices * (double)elements * 4;
    printf("%s %8lld KiB: predicted %7.1f us, bound %7.1f us, best of %d %7.1f us, bus %5.1f GB/s, %d commands\n",
           options.device, (long long)(elements * 4 / 1024), did.predicted_seconds * 1e6, did.bound_seconds * 1e6,
           rounds, best * 1e6, crossing / best * 1e-9, (int)did.commands);
    for (int32_t i = 0; i < devices; ++i) sg_buffer_release(buffers[i]);
  }
  sg_context_release(context);
  return 0;
}
