// SPDX-License-Identifier: Apache-2.0
// Lists that are linked through the `next` of their nodes, so that they need no memory.
#pragma once

#include <atomic>

namespace sg {

// Lock-free. Sequentially consistent: a thread that then tests whether it must wake the consumer sees the consumer's
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

// Empties the list; the oldest node comes first.
template <class Node>
Node *take_in_order(std::atomic<Node *> &list) noexcept {
  return list.load() ? reversed(list.exchange(nullptr)) : nullptr;
}

}  // namespace sg
