// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: operations on matrices, by descriptors that are mostly right. Whatever they say, a call returns an
// allowed status, and nothing is accessed outside of the operands, crashes, hangs or leaks.
#include <streamgemm/streamgemm.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

class input {
 public:
  input(const std::uint8_t *data, std::size_t size) : next_(data), end_(data + size) {}
  bool empty() const { return next_ == end_; }
  int byte() { return empty() ? 0 : *next_++; }
  int below(int bound) { return byte() % bound; }
  bool seldom() { return byte() >= 244; }

 private:
  const std::uint8_t *next_, *end_;
};

struct field {
  std::size_t offset;
  enum { matrix, pointer, choice, number, scalar } kind;
};
struct described {
  sg_operation operation;
  const char *name;
  std::size_t size;
  std::vector<field> fields;
};

#define FIELD(desc, name, kind) \
  { offsetof(desc, name), field::kind }
#define DESCRIBED(operation, desc, ...)                            \
  {                                                                \
    SG_OPERATION_##operation, #desc, sizeof(desc), { __VA_ARGS__ } \
  }
#define OF(name, kind) FIELD(D, name, kind)

const std::vector<described> &operations() {
  static const std::vector<described> all = [] {
    std::vector<described> made;
#define D sg_fill_desc
    made.push_back(DESCRIBED(FILL, sg_fill_desc, OF(y, matrix), OF(value, scalar)));
#undef D
#define D sg_axpby_desc
    made.push_back(DESCRIBED(AXPBY, sg_axpby_desc, OF(a, matrix), OF(c, matrix), OF(alpha, scalar), OF(beta, scalar),
                             OF(activation, choice)));
#undef D
#define D sg_clamp_desc
    made.push_back(DESCRIBED(CLAMP, sg_clamp_desc, OF(x, matrix), OF(y, matrix), OF(low, number), OF(high, number)));
#undef D
#define D sg_convert_desc
    made.push_back(DESCRIBED(CONVERT, sg_convert_desc, OF(a, matrix), OF(c, matrix), OF(op_a, choice)));
#undef D
#define D sg_elementwise_desc
    made.push_back(
        DESCRIBED(ELEMENTWISE, sg_elementwise_desc, OF(a, matrix), OF(b, matrix), OF(c, matrix), OF(function, choice)));
#undef D
#define D sg_softmax_desc
    made.push_back(DESCRIBED(SOFTMAX, sg_softmax_desc, OF(x, matrix), OF(y, matrix), OF(mask, choice)));
#undef D
#define D sg_norm_desc
    made.push_back(DESCRIBED(NORM, sg_norm_desc, OF(x, matrix), OF(y, matrix), OF(gamma, pointer), OF(beta, pointer),
                             OF(epsilon, number), OF(kind, choice)));
#undef D
#define D sg_row_reduce_desc
    made.push_back(DESCRIBED(ROW_REDUCE, sg_row_reduce_desc, OF(x, matrix), OF(y, matrix), OF(reduction, choice)));
#undef D
#define D sg_row_dot_desc
    made.push_back(DESCRIBED(ROW_DOT, sg_row_dot_desc, OF(a, matrix), OF(b, matrix), OF(y, matrix)));
#undef D
#define D sg_symmetric_desc
    made.push_back(DESCRIBED(SYMMETRIC, sg_symmetric_desc, OF(a, matrix), OF(b, matrix), OF(c, matrix),
                             OF(side, choice), OF(triangle, choice), OF(symmetry, choice), OF(alpha, scalar),
                             OF(beta, scalar)));
#undef D
#define D sg_rank_k_desc
    made.push_back(DESCRIBED(RANK_K, sg_rank_k_desc, OF(a, matrix), OF(b, matrix), OF(c, matrix), OF(triangle, choice),
                             OF(symmetry, choice), OF(op_a, choice), OF(alpha, scalar), OF(beta, scalar)));
#undef D
#define D sg_triangular_desc
    made.push_back(DESCRIBED(TRIANGULAR, sg_triangular_desc, OF(a, matrix), OF(b, matrix), OF(kind, choice),
                             OF(side, choice), OF(triangle, choice), OF(op_a, choice), OF(diagonal, choice),
                             OF(alpha, scalar)));
#undef D
    return made;
  }();
  return all;
}

void require(bool good, const char *what, sg_status status) {
  if (good) return;
  std::fprintf(stderr, "%s: %s (%s)\n", what, sg_status_name(status), sg_last_error_message());
  std::abort();
}
sg_status check(sg_status status, const char *what) {
  require(status != SG_STATUS_INTERNAL, what, status);
  require(std::strcmp(sg_status_name(status), "SG_STATUS_UNKNOWN") != 0, what, status);
  require(status >= 0 || sg_last_error_message()[0], what, status);
  return status;
}

