// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/linear_stream.hpp"

#include "plan/gemm/resident/gemm_builder.hpp"
#include "plan/layers/column_sums.hpp"
#include "plan/layers/slot_ring.hpp"

namespace sg {
namespace {

// An operand of the GEMMs of one problem.
struct linear_operand {
  linear_part part;
  operand_name name;
};

constexpr linear_operand dx{input_gradient, operand_name::c}, dw{weight_gradient, operand_name::c};

// The blocks of the operands, as stored.
class linear_geometry {
 public:
  explicit linear_geometry(const linear_problems &p) : p_(p) {}

  linear_operand w() const { return {input_gradient, p_.dy_is_a[0] ? operand_name::b : operand_name::a}; }
  linear_operand x() const { return {weight_gradient, p_.dy_is_a[1] ? operand_name::b : operand_name::a}; }
  linear_operand dy_of(linear_part part) const { return {part, p_.dy_is_a[part] ? operand_name::a : operand_name::b}; }

  range outputs() const { return {0, p_.outputs()}; }
  range rows() const { return {0, p_.rows()}; }
  range inputs() const { return {0, p_.inputs()}; }

  block dy_block(range rows) const { return block_of_a(p_.all[bias_gradient_part], outputs(), rows); }
  block w_block() const { return {0, 0, p_.w().rows, p_.w().cols}; }
  block x_block(range inputs) const {
    const problem &p = p_.all[weight_gradient];
    return p_.dy_is_a[1] ? block_of_b(p, rows(), inputs) : block_of_a(p, inputs, rows());
  }
  block dx_block(range rows) const { return p_.dy_is_a[0] ? block_of_c(rows, inputs()) : block_of_c(inputs(), rows); }
  block dw_block(range inputs) const {
    return p_.dy_is_a[1] ? block_of_c(outputs(), inputs) : block_of_c(inputs, outputs());
  }

 private:
  const linear_problems &p_;
};

bool is_cut(const operand &x, const block &where) { return where.rows < x.rows; }

// Pinned operands whose blocks are not contiguous, as pageable ones, which host workers pack.
linear_problems with_packing(linear_problems p, const linear_blocks &blocks) {
  if (!blocks.packs) return p;
  const linear_geometry g(p);
  const range some_rows = cut(p.rows(), blocks.rows, grain).front();
  const bool cuts_dy = is_cut(p.dy(), g.dy_block(some_rows));
  const bool cuts_dx = p.computes(input_gradient) && is_cut(p.all[input_gradient].c, g.dx_block(some_rows));
  bool cuts_x = false, cuts_dw = false;
  if (p.computes(weight_gradient)) {
    const range some_inputs = cut(p.inputs(), blocks.inputs, grain).front();
    cuts_x = is_cut(p.x(), g.x_block(some_inputs));
    cuts_dw = is_cut(p.all[weight_gradient].c, g.dw_block(some_inputs));
  }
  const auto pack = [](operand &x, bool is_cut) {
    if (is_cut && x.space == SG_MEMORY_PINNED) x.space = SG_MEMORY_PAGEABLE;
  };
  pack(p.all[bias_gradient_part].a, cuts_dy);
  pack(p.all[input_gradient].c, cuts_dx);
  pack(p.dy_is_a[1] ? p.all[weight_gradient].b : p.all[weight_gradient].a, cuts_x);
  pack(p.all[weight_gradient].c, cuts_dw);
  return p;
}

// The last block becomes two, so that little is left to do when the last of X has arrived.
std::vector<range> with_short_end(std::vector<range> blocks) {
  const range last = blocks.back();
  const std::int64_t first = round_up(ceil_div(last.size, 2), grain);
  if (blocks.size() < 2 || first >= last.size) return blocks;
  blocks.back().size = first;
  blocks.push_back({last.first + first, last.size - first});
  return blocks;
}

class linear_stream {
 public:
  linear_stream(const linear_problems &p, const linear_blocks &blocks, const device_model &model, int lanes)
      : p_(p),
        g_(p_),
        lanes_(lanes),
        rows_(cut(p.rows(), blocks.rows, rows_of_group(p.rows()))),
        builder_(p_.all),
        moves_(builder_, model, pageable(blocks.packs)) {
    if (p_.computes(weight_gradient)) inputs_ = with_short_end(cut(p.inputs(), blocks.inputs, grain));
  }

