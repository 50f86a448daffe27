// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/gemm/matmul.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "backends/cuda/gemm/gemm.hpp"
#include "backends/cuda/gemm/proposals.hpp"
#include "backends/cuda/libraries/blas.hpp"
#include "backends/cuda/memory/call_stream.hpp"

namespace sg::cuda {
namespace {

constexpr std::size_t most_known = 512;  // shapes of a stream
constexpr int most_candidates = 16;

std::int64_t alignment_of(const void *memory) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  return static_cast<std::int64_t>(std::min<std::uintptr_t>(256, address & (~address + 1)));
}

// Allowed split-k reductions: in the compute type.
std::uint32_t exact_reductions(const sg_backend_gemm &g) noexcept {
  return is_short_float(g.out_type) ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
                                    : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_INPLACE;
}

bool create(cublasLtMatrixLayout_t &out, cudaDataType type, std::int64_t rows, std::int64_t cols,
            std::int64_t ld) noexcept {
  return lt().layout_create(&out, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols), ld) ==
         CUBLAS_STATUS_SUCCESS;
}

// Only of a GEMM that suits_fused_epilogue(); the epilogues of others are added afterwards.
cublasLtEpilogue_t epilogue_of(const sg_backend_gemm &g) noexcept {
  if (!suits_fused_epilogue(g)) return CUBLASLT_EPILOGUE_DEFAULT;
  const bool biased = g.bias != nullptr;
  if (g.activation == SG_ACTIVATION_RELU) return biased ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  return biased ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(kernel_choice));

}  // namespace

matmul_key matmul_key_of(const sg_backend_gemm &g) noexcept {
  return {g.m,
          g.n,
          g.k,
          g.lda,
          g.ldb,
          g.ldc,
          g.op_a,
          g.op_b,
          g.in_type,
          g.out_type,
          g.compute,
          g.compute_units,
          alignment_of(g.a),
          alignment_of(g.b),
          alignment_of(g.c),
          epilogue_of(g)};
}

bool suits_fused_epilogue(const sg_backend_gemm &g) noexcept {
  const bool on_tensor_cores = suits_tensor_cores(g) && is_multiple(g.bias, tensor_core_alignment) && g.k > 0;
  // cublasLt's GELU multiplies by 1 + tanh, with 11 bits: NaN at minus infinity.
  const bool exact = g.activation != SG_ACTIVATION_GELU;
  return has_epilogue(g) && is_short_float(g.in_type) && on_tensor_cores && g.beta.re == 0 && exact &&
         (g.bias == nullptr || g.bias_per_row) && suits_matmul(g);
}

bool suits_matmul(const sg_backend_gemm &g) noexcept {
  if (!lt_is_loaded() || g.batch != 1 || g.a_array != nullptr || g.b_array != nullptr || g.c_array != nullptr)
    return false;
  return is_layer_type(g.in_type) || g.in_type == SG_DTYPE_F8_E4M3;
}

matmul::~matmul() {
  if (desc_ != nullptr) lt().desc_destroy(desc_);
  for (const auto layout : {a_, b_, c_})
    if (layout != nullptr) lt().layout_destroy(layout);
}

bool matmul::describe(const call &where, const sg_backend_gemm &g) noexcept {
  if (!describe_matrices(g)) return false;
  if (where.tuned == nullptr) return choose_untimed(where, g);
  if (const auto known = where.tuned->find(matmul_key_of(g)); known && adopt(where, g, *known)) return true;
  candidate found[most_candidates];
  const int count = propose(where, g, found, most_candidates);
  if (count == 0) return false;
  choose_fastest(where, g, found, count);
  kernel_choice made;
  std::memcpy(made.data(), &choice_.algo, sizeof made);
  where.tuned->keep(matmul_key_of(g), made);
  return true;
}

