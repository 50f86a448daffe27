// SPDX-License-Identifier: Apache-2.0
// Whether the library of this build runs under a sanitizer, which makes everything several times slower.
#pragma once

namespace sg_test {

#ifdef SG_TEST_SANITIZED
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace sg_test
