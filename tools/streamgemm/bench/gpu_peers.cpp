// SPDX-License-Identifier: Apache-2.0
#include "gpu_peers.hpp"

#include <dlfcn.h>

#include <sstream>

#include "../outcome.hpp"
#include "suite.hpp"

namespace sg::cli {

const gpu_peer_table *load_gpu_peers(const std::string &path) {
  if (path.empty()) return nullptr;
  void *module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void *entry = module ? dlsym(module, gpu_peers_symbol) : nullptr;
  if (!entry) throw failure(exit_code::usage, std::string("--peers: ") + dlerror());
  return reinterpret_cast<const gpu_peer_table *(*)()>(entry)();
}

void note_gpu_facts(const gpu_peer_table &peers, suite_run &run) {
  std::istringstream facts(peers.facts());
  for (std::string line; std::getline(facts, line);)
    run.note(line.substr(0, line.find(':')), line.substr(line.find(':') + 2));
}

// Read as column major, a row-major matrix is its transpose: C^T = op(B)^T * op(A)^T.
gpu_gemm gpu_gemm_of(const sg_gemm_desc &desc) {
  gpu_gemm same{};
  same.m = desc.c.cols;
  same.n = desc.c.rows;
  same.k = desc.op_a == SG_TRANSPOSE_N ? desc.a.cols : desc.a.rows;
  same.dtype = desc.a.dtype;
  same.compute = desc.compute;
  same.op_a = desc.op_b;
  same.op_b = desc.op_a;
  same.lda = desc.b.cols;
  same.ldb = desc.a.cols;
  same.ldc = desc.c.cols;
  same.a = desc.b.data;
  same.b = desc.a.data;
  same.c = desc.c.data;
  same.batch = desc.batch > 0 ? desc.batch : 1;
  same.stride_a = desc.stride_b;
  same.stride_b = desc.stride_a;
  same.stride_c = desc.stride_c;
  same.beta = desc.beta.re;
  return same;
}

}  // namespace sg::cli
