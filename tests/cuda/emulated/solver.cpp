// SPDX-License-Identifier: Apache-2.0
// cuSOLVER on the emulated GPU, as far as the drop-in BLAS calls it: OpenBLAS's LAPACK, in the order of the stream. The
// workspaces are written, so that their sizes are those that were promised.
#include <cusolverDn.h>
#include <dlfcn.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "gpu.hpp"

#define API extern "C" __attribute__((visibility("default")))

struct cusolverDnContext {
  cudaStream_t stream;
};
struct cusolverDnParams {};

namespace {

using emulated::call;

cusolverStatus_t status_of(cudaError_t error) noexcept {
  return error == cudaSuccess                 ? CUSOLVER_STATUS_SUCCESS
         : error == cudaErrorMemoryAllocation ? CUSOLVER_STATUS_ALLOC_FAILED
                                              : CUSOLVER_STATUS_EXECUTION_FAILED;
}

cusolverStatus_t entered(call kind) noexcept {
  const cudaError_t error = emulated::enter(kind);
  if (error != cudaSuccess) cudaGetLastError();
  return status_of(error);
}

struct kind {
  char letter;
  std::size_t bytes;
  bool is_complex;
};

kind kind_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_32F: return {'s', 4, false};
    case CUDA_R_64F: return {'d', 8, false};
    case CUDA_C_32F: return {'c', 8, true};
    default: return {'z', 16, true};
  }
}

// A function of LAPACK by the name of its type. The library's own handle: the process has other functions of that name.
template <class... Arguments>
void lapack(char letter, const char *name, Arguments... arguments) {
  static void *const library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  void *const found = dlsym(library, (letter + std::string(name) + "_").c_str());
  // OpenBLAS's LAPACK calls level 3 by its names, which a drop-in BLAS would send to this very stream.
  static const auto enable = reinterpret_cast<std::int32_t (*)(std::int32_t)>(dlsym(RTLD_DEFAULT, "sg_blas_enable"));
  if (enable != nullptr) enable(0);
  reinterpret_cast<void (*)(Arguments...)>(found)(arguments...);
}

constexpr std::size_t host_bytes = 100;
std::size_t device_bytes(cudaDataType type, std::int64_t n) { return kind_of(type).bytes * std::size_t(n) + 64; }

char letter_of(cublasFillMode_t uplo) { return uplo == CUBLAS_FILL_MODE_UPPER ? 'U' : 'L'; }
char letter_of(cublasOperation_t op) { return op == CUBLAS_OP_N ? 'N' : op == CUBLAS_OP_T ? 'T' : 'C'; }

cusolverStatus_t sizes(std::size_t bytes, std::size_t *on_device, std::size_t *on_host) {
  *on_device = bytes;
  *on_host = host_bytes;
  return CUSOLVER_STATUS_SUCCESS;
}

struct workspace {
  void *on_device;
  std::size_t device;
  void *on_host;
  std::size_t host;
};

cusolverStatus_t enqueue(cusolverDnHandle_t handle, std::initializer_list<const void *> memory, const workspace *space,
                         std::size_t needed, std::function<void()> work) {
  if (const cusolverStatus_t status = entered(call::command)) return status;
  if (space != nullptr && (space->device < needed || space->host < host_bytes)) return CUSOLVER_STATUS_INVALID_VALUE;
  if (const cudaError_t error = emulated::reach(handle->stream, memory)) return status_of(error);
  return status_of(emulated::enqueue(
      handle->stream, [work = std::move(work), has_space = space != nullptr, space = space ? *space : workspace{}] {
        if (has_space) {
          std::memset(space.on_device, 0x5a, space.device);
          std::memset(space.on_host, 0x5a, space.host);
        }
        work();
      }));
}

}  // namespace

API cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *out) {
  if (const cusolverStatus_t status = entered(call::allocation)) return status;
  *out = new cusolverDnContext{};
  return CUSOLVER_STATUS_SUCCESS;
}
API cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t *out) {
  *out = new cusolverDnParams{};
  return CUSOLVER_STATUS_SUCCESS;
}
API cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUSOLVER_STATUS_SUCCESS;
}

