// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/dnn/attention.hpp"

#include <cmath>
#include <new>
#include <utility>

#include "backends/common/supports.hpp"
#include "backends/cuda/dnn/aligned_heads.hpp"
#include "backends/cuda/dnn/attention_graph.hpp"
#include "backends/cuda/driver/current.hpp"
#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/gpu/gpu.hpp"

namespace sg::cuda {
namespace {

using dnn::aligned_heads;
using dnn::attention_shape;
using dnn::executable;

// The first version without known faults of these kernels, and the last whose gradients need lengths where keys do not
// fill their tiles.
constexpr std::size_t oldest = 91100, last_with_tiles = 91500;
constexpr std::int64_t tile_keys = 128;

bool pads(const attention_shape &s) noexcept {
  return s.keys % tile_keys != 0 && dnn::library().version() <= last_with_tiles;
}

// The attention, with the statistics that its gradients need, is a computation of its own.
const executable *find_attention(gpu &owner, dnn::executable_cache &known, const attention_shape &s) noexcept {
  try {
    std::vector<std::int64_t> key = s.key();
    key.push_back(0);
    return known.find(owner, key, [&](dnn::handle by) {
      dnn::computation made;
      describe_attention(made, s, s.gradients);
      return made.finish(by, {0, SIZE_MAX, 1});
    });
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

const executable *find_gradients(gpu &owner, dnn::executable_cache &known, const attention_shape &s) noexcept {
  try {
    std::vector<std::int64_t> key = s.key();
    key.push_back(1);
    return known.find(owner, key, [&](dnn::handle by) {
      dnn::computation made;
      describe_gradients(made, s, pads(s));
      return made.finish(by, {0, SIZE_MAX, 1});
    });
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

bool is_usable(gpu &on) noexcept {
  return on.facts().major >= 8 && dnn::load() != nullptr && dnn::library().version() >= oldest &&
         on.usable() == SG_STATUS_OK;
}

// Addresses of a run.
class run_of_executable {
 public:
  run_of_executable(call_stream &in, dnn::stream_resources &by) noexcept : in_(in), by_(by) {}

  void bind(dnn::attention_tensor number, const void *at) noexcept { tensors_[count_++] = {number, at}; }
  sg_status run(const executable &what, const char *doing) noexcept {
    dnn::handle handle = nullptr;
    if (const sg_status status = by_.handle_of(in_.native(), handle)) return status;
    const executable::way &how = what.ways().front();
    void *workspace = nullptr;
    if (how.workspace > 0)
      if (const sg_status status = in_.acquire(how.workspace, &workspace)) return status;
    const dnn::status outcome = what.run(handle, how, {tensors_, count_}, workspace);
    in_.release(workspace);
    return outcome == 0 ? SG_STATUS_OK : dnn::failure(outcome, doing);
  }

 private:
  call_stream &in_;
  dnn::stream_resources &by_;
  executable::bound tensors_[24];
  std::size_t count_ = 0;
};

// Values of host memory that a run reads.
struct run_values {
  float scale, hidden = -INFINITY, one = 1;
  std::int32_t queries, keys;

  explicit run_values(const attention_shape &s, double of_scale) noexcept
      : scale(static_cast<float>(of_scale)),
        queries(static_cast<std::int32_t>(s.queries)),
        keys(static_cast<std::int32_t>(s.keys)) {}
  void bind(run_of_executable &to, dnn::band mask) const noexcept {
    to.bind(dnn::of_scale, &scale);
    if (mask != dnn::band::none) to.bind(dnn::of_hidden, &hidden);
    if (mask == dnn::band::from_end) to.bind(dnn::of_queries, &queries), to.bind(dnn::of_keys, &keys);
  }
};

// Parts of a command's scratch memory.
class scratch_parts {
 public:
  scratch_parts(void *first, std::int64_t bytes) noexcept : next_(static_cast<char *>(first)), left_(bytes) {}
  void *take(std::int64_t bytes) noexcept {
    const std::int64_t whole = (bytes + 255) / 256 * 256;
    left_ -= whole;
    return std::exchange(next_, next_ + whole);
  }
  bool suffices() const noexcept { return left_ >= 0; }

 private:
  char *next_;
  std::int64_t left_;
};

}  // namespace

bool supports_by_dnn(gpu &on, dnn::executable_cache &known, const sg_backend_attention &what) noexcept {
  const auto s = dnn::shape_of(what);
  if (!s || !is_usable(on)) return false;
  const current here(on.context());
  return find_attention(on, known, *s) != nullptr;
}

bool supports_by_dnn(gpu &on, dnn::executable_cache &known, const sg_backend_attention_backward &what) noexcept {
  const auto s = dnn::shape_of(what);
  if (!s || !is_usable(on) || dnn::wants_same_bits()) return false;  // dQ is added by atomic operations
  const current here(on.context());
  return find_attention(on, known, *s) != nullptr && find_gradients(on, known, *s) != nullptr;
}

bool run_by_dnn(call_stream &in, dnn::stream_resources &by, const sg_backend_attention &what,
                sg_status &status) noexcept {
  const auto s = dnn::shape_of(what);
  if (!s || !is_usable(in.owner())) return false;
  const bool aligned = aligned_heads::is_aligned(what.q) && aligned_heads::is_aligned(what.k) &&
                       aligned_heads::is_aligned(what.v) && aligned_heads::is_aligned(what.o);
  if (!aligned && is_supported(what)) return false;
  const executable *const how = find_attention(in.owner(), by.known(), *s);
  if (how == nullptr) return false;
  const std::int64_t size = element_size(what.type), width = what.width * size, value_width = what.value_width * size;
  aligned_heads q(in), k(in), v(in), o(in);
  status = q.take(what.q, {what.batch, what.heads, what.queries, width, size}, true);
  if (status == SG_STATUS_OK) status = k.take(what.k, {what.batch, what.kv_heads, what.keys, width, size}, true);
  if (status == SG_STATUS_OK) status = v.take(what.v, {what.batch, what.kv_heads, what.keys, value_width, size}, true);
  if (status == SG_STATUS_OK) status = o.take(what.o, {what.batch, what.heads, what.queries, value_width, size}, false);
  if (status != SG_STATUS_OK) return true;
  const run_values values(*s, what.scale);
  run_of_executable run(in, by);
  run.bind(dnn::of_q, q.data()), run.bind(dnn::of_k, k.data()), run.bind(dnn::of_v, v.data());
  run.bind(dnn::of_o, o.data());
  values.bind(run, s->mask);
  status = run.run(*how, "starting an attention");
  if (status == SG_STATUS_OK) status = o.bring_back();
  return true;
}

sg_status run_by_dnn(call_stream &in, dnn::stream_resources &by, const sg_backend_attention_backward &what) noexcept {
  const auto s = dnn::shape_of(what);
  const executable *forward = nullptr, *backward = nullptr;
  if (s && is_usable(in.owner())) {
    forward = find_attention(in.owner(), by.known(), *s);
    backward = find_gradients(in.owner(), by.known(), *s);
  }
  if (forward == nullptr || backward == nullptr)
    return fail(SG_STATUS_UNSUPPORTED, "cuDNN has no gradients of an attention of %lld queries and %lld keys",
                static_cast<long long>(what.queries), static_cast<long long>(what.keys));
  const std::int64_t size = element_size(what.type), width = what.width * size, value_width = what.value_width * size;
  const std::int64_t rows = what.batch * what.heads * what.queries, columns = what.batch * what.kv_heads * what.keys;
  scratch_parts scratch(what.scratch, what.scratch_bytes);
  void *const o = scratch.take(rows * value_width), *const statistics = scratch.take(rows * 4);
  void *const sums = scratch.take(rows * 4), *const dq_sums = scratch.take(rows * what.width * 4);
  const auto own = [&](const sg_backend_heads &x, std::int64_t bytes) {
    return x.data != nullptr ? x : sg_backend_heads{scratch.take(bytes), 0, 0, 0};
  };
  const sg_backend_heads results[] = {own(what.dq, rows * width), own(what.dk, columns * width),
                                      own(what.dv, columns * value_width)};
  void *const query_lengths = scratch.take(what.batch * 4), *const key_lengths = scratch.take(what.batch * 4);
  if (!scratch.suffices()) return fail(SG_STATUS_INTERNAL, "too little scratch memory for gradients of an attention");

  const aligned_heads::form of_q{what.batch, what.heads, what.queries, width, size};
  const aligned_heads::form of_o{what.batch, what.heads, what.queries, value_width, size};
  const aligned_heads::form of_k{what.batch, what.kv_heads, what.keys, width, size};
  const aligned_heads::form of_v{what.batch, what.kv_heads, what.keys, value_width, size};
  aligned_heads q(in), k(in), v(in), dout(in), dq(in), dk(in), dv(in);
  sg_status status = q.take(what.q, of_q, true);
  if (status == SG_STATUS_OK) status = k.take(what.k, of_k, true);
  if (status == SG_STATUS_OK) status = v.take(what.v, of_v, true);
  if (status == SG_STATUS_OK) status = dout.take(what.dout, of_o, true);
  if (status == SG_STATUS_OK) status = dq.take(results[0], of_q, false);
  if (status == SG_STATUS_OK) status = dk.take(results[1], of_k, false);
  if (status == SG_STATUS_OK) status = dv.take(results[2], of_v, false);
  if (status != SG_STATUS_OK) return status;

  const run_values values(*s, what.scale);
  run_of_executable first(in, by);
  first.bind(dnn::of_q, q.data()), first.bind(dnn::of_k, k.data()), first.bind(dnn::of_v, v.data());
  first.bind(dnn::of_o, o), first.bind(dnn::of_statistics, statistics);
  values.bind(first, s->mask);
  status = first.run(*forward, "starting an attention");
  if (status != SG_STATUS_OK) return status;

  run_of_executable second(in, by);
  second.bind(dnn::of_q, q.data()), second.bind(dnn::of_k, k.data()), second.bind(dnn::of_v, v.data());
  second.bind(dnn::of_o, o), second.bind(dnn::of_d_o, dout.data()), second.bind(dnn::of_dq, dq.data());
  second.bind(dnn::of_dk, dk.data()), second.bind(dnn::of_dv, dv.data());
  second.bind(dnn::of_statistics, statistics), second.bind(dnn::of_sums, sums);
  second.bind(dnn::of_dq_sums, dq_sums), second.bind(dnn::of_one, &values.one);
  values.bind(second, s->mask);
  if (pads(*s)) {
    second.bind(dnn::of_query_lengths, query_lengths), second.bind(dnn::of_key_lengths, key_lengths);
    second.bind(dnn::of_padding, &values.hidden);
    const auto fill = [&](void *to, std::int64_t value) {
      const CUresult result = driver().fill(reinterpret_cast<CUdeviceptr>(to), static_cast<unsigned>(value),
                                            static_cast<std::size_t>(what.batch), in.native());
      return result == CUDA_SUCCESS ? SG_STATUS_OK
                                    : in.owner().check(static_cast<cudaError_t>(result), "filling lengths");
    };
    status = fill(query_lengths, what.queries);
    if (status == SG_STATUS_OK) status = fill(key_lengths, what.keys);
    if (status != SG_STATUS_OK) return status;
  }
  status = second.run(*backward, "starting gradients of an attention");
  for (aligned_heads *each : {&dq, &dk, &dv})
    if (status == SG_STATUS_OK) status = each->bring_back();
  return status;
}

}  // namespace sg::cuda
