# Debian packages of the installed components: `cpack -G DEB` in the build folder writes hone-programs_VERSION_ARCH.deb
# (the programs, their units and completions) and hone-runtime_VERSION_ARCH.deb (what programs that run bundles need).
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hone)
set(CPACK_PACKAGE_CONTACT "The Hone authors <hone@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL programs runtime)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)      # dependencies as dpkg-shlibdeps finds them
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME hone-programs)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION devel)
set(CPACK_COMPONENT_PROGRAMS_DESCRIPTION "Auto-tuning service for tensor programs: client, daemon and worker")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_SOURCE_DIR}/postinst)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME hone-runtime)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "Runs models that Hone compiled: library, C header, pkg-config and CMake files")
include(CPack)
