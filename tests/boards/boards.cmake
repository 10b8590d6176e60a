# The CPUs of other devices, emulated: what runs there is cross-compiled (deploy/cross), and bin/CPU/PROGRAM starts it
# by the command line of the PROGRAM of this machine: `hone-runner`, and `hone` as far as `hone run` on files.
include(ExternalProject)
set(HONE_BOARD_PROGRAMS)                     # what tests on boards depend on
foreach(arch aarch64 riscv64)
  string(TOUPPER QEMU_${arch} qemu)
  find_program(${qemu} qemu-${arch} REQUIRED)
  ExternalProject_Add(hone_${arch} SOURCE_DIR ${PROJECT_SOURCE_DIR} BINARY_DIR ${CMAKE_BINARY_DIR}/${arch}
    CMAKE_GENERATOR Ninja
    CMAKE_ARGS --toolchain ${PROJECT_SOURCE_DIR}/deploy/cross/${arch}.cmake -DHONE_DEVICE_ONLY=ON -DHONE_BUILD_TESTS=ON
               -DHONE_JOIN_SOURCES=${HONE_JOIN_SOURCES}
    BUILD_ALWAYS TRUE INSTALL_COMMAND "")
  list(APPEND HONE_BOARD_PROGRAMS hone_${arch})
endforeach()

# `cpu` is a core and its features as a target names them, `emulated` the emulator's name for it.
function(hone_board cpu arch emulated)
  set(cross_compiled_hone-runner hone-runner)
  set(cross_compiled_hone run_npy)
  string(TOUPPER QEMU_${arch} qemu)
  foreach(program hone-runner hone)
    set(script ${CMAKE_BINARY_DIR}/bin/${cpu}/${program})
    string(CONCAT command "${${qemu}} -cpu ${emulated} -L /usr/${arch}-linux-gnu"
           " ${CMAKE_BINARY_DIR}/${arch}/bin/${cross_compiled_${program}}")
    file(CONFIGURE OUTPUT ${script} CONTENT "#!/bin/sh\nexec ${command} \"$@\"\n" @ONLY)
    file(CHMOD ${script} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endforeach()
endfunction()

# Debian 12's emulator has no Neoverse N2; its "max" has all that one has, here with vectors of 128 bits. Of RISC-V it
# has no core with vectors, and no zicond.
hone_board(cortex-a76 aarch64 cortex-a76)
hone_board(neoverse-n2 aarch64 max,sve-max-vq=1)
set(rva22v rv64,v=true,vext_spec=v1.0,elen=64)
hone_board(generic-rv64 riscv64 ${rva22v},vlen=128,Zfhmin=true)
hone_board(spacemit-x60-zicond riscv64 ${rva22v},vlen=256,Zfh=true)
