# The names, without their endings, of those files that call `macro` at the start of a line: what a table made by the
# build lists.
function(files_that_define macro variable)
  set(names "")
  foreach(file ${ARGN})
    file(STRINGS ${file} defines REGEX "^${macro}\\(")
    if(defines)
      get_filename_component(name ${file} NAME_WE)
      list(APPEND names ${name})
    endif()
  endforeach()
  set(${variable} ${names} PARENT_SCOPE)
endfunction()
