! SPDX-License-Identifier: Apache-2.0
! C = A*B of arrays as Fortran keeps them, submitted and awaited, and checked against matmul. Usage: gemm [device]
program gemm
  use streamgemm
  implicit none
  integer, parameter :: m = 300, n = 200, k = 100
  real(c_double), target :: a(m, k), b(k, n), c(m, n)
  type(c_ptr) :: context, job
  type(sg_context_options) :: options
  type(sg_gemm_desc) :: desc
  character(len=64), target :: device
  integer(c_int) :: job_status

  call get_command_argument(1, device)
  if (device == '') device = 'auto'
  device(len_trim(device) + 1:len_trim(device) + 1) = c_null_char
  options%device = c_loc(device)
  call check(sg_context_create(options, context), 'sg_context_create')

  call random_number(a)
  call random_number(b)
  desc%a = column_major(c_loc(a), m, k)
  desc%b = column_major(c_loc(b), k, n)
  desc%c = column_major(c_loc(c), m, n)
  call check(sg_gemm_async(context, desc, out_job=job), 'sg_gemm_async')
  ! Other work may be done here; a, b and c belong to the job until it has completed.
  call check(sg_job_wait(job, SG_FOREVER, job_status), 'sg_job_wait')
  call check(job_status, 'the GEMM')
  call check(sg_job_release(job), 'sg_job_release')

  if (maxval(abs(c - matmul(a, b))) > 1e-12_c_double * k) error stop 'the result is wrong'
  desc%c%rows = m + 1
  if (sg_gemm(context, desc) /= SG_STATUS_INVALID_ARGUMENT) error stop 'shapes that do not fit must be refused'
  print '(a)', 'refused as it should be: ' // message()
  call check(sg_context_release(context), 'sg_context_release')
  print '(a)', 'C = A*B is right'

contains

  type(sg_matrix) function column_major(data, rows, cols)
    type(c_ptr), intent(in) :: data
    integer, intent(in) :: rows, cols
    column_major = sg_matrix(data=data, rows=rows, cols=cols, dtype=SG_DTYPE_F64, layout=SG_LAYOUT_COLUMN_MAJOR)
  end function column_major

  ! The text of this thread's last error.
  function message() result(text)
    character(len=:), allocatable :: text
    character(kind=c_char, len=1) :: given(512)
    integer(c_int) :: told, i
    told = sg_last_error(text=given, size=size(given, kind=c_int64_t))
    text = ''
    if (told /= SG_STATUS_OK) return
    do i = 1, size(given)
      if (given(i) == c_null_char) exit
      text = text // given(i)
    end do
  end function message

  subroutine check(status, what)
    integer(c_int), intent(in) :: status
    character(len=*), intent(in) :: what
    if (status == SG_STATUS_OK) return
    print '(a)', what // ': ' // message()
    error stop 1
  end subroutine check

end program gemm
