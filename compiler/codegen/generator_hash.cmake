# Writes generator_hash.h: a digest of the sources that decide what code a program becomes, so that an object compiled by
# another generator is never taken for the same. Run as a script: -DROOT=.. -DOUTPUT=..
set(digests "")
foreach(folder ir text tile arith lower codegen)
  file(GLOB sources ${ROOT}/compiler/${folder}/*.cc ${ROOT}/compiler/${folder}/*.h)
  list(SORT sources)
  foreach(source ${sources})
    file(SHA256 ${source} digest)
    string(APPEND digests ${digest})
  endforeach()
endforeach()
string(SHA256 digest "${digests}")
string(SUBSTRING ${digest} 0 12 digest)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "inline constexpr char kGeneratorHash[] = \"${digest}\";\n")