  schedule run(const std::string &name) {
    if (p_.computes(bias_gradient_part)) {
      bias_.emplace_back(builder_, parameter_of(bias_gradient_part, operand_name::c), p_.sums().adds, moves_);
      sums_.emplace_back(builder_, p_.sums(), g_.outputs(), std::int64_t(rows_.size()), lane_of(1));
    }
    if (p_.computes(input_gradient)) load_w();
    make_room_for_rows();
    for (const range &rows : rows_) add_rows(rows);
    if (stays_ && !sums_.empty())
      sums_.front().add(add_groups(dy_buffer_, p_.dy().rows), 0, p_.dy().rows, p_.rows(), dy_ready_);
    if (!sums_.empty()) bias_.front().finish(sums_);
    make_room_for_inputs();
    for (const range &inputs : inputs_) add_inputs(inputs);
    return builder_.finish(name);
  }

 private:
  std::uint16_t lane_of(int index) const { return std::uint16_t(index % lanes_); }
  const operand &of(linear_operand x) const { return operand_of(p_.all[x.part], x.name); }
  bool dy_on_host() const { return on_host(p_.dy()); }

  pageable_bytes pageable(bool packs) const {
    pageable_bytes bytes{0, 0, packs ? 2 : 1};
    const auto amount = [](const operand &x) { return x.space == SG_MEMORY_PAGEABLE ? problem::bytes(x, 1) : 0; };
    bytes.in = amount(p_.dy());
    if (p_.computes(input_gradient)) bytes.in += amount(p_.w());
    if (p_.computes(weight_gradient)) bytes.in += amount(p_.x());
    for (const problem &each : p_.all) {
      bytes.out += amount(each.c);
      if (!each.beta_zero) bytes.in += amount(each.c);
    }
    return bytes;
  }

  view own(std::int32_t buffer, const block &where) const {
    return {buffer, 0, 1, 0, where.rows, where.rows, where.cols};
  }
  view given(linear_operand x, const block &where) const {
    return builder_.operand_view(x.part, x.name, {0, 1}, where);
  }

  std::uint32_t load(linear_operand x, const block &where, std::int32_t buffer, std::span<const std::uint32_t> waits) {
    return moves_.in(parameter_of(std::int32_t(x.part), x.name), {{0, 1}, where}, {buffer, 0, 0, where.rows, 0}, waits);
  }

  void load_w() {
    const linear_operand w = g_.w();
    w_ = given(w, g_.w_block());
    if (!on_host(of(w))) return;
    const std::int32_t buffer =
        builder_.add_device_buffer(of(w).type, checked_mul(w_.rows, w_.cols, "W") * size_of(of(w).type));
    w_ready_ = {load(w, g_.w_block(), buffer, {})};
    w_ = own(buffer, g_.w_block());
  }

  void make_room_for_rows() {
    const operand &dy = p_.dy();
    stays_ = dy_on_host() && p_.computes(weight_gradient);
    if (stays_)
      dy_buffer_ = builder_.add_device_buffer(dy.type, checked_mul(dy.rows, dy.cols, "dY") * size_of(dy.type));
    else if (dy_on_host())
      dy_slots_ = slot_ring(builder_, dy.type, rows_, p_.outputs());
    if (p_.computes(input_gradient) && on_host(of(dx)))
      dx_slots_ = slot_ring(builder_, of(dx).type, rows_, p_.inputs());
  }

  // The buffer with groups of rows as items.
  std::int32_t add_groups(std::int32_t buffer, std::int64_t ld) {
    const problem &p = p_.all[bias_gradient_part];
    return builder_.add_alias(buffer, p.a.type,
                              stride_of_groups(p.op_a == SG_TRANSPOSE_N, p.k, ld) * size_of(p.a.type));
  }

  // A block of dY, and what is computed from it.
  void add_rows(range rows) {
    const block where = g_.dy_block(rows);
    if (!dy_on_host()) {
      if (p_.computes(input_gradient)) add_dx(rows, given(g_.dy_of(input_gradient), where), {});
      if (!sums_.empty()) add_sums(given({bias_gradient_part, operand_name::a}, where), rows, {});
      return;
    }
    const std::int64_t size = size_of(p_.dy().type);
    slot_ring::slot whole{dy_buffer_, {}}, &slot = stays_ ? whole : dy_slots_.next();
    const std::int64_t ld = stays_ ? p_.dy().rows : where.rows;
    const std::int64_t offset = stays_ ? (where.row + where.col * ld) * size : 0;
    const std::uint32_t copied = moves_.in(parameter_of(bias_gradient_part, operand_name::a), {{0, 1}, where},
                                           {slot.buffer, 0, offset, ld, 0}, slot.users);
    slot.users.clear();
    builder_.merge(dy_ready_, copied);
    const view here{slot.buffer, 0, 1, offset, ld, where.rows, where.cols};
    if (p_.computes(input_gradient)) builder_.merge(slot.users, add_dx(rows, here, {{copied}}));
    if (stays_ || sums_.empty()) return;
    view groups = here;
    groups.buffer = add_groups(slot.buffer, ld);
    builder_.merge(slot.users, add_sums(groups, rows, {{copied}}));
  }

