// SPDX-License-Identifier: Apache-2.0
// f32 and i8 by oneDNN's gemm functions; bf16 by its matmul primitive, which is generated for a shape and cached by
// each worker. (For i8 the primitive is exact only up to sums of 2^24.)
//
// oneDNN is row major: it computes C^T = op(B)^T * op(A)^T, so B is its source and A its weights.
#include "backends/cpu/libraries/onednn.hpp"

#include <memory>
#include <mutex>

#include "kernel.hpp"

namespace sg::cpu {
namespace {

constexpr char letter_of(sg_transpose op) noexcept { return op == SG_TRANSPOSE_N ? 'N' : 'T'; }

sg_status run_onednn_f32(const gemm_args &p, workspace &space) noexcept {
  return guarded(space, [&p] {
    return dnnl_sgemm(letter_of(p.op_b), letter_of(p.op_a), p.n, p.m, p.k, static_cast<float>(p.alpha.re),
                      static_cast<const float *>(p.b), p.ldb, static_cast<const float *>(p.a), p.lda,
                      static_cast<float>(p.beta.re), static_cast<float *>(p.c), p.ldc);
  });
}

sg_status run_onednn_i8(const gemm_args &p, workspace &space) noexcept {
  return guarded(space, [&p] {
    const std::int32_t no_offset = 0;
    return dnnl_gemm_s8s8s32(letter_of(p.op_b), letter_of(p.op_a), 'F', p.n, p.m, p.k, 1.0f,
                             static_cast<const std::int8_t *>(p.b), p.ldb, 0, static_cast<const std::int8_t *>(p.a),
                             p.lda, 0, is_zero(p.beta) ? 0.0f : 1.0f, static_cast<std::int32_t *>(p.c), p.ldc,
                             &no_offset);
  });
}

// The parameters of a generated primitive: bf16 to `out`.
struct matmul_key {
  std::int64_t m, n, k, lda, ldb, ldc;
  sg_transpose op_a, op_b;
  sg_dtype out;
  std::int32_t adds;  // to C

  bool operator==(const matmul_key &) const = default;
};

dnnl::memory::data_type type_of(sg_dtype type) noexcept {
  return type == SG_DTYPE_BF16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

// rows x cols of a row-major view of a column-major matrix: of the matrix itself, or of its transpose.
dnnl::memory::desc view_of(std::int64_t rows, std::int64_t cols, bool transposed, std::int64_t ld, sg_dtype type) {
  using dims = dnnl::memory::dims;
  return {dims{rows, cols}, type_of(type), transposed ? dims{ld, 1} : dims{1, ld}};
}

class matmul {
 public:
  explicit matmul(const matmul_key &key) {
    const dnnl::memory::desc source = view_of(key.n, key.k, key.op_b == SG_TRANSPOSE_N, key.ldb, SG_DTYPE_BF16);
    const dnnl::memory::desc weights = view_of(key.k, key.m, key.op_a == SG_TRANSPOSE_N, key.lda, SG_DTYPE_BF16);
    const dnnl::memory::desc result = view_of(key.n, key.m, true, key.ldc, key.out);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (key.adds != 0) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attributes.set_post_ops(sum);
    }
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc desc(engine(), source, weights, result, attributes);
#else
    const dnnl::matmul::primitive_desc desc({source, weights, result}, attributes, engine());
#endif
    primitive_ = dnnl::matmul(desc);
    source_ = dnnl::memory(source, engine(), DNNL_MEMORY_NONE);
    weights_ = dnnl::memory(weights, engine(), DNNL_MEMORY_NONE);
    result_ = dnnl::memory(result, engine(), DNNL_MEMORY_NONE);
    scratchpad_ = dnnl::memory(desc.scratchpad_desc(), engine(), DNNL_MEMORY_NONE);
    scratchpad_bytes_ = desc.scratchpad_desc().get_size();
  }

  std::size_t scratchpad_bytes() const noexcept { return scratchpad_bytes_; }

  // The C function: the C++ one allocates.
  dnnl_status_t execute(dnnl_stream_t stream, const gemm_args &p, void *scratchpad) {
    dnnl_memory_set_data_handle(source_.get(), const_cast<void *>(p.b));
    dnnl_memory_set_data_handle(weights_.get(), const_cast<void *>(p.a));
    dnnl_memory_set_data_handle(result_.get(), p.c);
    dnnl_memory_set_data_handle(scratchpad_.get(), scratchpad);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, source_.get()},
                                    {DNNL_ARG_WEIGHTS, weights_.get()},
                                    {DNNL_ARG_DST, result_.get()},
                                    {DNNL_ARG_SCRATCHPAD, scratchpad_.get()}};
    return dnnl_primitive_execute(primitive_.get(), stream, 4, args);
  }

