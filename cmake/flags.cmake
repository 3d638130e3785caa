# Every warning that we hold to, in one place; room() links it PRIVATE, so it leaks to nobody.
add_library(assay_flags INTERFACE)
target_compile_options(assay_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wold-style-cast -Wnon-virtual-dtor
  -Woverloaded-virtual -Werror
  # Results must be the same bits on every machine: no fused multiply-add behind our back.
  -ffp-contract=off)
# SSE4.2, POPCNT and carry-less multiplication: every x86-64 server of the last ten years.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(assay_flags INTERFACE $<$<CONFIG:Release>:-march=x86-64-v2>
    $<$<CONFIG:Release>:-mpclmul>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(assay_flags INTERFACE -Wthread-safety)
endif()
