# Fuzzers, in a build with SANITIZE=fuzz. tests/fuzz-run runs them.
function(fuzzer name)
  add_executable(fuzz_${name} ${CMAKE_SOURCE_DIR}/tests/fuzz_${name}.c)
  target_link_libraries(fuzz_${name} PRIVATE warnings ${ARGN} PkgConfig::SODIUM)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
endfunction()

fuzzer(frame transport)
fuzzer(json core)
fuzzer(transcode gateway)
fuzzer(route gateway)
fuzzer(http gateway fixture)
fuzzer(cursor fixture PkgConfig::SQLITE)