// Operands, each in memory of its own, so that an access outside is one of none's.
struct memory {
  explicit memory(std::size_t bytes) : data(std::malloc(bytes)) { std::memset(data, 1, bytes); }
  memory(memory &&other) noexcept : data(other.data) { other.data = nullptr; }
  ~memory() { std::free(data); }
  void *data;
};

struct caller {
  input &in;
  std::vector<memory> &operands;
  int rows = in.below(9), cols = in.below(9);
  sg_dtype dtype = sg_dtype(1 + in.below(10));

  sg_matrix matrix() {
    sg_matrix made = SG_MATRIX_INIT;
    const int what = in.byte();
    made.rows = what & 1 ? cols : rows;
    made.cols = what & 2 ? rows : what & 4 ? 1 : cols;
    if (in.seldom()) made.rows = in.below(9) - 1;
    made.dtype = in.seldom() ? sg_dtype(in.below(13) - 1) : dtype;
    made.layout = sg_layout(in.below(2));
    const std::int64_t lines = made.layout == SG_LAYOUT_ROW_MAJOR ? made.rows : made.cols;
    const std::int64_t width = made.layout == SG_LAYOUT_ROW_MAJOR ? made.cols : made.rows;
    if (what & 8) made.ld = width + in.below(4) - in.seldom();
    if (in.seldom()) made.reserved = std::uint64_t(in.byte());
    const std::int64_t stride = made.ld ? made.ld : width, size = sg_dtype_size(made.dtype);
    const std::int64_t elements = lines > 0 && width > 0 ? (lines - 1) * stride + width : 0;
    if (what & 16 && !operands.empty() && in.seldom()) return made;  // without memory
    operands.emplace_back(std::size_t(elements > 0 ? elements * size : 0));
    made.data = operands.back().data;
    return made;
  }

  std::vector<unsigned char> descriptor(const described &of) {
    std::vector<unsigned char> desc(of.size);
    check(sg_struct_init(of.name, desc.data(), of.size), "sg_struct_init");
    for (const field &each : of.fields) {
      unsigned char *const at = desc.data() + each.offset;
      switch (each.kind) {
        case field::matrix: {
          const sg_matrix given = matrix();
          std::memcpy(at, &given, sizeof given);
          break;
        }
        case field::pointer: {
          if (in.below(2)) break;
          operands.emplace_back(9 * 16);  // of the longest row in the widest type
          std::memcpy(at, &operands.back().data, sizeof(void *));
          break;
        }
        case field::choice: {
          const std::int32_t value = in.seldom() ? in.byte() - 128 : in.below(4);
          if (in.below(2)) std::memcpy(at, &value, sizeof value);
          break;
        }
        case field::number: {
          const double value = in.byte() / 16.0 - in.below(4);
          if (in.below(2)) std::memcpy(at, &value, sizeof value);
          break;
        }
        case field::scalar: {
          const sg_scalar value = {in.below(5) - 2.0, in.below(4) ? 0.0 : 1.0};
          if (in.below(2)) std::memcpy(at, &value, sizeof value);
        }
      }
    }
    return desc;
  }

  void run(sg_context *context) {
    const described &of = operations()[std::size_t(in.below(int(operations().size())))];
    const std::vector<unsigned char> desc = descriptor(of);
    sg_operation_desc operation = SG_OPERATION_DESC_INIT;
    operation.operation = of.operation;
    operation.desc = desc.data();
    if (in.below(4) == 0) {
      sg_plan *plan = nullptr;
      const sg_status status = check(sg_plan_create(context, &operation, nullptr, &plan), of.name);
      require((status == SG_STATUS_OK) == (plan != nullptr), of.name, status);
      if (plan && in.below(2)) check(sg_plan_run(plan, &operation, nullptr), of.name);
      sg_plan_release(plan);
      check(sg_context_supports(context, &operation), of.name);
    } else {
      check(in.below(2) ? sg_run(context, &operation, nullptr) : sg_run_async(context, &operation, nullptr, nullptr),
            of.name);
    }
  }
};

sg_context *opened(const char *device) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = device;
  options.flags = SG_CONTEXT_CHECK_HAZARDS;
  sg_context *made = nullptr;
  require(sg_context_create(&options, &made) == SG_STATUS_OK, device, SG_STATUS_OK);
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  static sg_context *const contexts[] = {opened("cpu"), opened("sim:h200")};
  input in(data, size);
  sg_context *const context = contexts[in.below(2)];
  std::vector<memory> operands;
  operands.reserve(256);
  while (!in.empty() && operands.size() < 240) caller{in, operands}.run(context);
  check(sg_context_synchronize(context, SG_FOREVER), "sg_context_synchronize");
  return 0;
}
