// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/streams/commands.hpp"

#include <cstdio>

#include "backends/common/operation.hpp"
#include "backends/cuda/dnn/attention.hpp"
#include "backends/cuda/dnn/conv.hpp"
#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/gemm/gemm.hpp"
#include "backends/cuda/gemm/triangles.hpp"
#include "backends/cuda/kernels/kernels.hpp"
#include "backends/cuda/kernels/layers.hpp"
#include "backends/cuda/memory/copy.hpp"

namespace sg::cuda {
namespace {

// Enqueues the command.
using operation = operation_entry<sg_status(call_resources &in, const sg_backend_command &what) noexcept>;

#define SG_LAUNCH(NAME, KIND, TITLE) \
  inline cudaError_t launch(const sg_backend_##NAME &what, cudaStream_t in) noexcept { return launch_##NAME(what, in); }
SG_BACKEND_COMMANDS(SG_LAUNCH)
#undef SG_LAUNCH

// Enqueues a command as its kernel, where no other way is here.
template <class Command>
sg_status run(call_resources &in, const Command &what) noexcept {
  const cudaError_t error = launch(what, in.native());
  if (error == cudaSuccess) return SG_STATUS_OK;
  char doing[64];
  std::snprintf(doing, sizeof doing, "starting %s", name_of(what.header.kind));
  return in.owner().check(error, doing);
}
sg_status run(call_resources &, const sg_backend_command &) noexcept { return SG_STATUS_OK; }  // a marker
sg_status run(call_resources &in, const sg_backend_copy &what) noexcept { return run_copy(in, what); }
sg_status run(call_resources &in, const sg_backend_gemm &what) noexcept { return run_gemm(in, what); }
sg_status run(call_resources &in, const sg_backend_triangular &what) noexcept { return run_triangular(in, what); }
sg_status run(call_resources &in, const sg_backend_symmetric &what) noexcept { return run_symmetric(in, what); }
sg_status run(call_resources &in, const sg_backend_conv &what) noexcept { return run_conv(in, in.dnn, what); }
sg_status run(call_resources &in, const sg_backend_attention_backward &what) noexcept {
  return run_by_dnn(in, in.dnn, what);
}
sg_status run(call_resources &in, const sg_backend_attention &what) noexcept {
  sg_status status = SG_STATUS_OK;
  if (run_by_dnn(in, in.dnn, what, status)) return status;
  if (!is_supported(what))
    return fail(SG_STATUS_UNSUPPORTED, "cuDNN has no attention of tokens of %lld and %lld elements",
                static_cast<long long>(what.width), static_cast<long long>(what.value_width));
  return in.owner().check(launch_attention(what, in.native()), "starting an attention");
}
sg_status run(call_resources &in, const sg_backend_custom &what) noexcept {
  return what.run(what.what, in.native(), what.operands, what.operand_count, failure_text());
}

template <class Command>
constexpr operation entry(sg_backend_command_kind kind) noexcept {
  return {kind, sizeof(Command),
          [](const sg_backend_command &what) noexcept { return is_supported(as<Command>(what)); },
          [](call_resources &in, const sg_backend_command &what) noexcept { return run(in, as<Command>(what)); }};
}

constexpr operation entries[] = {entry<sg_backend_command>(SG_BACKEND_MARKER),
#define SG_ENTRY(NAME, KIND, TITLE) entry<sg_backend_##NAME>(SG_BACKEND_##KIND),
                                 SG_BACKEND_COMMANDS(SG_ENTRY)
#undef SG_ENTRY
};
constexpr operation_table operations(entries);

}  // namespace

// The kernel of an attention has the instructions of chips from compute capability 8.0 on.
bool supports(device &on, const sg_backend_command &what) noexcept {
  switch (what.kind) {
    case SG_BACKEND_ATTENTION: {
      const auto &attention = as<sg_backend_attention>(what);
      return supports_by_dnn(on, on.executables(), attention) ||
             (on.facts().major >= 8 && suits_kernel(attention, on.facts().multiProcessorCount));
    }
    case SG_BACKEND_ATTENTION_BACKWARD:
      return supports_by_dnn(on, on.executables(), as<sg_backend_attention_backward>(what));
    case SG_BACKEND_CONV: return supports_conv(on, on.executables(), as<sg_backend_conv>(what));
    default: {
      const operation *const known = operations.find(what.kind);
      return known != nullptr && known->supports(what);
    }
  }
}

sg_status run_command(call_resources &in, const sg_backend_command &what) noexcept {
  const operation *const known = operations.find(what.kind);
  return known != nullptr ? known->run(in, what)
                          : fail(SG_STATUS_UNSUPPORTED, "cuda has no command of kind %d", int{what.kind});
}

}  // namespace sg::cuda