bool matmul::describe_matrices(const sg_backend_gemm &g) noexcept {
  blas_types types;
  if (!blas_types_of(g, types)) return false;
  const cudaDataType scalar = g.in_type == SG_DTYPE_F64 ? CUDA_R_64F : CUDA_R_32F;
  const auto op_a = blas_op_of(g.op_a), op_b = blas_op_of(g.op_b);
  const auto set = [&](cublasLtMatmulDescAttributes_t name, const auto &value) {
    return lt().desc_set(desc_, name, &value, sizeof value) == CUBLAS_STATUS_SUCCESS;
  };
  if (lt().desc_create(&desc_, types.compute, scalar) != CUBLAS_STATUS_SUCCESS ||
      !set(CUBLASLT_MATMUL_DESC_TRANSA, op_a) || !set(CUBLASLT_MATMUL_DESC_TRANSB, op_b) ||
      (g.compute_units > 0 && !set(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, g.compute_units)))
    return false;
  if (const cublasLtEpilogue_t epilogue = epilogue_of(g); epilogue != CUBLASLT_EPILOGUE_DEFAULT)
    if (!set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue) || !set_bias(g)) return false;
  const bool a_turned = g.op_a != SG_TRANSPOSE_N, b_turned = g.op_b != SG_TRANSPOSE_N;
  return create(a_, types.in, a_turned ? g.k : g.m, a_turned ? g.m : g.k, g.lda) &&
         create(b_, types.in, b_turned ? g.n : g.k, b_turned ? g.k : g.n, g.ldb) &&
         create(c_, types.out, g.m, g.n, g.ldc);
}

bool matmul::set_bias(const sg_backend_gemm &g) const noexcept {
  return g.bias == nullptr ||
         lt().desc_set(desc_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &g.bias, sizeof g.bias) == CUBLAS_STATUS_SUCCESS;
}

// cublasLt's proposals, the fastest by its estimate first.
int matmul::propose(const call &where, const sg_backend_gemm &g, candidate *out, int most) const noexcept {
  cublasLtMatmulPreference_t preference = nullptr;
  if (lt().preference_create(&preference) != CUBLAS_STATUS_SUCCESS) return 0;
  const auto hint = [&](cublasLtMatmulPreferenceAttributes_t name, auto value) {
    return lt().preference_set(preference, name, &value, sizeof value) == CUBLAS_STATUS_SUCCESS;
  };
  const auto alignment = [](const void *memory) { return static_cast<std::uint32_t>(alignment_of(memory)); };
  int found = 0;
  const bool found_any =
      hint(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, where.workspace_bytes) &&
      hint(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, exact_reductions(g)) &&
      hint(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(g.a)) &&
      hint(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(g.b)) &&
      hint(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(g.c)) &&
      hint(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(g.c)) &&
      lt().choose(where.handle, desc_, a_, b_, c_, c_, preference, most, out, &found) == CUBLAS_STATUS_SUCCESS;
  lt().preference_destroy(preference);
  if (!found_any) return 0;
  const auto usable = [&](const candidate &x) {
    return x.state == CUBLAS_STATUS_SUCCESS && x.workspaceSize <= where.workspace_bytes;
  };
  return static_cast<int>(std::partition(out, out + found, usable) - out);
}

// Adopts an earlier choice, if cublasLt confirms that it can compute this GEMM with the requested accuracy.
bool matmul::adopt(const call &where, const sg_backend_gemm &g, const kernel_choice &choice) noexcept {
  candidate found{};
  cublasLtMatmulAlgo_t kernel;
  std::memcpy(&kernel, choice.data(), sizeof kernel);
  std::uint32_t reduction = 0;
  std::size_t written = 0;
  if (lt().check(where.handle, desc_, a_, b_, c_, c_, &kernel, &found) != CUBLAS_STATUS_SUCCESS ||
      found.workspaceSize > where.workspace_bytes ||
      lt().kernel_get(&kernel, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &reduction, sizeof reduction, &written) !=
          CUBLAS_STATUS_SUCCESS ||
      (reduction & ~exact_reductions(g)) != 0)
    return false;
  choice_ = found;
  choice_.algo = kernel;
  return true;
}

