# The CPUs of other devices, emulated: what runs there is cross-compiled (deploy/cross), and bin/CPU/PROGRAM starts it
# by the command line of the PROGRAM of this machine: `hone-runner`, and `hone` as far as `hone run` on files.
find_program(QEMU_AARCH64 qemu-aarch64 REQUIRED)
include(ExternalProject)
ExternalProject_Add(hone_aarch64 SOURCE_DIR ${PROJECT_SOURCE_DIR} BINARY_DIR ${CMAKE_BINARY_DIR}/aarch64
  CMAKE_GENERATOR Ninja
  CMAKE_ARGS --toolchain ${PROJECT_SOURCE_DIR}/deploy/cross/aarch64.cmake -DHONE_DEVICE_ONLY=ON -DHONE_BUILD_TESTS=ON
  BUILD_ALWAYS TRUE INSTALL_COMMAND "")

# Debian 12's emulator has no Neoverse N2; its "max" has all that one has, here with vectors of 128 bits.
set(emulated_cortex-a76 cortex-a76)
set(emulated_neoverse-n2 max,sve-max-vq=1)
set(cross_compiled_hone-runner hone-runner)
set(cross_compiled_hone run_npy)
foreach(cpu cortex-a76 neoverse-n2)
  foreach(program hone-runner hone)
    set(script ${CMAKE_BINARY_DIR}/bin/${cpu}/${program})
    string(CONCAT command "${QEMU_AARCH64} -cpu ${emulated_${cpu}} -L /usr/aarch64-linux-gnu"
           " ${CMAKE_BINARY_DIR}/aarch64/bin/${cross_compiled_${program}}")
    file(CONFIGURE OUTPUT ${script} CONTENT "#!/bin/sh\nexec ${command} \"$@\"\n" @ONLY)
    file(CHMOD ${script} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endforeach()
endforeach()
