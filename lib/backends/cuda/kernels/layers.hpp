// SPDX-License-Identifier: Apache-2.0
// The operations of layers.h, convert.h, gather.h and conv.h, and steps of recurrent cells, by kernels that read and
// write each element once, and attention.
#pragma once

#include <cuda_runtime_api.h>
#include <streamgemm/backend.h>

namespace sg::cuda {

cudaError_t launch_attention(const sg_backend_attention &what, cudaStream_t in) noexcept;
cudaError_t launch_elementwise(const sg_backend_elementwise &what, cudaStream_t in) noexcept;
cudaError_t launch_softmax(const sg_backend_softmax &what, cudaStream_t in) noexcept;
cudaError_t launch_softmax_backward(const sg_backend_softmax_backward &what, cudaStream_t in) noexcept;
cudaError_t launch_norm(const sg_backend_norm &what, cudaStream_t in) noexcept;
cudaError_t launch_dequantize(const sg_backend_dequantize &what, cudaStream_t in) noexcept;
cudaError_t launch_rotary(const sg_backend_rotary &what, cudaStream_t in) noexcept;
cudaError_t launch_convert(const sg_backend_convert &what, cudaStream_t in) noexcept;
cudaError_t launch_gather(const sg_backend_gather &what, cudaStream_t in) noexcept;
cudaError_t launch_im2col(const sg_backend_im2col &what, cudaStream_t in) noexcept;
cudaError_t launch_col2im(const sg_backend_col2im &what, cudaStream_t in) noexcept;
cudaError_t launch_cell(const sg_backend_cell &what, cudaStream_t in) noexcept;
cudaError_t launch_cell_backward(const sg_backend_cell_backward &what, cudaStream_t in) noexcept;

}  // namespace sg::cuda
