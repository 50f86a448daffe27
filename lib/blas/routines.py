#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the C of one drop-in BLAS library from the table of routines below, its single source.

usage: routines.py preload|lp64|ilp64 OUTPUT.c    the preload library: level 3 under eight name forms, LAPACK under four; an alternative of libblas.so.3
       routines.py header OUTPUT.h                the numbers of the routines
       routines.py names                          the names of the preload library, one a line
"""
import sys

# Level 3. A routine: its types, and its arguments in Fortran's order without the hidden lengths. Words in capitals are single
# letters (CBLAS: an enum), small ones integers, /alpha and /beta scalars of the matrix's type, //... of its real type, a and b
# matrices that are read, *b and *c matrices that are written. The last column: multiplications and additions in pairs.
ROUTINES = {
    "gemm": ("sdcz", "TRANSA TRANSB m n k /alpha a lda b ldb /beta *c ldc", "m * n * k"),
    "gemmt": ("sdcz", "UPLO TRANSA TRANSB n k /alpha a lda b ldb /beta *c ldc", "n * n * k / 2"),
    "gemmtr": ("sdcz", "UPLO TRANSA TRANSB n k /alpha a lda b ldb /beta *c ldc", "n * n * k / 2"),
    "symm": ("sdcz", "SIDE UPLO m n /alpha a lda b ldb /beta *c ldc", "m * n * SIDED"),
    "hemm": ("cz", "SIDE UPLO m n /alpha a lda b ldb /beta *c ldc", "m * n * SIDED"),
    "syrk": ("sdcz", "UPLO TRANSA n k /alpha a lda /beta *c ldc", "n * n * k / 2"),
    "herk": ("cz", "UPLO TRANSA n k //alpha a lda //beta *c ldc", "n * n * k / 2"),
    "syr2k": ("sdcz", "UPLO TRANSA n k /alpha a lda b ldb /beta *c ldc", "n * n * k"),
    "her2k": ("cz", "UPLO TRANSA n k /alpha a lda b ldb //beta *c ldc", "n * n * k"),
    "trmm": ("sdcz", "SIDE UPLO TRANSA DIAG m n /alpha a lda *b ldb", "m * n * SIDED / 2"),
    "trsm": ("sdcz", "SIDE UPLO TRANSA DIAG m n /alpha a lda *b ldb", "m * n * SIDED / 2"),
}
# Batches of gemm, whose functions only collect the addresses of their arguments: all of Fortran's, and of CBLAS's those of gemm_batch
# but the number of groups, are arrays. Integers of CBLAS are declared wide, since a name may not say how wide they are (batch.c).
BATCHES = {
    "gemm_batch": "transa transb m n k alpha a lda b ldb beta c ldc count sizes",
    "gemm_batch_strided": "transa transb m n k alpha a lda stridea b ldb strideb beta c ldc stridec count",
}
# LAPACK, as Fortran alone: arguments in order, without the hidden lengths. Words in capitals are single letters.
LAPACK = {
    "getrf": ("sdcz", "m n a lda ipiv info"),
    "getrs": ("sdcz", "TRANS n nrhs a lda ipiv b ldb info"),
    "gesv": ("sdcz", "n nrhs a lda ipiv b ldb info"),
    "potrf": ("sdcz", "UPLO n a lda info"),
    "potrs": ("sdcz", "UPLO n nrhs a lda b ldb info"),
    "posv": ("sdcz", "UPLO n nrhs a lda b ldb info"),
    "geqrf": ("sdcz", "m n a lda tau work lwork info"),
    "orgqr": ("sd", "m n k a lda tau work lwork info"),
    "ungqr": ("cz", "m n k a lda tau work lwork info"),
    "syev": ("sd", "JOBZ UPLO n a lda w work lwork info"),
    "heev": ("cz", "JOBZ UPLO n a lda w work lwork rwork info"),
    "syevd": ("sd", "JOBZ UPLO n a lda w work lwork iwork liwork info"),
    "heevd": ("cz", "JOBZ UPLO n a lda w work lwork rwork lrwork iwork liwork info"),
}
LAPACK_ROLES = list(dict.fromkeys(word.lower() for _, words in LAPACK.values() for word in words.split()))
# OpenBLAS has these beyond the reference: no alternative of libblas.so.3 exports them.
EXTENSIONS = ("gemmt", "gemmtr")
FORTRAN = ("{}_", "{}_64_", "scipy_{}_", "scipy_{}_64_")
CBLAS = ("cblas_{}", "cblas_{}64_", "scipy_cblas_{}", "scipy_cblas_{}64_")

# Levels 1 and 2 of libblas.so.3, which only pass through: no signature is needed.
VECTORS = {
    "sdcz": "axpy copy gbmv gemv rotg scal swap tbmv tbsv tpmv tpsv trmv trsv",
    "sd": "asum dot nrm2 rot rotm rotmg sbmv spmv spr spr2 symv syr syr2 ger",
    "cz": "gerc geru hbmv hemv her her2 hpmv hpr hpr2",
}
OTHERS = "csrot zdrot csscal zdscal scasum dzasum scnrm2 dznrm2 icamax idamax isamax izamax dcabs1 scabs1 dsdot sdsdot".split()
FORTRAN_ONLY = "cdotc cdotu zdotc zdotu lsame xerbla xerbla_array".split()
CBLAS_ONLY = "cdotc_sub cdotu_sub zdotc_sub zdotu_sub xerbla".split()

REAL = {"s": "float", "d": "double", "c": "float", "z": "double"}
FREE = {"s": "float", "d": "double", "c": "void", "z": "void"}  # what CBLAS's pointers point to


def vectors():
    """The names of levels 1 and 2, mangled."""
    plain = [kind + name for kinds, names in VECTORS.items() for name in names.split() for kind in kinds] + OTHERS
    return [f"{name}_" for name in plain + FORTRAN_ONLY] + [f"cblas_{name}" for name in plain + CBLAS_ONLY]


def parameters(kind, words, is_cblas, integer):
    """Of each argument: declaration, name, and the initializer of its field in sg_blas_call."""
    if is_cblas:
        yield "int order", "order", ".layout = sg_blas_layout_of(order)"
    for word in words:
        name = word.strip("/*").lower()
        if word.isupper():
            yield (f"int {name}", name, f".{name} = sg_blas_letter_of({name})") if is_cblas else (
                f"const char *{name}", name, f".{name} = sg_blas_upper(*{name})")
        elif word.startswith("/"):
            real = REAL[kind]
            by_value = is_cblas and (kind in "sd" or word.startswith("//"))
            pointed = FREE[kind] if is_cblas or kind in "sd" else "void"
            yield (f"{real} {name}", name, f".{name} = &{name}") if by_value else (f"const {pointed} *{name}", name, f".{name} = {name}")
        elif name in ("a", "b", "c"):
            yield f"{'' if word.startswith('*') else 'const '}void *{name}", name, f".{name} = {name}"
        else:
            yield (f"{integer} {name}", name, f".{name} = {name}") if is_cblas else (f"const {integer} *{name}", name, f".{name} = *{name}")
    if not is_cblas:
        for word in words:
            if word.isupper():
                name = f"length_{word.lower()}"
                yield f"size_t {name}", name, ""


def function(number, name, routine, kind, is_cblas, integer):
    _, words, work = ROUTINES[routine]
    arguments = list(parameters(kind, words.split(), is_cblas, integer))
    declared = ", ".join(each[0] for each in arguments)
    given = ", ".join(each[1] for each in arguments)
    value = "(double){}" if is_cblas else "(double)*{}"
    for size in ("m", "n", "k"):
        work = " ".join(value.format(size) if word == size else word for word in work.split(" "))
    left = "side == 141" if is_cblas else "sg_blas_upper(*side) == 'L'"
    work = work.replace("SIDED", f"({left} ? {value.format('m')} : {value.format('n')})")
    fields = [each[2] for each in arguments if each[2]]
    return f"""SG_BLAS_EXPORT void {name}({declared}) {{
  typedef void cpu_function({declared});
  sg_blas_entry *const entry = &sg_blas_entries[{number}];
  const double work = {work};
  if (sg_blas_is_looked_at(work)) {{
    sg_blas_call call = {{.entry = entry, .work = work, {', '.join(fields)}}};
    if (sg_blas_compute(&call)) return;
  }}
  ((cpu_function *)sg_blas_cpu_address(entry))({given});
}}
"""


def batch_types(routine, kind, is_cblas):
    """Of each argument: its name, and its type if it is passed by value."""
    if is_cblas:
        yield "order", "int"
    for word in BATCHES[routine].split():
        is_value = is_cblas and (word == "count" or routine == "gemm_batch_strided" and word not in "abc")
        if is_value and word in ("alpha", "beta"):
            yield word, REAL[kind] if kind in "sd" else None
        else:
            yield word, None if not is_value else "int" if word.startswith("trans") else "int64_t"


def batch_declaration(types, is_cblas):
    return ", ".join([f"{by_value} {name}" if by_value else f"const void *{name}" for name, by_value in types]
                     + ([] if is_cblas else ["size_t length_transa", "size_t length_transb"]))


def batch_caller(name, routine, kind, is_cblas):
    types = list(batch_types(routine, kind, is_cblas))
    passed = [f"*(const {by_value} *)given->{word}" if by_value else f"given->{word}" for word, by_value in types] + ([] if is_cblas else ["1", "1"])
    return f"""static void {name}(const sg_blas_call *call) {{
  typedef void cpu_function({batch_declaration(types, is_cblas)});
  const sg_blas_arguments *const given = call->batch->given;
  if (sg_blas_has_no_batch(call))
    sg_blas_batch_by_gemm(call);
  else
    ((cpu_function *)sg_blas_cpu_address(call->entry))({", ".join(passed)});
}}
"""


def batch_function(number, name, routine, kind, is_cblas):
    types = list(batch_types(routine, kind, is_cblas))
    unused = "" if is_cblas else "  (void)length_transa, (void)length_transb;\n"
    given = ", ".join(f".{word} = {'&' if by_value else ''}{word}" for word, by_value in types)
    return f"""SG_BLAS_EXPORT void {name}({batch_declaration(types, is_cblas)}) {{
{unused}  const sg_blas_arguments given = {{{given}}};
  sg_blas_batched(&sg_blas_entries[{number}], &given);
}}
"""


def batches(library):
    """As level3; the reference has none, and OpenBLAS no other names than these."""
    for routine in BATCHES if library == "preload" else ():
        for kind in "sdcz":
            for is_cblas, forms in ((False, FORTRAN[:2]), (True, CBLAS if routine == "gemm_batch" else CBLAS[:2])):
                for form in forms:
                    yield form.format(kind + routine), routine, kind, is_cblas, "int64_t" if "64_" in form else "int32_t"


def batch_caller_name(routine, kind, is_cblas):
    passed = kind if is_cblas and routine == "gemm_batch_strided" and kind in "sd" else "x"
    return f"call_{routine}_{'cblas' if is_cblas else 'fortran'}_{passed}"


def lapack_function(number, routine, name):
    words = LAPACK[routine][1].split()
    given = [word.lower() for word in words]
    lengths = [f"length_{word.lower()}" for word in words if word.isupper()]
    declared = ", ".join([f"void *{each}" for each in given] + [f"size_t {each}" for each in lengths])
    return f"""SG_BLAS_EXPORT void {name}({declared}) {{
  typedef void cpu_function({declared});
  void *const given[] = {{{", ".join(given)}}};
  sg_blas_solver_call call;
  if (sg_blas_solve(&sg_blas_entries[{number}], given, &call)) return;
  ((cpu_function *)sg_blas_cpu_address(&sg_blas_entries[{number}]))({", ".join(given + lengths)});
  sg_blas_solved_by_cpu(&call);
}}
"""


def lapack(library):
    """Of each exported name of LAPACK: routine, type, and its integer type."""
    for routine, (kinds, _) in LAPACK.items() if library == "preload" else ():
        for kind in kinds:
            for form in FORTRAN:
                yield form.format(kind + routine), routine, kind, "int64_t" if "64_" in form else "int32_t"


def caller_name(routine, kind, is_cblas, integer):
    """The function that calls the CPU BLAS: Fortran's pointers are the same for all types, and CBLAS's for both complex ones."""
    passed = kind if is_cblas and (kind in "sd" or "//" in ROUTINES[routine][1]) else "z" if is_cblas else "x"
    return f"call_{routine}_{'cblas' if is_cblas else 'fortran'}_{passed}_{integer.removesuffix('_t')}"


def caller(name, routine, kind, is_cblas, integer):
    words = ROUTINES[routine][1].split()
    declared = ", ".join(each[0] for each in parameters(kind, words, is_cblas, integer))
    given, sizes = ["call->layout == SG_BLAS_ROW_MAJOR ? 101 : call->layout == SG_BLAS_COLUMN_MAJOR ? 102 : 0"] if is_cblas else [], []
    for word in words:
        field = word.strip("/*").lower()
        if word.isupper():
            given.append(f"sg_blas_value_of_{field.rstrip('ab') if field.startswith('trans') else field}(call->{field})" if is_cblas else f"&call->{field}")
        elif word.startswith("/"):
            by_value = is_cblas and (kind in "sd" or word.startswith("//"))
            given.append(f"*(const {REAL[kind]} *)call->{field}" if by_value else f"call->{field}")
        elif field in ("a", "b", "c"):
            given.append(f"(void *)call->{field}")
        elif is_cblas:
            given.append(f"({integer})call->{field}")
        else:
            sizes.append(f"  const {integer} {field} = ({integer})call->{field};\n")
            given.append(f"&{field}")
    given += [] if is_cblas else ["1" for word in words if word.isupper()]
    return (f"static void {name}(const sg_blas_call *call) {{\n  typedef void cpu_function({declared});\n{''.join(sizes)}"
            f"  ((cpu_function *)sg_blas_cpu_address(call->entry))({', '.join(given)});\n}}\n")


def level3(library):
    """Of each exported name: routine, type, whether it is CBLAS's, and its integer type."""
    for routine, (kinds, _, _) in ROUTINES.items():
        if library != "preload" and routine in EXTENSIONS:
            continue
        for kind in kinds:
            for is_cblas, forms in ((False, FORTRAN), (True, CBLAS)):
                for form in forms if library == "preload" else forms[:1]:
                    wide = library == "ilp64" or "64_" in form
                    yield form.format(kind + routine), routine, kind, is_cblas, "int64_t" if wide else "int32_t"


