/* SPDX-License-Identifier: Apache-2.0 */
/* C#: the P/Invoke layer StreamGemm.Internal. All arguments are numbers or addresses, so that no call marshals or pins, and
 * native code never calls back into the runtime (SWIG's own helpers would: meson.build switches them off). */
%module Raw

%typemap(csclassmodifiers) SWIGTYPE "internal class"
%pragma(csharp) moduleclassmodifiers="internal static class"
%pragma(csharp) imclassclassmodifiers="internal static class"

/* The native library is found before the first call. Mono looks for it before it runs a static constructor of the class that
 * declares the calls, so the classes that make them have one: the module's and each proxy's. */
%pragma(csharp) modulecode=%{
  static Raw() {
    StreamGemm.NativeLoader.Load();
  }
%}
%typemap(cscode) SWIGTYPE %{
  static $csclassname() {
    StreamGemm.NativeLoader.Load();
  }
%}
%rename("$ignore", %$isconstant) ""; /* C# has them as literals of its own */

/* Without its exception helper, SWIG's runtime has no name for this one. */
%begin %{
#define SWIG_CSharpSetPendingExceptionArgument(code, message, name) ((void)0)
%}

/* A 64-bit number of any C type. C's long is 32 bits wide to SWIG's C#, and size_t too. */
%define SG_INTEGER64(TYPE, CS)
%typemap(ctype) TYPE "TYPE"
%typemap(imtype) TYPE #CS
%typemap(cstype) TYPE #CS
%typemap(in) TYPE "$1 = $input;"
%typemap(out) TYPE "$result = $1;"
%typemap(csin) TYPE "$csinput"
%typemap(csout) TYPE { return $imcall; }
%typemap(csvarin) TYPE %{ set { $imcall; } %}
%typemap(csvarout) TYPE %{ get { return $imcall; } %}
%typemap(ctype) TYPE *OUTPUT "TYPE *"
%typemap(imtype) TYPE *OUTPUT "out " #CS
%typemap(cstype) TYPE *OUTPUT "out " #CS
%typemap(in) TYPE *OUTPUT "$1 = $input;"
%typemap(csin) TYPE *OUTPUT "out $csinput"
%enddef
%include <stdint.i>
SG_INTEGER64(int64_t, long)
SG_INTEGER64(uint64_t, ulong)
SG_INTEGER64(size_t, ulong)
%include <typemaps.i>
%apply int32_t *OUTPUT { sg_status *out_status };

%typemap(ctype) void *SG_ADDRESS "int64_t"
%typemap(imtype) void *SG_ADDRESS "long"
%typemap(cstype) void *SG_ADDRESS "long"
%typemap(in) void *SG_ADDRESS "$1 = ($1_ltype)(intptr_t)$input;"
%typemap(out) void *SG_ADDRESS "$result = (int64_t)(intptr_t)$1;"
%typemap(csin) void *SG_ADDRESS "$csinput"
%typemap(csout) void *SG_ADDRESS { return $imcall; }
%typemap(csvarin) void *SG_ADDRESS %{ set { $imcall; } %}
%typemap(csvarout) void *SG_ADDRESS %{ get { return $imcall; } %}

%typemap(ctype) void **SG_OUT_ADDRESS "int64_t *"
%typemap(imtype) void **SG_OUT_ADDRESS "out long"
%typemap(cstype) void **SG_OUT_ADDRESS "out long"
%typemap(in) void **SG_OUT_ADDRESS "$1 = ($1_ltype)$input; *$input = 0;"
%typemap(csin) void **SG_OUT_ADDRESS "out $csinput"

/* Enumerations are ints here; the public enums are generated from the headers too (api/csharp.py), with their comments. */
%rename("$ignore", %$isenum) "";
%rename("$ignore", %$isenumitem) "";
%typemap(ctype) enum SWIGTYPE "int"
%typemap(imtype) enum SWIGTYPE "int"
%typemap(cstype) enum SWIGTYPE "int"
%typemap(in) enum SWIGTYPE "$1 = ($1_ltype)$input;"
%typemap(out) enum SWIGTYPE "$result = (int)$1;"
%typemap(csin) enum SWIGTYPE "$csinput"
%typemap(csout) enum SWIGTYPE { return $imcall; }
%typemap(csvarin) enum SWIGTYPE %{ set { $imcall; } %}
%typemap(csvarout) enum SWIGTYPE %{ get { return $imcall; } %}

/* A returned status: failures are exceptions, other statuses (not ready, timeout) are numbers. */
%typemap(ctype) sg_status "int"
%typemap(imtype) sg_status "int"
%typemap(cstype) sg_status "int"
%typemap(in) sg_status "$1 = (sg_status)$input;"
%typemap(out) sg_status "$result = (int)$1;"
%typemap(csin) sg_status "$csinput"
%typemap(csout) sg_status { return StreamGemm.Errors.Check($imcall); }

/* Strings are UTF-8. A returned string is read while its owner (a proxy, the library) is alive. */
%typemap(ctype) const char *, char [ANY] "const char *"
%typemap(imtype) const char *, char [ANY] "System.IntPtr"
%typemap(cstype) const char *, char [ANY] "string"
%typemap(in) const char *, char [ANY] "$1 = ($1_ltype)$input;"
%typemap(out) const char *, char [ANY] "$result = $1;"
%typemap(csout) const char *, char [ANY] { return StreamGemm.Text.Of($imcall); }
%typemap(csin, pre="    using (var $csinput_text = new StreamGemm.Text($csinput, \"$csinput\"))", terminator="") const char * "$csinput_text.Address"
%typemap(csvarin) const char * %{ set { using (var text = new StreamGemm.Text(value)) { var $csinput_text = text; $imcall; } } %}
%typemap(csvarout) const char *, char [ANY] %{
    get {
      string text = StreamGemm.Text.Of($imcall);
      System.GC.KeepAlive(this);
      return text;
    } %}
/* Text in a buffer of the caller: an address. */
%apply void *SG_ADDRESS { char *text };
%immutable name;
%immutable description;
%immutable reason;
%immutable origin;
%immutable mig;
%immutable uuid;
%immutable strategy;
%immutable message;

%include "streamgemm.i"

/* Submissions. The address of the options and the place for the job's handle (0: none wanted) are plain numbers. */
%apply void *SG_ADDRESS { const sg_plan_options *options, sg_job **out_job };
%{
#include "calls.h"
#include "relay.h"
%}
%include "calls.h"
%include "relay.h"