  std::uint32_t add_sums(const view &dy, range rows, std::span<const std::uint32_t> waits) {
    return sums_.front().add(dy.buffer, dy.offset, dy.ld, rows.size, waits);
  }

  std::uint32_t add_dx(range rows, const view &dy, std::span<const std::uint32_t> ready) {
    const block where = g_.dx_block(rows);
    command c = p_.dy_is_a[0] ? builder_.gemm(input_gradient, rows, g_.inputs(), g_.outputs(), lane_of(0))
                              : builder_.gemm(input_gradient, g_.inputs(), rows, g_.outputs(), lane_of(0));
    c.views[p_.dy_is_a[0] ? ops::gemm::a : ops::gemm::b] = dy;
    c.views[p_.dy_is_a[0] ? ops::gemm::b : ops::gemm::a] = w_;
    std::vector<std::uint32_t> waits = w_ready_;
    waits.insert(waits.end(), ready.begin(), ready.end());
    return add_result(dx, where, dx_slots_, std::move(c), std::move(waits));
  }

  void make_room_for_inputs() {
    if (!p_.computes(weight_gradient)) return;
    if (on_host(of(g_.x()))) x_slots_ = slot_ring(builder_, of(g_.x()).type, inputs_, p_.rows());
    if (on_host(of(dw))) dw_slots_ = slot_ring(builder_, of(dw).type, inputs_, p_.outputs());
  }

  // A block of X, and its part of dW.
  void add_inputs(range inputs) {
    const linear_operand x = g_.x();
    const block where = g_.x_block(inputs), all{0, 0, p_.dy().rows, p_.dy().cols};
    std::vector<std::uint32_t> waits = dy_ready_, *users = nullptr;
    view from = given(x, where);
    if (on_host(of(x))) {
      slot_ring::slot &slot = x_slots_.next();
      waits.push_back(load(x, where, slot.buffer, slot.users));
      from = own(slot.buffer, where);
      users = &slot.users;
    }
    command c = p_.dy_is_a[1] ? builder_.gemm(weight_gradient, g_.outputs(), inputs, g_.rows(), lane_of(2))
                              : builder_.gemm(weight_gradient, inputs, g_.outputs(), g_.rows(), lane_of(2));
    c.views[p_.dy_is_a[1] ? ops::gemm::a : ops::gemm::b] =
        stays_ ? own(dy_buffer_, all) : given(g_.dy_of(weight_gradient), all);
    c.views[p_.dy_is_a[1] ? ops::gemm::b : ops::gemm::a] = from;
    const std::uint32_t computed = add_result(dw, g_.dw_block(inputs), dw_slots_, std::move(c), std::move(waits));
    if (users) *users = {computed};
  }

  // A GEMM that computes a block of a result, to be copied out if that is on the host.
  std::uint32_t add_result(linear_operand x, const block &where, slot_ring &slots, command c,
                           std::vector<std::uint32_t> waits) {
    if (!on_host(of(x))) {
      c.views[ops::gemm::c] = given(x, where);
      return builder_.add(c, waits);
    }
    slot_ring::slot &slot = slots.next();
    c.views[ops::gemm::c] = own(slot.buffer, where);
    if (!p_.all[x.part].beta_zero) slot.users = {load(x, where, slot.buffer, slot.users)};
    waits.insert(waits.end(), slot.users.begin(), slot.users.end());
    const std::uint32_t computed = builder_.add(c, waits);
    slot.users = {moves_.out(parameter_of(std::int32_t(x.part), x.name), {{0, 1}, where},
                             {slot.buffer, 0, 0, where.rows, 0}, {{computed}})};
    return computed;
  }

  const linear_problems p_;
  linear_geometry g_;
  int lanes_;
  std::vector<range> rows_, inputs_;
  gemm_builder builder_;
  transfers moves_;
  slot_ring dy_slots_, dx_slots_, x_slots_, dw_slots_;
  view w_;
  std::vector<std::uint32_t> w_ready_, dy_ready_;
  bool stays_ = false;  // dY, on the device for dW
  std::int32_t dy_buffer_ = -1;
  std::vector<column_sums> sums_;  // one, or none
  std::vector<bias_gradient> bias_;
};

}  // namespace

bool has_short_runs(const linear_problems &p, const linear_blocks &blocks) {
  linear_blocks packed = blocks;
  packed.packs = true;
  return with_packing(p, packed).all != p.all;
}

schedule build_linear_stream(const linear_problems &p, const linear_blocks &blocks, const device_model &model,
                             int lanes) {
  const std::string name = "linear backward " + std::to_string(blocks.rows) + " + " + std::to_string(blocks.inputs) +
                           " blocks" + (blocks.packs ? ", packed" : "");
  return linear_stream(with_packing(p, blocks), blocks, model, lanes).run(name);
}

}  // namespace sg
