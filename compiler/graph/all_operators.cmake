include(${CMAKE_CURRENT_LIST_DIR}/../support/files_that_define.cmake)

# What the files of operators/ define with HONE_OPERATORS, as one table (operators/operator.h): writes its source into the
# build folder of whoever asks and leaves the path in `variable`.
function(hone_all_operators variable)
  set(folder ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/operators)
  file(GLOB operators CONFIGURE_DEPENDS ${folder}/*.cc ${folder}/*/*.cc)
  files_that_define(HONE_OPERATORS defining ${operators})
  set(declarations "")
  set(calls "")
  foreach(name ${defining})
    string(APPEND declarations "HONE_OPERATORS(${name});\n")
    string(APPEND calls "    for (Operator& op : OperatorsOf_${name}()) all.push_back(std::move(op));\n")
  endforeach()
  set(table ${CMAKE_CURRENT_BINARY_DIR}/all_operators.cc)
  configure_file(${folder}/all_operators.cc.in ${table})
  set(${variable} ${table} PARENT_SCOPE)
endfunction()
