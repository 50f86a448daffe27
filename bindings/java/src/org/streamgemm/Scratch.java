// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.streamgemm.internal.Native;

/** Native memory of a thread for the structs of its calls, as a stack. */
final class Scratch {
  private static final int SIZE = 32 << 10;
  /** Room that a call and what it calls need; a thread that helps others may nest calls. */
  private static final int ROOM = 4 << 10;
  private static final ThreadLocal<Scratch> OF_THREAD = ThreadLocal.withInitial(Scratch::new);

  private final ByteBuffer memory;
  private final long address;
  /** Memory of what is too long for the stack, until it is empty. */
  private final List<Object> others = new ArrayList<>(0);
  private int top;

  private Scratch() {
    this(SIZE);
  }

  private Scratch(int size) {
    memory = ByteBuffer.allocateDirect(size).order(ByteOrder.nativeOrder());
    address = Native.address(memory);
  }

  /** Memory of its own, for many structs, kept until the stack is empty. */
  Scratch another(int bytes) {
    Scratch made = new Scratch(bytes);
    others.add(made);
    return made;
  }

  static Scratch get() {
    Scratch own = OF_THREAD.get();
    return own.top + ROOM <= SIZE ? own : new Scratch();
  }

  /** Room for a struct, cleared; returns its offset, to be popped. */
  int push(int bytes) {
    int at = top;
    top += (bytes + 7) & ~7;
    for (int i = at; i < top; i += 8) memory.putLong(i, 0);
    return at;
  }

  void pop(int at) {
    top = at;
    if (at == 0) others.clear();
  }

  long address(int at) {
    return address + at;
  }

  /** The address of numbers until the struct that was pushed before them is popped; 0 of none. */
  long longs(long... values) {
    if (values.length == 0) return 0;
    if (8 * values.length <= ROOM / 4 && top + 8 * values.length <= memory.capacity()) {
      int at = push(8 * values.length);
      for (int i = 0; i < values.length; ++i) memory.putLong(at + 8 * i, values[i]);
      return address + at;
    }
    ByteBuffer own = ByteBuffer.allocateDirect(8 * values.length).order(ByteOrder.nativeOrder());
    own.asLongBuffer().put(values);
    others.add(own);
    return Native.address(own);
  }

  /** Likewise of a text with a NUL behind it; 0 of null. */
  long text(byte[] utf8) {
    if (utf8 == null) return 0;
    if (utf8.length >= ROOM / 4) {
      ByteBuffer own = ByteBuffer.allocateDirect(utf8.length + 1).put(utf8);
      others.add(own);
      return Native.address(own);
    }
    int at = push(utf8.length + 1);
    for (int i = 0; i < utf8.length; ++i) memory.put(at + i, utf8[i]);
    return address + at;
  }

  long utf8(String argument, String text) {
    Names.refuseNul(argument, text);
    return text(text == null ? null : text.getBytes(StandardCharsets.UTF_8));
  }

  /** The text at an offset. */
  String text(int at) {
    int end = at;
    while (memory.get(end) != 0) ++end;
    byte[] bytes = new byte[end - at];
    for (int i = 0; i < bytes.length; ++i) bytes[i] = memory.get(at + i);
    return new String(bytes, StandardCharsets.UTF_8);
  }

  void putLong(int at, long value) {
    memory.putLong(at, value);
  }

  void putInt(int at, int value) {
    memory.putInt(at, value);
  }

  void putDouble(int at, double value) {
    memory.putDouble(at, value);
  }

  long getLong(int at) {
    return memory.getLong(at);
  }

  int getInt(int at) {
    return memory.getInt(at);
  }

  double getDouble(int at) {
    return memory.getDouble(at);
  }
}
