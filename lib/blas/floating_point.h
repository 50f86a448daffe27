/* SPDX-License-Identifier: Apache-2.0 */
/* The processor's floating-point state: its exceptions are those of the program and of the CPU BLAS, which NumPy for
   one reads behind each call, and not those of a plan. */
#ifndef STREAMGEMM_BLAS_FLOATING_POINT_H
#define STREAMGEMM_BLAS_FLOATING_POINT_H

static inline unsigned long sg_blas_floating_point_state(void) {
#if defined(__x86_64__)
  return __builtin_ia32_stmxcsr();
#elif defined(__aarch64__)
  unsigned long state;
  __asm__ volatile("mrs %0, fpsr" : "=r"(state));
  return state;
#else
  return 0;
#endif
}
static inline void sg_blas_set_floating_point_state(unsigned long state) {
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr((unsigned)state);
#elif defined(__aarch64__)
  __asm__ volatile("msr fpsr, %0" ::"r"(state));
#else
  (void)state;
#endif
}

#endif
