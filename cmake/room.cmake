# room(floor/name SOURCES … HEADERS … TESTS … FUZZERS … DEPENDS floor/name… LIBS …)
#
# Makes one library per room, its unit tests (label = room, as in `ctest -L engine_net`) and its
# fuzzers (in build/fuzz/fuzzers). DEPENDS is the statement of the law: it lists the rooms that this
# one may include. In the `layers` preset nothing else is visible, and every header is compiled
# alone.
add_custom_target(rooms)

function(room path)
  cmake_parse_arguments(R "" "" "SOURCES;HEADERS;TESTS;FUZZERS;DEPENDS;LIBS" ${ARGN})
  if(R_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "room(${path}): don't know what to do with ${R_UNPARSED_ARGUMENTS}")
  endif()
  string(REPLACE "/" "_" target ${path})
  # `layers` compiles with -fsyntax-only: no object file, so nothing to put into an archive.
  if(ASSAY_LAYERS)
    add_library(${target} OBJECT ${R_SOURCES})
  else()
    add_library(${target} STATIC ${R_SOURCES})
  endif()
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  add_dependencies(rooms ${target})
  room_include_root(${target} ${path} ${R_HEADERS})
  foreach(dep IN LISTS R_DEPENDS)
    string(REPLACE "/" "_" dep_target ${dep})
    target_link_libraries(${target} PUBLIC ${dep_target})
  endforeach()
  target_link_libraries(${target} PUBLIC ${R_LIBS} PRIVATE assay_flags)
  if(ASSAY_TESTS AND R_TESTS)
    room_tests(${target} ${R_TESTS})
  endif()
  if(ASSAY_FUZZ)
    room_fuzzers(${target} ${R_FUZZERS})
  endif()
endfunction()

function(room_tests target)
  add_executable(${target}_test ${ARGN})
  target_link_libraries(${target}_test PRIVATE ${target} assay_flags GTest::gtest_main)
  gtest_discover_tests(${target}_test
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} DISCOVERY_TIMEOUT 60 PROPERTIES LABELS ${target})
endfunction()

function(room_fuzzers target)
  foreach(fuzzer IN LISTS ARGN)
    get_filename_component(name ${fuzzer} NAME_WE)
    add_executable(${name} ${fuzzer})
    target_link_libraries(${name} PRIVATE ${target} assay_flags -fsanitize=fuzzer)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzzers)
  endforeach()
endfunction()

# In ordinary presets every room sees all of src/. In `layers` it sees its own folder and what it
# links. The include root is also the base directory of the header set.
function(room_include_root target path)
  set(root ${CMAKE_SOURCE_DIR}/src)
  if(ASSAY_LAYERS)
    set(root ${CMAKE_BINARY_DIR}/rooms/${path})
    get_filename_component(parent ${root}/${path} DIRECTORY)
    file(MAKE_DIRECTORY ${parent})
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/${path} ${root}/${path} SYMBOLIC)
  endif()
  target_include_directories(${target} PUBLIC ${root})
  list(TRANSFORM ARGN PREPEND ${root}/${path}/)
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${root} FILES ${ARGN})
endfunction()
