// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/properties/model.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "backends/cuda/properties/pci.hpp"

namespace sg::cuda {
namespace {

// Fraction of the peak at the highest clock that a large GEMM reaches: measured on an H200 (132 multiprocessors, 1.98
// GHz), where f32 reaches 51 of 66.9 TFLOP/s and the tensor cores about 0.8 of theirs.
struct rates {
  double f64, f32, tf32, f16, bf16, i8, f8;
};

// Multiply-adds of a multiprocessor in a clock, by compute capability (CUDA C++ Programming Guide, arithmetic
// instructions; tensor cores: the architectures' white papers), dense.
struct width {
  int capability;
  double f64, f32, tf32, f16, i8, f8;
};
constexpr width widths[] = {
    {75, 1, 64, 0, 512, 1024, 0},           {80, 64, 64, 512, 1024, 2048, 0},
    {86, 1, 128, 256, 512, 1024, 0},        {89, 1, 128, 256, 512, 1024, 1024},
    {90, 128, 128, 1024, 2048, 4096, 4096}, {100, 64, 128, 2048, 4096, 8192, 8192},
    {103, 1, 128, 2048, 4096, 256, 8192},   {120, 1, 128, 256, 512, 1024, 1024},
};

rates rates_of(const cudaDeviceProp &facts, double clock_hz) {
  const int capability = facts.major * 10 + facts.minor;
  const width *found = &widths[0];
  for (const width &x : widths)
    if (x.capability <= capability) found = &x;
  const double chip = 2 * clock_hz * facts.multiProcessorCount;
  const double of_cores = 0.76, of_tensor_cores = 0.78;
  const double bf16 = chip * (capability >= 80 ? found->f16 * of_tensor_cores : found->f32 * of_cores);
  return {0.9 * chip * found->f64,
          chip * found->f32 * of_cores,
          chip * std::max(found->tf32 * of_tensor_cores, found->f32 * of_cores),
          chip * found->f16 * of_tensor_cores,
          bf16,
          chip * found->i8 * of_tensor_cores,
          chip * std::max(found->f8, found->f16) * of_tensor_cores};
}

// The link's rate, in bytes per second each way; PCIe 4 x16 if unknown.
double link_rate(const pci_device &at) {
  const double nominal = at.link_bytes_per_second();
  return nominal > 0 ? 0.87 * nominal : 25e9;  // measured: 55 of 63 GB/s of PCIe 5 x16
}

int cores() {
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? std::max(1, CPU_COUNT(&allowed)) : 1;
}

class json_text {
 public:
  __attribute__((format(printf, 2, 3))) void add(const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    std::vsnprintf(line, sizeof line, format, args);
    va_end(args);
    text_ += line;
  }
  const std::string &text() const { return text_; }

