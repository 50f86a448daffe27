// SPDX-License-Identifier: Apache-2.0
/**
 * StreamGEMM: matrix products, submitted asynchronously, on CPU, GPU and simulated devices.
 *
 * <pre>{@code
 * try (Context context = Context.open()) {
 *   float[] a = ..., b = ..., c = new float[m * n];
 *   context.gemmAsync(Matrix.of(a, m, k), Matrix.of(b, k, n), Matrix.of(c, m, n))
 *       .thenAccept(result -> use(c));
 * }
 * }</pre>
 */
package org.streamgemm;