# A trampoline touches no argument. Its slot first holds the stub behind it, which finds the function and keeps all registers
# that a call may pass arguments in; al is the number of vector registers of a variadic call.
FIND_AND_GO_OF_X86_64 = r"""
    "  pushq %rax\n  pushq %rdi\n  pushq %rsi\n  pushq %rdx\n  pushq %rcx\n  pushq %r8\n  pushq %r9\n  pushq %r10\n"
    "  subq $128, %rsp\n"
    "  movdqu %xmm0, (%rsp)\n  movdqu %xmm1, 16(%rsp)\n  movdqu %xmm2, 32(%rsp)\n  movdqu %xmm3, 48(%rsp)\n"
    "  movdqu %xmm4, 64(%rsp)\n  movdqu %xmm5, 80(%rsp)\n  movdqu %xmm6, 96(%rsp)\n  movdqu %xmm7, 112(%rsp)\n"
    "  movq 192(%rsp), %rdi\n"
    "  call sg_blas_find_vector\n"
    "  movq %rax, %r11\n"
    "  movdqu (%rsp), %xmm0\n  movdqu 16(%rsp), %xmm1\n  movdqu 32(%rsp), %xmm2\n  movdqu 48(%rsp), %xmm3\n"
    "  movdqu 64(%rsp), %xmm4\n  movdqu 80(%rsp), %xmm5\n  movdqu 96(%rsp), %xmm6\n  movdqu 112(%rsp), %xmm7\n"
    "  addq $128, %rsp\n"
    "  popq %r10\n  popq %r9\n  popq %r8\n  popq %rcx\n  popq %rdx\n  popq %rsi\n  popq %rdi\n  popq %rax\n"
    "  addq $8, %rsp\n"
    "  jmp *%r11\n"
"""
FIND_AND_GO_OF_AARCH64 = r"""
    "  stp x29, x30, [sp, #-16]!\n  mov x29, sp\n  sub sp, sp, #208\n"
    "  stp x0, x1, [sp]\n  stp x2, x3, [sp, #16]\n  stp x4, x5, [sp, #32]\n  stp x6, x7, [sp, #48]\n  str x8, [sp, #64]\n"
    "  stp q0, q1, [sp, #80]\n  stp q2, q3, [sp, #112]\n  stp q4, q5, [sp, #144]\n  stp q6, q7, [sp, #176]\n"
    "  mov x0, x16\n"
    "  bl sg_blas_find_vector\n"
    "  mov x16, x0\n"
    "  ldp x0, x1, [sp]\n  ldp x2, x3, [sp, #16]\n  ldp x4, x5, [sp, #32]\n  ldp x6, x7, [sp, #48]\n  ldr x8, [sp, #64]\n"
    "  ldp q0, q1, [sp, #80]\n  ldp q2, q3, [sp, #112]\n  ldp q4, q5, [sp, #144]\n  ldp q6, q7, [sp, #176]\n"
    "  add sp, sp, #208\n  ldp x29, x30, [sp], #16\n"
    "  br x16\n"
"""
# By the compiler's macro: the trampoline and the stub of a number, where {slot} is its slot, and what the stubs share. x16 and x17 are for
# such code; "hint #34" is "bti c".
ASSEMBLY = {
    "__x86_64__": ("endbr64\\n  movq {slot}(%rip), %r11\\n  jmp *%r11\\n", "endbr64\\n  pushq ${number}\\n  jmp sg_blas_find_and_go\\n", FIND_AND_GO_OF_X86_64),
    "__aarch64__": ("hint #34\\n  adrp x16, {slot}\\n  ldr x16, [x16, :lo12:{slot}]\\n  br x16\\n", "hint #34\\n  mov w16, #{number}\\n  b sg_blas_find_and_go\\n", FIND_AND_GO_OF_AARCH64),
}


