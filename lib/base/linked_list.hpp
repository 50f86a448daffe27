// SPDX-License-Identifier: Apache-2.0
// Intrusive lists, linked through the `next` of their nodes: they allocate nothing.
#pragma once

#include <atomic>

namespace sg {

// Lock-free. Sequentially consistent: either a thread that then tests whether to wake the consumer sees the consumer's
// state, or the consumer sees the node.
template <class Node>
void push_to(std::atomic<Node *> &list, Node &node) noexcept {
  node.next = list.load(std::memory_order_relaxed);
  while (!list.compare_exchange_weak(node.next, &node)) {
  }
}

template <class Node>
Node *reversed(Node *list) noexcept {
  Node *result = nullptr;
  while (list) {
    Node *const next = list->next;
    list->next = result;
    result = list;
    list = next;
  }
  return result;
}

// Empties the list; returns it oldest node first.
template <class Node>
Node *take_in_order(std::atomic<Node *> &list) noexcept {
  return list.load() ? reversed(list.exchange(nullptr)) : nullptr;
}

}  // namespace sg
