// SPDX-License-Identifier: Apache-2.0
// Triangular and symmetric matrices by CBLAS.
#pragma once

#include <streamgemm/backend.h>

namespace sg::cpu {

// False: no CBLAS is loaded, or its integers are too short for these sizes.
bool cblas_takes(const sg_backend_triangular &what) noexcept;
bool cblas_takes(const sg_backend_symmetric &what) noexcept;
// One call each; an update that does not read C writes zeros to its triangle before.
sg_status cblas_triangular(const sg_backend_triangular &what) noexcept;
sg_status cblas_symmetric(const sg_backend_symmetric &what) noexcept;

}  // namespace sg::cpu
