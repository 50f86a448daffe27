// SPDX-License-Identifier: Apache-2.0
// The peers of the suites on a GPU: cuBLAS between plain copies, cuBLASXt, single cuBLAS and cuBLASLt calls. Many GEMMs
// at once: cuda_many.cpp.
#include <cublasXt.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "cuda_gpu.hpp"

namespace sg::cli {
namespace {

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

struct footprints {
  std::size_t a, b, c;
  footprints(const gpu_gemm &p, std::size_t size)
      : a(std::size_t(p.lda) * (p.op_a == SG_TRANSPOSE_N ? p.k : p.m) * size),
        b(std::size_t(p.ldb) * (p.op_b == SG_TRANSPOSE_N ? p.n : p.k) * size),
        c(std::size_t(p.ldc) * p.n * size) {}
  std::size_t all() const { return padded(a) + padded(b) + padded(c); }
  static std::size_t padded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
};

// The same leading dimensions on the device, so that each operand is one contiguous copy.
double copy_multiply_copy(const gpu_gemm &p) {
  types t;
  if (p.devices > 1 || !types_of(p, t)) return -1;
  gpu &g = the_gpu();
  const footprints bytes(p, t.size);
  char *a = g.memory(bytes.all());
  if (a == nullptr) return -1;
  char *b = a + footprints::padded(bytes.a), *c = b + footprints::padded(bytes.b);
  return timed([&] {
    CHECK(cudaMemcpyAsync(a, p.a, bytes.a, cudaMemcpyHostToDevice, g.stream));
    CHECK(cudaMemcpyAsync(b, p.b, bytes.b, cudaMemcpyHostToDevice, g.stream));
    g.multiply(p, t, a, b, c);
    CHECK(
        cudaMemcpy2DAsync(p.c, p.ldc * t.size, c, p.ldc * t.size, p.m * t.size, p.n, cudaMemcpyDeviceToHost, g.stream));
    CHECK(cudaStreamSynchronize(g.stream));
  });
}

bool is_pinned(const void *memory) {
  cudaPointerAttributes attributes{};
  CHECK(cudaPointerGetAttributes(&attributes, memory));
  return attributes.type == cudaMemoryTypeHost;
}

// A hand-written pipeline for pinned memory: a panel of B's columns and all of A are copied in, then B's other panels
// during the GEMM of each panel, and each panel of C is copied out as soon as it is computed.
double by_panels(const gpu_gemm &p) {
  constexpr int panels = 32;
  types t;
  if (p.devices > 1 || !types_of(p, t) || p.op_b != SG_TRANSPOSE_N || p.n % panels != 0 || !is_pinned(p.a)) return -1;
  gpu &g = the_gpu();
  static const struct side_streams {
    cudaStream_t in, out;
    std::vector<cudaEvent_t> events{2 * panels};
    side_streams() {
      for (cudaStream_t *each : {&in, &out}) CHECK(cudaStreamCreateWithFlags(each, cudaStreamNonBlocking));
      for (cudaEvent_t &each : events) CHECK(cudaEventCreateWithFlags(&each, cudaEventDisableTiming));
    }
  } side;
  const footprints bytes(p, t.size);
  char *a = g.memory(bytes.all());
  if (a == nullptr) return -1;
  char *b = a + footprints::padded(bytes.a), *c = b + footprints::padded(bytes.b);
  gpu_gemm panel = p;
  panel.n = p.n / panels;
  const std::size_t bytes_b = std::size_t(p.ldb * panel.n) * t.size, bytes_c = std::size_t(p.ldc * panel.n) * t.size;
  const auto follow = [](cudaStream_t later, cudaStream_t earlier, cudaEvent_t by) {
    CHECK(cudaEventRecord(by, earlier));
    CHECK(cudaStreamWaitEvent(later, by, 0));
  };
  return timed([&] {
    for (int i = 0; i < panels; ++i) {
      char *const its_b = b + i * bytes_b, *const its_c = c + i * bytes_c;
      CHECK(cudaMemcpyAsync(its_b, static_cast<const char *>(p.b) + i * bytes_b, bytes_b, cudaMemcpyHostToDevice,
                            side.in));
      if (i == 0) CHECK(cudaMemcpyAsync(a, p.a, bytes.a, cudaMemcpyHostToDevice, side.in));
      follow(g.stream, side.in, side.events[std::size_t(2 * i)]);
      g.multiply(panel, t, a, its_b, its_c);
      follow(side.out, g.stream, side.events[std::size_t(2 * i + 1)]);
      CHECK(cudaMemcpy2DAsync(static_cast<char *>(p.c) + i * bytes_c, p.ldc * t.size, its_c, p.ldc * t.size,
                              p.m * t.size, panel.n, cudaMemcpyDeviceToHost, side.out));
    }
    CHECK(cudaStreamSynchronize(side.out));
  });
}

// The driver clears freed memory with the copy engines; 5 GB, which cuBLASXt frees after a call with blocks of 8192,
// took it 15 ms: a copy of 40 MB meanwhile took 1.78 ms instead of 0.72 (from a trace, not recorded).
constexpr std::chrono::milliseconds to_clear_memory{50};

// A handle keeps the devices that it was given first.
cublasXtHandle_t xt_of(const gpu_gemm &p) {
  static std::map<std::vector<int>, cublasXtHandle_t> handles;
  std::vector<int> numbers = {0};
  if (p.device_numbers != nullptr) numbers.assign(p.device_numbers, p.device_numbers + p.devices);
  const auto [found, is_new] = handles.try_emplace(numbers);
  if (is_new) {
    CHECK(cublasXtCreate(&found->second));
    CHECK(cublasXtDeviceSelect(found->second, int(numbers.size()), numbers.data()));
  }
  return found->second;
}

double by_xt(const gpu_gemm &p, int block, bool pin) {
  if (p.compute != SG_COMPUTE_EXACT || (p.dtype != SG_DTYPE_F32 && p.dtype != SG_DTYPE_F64)) return -1;
  const cublasXtHandle_t xt = xt_of(p);
  CHECK(cublasXtSetBlockDim(xt, block));
  CHECK(cublasXtSetPinningMemMode(xt, pin ? CUBLASXT_PINNING_ENABLED : CUBLASXT_PINNING_DISABLED));
  const auto size = [](std::int64_t x) { return std::size_t(x); };
  const double seconds = timed([&] {
    if (p.dtype == SG_DTYPE_F32)
      CHECK(cublasXtSgemm(xt, op_of(p.op_a), op_of(p.op_b), size(p.m), size(p.n), size(p.k), &constants.f32[0],
                          static_cast<const float *>(p.a), size(p.lda), static_cast<const float *>(p.b), size(p.ldb),
                          &constants.f32[1], static_cast<float *>(p.c), size(p.ldc)));
    else
      CHECK(cublasXtDgemm(xt, op_of(p.op_a), op_of(p.op_b), size(p.m), size(p.n), size(p.k), &constants.f64[0],
                          static_cast<const double *>(p.a), size(p.lda), static_cast<const double *>(p.b), size(p.ldb),
                          &constants.f64[1], static_cast<double *>(p.c), size(p.ldc)));
  });
  std::this_thread::sleep_for(to_clear_memory);
  return seconds;
}

struct host_peer {
  const char *name;
  std::function<double(const gpu_gemm &)> run;
};
const std::vector<host_peer> &host_peers() {
  static const std::vector<host_peer> all = {
      {"copy, cuBLAS, copy", copy_multiply_copy},
      {"CUDA, 32 panels", by_panels},
      {"cuBLASXt 2048", [](const gpu_gemm &p) { return by_xt(p, 2048, false); }},
      {"cuBLASXt 4096", [](const gpu_gemm &p) { return by_xt(p, 4096, false); }},
      {"cuBLASXt 8192", [](const gpu_gemm &p) { return by_xt(p, 8192, false); }},
      {"cuBLASXt 4096, pinning", [](const gpu_gemm &p) { return by_xt(p, 4096, true); }}};
  return all;
}

double arithmetic(const gpu_gemm &p) {
  types t;
  if (!types_of(p, t)) return -1;
  gpu &g = the_gpu();
  const footprints bytes(p, t.size);
  char *a = g.memory(bytes.all());
  if (a == nullptr) return -1;
  char *b = a + footprints::padded(bytes.a), *c = b + footprints::padded(bytes.b);
  CHECK(cudaMemcpyAsync(a, p.a, bytes.a, cudaMemcpyDefault, g.stream));
  CHECK(cudaMemcpyAsync(b, p.b, bytes.b, cudaMemcpyDefault, g.stream));
  g.multiply(p, t, a, b, c);
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) seconds.push_back(g.by_events([&] { g.multiply(p, t, a, b, c); }));
  return median(seconds);
}

gpu_link_rates link() {
  gpu &g = the_gpu();
  constexpr std::size_t bytes = std::size_t{512} << 20;
  char *device = g.memory(2 * bytes), *host = nullptr;
  CHECK(cudaHostAlloc(&host, 2 * bytes, cudaHostAllocDefault));
  const auto rate = [&](bool in, bool out) {
    std::vector<double> seconds;
    for (int i = 0; i < 7; ++i)
      seconds.push_back(timed([&] {
        if (in) CHECK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, g.stream));
        if (out) CHECK(cudaMemcpyAsync(host + bytes, device + bytes, bytes, cudaMemcpyDeviceToHost, g.other));
        CHECK(cudaStreamSynchronize(g.stream));
        CHECK(cudaStreamSynchronize(g.other));
      }));
    return double(bytes) * (in + out) / median(seconds);
  };
  const gpu_link_rates found{rate(true, false), rate(false, true), rate(true, true)};
  CHECK(cudaFreeHost(host));
  return found;
}

