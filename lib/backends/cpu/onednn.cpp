// SPDX-License-Identifier: Apache-2.0
// f32 by oneDNN's sgemm; bf16 and i8 by its matmul primitive, which is generated for a shape and kept by each worker.
//
// oneDNN is row major: C^T = op(B)^T * op(A)^T is asked of it, so B is its source and A its weights.
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>

#include <cstring>
#include <mutex>
#include <new>

#include "kernel.hpp"
#include "workspace.hpp"

// The OpenMP runtime's that oneDNN was built with; absent when it was built without.
extern "C" void omp_set_num_threads(int) __attribute__((weak));

namespace sg::cpu {
namespace {

sg_status status_of(dnnl_status_t status) noexcept {
  switch (status) {
    case dnnl_success: return SG_STATUS_OK;
    case dnnl_out_of_memory: return SG_STATUS_OUT_OF_MEMORY;
    case dnnl_unimplemented: return SG_STATUS_UNSUPPORTED;
    default: return SG_STATUS_BACKEND_FAILURE;
  }
}

sg_status run_sgemm(const product &p, workspace &) noexcept {
  const char op_b = p.op_b == SG_OP_N ? 'N' : 'T', op_a = p.op_a == SG_OP_N ? 'N' : 'T';
  try {
    return status_of(dnnl_sgemm(op_b, op_a, p.n, p.m, p.k, static_cast<float>(p.alpha.re),
                                static_cast<const float *>(p.b), p.ldb, static_cast<const float *>(p.a), p.lda,
                                static_cast<float>(p.beta.re), static_cast<float *>(p.c), p.ldc));
  } catch (const std::bad_alloc &) {
    return SG_STATUS_OUT_OF_MEMORY;
  }
}

// Creating a primitive takes a lock of the library's; a fork meanwhile would leave it locked in the child. So creation
// goes through a lock of ours, which fork waits for.
std::mutex creation;
void lock_creation() { creation.lock(); }
void unlock_creation() { creation.unlock(); }

// What a primitive is generated for.
struct matmul_key {
  std::int64_t m, n, k, lda, ldb, ldc;
  std::int32_t op_a, op_b, in, out, adds, unused;
};

class matmul {
 public:
  matmul() = default;
  matmul(const matmul &) = delete;
  matmul &operator=(const matmul &) = delete;
  ~matmul() { reset(); }

  dnnl_status_t create(dnnl_engine_t engine, const matmul_key &key) noexcept;
  dnnl_status_t execute(dnnl_stream_t stream, const product &p, void *scratchpad) noexcept;
  std::size_t scratchpad_bytes() const noexcept { return scratchpad_bytes_; }
  void reset() noexcept;

