// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/pool.h>

#include <algorithm>

#include "api/operands/windows_of.hpp"
#include "api/operations/operations.hpp"
#include "api/submission/layer.hpp"
#include "base/checked.hpp"

namespace sg {

namespace {

// A pooling and its gradient.
template <class Desc>
class checked_pool {
 public:
  checked_pool(const context &on, const checked_submit &order, const Desc &d, const char *name)
      : d_(d),
        name_(name),
        windows_(check_windows(
            {name, d.images, d.channels, d.height, d.width, 0, 0, d.windows, d.image_layout, SG_FILTER_OIHW})),
        x_(on, order) {
    if (d.pooling < SG_POOLING_MAX || d.pooling > SG_POOLING_AVERAGE_INSIDE)
      throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->pooling is %d, which is no pooling", name, int{d.pooling});
    require_layer_type(d.dtype, name);
    static_cast<ops::windows &>(what_) = windows_.of;
    what_.pooling = d.pooling;
    x_.allows_in_place = false;
  }

  std::int64_t unpooled() const noexcept { return windows_.elements_of_image(); }
  std::int64_t pooled() const { return checked_mul(what_.positions_of_image(), what_.channels, "an image"); }

  given_operand images(const char *name, const sg_images &of, std::int64_t elements) const {
    const std::int64_t stride = checked_stride(name_, name, of, windows_.images, elements);
    const sg_matrix view{
        of.data, elements, windows_.images, std::max<std::int64_t>(stride, elements), d_.dtype, SG_LAYOUT_COLUMN_MAJOR};
    return {name_, name, view, nullptr, 0, ".data", &of.data};
  }
  void add(const given_operand &x, std::size_t view) { add_operand(x_, x, view); }

  void submit(context &on, sg_operation operation, const char *strategy, checked_submit &order, sg_job **out_job) {
    const double taps = double(what_.kernel_h) * double(what_.kernel_w);
    x_.set_operation(what_, strategy, taps, command_form::split::columns);
    auto wanted = backend_command<sg_backend_pool>();
    wanted.type = d_.dtype;
    bind_layer(x_, wanted.header, strategy);
    submit_layer(on, x_, operation, d_, name_, order, out_job);
  }

 private:
  const Desc &d_;
  const char *name_;
  checked_windows windows_;
  ops::pool what_;
  layer x_;
};

}  // namespace

void submit(context &on, const sg_pool2d_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  checked_pool all(on, order, d, name);
  const given_operand x = all.images("x", d.x, all.unpooled()), y = all.images("y", d.y, all.pooled());
  all.add(x, ops::pool::x);
  all.add(y, ops::pool::result);
  all.submit(on, SG_OPERATION_POOL2D, "pooling", order, out_job);
}

void submit(context &on, const sg_pool2d_backward_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  checked_pool all(on, order, d, name);
  const given_operand dy = all.images("dy", d.dy, all.pooled()), dx = all.images("dx", d.dx, all.unpooled());
  const given_operand x = all.images("x", d.x, all.unpooled());
  all.add(dy, ops::pool::dy);
  if (d.pooling == SG_POOLING_MAX) all.add(x, ops::pool::x);
  all.add(dx, ops::pool::result);
  all.submit(on, SG_OPERATION_POOL2D_BACKWARD, "pooling gradient", order, out_job);
}

}  // namespace sg