// cublasLt's choices for a GEMM, best first; kept for the latest GEMM.
struct candidates {
  gpu_gemm of{};
  cublasLtMatmulDesc_t matmul = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  std::vector<cublasLtMatmulHeuristicResult_t> found;

  bool fit(const gpu_gemm &p) const {
    return matmul != nullptr && p.m == of.m && p.n == of.n && p.k == of.k && p.dtype == of.dtype &&
           p.compute == of.compute && p.a == of.a && p.op_a == of.op_a && p.op_b == of.op_b;
  }

  void find(const gpu_gemm &p, const types &t) {
    if (matmul != nullptr) {
      cublasLtMatmulDescDestroy(matmul);
      for (auto layout : {a, b, c}) cublasLtMatrixLayoutDestroy(layout);
    }
    of = p;
    const auto op_a = op_of(p.op_a), op_b = op_of(p.op_b);
    CHECK(cublasLtMatmulDescCreate(&matmul, t.compute, t.size == 8 ? CUDA_R_64F : CUDA_R_32F));
    CHECK(cublasLtMatmulDescSetAttribute(matmul, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a));
    CHECK(cublasLtMatmulDescSetAttribute(matmul, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b));
    CHECK(cublasLtMatrixLayoutCreate(&a, t.data, p.op_a == SG_TRANSPOSE_N ? p.m : p.k,
                                     p.op_a == SG_TRANSPOSE_N ? p.k : p.m, p.lda));
    CHECK(cublasLtMatrixLayoutCreate(&b, t.data, p.op_b == SG_TRANSPOSE_N ? p.k : p.n,
                                     p.op_b == SG_TRANSPOSE_N ? p.n : p.k, p.ldb));
    CHECK(cublasLtMatrixLayoutCreate(&c, t.data, p.m, p.n, p.ldc));
    cublasLtMatmulPreference_t preference;
    CHECK(cublasLtMatmulPreferenceCreate(&preference));
    const std::size_t most = gpu::workspace_bytes;
    CHECK(
        cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most));
    if (t.size == 2) {  // partial sums in f32, as the library's
      const std::uint32_t sums = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
      CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &sums,
                                                 sizeof sums));
    }
    constexpr int proposals = gpu_peer_table::most_proposals;
    found.resize(proposals);
    int count = 0;
    if (cublasLtMatmulAlgoGetHeuristic(the_gpu().lt, matmul, a, b, c, c, preference, proposals, found.data(), &count))
      count = 0;
    found.resize(std::size_t(count));
    cublasLtMatmulPreferenceDestroy(preference);
  }
};