 private:
  dnnl::matmul primitive_;
  dnnl::memory source_, weights_, result_, scratchpad_;
  std::size_t scratchpad_bytes_;
};

// A worker's primitives, of the most recently used shapes.
class matmul_cache final : public provider_state {
 public:
  dnnl_status_t run(const matmul_key &key, const gemm_args &p, workspace &space) {
    entry *chosen = &entries_[0];
    for (entry &e : entries_) {
      if (e.last_use != 0 && e.key == key) {
        chosen = &e;
        break;
      }
      if (e.last_use < chosen->last_use) chosen = &e;
    }
    if (chosen->last_use == 0 || chosen->key != key) {
      chosen->last_use = 0;
      if (!memory_left(1 << 20)) return dnnl_out_of_memory;  // creation dereferences null pointers
      const std::lock_guard lock(fork_lock());               // creation takes a lock of the library
      chosen->primitive = std::make_unique<matmul>(key);
      chosen->key = key;
    }
    chosen->last_use = ++uses_;
    void *scratchpad = space.get(scratch::library, chosen->primitive->scratchpad_bytes());
    return scratchpad == nullptr ? dnnl_out_of_memory : chosen->primitive->execute(stream_.get(), p, scratchpad);
  }

 private:
  struct entry {
    matmul_key key;
    std::uint64_t last_use = 0;  // 0: empty
    std::unique_ptr<matmul> primitive;
  };

  dnnl::stream stream_{engine()};
  std::uint64_t uses_ = 0;
  entry entries_[64];
};

template <sg_dtype out>
sg_status run_matmul(const gemm_args &p, workspace &space) noexcept {
  return guarded(space, [&] {
    if (space.onednn == nullptr) {
      const std::lock_guard lock(fork_lock());
      space.onednn = std::make_unique<matmul_cache>();
    }
    const matmul_key key = {p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.op_a, p.op_b, out, !is_zero(p.beta)};
    return static_cast<matmul_cache &>(*space.onednn).run(key, p, space);
  });
}

}  // namespace

kernel onednn_kernel(sg_dtype in, sg_dtype out) noexcept {
  const scalars takes = scalars::one_and_zero_or_one;
  if (!has_onednn()) return {};
  if (in == SG_DTYPE_F32 && out == in) return {.in = in, .out = out, .run = run_onednn_f32};
  if (in == SG_DTYPE_BF16 && has_isa(dnnl_cpu_isa_avx512_core_bf16)) {
    if (out == in) return {.in = in, .out = out, .takes = takes, .run = run_matmul<SG_DTYPE_BF16>};
    if (out == SG_DTYPE_F32) return {.in = in, .out = out, .takes = takes, .run = run_matmul<SG_DTYPE_F32>};
  }
  // Without VNNI, its sums of two products saturate at 16 bits.
  if (in == SG_DTYPE_I8 && out == SG_DTYPE_I32 && has_isa(dnnl_cpu_isa_avx512_core_vnni))
    return {.in = in, .out = out, .takes = takes, .run = run_onednn_i8};
  return {};
}

sg_status onednn_warm_up() noexcept {
  load_onednn();
  if (!has_onednn()) return SG_STATUS_OK;
  constexpr std::int64_t n = 8;
  const float zeros[n * n] = {};
  float results[n * n] = {};
  workspace space;
  kernel all[3];
  {
    const std::lock_guard lock(fork_lock());  // oneDNN's first query of the processor
    all[0] = onednn_kernel(SG_DTYPE_F32, SG_DTYPE_F32);
    all[1] = onednn_kernel(SG_DTYPE_BF16, SG_DTYPE_F32);
    all[2] = onednn_kernel(SG_DTYPE_I8, SG_DTYPE_I32);
  }
  for (const kernel &x : all)
    for (const sg_transpose op_a : {SG_TRANSPOSE_N, SG_TRANSPOSE_T})
      for (const sg_transpose op_b : {SG_TRANSPOSE_N, SG_TRANSPOSE_T}) {
        if (!x) continue;
        const gemm_args p = {.m = n,
                             .n = n,
                             .k = n,
                             .op_a = op_a,
                             .op_b = op_b,
                             .a = zeros,
                             .b = zeros,
                             .c = results,
                             .lda = n,
                             .ldb = n,
                             .ldc = n};
        if (const sg_status status = x.run(p, space); status != SG_STATUS_OK) return status;
      }
  return SG_STATUS_OK;
}

}  // namespace sg::cpu