def trampolines(names):
    yield "const char *const sg_blas_vector_names[] = {" + ", ".join(f'"{name}"' for name in names) + "};\n"
    yield "__attribute__((visibility(\"hidden\"))) extern void *sg_blas_vector_slots[];\n"
    for macro, (trampoline, stub, find_and_go) in ASSEMBLY.items():
        yield f"#ifdef {macro}\n__asm__(\n    \".text\\n.type sg_blas_find_and_go, %function\\nsg_blas_find_and_go:\\n\"{find_and_go}"
        yield "    \".size sg_blas_find_and_go, . - sg_blas_find_and_go\\n\"\n"
        for number, name in enumerate(names):
            slot = f"sg_blas_vector_slots+{8 * number}"
            yield f'    ".globl {name}\\n.type {name}, %function\\n{name}: {trampoline.format(slot=slot)}"\n'
            yield f'    ".Lfind_{number}: {stub.format(number=number)}.size {name}, . - {name}\\n"\n'
        yield ");\n#endif\n"
    slots = "\\n".join(f"  .quad .Lfind_{number}" for number in range(len(names)))
    yield ("__asm__(\n    \".data\\n.balign 8\\n.hidden sg_blas_vector_slots\\n.globl sg_blas_vector_slots\\n.type sg_blas_vector_slots, @object\\n"
           f"sg_blas_vector_slots:\\n{slots}\\n.size sg_blas_vector_slots, {8 * len(names)}\\n.text\\n\");\n")
    yield """
void *sg_blas_find_vector(size_t number) {
  void *const address = sg_blas_require(sg_blas_vector_names[number]);
  __atomic_store_n(&sg_blas_vector_slots[number], address, __ATOMIC_RELEASE);
  return address;
}
/* Data of the reference's CBLAS, which programs like its testers refer to. */
SG_BLAS_EXPORT int RowMajorStrg;
SG_BLAS_EXPORT int CBLAS_CallFromC;
"""


