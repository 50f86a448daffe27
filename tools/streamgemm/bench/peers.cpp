// SPDX-License-Identifier: Apache-2.0
#include "peers.hpp"

#ifdef SG_BENCH_OPENBLAS
#include <cblas.h>
#endif
#ifdef SG_BENCH_ONEDNN
#include <omp.h>

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#endif

namespace sg::cli {

#ifdef SG_BENCH_OPENBLAS
static multiply_fn openblas_prepare(std::int64_t m, std::int64_t n, std::int64_t k, sg_dtype dtype, sg_transpose op_b) {
  const CBLAS_TRANSPOSE op = op_b == SG_TRANSPOSE_N ? CblasNoTrans : CblasTrans;
  const std::int64_t ldb = op_b == SG_TRANSPOSE_N ? n : k;
  if (dtype == SG_DTYPE_F32)
    return [=](const void *a, const void *b, void *c) {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, op, blasint(m), blasint(n), blasint(k), 1.0f,
                  static_cast<const float *>(a), blasint(k), static_cast<const float *>(b), blasint(ldb), 0.0f,
                  static_cast<float *>(c), blasint(n));
    };
  if (dtype == SG_DTYPE_F64)
    return [=](const void *a, const void *b, void *c) {
      cblas_dgemm(CblasRowMajor, CblasNoTrans, op, blasint(m), blasint(n), blasint(k), 1.0,
                  static_cast<const double *>(a), blasint(k), static_cast<const double *>(b), blasint(ldb), 0.0,
                  static_cast<double *>(c), blasint(n));
    };
  return {};
}
#endif

#ifdef SG_BENCH_ONEDNN
namespace {

using data_type = dnnl::memory::data_type;
using tag = dnnl::memory::format_tag;

// The matmul primitive, created once, with memory objects whose pointers change from call to call.
class onednn_gemm {
 public:
  onednn_gemm(std::int64_t m, std::int64_t n, std::int64_t k, sg_transpose op_b, data_type in, data_type out)
      : engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_),
        a_(memory(m, k, in, tag::ab)),
        b_(memory(k, n, in, op_b == SG_TRANSPOSE_N ? tag::ab : tag::ba)),
        c_(memory(m, n, out, tag::ab)),
        arguments_{{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}} {
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc plan(engine_, a_.get_desc(), b_.get_desc(), c_.get_desc());
#else
    const dnnl::matmul::primitive_desc plan(dnnl::matmul::desc(a_.get_desc(), b_.get_desc(), c_.get_desc()), engine_);
#endif
    primitive_ = dnnl::matmul(plan);
  }

  void operator()(const void *a, const void *b, void *c) {
    a_.set_data_handle(const_cast<void *>(a));
    b_.set_data_handle(const_cast<void *>(b));
    c_.set_data_handle(c);
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::memory memory(std::int64_t rows, std::int64_t cols, data_type type, tag order) {
    return {dnnl::memory::desc({rows, cols}, type, order), engine_, nullptr};
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::memory a_, b_, c_;
  std::unordered_map<int, dnnl::memory> arguments_;
  dnnl::matmul primitive_;
};

multiply_fn onednn_prepare(std::int64_t m, std::int64_t n, std::int64_t k, sg_dtype dtype, sg_transpose op_b) {
  data_type in, out = data_type::f32;
  switch (dtype) {
    case SG_DTYPE_F32: in = data_type::f32; break;
    case SG_DTYPE_BF16: in = data_type::bf16; break;
    case SG_DTYPE_I8: in = data_type::s8, out = data_type::s32; break;
    default: return {};
  }
  std::shared_ptr<onednn_gemm> gemm;
  try {
    gemm = std::make_shared<onednn_gemm>(m, n, k, op_b, in, out);
  } catch (const dnnl::error &failed) {
    if (failed.status == dnnl_unimplemented) return {};  // this processor has no such GEMM
    throw;
  }
  return [gemm](const void *a, const void *b, void *c) { (*gemm)(a, b, c); };
}

// The BLAS-like call, which needs no preparation; for some shapes it is the faster of the two.
multiply_fn onednn_sgemm_prepare(std::int64_t m, std::int64_t n, std::int64_t k, sg_dtype dtype, sg_transpose op_b) {
  if (dtype != SG_DTYPE_F32) return {};
  return [=](const void *a, const void *b, void *c) {
    dnnl_sgemm('N', op_b == SG_TRANSPOSE_N ? 'N' : 'T', m, n, k, 1.0f, static_cast<const float *>(a), k,
               static_cast<const float *>(b), op_b == SG_TRANSPOSE_N ? n : k, 0.0f, static_cast<float *>(c), n);
  };
}

std::string onednn_version() {
  const dnnl_version_t *version = dnnl_version();
  return std::to_string(version->major) + "." + std::to_string(version->minor) + "." + std::to_string(version->patch);
}

}  // namespace
#endif

#ifdef SG_BENCH_OPENBLAS
static multiply_fn openblas_prepare_vector(std::int64_t m, std::int64_t n, std::int64_t k, sg_dtype dtype,
                                           sg_transpose op_b) {
  if (dtype != SG_DTYPE_F64 || op_b != SG_TRANSPOSE_N || (m != 1 && n != 1)) return {};
  const auto at = [](const void *x) { return static_cast<const double *>(x); };
  if (n == 1)
    return [=](const void *a, const void *b, void *c) {
      cblas_dgemv(CblasRowMajor, CblasNoTrans, blasint(m), blasint(k), 1.0, at(a), blasint(k), at(b), 1, 0.0,
                  static_cast<double *>(c), 1);
    };
  return [=](const void *a, const void *b, void *c) {
    cblas_dgemv(CblasRowMajor, CblasTrans, blasint(k), blasint(n), 1.0, at(b), blasint(n), at(a), 1, 0.0,
                static_cast<double *>(c), 1);
  };
}
#endif

static peer_lists found_peers() {
  peer_lists found;
#ifdef SG_BENCH_OPENBLAS
  const peer gemm{"OpenBLAS", openblas_get_config(), openblas_prepare, openblas_get_num_threads,
                  openblas_set_num_threads};
  found.all.push_back(gemm);
  found.cblas = {gemm, {"OpenBLAS gemv", gemm.version, openblas_prepare_vector, gemm.threads, gemm.set_threads}};
#endif
#ifdef SG_BENCH_ONEDNN
  found.all.push_back({"oneDNN", onednn_version(), onednn_prepare, omp_get_max_threads, omp_set_num_threads});
  found.all.push_back(
      {"oneDNN sgemm", onednn_version(), onednn_sgemm_prepare, omp_get_max_threads, omp_set_num_threads});
#endif
  return found;
}

extern "C" __attribute__((visibility("default"))) peer_lists *sg_bench_cpu_peers() {
  static peer_lists found = found_peers();
  return &found;
}

}  // namespace sg::cli
