include(${CMAKE_CURRENT_LIST_DIR}/../support/files_that_define.cmake)

# What the files of primitives/ define with HONE_PRIMITIVES, as one table (primitive_table.h): writes its source into the
# build folder of whoever asks and leaves the path in `variable`.
function(hone_primitive_table variable)
  set(folder ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  file(GLOB primitives CONFIGURE_DEPENDS ${folder}/primitives/*.cc)
  files_that_define(HONE_PRIMITIVES defining ${primitives})
  set(declarations "")
  set(files "")
  foreach(name ${defining})
    string(APPEND declarations "std::vector<Primitive> PrimitivesOf_${name}();\n")
    list(APPEND files "PrimitivesOf_${name}")
  endforeach()
  list(JOIN files ", " files)
  set(table ${CMAKE_CURRENT_BINARY_DIR}/primitive_table.cc)
  configure_file(${folder}/primitive_table.cc.in ${table})
  set(${variable} ${table} PARENT_SCOPE)
endfunction()