bool matmul::choose_untimed(const call &where, const sg_backend_gemm &g) noexcept {
  candidate found[most_candidates];
  const int most = proposals_to_examine(g, where.in.owner().facts().major);
  const int count = propose(where, g, found, most);
  if (count == 0) return false;
  proposal known[most_candidates];
  for (int i = 0; i < count && most > 1; ++i) {
    const auto read = [&](cublasLtMatmulAlgoConfigAttributes_t name, auto &to) {
      std::size_t written = 0;
      return lt().kernel_get(&found[i].algo, name, &to, sizeof to, &written) == CUBLAS_STATUS_SUCCESS;
    };
    if (read(CUBLASLT_ALGO_CONFIG_TILE_ID, known[i].tile) && read(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, known[i].splits))
      known[i].waves = found[i].wavesCount;
  }
  choice_ = found[likely_fastest(g, known, static_cast<std::size_t>(count))];
  return true;
}

// Times the proposals on the GEMM's own operands, before it runs itself; results go to temporary memory. Each is run
// once; those within a quarter of the fastest again, several times in a row.
void matmul::choose_fastest(const call &where, const sg_backend_gemm &g, const candidate *from, int count) noexcept {
  choice_ = from[0];
  void *result = nullptr;
  const std::int64_t bytes = g.ldc * g.n * element_size(g.out_type);
  if (count == 1 || where.in.acquire(static_cast<std::uint64_t>(bytes), &result) != SG_STATUS_OK) return;
  double seconds[most_candidates], fastest = HUGE_VAL;
  for (int i = 0; i < count; ++i) {
    seconds_of(where, g, from[i], result, 1);  // the first loads the kernel
    seconds[i] = seconds_of(where, g, from[i], result, 1);
    fastest = std::min(fastest, seconds[i]);
  }
  const double retime_limit = 1.25 * fastest;
  const int times = std::clamp(static_cast<int>(2e-3 / fastest), 3, 50);
  fastest = HUGE_VAL;
  for (int i = 0; i < count; ++i) {
    if (!(seconds[i] <= retime_limit)) continue;
    const double again = seconds_of(where, g, from[i], result, times);
    if (again < fastest) {
      fastest = again;
      choice_ = from[i];
    }
  }
  where.in.release(result);
}

double matmul::seconds_of(const call &where, const sg_backend_gemm &g, const candidate &one, void *result,
                          int times) const noexcept {
  cudaEvent_t start = nullptr, end = nullptr;
  float milliseconds = HUGE_VALF;
  if (cudaEventCreate(&start) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess &&
      cudaEventRecord(start, where.in.native()) == cudaSuccess) {
    bool ran = true;
    for (int i = 0; i < times && ran; ++i) ran = run(where, g, one, result) == CUBLAS_STATUS_SUCCESS;
    const bool timed = cudaEventRecord(end, where.in.native()) == cudaSuccess &&
                       cudaEventSynchronize(end) == cudaSuccess &&
                       cudaEventElapsedTime(&milliseconds, start, end) == cudaSuccess;
    if (!ran || !timed) milliseconds = HUGE_VALF;
  }
  if (start != nullptr) cudaEventDestroy(start);
  if (end != nullptr) cudaEventDestroy(end);
  return double(milliseconds) * 1e-3 / times;
}

cublasStatus_t matmul::run(const call &where, const sg_backend_gemm &g, const candidate &by,
                           void *result) const noexcept {
  const blas_scalar alpha(g.alpha, g.in_type), beta(g.beta, g.in_type);
  return lt().run(where.handle, desc_, &alpha, g.a, a_, g.b, b_, &beta, g.c, c_, result, c_, &by.algo, where.workspace,
                  by.workspaceSize, where.in.native());
}

cublasStatus_t matmul::run(const call &where, const sg_backend_gemm &g) const noexcept {
  if (suits_fused_epilogue(g) && !set_bias(g)) return CUBLAS_STATUS_INVALID_VALUE;
  return run(where, g, choice_, g.c);
}

const matmul *matmul_cache::find(const matmul::call &where, const sg_backend_gemm &what) noexcept {
  try {
    const matmul_key key = matmul_key_of(what);
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second.get();
    if (known_.size() == most_known) known_.clear();
    auto fresh = std::make_unique<matmul>();
    if (!fresh->describe(where, what)) fresh.reset();
    return known_.emplace(key, std::move(fresh)).first->second.get();
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

}  // namespace sg::cuda
