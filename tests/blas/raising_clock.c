/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that leaves the processor's flag of a division by zero: as a driver may that the drop-in BLAS calls. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *out) {
  volatile double zero = 0, quotient;
  quotient = 1 / zero;
  (void)quotient;
  return (int)syscall(SYS_clock_gettime, clock, out);
}
