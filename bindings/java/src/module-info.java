// SPDX-License-Identifier: Apache-2.0
/** Asynchronous matrix multiplication on CPUs and GPUs. */
module org.streamgemm {
  exports org.streamgemm;
}
