/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded, it stands in front of the library's own function: what a process sees that has loaded another version. */
#include <stdint.h>

int32_t sg_version(void) { return 8007006; }
