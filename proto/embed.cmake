# embed(FILE SYMBOL OUTPUT): a C file that holds the bytes of FILE as `const unsigned char SYMBOL[]` with their count in
# SYMBOL_bytes, and a NUL behind them for those that are text.
set(EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(embed file symbol output)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DFILE=${file} -DSYMBOL=${symbol} -DOUTPUT=${output} -P ${EMBED_SCRIPT}
    DEPENDS ${file} ${EMBED_SCRIPT}
    VERBATIM)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${FILE} digits HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1, " bytes "${digits}")
  file(WRITE ${OUTPUT}
    "#include <stddef.h>\n"
    "extern const unsigned char ${SYMBOL}[];\n"
    "extern const size_t ${SYMBOL}_bytes;\n"
    "const unsigned char ${SYMBOL}[] = { ${bytes}0 };\n"
    "const size_t ${SYMBOL}_bytes = sizeof ${SYMBOL} - 1;\n")
endif()