double resident(std::int32_t way, const gpu_gemm &p, std::int32_t times) {
  types t;
  if (!types_of(p, t)) return -1;
  gpu &g = the_gpu();
  static candidates lt;
  if (way > 0 && !lt.fit(p)) lt.find(p, t);
  if (way > int(lt.found.size()) && way > 0) return -1;
  return timed([&] {
           for (std::int32_t i = 0; i < times; ++i) {
             char *const c = static_cast<char *>(p.c) + i % p.outputs * p.output_step;
             if (way == 0)
               g.multiply(p, t, p.a, p.b, c);
             else
               CHECK(cublasLtMatmul(g.lt, lt.matmul, constants.one(t), p.a, lt.a, p.b, lt.b, constants.zero(t), c, lt.c,
                                    c, lt.c, &lt.found[std::size_t(way - 1)].algo, g.workspace, gpu::workspace_bytes,
                                    g.stream));
           }
           CHECK(cudaStreamSynchronize(g.stream));
         }) /
         times;
}

const char *facts() {
  static const std::string text = [] {
    cudaDeviceProp device;
    int driver = 0, runtime = 0, blas = 0;
    CHECK(cudaGetDeviceProperties(&device, 0));
    CHECK(cudaDriverGetVersion(&driver));
    CHECK(cudaRuntimeGetVersion(&runtime));
    CHECK(cublasGetVersion(the_gpu().blas, &blas));
    return std::string("gpu: ") + device.name + "\nmultiprocessors: " + std::to_string(device.multiProcessorCount) +
           "\ndriver_cuda: " + std::to_string(driver) + "\nruntime_cuda: " + std::to_string(runtime) +
           "\ncublas: " + std::to_string(blas) + "\n";
  }();
  return text.c_str();
}

template <class Work>
double guarded(Work &&work) noexcept {
  try {
    return work();
  } catch (const std::exception &e) {
    tell_failure(e.what());
    return -1;
  }
}

constexpr gpu_peer_table table = {
    .facts = facts,
    .link = link,
    .host_count = [] { return std::int32_t(host_peers().size()); },
    .host_name = [](std::int32_t peer) { return host_peers()[std::size_t(peer)].name; },
    .host = [](std::int32_t peer,
               const gpu_gemm *p) { return guarded([&] { return host_peers()[std::size_t(peer)].run(*p); }); },
    .resident = [](std::int32_t way, const gpu_gemm *p,
                   std::int32_t times) { return guarded([&] { return resident(way, *p, times); }); },
    .arithmetic = [](const gpu_gemm *p) { return guarded([&] { return arithmetic(*p); }); },
    .many_prepare = many_prepare,
    .many_run = many_run,
    .many_release = many_release,
    .trickle = trickle,
};

}  // namespace
}  // namespace sg::cli

extern "C" __attribute__((visibility("default"))) const sg::cli::gpu_peer_table *sg_bench_gpu_peers_6(void) {
  return &sg::cli::table;
}
