# Writes base/core's version source at build time, so that `assay --version` names the commit that
# was built.
add_custom_target(assay_version_source
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -DVERSION=${PROJECT_VERSION}
          -DOUT=${CMAKE_BINARY_DIR}/version_generated.cc
          -P ${CMAKE_SOURCE_DIR}/cmake/write_version.cmake
  BYPRODUCTS ${CMAKE_BINARY_DIR}/version_generated.cc VERBATIM)