 private:
  std::string text_;
};

// A kind of GEMM. `tile`: of kernels without split-k; 0: the general one.
struct gemm_kind {
  const char *dtype, *compute;
  double flops;
  int tile;
};

// Measured on an H200. Small GEMMs take some ten times their predicted arithmetic: as many of 32^3 as fill it once 4.5
// us and not 0.34, of 128^3 20 and not 1.4 (the strided batches of bench/results/small.json). A launch takes the
// submitter 14 us (no record is kept).
// GEMMs that fill the chip, sequentially and concurrently (bench/results/resident_quick_card.json, in a chain and not):
// 2048^3 in tf32 51.9 and 47.5 us, 11008x512x4096 161 and 139, 1000x3000x777 in f64 119 and 106. In longer ones the
// last wave is a small part, and two concurrent ones compete for the cache: 8192^3 in bf16 1.41 and 1.43 ms (no record
// is kept).
// Beside GEMMs of 4096^3 in bf16, with no multiprocessors spared, one of high priority takes 72 us at the median and
// 154 at the 99th percentile, with a tenth 32 and 35 (alone 15 and 19), and the others lose 3% of their rate.
void add_dispatch(json_text &json, int units) {
  json.add("\"small_in_flight_commands\": 3, \"large_in_flight_commands\": 2,\n");
  json.add("  \"launch_fills\": 2, \"launch_work_seconds\": 1.5e-6, \"between_launches_seconds\": 100e-6,\n");
  json.add("  \"beside_each_other_seconds\": 1e-3, \"spared_units\": %d", units / 11);
}

}  // namespace

std::string model_of(int ordinal, const cudaDeviceProp &facts) {
  int clock_khz = 0, memory_khz = 0;
  cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, ordinal);
  cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, ordinal);
  const double clock = clock_khz > 0 ? clock_khz * 1e3 : 1.5e9;
  const double memory = memory_khz > 0 ? 2.0 * memory_khz * 1e3 * facts.memoryBusWidth / 8 * 0.83 : 500e9;
  const pci_device at(facts.pciDomainID, facts.pciBusID, facts.pciDeviceID);
  const double link = link_rate(at);
  const rates rate = rates_of(facts, clock);
  // Enough threads for the link, and some cores left to the caller. More than eight reduce the copies' memory
  // bandwidth: f64 1000x1000x5000 on an H200's host of 16 cores took 2.0 ms with six or eight, 2.2 to 2.4 with twelve;
  // tf32 16384^3 50 and 48, bf16 8192^3 6.1 with eight to twelve and 7.3 to 8.1 with six (no record is kept). At least
  // two: a worker that waits for a page of the caller's memory must not delay other jobs.
  const int workers = std::clamp(cores() * 3 / 4, 2, 8);

  json_text json;
  json.add("{\"name\": \"cuda:%d\", \"unified_memory\": false, \"lanes_are_cores\": false,\n", ordinal);
  json.add(" \"memory_bytes\": %zu, \"compute_lanes\": 4, \"lane_depth_commands\": 32,\n", facts.totalGlobalMem);
  json.add(" \"copy_engines\": %d, \"staging_workers\": %d,\n", facts.asyncEngineCount >= 2 ? 2 : 1, workers);
  if (at.numa_node() >= 0) json.add(" \"numa_node\": %d,\n", at.numa_node());
  // Fractions of the link's rate measured on an H200; those of 2-D copies beside a GEMM, which reduces them: rows of 64
  // KiB were copied to the host at 55 GB/s from an idle chip and at 47 beside an f64 GEMM, contiguous bytes at 55 in
  // both cases.
  json.add(" \"link\": {\"in_bytes_per_second\": %.4g, \"out_bytes_per_second\": %.4g,\n", link, link);
  json.add("  \"both_ways_in_bytes_per_second\": %.4g, \"both_ways_out_bytes_per_second\": %.4g,\n", 0.94 * link,
           0.92 * link);
  json.add("  \"pageable_in_bytes_per_second\": %.4g, \"pageable_out_bytes_per_second\": %.4g,\n", 0.11 * link,
           0.18 * link);
  json.add("  \"copy_latency_seconds\": 10e-6, \"copy_gap_seconds\": 5e-6,\n  \"runs\": [");
  constexpr struct {
    int bytes;
    double one_way, both_ways;
  } runs[] = {{256, 0.45, 0.13},   {1024, 0.69, 0.27},  {4096, 0.72, 0.35},  {8192, 0.74, 0.58},  {16384, 0.75, 0.6},
              {32768, 0.77, 0.74}, {65536, 0.85, 0.83}, {131072, 0.9, 0.87}, {196608, 0.99, 0.94}};
  for (const auto &run : runs)
    json.add("%s{\"run_bytes\": %d, \"one_way_bytes_per_second\": %.4g, \"both_ways_bytes_per_second\": %.4g}",
             &run == runs ? "" : ",\n   ", run.bytes, run.one_way * link, run.both_ways * link);
  json.add(
      "]},\n \"staging\": [{\"workers\": 4, \"bytes_per_second\": 34e9}, "
      "{\"workers\": 8, \"bytes_per_second\": 67e9}, {\"workers\": 12, \"bytes_per_second\": 70e9}],\n"
      // Measured on an H200's host: a chunk and its copy took 30 to 35 us together; twelve threads, GB/s: rows of 32
      // KiB 124, 4 KiB 110, 1 KiB 78, 512 bytes 60 (no record is kept).
      " \"staging_gap_seconds\": 25e-6, \"staging_run_bytes\": 500,\n");
  json.add(" \"kernels\": {\"launch_latency_seconds\": 10e-6, \"launch_gap_seconds\": 8e-6, \"units\": %d,\n",
           facts.multiProcessorCount);
  json.add("  \"tile_m_elements\": 128, \"tile_n_elements\": 128, \"split_k_elements\": 256,\n");
  json.add("  \"memory_bytes_per_second\": %.4g,\n  \"gemm\": [", memory);
  // Split precision, including the splitting: 129 and 178 Tflop/s where tf32 and bf16 reached 416 and 799.
  const gemm_kind gemm_kinds[] = {{"f64", "exact", rate.f64, 0},
                                  {"f32", "exact", rate.f32, 0},
                                  {"f32", "tf32", rate.tf32, 256},
                                  {"f32", "3xtf32", std::max(rate.f32, 0.31 * rate.tf32), 256},
                                  {"f32", "bf16x3", std::max(rate.f32, 0.22 * rate.bf16), 256},
                                  {"c64", "exact", rate.f32, 0},
                                  {"c128", "exact", rate.f64, 0},
                                  {"f16", "exact", rate.f16, 256},
                                  {"bf16", "exact", rate.bf16, 256},
                                  {"i8", "exact", rate.i8, 256},
                                  {"f8_e4m3", "exact", rate.f16, 256},
                                  {"f8_e4m3", "f8", rate.f8, 256},
                                  {"f8_e5m2", "exact", rate.f16, 256}};
  for (const gemm_kind &x : gemm_kinds) {
    json.add("%s{\"dtype\": \"%s\", \"compute\": \"%s\", \"flops_per_second\": %.4g", &x == gemm_kinds ? "" : ",\n   ",
             x.dtype, x.compute, x.flops);
    if (x.tile > 0)
      json.add(", \"tile_m_elements\": %d, \"tile_n_elements\": %d, \"split_k_elements\": 0", x.tile, x.tile);
    json.add("}");
  }
  json.add("]},\n \"dispatch\": {");
  add_dispatch(json, facts.multiProcessorCount);
  json.add("},\n \"sources\": {\"chip\": \"the runtime: compute capability %d.%d, %d multiprocessors at %.2f GHz\",\n",
           facts.major, facts.minor, facts.multiProcessorCount, clock / 1e9);
  json.add("  \"shares\": \"of the chip's and the link's peak: measured on one H200\"}}\n");
  return json.text();
}

}  // namespace sg::cuda