API cusolverStatus_t cusolverDnXgetrf_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, std::int64_t m, std::int64_t n,
                                                 cudaDataType type, const void *, std::int64_t lda, cudaDataType,
                                                 std::size_t *device, std::size_t *host) {
  if (lda < m) return CUSOLVER_STATUS_INVALID_VALUE;
  return sizes(device_bytes(type, n), device, host);
}
API cusolverStatus_t cusolverDnXgetrf(cusolverDnHandle_t handle, cusolverDnParams_t, std::int64_t m, std::int64_t n,
                                      cudaDataType type, void *a, std::int64_t lda, std::int64_t *ipiv, cudaDataType,
                                      void *on_device, std::size_t device, void *on_host, std::size_t host, int *info) {
  const workspace space{on_device, device, on_host, host};
  return enqueue(handle, {a, ipiv, info, on_device}, &space, device_bytes(type, n), [=] {
    std::vector<int> pivots(static_cast<std::size_t>(std::min(m, n)));
    int rows = int(m), columns = int(n), ld = int(lda);
    lapack(kind_of(type).letter, "getrf", &rows, &columns, a, &ld, pivots.data(), info);
    std::copy(pivots.begin(), pivots.end(), ipiv);
  });
}
API cusolverStatus_t cusolverDnXgetrs(cusolverDnHandle_t handle, cusolverDnParams_t, cublasOperation_t op,
                                      std::int64_t n, std::int64_t nrhs, cudaDataType type, const void *a,
                                      std::int64_t lda, const std::int64_t *ipiv, cudaDataType, void *b,
                                      std::int64_t ldb, int *info) {
  return enqueue(handle, {a, b, ipiv, info}, nullptr, 0, [=] {
    std::vector<int> pivots(ipiv, ipiv + n);
    char trans = letter_of(op);
    int size = int(n), columns = int(nrhs), ld = int(lda), ld_b = int(ldb);
    lapack(kind_of(type).letter, "getrs", &trans, &size, &columns, a, &ld, pivots.data(), b, &ld_b, info,
           std::size_t(1));
  });
}

API cusolverStatus_t cusolverDnXpotrf_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, cublasFillMode_t,
                                                 std::int64_t n, cudaDataType type, const void *, std::int64_t lda,
                                                 cudaDataType, std::size_t *device, std::size_t *host) {
  if (lda < n) return CUSOLVER_STATUS_INVALID_VALUE;
  return sizes(device_bytes(type, n), device, host);
}
API cusolverStatus_t cusolverDnXpotrf(cusolverDnHandle_t handle, cusolverDnParams_t, cublasFillMode_t uplo,
                                      std::int64_t n, cudaDataType type, void *a, std::int64_t lda, cudaDataType,
                                      void *on_device, std::size_t device, void *on_host, std::size_t host, int *info) {
  const workspace space{on_device, device, on_host, host};
  return enqueue(handle, {a, info, on_device}, &space, device_bytes(type, n), [=] {
    char letter = letter_of(uplo);
    int size = int(n), ld = int(lda);
    lapack(kind_of(type).letter, "potrf", &letter, &size, a, &ld, info, std::size_t(1));
  });
}
API cusolverStatus_t cusolverDnXpotrs(cusolverDnHandle_t handle, cusolverDnParams_t, cublasFillMode_t uplo,
                                      std::int64_t n, std::int64_t nrhs, cudaDataType type, const void *a,
                                      std::int64_t lda, cudaDataType, void *b, std::int64_t ldb, int *info) {
  return enqueue(handle, {a, b, info}, nullptr, 0, [=] {
    char letter = letter_of(uplo);
    int size = int(n), columns = int(nrhs), ld = int(lda), ld_b = int(ldb);
    lapack(kind_of(type).letter, "potrs", &letter, &size, &columns, a, &ld, b, &ld_b, info, std::size_t(1));
  });
}

API cusolverStatus_t cusolverDnXgeqrf_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, std::int64_t m, std::int64_t n,
                                                 cudaDataType type, const void *, std::int64_t lda, cudaDataType,
                                                 const void *, cudaDataType, std::size_t *device, std::size_t *host) {
  if (lda < m) return CUSOLVER_STATUS_INVALID_VALUE;
  return sizes(device_bytes(type, n), device, host);
}
API cusolverStatus_t cusolverDnXgeqrf(cusolverDnHandle_t handle, cusolverDnParams_t, std::int64_t m, std::int64_t n,
                                      cudaDataType type, void *a, std::int64_t lda, cudaDataType, void *tau,
                                      cudaDataType, void *on_device, std::size_t device, void *on_host,
                                      std::size_t host, int *info) {
  const workspace space{on_device, device, on_host, host};
  return enqueue(handle, {a, tau, info, on_device}, &space, device_bytes(type, n), [=] {
    int rows = int(m), columns = int(n), ld = int(lda), work_size = 64 * columns;
    std::vector<std::complex<double>> work(static_cast<std::size_t>(work_size));
    lapack(kind_of(type).letter, "geqrf", &rows, &columns, a, &ld, tau, work.data(), &work_size, info);
  });
}

