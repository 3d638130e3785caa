# Tests over the tree itself: the laws of the house (label `tidy`), and the proof that each law
# can fail.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
add_test(NAME tidy.tree COMMAND ${Python3_EXECUTABLE} -B scripts/tidy.py)
add_test(NAME tidy.rules_can_fail COMMAND ${Python3_EXECUTABLE} -B scripts/tidy_test.py)
set_tests_properties(tidy.tree tidy.rules_can_fail PROPERTIES
  LABELS tidy WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