 private:
  dnnl_primitive_t primitive_ = nullptr;
  dnnl_memory_t source_ = nullptr, weights_ = nullptr, result_ = nullptr, scratchpad_ = nullptr;
  std::size_t scratchpad_bytes_ = 0;
};

void matmul::reset() noexcept {
  for (dnnl_memory_t *memory : {&source_, &weights_, &result_, &scratchpad_}) {
    if (*memory != nullptr) dnnl_memory_destroy(*memory);
    *memory = nullptr;
  }
  if (primitive_ != nullptr) dnnl_primitive_destroy(primitive_);
  primitive_ = nullptr;
}

dnnl_data_type_t data_type_of(std::int32_t type) noexcept {
  switch (type) {
    case SG_DTYPE_F32: return dnnl_f32;
    case SG_DTYPE_BF16: return dnnl_bf16;
    case SG_DTYPE_I8: return dnnl_s8;
    case SG_DTYPE_I32: return dnnl_s32;
    default: return dnnl_data_type_undef;
  }
}

// rows x cols of the row-major view: of a column-major rows' x cols' matrix that is transposed, or not.
dnnl_memory_desc_t describe(std::int64_t rows, std::int64_t cols, bool row_is_contiguous, std::int64_t ld,
                            std::int32_t type) noexcept {
  const dnnl_dims_t dims = {rows, cols};
  const dnnl_dims_t strides = {row_is_contiguous ? ld : 1, row_is_contiguous ? 1 : ld};
  dnnl_memory_desc_t desc;
  dnnl_memory_desc_init_by_strides(&desc, 2, dims, data_type_of(type), strides);
  return desc;
}

dnnl_status_t matmul::create(dnnl_engine_t engine, const matmul_key &key) noexcept {
  const std::lock_guard lock(creation);
  dnnl_primitive_attr_t attributes = nullptr;
  dnnl_post_ops_t post_ops = nullptr;
  dnnl_primitive_desc_t primitive_desc = nullptr;
  dnnl_status_t status = dnnl_success;
  const auto ok = [&status](dnnl_status_t next) { return (status = next) == dnnl_success; };
  const dnnl_memory_desc_t source = describe(key.n, key.k, key.op_b == SG_OP_N, key.ldb, key.in);
  const dnnl_memory_desc_t weights = describe(key.k, key.m, key.op_a == SG_OP_N, key.lda, key.in);
  const dnnl_memory_desc_t result = describe(key.n, key.m, true, key.ldc, key.out);
  dnnl_matmul_desc_t desc;
  try {
    if (ok(dnnl_primitive_attr_create(&attributes)) &&
        ok(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user)) &&
        ok(dnnl_primitive_attr_set_fpmath_mode(attributes, dnnl_fpmath_mode_strict)) &&
        (!key.adds || (ok(dnnl_post_ops_create(&post_ops)) && ok(dnnl_post_ops_append_sum(post_ops, 1.0f)) &&
                       ok(dnnl_primitive_attr_set_post_ops(attributes, post_ops)))) &&
        ok(dnnl_matmul_desc_init(&desc, &source, &weights, nullptr, &result)) &&
        ok(dnnl_primitive_desc_create(&primitive_desc, &desc, attributes, engine, nullptr)) &&
        ok(dnnl_primitive_create(&primitive_, primitive_desc)) &&
        ok(dnnl_memory_create(&source_, &source, engine, DNNL_MEMORY_NONE)) &&
        ok(dnnl_memory_create(&weights_, &weights, engine, DNNL_MEMORY_NONE)) &&
        ok(dnnl_memory_create(&result_, &result, engine, DNNL_MEMORY_NONE))) {
      const dnnl_memory_desc_t *scratchpad = dnnl_primitive_desc_query_md(primitive_desc, dnnl_query_scratchpad_md, 0);
      scratchpad_bytes_ = dnnl_memory_desc_get_size(scratchpad);
      ok(dnnl_memory_create(&scratchpad_, scratchpad, engine, DNNL_MEMORY_NONE));
    }
  } catch (const std::bad_alloc &) {
    status = dnnl_out_of_memory;
  }
  if (primitive_desc != nullptr) dnnl_primitive_desc_destroy(primitive_desc);
  if (post_ops != nullptr) dnnl_post_ops_destroy(post_ops);
  if (attributes != nullptr) dnnl_primitive_attr_destroy(attributes);
  if (status != dnnl_success) reset();
  return status;
}

dnnl_status_t matmul::execute(dnnl_stream_t stream, const product &p, void *scratchpad) noexcept {
  dnnl_memory_set_data_handle(source_, const_cast<void *>(p.b));
  dnnl_memory_set_data_handle(weights_, const_cast<void *>(p.a));
  dnnl_memory_set_data_handle(result_, p.c);
  dnnl_memory_set_data_handle(scratchpad_, scratchpad);
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, source_},
                                  {DNNL_ARG_WEIGHTS, weights_},
                                  {DNNL_ARG_DST, result_},
                                  {DNNL_ARG_SCRATCHPAD, scratchpad_}};
  try {
    return dnnl_primitive_execute(primitive_, stream, 4, args);
  } catch (const std::bad_alloc &) {
    return dnnl_out_of_memory;
  }
}

// A worker's primitives: the most recently used shapes.
class matmul_cache final : public provider_state {
 public:
  ~matmul_cache() override {
    for (entry &e : entries_) e.primitive.reset();
    if (stream_ != nullptr) dnnl_stream_destroy(stream_);
    if (engine_ != nullptr) dnnl_engine_destroy(engine_);
  }

  dnnl_status_t open() noexcept {
    const std::lock_guard lock(creation);
    try {
      const dnnl_status_t status = dnnl_engine_create(&engine_, dnnl_cpu, 0);
      return status != dnnl_success ? status : dnnl_stream_create(&stream_, engine_, dnnl_stream_default_flags);
    } catch (const std::bad_alloc &) {
      return dnnl_out_of_memory;
    }
  }

  sg_status run(const matmul_key &key, const product &p, workspace &space) noexcept {
    entry *found = nullptr;
    entry *oldest = &entries_[0];
    for (entry &e : entries_) {
      if (e.last_use != 0 && std::memcmp(&e.key, &key, sizeof key) == 0) {
        found = &e;
        break;
      }
      if (e.last_use < oldest->last_use) oldest = &e;
    }
    if (found == nullptr) {
      oldest->primitive.reset();
      oldest->last_use = 0;
      if (const dnnl_status_t status = oldest->primitive.create(engine_, key); status != dnnl_success)
        return status_of(status);
      oldest->key = key;
      found = oldest;
    }
    found->last_use = ++uses_;
    void *scratchpad = space.get(scratch::library, found->primitive.scratchpad_bytes());
    if (scratchpad == nullptr) return SG_STATUS_OUT_OF_MEMORY;
    return status_of(found->primitive.execute(stream_, p, scratchpad));
  }