namespace {

cusolverStatus_t size_of_q(int m, int n, int k, int lda, int *elements) {
  if (m < n || n < k || lda < m) return CUSOLVER_STATUS_INVALID_VALUE;
  *elements = n + 7;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t form_q(cusolverDnHandle_t handle, cudaDataType type, const char *name, int m, int n, int k, void *a,
                        int lda, const void *tau, void *memory, int elements, int *info) {
  if (elements < n + 7) return CUSOLVER_STATUS_INVALID_VALUE;
  return enqueue(handle, {a, tau, info, memory}, nullptr, 0, [=] {
    std::memset(memory, 0x5a, kind_of(type).bytes * std::size_t(elements));
    int rows = m, columns = n, reflectors = k, ld = lda, work_size = 64 * n;
    std::vector<std::complex<double>> work(static_cast<std::size_t>(work_size));
    lapack(kind_of(type).letter, name, &rows, &columns, &reflectors, a, &ld, tau, work.data(), &work_size, info);
  });
}

}  // namespace

#define Q_OF(name, type, letter)                                                                                     \
  API cusolverStatus_t cusolverDn##name##_bufferSize(cusolverDnHandle_t, int m, int n, int k, const type *, int lda, \
                                                     const type *, int *elements) {                                  \
    return size_of_q(m, n, k, lda, elements);                                                                        \
  }                                                                                                                  \
  API cusolverStatus_t cusolverDn##name(cusolverDnHandle_t handle, int m, int n, int k, type *a, int lda,            \
                                        const type *tau, type *work, int elements, int *info) {                      \
    return form_q(handle, letter, &#name[1], m, n, k, a, lda, tau, work, elements, info);                            \
  }
Q_OF(Sorgqr, float, CUDA_R_32F)
Q_OF(Dorgqr, double, CUDA_R_64F)
Q_OF(Cungqr, cuComplex, CUDA_C_32F)
Q_OF(Zungqr, cuDoubleComplex, CUDA_C_64F)

API cusolverStatus_t cusolverDnXsyevd_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t,
                                                 cublasFillMode_t, std::int64_t n, cudaDataType type, const void *,
                                                 std::int64_t lda, cudaDataType, const void *, cudaDataType,
                                                 std::size_t *device, std::size_t *host) {
  if (lda < n) return CUSOLVER_STATUS_INVALID_VALUE;
  return sizes(device_bytes(type, n), device, host);
}
API cusolverStatus_t cusolverDnXsyevd(cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t mode,
                                      cublasFillMode_t uplo, std::int64_t n, cudaDataType type, void *a,
                                      std::int64_t lda, cudaDataType real, void *w, cudaDataType, void *on_device,
                                      std::size_t device, void *on_host, std::size_t host, int *info) {
  if (kind_of(real).is_complex) return CUSOLVER_STATUS_INVALID_VALUE;
  const workspace space{on_device, device, on_host, host};
  return enqueue(handle, {a, w, info, on_device}, &space, device_bytes(type, n), [=] {
    const kind of = kind_of(type);
    char job = mode == CUSOLVER_EIG_MODE_VECTOR ? 'V' : 'N', letter = letter_of(uplo);
    int size = int(n), ld = int(lda), work_size = 1 + 6 * size + 2 * size * size, integers_size = 3 + 5 * size;
    std::vector<std::complex<double>> work(std::size_t(work_size), 0), reals(std::size_t(work_size), 0);
    std::vector<int> integers(static_cast<std::size_t>(integers_size));
    if (of.is_complex)
      lapack(of.letter, "heevd", &job, &letter, &size, a, &ld, w, work.data(), &work_size, reals.data(), &work_size,
             integers.data(), &integers_size, info, std::size_t(1), std::size_t(1));
    else
      lapack(of.letter, "syevd", &job, &letter, &size, a, &ld, w, work.data(), &work_size, integers.data(),
             &integers_size, info, std::size_t(1), std::size_t(1));
  });
}
