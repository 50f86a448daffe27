// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/status.h>
#include <streamgemm/types.h>
#include <streamgemm/version.h>

#include "api/entry.hpp"
#include "base/dtype.hpp"
#include "base/error.hpp"

#define SG_TEXT_OF(x) #x
#define SG_TEXT(x) SG_TEXT_OF(x)

const char *sg_status_name(sg_status status) { return sg::name_of(status); }

const char *sg_last_error_message(void) { return sg::last_error(); }

sg_status sg_last_error(sg_status *out_status, char *text, uint64_t size, uint64_t *out_size) {
  if (out_status) *out_status = sg::last_error_status();
  sg::clear_text(text, size, out_size);
  return sg::guarded([&] { sg::write_text(sg::last_error(), text, size, out_size); });
}

const char *sg_last_error_marked(void) { return sg::last_error_marked(); }

int32_t sg_version(void) { return SG_VERSION; }

const char *sg_version_string(void) {
  return SG_TEXT(SG_VERSION_MAJOR) "." SG_TEXT(SG_VERSION_MINOR) "." SG_TEXT(SG_VERSION_PATCH);
}

int32_t sg_dtype_size(sg_dtype dtype) { return static_cast<int32_t>(sg::size_of(dtype)); }

const char *sg_dtype_name(sg_dtype dtype) { return sg::name_of(dtype); }