def library_source(library):
    names, groups, solvers = list(level3(library)), list(batches(library)), list(lapack(library))
    yield "/* Generated by lib/blas/routines.py. */\n#include \"batch.h\"\n#include \"dispatcher.h\"\n#include \"lapack.h\"\n\n#include <stddef.h>\n\n"
    yield f"const sg_blas_library sg_blas_this_library = SG_BLAS_LIBRARY_{library.upper()};\n"
    callers = {}
    for name, *of in names:
        callers.setdefault(caller_name(*of), of)
    yield from (caller(name, *of) for name, of in callers.items())
    group_callers = {batch_caller_name(*of[:3]): of[:3] for _, *of in groups}
    yield from (batch_caller(name, *of) for name, of in group_callers.items())
    numbers = {name: number for number, (name, *_) in enumerate(names)}
    count = len(names) + len(groups) + len(solvers)
    if solvers:
        for routine, (_, words) in LAPACK.items():
            roles = ", ".join(f"SG_BLAS_ROLE_{word.upper()}" for word in words.split())
            yield f"static const unsigned char roles_of_{routine}[] = {{{roles}, SG_BLAS_ROLES}};\n"
    yield f"const int sg_blas_entry_count = {count};\nsg_blas_entry sg_blas_entries[{count}] = {{\n"
    for name, routine, kind, is_cblas, integer in names:
        gemm = numbers[name.replace(kind + routine, kind + "gemm")]
        yield (f'  {{.name = "{name}", .routine = "{kind}{routine}", .number = SG_BLAS_{routine.upper()}, .type = \'{kind}\', '
               f'.call_cpu = {caller_name(routine, kind, is_cblas, integer)}, .gemm = &sg_blas_entries[{gemm}]}},\n')
    for name, routine, kind, is_cblas, integer in groups:
        yield (f'  {{.name = "{name}", .routine = "{kind}{routine}", .number = SG_BLAS_{routine.upper()}, .type = \'{kind}\', .is_wide = {"true" if integer == "int64_t" else "false"}, '
               f'.call_cpu = {batch_caller_name(routine, kind, is_cblas)}, .gemm = &sg_blas_entries[{numbers[name.replace(routine, "gemm")]}]}},\n')
    for name, routine, kind, integer in solvers:
        yield (f'  {{.name = "{name}", .routine = "{kind}{routine}", .type = \'{kind}\', .solver = SG_BLAS_{routine.upper()}, '
               f'.is_wide = {"true" if integer == "int64_t" else "false"}, .roles = roles_of_{routine}}},\n')
    yield "};\n\n"
    for number, (name, routine, *_) in enumerate(solvers):
        yield lapack_function(len(names) + len(groups) + number, routine, name)
    for number, (name, routine, kind, is_cblas, _) in enumerate(groups):
        yield batch_function(len(names) + number, name, routine, kind, is_cblas)
    for number, (name, routine, kind, is_cblas, integer) in enumerate(names):
        yield function(number, name, routine, kind, is_cblas, integer)
    if library != "preload":
        yield "".join(trampolines(vectors()))


def main():
    what = sys.argv[1]
    if what == "names":
        print("\n".join(name for name, *_ in [*level3("preload"), *batches("preload"), *lapack("preload")]))
        return
    if what == "header":
        numbers = ", ".join(f"SG_BLAS_{name.upper()}" for name in [*ROUTINES, *BATCHES])
        solvers = ", ".join(f"SG_BLAS_{name.upper()}" for name in LAPACK)
        text = (f"/* Generated by lib/blas/routines.py. */\ntypedef enum sg_blas_routine {{ {numbers} }} sg_blas_routine;\n"
                f"typedef enum sg_blas_lapack_routine {{ {solvers} }} sg_blas_lapack_routine;\n"
                f"enum {{ {', '.join(f'SG_BLAS_ROLE_{role.upper()}' for role in LAPACK_ROLES)}, SG_BLAS_ROLES }};\n")
    else:
        text = "".join(library_source(what))
    with open(sys.argv[2], "w") as file:
        file.write(text)


main()