 private:
  struct entry {
    matmul_key key;
    std::uint64_t last_use = 0;  // 0: empty
    matmul primitive;
  };
  static constexpr int capacity = 64;

  dnnl_engine_t engine_ = nullptr;
  dnnl_stream_t stream_ = nullptr;
  std::uint64_t uses_ = 0;
  entry entries_[capacity];
};

template <sg_dtype in, sg_dtype out>
sg_status run_matmul(const product &p, workspace &space) noexcept {
  if (space.onednn == nullptr) {
    auto *cache = new (std::nothrow) matmul_cache;
    if (cache == nullptr) return SG_STATUS_OUT_OF_MEMORY;
    space.onednn.reset(cache);
    if (const dnnl_status_t status = cache->open(); status != dnnl_success) {
      space.onednn.reset();
      return status_of(status);
    }
  }
  const matmul_key key = {p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.op_a, p.op_b, in, out, !is_zero(p.beta), 0};
  return static_cast<matmul_cache &>(*space.onednn).run(key, p, space);
}

// The processor's instructions as far as oneDNN may use them (ONEDNN_MAX_CPU_ISA narrows them).
bool multiplies_bf16() noexcept {
  const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  return isa == dnnl_cpu_isa_avx512_core_bf16 || isa == dnnl_cpu_isa_avx512_core_amx;
}
bool multiplies_i8() noexcept {
  return multiplies_bf16() || dnnl_get_effective_cpu_isa() == dnnl_cpu_isa_avx512_core_vnni;
}

}  // namespace

kernel onednn_kernel(sg_dtype in, sg_dtype out) noexcept {
  if (in == SG_DTYPE_F32 && out == SG_DTYPE_F32) return {.in = in, .out = out, .run = run_sgemm};
  if (in == SG_DTYPE_BF16 && multiplies_bf16()) {
    const scalars takes = scalars::one_and_zero_or_one;
    if (out == SG_DTYPE_BF16)
      return {.in = in, .out = out, .takes = takes, .run = run_matmul<SG_DTYPE_BF16, SG_DTYPE_BF16>};
    if (out == SG_DTYPE_F32)
      return {.in = in, .out = out, .takes = takes, .run = run_matmul<SG_DTYPE_BF16, SG_DTYPE_F32>};
  }
  // Its sum with C passes through f32, so only beta = 0 is exact. Without VNNI its 16-bit sums saturate.
  if (in == SG_DTYPE_I8 && out == SG_DTYPE_I32 && multiplies_i8())
    return {.in = in, .out = out, .takes = scalars::one_and_zero, .run = run_matmul<SG_DTYPE_I8, SG_DTYPE_I32>};
  return {};
}

void onednn_prepare_thread() noexcept {
  if (omp_set_num_threads != nullptr) omp_set_num_threads(1);
}

sg_status onednn_warm_up() noexcept {
  static const int registered = pthread_atfork(lock_creation, unlock_creation, unlock_creation);
  if (registered != 0) return SG_STATUS_OUT_OF_MEMORY;
  onednn_prepare_thread();
  const float a[64] = {}, b[64] = {};
  float c[64] = {};
  workspace space;
  for (const sg_op op_a : {SG_OP_N, SG_OP_T})
    for (const sg_op op_b : {SG_OP_N, SG_OP_T}) {
      const product p = {
          .m = 8, .n = 8, .k = 8, .op_a = op_a, .op_b = op_b, .a = a, .b = b, .c = c, .lda = 8, .ldb = 8, .ldc = 8};
      if (const sg_status status = run_sgemm(p, space); status != SG_STATUS_OK) return status;
    }
  for (const kernel &x : {onednn_kernel(SG_DTYPE_BF16, SG_DTYPE_F32), onednn_kernel(SG_DTYPE_I8, SG_DTYPE_I32)}) {
    const product p = {.m = 8, .n = 8, .k = 8, .a = a, .b = b, .c = c, .lda = 8, .ldb = 8, .ldc = 8};
    if (!x) continue;
    if (const sg_status status = x.run(p, space); status != SG_STATUS_OK) return status;
  }
  return SG_STATUS_OK;
}

}  // namespace sg::cpu
