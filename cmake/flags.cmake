# Every warning that we hold to, in one place; linked PRIVATE by room() so that it never leaks to users.
add_library(assay_flags INTERFACE)
target_compile_options(assay_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wold-style-cast -Wnon-virtual-dtor
  -Woverloaded-virtual -Werror
  # Results must be the same bits on every machine: no fused multiply-add behind our back.
  -ffp-contract=off)
target_compile_definitions(assay_flags INTERFACE
  # Asio's fenced blocks are unknown to the thread sanitizer and needless with one thread per loop.
  BOOST_ASIO_DISABLE_FENCED_BLOCK BOOST_ASIO_NO_DEPRECATED)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(assay_flags INTERFACE -Wthread-safety)
endif()
